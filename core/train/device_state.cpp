// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// State of a device, tensor by tensor: it is filled from what begins a run, and shown to whoever
// keeps it. A device of a shard has parts of tensors.

#include <algorithm>
#include <span>
#include <vector>

#include "core/base/copy.hpp"
#include "core/train/device.hpp"
#include "core/train/initialise.hpp"
#include "core/train/kernels.hpp"

namespace carousel {
namespace {

/// Numbers first .. first + count - 1 of a tensor as they are stored, `offset` bytes behind the
/// begin of a piece of its stage.
struct StoredPart {
  const ParameterSpec& tensor;
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t offset = 0;
};

/// Calls visit(part) with what a piece of a stage has of every parameter or, behind them, of every
/// buffer.
template <class Visit>
void for_each_stored(const Model& model, const StageMemory& stage, StatePart part, int piece,
                     Visit&& visit) {
  const bool buffers = part == StatePart::buffers;
  const auto tensors = buffers ? &LayerSpec::buffers : &LayerSpec::parameters;
  const StagePiece& cut = stage.piece(piece);
  std::int64_t at = buffers ? stage.parameter_size : 0;  // number of the stage
  std::int64_t stored = buffers ? stage.stored_buffers() : 0;
  for (int k = 0; k < stage.layers; ++k) {
    for (const ParameterSpec& tensor : model.layers[stage.first + k].*tensors) {
      if (tensor.frozen) continue;
      const std::int64_t first = std::max(cut.begin, at);
      const std::int64_t behind = std::min(cut.end, at + tensor.size());
      const std::int64_t skipped = (first - at) * size_of(tensor.type);
      if (first < behind)
        visit(StoredPart{tensor, first - at, behind - first, stored + skipped - cut.stored_begin});
      at += tensor.size();
      stored += tensor.stored_bytes();
    }
  }
}

/// Calls visit(tensor, offset, number) with every parameter of frozen layers, which lies so many
/// bytes behind the begin of their block, and begins with that number of it.
template <class Visit>
void for_each_frozen(const Model& model, const StageMemory& stage, Visit&& visit) {
  std::int64_t stored = 0;
  std::int64_t number = 0;
  for (int k = 0; k < stage.layers; ++k) {
    for (const ParameterSpec& tensor : model.layers[stage.first + k].parameters) {
      if (!tensor.frozen) continue;
      visit(tensor, stored, number);
      stored += tensor.stored_bytes();
      number += tensor.size();
    }
  }
}

/// Puts numbers that are on the host where some of a tensor lie on the device.
void fill_numbers([[maybe_unused]] const ExecutionSpace& exec, DataType type,
                  std::span<const real> values, std::byte* at) {
  if constexpr (runs_on_host) {
    store_numbers(type, values, at);
  } else {
    std::vector<std::byte> stored(values.size() * static_cast<std::size_t>(size_of(type)));
    store_numbers(type, values, stored.data());
    copy<MemorySpace, HostSpace>(exec, at, stored.data(), stored.size());
    finish(exec, "carousel::train::fill");
  }
}

/// Shows `count` numbers of a tensor that lie on the device, piece by piece; `piece` has all but
/// the numbers.
void show_numbers([[maybe_unused]] const ExecutionSpace& exec, StatePiece piece, std::int64_t count,
                  DataType type, const std::byte* at, const StateVisitor& visit) {
  std::vector<real> full;  // what is not there as it is shown
  for (const std::int64_t end = piece.first + count; piece.first < end;
       piece.first += StatePiece::most) {
    const auto size = static_cast<std::size_t>(std::min(StatePiece::most, end - piece.first));
    const std::byte* from = at;
    at += static_cast<std::int64_t>(size) * size_of(type);
    if constexpr (runs_on_host) {
      if (type == DataType::full) {
        piece.values = {reinterpret_cast<const real*>(from), size};
        visit(piece);
        continue;
      }
    }
    full.resize(size);
    if constexpr (runs_on_host) {
      restore_numbers(type, from, full);
    } else {
      std::vector<std::byte> stored(size * static_cast<std::size_t>(size_of(type)));
      copy<HostSpace, MemorySpace>(exec, stored.data(), from, stored.size());
      finish(exec, "carousel::train::show");
      restore_numbers(type, stored.data(), full);
    }
    piece.values = full;
    visit(piece);
  }
}

/// Numbers first .. first + count - 1 of a tensor, `offset` numbers behind the begin of a piece of
/// its stage.
struct TensorPart {
  const ParameterSpec& tensor;
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t offset = 0;
};

/// Calls visit(part) with what a piece of a stage has of every parameter.
template <class Visit>
void for_each_part(const Model& model, const StageMemory& stage, int piece, Visit&& visit) {
  const std::int64_t begin = stage.piece(piece).begin;
  const std::int64_t end = begin + stage.parameters_of(piece);
  std::int64_t at = 0;  // number of the stage that the tensor begins with
  for (int k = 0; k < stage.layers; ++k) {
    for (const ParameterSpec& tensor : model.layers[stage.first + k].parameters) {
      if (tensor.frozen) continue;
      const std::int64_t first = std::max(begin, at);
      const std::int64_t behind = std::min(end, at + tensor.size());
      if (first < behind) visit(TensorPart{tensor, first - at, behind - first, first - begin});
      at += tensor.size();
    }
  }
}

/// Calls visit(piece) for the pieces of a stage that a device of this shard updates; without one,
/// for all of it.
template <class Visit>
void for_each_piece(const StageMemory& stage, int shard, Visit&& visit) {
  if (shard < 0) return visit(-1);
  for (int p = shard; p < std::ssize(stage.pieces); p += stage.shards) visit(p);
}

/// What passes read of a run that predicts, in place of theta_t and theta_{t-1}.
StateSource read_source(const StateSource& source, real kappa) {
  return [&source, kappa](StatePart part, int state, const ParameterSpec& tensor,
                          std::span<real> values) {
    const bool before = part == StatePart::previous;
    source(before ? StatePart::predicted : part, state, tensor, values);
    if (part != StatePart::parameters) return;
    std::vector<real> previous(values.size());
    source(StatePart::previous, state, tensor, previous);
    for (std::size_t k = 0; k < values.size(); ++k)
      values[k] = carousel::predicted(values[k], previous[k], kappa);
  };
}

std::byte* bytes_of(real* numbers) {
  return reinterpret_cast<std::byte*>(numbers);
}

}  // namespace

StateSource first_values(std::uint64_t seed) {
  return [seed](StatePart part, int, const ParameterSpec& tensor, std::span<real> values) {
    if (part == StatePart::optimizer)
      std::ranges::fill(values, real{0});
    else
      initialise(tensor, seed, values);
  };
}

std::span<const real> TensorReader::some(StatePart part, int state, const ParameterSpec& tensor,
                                         std::int64_t first, std::int64_t count) {
  if (tensor_ != &tensor || part_ != part || state_ != state) {
    values_.resize(static_cast<std::size_t>(tensor.size()));
    source_(part, state, tensor, values_);
    tensor_ = &tensor;
    part_ = part;
    state_ = state;
  }
  return std::span(values_).subspan(static_cast<std::size_t>(first),
                                    static_cast<std::size_t>(count));
}

void fill_stored(const ExecutionSpace& exec, const Model& model, const StageMemory& stage,
                 StatePart part, int piece, TensorReader& tensors, std::byte* at) {
  for_each_stored(model, stage, part, piece, [&](const StoredPart& found) {
    const ParameterSpec& tensor = found.tensor;
    std::byte* const there = at + found.offset;
    const auto size = static_cast<std::size_t>(tensor.size());
    if (runs_on_host && tensor.type == DataType::full && found.count == tensor.size())
      return tensors.read(part, 0, tensor, {reinterpret_cast<real*>(there), size});
    fill_numbers(exec, tensor.type, tensors.some(part, 0, tensor, found.first, found.count), there);
  });
}

void fill_frozen(const ExecutionSpace& exec, const Model& model, const StageMemory& stage,
                 TensorReader& tensors, std::byte* at, real* full) {
  const auto fill = [&](const ParameterSpec& tensor, std::int64_t offset, std::int64_t number) {
    const auto values = tensors.some(StatePart::parameters, 0, tensor, 0, tensor.size());
    fill_numbers(exec, tensor.type, values, at + offset);
    if (full != nullptr) fill_numbers(exec, DataType::full, values, bytes_of(full + number));
  };
  for_each_frozen(model, stage, fill);
}

void Device::fill(const Model& model, std::int64_t version, const StateSource& source) {
  finish(exec_, "carousel::train::fill");  // arenas are zeros first
  const StateSource in_its_place = read_source(source, static_cast<real>(predict_));
  TensorReader theta(source);
  TensorReader read(in_its_place);
  for (int j = counts_.first_stage; j <= counts_.last_stage; ++j)
    fill_frozen(exec_, model, stage(j), theta, memory_.frozen(j), memory_.frozen_full(j));
  for (const int j : counts_.owned) {
    const StageMemory& stage = this->stage(j);
    const auto predicted = [&](std::int64_t v, int) { return memory_.predicted(j, v); };
    const ParametersRead reads = counts_.reads_of(j);
    fill_stored(model, j, -1, version, reads == ParametersRead::predicted ? read : theta);
    if (reads == ParametersRead::both) fill_copies(model, stage, -1, version, read, predicted);
    fill_own(model, j, version, theta);
  }
  for (const int j : counts_.kept) {
    fill_stored(model, j, counts_.shard, version,
                counts_.reads_of(j) == ParametersRead::predicted ? read : theta);
    fill_own(model, j, version, theta);
  }
}

/// What kernels read of the pieces of a shard of a stage, or with -1 of all of it.
void Device::fill_stored(const Model& model, int stage, int shard, std::int64_t version,
                         TensorReader& tensors) {
  const StageMemory& memory = this->stage(stage);
  fill_copies(model, memory, shard, version, tensors,
              [&](std::int64_t v, int piece) { return memory_.piece(memory, stage, v, piece); });
}

/// Likewise where at(version, piece) says.
template <class At>
void Device::fill_copies(const Model& model, const StageMemory& stage, int shard,
                         std::int64_t version, TensorReader& tensors, const At& at) {
  const auto fill = [&](StatePart part, int piece, std::int64_t of_version) {
    carousel::fill_stored(exec_, model, stage, part, piece, tensors, at(of_version, piece));
  };
  for_each_piece(stage, shard, [&](int piece) { fill(StatePart::parameters, piece, version); });
  for_each_piece(stage, shard, [&](int piece) {
    if (piece <= 0) fill(StatePart::buffers, piece, version);
  });
  // Its buffers nobody reads: running statistics follow from the newest ones.
  if (counts_.parameter_copies == 1) return;
  for_each_piece(stage, shard, [&](int piece) { fill(StatePart::previous, piece, version - 1); });
}

/// What the updates of a stage keep beside that.
void Device::fill_own(const Model& model, int stage, std::int64_t version, TensorReader& tensors) {
  const StageMemory& memory = this->stage(stage);
  const auto fill = [&](StatePart part, int state, int piece, real* at) {
    for_each_part(model, memory, piece, [&](const TensorPart& found) {
      fill_numbers(exec_, DataType::full,
                   tensors.some(part, state, found.tensor, found.first, found.count),
                   bytes_of(at + found.offset));
    });
  };
  const auto fill_full = [&](StatePart part, std::int64_t of_version) {
    real* const full = memory_.full_parameters(stage, of_version);
    for_each_piece(memory, counts_.shard, [&](int piece) {
      fill(part, 0, piece, full + memory.parameters_before(piece));
    });
  };
  if (memory_.full_parameters(stage, version) != nullptr) fill_full(StatePart::parameters, version);
  if (memory_.keeps_full_before(stage)) fill_full(StatePart::previous, version - 1);
  real* const states = memory_.optimizer(stage);
  for (int k = 0; states != nullptr && k < states_; ++k)
    for_each_piece(memory, counts_.shard, [&](int piece) {
      fill(StatePart::optimizer, k, piece,
           states + states_ * memory.parameters_before(piece) + k * memory.parameters_of(piece));
    });
}

void Device::show(const Model& model, int stage, std::int64_t version,
                  const StateVisitor& visit) const {
  const StageMemory& memory = this->stage(stage);
  const auto full = [&](StatePart part, int state, int piece, real* at) {
    for_each_part(model, memory, piece, [&](const TensorPart& found) {
      show_numbers(exec_, {part, state, stage, found.tensor, found.first, {}}, found.count,
                   DataType::full, bytes_of(at + found.offset), visit);
    });
  };
  const auto show_stored = [&](StatePart part, int piece, const std::byte* at) {
    for_each_stored(model, memory, part, piece, [&](const StoredPart& found) {
      show_numbers(exec_, {part, 0, stage, found.tensor, found.first, {}}, found.count,
                   found.tensor.type, at + found.offset, visit);
    });
  };
  const auto stored = [&](StatePart part, int piece, std::int64_t of_version) {
    show_stored(part, piece, memory_.piece(memory, stage, of_version, piece));
  };
  const auto show_full = [&](StatePart part, int piece, std::int64_t of_version) {
    full(part, 0, piece,
         memory_.full_parameters(stage, of_version) + memory.parameters_before(piece));
  };
  for_each_piece(memory, counts_.shard, [&](int piece) {
    if (memory_.full_parameters(stage, version) != nullptr)
      show_full(StatePart::parameters, piece, version);
    else
      stored(StatePart::parameters, piece, version);
  });
  const auto show_frozen = [&](const ParameterSpec& tensor, std::int64_t offset,
                               std::int64_t number) {
    real* const in_full = memory_.frozen_full(stage);
    show_numbers(exec_, {StatePart::parameters, 0, stage, tensor, 0, {}}, tensor.size(),
                 in_full != nullptr ? DataType::full : tensor.type,
                 in_full != nullptr ? bytes_of(in_full + number) : memory_.frozen(stage) + offset,
                 visit);
  };
  if (counts_.shard <= 0) for_each_frozen(model, memory, show_frozen);
  for_each_piece(memory, counts_.shard, [&](int piece) {
    if (piece <= 0) stored(StatePart::buffers, piece, version);
  });
  for_each_piece(memory, counts_.shard, [&](int piece) {
    if (memory_.keeps_full_before(stage))
      show_full(StatePart::previous, piece, version - 1);
    else if (counts_.parameter_copies > 1)
      stored(StatePart::previous, piece, version - 1);
  });
  for_each_piece(memory, counts_.shard, [&](int piece) {
    if (counts_.reads_of(stage) == ParametersRead::both)
      show_stored(StatePart::predicted, piece, memory_.predicted(stage, version - 1));
    else if (counts_.reads_of(stage) == ParametersRead::predicted)
      stored(StatePart::predicted, piece, version - 1);
  });
  for_each_piece(memory, counts_.shard, [&](int piece) {
    if (memory_.optimizer(stage) == nullptr) return;
    real* state = memory_.optimizer(stage) + states_ * memory.parameters_before(piece);
    for (int k = 0; k < states_; ++k, state += memory.parameters_of(piece))
      full(StatePart::optimizer, k, piece, state);
  });
}

}  // namespace carousel
