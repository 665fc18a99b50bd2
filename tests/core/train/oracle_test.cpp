// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Every rule against the serial oracle, after every step and tensor by tensor. Placements are
// compared among themselves elsewhere; here one device stands for all.

#include <algorithm>
#include <limits>

#include "core/train/learning_rate.hpp"
#include "core/train/rider.hpp"
#include "tests/core/train/matrix.hpp"
#include "tests/layers/device.hpp"
#include "tests/reference/initial_state.hpp"

namespace carousel::test {
namespace {

using reference::State;

/// max|d| / max|theta| of a tensor, for learning rates up to 0.05.
constexpr double tolerance = sizeof(real) == 8 ? 1e-12 : 1e-5;
constexpr std::uint64_t seed = 5;

/// The micro-batch of the sampler's order, from the numbers the data set was made of.
reference::MicroBatch micro_batch_of(const TrainingOrder& order, Sampler& sampler, std::int64_t t,
                                     int i) {
  const EpochPosition position = order.locate(t, i);
  const std::span<const int> samples = sampler.permutation(position.epoch);
  reference::MicroBatch batch;
  for (int k = 0; k < order.micro_batch_size; ++k) {
    const int sample = samples[static_cast<std::size_t>(position.first + k)];
    for (int x = 0; x < RandomDataset::pixels; ++x)
      batch.images.push_back(RandomDataset::pixel(sample, x));
    batch.labels.push_back(RandomDataset::label(sample));
  }
  return batch;
}

/// First layers of the stages where none is fused: a stage begins with its first parameter.
std::vector<int> stage_begins(const SmallRun& run) {
  std::vector<int> begins;
  std::int64_t parameters = 0;  // of the stages before
  for (const StageMemory& stage : run.memory().stages) {
    std::int64_t before = 0;
    int l = 0;
    for (; before < parameters; ++l) before += run.description().layers[l].learned_size();
    EXPECT_EQ(before, parameters);
    begins.push_back(l);
    parameters += stage.parameter_size;
  }
  return begins;
}

/// Where the numbers that learn lie among all.
std::vector<std::size_t> learned_numbers(const Model& model) {
  std::vector<std::size_t> places;
  std::size_t at = 0;
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      for (std::int64_t k = 0; k < parameter.size(); ++k, ++at)
        if (!parameter.frozen) places.push_back(at);
    }
  }
  return places;
}

/// With `given`, every step starts from what the run has made of the step before.
reference::SerialResult oracle(const SmallRun& run, const ParallelConfig& parallel,
                               const std::vector<State>& given = {}) {
  const SmallDeck& deck = run.deck();
  const TrainingOrder order{RandomDataset::train_samples, parallel.micro_batches,
                            deck.train.micro_batch_size};
  Sampler sampler(seed, RandomDataset::train_samples);
  reference::SerialTraining training;
  training.model = run.description();
  training.stage_begin = stage_begins(run);
  training.rule = {.cyclic = parallel.rule != RuleKind::dp,
                   .micro_batches = parallel.micro_batches,
                   .stages = parallel.stages,
                   .slack = parallel.rule == RuleKind::cdp_v1 ? parallel.stages * parallel.passes
                                                              : parallel.slack,
                   .passes = parallel.passes,
                   .predict = parallel.predict};
  training.optimizer = deck.train.optimizer;
  training.learning_rate = [&](std::int64_t t) {
    return learning_rate(deck.train.schedule, deck.train.optimizer.learning_rate, t,
                         order.steps_per_epoch(), deck.train.steps);
  };
  training.micro_batch = [&](std::int64_t t, int i) {
    return micro_batch_of(order, sampler, t, i);
  };
  training.given = given;
  return train_serially(training, reference::initial_state(run.description(), seed),
                        deck.train.steps);
}

/// The largest difference of any tensor, which are the parameters of all layers or their buffers.
double largest_difference(const Model& model, std::vector<ParameterSpec> LayerSpec::*tensors,
                          const Numbers& actual, const Numbers& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double largest = 0;
  std::ptrdiff_t at = 0;
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& tensor : layer.*tensors) {
      const std::ptrdiff_t end = at + tensor.size();
      largest = std::max(
          largest, relative_difference(Numbers(actual.begin() + at, actual.begin() + end),
                                       Numbers(expected.begin() + at, expected.begin() + end)));
      at = end;
    }
  }
  EXPECT_EQ(static_cast<std::size_t>(at), expected.size());
  return largest;
}

double largest_difference(const Model& model, const State& actual, const State& expected) {
  return std::max(
      largest_difference(model, &LayerSpec::parameters, actual.parameters, expected.parameters),
      largest_difference(model, &LayerSpec::buffers, actual.buffers, expected.buffers));
}

/// Whether a shortcut leads over a cut.
bool cuts_a_block(const SmallRun& run) {
  for (int j = 1; j < run.partition().stages(); ++j) {
    const int cut = run.partition().first[j];
    for (int l = cut; l < static_cast<int>(run.model().layers.size()); ++l)
      for (const LayerInput& input : run.model().layers[l].inputs)
        if (input.layer < cut - 1) return true;
  }
  return false;
}

