// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "app/commands.hpp"
#include "app/engine_process.hpp"
#include "core/record/run_folder.hpp"

namespace carousel {

void eval_command(const EvalArguments& arguments, const Launcher& launcher) {
  const auto& [checkpoint, dataset, as_trained] = arguments;
  if (launcher.size > 1 || launcher.slurm_step)
    fail(ExitCode::usage, "eval runs in one process; start it without a launcher");
  for (const std::string& path : {checkpoint, dataset})
    if (!std::filesystem::exists(path)) fail(ExitCode::input_output, "{}: no such file", path);
  // A run folder stands for its newest checkpoint.
  const std::string file = std::filesystem::is_directory(checkpoint)
                               ? checkpoint + "/checkpoints/" + last_checkpoint
                               : checkpoint;
  if (!std::filesystem::exists(file)) fail(ExitCode::input_output, "{}: no such file", file);
  std::vector<std::string> words = {"eval", file, dataset};
  if (as_trained) words.emplace_back("--as-trained");
  start_engine(engine_path(), words);
}

}  // namespace carousel
