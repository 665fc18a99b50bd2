// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/optimizer.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/base/digest.hpp"
#include "core/base/range.hpp"

namespace carousel {
namespace {

/// The factors of a step as PyTorch hands them to its kernels: computed in double, rounded once.
struct Sgd {
  real scale;
  real negative_rate;
  real momentum;
  real gradient_share;  // of the momentum buffer: 1 - dampening
  real weight_decay;
  bool nesterov;
  bool first;
  const real* theta;
  const real* gradient;
  real* buffer;
  real* next;
  std::int64_t end;
  std::uint64_t* digest;
  bool adds_digest;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::uint64_t& sum) const {
    if (i >= end) return;
    const real parameter = theta[i];
    real direction = scale * gradient[i];
    if (weight_decay != 0) direction = Kokkos::fma(weight_decay, parameter, direction);
    if (momentum != 0) {
      const real velocity =
          first ? direction : Kokkos::fma(gradient_share, direction, momentum * buffer[i]);
      buffer[i] = velocity;
      direction = nesterov ? Kokkos::fma(momentum, velocity, direction) : velocity;
    }
    const real result = Kokkos::fma(negative_rate, direction, parameter);
    next[i] = result;
    sum += digest_term(static_cast<std::uint64_t>(i), result);
  }

  /// Called once with the sum of all. A result view would do the same, but Kokkos then builds the
  /// text of a fence that it does not need.
  KOKKOS_FUNCTION void final(std::uint64_t& sum) const {
    *digest = adds_digest ? *digest + sum : sum;
  }
};

struct Statistics {
  StatisticsVectors vectors;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::uint64_t& sum) const {
    constexpr auto m = static_cast<real>(batch_norm_momentum);
    const real result = (1 - m) * vectors.running[i] + m * (vectors.scale * vectors.batch_sums[i]);
    vectors.next[i] = result;
    sum += digest_term(static_cast<std::uint64_t>(vectors.parameters + i), result);
  }
  KOKKOS_FUNCTION void final(std::uint64_t& sum) const {
    if (vectors.digest != nullptr) *vectors.digest += sum;
  }
};

}  // namespace

SgdStep sgd_step(const OptimizerConfig& config, double learning_rate, bool first) {
  return {learning_rate,   config.momentum, config.dampening,          config.weight_decay,
          config.nesterov, first,           config.decay_norm_and_bias};
}

void update(const ExecutionSpace& exec, const SgdStep& step, std::span<const ParameterRange> ranges,
            const SgdVectors& vectors) {
  static const std::string label = "carousel::train::sgd_update";
  CAROUSEL_CHECK(step.momentum == 0 || vectors.momentum != nullptr || ranges.empty(),
                 "no room for momenta");
  const bool alike = step.decays_per_feature || step.weight_decay == 0;
  const std::int64_t size = ranges.empty() ? 0 : ranges.back().end;
  const ParameterRange all = {0, size, false};
  if (alike || ranges.empty()) ranges = {&all, 1};
  for (const ParameterRange& range : ranges) {
    const double weight_decay = range.per_feature ? 0 : step.weight_decay;
    const Sgd kernel = {vectors.scale,
                        static_cast<real>(-step.learning_rate),
                        static_cast<real>(step.momentum),
                        static_cast<real>(1 - step.dampening),
                        static_cast<real>(weight_decay),
                        step.nesterov,
                        step.first,
                        vectors.theta,
                        vectors.gradient_sum,
                        vectors.momentum,
                        vectors.next,
                        range.end,
                        vectors.digest,
                        range.begin > 0};
    // A stage without parameters has a digest too.
    const std::int64_t last = std::max(range.end, range.begin + 1);
    Kokkos::parallel_reduce(label, carousel::range(exec, range.begin, last), kernel);
  }
}

void update_statistics(const ExecutionSpace& exec, const StatisticsVectors& vectors) {
  static const std::string label = "carousel::train::update_statistics";
  if (vectors.size == 0) return;
  Kokkos::parallel_reduce(label, range(exec, vectors.size), Statistics{vectors});
}

}  // namespace carousel
