// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/converted.hpp"

#include <utility>

#include "core/base/align.hpp"
#include "core/base/check.hpp"
#include "core/base/copy.hpp"

namespace carousel {
namespace {

/// All numbers of n samples, those that fill up blocks included.
std::int64_t numbers(const SampleShape& shape, const TensorFormat& format, int n) {
  return tensor_bytes(shape, format, n) / size_of(format.type);
}

/// Hands out the workspace of one call.
class Copies {
 public:
  Copies(const ExecutionSpace& exec, std::span<std::byte> memory) : exec_(exec), memory_(memory) {}

  /// Room for a tensor in full numbers, with what is stored where it is wanted. What is full
  /// already is used as it is, and what is absent stays so.
  template <class Real>
  Tensor tensor(const BasicTensor<Real>& stored, const TensorFormat& format, bool read) {
    Tensor full{const_cast<real*>(stored.data), stored.n, stored.shape};
    if (stored.data == nullptr || format.type == DataType::full) return full;
    const std::int64_t size = numbers(stored.shape, format, stored.n);
    full.data = take(size);
    if (read) expand(exec_, reinterpret_cast<const Bfloat16*>(stored.data), full.data, size);
    return full;
  }

  /// What the layer has written, to where it is stored.
  void store(const Tensor& full, const Tensor& stored, const TensorFormat& format) const {
    if (full.data == stored.data) return;
    shorten(exec_, full.data, reinterpret_cast<Bfloat16*>(stored.data),
            numbers(stored.shape, format, stored.n));
  }

  const real* parameters(const LayerSpec& spec, const real* stored) {
    real* const full = take(spec.parameter_size());
    real* to = full;
    const auto* from = reinterpret_cast<const std::byte*>(stored);
    for (const ParameterSpec& parameter : spec.parameters) {
      if (parameter.type == DataType::full)
        copy<MemorySpace, MemorySpace>(exec_, to, from, parameter.size() * sizeof(real));
      else
        expand(exec_, reinterpret_cast<const Bfloat16*>(from), to, parameter.size());
      to += parameter.size();
      from += parameter.stored_bytes();
    }
    return full;
  }

 private:
  real* take(std::int64_t size) {
    const std::int64_t begin = used_;
    used_ += align_up(size * std::int64_t{sizeof(real)});
    CAROUSEL_CHECK(used_ <= std::ssize(memory_), "{} bytes of {}", used_, memory_.size());
    return reinterpret_cast<real*>(memory_.data() + begin);
  }

  const ExecutionSpace& exec_;
  std::span<std::byte> memory_;
  std::int64_t used_ = 0;
};

class Converted final : public Layer {
 public:
  Converted(LayerSpec spec, std::span<std::byte> memory, std::unique_ptr<Layer> layer)
      : spec_(std::move(spec)), memory_(memory), layer_(std::move(layer)) {}

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    Copies copies(exec, memory_);
    ForwardArguments full = arguments;
    full.parameters = copies.parameters(spec_, arguments.parameters);
    const Tensor input = copies.tensor(arguments.input, spec_.inputs[0].format, true);
    full.input = input;
    full.second = copies.tensor(arguments.second, spec_.inputs.back().format, true);
    const bool in_place = arguments.output.data == arguments.input.data;
    full.output = in_place ? input : copies.tensor(arguments.output, spec_.output_format, false);
    layer_->forward(exec, full);
    copies.store(full.output, arguments.output, spec_.output_format);
  }

  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    Copies copies(exec, memory_);
    BackwardArguments full = arguments;
    full.parameters = copies.parameters(spec_, arguments.parameters);
    full.input = spec_.saves_input ? copies.tensor(arguments.input, spec_.inputs[0].format, true)
                                   : Tensor{nullptr, arguments.input.n, arguments.input.shape};
    full.output = spec_.saves_output ? copies.tensor(arguments.output, spec_.output_format, true)
                                     : Tensor{nullptr, arguments.output.n, arguments.output.shape};
    full.d_output = copies.tensor(arguments.d_output, spec_.output_format, true);
    const bool in_place = arguments.d_input.data == arguments.d_output.data;
    full.d_input =
        in_place ? full.d_output
                 : copies.tensor(arguments.d_input, spec_.inputs[0].format, arguments.adds_input);
    full.d_second =
        copies.tensor(arguments.d_second, spec_.inputs.back().format, arguments.adds_second);
    layer_->backward(exec, full);
    copies.store(full.d_input, arguments.d_input, spec_.inputs[0].format);
    copies.store(full.d_second, arguments.d_second, spec_.inputs.back().format);
    if (spec_.hands_gradient_on)
      copies.store(full.d_output, arguments.d_output, spec_.output_format);
  }

 private:
  LayerSpec spec_;
  std::span<std::byte> memory_;
  std::unique_ptr<Layer> layer_;
};

}  // namespace

std::unique_ptr<Layer> make_converted(
    const LayerSpec& spec, int samples, const Engine& engine,
    const std::function<std::unique_ptr<Layer>(const LayerSpec&, int, const Engine&)>& make) {
  LayerSpec full = spec;
  for (LayerInput& input : full.inputs) input.format.type = DataType::full;
  full.output_format.type = DataType::full;
  for (ParameterSpec& parameter : full.parameters) parameter.type = DataType::full;
  const auto bytes = static_cast<std::size_t>(spec.conversion_bytes(samples));
  Engine behind = engine;
  behind.workspace = engine.workspace.subspan(bytes);
  return std::make_unique<Converted>(spec, engine.workspace.first(bytes),
                                     make(full, samples, behind));
}

}  // namespace carousel
