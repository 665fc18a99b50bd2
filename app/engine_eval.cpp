// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// `carousel eval`: the parameters of a checkpoint on the test set of any data set of its shape.

#include <fmt/ranges.h>

#include <Kokkos_Core.hpp>
#include <cmath>
#include <numbers>
#include <numeric>

#include "app/complaint.hpp"
#include "app/engine.hpp"
#include "app/evaluated_run.hpp"
#include "app/input_rules.hpp"
#include "app/requested_run.hpp"
#include "app/state_files.hpp"
#include "comm/local_transport.hpp"
#include "core/data/token_set.hpp"
#include "core/state/checkpoint.hpp"
#include "core/train/trainer.hpp"
#include "layers/factory.hpp"
#include "layers/vendor/vendor.hpp"

namespace carousel {
namespace {

/// An evaluation reports only its result.
class SilentObserver final : public TrainingObserver {
 public:
  void on_step(const StepRecord&) override {}
  void on_update(const ExecutionSpace&, int, std::int64_t, int, const real*,
                 std::int64_t) override {}
  void on_evaluating(const EvaluationProgress&) override {}
  void on_evaluation(const EvaluationRecord&) override {}
  void on_segment_end(int, const Recorder&) override {}
};

/// The label of each sample of an evaluation.
std::vector<int> labels_of(const Source& source) {
  std::vector<int> labels(static_cast<std::size_t>(source.samples(Pass::evaluation)));
  const std::unique_ptr<SourceReader> reader = source.reader({.inputs = false});
  for (std::size_t k = 0; k < labels.size(); ++k)
    reader->read_target(Pass::evaluation, 0, static_cast<std::int64_t>(k),
                        std::as_writable_bytes(std::span(&labels[k], 1)));
  return labels;
}

/// [label][class] how many samples were taken for which.
using Confusion = std::vector<std::vector<std::int64_t>>;

Confusion confusion_of(std::size_t classes, const std::vector<int>& labels,
                       const std::vector<int>& chosen) {
  Confusion counts(classes, std::vector<std::int64_t>(classes));
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    if (labels[k] >= std::ssize(counts)) continue;  // a label that is ignored
    ++counts[static_cast<std::size_t>(labels[k])][static_cast<std::size_t>(chosen[k])];
  }
  return counts;
}

/// A line for each class: its samples, and the share of them that was recognised.
void print_classes(const std::vector<std::string>& names, const Confusion& counts) {
  fmt::print("  {:<40}{:>9}{:>10}\n", "class", "samples", "accuracy");
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const auto samples = std::accumulate(counts[k].begin(), counts[k].end(), std::int64_t{0});
    const std::string accuracy = samples == 0
                                     ? "-"
                                     : fmt::format("{:.4f}", static_cast<double>(counts[k][k]) /
                                                                 static_cast<double>(samples));
    fmt::print("  {:<40}{:>9}{:>10}\n", printable(names[k]), samples, accuracy);
  }
}

/// A field of a table with commas, in quotes where it needs them.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

/// The same as CSV, a line for each label.
void print_confusion(const std::vector<std::string>& names, const Confusion& counts) {
  fmt::print("label");
  for (const std::string& name : names) fmt::print(",{}", field(name));
  for (std::size_t k = 0; k < names.size(); ++k)
    fmt::print("\n{},{}", field(names[k]), fmt::join(counts[k], ","));
  fmt::print("\n");
}

/// Of a text, whose loss is the mean of minus the logarithm of a token's probability.
std::string told_perplexity(const RunConfig& config, const DataSet& dataset, double loss) {
  const auto* const text = dynamic_cast<const TokenSet*>(&dataset);
  if (text == nullptr || !tells_perplexity(config)) return "";
  std::string told = fmt::format(", perplexity {:.4f}", std::exp(loss));
  const TokenRow& row = text->row(Pass::evaluation);
  if (row.text_bytes() > 0)
    told += fmt::format(", {:.4f} bits per byte", loss / std::numbers::ln2 *
                                                      static_cast<double>(row.size()) /
                                                      static_cast<double>(row.text_bytes()));
  return told;
}

}  // namespace

