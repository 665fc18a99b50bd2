// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The gradient of a network beside central differences of its loss. It judges nothing: how close
// the two are depends on the precision.

#include <vector>

#include "tests/layers/network.hpp"

namespace carousel::test {

/// max|d| / max|g| of backward's gradient and central differences at random parameters.
[[nodiscard]] inline double difference(const Model& model, int n, double step,
                                       const LayerFactory& layers = make_layer) {
  const ExecutionSpace exec;
  Network network(model, n, layers);
  const auto images = random_numbers(n * model.input.size(), "images");
  const auto labels = random_labels(n, model.classes);
  const auto theta = random_numbers(model.parameter_size(), "theta");

  const auto loss_at = [&](const std::vector<real>& parameters) {
    Kokkos::deep_copy(network.parameters(), to_device(parameters));
    network.set_batch(images, labels);
    network.forward(exec);
    return network.loss();
  };
  loss_at(theta);
  network.backward(exec);
  const auto gradient = to_host(network.gradient());

  std::vector<double> differences;
  for (std::size_t k = 0; k < theta.size(); ++k) {
    auto moved = theta;
    moved[k] = static_cast<real>(theta[k] + step);
    const double above = loss_at(moved);
    moved[k] = static_cast<real>(theta[k] - step);
    differences.push_back((above - loss_at(moved)) / (2 * step));
  }
  return relative_difference(gradient, differences);
}

}  // namespace carousel::test
