// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Where the tensors of a stage lie, on synthetic layers: small chains by hand, and random networks
// with residual additions whose passes are followed symbolically through every stage.

#include "core/plan/stage_memory.hpp"
#include "core/model/op.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "core/base/check.hpp"
#include "core/base/real.hpp"
#include "core/model/kernels.hpp"

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

LayerSpec layer_of(const Kind& kind, int channels, const std::vector<int>& inputs) {
  LayerSpec layer;
  if (inputs.size() > 1) layer.kind = &op_named("add");
  for (const int input : inputs) layer.inputs.push_back({input, {channels}});
  layer.output = {channels};
  if (kind.parameters > 0) layer.parameters = {{"x", {kind.parameters}}};
  layer.saves_input = kind.saves_input;
  layer.saves_output = kind.saves_output;
  layer.in_place = kind.in_place;
  return layer;
}

Model chain(const std::vector<Kind>& kinds, int channels) {
  Model model{.name = "chain", .input = {channels}, .target = channels, .layers = {}};
  for (const Kind& kind : kinds) {
    const auto before = static_cast<int>(model.layers.size()) - 1;
    model.layers.push_back(layer_of(kind, channels, {before}));
  }
  return model;
}

std::vector<StageMemory> plan(const Model& model, std::vector<int> first) {
  Partition partition;
  partition.first = std::move(first);
  return plan_stages(model, partition, batch);
}

std::vector<Place> outputs_of(const StageMemory& stage) {
  std::vector<Place> outputs;
  for (const LayerPlaces& places : stage.places) outputs.push_back(places.output);
  return outputs;
}

std::vector<Place> d_inputs_of(const StageMemory& stage) {
  std::vector<Place> d_inputs;
  for (const LayerPlaces& places : stage.places) d_inputs.push_back(places.d_inputs[0]);
  return d_inputs;
}

constexpr Kind reads_nothing{};
constexpr Kind reads_input{.saves_input = true};
constexpr Kind reads_output{.saves_output = true};
constexpr Kind in_place{.in_place = true, .parameters = 0};
constexpr Kind in_place_reads_output{.saves_output = true, .in_place = true, .parameters = 0};

constexpr Place frame(std::int64_t tensors, int stage = 0) {
  return {Region::frame, tensors * batch * 8 * r, stage};
}
constexpr Place scratch(std::int64_t tensors) {
  return {Region::scratch, tensors * batch * 8 * r};
}

TEST(StageMemory, KeepsOnlyWhatIsReadAgain) {
  // 0 -> kept by the reader after it; 1 and 2 -> nobody; 3 -> itself; 4 -> nobody
  const Model model =
      chain({reads_nothing, reads_input, reads_nothing, reads_output, reads_nothing}, 8);
  const StageMemory stage = plan(model, {0, 5})[0];
  EXPECT_THAT(outputs_of(stage),
              ElementsAre(frame(0), scratch(0), scratch(1), frame(1), scratch(0)));
  EXPECT_EQ(stage.frame_bytes, 2 * batch * 8 * r);
  EXPECT_EQ(stage.scratch_bytes, 2 * batch * 8 * r);
  EXPECT_EQ(stage.output_bytes, 0);
}

TEST(StageMemory, LaysLayersInPlaceOverTheirInput) {
  const Model model = chain(
      {in_place, reads_input, in_place_reads_output, reads_nothing, in_place, reads_nothing}, 8);
  const StageMemory stage = plan(model, {0, 6})[0];
  EXPECT_THAT(outputs_of(stage), ElementsAre(Place{Region::images}, frame(0), frame(0), scratch(0),
                                             scratch(0), scratch(1)));
}

