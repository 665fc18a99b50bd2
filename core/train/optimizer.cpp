// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/optimizer.hpp"

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
  std::int64_t size;
  std::uint64_t* digest;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::uint64_t& sum) const {
    if (i >= size) return;
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
  KOKKOS_FUNCTION void final(std::uint64_t& sum) const { *digest = sum; }
};

}  // namespace

SgdStep sgd_step(const OptimizerConfig& config, double learning_rate, bool first) {
  return {learning_rate,       config.momentum, config.dampening,
          config.weight_decay, config.nesterov, first};
}

void update(const ExecutionSpace& exec, const SgdStep& step, const ConstVector& theta,
            const ConstVector& gradient_sum, real scale, const Vector& momentum, const Vector& next,
            std::uint64_t* digest) {
  static const std::string label = "carousel::train::sgd_update";
  CAROUSEL_CHECK(gradient_sum.size() == theta.size() && next.size() == theta.size(),
                 "{} parameters, {} gradients, {} results", theta.size(), gradient_sum.size(),
                 next.size());
  CAROUSEL_CHECK(step.momentum == 0 || momentum.size() == theta.size(), "{} parameters, {} momenta",
                 theta.size(), momentum.size());
  const Sgd kernel = {scale,
                      static_cast<real>(-step.learning_rate),
                      static_cast<real>(step.momentum),
                      static_cast<real>(1 - step.dampening),
                      static_cast<real>(step.weight_decay),
                      step.nesterov,
                      step.first,
                      theta.data(),
                      gradient_sum.data(),
                      momentum.data(),
                      next.data(),
                      static_cast<std::int64_t>(theta.size()),
                      digest};
  // A stage without parameters has a digest too.
  Kokkos::parallel_reduce(label, range(exec, Kokkos::max(kernel.size, std::int64_t{1})), kernel);
}

}  // namespace carousel
