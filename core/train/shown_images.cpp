// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/shown_images.hpp"

#include "core/base/copy.hpp"
#include "core/base/range.hpp"
#include "core/plan/memory_plan.hpp"

namespace carousel {

std::vector<real> normalised_levels(const std::vector<double>& mean,
                                    const std::vector<double>& std) {
  std::vector<real> levels;
  for (std::size_t c = 0; c < mean.size(); ++c) {
    for (int x = 0; x < pixel_levels; ++x)
      levels.push_back(static_cast<real>((static_cast<double>(x) / 255 - mean[c]) / std[c]));
  }
  return levels;
}

void show_images(const ExecutionSpace& exec, const SourceSpec& source, int n,
                 const std::uint8_t* read, const ShownPart* parts, const real* levels,
                 real* shown) {
  static const std::string label = "carousel::train::show_images";
  const SampleShape from = source.input.shape;
  const SampleShape to = source.shown;
  // A thread of a host takes a row, one of an accelerator a pixel.
  const int along = runs_on_host ? to.width : 1;
  Kokkos::parallel_for(
      label, pieces(exec, n * to.size() / along), KOKKOS_LAMBDA(std::int64_t piece) {
        const std::int64_t first = piece * along;
        const auto begin = static_cast<int>(first % to.width);
        const std::int64_t row = first / to.width;
        const auto y = static_cast<int>(row % to.height);
        const std::int64_t plane = row / to.height;
        const auto c = static_cast<int>(plane % to.channels);
        const ShownPart part = parts[plane / to.channels];
        const real* const values = levels + c * pixel_levels;
        const int from_y = part.top + y;
        const bool inside = from_y >= 0 && from_y < from.height;
        const std::uint8_t* const line = read + (plane * from.height + from_y) * from.width;
        for (int x = begin; x < begin + along; ++x) {
          const int from_x = part.left + (part.mirrored != 0 ? to.width - 1 - x : x);
          const bool exists = inside && from_x >= 0 && from_x < from.width;
          shown[row * to.width + x] = values[exists ? line[from_x] : 0];
        }
      });
}

void show_batch(const ExecutionSpace& copies, const ExecutionSpace& kernels,
                const SourceSpec& source, const Batch& batch, const ShowMemory& memory) {
  const std::span<const std::byte> inputs = batch.inputs;
  if (source.is_shown_as_read())
    return copy<MemorySpace, HostSpace>(copies, memory.shown, inputs.data(), inputs.size_bytes());
  const auto* images = reinterpret_cast<const std::uint8_t*>(inputs.data());
  const ShownPart* parts = batch.parts.data();
  if (memory.read != nullptr) {
    copy<MemorySpace, HostSpace>(copies, memory.read, images, inputs.size_bytes());
    copy<MemorySpace, HostSpace>(copies, memory.parts, parts, batch.parts.size_bytes());
    images = memory.read;
    parts = memory.parts;
  }
  show_images(kernels, source, batch.request.count, images, parts, memory.levels, memory.shown);
}

}  // namespace carousel
