// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/vendor/graphs.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace carousel::vendor {
namespace {

void must(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS)
    fail(ExitCode::internal, "{}: {}", call, cudnnGetErrorString(status));
}
/// What cuDNN says, at most so much of it; why each engine was passed over comes last.
std::string in_one_line(std::string reason) {
  constexpr std::size_t most = 1000;
  if (reason.size() > most) reason = reason.substr(0, most) + "...";
  std::ranges::replace(reason, '\n', ' ');
  return reason;
}
#define CAROUSEL_CUDNN(call) must(call, #call)

}  // namespace

Graphs::Graphs(cudaStream_t stream) {
  CAROUSEL_CUDNN(cudnnCreate(&handle_));
  CAROUSEL_CUDNN(cudnnSetStream(handle_, stream));
}

Graphs::~Graphs() {
  convolutions_.clear();
  attentions_.clear();
  attention_gradients_.clear();
  cudnnDestroy(handle_);
}

const Graph& Graphs::offered(const std::string& layer, const Made& made) {
  if (made.graph == nullptr)
    fail(ExitCode::internal,
         "{}: cuDNN has no kernels for it within the workspace of the plan; set engine.vendor = "
         "\"none\" (cuDNN: {})",
         layer, in_one_line(made.reason));
  return *made.graph;
}

const Graphs::Made& Graphs::made_convolution(const ConvolutionShape& shape, Pass pass,
                                             DataType result, std::int64_t workspace) {
  const auto [place, is_new] = convolutions_.try_emplace({shape, pass, result});
  Made& made = place->second;
  if (is_new) made.graph = make_convolution(handle_, shape, pass, result, workspace, made.reason);
  return made;
}

const Graph* Graphs::find_convolution(const ConvolutionShape& shape, Pass pass, DataType result,
                                      std::int64_t workspace) {
  return made_convolution(shape, pass, result, workspace).graph.get();
}

const Graph& Graphs::convolution(const std::string& layer, const ConvolutionShape& shape, Pass pass,
                                 DataType result, std::int64_t workspace) {
  return offered(layer, made_convolution(shape, pass, result, workspace));
}

const Graph& Graphs::attention(const std::string& layer, const AttentionShape& shape,
                               std::int64_t workspace) {
  const auto [place, is_new] = attentions_.try_emplace(shape);
  if (is_new) place->second.graph = make_attention(handle_, shape, workspace, place->second.reason);
  return offered(layer, place->second);
}

const Graph& Graphs::attention_gradient(const std::string& layer, const AttentionShape& shape,
                                        std::int64_t workspace) {
  const auto [place, is_new] = attention_gradients_.try_emplace(shape);
  if (is_new)
    place->second.graph = make_attention_gradient(handle_, shape, workspace, place->second.reason);
  return offered(layer, place->second);
}

}  // namespace carousel::vendor
