// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/layer_spec.hpp"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <numeric>

#include "core/base/align.hpp"

namespace carousel {
namespace {

std::int64_t size_of(const std::vector<ParameterSpec>& tensors) {
  std::int64_t size = 0;
  for (const ParameterSpec& tensor : tensors) size += tensor.size();
  return size;
}

}  // namespace

Initial kaiming_uniform(std::int64_t fan) {
  return {Initial::Kind::uniform, std::sqrt(6 / static_cast<double>(fan))};
}

Initial kaiming_normal(std::int64_t fan) {
  return {Initial::Kind::normal, std::sqrt(2 / static_cast<double>(fan))};
}

Initial lecun_uniform(std::int64_t fan) {
  return {Initial::Kind::uniform, 1 / std::sqrt(static_cast<double>(fan))};
}

Initial xavier_uniform(std::int64_t in, std::int64_t out) {
  return kaiming_uniform(in + out);
}

std::int64_t ParameterSpec::size() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

const ParameterSpec& LayerSpec::weights() const {
  return *std::ranges::max_element(parameters, {},
                                   [](const auto& each) { return each.shape.size(); });
}

std::int64_t LayerSpec::parameter_size() const {
  return size_of(parameters);
}

std::int64_t LayerSpec::buffer_size() const {
  return size_of(buffers);
}

std::int64_t LayerSpec::saved_bytes(int n) const {
  return saved_offset(saved.size(), n);
}

std::int64_t LayerSpec::saved_offset(std::size_t index, int n) const {
  std::int64_t bytes = 0;
  for (std::size_t k = 0; k < index; ++k) bytes += align_up(saved[k].bytes.of(n));
  return bytes;
}

const char* to_string(DataType type) {
  return type == DataType::full ? "fp32" : "bf16";
}

std::int64_t LayerSpec::workspace_bytes(int n) const {
  std::int64_t bytes = 0;
  for (const SampleBytes& part : workspace) bytes = std::max(bytes, part.of(n));
  return conversion_bytes(n) + bytes;
}

std::int64_t ParameterSpec::stored_bytes() const {
  constexpr std::int64_t unit = sizeof(real);
  return (size() * carousel::size_of(type) + unit - 1) / unit * unit;
}

bool LayerSpec::is_converted() const {
  const auto tensor = [](const LayerInput& input) { return input.format.type != DataType::full; };
  const auto parameter = [](const ParameterSpec& spec) { return spec.type != DataType::full; };
  return output_format.type != DataType::full || std::ranges::any_of(inputs, tensor) ||
         std::ranges::any_of(parameters, parameter);
}

std::int64_t LayerSpec::conversion_bytes(int n) const {
  if (!is_converted() || native) return 0;
  // Tensors and their gradients.
  const auto full = [&](const SampleShape& shape, const TensorFormat& format) {
    return 2 * align_up(tensor_bytes(shape, {DataType::full, format.block}, n));
  };
  std::int64_t bytes = align_up(parameter_size() * std::int64_t{sizeof(real)});
  bytes += full(output, output_format);
  for (const LayerInput& input : inputs) bytes += full(input.shape, input.format);
  return bytes;
}

namespace {

/// The name of a kind with what is fused into it.
struct Described {
  std::string operator()(const kind::Convolution& kind) const {
    return fmt::format("{}{}", kind.normalises ? "norm+relu+" : "",
                       kind.winograd ? "winograd" : "convolution");
  }
  std::string operator()(const kind::BatchNorm& kind) const {
    return fmt::format("batch_norm{}{}", kind.adds ? "+add" : "", kind.rectifies ? "+relu" : "");
  }
  std::string operator()(const kind::MaxPool& kind) const {
    return kind.normalises ? "norm+relu+max_pool" : "max_pool";
  }
  template <class Kind>
  std::string operator()(const Kind& kind) const {
    return to_string(LayerKind(kind));
  }
};

}  // namespace

std::string LayerSpec::label(std::size_t columns) const {
  std::string what = std::visit(Described{}, kind);
  if (name.empty()) return what;
  const std::size_t length = what.size() + 1 + name.size();
  if (length <= columns) return fmt::format("{} {}", what, name);
  return fmt::format("{} ...{}", what, std::string_view(name).substr(length + 3 - columns));
}

const char* to_string(const LayerKind& kind) {
  constexpr std::array<const char*, std::variant_size_v<LayerKind>> names = {
      "flatten",    "linear",   "relu",         "dropout",     "convolution",
      "batch_norm", "max_pool", "average_pool", "add",         "patch_embedding",
      "layer_norm", "gelu",     "attention",    "first_token", "softmax_cross_entropy"};
  return names[kind.index()];
}

std::string to_string(const SampleShape& shape) {
  return fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width);
}

std::string to_string(const TensorFormat& format) {
  return fmt::format("{}, blocks of {}",
                     format.type == DataType::full ? "full precision" : "bfloat16", format.block);
}

}  // namespace carousel
