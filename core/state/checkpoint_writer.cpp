// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/state/checkpoint_writer.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/base/align.hpp"
#include "core/base/check.hpp"
#include "core/base/digest.hpp"
#include "core/base/hdf5_medium.hpp"
#include "core/record/run_folder.hpp"
#include "core/state/checkpoint_link.hpp"

namespace carousel {
namespace {

namespace fs = std::filesystem;

/// What HDF5 says about a checkpoint, to lie behind all numbers.
void describe(const std::string& path, hdf5::MetadataMedium& metadata,
              const CheckpointLayout& layout, std::span<const std::uint64_t> digests,
              const RunInfo& info, const CheckpointPlace& place,
              const std::optional<InputRecord>& inputs) {
  hdf5::make_on(path, metadata, [&](hdf5::File& file) {
    write_info(file, checkpoint_format, info);
    file.set("/", "step", place.step);
    file.set("/", "epoch", place.epoch);
    file.set("/", "position", place.position);
    file.set("/", "micro_batches", std::int64_t{place.micro_batches});
    file.set("/", "micro_batch_size", std::int64_t{place.micro_batch_size});
    file.set("/", "data", place.data);
    if (inputs) write_inputs(file, *inputs, checkpoint_inputs);
    for (std::size_t k = 0; k < digests.size(); ++k) {
      const auto& [name, shape, offset] = layout.tensors()[k];
      metadata.place_values(offset);
      const std::int64_t placed = file.reserve<real>(name, {shape.begin(), shape.end()});
      CAROUSEL_CHECK(placed == offset, "HDF5 puts {} at {}, not {}", name, placed, offset);
      file.set(name, "digest", digests[k]);
    }
  });
}

}  // namespace

CheckpointLayout::CheckpointLayout(const Model& model, bool previous, bool predicted,
                                   std::span<const std::string> states) {
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& tensor : layer.parameters) {
      add("/parameters/" + tensor.name, tensor.shape);
      if (tensor.frozen) continue;
      if (previous) add("/previous/" + tensor.name, tensor.shape);
      if (predicted) add("/predicted/" + tensor.name, tensor.shape);
      for (const std::string& state : states)
        add(optimizer_group(state) + tensor.name, tensor.shape);
    }
    for (const ParameterSpec& tensor : layer.buffers) add("/buffers/" + tensor.name, tensor.shape);
  }
}

void CheckpointLayout::add(const std::string& name, const std::vector<std::int64_t>& shape) {
  const bool added = index_.emplace(name, tensors_.size()).second;
  CAROUSEL_CHECK(added, "two tensors are {}", name);
  tensors_.push_back({name, shape, end_});
  end_ += align_up(tensors_.back().size() * std::int64_t{sizeof(real)}, page);
}

std::size_t CheckpointLayout::index(const std::string& name) const {
  const auto found = index_.find(name);
  CAROUSEL_CHECK(found != index_.end(), "no tensor is {}", name);
  return found->second;
}

std::int64_t CheckpointLayout::file_bytes(const RunInfo& info, const CheckpointPlace& place,
                                          const std::optional<InputRecord>& inputs) const {
  hdf5::MetadataMedium metadata(end_, end_);
  const std::vector<std::uint64_t> digests(tensors_.size());
  describe("checkpoint", metadata, *this, digests, info, place, inputs);
  return end_ + std::ssize(metadata.bytes);
}

CheckpointWriter::CheckpointWriter(std::string path, CheckpointLayout layout)
    : path_(std::move(path)),
      partial_(path_ + ".partial"),
      layout_(std::move(layout)),
      digests_(layout_.tensors().size()) {}

CheckpointWriter::~CheckpointWriter() {
  std::error_code unknown;
  if (begun_) fs::remove(partial_, unknown);
}

void CheckpointWriter::begin() {
  writing(path_, [&] {
    Descriptor::create(partial_).close();
    begun_ = true;
  });
}

void CheckpointWriter::put(const std::string& name, std::int64_t first,
                           std::span<const real> values) {
  const std::size_t k = layout_.index(name);
  const CheckpointTensor& tensor = layout_.tensors()[k];
  CAROUSEL_CHECK(first >= 0 && first + std::ssize(values) <= tensor.size(),
                 "{} numbers from {} on of {}", values.size(), first, name);
  writing(path_, [&] {
    if (!opened_) file_ = Descriptor::update(partial_);
    opened_ = true;
    file_.write_at(tensor.offset + first * std::int64_t{sizeof(real)}, std::as_bytes(values));
  });
  digests_[k] += digest(values, static_cast<std::uint64_t>(first));
}

void CheckpointWriter::sync() {
  if (!opened_) return;
  writing(path_, [&] {
    file_.sync();
    opened_ = false;
    file_.close();
  });
}

void CheckpointWriter::finish(const RunInfo& info, const CheckpointPlace& place,
                              const std::optional<InputRecord>& inputs) {
  CAROUSEL_CHECK(begun_ && !opened_, "{} was not begun, or not all of it was written", path_);
  hdf5::MetadataMedium metadata(layout_.end(), layout_.end());
  describe(path_, metadata, layout_, digests_, info, place, inputs);
  writing(path_, [&] {
    Descriptor file = Descriptor::update(partial_);
    file.write_at(layout_.end(), metadata.bytes);
    file.write_at(0, metadata.superblock);
    file.sync();
    file.close();
    rename_file(partial_, path_);
  });
  begun_ = false;
  sync_folder_of(path_);
}

void make_newest(const fs::path& run_folder, std::int64_t step, int keep) {
  const fs::path folder = run_folder / "checkpoints";
  const std::string name = checkpoint_file_name(step);
  replace_link(folder / last_checkpoint, name);
  if (keep == 0) return;
  const std::vector<fs::path> files = checkpoints_of(run_folder);
  const std::string best = target_of(folder / best_checkpoint);
  // Later ones are somebody else's.
  const auto newest = std::ranges::find(files, folder / name);
  for (auto old = newest; old != files.end(); ++old) {
    std::error_code ignored;  // one file too many harms nobody
    if (old - newest >= keep && old->filename() != best) fs::remove(*old, ignored);
  }
}

void make_best(const fs::path& run_folder, std::int64_t step) {
  replace_link(run_folder / "checkpoints" / best_checkpoint, checkpoint_file_name(step));
}

void forget_later(const fs::path& run_folder, std::int64_t step) {
  const fs::path folder = run_folder / "checkpoints";
  const std::string name = checkpoint_file_name(step);
  replace_link(folder / last_checkpoint, name);
  const std::vector<fs::path> files = checkpoints_of(run_folder);
  const std::string best = target_of(folder / best_checkpoint);
  // The newest come first.
  for (auto file = files.begin(); file != files.end() && file->filename() != name; ++file) {
    std::error_code ignored;  // the run will write over it
    fs::remove(*file, ignored);
    if (file->filename() == best) fs::remove(folder / best_checkpoint, ignored);
  }
}

}  // namespace carousel
