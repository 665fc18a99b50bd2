// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/device.hpp"

#include <algorithm>
#include <utility>

#include "core/base/copy.hpp"
#include "core/train/initialise.hpp"
#include "core/train/rider.hpp"
#include "core/train/shown_images.hpp"
#include "core/train/trainer.hpp"

namespace carousel {
namespace {

std::vector<Stage> make_stages(const TrainerSpec& spec, const BufferCounts& counts,
                               const Engine& engine) {
  std::vector<Stage> stages;
  stages.reserve(spec.memory.stages.size());
  for (int j = counts.first_stage; j <= counts.last_stage; ++j)
    stages.emplace_back(spec.model, spec.memory.stages, j, spec.train.micro_batch_size, counts,
                        spec.layers, engine);
  return stages;
}

/// Tasks that a device is ahead by, at most; fewer than two steps of a large plan.
constexpr int queued_tasks = 1024;

/// Calls visit(tensor, flat) with each tensor of a stage's layers, one after the other in a flat
/// vector; returns what lies behind them.
template <class T, class Visit>
T* for_each_tensor(const Model& model, const StageMemory& stage, StatePart part, T* flat,
                   Visit&& visit) {
  const auto tensors = part == StatePart::buffers ? &LayerSpec::buffers : &LayerSpec::parameters;
  for (int k = 0; k < stage.layers; ++k) {
    for (const ParameterSpec& tensor : model.layers[stage.first + k].*tensors) {
      visit(tensor, flat);
      flat += tensor.size();
    }
  }
  return flat;
}

/// Puts a tensor where it lies on the device.
void fill_tensor([[maybe_unused]] const ExecutionSpace& exec, StatePart part, int state,
                 const ParameterSpec& tensor, real* flat, const StateSource& source) {
  const auto size = static_cast<std::size_t>(tensor.size());
  if constexpr (runs_on_host) {
    source(part, state, tensor, {flat, size});
  } else {
    std::vector<real> copied(size);
    source(part, state, tensor, copied);
    copy_to_device(exec, flat, copied);
  }
}

/// Shows a tensor that lies on the device, piece by piece; `piece` has all but the numbers.
void show_tensor([[maybe_unused]] const ExecutionSpace& exec, StatePiece piece, const real* flat,
                 const StateVisitor& visit) {
  [[maybe_unused]] std::vector<real> copied;  // from an accelerator
  const std::int64_t all = piece.spec.size();
  for (; piece.first < all; piece.first += StatePiece::most) {
    const auto size = static_cast<std::size_t>(std::min(StatePiece::most, all - piece.first));
    piece.values = {flat + piece.first, size};
    if constexpr (!runs_on_host) {
      copied.resize(size);
      copy_to_host(exec, copied, flat + piece.first);
      piece.values = copied;
    }
    visit(piece);
  }
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

Device::Device(const ExecutionSpace& exec, const TrainerSpec& spec, int index,
               HostCommunication& communication, Hooks hooks)
    : index_(index),
      first_stage_(spec.schedule.buffers(index).first_stage),
      owned_(spec.schedule.buffers(index).owned),
      copies_(spec.schedule.buffers(index).parameter_copies),
      states_(spec.memory.optimizer_states),
      memory_(exec, spec.memory, index, spec.schedule.buffers(index)),
      stages_(make_stages(spec, spec.schedule.buffers(index), {exec, memory_.workspace(0)})),
      communication_(communication.queue(
          {.device = index,
           .transport = spec.transport(index),
           .requests = spec.schedule.buffers(index).requests,
           .clock = spec.seconds,
           .staging_bytes =
               spec.memory.devices[index].bytes[static_cast<std::size_t>(Category::communication)],
           .exec = exec})),
      prefetcher_({.dataset = spec.dataset,
                   .augment = spec.augment,
                   .seed = spec.seed,
                   .largest_batch = spec.train.micro_batch_size,
                   .workers = spec.workers,
                   .images = spec.schedule.buffers(index).first_stage == 0}),
      chosen_("carousel::train::chosen", spec.keeps_chosen ? spec.dataset.test().samples() : 0),
      recorder_(Slices(spec.profile.steps), hooks.total_steps),
      reports_(exec, spec.schedule.rule().stages(), spec.beginning.step),
      compute_(exec, queued_tasks),
      executor_(exec, {.device = index,
                       .schedule = spec.schedule,
                       .memory = memory_,
                       .stages = stages_,
                       .communication = *communication_,
                       .prefetcher = prefetcher_,
                       .reports = reports_,
                       .recorder = recorder_,
                       .activity = activity_,
                       .optimizer = spec.train.optimizer,
                       .learning_rate = std::move(hooks.learning_rate),
                       .on_update = std::move(hooks.on_update),
                       .wants_pause = spec.wants_pause,
                       .seconds = spec.seconds,
                       .chosen = spec.keeps_chosen ? chosen_.data() : nullptr,
                       .micro_batch_size = spec.train.micro_batch_size,
                       .seed = spec.seed}),
      issuer_({.device = index,
               .schedule = spec.schedule,
               .executor = executor_,
               .compute = compute_,
               .communication = *communication_,
               .reports = reports_,
               .recorder = recorder_,
               .activity = activity_,
               .on_step = std::move(hooks.on_step),
               .first_step = spec.beginning.step}) {
  memory_.add_external(Category::data, prefetcher_.bytes());
  memory_.add_external(Category::communication, communication_->staging_bytes());
  if (memory_.levels() != nullptr)
    copy_to_device(
        exec, memory_.levels(),
        normalised_levels(mean_of(spec.dataset, spec.augment), std_of(spec.dataset, spec.augment)));
  activity_.completes(spec.beginning.step);
  fill(exec, spec.model, spec.beginning.step,
       spec.beginning.state ? spec.beginning.state : first_values(spec.seed));
}

void Device::fill(const ExecutionSpace& exec, const Model& model, std::int64_t version,
                  const StateSource& source) {
  finish(exec, "carousel::train::fill");  // arenas are zeros first
  for (const int j : owned_) {
    const auto tensors = [&](StatePart part, int state, real* flat) {
      return for_each_tensor(model, stages_[j - first_stage_].memory(), part, flat,
                             [&](const ParameterSpec& tensor, real* at) {
                               fill_tensor(exec, part, state, tensor, at, source);
                             });
    };
    real* behind = tensors(StatePart::parameters, 0, memory_.parameters(j, version));
    tensors(StatePart::buffers, 0, behind);
    // Its buffers nobody reads: running statistics follow from the newest ones.
    if (copies_ > 1) tensors(StatePart::previous, 0, memory_.parameters(j, version - 1));
    if (memory_.optimizer(j) == nullptr) continue;
    real* state = memory_.optimizer(j);
    for (int k = 0; k < states_; ++k) state = tensors(StatePart::optimizer, k, state);
  }
}

void Device::show(const ExecutionSpace& exec, const Model& model, int stage, std::int64_t version,
                  const StateVisitor& visit) const {
  const auto tensors = [&](StatePart part, int state, const real* flat) {
    return for_each_tensor(model, stages_[stage - first_stage_].memory(), part, flat,
                           [&](const ParameterSpec& tensor, const real* at) {
                             show_tensor(exec, {part, state, stage, tensor, 0, {}}, at, visit);
                           });
  };
  const real* behind = tensors(StatePart::parameters, 0, memory_.parameters(stage, version));
  tensors(StatePart::buffers, 0, behind);
  if (copies_ > 1) tensors(StatePart::previous, 0, memory_.parameters(stage, version - 1));
  const real* state = memory_.optimizer(stage);
  for (int k = 0; k < states_; ++k) state = tensors(StatePart::optimizer, k, state);
}

std::vector<int> Device::chosen(const ExecutionSpace& exec) const {
  std::vector<int> classes(chosen_.size());
  copy<HostSpace, MemorySpace>(exec, classes.data(), chosen_.data(), classes.size() * sizeof(int));
  finish(exec, "carousel::train::chosen");
  return classes;
}

Device::State Device::advance() {
  bool moved = false;
  bool yielded = false;
  issuer_.issue();
  while (true) {
    if (compute_.empty()) {
      if (issuer_.is_done()) return State::done;
      communication_->help();
      issuer_.issue();
      if (compute_.empty()) return moved ? State::moved : State::blocked;
    }
    if (compute_.yields() && std::exchange(yielded, true)) return State::moved;
    if (compute_.blocked()) communication_->help();
    if (compute_.blocked()) return moved ? State::moved : State::blocked;
    if (compute_.run_next()) communication_->begin_due();
    issuer_.listen();
    moved = true;
  }
}

void Device::prefetch(const Schedule& schedule, const TrainingOrder& order,
                      const Segment& segment) {
  requests_.clear();
  schedule.for_each(index_, segment, [&](const Action& action) {
    if (action.kind == ActionKind::load)
      requests_.push_back(training_request(order, action.step, action.micro_batch));
  });
  prefetcher_.start(requests_);
}

void Device::prefetch_evaluation(std::span<const Action> actions, std::int64_t samples, int batch,
                                 std::int64_t version) {
  const std::vector<BatchRequest> all = evaluation_requests(samples, batch, version);
  requests_.clear();
  for (const Action& action : actions) {
    if (action.kind == ActionKind::load) requests_.push_back(all[action.micro_batch]);
  }
  prefetcher_.start(requests_);
}

}  // namespace carousel
