// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// First values of parameters as a pure function of seed, name and position, on the host. Ranks,
// stages and the order of calls change nothing.

#include <cstdint>
#include <span>

#include "core/base/real.hpp"
#include "core/model/model.hpp"

namespace carousel {

/// Fills `values` as `parameter.initial` says. Element k of a Kaiming-uniform tensor is
/// b (2 u - 1) with u = uniform01(random_key(seed, "parameters"), hash_name(name), k) and
/// b = sqrt(6 / fan_in), computed in double and rounded once.
void initialise(const ParameterSpec& parameter, std::uint64_t seed, std::span<real> values);

}  // namespace carousel
