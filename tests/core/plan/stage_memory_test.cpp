// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Where the tensors of a stage lie, on chains of synthetic layers: what backward reads is kept,
// what nobody reads shares scratch memory, layers in place share theirs.

#include "core/plan/stage_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/base/check.hpp"
#include "core/base/real.hpp"

namespace carousel {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t r = sizeof(real);
constexpr int batch = 16;  // of 16 numbers of any size every tensor is a multiple of 64 bytes

/// A layer of one kind of reading; parameters make gradients flow through what comes before.
struct Kind {
  bool saves_input = false;
  bool saves_output = false;
  bool in_place = false;
  int parameters = 1;
};

Model chain(const std::vector<Kind>& kinds, int channels) {
  Model model{.name = "chain", .input = {channels}, .classes = channels, .layers = {}};
  for (const Kind& kind : kinds) {
    LayerSpec layer;
    layer.input = layer.output = {channels};
    if (kind.parameters > 0) layer.parameters = {{"x", {kind.parameters}}};
    layer.saves_input = kind.saves_input;
    layer.saves_output = kind.saves_output;
    layer.in_place = kind.in_place;
    model.layers.push_back(layer);
  }
  return model;
}

std::vector<StageMemory> plan(const Model& model, std::vector<int> first) {
  Partition partition;
  partition.first = std::move(first);
  return plan_stages(model, partition, batch);
}

constexpr Kind reads_nothing{};
constexpr Kind reads_input{.saves_input = true};
constexpr Kind reads_output{.saves_output = true};
constexpr Kind in_place{.in_place = true, .parameters = 0};
constexpr Kind in_place_reads_output{.saves_output = true, .in_place = true, .parameters = 0};

constexpr Place frame(std::int64_t tensors) {
  return {Region::frame, tensors * batch * 8 * r};
}
constexpr Place scratch(std::int64_t tensors) {
  return {Region::scratch, tensors * batch * 8 * r};
}

TEST(StageMemory, KeepsOnlyWhatIsReadAgain) {
  // 0 -> kept by the reader after it; 1 and 2 -> nobody; 3 -> itself; 4 -> the stage's output
  const Model model =
      chain({reads_nothing, reads_input, reads_nothing, reads_output, reads_nothing}, 8);
  const StageMemory stage = plan(model, {0, 5})[0];
  EXPECT_THAT(stage.outputs, ElementsAre(frame(0), scratch(0), scratch(1), frame(1), frame(2)));
  EXPECT_EQ(stage.frame_bytes, 3 * batch * 8 * r);
  EXPECT_EQ(stage.scratch_bytes, 2 * batch * 8 * r);
  EXPECT_EQ(stage.output_bytes, batch * 8 * r);
}

TEST(StageMemory, LaysLayersInPlaceOverTheirInput) {
  const Model model = chain(
      {in_place, reads_input, in_place_reads_output, reads_nothing, in_place, reads_nothing}, 8);
  const StageMemory stage = plan(model, {0, 6})[0];
  EXPECT_THAT(stage.outputs, ElementsAre(Place{Region::stage_input}, frame(0), frame(0), scratch(0),
                                         scratch(0), frame(1)));
}

// The next stage finds its input in the frame of this one, also where the last layer works in place
// and no backward reads what it leaves.
TEST(StageMemory, LeavesTheOutputInTheFrame) {
  const Model model = chain({reads_nothing, in_place, in_place, reads_nothing, reads_nothing}, 8);
  const std::vector<StageMemory> stages = plan(model, {0, 3, 5});
  EXPECT_THAT(stages[0].outputs, ElementsAre(frame(0), frame(0), frame(0)));
  EXPECT_EQ(stages[0].frame_bytes, batch * 8 * r);
  EXPECT_THAT(stages[1].outputs, ElementsAre(scratch(0), frame(0)));
}

TEST(StageMemory, SendsGradientsDownAsFarAsThereAreParameters) {
  const Model model = chain({in_place, reads_input, reads_nothing, in_place, reads_nothing,
                             reads_nothing, in_place_reads_output},
                            8);
  const std::vector<StageMemory> stages = plan(model, {0, 4, 7});
  // The first stage has no gradient of its input: nothing before its first parameters learns.
  EXPECT_THAT(stages[0].d_inputs,
              ElementsAre(Place{}, Place{}, scratch(0), Place{Region::d_output}));
  // The loss keeps its probabilities, so that its gradient has memory of its own.
  EXPECT_THAT(stages[1].d_inputs, ElementsAre(Place{Region::d_input}, scratch(1), scratch(0)));
}

TEST(StageMemory, NeverReadsAndWritesOneScratchTensorInOneLayer) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<Kind> kinds;
    const int layers = 2 + static_cast<int>(random() % 9);
    for (int l = 0; l < layers; ++l)
      kinds.push_back({random() % 3 == 0, random() % 3 == 0, random() % 3 == 0,
                       static_cast<int>(random() % 2)});
    Model model = chain(kinds, 8);
    for (int l = 1; l < layers; ++l) {
      // Sizes differ, except where a layer works in place.
      if (!kinds[l].in_place) model.layers[l].output = {1 + static_cast<int>(random() % 9)};
      model.layers[l].input = model.layers[l - 1].output;
      if (kinds[l].in_place) model.layers[l].output = model.layers[l].input;
    }
    const auto bytes = [](const SampleShape& shape) { return align_up(batch * shape.size() * r); };
    const StageMemory stage = plan(model, {0, layers})[0];
    const auto apart = [&](const Place& a, std::int64_t a_bytes, const Place& b,
                           std::int64_t b_bytes) {
      return a.region != b.region || a.offset + a_bytes <= b.offset ||
             b.offset + b_bytes <= a.offset;
    };
    for (int k = 0; k < layers; ++k) {
      const LayerSpec& layer = model.layers[k];
      const Place& output = stage.outputs[k];
      const Place& d_input = stage.d_inputs[k];
      if (output.region == Region::scratch) {
        EXPECT_LE(output.offset + bytes(layer.output), stage.scratch_bytes);
        EXPECT_FALSE(layer.saves_output);
        EXPECT_TRUE(k + 1 == layers || !model.layers[k + 1].saves_input);
      }
      if (output.region == Region::frame) {
        EXPECT_LE(output.offset + bytes(layer.output), stage.frame_bytes);
      }
      if (d_input.region == Region::scratch) {
        EXPECT_LE(d_input.offset + bytes(layer.input), stage.scratch_bytes);
      }
      if (k == 0) continue;
      if (layer.in_place) {
        EXPECT_EQ(output, stage.outputs[k - 1]);
      } else {
        EXPECT_TRUE(apart(output, bytes(layer.output), stage.outputs[k - 1], bytes(layer.input)));
        if (k + 1 < layers && d_input.region != Region::absent) {
          EXPECT_TRUE(
              apart(d_input, bytes(layer.input), stage.d_inputs[k + 1], bytes(layer.output)));
        }
      }
    }
  }
}

TEST(StageMemory, PutsParametersOneAfterTheOther) {
  const Model model = chain({{.parameters = 5}, {.parameters = 0}, {.parameters = 7}}, 8);
  const StageMemory stage = plan(model, {0, 3})[0];
  EXPECT_THAT(stage.parameter_offset, ElementsAre(0, 5, 5));
  EXPECT_EQ(stage.parameter_size, 12);
  EXPECT_EQ(stage.message_size, 16);  // 12 and a rider of 4, in whole 64 bytes
}

TEST(StageMemory, RefusesAStageThatBeginsInPlace) {
  const Model model = chain({reads_nothing, in_place}, 8);
  EXPECT_THROW(plan(model, {0, 1, 2}), Error);
}

}  // namespace
}  // namespace carousel
