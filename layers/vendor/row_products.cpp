// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/vendor/row_products.hpp"

#include <utility>

#include "core/base/copy.hpp"
#include "core/model/workspace.hpp"
#include "layers/channels_last/column_sums.hpp"
#include "layers/vendor/handles.hpp"
#include "layers/vendor/workspace.hpp"

namespace carousel::vendor {
namespace {

static_assert(norm_workspace <= usable_bytes(product_workspace));

/// Numbers of rows, column by column.
template <class Stored>
struct RowNumbers {
  const Stored* data;
  int columns;

  template <int Width>
  KOKKOS_FUNCTION void add(int c, std::int64_t row, int stride, std::int64_t end,
                           channels_last::Sums* sums) const {
    for (; row < end; row += stride) {
      const auto values = read_pack<Width>(data + row * columns + c);
      for (int l = 0; l < Width; ++l) sums[l].first += double{full(values.at[l])};
    }
  }
};

/// sums[j] = sum over i of rows[i][j], by all of a GPU.
template <class Stored>
void sum_rows(const ExecutionSpace& exec, int n, int columns, const Stored* rows,
              std::span<std::byte> workspace, real* sums) {
  static const std::string chunks = "carousel::layers::sum_rows";
  static const std::string total = "carousel::layers::sum_rows_total";
  channels_last::add_up(
      exec, {chunks, total}, n, columns, RowNumbers<Stored>{rows, columns},
      reinterpret_cast<double*>(aligned(workspace)),
      KOKKOS_LAMBDA(int c, const channels_last::Sums& found) {
        sums[c] = static_cast<real>(found.first);
      });
}

}  // namespace

RowProducts::RowProducts(const Engine& engine, std::string label, int in, int out, DataType type,
                         int rows)
    : engine_(engine), label_(std::move(label)), in_(in), out_(out), type_(type) {
  products(rows);
}

RowProducts::Products& RowProducts::products(int rows) {
  const auto known = products_.find(rows);
  if (known != products_.end()) return known->second;
  const auto product = [&](const char* what, Operand a, Operand b, Operand result,
                           Epilogue epilogue) {
    return Product(engine_.vendor->cublas, {label_ + what, a, b, result, epilogue},
                   product_workspace);
  };
  // Rows of ours are columns of theirs: X is [in, rows], W [in, out], Y [out, rows].
  const Operand x = {in_, rows, type_};
  const Operand w = {in_, out_, type_};
  const Operand y = {out_, rows, type_};
  const auto transposed = [](Operand operand) {
    operand.transposed = true;
    return operand;
  };
  const auto d_weights = [&](Epilogue epilogue) {
    return product(", gradient of the weights", x, transposed(y), {in_, out_, DataType::full},
                   epilogue);
  };
  return products_
      .emplace(rows, Products{product("", transposed(w), x, y, Epilogue::add_vector),
                              d_weights(Epilogue::sum_columns_b), d_weights(Epilogue::none),
                              product(", gradient of the input", w, y, x, Epilogue::none)})
      .first->second;
}

void RowProducts::forward(const ExecutionSpace& exec, int rows, const void* x, const void* weights,
                          const real* bias, void* y) {
  std::span<std::byte> workspace = engine_.workspace;
  const void* added = bias;
  if (type_ == DataType::bfloat16) {
    auto* rounded = reinterpret_cast<Bfloat16*>(workspace.data() + product_workspace);
    shorten(exec, bias, rounded, out_);
    added = rounded;
  }
  products(rows).forward(exec, {.a = weights,
                                .b = x,
                                .result = y,
                                .vector = const_cast<void*>(added),
                                .workspace = workspace});
}

void RowProducts::find_parameter_gradients(const ExecutionSpace& exec, int rows, const void* x,
                                           const void* d_y, real* d_weights, real* d_bias) {
  Products& all = products(rows);
  Product::Memory memory = {
      .a = x, .b = d_y, .result = d_weights, .vector = d_bias, .workspace = engine_.workspace};
  if (all.d_weights_and_bias.is_offered(memory)) return all.d_weights_and_bias(exec, memory);
  memory.vector = nullptr;
  all.d_weights(exec, memory);
  with_stored(type_, [&]<class Stored>() {
    sum_rows(exec, rows, out_, static_cast<const Stored*>(d_y), engine_.workspace, d_bias);
  });
}

void RowProducts::find_input_gradient(const ExecutionSpace& exec, int rows, const void* weights,
                                      const void* d_y, void* d_x, bool adds) {
  products(rows).d_input(
      exec, {.a = weights, .b = d_y, .result = d_x, .adds = adds, .workspace = engine_.workspace});
}

}  // namespace carousel::vendor
