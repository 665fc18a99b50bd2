// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A network trained step by step as tests/reference/make_network_fixtures.py does it in
// PyTorch, from the same weights, images and labels. It compares nothing.

#include "core/model/kernels.hpp"
#include "core/train/update.hpp"
#include "layers/vendor/vendor.hpp"
#include "tests/layers/network.hpp"
#include "tests/reference/fixtures.hpp"
#include "tests/reference/initial_state.hpp"

namespace carousel::test {

/// Calls visit(parameter, values) for every parameter, or every buffer, of a flat vector of all.
template <class Visit>
void for_each_tensor(const Model& model, std::vector<ParameterSpec> LayerSpec::*tensors,
                     const Numbers& flat, const Visit& visit) {
  std::span<const real> rest(flat);
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& tensor : layer.*tensors) {
      visit(tensor, rest.first(tensor.size()));
      rest = rest.subspan(tensor.size());
    }
  }
  EXPECT_TRUE(rest.empty());
}

[[nodiscard]] inline Optimizer optimizer_of(const nlohmann::json& fixture) {
  if (fixture.value("optimizer", "sgd") == "adamw")
    return AdamW{.epsilon = fixture.value("eps", AdamW{}.epsilon)};
  return Sgd{.momentum = fixture.value("momentum", 0.0)};
}

class NetworkTraining {
 public:
  explicit NetworkTraining(const nlohmann::json& fixture, const KernelChoice& kernels = {})
      : n_(fixture.at("samples")),
        stream_(fixture.at("stream")),
        step_{.config = {.kind = optimizer_of(fixture), .weight_decay = fixture.at("weight_decay")},
              .learning_rate = fixture.at("lr")},
        model_(model_of(fixture)),
        computed_(choose_kernels(model_, kernels)),
        vendor_(kernels.vendor == VendorKernels::none ? nullptr : vendor::make_handles(exec_)),
        network_(computed_, n_, make_layer, vendor_),
        states_("carousel::test::states", 2 * model_.parameter_size()),
        digest_("carousel::test::digest", 1) {
    reference::State initial = reference::initial_state(model_, fixture.at("seed"));
    shift(fixture.at("norm_bias"), initial.parameters);
    Kokkos::deep_copy(network_.parameters(), to_device(initial.parameters));
    Kokkos::deep_copy(network_.buffers(), to_device(initial.buffers));
  }

  /// The logits of the first micro-batch; nothing is learned.
  [[nodiscard]] Numbers first_logits() {
    Network logits(without_loss(computed_), n_, make_layer, vendor_);
    Kokkos::deep_copy(logits.parameters(), network_.parameters());
    set_batch(logits, 0);
    logits.forward(exec_);
    return logits.output();
  }

  /// Forward, backward and update number `t`.
  void step(int t) {
    set_batch(network_, t);
    network_.forward(exec_);
    network_.backward(exec_);
    update(exec_, step_, network_.memory(),
           {.size = network_.memory().parameter_size,
            .theta = network_.parameters().data(),
            .gradient_sum = network_.gradient().data(),
            .states = states_.data(),
            .next = network_.parameters().data(),
            .digest = digest_.data()});
    update_statistics(exec_, network_.memory().statistics,
                      {.running = network_.buffers().data(),
                       .batch_sums = network_.statistics().data(),
                       .next = network_.buffers().data()});
    ++step_.number;
  }

  /// As it is described, whatever kernels compute it.
  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] double loss() const { return network_.loss(); }
  [[nodiscard]] Numbers gradient() const { return to_host(network_.gradient()); }
  [[nodiscard]] Numbers parameters() const { return to_host(network_.parameters()); }
  [[nodiscard]] Numbers buffers() const { return to_host(network_.buffers()); }

 private:
  static Model model_of(const nlohmann::json& fixture) {
    const SampleShape image = {3, fixture.at("image"), fixture.at("image")};
    if (fixture.contains("stem"))
      return build_resnet(fixture.at("depth"),
                          fixture.at("stem") == "cifar" ? Stem::cifar : Stem::imagenet, image,
                          fixture.at("classes").get<int>());
    Model model = build_vit({.depth = fixture.at("depth"),
                             .patch = fixture.at("patch"),
                             .width = fixture.at("width"),
                             .heads = fixture.at("heads"),
                             .mlp = fixture.at("mlp")},
                            image, fixture.at("classes").get<int>());
    // Zeros would stop all gradients of the first step.
    LayerSpec& head = model.layers[model.layers.size() - 2];
    head.parameters.front().initial = lecun_uniform(head.input().channels);
    return model;
  }

  /// Puts a number, of every other channel its negative, in place of the zeros that biases of batch
  /// norm start from.
  void shift(real bias, Numbers& parameters) const {
    std::int64_t at = 0;
    for (const LayerSpec& layer : model_.layers) {
      at += layer.parameter_size();
      if (!layer.is("batch_norm")) continue;
      const std::int64_t first = at - layer.input().channels;
      for (std::int64_t c = 0; first + c < at; ++c)
        parameters[first + c] = c % 2 == 0 ? bias : -bias;
    }
  }

  void set_batch(Network& network, int t) const {
    network.set_batch(random_numbers(n_ * model_.input.size(), "images", stream_ + t),
                      random_labels(n_, model_.target.classes, t));
  }

  int n_;
  std::uint64_t stream_;
  OptimizerStep step_;
  Model model_;
  Model computed_;
  ExecutionSpace exec_;
  std::shared_ptr<VendorHandles> vendor_;
  Network network_;
  Device<real> states_;
  Device<std::uint64_t> digest_;
};

}  // namespace carousel::test
