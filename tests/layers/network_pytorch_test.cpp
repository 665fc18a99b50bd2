// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Networks against the values PyTorch computed (tests/reference/make_network_fixtures.py):
// in double precision to rounding, in single precision as near as PyTorch's own is to its double.

#include "core/base/check.hpp"
#include "core/base/vectors.hpp"
#include "core/model/kernels.hpp"
#include "tests/layers/network_training.hpp"

namespace carousel {
namespace {

constexpr bool is_double = sizeof(real) == 8;

constexpr double tolerance = 1e-10;         // in double precision, of a step
constexpr double tolerance_learned = 1e-9;  // of what several steps have multiplied
// In single precision, times PyTorch's own distance from its double; at least 1e-6. Measured:
// direct sums at most 3.8 times, Winograd's at most 10.
constexpr double likeness = 4;
constexpr double likeness_winograd = 12;
constexpr double least_distance = 1e-6;

struct Case {
  const char* model;
  const char* kernels;
  KernelChoice choice;
  bool learns;  // all steps of the fixture, in double precision
};

class NetworkOfPyTorch : public testing::TestWithParam<Case> {
 protected:
  NetworkOfPyTorch()
      : fixture_(reference::fixture("models", "networks.json").at(GetParam().model)),
        seed_(fixture_.at("seed")),
        training_(fixture_, GetParam().choice) {}

  /// How far a tensor is off, in the sampled elements and in the sum of all with random weights.
  [[nodiscard]] double difference(const std::string& name, std::span<const real> values,
                                  const nlohmann::json& known) const {
    const auto sample = known.at("sample").get<std::vector<double>>();
    const double largest = known.at("largest");
    const auto size = static_cast<double>(values.size());
    EXPECT_EQ(values.size(), known.at("size").get<std::size_t>()) << name;
    double off = 0;
    for (std::size_t k = 0; k < sample.size(); ++k) {
      const double random = uniform01(random_key(seed_, "sample"), hash_name(name), k);
      const std::size_t at =
          sample.size() < values.size() ? static_cast<std::size_t>(random * size) : k;
      off = std::max(off, std::abs(values[at] - sample[k]) / largest);
    }
    double sum = 0;
    for (std::size_t k = 0; k < values.size(); ++k)
      sum += values[k] * (uniform01(random_key(seed_, "weights"), hash_name(name), k) - 0.5);
    const double of_sum = std::abs(sum - known.at("checksum").get<double>());
    return std::max(off, of_sum / (std::sqrt(size) * largest));
  }

  /// Compares all tensors of one quantity.
  void compare(const char* quantity, std::vector<ParameterSpec> LayerSpec::*tensors,
               const test::Numbers& flat) const {
    const nlohmann::json& all = fixture_.at(quantity);
    double worst = 0;
    std::size_t compared = 0;
    test::for_each_tensor(training_.model(), tensors, flat,
                          [&](const ParameterSpec& tensor, std::span<const real> values) {
                            const nlohmann::json& known = all.at(tensor.name);
                            const double off = difference(tensor.name, values, known);
                            EXPECT_LE(off, limit(known)) << quantity << " of " << tensor.name;
                            worst = std::max(worst, off / limit(known));
                            ++compared;
                          });
    EXPECT_EQ(compared, all.size());
    fmt::print("{}, {}, {}: at most {:.2g} of what is allowed\n", GetParam().model,
               GetParam().kernels, quantity, worst);
  }

  [[nodiscard]] static double limit(const nlohmann::json& known) {
    if (!known.contains("distance")) return tolerance_learned;
    if (is_double) return tolerance;
    const double distance = known.at("distance").get<double>();
    if (!GetParam().choice.winograd) return likeness * distance;
    return likeness_winograd * std::max(distance, least_distance);
  }

