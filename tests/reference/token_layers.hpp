// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Layers of tokens as plain loops over plain vectors, one formula each: what the kernels of layers/
// must compute. Tokens are [n, c, tokens], as images are.

#include "core/model/model.hpp"
#include "layers/attention/op.hpp"
#include "tests/reference/layers.hpp"

namespace carousel::reference {

/// Of a vision transformer's norms.
inline constexpr double layer_norm_epsilon = 1e-6;
/// (x - mean) / sqrt(variance + that epsilon) w + b over the features of each token.
[[nodiscard]] Numbers layer_norm(int n, const SampleShape& shape, const Numbers& x,
                                 const Numbers& w, const Numbers& b);

struct LayerNormGradients {
  Numbers d_x;
  Numbers d_w;  // [c]
  Numbers d_b;  // [c]
};
[[nodiscard]] LayerNormGradients layer_norm_gradients(int n, const SampleShape& shape,
                                                      const Numbers& x, const Numbers& w,
                                                      const Numbers& d_y);

/// x / sqrt(mean of squares + epsilon) w over the features of each token.
[[nodiscard]] Numbers rms_norm(int n, const SampleShape& shape, double epsilon, const Numbers& x,
                               const Numbers& w);

struct RmsNormGradients {
  Numbers d_x;
  Numbers d_w;  // [c]
};
[[nodiscard]] RmsNormGradients rms_norm_gradients(int n, const SampleShape& shape, double epsilon,
                                                  const Numbers& x, const Numbers& w,
                                                  const Numbers& d_y);

/// x P(z <= x)
[[nodiscard]] Numbers gelu(const Numbers& x);
[[nodiscard]] Numbers gelu_gradient(const Numbers& x, const Numbers& d_y);

/// Of queries, keys and values, one behind the other in the channels of x: softmax(q k / sqrt(size
/// of a head)) v, where it is causal over the keys up to the query. `shape` is that of the result.
[[nodiscard]] Numbers attention(int n, const SampleShape& shape, const op::Attention& attributes,
                                const Numbers& x);
[[nodiscard]] Numbers attention_gradient(int n, const SampleShape& shape,
                                         const op::Attention& attributes, const Numbers& x,
                                         const Numbers& d_y);

/// patches [n, c, tokens - 1] behind a class token [c], and positions [tokens, c] added to all;
/// `shape` is that of the result.
[[nodiscard]] Numbers with_positions(int n, const SampleShape& shape, const Numbers& patches,
                                     const Numbers& class_token, const Numbers& positions);

struct PositionGradients {
  Numbers d_patches;
  Numbers d_class_token;
  Numbers d_positions;
};
[[nodiscard]] PositionGradients position_gradients(int n, const SampleShape& shape,
                                                   const Numbers& d_y);

[[nodiscard]] Numbers first_token(int n, const SampleShape& shape, const Numbers& x);
[[nodiscard]] Numbers first_token_gradient(int n, const SampleShape& shape, const Numbers& d_y);

}  // namespace carousel::reference
