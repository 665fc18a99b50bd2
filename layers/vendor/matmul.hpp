// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Products of matrices by cuBLASLt, which lie by columns as it has them: how one is multiplied is
// chosen once for its shape and the alignment of its memory, by cuBLASLt's heuristic, not by
// timing.

#include <cublasLt.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/view.hpp"
#include "core/model/tensor_format.hpp"

namespace carousel::vendor {

/// One of the matrices of a product, by columns, and whether it is transposed.
struct Operand {
  int rows = 0;  // as it lies in memory
  int columns = 0;
  DataType type = DataType::full;
  bool transposed = false;
};

/// What is done with the sums beside storing them.
enum class Epilogue : std::uint8_t {
  none,
  add_vector,     // of the type of the result, to each of its columns
  sum_columns_b,  // b's columns, as they are multiplied, added up into a vector
};

struct ProductSpec {
  std::string layer;  // for who reads an error
  Operand a;
  Operand b;
  Operand result;  // never transposed
  Epilogue epilogue = Epilogue::none;
};

/// result = a b, or with what was there added to it. Sums are in the type `real`.
class Product {
 public:
  /// `workspace` bytes are the most that it works with.
  Product(cublasLtHandle_t handle, ProductSpec spec, std::int64_t workspace);
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  Product(Product&& other) noexcept;
  Product& operator=(Product&&) = delete;
  ~Product();

  struct Memory {
    const void* a = nullptr;
    const void* b = nullptr;
    void* result = nullptr;
    void* vector = nullptr;  // of the epilogue
    bool adds = false;
    std::span<std::byte> workspace = {};
  };
  /// Enqueues the product. Throws Error(internal) with the layer where cuBLASLt offers nothing.
  void operator()(const ExecutionSpace& exec, const Memory& memory);
  /// Whether cuBLASLt offers one for memory that is aligned so.
  [[nodiscard]] bool is_offered(const Memory& memory);

 private:
  /// An algorithm that takes memory that is aligned so.
  struct Chosen {
    std::array<std::uint32_t, 4> alignments = {};  // of a, b, the result and the vector
    cublasLtMatmulAlgo_t algorithm = {};
  };
  [[nodiscard]] const cublasLtMatmulAlgo_t* choose(const Memory& memory);

  cublasLtHandle_t handle_;
  ProductSpec spec_;
  std::int64_t usable_;  // bytes of the workspace
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr;
  cublasLtMatrixLayout_t b_ = nullptr;
  cublasLtMatrixLayout_t result_ = nullptr;
  std::vector<Chosen> chosen_;
};

}  // namespace carousel::vendor