  nlohmann::json fixture_;
  std::uint64_t seed_;
  test::NetworkTraining training_;
};

// In single precision, rounding moves a rectifier over its kink sooner or later, and what has been
// learned after that is as good but not the same: only the first step can be compared.
TEST_P(NetworkOfPyTorch, ComputesAndLearnsTheSame) {
  const nlohmann::json& logits = fixture_.at("logits").at("");
  EXPECT_LE(difference("", training_.first_logits(), logits), limit(logits));
  const bool learns = is_double && GetParam().learns;
  const int steps = learns ? fixture_.at("steps").get<int>() : 1;
  for (int t = 0; t < steps; ++t) {
    training_.step(t);
    EXPECT_NEAR(training_.loss(), fixture_.at("losses").at(t).get<double>(),
                t == 0 ? limit(logits) : tolerance_learned)
        << "step " << t;
    if (t > 0) continue;
    compare("gradients", &LayerSpec::parameters, training_.gradient());
    compare("buffers_after_1", &LayerSpec::buffers, training_.buffers());
  }
  if (!learns) return;
  compare("parameters_after_10", &LayerSpec::parameters, training_.parameters());
  compare("buffers_after_10", &LayerSpec::buffers, training_.buffers());
}

/// || a - b || / || b ||.
double distance(const test::Numbers& a, const test::Numbers& b) {
  double difference = 0;
  double all = 0;
  EXPECT_EQ(a.size(), b.size());
  for (std::size_t k = 0; k < b.size(); ++k) {
    difference += std::pow(static_cast<double>(a[k]) - static_cast<double>(b[k]), 2);
    all += std::pow(static_cast<double>(b[k]), 2);
  }
  return std::sqrt(difference / all);
}

/// What is stored in bf16 is rounded 2^16 times as coarsely as a float, but less often: how far
/// that brings a network from full numbers, which are compared with float64 above, is at most so
/// many times as far as PyTorch's floats are from float64.
class NetworkInBf16 : public testing::TestWithParam<const char*> {};

TEST_P(NetworkInBf16, IsNearFullNumbers) {
  constexpr double coarser = 65536;
  const nlohmann::json fixture = reference::fixture("models", "networks.json").at(GetParam());
  std::vector<KernelChoice> choices = {{.winograd = false}};
  if (vector_block > 1) choices.push_back({.block = vector_block});
  if (built_kernels() != VendorKernels::none)
    choices.push_back({.winograd = false, .vendor = built_kernels()});
  for (KernelChoice choice : choices) {
    test::NetworkTraining full(fixture, choice);
    choice.type = DataType::bfloat16;
    test::NetworkTraining half(fixture, choice);
    const double logits = distance(half.first_logits(), full.first_logits());
    full.step(0);
    half.step(0);
    const double gradient = distance(half.gradient(), full.gradient());
    fmt::print(
        "{}, blocks of {}{}: bf16 is off by {:.4f} of logits, {:.4f} of gradients, {:.5f} of "
        "the loss\n",
        GetParam(), choice.block, choice.vendor == VendorKernels::none ? "" : ", vendor", logits,
        gradient, half.loss() / full.loss() - 1);
    EXPECT_GT(logits, 1e-4) << "nothing was rounded";
    EXPECT_LT(logits, coarser * fixture.at("logits").at("").at("distance").get<double>());
    double of_floats = 0;
    for (const nlohmann::json& tensor : fixture.at("gradients"))
      of_floats = std::max(of_floats, tensor.at("distance").get<double>());
    EXPECT_LT(gradient, coarser * of_floats);
  }
}
// The larger ones in single precision, as they are trained.
std::vector<const char*> networks_in_bf16() {
  if (is_double) return {"resnet20", "vit"};
  return {"resnet20", "resnet18-cifar", "resnet50-shifted", "vit"};
}
INSTANTIATE_TEST_SUITE_P(Models, NetworkInBf16, testing::ValuesIn(networks_in_bf16()),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::erase(name, '-');
                           return name;
                         });

// In single precision, networks whose rectifiers may be at their kinks are compared where batch
// norm moves what these are given away from zero: the deepest, and by Winograd all.
std::vector<Case> cases() {
  std::vector<Case> all;
  // What is made again has the bits of what was kept: there the first step says as much as ten; the
  // deepest learns by one kind of kernels.
  const auto add = [&](const char* model, const char* kernels, const KernelChoice& choice,
                       bool learns = true) {
    all.push_back({model, kernels, choice, learns});
  };
  const char* deepest = is_double ? "resnet50" : "resnet50-shifted";
  for (const char* model : {"resnet20", "resnet18-cifar", deepest, "vit"}) {
    add(model, "portable", {.winograd = false}, model != deepest || vector_block == 1);
    if (built_kernels() != VendorKernels::none)
      add(model, "vendor", {.winograd = false, .vendor = built_kernels()});
    if constexpr (vector_block == 1) continue;
    for (const Recompute recompute : {Recompute::none, Recompute::cheap, Recompute::stage})
      add(model, to_string(recompute), {vector_block, false, recompute},
          recompute == Recompute::none);
  }
  if constexpr (vector_block == 1) return all;
  for (const char* model : {is_double ? "resnet20" : "resnet20-shifted",
                            is_double ? "resnet18-cifar" : "resnet18-cifar-shifted", deepest})
    add(model, "winograd", {vector_block, true, Recompute::cheap}, model != deepest);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, NetworkOfPyTorch, testing::ValuesIn(cases()),
                         [](const auto& instance) {
                           std::string name = instance.param.model;
                           std::erase(name, '-');
                           return name + "_" + instance.param.kernels;
                         });

}  // namespace
}  // namespace carousel
