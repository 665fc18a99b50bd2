// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/state_files.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "app/provenance.hpp"
#include "core/record/run_folder.hpp"
#include "core/state/checkpoint_writer.hpp"

namespace carousel {
namespace {

namespace fs = std::filesystem;

/// Nobody can go on from numbers that are not finite, and no checkpoint of them is written.
void check_finite(const StatePiece& piece, std::int64_t steps) {
  if (!std::ranges::all_of(piece.values, [](real value) { return std::isfinite(value); }))
    fail(ExitCode::diverged, "{} has numbers that are not finite after step {}; {}",
         piece.spec.name, steps - 1, divergence_advice);
}

}  // namespace

std::string group_of(StatePart part, int state, const OptimizerConfig& optimizer) {
  switch (part) {
    case StatePart::parameters:
      return "/parameters/";
    case StatePart::previous:
      return "/previous/";
    case StatePart::predicted:
      return "/predicted/";
    case StatePart::optimizer:
      return optimizer_group(optimizer.states().at(static_cast<std::size_t>(state)));
    case StatePart::buffers:
      return "/buffers/";
  }
  fail(ExitCode::internal, "no such part of a checkpoint");
}

void save_checkpoint(const RunConfig& config, const PreparedRun& run, const TrainingData& data,
                     const Ranks& ranks, const Trainer& trainer) {
  const std::int64_t steps = trainer.steps();
  const fs::path folder = fs::path(config.run.output) / "checkpoints";
  CheckpointWriter checkpoint((folder / checkpoint_file_name(steps)).string(),
                              checkpoint_layout(config, run));
  ranks.together([&] {
    if (ranks.first()) checkpoint.begin();
  });
  std::optional<Error> error;
  trainer.show_state([&](const StatePiece& piece) {
    if (error) return;
    try {
      ranks.at_files([&] {
        if (piece.part != StatePart::previous && piece.part != StatePart::predicted)
          check_finite(piece, steps);
        checkpoint.put(group_of(piece.part, piece.state, config.train.optimizer) + piece.spec.name,
                       piece.first, piece.values);
      });
    } catch (const Error& found) {
      error = found;  // all ranks have to hear of it
    }
  });
  ranks.together([&] {
    if (error) throw *error;
    checkpoint.sync();
  });
  ranks.sum(checkpoint.digests());
  ranks.together([&] {
    if (!ranks.first()) return;
    const EpochPosition place = trainer.order().locate(steps, 0);
    checkpoint.finish(provenance(config),
                      {.step = steps,
                       .epoch = place.epoch,
                       .position = place.first,
                       .micro_batches = config.parallel.micro_batches,
                       .micro_batch_size = config.train.micro_batch_size,
                       .data = data.fingerprint},
                      data.inputs);
    make_newest(config.run.output, steps, config.checkpoint.keep);
  });
}

StateSource source_of(const Checkpoint& checkpoint, const OptimizerConfig& optimizer) {
  return [&checkpoint, optimizer](StatePart part, int state, const ParameterSpec& tensor,
                                  std::span<real> values) {
    checkpoint.read(group_of(part, state, optimizer) + tensor.name, tensor.shape, values);
  };
}

StateSource used_state(const Checkpoint& checkpoint, const OptimizerConfig& optimizer,
                       bool without_ema) {
  return [&checkpoint, optimizer, without_ema](
             StatePart part, int state, const ParameterSpec& tensor, std::span<real> values) {
    const std::string path = part == StatePart::parameters
                                 ? checkpoint.used_parameter(tensor.name, without_ema)
                                 : group_of(part, state, optimizer) + tensor.name;
    checkpoint.read(path, tensor.shape, values);
  };
}

StateSource weights_of(const Checkpoint& checkpoint, std::uint64_t seed,
                       const std::set<std::string>& anew) {
  return [&checkpoint, anew, first = first_values(seed)](
             StatePart part, int state, const ParameterSpec& tensor, std::span<real> values) {
    if (part == StatePart::optimizer || anew.contains(tensor.name))
      return first(part, state, tensor, values);
    const std::string path = part == StatePart::buffers
                                 ? "/buffers/" + tensor.name
                                 : checkpoint.used_parameter(tensor.name, false);
    checkpoint.read(path, tensor.shape, values);
  };
}

}  // namespace carousel
