// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/base/check.hpp"
#include "core/train/updates/by_number.hpp"
#include "core/train/updates/moments.hpp"

namespace carousel {
namespace {

/// Where a parameter goes: the corrected mean over the corrected root, and its decay.
struct Direction {
  Moments moments;
  real correction;  // of the mean, by which it is multiplied
  real decay;

  [[nodiscard]] KOKKOS_FUNCTION real of(real ratio, real parameter) const {
    return Kokkos::fma(decay, parameter, correction * ratio);
  }
};

/// Moves the means of a tensor, and adds up squares of its numbers and of their directions, block
/// by block, so that the sums depend on no threads: [blocks][2].
struct Measure {
  Direction direction;
  UpdateVectors vectors;
  std::int64_t begin;
  std::int64_t end;
  double* sums;

  KOKKOS_FUNCTION void operator()(std::int64_t k) const {
    const real clip = vectors.clip == nullptr ? 1 : *vectors.clip;
    const std::int64_t first = begin + k * norm_block;
    const std::int64_t last = Kokkos::min(first + norm_block, end);
    double parameters = 0;
    double directions = 0;
    for (std::int64_t i = first; i < last; ++i) {
      const real theta = vectors.theta[i];
      const real gradient = vectors.scale * vectors.gradient_sum[i] * clip;
      const auto u = static_cast<double>(direction.of(direction.moments.move(i, gradient), theta));
      parameters += static_cast<double>(theta) * static_cast<double>(theta);
      directions += u * u;
    }
    sums[2 * k] = parameters;
    sums[2 * k + 1] = directions;
  }
};

void measure(const ExecutionSpace& exec, std::int64_t blocks, const Measure& measure) {
  static const std::string label = "carousel::train::lamb_measure";
  Kokkos::parallel_for(label, pieces(exec, blocks), measure);
}

/// The rate of a tensor: times the length of the parameter over that of its direction, where
/// neither is 0.
void find_rate(const ExecutionSpace& exec, const double* sums, std::int64_t blocks, double rate,
               double* scaled) {
  static const std::string label = "carousel::train::lamb_rate";
  Kokkos::parallel_for(
      label, range(exec, 1), KOKKOS_LAMBDA(int) {
        double parameters = 0;
        double directions = 0;
        for (std::int64_t k = 0; k < blocks; ++k) {
          parameters += sums[2 * k];
          directions += sums[2 * k + 1];
        }
        const bool both = parameters > 0 && directions > 0;
        *scaled = both ? rate * Kokkos::sqrt(parameters / directions) : rate;
      });
}

struct LambStep {
  Direction direction;
  const double* rate;

  [[nodiscard]] KOKKOS_FUNCTION real operator()(std::int64_t i, real parameter,
                                                real /*gradient*/) const {
    const real u = direction.of(direction.moments.ratio(i), parameter);
    return Kokkos::fma(static_cast<real>(-*rate), u, parameter);
  }
};

}  // namespace

void Lamb::update(const StageUpdate& update) const {
  static const std::string label = "carousel::train::lamb_update";
  const OptimizerConfig& config = update.step.config;
  CAROUSEL_CHECK(update.vectors.size == update.stage.parameter_size, "lamb has {} of {} parameters",
                 update.vectors.size, update.stage.parameter_size);
  const Moments moments(beta1, beta2, epsilon, update);
  const auto correction = static_cast<real>(1 / mean_correction(beta1, update));
  auto* const sums = reinterpret_cast<double*>(update.vectors.workspace.data());
  if (update.stage.tensors.empty())  // a digest all the same
    update_numbers(label, update, LambStep{{moments, correction, 0}, nullptr}, 0, 0);
  for (const ParameterRange& tensor : update.stage.tensors) {
    const bool decays = config.decay_norm_and_bias || !tensor.per_feature;
    const Direction direction{moments, correction,
                              static_cast<real>(decays ? config.weight_decay : 0)};
    const std::int64_t blocks = norm_blocks(tensor.end - tensor.begin);
    double* const rate = sums + 2 * blocks;
    measure(update.exec, blocks,
            Measure{direction, update.vectors, tensor.begin, tensor.end, sums});
    find_rate(update.exec, sums, blocks, update.step.learning_rate, rate);
    update_numbers(label, update, LambStep{direction, rate}, tensor.begin, tensor.end);
  }
}

}  // namespace carousel
