// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Networks that decks list, as model descriptions, and the list of any description.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/check.hpp"
#include "core/model/builder.hpp"
#include "core/model/layer_list.hpp"
#include "core/model/op.hpp"

namespace carousel {
namespace {

LayerList list_of(const ModelConfig& config) {
  return {config.let, config.layers, config.blocks, config.layers_file};
}

bool is_bias(const ParameterSpec& parameter) {
  return parameter.name.ends_with("bias");
}

/// Glorot & Bengio 2010 and He et al. 2015, of weights [out, in, ...].
Initial scaled(const LineInitial& start, const ParameterSpec& weights) {
  const std::int64_t in = weights.size() / weights.shape[0];
  const std::int64_t out = weights.size() / weights.shape[1];
  const bool uniform = start.initial.kind == Initial::Kind::uniform;
  if (start.scale != LineInitial::Scale::xavier) {
    const std::int64_t fan = start.scale == LineInitial::Scale::kaiming ? in : out;
    return uniform ? kaiming_uniform(fan) : kaiming_normal(fan);
  }
  if (uniform) return xavier_uniform(in, out);
  return normal(std::sqrt(2.0 / static_cast<double>(in + out)));
}

void start_parameters(LayerSpec& layer, const LineInitial& start) {
  bool found = false;
  for (ParameterSpec& parameter : layer.parameters) {
    if (is_bias(parameter) != start.bias) continue;
    found = true;
    if (start.scale != LineInitial::Scale::given && parameter.shape.size() < 2)
      fail(ExitCode::usage, "kaiming and xavier are for weights of products");
    parameter.initial =
        start.scale == LineInitial::Scale::given ? start.initial : scaled(start, parameter);
  }
  if (!found)
    fail(ExitCode::usage, "it has no {}", start.bias ? "bias for init_bias" : "weights for init");
}

/// Decks start parameters so, where the kind would start them otherwise.
std::string text_of(const Initial& initial) {
  switch (initial.kind) {
    case Initial::Kind::constant:
      if (initial == zeros()) return "zeros";
      if (initial == ones()) return "ones";
      return fmt::format("constant({})", initial.scale);
    case Initial::Kind::uniform:
      return fmt::format("uniform({})", initial.scale);
    case Initial::Kind::normal:
      return fmt::format("normal({})", initial.scale);
  }
  return "";
}

DeckValue value_of(double number) {
  if (number == std::floor(number) && std::abs(number) < 1e15)
    return {static_cast<std::int64_t>(number)};
  return {number};
}

/// One layer; `tensor` names what a layer has left.
template <class Tensor>
DeckValue line_of(const Model& model, const LayerSpec& layer, bool learns, const Tensor& tensor) {
  DeckValue::Table table;
  const std::string word = layer.kind->word();
  if (layer.kind->joins) {
    table.push_back({word, {tensor(layer.inputs[1].layer)}});
  } else {
    bool named = false;  // the word
    DeckValue::Table others;
    for (const Argument& argument : layer.arguments) {
      const bool main = !named && argument.name == layer.kind->main();
      named = named || main;
      (main ? table : others).push_back({main ? word : argument.name, value_of(argument.value)});
    }
    if (!named) table.push_back({word, {true}});
    table.insert(table.end(), others.begin(), others.end());
  }
  if (!layer.name.empty()) table.push_back({"name", {layer.name}});
  const LayerSpec standard = inferred(model, layer, learns);
  for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
    const ParameterSpec& parameter = layer.parameters[p];
    if (parameter.initial != standard.parameters[p].initial)
      table.push_back({is_bias(parameter) ? "init_bias" : "init", {text_of(parameter.initial)}});
  }
  return {std::move(table)};
}

}  // namespace

void check_listed(const ModelConfig& config) {
  static_cast<void>(expand(list_of(config)));
}

Model build_listed(const ModelConfig& config, const SampleShape& input, const TargetSpec& target,
                   const TaskConfig& task) {
  ModelBuilder builder("layers", input, target);
  std::map<std::string, int> names;  // of parameters, and the lines that have them
  for (const LayerLine& line : expand(list_of(config))) {
    const auto wrong = [&](const std::string& what) {
      fail(ExitCode::usage, "{}: {}: {}{}", place_of(line.place, config.layers_file), line.name,
           what, line.joins.empty() ? "" : fmt::format(" ({})", line.joins));
    };
    try {
      LayerSpec& layer = builder.append(*line.kind, line.name, line.inputs, line.arguments);
      for (const LineInitial& start : line.starts) start_parameters(layer, start);
      for (const ParameterSpec& parameter : layer.parameters) {
        const auto [before, is_new] = names.emplace(parameter.name, line.place.line);
        if (!is_new)
          wrong(fmt::format("parameter {} is that of line {}, too; give one of them another name",
                            parameter.name, before->second));
      }
    } catch (const Error& error) {
      if (error.code() != ExitCode::usage ||
          std::string_view(error.what()).starts_with(config.layers_file + ":"))
        throw;
      wrong(error.what());
    }
  }
  const SampleShape& left = builder.shape();
  const bool fits =
      left == target.outputs() || (left.size() == target.outputs().size() &&
                                   (target.pixels() == 1 || left.size() == left.channels));
  if (!fits)
    fail(ExitCode::usage,
         "model.layers: the network leaves {} numbers ({}), and the data set has {}", left.size(),
         to_string(left), to_string(target));
  builder.add_loss(task);
  return builder.model();
}

DeckValue as_list(const Model& model) {
  const auto count = static_cast<int>(model.layers.size()) - 1;  // without the loss
  const auto tensor = [](int layer) {
    return layer < 0 ? std::string("images") : fmt::format("t{}", layer);
  };
  // What somebody reads who does not follow at once has a name.
  std::vector<bool> named(static_cast<std::size_t>(count), false);
  bool names_images = false;
  const auto read = [&](int layer) {
    if (layer < 0)
      names_images = true;
    else
      named[static_cast<std::size_t>(layer)] = true;
  };
  for (int l = 0; l < count; ++l) {
    const LayerSpec& layer = model.layers[l];
    if (layer.inputs[0].layer != l - 1) read(layer.inputs[0].layer);
    if (layer.kind->joins) read(layer.inputs[1].layer);
  }
  DeckValue::List lines;
  if (names_images) lines.push_back({DeckValue::Table{{"save", {tensor(-1)}}}});
  bool learns = false;
  for (int l = 0; l < count; ++l) {
    const LayerSpec& layer = model.layers[l];
    DeckValue line = line_of(model, layer, learns, tensor);
    auto& table = std::get<DeckValue::Table>(line.data);
    if (layer.inputs[0].layer != l - 1) table.push_back({"from", {tensor(layer.inputs[0].layer)}});
    if (named[static_cast<std::size_t>(l)]) table.push_back({"save", {tensor(l)}});
    lines.push_back(std::move(line));
    learns = learns || layer.parameter_size() > 0;
  }
  return {std::move(lines)};
}

}  // namespace carousel
