// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A deck that says nothing of interest but what network it trains.

#include <string>

namespace carousel::test {

/// The text of a deck whose first line is [model] and whose next ones are `model`.
[[nodiscard]] inline std::string network_deck(const std::string& model) {
  return "[model]\n" + model +
         "\n[run]\nname = \"n\"\noutput = \"o\"\n"
         "[data]\nfile = \"d.h5\"\n"
         "[parallel]\nmicro_batches = 1\nstages = 1\n"
         "[train]\nmicro_batch_size = 4\nsteps = 1\n"
         "[train.optimizer]\nlearning_rate = 0.1\n";
}

}  // namespace carousel::test