// The next stage finds its input in the frame of this one, also where the last layer works in place
// and no backward reads what it leaves.
TEST(StageMemory, LeavesTheOutputInTheFrame) {
  const Model model = chain({reads_nothing, in_place, in_place, reads_nothing, reads_nothing}, 8);
  const std::vector<StageMemory> stages = plan(model, {0, 3, 5});
  EXPECT_THAT(outputs_of(stages[0]), ElementsAre(frame(0), frame(0), frame(0)));
  EXPECT_EQ(stages[0].frame_bytes, batch * 8 * r);
  EXPECT_EQ(stages[0].output_bytes, batch * 8 * r);
  EXPECT_EQ(stages[1].places[0].inputs[0], frame(0));
  EXPECT_THAT(outputs_of(stages[1]), ElementsAre(scratch(0), scratch(1)));
}

TEST(StageMemory, SendsGradientsDownAsFarAsThereAreParameters) {
  const Model model = chain({in_place, reads_input, reads_nothing, in_place, reads_nothing,
                             reads_nothing, in_place_reads_output},
                            8);
  const std::vector<StageMemory> stages = plan(model, {0, 4, 7});
  // The first stage has no gradient of its input: nothing before its first parameters learns.
  EXPECT_THAT(d_inputs_of(stages[0]),
              ElementsAre(Place{}, Place{}, scratch(0), Place{Region::d_output}));
  // The loss keeps its probabilities, so that its gradient has memory of its own.
  EXPECT_THAT(d_inputs_of(stages[1]), ElementsAre(Place{Region::d_input}, scratch(1), scratch(0)));
}

TEST(StageMemory, LetsASumsGradientServeBothTerms) {
  // x = 0; 1 and 2 make the first term, 3 adds x to it, 4 goes on.
  Model model = chain({reads_nothing, reads_input, reads_nothing, in_place, reads_nothing}, 8);
  model.layers[3] = layer_of(in_place, 8, {2, 0});
  model.layers[3].aliases_second_gradient = true;
  const StageMemory stage = plan(model, {0, 5})[0];
  const LayerPlaces& sum = stage.places[3];
  EXPECT_EQ(sum.inputs[0], stage.places[2].output);
  EXPECT_EQ(sum.inputs[1], frame(0));
  EXPECT_EQ(sum.d_inputs[0], sum.d_output);
  EXPECT_EQ(sum.d_inputs[1], Place{});
  EXPECT_EQ(stage.places[1].d_inputs[0], sum.d_output);  // the gradient of x
  EXPECT_TRUE(stage.places[1].adds[0]);
  EXPECT_EQ(stage.places[0].d_output, sum.d_output);
}

TEST(StageMemory, CarriesAResidualAcrossStages) {
  Model model = chain({reads_nothing, reads_input, reads_nothing, in_place, reads_nothing}, 8);
  model.layers[3] = layer_of(in_place, 8, {2, 0});
  const std::vector<StageMemory> stages = plan(model, {0, 1, 2, 5});
  EXPECT_EQ(stages[0].output_bytes, batch * 8 * r);      // x
  EXPECT_EQ(stages[1].output_bytes, 2 * batch * 8 * r);  // x and what layer 1 makes of it
  EXPECT_EQ(stages[2].places[1].inputs[1], frame(0, 0));
  const LayerPlaces& sum = stages[2].places[1];
  EXPECT_EQ(sum.d_inputs[1], (Place{Region::d_input}));
  EXPECT_FALSE(sum.adds[1]);
  ASSERT_EQ(stages[1].passed.size(), 1U);
  EXPECT_EQ(stages[1].passed[0].to, (Place{Region::d_input}));
  EXPECT_TRUE(stages[1].places[0].adds[0]);
}

/// Memory whose blocks know which layer wrote them, and whose gradients know which layers have
/// added their part.
class Memory {
 public:
  void write(std::int64_t offset, std::int64_t bytes, std::set<int> content) {
    std::erase_if(blocks_, [&](const auto& entry) {
      return entry.first < offset + bytes && offset < entry.first + entry.second.bytes;
    });
    blocks_[offset] = {bytes, std::move(content)};
  }
  [[nodiscard]] std::set<int> read(std::int64_t offset) const {
    const auto block = blocks_.find(offset);
    return block == blocks_.end() ? std::set<int>{} : block->second.content;
  }

 private:
  struct Block {
    std::int64_t bytes = 0;
    std::set<int> content;
  };
  std::map<std::int64_t, Block> blocks_;
};

