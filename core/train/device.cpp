// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/device.hpp"

#include <utility>

#include "core/train/initialise.hpp"
#include "core/train/rider.hpp"
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

}  // namespace

Device::Device(const ExecutionSpace& exec, const TrainerSpec& spec, int index, Hooks hooks)
    : index_(index),
      first_stage_(spec.schedule.buffers(index).first_stage),
      owned_(spec.schedule.buffers(index).owned),
      memory_(exec, spec.memory, index, spec.schedule.buffers(index)),
      stages_(make_stages(spec, spec.schedule.buffers(index), {exec, memory_.workspace(0)})),
      transport_(spec.transport(index)),
      prefetcher_(spec.dataset, spec.seed, spec.train.micro_batch_size, staged_batches,
                  spec.schedule.buffers(index).first_stage == 0),
      recorder_(Slices(spec.profile.steps), hooks.total_steps),
      executor_(exec, {.device = index,
                       .schedule = spec.schedule,
                       .memory = memory_,
                       .stages = stages_,
                       .transport = *transport_,
                       .prefetcher = prefetcher_,
                       .recorder = recorder_,
                       .activity = activity_,
                       .optimizer = spec.train.optimizer,
                       .learning_rate = std::move(hooks.learning_rate),
                       .on_step = std::move(hooks.on_step),
                       .on_update = std::move(hooks.on_update),
                       .on_save = std::move(hooks.on_save),
                       .seconds = spec.seconds,
                       .micro_batch_size = spec.train.micro_batch_size,
                       .seed = spec.seed}) {
  memory_.add_external(Category::data, prefetcher_.bytes());
  memory_.add_external(Category::communication, transport_->staging_bytes());
  // theta_{-1} = theta_0
  for (int version = 0; version > -spec.schedule.buffers(index).parameter_copies; --version) {
    fill(exec, spec.model, version, [&](const ParameterSpec& parameter, std::span<real> values) {
      initialise(parameter, spec.seed, values);
    });
  }
}

void Device::fill(const ExecutionSpace& exec, const Model& model, std::int64_t version,
                  const ParameterSource& source) {
  std::vector<real> values;
  for (const int j : owned_) {
    const StageMemory& stage = stages_[j - first_stage_].memory();
    values.resize(stage.parameter_size + stage.buffer_size);
    std::span<real> rest(values);
    for (auto part : {&LayerSpec::parameters, &LayerSpec::buffers}) {
      for (int k = 0; k < stage.layers; ++k) {
        for (const ParameterSpec& tensor : model.layers[stage.first + k].*part) {
          const auto size = static_cast<std::size_t>(tensor.size());
          source(tensor, rest.first(size));
          rest = rest.subspan(size);
        }
      }
    }
    copy_to_device(exec, memory_.parameters(j, version), values);
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
