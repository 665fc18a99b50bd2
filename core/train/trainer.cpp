// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "core/base/check.hpp"
#include "core/plan/evaluation.hpp"
#include "core/train/learning_rate.hpp"
#include "core/train/rider.hpp"

namespace carousel {
namespace {

/// Rounds in which no device of a process moves, where none waits for another process or for a GPU.
constexpr int patience = 100000;

/// Waits a little after so many rounds in which nobody moved. Cores may be shared with the very
/// rank that is waited for, or with programs of others: whoever has waited for longer than a short
/// message takes leaves them its core.
void rest(int idle) {
  constexpr int awake = 100;  // rounds, each a few microseconds where nobody else wants the core
  if (idle < awake)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds(20));
}

TrainingOrder training_order(const TrainerSpec& spec) {
  const TrainingOrder order{.samples = spec.source.samples(Pass::training),
                            .micro_batches = spec.schedule.rule().micro_batches(),
                            .micro_batch_size = spec.train.micro_batch_size};
  return order.going_on(spec.beginning.step, spec.beginning.place);
}

}  // namespace

Trainer::Trainer(const ExecutionSpace& exec, TrainerSpec spec, TrainingObserver& observer)
    : exec_(exec),
      spec_(std::move(spec)),
      observer_(observer),
      order_(training_order(spec_)),
      agenda_(agenda_of(spec_.train, spec_.checkpoint, order_)),
      result_{.steps = spec_.beginning.step},
      communication_(spec_.helping) {
  completed_.reserve(ReportMemory::rows);
  for (int index : spec_.devices) {
    devices_.push_back(std::make_unique<Device>(
        exec_, spec_, index, communication_,
        Device::Hooks{.total_steps = agenda_.total_steps,
                      .learning_rate =
                          [this](std::int64_t t) { return learning_rate(spec_.train, agenda_, t); },
                      .on_step =
                          [this, index](std::int64_t step, const StepSums& sums) {
                            if (index == 0) step_done(step, sums);
                          },
                      .on_update =
                          [this, index](const ExecutionSpace& queue, std::int64_t step, int stage,
                                        const real* theta) {
                            if (index == spec_.schedule.owner(stage))
                              observer_.on_update(queue, index, step, stage, theta,
                                                  spec_.memory.stages[stage].parameter_size);
                          }}));
  }
}

Trainer::~Trainer() = default;

Device& Trainer::device(int index) const {
  for (const std::unique_ptr<Device>& device : devices_) {
    if (device->index() == index) return *device;
  }
  fail(ExitCode::internal, "device {} is not in this process", index);
}

void Trainer::step_done(std::int64_t step, const StepSums& sums) {
  const int n = spec_.schedule.rule().micro_batches();
  StepRecord record;
  record.step = step;
  record.epoch = agenda_.epochs_after(step);
  record.loss = sums.loss / n;
  record.metrics = values_of(spec_.model.metrics(), sums.metrics,
                             static_cast<double>(order_.step_samples()), spec_.model.target);
  record.learning_rate = learning_rate(spec_.train, agenda_, step);
  record.seconds = spec_.seconds();
  completed_.push_back(record);
}

void Trainer::tell() {
  if (completed_.empty()) return;
  // Device 0 may learn of several steps at once, above all at the end of a segment.
  const double speed = speed_.add(std::ssize(completed_), completed_.back().seconds);
  for (StepRecord& record : completed_) {
    record.images_per_second = speed * static_cast<double>(order_.step_samples());
    observer_.on_step(record);
  }
  completed_.clear();
}

void Trainer::tell_evaluating(std::int64_t version, double part) {
  if (devices_.front()->index() != 0) return;
  const std::int64_t samples = spec_.source.samples(Pass::evaluation);
  observer_.on_evaluating({.step = version,
                           .done = static_cast<std::int64_t>(part * static_cast<double>(samples)),
                           .samples = samples,
                           .seconds = spec_.seconds()});
}

bool Trainer::advance() {
  if (first_step_seconds_ < 0) first_step_seconds_ = spec_.seconds();
  run_segment(agenda_.segment_at(result_.steps));
  const Issuer& issuer = devices_.front()->issuer();
  result_ = {.steps = issuer.segment().last, .diverged_at = issuer.diverged_at()};
  return result_.diverged_at < 0 && result_.steps < agenda_.total_steps;
}

bool Trainer::evaluate_when_due() {
  if (result_.diverged_at >= 0 || !agenda_.evaluates_after(result_.steps)) return false;
  const EvaluationRecord record = evaluate(result_.steps);
  if (devices_.front()->index() == 0) observer_.on_evaluation(record);
  return true;
}

TrainingResult Trainer::run() {
  for (bool more = true; more;) {
    more = advance();
    evaluate_when_due();
  }
  return result_;
}

void Trainer::run_segment(const Segment& segment) {
  for (const std::unique_ptr<Device>& device : devices_) {
    device->prefetch(spec_.schedule, order_, segment);
    device->issuer().begin(segment);
  }
  speed_.begin(spec_.seconds());
  drive();
  run_lists(closing_actions(spec_.schedule, devices_.front()->issuer().segment().last));
  for (const std::unique_ptr<Device>& device : devices_) {
    device->prefetcher().stop();
    device->issuer().end();
    tell();  // what a GPU made known only now
  }
  for (const std::unique_ptr<Device>& device : devices_)
    observer_.on_segment_end(device->index(), device->recorder());
  speed_.end(spec_.seconds());
}

