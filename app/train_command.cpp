// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/commands.hpp"
#include "app/engine_process.hpp"

namespace carousel {

void train_command(const TrainArguments& arguments, const Launcher& launcher) {
  const RunConfig config = load_run_config(arguments.deck, arguments.overrides);
  if (arguments.validate) {
    print_plan(config);
    return;
  }
  check_launch(config, launcher);
  std::vector<std::string> words = {"train", arguments.deck};
  words.insert(words.end(), arguments.overrides.begin(), arguments.overrides.end());
  if (arguments.overwrite) words.emplace_back("--overwrite");
  start_engine(engine_path(), words);
}

}  // namespace carousel
