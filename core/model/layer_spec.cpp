// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/layer_spec.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numeric>

#include "core/base/align.hpp"
#include "core/model/op.hpp"

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

std::int64_t LayerSpec::workspace_bytes(int n) const {
  std::int64_t bytes = 0;
  for (const SampleBytes& part : workspace) bytes = std::max(bytes, part.of(n));
  return conversion_bytes(n) + bytes;
}

std::int64_t ParameterSpec::stored_bytes() const {
  constexpr std::int64_t unit = sizeof(real);
  return (size() * carousel::size_of(type) + unit - 1) / unit * unit;
}

bool LayerSpec::is_loss() const {
  return kind != nullptr && kind->loss.has_value();
}

bool LayerSpec::is(std::string_view name_of_kind) const {
  return kind != nullptr && kind->name == name_of_kind;
}

LayerSpec LayerSpec::as_computed() const {
  LayerSpec computed = *this;
  computed.converted = Converted::nothing;
  const auto convert = [&](TensorFormat& format) {
    if (converted != Converted::nothing) format.type = DataType::full;
    if (converted == Converted::orders) format.block = 1;
  };
  for (LayerInput& input : computed.inputs) convert(input.format);
  convert(computed.output_format);
  for (ParameterSpec& parameter : computed.parameters)
    if (converted != Converted::nothing) parameter.type = DataType::full;
  return computed;
}

std::int64_t LayerSpec::conversion_bytes(int n) const {
  if (converted == Converted::nothing) return 0;
  const LayerSpec computed = as_computed();
  std::int64_t bytes = 0;
  const auto add = [&](const SampleShape& shape, const TensorFormat& stored,
                       const TensorFormat& wanted) {
    if (stored != wanted) bytes += 2 * align_up(tensor_bytes(shape, wanted, n));  // and gradient
  };
  if (has_converted_parameters()) bytes += align_up(parameter_size() * std::int64_t{sizeof(real)});
  add(output, output_format, computed.output_format);
  for (std::size_t k = 0; k < inputs.size(); ++k)
    add(inputs[k].shape, inputs[k].format, computed.inputs[k].format);
  return bytes;
}

bool LayerSpec::has_converted_parameters() const {
  const auto is_short = [](const ParameterSpec& spec) { return spec.type != DataType::full; };
  return converted != Converted::nothing && std::ranges::any_of(parameters, is_short);
}

std::string LayerSpec::label(std::size_t columns) const {
  std::string what = "layer";
  if (kind != nullptr) what = kind->describe == nullptr ? kind->name : kind->describe(*this);
  if (name.empty()) return what;
  const std::size_t length = what.size() + 1 + name.size();
  if (length <= columns) return fmt::format("{} {}", what, name);
  return fmt::format("{} ...{}", what, std::string_view(name).substr(length + 3 - columns));
}

std::string to_string(const SampleShape& shape) {
  return fmt::format("{}", fmt::join(shape.extents(), "x"));
}

std::string to_string(const TensorFormat& format) {
  return fmt::format("{}, blocks of {}",
                     format.type == DataType::full ? "full precision" : "bfloat16", format.block);
}

}  // namespace carousel
