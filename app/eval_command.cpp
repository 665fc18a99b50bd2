// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "app/commands.hpp"
#include "app/engine_process.hpp"
#include "app/requested_run.hpp"

namespace carousel {

void eval_command(const EvalArguments& arguments, const Launcher& launcher) {
  const auto& [checkpoint, dataset, split, as_trained, confusion, without_ema] = arguments;
  if (launcher.size > 1 || launcher.slurm_step)
    fail(ExitCode::usage, "eval runs in one process; start it without a launcher");
  // Of arrays, it may be a pattern.
  if (dataset.find_first_of("*?[") == std::string::npos && !dataset.empty() &&
      !std::filesystem::exists(dataset))
    fail(ExitCode::input_output, "{}: no such file", dataset);
  std::vector<std::string> words = {"eval", checkpoint_behind(checkpoint)};
  if (!dataset.empty()) words.push_back(dataset);
  if (!split.empty()) words.push_back("--split=" + split);
  if (as_trained) words.emplace_back("--as-trained");
  if (confusion) words.emplace_back("--confusion");
  if (without_ema) words.emplace_back("--without-ema");
  start_engine(engine_path(), words);
}

}  // namespace carousel
