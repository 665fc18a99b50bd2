// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/state/checkpoint.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <system_error>

#include "core/base/check.hpp"
#include "core/base/digest.hpp"
#include "core/base/hdf5_medium.hpp"
#include "core/record/run_folder.hpp"
#include "core/state/checkpoint_link.hpp"

namespace carousel {

namespace fs = std::filesystem;

std::int64_t CheckpointTensor::size() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

Checkpoint::Checkpoint(const std::string& path) : path_(path), file_(Descriptor::open(path)) {
  // Through own reads, so that the system's reason is told, and HDF5 never maps a changing file.
  const auto look = [this] {
    hdf5::ReadingMedium medium(file_);
    const hdf5::File file = hdf5::File::open_on(path_, medium);
    std::string target = target_of(file);
    if (target.empty()) read(file);
    medium.check();
    return target;
  };
  const std::string target = look();
  if (target.empty()) return;
  file_ = Descriptor::open((fs::path(path).parent_path() / target).string());
  if (!look().empty()) fail(ExitCode::bad_data, "{}: leads to {}, which is a link", path, target);
}

void Checkpoint::read(const hdf5::File& file) {
  info_ = read_info(file, checkpoint_format);
  place_ = {.step = file.integer("/", "step"),
            .epoch = file.integer("/", "epoch"),
            .position = file.integer("/", "position"),
            .micro_batches = static_cast<int>(file.integer("/", "micro_batches")),
            .micro_batch_size = static_cast<int>(file.integer("/", "micro_batch_size")),
            .data = file.unsigned_integer("/", "data")};
  inputs_ = read_inputs(file, checkpoint_inputs);
  read_group(file, "");
}

void Checkpoint::read_group(const hdf5::File& file, const std::string& group) {
  for (const std::string& child : file.children(group.empty() ? "/" : group)) {
    const std::string name = fmt::format("{}/{}", group, child);
    if (name == "/info" || name == checkpoint_inputs) continue;
    if (file.is_group(name)) {
      read_group(file, name);
      continue;
    }
    const hdf5::DatasetInfo found = file.info(name);
    CheckpointTensor tensor = {name, {found.shape.begin(), found.shape.end()}, found.offset};
    const bool doubles = found.type == "float64";
    const std::int64_t bytes = tensor.size() * (doubles ? 8 : 4);
    if ((!doubles && found.type != "float32") || found.offset < 0 ||
        found.offset + bytes > file_.size())
      fail(ExitCode::bad_data, "{}: {} is no tensor that was written whole", path_, name);
    tensors_.push_back(std::move(tensor));
    stored_.push_back({doubles, file.unsigned_integer(name, "digest")});
  }
}

template <class T>
void Checkpoint::read_pieces(std::size_t tensor,
                             const std::function<void(std::span<const T>)>& take) const {
  constexpr std::int64_t most = (std::int64_t{1} << 20) / std::int64_t{sizeof(T)};
  const auto& [name, shape, offset] = tensors_[tensor];
  const std::int64_t size = tensors_[tensor].size();
  std::vector<T> piece(static_cast<std::size_t>(std::min(size, most)));
  std::uint64_t sum = 0;
  for (std::int64_t first = 0; first < size; first += most) {
    const auto part =
        std::span(piece).first(static_cast<std::size_t>(std::min(most, size - first)));
    file_.read_at(offset + first * std::int64_t{sizeof(T)}, std::as_writable_bytes(part));
    sum += carousel::digest(std::span<const T>(part), static_cast<std::uint64_t>(first));
    take(part);
  }
  if (sum != stored_[tensor].digest)
    fail(ExitCode::bad_data, "{}: {} has digest {:016x}, should have {:016x}; the file is damaged",
         path_, name, sum, stored_[tensor].digest);
}

bool Checkpoint::has_averages() const {
  return std::ranges::any_of(tensors_, [](const CheckpointTensor& tensor) {
    return tensor.name.starts_with(averages_group);
  });
}

std::string Checkpoint::used_parameter(const std::string& name, bool without_ema) const {
  const std::string average = averages_group + name;
  const bool is_used = !without_ema && std::ranges::any_of(tensors_, [&](const auto& tensor) {
    return tensor.name == average;
  });
  return is_used ? average : "/parameters/" + name;
}

const char* Checkpoint::used_parameters(bool without_ema) const {
  if (!has_averages()) return "parameters";
  return without_ema ? "parameters without ema" : "averages of parameters (ema)";
}

std::uint64_t Checkpoint::digest() const {
  std::uint64_t sum = 0;
  for (std::size_t k = 0; k < stored_.size(); ++k) sum += digest_term(k, stored_[k].digest);
  return sum;
}

void Checkpoint::read(const std::string& name, std::span<const std::int64_t> shape,
                      std::span<real> values) const {
  const auto found = std::ranges::find(tensors_, name, &CheckpointTensor::name);
  if (found == tensors_.end())
    fail(ExitCode::bad_data, "{}: {} is missing; is it a checkpoint of this model?", path_, name);
  if (!std::ranges::equal(shape, found->shape))
    fail(ExitCode::bad_data, "{}: {} has shape [{}], the model needs [{}]", path_, name,
         fmt::join(found->shape, ", "), fmt::join(shape, ", "));
  CAROUSEL_CHECK(std::ssize(values) == found->size(), "{} numbers of {}", values.size(), name);
  const auto index = static_cast<std::size_t>(found - tensors_.begin());
  auto to = values.begin();
  const auto take = [&to](auto piece) { to = std::ranges::copy(piece, to).out; };
  if (!stored_[index].doubles) {
    read_pieces<float>(index, take);
  } else if constexpr (sizeof(real) == 8) {
    read_pieces<double>(index, take);
  } else {
    fail(ExitCode::bad_data,
         "{}: {} is in double precision, which this program would round; use a build with "
         "Carousel_ENABLE_DOUBLE",
         path_, name);
  }
}

std::vector<real> Checkpoint::values(const std::string& name,
                                     std::span<const std::int64_t> shape) const {
  const CheckpointTensor wanted{name, {shape.begin(), shape.end()}};
  std::vector<real> values(static_cast<std::size_t>(wanted.size()));
  read(name, shape, values);
  return values;
}

void Checkpoint::check() const {
  for (std::size_t k = 0; k < tensors_.size(); ++k) {
    if (stored_[k].doubles)
      read_pieces<double>(k, [](auto) {});
    else
      read_pieces<float>(k, [](auto) {});
  }
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
