// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Convolutions and attention as operation graphs of cuDNN. How one is computed is chosen once, by
// cuDNN's heuristic, among engines that give the same bits every time and are content with the
// workspace; fp32 is computed without TF32. The front end's headers stay in graph.cpp.

#include <cudnn.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/model/tensor_format.hpp"

namespace carousel::vendor {

enum class Pass : std::uint8_t { forward, d_input, d_weights };

/// Images [n][h][w][channels], weights [out channels][kernel][kernel][in channels]; square windows.
struct ConvolutionShape {
  int n = 0;
  SampleShape in;
  SampleShape out;
  int kernel = 1;
  int stride = 1;
  int padding = 0;
  DataType type = DataType::full;  // of images and weights
  bool normalises = false;         // forward: max(0, scale x + shift) is convolved instead of x

  auto operator<=>(const ConvolutionShape&) const = default;
};

/// Queries, keys and values of all heads side by side in rows of 3 heads size numbers, bf16; what
/// comes out in rows of heads size numbers.
struct AttentionShape {
  int n = 0;
  int tokens = 0;
  int heads = 0;
  int size = 0;  // of a head
  bool causal = false;

  auto operator<=>(const AttentionShape&) const = default;
};

/// A graph with the one plan by which it is computed.
class Graph {
 public:
  struct Built;  // the front end's
  Graph(cudnnHandle_t handle, std::unique_ptr<Built> built);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();

  /// Enqueues it. The tensors of a convolution are the two that the pass reads, with weights last
  /// or else the gradient of the output last, then its result and, if it normalises, scale and
  /// shift in full numbers; those of attention queries, keys, values, output and logarithms of
  /// sums, and for its gradient then those of the output, queries, keys and values. All of them are
  /// aligned to 16 bytes.
  void operator()(const std::string& layer, std::span<void* const> tensors,
                  std::span<std::byte> workspace) const;

 private:
  cudnnHandle_t handle_;
  std::unique_ptr<Built> built_;
};

/// The gradient of the weights may be of full numbers where images are bf16. Null where cuDNN
/// offers nothing; `reason` then says why, in cuDNN's words.
[[nodiscard]] std::unique_ptr<Graph> make_convolution(cudnnHandle_t handle,
                                                      const ConvolutionShape& shape, Pass pass,
                                                      DataType result, std::int64_t workspace,
                                                      std::string& reason);
/// Softmax of scaled products, and the logarithm of the sum of every query: [n][heads][tokens].
[[nodiscard]] std::unique_ptr<Graph> make_attention(cudnnHandle_t handle,
                                                    const AttentionShape& shape,
                                                    std::int64_t workspace, std::string& reason);
[[nodiscard]] std::unique_ptr<Graph> make_attention_gradient(cudnnHandle_t handle,
                                                             const AttentionShape& shape,
                                                             std::int64_t workspace,
                                                             std::string& reason);

}  // namespace carousel::vendor
