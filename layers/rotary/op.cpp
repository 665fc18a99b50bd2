// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/rotary/op.hpp"

#include "core/base/check.hpp"
#include "core/model/op.hpp"

namespace carousel::ops {
namespace {

void infer(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& /*around*/) {
  const int heads = arguments.whole("heads");
  const SampleShape& shape = layer.input();
  if (shape.channels % (6 * heads) != 0)
    fail(ExitCode::usage,
         "rotary of {} heads of {}: channels are queries, keys and values of an even size, a "
         "multiple of 6 x {}",
         heads, to_string(shape), heads);
  layer.attributes = op::Rotary{heads, arguments.number("base")};
  infer_by_number(layer, 2, 2);  // three for each number of queries and keys, none of values
  layer.in_place = true;
}

std::string fit(LayerSpec& layer, const KernelChoice& choice) {
  // A cosine and a sine of each token and pair of features.
  const int heads = layer.as<op::Rotary>().heads;
  const std::int64_t pairs = layer.input().channels / 3 / heads / 2;
  layer.workspace = {{2 * layer.input().pixels() * pairs * std::int64_t{sizeof(real)}, 0}};
  return fit_in_any_order(layer, choice);
}

}  // namespace

/// Rotary positions (Su et al. 2021, arXiv 2104.09864) of what an attention reads, in the order of
/// Llama: features j and j + size / 2 of a head turn by t base^(-2 j / size) at token t.
Op rotary() {
  return {
      .name = "rotary",
      .arguments = {{.name = "heads", .least = 1},
                    {.name = "base", .otherwise = op::Rotary{}.base, .least = 1, .whole = false}},
      .infer = infer,
      .fit = fit};
}

}  // namespace carousel::ops
