// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/optimizer.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"
#include "core/base/digest.hpp"
#include "core/base/range.hpp"

namespace carousel {
namespace {

/// torch.optim.SGD. Factors are those that PyTorch hands to its kernels: computed in double,
/// rounded once.
struct Sgd {
  real negative_rate;
  real momentum;
  real gradient_share;  // of the momentum buffer: 1 - dampening
  real weight_decay;
  bool nesterov;
  bool first;
  real* buffer;

  Sgd(const OptimizerStep& step, double decay, real* states, std::int64_t /*size*/)
      : negative_rate(static_cast<real>(-step.learning_rate)),
        momentum(static_cast<real>(step.config.momentum)),
        gradient_share(static_cast<real>(1 - step.config.dampening)),
        weight_decay(static_cast<real>(decay)),
        nesterov(step.config.nesterov),
        first(step.number == 0),
        buffer(states) {}

  [[nodiscard]] KOKKOS_FUNCTION real operator()(std::int64_t i, real parameter,
                                                real gradient) const {
    real direction = gradient;
    if (weight_decay != 0) direction = Kokkos::fma(weight_decay, parameter, direction);
    if (momentum != 0) {
      const real velocity =
          first ? direction : Kokkos::fma(gradient_share, direction, momentum * buffer[i]);
      buffer[i] = velocity;
      direction = nesterov ? Kokkos::fma(momentum, velocity, direction) : velocity;
    }
    return Kokkos::fma(negative_rate, direction, parameter);
  }
};

/// torch.optim.AdamW (Loshchilov & Hutter 2019, arXiv 1711.05101): m and v are means of gradients
/// and of their squares, which start from zero and are corrected for that.
struct AdamW {
  real keep;  // of a parameter: 1 - rate * decay
  // The mean moves as in torch.lerp, from the end that is closer: all of a share of 1 is exactly
  // the gradient. Which end, a branch per number would keep the kernel from vectors.
  bool from_gradient;
  real share1;  // of the way from there
  real beta2;
  real share2;
  real root_of_correction;  // of v
  real negative_rate;       // with the correction of m
  real epsilon;
  bool first;
  real* mean;
  real* square;

  AdamW(const OptimizerStep& step, double decay, real* states, std::int64_t size)
      : keep(static_cast<real>(1 - step.learning_rate * decay)),
        from_gradient(static_cast<real>(1 - step.config.beta1) >= real(0.5)),
        share1(static_cast<real>(1 - step.config.beta1) - (from_gradient ? 1 : 0)),
        beta2(static_cast<real>(step.config.beta2)),
        share2(static_cast<real>(1 - step.config.beta2)),
        epsilon(static_cast<real>(step.config.epsilon)),
        first(step.number == 0),
        mean(states),
        square(states + size) {
    const auto t = static_cast<double>(step.number + 1);
    root_of_correction = static_cast<real>(std::sqrt(1 - std::pow(step.config.beta2, t)));
    negative_rate = static_cast<real>(-step.learning_rate / (1 - std::pow(step.config.beta1, t)));
  }

  [[nodiscard]] KOKKOS_FUNCTION real operator()(std::int64_t i, real parameter,
                                                real gradient) const {
    const real m_before = first ? 0 : mean[i];
    const real v_before = first ? 0 : square[i];
    const real m = Kokkos::fma(share1, gradient - m_before, from_gradient ? gradient : m_before);
    const real v = Kokkos::fma(share2, gradient * gradient, beta2 * v_before);
    mean[i] = m;
    square[i] = v;
    const real deviation = Kokkos::sqrt(v) / root_of_correction + epsilon;
    return Kokkos::fma(negative_rate, m / deviation, keep * parameter);
  }
};

/// Numbers that one index of a kernel takes. On a host they fill vectors, digest included.
constexpr std::int64_t piece = runs_on_host ? 4096 : 1;

/// A rule for some parameters of a stage.
template <class Rule>
struct Update {
  Rule rule;
  UpdateVectors vectors;
  std::int64_t begin;
  std::int64_t end;

  KOKKOS_FUNCTION void operator()(std::int64_t k, std::uint64_t& sum) const {
    // Copies, which no store through a pointer can change.
    const Rule by = rule;
    const UpdateVectors v = vectors;
    const real clip = v.clip == nullptr ? 1 : *v.clip;
    const std::int64_t first = begin + k * piece;
    const std::int64_t last = Kokkos::min(first + piece, end);
    for (std::int64_t i = first; i < last; ++i)
      v.next[i] = by(i, v.theta[i], v.scale * v.gradient_sum[i] * clip);
    for (std::int64_t i = first; i < last; ++i)
      sum += digest_term(static_cast<std::uint64_t>(i), v.next[i]);
  }

  /// Called once with the sum of all. A result view would do the same, but Kokkos then builds the
  /// text of a fence that it does not need.
  KOKKOS_FUNCTION void final(std::uint64_t& sum) const {
    *vectors.digest = begin > 0 ? *vectors.digest + sum : sum;
  }
};

template <class Rule>
void update_by(const ExecutionSpace& exec, const std::string& label, const OptimizerStep& step,
               std::span<const ParameterRange> ranges, const UpdateVectors& vectors) {
  const std::int64_t size = ranges.empty() ? 0 : ranges.back().end;
  const ParameterRange all = {0, size, false};
  const double decay = step.config.weight_decay;
  const bool alike = step.config.decay_norm_and_bias || decay == 0;
  if (alike || ranges.empty()) ranges = {&all, 1};
  for (const ParameterRange& range : ranges) {
    const Update<Rule> kernel = {Rule(step, range.per_feature ? 0 : decay, vectors.states, size),
                                 vectors, range.begin, range.end};
    // A stage without parameters has a digest too.
    const std::int64_t indices =
        std::max<std::int64_t>((range.end - range.begin + piece - 1) / piece, 1);
    Kokkos::parallel_reduce(label, pieces(exec, indices), kernel);
  }
}

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

void update(const ExecutionSpace& exec, const OptimizerStep& step,
            std::span<const ParameterRange> ranges, const UpdateVectors& vectors) {
  static const std::string sgd_label = "carousel::train::sgd_update";
  static const std::string adamw_label = "carousel::train::adamw_update";
  const bool adamw = step.config.kind == OptimizerKind::adamw;
  CAROUSEL_CHECK(
      vectors.states != nullptr || ranges.empty() || (!adamw && step.config.momentum == 0),
      "no room for the states of {}", to_string(step.config.kind));
  if (adamw)
    update_by<AdamW>(exec, adamw_label, step, ranges, vectors);
  else
    update_by<Sgd>(exec, sgd_label, step, ranges, vectors);
}

void update_statistics(const ExecutionSpace& exec, const StatisticsVectors& vectors) {
  static const std::string label = "carousel::train::update_statistics";
  if (vectors.size == 0) return;
  Kokkos::parallel_reduce(label, range(exec, vectors.size), Statistics{vectors});
}

}  // namespace carousel
