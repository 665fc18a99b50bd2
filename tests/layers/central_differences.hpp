// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The gradient of a network beside central differences of its loss. It judges nothing: how close
// the two are depends on the precision.

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/layers/network.hpp"

namespace carousel::test {

/// A network with random parameters and a random batch.
class Measured {
 public:
  Measured(const Model& model, int n, const LayerFactory& layers = make_layer)
      : network_(model, n, layers),
        images_(random_numbers(n * model.input.size(), "images")),
        labels_(random_labels(n, model.target.classes)),
        theta_(random_numbers(model.parameter_size(), "theta")) {
    (void)loss_at(theta_);
    network_.backward(exec_);
    gradient_ = to_host(network_.gradient());
  }

  [[nodiscard]] const std::vector<real>& gradient() const { return gradient_; }

  /// The central difference of the loss along the parameters from `begin` on.
  [[nodiscard]] double difference(std::size_t begin, const std::vector<real>& direction,
                                  double step) {
    const auto moved = [&](double by) {
      std::vector<real> theta = theta_;
      for (std::size_t k = 0; k < direction.size(); ++k)
        theta[begin + k] = static_cast<real>(theta[begin + k] + by * direction[k]);
      return theta;
    };
    const double above = loss_at(moved(step));
    return (above - loss_at(moved(-step))) / (2 * step);
  }

 private:
  double loss_at(const std::vector<real>& parameters) {
    Kokkos::deep_copy(network_.parameters(), to_device(parameters));
    network_.set_batch(images_, labels_);
    network_.forward(exec_);
    return network_.loss();
  }

  ExecutionSpace exec_;
  Network network_;
  std::vector<real> images_;
  std::vector<int> labels_;
  std::vector<real> theta_;
  std::vector<real> gradient_;
};

/// max|d| / max|g| of backward's gradient and central differences at random parameters.
[[nodiscard]] inline double difference(const Model& model, int n, double step,
                                       const LayerFactory& layers = make_layer) {
  Measured measured(model, n, layers);
  std::vector<double> differences;
  for (std::size_t k = 0; k < measured.gradient().size(); ++k)
    differences.push_back(measured.difference(k, {1}, step));
  return relative_difference(measured.gradient(), differences);
}

/// The same along one random direction for each parameter tensor, relative to the sum of the sizes
/// of its terms: the largest.
[[nodiscard]] inline double directional_difference(const Model& model, int n, double step) {
  Measured measured(model, n);
  double largest = 0;
  std::size_t begin = 0;
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      const std::vector<real> direction = random_numbers(parameter.size(), parameter.name);
      double along = 0;
      double size = 1e-9;
      for (std::size_t k = 0; k < direction.size(); ++k) {
        const double term = double{measured.gradient()[begin + k]} * direction[k];
        along += term;
        size += std::abs(term);
      }
      const double difference = measured.difference(begin, direction, step);
      largest = std::max(largest, std::abs(along - difference) / size);
      begin += direction.size();
    }
  }
  return largest;
}

}  // namespace carousel::test
