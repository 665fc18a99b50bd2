// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Data sets from pictures and published batches. No engine is needed.

#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "app/commands.hpp"
#include "app/complaint.hpp"
#include "app/deck.hpp"
#include "app/output_rules.hpp"
#include "app/progress_line.hpp"
#include "app/run_config.hpp"
#include "core/base/text.hpp"
#include "core/data/array_files.hpp"
#include "core/data/class_sizes.hpp"
#include "core/data/dataset.hpp"
#include "core/import/cifar10.hpp"
#include "core/import/fields.hpp"
#include "core/import/file_source.hpp"
#include "core/import/imagenet.hpp"
#include "core/import/picture_layout.hpp"
#include "core/import/pictures.hpp"
#include "core/import/tokens.hpp"

namespace carousel {
namespace {

std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream file(path);
  if (!file) fail(ExitCode::input_output, "{}: no such file", path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (lines.empty() && line.starts_with(utf8_mark)) line.erase(0, utf8_mark.size());
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    if (std::ranges::find(lines, line) != lines.end())
      fail(ExitCode::usage, "{}: {} is in it twice", path, line);
    lines.push_back(line);
  }
  if (lines.empty()) fail(ExitCode::usage, "{}: it names no class", path);
  return lines;
}

/// Names bad pictures on standard error, not all of very many.
void list(const std::vector<BadFile>& bad) {
  constexpr std::size_t most = 20;
  for (const BadFile& file : std::span(bad).first(std::min(most, bad.size())))
    tell(fmt::format("bad: {}: {}\n", printable(file.path), printable(file.reason)));
  if (bad.size() > most) tell(fmt::format("bad: and {} more\n", bad.size() - most));
}

/// Where the pictures are from, unless the user says so.
std::string source_of(const ImportDataArguments& arguments) {
  switch (arguments.collection) {
    case Collection::cifar10:
      return "CIFAR-10, Krizhevsky 2009, Learning Multiple Layers of Features from Tiny Images";
    case Collection::imagenet:
      return "ImageNet, ILSVRC 2012, Russakovsky et al. 2015, ImageNet Large Scale Visual "
             "Recognition Challenge";
    case Collection::images:
      break;
  }
  return arguments.path;
}

/// "train,test".
HalfNames half_names(const std::string& text) {
  const std::size_t comma = text.find(',');
  HalfNames names = {text.substr(0, comma), comma < text.size() ? text.substr(comma + 1) : ""};
  if (names.train.empty() || names.test.empty() || names.train == names.test)
    fail(ExitCode::usage, "--halves {}: must be two folders, TRAIN,TEST, or none", text);
  return names;
}

/// Says what is not in the data set though it was found.
void tell_left_out(const std::vector<std::string>& paths, const char* one, const char* several) {
  if (paths.empty()) return;
  note(fmt::format("{} {} left out, beginning with {}", paths.size(),
                   paths.size() == 1 ? one : several, paths.front()));
}

/// Says of links that are left out, which may have led to all of a class, what they are.
void tell_links(const std::vector<std::string>& left_out, const FileSource& source) {
  for (const std::string& path : left_out) {
    const auto at = std::ranges::lower_bound(source.files(), path) - source.files().begin();
    const std::string& fault = source.fault(static_cast<std::size_t>(at));
    if (!fault.empty()) return note(fmt::format("{}: {}", path, fault));
  }
}

volatile std::sig_atomic_t interrupted = 0;  // by this signal

/// Thrown where a signal asks for the end, so that what was begun is taken away.
struct Interrupted {};

/// A second signal ends the process at once. One that is ignored, as by nohup, stays so.
void listen_to_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = [](int signal) { interrupted = signal; };
    action.sa_flags = SA_RESTART;
    action.sa_flags |= static_cast<int>(SA_RESETHAND);
    sigaction(number, &action, nullptr);
  }
}

