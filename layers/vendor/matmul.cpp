// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/vendor/matmul.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/cuda_stream.hpp"
#include "layers/vendor/workspace.hpp"

namespace carousel::vendor {
namespace {

void must(cublasStatus_t status, const char* call, const std::string& layer) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(ExitCode::internal, "{}: {}: {}", layer, call, cublasLtGetStatusString(status));
}
#define CAROUSEL_CUBLAS(call) must(call, #call, spec_.layer)

constexpr bool is_double = sizeof(real) == sizeof(double);
constexpr cudaDataType_t real_type = is_double ? CUDA_R_64F : CUDA_R_32F;
// Without TF32, whose products have 10 bits: fp32 means what it says.
constexpr cublasComputeType_t compute_type = is_double ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;

cudaDataType_t cuda_type(DataType type) {
  return type == DataType::full ? real_type : CUDA_R_16BF;
}

cublasLtEpilogue_t cublas_epilogue(Epilogue epilogue) {
  if (epilogue == Epilogue::add_vector) return CUBLASLT_EPILOGUE_BIAS;
  return epilogue == Epilogue::none ? CUBLASLT_EPILOGUE_DEFAULT : CUBLASLT_EPILOGUE_BGRADB;
}

/// What an address is a multiple of, as far as kernels care. What frames of the same tensor differ
/// in chooses nothing, so that bits do not depend on where it lies.
std::uint32_t alignment_of(const void* memory) {
  constexpr std::uintptr_t most = 16;
  const auto address = reinterpret_cast<std::uintptr_t>(memory) | most;
  return static_cast<std::uint32_t>(address & (~address + 1));
}

}  // namespace

Product::Product(cublasLtHandle_t handle, ProductSpec spec, std::int64_t workspace)
    : handle_(handle), spec_(std::move(spec)), usable_(usable_bytes(workspace)) {
  CAROUSEL_CUBLAS(cublasLtMatmulDescCreate(&operation_, compute_type, real_type));
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    CAROUSEL_CUBLAS(cublasLtMatmulDescSetAttribute(operation_, attribute, &value, sizeof(value)));
  };
  const auto as_read = [](const Operand& operand) {
    return operand.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, as_read(spec_.a));
  set(CUBLASLT_MATMUL_DESC_TRANSB, as_read(spec_.b));
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, cublas_epilogue(spec_.epilogue));
  const auto lay_out = [&](cublasLtMatrixLayout_t& layout, const Operand& operand) {
    CAROUSEL_CUBLAS(cublasLtMatrixLayoutCreate(&layout, cuda_type(operand.type), operand.rows,
                                               operand.columns, operand.rows));
  };
  lay_out(a_, spec_.a);
  lay_out(b_, spec_.b);
  lay_out(result_, spec_.result);
}

Product::Product(Product&& other) noexcept
    : handle_(other.handle_),
      spec_(std::move(other.spec_)),
      usable_(other.usable_),
      operation_(std::exchange(other.operation_, nullptr)),
      a_(std::exchange(other.a_, nullptr)),
      b_(std::exchange(other.b_, nullptr)),
      result_(std::exchange(other.result_, nullptr)),
      chosen_(std::move(other.chosen_)) {}

Product::~Product() {
  for (cublasLtMatrixLayout_t layout : {a_, b_, result_})
    if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
  if (operation_ != nullptr) cublasLtMatmulDescDestroy(operation_);
}

void Product::operator()(const ExecutionSpace& exec, const Memory& memory) {
  CAROUSEL_CHECK(usable_bytes(std::ssize(memory.workspace)) >= usable_,
                 "{}: a workspace of {} bytes", spec_.layer, memory.workspace.size());
  const real one = 1;
  const real others = memory.adds ? 1 : 0;
  const cublasLtMatmulAlgo_t* algorithm = choose(memory);
  if (algorithm == nullptr)
    fail(ExitCode::internal,
         "{}: cuBLASLt has no product of {} x {} by {} x {} with {} bytes to work with; set "
         "engine.vendor = \"none\"",
         spec_.layer, spec_.a.rows, spec_.a.columns, spec_.b.rows, spec_.b.columns, usable_);
  CAROUSEL_CUBLAS(cublasLtMatmul(handle_, operation_, &one, memory.a, a_, memory.b, b_, &others,
                                 memory.result, result_, memory.result, result_, algorithm,
                                 aligned(memory.workspace), static_cast<std::size_t>(usable_),
                                 stream_of(exec)));
}

bool Product::is_offered(const Memory& memory) {
  return choose(memory) != nullptr;
}

/// Null where there is none.
const cublasLtMatmulAlgo_t* Product::choose(const Memory& memory) {
  // It tells the heuristic, too, how the vector is aligned.
  if (spec_.epilogue != Epilogue::none)
    CAROUSEL_CUBLAS(cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                   &memory.vector, sizeof(memory.vector)));
  const std::array alignments = {alignment_of(memory.a), alignment_of(memory.b),
                                 alignment_of(memory.result), alignment_of(memory.vector)};
  const auto known = std::ranges::find(chosen_, alignments, &Chosen::alignments);
  if (known != chosen_.end()) return &known->algorithm;
  cublasLtMatmulPreference_t wish = nullptr;
  CAROUSEL_CUBLAS(cublasLtMatmulPreferenceCreate(&wish));
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    CAROUSEL_CUBLAS(cublasLtMatmulPreferenceSetAttribute(wish, attribute, &value, sizeof(value)));
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(usable_));
  // What is added up in parts would otherwise be rounded to the type of the result in between.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      std::uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignments[0]);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignments[1]);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignments[2]);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignments[2]);
  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle_, operation_, a_, b_, result_,
                                                               result_, wish, 1, &found, &count);
  cublasLtMatmulPreferenceDestroy(wish);
  if (status != CUBLAS_STATUS_SUCCESS || count == 0 || found.state != CUBLAS_STATUS_SUCCESS)
    return nullptr;
  chosen_.push_back({alignments, found.algo});
  return &chosen_.back().algorithm;
}

}  // namespace carousel::vendor