class Oracle : public ::testing::TestWithParam<int> {
 protected:
  /// After every step of a run to its end.
  static std::vector<State> train(SmallRun& run) {
    const std::vector<StageMemory>& stages = run.memory().stages;
    std::vector<State> states(static_cast<std::size_t>(run.deck().train.steps),
                              {reference::initial_state(run.description(), seed).parameters,
                               Numbers(run.model().buffer_size())});
    const std::vector<std::size_t> learned = learned_numbers(run.description());
    run.after_update = [&](const ExecutionSpace& queue, int, std::int64_t step, int stage,
                           const real* theta) {
      std::int64_t parameters = 0;
      std::int64_t buffers = 0;
      for (int j = 0; j < stage; ++j) {
        parameters += stages[j].parameter_size;
        buffers += stages[j].buffer_size;
      }
      const StageMemory& here = stages[stage];
      Numbers numbers(here.parameter_size);
      copy_to_host(queue, std::span(numbers), theta);
      for (std::size_t k = 0; k < numbers.size(); ++k)
        states[step].parameters[learned[static_cast<std::size_t>(parameters) + k]] = numbers[k];
      copy_to_host(queue, std::span(states[step].buffers).subspan(buffers, here.buffer_size),
                   theta + here.parameter_size);
    };
    (void)run.trainer().run();
    return states;
  }

  /// Compares every step of every deck and tells the largest difference.
  void compare(const std::vector<SmallDeck>& decks) {
    double worst = 0;
    std::int64_t steps = 0;
    std::int64_t compared = 0;
    int cuts = 0;
    for (const SmallDeck& deck : decks) {
      SCOPED_TRACE(name_of(deck));
      SmallRun run(ExecutionSpace(), dataset_, deck);
      const bool resnet = deck.model.name == "resnet";
      cuts += cuts_a_block(run) ? 1 : 0;
      EXPECT_TRUE(!resnet || cuts_a_block(run) == (deck.parallel.stages > 1));
      const std::vector<State> states = train(run);
      // Winograd's sums part trajectories after some steps, but no step from equal parameters.
      const bool by_steps = resnet && deck.kernels.winograd;
      const reference::SerialResult expected =
          oracle(run, deck.parallel, by_steps ? states : std::vector<State>());
      double apart = std::numeric_limits<real>::epsilon();
      steps += std::ssize(states);
      for (std::size_t t = 0; t < states.size(); ++t, ++compared) {
        const double difference =
            largest_difference(run.model(), states[t], expected.states[t + 1]);
        // A rectifier whose input is nearer to zero than both are apart may take either side, and
        // trajectories part there.
        if (difference > tolerance && expected.margins[t] < apart) break;
        EXPECT_LE(difference, tolerance) << "after step " << t;
        apart = std::max(apart, difference);
        // The rider is one number of the build's precision per sum.
        EXPECT_NEAR(run.story().steps[t].loss, expected.losses[t], 10 * tolerance) << "step " << t;
      }
      worst = std::max(worst, apart);
    }
    EXPECT_GT(2 * compared, steps);
    EXPECT_EQ(cuts > 0, decks.front().model.name != "mlp");
    fmt::print("matrix: {} runs against the oracle, N = {}, max|d|/max|theta| = {:.1e}\n",
               decks.size(), GetParam(), worst);
  }

  const RandomDataset file_;
  const Dataset dataset_{file_.path()};
};

TEST_P(Oracle, AgreesAfterEveryStep) {
  compare(decks_for(GetParam()));
}

class VisionOracle : public Oracle {};

TEST_P(VisionOracle, AgreesAfterEveryStep) {
  compare(vit_decks_for(GetParam()));
}

class ResidualOracle : public Oracle {};

TEST_P(ResidualOracle, AgreesAfterEveryStep) {
  if (sizeof(real) < 8) GTEST_SKIP() << "rounding errors of float move rectifiers over their kink";
  compare(resnet_decks_for(GetParam()));
}

TEST_P(Oracle, SeesOneMicroBatchWithTheWrongVersion) {
  const SmallDeck deck = deck_of(
      {.rule = RuleKind::cdp_v2, .micro_batches = GetParam(), .stages = 4, .slack = 0}, false);
  SmallRun run(ExecutionSpace(), dataset_, deck);
  ParallelConfig other = deck.parallel;
  other.slack = 1;
  EXPECT_GT(largest_difference(run.model(), train(run).back(), oracle(run, other).states.back()),
            100 * tolerance);
}

TEST_P(Oracle, SeesThatNothingIsPredicted) {
  const SmallDeck deck = deck_of(
      {.rule = RuleKind::cdp_v1, .micro_batches = GetParam(), .stages = 2, .predict = 0.7}, false);
  SmallRun run(ExecutionSpace(), dataset_, deck);
  ParallelConfig other = deck.parallel;
  other.predict = 0;
  EXPECT_GT(largest_difference(run.model(), train(run).back(), oracle(run, other).states.back()),
            100 * tolerance);
}

INSTANTIATE_TEST_SUITE_P(N, Oracle, ::testing::Values(1, 2, 3, 4, 6, 8));
INSTANTIATE_TEST_SUITE_P(N, ResidualOracle, ::testing::Values(1, 2, 4));
INSTANTIATE_TEST_SUITE_P(N, VisionOracle, ::testing::Values(1, 2, 4));

}  // namespace
}  // namespace carousel::test
