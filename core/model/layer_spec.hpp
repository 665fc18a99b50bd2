// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a layer is and what it needs: its kind, shapes, named parameters, costs and memory. This is
// the half of the layer contract that plans read; core/engine/layer.hpp is the half with kernels.

#include <algorithm>
#include <any>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/arguments.hpp"
#include "core/model/kernel_choice.hpp"
#include "core/model/metric.hpp"
#include "core/model/target.hpp"
#include "core/model/tensor_format.hpp"

namespace carousel {

/// How a parameter starts. What follows makes the ones that PyTorch has.
struct Initial {
  enum class Kind : std::uint8_t { constant, uniform, normal };
  Kind kind = Kind::constant;
  double scale = 0;  // the constant, b of U(-b, b), or the standard deviation

  bool operator==(const Initial&) const = default;
};
[[nodiscard]] constexpr Initial zeros() {
  return {Initial::Kind::constant, 0};
}
[[nodiscard]] constexpr Initial ones() {
  return {Initial::Kind::constant, 1};
}
[[nodiscard]] constexpr Initial normal(double deviation) {
  return {Initial::Kind::normal, deviation};
}
/// He et al. 2015, for ReLU; `fan` is that of the inputs or that of the outputs.
[[nodiscard]] Initial kaiming_uniform(std::int64_t fan);
[[nodiscard]] Initial kaiming_normal(std::int64_t fan);
/// What torch.nn.Linear does by itself: b = 1 / sqrt(fan).
[[nodiscard]] Initial lecun_uniform(std::int64_t fan);
/// Glorot & Bengio 2010: b = sqrt(6 / (in + out)).
[[nodiscard]] Initial xavier_uniform(std::int64_t in, std::int64_t out);

/// One named tensor, as PyTorch's state_dict names and shapes it.
struct ParameterSpec {
  std::string name;                 // "0.weight"
  std::vector<std::int64_t> shape;  // [out, in] for a linear layer, [out, in, taps] for convolution
  Initial initial = {};
  bool learned = true;             // not so batch norm's running statistics
  bool frozen = false;             // stays as it begins: train.freeze
  DataType type = DataType::full;  // of what kernels read; its owner keeps and updates full numbers
  double momentum = 0;  // of running statistics: what those of a step count for, as PyTorch has it

  [[nodiscard]] std::int64_t size() const;
  /// Bytes of what kernels read, filled up so that full numbers may follow.
  [[nodiscard]] std::int64_t stored_bytes() const;
  /// Whether it scales or shifts features one by one, as biases and batch norm do: such parameters
  /// may be left out of weight decay.
  [[nodiscard]] bool is_per_feature() const { return shape.size() == 1; }
};

/// The window of a convolution or a pooling, as PyTorch's arguments of these names: square, a cube
/// where samples have three axes of space, or one column wide where they have one.
struct Window {
  int kernel = 1;
  int stride = 1;
  int padding = 0;
  int dilation = 1;
  int axes = 2;
  bool ceils = false;  // the last window may begin where less than a whole one is left

  /// The same along columns, and along slices.
  [[nodiscard]] int columns() const { return axes > 1 ? kernel : 1; }
  [[nodiscard]] int slices() const { return axes > 2 ? kernel : 1; }
  [[nodiscard]] int padding_columns() const { return axes > 1 ? padding : 0; }
  [[nodiscard]] int padding_slices() const { return axes > 2 ? padding : 0; }
  [[nodiscard]] int taps() const { return slices() * kernel * columns(); }
  /// The shape of weights between so many channels, as PyTorch has it.
  [[nodiscard]] std::vector<std::int64_t> weights(std::int64_t first, std::int64_t second) const {
    std::vector<std::int64_t> shape = {first, second};
    shape.resize(shape.size() + static_cast<std::size_t>(axes), kernel);
    return shape;
  }
  /// How many places it has along so many rows.
  [[nodiscard]] int places(int rows) const {
    const std::int64_t room =
        rows + std::int64_t{2} * padding - std::int64_t{dilation} * (kernel - 1) - 1;
    if (room < 0) return 0;
    if (!ceils || room % stride == 0) return static_cast<int>(room / stride + 1);
    // Unless it would begin behind the image and the padding before it, as PyTorch has it.
    const std::int64_t last = room / stride + 1;
    return static_cast<int>(last * stride < std::int64_t{rows} + padding ? last + 1 : last);
  }
  /// Whether one pixel meets one pixel. With a dilation, what a transposed convolution makes may
  /// have more of them.
  [[nodiscard]] bool is_one_to_one() const {
    return taps() == 1 && stride == 1 && padding == 0 && dilation == 1;
  }
  /// Whether it has two axes or three, and no gaps.
  [[nodiscard]] bool is_simple() const { return dilation == 1 && axes > 1; }
  bool operator==(const Window&) const = default;
};

struct Op;

/// Bytes that n samples take.
struct SampleBytes {
  std::int64_t fixed = 0;
  std::int64_t per_sample = 0;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();  // of all samples together

