// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parameters that training leaves as they begin. Where their numbers lie is not decided here.

#include <string>
#include <vector>

#include "core/model/model.hpp"

namespace carousel {

/// Marks the parameters whose names a pattern matches, with * for any letters and ? for any one,
/// and takes from the costs of layers what their backward leaves out. Batch norms go on to
/// normalise by their micro-batches and to count. Error(usage) for a pattern that matches no
/// parameter, a layer of which some parameters alone match, and a network of which nothing would
/// learn.
void freeze(Model& model, const std::vector<std::string>& patterns);

}  // namespace carousel
