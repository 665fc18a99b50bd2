// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/device_memory.hpp"

#include <algorithm>
#include <string>

#include "core/base/check.hpp"
#include "core/base/zeros.hpp"

namespace carousel {

static_assert(part_bytes == sizeof(ShownPart));

DeviceMemory::DeviceMemory(const ExecutionSpace& exec, const MemoryPlan& plan, int device,
                           const BufferCounts& counts)
    : plan_(plan.devices[device]),
      keeps_shard_(!counts.kept.empty()),
      stage_bytes_(plan_.frame_bytes),
      report_bytes_(plan.report_bytes()) {
  for (int c = 0; c < category_count; ++c) {
    const auto category = static_cast<Category>(c);
    std::int64_t bytes = plan_.bytes[c];
    // The prefetcher owns its staging buffers, planned at the end of the data category, and the
    // transport its own.
    if (category == Category::data) bytes = plan_.staging;
    if (category == Category::communication) bytes = 0;
    const std::string label = std::string("carousel::train::") + to_string(category);
    try {
      // Zeros, so that padding behind riders is a number when it travels or is summed.
      arenas_[c] = zeros<std::byte>(exec, label, bytes);
    } catch (const std::exception&) {
      fail(ExitCode::usage,
           "device {} needs {} bytes for {}, of {} bytes in all, and cannot get them; use more "
           "stages, a smaller train.micro_batch_size or another placement",
           device, bytes, to_string(category), plan_.total());
    }
    in_use_[c] = static_cast<std::int64_t>(arenas_[c].size());
  }
  in_use_[static_cast<std::size_t>(Category::activations)] = 0;
  peak_ = in_use_;
  CAROUSEL_CHECK(counts.parameter_copies == static_cast<int>(plan_.parameters.size()),
                 "{} parameter copies planned", plan_.parameters.size());
}

void DeviceMemory::clear(const ExecutionSpace& exec) const {
  for (const Bytes& arena : arenas_) put_zeros(exec, arena);
}

void DeviceMemory::use(Category category, std::int64_t bytes) {
  const auto c = static_cast<std::size_t>(category);
  in_use_[c] += bytes;
  peak_[c] = std::max(peak_[c], in_use_[c]);
}

std::byte* DeviceMemory::parameters(int stage, std::int64_t version) const {
  const int copy = copy_of(version, static_cast<int>(plan_.parameters.size()));
  const Category category = copy == 0 ? Category::parameters : Category::previous_parameters;
  return at(category, plan_.parameters[copy][stage]);
}

std::byte* DeviceMemory::predicted(int stage, std::int64_t version) const {
  const std::vector<std::int64_t>& copies = plan_.predicted[stage];
  if (copies.empty()) return parameters(stage, version);
  const int copy = copy_of(version, static_cast<int>(copies.size()));
  return at(Category::parameters, copies[copy]);
}

std::byte* DeviceMemory::frozen(int stage) const {
  if (plan_.frozen[stage] < 0) return nullptr;
  return at(Category::parameters, plan_.frozen[stage]);
}

real* DeviceMemory::frozen_full(int stage) const {
  if (plan_.frozen_full[stage] < 0) return nullptr;
  return reinterpret_cast<real*>(at(Category::optimizer, plan_.frozen_full[stage]));
}

std::byte* DeviceMemory::travelling(int buffer) const {
  return at(Category::parameters, plan_.travelling[buffer]);
}

real* DeviceMemory::full_parameters(int stage, std::int64_t version) const {
  const std::vector<std::int64_t>& copies = plan_.full[stage];
  if (copies.empty()) return nullptr;
  const int copy = copy_of(version, static_cast<int>(copies.size()));
  return reinterpret_cast<real*>(at(Category::optimizer, copies[copy]));
}

real* DeviceMemory::gradient(int buffer) const {
  return reinterpret_cast<real*>(at(Category::gradients, plan_.gradients[buffer]));
}

real* DeviceMemory::norms() const {
  if (plan_.norms < 0) return nullptr;
  return reinterpret_cast<real*>(at(Category::gradients, plan_.norms));
}

double* DeviceMemory::block_sums(int stage) const {
  if (plan_.block_sums[stage] < 0) return nullptr;
  return reinterpret_cast<double*>(at(Category::gradients, plan_.block_sums[stage]));
}

real* DeviceMemory::optimizer(int stage) const {
  if (plan_.optimizer[stage] < 0) return nullptr;
  return reinterpret_cast<real*>(at(Category::optimizer, plan_.optimizer[stage]));
}

std::byte* DeviceMemory::frame(int stage, int frame) const {
  return at(Category::activations, plan_.frames[stage][frame]);
}

std::byte* DeviceMemory::landing(int frame) const {
  return at(Category::boundary, plan_.landings[frame]);
}

std::byte* DeviceMemory::boundary(int stage, int buffer) const {
  return at(Category::boundary, plan_.boundaries[stage][buffer]);
}

std::byte* DeviceMemory::scratch(int queue) const {
  return at(Category::scratch, plan_.scratches[queue]);
}

std::span<std::byte> DeviceMemory::workspace(int queue) const {
  return {at(Category::workspace, plan_.workspaces[queue]),
          static_cast<std::size_t>(plan_.workspace_bytes)};
}

real* DeviceMemory::images(int input) const {
  if (plan_.images.empty()) return nullptr;
  return reinterpret_cast<real*>(at(Category::data, plan_.images[input]));
}

real* DeviceMemory::levels() const {
  if (plan_.levels < 0) return nullptr;
  return reinterpret_cast<real*>(at(Category::data, plan_.levels));
}

std::uint8_t* DeviceMemory::read_images() const {
  if (plan_.read < 0) return nullptr;
  return reinterpret_cast<std::uint8_t*>(at(Category::data, plan_.read));
}

ShownPart* DeviceMemory::parts() const {
  if (plan_.parts < 0) return nullptr;
  return reinterpret_cast<ShownPart*>(at(Category::data, plan_.parts));
}

std::byte* DeviceMemory::targets(int input) const {
  if (plan_.targets.empty()) return nullptr;
  return at(Category::data, plan_.targets[input]);
}

int* DeviceMemory::samples(int input) const {
  return reinterpret_cast<int*>(at(Category::data, plan_.samples[input]));
}

double* DeviceMemory::report(int micro_batch) const {
  return reinterpret_cast<double*>(at(Category::data, plan_.reports + micro_batch * report_bytes_));
}

double* DeviceMemory::evaluation(std::int64_t batch) const {
  return reinterpret_cast<double*>(at(Category::data, plan_.evaluation + batch * report_bytes_));
}

}  // namespace carousel
