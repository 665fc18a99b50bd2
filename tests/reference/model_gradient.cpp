// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/model_gradient.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"
#include "layers/attention/op.hpp"
#include "layers/average_pool/op.hpp"
#include "layers/convolution/op.hpp"
#include "layers/max_pool/op.hpp"
#include "layers/patch_embedding/op.hpp"
#include "layers/softmax_cross_entropy/op.hpp"
#include "tests/reference/image_layers.hpp"
#include "tests/reference/token_layers.hpp"

namespace carousel::reference {
namespace {

/// The weight of a layer, and the bias where there is one.
struct LayerParameters {
  Numbers weight;
  Numbers bias;
};

class Walk {
 public:
  Walk(const Model& model, const Numbers& parameters, const MicroBatch& batch)
      : model_(model),
        parameters_(parameters),
        batch_(batch),
        n_(static_cast<int>(batch.labels.size())),
        d_outputs_(model.layers.size()) {}

  ModelGradient run() {
    const int layers = static_cast<int>(model_.layers.size());
    std::int64_t at = 0;
    for (int l = 0; l < layers; ++l) {
      parameters_at_.push_back(at);
      at += model_.layers[l].parameter_size();
      outputs_.push_back(forward(l));
    }
    result_.gradient.resize(parameters_.size());
    for (int l = layers; l-- > 0;) backward(l);
    return result_;
  }

 private:
  /// The first or second input of a layer.
  [[nodiscard]] const Numbers& input(int l, int i = 0) const {
    const int from = model_.layers[l].inputs.at(i).layer;
    return from < 0 ? batch_.images : outputs_[from];
  }
  /// A linear layer of tokens is a convolution of pixels.
  [[nodiscard]] static bool is_of_tokens(const LayerSpec& layer) {
    return layer.input().height > 1;
  }

  /// The windows of patches leave one token less than the layer.
  [[nodiscard]] Windows windows(const LayerSpec& layer) const {
    if (layer.is("patch_embedding")) {
      const Window& patch = layer.as<op::PatchEmbedding>().window;
      return {n_,
              layer.input(),
              {layer.output.channels, layer.input().height / patch.kernel,
               layer.input().width / patch.kernel},
              patch};
    }
    Window window;
    if (layer.is("convolution")) window = layer.as<op::Convolution>().window;
    if (layer.is("max_pool")) window = layer.as<op::MaxPool>().window;
    if (layer.is("average_pool")) window = layer.as<op::AveragePool>().window;
    return {n_, layer.input(), layer.output, window};
  }

  [[nodiscard]] LayerParameters parameters_of(int l) const {
    const std::vector<ParameterSpec>& specs = model_.layers[l].parameters;
    const auto begin = parameters_.begin() + parameters_at_[l];
    const auto middle = begin + specs.at(0).size();
    const auto end = specs.size() > 1 ? middle + specs[1].size() : middle;
    return {{begin, middle}, {middle, end}};
  }

  struct PatchParameters {
    Numbers class_token, weight, bias, positions;
  };
  [[nodiscard]] PatchParameters patch_parameters_of(int l) const {
    auto next = parameters_.begin() + parameters_at_[l];
    const auto take = [&](const ParameterSpec& spec) {
      const auto begin = next;
      next += spec.size();
      return Numbers(begin, next);
    };
    const std::vector<ParameterSpec>& specs = model_.layers[l].parameters;
    PatchParameters parameters;
    parameters.class_token = take(specs.at(0));
    parameters.weight = take(specs.at(1));
    parameters.bias = take(specs.at(2));
    parameters.positions = take(specs.at(3));
    return parameters;
  }

  void note_margin(const Numbers& x) {
    const auto magnitude = [](real value) { return std::abs(static_cast<double>(value)); };
    const auto [least, most] = std::ranges::minmax(x, {}, magnitude);
    if (most != 0) result_.margin = std::min(result_.margin, magnitude(least) / magnitude(most));
  }

  Numbers forward(int l) {
    const LayerSpec& layer = model_.layers[l];
    const Numbers& x = input(l);
    if (layer.is("flatten")) {
      return x;
    }
    if (layer.is("linear")) {
      const auto [w, b] = parameters_of(l);
      return is_of_tokens(layer) ? convolution(windows(layer), x, w, b) : linear(x, w, b, n_);
    }
    if (layer.is("patch_embedding")) {
      const PatchParameters parameters = patch_parameters_of(l);
      return with_positions(n_, layer.output,
                            convolution(windows(layer), x, parameters.weight, parameters.bias),
                            parameters.class_token, parameters.positions);
    }
    if (layer.is("layer_norm")) {
      const auto [w, b] = parameters_of(l);
      return layer_norm(n_, layer.input(), x, w, b);
    }
    if (layer.is("gelu")) {
      return gelu(x);
    }
    if (layer.is("attention")) {
      return attention(n_, layer.output, layer.as<op::Attention>(), x);
    }
    if (layer.is("first_token")) {
      return first_token(n_, layer.input(), x);
    }
    if (layer.is("relu")) {
      note_margin(x);
      return relu(x);
    }
    if (layer.is("convolution")) {
      const auto [w, b] = parameters_of(l);
      return convolution(windows(layer), x, w, b);
    }
    if (layer.is("batch_norm")) {
      const auto [w, b] = parameters_of(l);
      const Statistics of_x = statistics(n_, layer.input(), x);
      Numbers& all = result_.statistics;
      all.insert(all.end(), of_x.mean.begin(), of_x.mean.end());
      all.insert(all.end(), of_x.unbiased.begin(), of_x.unbiased.end());
      return batch_norm(n_, layer.input(), x, of_x, w, b);
    }
    if (layer.is("max_pool")) {
      return max_pool(windows(layer), x);
    }
    if (layer.is("average_pool")) {
      return average_pool(windows(layer), x);
    }
    if (layer.is("add")) {
      return add(x, input(l, 1));
    }
    if (layer.is("softmax_cross_entropy")) {
      Loss loss =
          softmax_cross_entropy(x, batch_.labels, layer.as<op::SoftmaxCrossEntropy>().smoothing);
      result_.logits = x;
      result_.loss = loss.mean;
      return loss.probabilities;
    }
    fail(ExitCode::internal, "the oracle does not know the layer {}", layer.label());
  }

