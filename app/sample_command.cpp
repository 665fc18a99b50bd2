// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// `carousel sample`: looks at the command line; the engine does the rest.

#include "app/commands.hpp"
#include "app/engine_process.hpp"
#include "app/output_rules.hpp"
#include "app/requested_run.hpp"

namespace carousel {

void sample_command(const SampleArguments& arguments, const Launcher& launcher) {
  require_one_process(launcher);
  std::vector<std::string> words = arguments.words();
  words.insert(words.begin(), {"sample", checkpoint_behind(arguments.checkpoint)});
  if (arguments.without_ema) words.emplace_back("--without-ema");
  start_engine(engine_path(), words);
}

}  // namespace carousel