  [[nodiscard]] std::int64_t of(int n) const { return fixed + std::min(n * per_sample, most); }
};

/// What forward leaves to backward beside inputs and output.
struct SavedTensor {
  std::string name;  // "statistics"
  SampleBytes bytes;
  bool recomputable = false;  // from inputs and parameters alone
};

/// A tensor that a layer reads.
struct LayerInput {
  int layer = -1;  // that leaves it behind; -1: the images
  SampleShape shape;
  TensorFormat format = {};
};

/// Whose kernels compute a layer.
enum class Kernels : std::uint8_t { portable, blocked, channels_last, vendor };

/// What kernels are given: tensors as they are stored, or copies of those that are not as they want
/// them, with full numbers, and in plain order, too.
enum class Converted : std::uint8_t { nothing, types, orders };

/// One layer. FLOPs count multiply and add separately and are per sample.
struct LayerSpec {
  const Op* kind = nullptr;
  std::any attributes;  // a struct of its kind, which the kind's op.hpp has; many have none
  Arguments arguments;  // as they were given
  std::string name;
  std::vector<LayerInput> inputs;  // one or two
  SampleShape output;
  TensorFormat output_format = {};
  std::vector<ParameterSpec> parameters;
  std::vector<ParameterSpec> buffers;  // batch norm: running mean and variance
  double forward_flops = 0;
  double backward_flops = 0;
  bool in_place = false;      // the output takes the place of the first input, where that is safe
  bool scales = false;        // by factors that are not negative, gradients by the same
  bool saves_input = false;   // backward reads the layer's first input
  bool saves_second = false;  // likewise its second one
  bool saves_output = false;  // backward reads the layer's output
  bool reads_signs = false;   // but only which numbers of it are positive
  bool output_recomputable =
      false;  // from inputs, parameters and what is saved, element by element
  std::vector<SavedTensor> saved = {};
  bool aliases_second_gradient = false;  // what backward leaves in d_output is the gradient of the
                                         // second input, too
  TargetSpec target = {};                // of a loss: what it compares with
  std::vector<const Metric*> metrics = {};  // likewise: what is reported besides
  bool normalises_samples = false;  // by statistics of all samples, which one number alone has not
  Kernels kernels = Kernels::portable;
  ProductOrder products = ProductOrder::pairs;
  Converted converted = Converted::nothing;
  std::string slow_because = {};            // why it has no fast kernels, for people
  std::vector<SampleBytes> workspace = {};  // one after the other, each for a part of a call

  /// Whether its kind is a loss.
  [[nodiscard]] bool is_loss() const;
  /// Whether it works in place and leaves all numbers as they are.
  [[nodiscard]] bool only_reshapes() const { return in_place && forward_flops == 0; }
  /// Whether it is of the kind of that name.
  [[nodiscard]] bool is(std::string_view kind) const;
  template <class Attributes>
  [[nodiscard]] const Attributes& as() const {
    return *std::any_cast<Attributes>(&attributes);
  }
  /// The weights that products are made with: of all parameters the one of most dimensions.
  [[nodiscard]] const ParameterSpec& weights() const;
  /// Shape of the first input.
  [[nodiscard]] const SampleShape& input() const { return inputs.front().shape; }
  [[nodiscard]] std::int64_t parameter_size() const;
  /// Whether its parameters stay as they begin; all of them do, or none.
  [[nodiscard]] bool is_frozen() const { return !parameters.empty() && parameters.front().frozen; }
  /// Of parameters that learn.
  [[nodiscard]] std::int64_t learned_size() const { return is_frozen() ? 0 : parameter_size(); }
  [[nodiscard]] std::int64_t buffer_size() const;
  /// Bytes of everything in `saved` for micro-batches of n samples; each tensor is aligned.
  [[nodiscard]] std::int64_t saved_bytes(int n) const;
  /// Bytes of the largest `workspace` for micro-batches of n samples, behind what is converted.
  [[nodiscard]] std::int64_t workspace_bytes(int n) const;
  /// The layer as its kernels see it, behind what is converted.
  [[nodiscard]] LayerSpec as_computed() const;
  [[nodiscard]] bool has_converted_parameters() const;
  /// Bytes of the copies of tensors, their gradients and parameters that are converted.
  [[nodiscard]] std::int64_t conversion_bytes(int n) const;
  /// Where tensor `index` of `saved` begins among them.
  [[nodiscard]] std::int64_t saved_offset(std::size_t index, int n) const;
  /// Kind and name, for people, in at most `columns`: of a long name the end.
  [[nodiscard]] std::string label(std::size_t columns = std::string::npos) const;
};

}  // namespace carousel
