// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/placements/kinds.hpp"

#include <algorithm>
#include <array>

#include "core/base/check.hpp"

namespace carousel {
namespace placements {
// Each of them in a file of its own.
PlacementKind single();
PlacementKind replicated();
PlacementKind model();
PlacementKind pipeline();
PlacementKind sharded();
}  // namespace placements

std::span<const PlacementKind> placement_kinds() {
  static const std::array kinds = {placements::single(), placements::replicated(),
                                   placements::model(), placements::pipeline(),
                                   placements::sharded()};
  static_assert(std::tuple_size_v<decltype(kinds)> == enumerators<Placement>(),
                "each enumerator has a placement");
  return kinds;
}

const PlacementKind& kind_of(Placement placement) {
  const std::span<const PlacementKind> kinds = placement_kinds();
  const auto number = static_cast<std::size_t>(placement);
  CAROUSEL_CHECK(number < kinds.size(), "no placement has number {}", number);
  CAROUSEL_CHECK(kinds[number].placement == placement, "{} is not at its place in the table",
                 kinds[number].name);
  return kinds[number];
}

Words<Placement> words_of(Placement) {
  Words<Placement> words = {};
  std::ranges::transform(placement_kinds(), words.begin(), &PlacementKind::name);
  return words;
}

std::vector<std::string> placements_with(bool PlacementTraits::*trait) {
  std::vector<std::string> names;
  for (const PlacementKind& kind : placement_kinds())
    if (kind.traits.*trait) names.emplace_back(kind.name);
  return names;
}

}  // namespace carousel
