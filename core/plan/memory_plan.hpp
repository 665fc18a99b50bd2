// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory of every device, to the byte, before anything is allocated: one arena per category
// and the offset of each buffer that the schedule names.

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/category.hpp"
#include "core/optim/optimizer.hpp"
#include "core/plan/schedule.hpp"
#include "core/plan/stage_memory.hpp"

namespace carousel {

/// Offsets, in bytes, into the arena of the category that the name says.
struct DeviceMemoryPlan {
  std::vector<std::vector<std::int64_t>> parameters;  // [copy][stage] or its shard, -1: not here;
                                                      // copy 1 is in another category
  // [stage][copy] what is read in place of parameters, beside them; in parameters.
  std::vector<std::vector<std::int64_t>> predicted = {};
  std::vector<std::int64_t> frozen = {};  // [stage] that it runs, -1: nothing of it; in parameters
  // [stage] that it updates, the same in full numbers where some are stored otherwise; behind the
  // optimizer's.
  std::vector<std::int64_t> frozen_full = {};
  std::vector<std::int64_t> travelling;  // [buffer], in parameters
  std::vector<std::int64_t> gradients;   // [buffer]
  std::int64_t norms = -1;  // [S] of the stages, and what follows from them, in gradients
  std::vector<std::int64_t> block_sums = {};  // [stage] that is cut, of all its blocks, likewise
  std::vector<std::int64_t> optimizer;        // [stage], -1: not here
  // [stage][copy] parameters in full numbers where others are stored, or with prediction those of
  // two versions, behind the optimizer's.
  std::vector<std::vector<std::int64_t>> full;
  std::vector<std::vector<std::int64_t>> frames;      // [stage][frame], in activations
  std::vector<std::int64_t> frame_bytes;              // [stage]
  std::vector<std::int64_t> landings;                 // [frame] of the first stage, in boundary
  std::vector<std::int64_t> scratches;                // [compute queue]
  std::vector<std::int64_t> workspaces;               // [compute queue], in workspace
  std::int64_t workspace_bytes = 0;                   // of each
  std::vector<std::vector<std::int64_t>> boundaries;  // [stage][buffer]
  std::vector<std::int64_t> images;                   // [input], in data, with the first stage
  std::int64_t levels = -1;           // [c, 256] normalised values of images, in data, likewise
  std::int64_t read = -1;             // a batch as it was read, in data, likewise
  std::int64_t parts = -1;            // of its images, likewise
  std::vector<std::int64_t> targets;  // [input], in data, with the last stage
  std::vector<std::int64_t> samples;  // [input], numbers of the samples, in data
  std::int64_t reports = 0;           // [N] of the training step, in data
  std::int64_t evaluation = 0;        // [batches] of an evaluation, in data
  std::int64_t staging = 0;           // what the prefetcher fills, in data
  CategoryBytes bytes = {};           // size of each arena
  CategoryBytes peak = {};            // most in use at once; see plan_memory()

  [[nodiscard]] std::int64_t total() const;
  /// Compute queues of the device.
  [[nodiscard]] int queues() const { return static_cast<int>(workspaces.size()); }
};

struct MemoryPlan {
  std::vector<StageMemory> stages;
  std::vector<DeviceMemoryPlan> devices;
  std::int64_t evaluation_batches = 0;
  std::int64_t largest_message = 0;  // bytes
  int optimizer_states = 0;          // numbers beside each parameter

  /// Bytes that one micro-batch reports.
  [[nodiscard]] std::int64_t report_bytes() const {
    return carousel::report_bytes(stages.empty() ? 0 : stages.back().sums);
  }
};

/// What the plan needs to know beside the schedule.
struct MemorySpec {
  SampleShape input;
  bool shows_images = true;       // which devices normalise; otherwise inputs are shown as read
  std::int64_t read_bytes = 0;    // of an input that is copied to the device first; 0 on hosts
  std::int64_t target_bytes = 0;  // of a sample
  int micro_batch_size = 1;
  OptimizerConfig optimizer = {};         // what it keeps and works with
  std::int64_t evaluation_batches = 0;    // micro-batches of the test set
  std::int64_t staging_bytes = 0;         // host buffers of the prefetcher, on every device
  std::int64_t input_staging_bytes = 0;   // more with the first stage
  std::int64_t target_staging_bytes = 0;  // more with the last stage
  bool staged_messages = false;           // messages under way lie in host memory
  int token_bytes = 0;                    // of a device, for messages that carry nothing
  int compute_queues = 1;  // of a device; each has scratch and a workspace of its own
};

/// Values of a pixel as it was read.
inline constexpr int pixel_levels = 256;
/// Bytes that say which part of an image is shown: three ints.
inline constexpr std::int64_t part_bytes = 3 * sizeof(int);

/// The messages of a schedule of these stages. What crosses a cut between devices has a rider, too:
/// sums of the step go down with gradients, and what was decided about it up with activations.
[[nodiscard]] ScheduleSpec schedule_spec(const ParallelConfig& parallel,
                                         const std::vector<StageMemory>& stages,
                                         Clipping clipping = Clipping::none);

/// Peaks equal the sizes of the arenas, except for activations of cyclic rules with N != S: their
/// gaps keep some frame free at any time, though never the same one.
[[nodiscard]] MemoryPlan plan_memory(const MemorySpec& spec, std::vector<StageMemory> stages,
                                     const Schedule& schedule);

/// Activation bytes of dp on one device, for comparison: `together` holds all micro-batches (N A),
/// gradient accumulation one (A).
struct Baselines {
  std::int64_t together = 0;
  std::int64_t accumulate = 0;
};
[[nodiscard]] Baselines activation_baselines(const std::vector<StageMemory>& stages,
                                             int micro_batches);

/// A table for people: one row per category, a column per device (or per group of equal ones).
[[nodiscard]] std::string to_string(const MemoryPlan& plan);

}  // namespace carousel
