// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The runs that must agree: every rule for many numbers of micro-batches and stages, with all that
// an optimizer does, and how two runs are compared. tests/matrix.sh makes them long.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/plan/placements/kinds.hpp"
#include "tests/core/train/random_dataset.hpp"
#include "tests/core/train/small_run.hpp"
#include "tests/layers/device.hpp"

namespace carousel::test {

/// Whether tests/matrix.sh asked for the full matrix: 100 steps of perceptrons and 40 of what takes
/// longer, both kinds of momentum each.
[[nodiscard]] inline bool full_matrix() {
  return std::getenv("CAROUSEL_FULL_MATRIX") != nullptr;
}

/// Momentum, weight decay and a learning rate that drops in the middle of the run; with Nesterov's
/// momentum gradients are clipped, those of dp by the norm of the whole model, and parameters
/// averaged. A residual network
/// smooths labels, and with Nesterov's momentum it keeps decay from norms and biases.
[[nodiscard]] inline SmallDeck deck_of(const ParallelConfig& parallel, bool nesterov,
                                       bool resnet = false) {
  SmallDeck deck{.parallel = parallel};
  deck.train.steps = full_matrix() ? 100 : 12;
  deck.checkpoint.every_steps = full_matrix() ? 37 : 5;  // segments shorter than epochs
  deck.train.optimizer = {.kind = Sgd{.momentum = 0.9, .nesterov = nesterov},
                          .learning_rate = 0.05,
                          .weight_decay = 5e-4};
  const bool cyclic = parallel.rule != RuleKind::dp;
  if (nesterov)
    (cyclic ? deck.train.optimizer.clip_stage_norm : deck.train.optimizer.clip_norm) = 0.3;
  if (nesterov) deck.train.optimizer.ema = 0.8;
  if (resnet) {
    deck.model = {.name = "resnet", .depth = 8, .stem = Stem::cifar};
    deck.train.steps = full_matrix() ? 40 : 4;
    if (!full_matrix()) deck.checkpoint.every_steps = 3;
    deck.train.micro_batch_size = 2;
    deck.task.arguments = {{"label_smoothing", 0.1}};
    deck.train.optimizer.decay_norm_and_bias = !nesterov;
  }
  const TrainingOrder order{RandomDataset::train_samples, parallel.micro_batches,
                            deck.train.micro_batch_size};
  const double middle = std::floor(static_cast<double>(deck.train.steps) / 2);
  deck.train.schedule.kind =
      MultistepRate{.milestones = {middle / static_cast<double>(order.steps_per_epoch())}};
  return deck;
}

/// Perceptrons: all rules for one N on one device, cdp-v2 with every slack; outside of the full
/// matrix without and with one that is another for every N. Epochs, and so segments, end at another
/// step for every N.
[[nodiscard]] inline std::vector<SmallDeck> decks_for(int micro_batches) {
  std::vector<SmallDeck> decks;
  bool nesterov = false;
  std::vector<int> all_stages = {1, 2, 4};
  if (micro_batches == 3) all_stages.push_back(3);
  for (const int stages : all_stages) {
    std::vector<ParallelConfig> rules = {
        {.rule = RuleKind::dp}, {.rule = RuleKind::cdp_v1}, {.rule = RuleKind::cdp_v2}};
    if (full_matrix() || stages > 2) {
      rules.insert(rules.begin() + 1, {.rule = RuleKind::cdp_v1, .predict = 0.7});
      rules.insert(rules.begin() + 1,
                   {.rule = RuleKind::cdp_v2, .slack = micro_batches % 2, .predict = 1.2});
    }
    for (int slack = 1; slack <= stages; ++slack) {
      if (full_matrix() || slack == 1 + micro_batches % stages)
        rules.push_back({.rule = RuleKind::cdp_v2, .slack = slack});
    }
    for (ParallelConfig parallel : rules) {
      parallel.micro_batches = micro_batches;
      parallel.stages = stages;
      decks.push_back(deck_of(parallel, nesterov));
      if (decks.size() % 3 == 0) decks.back().kernels.recompute = Recompute::stage;
      // The first layer, before which nothing is computed backwards, or the second one.
      if (decks.size() % 4 == 2) decks.back().train.freeze = {"0.*"};
      if (decks.size() % 4 == 0) decks.back().train.freeze = {"3.*"};
      nesterov = !nesterov;
      if (full_matrix()) decks.push_back(deck_of(parallel, nesterov));
    }
  }
  return decks;
}

/// Every second v1 predicts.
[[nodiscard]] constexpr double predicted_by(RuleKind rule, int number) {
  return rule == RuleKind::cdp_v1 && number % 2 == 0 ? 1 : 0;
}

/// Wider perceptrons, whose stages have several blocks to cut; stages may be whole numbers of
/// slots.
[[nodiscard]] inline std::vector<SmallDeck> wide_decks_for(int micro_batches) {
  std::vector<SmallDeck> decks;
  for (const RuleKind rule : {RuleKind::dp, RuleKind::cdp_v1, RuleKind::cdp_v2}) {
    for (const int stages : {1, 2, 3, 4}) {
      if (micro_batches % stages != 0) continue;
      const ParallelConfig parallel{.rule = rule,
                                    .micro_batches = micro_batches,
                                    .stages = stages,
                                    .slack = rule == RuleKind::cdp_v2 ? stages % 2 : 0,
                                    .predict = predicted_by(rule, stages)};
      decks.push_back(deck_of(parallel, decks.size() % 2 == 1));
      decks.back().model.widths = {64, 192, 128, 96, 10};
    }
  }
  return decks;
}

/// Wide perceptrons, or residual networks, whose workers take several micro-batches each; v2 with a
/// slack at which some passes of a worker are fresh and some are not.
[[nodiscard]] inline std::vector<SmallDeck> pass_decks_for(int micro_batches, bool resnet = false) {
  std::vector<SmallDeck> decks;
  for (const RuleKind rule : {RuleKind::dp, RuleKind::cdp_v1, RuleKind::cdp_v2}) {
    for (int passes = 2; passes <= micro_batches; ++passes) {
      if (micro_batches % passes != 0) continue;
      for (const int stages : {1, 2, 4}) {
        const bool some = (stages + passes + static_cast<int>(rule)) % 3 != 0;
        if (resnet ? stages != 2 : !some && !full_matrix()) continue;
        const ParallelConfig parallel{
            .rule = rule,
            .micro_batches = micro_batches,
            .passes = passes,
            .stages = stages,
            .slack = rule == RuleKind::cdp_v2 ? micro_batches / passes % 3 : 0,
            // v2 then reads both kinds of parameters on one device.
            .predict = rule == RuleKind::cdp_v2 && passes == 2 ? 0.7 : predicted_by(rule, passes)};
        decks.push_back(deck_of(parallel, decks.size() % 2 == 1, resnet));
        if (!resnet) decks.back().model.widths = {64, 192, 128, 96, 10};
      }
    }
  }
  return decks;
}

/// Residual networks with batch norm for one N on one device, cut inside their blocks; outside of
/// the full matrix one S of each rule.
[[nodiscard]] inline std::vector<SmallDeck> resnet_decks_for(int micro_batches) {
  std::vector<SmallDeck> decks;
  bool nesterov = false;
  for (const RuleKind rule : {RuleKind::dp, RuleKind::cdp_v1, RuleKind::cdp_v2}) {
    for (const int stages : {1, 2, 4}) {
      nesterov = !nesterov;
      if (!full_matrix() && stages != (rule == RuleKind::cdp_v1 ? 2 : 4)) continue;
      const ParallelConfig parallel{.rule = rule, .micro_batches = micro_batches, .stages = stages};
      decks.push_back(deck_of(parallel, nesterov, true));
      // With every kind of kernels, and all that backward may make again.
      const std::size_t number = decks.size();
      decks.back().kernels.winograd = number % 2 == 0;
      decks.back().kernels.recompute = static_cast<Recompute>(number % 3);
    }
  }
  return decks;
}

/// A vision transformer of two blocks, whose sizes fill blocks of channels and no register tile, by
/// AdamW. The gradient of the keys' bias is zero but for rounding; epsilon is so large that no such
/// gradient is divided by its own root.
[[nodiscard]] inline SmallDeck vit_deck(const ParallelConfig& parallel) {
  SmallDeck deck = deck_of(parallel, false, true);
  deck.model = {.name = "vit", .dropout = 0, .depth = 2, .patch = 2, .width = 32, .heads = 2};
  deck.train.optimizer = {.kind = AdamW{.epsilon = 0.1},
                          .learning_rate = 1e-3,
                          .weight_decay = 0.05,
                          .decay_norm_and_bias = false,
                          .clip_stage_norm = 1};
  return deck;
}

/// For one N on one device, cut between and inside blocks.
[[nodiscard]] inline std::vector<SmallDeck> vit_decks_for(int micro_batches) {
  std::vector<SmallDeck> decks;
  for (const RuleKind rule : {RuleKind::dp, RuleKind::cdp_v1, RuleKind::cdp_v2}) {
    for (const int stages : {1, 3, 4}) {
      if (!full_matrix() && stages != (rule == RuleKind::cdp_v2 ? 4 : 3)) continue;
      decks.push_back(vit_deck({.rule = rule, .micro_batches = micro_batches, .stages = stages}));
      decks.back().kernels.recompute = static_cast<Recompute>(decks.size() % 3);
    }
  }
  return decks;
}

/// A U-Net that decks list, with what only lists have: a skip that crosses cuts, a gate of squeeze
/// and excitation, transposed and depthwise convolutions.
[[nodiscard]] inline ModelConfig listed_unet() {
  using List = DeckValue::List;
  using Table = DeckValue::Table;
  const auto layer = [](const char* word, int size, const Table& more = {}) {
    Table table = {{word, {std::int64_t{size}}}};
    table.insert(table.end(), more.begin(), more.end());
    return DeckValue{table};
  };
  const auto convolution = [&](int channels, int kernel, int groups = 1) {
    return layer("conv", channels,
                 {{"kernel", {std::int64_t{kernel}}},
                  {"padding", {std::int64_t{kernel / 2}}},
                  {"groups", {std::int64_t{groups}}},
                  {"bias", {kernel == 1}}});
  };
  const auto word = [](const char* name) { return DeckValue{std::string(name)}; };
  const List gate = {word("global_avg_pool"), convolution(8, 1), word("silu"), convolution(32, 1),
                     word("sigmoid")};
  const List layers = {
      convolution(16, 3),
      word("batch_norm"),
      word("relu"),
      DeckValue{Table{{"save", {std::string("skip")}}}},
      layer("max_pool", 2),
      convolution(32, 3),
      word("batch_norm"),
      word("silu"),
      DeckValue{Table{{"branches", {List{DeckValue{List{}}, DeckValue{gate}}}},
                      {"join", {std::string("multiply")}}}},
      layer("conv_transpose", 16, {{"kernel", {std::int64_t{2}}}, {"stride", {std::int64_t{2}}}}),
      DeckValue{Table{{"concat", {std::string("skip")}}}},
      convolution(32, 3, 32),
      word("batch_norm"),
      word("relu"),
      word("global_avg_pool"),
      word("flatten"),
      layer("linear", 10)};
  return {.name = "layers", .layers = {layers}};
}

/// For one N on one device, cut between what the skip joins.
[[nodiscard]] inline std::vector<SmallDeck> listed_decks_for(int micro_batches) {
  std::vector<SmallDeck> decks;
  bool nesterov = false;
  for (const RuleKind rule : {RuleKind::dp, RuleKind::cdp_v1, RuleKind::cdp_v2}) {
    for (const int stages : {2, 3, 4}) {
      nesterov = !nesterov;
      if (!full_matrix() && stages != (rule == RuleKind::dp ? 3 : 4)) continue;
      const ParallelConfig parallel{.rule = rule, .micro_batches = micro_batches, .stages = stages};
      decks.push_back(deck_of(parallel, nesterov, true));
      decks.back().model = listed_unet();
      decks.back().kernels.recompute = static_cast<Recompute>(decks.size() % 3);
    }
  }
  return decks;
}

/// Of deck number k in bf16.
[[nodiscard]] constexpr ProductOrder products_of(std::size_t k) {
  return k % 2 == 0 ? ProductOrder::pairs : ProductOrder::tiles;
}
[[nodiscard]] inline SmallDeck in_bf16(SmallDeck deck, ProductOrder products) {
  deck.kernels.type = DataType::bfloat16;
  deck.kernels.products = products;
  return deck;
}

/// All; what is no perceptron only as far as N = 4. In bf16, too: outside of
/// the full matrix, and in double precision, in which nobody trains with it, every fourth.
[[nodiscard]] inline std::vector<SmallDeck> all_decks_for(int micro_batches) {
  std::vector<SmallDeck> decks = decks_for(micro_batches);
  const std::vector<SmallDeck> wide = wide_decks_for(micro_batches);
  decks.insert(decks.end(), wide.begin(), wide.end());
  const std::vector<SmallDeck> in_passes = pass_decks_for(micro_batches);
  decks.insert(decks.end(), in_passes.begin(), in_passes.end());
  if (micro_batches <= 4) {
    const std::vector<SmallDeck> resnets = resnet_decks_for(micro_batches);
    decks.insert(decks.end(), resnets.begin(), resnets.end());
    const std::vector<SmallDeck> vits = vit_decks_for(micro_batches);
    decks.insert(decks.end(), vits.begin(), vits.end());
    const std::vector<SmallDeck> listed = listed_decks_for(micro_batches);
    decks.insert(decks.end(), listed.begin(), listed.end());
    const std::vector<SmallDeck> passing = pass_decks_for(micro_batches, true);
    decks.insert(decks.end(), passing.begin(), passing.end());
  }
  const std::size_t count = decks.size();
  for (std::size_t k = 0; k < count; k += full_matrix() && sizeof(real) == 4 ? 1 : 4)
    decks.push_back(in_bf16(decks[k], products_of(decks.size())));
  if (const char* only = std::getenv("CAROUSEL_MATRIX_MODEL"))
    std::erase_if(decks, [&](const SmallDeck& deck) { return deck.model.name != only; });
  return decks;
}

[[nodiscard]] inline SmallDeck placed(SmallDeck deck, Placement placement,
                                      Reduction reduction = Reduction::ordered) {
  if (!traits_of(placement).cuts_stages) deck.parallel = deck.parallel.whole();
  deck.parallel.placement = placement;
  deck.parallel.reduction = reduction;
  return deck;
}

/// Where stages can be cut: whole ones and, for wide networks, in chunks.
[[nodiscard]] inline std::vector<SmallDeck> in_shards(const SmallDeck& deck) {
  std::vector<SmallDeck> all;
  const ParallelConfig& p = deck.parallel;
  const bool dp = p.rule == RuleKind::dp;
  if (deck.train.optimizer.needs_whole_tensors()) return all;
  if (p.predict > 0 && p.rule == RuleKind::cdp_v2) return all;
  for (const PlacementKind& kind : placement_kinds()) {
    if (!kind.traits.cuts_stages) continue;
    SmallDeck cut = placed(deck, kind.placement);
    cut.parallel.shards = true;
    if (p.passes > 1 && !kind.traits.has_passes) continue;
    if (dp || p.workers() % p.stages == 0) {
      all.push_back(cut);
      cut.parallel.chunks = 8;
      if (dp) cut.parallel.updates = Updates::together;
      all.push_back(cut);
    }
    if (p.rule != RuleKind::cdp_v1 || !kind.traits.sums_late) continue;
    cut.parallel.sums = Sums::late;
    all.push_back(cut);
  }
  return all;
}

/// Every other placement in which the deck can run with the bits of one device.
[[nodiscard]] inline std::vector<SmallDeck> exact_placements(const SmallDeck& deck) {
  std::vector<SmallDeck> all;
  const ParallelConfig& p = deck.parallel;
  for (const PlacementKind& kind : placement_kinds()) {
    if (kind.traits.one_device || (p.passes > 1 && !kind.traits.has_passes)) continue;
    const SmallDeck other = placed(deck, kind.placement);
    if (p.predict > 0 && !has_prediction(other.parallel)) continue;
    if (!needs_whole_slots(p.rule, kind.placement) || p.micro_batches % p.stages == 0)
      all.push_back(other);
  }
  for (const SmallDeck& cut : in_shards(deck)) all.push_back(cut);
  if (p.rule != RuleKind::dp) return all;
  all.push_back(deck);
  all.back().parallel.order = Order::accumulate;  // with several passes it is so already
  return all;
}

/// Every placement in which sums are made in another order than on one device. What rounds
/// otherwise before it is shortened to bf16 may be far apart behind it.
[[nodiscard]] inline std::vector<SmallDeck> rounding_placements(const SmallDeck& deck) {
  std::vector<SmallDeck> all;
  if (deck.kernels.type != DataType::full) return all;
  for (const SmallDeck& exact : exact_placements(deck)) {
    for (const Reduction reduction :
         {Reduction::fast, Reduction::overlapped, Reduction::owner, Reduction::local}) {
      if (has_reduction(exact.parallel, reduction))
        all.push_back(placed(exact, exact.parallel.placement, reduction));
    }
  }
  return all;
}

/// The deck with as many steps as runs that add in another order stay together. In single precision
/// a rectifier will be within rounding of its kink: measured, residual networks are 1e-6 apart
/// after two steps, 6e-3 after four and strangers after fifty; of 700 perceptrons one jumped from
/// 3e-7 to 3e-3 between its steps 30 and 40. Double precision stays together for all of them.
[[nodiscard]] inline SmallDeck comparable(SmallDeck deck) {
  const bool rectifies = deck.model.name == "resnet" || deck.model.name == "layers";
  const std::int64_t together = rectifies ? 2 : 12;
  if (sizeof(real) == 4) deck.train.steps = std::min(deck.train.steps, together);
  return deck;
}

[[nodiscard]] inline SmallDeck in_rounds(SmallDeck deck) {
  deck.rounds = true;
  return deck;
}

/// Each of them as it is and, outside of the full matrix every third, with messages in rounds.
[[nodiscard]] inline std::vector<SmallDeck> with_rounds(std::vector<SmallDeck> decks) {
  const std::size_t count = decks.size();
  for (std::size_t k = 0; k < count; k += full_matrix() ? 1 : 3) {
    if (devices_of(decks[k].parallel) > 1) decks.push_back(in_rounds(decks[k]));
  }
  return decks;
}

/// All runs of one N that one process can make, every other one with messages in rounds.
[[nodiscard]] inline std::vector<SmallDeck> local_decks(int micro_batches) {
  std::vector<SmallDeck> all;
  for (const SmallDeck& deck : all_decks_for(micro_batches)) {
    all.push_back(deck);
    for (const auto& placements : {exact_placements(deck), rounding_placements(deck)})
      all.insert(all.end(), placements.begin(), placements.end());
  }
  for (std::size_t k = 1; k < all.size(); k += 2) all[k].rounds = devices_of(all[k].parallel) > 1;
  return all;
}

/// Outside of the full matrix every third, for what holds whatever is summed in which order.
[[nodiscard]] inline std::vector<SmallDeck> some_of(const std::vector<SmallDeck>& decks) {
  std::vector<SmallDeck> some;
  for (std::size_t k = 0; k < decks.size(); k += full_matrix() ? 1 : 3) some.push_back(decks[k]);
  return some;
}

[[nodiscard]] inline std::string name_of(const SmallDeck& deck) {
  const ParallelConfig& p = deck.parallel;
  const Sgd* const sgd = std::get_if<Sgd>(&deck.train.optimizer.kind);
  return fmt::format("{} {} {} {} {} {} N={} k={} S={} slack={} predict={} nesterov={}{}{}",
                     deck.model.name, to_string(deck.kernels.type),
                     to_string(deck.kernels.products), to_string(p.rule), to_string(p.placement),
                     to_string(p.placement == Placement::single ? Reduction::ordered : p.reduction),
                     p.micro_batches, p.passes, p.stages, p.slack, p.predict,
                     sgd != nullptr && sgd->nesterov,
                     p.shards ? fmt::format(" shards, {} chunks, {}, {}", p.chunks,
                                            to_string(p.updates), to_string(p.sums))
                              : "",
                     deck.rounds ? " rounds" : "");
}

inline void expect_same(const std::vector<HostTensor>& actual,
                        const std::vector<HostTensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t k = 0; k < actual.size(); ++k) {
    EXPECT_EQ(actual[k].name, expected[k].name);
    EXPECT_EQ(actual[k].shape, expected[k].shape);
    // Bits, so that what is not here, which is no number, is equal to itself.
    const std::vector<real>& values = expected[k].values;
    ASSERT_EQ(actual[k].values.size(), values.size());
    EXPECT_EQ(std::memcmp(actual[k].values.data(), values.data(), values.size() * sizeof(real)), 0)
        << expected[k].name;
  }
}

