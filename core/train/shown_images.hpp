// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernel between images as they were read and what a model sees: crops, mirrors and normalises.
// Which part of an image is shown was decided before.

#include <cstdint>
#include <vector>

#include "core/base/real.hpp"
#include "core/base/view.hpp"
#include "core/data/prefetcher.hpp"
#include "core/data/source.hpp"

namespace carousel {

/// (x / 255 - mean) / std of every value x of a channel, rounded once from double: [c, 256].
[[nodiscard]] std::vector<real> normalised_levels(const std::vector<double>& mean,
                                                  const std::vector<double>& std);

/// All in the memory of `exec`: `read` is [n, source.input], `parts` [n], `levels` as above;
/// `shown` is [n, source.shown] and overwritten. Outside of an image there are zeros, which are
/// normalised as any value is.
void show_images(const ExecutionSpace& exec, const SourceSpec& source, int n,
                 const std::uint8_t* read, const ShownPart* parts, const real* levels, real* shown);

/// Where a batch is shown; all in the memory of devices. What was read is copied to `read` and
/// `parts` first, unless they are null, as on hosts.
struct ShowMemory {
  std::uint8_t* read = nullptr;
  ShownPart* parts = nullptr;
  const real* levels = nullptr;
  real* shown = nullptr;
};
/// Shows a batch to a model: images by show_images() on `kernels`, others as they were read. Copies
/// are enqueued on `copies`, which is in order with that.
void show_batch(const ExecutionSpace& copies, const ExecutionSpace& kernels,
                const SourceSpec& source, const Batch& batch, const ShowMemory& memory);

}  // namespace carousel
