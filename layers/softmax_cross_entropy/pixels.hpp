// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Cross entropy of many labels in a sample, of pixels or tokens: a thread takes some neighbours,
// all of whose scores of a class lie side by side.

#include "core/base/range.hpp"
#include "layers/exponential.hpp"
#include "layers/softmax_cross_entropy/class_weights.hpp"
#include "layers/stored.hpp"
#include "layers/targets.hpp"

namespace carousel::kernels {

/// Pixels that a thread takes together: a host as many as fill vector registers a few times.
inline constexpr int pixels_together = runs_on_host ? 64 : 1;

/// Of all pixels of a micro-batch, in whole pieces of each sample.
struct PixelPieces {
  std::int64_t pixels;

  [[nodiscard]] KOKKOS_FUNCTION std::int64_t of_sample() const {
    return (pixels + pixels_together - 1) / pixels_together;
  }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t sample(std::int64_t piece) const {
    return piece / of_sample();
  }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t first(std::int64_t piece) const {
    return piece % of_sample() * pixels_together;
  }
  [[nodiscard]] KOKKOS_FUNCTION int count(std::int64_t piece) const {
    return static_cast<int>(Kokkos::min(std::int64_t{pixels_together}, pixels - first(piece)));
  }
};

/// What forward leaves to backward: the largest score of a pixel, and one over the sum of what e to
/// the others, less that, is.
struct PixelSums {
  real* largest;  // [n, pixels]
  real* inverse;  // [n, pixels]

  PixelSums(void* saved, std::int64_t all)
      : largest(static_cast<real*>(saved)), inverse(largest + all) {}
};

/// Minus the logarithm of a label's probability, of each label; 0 of those that count for nothing.
template <class Stored>
struct PixelLosses {
  Targets targets;
  const Stored* scores;  // [n, classes, pixels]
  double smoothing;
  ClassWeights weights;
  PixelSums sums;
  double* losses;  // [n, pixels]

  KOKKOS_FUNCTION void operator()(std::int64_t piece) const {
    const PixelPieces pieces{targets.pixels};
    const std::int64_t i = pieces.sample(piece);
    const std::int64_t first = pieces.first(piece);
    const int count = pieces.count(piece);
    const int classes = targets.channels;
    const Stored* const x = scores + i * targets.outputs() + first;
    real top[pixels_together];
    double total[pixels_together] = {};
    double below[pixels_together] = {};  // how far scores are below the largest, by their weights
    for (int t = 0; t < count; ++t) top[t] = full(x[t]);
    for (int c = 1; c < classes; ++c) {
      const Stored* const row = x + c * targets.pixels;
      for (int t = 0; t < count; ++t) {
        const real value = full(row[t]);
        top[t] = value > top[t] ? value : top[t];
      }
    }
    for (int c = 0; c < classes; ++c) {
      const Stored* const row = x + c * targets.pixels;
      for (int t = 0; t < count; ++t)
        total[t] += static_cast<double>(detail::exponential(full(row[t]) - top[t]));
    }
    for (int c = 0; c < classes && smoothing > 0; ++c) {
      const Stored* const row = x + c * targets.pixels;
      for (int t = 0; t < count; ++t)
        below[t] += weights[c] * (static_cast<double>(top[t]) - full(row[t]));
    }
    const std::int64_t at = i * targets.pixels + first;
    for (int t = 0; t < count; ++t) {
      sums.largest[at + t] = top[t];
      sums.inverse[at + t] = static_cast<real>(1 / total[t]);
      const int label = targets.label(i, first + t);
      losses[at + t] = 0;
      if (label == targets.ignored) continue;
      const double at_label = full(x[label * targets.pixels + t]);
      losses[at + t] = loss(Kokkos::log(total[t]), at_label - static_cast<double>(top[t]),
                            below[t] / classes, label);
    }
  }

 private:
  /// -sum of target_c log p_c, with log p_c = x_c - top - log(total)
  [[nodiscard]] KOKKOS_FUNCTION double loss(double of_all, double at_label, double below,
                                            int label) const {
    if (!weights.differ) return of_all - (1 - smoothing) * at_label + smoothing * below;
    return (1 - smoothing) * weights[label] * (of_all - at_label) +
           smoothing * (weights.sum / targets.channels * of_all + below);
  }
};

/// The losses of a sample as reports add them.
struct AddedPixels {
  Targets targets;
  ClassWeights weights;
  const double* losses;  // [n, pixels]

