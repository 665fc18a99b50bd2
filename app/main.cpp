// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The front end: understands the command line and runs one command. It links neither Kokkos nor
// MPI, so that planning and reading work on a login node.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "app/commands.hpp"
#include "app/complaint.hpp"
#include "app/dropped_keys.hpp"
#include "app/engine_process.hpp"
#include "app/help_topics.hpp"
#include "app/launcher.hpp"
#include "app/nearest.hpp"
#include "app/schema.hpp"
#include "app/usage.hpp"
#include "core/base/descriptor.hpp"
#include "core/base/version.hpp"

namespace carousel {
namespace {

struct CommandLine {
  TrainArguments train;
  PlanArguments plan;
  EvalArguments eval;
  PredictArguments predicted;
  SampleArguments sampled;
  InspectArguments inspected;
  std::string verified;
  std::string run_a;
  std::string run_b;
  ImportDataArguments data;
  ImportFieldsArguments fields;
  ImportTokensArguments tokens;
  ImportArguments imported;
  ExportArguments exported;
  std::vector<std::string> topic;
};

void add_split(CLI::App* command, std::string& split) {
  command->add_option("--split", split, "Of arrays and texts: this split alone")
      ->type_name("NAME")
      ->check(CLI::IsMember({"train", "validation", "test"}).description(""));
}

/// Prints and ends the parse as a success, before missing arguments are complained about.
void add_deck_help(CLI::App* command) {
  command->add_flag_callback(
      "--help-deck",
      [] {
        fmt::print("{}", deck_help(""));
        throw CLI::Success();
      },
      "Print every key of a deck");
}

void add_overrides(CLI::App* command, std::vector<std::string>& overrides) {
  command->add_option("key=value", overrides,
                      "Replace a key: run.seed=3; or remove one: run.seed=");
}

std::string version() {
  const BuildInfo& build = build_info();
  return fmt::format("carousel {} ({}), {}, {}, {}\n{}", build.version, build.git_hash,
                     build.compiler, build.build_type, build.precision, build.libraries());
}

std::string not_empty(const std::string& value) {
  return value.empty() ? "needs a value" : "";
}

constexpr const char* overwrite_help = "Replace an earlier file";
constexpr const char* without_ema_help = "Take the parameters, not their averages (train.ema)";

void add_data_options(CLI::App* command, ImportDataArguments& data) {
  command->add_option("PATH", data.path, "Folder, or tar archive, compressed or not")->required();
  command->add_option("FILE", data.dataset, "HDF5 file to write")->required();
  command->add_option("--workers", data.workers, "Threads that decode (default: one per core)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024).description(""));
  command->add_flag("--skip-bad", data.skip_bad, "Leave bad pictures out, after naming them");
  command->add_option("--source", data.source, "Where the pictures are from, for FILE")
      ->type_name("TEXT");
  command->add_option("--licence", data.licence, "What may be done with them, for FILE")
      ->type_name("TEXT");
  command->add_flag("--overwrite", data.overwrite, overwrite_help);
}

void add_import_commands(CLI::App& app, CommandLine& line) {
  CLI::App* import = app.add_subcommand("import", "Make a data set, or a checkpoint of weights");
  import->require_subcommand(1);
  CLI::App* cifar10 =
      import->add_subcommand("cifar10", "CIFAR-10, in batches as published or as pictures");
  add_data_options(cifar10, line.data);
  CLI::App* imagenet = import->add_subcommand("imagenet", "ImageNet's archives as published");
  add_data_options(imagenet, line.data);
  imagenet
      ->add_option("--labels", line.data.labels, "Class of each validation picture, a line each")
      ->type_name("LIST")
      ->required();
  imagenet->footer(
      "PATH is a folder with ILSVRC2012_img_train.tar, an archive of an archive per\n"
      "class, and ILSVRC2012_img_val.tar, or with what is in them in train/ and val/.\n"
      "Each line of LIST has a WordNet id alone, in the order of the pictures' names,\n"
      "or each a name and then its id. Archives are read twice, once to learn what is\n"
      "in them.");
  CLI::App* images = import->add_subcommand("images", "JPEG and PNG files, a folder per class");
  add_data_options(images, line.data);
  images->add_option("--keep", line.data.keep, "Default: pixels, of one size and up to a GiB")
      ->type_name("pixels|files")
      ->transform(CLI::CheckedTransformer(
                      std::map<std::string, Keep>{{"pixels", Keep::pixels}, {"files", Keep::files}})
                      .description(""));
  images
      ->add_option("--test-fraction", line.data.test_fraction,
                   "Of all pictures, for tests, if no folder has them")
      ->type_name("X")
      ->check(CLI::Range(0.0, 1.0).description(""));
  images->add_option("--seed", line.data.seed, "Of that choice (default 1)")->type_name("N");
  images->add_option("--classes", line.data.classes, "A class per line, in order (default: sorted)")
      ->type_name("LIST")
      ->check(not_empty);
  images
      ->add_option("--halves", line.data.halves,
                   "Folders, if not train and test; none: all are classes")
      ->type_name("TRAIN,TEST|none")
      ->check(not_empty);
  images->footer(
      "PATH holds train/CLASS/... beside test/CLASS/... (or val), or CLASS/... and then\n"
      "--test-fraction is needed. Greys become RGB, alpha is dropped; CMYK and 16 bits\n"
      "are refused. Bad files are named, and nothing is written (exit code 65).");

  CLI::App* fields =
      import->add_subcommand("fields", "Arrays of a deck written anew, each in one piece");
  fields->add_option("DECK", line.fields.deck, "TOML file whose [data] names files and arrays")
      ->required();
  fields->add_option("FOLDER", line.fields.folder, "Where files go, under their names")->required();
  add_overrides(fields, line.fields.overrides);
  fields->add_option("--workers", line.fields.workers, "Threads (default: one per core)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024).description(""));
  fields->add_flag("--overwrite", line.fields.overwrite, "Replace earlier files");
  fields->footer(
      "For arrays that are packed or in small chunks: samples are then read without\n"
      "unpacking, and each MiB has a checksum. Attributes and other arrays stay behind.\n"
      "Arrays packed by plug-ins of HDF5 are unpacked by these.");

  CLI::App* tokens = import->add_subcommand("tokens", "A text, or tokens that others made of one");
  tokens->add_option("PATH", line.tokens.path, "A file, or files as \"texts/*.txt\"")->required();
  tokens->add_option("FILE", line.tokens.file, "HDF5 file to write")->required();
  tokens->add_option("--as", line.tokens.form, "What tokens are (default bytes)")
      ->type_name("bytes|characters|gpt2|tokens")
      ->check(CLI::IsMember({"bytes", "characters", "gpt2", "tokens"}).description(""));
  tokens->add_option("--bpe", line.tokens.bpe, "encoder.json and vocab.bpe of GPT-2, or the like")
      ->type_name("TOKENS,PAIRS")
      ->check(not_empty);
  tokens->add_option("--vocabulary", line.tokens.vocabulary, "Of --as tokens without --bpe")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 24).description(""));
  tokens
      ->add_option("--validation-fraction", line.tokens.validation_fraction,
                   "The last part of all, for evaluations (default 0.1)")
      ->type_name("X")
      ->check(CLI::Range(0.0, 0.99).description(""));
  tokens->add_option("--validation", line.tokens.validation, "Files for evaluations instead")
      ->type_name("PATH")
      ->check(not_empty);
  tokens->add_option("--source", line.tokens.source, "Where the text is from, for FILE")
      ->type_name("TEXT");
  tokens->add_option("--licence", line.tokens.licence, "What may be done with it, for FILE")
      ->type_name("TEXT");
  tokens->add_flag("--overwrite", line.tokens.overwrite, overwrite_help);
  tokens->footer(
      "characters: a token for each that is in the text, in the order of Unicode.\n"
      "gpt2: byte-level pairs, with <|endoftext|> between files. tokens: files of\n"
      "llm.c (.bin), known by their first bytes, or uint16 alone, as nanoGPT's.");

  CLI::App* in =
      import->add_subcommand("weights", "Weights by PyTorch's names, in HDF5 or safetensors");
  in->add_option("FILE", line.imported.weights, "HDF5 or safetensors file of a state_dict")
      ->required();
  in->add_option("DECK", line.imported.deck, "TOML file that names model and data")->required();
  in->add_option("CHECKPOINT", line.imported.checkpoint, "HDF5 file to write")->required();
  add_overrides(in, line.imported.overrides);
  in->add_flag("--overwrite", line.imported.overwrite, overwrite_help);
}

void add_export_command(CLI::App& app, CommandLine& line) {
  CLI::App* out = app.add_subcommand("export", "Write the weights of a checkpoint for PyTorch");
  out->require_subcommand(1);
  out = out->add_subcommand("weights", "Weights by PyTorch's names, in HDF5 or safetensors");
  out->add_option("CHECKPOINT", line.exported.checkpoint,
                  "File to read, or a run folder for its last one")
      ->required();
  out->add_option("FILE", line.exported.weights, "File to write; safetensors if so named")
      ->required();
  out->add_flag("--overwrite", line.exported.overwrite, overwrite_help);
  out->add_flag("--without-ema", line.exported.without_ema, without_ema_help);
}

/// An empty override would remove the key, and the row would have no name.
std::string without_gaps(const std::string& sweep) {
  const bool gap = ("," + sweep.substr(sweep.find('=') + 1) + ",").find(",,") != std::string::npos;
  return gap ? "needs a value on both sides of every comma" : "";
}

void add_commands(CLI::App& app, CommandLine& line) {
  app.set_version_flag("--version", version, "Print the versions of all parts");
  app.require_subcommand(0, 1);  // none is refused by run(), so that a wrong one is named
  app.get_formatter()->column_width(26);
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.get_formatter()->label("Positionals", "Arguments");
  app.group("Commands");  // which subcommands inherit

  CLI::App* train = app.add_subcommand("train", "Train the model of a deck");
  train->add_option("DECK", line.train.deck, "TOML file")->required();
  add_overrides(train, line.train.overrides);
  CLI::Option* validate =
      train->add_flag("--validate", line.train.validate, "Check everything, but do not train");
  train->add_flag("--layers", line.train.layers, "With --validate: list every layer of the model")
      ->needs(validate);
  train->add_flag("--overwrite", line.train.overwrite, "Replace an earlier run in the run folder");
  add_deck_help(train);

  CLI::App* plan = app.add_subcommand("plan", "Show what a deck would run and what it costs");
  plan->add_option("DECK", line.plan.deck, "TOML file")->required();
  add_overrides(plan, line.plan.overrides);
  CLI::Option* compare = plan->add_flag("--compare", line.plan.compare,
                                        "Compare dp and a cyclic rule in all placements");
  CLI::Option* advise = plan->add_flag("--advise", line.plan.advise,
                                       "Find the fastest plan for every rule and placement");
  advise->excludes(compare);
  CLI::Option* json =
      plan->add_flag("--json", line.plan.json, "Print the plan and its actions as JSON");
  json->excludes(compare)->excludes(advise);
  plan->add_option("--steps", line.plan.steps, "Number of training steps in the JSON (default 2)")
      ->needs(json)
      ->check(CLI::Range(1, 1000));
  plan->add_option("--svg", line.plan.svg, "Draw the time grid, messages and memory into FILE")
      ->type_name("FILE")
      ->excludes(json)
      ->excludes(compare)
      ->excludes(advise)
      ->check(not_empty);
  plan->add_option("--measured", line.plan.measured,
                   "Simulate with the times of a run, not with [machine]")
      ->type_name("RUN")
      ->excludes(advise)
      ->check(not_empty);
  plan->add_option("--sweep", line.plan.sweep, "Print a line for each value: parallel.stages=1,2,4")
      ->excludes(compare)
      ->excludes(advise)
      ->excludes(json)
      ->check(not_empty)
      ->check(without_gaps);
  plan->add_flag("--layers", line.plan.layers, "List every layer of the model, too")
      ->excludes(compare)
      ->excludes(advise)
      ->excludes(json)
      ->excludes("--svg")
      ->excludes("--sweep");
  plan->add_flag("--as-deck", line.plan.as_deck, "With --layers: print them as a deck lists them")
      ->needs("--layers");
  plan->add_flag("--devices", line.plan.devices, "Print nothing but the number of ranks to start");
  plan->add_option("--get", line.plan.key, "Print nothing but the value of a key")
      ->type_name("KEY")
      ->check(not_empty);
  add_deck_help(plan);

  CLI::App* eval = app.add_subcommand("eval", "Evaluate a checkpoint on a test set");
  eval->add_option("CHECKPOINT", line.eval.checkpoint,
                   "File to read, or a run folder for its last one")
      ->required();
  eval->add_option("DATASET", line.eval.dataset, "HDF5 file (default: the training's)");
  add_split(eval, line.eval.split);
  eval->add_flag("--as-trained", line.eval.as_trained,
                 "Take mean and std of CHECKPOINT, not of DATASET");
  eval->add_flag("--confusion", line.eval.confusion,
                 "Print counts of labels by predictions, as CSV");
  eval->add_flag("--without-ema", line.eval.without_ema, without_ema_help);

  CLI::App* predict =
      app.add_subcommand("predict", "Write what a trained network gives for inputs");
  predict
      ->add_option("CHECKPOINT", line.predicted.checkpoint,
                   "File to read, or a run folder for its last one")
      ->required();
  predict
      ->add_option("DATASET", line.predicted.dataset,
                   "HDF5 file; of arrays, targets may be missing")
      ->required();
  predict->add_option("OUT", line.predicted.output, "HDF5 file to write")->required();
  add_split(predict, line.predicted.split);
  predict->add_flag("--overwrite", line.predicted.overwrite, "Replace OUT");
  predict->add_flag("--without-ema", line.predicted.without_ema, without_ema_help);

  CLI::App* sample = app.add_subcommand("sample", "Print a text of a network that has learned one");
  sample
      ->add_option("CHECKPOINT", line.sampled.checkpoint,
                   "File to read, or a run folder for its last one")
      ->required();
  sample->add_option("--prompt", line.sampled.prompt, "What the text begins with")
      ->type_name("TEXT");
  sample->add_option("--count", line.sampled.count, "Tokens behind the prompt (default 200)")
      ->type_name("N")
      ->check(CLI::Range(0, 1 << 24).description(""));
  sample
      ->add_option("--temperature", line.sampled.temperature,
                   "Divides scores (default 1); 0: the likeliest token")
      ->type_name("X")
      ->check(CLI::Range(0.0, 1000.0).description(""));
  sample->add_option("--top-k", line.sampled.top_k, "Only the likeliest K tokens (default: all)")
      ->type_name("K")
      ->check(CLI::Range(0, 1 << 24).description(""));
  sample->add_option("--seed", line.sampled.seed, "Of the choice (default 1)")->type_name("N");
  sample->add_option("--tokens", line.sampled.tokens, "A file of tokens of the training's text")
      ->type_name("FILE");
  sample->add_flag("--without-ema", line.sampled.without_ema, without_ema_help);

  CLI::App* inspect = app.add_subcommand("inspect", "Show what files hold; compare several runs");
  inspect->add_option("FILE", line.inspected.paths, "Run folder, run file, checkpoint or data set")
      ->required();
  CLI::Option* as_json = inspect->add_flag("--json", line.inspected.json,
                                           "Print an array of JSON, with every step of runs");
  inspect->add_option("--csv", line.inspected.csv, "Print steps or evaluations of a run as CSV")
      ->type_name("TABLE")
      ->check(CLI::IsMember({"steps", "evaluations"}).description(""))
      ->excludes(as_json);

  CLI::App* verify =
      app.add_subcommand("verify", "Check a run's records against the plan of its deck");
  verify->add_option("RUN", line.verified, "Run folder")->required();
  verify->footer(
      "Exit code 0: all checks passed; 4: they did, but the run is incomplete;\n"
      "65: a file is wrong, and the first wrong row is named.");

  CLI::App* diff =
      app.add_subcommand("diff", "Name the first step and stage where two runs differ");
  diff->add_option("RUN", line.run_a, "Run folder")->required();
  diff->add_option("OTHER", line.run_b, "Run folder")->required();
  diff->footer("Exit code: 0 if both runs made the same updates, bit for bit, 3 if they differ.");

  add_import_commands(app, line);
  add_export_command(app, line);

  CLI::App* help = app.add_subcommand("help", "Help on carousel, a command or a topic");
  help->add_option("TOPIC", line.topic, "A command, or one of the topics below; deck TABLE, too");
  help->footer(list_of_topics());
  app.footer(list_of_topics());
}

void print_help(const CLI::App& app, const std::vector<std::string>& topic) {
  if (!topic.empty() && topic.front() == "deck") {
    if (topic.size() > 2)
      fail(ExitCode::usage, "help deck: give one table, not {}", topic.size() - 1);
    fmt::print("{}", deck_help(topic.size() == 2 ? topic.back() : ""));
    return;
  }
  if (topic.size() == 1) {
    if (const std::optional<std::string> page = help_on(topic.front())) {
      fmt::print("{}", *page);
      return;
    }
  }
  const CLI::App* command = &app;
  std::string name = app.get_name();
  for (const std::string& word : topic) {
    const std::vector<std::string> commands = command_names(*command);
    std::vector<std::string> topics;
    if (command == &app) topics = help_topics();
    topics.insert(topics.end(), commands.begin(), commands.end());
    if (std::ranges::find(commands, word) == commands.end())
      fail(ExitCode::usage, "help: unknown topic {}{}{}{}", in_quotes(word),
           did_you_mean(word, topics), topics.empty() ? "" : "; topics are ",
           fmt::join(topics, ", "));
    command = command->get_subcommand(word);
    name += " " + word;
  }
  fmt::print("{}", app.get_formatter()->make_help(command, name, CLI::AppFormatMode::Normal));
}

void import_command(const CLI::App& command, const CommandLine& line, const Launcher& launcher) {
  const std::string what = command.get_subcommands().front()->get_name();
  if (what == "weights") return import_weights_command(line.imported, launcher);
  if (what == "fields") return import_fields_command(line.fields, launcher);
  if (what == "tokens") return import_tokens_command(line.tokens, launcher);
  ImportDataArguments data = line.data;
  data.collection = what == "cifar10"    ? Collection::cifar10
                    : what == "imagenet" ? Collection::imagenet
                                         : Collection::images;
  import_data_command(data, launcher);
}

ExitCode run(const CLI::App& app, const CommandLine& line, const Launcher& launcher) {
  if (app.get_subcommands().empty())
    fail(ExitCode::usage, "{}", explain(app, CLI::RequiredError::Subcommand(1)));
  const std::string command = app.get_subcommands().front()->get_name();
  if (command == "train") {
    say_what_is_dropped(line.train.deck, line.train.overrides, "", launcher);
    train_command(line.train, launcher);
  }
  if (command == "plan") {
    say_what_is_dropped(line.plan.deck, line.plan.overrides, line.plan.sweep, launcher);
    plan_command(line.plan);
  }
  if (command == "eval") eval_command(line.eval, launcher);
  if (command == "predict") predict_command(line.predicted, launcher);
  if (command == "sample") sample_command(line.sampled, launcher);
  if (command == "inspect") inspect_command(line.inspected);
  if (command == "verify") return verify_command(line.verified);
  if (command == "import") import_command(*app.get_subcommands().front(), line, launcher);
  if (command == "export") export_weights_command(line.exported, launcher);
  if (command == "diff") return diff_command(line.run_a, line.run_b);
  if (command == "help") print_help(app, line.topic);
  return ExitCode::done;
}

/// Every rank finds the same mistake in a deck, so one rank reports it. A missing file or library
/// may concern a single node, so one rank of every node reports that.
int report(const Error& error, const std::string& deck, const Launcher& launcher) {
  std::error_code unknown;
  const bool everywhere = error.code() == ExitCode::usage && std::filesystem::exists(deck, unknown);
  if (everywhere ? launcher.first() : launcher.first_of_node()) {
    const std::string rank = launcher.first() ? "" : fmt::format("rank {}: ", launcher.rank);
    complain(rank + error.what());
  }
  // Some launchers end the other ranks as soon as one has ended; these get time to end by
  // themselves.
  if (launcher.several()) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  return static_cast<int>(error.code());
}

int guarded_main(int argc, char** argv) {
  // If a file may not grow, writing to it is an error with a line and an exit code.
  std::signal(SIGXFSZ, SIG_IGN);
  const Launcher launcher = find_launcher([](const char* name) { return std::getenv(name); });
  if (argc > 1 && std::string_view(argv[1]) == "train") hold_signals();
  CommandLine line;
  try {
    CLI::App app("Trains neural networks with Cyclic Data Parallelism.", "carousel");
    add_commands(app, line);
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& help) {
      const int code = app.exit(help);
      flush_output();
      return code;
    } catch (const CLI::ParseError& error) {
      fail(ExitCode::usage, "{}", explain(app, error));
    }
    const ExitCode code = run(app, line, launcher);
    flush_output();
    return static_cast<int>(code);
  } catch (const Error& error) {
    return report(error, line.train.deck, launcher);
  } catch (const std::system_error& error) {
    return report(Error(ExitCode::input_output, error.what()), "", launcher);
  } catch (const std::exception& error) {
    return report(Error(ExitCode::internal, error.what()), "", launcher);
  }
}

}  // namespace
}  // namespace carousel

int main(int argc, char** argv) {
  carousel::hold_standard_descriptors();
  return carousel::guarded_main(argc, argv);
}
