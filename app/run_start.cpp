// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/run_start.hpp"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>

#include "app/complaint.hpp"
#include "app/input_rules.hpp"
#include "app/output_rules.hpp"
#include "app/schema.hpp"
#include "app/state_files.hpp"
#include "core/record/patience.hpp"
#include "core/record/run_folder.hpp"
#include "core/record/run_reader.hpp"

namespace carousel {
namespace {

namespace fs = std::filesystem;

/// The newest checkpoint of a run folder that is whole; says aloud which ones are not. None where
/// there is no other.
std::optional<Checkpoint> newest_of(const fs::path& folder) {
  std::error_code unknown;  // the files themselves will tell
  if (!fs::is_directory(folder / "checkpoints", unknown)) return {};
  for (const fs::path& file : checkpoints_of(folder)) {
    try {
      Checkpoint checkpoint(file.string());
      checkpoint.check();
      return checkpoint;
    } catch (const Error& error) {
      if (error.code() != ExitCode::bad_data) throw;
      note(fmt::format("{}; the run goes on from the checkpoint before it", error.what()));
    }
  }
  return {};
}

/// The checkpoint that run.resume names, or the newest of the run folder that it names.
Checkpoint named_checkpoint(const RunConfig& config) {
  const std::string& path = config.run.resume;
  std::error_code unknown;  // the file itself will tell
  if (fs::is_directory(path, unknown)) {
    if (std::optional<Checkpoint> newest = newest_of(path)) return std::move(*newest);
    fail(ExitCode::usage, "{}: run.resume = {} has no checkpoint to begin with",
         where(config, "run.resume"), in_quotes(path));
  }
  if (!fs::exists(path, unknown))
    fail(ExitCode::usage,
         "{}: run.resume = {}: no such file; give off, auto, or the path of a checkpoint",
         where(config, "run.resume"), in_quotes(path));
  Checkpoint checkpoint(path);
  checkpoint.check();
  return checkpoint;
}

/// Whether two paths lead to one folder.
bool is_in(const fs::path& file, const fs::path& folder) {
  std::error_code unknown;  // one of them is not there
  return fs::equivalent(fs::absolute(file).parent_path(), folder, unknown);
}

std::string value_of(const RunConfig& config, const KeySpec& spec) {
  return config.deck.has(spec.key()) ? to_toml(spec.read(config)) : "none";
}

/// The key that names the data, and with its value.
const char* data_key(const RunConfig& config) {
  switch (config.data.kind) {
    case DataKind::images:
      return "data.file";
    case DataKind::arrays:
      return "data.files";
    case DataKind::tokens:
      break;
  }
  return "data.tokens";
}
std::string data_setting(const RunConfig& config) {
  const std::string key = data_key(config);
  const DeckValue value = find_key(key)->read(config);
  const auto* const path = std::get_if<std::string>(&value.data);
  return fmt::format("{} = {}", key, path != nullptr ? in_quotes(*path) : to_toml(value));
}

/// What a run learns from.
struct TrainedData {
  const DataSet& dataset;
  std::uint64_t fingerprint = 0;