/// Follows one micro-batch forward and backward through all stages.
class Walk {
 public:
  Walk(const Model& model, const std::vector<StageMemory>& stages)
      : model_(model),
        stages_(stages),
        frames_(stages.size()),
        boundaries_(stages.size() + 1),
        learns_(learning_layers(model)) {}

  void run() {
    for (std::size_t j = 0; j < stages_.size(); ++j) {
      scratch_ = {};
      for (int k = 0; k < stages_[j].layers; ++k) forward(j, k);
    }
    for (std::size_t j = stages_.size(); j-- > 0;) {
      scratch_ = {};
      for (int k = 0; k < stages_[j].layers && stages_[j].recomputes; ++k) forward(j, k);
      for (const PassedTensor& passed : stages_[j].passed)
        memory(j, passed.to)
            .write(passed.to.offset, passed.bytes, memory(j, passed.from).read(passed.from.offset));
      for (int k = stages_[j].layers; k-- > 0;) backward(j, k);
    }
  }

  /// Inputs that backward found made again.
  [[nodiscard]] int made_again() const { return made_again_; }
  /// Gradients of parameters that are frozen.
  [[nodiscard]] int dropped() const { return dropped_; }

 private:
  Memory& memory(std::size_t j, const Place& place) {
    switch (place.region) {
      case Region::frame:
        return frames_[place.stage];
      case Region::d_output:
        return boundaries_[j + 1];
      case Region::d_input:
        return boundaries_[j];
      default:
        return scratch_;
    }
  }
  [[nodiscard]] std::int64_t bytes(int l) const {
    return align_up(batch * model_.layers[l].output.size() * r);
  }

  void forward(std::size_t j, int k) {
    const int l = stages_[j].first + k;
    const LayerPlaces& places = stages_[j].places[k];
    const std::vector<LayerInput>& inputs = model_.layers[l].inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].layer < 0)
        EXPECT_EQ(places.inputs[i].region, Region::images);
      else
        EXPECT_EQ(memory(j, places.inputs[i]).read(places.inputs[i].offset),
                  std::set{inputs[i].layer});
    }
    if (places.output.region != Region::images)
      memory(j, places.output).write(places.output.offset, bytes(l), {l});
    const bool is_kept = !stages_[j].recomputes && places.output.region != Region::images;
    if (model_.layers[l].saves_output && is_kept && learns_[l]) {
      EXPECT_EQ(places.output.region, Region::frame);
    }
  }

  void backward(std::size_t j, int k) {
    const int l = stages_[j].first + k;
    const LayerPlaces& places = stages_[j].places[k];
    const LayerSpec& layer = model_.layers[l];
    const std::vector<LayerInput>& inputs = layer.inputs;
    if (!learns_[l]) {
      EXPECT_EQ(places.d_output.region, Region::absent);
      return;
    }
    if (layer.saves_input && inputs[0].layer >= 0) {
      if (places.makes_again >= 0) make_again(j, places.makes_again, places.again);
      const bool again = places.again.region != Region::absent;
      const Place& input = again ? places.again : places.inputs[0];
      if (!stages_[j].recomputes && !again) {
        EXPECT_EQ(input.region, Region::frame);
      }
      EXPECT_EQ(memory(j, input).read(input.offset), std::set{inputs[0].layer});
      made_again_ += again ? 1 : 0;
    }
    if (layer.saves_second && inputs[1].layer >= 0) {
      const Place& second = places.inputs[1];
      if (!stages_[j].recomputes) {
        EXPECT_EQ(second.region, Region::frame);
      }
      EXPECT_EQ(memory(j, second).read(second.offset), std::set{inputs[1].layer});
    }
    std::set<int> users;
    for (int user = l + 1; user < static_cast<int>(model_.layers.size()); ++user) {
      for (const LayerInput& input : model_.layers[user].inputs) {
        if (input.layer == l) users.insert(user);
      }
    }
    if (places.d_output.region != Region::absent) {
      EXPECT_EQ(memory(j, places.d_output).read(places.d_output.offset), users) << "layer " << l;
    }
    const std::set<int> nobodys = {-2};
    EXPECT_EQ(places.dropped.region, layer.is_frozen() ? Region::scratch : Region::absent);
    if (layer.is_frozen()) {
      scratch_.write(places.dropped.offset, align_up(layer.parameter_size() * r), nobodys);
      ++dropped_;
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Place& place = places.d_inputs[i];
      if (place.region == Region::absent) continue;
      std::set<int> parts = {l};
      if (places.adds[i]) parts.merge(memory(j, place).read(place.offset));
      memory(j, place).write(place.offset, bytes(inputs[i].layer), parts);
    }
    if (layer.is_frozen()) {
      EXPECT_EQ(scratch_.read(places.dropped.offset), nobodys);
    }
    // What is left in the gradient of the output.
    if (layer.aliases_second_gradient && places.d_output.region != Region::absent)
      memory(j, places.d_output).write(places.d_output.offset, bytes(l), {l});
  }

  /// Layer k runs once more, from an input that is there.
  void make_again(std::size_t j, int k, const Place& output) {
    const int l = stages_[j].first + k;
    const Place& input = stages_[j].places[k].inputs[0];
    const int maker = model_.layers[l].inputs[0].layer;
    if (maker >= 0) {
      EXPECT_EQ(memory(j, input).read(input.offset), std::set{maker});
    }
    memory(j, output).write(output.offset, bytes(l), {l});
  }

  const Model& model_;
  const std::vector<StageMemory>& stages_;
  std::vector<Memory> frames_;
  std::vector<Memory> boundaries_;  // [j] before stage j
  Memory scratch_;
  std::vector<bool> learns_;  // [layer]
  int made_again_ = 0;
  int dropped_ = 0;
};

