// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Kernels of channels side by side compute on bf16 as on full numbers, and round what they write.
// That the latter are right, blocked_norm_test shows.

#include <gtest/gtest.h>

#include <any>
#include <ostream>

#include "core/model/kernels.hpp"
#include "core/model/op.hpp"
#include "layers/average_pool/op.hpp"
#include "layers/batch_norm/op.hpp"
#include "layers/factory.hpp"
#include "layers/max_pool/op.hpp"
#include "tests/layers/stored.hpp"

namespace carousel::test {
namespace {

constexpr int n = 3;
const SampleShape images = {24, 5, 7};
const SampleShape tokens = {24, 11};

struct Case {
  const char* name;
  const char* kind;
  std::any attributes;
  SampleShape output;
  bool adds_input = false;
  SampleShape input = images;
};
// NOLINTNEXTLINE(readability-identifier-naming): as GoogleTest calls it
void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

class ChannelsLast : public ::testing::TestWithParam<Case> {
 protected:
  /// All that a layer writes.
  struct Written {
    Numbers output, d_input, d_output, d_second, d_parameters, statistics;
  };

  [[nodiscard]] static Written run(DataType type) {
    const Case& one = GetParam();
    const SampleShape& shape = one.input;
    LayerSpec spec;
    spec.kind = &op_named(one.kind);
    spec.attributes = one.attributes;
    spec.name = "layer";
    spec.inputs = {{-1, shape, {type, shape.channels}}};
    spec.output = one.output;
    const auto* norm = std::any_cast<op::BatchNorm>(&one.attributes);
    if (norm != nullptr) {
      spec.parameters = {{"weight", {shape.channels}}, {"bias", {shape.channels}}};
      spec.buffers = {{"running_mean", {shape.channels}}, {"running_var", {shape.channels}}};
      if (norm->adds) spec.inputs.push_back(spec.inputs[0]);
    }
    if (spec.is("layer_norm")) {
      spec.parameters = {{"weight", {shape.channels}}, {"bias", {shape.channels}}};
      spec.saved = {{"statistics", {0, 2 * shape.height * std::int64_t{sizeof(real)}}, true}};
    }
    choose_kernels(spec, {.block = 0, .type = type});
    EXPECT_EQ(spec.converted, Converted::nothing);

    const auto random = [&](std::int64_t size, const char* name) {
      // What both types have.
      return stored(
          rounded_to(random_numbers(static_cast<std::size_t>(size), name), DataType::bfloat16),
          type);
    };
    const auto at = [](std::vector<std::byte>& bytes) {
      return reinterpret_cast<real*>(bytes.data());
    };
    std::vector<std::byte> x = random(n * shape.size(), "x");
    std::vector<std::byte> second = random(n * shape.size(), "second");
    std::vector<std::byte> y = random(n * one.output.size(), "y");
    std::vector<std::byte> d_y = random(n * one.output.size(), "d_y");
    std::vector<std::byte> d_x = random(n * shape.size(), "d_x");
    std::vector<std::byte> d_second = random(n * shape.size(), "d_second");
    const Numbers parameters = random_numbers(2 * static_cast<std::size_t>(shape.channels), "w");
    std::vector<std::byte> saved(static_cast<std::size_t>(spec.saved_bytes(n)));
    std::vector<std::byte> workspace(static_cast<std::size_t>(spec.workspace_bytes(n)));
    Numbers d_parameters(parameters.size());
    Numbers statistics(parameters.size());

    const ExecutionSpace exec;
    const std::unique_ptr<Layer> layer =
        make_layer(spec, n, {.exec = exec, .workspace = workspace});
    layer->forward(exec, {.input = {at(x), n, shape},
                          .output = {at(y), n, one.output},
                          .parameters = parameters.data(),
                          .second = {at(second), n, shape},
                          .saved = saved.data()});
    layer->backward(exec, {.input = {at(x), n, shape},
                           .output = {at(y), n, one.output},
                           .d_output = {at(d_y), n, one.output},
                           .d_input = {at(d_x), n, shape},
                           .parameters = parameters.data(),
                           .d_parameters = d_parameters.data(),
                           .d_second = {at(d_second), n, shape},
                           .adds_input = one.adds_input,
                           .adds_second = one.adds_input,
                           .saved = saved.data(),
                           .statistics = statistics.data()});
    return {restored(y, type),        restored(d_x, type), restored(d_y, type),
            restored(d_second, type), d_parameters,        statistics};
  }
};

/// But for how the compiler contracts sums of either type.
TEST_P(ChannelsLast, RoundsWhatItWrites) {
  constexpr double last_bit = 1.0 / 256;
  const Written full = run(DataType::full);
  const Written half = run(DataType::bfloat16);
  EXPECT_LE(relative_difference(half.d_parameters, full.d_parameters), rounding) << "sums are full";
  EXPECT_LE(relative_difference(half.statistics, full.statistics), rounding);
  for (Numbers Written::*part :
       {&Written::output, &Written::d_input, &Written::d_output, &Written::d_second})
    EXPECT_LE(relative_difference(half.*part, rounded_to(full.*part, DataType::bfloat16)),
              last_bit);
}

INSTANTIATE_TEST_SUITE_P(
    Layers, ChannelsLast,
    ::testing::Values(
        Case{"layer_norm", "layer_norm", {}, tokens, true, tokens},
        Case{"first_token", "first_token", {}, {24, 1, 1}, true, tokens},
        Case{"gelu", "gelu", {}, tokens, true, tokens},
        Case{"norm", "batch_norm", op::BatchNorm{}, images},
        Case{"norm_relu", "batch_norm", op::BatchNorm{false, true}, images, true},
        Case{"norm_add", "batch_norm", op::BatchNorm{true, false}, images},
        Case{"norm_add_relu", "batch_norm", op::BatchNorm{true, true}, images, true},
        Case{"max_pool", "max_pool", op::MaxPool{{3, 2, 1}}, {24, 3, 4}},
        Case{"max_pool_adds", "max_pool", op::MaxPool{{2, 2, 0}}, {24, 2, 3}, true},
        Case{"average_pool", "average_pool", op::AveragePool{{.kernel = 0}}, {24, 1, 1}},
        Case{
            "average_pool_adds", "average_pool", op::AveragePool{{.kernel = 0}}, {24, 1, 1}, true}),
    [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace carousel::test
