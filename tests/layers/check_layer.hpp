// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What every layer must keep, whatever it computes: kernels of all orders and types agree with the
// plain ones, these with central differences, and none takes more than its spec asks for. That a
// formula is the right one, tests of its kind show. Losses, which have labels in the place of a
// gradient, are not checked here.

#include <fmt/core.h>

#include <cmath>
#include <ostream>
#include <string>

#include "core/base/vectors.hpp"
#include "core/model/builder.hpp"
#include "core/model/kernels.hpp"
#include "tests/layers/launches.hpp"
#include "tests/layers/single_layer.hpp"

namespace carousel::test {

/// A layer of a kind on inputs of a shape.
struct Example {
  std::string op;
  SampleShape input;
  Arguments arguments = {};
  bool joins = false;         // it has a second input of that shape
  bool reads_images = false;  // whose gradient nobody wants
  SampleShape second = {};    // or of this one
  int tokens = 0;             // its input are whole numbers below this
};
// NOLINTNEXTLINE(readability-identifier-naming): as GoogleTest calls it
inline void PrintTo(const Example& example, std::ostream* out) {
  *out << example.op << " of " << to_string(example.input);
}

/// How tensors lie: in blocks of so many channels, of which 0 are all, and of which type; and how
/// products of that type are added in blocks.
struct Layout {
  int block = 1;
  DataType type = DataType::full;
  ProductOrder products = ProductOrder::pairs;