inline void expect_same(const Snapshot& actual, const Snapshot& expected) {
  EXPECT_EQ(actual.step, expected.step);
  expect_same(actual.parameters, expected.parameters);
  expect_same(actual.previous, expected.previous);
  expect_same(actual.predicted, expected.predicted);
  expect_same(actual.optimizer, expected.optimizer);
  expect_same(actual.buffers, expected.buffers);
}

/// Checkpoints of whole runs.
inline void expect_same(const std::vector<Snapshot>& actual,
                        const std::vector<Snapshot>& expected) {
  EXPECT_GT(expected.size(), 1U);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t k = 0; k < actual.size(); ++k) {
    SCOPED_TRACE(fmt::format("checkpoint {}", k));
    expect_same(actual[k], expected[k]);
  }
}

/// Where sums are made in another order.
inline void expect_close(const std::vector<HostTensor>& actual,
                         const std::vector<HostTensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t k = 0; k < actual.size(); ++k) {
    // Of a tensor that is cut, what is here.
    std::vector<real> some, others;
    ASSERT_EQ(actual[k].values.size(), expected[k].values.size());
    for (std::size_t i = 0; i < expected[k].values.size(); ++i) {
      if (std::isnan(actual[k].values[i]) && std::isnan(expected[k].values[i])) continue;
      some.push_back(actual[k].values[i]);
      others.push_back(expected[k].values[i]);
    }
    EXPECT_FALSE(some.empty());
    EXPECT_LE(relative_difference(some, others), 50 * rounding) << expected[k].name;
  }
}

