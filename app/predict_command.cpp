// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// `carousel predict`: looks at the command line; the engine does the rest.

#include <array>

#include "app/commands.hpp"
#include "app/engine_process.hpp"
#include "app/output_rules.hpp"
#include "app/requested_run.hpp"

namespace carousel {

void predict_command(const PredictArguments& arguments, const Launcher& launcher) {
  const std::string checkpoint = checkpoint_behind(arguments.checkpoint);
  if (launcher.slurm_step)
    fail(ExitCode::usage, "srun has started these tasks without MPI; use srun --mpi=pmi2");
  check_output(
      arguments.output, arguments.overwrite,
      std::array<ReadFile, 2>{{{"the checkpoint", checkpoint}, {"the data", arguments.dataset}}});
  std::vector<std::string> words = {"predict", checkpoint, arguments.dataset, arguments.output};
  if (!arguments.split.empty()) words.push_back("--split=" + arguments.split);
  if (arguments.without_ema) words.emplace_back("--without-ema");
  start_engine(engine_path(), words);
}

}  // namespace carousel