  [[nodiscard]] KernelChoice choice() const {
    return {.block = block, .type = type, .products = products};
  }
};
[[nodiscard]] inline std::vector<Layout> all_layouts() {
  std::vector<Layout> all;
  for (const int block : {1, vector_block, 0}) {
    if (block == 1 && !all.empty()) continue;  // a GPU has no blocks
    for (const DataType type : {DataType::full, DataType::bfloat16}) all.push_back({block, type});
    if (block > 1) all.push_back({block, DataType::bfloat16, ProductOrder::tiles});
  }
  return all;
}
[[nodiscard]] inline std::string to_string(const Layout& layout) {
  return fmt::format("in {}, {}, {}",
                     layout.block == 1   ? "plain order"
                     : layout.block == 0 ? "channels side by side"
                                         : "blocks",
                     to_string(layout.type), to_string(layout.products));
}

/// The layer as a network has it behind others, with plain kernels.
[[nodiscard]] inline LayerSpec plain_layer(const Example& example) {
  const Op& op = op_named(example.op);
  LayerSpec layer;
  layer.kind = &op;
  layer.name = "layer";
  layer.inputs.assign(example.joins ? 2 : 1, {example.reads_images ? -1 : 0, example.input});
  if (example.second != SampleShape()) layer.inputs[1].shape = example.second;
  op.infer(layer, GivenArguments(example.op, op.arguments, example.arguments),
           {.network = "example", .images = example.input, .learns = !example.reads_images});
  const std::string reason = fit_kernels(layer, {});
  EXPECT_EQ(reason, "") << example.op << " must have kernels in plain order and full numbers";
  return layer;
}

/// Kernels that are to compute what plain layers, one after the other, compute.
struct Checked {
  LayerSpec layer;
  std::vector<LayerSpec> plain;
  bool wants_d_x = true;
  bool is_sole_reader = false;  // nobody else leaves a gradient of the input, which is wanted
  int tokens = 0;               // as in Example
};

/// What a layer is given. Numbers that bf16 has where the layer does not store others.
struct Given {
  Numbers x, second, d_y, parameters, buffers, others, second_others;
};

struct Written {
  Numbers y, d_x, d_second, d_parameters, statistics, evaluated;
};

inline constexpr int checked_samples = 3;

namespace detail {

[[nodiscard]] inline Numbers some(std::int64_t size, const char* purpose, DataType type) {
  return rounded_to(random_numbers(static_cast<std::size_t>(size), purpose), type);
}

/// Numbers of channels that differ in mean and width.
[[nodiscard]] inline Numbers uneven(const SampleShape& shape, DataType type) {
  Numbers numbers = random_numbers(checked_samples * shape.size(), "x");
  const std::int64_t pixels = shape.pixels();
  for (std::int64_t k = 0; k < std::ssize(numbers); ++k) {
    const auto channel = static_cast<int>(k / pixels % shape.channels);
    numbers[k] = numbers[k] * (1 + static_cast<real>(channel % 7) / 4) +
                 static_cast<real>(channel % 5 - 2) / 2;
  }
  return rounded_to(numbers, type);
}

[[nodiscard]] inline Given given(const Checked& checked) {
  const LayerSpec& layer = checked.layer;
  const auto of = [&](const SampleShape& shape, const TensorFormat& format, const char* purpose) {
    return some(checked_samples * shape.size(), purpose, format.type);
  };
  Given numbers = {
      .x = uneven(layer.input(), layer.inputs[0].format.type),
      .second = {},
      .d_y = of(layer.output, layer.output_format, "d_y"),
      .parameters = {},
      .buffers = random_numbers(static_cast<std::size_t>(layer.buffer_size()), "buffer"),
      .others = of(layer.input(), layer.inputs[0].format, "others"),
      .second_others = {}};
  if (layer.inputs.size() > 1) {
    numbers.second = of(layer.inputs[1].shape, layer.inputs[1].format, "second");
    numbers.second_others = of(layer.inputs[1].shape, layer.inputs[1].format, "others");
  }
  for (const ParameterSpec& parameter : layer.parameters)
    numbers.parameters =
        joined(numbers.parameters, some(parameter.size(), parameter.name.c_str(), parameter.type));
  for (real& number : numbers.buffers) number += 1;  // variances are positive
  for (real& number : numbers.x)
    if (checked.tokens > 0) number = std::floor(std::fmod(std::abs(number) * 100, checked.tokens));
  return numbers;
}

[[nodiscard]] inline Numbers part(const Numbers& numbers, std::int64_t begin, std::int64_t size) {
  return {numbers.begin() + begin, numbers.begin() + begin + size};
}

/// What layers compute one after the other, each with its part of the parameters.
[[nodiscard]] inline Written run(const std::vector<LayerSpec>& layers, const Given& given,
                                 bool wants_d_x, int n = checked_samples, int first = 0) {
  std::vector<std::unique_ptr<SingleLayer>> run;
  Written written;
  written.y = written.evaluated = given.x;
  std::int64_t parameters = 0;
  std::int64_t buffers = 0;
  for (const LayerSpec& spec : layers) {
    run.push_back(std::make_unique<SingleLayer>(
        spec, n, part(given.parameters, parameters, spec.parameter_size()),
        part(given.buffers, buffers, spec.buffer_size())));
    run.back()->hand_over_what_is_saved();
    run.back()->draw_from(first);
    parameters += spec.parameter_size();
    buffers += spec.buffer_size();
    const Numbers second = spec.inputs.size() > 1 ? given.second : Numbers();
    written.evaluated = run.back()->forward(written.evaluated, second, false);
    written.y = run.back()->forward(written.y, second);
  }
  written.d_x = given.d_y;
  for (std::size_t k = layers.size(); k-- > 0;) {
    if (k > 0 || wants_d_x)
      written.d_x = run[k]->backward(written.d_x);
    else
      run[k]->backward_without_input(written.d_x);
    if (layers[k].inputs.size() > 1) written.d_second = run[k]->d_second();
    written.d_parameters = joined(run[k]->d_parameters(), written.d_parameters);
    written.statistics = joined(run[k]->statistics(), written.statistics);
  }
  if (!wants_d_x) written.d_x = {};
  return written;
}

/// Of sums, which are full in any case; Winograd's algorithm rounds more than others.
constexpr double sum_tolerance = 10 * rounding;
/// Of what is stored, in the type of the tensors: the last bit, which sums may tip over. A layer
/// that normalises what it alone reads stores other numbers in between, too, of which another may
/// be the largest where they are equal then.
[[nodiscard]] inline double tolerance(const Checked& checked) {
  constexpr double last_bit = 1.0 / 256;
  if (has_full_numbers(checked.layer)) return sum_tolerance;
  return checked.is_sole_reader ? 2 * last_bit : last_bit;
}
/// Of gradients of parameters, which sum what is stored in between.
[[nodiscard]] inline double parameter_tolerance(const Checked& checked) {
  return checked.is_sole_reader ? tolerance(checked) : sum_tolerance;
}

inline void expect_near(const Written& actual, const Written& expected, double tolerance,
                        double of_parameters = sum_tolerance) {
  EXPECT_LE(relative_difference(actual.y, expected.y), tolerance) << "output";
  EXPECT_LE(relative_difference(actual.evaluated, expected.evaluated), tolerance) << "evaluation";
  EXPECT_LE(relative_difference(actual.d_x, expected.d_x), tolerance) << "gradient of the input";
  EXPECT_LE(relative_difference(actual.d_second, expected.d_second), tolerance)
      << "gradient of the second input";
  EXPECT_LE(relative_difference(actual.d_parameters, expected.d_parameters), of_parameters)
      << "gradients of parameters";
  EXPECT_LE(relative_difference(actual.statistics, expected.statistics), sum_tolerance)
      << "statistics";
}

/// Gradients that others left are added to; nobody writes what backward does not want; and what is
/// left in the gradient of the output is what the spec says.
inline void check_gradients(const Checked& checked, const Given& given, const Written& expected) {
  const LayerSpec& spec = checked.layer;
  SingleLayer layer(spec, checked_samples, given.parameters, given.buffers);
  layer.hand_over_what_is_saved();
  (void)layer.forward(given.x, given.second);
  if (spec.inputs.size() > 1) {
    layer.add_second(given.second_others);
    (void)layer.backward(given.d_y);
    EXPECT_LE(relative_difference(layer.d_second(), sum(expected.d_second, given.second_others)),
              tolerance(checked))
        << "added to the gradient of the second input";
    layer.leave_out_second();
    (void)layer.backward(given.d_y);
  }
  if (spec.aliases_second_gradient) {
    EXPECT_LE(relative_difference(layer.d_output(), expected.d_second), tolerance(checked))
        << "gradient of the second input, left in that of the output";
  }
  if (checked.wants_d_x && !spec.in_place && !checked.is_sole_reader) {
    EXPECT_LE(relative_difference(layer.backward(given.d_y, given.others),
                                  sum(expected.d_x, given.others)),
              tolerance(checked))
        << "added to the gradient of the input";
  }
  if (checked.is_sole_reader)
    (void)layer.backward(given.d_y);
  else
    layer.backward_without_input(given.d_y);
  EXPECT_LE(relative_difference(layer.d_parameters(), expected.d_parameters),
            parameter_tolerance(checked))
      << "gradients of parameters alone";
  if (!spec.in_place && !spec.aliases_second_gradient) {
    EXPECT_EQ(layer.d_output(), given.d_y) << "the gradient of the output stays";
  }
}

/// Run again for backward, forward makes the same output of what it saved.
inline void check_again(const Checked& checked, const Given& given) {
  if (!checked.layer.output_recomputable) return;
  SingleLayer layer(checked.layer, checked_samples, given.parameters, given.buffers);
  const Numbers y = layer.forward(given.x, given.second);
  EXPECT_EQ(layer.forward_again(given.x, given.second), y);
}

/// Samples have nothing to do with each other, but for norms of all of them.
inline void check_samples(const Checked& checked, const Given& given, const Written& written) {
  const LayerSpec& spec = checked.layer;
  if (spec.normalises_samples) return;
  const auto sample = [](const Numbers& all, int k) {
    const std::int64_t size = std::ssize(all) / checked_samples;
    return part(all, k * size, size);
  };
  Numbers d_parameters(written.d_parameters.size());
  for (int k = 0; k < checked_samples; ++k) {
    Given one = given;
    for (Numbers Given::*numbers : {&Given::x, &Given::second, &Given::d_y})
      one.*numbers = sample(given.*numbers, k);
    const Written alone = run({spec}, one, checked.wants_d_x, 1, k);
    EXPECT_LE(relative_difference(alone.y, sample(written.y, k)), tolerance(checked)) << "alone";
    EXPECT_LE(relative_difference(alone.d_x, sample(written.d_x, k)), tolerance(checked))
        << "alone";
    d_parameters = sum(d_parameters, alone.d_parameters);
  }
  EXPECT_LE(relative_difference(d_parameters, written.d_parameters), sum_tolerance)
      << "the sum over samples";
}

/// No layer allocates or fences, and a profiler sees whose its kernels are.
inline void check_launches(const Checked& checked, const Given& given) {
  SingleLayer layer(checked.layer, checked_samples, given.parameters, given.buffers);
  (void)layer.forward(given.x, given.second);
  if (checked.wants_d_x)
    (void)layer.backward(given.d_y);
  else
    layer.backward_without_input(given.d_y);
  const ExecutionSpace exec;
  for (const Launch& launch : launches_alone([&] { layer.repeat(exec); }))
    EXPECT_TRUE(launch.label.starts_with("carousel::layers::") ||
                launch.label.starts_with("carousel::base::"))
        << launch.label;
}

/// Where others read its input, a layer cannot work in place, and it computes the same.
inline void check_in_place(const Checked& checked, const Given& given, const Written& written) {
  if (!checked.layer.in_place) return;
  LayerSpec apart = checked.layer;
  apart.in_place = false;
  if (!fit_kernels(apart, {}).empty()) return;  // it would be converted
  expect_near(run({apart}, given, checked.wants_d_x), written, 0);
  if (!checked.wants_d_x) return;
  SingleLayer layer(apart, checked_samples, given.parameters, given.buffers);
  (void)layer.forward(given.x, given.second);
  EXPECT_LE(
      relative_difference(layer.backward(given.d_y, given.others), sum(written.d_x, given.others)),
      tolerance(checked))
      << "added to the gradient of the input, apart";
}

/// Frozen, it leaves the same gradients of its inputs.
inline void check_frozen(const Checked& checked, const Given& given, const Written& written) {
  if (!checked.wants_d_x || checked.layer.parameters.empty()) return;
  LayerSpec frozen = checked.layer;
  for (ParameterSpec& parameter : frozen.parameters) parameter.frozen = true;
  const Written found = run({frozen}, given, true);
  EXPECT_EQ(found.d_x, written.d_x) << "frozen";
  EXPECT_EQ(found.d_second, written.d_second) << "frozen";
}

/// The derivative of a random projection of the output along `direction` in one of the inputs.
[[nodiscard]] inline double derivative(SingleLayer& layer, const Given& given, Numbers Given::*of,
                                       const Numbers& direction, const LayerSpec& spec) {
  constexpr double step = 1e-6;
  const auto projected = [&](double by) {
    Given moved = given;
    for (std::size_t k = 0; k < direction.size(); ++k)
      (moved.*of)[k] += static_cast<real>(by) * direction[k];
    Numbers y;
    if (of == &Given::parameters)
      y = SingleLayer(spec, checked_samples, moved.parameters, moved.buffers)
              .forward(moved.x, moved.second);
    else
      y = layer.forward(moved.x, moved.second);
    double total = 0;
    for (std::size_t k = 0; k < y.size(); ++k) total += double{y[k]} * double{given.d_y[k]};
    return total;
  };
  return (projected(step) - projected(-step)) / (2 * step);
}

/// In double precision: gradients against central differences, along random directions.
inline void check_differences(const Checked& checked, const Given& given, const Written& written) {
  if (sizeof(real) == sizeof(float)) return;
  const LayerSpec& spec = checked.layer;
  SingleLayer layer(spec, checked_samples, given.parameters, given.buffers);
  const auto check = [&](Numbers Given::*of, const Numbers& gradient, const char* what) {
    // Each parameter by itself, so that a large one hides no small one.
    std::vector<std::int64_t> sizes;
    if (of == &Given::parameters)
      for (const ParameterSpec& parameter : spec.parameters) sizes.push_back(parameter.size());
    else
      sizes.push_back(std::ssize(gradient));
    std::int64_t begin = 0;
    for (const std::int64_t size : sizes) {
      for (int k = 0; k < 3; ++k) {
        Numbers direction(gradient.size());
        const Numbers random = random_numbers(static_cast<std::size_t>(size), "direction", k);
        std::copy(random.begin(), random.end(), direction.begin() + begin);
        double expected = 0;
        double scale = 0;
        for (std::size_t i = 0; i < gradient.size(); ++i) {
          expected += double{gradient[i]} * double{direction[i]};
          scale += std::abs(double{gradient[i]} * double{direction[i]});
        }
        EXPECT_NEAR(derivative(layer, given, of, direction, spec), expected, 1e-7 * scale + 1e-9)
            << "gradient of the " << what;
      }
      begin += size;
    }
  };
  if (checked.wants_d_x) check(&Given::x, written.d_x, "input");
  if (spec.inputs.size() > 1) check(&Given::second, written.d_second, "second input");
  if (!spec.parameters.empty()) check(&Given::parameters, written.d_parameters, "parameters");
}

}  // namespace detail

/// All that holds of every layer, of one with its kernels.
inline void check_layer(const Checked& checked) {
  const Given given = detail::given(checked);
  const Written written = detail::run({checked.layer}, given, checked.wants_d_x);
  const Written expected = detail::run(checked.plain, given, checked.wants_d_x);
  detail::expect_near(written, expected, detail::tolerance(checked),
                      detail::parameter_tolerance(checked));
  detail::check_gradients(checked, given, expected);
  detail::check_again(checked, given);
  detail::check_samples(checked, given, written);
  detail::check_launches(checked, given);
  detail::check_in_place(checked, given, written);
  detail::check_frozen(checked, given, written);
  if (has_full_numbers(checked.layer)) detail::check_differences(checked, given, written);
}

/// Whether there are kernels for an example in a layout, whose first input may lie in plain order
/// where others do not; checks them if so.
inline bool check_example(const Example& example, const Layout& layout, bool reads_plain) {
  const LayerSpec plain = plain_layer(example);
  LayerSpec layer = plain;
  const KernelChoice choice = layout.choice();
  for (LayerInput& input : layer.inputs) {
    // Images are as they are read.
    if (!example.reads_images) input.format = stored_format(input.shape, choice);
  }
  if (reads_plain) {
    if (layer.inputs[0].format == TensorFormat{}) return false;  // as otherwise
    layer.inputs[0].format = {};
  }
  choose_kernels(layer, choice);
  check_layer({.layer = layer,
               .plain = {plain},
               .wants_d_x = !example.reads_images,
               .tokens = example.tokens});
  return true;
}

}  // namespace carousel::test
