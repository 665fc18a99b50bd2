// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// torch.nn.Embedding: a row of a table for each token, of which there are as many as targets have
// classes where no vocabulary is given.

#include "core/model/op.hpp"
#include "core/base/check.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& around) {
  const SampleShape& tokens = layer.input();
  if (tokens.channels != 1)
    fail(ExitCode::usage, "embedding takes the numbers of tokens, one channel, not {}",
         to_string(tokens));
  if (around.learns)
    fail(ExitCode::usage,
         "embedding {}: it reads the numbers of tokens; what comes from layers that learn would "
         "find no gradient",
         layer.name);
  const int features = arguments.whole("features");
  const int given = arguments.whole("vocabulary");
  const int vocabulary = given > 0 ? given : around.target.classes;
  if (vocabulary == 0)
    fail(ExitCode::usage, "embedding needs a vocabulary, since the data set has {}",
         to_string(around.target));
  layer.output = tokens.with_channels(features);
  layer.parameters = {{layer.name + ".weight", {vocabulary, features}, normal(1)}};
  layer.backward_flops = static_cast<double>(layer.output.size());
  layer.saves_input = true;
}

std::string fit(LayerSpec& layer, const KernelChoice& /*choice*/) {
  if (layer.inputs.front().format != TensorFormat{}) return "it reads tokens as they come";
  // Of each token the next one that is the same, and whether it is the first.
  layer.workspace = {{0, 2 * layer.input().pixels() * std::int64_t{sizeof(int)}}};
  return "";
}

}  // namespace

Op embedding() {
  return {.name = "embedding",
          .arguments = {{.name = "features", .least = 1}, {.name = "vocabulary", .otherwise = 0}},
          .infer = infer,
          .fit = fit};
}

}  // namespace carousel::ops
