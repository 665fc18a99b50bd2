// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Updates that change parameters number by number, as one kernel over each run of parameters that
// have the same weight decay.

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/base/digest.hpp"
#include "core/base/range.hpp"
#include "core/train/update.hpp"

namespace carousel {

/// Numbers that one index of a kernel takes. On a host they fill vectors, digest included.
inline constexpr std::int64_t update_piece = runs_on_host ? 4096 : 1;

/// Averages of the parameters, the last of the states, which move towards theta_{t+1} as torch.lerp
/// does, from the end that is closer.
struct MovingAverage {
  real* average = nullptr;  // null: there is none
  bool from_parameter = false;
  real share = 0;  // of the way from there

  explicit MovingAverage(const StageUpdate& update) {
    average = update.vectors.average;
    const bool is_first = update.step.number == 0;  // there is no average before
    const auto parameters = static_cast<real>(1 - update.step.config.ema);
    from_parameter = is_first || parameters >= real(0.5);
    if (!is_first) share = parameters - (from_parameter ? 1 : 0);
  }

  KOKKOS_FUNCTION void move(std::int64_t i, real parameter) const {
    // What is read before the first update is not used, not even times 0: it may be no number.
    const real way = share == 0 ? real(0) : parameter - average[i];
    average[i] = Kokkos::fma(share, way, from_parameter ? parameter : average[i]);
  }
};

/// A rule for numbers begin .. end - 1 of the vectors: theta_{t+1} = rule(i, theta_t, gradient).
template <class Rule>
struct NumberUpdate {
  Rule rule;
  UpdateVectors vectors;
  MovingAverage average;
  std::int64_t begin;
  std::int64_t end;

  KOKKOS_FUNCTION void operator()(std::int64_t k, std::uint64_t& sum) const {
    // Copies, which no store through a pointer can change.
    const Rule by = rule;
    const UpdateVectors v = vectors;
    const real clip = v.clip == nullptr ? 1 : *v.clip;
    const std::int64_t first = begin + k * update_piece;
    const std::int64_t last = Kokkos::min(first + update_piece, end);
    for (std::int64_t i = first; i < last; ++i)
      v.next[i] = by(i, v.theta[i], v.scale * v.gradient_sum[i] * clip);
    for (std::int64_t i = first; i < last; ++i)
      sum += digest_term(static_cast<std::uint64_t>(v.first + i), v.next[i]);
    const MovingAverage moved = average;
    for (std::int64_t i = first; moved.average != nullptr && i < last; ++i)
      moved.move(i, v.next[i]);
  }

  /// Called once with the sum of all. A result view would do the same, but Kokkos then builds the
  /// text of a fence that it does not need.
  KOKKOS_FUNCTION void final(std::uint64_t& sum) const {
    *vectors.digest = begin > 0 || vectors.adds_digest ? *vectors.digest + sum : sum;
  }
};

template <class Rule>
void update_numbers(const std::string& label, const StageUpdate& update, const Rule& rule,
                    std::int64_t begin, std::int64_t end) {
  // A stage without parameters has a digest too.
  const std::int64_t indices =
      std::max<std::int64_t>((end - begin + update_piece - 1) / update_piece, 1);
  Kokkos::parallel_reduce(
      label, pieces(update.exec, indices),
      NumberUpdate<Rule>{rule, update.vectors, MovingAverage(update), begin, end});
}

/// `rule_of` makes the rule of parameters with a weight decay.
template <class RuleOf>
void update_by_number(const std::string& label, const StageUpdate& update, const RuleOf& rule_of) {
  const OptimizerConfig& config = update.step.config;
  const std::vector<ParameterRange>& ranges = update.stage.parameter_ranges;
  const UpdateVectors& vectors = update.vectors;
  const bool alike = config.decay_norm_and_bias || config.weight_decay == 0;
  if (alike || vectors.size == 0) {
    update_numbers(label, update, rule_of(config.weight_decay), 0, vectors.size);
    return;
  }
  for (const ParameterRange& range : ranges) {
    const std::int64_t begin = std::max(range.begin - vectors.first, std::int64_t{0});
    const std::int64_t end = std::min(range.end - vectors.first, vectors.size);
    if (begin < end)
      update_numbers(label, update, rule_of(range.per_feature ? 0 : config.weight_decay), begin,
                     end);
  }
}

}  // namespace carousel
