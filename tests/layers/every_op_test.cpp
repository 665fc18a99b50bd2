// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Every kind of layer and everything that is fused, in every order and type of tensors.

#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/check.hpp"
#include "tests/layers/check_layer.hpp"

namespace carousel::test {
namespace {

/// Channels that fill several blocks of any layout.
constexpr int wide = 2 * std::max(vector_block, 8);

/// Of each kind some, of which one at least has channels that fill blocks; the first one is what it
/// is when it is fused.
const std::vector<Example> examples = {
    {"adaptive_avg_pool", {3, 5, 7}, {{"size", 3}}},
    {"adaptive_avg_pool", {3, 2, 3}, {{"size", 5}}},
    {"adaptive_avg_pool", {3, 7}, {{"size", 3}}},
    {"adaptive_avg_pool", {3, 5, 7, 4}, {{"size", 3}}},
    {"add", {wide, 5, 7}, {}, true},
    {"add", {3, 4, 5}, {}, true},
    {"attention", {3 * wide, 19}, {{"heads", 2}}},
    {"attention", {18, 7}, {{"heads", 3}}},
    {"attention", {3 * wide, 5, 4}, {{"heads", 2}}},
    {"attention", {3 * wide, 71}, {{"heads", 2}, {"causal", 1}}},
    {"attention", {18, 7}, {{"heads", 3}, {"causal", 1}}},
    {"average_pool", {wide, 5, 7}},
    {"average_pool", {3, 4, 5}},
    {"average_pool", {wide, 3, 4, 2}},
    {"avg_pool", {wide, 9, 7}, {{"kernel", 2}}},
    {"avg_pool", {3, 9, 7}, {{"kernel", 3}, {"stride", 2}, {"padding", 1}}},
    {"batch_norm", {wide, 5, 7}},
    {"batch_norm", {5, 4, 3}},
    {"batch_norm", {wide}},
    {"batch_norm", {wide, 5, 7}, {{"epsilon", 0.5}}},
    {"batch_norm", {wide, 3, 4, 5}},
    {"concat", {wide, 5, 7}, {}, true},
    {"concat", {wide}, {}, true},
    {"concat", {3, 4, 5}, {}, true},
    {"concat", {wide, 3, 4, 2}, {}, true},
    {"convolution", {wide, 9, 7}, {{"channels", wide}, {"kernel", 3}, {"padding", 1}, {"bias", 0}}},
    {"convolution",
     {wide, 9, 7},
     {{"channels", 2 * wide}, {"kernel", 1}, {"stride", 2}, {"bias", 0}}},
    {"convolution",
     {3, 9, 7},
     {{"channels", wide}, {"kernel", 3}, {"stride", 2}, {"padding", 1}, {"bias", 0}}},
    {"convolution",
     {3, 9, 7},
     {{"channels", wide}, {"kernel", 3}, {"stride", 2}, {"padding", 1}},
     false,
     true},
    {"convolution", {wide}, {{"channels", wide}, {"kernel", 3}, {"padding", 1}}},
    {"convolution", {wide, 1, 1}, {{"channels", wide}, {"kernel", 1}}},
    {"convolution", {3, 6, 5}, {{"channels", 5}, {"kernel", 2}}},
    {"convolution", {3, 11, 9}, {{"channels", 5}, {"kernel", 3}, {"dilation", 2}, {"padding", 2}}},
    {"convolution", {6, 5, 4}, {{"channels", 4}, {"kernel", 3}, {"groups", 2}, {"padding", 1}}},
    {"convolution",
     {wide, 7, 9},
     {{"channels", wide}, {"kernel", 3}, {"groups", wide}, {"padding", 1}}},
    {"convolution",
     {wide, 7, 9},
     {{"channels", 2 * wide}, {"kernel", 3}, {"groups", wide}, {"stride", 2}, {"padding", 1}}},
    {"convolution", {5, 12}, {{"channels", 3}, {"kernel", 4}, {"stride", 2}, {"padding", 1}}},
    {"convolution", {4, 12}, {{"channels", 4}, {"kernel", 3}, {"groups", 4}, {"dilation", 2}}},
    {"conv_transpose", {5, 4, 3}, {{"channels", 3}, {"kernel", 2}, {"stride", 2}}},
    {"conv_transpose",
     {4, 5, 4},
     {{"channels", 6},
      {"kernel", 3},
      {"stride", 2},
      {"padding", 1},
      {"output_padding", 1},
      {"groups", 2}}},
    {"conv_transpose", {4, 5, 4}, {{"channels", 4}, {"kernel", 3}, {"groups", 4}, {"bias", 0}}},
    {"conv_transpose", {5, 7}, {{"channels", 3}, {"kernel", 4}, {"stride", 2}, {"padding", 1}}},
    {"conv_transpose",
     {3, 4, 5},
     {{"channels", 4}, {"kernel", 1}, {"dilation", 2}, {"output_padding", 1}}},
    {"conv_transpose", {wide, 3, 4, 2}, {{"channels", wide}, {"kernel", 2}, {"stride", 2}}},
    {"conv_transpose",
     {3, 4, 3, 2},
     {{"channels", 5}, {"kernel", 3}, {"stride", 2}, {"output_padding", 1}}},
    {"convolution", {wide, 6, 5}, {{"channels", wide}, {"kernel", 3}}},
    {"convolution",
     {wide, 5, 7, 4},
     {{"channels", wide}, {"kernel", 3}, {"padding", 1}, {"bias", 0}}},
    {"convolution",
     {wide, 5, 7, 4},
     {{"channels", 2 * wide}, {"kernel", 3}, {"stride", 2}, {"padding", 1}}},
    {"convolution", {wide, 20, 3, 2}, {{"channels", wide}, {"kernel", 1}}},
    {"convolution",
     {3, 5, 4, 6},
     {{"channels", wide}, {"kernel", 3}, {"stride", 2}, {"padding", 1}},
     false,
     true},
    {"convolution", {3, 6, 5, 4}, {{"channels", 5}, {"kernel", 2}}},
    {"convolution",
     {6, 5, 4, 7},
     {{"channels", 4}, {"kernel", 3}, {"groups", 2}, {"dilation", 2}, {"padding", 2}}},
    {"convolution",
     {wide, 3, 5, 4},
     {{"channels", wide}, {"kernel", 3}, {"groups", wide}, {"padding", 1}}},
    {"dropout", {wide, 5, 7}, {{"probability", 0.3}}},
    {"dropout", {wide, 3, 4, 2}, {{"probability", 0.3}}},
    {"dropout", {wide, 11}, {{"probability", 0}}},
    {"elu", {wide, 5, 7}, {{"alpha", 1.5}}},
    {"embedding", {1, 11}, {{"features", wide}, {"vocabulary", 7}}, false, true, {}, 7},
    {"embedding", {1, 5, 4}, {{"features", 3}, {"vocabulary", 50}}, false, true, {}, 50},
    {"first_token", {wide, 11}},
    {"first_token", {5, 4}},
    {"flatten", {wide, 5, 7}},
    {"gelu", {wide, 11}},
    {"gelu_tanh", {wide, 11}},
    {"group_norm", {wide, 5, 7}, {{"groups", 4}}},
    {"group_norm", {3 * wide, 16, 8}, {{"groups", 4}}},
    {"group_norm", {6, 4, 5}, {{"groups", 3}}},
    {"group_norm", {wide, 3, 4, 2}, {{"groups", 4}}},
    {"hard_sigmoid", {wide, 5, 7}},
    {"hard_swish", {wide, 5, 7}},
    {"instance_norm", {wide, 5, 7}},
    {"instance_norm", {wide, 5, 7}, {{"affine", 1}}},
    {"instance_norm", {3, 11}, {{"epsilon", 0.5}}},
    {"instance_norm", {wide, 3, 4, 2}, {{"affine", 1}}},
    {"layer_norm", {wide, 11}},
    {"layer_norm", {wide, 11}, {{"epsilon", 0.5}}},
    {"layer_norm", {5, 4}},
    {"layer_norm", {wide, 11}, {{"bias", 0}}},
    {"layer_norm", {wide, 5, 7}},
    {"layer_norm", {wide, 3, 4, 2}},
    {"leaky_relu", {wide, 5, 7}},
    {"linear", {wide}, {{"features", 5}}},
    {"linear", {wide, 11}, {{"features", 2 * wide}}},
    {"linear", {5, 3}, {{"features", 7}}},
    {"linear", {wide}, {{"features", 2 * wide}, {"bias", 0}}},
    {"linear", {wide, 11}, {{"features", 2 * wide}, {"bias", 0}}},
    {"max_pool", {wide, 9, 7}, {{"kernel", 3}, {"stride", 2}, {"padding", 1}}},
    {"max_pool", {wide, 9, 7}, {{"kernel", 2}, {"stride", 2}}},
    {"max_pool", {wide, 9, 7}, {{"kernel", 3}, {"stride", 1}, {"padding", 1}}},
    {"max_pool", {wide, 9, 7}, {{"kernel", 2}, {"stride", 3}}},
    {"max_pool", {3, 5, 4}, {{"kernel", 2}, {"stride", 2}}},
    {"max_pool", {wide, 6, 9}, {{"kernel", 3}, {"stride", 2}, {"ceil_mode", 1}}},
    {"max_pool", {3, 5, 7}, {{"kernel", 2}, {"stride", 2}, {"padding", 1}, {"ceil_mode", 1}}},
    {"multiply", {wide, 5, 7}, {}, true},
    {"multiply", {3, 4, 5}, {}, true},
    {"multiply", {wide, 5, 7}, {}, true, false, {wide}},
    {"multiply", {wide}, {}, true, false, {wide, 5, 7}},
    {"multiply", {3, 4, 5}, {}, true, false, {3}},
    {"multiply", {wide, 5, 7}, {}, true, false, {1, 5, 7}},
    {"multiply", {1, 4, 5}, {}, true, false, {3, 4, 5}},
    {"multiply", {wide, 3, 4, 2}, {}, true, false, {1, 3, 4, 2}},
    {"max_pool", {wide, 11}, {{"kernel", 3}, {"stride", 2}, {"padding", 1}}},
    {"max_pool", {wide, 5, 7, 4}, {{"kernel", 3}, {"stride", 2}, {"padding", 1}}},
    {"max_pool", {3, 5, 4, 6}, {{"kernel", 2}, {"stride", 2}, {"ceil_mode", 1}}},
    {"max_pool", {wide, 7, 6, 8}, {{"kernel", 6}, {"stride", 1}}},
    {"avg_pool", {3, 11}, {{"kernel", 3}, {"stride", 2}, {"padding", 1}}},
    {"avg_pool", {3, 5, 7, 4}, {{"kernel", 3}, {"stride", 2}, {"padding", 1}}},
    {"patch_embedding", {3, 8, 12}, {{"features", wide}, {"patch", 4}}, false, true},
    {"patch_embedding", {1, 4, 6}, {{"features", 5}, {"patch", 2}}, false, true},
    {"position_embedding", {wide, 11}},
    {"position_embedding", {3, 5, 4}},
    {"relu", {wide, 5, 7}},
    {"relu6", {wide, 5, 7}},
    {"rms_norm", {wide, 11}},
    {"rms_norm", {5, 4}},
    {"rms_norm", {wide}, {{"epsilon", 0.5}}},
    {"rms_norm", {wide, 5, 7}},
    {"rms_norm", {wide, 3, 4, 2}},
    {"rotary", {3 * wide, 11}, {{"heads", 2}}},
    {"rotary", {18, 7}, {{"heads", 1}, {"base", 100}}},
    {"scale", {wide, 5, 7}, {{"factor", 0.5}}},
    {"scale", {3, 5, 7}, {{"factor", -2}}},
    {"sigmoid", {wide, 5, 7}},
    {"silu", {wide, 5, 7}},
    {"softplus", {wide, 5, 7}},
    {"stochastic_depth", {wide, 5, 7}, {{"probability", 0.3}}},
    {"stochastic_depth", {3, 5, 4}, {{"probability", 0.5}}},
    {"tanh", {wide, 5, 7}},
    {"upsample_linear", {3, 4, 5}, {{"factor", 3}}},
    {"upsample_linear", {3, 4}, {{"factor", 2}}},
    {"upsample_linear", {3, 4, 5, 2}, {{"factor", 2}}},
    {"upsample_nearest", {3, 4, 5}, {{"factor", 2}}},
    {"upsample_nearest", {3, 4}, {{"factor", 3}}},
    {"upsample_nearest", {3, 4, 5, 2}, {{"factor", 3}}},
};

const Example* first_of(std::string_view op) {
  const auto found = std::ranges::find(examples, op, &Example::op);
  return found == examples.end() ? nullptr : &*found;
}

TEST(EveryOp, HasAnExample) {
  for (const Op& op : all_ops())
    EXPECT_TRUE(op.loss || first_of(op.name) != nullptr)  // losses: every_loss_test.cpp
        << "the kind of layer '" << op.name
        << "' is checked by nobody: give it an example in tests/layers/every_op_test.cpp";
}

class EveryOp : public testing::TestWithParam<Example> {};

TEST_P(EveryOp, KeepsWhatLayersKeep) {
  const Example& example = GetParam();
  int checked = 0;
  for (const Layout& layout : all_layouts()) {
    for (const bool reads_plain : {false, true}) {
      SCOPED_TRACE(to_string(layout) + (reads_plain ? ", behind plain order" : ""));
      if (check_example(example, layout, reads_plain)) ++checked;
    }
  }
  EXPECT_GE(checked, 1);
}

INSTANTIATE_TEST_SUITE_P(Examples, EveryOp, testing::ValuesIn(examples), [](const auto& instance) {
  return fmt::format("{}_{}", in_name(instance.param.op), instance.index);
});

/// Layers that are computed as one.
struct FusedRun {
  const Op* op;
  const Fusion* fusion;
};
// NOLINTNEXTLINE(readability-identifier-naming): as GoogleTest calls it
void PrintTo(const FusedRun& run, std::ostream* out) {
  *out << run.op->name << " of " << fmt::format("{}", fmt::join(run.fusion->ops, "+"));
}
std::vector<FusedRun> all_runs() {
  std::vector<FusedRun> all;
  for (const Op& op : all_ops())
    for (const Fusion& fusion : op.fusions) all.push_back({&op, &fusion});
  return all;
}

class EveryFusion : public testing::TestWithParam<FusedRun> {};

TEST_P(EveryFusion, ComputesWhatItsLayersCompute) {
  const Fusion& fusion = *GetParam().fusion;
  const Example& first = *first_of(fusion.ops.front());
  // Behind a layer that learns, and beside what another left.
  ModelBuilder builder("fused", first.input, 2);
  builder.add("convolution", "shortcut", {{"channels", 1.0 * first.input.channels}, {"kernel", 1}});
  const int shortcut = builder.last();
  builder.from(-1);
  builder.add("convolution", "before", {{"channels", 1.0 * first.input.channels}, {"kernel", 1}});
  std::vector<LayerSpec> plain;
  for (const std::string_view op : fusion.ops) {
    const Example& example = *first_of(op);
    const std::string name = fmt::format("{}{}", op, plain.size());
    if (example.joins) {
      builder.add_joining(op, name, shortcut);
      plain.push_back(builder.model().layers.back());
    } else {
      plain.push_back(builder.add(op, name, example.arguments));
    }
  }
  int checked = 0;
  for (const Layout& layout : all_layouts()) {
    SCOPED_TRACE(to_string(layout));
    const Model model = choose_kernels(builder.model(), layout.choice());
    if (model.layers.size() != 3 || model.layers[2].converted != Converted::nothing) continue;
    EXPECT_EQ(model.layers[2].kind, GetParam().op);
    check_layer({.layer = model.layers[2],
                 .plain = plain,
                 .is_sole_reader = GetParam().fusion->is_sole_reader});
    ++checked;
  }
  EXPECT_GE(checked, 1) << "fused nowhere";
}

INSTANTIATE_TEST_SUITE_P(Runs, EveryFusion, testing::ValuesIn(all_runs()),
                         [](const auto& instance) {
                           return fmt::format("{}",
                                              fmt::join(instance.param.fusion->ops, "_then_"));
                         });

}  // namespace
}  // namespace carousel::test
