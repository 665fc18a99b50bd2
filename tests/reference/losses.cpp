// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/losses.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"

namespace carousel::reference {
namespace {

double argument(const Arguments& arguments, std::string_view name, double otherwise) {
  const auto found = std::ranges::find(arguments, name, &Argument::name);
  return found == arguments.end() ? otherwise : found->value;
}

/// Of all outputs of a pixel but that of its label, how many come before it: larger ones, and equal
/// ones of lower numbers.
int place_of_label(const Scored& sample, int p) {
  const double own = sample.output(sample.labels[p], p);
  int before = 0;
  for (int c = 0; c < sample.channels; ++c) {
    const double other = sample.output(c, p);
    if (other > own || (other == own && c < sample.labels[p])) ++before;
  }
  return before;
}

double weight_of(const Scored& sample, int c) {
  return sample.weights.empty() ? 1 : sample.weights[c];
}

double cross_entropy(const Scored& sample, int p, double smoothing) {
  double largest = sample.output(0, p);
  for (int c = 1; c < sample.channels; ++c) largest = std::max(largest, sample.output(c, p));
  double sum = 0;
  for (int c = 0; c < sample.channels; ++c) sum += std::exp(sample.output(c, p) - largest);
  double loss = 0;
  for (int c = 0; c < sample.channels; ++c) {
    const double target = sample.target(c, p) * (1 - smoothing) + smoothing / sample.channels;
    loss -= weight_of(sample, c) * target * (sample.output(c, p) - largest - std::log(sum));
  }
  return loss;
}

/// Of losses that compare one output with one target.
double compared(std::string_view name, const Arguments& arguments, double x, double y) {
  const double error = std::abs(x - y);
  if (name == "mse") return error * error;
  if (name == "mae") return error;
  if (name == "bce")
    return -(y * std::log(1 / (1 + std::exp(-x))) + (1 - y) * std::log(1 / (1 + std::exp(x))));
  if (name == "huber") {
    const double delta = argument(arguments, "delta", 1);
    return error < delta ? error * error / 2 : delta * (error - delta / 2);
  }
  fail(ExitCode::internal, "tests/reference/losses.cpp does not know the loss {}", name);
}

/// Of one class: true positives, and false ones and negatives.
double metric_of_class(std::string_view name, std::span<const Scored> samples, int c) {
  double hits = 0;
  double misses = 0;
  for (const Scored& sample : samples) {
    for (int p = 0; p < sample.pixels; ++p) {
      if (!sample.counts(0, p)) continue;
      Scored as_class = sample;
      as_class.labels[p] = c;
      const bool is_predicted = place_of_label(as_class, p) == 0;
      const bool is_label = sample.labels[p] == c;
      hits += is_predicted && is_label ? 1 : 0;
      misses += is_predicted != is_label ? 1 : 0;
    }
  }
  if (hits + misses == 0) return -1;  // it is nowhere
  return name == "f1" ? 2 * hits / (2 * hits + misses) : hits / (hits + misses);
}

double mean_of_classes(std::string_view name, std::span<const Scored> samples) {
  double sum = 0;
  double classes = 0;
  for (int c = 0; c < samples.front().channels; ++c) {
    const double value = metric_of_class(name, samples, c);
    if (value < 0) continue;
    sum += value;
    classes += 1;
  }
  return sum / classes;
}

/// What the metrics of numbers are made of.
struct Moments {
  double distance = 0;
  double square = 0;
  double sum = 0;
  double count = 0;

  void add(const Scored& sample, int c) {
    for (int p = 0; p < sample.pixels; ++p) {
      if (!sample.counts(c, p)) continue;
      const double error = sample.output(c, p) - sample.target(c, p);
      distance += std::abs(error);
      square += error * error;
      sum += sample.target(c, p);
      count += 1;
    }
  }
  /// Of targets from their mean.
  [[nodiscard]] double spread(std::span<const Scored> samples, int c) const {
    double result = 0;
    for (const Scored& sample : samples)
      for (int p = 0; p < sample.pixels; ++p)
        if (sample.counts(c, p)) result += std::pow(sample.target(c, p) - sum / count, 2);
    return result;
  }
};

double metric_of_channel(std::string_view name, std::span<const Scored> samples, int c) {
  Moments all;
  double vrmse = 0;
  double measured = 0;
  for (const Scored& sample : samples) {
    all.add(sample, c);
    Moments own;
    own.add(sample, c);
    if (own.count == 0) continue;
    const double variance = own.spread(std::span(&sample, 1), c) / own.count;
    vrmse += std::sqrt(own.square / own.count / (variance + 1e-7));
    measured += 1;
  }
  if (name == "mae") return all.distance / all.count;
  if (name == "rmse") return std::sqrt(all.square / all.count);
  if (name == "r2") return 1 - all.square / all.spread(samples, c);
  if (name == "vrmse") return vrmse / measured;
  fail(ExitCode::internal, "tests/reference/losses.cpp does not know the metric {}", name);
}

}  // namespace

bool Scored::counts(int c, int p) const {
  return has_labels() ? labels[p] != ignored : !std::isnan(numbers[c * pixels + p]);
}

LossSum loss(std::string_view name, const Arguments& arguments, const Scored& sample,
             bool training) {
  LossSum result;
  for (int p = 0; p < sample.pixels; ++p) {
    if (name == "cross-entropy") {
      if (!sample.counts(0, p)) continue;
      result.sum +=
          cross_entropy(sample, p, training ? argument(arguments, "label_smoothing", 0) : 0);
      result.count += weight_of(sample, sample.labels[p]);
      continue;
    }
    for (int c = 0; c < sample.channels; ++c) {
      if (!sample.counts(c, p)) continue;
      result.sum += compared(name, arguments, sample.output(c, p), sample.target(c, p));
      result.count += 1;
    }
  }
  return result;
}

double metric(std::string_view name, std::span<const Scored> samples) {
  if (!samples.front().has_labels()) {
    double sum = 0;
    for (int c = 0; c < samples.front().channels; ++c) sum += metric_of_channel(name, samples, c);
    return sum / samples.front().channels;
  }
  if (name == "f1" || name == "iou") return mean_of_classes(name, samples);
  double counted = 0;
  double all = 0;
  for (const Scored& sample : samples) {
    for (int p = 0; p < sample.pixels; ++p) {
      if (!sample.counts(0, p)) continue;
      all += 1;
      if (name == "accuracy")
        counted += place_of_label(sample, p) == 0 ? 1 : 0;
      else if (name == "top5")
        counted += place_of_label(sample, p) < 5 ? 1 : 0;
      else
        fail(ExitCode::internal, "tests/reference/losses.cpp does not know the metric {}", name);
    }
  }
  return counted / all;
}

}  // namespace carousel::reference
