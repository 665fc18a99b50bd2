// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operation graphs of one compute queue, each made once for its shape, whichever layers have
// it.

#include <driver_types.h>

#include <map>
#include <tuple>

#include "layers/vendor/graph.hpp"

namespace carousel::vendor {

class Graphs {
 public:
  /// Enqueues on `stream`.
  explicit Graphs(cudaStream_t stream);
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;
  ~Graphs();

  /// Null where cuDNN offers none that is content with so many bytes of `workspace`, which follow
  /// from the shape.
  [[nodiscard]] const Graph* find_convolution(const ConvolutionShape& shape, Pass pass,
                                              DataType result, std::int64_t workspace);
  /// Throws Error(internal) with the name of the layer where cuDNN offers none.
  [[nodiscard]] const Graph& convolution(const std::string& layer, const ConvolutionShape& shape,
                                         Pass pass, DataType result, std::int64_t workspace);
  [[nodiscard]] const Graph& attention(const std::string& layer, const AttentionShape& shape,
                                       std::int64_t workspace);
  [[nodiscard]] const Graph& attention_gradient(const std::string& layer,
                                                const AttentionShape& shape,
                                                std::int64_t workspace);

 private:
  struct Made {
    std::unique_ptr<Graph> graph;
    std::string reason;  // if there is none
  };
  [[nodiscard]] static const Graph& offered(const std::string& layer, const Made& made);
  [[nodiscard]] const Made& made_convolution(const ConvolutionShape& shape, Pass pass,
                                             DataType result, std::int64_t workspace);

  cudnnHandle_t handle_ = nullptr;
  std::map<std::tuple<ConvolutionShape, Pass, DataType>, Made> convolutions_;
  std::map<AttentionShape, Made> attentions_;
  std::map<AttentionShape, Made> attention_gradients_;
};

}  // namespace carousel::vendor