ExitCode evaluate(const std::string& checkpoint_path, const std::string& dataset_path,
                  const std::string& split, bool as_trained, bool confusion, bool without_ema) {
  const Checkpoint checkpoint(checkpoint_path);
  RunConfig config = evaluated_run(checkpoint, dataset_path, split);
  const bool of_images = config.data.kind == DataKind::images;
  const std::unique_ptr<DataSet> dataset =
      dataset_path.empty() ? open_data(config) : open_data_set(config.data);
  if (!checkpoint.inputs() && as_trained)
    fail(ExitCode::usage, "{}: does not tell mean and std that --as-trained asks for",
         checkpoint_path);
  if (!checkpoint.inputs())
    note(untold_inputs(checkpoint_path, dataset->name()));
  else if (as_trained || !of_images)  // arrays are scaled by the training's numbers alone
    take_statistics(config, *checkpoint.inputs(), checkpoint_path);
  check_inputs(inputs_of(config, *dataset), checkpoint, dataset->name(),
               "give data of the same kind",
               "give data of the same kind, or --as-trained to take mean and std of the "
               "checkpoint");
  for (const std::string& warning : dataset->warnings_of_evaluation())
    fmt::print(stderr, "{}\n", warning);
  const PreparedRun run = prepare_run(config, *dataset, TransportKind::local);
  const bool classifies = run.model.target.has_labels() && run.model.target.pixels() == 1;
  if (confusion && !classifies)
    fail(ExitCode::usage, "--confusion is of samples with one label, and {} has {}",
         dataset->name(), to_string(run.model.target));

  const Kokkos::ScopeGuard kokkos(kokkos_settings(config.engine, Launcher(), nullptr));
  const ExecutionSpace exec;
  check_threads(exec);
  const RunClock clock;
  const Clock seconds = [&clock] { return clock.seconds(); };
  LocalHub hub(exec, {}, 1, seconds);
  const std::unique_ptr<Source> source = dataset->source(config.data, config.run.seed);
  const DataStatistics statistics = dataset->statistics(config.data);
  SilentObserver observer;
  const std::int64_t step = checkpoint.place().step;
  const Beginning beginning{.step = step,
                            .state = used_state(checkpoint, config.train.optimizer, without_ema)};
  Trainer trainer(exec,
                  {.model = run.model,
                   .partition = run.partition,
                   .schedule = run.schedule,
                   .memory = run.memory,
                   .source = *source,
                   .mean = statistics.mean,
                   .std = statistics.std,
                   .train = config.train,
                   .checkpoint = config.checkpoint,
                   .profile = config.profile,
                   .seed = config.run.seed,
                   .workers = config.data.workers,
                   .devices = {0},
                   .beginning = beginning,
                   .layers = make_layer,
                   .vendor = vendor::handles_for(run.basis.vendor),
                   .transport = [&](int device) { return hub.transport(device); },
                   .seconds = seconds,
                   .keeps_chosen = classifies},
                  observer);
  const EvaluationRecord result = trainer.evaluate(step);
  if (!std::isfinite(result.loss))
    fail(ExitCode::diverged, "{}: its loss on {} is not a finite number; its training diverged",
         checkpoint_path, dataset->name());
  const std::vector<std::string> classes =
      classifies ? dataset->class_names() : std::vector<std::string>();
  Confusion counts;
  if (classifies) counts = confusion_of(classes.size(), labels_of(*source), trainer.chosen());
  if (confusion) {
    print_confusion(classes, counts);
    return ExitCode::done;
  }
  std::string results;
  const std::vector<std::string> metrics = names_of(run.model.metrics());
  for (std::size_t k = 0; k < metrics.size(); ++k)
    results += fmt::format(", {} {:.4f}", metrics[k], result.metrics[k]);
  results += told_perplexity(config, *dataset, result.loss);
  fmt::print("{}: step {}{}, {} samples, loss {:.6f}{}\n", checkpoint_path, step,
             checkpoint.told_averages(without_ema), run.basis.test_samples, result.loss, results);
  if (classifies) print_classes(classes, counts);
  return ExitCode::done;
}

}  // namespace carousel