  /// The mean over the pixels of one sample.
  template <class Team>
  KOKKOS_FUNCTION double operator()(const Team& /*team*/, int i) const {
    double sum = 0;
    for (std::int64_t p = 0; p < targets.pixels; ++p) sum += losses[i * targets.pixels + p];
    return sum / static_cast<double>(targets.pixels);
  }
  /// Of those whose label counts, the sum and what they count for.
  template <class Team, class Sums>
  KOKKOS_FUNCTION void operator()(const Team& /*team*/, int i, Sums& sums) const {
    for (std::int64_t p = 0; p < targets.pixels; ++p) {
      if (targets.label(i, p) == targets.ignored) continue;
      sums.of[0] += losses[i * targets.pixels + p];
      sums.of[1] += weights[targets.label(i, p)];
    }
  }
};

/// The target of a label: what all classes have of it, and the label besides.
struct LabelShares {
  double everywhere;
  double at_label;
};

/// d = (probabilities - target) / count, which may take the place of the scores; with weights, the
/// target adds up to more or less than 1, and so do the probabilities. Where gradients are rounded,
/// the entry of the label is minus the sum of the others.
template <class Stored>
struct PixelGradients {
  Targets targets;
  const double* weight;  // of all labels; null where all count alike
  real count;            // labels, where all count
  const Stored* scores;  // [n, classes, pixels]
  Stored* d_scores;      // [n, classes, pixels]
  LabelShares shares;
  ClassWeights weights;
  PixelSums sums;

  KOKKOS_FUNCTION void operator()(std::int64_t piece) const {
    constexpr bool rounds = !std::is_same_v<Stored, real>;
    const PixelPieces pieces{targets.pixels};
    const std::int64_t i = pieces.sample(piece);
    const std::int64_t first = pieces.first(piece);
    const int pixels = pieces.count(piece);
    const Stored* const x = scores + i * targets.outputs() + first;
    Stored* const d = d_scores + i * targets.outputs() + first;
    const real n = weight == nullptr ? count : static_cast<real>(*weight);
    real top[pixels_together];
    real inverse[pixels_together];
    int label[pixels_together];
    bool counts[pixels_together];
    real of_label[pixels_together];  // the target of the label, above that of all
    real scale[pixels_together];     // that targets add up to
    double others[pixels_together] = {};
    for (int t = 0; t < pixels; ++t) {
      const std::int64_t at = i * targets.pixels + first + t;
      label[t] = targets.label(i, first + t);
      counts[t] = label[t] != targets.ignored && (weight == nullptr || *weight != 0);
      top[t] = sums.largest[at];
      inverse[t] = sums.inverse[at];
      const double own =
          (counts[t] ? weights[label[t]] : 1.0) * (shares.at_label - shares.everywhere);
      of_label[t] = static_cast<real>(own);
      scale[t] =
          weights.differ ? static_cast<real>(own + shares.everywhere * weights.sum) : real(1);
    }
    for (int c = 0; c < targets.channels; ++c) {
      const Stored* const row = x + c * targets.pixels;
      Stored* const to = d + c * targets.pixels;
      const auto everywhere = static_cast<real>(shares.everywhere * weights[c]);
      real share[pixels_together];  // rounded, before anything is taken off
      for (int t = 0; t < pixels; ++t)
        share[t] = detail::exponential(full(row[t]) - top[t]) * inverse[t];
      for (int t = 0; t < pixels; ++t) {
        const bool is_label = label[t] == c;
        const real target = is_label ? everywhere + of_label[t] : everywhere;
        const real gradient = share[t] * scale[t] - target;
        if constexpr (rounds) others[t] += is_label ? 0.0 : static_cast<double>(gradient);
        put(to[t], counts[t] ? gradient / n : real(0));
      }
    }
    for (int t = 0; t < pixels && rounds; ++t)
      if (counts[t]) put(d[label[t] * targets.pixels + t], static_cast<real>(-others[t]) / n);
  }
};

}  // namespace carousel::kernels