/// What was told of steps and evaluations, less the times.
inline void expect_same(const Story& actual, const Story& expected) {
  ASSERT_EQ(actual.steps.size(), expected.steps.size());
  for (std::size_t t = 0; t < actual.steps.size(); ++t) {
    EXPECT_EQ(actual.steps[t].step, static_cast<std::int64_t>(t));
    EXPECT_EQ(actual.steps[t].epoch, expected.steps[t].epoch);
    EXPECT_EQ(actual.steps[t].loss, expected.steps[t].loss) << "step " << t;
    EXPECT_EQ(actual.steps[t].metrics, expected.steps[t].metrics) << "step " << t;
    EXPECT_EQ(actual.steps[t].learning_rate, expected.steps[t].learning_rate);
  }
  ASSERT_EQ(actual.evaluations.size(), expected.evaluations.size());
  for (std::size_t k = 0; k < actual.evaluations.size(); ++k) {
    EXPECT_EQ(actual.evaluations[k].step, expected.evaluations[k].step);
    EXPECT_EQ(actual.evaluations[k].loss, expected.evaluations[k].loss) << "evaluation " << k;
    EXPECT_EQ(actual.evaluations[k].metrics, expected.evaluations[k].metrics);
  }
}

/// Receipts of all devices of `actual` that updated a stage against those of a run on one device.
inline void expect_same_receipts(const SmallRun& actual, const SmallRun& single) {
  int receipts = 0;
  const bool pieces = has_pieces(actual.schedule().parallel());
  for (int j = 0; j < actual.schedule().rule().stages(); ++j) {
    const std::vector<std::uint64_t>& expected = single.story().receipts[0][j];
    std::vector<std::uint64_t> sum(expected.size());
    for (const auto& device : actual.story().receipts) {
      if (device[j].empty()) continue;
      ++receipts;
      ASSERT_EQ(device[j].size(), expected.size()) << "stage " << j;
      for (std::size_t t = 0; t < sum.size(); ++t) sum[t] = device[j][t] + (pieces ? sum[t] : 0);
      EXPECT_TRUE(pieces || sum == expected) << "stage " << j;
    }
    EXPECT_EQ(sum, expected) << "stage " << j;
  }
  EXPECT_GT(receipts, 0);
}

}  // namespace carousel::test
