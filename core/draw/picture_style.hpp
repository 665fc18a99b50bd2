// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How pictures of schedules look: colours of stages, lines of what travels. Where anything stands
// is not said here.

#include <array>
#include <string>
#include <vector>

#include "core/plan/action.hpp"

namespace carousel {

/// A stage's light colour is for its forward, its strong one for its backward, so that both can be
/// told apart in grey print, too.
struct StageColour {
  std::string light;
  std::string strong;
  bool white_text = false;  // on the strong one
};

/// [S] colours that the colour-blind can tell apart (Okabe and Ito 2008) while there are enough of
/// them, else a ramp.
[[nodiscard]] std::vector<StageColour> stage_colours(int stages);

/// The lines of messages of one kind.
struct TravelStyle {
  std::string css_class;
  std::string colour;
  std::string dashes;  // none: a solid line
  std::string name;
};

inline constexpr int travel_kinds = 5;
[[nodiscard]] const std::array<TravelStyle, travel_kinds>& travel_styles();
/// Index of the style of a payload.
[[nodiscard]] int travel_kind(Payload payload);

/// The style sheet and the heads of arrows.
[[nodiscard]] std::string picture_definitions(const std::vector<StageColour>& colours);

}  // namespace carousel
