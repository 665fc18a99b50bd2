// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/schema.hpp"

#include <utility>

namespace carousel {
namespace {

// Where the structs of the tables lie.
constexpr auto whole = [](auto& config) -> auto& {
  return config;
};
constexpr auto run = [](auto& config) -> auto& {
  return config.run;
};
constexpr auto model = [](auto& config) -> auto& {
  return config.model;
};
constexpr auto parallel = [](auto& config) -> auto& {
  return config.parallel;
};
constexpr auto train = [](auto& config) -> auto& {
  return config.train;
};
constexpr auto optimizer = [](auto& config) -> auto& {
  return config.train.optimizer;
};
constexpr auto schedule = [](auto& config) -> auto& {
  return config.train.schedule;
};
constexpr auto engine = [](auto& config) -> auto& {
  return config.engine;
};
constexpr auto checkpoint = [](auto& config) -> auto& {
  return config.checkpoint;
};
constexpr auto profile = [](auto& config) -> auto& {
  return config.profile;
};
constexpr auto machine = [](auto& config) -> auto& {
  return *config.machine;
};

Allowed at_least(double min, std::string unit = "") {
  return {.min = min, .unit = std::move(unit)};
}
Allowed above(double min, std::string unit = "") {
  return {.min = min, .open_min = true, .unit = std::move(unit)};
}
Allowed within(double min, double max, std::string unit = "") {
  return {.min = min, .max = max, .unit = std::move(unit)};
}
Allowed words(std::vector<std::string> choices, std::vector<std::string> later = {}) {
  return {.choices = std::move(choices), .later = std::move(later)};
}
template <class Enum>
Allowed one_of(std::initializer_list<Enum> values, std::vector<std::string> later = {}) {
  Allowed allowed = {.later = std::move(later)};
  for (const Enum value : values) allowed.choices.emplace_back(to_string(value));
  return allowed;
}

constexpr double most_threads = 512;  // what Kokkos' OpenMP backend has room for
const Allowed anything = {};
const Allowed fraction = within(0, 1);
// Bounds keep products of two of these, and the number of samples of a step, within 32 bits.
const Allowed counts = within(1, most_parallel);

const KeyTraits required = {.missing = Missing::refused};
const KeyTraits optional = {.missing = Missing::nothing};

/// A row: name, the member that holds the value, what is allowed, help, and what few rows have.
template <class Table, class Struct, class Value>
KeySpec key(const char* name, Table table, Value Struct::*member, Allowed allowed, const char* doc,
            KeyTraits traits = {}) {
  return {name, {table, member}, std::move(allowed), doc, std::move(traits)};
}

std::vector<KeySpec> run_keys() {
  return {
      key("name", run, &RunTable::name, anything, "What the run is called in its files.", required),
      key("seed", run, &RunTable::seed, at_least(0),
          "Seed of the initial parameters and of the order of the samples."),
      key("output", run, &RunTable::output, anything,
          "Run folder, relative to where the command runs.", required),
      key("watchdog_seconds", run, &RunTable::watchdog_seconds, within(0, 1e6, "s"),
          "All ranks end when one makes no progress for so long, or for ten times as long at its "
          "files; 0: never, nor when one dies."),
  };
}

std::vector<KeySpec> model_keys() {
  const std::vector<Condition> mlp = {{"model.name", {"mlp"}}};
  const KeyTraits resnet = {.missing = Missing::refused, .only_with = {{"model.name", {"resnet"}}}};
  return {
      key("name", model, &ModelConfig::name, words({"mlp", "resnet"}, {"vit"}), "Kind of network."),
      key("widths", model, &ModelConfig::widths, within(1, 1 << 20),
          "Features of the input, of every hidden layer, and of the output.",
          {.missing = Missing::refused, .only_with = mlp}),
      key("dropout", model, &ModelConfig::dropout, Allowed{.min = 0, .max = 1, .open_max = true},
          "Probability that training sets a hidden feature to zero.", {.only_with = mlp}),
      key("depth", model, &ModelConfig::depth, within(1, 4096),
          "Layers with weights: 18, 34 or 50, or of the CIFAR family 8, 20, 32 or 56.", resnet),
      key("stem", model, &ModelConfig::stem, one_of({Stem::cifar, Stem::imagenet}),
          "What it begins with: a 3x3 convolution, or one of 7x7 and a pooling, which together "
          "make "
          "images smaller by 4. The CIFAR family has the former.",
          resnet),
  };
}

std::vector<KeySpec> data_keys() {
  return {
      key("file", whole, &RunConfig::data_file, anything,
          "Data set (HDF5), relative to the deck; on the command line, to where the command runs.",
          required),
  };
}

std::vector<KeySpec> parallel_keys() {
  return {
      key("rule", parallel, &ParallelConfig::rule,
          one_of({RuleKind::dp, RuleKind::cdp_v1, RuleKind::cdp_v2}),
          "Which parameters a gradient is computed with."),
      key("placement", parallel, &ParallelConfig::placement,
          one_of({Placement::single, Placement::replicated, Placement::model, Placement::pipeline,
                  Placement::sharded}),
          "Which device runs what: one device all; a device for every micro-batch; for every stage "
          "of "
          "it (model) or every stage (pipeline); as replicated with parameters on one device each "
          "(sharded)."),
      key("order", parallel, &ParallelConfig::order, one_of({Order::together, Order::accumulate}),
          "Micro-batches of a step all at once, or one after the other.",
          {.only_with = {{"parallel.rule", {"dp"}}, {"parallel.placement", {"single"}}}}),
      key("micro_batches", parallel, &ParallelConfig::micro_batches, counts,
          "N, micro-batches of a training step."),
      key("stages", parallel, &ParallelConfig::stages, counts,
          "S, consecutive stages the model is cut into."),
      key("balance", parallel, &ParallelConfig::balance,
          one_of({Balance::flops, Balance::activations, Balance::parameters, Balance::layers,
                  Balance::time}),
          "What the cut into stages makes even; time is that of [machine]."),
      key("slack", parallel, &ParallelConfig::slack, within(0, most_parallel),
          "0 is the paper's v2; each unit gives messages two more time steps; at most stages.",
          {.only_with = {{"parallel.rule", {"cdp-v2"}}}}),
      key("reduction", parallel, &ParallelConfig::reduction,
          one_of({Reduction::ordered, Reduction::fast, Reduction::overlapped, Reduction::local}),
          "Sum of gradients in micro-batch order (same bits everywhere), by the library's "
          "collectives (dp; cyclic rules within a slot), by one all-reduce per stage beside the "
          "backward (dp replicated), or first within a device (cyclic model)."),
      key("transport", whole, &RunConfig::transport,
          one_of({TransportKind::automatic, TransportKind::local, TransportKind::mpi}, {"nccl"}),
          "How devices exchange messages; auto is mpi under a launcher, local without."),
  };
}

std::vector<KeySpec> train_keys() {
  return {
      key("micro_batch_size", train, &TrainConfig::micro_batch_size,
          within(1, most_micro_batch_size), "Samples of one micro-batch.", required),
      key("epochs", train, &TrainConfig::epochs, within(1, 1e9),
          "Passes over the training set; either this or steps.", optional),
      key("steps", train, &TrainConfig::steps, within(1, 1e12),
          "Training steps; either this or epochs.", optional),
      key("evaluate_every", train, &TrainConfig::evaluate_every, within(0, 1e9, "epochs"),
          "Distance of evaluations on the test set; 0 is only at the end."),
      key("label_smoothing", train, &TrainConfig::label_smoothing, fraction,
          "Part of the target that all classes have alike; evaluation has none."),
  };
}

std::vector<KeySpec> optimizer_keys() {
  return {
      key("name", optimizer, &OptimizerConfig::kind,
          one_of({OptimizerKind::sgd}, {"adam", "adamw"}),
          "Update of the parameters; sgd is that of PyTorch."),
      key("learning_rate", optimizer, &OptimizerConfig::learning_rate, at_least(0),
          "Highest learning rate of the schedule."),
      key("momentum", optimizer, &OptimizerConfig::momentum, fraction,
          "Factor of the velocity of the step before."),
      key("dampening", optimizer, &OptimizerConfig::dampening, fraction,
          "Part of a gradient that does not enter the velocity."),
      key("weight_decay", optimizer, &OptimizerConfig::weight_decay, at_least(0),
          "Multiple of the parameters added to their gradient."),
      key("decay_norm_and_bias", optimizer, &OptimizerConfig::decay_norm_and_bias, anything,
          "Weight decay of biases and batch norm, too."),
      key("nesterov", optimizer, &OptimizerConfig::nesterov, anything,
          "Nesterov's momentum; needs momentum > 0 and dampening = 0."),
  };
}

std::vector<KeySpec> schedule_keys() {
  const auto with = [](std::vector<std::string> names, Missing missing = Missing::standard) {
    return KeyTraits{missing, {{"train.schedule.name", std::move(names)}}};
  };
  const KeyTraits not_one_cycle = with({"constant", "step", "multistep", "cosine"});
  const KeyTraits one_cycle = with({"one-cycle"});
  return {
      key("name", schedule, &LearningRateConfig::kind,
          one_of({ScheduleKind::constant, ScheduleKind::step, ScheduleKind::multistep,
                  ScheduleKind::cosine, ScheduleKind::one_cycle}),
          "Learning rate as a function of the update's number."),
      key("warmup_epochs", schedule, &LearningRateConfig::warmup_epochs, at_least(0, "epochs"),
          "Linear rise to the learning rate at the start.", not_one_cycle),
      key("warmup_factor", schedule, &LearningRateConfig::warmup_factor, fraction,
          "Where the rise starts, as a fraction of the learning rate.", not_one_cycle),
      key("step_epochs", schedule, &LearningRateConfig::step_epochs, above(0, "epochs"),
          "Distance of two drops.", with({"step"})),
      key("milestones", schedule, &LearningRateConfig::milestones, above(0, "epochs"),
          "When the learning rate drops, in rising order.", with({"multistep"}, Missing::refused)),
      key("gamma", schedule, &LearningRateConfig::gamma, fraction, "Factor of a drop.",
          with({"step", "multistep"})),
      key("final_factor", schedule, &LearningRateConfig::final_factor, fraction,
          "Learning rate at the end, as a fraction of the highest.", with({"cosine"})),
      key("peak_fraction", schedule, &LearningRateConfig::peak_fraction,
          Allowed{.min = 0, .max = 1, .open_min = true, .open_max = true},
          "Part of the run in which the learning rate rises.", one_cycle),
      key("initial_divisor", schedule, &LearningRateConfig::initial_divisor, at_least(1),
          "Highest learning rate over the first.", one_cycle),
      key("final_divisor", schedule, &LearningRateConfig::final_divisor, at_least(1),
          "First learning rate over the last.", one_cycle),
      key("per_epoch", schedule, &LearningRateConfig::per_epoch, anything,
          "Change the learning rate only between epochs."),
  };
}

std::vector<KeySpec> engine_keys() {
  return {
      key("threads", engine, &EngineConfig::threads, within(0, most_threads),
          "Threads of one process; 0 is what the environment gives."),
  };
}

std::vector<KeySpec> checkpoint_keys() {
  return {
      key("every", checkpoint, &CheckpointConfig::every, within(0, 1e9, "epochs"),
          "Distance of checkpoints; 0 is none for epochs. There is always one at the end."),
      key("every_steps", checkpoint, &CheckpointConfig::every_steps,
          within(0, 1e12, "training steps"),
          "The same for training steps, whatever the epochs; 0 is none."),
      key("keep", checkpoint, &CheckpointConfig::keep, within(0, 1e9),
          "The newest checkpoints that stay; 0 is all."),
  };
}

std::vector<KeySpec> profile_keys() {
  return {
      key("steps", profile, &ProfileConfig::steps, anything,
          "Training steps whose actions are recorded, as Python slices; \"\" is none."),
      key("audit", profile, &ProfileConfig::audit, anything,
          "Record samples and parameters of every step, so that anybody can replay the run."),
  };
}

std::vector<KeySpec> machine_keys() {
  return {
      key("flops", machine, &Machine::flops, at_least(1, "FLOP/s"), "What one device computes.",
          required),
      key("memory_bandwidth", machine, &Machine::memory_bandwidth, at_least(1, "bytes/s"),
          "What one device reads and writes in its memory.", required),
      key("node_latency", machine, &Machine::latency_inside, at_least(0, "seconds"),
          "Of a message between two devices of a node.", required),
      key("node_bandwidth", machine, &Machine::bandwidth_inside, at_least(1, "bytes/s"),
          "From one device of a node to another, in each direction.", required),
      key("network_latency", machine, &Machine::latency_between, at_least(0, "seconds"),
          "Of a message between devices of two nodes.", required),
      key("network_bandwidth", machine, &Machine::bandwidth_between, at_least(1, "bytes/s"),
          "From a device to one of another node, in each direction.", required),
      key("devices_per_node", machine, &Machine::devices_per_node, counts,
          "Devices of a node, which have consecutive numbers.", required),
      key("devices", machine, &Machine::devices, within(1, 1e6),
          "Devices that plan --advise may use; without it, as many as the deck's plan.", optional),
      key("memory", machine, &Machine::memory, above(0, "bytes"),
          "Memory of a device, which plan --advise keeps to.", optional),
      key("jitter", machine, &Machine::jitter, fraction,
          "Relative standard deviation of the time of every action, at random."),
      key("slow_factor", machine, &Machine::slow_factor, within(1, 1000),
          "One device takes this many times as long as the others."),
      key("slow_device", machine, &Machine::slow_device, within(0, 1e9), "Which device that is."),
  };
}

std::vector<TableSpec> make_tables() {
  std::vector<TableSpec> tables = {
      {"run", "name and place of the run", run_keys()},
      {"model", "the network", model_keys()},
      {"data", "what it learns from", data_keys()},
      {"parallel", "how a training step is spread over devices and time", parallel_keys()},
      {"train", "how long, and with how many samples at a time", train_keys()},
      {"train.optimizer", "how gradients change parameters", optimizer_keys()},
      {"train.schedule", "how the learning rate changes", schedule_keys()},
      {"engine", "how it is computed", engine_keys()},
      {"checkpoint", "how often all that a run has learned is saved", checkpoint_keys()},
      {"profile", "what is recorded beyond losses", profile_keys()},
      {"machine", "what step times are predicted for; optional", machine_keys(), true},
  };
  for (TableSpec& table : tables)
    for (KeySpec& spec : table.keys) spec.table = table.name;
  return tables;
}

RunConfig standard_config() {
  RunConfig config;
  config.machine.emplace();
  return config;
}

}  // namespace

const std::vector<TableSpec>& deck_tables() {
  static const std::vector<TableSpec> tables = make_tables();
  return tables;
}

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  for (const TableSpec& table : deck_tables()) names.push_back(table.name);
  return names;
}

std::vector<std::string> key_names() {
  std::vector<std::string> names;
  for (const TableSpec& table : deck_tables())
    for (const KeySpec& spec : table.keys) names.push_back(spec.key());
  return names;
}

const KeySpec* find_key(std::string_view key) {
  for (const TableSpec& table : deck_tables())
    for (const KeySpec& spec : table.keys)
      if (spec.key() == key) return &spec;
  return nullptr;
}

DeckValue standard_value(const KeySpec& spec) {
  static const RunConfig standard = standard_config();
  return spec.member.read(standard);
}

bool Allowed::contains(double value) const {
  return (open_min ? value > min : value >= min) && (open_max ? value < max : value <= max);
}

}  // namespace carousel
