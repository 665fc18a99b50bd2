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

/// Of all outputs but those of the label, how many come before it: larger ones, and equal ones of
/// lower numbers.
int place_of(std::span<const double> outputs, int label) {
  int before = 0;
  for (int c = 0; c < std::ssize(outputs); ++c)
    if (outputs[c] > outputs[label] || (outputs[c] == outputs[label] && c < label)) ++before;
  return before;
}

}  // namespace

double loss(std::string_view name, const Arguments& arguments, std::span<const double> outputs,
            int label, bool training) {
  const auto classes = static_cast<double>(outputs.size());
  double sum = 0;
  if (name == "cross-entropy") {
    const double smoothing = training ? argument(arguments, "label_smoothing", 0) : 0;
    const double largest = *std::ranges::max_element(outputs);
    for (const double x : outputs) sum += std::exp(x - largest);
    double loss = 0;
    for (int c = 0; c < std::ssize(outputs); ++c) {
      const double target = (c == label ? 1 - smoothing : 0) + smoothing / classes;
      loss -= target * (outputs[c] - largest - std::log(sum));
    }
    return loss;
  }
  if (name == "huber") {
    const double delta = argument(arguments, "delta", 1);
    for (int c = 0; c < std::ssize(outputs); ++c) {
      const double error = std::abs(outputs[c] - (c == label ? 1 : 0));
      sum += error < delta ? error * error / 2 : delta * (error - delta / 2);
    }
    return sum / classes;
  }
  if (name == "mse") {
    for (int c = 0; c < std::ssize(outputs); ++c)
      sum += (outputs[c] - (c == label ? 1 : 0)) * (outputs[c] - (c == label ? 1 : 0));
    return sum / classes;
  }
  fail(ExitCode::internal, "tests/reference/losses.cpp does not know the loss {}", name);
}

double metric(std::string_view name, std::span<const double> outputs, int label) {
  if (name == "accuracy") return place_of(outputs, label) == 0 ? 1 : 0;
  if (name == "top5") return place_of(outputs, label) < 5 ? 1 : 0;
  fail(ExitCode::internal, "tests/reference/losses.cpp does not know the metric {}", name);
}

}  // namespace carousel::reference
