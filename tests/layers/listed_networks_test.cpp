// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Networks that decks list against what PyTorch computed (tests/reference/make_listed_fixtures.py):
// those of inputs/networks, and 260 drawn at random, with branches, skips and odd sizes. In double
// precision to rounding, in single precision as near as PyTorch's own is to its double.

#include <fmt/core.h>

#include <cmath>

#include "app/run_config.hpp"
#include "core/base/vectors.hpp"
#include "core/model/kernels.hpp"
#include "tests/app/network_deck.hpp"
#include "tests/layers/network.hpp"
#include "tests/reference/fixtures.hpp"

namespace carousel::test {
namespace {

const nlohmann::json& fixtures() {
  static const nlohmann::json all = reference::fixture("networks", "listed.json");
  return all;
}

Model model_of(const nlohmann::json& fixture) {
  const auto shape = [&](const char* key) {
    const auto sizes = fixture.at(key).get<std::vector<int>>();
    const bool is_volume = sizes.size() == 4;
    return SampleShape{sizes.at(0), sizes.at(is_volume ? 2 : 1), sizes.at(is_volume ? 3 : 2),
                       is_volume ? sizes.at(1) : 1};
  };
  const SampleShape outputs = shape("outputs");
  const RunConfig config = parse_run_config(network_deck(fixture.at("model").get<std::string>()),
                                            std::string(CAROUSEL_SOURCE) + "/deck.toml", {});
  return build_model(config.model, shape("image"),
                     TargetSpec::of_pixels(outputs.channels, outputs));
}

/// As the fixtures' script draws them.
Numbers values_of(const ParameterSpec& parameter) {
  Numbers values = random_numbers(static_cast<std::size_t>(parameter.size()), parameter.name);
  double fan = 1;
  for (std::size_t d = 1; d < parameter.shape.size(); ++d)
    fan *= static_cast<double>(parameter.shape[d]);
  const bool is_factor = parameter.shape.size() == 1 && parameter.name.ends_with(".weight");
  for (real& value : values) {
    if (parameter.shape.size() > 1) value = static_cast<real>(double{value} * std::sqrt(20 / fan));
    if (is_factor) value += 1;
  }
  return values;
}

/// What a tensor must be: its size, and unless it is nothing but rounding its norm, the sum of its
/// elements with random weights, and how far PyTorch's floats are from that.
struct Expected {
  std::size_t size;
  double norm = 0;
  double sum = 0;
  double distance = 0;

  explicit Expected(const nlohmann::json& numbers) : size(numbers.at(0)) {
    if (numbers.size() == 1) return;
    norm = numbers.at(1);
    sum = numbers.at(2);
    distance = numbers.at(3);
  }
};

class ListedNetwork : public testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] const nlohmann::json& fixture() const { return fixtures().at(GetParam()); }

  void check(const KernelChoice& choice) {
    SCOPED_TRACE(fmt::format("blocks of {}", choice.block));
    const Model model = model_of(fixture());
    const Model computed = choose_kernels(model, choice);
    const int samples = reference::fixture("samples", "listed.json");
    Network network(computed, samples);
    fill(model, network);
    const int stream = fixture().at("stream");
    const auto pixels = static_cast<int>(model.target.pixels());
    const Numbers images = inputs(static_cast<int>(samples * model.input.size()), stream);
    const std::vector<int> labels =
        random_labels(samples * pixels, model.target.channels(), stream);
    network.set_batch(images, labels);
    const ExecutionSpace exec;
    network.forward(exec);
    const double loss = fixture().at("loss");
    EXPECT_NEAR(network.loss(), loss, (is_double ? 1e-11 : 2e-5) * (1 + loss));
    network.backward(exec);

    largest_ = 0;
    for (const auto& [name, numbers] : fixture().at("tensors").items())
      largest_ = std::max(largest_, Expected(numbers).norm);
    compare("", outputs(computed, network, samples, images, labels));
    const Numbers gradient = to_host(network.gradient());
    std::size_t begin = 0;
    std::size_t compared = 1;
    for (const LayerSpec& layer : model.layers) {
      for (const ParameterSpec& parameter : layer.parameters) {
        const auto size = static_cast<std::size_t>(parameter.size());
        compare(parameter.name, std::span(gradient).subspan(begin, size));
        begin += size;
        ++compared;
      }
    }
    EXPECT_EQ(compared, fixture().at("tensors").size()) << "PyTorch has others";
  }

 private:
  [[nodiscard]] Numbers inputs(int count, int stream) const {
    if (!fixture().contains("tokens"))
      return random_numbers(static_cast<std::size_t>(count), "images", stream);
    constexpr int behind_labels = 1000;
    const std::vector<int> tokens =
        random_labels(count, fixture().at("tokens").get<int>(), stream + behind_labels);
    return {tokens.begin(), tokens.end()};
  }

  static void fill(const Model& model, const Network& network) {
    Numbers parameters;
    Numbers buffers;
    for (const LayerSpec& layer : model.layers) {
      for (const ParameterSpec& parameter : layer.parameters) {
        const Numbers values = values_of(parameter);
        parameters.insert(parameters.end(), values.begin(), values.end());
      }
      buffers.resize(buffers.size() + static_cast<std::size_t>(layer.buffer_size()), real(1));
    }
    Kokkos::deep_copy(network.parameters(), to_device(parameters));
    Kokkos::deep_copy(network.buffers(), to_device(buffers));
  }

  /// What the network leaves before the loss.
  static Numbers outputs(const Model& model, const Network& trained, int samples,
                         const Numbers& images, const std::vector<int>& labels) {
    Network network(without_loss(model), samples);
    Kokkos::deep_copy(network.parameters(), trained.parameters());
    Kokkos::deep_copy(network.buffers(), trained.buffers());
    network.set_batch(images, labels);
    network.forward(ExecutionSpace());
    return network.output();
  }

  void compare(const std::string& name, std::span<const real> actual) const {
    ASSERT_TRUE(fixture().at("tensors").contains(name)) << name << " is not PyTorch's";
    const Expected expected(fixture().at("tensors").at(name));
    ASSERT_EQ(actual.size(), expected.size) << name;
    double sum = 0;
    double squares = 0;
    for (std::size_t k = 0; k < actual.size(); ++k) {
      sum +=
          double{actual[k]} * (uniform01(random_key(7, "weights"), random_key(0, name), k) - 0.5);
      squares += double{actual[k]} * double{actual[k]};
    }
    const double norm = std::sqrt(squares);
    if (expected.norm == 0) {
      EXPECT_LT(norm, (is_double ? 1e-11 : 1e-3) * largest_) << name << " is nothing but rounding";
      return;
    }
    // Where much cancels, rounding is that of what cancels.
    constexpr double rounded = 1e-11;
    const double limit = is_double ? rounded * std::max(expected.norm, 1e-3 * largest_)
                                   : (20 * expected.distance + 3e-6) * expected.norm;
    EXPECT_NEAR(sum, expected.sum, limit) << name;
    EXPECT_NEAR(norm, expected.norm, limit) << name;
  }

  static constexpr bool is_double = sizeof(real) == sizeof(double);
  double largest_ = 0;  // norm of all tensors
};

TEST_P(ListedNetwork, IsPyTorchs) {
  check({.winograd = false});
  if constexpr (vector_block > 1) check({.block = vector_block, .winograd = false});
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, fixture] : fixtures().items()) all.push_back(name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, ListedNetwork, testing::ValuesIn(names()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace carousel::test
