// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/vendor/reorder.hpp"

#include "core/base/range.hpp"
#include "layers/stored.hpp"

namespace carousel::vendor {
namespace {

template <class From, class To>
void run_channels_last(const ExecutionSpace& exec, const ChannelOrder& order, const From* from,
                       To* to) {
  static const std::string label = "carousel::layers::put_channels_last";
  Kokkos::parallel_for(
      label, range(exec, order.size()), KOKKOS_LAMBDA(std::int64_t i) {
        const int c = static_cast<int>(i % order.filled);
        const std::int64_t pixel = i / order.filled % order.pixels;
        const std::int64_t outer = i / order.filled / order.pixels;
        const std::int64_t place = (outer * order.channels + c) * order.pixels + pixel;
        put(to[i], c < order.channels ? full(from[place]) : real{0});
      });
}

template <class From>
void run_channels_first(const ExecutionSpace& exec, const ChannelOrder& order, const From* from,
                        real* to) {
  static const std::string label = "carousel::layers::put_channels_first";
  Kokkos::parallel_for(
      label, range(exec, order.outer * order.channels * order.pixels),
      KOKKOS_LAMBDA(std::int64_t i) {
        const std::int64_t pixel = i % order.pixels;
        const std::int64_t c = i / order.pixels % order.channels;
        const std::int64_t outer = i / order.pixels / order.channels;
        to[i] = full(from[(outer * order.pixels + pixel) * order.filled + c]);
      });
}

}  // namespace

void put_channels_last(const ExecutionSpace& exec, const ChannelOrder& order, DataType from_type,
                       const void* from, DataType to_type, void* to) {
  with_stored(from_type, [&]<class From>() {
    with_stored(to_type, [&]<class To>() {
      run_channels_last(exec, order, static_cast<const From*>(from), static_cast<To*>(to));
    });
  });
}

void put_channels_first(const ExecutionSpace& exec, const ChannelOrder& order, DataType from_type,
                        const void* from, real* to) {
  with_stored(from_type, [&]<class From>() {
    run_channels_first(exec, order, static_cast<const From*>(from), to);
  });
}

}  // namespace carousel::vendor
