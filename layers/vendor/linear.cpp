// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/vendor/linear.hpp"

#include "core/base/check.hpp"
#include "core/base/copy.hpp"
#include "core/model/vendor.hpp"
#include "layers/row_sums.hpp"
#include "layers/vendor/handles.hpp"

namespace carousel::vendor {

Linear::Linear(const LayerSpec& spec, int samples, const Engine& engine)
    : spec_(spec), engine_(engine), in_(spec.input().channels), out_(spec.output.channels) {
  CAROUSEL_CHECK(spec.parameter_size() == std::int64_t{out_} * in_ + out_,
                 "linear layer {} has {} parameters", spec.name, spec.parameter_size());
  products(samples);
}

Linear::Products& Linear::products(int n) {
  const auto known = products_.find(n);
  if (known != products_.end()) return known->second;
  const int rows = n * spec_.output.height;
  const DataType type = spec_.output_format.type;
  const std::string name = spec_.label();
  const auto product = [&](const char* what, Operand a, Operand b, Operand result,
                           Epilogue epilogue) {
    return Product(engine_.vendor->cublas, {name + what, a, b, result, epilogue},
                   product_workspace);
  };
  // Rows of ours are columns of theirs: X is [in, rows], W [in, out], Y [out, rows].
  const Operand x = {in_, rows, type};
  const Operand w = {in_, out_, type};
  const Operand y = {out_, rows, type};
  const auto transposed = [](Operand operand) {
    operand.transposed = true;
    return operand;
  };
  const auto d_weights = [&](Epilogue epilogue) {
    return product(", gradient of the weights", x, transposed(y), {in_, out_, DataType::full},
                   epilogue);
  };
  const bool sums_rows = d_weights(Epilogue::sum_columns_b).is_offered();
  return products_
      .emplace(n, Products{product("", transposed(w), x, y, Epilogue::add_vector),
                           d_weights(sums_rows ? Epilogue::sum_columns_b : Epilogue::none),
                           sums_rows, product(", gradient of the input", w, y, x, Epilogue::none)})
      .first->second;
}

void Linear::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  const auto* weights = reinterpret_cast<const std::byte*>(arguments.parameters);
  const auto* bias =
      reinterpret_cast<const real*>(weights + spec_.parameters.front().stored_bytes());
  std::span<std::byte> workspace = engine_.workspace;
  const void* added = bias;
  if (spec_.output_format.type == DataType::bfloat16) {
    auto* rounded = reinterpret_cast<Bfloat16*>(workspace.data() + product_workspace);
    shorten(exec, bias, rounded, out_);
    added = rounded;
  }
  products(arguments.input.n)
      .forward(exec, {.a = weights,
                      .b = arguments.input.data,
                      .result = arguments.output.data,
                      .vector = const_cast<void*>(added),
                      .workspace = workspace});
}

void Linear::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  Products& all = products(arguments.input.n);
  real* const d_bias = arguments.d_parameters + std::int64_t{out_} * in_;
  all.d_weights(exec, {.a = arguments.input.data,
                       .b = arguments.d_output.data,
                       .result = arguments.d_parameters,
                       .vector = all.sums_rows ? d_bias : nullptr,
                       .workspace = engine_.workspace});
  if (!all.sums_rows) {
    const int rows = arguments.input.n * spec_.output.height;
    with_stored(spec_.output_format.type, [&]<class Stored>() {
      sum_rows(exec, rows, out_, reinterpret_cast<const Stored*>(arguments.d_output.data), d_bias);
    });
  }
  if (arguments.d_input.data == nullptr) return;
  all.d_input(exec, {.a = arguments.parameters,
                     .b = arguments.d_output.data,
                     .result = arguments.d_input.data,
                     .adds = arguments.adds_input,
                     .workspace = engine_.workspace});
}

}  // namespace carousel::vendor