void Trainer::run_lists(const std::vector<std::vector<Action>>& lists, std::int64_t evaluated) {
  for (const std::unique_ptr<Device>& device : devices_)
    device->issuer().begin(lists[device->index()]);
  drive(evaluated);
}

void Trainer::drive(std::int64_t evaluated) {
  std::vector<bool> done(devices_.size(), false);
  std::size_t running = devices_.size();
  int idle = 0;  // rounds in which nobody moved
  while (running > 0) {
    bool moved = false;
    // Later micro-batches first: what a device sends in a time step is met in the next one.
    for (std::size_t k = devices_.size(); k-- > 0;) {
      if (done[k]) continue;
      const Device::State state = devices_[k]->advance();
      tell();
      if (evaluated >= 0 && k == 0 && state == Device::State::moved)
        tell_evaluating(evaluated, devices_[k]->issuer().part_done());
      done[k] = state == Device::State::done;
      running -= done[k] ? 1 : 0;
      moved = moved || state != Device::State::blocked;
    }
    idle = moved ? 0 : idle + 1;
    if (idle == 0 || running == 0) continue;
    // A message between devices of one process needs no more than a few looks.
    const bool all_here =
        runs_on_host && std::ssize(devices_) == spec_.schedule.devices() && devices_.size() > 1;
    CAROUSEL_CHECK(idle < patience || !all_here || spec_.helping == Helping::alone,
                   "all {} devices wait for each other", running);
    rest(idle);
  }
  for (const std::unique_ptr<Device>& device : devices_) device->stand_still();
}

EvaluationRecord Trainer::evaluate(std::int64_t version) {
  const std::int64_t samples = spec_.source.samples(Pass::evaluation);
  const std::int64_t batches = spec_.memory.evaluation_batches;
  const auto is_here = [&](int d) {
    return std::ranges::any_of(devices_, [&](const auto& device) { return device->index() == d; });
  };
  const auto lists =
      evaluation_actions(spec_.schedule, batches, version, spec_.memory.report_bytes(), is_here);
  for (const std::unique_ptr<Device>& device : devices_)
    device->prefetch_evaluation(lists[device->index()], samples, spec_.train.micro_batch_size,
                                version);
  tell_evaluating(version, 0);
  run_lists(lists, version);

  EvaluationRecord record{.step = version, .epoch = agenda_.epochs_after(version)};
  if (devices_.front()->index() != 0) return record;
  const std::span<const Metric* const> metrics = spec_.model.metrics();
  const std::size_t size =
      report_head + static_cast<std::size_t>(sums_of(metrics, spec_.model.target));
  std::vector<double> results(static_cast<std::size_t>(batches) * size);
  copy_reports_to_host(exec_, results, devices_.front()->memory().evaluation(0));
  tell_evaluating(version, 1);
  // In the order of the batches, so that every placement adds the same numbers the same way.
  std::array<double, most_sums> sums = {};
  double weight = 0;  // the samples, or all that counts of their targets
  for (std::int64_t k = 0; k < batches; ++k) {
    const auto position = static_cast<std::size_t>(evaluation_position(spec_.schedule, batches, k));
    const std::span<const double> report = std::span(results).subspan(position * size, size);
    record.loss += report[0] * report[2];
    weight += report[2];
    for (std::size_t s = 0; s + report_head < size; ++s) sums[s] += report[report_head + s];
  }
  record.loss /= weight;
  // Printed without the sign that some processors give it.
  if (std::isnan(record.loss)) record.loss = std::numeric_limits<double>::quiet_NaN();
  record.metrics = values_of(metrics, sums, static_cast<double>(samples), spec_.model.target);
  return record;
}

/// Calls visit(device, stage) for every stage that a device of this process owns.
template <class Visit>
void Trainer::for_each_owned(const Visit& visit) const {
  for (int j = 0; j < spec_.schedule.rule().stages(); ++j) {
    for (const std::unique_ptr<Device>& device : devices_) {
      if (spec_.schedule.shows(device->index(), j)) visit(*device, j);
    }
  }
}

void Trainer::show_state(const StateVisitor& visit) const {
  for_each_owned([&](const Device& device, int stage) {
    device.show(spec_.model, stage, result_.steps, visit);
  });
}

std::uint64_t Trainer::slow_gradients() const {
  std::uint64_t layers = 0;
  for_each_owned([&](const Device& device, int stage) { layers += device.slow_gradients(stage); });
  return layers;
}

MeasuredRecord Trainer::measured(int index) const {
  const Device& found = device(index);
  MeasuredRecord record;
  record.peak_bytes = found.memory().peak();
  record.messages_sent = found.issuer().sent().messages;
  record.bytes_sent = found.issuer().sent().bytes;
  record.first_step_seconds = first_step_seconds_;
  record.data_wait = found.executor().data_wait();
  return record;
}

}  // namespace carousel
