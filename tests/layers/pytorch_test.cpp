// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
// A multi-layer perceptron against the values PyTorch computed (tests/reference/make_fixtures.py).

#include "core/train/update.hpp"
#include "tests/layers/network.hpp"
#include "tests/reference/fixtures.hpp"
#include "tests/reference/initial_state.hpp"

namespace carousel {
namespace {

class PyTorch : public testing::Test {
 protected:
  PyTorch()
      : fixture_(reference::fixture("mlp")),
        widths_(fixture_.at("widths").get<std::vector<int>>()),
        n_(fixture_.at("samples")),
        model_(build_mlp(widths_, {widths_.front()}, widths_.back())),
        network_(model_, n_) {
    const reference::State initial = reference::initial_state(model_, fixture_.at("seed"));
    Kokkos::deep_copy(network_.parameters(), test::to_device(initial.parameters));
  }

  void set_batch(test::Network& network, int step) {
    network.set_batch(test::random_numbers(std::size_t(n_) * widths_.front(), "images", step),
                      test::random_labels(n_, widths_.back(), step));
  }

  /// The tensors of `name` in the fixture, in the order of the model's parameters.
  [[nodiscard]] std::vector<double> tensors(const char* name) const {
    std::vector<double> all;
    for (const LayerSpec& layer : model_.layers) {
      for (const ParameterSpec& parameter : layer.parameters) {
        const auto values = fixture_.at(name).at(parameter.name).get<std::vector<double>>();
        all.insert(all.end(), values.begin(), values.end());
      }
    }
    return all;
  }

  nlohmann::json fixture_;
  std::vector<int> widths_;
  int n_;
  Model model_;
  test::Network network_;
  ExecutionSpace exec_;
};

TEST_F(PyTorch, LogitsLossAndGradients) {
  test::Network logits(test::without_loss(model_), n_);
  Kokkos::deep_copy(logits.parameters(), network_.parameters());
  set_batch(logits, 0);
  logits.forward(exec_);
  EXPECT_LE(
      test::relative_difference(logits.output(), fixture_.at("logits").get<std::vector<double>>()),
      test::rounding);
  set_batch(network_, 0);
  network_.forward(exec_);
  EXPECT_NEAR(network_.loss(), fixture_.at("losses").at(0).get<double>(), test::rounding);
  network_.backward(exec_);
  EXPECT_LE(test::relative_difference(test::to_host(network_.gradient()), tensors("gradients")),
            test::rounding);
}

TEST_F(PyTorch, TenUpdates) {
  const std::size_t size = network_.parameters().size();
  const test::Device<real> momentum("carousel::test::momentum", size);
  const test::Device<std::uint64_t> digest("carousel::test::digest", 1);
  const OptimizerConfig optimizer = {
      .kind = Sgd{.momentum = fixture_.at("momentum"), .nesterov = fixture_.at("nesterov")},
      .weight_decay = fixture_.at("weight_decay")};
  for (int t = 0; t < fixture_.at("steps"); ++t) {
    set_batch(network_, t);
    network_.forward(exec_);
    EXPECT_NEAR(network_.loss(), fixture_.at("losses").at(t).get<double>(), 20 * test::rounding);
    network_.backward(exec_);
    update(exec_, {optimizer, fixture_.at("lr"), t}, network_.memory(),
           {.size = network_.memory().parameter_size,
            .theta = network_.parameters().data(),
            .gradient_sum = network_.gradient().data(),
            .states = momentum.data(),
            .next = network_.parameters().data(),
            .digest = digest.data()});
  }
  EXPECT_LE(test::relative_difference(test::to_host(network_.parameters()), tensors("parameters")),
            20 * test::rounding);
}

}  // namespace
}  // namespace carousel