/// Layers one after the other; some work in place, some add what another one made. Now and then a
/// tensor is put aside and a branch begins, at whose end something is added to the tensor in place.
Model random_network(std::mt19937& random) {
  const auto chance = [&](int of) { return static_cast<int>(random() % of) == 0; };
  const auto any_of = [&](const std::vector<int>& layers) {
    return layers[random() % layers.size()];
  };
  Model model = chain({{.saves_input = true}}, 8);
  std::vector<int> finished;  // whose outputs nobody overwrites any more
  int aside = -1;
  int before = 0;             // the layer whose output may be overwritten
  bool may_overwrite = true;  // nobody needs what is there
  const int layers = 4 + static_cast<int>(random() % 20);
  for (int l = 1; l < layers; ++l) {
    const bool plain = !may_overwrite || chance(2);
    const Kind reading{chance(2), chance(2), false, static_cast<int>(random() % 2)};
    LayerSpec layer = layer_of(reading, 8, {before});
    layer.output_recomputable = chance(2);
    if (!finished.empty() && chance(4)) {
      layer = layer_of(reading, 8, {before, any_of(finished)});
      layer.aliases_second_gradient = chance(2);
    }
    if (plain && may_overwrite && aside < 0 && !finished.empty() && chance(3)) {
      aside = before;
      layer = layer_of(reading, 8, {any_of(finished)});
    } else if (plain) {
      finished.push_back(before);
    } else {
      const Kind overwriting{.saves_output = chance(2), .in_place = true, .parameters = 0};
      std::vector<int> inputs = {before};
      if (aside >= 0 && chance(2)) {
        inputs = {aside, before};
        finished.push_back(before);
        aside = -1;
      } else if (!finished.empty() && chance(2)) {
        inputs.push_back(any_of(finished));
      }
      layer = layer_of(overwriting, 8, inputs);
      layer.aliases_second_gradient = inputs.size() > 1 && chance(2);
    }
    layer.saves_second = layer.inputs.size() > 1 && chance(2);
    may_overwrite = !layer.saves_output;
    before = l;
    model.layers.push_back(std::move(layer));
  }
  if (aside >= 0) {
    model.layers.push_back(layer_of(in_place, 8, {aside, before}));
  }
  model.layers.push_back(layer_of({}, 8, {static_cast<int>(model.layers.size()) - 1}));
  return model;
}

