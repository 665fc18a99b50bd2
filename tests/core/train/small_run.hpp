// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A whole training of a small network in one test: how data, model, stages, schedule, memory and
// transport come together in a trainer. It also keeps all that the trainer tells.

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <random>
#include <tuple>

#include "comm/local_transport.hpp"
#include "comm/rounds_transport.hpp"
#include "core/base/vectors.hpp"
#include "core/data/image_source.hpp"
#include "core/data/prefetcher.hpp"
#include "core/model/freeze.hpp"
#include "core/model/kernels.hpp"
#include "core/proof/checker.hpp"
#include "core/train/trainer.hpp"
#include "layers/factory.hpp"
#include "tests/core/train/hesitant.hpp"

namespace carousel::test {

/// What a test decides; the model has four linear layers of unlike size unless the test says
/// otherwise, so that S may be 1 to 4.
struct SmallDeck {
  ParallelConfig parallel;
  TrainConfig train = {.micro_batch_size = 5, .steps = 12, .optimizer = {}, .schedule = {}};
  CheckpointConfig checkpoint = {};
  ProfileConfig profile = {.steps = ""};
  ModelConfig model = {.name = "mlp", .widths = {64, 20, 17, 13, 10}};
  TaskConfig task = {};
  KernelChoice kernels = {.block = vector_block};
  AugmentConfig augment = {};
  int workers = 1;
  bool rounds = false;  // messages are exchanged in rounds
  std::function<std::shared_ptr<VendorHandles>(const ExecutionSpace&)> vendor = {};
  Helping helping = Helping::helped;
  bool staged = false;                // messages under way lie in host memory
  std::optional<unsigned> late = {};  // messages are late at random, with this seed
  bool rehearses = false;
  int queues = 1;  // of a device, whose tasks come in an order that is random
};

/// A named copy of a tensor.
struct HostTensor {
  int stage = 0;
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<real> values;
  int state = 0;  // of the optimizer
};

/// What a checkpoint holds of the stages that devices of this process own.
struct Snapshot {
  std::int64_t step = 0;
  std::vector<HostTensor> parameters, previous, predicted, optimizer, buffers;
};

/// Pieces of a tensor come from several devices, in any order.
[[nodiscard]] inline Snapshot snapshot(Trainer& trainer) {
  Snapshot result;
  result.step = trainer.steps();
  trainer.show_state([&](const StatePiece& piece) {
    std::vector<HostTensor>& part = piece.part == StatePart::parameters  ? result.parameters
                                    : piece.part == StatePart::previous  ? result.previous
                                    : piece.part == StatePart::predicted ? result.predicted
                                    : piece.part == StatePart::optimizer ? result.optimizer
                                                                         : result.buffers;
    auto tensor = std::ranges::find_if(part, [&](const HostTensor& other) {
      return other.name == piece.spec.name && other.state == piece.state;
    });
    if (tensor == part.end()) {
      const auto size = static_cast<std::size_t>(piece.spec.size());
      part.push_back({piece.stage, piece.spec.name, piece.spec.shape, {}, piece.state});
      tensor = part.end() - 1;
      tensor->values.assign(size, std::numeric_limits<real>::quiet_NaN());
    }
    std::ranges::copy(piece.values, tensor->values.begin() + piece.first);
  });
  const auto place = [](const HostTensor& tensor) {
    return std::tie(tensor.stage, tensor.state, tensor.name);
  };
  for (auto* part : {&result.parameters, &result.previous, &result.predicted, &result.optimizer,
                     &result.buffers})
    std::ranges::sort(*part, {}, place);
  return result;
}

/// All tensors of a snapshot: part, name, and for the optimizer which of its states.
[[nodiscard]] inline std::map<std::string, const HostTensor*> by_name(const Snapshot& all) {
  std::map<std::string, const HostTensor*> result;
  const auto add = [&](StatePart part, const std::vector<HostTensor>& tensors) {
    std::map<std::string, int> met;
    for (const HostTensor& tensor : tensors)
      result[fmt::format("{} {} {}", static_cast<int>(part), met[tensor.name]++, tensor.name)] =
          &tensor;
  };
  add(StatePart::parameters, all.parameters);
  add(StatePart::previous, all.previous);
  add(StatePart::predicted, all.predicted);
  add(StatePart::optimizer, all.optimizer);
  add(StatePart::buffers, all.buffers);
  return result;
}

[[nodiscard]] inline StateSource source_of(const Snapshot& all) {
  return [&all, tensors = by_name(all)](StatePart part, int state, const ParameterSpec& spec,
                                        std::span<real> values) {
    const std::string name = fmt::format("{} {} {}", static_cast<int>(part), state, spec.name);
    const auto found = tensors.find(name);
    ASSERT_NE(found, tensors.end()) << name;
    ASSERT_EQ(values.size(), found->second->values.size());
    std::ranges::copy(found->second->values, values.begin());
  };
}

/// Trains to the end and keeps every checkpoint.
[[nodiscard]] inline std::vector<Snapshot> train_and_save(Trainer& trainer) {
  std::vector<Snapshot> saved;
  for (bool more = true; more;) {
    more = trainer.advance();
    if (trainer.agenda().saves_after(trainer.steps())) saved.push_back(snapshot(trainer));
    trainer.evaluate_when_due();
  }
  return saved;
}

/// One device of the plan in this process, and how it reaches the others: by a transport, or by a
/// queue, which holds so many bytes for tokens.
struct Process {
  int device = 0;
  std::function<std::unique_ptr<Transport>(const Schedule& schedule, Clock clock)> connect;
  std::function<std::unique_ptr<CommunicationQueue>(const Schedule& schedule, Clock clock)> queue =
      {};
  int token_bytes = 0;
};

/// Everything the trainer told; a number for every step.
struct Story {
  std::vector<StepRecord> steps;
  std::vector<EvaluationRecord> evaluations;
  std::vector<std::vector<std::vector<std::uint64_t>>> receipts;  // [device][stage][step]
  std::vector<Segment> segments;                                  // as they ended
};

class SmallRun final : public TrainingObserver {
 public:
  /// All devices of the plan in this process, or the one named.
  SmallRun(const ExecutionSpace& exec, const Dataset& dataset, const SmallDeck& deck,
           const Process* process = nullptr, const Beginning& beginning = {})
      : first_here_(process == nullptr ? 0 : process->device),
        deck_(deck),
        source_(dataset, deck_.augment, seed),
        description_(model_of(deck, source_, dataset.classes())),
        model_(choose_kernels(description_, deck.kernels)),
        partition_(partition_model(model_, deck.parallel.stages, deck.parallel.balance)),
        stages_(cut_stages(deck.parallel,
                           plan_stages(model_, partition_, deck.train.micro_batch_size))),
        schedule_(schedule_of(deck, stages_)),
        memory_(plan_memory(memory_spec(process), stages_, schedule_)),
        hub_(exec, schedule_.groups(), operations_of(schedule_), [this] { return seconds(); }),
        trainer_(exec, trainer_spec(dataset, process, beginning), *this) {
    check_schedule(schedule_);
    story_.receipts.assign(schedule_.devices(),
                           std::vector<std::vector<std::uint64_t>>(stages_.size()));
  }