  [[nodiscard]] std::int64_t samples() const { return dataset.samples(Pass::training); }
};

/// Statistics of inputs count as they are, wherever they are from, if a checkpoint tells them.
bool is_compared_as_input(const KeySpec& spec, const Checkpoint& checkpoint) {
  return checkpoint.inputs() && is_statistic(spec.key());
}

/// Refuses other inputs than those of a checkpoint.
void check_same_inputs(RunConfig config, const Checkpoint& checkpoint, const DataSet& dataset) {
  keep_statistics(config, checkpoint);
  check_inputs(inputs_of(config, dataset), checkpoint,
               fmt::format("{}: {}", where(config, data_key(config)), data_setting(config)),
               "a run goes on with the inputs that it began with");
}

/// Refuses what would not be the training that a checkpoint is of.
void check_same_training(const RunConfig& config, const Checkpoint& checkpoint,
                         const TrainedData& data) {
  const RunConfig before = as_bad_data(
      [&] { return parse_run_config(checkpoint.info().deck, checkpoint.path() + ", deck", {}); });
  for (const TableSpec& table : deck_tables()) {
    for (const KeySpec& spec : table.keys) {
      if (spec.traits.bond != Bond::fixed || is_compared_as_input(spec, checkpoint)) continue;
      if (value_of(config, spec) == value_of(before, spec)) continue;
      fail(ExitCode::usage,
           "{}: {} is {}, and {} was made with {}; a run goes on with the model, data, rule, "
           "optimizer and seed that it began with",
           where(config, spec.key()), spec.key(), value_of(config, spec), checkpoint.path(),
           value_of(before, spec));
    }
  }
  const std::vector<std::string> kept = before.train.optimizer.states();
  for (const std::string& state : config.train.optimizer.states()) {
    if (std::ranges::find(kept, state) != kept.end()) continue;
    const bool is_average = state == average_state;
    fail(ExitCode::usage,
         "{}: {} keeps {} beside each parameter, and {} was made without; a run goes on with what "
         "it kept before",
         where(config, (is_average ? "train." : "train.optimizer.") + state),
         is_average ? "train" : "train.optimizer", state, checkpoint.path());
  }
  check_same_inputs(config, checkpoint, data.dataset);
  if (checkpoint.place().data != 0 && checkpoint.place().data != data.fingerprint)
    fail(ExitCode::usage,
         "{}: {} holds other data than {} was trained with; a run goes on with the same, and "
         "train.start takes weights to other data",
         where(config, data_key(config)), data_setting(config), checkpoint.path());
}

/// Whether a run that diverged would do so again: the same deck computes the same numbers, wherever
/// it runs.
bool diverges_again(const RunConfig& config) {
  const fs::path folder = config.run.output;
  std::error_code unknown;  // a run that was copied in part
  if (!fs::exists(folder / "run.h5", unknown)) return true;
  const std::string place = (folder / "run.h5").string() + ", deck";
  const RunConfig before =
      as_bad_data([&] { return parse_run_config(read_deck_of(folder), place, {}); });
  for (const TableSpec& table : deck_tables()) {
    for (const KeySpec& spec : table.keys)
      if (spec.traits.bond != Bond::free && value_of(config, spec) != value_of(before, spec))
        return false;
  }
  return true;
}

/// Where in the order of the data the next step begins.
EpochPosition place_in_epoch(const Checkpoint& checkpoint) {
  return {checkpoint.place().epoch, checkpoint.place().position};
}

/// What of the run in the folder is kept, by a part that begins with a checkpoint.
void go_on(RunStart& start, const RunConfig& config, const TrainedData& data,
           const Checkpoint& checkpoint, bool was_done) {
  const TrainingOrder order{data.samples(), config.parallel.micro_batches,
                            config.train.micro_batch_size};
  const Agenda agenda = agenda_of(config.train, config.checkpoint,
                                  order.going_on(start.step, place_in_epoch(checkpoint)));
  start.history = read_history(config.run.output, start.step);
  start.part = static_cast<int>(start.history.parts.size());
  if (!start.history.steps.empty()) start.seconds = start.history.steps.back().seconds;
  const bool evaluated = std::ranges::any_of(
      start.history.evaluations, [&](const auto& row) { return row.step == start.step; });
  const fs::path checkpoints = fs::path(config.run.output) / "checkpoints";
  for (const EvaluationRecord& evaluation : start.history.evaluations) {
    std::error_code unknown;
    const double score = score_of(start.history.metrics, evaluation.loss, evaluation.metrics);
    if (!(score > start.best_score) ||
        !fs::exists(checkpoints / checkpoint_file_name(evaluation.step), unknown))
      continue;
    start.best_step = evaluation.step;
    start.best_score = score;
  }
  const std::int64_t first = start.history.parts.front().first_step;
  start.evaluates = start.step > first && agenda.evaluates_after(start.step) && !evaluated;
  start.done = was_done ? start.step >= agenda.total_steps : start.step > agenda.total_steps;
  start.out_of_patience =
      was_done && !start.done &&
      is_out_of_patience(start.history.evaluations, start.history.metrics, config.train.patience);
  start.done = start.done || start.out_of_patience;
}

/// Goes on with what is in the run folder, and begins a run where nothing is.
RunStart go_on_by_itself(const RunConfig& config, const TrainedData& data) {
  const fs::path folder = config.run.output;
  RunStart start;
  if (!holds_run(folder)) {
    check_run_folder(folder, false);
    return start;
  }
  check_continuable(folder);
  std::error_code unknown;  // a run that was copied in part
  std::optional<RunStatus> status;
  if (fs::exists(folder / "status.json", unknown)) status = read_status(folder);
  if (status && status->state == RunState::diverged && diverges_again(config))
    fail(ExitCode::diverged,
         "{}: this run diverged after {} steps and would do so again; with a lower rate it goes on "
         "from its newest checkpoint: train.optimizer.learning_rate=RATE, which is {}",
         folder.string(), status->step, config.train.optimizer.learning_rate);
  const bool was_done = status && status->state == RunState::done;
  const std::optional<Checkpoint> newest = newest_of(folder);
  if (!newest) {
    check_run_folder(folder, true);
    if (fs::exists(folder / "run.h5", unknown) && read_run(folder.string()).first_step() > 0)
      fail(ExitCode::usage,
           "{}: this run began with a checkpoint of another one and has none of its own yet; begin "
           "it again: run.resume=PATH --overwrite",
           folder.string());
    if (was_done) {
      const TrainingOrder order{data.samples(), config.parallel.micro_batches,
                                config.train.micro_batch_size};
      start.step = status->step;
      start.done = start.step >= agenda_of(config.train, config.checkpoint, order).total_steps;
      if (start.done) return start;
    }
    // What is there may still be of use to somebody.
    const bool damaged =
        fs::is_directory(folder / "checkpoints", unknown) && !checkpoints_of(folder).empty();
    if (damaged || was_done)
      fail(damaged ? ExitCode::bad_data : ExitCode::usage,
           "{}: has {} to go on from; to begin the run again, pass --overwrite, which deletes it",
           folder.string(), damaged ? "no whole checkpoint" : "no checkpoint");
    note(fmt::format("{}: has no checkpoint to go on from; the run begins again", folder.string()));
    start.replaces = true;
    return start;
  }
  check_same_training(config, *newest, data);
  start.checkpoint = newest->path();
  start.step = newest->place().step;
  go_on(start, config, data, *newest, was_done);
  return start;
}

}  // namespace

RunStart find_start(const RunConfig& config, const DataSet& dataset, std::uint64_t fingerprint,
                    bool overwrite) {
  const TrainedData data{dataset, fingerprint};
  if (config.run.resume == resume_auto && !overwrite) return go_on_by_itself(config, data);
  RunStart start{.replaces = overwrite};
  const auto check_folder = [&] {
    check_run_folder(config.run.output, overwrite);
    if (overwrite) check_replaced_run(config);
  };
  if (!config.run.resumes_from_path()) {
    check_folder();
    return start;
  }
  const Checkpoint checkpoint = named_checkpoint(config);
  check_same_training(config, checkpoint, data);
  start.checkpoint = checkpoint.path();
  start.step = checkpoint.place().step;
  if (is_in(checkpoint.path(), fs::path(config.run.output) / "checkpoints")) {
    check_continuable(config.run.output);
    go_on(start, config, data, checkpoint, false);
  } else {
    check_folder();
  }
  return start;
}

RunStart shared_start(const RunStart& of_first, const RunConfig& config, const Ranks& ranks) {
  // Names in folders that the deck gives; a whole path may be too long.
  const std::string name = fs::path(of_first.checkpoint).filename().string();
  std::istringstream words(ranks.of_first(fmt::format(
      "{:d} {:d} {:d} {} {} {} {}", of_first.replaces, of_first.done, of_first.evaluates,
      of_first.part, of_first.step, std::bit_cast<std::uint64_t>(of_first.seconds), name)));
  RunStart start = of_first;
  std::uint64_t seconds = 0;
  std::string found;
  words >> start.replaces >> start.done >> start.evaluates >> start.part >> start.step >> seconds;
  std::getline(words >> std::ws, found);
  start.seconds = std::bit_cast<double>(seconds);
  if (found.empty()) return start;
  const std::string& path = config.run.resume;
  std::error_code unknown;  // the file itself will tell
  if (!config.run.resumes_from_path())
    start.checkpoint = (fs::path(config.run.output) / "checkpoints" / found).string();
  else if (fs::is_directory(path, unknown))
    start.checkpoint = (fs::path(path) / "checkpoints" / found).string();
  else
    start.checkpoint = path;
  return start;
}

Beginning beginning_of(const RunConfig& config, const Model& model, const Checkpoint* checkpoint,
                       const Checkpoint* weights) {
  if (checkpoint != nullptr) {
    return {.step = checkpoint->place().step,
            .place = place_in_epoch(*checkpoint),
            .state = source_of(*checkpoint, config.train.optimizer)};
  }
  if (weights == nullptr) return {};
  return {.state = weights_of(*weights, config.run.seed, begun_anew(config, model))};
}

}  // namespace carousel
