// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of a layer's kernels, which layers/ implements: forward and backward of one
// micro-batch on borrowed memory. What memory a layer needs its LayerSpec says; it owns none and
// knows no stages, ranks or versions.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/view.hpp"
#include "core/engine/engine.hpp"
#include "core/model/layer_spec.hpp"
#include "core/model/metric.hpp"

namespace carousel {

/// A borrowed activation of n samples in device memory, in the format of the layer's spec; data is
/// null where a tensor is absent.
template <class Real>
struct BasicTensor {
  Real* data = nullptr;
  int n = 0;
  SampleShape shape;

  [[nodiscard]] std::int64_t size() const { return n * shape.size(); }
  operator BasicTensor<const Real>() const {  // NOLINT(google-explicit-constructor)
    return {data, n, shape};
  }
};
using Tensor = BasicTensor<real>;
using ConstTensor = BasicTensor<const real>;

/// What random numbers of a micro-batch are drawn for, so that ranks, stages and the order of work
/// change none of them.
struct Draw {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  const int* samples = nullptr;  // [n], numbers of the samples in the data set; device memory
};

struct ForwardArguments {
  ConstTensor input;
  Tensor output;                     // equals input.data for layers in place
  const real* parameters = nullptr;  // the layer's parameters, one after the other in spec order
  const void* targets = nullptr;     // [n, target of the source], loss only
  double* report = nullptr;          // loss only: report_head numbers, then sums of its metrics
  int* chosen = nullptr;             // [n], loss only: class of the largest logit, if wanted
  real* outputs = nullptr;           // [n, outputs], loss only: what the network gives, if wanted
                                     // instead of all that targets are needed for
  ConstTensor second = {};           // absent where the layer has one input
  std::byte* saved = nullptr;        // for backward, spec.saved_offset() says where each tensor is
  const real* buffers = nullptr;     // running statistics, in spec order; evaluation only
  bool training = true;              // not so in evaluation
  bool again = false;                // for backward: `saved` is as forward has left it
  Draw draw = {};                    // dropout, in training
};

struct BackwardArguments {
  ConstTensor input;   // as forward read it, when the spec says saves_input
  ConstTensor output;  // as forward wrote it, when the spec says saves_output
  Tensor d_output;     // absent for the loss; not changed, unless the spec says that the layer
                       // hands the gradient on
  Tensor d_input;      // absent where nothing learns that the input was made of; may equal
                       // d_output for layers in place
  const real* parameters = nullptr;
  real* d_parameters = nullptr;      // overwritten, in the order of `parameters`; of frozen ones
                                     // nobody reads it, and products need not be made
  const void* targets = nullptr;     // [n, target of the source], loss only
  Tensor d_second = {};              // absent, too, where d_output serves as well
  bool adds_input = false;           // d_input is added to what other layers left there
  bool adds_second = false;          // d_second likewise
  const std::byte* saved = nullptr;  // by forward
  real* statistics = nullptr;  // of the micro-batch itself, overwritten, in the order of `buffers`
  Draw draw = {};              // as in forward
  ConstTensor second = {};     // as forward read it, when the spec says saves_second
};

/// Kernels of one layer. Both functions only enqueue work on `exec` and never allocate.
class Layer {
 public:
  Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;
  virtual ~Layer() = default;

  virtual void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) = 0;
  virtual void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) = 0;
  /// Whether a library has only a slow gradient of its weights; known once it was computed.
  [[nodiscard]] virtual bool has_slow_gradient() const { return false; }
};

/// Makes the kernels of a layer for micro-batches of at most `samples` and for the compute queue of
/// an engine, whose workspace is as large as the spec asks for. Throws Error(internal) for a kind
/// or a format that it has no kernels for. app/ hands the factory of layers/ to the trainer.
using LayerFactory =
    std::function<std::unique_ptr<Layer>(const LayerSpec& spec, int samples, const Engine& engine)>;

}  // namespace carousel
