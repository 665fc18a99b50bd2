// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/partition.hpp"

#include <algorithm>
#include <limits>

#include "core/base/check.hpp"

namespace carousel {
namespace {

/// Indices of the layers a stage may begin with. A layer in place stays with the one that made the
/// tensor it overwrites (the loss with its logits), or with the images (flatten) and then in the
/// first piece, which must have an output of its own.
std::vector<int> possible_firsts(const Model& model) {
  const int layers = static_cast<int>(model.layers.size());
  const std::vector<int> tensors = tensors_of_layers(model);
  std::vector<bool> inside(layers);  // of a tensor and the layers that overwrite it
  bool has_output = false;
  for (int l = 0; l < layers; ++l) {
    for (int between = tensors[l] + 1; between <= l; ++between) inside[between] = true;
    inside[l] = inside[l] || !has_output;
    has_output = has_output || !model.layers[l].in_place;
  }
  std::vector<int> firsts = {0};
  for (int l = 1; l < layers; ++l) {
    if (!inside[l]) firsts.push_back(l);
  }
  return firsts;
}

/// Best way to cover the first pieces with some stages, and where the last of these begins.
struct Best {
  double cost = std::numeric_limits<double>::infinity();
  int previous = -1;
};

/// best[s][p]: the first p pieces in s stages, for a cost that combine(cost before, load of the
/// last stage) builds up. The earliest of equal cuts is kept.
template <class Combine>
std::vector<std::vector<Best>> best_cuts(const std::vector<double>& prefix, int stages,
                                         Combine combine) {
  const int pieces = static_cast<int>(prefix.size()) - 1;
  std::vector<std::vector<Best>> best(stages + 1, std::vector<Best>(pieces + 1));
  best[0][0].cost = 0;
  for (int s = 1; s <= stages; ++s) {
    for (int p = s; p <= pieces; ++p) {
      for (int q = s - 1; q < p; ++q) {
        const double cost = combine(best[s - 1][q].cost, prefix[p] - prefix[q]);
        if (cost < best[s][p].cost) best[s][p] = {cost, q};
      }
    }
  }
  return best;
}

}  // namespace

double layer_load(const Model& model, int layer, Balance balance) {
  const LayerSpec& spec = model.layers[layer];
  switch (balance) {
    case Balance::flops:
      return (model.recomputes_stages ? 2 : 1) * spec.forward_flops + spec.backward_flops;
    case Balance::activations:
      // What layers in place leave is counted with the one that made it.
      return tensors_kept(model)[layer]
                 ? static_cast<double>(tensor_bytes(spec.output, spec.output_format, 1))
                 : 0;
    case Balance::parameters:
      return static_cast<double>(spec.parameter_size());
    case Balance::layers:
      return spec.parameters.empty() ? 0 : 1;
    case Balance::time:
      break;
  }
  fail(ExitCode::internal, "a layer has no load of this kind");
}

int most_stages(const Model& model) {
  return static_cast<int>(possible_firsts(model).size());
}

Partition partition_model(const Model& model, int stages, Balance balance) {
  std::vector<double> loads;
  for (int l = 0; l < std::ssize(model.layers); ++l) loads.push_back(layer_load(model, l, balance));
  return partition_model(model, stages, loads);
}

Partition partition_model(const Model& model, int stages, std::span<const double> loads) {
  const std::vector<int> firsts = possible_firsts(model);
  const int pieces = static_cast<int>(firsts.size());
  if (stages > pieces)
    fail(ExitCode::usage,
         "parallel.stages = {}, but model {} can be cut into at most {}; use fewer", stages,
         model.name, pieces);

  std::vector<double> prefix(pieces + 1, 0);
  for (int p = 0; p < pieces; ++p) {
    const int end = p + 1 < pieces ? firsts[p + 1] : static_cast<int>(model.layers.size());
    prefix[p + 1] = prefix[p];
    for (int l = firsts[p]; l < end; ++l) prefix[p + 1] += loads[l];
  }

  // Two searches: the lightest cut of a prefix need not be part of the most even cut of the whole
  // where a later stage is heavier than all of the prefix.
  const auto heaviest = [](double before, double load) { return std::max(before, load); };
  const double largest = best_cuts(prefix, stages, heaviest)[stages][pieces].cost;
  const auto best = best_cuts(prefix, stages, [&](double before, double load) {
    return load <= largest ? before + load * load : std::numeric_limits<double>::infinity();
  });

  Partition result;
  result.first.assign(stages + 1, static_cast<int>(model.layers.size()));
  result.load.assign(stages, 0);
  for (int s = stages, p = pieces; s > 0; --s) {
    const int q = best[s][p].previous;
    result.first[s - 1] = firsts[q];
    result.load[s - 1] = prefix[p] - prefix[q];
    p = q;
  }
  return result;
}

std::string to_string(const Partition& partition, const Model& model) {
  std::string text = fmt::format("{:>5}  {:<38} {:>10} {:>12} {:>7}\n", "stage", "first layer",
                                 "parameters", "FLOP/sample", "load");
  double total = 0;
  for (double load : partition.load) total += load;
  for (int j = 0; j < partition.stages(); ++j) {
    std::int64_t parameters = 0;
    double flops = 0;
    for (int l = partition.first[j]; l < partition.first[j + 1]; ++l) {
      parameters += model.layers[l].parameter_size();
      flops += model.layers[l].forward_flops + model.layers[l].backward_flops;
    }
    text += fmt::format("{:>5}  {:<38} {:>10} {:>12.0f} {:>6.1f}%\n", j,
                        model.layers[partition.first[j]].label(38), parameters, flops,
                        total > 0 ? 100 * partition.load[j] / total : 0);
  }
  return text;
}

}  // namespace carousel
