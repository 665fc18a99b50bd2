// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/state/weights.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/descriptor.hpp"
#include "core/base/text.hpp"
#include "core/state/safetensors.hpp"

namespace carousel {

std::vector<ParameterSpec> tensors_of(const Model& model) {
  std::vector<ParameterSpec> tensors;
  for (const LayerSpec& layer : model.layers) {
    for (const auto* list : {&layer.parameters, &layer.buffers})
      tensors.insert(tensors.end(), list->begin(), list->end());
  }
  return tensors;
}

namespace {

/// No model has more; a file whose groups contain themselves has no end.
constexpr int most_groups = 16;  // in one another
constexpr std::size_t most_tensors = 100'000;

/// What PyTorch counts for itself.
bool is_counter(std::string_view name) {
  return name == "num_batches_tracked" || name.ends_with(".num_batches_tracked");
}

/// A file of tensors by PyTorch's names, whatever its format.
class TensorFile {
 public:
  TensorFile() = default;
  TensorFile(const TensorFile&) = delete;
  TensorFile& operator=(const TensorFile&) = delete;
  virtual ~TensorFile() = default;

  [[nodiscard]] virtual std::set<std::string> names() const = 0;
  [[nodiscard]] virtual std::vector<std::int64_t> shape(const std::string& name) const = 0;
  /// What it holds, where these are no numbers that read() takes; else nothing.
  [[nodiscard]] virtual std::string wrong_type(const std::string& name) const = 0;
  [[nodiscard]] virtual std::vector<real> read(const std::string& name) const = 0;
  /// How inputs were made, where Carousel has written it.
  [[nodiscard]] virtual std::optional<InputRecord> inputs() const = 0;
};

class Hdf5Tensors final : public TensorFile {
 public:
  Hdf5Tensors(const std::string& path, std::span<const std::byte> image)
      : file_(hdf5::File::open_image(path, image)) {
    find("", "");
  }

  [[nodiscard]] std::set<std::string> names() const override {
    std::set<std::string> all;
    for (const auto& [name, path] : datasets_) all.insert(name);
    return all;
  }
  [[nodiscard]] std::vector<std::int64_t> shape(const std::string& name) const override {
    const hdf5::Shape shape = file_.info(datasets_.at(name)).shape;
    return {shape.begin(), shape.end()};
  }
  [[nodiscard]] std::string wrong_type(const std::string& name) const override {
    const std::string type = file_.info(datasets_.at(name)).type;
    return type == "float32" || type == "float64" ? "" : type;
  }
  [[nodiscard]] std::vector<real> read(const std::string& name) const override {
    file_.require_written(datasets_.at(name));
    return file_.read<real>(datasets_.at(name));
  }
  [[nodiscard]] std::optional<InputRecord> inputs() const override {
    if (!file_.has("/", "format")) return {};
    return read_inputs(file_, "/");
  }

 private:
  /// The parts of a name are modules, which a file may keep as groups.
  void find(const std::string& group, const std::string& prefix) {
    if (std::ranges::count(group, '/') > most_groups || datasets_.size() > most_tensors)
      fail(ExitCode::bad_data, "{}: {} has groups nested too deeply; does one contain itself?",
           file_.path(), group.substr(0, 60));
    for (const std::string& child : file_.children(group.empty() ? "/" : group)) {
      const std::string path = fmt::format("{}/{}", group, child);
      const std::string name = prefix + child;
      if (file_.is_group(path)) {
        find(path, name + ".");
      } else if (!is_counter(name)) {
        if (const auto [other, is_new] = datasets_.emplace(name, path); !is_new)
          fail(ExitCode::bad_data, "{}: {} and {} are the same tensor", file_.path(), other->second,
               path);
      }
    }
  }

  hdf5::File file_;
  std::map<std::string, std::string> datasets_;  // PyTorch's name, path in the file
};

class SafeTensorFile final : public TensorFile {
 public:
  SafeTensorFile(const std::string& path, std::span<const std::byte> image) : path_(path) {
    SafeTensors found = read_safetensors(path, image);
    metadata_ = std::move(found.metadata);
    for (SafeTensor& tensor : found.tensors) {
      if (!is_counter(tensor.name)) tensors_.emplace(tensor.name, std::move(tensor));
    }
  }

