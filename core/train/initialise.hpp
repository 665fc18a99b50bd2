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

/// Fills `values` as `parameter.initial` says, computed in double and rounded once. Numbers come
/// from u_k = uniform01(random_key(seed, "parameters"), hash_name(name), k): element k of a uniform
/// tensor is b (2 u_k - 1), of a normal one sigma sqrt(-2 ln(1 - u_2k)) cos(2 pi u_{2k+1}).
void initialise(const ParameterSpec& parameter, std::uint64_t seed, std::span<real> values);

}  // namespace carousel
