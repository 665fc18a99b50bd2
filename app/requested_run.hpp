// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// From a deck to core/prepare and back: what plans need of it, and where in the deck a
// mistake was made. It decides nothing.

#include <memory>

#include "app/run_config.hpp"
#include "core/data/data_set.hpp"
#include "core/prepare/prepare.hpp"
#include "core/state/checkpoint_writer.hpp"

namespace carousel {

/// The checkpoint of a path, or of a run folder its newest one. Error(input_output) where there is
/// none.
[[nodiscard]] std::string checkpoint_behind(const std::string& path);

/// Whose kernels the engine of this build may use.
[[nodiscard]] VendorKernels vendor_for(const EngineConfig& engine);

/// What core/prepare reads of the deck; messages go by `transport`, where `automatic` is taken for
/// MPI.
[[nodiscard]] PlannedDeck planned_deck(const RunConfig& config, TransportKind transport);

/// Whether e to the loss is the perplexity of a text.
[[nodiscard]] bool tells_perplexity(const RunConfig& config);

/// The data of the deck. Where a data set of images is not there, the error says how to come by it.
[[nodiscard]] std::unique_ptr<DataSet> open_data(const RunConfig& config);

/// The network of the deck, before kernels are chosen. Error(usage) with the place in the deck.
[[nodiscard]] Model described_model(const RunConfig& config, const DataSet& dataset);

/// Plans the run. Throws Error(usage) with the place in the deck. A build for GPUs stages messages
/// of MPI in host memory, so that memory depends on the transport.
[[nodiscard]] PreparedRun prepare_run(const RunConfig& config, const DataSet& dataset,
                                      TransportKind transport);
/// The same for data that may be gone, from what the run file kept of it.
[[nodiscard]] PreparedRun prepare_run(const RunConfig& config, const PlanBasis& basis);

/// Where the tensors of the run's checkpoints lie in their files.
[[nodiscard]] CheckpointLayout checkpoint_layout(const RunConfig& config, const PreparedRun& run);

/// As in core/prepare, with the place in the deck.
void check_batch_norm(const RunConfig& config, const PreparedRun& run);

}  // namespace carousel
