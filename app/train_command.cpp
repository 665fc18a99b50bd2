// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <variant>
#include <vector>

#include "app/binding.hpp"
#include "app/commands.hpp"
#include "app/complaint.hpp"
#include "app/engine_process.hpp"
#include "app/input_rules.hpp"
#include "app/output_rules.hpp"
#include "app/requested_run.hpp"
#include "core/base/version.hpp"
#include "core/record/run_folder.hpp"

namespace carousel {
namespace {

/// What only some builds can do.
void check_build(const RunConfig& config) {
  if (config.gpu_aware && build_info().cuda.empty())
    fail(ExitCode::usage,
         "{}: parallel.gpu_aware = true: this program was built without CUDA; leave it out, or "
         "build the preset cuda",
         where(config, "parallel.gpu_aware"));
  if (config.transport != TransportKind::nccl || !build_info().nccl.empty()) return;
  fail(ExitCode::usage,
       "{}: parallel.transport = \"nccl\": this program was built without NCCL; set it to "
       "\"mpi\", or build the preset cuda where NCCL is",
       where(config, "parallel.transport"));
}

/// Weights that a training would start with are looked at as the engine will.
void check_start(RunConfig config) {
  if (config.train.start.empty()) return;
  const Checkpoint weights(config.train.start);
  const std::unique_ptr<DataSet> dataset = open_data(config);
  const Model model = described_model(config, *dataset);
  for (const std::string& remark :
       begin_with_weights(config, *dataset, weights.inputs(), weights.path(), model))
    note(remark);
}

/// What of carousel help rules takes most of a delay of every gradient back and the deck leaves
/// out.
void note_recipe(const RunConfig& config) {
  if (config.parallel.rule != RuleKind::cdp_v1) return;
  const OptimizerConfig& optimizer = config.train.optimizer;
  const bool predicts = config.parallel.predict > 0;
  std::vector<const char*> keys;
  if (const Sgd* const sgd = std::get_if<Sgd>(&optimizer.kind); sgd != nullptr) {
    if (sgd->momentum > 0 && !sgd->nesterov && !predicts)
      keys.push_back("train.optimizer.nesterov = true");
    if (optimizer.clip_stage_norm == 0) keys.push_back("train.optimizer.clip_stage_norm = 1");
  } else if (std::holds_alternative<AdamW>(optimizer.kind) && !predicts) {
    keys.push_back("parallel.predict = 1");
  }
  if (!keys.empty())
    note(fmt::format("cdp-v1 loses least accuracy with {}; see carousel help rules",
                     fmt::join(keys, " and ")));
}

}  // namespace

void train_command(const TrainArguments& arguments, const Launcher& launcher) {
  const RunConfig config = load_run_config(arguments.deck, arguments.overrides);
  check_build(config);
  if (arguments.validate) {
    if (launcher.present || launcher.slurm_step) check_launch(config, launcher);
    // A run that goes on is looked at when it does.
    const bool goes_on = config.run.resume == resume_auto || config.run.resumes_from_path();
    if (!goes_on || arguments.overwrite) check_run_folder(config.run.output, arguments.overwrite);
    if (arguments.overwrite && !config.run.resumes_from_path()) check_replaced_run(config);
    print_plan(config, arguments.layers);
    if (!goes_on) check_start(config);
    note_recipe(config);
    fmt::print("\n{} is valid\n", arguments.deck);
    return;
  }
  check_launch(config, launcher);
  const Node node =
      this_node(build_info().cuda.empty() ? std::vector<std::string>() : expected_gpus());
  const std::vector<int> threads = choose_threads(launcher, node, config.engine.threads);
  if (!threads.empty()) bind_to(threads);
  std::vector<std::string> words = {"train", arguments.deck};
  words.insert(words.end(), arguments.overrides.begin(), arguments.overrides.end());
  if (arguments.overwrite) words.emplace_back("--overwrite");
  words.push_back(fmt::format("--watchdog-seconds={}", config.run.watchdog_seconds));
  start_engine(engine_path(), words);
}

}  // namespace carousel
