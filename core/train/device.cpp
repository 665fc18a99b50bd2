// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/device.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "core/base/copy.hpp"
#include "core/base/cuda.hpp"
#include "core/plan/evaluation.hpp"
#include "core/plan/staging.hpp"
#include "core/train/pinned_memory.hpp"
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

Reads reads_of(const Schedule& schedule, int device) {
  const BufferCounts& counts = schedule.buffers(device);
  return {.inputs = counts.first_stage == 0,
          .targets = counts.last_stage + 1 == schedule.rule().stages()};
}

/// Tasks that a device is ahead by, at most; fewer than two steps of a large plan.
constexpr int queued_tasks = 1024;

/// Each with a stream and a workspace of its own.
std::vector<std::unique_ptr<Lane>> make_lanes(const TrainerSpec& spec, const BufferCounts& counts,
                                              const ExecutionSpace& exec,
                                              const DeviceMemory& memory) {
  std::vector<std::unique_ptr<Lane>> made;
  for (int k = 0; k < memory.queues(); ++k) {
    const ExecutionSpace own = k == 0 ? exec : own_stream(exec);
    std::shared_ptr<VendorHandles> vendor = spec.vendor ? spec.vendor(own) : nullptr;
    std::vector<Stage> stages = make_stages(spec, counts, {own, memory.workspace(k), vendor.get()});
    made.emplace_back(new Lane{own, Workers(own), std::move(vendor), std::move(stages),
                               memory.scratch(k),
                               LaunchQueue(own, queued_tasks, std::max(2, memory.queues()))});
  }
  return made;
}

std::vector<Queue*> queues_of(const std::vector<std::unique_ptr<Lane>>& all) {
  std::vector<Queue*> queues;
  for (const std::unique_ptr<Lane>& lane : all) queues.push_back(&lane->queue);
  return queues;
}

std::unique_ptr<CommunicationQueue> make_communication(const TrainerSpec& spec, int device,
                                                       const ExecutionSpace& exec,
                                                       HostCommunication& communication) {
  if (spec.communication) return spec.communication(device);
  const std::int64_t staging_bytes =
      spec.memory.devices[device].bytes[static_cast<std::size_t>(Category::communication)];
  return communication.queue({.device = device,
                              .transport = spec.transport(device),
                              .requests = spec.schedule.buffers(device).requests,
                              .clock = spec.seconds,
                              .staging_bytes = staging_bytes,
                              .staging_by_size = stages_by_size(spec.schedule),
                              .exec = staging_bytes > 0 ? own_stream(exec) : exec});
}

}  // namespace

Device::Device(const ExecutionSpace& exec, const TrainerSpec& spec, int index,
               HostCommunication& communication, Hooks hooks)
    : exec_(own_stream(exec)),
      index_(index),
      counts_(spec.schedule.buffers(index)),
      states_(spec.memory.optimizer_states),
      predict_(spec.schedule.parallel().predict),
      memory_(exec_, spec.memory, index, counts_),
      lanes_(make_lanes(spec, counts_, exec_, memory_)),
      next_lane_(spec.next_lane),
      communication_(make_communication(spec, index, exec_, communication)),
      prefetcher_({.source = spec.source,
                   .reads = reads_of(spec.schedule, index),
                   .seed = spec.seed,
                   .largest_batch = spec.train.micro_batch_size,
                   .workers = spec.workers,
                   .memory = pinned_memory()}),
      chosen_("carousel::train::chosen",
              spec.keeps_chosen ? spec.source.samples(Pass::evaluation) : 0),
      recorder_(Slices(spec.profile.steps), hooks.total_steps, pinned_memory()),
      reports_(exec_, spec.memory.stages, spec.beginning.step),
      executor_({.device = index,
                 .schedule = spec.schedule,
                 .memory = memory_,
                 .lanes = lanes_,
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
               .compute = queues_of(lanes_),
               .communication = *communication_,
               .reports = reports_,
               .recorder = recorder_,
               .activity = activity_,
               .on_step = std::move(hooks.on_step),
               .first_step = spec.beginning.step}) {
  if (spec.rehearses)
    rehearse(spec, std::clamp<std::int64_t>(spec.beginning.step, 0, hooks.total_steps - 1));
  memory_.add_external(Category::data, prefetcher_.bytes());
  memory_.add_external(Category::communication, communication_->staging_bytes());
  if (memory_.levels() != nullptr)
    copy_to_device(exec_, memory_.levels(), normalised_levels(spec.mean, spec.std));
  activity_.completes(spec.beginning.step);
  fill(spec.model, spec.beginning.step,
       spec.beginning.state ? spec.beginning.state : first_values(spec.seed));
}

