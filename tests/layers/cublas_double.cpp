// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/layers/cublas_double.hpp"

#include <array>
#include <cstring>

#include "core/base/bfloat16.hpp"
#include "core/base/check.hpp"

namespace {

using carousel::Bfloat16;

struct Layout {
  cudaDataType type;
  std::uint64_t rows;
  std::uint64_t columns;
  std::int64_t pitch;
};

struct Operation {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t a = CUBLAS_OP_N;
  cublasOperation_t b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* vector = nullptr;
};

struct Preference {
  std::uint64_t workspace = 0;
  std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::array<std::uint32_t, 4> alignments = {256, 256, 256, 256};  // of A, B, C and D
};

/// What an algorithm was made for, in the room that cuBLASLt's own has.
struct Algorithm {
  std::uint64_t workspace;
  std::array<std::uint32_t, 4> alignments;
  bool rounds_parts;  // adds up two halves that it has stored in the type of the result
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

carousel::test::CublasCalls calls;  // NOLINT: one library per process
int refused = 0;                    // NOLINT
std::size_t needed = 0;             // NOLINT

template <class Ours, class Theirs>
const Ours& as(const Theirs* theirs) {
  return *reinterpret_cast<const Ours*>(theirs);
}

template <class Ours, class Theirs>
cublasStatus_t make(Theirs** made, const Ours& ours) {
  ++calls.open;
  *made = reinterpret_cast<Theirs*>(new Ours(ours));
  return CUBLAS_STATUS_SUCCESS;
}
template <class Ours, class Theirs>
cublasStatus_t destroy(Theirs* theirs) {
  --calls.open;
  delete reinterpret_cast<Ours*>(theirs);
  return CUBLAS_STATUS_SUCCESS;
}

template <class Value>
cublasStatus_t put(Value& value, const void* from, std::size_t bytes) {
  if (bytes != sizeof(Value)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&value, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

double get(cudaDataType type, const void* data, std::int64_t index) {
  if (type == CUDA_R_32F) return static_cast<const float*>(data)[index];
  if (type == CUDA_R_64F) return static_cast<const double*>(data)[index];
  return carousel::to_float(static_cast<const Bfloat16*>(data)[index]);
}
/// As it is when a number of the type was stored.
double rounded(cudaDataType type, double value) {
  if (type == CUDA_R_16BF)
    return carousel::to_float(carousel::to_bfloat16(static_cast<float>(value)));
  return type == CUDA_R_32F ? double{static_cast<float>(value)} : value;
}
void set(cudaDataType type, void* data, std::int64_t index, double value) {
  if (type == CUDA_R_32F)
    static_cast<float*>(data)[index] = static_cast<float>(value);
  else if (type == CUDA_R_64F)
    static_cast<double*>(data)[index] = value;
  else
    static_cast<Bfloat16*>(data)[index] = carousel::to_bfloat16(static_cast<float>(value));
}

struct Factor {
  const Layout& layout;
  bool transposed;
  const void* data = nullptr;

  [[nodiscard]] std::uint64_t rows() const { return transposed ? layout.columns : layout.rows; }
  [[nodiscard]] std::uint64_t columns() const { return transposed ? layout.rows : layout.columns; }
  [[nodiscard]] double at(std::int64_t row, std::int64_t column) const {
    if (transposed) std::swap(row, column);
    return get(layout.type, data, column * layout.pitch + row);
  }
};

bool fit(const Operation& operation, const Factor& a, const Factor& b, const Layout& d) {
  return a.rows() == d.rows && b.columns() == d.columns && a.columns() == b.rows() &&
         a.layout.type == b.layout.type &&
         (operation.compute == CUBLAS_COMPUTE_32F ? operation.scale == CUDA_R_32F
                                                  : operation.scale == CUDA_R_64F);
}

bool is_aligned(const void* data, std::uint32_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
}

}  // namespace

namespace carousel::test {

const CublasCalls& cublas_calls() {
  return calls;
}
void clear_cublas() {
  const int open = calls.open;
  calls = {};
  calls.open = open;
  refused = 0;
  needed = 0;
}
void refuse_epilogue(int epilogue) {
  refused = epilogue;
}
void need_workspace(std::size_t bytes) {
  needed = bytes;
}

}  // namespace carousel::test

// ---- What stands in cublasLt.h ------------------------------------------------------------------

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return make(handle, 0);
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return destroy<int>(handle);
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE ? "invalid value" : "not supported";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  return make(made, Operation{.compute = compute, .scale = scale});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  return destroy<Operation>(operation);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t made,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  auto& operation = *reinterpret_cast<Operation*>(made);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return put(operation.a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return put(operation.b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return put(operation.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return put(operation.vector, value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t pitch) {
  if (pitch < static_cast<std::int64_t>(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  return make(made, Layout{type, rows, columns, pitch});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy<Layout>(layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  return make(made, Preference{});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy<Preference>(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t made,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  auto& preference = *reinterpret_cast<Preference*>(made);
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    return put(preference.workspace, value, bytes);
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
    return put(preference.schemes, value, bytes);
  const int matrix = attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
  if (matrix < 0 || matrix > 3) return CUBLAS_STATUS_INVALID_VALUE;
  return put(preference.alignments[static_cast<std::size_t>(matrix)], value, bytes);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t /*handle*/,
                                              cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t found[],  // NOLINT
                                              int* count) {
  ++calls.heuristics;
  const auto& what = as<Operation>(operation);
  const Factor left{as<Layout>(a), what.a == CUBLAS_OP_T};
  const Factor right{as<Layout>(b), what.b == CUBLAS_OP_T};
  const auto& wish = as<Preference>(preference);
  *count = 0;
  if (wanted < 1 || !fit(what, left, right, as<Layout>(d)) ||
      as<Layout>(c).type != as<Layout>(d).type)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (what.epilogue == refused || needed > wish.workspace) return CUBLAS_STATUS_NOT_SUPPORTED;
  // Of the algorithms that are allowed, the one that rounds most is taken to be the fastest.
  constexpr std::uint32_t rounding =
      CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  const Algorithm algorithm{needed, wish.alignments, (wish.schemes & rounding) != 0};
  std::memcpy(&found[0].algo, &algorithm, sizeof(algorithm));
  found[0].workspaceSize = needed;
  found[0].state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t operation,
                              const void* alpha, const void* a_data,
                              cublasLtMatrixLayout_t a_layout, const void* b_data,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c_data,
                              cublasLtMatrixLayout_t /*c_layout*/, void* d_data,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, std::size_t workspace_bytes,
                              cudaStream_t /*stream*/) {
  const auto& what = as<Operation>(operation);
  const Factor a{as<Layout>(a_layout), what.a == CUBLAS_OP_T, a_data};
  const Factor b{as<Layout>(b_layout), what.b == CUBLAS_OP_T, b_data};
  const auto& d = as<Layout>(d_layout);
  const auto& chosen = as<Algorithm>(algo);
  const bool has_vector = what.epilogue != CUBLASLT_EPILOGUE_DEFAULT;
  if (!fit(what, a, b, d) || c_data != d_data || workspace_bytes < chosen.workspace ||
      (workspace_bytes > 0 && (workspace == nullptr || !is_aligned(workspace, 256))) ||
      has_vector != (what.vector != nullptr))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!is_aligned(a_data, chosen.alignments[0]) || !is_aligned(b_data, chosen.alignments[1]) ||
      !is_aligned(c_data, chosen.alignments[2]) || !is_aligned(d_data, chosen.alignments[3]))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const double factor = get(what.scale, alpha, 0);
  const double others = get(what.scale, beta, 0);
  for (std::uint64_t row = 0; row < d.rows; ++row) {
    for (std::uint64_t column = 0; column < d.columns; ++column) {
      double sum = 0;
      for (std::uint64_t k = 0; k < a.columns(); ++k) {
        if (chosen.rounds_parts && 2 * k == a.columns()) sum = rounded(d.type, sum);
        sum += a.at(row, k) * b.at(k, column);
      }
      const auto index =
          static_cast<std::int64_t>(column) * d.pitch + static_cast<std::int64_t>(row);
      double value = factor * sum;
      if (others != 0) value += others * get(d.type, d_data, index);
      if (what.epilogue == CUBLASLT_EPILOGUE_BIAS) value += get(d.type, what.vector, row);
      set(d.type, d_data, index, value);
    }
  }
  if (what.epilogue == CUBLASLT_EPILOGUE_BGRADB) {
    for (std::uint64_t column = 0; column < d.columns; ++column) {
      double sum = 0;
      for (std::uint64_t k = 0; k < b.rows(); ++k) sum += b.at(k, column);
      set(d.type, what.vector, column, sum);
    }
  }
  const auto name = [](const Factor& read) {
    return fmt::format("{} {}x{}", read.transposed ? "T" : "N", read.layout.rows,
                       read.layout.columns);
  };
  calls.products.push_back(fmt::format("{} {} = {}x{}{}", name(a), name(b), d.rows, d.columns,
                                       what.epilogue == CUBLASLT_EPILOGUE_BIAS ? " bias"
                                       : has_vector                            ? " sums"
                                                                               : ""));
  return CUBLAS_STATUS_SUCCESS;
}