/// Lets some layers stay as they are, but for the last one; where a layer that learns would then
/// work in place on what does not, which freeze() lets no layer do, none.
void freeze_some(Model& model, std::mt19937& random) {
  Model some = model;
  for (std::size_t l = 0; l + 1 < some.layers.size(); ++l) {
    const bool freezes = random() % 2 == 0;
    for (ParameterSpec& parameter : some.layers[l].parameters) parameter.frozen = freezes;
  }
  const std::vector<bool> learns = learning_layers(some);
  for (std::size_t l = 0; l < some.layers.size(); ++l) {
    const int first = some.layers[l].inputs[0].layer;
    if (some.layers[l].in_place && learns[l] && (first < 0 || !learns[first])) return;
  }
  model = some;
}

TEST(StageMemory, BringsEveryTensorAndGradientToItsReaders) {
  std::mt19937 random(3);
  std::mt19937 freezing(4);
  int stages_seen = 0;
  int passed = 0;
  int made_again = 0;
  int dropped = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    Model model = random_network(random);
    if (trial % 5 == 4) freeze_some(model, freezing);
    model.makes_outputs_again = trial % 2 == 1;
    model.recomputes_stages = trial % 3 == 2;
    const int most = 1 + static_cast<int>(random() % 5);
    for (int stages = 1; stages <= most; ++stages) {
      Partition partition;
      try {
        partition = partition_model(model, stages, Balance::activations);
      } catch (const Error&) {
        break;  // fewer pieces than stages
      }
      const std::vector<StageMemory> planned = plan_stages(model, partition, batch);
      Walk walk(model, planned);
      walk.run();
      made_again += walk.made_again();
      dropped += walk.dropped();
      ASSERT_FALSE(::testing::Test::HasFailure()) << "network " << trial << ", S = " << stages;
      stages_seen += stages;
      for (const StageMemory& stage : planned) passed += static_cast<int>(stage.passed.size());
    }
  }
  EXPECT_GT(stages_seen, 4000);
  EXPECT_GT(passed, 100);
  EXPECT_GT(made_again, 100);
  EXPECT_GT(dropped, 100);
}

TEST(StageMemory, BringsThemThroughAResidualNetwork) {
  const Model small = build_resnet(8, Stem::cifar, {3, 32, 32}, 10);
  const Model large = build_resnet(50, Stem::imagenet, {3, 64, 64}, 10);
  for (const Model& model :
       {small, large, choose_kernels(small, {.block = 16}), choose_kernels(large, {.block = 16}),
        choose_kernels(small, {.block = 16, .recompute = Recompute::stage})}) {
    for (const int stages : {1, 2, 3, 4, 7, 12, std::min(20, most_stages(model))}) {
      for (const Balance balance : {Balance::flops, Balance::activations, Balance::layers}) {
        const Partition partition = partition_model(model, stages, balance);
        Walk(model, plan_stages(model, partition, batch)).run();
        ASSERT_FALSE(::testing::Test::HasFailure())
            << model.name << ", S = " << stages << ", " << to_string(balance);
      }
    }
  }
}

TEST(StageMemory, PutsParametersOneAfterTheOther) {
  const Model model = chain({{.parameters = 5}, {.parameters = 0}, {.parameters = 7}}, 8);
  const StageMemory stage = plan(model, {0, 3})[0];
  EXPECT_THAT(stage.parameter_offset, ElementsAre(0, 5, 5));
  EXPECT_EQ(stage.parameter_size, 12);
  // 12 and a rider of the loss and two flags, in whole 64 bytes.
  EXPECT_EQ(stage.rider(), sizeof(real) == sizeof(double) ? 3 : 5);
  EXPECT_EQ(stage.message_size, sizeof(real) == sizeof(double) ? 16 : 32);
}

TEST(StageMemory, RefusesAStageThatBeginsInPlace) {
  const Model model = chain({reads_nothing, in_place}, 8);
  EXPECT_THROW(plan(model, {0, 1, 2}), Error);
}

}  // namespace
}  // namespace carousel
