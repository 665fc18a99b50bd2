// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The commands of the front end, one file each, as functions of what the command line says. None of
// them computes with the model; the engine does.

#include <cstdint>
#include <string>
#include <vector>

#include "app/launcher.hpp"
#include "app/run_config.hpp"
#include "app/sample_arguments.hpp"
#include "core/import/pictures.hpp"

namespace carousel {

struct TrainArguments {
  std::string deck;
  std::vector<std::string> overrides;  // section.key=value
  bool validate = false;
  bool layers = false;  // with validate: list every layer
  bool overwrite = false;
};

/// Checks deck and launch, then becomes the engine. With `validate`, checks the deck, and if there
/// is a launcher the launch, and prints what would run.
void train_command(const TrainArguments& arguments, const Launcher& launcher);

struct EvalArguments {
  std::string checkpoint;   // or a run folder, for its newest one
  std::string dataset;      // empty: the one that it was trained with
  std::string split;        // of arrays: train, validation or test; empty: all, or what is held out
  bool as_trained = false;  // mean and std are those of the checkpoint
  bool confusion = false;   // print labels by predictions alone, as CSV
  bool without_ema = false;  // parameters as they were trained, not their averages
};

/// Becomes the engine that evaluates a checkpoint on the test set of a data set, or on arrays.
void eval_command(const EvalArguments& arguments, const Launcher& launcher);

struct PlanArguments {
  std::string deck;
  std::vector<std::string> overrides;  // section.key=value
  bool compare = false;
  bool advise = false;
  bool json = false;
  bool layers = false;     // list every layer
  bool as_deck = false;    // as the table [model] of a deck
  std::int64_t steps = 2;  // of the actions in JSON
  std::string svg;         // file to draw it into
  std::string sweep;       // section.key=value,value,...
  std::string measured;    // run folder
  bool devices = false;    // print how many ranks to start, and nothing else
  std::string key;         // print its value, and nothing else
};

/// Prints what a deck would run, or the alternatives to it.
void plan_command(const PlanArguments& arguments);
void print_plan(const RunConfig& config, bool layers);

/// What the pictures of a data set are: those of anybody in folders, or a published collection.
enum class Collection : std::uint8_t { images, cifar10, imagenet };

/// Of the commands that make a data set.
struct ImportDataArguments {
  Collection collection = Collection::images;
  std::string path;     // folder or archive
  std::string dataset;  // to be written
  double test_fraction = 0;
  std::uint64_t seed = 1;
  std::string classes;  // file with a name per line; empty: the folders' names
  std::string halves;   // "TRAIN,TEST", folders; "none": all are classes; empty: by their names
  std::string labels;   // file with the classes of ImageNet's validation pictures
  std::string source;   // what the data set says of itself
  std::string licence;
  int workers = 0;  // 0: one per core
  Keep keep = Keep::automatic;
  bool skip_bad = false;
  bool overwrite = false;
};

struct ImportTokensArguments {
  std::string path;        // a file of text or tokens, in which * and ? stand for any letters
  std::string file;        // to be written
  std::string validation;  // as path; empty: the last part
  double validation_fraction = 0.1;
  std::string form = "bytes";   // a word of TextForm
  std::string bpe;              // "TOKENS,PAIRS", the files of GPT-2's tokenizer
  std::int64_t vocabulary = 0;  // of tokens without these
  std::string source;
  std::string licence;
  bool overwrite = false;
};

struct ImportFieldsArguments {
  std::string deck;
  std::string folder;                  // to be written
  std::vector<std::string> overrides;  // section.key=value
  int workers = 0;                     // 0: one per core
  bool overwrite = false;
};

struct ImportArguments {
  std::string weights;
  std::string deck;
  std::string checkpoint;              // to be written
  std::vector<std::string> overrides;  // section.key=value
  bool overwrite = false;
};

struct ExportArguments {
  std::string checkpoint;  // or a run folder, for its newest one
  std::string weights;     // to be written
  bool overwrite = false;
  bool without_ema = false;  // as in EvalArguments
};

/// Makes a data set of pictures or of batches as they were published.
void import_data_command(const ImportDataArguments& arguments, const Launcher& launcher);
/// Makes tokens of a text, or takes those of others.
void import_tokens_command(const ImportTokensArguments& arguments, const Launcher& launcher);
/// Writes the arrays of a deck's files anew, each in one piece.
void import_fields_command(const ImportFieldsArguments& arguments, const Launcher& launcher);
/// Makes a checkpoint of a deck's model from a file with the tensors of PyTorch's state_dict.
void import_weights_command(const ImportArguments& arguments, const Launcher& launcher);
/// Writes the tensors of a checkpoint into such a file.
void export_weights_command(const ExportArguments& arguments, const Launcher& launcher);

struct PredictArguments {
  std::string checkpoint;  // or a run folder, for its newest one
  std::string dataset;
  std::string output;
  std::string split;  // of arrays, as in EvalArguments; empty: all
  bool overwrite = false;
  bool without_ema = false;  // as in EvalArguments
};

/// Becomes the engine that writes what a network gives for inputs.
void predict_command(const PredictArguments& arguments, const Launcher& launcher);

/// Becomes the engine that prints a text of a network that has learned one.
void sample_command(const SampleArguments& arguments, const Launcher& launcher);

struct InspectArguments {
  std::vector<std::string> paths;
  bool json = false;
  std::string csv;  // "steps" or "evaluations"; empty: no CSV
};

/// Prints what files or run folders hold, and compares several; or the same for programs.
void inspect_command(const InspectArguments& arguments);

/// Checks the files of a run against the plan that its deck makes, and prints what was checked.
/// Returns done, or incomplete if all is right but the run did not come to its end.
[[nodiscard]] ExitCode verify_command(const std::string& path);

/// Prints where two runs first differ and what may explain it. Returns done if nothing differs.
[[nodiscard]] ExitCode diff_command(const std::string& path_a, const std::string& path_b);

}  // namespace carousel
