// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The layers that a deck lists, with repeats, blocks, residual branches and expressions, as one
// line for each layer. It knows no shapes: whether layers fit together, ModelBuilder says.

#include <optional>
#include <string>
#include <vector>

#include "core/deck/value.hpp"
#include "core/model/arguments.hpp"
#include "core/model/layer_spec.hpp"

namespace carousel {

/// How parameters of a line start.
struct LineInitial {
  enum class Scale : std::uint8_t { given, kaiming, kaiming_fan_out, xavier };
  bool bias = false;  // those that shift, otherwise weights
  Initial initial;
  Scale scale = Scale::given;  // or what follows from the shape of the weights
};

/// One layer.
struct LayerLine {
  const Op* kind = nullptr;
  std::string name;  // with those of all that it is part of: "down.0.3"
  Arguments arguments;
  std::vector<int> inputs;  // [1 or 2] lines that it reads, -1: the images
  std::string joins;        // what the deck calls the second one, and where it is made
  std::vector<LineInitial> starts = {};
  DeckValue place = {};  // line and column alone
};

/// What decks list.
struct LayerList {
  DeckValue let;     // a table of numbers and expressions
  DeckValue layers;  // a list of words and tables
  DeckValue blocks;  // a table of such lists
  std::string file;  // where it is written, for messages
};

/// Lines in the order in which they run. Error(usage) that begins with the place, "unet.toml:9:7".
[[nodiscard]] std::vector<LayerLine> expand(const LayerList& list);

}  // namespace carousel
