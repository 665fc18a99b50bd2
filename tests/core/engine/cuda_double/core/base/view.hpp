// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// In the place of core/base/view.hpp, where a test compiles for a host what is written for GPUs: as
// much of Kokkos with CUDA as that names. Kernels run when they are launched, if they are.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/real.hpp"
#include "tests/core/engine/cuda_double.hpp"

#define KOKKOS_ENABLE_CUDA
#define KOKKOS_LAMBDA [=]
#define KOKKOS_INLINE_FUNCTION inline

// NOLINTBEGIN(readability-identifier-naming): as Kokkos calls them
namespace Kokkos {

namespace Impl {
enum class ManageStream : bool { no, yes };
}  // namespace Impl

class Cuda {
 public:
  Cuda() = default;
  Cuda(cudaStream_t stream, Impl::ManageStream manages)
      : stream_(stream), is_managed_(manages == Impl::ManageStream::yes) {}

  void fence(const std::string& /*name*/) const { carousel::test::finish_stream(stream_); }
  [[nodiscard]] cudaStream_t cuda_stream() const { return stream_; }
  [[nodiscard]] int cuda_device() const { return 2; }
  [[nodiscard]] int concurrency() const { return 1; }
  /// Whether Kokkos destroys the stream.
  [[nodiscard]] bool is_managed() const { return is_managed_; }

 private:
  cudaStream_t stream_ = nullptr;
  bool is_managed_ = true;
};

struct HostSpace {};
struct CudaSpace {};
struct SharedHostPinnedSpace {};

inline constexpr unsigned Unmanaged = 1;
template <unsigned Traits>
struct MemoryTraits {};

/// One number.
template <class T, class...>
class View {
 public:
  explicit View(const std::string& /*label*/) : number_(1) {}
  [[nodiscard]] T* data() const { return const_cast<T*>(number_.data()); }
  [[nodiscard]] T& operator()() const { return *data(); }

 private:
  std::vector<T> number_;
};

struct ChunkSize {
  explicit ChunkSize(int /*size*/) {}
};
struct Policy {
  Policy(const Cuda& exec, std::int64_t first, std::int64_t last, const ChunkSize& /*chunk*/)
      : stream(exec.cuda_stream()), begin(first), end(last) {}

  cudaStream_t stream;
  std::int64_t begin;
  std::int64_t end;
};

template <class Kernel>
void parallel_for(const std::string& /*label*/, const Policy& policy, const Kernel& kernel) {
  if (!carousel::test::launch(policy.stream)) return;  // as Kokkos, which says nothing
  for (std::int64_t i = policy.begin; i < policy.end; ++i) kernel(static_cast<int>(i));
}
template <class Exec, class To, class From>
void deep_copy(const Exec& exec, const To& to, const From& from);  // which nobody calls

}  // namespace Kokkos
// NOLINTEND(readability-identifier-naming)

namespace carousel {

using ExecutionSpace = Kokkos::Cuda;
using MemorySpace = Kokkos::CudaSpace;
using HostSpace = Kokkos::HostSpace;
using RangePolicy = Kokkos::Policy;
inline constexpr bool runs_on_host = false;

}  // namespace carousel
