// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/state/checkpoint.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>

#include "core/base/check.hpp"
#include "core/base/descriptor.hpp"
#include "core/record/run_folder.hpp"

namespace carousel {
namespace {

namespace fs = std::filesystem;

constexpr const char* format = "carousel checkpoint";
// What HDF5 keeps about a file and about each of its tensors, generously.
constexpr std::int64_t file_overhead = 1 << 20;
constexpr std::int64_t tensor_overhead = 4096;

/// Makes `link` lead to `target` in the same folder; readers find the former target or the new one.
void replace_link(const fs::path& link, const std::string& target) {
  const fs::path partial = link.string() + ".partial";
  std::error_code error;
  fs::remove(partial, error);
  fs::create_symlink(target, partial, error);
  if (!error) fs::rename(partial, link, error);
  if (error)
    fail(ExitCode::input_output, "{}: cannot make it a link to {}: {}", link.string(), target,
         error.message());
  Descriptor::open_folder(link.parent_path().string()).sync();
}

}  // namespace

std::int64_t CheckpointSize::file_bytes() const {
  return bytes + file_overhead + tensors * tensor_overhead;
}

CheckpointSize checkpoint_size(const Model& model, int copies) {
  CheckpointSize size;
  const auto add = [&size](const std::vector<ParameterSpec>& tensors, int times) {
    for (const ParameterSpec& tensor : tensors) {
      size.tensors += times;
      size.bytes += times * tensor.size() * std::int64_t{sizeof(real)};
    }
  };
  for (const LayerSpec& layer : model.layers) {
    add(layer.parameters, copies);
    add(layer.buffers, 1);
  }
  return size;
}

std::int64_t CheckpointWriter::host_bytes(const CheckpointSize& size, std::int64_t part) {
  return library_bytes + size.file_bytes() + std::max(size.file_bytes(), 3 * part);
}

CheckpointWriter::CheckpointWriter(const RunInfo& info, const CheckpointPlace& place,
                                   const CheckpointSize& size)
    : place_(place),
      file_(hdf5::File::create_in_memory(checkpoint_file_name(place.step),
                                         static_cast<std::size_t>(size.file_bytes()))) {
  write_info(file_, format, info);
  file_.set("/", "step", place.step);
  file_.set("/", "epoch", place.epoch);
  file_.set("/", "micro_batches", std::int64_t{place.micro_batches});
  file_.set("/", "micro_batch_size", std::int64_t{place.micro_batch_size});
}

void CheckpointWriter::add(const NamedTensor& tensor) {
  file_.write<real>(tensor.name, tensor.values, {tensor.shape.begin(), tensor.shape.end()},
                    hdf5::Layout::checked);
}

void CheckpointWriter::write(const std::string& path) const {
  replace_file(path, file_.image(), Durability::machine);
}

void CheckpointWriter::save(const fs::path& run_folder, int keep) const {
  const fs::path folder = run_folder / "checkpoints";
  const std::string name = checkpoint_file_name(place_.step);
  write((folder / name).string());
  replace_link(folder / "last.h5", name);
  if (keep == 0) return;
  const std::vector<fs::path> files = checkpoints_of(run_folder);
  // Later ones are somebody else's.
  const auto newest = std::ranges::find(files, folder / name);
  for (auto old = newest; old != files.end(); ++old) {
    std::error_code ignored;  // one file too many harms nobody
    if (old - newest >= keep) fs::remove(*old, ignored);
  }
}

Checkpoint::Checkpoint(const std::string& path) : path_(path) {
  // Through own reads, so that the system's reason is told, and HDF5 never maps a changing file.
  const std::vector<std::byte> image = read_file(path);
  const hdf5::File file = hdf5::File::open_image(path, image);
  info_ = read_info(file, format);
  place_ = {.step = file.integer("/", "step"),
            .epoch = file.integer("/", "epoch"),
            .micro_batches = static_cast<int>(file.integer("/", "micro_batches")),
            .micro_batch_size = static_cast<int>(file.integer("/", "micro_batch_size"))};
  read_group(file, "");
}

void Checkpoint::read_group(const hdf5::File& file, const std::string& group) {
  for (const std::string& child : file.children(group.empty() ? "/" : group)) {
    const std::string name = fmt::format("{}/{}", group, child);
    if (name == "/info") continue;
    if (file.is_group(name)) {
      read_group(file, name);
      continue;
    }
    const hdf5::DatasetInfo found = file.info(name);
    if (sizeof(real) == 4 && found.type == "float64")
      fail(ExitCode::bad_data,
           "{}: {} is in double precision, which this program would round; use a build with "
           "Carousel_ENABLE_DOUBLE",
           path_, name);
    tensors_.push_back({name, {found.shape.begin(), found.shape.end()}, file.read<real>(name)});
  }
}

std::vector<NamedTensor> Checkpoint::tensors() const {
  std::vector<NamedTensor> list;
  for (const Stored& tensor : tensors_) list.push_back({tensor.name, tensor.shape, tensor.values});
  return list;
}

std::span<const real> Checkpoint::values(const std::string& name,
                                         std::span<const std::int64_t> shape) const {
  for (const Stored& tensor : tensors_) {
    if (tensor.name != name) continue;
    if (!std::equal(shape.begin(), shape.end(), tensor.shape.begin(), tensor.shape.end()))
      fail(ExitCode::bad_data, "{}: {} has shape [{}], the model needs [{}]", path_, name,
           fmt::join(tensor.shape, ", "), fmt::join(shape, ", "));
    return tensor.values;
  }
  fail(ExitCode::bad_data, "{}: {} is missing; is it a checkpoint of this model?", path_, name);
}

std::vector<fs::path> checkpoints_of(const fs::path& run_folder) {
  const fs::path folder = run_folder / "checkpoints";
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    std::error_code unknown;  // a link to nowhere is no folder
    if (is_checkpoint_file_name(name) && !entry.is_directory(unknown))
      files.push_back(entry.path());
  }
  if (error) fail(ExitCode::input_output, "{}: cannot list: {}", folder.string(), error.message());
  // Longer names are later steps: numbers of more than eight digits have no leading zeros.
  const auto later = [](const fs::path& a, const fs::path& b) {
    const std::string& x = a.native();
    const std::string& y = b.native();
    return x.size() != y.size() ? x.size() > y.size() : x > y;
  };
  std::sort(files.begin(), files.end(), later);
  return files;
}

}  // namespace carousel
