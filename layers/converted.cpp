// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/converted.hpp"

#include <utility>

#include "core/base/align.hpp"
#include "core/base/check.hpp"
#include "core/base/copy.hpp"
#include "layers/convert.hpp"

namespace carousel {
namespace {

/// Hands out the workspace of one call.
class Copies {
 public:
  Copies(const ExecutionSpace& exec, std::span<std::byte> memory) : exec_(exec), memory_(memory) {}

  /// Room for a tensor as it is wanted, with what is stored where it is to be read. What is stored
  /// so is used as it is, and what is absent stays so.
  template <class Real>
  Tensor tensor(const BasicTensor<Real>& stored, const TensorFormat& format,
                const TensorFormat& wanted, bool read) {
    Tensor copy{const_cast<real*>(stored.data), stored.n, stored.shape};
    if (stored.data == nullptr || format == wanted) return copy;
    copy.data = take(tensor_bytes(stored.shape, wanted, stored.n) / size_of(DataType::full));
    if (read) convert(exec_, {at(stored), format}, {copy.data, wanted}, stored.shape, stored.n);
    return copy;
  }

  /// What the layer has written, to where it is stored.
  void store(const Tensor& copy, const TensorFormat& wanted, const Tensor& stored,
             const TensorFormat& format) const {
    if (copy.data == stored.data || stored.data == nullptr) return;
    convert(exec_, {copy.data, wanted}, {stored.data, format}, stored.shape, stored.n);
  }

  /// Those of a layer, one after the other in full numbers.
  const real* parameters(const LayerSpec& spec, const real* stored) {
    if (!spec.has_converted_parameters()) return stored;
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
  template <class Real>
  static void* at(const BasicTensor<Real>& tensor) {
    return const_cast<real*>(tensor.data);
  }

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

class Conversion final : public Layer {
 public:
  Conversion(LayerSpec spec, LayerSpec computed, std::span<std::byte> memory,
             std::unique_ptr<Layer> layer)
      : spec_(std::move(spec)),
        computed_(std::move(computed)),
        memory_(memory),
        layer_(std::move(layer)) {}

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    Copies copies(exec, memory_);
    ForwardArguments as_wanted = arguments;
    as_wanted.parameters = copies.parameters(spec_, arguments.parameters);
    const Tensor input = copies.tensor(arguments.input, stored(0), wanted(0), true);
    as_wanted.input = input;
    if (spec_.inputs.size() > 1)
      as_wanted.second = copies.tensor(arguments.second, stored(1), wanted(1), true);
    as_wanted.output = spec_.in_place ? input
                                      : copies.tensor(arguments.output, spec_.output_format,
                                                      computed_.output_format, false);
    layer_->forward(exec, as_wanted);
    copies.store(as_wanted.output, computed_.output_format, arguments.output, spec_.output_format);
  }

  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    Copies copies(exec, memory_);
    BackwardArguments as_wanted = arguments;
    as_wanted.parameters = copies.parameters(spec_, arguments.parameters);
    as_wanted.input = spec_.saves_input ? copies.tensor(arguments.input, stored(0), wanted(0), true)
                                        : Tensor{nullptr, arguments.input.n, arguments.input.shape};
    as_wanted.output =
        spec_.saves_output
            ? copies.tensor(arguments.output, spec_.output_format, computed_.output_format, true)
            : Tensor{nullptr, arguments.output.n, arguments.output.shape};
    if (spec_.saves_second)
      as_wanted.second = copies.tensor(arguments.second, stored(1), wanted(1), true);
    as_wanted.d_output =
        copies.tensor(arguments.d_output, spec_.output_format, computed_.output_format, true);
    const bool in_place = spec_.in_place && arguments.d_input.data == arguments.d_output.data;
    as_wanted.d_input =
        in_place ? as_wanted.d_output
                 : copies.tensor(arguments.d_input, stored(0), wanted(0), arguments.adds_input);
    if (spec_.inputs.size() > 1)
      as_wanted.d_second =
          copies.tensor(arguments.d_second, stored(1), wanted(1), arguments.adds_second);
    layer_->backward(exec, as_wanted);
    copies.store(as_wanted.d_input, wanted(0), arguments.d_input, stored(0));
    if (spec_.inputs.size() > 1)
      copies.store(as_wanted.d_second, wanted(1), arguments.d_second, stored(1));
    if (spec_.aliases_second_gradient)
      copies.store(as_wanted.d_output, computed_.output_format, arguments.d_output,
                   spec_.output_format);
  }

 private:
  [[nodiscard]] const TensorFormat& stored(std::size_t input) const {
    return spec_.inputs[input].format;
  }
  [[nodiscard]] const TensorFormat& wanted(std::size_t input) const {
    return computed_.inputs[input].format;
  }

  LayerSpec spec_;
  LayerSpec computed_;
  std::span<std::byte> memory_;
  std::unique_ptr<Layer> layer_;
};

}  // namespace

std::unique_ptr<Layer> make_converted(const LayerSpec& spec, int samples, const Engine& engine,
                                      const LayerFactory& make) {
  LayerSpec computed = spec.as_computed();
  const auto bytes = static_cast<std::size_t>(spec.conversion_bytes(samples));
  Engine behind = engine;
  behind.workspace = engine.workspace.subspan(bytes);
  std::unique_ptr<Layer> layer = make(computed, samples, behind);
  return std::make_unique<Conversion>(spec, std::move(computed), engine.workspace.first(bytes),
                                      std::move(layer));
}

}  // namespace carousel
