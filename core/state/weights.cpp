// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/state/weights.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/check.hpp"
#include "core/base/descriptor.hpp"

namespace carousel {
namespace {

using Datasets = std::map<std::string, std::string>;  // PyTorch's name, path in the file

/// No model has more; a file whose groups contain themselves has no end.
constexpr int most_groups = 16;  // in one another
constexpr std::size_t most_tensors = 100'000;

/// The parts of a name are modules, which a file may keep as groups.
void find_datasets(const hdf5::File& file, const std::string& group, const std::string& prefix,
                   Datasets& found) {
  if (std::ranges::count(group, '/') > most_groups || found.size() > most_tensors)
    fail(ExitCode::bad_data, "{}: {} has groups nested too deeply; does one contain itself?",
         file.path(), group.substr(0, 60));
  for (const std::string& child : file.children(group.empty() ? "/" : group)) {
    const std::string path = fmt::format("{}/{}", group, child);
    const std::string name = prefix + child;
    if (file.is_group(path)) {
      find_datasets(file, path, name + ".", found);
    } else if (child != "num_batches_tracked" && !name.ends_with(".num_batches_tracked")) {
      if (const auto [other, is_new] = found.emplace(name, path); !is_new)
        fail(ExitCode::bad_data, "{}: {} and {} are the same tensor", file.path(), other->second,
             path);
    }
  }
}

std::vector<ParameterSpec> tensors_of(const Model& model) {
  std::vector<ParameterSpec> tensors;
  for (const LayerSpec& layer : model.layers) {
    for (const auto* list : {&layer.parameters, &layer.buffers})
      tensors.insert(tensors.end(), list->begin(), list->end());
  }
  return tensors;
}

/// Names first: if one is missing, an unknown name is often a misspelling of it.
void check_names(const std::string& path, const Model& model, const Datasets& datasets,
                 const std::set<std::string>& left_out) {
  std::set<std::string> unknown;
  for (const auto& [name, place] : datasets) unknown.insert(name);
  for (const ParameterSpec& tensor : tensors_of(model)) unknown.erase(tensor.name);
  for (const ParameterSpec& tensor : tensors_of(model)) {
    if (datasets.contains(tensor.name) || left_out.contains(tensor.name)) continue;
    fail(ExitCode::bad_data, "{}: {} [{}] of {} is missing{}", path, tensor.name,
         fmt::join(tensor.shape, ", "), model.name,
         unknown.empty() ? ""
                         : fmt::format("; the file has {}, which is unknown", *unknown.begin()));
  }
  if (!unknown.empty())
    fail(ExitCode::bad_data, "{}: {} is not a tensor of {}; is it another model?", path,
         *unknown.begin(), model.name);
}

std::vector<real> read_tensor(const hdf5::File& file, const std::string& dataset,
                              const ParameterSpec& tensor, bool of_head) {
  const hdf5::DatasetInfo found = file.info(dataset);
  if (!std::equal(found.shape.begin(), found.shape.end(), tensor.shape.begin(), tensor.shape.end()))
    fail(ExitCode::bad_data, "{}: {} has shape [{}], the model needs [{}]{}", file.path(),
         tensor.name, fmt::join(found.shape, ", "), fmt::join(tensor.shape, ", "),
         of_head ? "; train.new_head=true leaves the last layer out, which then begins anew" : "");
  if (found.type != "float32" && found.type != "float64")
    fail(ExitCode::bad_data, "{}: {} holds {}; write it as float32 or float64", file.path(),
         tensor.name, found.type);
  file.require_written(dataset);
  std::vector<real> values = file.read<real>(dataset);
  const auto is_finite = [](real value) { return std::isfinite(value); };
  const auto bad = std::ranges::find_if_not(values, is_finite);
  if (bad != values.end())
    fail(ExitCode::bad_data, "{}: number {} of {} is not finite in this build's precision",
         file.path(), bad - values.begin(), tensor.name);
  if (tensor.name.ends_with("running_var")) {
    const auto negative = std::ranges::find_if(values, [](real value) { return value < 0; });
    if (negative != values.end())
      fail(ExitCode::bad_data, "{}: number {} of {} is negative, but a variance cannot be",
           file.path(), negative - values.begin(), tensor.name);
  }
  return values;
}

}  // namespace

std::set<std::string> head_of(const Model& model) {
  const auto learns = [](const LayerSpec& layer) { return !layer.parameters.empty(); };
  const auto head = std::find_if(model.layers.rbegin(), model.layers.rend(), learns);
  std::set<std::string> names;
  for (const ParameterSpec& tensor : head->parameters) names.insert(tensor.name);
  return names;
}

Weights read_weights(const std::string& path, const Model& model,
                     const std::set<std::string>& left_out) {
  // Through own reads, so that the system's reason is told.
  const std::vector<std::byte> image = read_file(path);
  const hdf5::File file = hdf5::File::open_image(path, image);
  Datasets datasets;
  find_datasets(file, "", "", datasets);
  check_names(path, model, datasets, left_out);
  Weights weights{.tensors = {}, .inputs = {}};
  if (file.has("/", "format")) weights.inputs = read_inputs(file, "/");
  const std::set<std::string> head = head_of(model);
  for (ParameterSpec& tensor : tensors_of(model)) {
    if (left_out.contains(tensor.name)) continue;
    std::vector<real> values =
        read_tensor(file, datasets.at(tensor.name), tensor, head.contains(tensor.name));
    weights.tensors.push_back({std::move(tensor), std::move(values)});
  }
  return weights;
}

void write_weights(const std::string& path, const Checkpoint& checkpoint) {
  hdf5::File file = hdf5::File::create_in_memory(path);
  write_info(file, {"carousel weights"}, checkpoint.info(), "/");
  file.set("/", "step", checkpoint.place().step);
  if (checkpoint.inputs()) write_inputs(file, *checkpoint.inputs(), "/");
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    for (const std::string_view group : {"/parameters/", "/buffers/"}) {
      if (!tensor.name.starts_with(group)) continue;
      const std::vector<real> values = checkpoint.values(tensor.name, tensor.shape);
      file.write<real>(tensor.name.substr(group.size()), values,
                       {tensor.shape.begin(), tensor.shape.end()});
    }
  }
  replace_file(path, file.image(), Durability::machine);
}

}  // namespace carousel
