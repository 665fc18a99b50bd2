// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/convert.hpp"

#include "core/base/check.hpp"
#include "core/base/copy.hpp"
#include "layers/stored.hpp"

namespace carousel {
namespace {

/// Where number `pixel` of plane `plane`, of all samples' channels, lies.
struct Order {
  std::int64_t pixels;
  int block;

  [[nodiscard]] KOKKOS_FUNCTION std::int64_t begin(std::int64_t plane) const {
    return plane / block * block * pixels + plane % block;
  }
};

/// A host copies plane by plane, a GPU number by number.
template <class From, class To>
void reorder(const ExecutionSpace& exec, const From* from, const Order& of_from, To* to,
             const Order& of_to, std::int64_t planes) {
  static const std::string label = "carousel::layers::reorder";
  const std::int64_t pixels = of_from.pixels;
  const std::int64_t at_once = runs_on_host ? pixels : 1;
  Kokkos::parallel_for(
      label, range(exec, planes * pixels / at_once), KOKKOS_LAMBDA(std::int64_t k) {
        const std::int64_t plane = k * at_once / pixels;
        const std::int64_t first = k * at_once % pixels;
        const From* x = from + of_from.begin(plane);
        To* y = to + of_to.begin(plane);
        for (std::int64_t p = first; p < first + at_once; ++p)
          put(y[p * of_to.block], full(x[p * of_from.block]));
      });
}

template <class Stored>
void move(const ExecutionSpace& exec, const Stored* from, Stored* to, std::int64_t size) {
  copy<MemorySpace, MemorySpace>(exec, to, from, static_cast<std::size_t>(size) * sizeof(Stored));
}
void move(const ExecutionSpace& exec, const Bfloat16* from, real* to, std::int64_t size) {
  expand(exec, from, to, size);
}
void move(const ExecutionSpace& exec, const real* from, Bfloat16* to, std::int64_t size) {
  shorten(exec, from, to, size);
}

}  // namespace

void convert(const ExecutionSpace& exec, const StoredTensor& from, const StoredTensor& to,
             const SampleShape& shape, int n) {
  for (const TensorFormat& format : {from.format, to.format})
    CAROUSEL_CHECK(shape.channels % format.block == 0, "{} in {}", to_string(shape),
                   to_string(format));
  const std::int64_t pixels = shape.pixels();
  const bool reorders = from.format.block != to.format.block && pixels > 1;
  with_stored(from.format.type, [&]<class From>() {
    with_stored(to.format.type, [&]<class To>() {
      const auto* x = static_cast<const From*>(from.data);
      auto* y = static_cast<To*>(to.data);
      if (!reorders) return move(exec, x, y, n * shape.size());
      reorder(exec, x, Order{pixels, from.format.block}, y, Order{pixels, to.format.block},
              std::int64_t{n} * shape.channels);
    });
  });
}

}  // namespace carousel
