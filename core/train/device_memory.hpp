// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory of one device of the plan: one allocation per category, made once, and the accountant
// that knows how many bytes of it are in use. Where things lie was decided by the memory plan.

#include <array>
#include <span>
#include <vector>

#include "core/base/category.hpp"
#include "core/base/view.hpp"
#include "core/data/source.hpp"
#include "core/engine/layer.hpp"
#include "core/plan/memory_plan.hpp"

namespace carousel {

class DeviceMemory {
 public:
  /// Allocates the arenas. Throws Error(usage) with the bytes asked for when they do not fit.
  DeviceMemory(const ExecutionSpace& exec, const MemoryPlan& plan, int device,
               const BufferCounts& counts);

  /// Makes all of it zeros, as it is at the beginning.
  void clear(const ExecutionSpace& exec) const;

  /// Flat vectors of one stage with what rides behind them. Parameters are as they are stored.
  [[nodiscard]] std::byte* parameters(int stage, std::int64_t version) const;
  /// The same of what is read in their place: with prediction, otherwise or where a device reads
  /// nothing else, parameters().
  [[nodiscard]] std::byte* predicted(int stage, std::int64_t version) const;
  /// A piece of them. Where the device keeps its shard alone, pieces lie by themselves.
  [[nodiscard]] std::byte* piece(const StageMemory& memory, int stage, std::int64_t version,
                                 int piece) const {
    return parameters(stage, version) +
           (keeps_shard_ ? memory.stored_before(piece) : memory.piece(piece).stored_begin);
  }
  /// Parameters of frozen layers; null where a stage has none.
  [[nodiscard]] std::byte* frozen(int stage) const;
  /// The same in full numbers, on who keeps checkpoints of it; null where frozen() has these.
  [[nodiscard]] real* frozen_full(int stage) const;
  /// Parameters that pass by.
  [[nodiscard]] std::byte* travelling(int buffer) const;
  /// Parameters in full numbers, which who updates them keeps beside what is stored otherwise or,
  /// with prediction, beside what is read in their place, of all its pieces one after the other.
  /// Null where there are none.
  [[nodiscard]] real* full_parameters(int stage, std::int64_t version) const;
  /// Whether those of the version before are kept, too.
  [[nodiscard]] bool keeps_full_before(int stage) const { return plan_.full[stage].size() > 1; }
  /// What an update of a whole stage reads and writes: these, or else what is stored.
  [[nodiscard]] real* updated_parameters(int stage, std::int64_t version) const {
    real* const full = full_parameters(stage, version);
    return full != nullptr ? full : reinterpret_cast<real*>(parameters(stage, version));
  }
  [[nodiscard]] real* gradient(int buffer) const;
  /// The norms of all stages, null where none are, and what gradients are multiplied by.
  [[nodiscard]] real* norms() const;
  [[nodiscard]] real* clip_factor() const { return norms() + stage_bytes_.size(); }
  /// Squares of a stage that is cut, [block]; null where this device updates none of it, or nobody
  /// asks for its norm.
  [[nodiscard]] double* block_sums(int stage) const;
  /// Null where this device keeps no optimizer state of the stage.
  [[nodiscard]] real* optimizer(int stage) const;
  [[nodiscard]] std::byte* frame(int stage, int frame) const;
  /// What came over the cut before the first stage of the device, for one of that stage's frames.
  [[nodiscard]] std::byte* landing(int frame) const;
  [[nodiscard]] std::byte* boundary(int stage, int buffer) const;
  /// Compute queues, each with scratch and a workspace of its own.
  [[nodiscard]] int queues() const { return plan_.queues(); }
  [[nodiscard]] std::byte* scratch(int queue) const;
  /// What kernels of a compute queue work with for the time of one call.
  [[nodiscard]] std::span<std::byte> workspace(int queue) const;
  /// Null where the device has not the first stage.
  [[nodiscard]] real* images(int input) const;
  /// Normalised values [c, pixel_levels]; null as images().
  [[nodiscard]] real* levels() const;
  /// Where a batch as it was read is copied to; null on hosts, and as images().
  [[nodiscard]] std::uint8_t* read_images() const;
  [[nodiscard]] ShownPart* parts() const;
  /// Null where the device has not the last stage.
  [[nodiscard]] std::byte* targets(int input) const;
  [[nodiscard]] int* samples(int input) const;
  /// What the loss of a micro-batch, or of a batch of an evaluation, reports.
  [[nodiscard]] double* report(int micro_batch) const;
  [[nodiscard]] double* evaluation(std::int64_t batch) const;

  /// Marks a frame as used from forward to release.
  void acquire_frame(int stage) { use(Category::activations, stage_bytes_[stage]); }
  void release_frame(int stage) { use(Category::activations, -stage_bytes_[stage]); }

  /// Counts memory that somebody else holds for this device.
  void add_external(Category category, std::int64_t bytes) { use(category, align_up(bytes)); }

  /// Bytes in use now, and the most there ever were. Categories other than activations hold
  /// what they hold from the start.
  [[nodiscard]] const CategoryBytes& in_use() const { return in_use_; }
  [[nodiscard]] const CategoryBytes& peak() const { return peak_; }
  /// The whole arena of a category, for tests that look at what was written.
  [[nodiscard]] const Bytes& arena(Category category) const {
    return arenas_[static_cast<std::size_t>(category)];
  }

 private:
  void use(Category category, std::int64_t bytes);
  [[nodiscard]] std::byte* at(Category category, std::int64_t offset) const {
    return arena(category).data() + offset;
  }

  DeviceMemoryPlan plan_;
  bool keeps_shard_;
  std::vector<std::int64_t> stage_bytes_;  // [stage] one frame, as it occupies the arena
  std::int64_t report_bytes_;
  std::array<Bytes, category_count> arenas_;
  CategoryBytes in_use_ = {};
  CategoryBytes peak_ = {};
};

}  // namespace carousel