/// As many as were asked for, or one per core.
int threads_of(int workers) {
  return workers > 0 ? workers
                     : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

ImportResult import_from(const ImportDataArguments& arguments, const FileSource& source,
                         ProgressLine& line) {
  const auto or_else = [](const std::string& given, const std::string& otherwise) {
    return given.empty() ? otherwise : given;
  };
  const ImportOptions options = {.workers = threads_of(arguments.workers),
                                 .keep = arguments.keep,
                                 .skip_bad = arguments.skip_bad,
                                 .source = or_else(arguments.source, source_of(arguments)),
                                 .licence = or_else(arguments.licence, "not stated")};
  const ImportProgress progress = [&](std::size_t done, std::size_t all) {
    if (interrupted != 0) throw Interrupted();
    line.show(done, all);
  };
  if (arguments.collection == Collection::cifar10 && has_cifar10_batches(source)) {
    listen_to_signals();
    return import_cifar10_batches(source, arguments.dataset, options, progress);
  }
  LayoutOptions layout_options = {.test_fraction = arguments.test_fraction,
                                  .seed = arguments.seed,
                                  .only_classes = arguments.halves == "none",
                                  .skip_strays = arguments.skip_bad};
  if (!arguments.halves.empty() && !layout_options.only_classes)
    layout_options.halves = half_names(arguments.halves);
  if (!arguments.classes.empty()) layout_options.classes = read_lines(arguments.classes);
  PictureLayout layout = picture_layout(arguments.path, source.files(), layout_options,
                                        source.unnamed_pictures(), source.folders());
  tell_left_out(layout.left_out, "picture in another folder is", "pictures in other folders are");
  tell_left_out(layout.strays, "picture in no folder of a class is",
                "pictures in no folder of a class are");
  tell_left_out(layout.service, "file that is hidden or a system's own is",
                "files that are hidden or a system's own are");
  tell_left_out(layout.others, "file that is no picture is", "files that are no pictures are");
  tell_links(layout.others, source);
  tell_left_out(layout.empty, "folder without a picture is", "folders without a picture are");
  // Until there is something to take away, signals end the process as they always do.
  listen_to_signals();
  return import_pictures(source, std::move(layout), arguments.dataset, options, progress);
}

}  // namespace

void import_data_command(const ImportDataArguments& arguments, const Launcher& launcher) {
  if (std::filesystem::is_directory(arguments.dataset))
    fail(ExitCode::usage, "{}: is a folder; name a file in it", arguments.dataset);
  const std::vector<ReadFile> reads = {{"what is imported", arguments.path},
                                       {"the list of classes", arguments.classes},
                                       {"the list of labels", arguments.labels}};
  check_output(arguments.dataset, arguments.overwrite, launcher, reads);
  ImportResult result;
  double seconds = 0;
  try {
    ProgressLine line("import", "images");
    const std::unique_ptr<FileSource> source = arguments.collection == Collection::imagenet
                                                   ? open_imagenet(arguments.path, arguments.labels)
                                                   : FileSource::open(arguments.path);
    result = import_from(arguments, *source, line);
    seconds = line.seconds();
  } catch (const Interrupted&) {
    note(fmt::format("{}: interrupted; nothing was written", arguments.dataset));
    std::raise(interrupted);  // the shell wants to know by what the process ended
  }
  list(result.bad);
  if (!result.written)
    fail(ExitCode::bad_data, "{}: {} bad pictures; mend them, or leave them out with --skip-bad",
         arguments.path, result.bad.size());
  const std::int64_t images = result.images[0] + result.images[1];
  const Dataset made = Dataset::own(arguments.dataset);
  const std::span<const int> labels = made.train().labels();
  if (const std::string missing = missing_classes(made.class_names(), labels); !missing.empty())
    note(missing);
  fmt::print("{}: {} images for training, {} for tests, {}; {}; {:.1f} s, {:.0f} images/s\n",
             arguments.dataset, result.images[0], result.images[1],
             result.shape.height > 0 ? to_string(result.shape) : "kept as files",
             printable(describe_classes(made.class_names(), labels)), seconds,
             static_cast<double>(images) / seconds);
}