  /// The network of the deck, and the layers that compute it.
  [[nodiscard]] const Model& description() const { return description_; }
  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] const Partition& partition() const { return partition_; }
  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  [[nodiscard]] const MemoryPlan& memory() const { return memory_; }
  [[nodiscard]] const SmallDeck& deck() const { return deck_; }
  [[nodiscard]] Trainer& trainer() { return trainer_; }
  [[nodiscard]] const Trainer& trainer() const { return trainer_; }
  [[nodiscard]] const Story& story() const { return story_; }

  /// Makes room for what will be told in steps, for tests that watch the heap.
  void reserve_story() { story_.steps.reserve(static_cast<std::size_t>(deck_.train.steps)); }

  /// Called after what is told was written down.
  std::function<void(const StepRecord&)> after_step = [](const StepRecord&) {};
  std::function<void(const ExecutionSpace&, int, std::int64_t, int, const real*)> after_update;
  std::function<void(const EvaluationProgress&)> after_part = [](const EvaluationProgress&) {};
  std::function<void(int, const Recorder&)> after_segment = [](int, const Recorder&) {};
  /// Asked in every backward of every device.
  std::function<bool()> wants_pause = [] { return false; };
  /// Replaces the clock, which otherwise counts how often it was asked.
  std::function<double()> seconds = [this] { return static_cast<double>(++ticks_); };