  /// Adds to the gradient of an input.
  void give(int l, const Numbers& gradient, int i = 0) {
    const int to = model_.layers[l].inputs.at(i).layer;
    if (to < 0) return;
    d_outputs_[to] = d_outputs_[to].empty() ? gradient : add(d_outputs_[to], gradient);
  }
  void learn(int l, const Numbers& d_w, const Numbers& d_b) {
    const auto at = result_.gradient.begin() + parameters_at_[l];
    const auto middle = std::copy(d_w.begin(), d_w.end(), at);
    if (model_.layers[l].parameters.size() > 1) std::copy(d_b.begin(), d_b.end(), middle);
  }

  void learn_patches(int l) {
    const LayerSpec& layer = model_.layers[l];
    const PositionGradients of_positions = position_gradients(n_, layer.output, d_outputs_[l]);
    const ConvolutionGradients gradients = convolution_gradients(
        windows(layer), input(l), patch_parameters_of(l).weight, of_positions.d_patches);
    auto at = result_.gradient.begin() + parameters_at_[l];
    for (const Numbers* part :
         {&of_positions.d_class_token, &gradients.d_w, &gradients.d_b, &of_positions.d_positions})
      at = std::ranges::copy(*part, at).out;
  }

  void backward(int l) {
    const LayerSpec& layer = model_.layers[l];
    const Numbers& x = input(l);
    const Numbers& d = d_outputs_[l];
    if (layer.is("flatten")) {
      return give(l, d);
    }
    if (layer.is("patch_embedding")) {
      return learn_patches(l);
    }
    if (layer.is("layer_norm")) {
      const LayerNormGradients gradients =
          layer_norm_gradients(n_, layer.input(), x, parameters_of(l).weight, d);
      learn(l, gradients.d_w, gradients.d_b);
      return give(l, gradients.d_x);
    }
    if (layer.is("gelu")) {
      return give(l, gelu_gradient(x, d));
    }
    if (layer.is("attention")) {
      return give(l, attention_gradient(n_, layer.output, layer.as<op::Attention>(), x, d));
    }
    if (layer.is("first_token")) {
      return give(l, first_token_gradient(n_, layer.input(), d));
    }
    if (layer.is("linear") && !is_of_tokens(layer)) {
      const LinearGradients gradients = linear_gradients(x, parameters_of(l).weight, d, n_);
      learn(l, gradients.d_w, gradients.d_b);
      return give(l, gradients.d_x);
    }
    if (layer.is("relu")) {
      return give(l, relu_gradient(outputs_[l], d));
    }
    if (layer.is("convolution") || layer.is("linear")) {
      const ConvolutionGradients gradients =
          convolution_gradients(windows(layer), x, parameters_of(l).weight, d);
      learn(l, gradients.d_w, gradients.d_b);
      return give(l, gradients.d_x);
    }
    if (layer.is("batch_norm")) {
      const BatchNormGradients gradients =
          batch_norm_gradients(n_, layer.input(), x, parameters_of(l).weight, d);
      learn(l, gradients.d_w, gradients.d_b);
      return give(l, gradients.d_x);
    }
    if (layer.is("max_pool")) {
      return give(l, max_pool_gradient(windows(layer), x, d));
    }
    if (layer.is("average_pool")) {
      return give(l, average_pool_gradient(windows(layer), d));
    }
    if (layer.is("add")) {
      give(l, d);
      return give(l, d, 1);
    }
    if (layer.is("softmax_cross_entropy")) {
      return give(l, softmax_cross_entropy_gradient(outputs_[l], batch_.labels,
                                                    layer.as<op::SoftmaxCrossEntropy>().smoothing));
    }
  }

  const Model& model_;
  const Numbers& parameters_;
  const MicroBatch& batch_;
  int n_;
  std::vector<std::int64_t> parameters_at_;  // [layer]
  std::vector<Numbers> outputs_;             // [layer]
  std::vector<Numbers> d_outputs_;           // [layer]
  ModelGradient result_;
};

}  // namespace

ModelGradient gradient_of(const Model& model, const Numbers& parameters, const MicroBatch& batch) {
  return Walk(model, parameters, batch).run();
}

}  // namespace carousel::reference
