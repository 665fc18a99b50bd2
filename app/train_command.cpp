// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "app/commands.hpp"
#include "app/engine_process.hpp"
#include "app/prepared_run.hpp"
#include "core/io/run_folder.hpp"

namespace carousel {

namespace {

/// What the engine executes so far; everything can be planned.
void check_placement(const RunConfig& config) {
  const Placement placement = config.parallel.placement;
  if (can_be_trained(config.parallel)) return;
  if (config.parallel.rule != RuleKind::dp && config.parallel.reduction == Reduction::fast)
    fail(ExitCode::usage,
         "{}: parallel.reduction = \"fast\" within a slot of a cyclic rule can be planned, but not "
         "be trained yet; use \"ordered\"",
         where(config, "parallel.reduction"));
  fail(ExitCode::usage,
       "{}: parallel.placement = \"{}\" can be planned, but not be trained yet; use \"single\" or "
       "\"replicated\"",
       where(config, "parallel.placement"), to_string(placement));
}

}  // namespace

void train_command(const TrainArguments& arguments, const Launcher& launcher) {
  const RunConfig config = load_run_config(arguments.deck, arguments.overrides);
  check_placement(config);
  if (arguments.validate) {
    check_run_folder(config.run.output, arguments.overwrite);
    print_plan(config);
    fmt::print("\n{} is valid\n", arguments.deck);
    return;
  }
  check_launch(config, launcher);
  std::vector<std::string> words = {"train", arguments.deck};
  words.insert(words.end(), arguments.overrides.begin(), arguments.overrides.end());
  if (arguments.overwrite) words.emplace_back("--overwrite");
  start_engine(engine_path(), words);
}

}  // namespace carousel