/// Plans of libraries and modules of kernels come into being where they are first needed, which may
/// take the whole GPU; a message that waits for another rank must not be under way then.
void Device::rehearse(const TrainerSpec& spec, std::int64_t step) {
  finish(exec_, "carousel::train::rehearse");  // arenas are zeros first
  const Schedule& schedule = spec.schedule;
  const LaneOrder order(schedule, index_, static_cast<int>(lanes_.size()));
  std::set<std::array<int, 4>> done;
  const auto once = [&](const Action& action, int lane, int samples) {
    return done
        .insert({static_cast<int>(action.kind) * static_cast<int>(lanes_.size()) + lane,
                 static_cast<int>(action.payload), action.stage, samples})
        .second;
  };
  schedule.for_each(index_, {step, step + 1}, [&](const Action& action) {
    if (!computes(action) || action.kind == ActionKind::load) return;
    const int lane = order.lane_of(action, true);
    if (once(action, lane, 0)) executor_.rehearse(action, lane, step, 0);
  });
  const std::int64_t batches = spec.memory.evaluation_batches;
  const int most = spec.train.micro_batch_size;
  const std::int64_t rest = spec.source.samples(Pass::evaluation) - (batches - 1) * most;
  const auto evaluation = evaluation_actions(schedule, batches, step, spec.memory.report_bytes(),
                                             [this](int device) { return device == index_; });
  for (const Action& action : evaluation[index_]) {
    const bool passes = action.kind == ActionKind::forward;
    if (!passes && action.kind != ActionKind::copy) continue;
    const int samples = !passes                            ? 0
                        : action.micro_batch + 1 < batches ? most
                                                           : static_cast<int>(rest);
    if (once(action, 0, samples)) executor_.rehearse(action, 0, std::nullopt, samples);
  }
  executor_.begin(std::nullopt);
  memory_.clear(exec_);
}

std::vector<int> Device::chosen() const {
  std::vector<int> classes(chosen_.size());
  copy<HostSpace, MemorySpace>(exec_, classes.data(), chosen_.data(), classes.size() * sizeof(int));
  finish(exec_, "carousel::train::chosen");
  return classes;
}

void Device::stand_still() const {
  for (const std::unique_ptr<Lane>& lane : lanes_)
    finish(lane->exec, "carousel::train::stand_still");
  check_launches();
}

bool Device::is_empty() const {
  return std::ranges::all_of(lanes_, [](const auto& lane) { return lane->queue.empty(); });
}

Lane* Device::find_lane() {
  const std::size_t first = next_lane_ ? next_lane_(lanes_.size()) : turn_;
  for (std::size_t k = 0; k < lanes_.size(); ++k) {
    const std::size_t turn = (first + k) % lanes_.size();
    LaunchQueue& queue = lanes_[turn]->queue;
    if (queue.empty() || queue.blocked()) continue;
    turn_ = turn;
    return lanes_[turn].get();
  }
  return nullptr;
}

Device::State Device::advance() {
  bool moved = false;
  bool yielded = false;
  issuer_.issue();
  while (true) {
    if (is_empty()) {
      if (issuer_.is_done()) return State::done;
      communication_->help();
      issuer_.issue();
      if (is_empty()) return moved ? State::moved : State::blocked;
    }
    Lane* lane = find_lane();
    if (lane == nullptr) {
      communication_->help();
      lane = find_lane();
    }
    if (lane == nullptr) return moved ? State::moved : State::blocked;
    if (lane->queue.yields() && std::exchange(yielded, true)) return State::moved;
    if (lane->queue.run_next()) communication_->begin_due();
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
