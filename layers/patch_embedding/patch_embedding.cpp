// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/patch_embedding/patch_embedding.hpp"

#include "core/base/range.hpp"
#include "layers/convolution/op.hpp"
#include "layers/patch_embedding/op.hpp"
#include "layers/tokens.hpp"

namespace carousel {
namespace {

using detail::Tokens;

/// The parameters, or their gradients.
template <class Real>
struct Parameters {
  Real* class_token;  // [c]
  Real* weight;
  Real* bias;       // [c]
  Real* positions;  // [tokens, c]

  Parameters(Real* first, int channels, std::int64_t weights)
      : class_token(first),
        weight(class_token + channels),
        bias(weight + weights),
        positions(bias + channels) {}
};

/// One block of features of one image: what is not of the convolution.
template <int Block>
struct Positions {
  Tokens<Block> tokens;
  Parameters<const real> parameters;
  real* y;

  KOKKOS_FUNCTION void operator()(std::int64_t plane) const {
    const int block = static_cast<int>(plane % tokens.blocks) * Block;
    const std::int64_t channels = std::int64_t{tokens.blocks} * Block;
    real* to = y + plane * tokens.plane_size();
    for (int l = 0; l < Block; ++l)
      to[l] = parameters.class_token[block + l] + parameters.positions[block + l];
    for (int t = 1; t < tokens.tokens; ++t) {
      const real* position = parameters.positions + t * channels + block;
      for (int l = 0; l < Block; ++l) to[t * Block + l] += parameters.bias[block + l] + position[l];
    }
  }
};

/// One block of features of all images.
template <int Block>
struct Gradients {
  Tokens<Block> tokens;
  int n;
  const real* d_y;
  Parameters<real> gradients;

  KOKKOS_FUNCTION void operator()(std::int64_t block) const {
    const std::int64_t channels = std::int64_t{tokens.blocks} * Block;
    double bias[Block] = {};
    for (int t = 0; t < tokens.tokens; ++t) {
      double sum[Block] = {};
      for (int i = 0; i < n; ++i) {
        const real* d = d_y + tokens.offset(i, static_cast<int>(block), t);
        for (int l = 0; l < Block; ++l) sum[l] += static_cast<double>(d[l]);
      }
      for (int l = 0; l < Block; ++l) {
        const std::int64_t c = block * Block + l;
        gradients.positions[t * channels + c] = static_cast<real>(sum[l]);
        if (t == 0)
          gradients.class_token[c] = static_cast<real>(sum[l]);
        else
          bias[l] += sum[l];
      }
    }
    for (int l = 0; l < Block; ++l) gradients.bias[block * Block + l] = static_cast<real>(bias[l]);
  }
};

}  // namespace

PatchEmbedding::PatchEmbedding(const LayerSpec& spec, std::unique_ptr<Layer> convolution)
    : convolution_(std::move(convolution)),
      format_(spec.output_format),
      weights_(spec.weights().size()) {
  const std::int64_t others = 2 * std::int64_t{spec.output.channels} + spec.output.size();
  CAROUSEL_CHECK(spec.parameter_size() == weights_ + others, "{} has {} parameters", spec.name,
                 spec.parameter_size());
}

void PatchEmbedding::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::patch_embedding_forward";
  const SampleShape& shape = arguments.output.shape;
  const Parameters<const real> parameters(arguments.parameters, shape.channels, weights_);
  ForwardArguments patches = arguments;
  patches.parameters = parameters.weight;
  convolution_->forward(exec, patches);
  detail::with_block(format_, [&]<int Block>() {
    const Tokens<Block> tokens(shape);
    Kokkos::parallel_for(label, pieces(exec, std::int64_t{arguments.output.n} * tokens.blocks),
                         Positions<Block>{tokens, parameters, arguments.output.data});
  });
}

void PatchEmbedding::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::patch_embedding_backward";
  const SampleShape& shape = arguments.d_output.shape;
  const Parameters<const real> parameters(arguments.parameters, shape.channels, weights_);
  const Parameters<real> gradients(arguments.d_parameters, shape.channels, weights_);
  BackwardArguments patches = arguments;
  patches.parameters = parameters.weight;
  patches.d_parameters = gradients.weight;
  convolution_->backward(exec, patches);
  detail::with_block(format_, [&]<int Block>() {
    const Tokens<Block> tokens(shape);
    Kokkos::parallel_for(
        label, pieces(exec, tokens.blocks),
        Gradients<Block>{tokens, arguments.d_output.n, arguments.d_output.data, gradients});
  });
}

}  // namespace carousel
