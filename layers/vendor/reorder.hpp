// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// From PyTorch's order of dimensions, channels before pixels, to the one that tensor cores want,
// channels side by side and filled up to whole vectors, and back.

#include "core/base/view.hpp"
#include "core/model/tensor_format.hpp"

namespace carousel::vendor {

/// [outer][channels][pixels], which becomes [outer][pixels][filled].
struct ChannelOrder {
  std::int64_t outer = 0;
  int channels = 0;
  int pixels = 0;
  int filled = 0;  // at least `channels`; zeros fill up

  [[nodiscard]] std::int64_t size() const { return outer * pixels * filled; }
};

/// to = from; `from_type` and `to_type` are those of the numbers.
void put_channels_last(const ExecutionSpace& exec, const ChannelOrder& order, DataType from_type,
                       const void* from, DataType to_type, void* to);
/// The other way, into full numbers; what fills up is left out.
void put_channels_first(const ExecutionSpace& exec, const ChannelOrder& order, DataType from_type,
                        const void* from, real* to);

}  // namespace carousel::vendor
