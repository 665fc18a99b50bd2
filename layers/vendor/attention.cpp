// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/vendor/attention.hpp"

#include "core/base/bfloat16.hpp"
#include "core/base/check.hpp"
#include "layers/add_numbers.hpp"
#include "layers/attention/op.hpp"
#include "layers/vendor/handles.hpp"

namespace carousel::vendor {

Attention::Attention(const LayerSpec& spec, const Engine& engine)
    : spec_(spec),
      name_(spec.label()),
      gradient_name_(name_ + ", gradient"),
      graphs_(*engine.vendor->graphs),
      workspace_(engine.workspace) {
  CAROUSEL_CHECK(spec.output_format.type == DataType::bfloat16 && spec.saved.size() == 1 &&
                     spec.input().channels == 3 * spec.output.channels,
                 "attention {}: {} becomes {}", spec.name, to_string(spec.input()),
                 to_string(spec.output));
}

AttentionShape Attention::shape(int n) const {
  const auto& [heads, causal] = spec_.as<op::Attention>();
  return {n, static_cast<int>(spec_.output.pixels()), heads, spec_.output.channels / heads, causal};
}

std::int64_t Attention::workspace_bytes(int n) const {
  return spec_.workspace.front().of(n) - n * attention_gradient_bytes(spec_);
}

std::array<void*, 3> Attention::parts_of(const void* rows) const {
  auto* const first = const_cast<Bfloat16*>(static_cast<const Bfloat16*>(rows));
  const int part = spec_.output.channels;
  return {first, first + part, first + 2 * part};
}

void Attention::forward(const ExecutionSpace& /*exec*/, const ForwardArguments& arguments) {
  const auto [q, k, v] = parts_of(arguments.input.data);
  const int n = arguments.input.n;
  const std::array tensors = {q, k, v, static_cast<void*>(arguments.output.data),
                              static_cast<void*>(arguments.saved)};
  graphs_.attention(name_, shape(n), workspace_bytes(n))(name_, tensors, workspace_);
}

void Attention::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::attention_backward_add";
  const Tensor& d_x = arguments.d_input;
  if (d_x.data == nullptr) return;
  const int n = arguments.input.n;
  Tensor made = d_x;
  if (arguments.adds_input)
    made.data = reinterpret_cast<real*>(workspace_.data() + workspace_bytes(n));
  const auto [q, k, v] = parts_of(arguments.input.data);
  const auto [d_q, d_k, d_v] = parts_of(made.data);
  const auto address = [](const void* data) { return const_cast<void*>(data); };
  const std::array tensors = {q,
                              k,
                              v,
                              address(arguments.output.data),
                              address(arguments.saved),
                              address(arguments.d_output.data),
                              d_q,
                              d_k,
                              d_v};
  graphs_.attention_gradient(gradient_name_, shape(n), workspace_bytes(n))(gradient_name_, tensors,
                                                                           workspace_);
  if (arguments.adds_input) hand_on<Bfloat16>(exec, label, made, d_x, true);
}

}  // namespace carousel::vendor
