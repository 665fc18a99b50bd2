// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// `carousel eval`: the parameters of a checkpoint on the test set of any data set of its shape.

#include <fmt/core.h>

#include <Kokkos_Core.hpp>
#include <cmath>

#include "app/complaint.hpp"
#include "app/deck.hpp"
#include "app/engine.hpp"
#include "app/input_rules.hpp"
#include "app/requested_run.hpp"
#include "app/state_files.hpp"
#include "comm/local_transport.hpp"
#include "core/data/black_images.hpp"
#include "core/data/image_source.hpp"
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

/// The deck of the checkpoint, on one device whatever it was trained on.
RunConfig evaluation_config(const Checkpoint& checkpoint, const std::string& dataset) {
  RunConfig config = as_bad_data(
      [&] { return parse_run_config(checkpoint.info().deck, checkpoint.path() + ", deck", {}); });
  config.data.file = dataset;
  config.parallel = ParallelConfig{.rule = RuleKind::dp};
  config.train.optimizer = {};  // which keeps nothing
  return config;
}

/// A line for each class: its test samples, and the share of them that was recognised.
void print_classes(const Dataset& dataset, const std::vector<int>& chosen) {
  struct Count {
    std::int64_t samples = 0;
    std::int64_t correct = 0;
  };
  std::vector<Count> counts(static_cast<std::size_t>(dataset.classes()));
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    const int label = dataset.test().labels()[k];
    Count& count = counts[static_cast<std::size_t>(label)];
    ++count.samples;
    if (chosen[k] == label) ++count.correct;
  }
  fmt::print("  {:<40}{:>9}{:>10}\n", "class", "samples", "accuracy");
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const auto [samples, correct] = counts[k];
    const std::string accuracy =
        samples == 0
            ? "-"
            : fmt::format("{:.4f}", static_cast<double>(correct) / static_cast<double>(samples));
    fmt::print("  {:<40}{:>9}{:>10}\n", printable(dataset.class_names()[k]), samples, accuracy);
  }
}

}  // namespace

ExitCode evaluate(const std::string& checkpoint_path, const std::string& dataset_path,
                  bool as_trained) {
  const Checkpoint checkpoint(checkpoint_path);
  RunConfig config = evaluation_config(checkpoint, dataset_path);
  const Dataset dataset(dataset_path);
  if (!checkpoint.inputs() && as_trained)
    fail(ExitCode::usage, "{}: does not tell mean and std that --as-trained asks for",
         checkpoint_path);
  if (!checkpoint.inputs())
    note(untold_inputs(checkpoint_path, dataset_path));
  else if (as_trained)
    take_statistics(config, *checkpoint.inputs(), checkpoint_path);
  check_inputs(inputs_of(config, dataset), checkpoint, dataset_path, "give data of the same kind",
               "give data of the same kind, or --as-trained to take mean and std of the "
               "checkpoint");
  if (const std::string black = black_test_images(dataset); !black.empty())
    fmt::print(stderr, "{}\n", black);
  const PreparedRun run = prepare_run(config, dataset, TransportKind::local);

  const Kokkos::ScopeGuard kokkos(kokkos_settings(config.engine, Launcher(), nullptr));
  const ExecutionSpace exec;
  check_threads(exec);
  const RunClock clock;
  const Clock seconds = [&clock] { return clock.seconds(); };
  LocalHub hub(exec, {}, 1, seconds);
  const ImageSource source(dataset, config.data.augment, config.run.seed);
  SilentObserver observer;
  const std::int64_t step = checkpoint.place().step;
  const Beginning beginning{.step = step, .state = source_of(checkpoint, config.train.optimizer)};
  Trainer trainer(exec,
                  {.model = run.model,
                   .partition = run.partition,
                   .schedule = run.schedule,
                   .memory = run.memory,
                   .source = source,
                   .mean = mean_of(dataset, config.data.augment),
                   .std = std_of(dataset, config.data.augment),
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
                   .keeps_chosen = true},
                  observer);
  const EvaluationRecord result = trainer.evaluate(step);
  if (!std::isfinite(result.loss))
    fail(ExitCode::diverged, "{}: its loss on {} is not a finite number; its training diverged",
         checkpoint_path, dataset_path);
  std::string results;
  const std::vector<std::string> metrics = names_of(run.model.metrics());
  for (std::size_t k = 0; k < metrics.size(); ++k)
    results += fmt::format(", {} {:.4f}", metrics[k], result.metrics[k]);
  fmt::print("{}: step {}, {} samples, loss {:.6f}{}\n", checkpoint_path, step,
             dataset.test().samples(), result.loss, results);
  print_classes(dataset, trainer.chosen());
  return ExitCode::done;
}

}  // namespace carousel
