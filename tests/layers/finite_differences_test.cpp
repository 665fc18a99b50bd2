// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
// Gradients of all layers against central differences of the loss. Needs the double preset: in
// single precision the differences drown in rounding.

#include "tests/layers/every_layer.hpp"
#include "tests/layers/network.hpp"

namespace carousel {
namespace {

constexpr int n = 5;

/// max|d| / max|g| of backward's gradient and central differences at random parameters.
double difference(const Model& model) {
  const ExecutionSpace exec;
  test::Network network(model, n);
  const auto images = test::random_numbers(n * model.input.size(), "images");
  const auto labels = test::random_labels(n, model.classes);
  const auto theta = test::random_numbers(model.parameter_size(), "theta");

  const auto loss_at = [&](const std::vector<real>& parameters) {
    Kokkos::deep_copy(network.parameters(), test::to_device(parameters));
    network.set_batch(images, labels);
    network.forward(exec);
    return network.metrics().loss;
  };
  loss_at(theta);
  network.backward(exec);
  const auto gradient = test::to_host(network.gradient());

  std::vector<double> differences;
  constexpr double step = 1e-6;
  for (std::size_t k = 0; k < theta.size(); ++k) {
    auto moved = theta;
    moved[k] = theta[k] + step;
    const double above = loss_at(moved);
    moved[k] = theta[k] - step;
    differences.push_back((above - loss_at(moved)) / (2 * step));
  }
  return test::relative_difference(gradient, differences);
}

TEST(FiniteDifferences, AgreeInAPerceptron) {
  EXPECT_LE(difference(build_mlp({6, 9, 7, 4}, {6}, 4)), 1e-8);
}

TEST(FiniteDifferences, AgreeInANetworkOfEveryLayer) {
  EXPECT_LE(difference(test::every_layer()), 1e-8);
}

}  // namespace
}  // namespace carousel
