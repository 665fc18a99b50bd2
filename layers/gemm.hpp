// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Matrix products C = epilogue(A B) of borrowed matrices as one tiled kernel on any backend. It is
// the reference and the fallback; products of vendor libraries are found elsewhere.

#include "core/base/check.hpp"
#include "layers/gemm_kernel.hpp"

namespace carousel {

/// C = epilogue(A B) for any m, n, k >= 1, of factors as the kernel sees them; C overlaps neither.
/// Every sum runs over k in ascending order in one accumulator, so that threads, tiles and backends
/// change no bits as long as the compiler contracts multiply and add alike.
template <class A, class B, class Epilogue = StoreSum>
void gemm(const ExecutionSpace& exec, const std::string& label, const GemmShape& shape, const A& a,
          const B& b, const Matrix& c, const Epilogue& epilogue = {}) {
  CAROUSEL_CHECK(shape.m >= 1 && shape.n >= 1 && shape.k >= 1, "m = {}, n = {}, k = {}", shape.m,
                 shape.n, shape.k);
  const auto launch = [&]<class Tiles>(const detail::GemmTile& tile) {
    detail::GemmKernel<Tiles, A, B, Epilogue>(shape, tile, a, b, c, epilogue).launch(exec, label);
  };
  if constexpr (runs_on_host) {
    launch.template operator()<detail::HostTiles>(detail::host_tile(shape, concurrency(exec)));
  } else {
    using Large = detail::DeviceTiles<8>;
    using Small = detail::DeviceTiles<4>;  // so that more multiprocessors have work
    if (static_cast<std::int64_t>(shape.m) * shape.n >= 128 * 128 * 64)
      launch.template operator()<Large>({Large::panel_m, Large::panel_n});
    else
      launch.template operator()<Small>({Small::panel_m, Small::panel_n});
  }
}

/// The product of two plain matrices.
template <class Epilogue = StoreSum>
void gemm(const ExecutionSpace& exec, const std::string& label, const GemmShape& shape,
          const ConstMatrix& a, const ConstMatrix& b, const Matrix& c,
          const Epilogue& epilogue = {}) {
  gemm(exec, label, shape, Vectors{a.data, a.row_stride, a.column_stride},
       Vectors{b.data, b.column_stride, b.row_stride}, c, epilogue);
}

}  // namespace carousel
