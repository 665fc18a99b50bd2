// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// What is stored in bf16: what a checkpoint holds of it, that restarts have the bits of whole runs,
// and how much less memory and messages there are. That placements agree the matrix shows.

#include "core/base/bfloat16.hpp"
#include "tests/core/train/matrix.hpp"

namespace carousel::test {
namespace {

class Precision : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static std::vector<SmallDeck> decks() {
    std::vector<SmallDeck> all;
    for (const auto& some :
         {decks_for(GetParam()), resnet_decks_for(std::min(GetParam(), 4)),
          vit_decks_for(std::min(GetParam(), 4)), listed_decks_for(std::min(GetParam(), 4))})
      for (const SmallDeck& deck : some) all.push_back(in_bf16(deck, products_of(all.size())));
    return all;
  }

  const RandomDataset file_;
  const Dataset dataset_{file_.path()};
  const ExecutionSpace exec_;
};

[[nodiscard]] bool is_bf16(real value) {
  return static_cast<real>(to_float(to_bfloat16(static_cast<float>(value)))) == value;
}

TEST_P(Precision, KeepsFullParametersAndOldOnesAsTheyWereUsed) {
  for (const SmallDeck& deck : decks()) {
    SCOPED_TRACE(name_of(deck));
    SmallRun run(exec_, dataset_, deck);
    (void)run.trainer().run();
    const Snapshot last = snapshot(run.trainer());
    std::int64_t full = 0;  // numbers of weights that bf16 does not have
    for (const HostTensor& tensor : last.parameters) {
      for (const real value : tensor.values) {
        ASSERT_TRUE(std::isfinite(value)) << tensor.name;
        full += tensor.shape.size() > 1 && !is_bf16(value) ? 1 : 0;
      }
    }
    EXPECT_GT(full, 0);
    EXPECT_EQ(last.previous.empty(), deck.parallel.rule == RuleKind::dp);
    // With prediction what was used is not what was updated, of which both versions are kept.
    const bool predicts = deck.parallel.predict > 0;
    EXPECT_EQ(last.predicted.empty(), !predicts);
    for (const HostTensor& tensor : predicts ? last.predicted : last.previous) {
      if (tensor.shape.size() == 1) continue;  // biases and norms stay full
      EXPECT_TRUE(std::ranges::all_of(tensor.values, is_bf16)) << tensor.name;
    }
  }
}

TEST_P(Precision, GoesOnWithTheBitsOfTheWholeRun) {
  for (SmallDeck deck : decks()) {
    SCOPED_TRACE(name_of(deck));
    deck.checkpoint.every_steps = 2;
    SmallRun whole(exec_, dataset_, deck);
    const std::vector<Snapshot> saved = train_and_save(whole.trainer());
    ASSERT_GT(saved.size(), 1U);
    const Snapshot& middle = saved[saved.size() / 2 - 1];
    Beginning beginning{.step = middle.step, .state = source_of(middle)};
    beginning.place = whole.trainer().order().locate(middle.step, 0);
    SmallRun rest(exec_, dataset_, deck, nullptr, beginning);
    expect_same(snapshot(rest.trainer()), middle);
    (void)rest.trainer().run();
    expect_same(snapshot(rest.trainer()), saved.back());
  }
}

/// Activations take half the memory (a quarter of that of doubles), but for what layers save in
/// other types; parameters, of which biases are few, nearly that.
TEST_P(Precision, TakesHalfTheMemory) {
  for (SmallDeck deck : decks()) {
    SCOPED_TRACE(name_of(deck));
    const SmallRun half(exec_, dataset_, deck);
    deck.kernels.type = DataType::full;
    const SmallRun full(exec_, dataset_, deck);
    const auto expect_ratio = [&](Category category, double least, double most) {
      const auto c = static_cast<std::size_t>(category);
      const auto before = static_cast<double>(full.memory().devices[0].bytes[c]);
      EXPECT_GE(static_cast<double>(half.memory().devices[0].bytes[c]), least * before);
      EXPECT_LE(static_cast<double>(half.memory().devices[0].bytes[c]), most * before);
    };
    constexpr double part = 2.0 / sizeof(real);  // of bfloat16
    expect_ratio(Category::activations, part, 1.5 * part);
    expect_ratio(Category::parameters, part, 1.5 * part);
    expect_ratio(Category::gradients, 1, 1);
  }
}

/// As the help of engine.recompute says; on one stage, since it may move cuts.
TEST_P(Precision, HasTheBitsOfEveryWayToRecompute) {
  for (SmallDeck deck : decks()) {
    deck.parallel.stages = 1;
    deck.parallel.slack = 0;
    SCOPED_TRACE(name_of(deck));
    const auto receipts = [&](DataType type, Recompute recompute) {
      deck.kernels.type = type;
      deck.kernels.recompute = recompute;
      SmallRun run(exec_, dataset_, deck);
      (void)run.trainer().run();
      return run.story().receipts;
    };
    for (const ProductOrder products : {ProductOrder::pairs, ProductOrder::tiles}) {
      deck.kernels.products = products;
      const auto cheap = receipts(DataType::bfloat16, Recompute::cheap);
      EXPECT_EQ(receipts(DataType::bfloat16, Recompute::stage), cheap);
      EXPECT_EQ(receipts(DataType::bfloat16, Recompute::none), cheap);
    }
    const auto full = receipts(DataType::full, Recompute::cheap);
    EXPECT_EQ(receipts(DataType::full, Recompute::stage), full);
    EXPECT_EQ(receipts(DataType::full, Recompute::none), full);
  }
}

INSTANTIATE_TEST_SUITE_P(N, Precision, ::testing::Values(1, 2, 4, 6));

}  // namespace
}  // namespace carousel::test
