// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Every rule against the serial oracle, after every step and tensor by tensor. Placements are
// compared among themselves elsewhere; here one device stands for all.

#include <algorithm>

#include "core/train/learning_rate.hpp"
#include "core/train/rider.hpp"
#include "tests/core/train/matrix.hpp"
#include "tests/layers/device.hpp"
#include "tests/reference/initial_state.hpp"

namespace carousel::test {
namespace {

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

reference::SerialResult oracle(const SmallRun& run, const ParallelConfig& parallel) {
  const SmallDeck& deck = run.deck();
  const TrainingOrder order{RandomDataset::train_samples, parallel.micro_batches,
                            deck.train.micro_batch_size};
  Sampler sampler(seed, RandomDataset::train_samples);
  reference::SerialTraining training;
  training.model = run.model();
  training.stage_begin.assign(run.partition().first.begin(), run.partition().first.end() - 1);
  training.rule = {.cyclic = parallel.rule != RuleKind::dp,
                   .micro_batches = parallel.micro_batches,
                   .stages = parallel.stages,
                   .slack = parallel.rule == RuleKind::cdp_v1 ? parallel.stages : parallel.slack};
  training.optimizer = deck.train.optimizer;
  training.learning_rate = [&](std::int64_t t) {
    return learning_rate(deck.train.schedule, deck.train.optimizer.learning_rate, t,
                         order.steps_per_epoch(), deck.train.steps);
  };
  training.micro_batch = [&](std::int64_t t, int i) {
    return micro_batch_of(order, sampler, t, i);
  };
  return train_serially(training, reference::initial_state(run.model(), seed), deck.train.steps);
}

/// The largest difference of any tensor.
double largest_difference(const Model& model, const Numbers& actual, const Numbers& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double largest = 0;
  std::ptrdiff_t at = 0;
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      const std::ptrdiff_t end = at + parameter.size();
      largest = std::max(
          largest, relative_difference(Numbers(actual.begin() + at, actual.begin() + end),
                                       Numbers(expected.begin() + at, expected.begin() + end)));
      at = end;
    }
  }
  return largest;
}

class Oracle : public ::testing::TestWithParam<int> {
 protected:
  /// theta_1, theta_2 ... of a run to its end.
  static std::vector<Numbers> train(SmallRun& run) {
    const std::vector<StageMemory>& stages = run.memory().stages;
    std::vector<Numbers> thetas(static_cast<std::size_t>(run.deck().train.steps),
                                Numbers(run.model().parameter_size()));
    run.after_update = [&](int, std::int64_t step, int stage, const real* theta) {
      std::int64_t first = 0;
      for (int j = 0; j < stage; ++j) first += stages[j].parameter_size;
      copy_to_host(ExecutionSpace(),
                   std::span(thetas[step]).subspan(first, stages[stage].parameter_size), theta);
    };
    (void)run.trainer().run();
    return thetas;
  }

  const RandomDataset file_;
  const Dataset dataset_{file_.path()};
};

TEST_P(Oracle, AgreesAfterEveryStep) {
  double worst = 0;
  int compared = 0;
  for (const SmallDeck& deck : decks_for(GetParam())) {
    SCOPED_TRACE(name_of(deck));
    SmallRun run(ExecutionSpace(), dataset_, deck);
    const std::vector<Numbers> thetas = train(run);
    const reference::SerialResult expected = oracle(run, deck.parallel);
    for (std::size_t t = 0; t < thetas.size(); ++t) {
      const double difference =
          largest_difference(run.model(), thetas[t], expected.states[t + 1].parameters);
      EXPECT_LE(difference, tolerance) << "after step " << t;
      worst = std::max(worst, difference);
      // The rider is one number of the build's precision per sum.
      EXPECT_NEAR(run.story().steps[t].loss, expected.losses[t], 10 * tolerance) << "step " << t;
    }
    ++compared;
  }
  fmt::print("matrix: {} runs against the oracle, N = {}, max|d|/max|theta| = {:.1e}\n", compared,
             GetParam(), worst);
}

TEST_P(Oracle, SeesOneMicroBatchWithTheWrongVersion) {
  const SmallDeck deck = deck_of(
      {.rule = RuleKind::cdp_v2, .micro_batches = GetParam(), .stages = 4, .slack = 0}, false);
  SmallRun run(ExecutionSpace(), dataset_, deck);
  ParallelConfig other = deck.parallel;
  other.slack = 1;
  EXPECT_GT(largest_difference(run.model(), train(run).back(),
                               oracle(run, other).states.back().parameters),
            100 * tolerance);
}

INSTANTIATE_TEST_SUITE_P(N, Oracle, ::testing::Values(1, 2, 3, 4, 6, 8));

}  // namespace
}  // namespace carousel::test