  void on_step(const StepRecord& step) override {
    story_.steps.push_back(step);
    after_step(step);
  }
  void on_update(const ExecutionSpace& queue, int device, std::int64_t step, int stage,
                 const real* theta, std::int64_t /*size*/) override {
    if (after_update) after_update(queue, device, step, stage, theta);
  }
  void on_evaluating(const EvaluationProgress& progress) override { after_part(progress); }
  void on_evaluation(const EvaluationRecord& evaluation) override {
    story_.evaluations.push_back(evaluation);
  }
  void on_segment_end(int device, const Recorder& recorder) override {
    for (const Receipt& receipt : recorder.receipts())
      story_.receipts[device][receipt.stage].push_back(receipt.digest);
    if (device == first_here_)
      story_.segments.push_back(trainer_.device(device).issuer().segment());
    after_segment(device, recorder);
  }

 private:
  static constexpr std::uint64_t seed = 5;

  static Model model_of(const SmallDeck& deck, const Source& source, int classes) {
    Model model = build_model(deck.model, source.spec().shown, classes, deck.task);
    freeze(model, deck.train.freeze);
    return model;
  }

  static Schedule schedule_of(const SmallDeck& deck, const std::vector<StageMemory>& stages) {
    ScheduleSpec spec = schedule_spec(deck.parallel, stages, deck.train.optimizer.clipping());
    spec.rounds = deck.rounds;
    return Schedule(spec);
  }

  /// That all devices have pending at once, at most.
  static int operations_of(const Schedule& schedule) {
    int operations = 0;
    for (int d = 0; d < schedule.devices(); ++d) operations += schedule.buffers(d).requests;
    return operations;
  }

  [[nodiscard]] MemorySpec memory_spec(const Process* process) const {
    const int batch = deck_.train.micro_batch_size;
    const SourceSpec& source = source_.spec();
    const StagingBytes staging = Prefetcher::planned_bytes(source, source_.samples(Pass::training),
                                                           batch, staged_batches, deck_.workers);
    return {
        .input = source.shown,
        .read_bytes = runs_on_host ? 0 : source.input.bytes(),
        .target_bytes = source.target.bytes(),
        .micro_batch_size = batch,
        .optimizer = deck_.train.optimizer,
        .evaluation_batches = (source_.samples(Pass::evaluation) + batch - 1) / batch,
        .staging_bytes = staging.samples,
        .input_staging_bytes = staging.inputs,
        .target_staging_bytes = staging.targets,
        .staged_messages = deck_.staged || (process != nullptr && !process->queue && !runs_on_host),
        .token_bytes = process != nullptr ? process->token_bytes : 0,
        .compute_queues = deck_.queues};
  }

