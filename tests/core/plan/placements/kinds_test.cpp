// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The table of placements is complete and in the order of the enum, and what is read from it holds.

#include "core/plan/placements/kinds.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <set>

#include "core/base/check.hpp"
#include "tests/core/plan/schedules.hpp"

namespace carousel {
namespace {

TEST(PlacementKinds, AreInTheOrderOfTheEnum) {
  ASSERT_EQ(placement_kinds().size(), enumerators<Placement>());
  std::set<std::string> names;
  for (std::size_t k = 0; k < placement_kinds().size(); ++k) {
    const auto placement = static_cast<Placement>(k);
    const PlacementKind& kind = placement_kinds()[k];
    EXPECT_EQ(kind.placement, placement) << kind.name;
    EXPECT_EQ(&kind_of(placement), &kind);
    EXPECT_EQ(&traits_of(placement), &kind.traits);
    EXPECT_STREQ(to_string(placement), kind.name);
    EXPECT_EQ(value_named<Placement>(kind.name), placement);
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
  }
}

TEST(PlacementKinds, AreNamedAsTheirEnumerators) {
  EXPECT_STREQ(to_string(Placement::single), "single");
  EXPECT_STREQ(to_string(Placement::replicated), "replicated");
  EXPECT_STREQ(to_string(Placement::model), "model");
  EXPECT_STREQ(to_string(Placement::pipeline), "pipeline");
  EXPECT_STREQ(to_string(Placement::sharded), "sharded");
}

TEST(PlacementKinds, EndAtTheLastEnumerator) {
  for (const std::size_t number : {enumerators<Placement>(), std::size_t{255}}) {
    try {
      (void)kind_of(static_cast<Placement>(number));
      ADD_FAILURE() << "found a placement of number " << number;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::internal);
    }
  }
}

// The compiler sees to it that a placement has all texts, but not that they say something.
TEST(PlacementKinds, HaveTextsAndFormulas) {
  using All = std::array<Formulas, sizeof(PlacementFormulas) / sizeof(Formulas)>;
  for (const PlacementKind& kind : placement_kinds()) {
    EXPECT_LE(std::string(kind.name).size(), 11U) << "comparison and help have no room for more";
    EXPECT_TRUE(std::string(kind.doc).ends_with('.')) << kind.name;
    EXPECT_TRUE(std::string(kind.help).ends_with('.')) << kind.name;
    for (const Formulas& formulas : std::bit_cast<All>(kind.formulas)) {
      EXPECT_STRNE(formulas.dp, "") << kind.name;
      EXPECT_STRNE(formulas.cyclic, "") << kind.name;
    }
    for (const auto* reductions : {&kind.traits.dp_reductions, &kind.traits.cyclic_reductions}) {
      ASSERT_FALSE(reductions->empty()) << kind.name;
      EXPECT_EQ(reductions->front(), Reduction::ordered) << kind.name;
    }
  }
}

TEST(PlacementKinds, AreFoundByATrait) {
  EXPECT_EQ(placements_with(&PlacementTraits::has_orders), (std::vector<std::string>{"single"}));
  EXPECT_EQ(placements_with(&PlacementTraits::splits_stages),
            (std::vector<std::string>{"model", "pipeline"}));
}

// What tests of schedules take from the traits: a trait that is lost takes plans with it.
TEST(PlacementKinds, HaveThePlansOfTheirTraits) {
  const auto plans = [](Placement placement) { return testing::variants(placement, 4, 2).size(); };
  EXPECT_EQ(plans(Placement::single), 6U);
  EXPECT_EQ(plans(Placement::replicated), 12U);
  EXPECT_EQ(plans(Placement::model), 13U);
  EXPECT_EQ(plans(Placement::pipeline), 5U);
  EXPECT_EQ(plans(Placement::sharded), 10U);
}

}  // namespace
}  // namespace carousel
