// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every loss and every metric by plain loops over one sample, in double.

#include <span>
#include <string_view>

#include "core/model/arguments.hpp"

namespace carousel::reference {

/// The loss that decks call so, of the outputs of a sample of that label. Throws Error(internal)
/// for one that it does not know.
[[nodiscard]] double loss(std::string_view name, const Arguments& arguments,
                          std::span<const double> outputs, int label, bool training = true);

/// What a sample adds to the only sum of a metric; likewise.
[[nodiscard]] double metric(std::string_view name, std::span<const double> outputs, int label);

}  // namespace carousel::reference
