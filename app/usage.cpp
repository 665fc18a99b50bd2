// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/usage.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/deck.hpp"
#include "app/nearest.hpp"

namespace carousel {
namespace {

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

}  // namespace

std::vector<std::string> command_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* each : command.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(each->get_name());
  return names;
}

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string name = app.get_name();
  std::string place;  // of a subcommand
  std::vector<std::string> unknown = app.remaining();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
    place = command->get_name() + ": ";
    for (const std::string& word : command->remaining()) unknown.push_back(word);
  }
  const std::vector<std::string> commands = command_names(*command);
  const auto is_option = [](const std::string& word) { return word.starts_with("-"); };
  const auto word = std::ranges::find_if_not(unknown, is_option);
  if (word != unknown.end() && !commands.empty())
    return fmt::format("{}unknown command {}{}; commands are {}", place, in_quotes(*word),
                       did_you_mean(*word, commands), fmt::join(commands, ", "));
  std::string what = error.what();
  const auto option = std::ranges::find_if(unknown, is_option);
  if (option != unknown.end()) {
    const std::string given = option->substr(0, option->find('='));
    what = fmt::format("unknown option {}{}", in_quotes(given),
                       did_you_mean(given, option_names(*command)));
  } else if (word != unknown.end()) {
    what = fmt::format("unexpected argument {}", in_quotes(*word));
  } else if (!commands.empty()) {
    what = fmt::format("give a command: {}", fmt::join(commands, ", "));
  }
  return fmt::format("{}{}; see {} --help", place, what, name);
}

}  // namespace carousel