  [[nodiscard]] std::set<std::string> names() const override {
    std::set<std::string> all;
    for (const auto& [name, tensor] : tensors_) all.insert(name);
    return all;
  }
  [[nodiscard]] std::vector<std::int64_t> shape(const std::string& name) const override {
    return tensors_.at(name).shape;
  }
  [[nodiscard]] std::string wrong_type(const std::string& name) const override {
    const SafeTensor& tensor = tensors_.at(name);
    return tensor.has_reals() ? "" : tensor.type;
  }
  [[nodiscard]] std::vector<real> read(const std::string& name) const override {
    return tensors_.at(name).values();
  }
  [[nodiscard]] std::optional<InputRecord> inputs() const override {
    const auto found = metadata_.find(inputs_key);
    if (found == metadata_.end()) return {};
    return inputs_from_json(path_, found->second);
  }

  static constexpr const char* inputs_key = "carousel.inputs";

 private:
  std::string path_;
  std::map<std::string, SafeTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

std::unique_ptr<TensorFile> open_tensors(const std::string& path,
                                         std::span<const std::byte> image) {
  if (is_safetensors(image)) return std::make_unique<SafeTensorFile>(path, image);
  return std::make_unique<Hdf5Tensors>(path, image);
}

/// Names of the last layer with parameters.
std::set<std::string> head_of(const Model& model) {
  const auto learns = [](const LayerSpec& layer) { return !layer.parameters.empty(); };
  const auto head = std::find_if(model.layers.rbegin(), model.layers.rend(), learns);
  std::set<std::string> names;
  for (const ParameterSpec& tensor : head->parameters) names.insert(tensor.name);
  return names;
}

/// Names first: if one is missing, an unknown name is often a misspelling of it.
void check_names(const std::string& path, const Model& model, const std::set<std::string>& names,
                 const std::set<std::string>& left_out, bool is_part) {
  std::set<std::string> unknown = names;
  for (const ParameterSpec& tensor : tensors_of(model)) unknown.erase(tensor.name);
  for (const ParameterSpec& tensor : tensors_of(model)) {
    if (names.contains(tensor.name) || left_out.contains(tensor.name)) continue;
    fail(ExitCode::bad_data, "{}: {} [{}] of {} is missing{}", path, tensor.name,
         fmt::join(tensor.shape, ", "), model.name,
         unknown.empty() || is_part
             ? ""
             : fmt::format("; the file has {}, which is unknown", *unknown.begin()));
  }
  if (!unknown.empty() && !is_part)
    fail(ExitCode::bad_data, "{}: {} is not a tensor of {}; is it another model?", path,
         *unknown.begin(), model.name);
}

std::vector<real> read_tensor(const std::string& path, const TensorFile& file,
                              const ParameterSpec& tensor, bool of_head) {
  if (const std::vector<std::int64_t> shape = file.shape(tensor.name); shape != tensor.shape)
    fail(ExitCode::bad_data, "{}: {} has shape [{}], the model needs [{}]{}", path, tensor.name,
         fmt::join(shape, ", "), fmt::join(tensor.shape, ", "),
         of_head ? "; train.new_head=true leaves the last layer out, which then begins anew" : "");
  if (const std::string type = file.wrong_type(tensor.name); !type.empty())
    fail(ExitCode::bad_data, "{}: {} holds {}; write it as float32 or float64", path, tensor.name,
         type);
  std::vector<real> values = file.read(tensor.name);
  const auto is_finite = [](real value) { return std::isfinite(value); };
  const auto bad = std::ranges::find_if_not(values, is_finite);
  if (bad != values.end())
    fail(ExitCode::bad_data, "{}: number {} of {} is not finite in this build's precision", path,
         bad - values.begin(), tensor.name);
  if (tensor.name.ends_with("running_var")) {
    const auto negative = std::ranges::find_if(values, [](real value) { return value < 0; });
    if (negative != values.end())
      fail(ExitCode::bad_data, "{}: number {} of {} is negative, but a variance cannot be", path,
           negative - values.begin(), tensor.name);
  }
  return values;
}

/// Parameters and buffers of a checkpoint, in the order in which it lists them.
template <class Visit>
void for_each_weight(const Checkpoint& checkpoint, bool without_ema, const Visit& visit) {
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    constexpr std::string_view parameters = "/parameters/";
    constexpr std::string_view buffers = "/buffers/";
    if (tensor.name.starts_with(buffers)) visit(tensor, tensor.name.substr(buffers.size()));
    if (!tensor.name.starts_with(parameters)) continue;
    const std::string name = tensor.name.substr(parameters.size());
    CheckpointTensor used = tensor;
    used.name = checkpoint.used_parameter(name, without_ema);
    visit(used, name);
  }
}

std::vector<std::byte> hdf5_image(const std::string& path, const Checkpoint& checkpoint,
                                  bool without_ema) {
  hdf5::File file = hdf5::File::create_in_memory(path);
  write_info(file, {"carousel weights"}, checkpoint.info(), "/");
  file.set("/", "step", checkpoint.place().step);
  file.set("/", "weights", checkpoint.used_parameters(without_ema));
  if (checkpoint.inputs()) write_inputs(file, *checkpoint.inputs(), "/");
  for_each_weight(checkpoint, without_ema,
                  [&](const CheckpointTensor& tensor, const std::string& name) {
                    const std::vector<real> values = checkpoint.values(tensor.name, tensor.shape);
                    file.write<real>(name, values, {tensor.shape.begin(), tensor.shape.end()});
                  });
  const auto image = file.image();
  return {image.begin(), image.end()};
}

std::vector<std::byte> safetensors_image(const Checkpoint& checkpoint, bool without_ema) {
  std::vector<std::vector<real>> values;
  std::vector<WrittenTensor> tensors;
  for_each_weight(
      checkpoint, without_ema, [&](const CheckpointTensor& tensor, const std::string& name) {
        values.push_back(checkpoint.values(tensor.name, tensor.shape));
        tensors.push_back({name, {tensor.shape.begin(), tensor.shape.end()}, values.back()});
      });
  const RunInfo& info = checkpoint.info();
  std::map<std::string, std::string> metadata = {
      {"format", "pt"},  // which tells PyTorch's libraries that the tensors are theirs
      {"carousel.version", info.program_version},
      {"carousel.git_hash", info.git_hash},
      {"carousel.step", std::to_string(checkpoint.place().step)},
      {"carousel.weights", checkpoint.used_parameters(without_ema)},
      {"carousel.deck", info.deck}};
  if (checkpoint.inputs())
    metadata[SafeTensorFile::inputs_key] = inputs_to_json(*checkpoint.inputs());
  return write_safetensors(tensors, metadata);
}

}  // namespace

std::set<std::string> begun_anew(const Model& model, bool new_head,
                                 const std::vector<std::string>& only) {
  std::set<std::string> anew = new_head ? head_of(model) : std::set<std::string>();
  if (only.empty()) return anew;
  const std::vector<ParameterSpec> tensors = tensors_of(model);
  for (const std::string& pattern : only) {
    if (std::ranges::none_of(tensors, [&](auto& tensor) { return matches(tensor.name, pattern); }))
      fail(ExitCode::usage, "'{}' matches no tensor of {}; the first one is {}", pattern,
           model.name, tensors.front().name);
  }
  for (const ParameterSpec& tensor : tensors) {
    const auto is_of = [&](const std::string& pattern) { return matches(tensor.name, pattern); };
    if (std::ranges::none_of(only, is_of)) anew.insert(tensor.name);
  }
  return anew;
}

bool has_head(const std::set<std::string>& names, const Model& model) {
  return std::ranges::includes(names, head_of(model));
}

Weights read_weights(const std::string& path, const Model& model,
                     const std::set<std::string>& left_out, bool is_part) {
  // Through own reads, so that the system's reason is told.
  const std::vector<std::byte> image = read_file(path);
  const std::unique_ptr<TensorFile> file = open_tensors(path, image);
  check_names(path, model, file->names(), left_out, is_part);
  Weights weights{.tensors = {}, .inputs = file->inputs()};
  const std::set<std::string> head = head_of(model);
  for (ParameterSpec& tensor : tensors_of(model)) {
    if (left_out.contains(tensor.name)) continue;
    std::vector<real> values = read_tensor(path, *file, tensor, head.contains(tensor.name));
    weights.tensors.push_back({std::move(tensor), std::move(values)});
  }
  return weights;
}

bool names_safetensors(const std::string& path) {
  return path.ends_with(".safetensors");
}

void write_weights(const std::string& path, const Checkpoint& checkpoint, bool without_ema) {
  replace_file(path,
               names_safetensors(path) ? safetensors_image(checkpoint, without_ema)
                                       : hdf5_image(path, checkpoint, without_ema),
               Durability::machine);
}

}  // namespace carousel
