// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/config.hpp"

#include <climits>

#include "core/deck/row.hpp"

namespace carousel {
namespace {

const char* const kind_key = "data.kind";

KeyTraits of_arrays(Missing missing) {
  return bound(Bond::fixed, only_with(kind_key, {"arrays"}, missing));
}

/// A path, or words that a shell would expand to several.
const char* const paths_doc =
    "HDF5 files, as paths in which * and ? stand for any letters. A path in the deck is relative "
    "to the deck; on the command line, to the folder where the command runs.";

}  // namespace

std::vector<Row<ArrayConfig>> ArrayConfig::rows() {
  const KeyTraits fixed = of_arrays(Missing::standard);
  KeyTraits statistic = of_arrays(Missing::nothing);
  return {
      key("from", &ArrayConfig::from, anything,
          "Arrays in each file, such as \"fields/density\". The channels of several lie behind "
          "each "
          "other.",
          of_arrays(Missing::refused)),
      key("axes", &ArrayConfig::axes, anything,
          "What the axes of the arrays are, in their order: n samples or trajectories, t time, c "
          "channels, z, y and x space; \"n t y x c\". Without n, a file is one sample. Without the "
          "key, arrays of one or two axes are n and n c.",
          of_arrays(Missing::nothing)),
      key("transform", &ArrayConfig::transform, one_of<Transform>(),
          "What is done with each number before it is normalised. log1p: log(1 + x).", fixed),
      key("normalise", &ArrayConfig::normalise, one_of<Normalise>(),
          "What each channel is scaled to, by the numbers of the training samples alone. standard: "
          "mean 0, standard deviation 1. minmax: 0 to 1.",
          fixed),
      key("mean", &ArrayConfig::mean, anything,
          "Of each channel, which is taken off. Instead of the data set's own.", statistic),
      key("std", &ArrayConfig::std, above(0), "Of each channel, which then divides. Likewise.",
          statistic),
  };
}

std::vector<Row<InputConfig>> InputConfig::rows() {
  std::vector<Row<InputConfig>> rows = rows_at<InputConfig>(
      ArrayConfig::rows(), [](auto& config) -> auto& { return config.arrays; });
  rows.push_back(key("history", &InputConfig::history, within(1, 1 << 12, "frames"),
                     "Frames behind each other in time that are one input, as more channels.",
                     of_arrays(Missing::standard)));
  return rows;
}

std::vector<Row<TargetConfig>> TargetConfig::rows() {
  std::vector<Row<TargetConfig>> rows = rows_at<TargetConfig>(
      ArrayConfig::rows(), [](auto& config) -> auto& { return config.arrays; });
  rows.push_back(key("classes", &TargetConfig::classes, within(1, 1 << 20),
                     "Targets are labels from 0 to one less than this. Without the key they are "
                     "numbers.",
                     of_arrays(Missing::nothing)));
  rows.push_back(key("ignore", &TargetConfig::ignore, within(0, INT_MAX),
                     "A label that counts neither for the loss nor for metrics.",
                     of_arrays(Missing::nothing)));
  rows.push_back(key("ahead", &TargetConfig::ahead, within(0, 1 << 20, "frames"),
                     "How many frames behind the last one of the input a target is.",
                     of_arrays(Missing::nothing)));
  rows.push_back(key("mask", &TargetConfig::mask, anything,
                     "An array of the targets' axes, but for c, which is 0 where targets count "
                     "neither for the loss nor for metrics.",
                     of_arrays(Missing::nothing)));
  return rows;
}

std::vector<Row<DataConfig>> DataConfig::rows() {
  constexpr int most_workers = 512;
  KeyTraits choosing = bound(Bond::fixed);
  choosing.chooses = true;
  KeyTraits files = of_arrays(Missing::refused);
  files.bond = Bond::free;
  files.implies = {kind_key, {"arrays"}};
  KeyTraits more_files = of_arrays(Missing::nothing);
  more_files.bond = Bond::free;
  const KeyTraits splitting = of_arrays(Missing::standard);
  KeyTraits tokens = only_with(kind_key, {"tokens"}, Missing::refused);
  tokens.implies = {kind_key, {"tokens"}};
  return {
      key("kind", &DataConfig::kind, one_of<DataKind>(),
          "images: a data set in Carousel's format, as `carousel import` makes them. arrays: "
          "numbers in HDF5 files as they are. tokens: a text, as `carousel import tokens` makes "
          "it.",
          choosing),
      key("file", &DataConfig::file, anything,
          "HDF5 data set. A path in the deck is relative to the deck; on the command line, to the "
          "folder where the command runs.",
          only_with(kind_key, {"images"}, Missing::refused)),
      key("tokens", &DataConfig::tokens, anything,
          "HDF5 file of a text in tokens, as data.file is one of images. A sample is a window of "
          "it, and its target the same window a token later.",
          tokens),
      key("context", &DataConfig::context, within(2, 1 << 20, "tokens"), "Tokens of a window.",
          bound(Bond::fixed, only_with(kind_key, {"tokens"}, Missing::refused))),
      key("files", &DataConfig::files, anything, paths_doc, files),
      key("validation_files", &DataConfig::validation_files, anything,
          "Files of samples that evaluations use, not training.", more_files),
      key("test_files", &DataConfig::test_files, anything,
          "Files of samples that training does not use, nor do its evaluations if there are others "
          "for them.",
          more_files),
      key("validation_fraction", &DataConfig::validation_fraction, below_one,
          "Share of what split says that evaluations use, not training.", splitting),
      key("test_fraction", &DataConfig::test_fraction, below_one,
          "Share that training does not use, nor do its evaluations if there are others for them.",
          splitting),
      key("split", &DataConfig::split, one_of<SplitUnit>(),
          "What is never divided. trajectory: what lies at one place of the axis n, with all of "
          "its "
          "time. file: whole files.",
          splitting),
      key("split_seed", &DataConfig::split_seed, within(0, 1 << 30),
          "Chooses who is in which split.", splitting),
      key("workers", &DataConfig::workers, within(1, most_workers),
          "Threads of a device that read, decode and resize samples ahead of use. More than one "
          "helps where a run says that it waits for data. Results do not depend on it."),
  };
}

}  // namespace carousel
