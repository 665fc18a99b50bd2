// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// All layers of a model one after the other on one micro-batch, for tests of kernels. It has
// neither stages nor versions; the executor's tests are elsewhere.

#include <memory>
#include <vector>

#include "layers/factory.hpp"
#include "tests/layers/device.hpp"

namespace carousel::test {

class Chain {
 public:
  Chain(const Model& model, int n) : model_(model), n_(n), metrics_("carousel::test::metrics", 1) {
    for (const LayerSpec& layer : model.layers) {
      layers_.push_back(make_layer(layer));
      if (activations_.empty() || !layer.in_place)
        activations_.push_back(buffer(activations_.empty() ? layer.input : layer.output));
      if (gradients_.empty() || !layer.in_place)
        gradients_.push_back(buffer(gradients_.empty() ? layer.input : layer.output));
    }
    parameters_ = Device<real>("carousel::test::parameters", model.parameter_size());
    gradient_ = Device<real>("carousel::test::gradient", model.parameter_size());
    labels_ = Device<int>("carousel::test::labels", n);
  }

  [[nodiscard]] const Device<real>& parameters() const { return parameters_; }
  [[nodiscard]] const Device<real>& gradient() const { return gradient_; }
  /// Logits before, probabilities after the loss.
  [[nodiscard]] const Device<real>& scores() const { return activations_.back(); }
  [[nodiscard]] Metrics metrics() const { return to_host(metrics_)[0]; }

  void set_batch(const Numbers& images, const std::vector<int>& labels) {
    Kokkos::deep_copy(activations_.front(), to_device(images));
    Kokkos::deep_copy(labels_, to_device(labels));
  }

  /// Runs the first `count` layers.
  void forward(const ExecutionSpace& exec, std::size_t count) {
    std::size_t at = 0;  // of the buffer that the next layer reads
    std::int64_t parameter = 0;
    for (std::size_t l = 0; l < count; ++l) {
      const LayerSpec& spec = model_.layers[l];
      const std::size_t to = spec.in_place ? at : at + 1;
      layers_[l]->forward(exec, {.input = {activations_[at].data(), n_, spec.input},
                                 .output = {activations_[to].data(), n_, spec.output},
                                 .parameters = parameters_.data() + parameter,
                                 .labels = labels_.data(),
                                 .metrics = metrics_.data()});
      at = to;
      parameter += spec.parameter_size();
    }
  }

  void backward(const ExecutionSpace& exec) {
    std::size_t at = activations_.size() - 1;  // of the buffer that holds the layer's output
    std::int64_t parameter = model_.parameter_size();
    for (std::size_t l = model_.layers.size(); l-- > 0;) {
      const LayerSpec& spec = model_.layers[l];
      const std::size_t from = spec.in_place ? at : at - 1;
      parameter -= spec.parameter_size();
      const bool loss = l + 1 == model_.layers.size();
      layers_[l]->backward(
          exec, {.input = {activations_[from].data(), n_, spec.input},
                 .output = {activations_[at].data(), n_, spec.output},
                 .d_output = {loss ? nullptr : gradients_[at].data(), n_, spec.output},
                 .d_input = {from == 0 ? nullptr : gradients_[from].data(), n_, spec.input},
                 .parameters = parameters_.data() + parameter,
                 .d_parameters = gradient_.data() + parameter,
                 .labels = labels_.data()});
      at = from;
    }
  }

 private:
  [[nodiscard]] Device<real> buffer(const SampleShape& shape) const {
    return Device<real>("carousel::test::activation", n_ * shape.size());
  }

  Model model_;
  int n_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<Device<real>> activations_;
  std::vector<Device<real>> gradients_;
  Device<real> parameters_;
  Device<real> gradient_;
  Device<int> labels_;
  Device<Metrics> metrics_;
};

}  // namespace carousel::test
