// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is asked for before a run is planned, as plain data: a model, a way to train it and a
// machine. It knows neither the deck that said so nor the files behind the data.

#include <cstdint>
#include <optional>

#include "core/data/sample_reader.hpp"
#include "core/model/kernels.hpp"
#include "core/model/model.hpp"
#include "core/plan/machine.hpp"
#include "core/plan/rule.hpp"

namespace carousel {

/// What a plan follows from beside the deck, so that it can be made again when the data set is gone
/// and on another machine.
struct PlanBasis {
  InputSpec input;
  int classes = 0;
  std::int64_t train_samples = 0;
  std::int64_t test_samples = 0;
  int real_bytes = 0;                          // of one number, by the build
  int block = 1;                               // channels side by side in images, by the build
  bool staged_messages = false;                // messages pass through host memory
  VendorKernels vendor = VendorKernels::none;  // by the build and the deck
  int token_bytes = 0;        // that a device holds for messages that carry nothing
  bool copies_input = false;  // images are copied to a device before they are shown

  bool operator==(const PlanBasis&) const = default;
};

struct PlanRequest {
  ModelConfig model;
  ParallelConfig parallel;
  int micro_batch_size = 1;
  int workers = 1;  // threads of a device that read samples
  double label_smoothing = 0;
  int optimizer_states = 0;  // numbers beside each parameter
  Clipping clipping = Clipping::none;
  bool winograd = true;  // where it is faster
  Recompute recompute = Recompute::cheap;
  DataType precision = DataType::full;
  int queues = 1;                    // of a device; more than 1 under cyclic rules on one device
  bool rounds = false;               // messages are exchanged in rounds
  std::int64_t largest_message = 0;  // bytes that one message may have; 0: any number
  std::optional<Machine> machine = {};
};

}  // namespace carousel