  [[nodiscard]] TrainerSpec trainer_spec(const Dataset& dataset, const Process* process,
                                         const Beginning& beginning) {
    std::vector<int> devices(process != nullptr ? 1 : schedule_.devices());
    std::iota(devices.begin(), devices.end(), first_here_);
    const auto connect = [this, process](int device) {
      std::unique_ptr<Transport> transport =
          process == nullptr ? hub_.transport(device)
                             : process->connect(schedule_, [this] { return seconds(); });
      if (deck_.late)
        transport = std::make_unique<Hesitant>(std::move(transport),
                                               *deck_.late + static_cast<unsigned>(device));
      if (!deck_.rounds) return transport;
      return rounds_.transport(std::move(transport), schedule_.buffers(device).requests);
    };
    std::function<std::unique_ptr<CommunicationQueue>(int)> queue;
    if (process != nullptr && process->queue)
      queue = [this, process](int) {
        return process->queue(schedule_, [this] { return seconds(); });
      };
    return {.model = model_,
            .partition = partition_,
            .schedule = schedule_,
            .memory = memory_,
            .source = source_,
            .mean = mean_of(dataset, deck_.augment),
            .std = std_of(dataset, deck_.augment),
            .train = deck_.train,
            .checkpoint = deck_.checkpoint,
            .profile = deck_.profile,
            .seed = seed,
            .workers = deck_.workers,
            .devices = devices,
            .beginning = beginning,
            .wants_pause = [this] { return wants_pause(); },
            .layers = make_layer,
            .vendor = deck_.vendor,
            .next_lane = [this](std::size_t lanes) { return random_() % lanes; },
            .transport = connect,
            .communication = queue,
            .seconds = [this] { return seconds(); },
            .helping = deck_.helping,
            .rehearses = deck_.rehearses};
  }

  std::mt19937 random_{7};
  std::atomic<std::int64_t> ticks_ = 0;  // transports ask from threads of their own
  int first_here_;
  SmallDeck deck_;
  ImageSource source_;
  Model description_;
  Model model_;
  Partition partition_;
  std::vector<StageMemory> stages_;
  Schedule schedule_;
  MemoryPlan memory_;
  LocalHub hub_;
  RoundsHub rounds_;
  Story story_;
  Trainer trainer_;
};

/// Number of the stage that one of its parameters begins with.
[[nodiscard]] inline std::int64_t first_number(const SmallRun& run, const HostTensor& tensor) {
  const StageMemory& stage = run.memory().stages[tensor.stage];
  std::int64_t first = 0;
  for (int k = 0; k < stage.layers; ++k) {
    for (const ParameterSpec& parameter : run.model().layers[stage.first + k].parameters) {
      if (parameter.name == tensor.name) return parameter.frozen ? -1 : first;
      first += parameter.frozen ? 0 : parameter.size();
    }
  }
  return -1;
}

/// What a device shows of it: of stages that are cut, its pieces, and elsewhere no numbers.
[[nodiscard]] inline Snapshot owned_by(int device, const SmallRun& run, Snapshot all) {
  const int shard = run.schedule().buffers(device).shard;
  for (auto* part :
       {&all.parameters, &all.previous, &all.predicted, &all.optimizer, &all.buffers}) {
    std::erase_if(*part, [&](HostTensor& tensor) {
      if (!run.schedule().shows(device, tensor.stage)) return true;
      if (shard < 0) return false;
      if (part == &all.buffers) return shard > 0;
      const StageMemory& stage = run.memory().stages[tensor.stage];
      const std::int64_t first = first_number(run, tensor);
      if (first < 0) return shard > 0;  // it is frozen
      const std::vector<real> values = tensor.values;
      std::ranges::fill(tensor.values, std::numeric_limits<real>::quiet_NaN());
      bool any = false;
      for (int p = shard; p < std::ssize(stage.pieces); p += stage.shards) {
        const std::int64_t begin = std::max(stage.pieces[p].begin, first) - first;
        const std::int64_t end = std::min(stage.pieces[p].end, first + std::ssize(values)) - first;
        if (begin >= end) continue;
        any = true;
        std::copy(values.begin() + begin, values.begin() + end, tensor.values.begin() + begin);
      }
      return !any;
    });
  }
  return all;
}

}  // namespace carousel::test