void import_tokens_command(const ImportTokensArguments& arguments, const Launcher& launcher) {
  const std::size_t comma = arguments.bpe.find(',');
  if (!arguments.bpe.empty() &&
      (comma == std::string::npos || comma == 0 || comma + 1 == arguments.bpe.size()))
    fail(ExitCode::usage, "--bpe {}: must be two files, TOKENS,PAIRS", arguments.bpe);
  TokenImport import = {.paths = expand_paths("PATH", {arguments.path}),
                        .validation = {},
                        .validation_fraction = arguments.validation_fraction,
                        .form = value_named<TextForm>(arguments.form),
                        .gpt2_tokens = {},
                        .gpt2_pairs = {},
                        .vocabulary = arguments.vocabulary,
                        .source = arguments.source.empty() ? arguments.path : arguments.source,
                        .licence = arguments.licence.empty() ? "not stated" : arguments.licence};
  if (!arguments.bpe.empty()) {
    import.gpt2_tokens = arguments.bpe.substr(0, comma);
    import.gpt2_pairs = arguments.bpe.substr(comma + 1);
  }
  if (!arguments.validation.empty())
    import.validation = expand_paths("--validation", {arguments.validation});
  std::vector<ReadFile> reads = {{"a file of the tokenizer", import.gpt2_tokens},
                                 {"a file of the tokenizer", import.gpt2_pairs}};
  for (const auto* paths : {&import.paths, &import.validation})
    for (const std::string& path : *paths) reads.push_back({"a text that is imported", path});
  check_output(arguments.file, arguments.overwrite, launcher, reads);
  TokenCounts counts;
  double seconds = 0;
  try {
    ProgressLine line("import", "KiB");
    listen_to_signals();
    counts = import_tokens(import, arguments.file, [&](std::int64_t done, std::int64_t all) {
      if (interrupted != 0) throw Interrupted();
      line.show(static_cast<std::size_t>(done >> 10), static_cast<std::size_t>(all >> 10));
    });
    seconds = line.seconds();
  } catch (const Interrupted&) {
    note(fmt::format("{}: interrupted; nothing was written", arguments.file));
    std::raise(interrupted);
  }
  fmt::print("{}: {} tokens for training, {} for validation, of {}; {:.1f} s\n", arguments.file,
             human_count(counts.train), human_count(counts.validation),
             human_count(counts.vocabulary), seconds);
}

void import_fields_command(const ImportFieldsArguments& arguments, const Launcher& launcher) {
  require_one_process(launcher);
  const RunConfig config = load_run_config(arguments.deck, arguments.overrides);
  if (config.data.kind != DataKind::arrays)
    fail(ExitCode::usage,
         "{}: data.file is a data set already; fields are the arrays of data.files",
         arguments.deck);
  FieldsResult result;
  double seconds = 0;
  try {
    ProgressLine line("import", "MiB");
    listen_to_signals();
    result = import_fields(config.data, arguments.folder, threads_of(arguments.workers),
                           arguments.overwrite, [&](std::size_t done, std::size_t all) {
                             if (interrupted != 0) throw Interrupted();
                             line.show(done, all);
                           });
    seconds = line.seconds();
  } catch (const Interrupted&) {
    note(fmt::format("{}: interrupted; files that were not whole are not there", arguments.folder));
    std::raise(interrupted);
  }
  fmt::print(
      "{}: {} files with {} arrays, {} that were {}; {:.1f} s\n"
      "Name them in the deck: data.files = \"{}/*\"\n",
      arguments.folder, result.files.size(), result.arrays, human_bytes(result.written_bytes),
      human_bytes(result.stored_bytes), seconds, arguments.folder);
}

}  // namespace carousel
