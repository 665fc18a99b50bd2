// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The pages of `carousel help` on networks that decks list: how lists are written, and every kind
// of layer with its sizes, as the kinds say them.

#include <fmt/format.h>

#include "app/help_topics.hpp"
#include "core/base/text.hpp"
#include "core/model/op.hpp"

namespace carousel {
namespace {

constexpr const char* lists =
    R"list(A deck may list its network, a line for each layer:

  [model]
  let = { w = 16 }
  layers = [
    { block = "double", out = "w", name = "in", save = "skip" },
    { max_pool = 2 },
    { block = "double", out = "2 * w", name = "middle" },
    { conv_transpose = "w", kernel = 2, stride = 2, name = "up" },
    { concat = "skip" },
    { residual = [ { conv = "2 * w", kernel = 3, padding = 1 }, "relu" ] },
    { repeat = 2, name = "end.{i}", layers = [ { conv = "w", kernel = 1 } ] },
    "global_avg_pool", "flatten", { linear = 10, name = "head" } ]
  blocks.double = [
    { conv = "out", kernel = 3, padding = 1, bias = false }, "batch_norm",
    "relu" ]

The last layer leaves what the loss of [task] reads: a number for each class.
`carousel help layers` has all kinds of layers. Sizes are those of PyTorch, and
so are the names of parameters: "in.0.weight", "head.bias".

A line is a word, "relu", or a table that has the word for a key, and beside it
the main size: { dropout = 0.1 }; true where there is none: { relu = true }.
Further keys are
  name       in the place of the number that the layer has in its list, as in
             nn.Sequential
  save       a name for what it leaves
  from       what it reads: something saved, not what the line before left
  init, init_bias
             how weights and biases start, where PyTorch's way is not wanted:
             "zeros", "ones", "constant(x)", "uniform(bound)",
             "normal(deviation)", "kaiming_uniform", "kaiming_normal" (the same
             with "_fan_out"), "xavier_uniform", "xavier_normal"

Lines that hold others; of one without a name, they are counted with those
around it:
  { repeat = 3, layers = [...] }           i is 0, 1, 2; index = "k" renames it
  { residual = [...], shortcut = [...] }   adds what it read, or the shortcut
  { branches = [[...], [...]], join = "add" }   side by side; without: concat
  { block = "double", out = 8 }            a list of blocks, and its numbers
  { add = "skip" }, { concat = ["a", "b"] }   behind what the line before left
  { multiply = "gate" }                    which may have one channel or pixel

Sizes in quotes are expressions of let, of i and of a block's numbers, with
+ - * / // % ** and parentheses; in names and saved names they stand in braces:
"skip{3 - i}". model.let.w=32 on the command line replaces one.

An inline table of TOML ends on its line; lists inside it may be longer.
model.file = "net.toml" names a file that has layers, let and blocks; the deck's
own let replaces sizes of it. inputs/networks has some. `carousel plan DECK
--layers --as-deck` lists any network so.
)list";

/// "kernel, stride = 1": what has no default must be given.
std::string sizes_of(const Op& op) {
  std::string text;
  for (const ArgumentSpec& argument : op.arguments) {
    if (std::string_view(argument.name) == op.main()) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", argument.name);
    if (argument.otherwise) text += fmt::format(" = {}", *argument.otherwise);
  }
  return text;
}

}  // namespace

std::string help_on_lists() {
  return lists;
}

std::string help_on_layers() {
  std::string text =
      "Kinds of layers of a list (see `carousel help network`), their main size, and\n"
      "further ones with their defaults:\n\n";
  for (const Op& op : all_ops()) {
    if (op.loss) continue;
    std::string main = op.joins ? "a saved name, or several" : "";
    if (!op.arguments.empty()) {
      main = op.main();
      for (const ArgumentSpec& argument : op.arguments)
        if (main == argument.name && argument.otherwise)
          main += fmt::format(" = {}", *argument.otherwise);
    }
    const std::string more = op.arguments.empty() ? "" : sizes_of(op);
    text += main.empty() ? fmt::format("  {}\n", op.word())
                         : fmt::format("  {:<20}{}\n", op.word(), main);
    if (!more.empty()) text += wrapped(more, 22);
  }
  return text +
         "\nConvolutions and poolings have square windows, of volumes cubes; of samples with\n"
         "one axis, windows along it. A pooling whose stride is 0 moves by its size.\n";
}

}  // namespace carousel
