// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/schema.hpp"

#include <utility>

#include "core/plan/rule.hpp"
#include "core/train/config.hpp"

namespace carousel {
namespace {

constexpr double most_threads = 512;  // what Kokkos' OpenMP backend has room for
// Bounds keep products of two of these, and the number of samples of a step, within 32 bits.
constexpr Range counts = {.min = 1, .max = most_parallel};
constexpr Range not_negative = {.min = 0};
constexpr Range fraction = {.min = 0, .max = 1};

DeckValue text(const char* value) {
  return {std::string(value)};
}
DeckValue integer(std::int64_t value) {
  return {value};
}
DeckValue number(double value) {
  return {value};
}
DeckValue flag(bool value) {
  return {value};
}

std::vector<KeySpec> run_keys() {
  return {
      {.name = "name", .doc = "What the run is called in its files.", .required = true},
      {.name = "seed",
       .type = KeyType::integer,
       .doc = "Seed of the initial parameters and of the order of the samples.",
       .standard = integer(1),
       .range = not_negative},
      {.name = "output",
       .doc = "Run folder, relative to where the command runs.",
       .required = true},
      {.name = "watchdog_seconds",
       .type = KeyType::number,
       .doc =
           "All ranks end when one makes no progress for so long, or for ten times as long at its "
           "files; 0: never, nor when one dies.",
       .standard = number(300),
       .range = {.min = 0, .max = 1e6},
       .unit = "s"},
  };
}

std::vector<KeySpec> model_keys() {
  return {
      {.name = "name",
       .doc = "Kind of network.",
       .standard = text("mlp"),
       .choices = {"mlp", "resnet"},
       .later = {"vit"}},
      {.name = "widths",
       .type = KeyType::integers,
       .doc = "Features of the input, of every hidden layer, and of the output.",
       .required = true,
       .range = {.min = 1, .max = 1 << 20},
       .only_with = {{"model.name", {"mlp"}}}},
      {.name = "dropout",
       .type = KeyType::number,
       .doc = "Probability that training sets a hidden feature to zero.",
       .standard = number(0),
       .range = {.min = 0, .max = 1, .open_max = true},
       .only_with = {{"model.name", {"mlp"}}}},
      {.name = "depth",
       .type = KeyType::integer,
       .doc = "Layers with weights: 18, 34 or 50, or of the CIFAR family 8, 20, 32 or 56.",
       .required = true,
       .range = {.min = 1, .max = 4096},
       .only_with = {{"model.name", {"resnet"}}}},
      {.name = "stem",
       .doc = "What it begins with: a 3x3 convolution, or one of 7x7 and a pooling, which together "
              "make images smaller by 4. The CIFAR family has the former.",
       .required = true,
       .choices = {"cifar", "imagenet"},
       .only_with = {{"model.name", {"resnet"}}}},
  };
}

std::vector<KeySpec> data_keys() {
  return {
      {.name = "file",
       .doc = "Data set (HDF5), relative to the deck; on the command line, to where the command "
              "runs.",
       .required = true},
  };
}

std::vector<KeySpec> parallel_keys() {
  return {
      {.name = "rule",
       .doc = "Which parameters a gradient is computed with.",
       .standard = text("cdp-v2"),
       .choices = {"dp", "cdp-v1", "cdp-v2"}},
      {.name = "placement",
       .doc = "Which device runs what: one device all; a device for every micro-batch; for every "
              "stage of it (model) or every stage (pipeline); as replicated with parameters on "
              "one device each (sharded).",
       .standard = text("single"),
       .choices = {"single", "replicated", "model", "pipeline", "sharded"}},
      {.name = "order",
       .doc = "Micro-batches of a step all at once, or one after the other.",
       .standard = text("together"),
       .choices = {"together", "accumulate"},
       .only_with = {{"parallel.rule", {"dp"}}, {"parallel.placement", {"single"}}}},
      {.name = "micro_batches",
       .type = KeyType::integer,
       .doc = "N, micro-batches of a training step.",
       .standard = integer(1),
       .range = counts},
      {.name = "stages",
       .type = KeyType::integer,
       .doc = "S, consecutive stages the model is cut into.",
       .standard = integer(1),
       .range = counts},
      {.name = "balance",
       .doc = "What the cut into stages makes even; time is that of [machine].",
       .standard = text("flops"),
       .choices = {"flops", "activations", "parameters", "layers", "time"}},
      {.name = "slack",
       .type = KeyType::integer,
       .doc = "0 is the paper's v2; each unit gives messages two more time steps; at most stages.",
       .standard = integer(0),
       .range = {.min = 0, .max = counts.max},
       .only_with = {{"parallel.rule", {"cdp-v2"}}}},
      {.name = "reduction",
       .doc =
           "Sum of gradients in micro-batch order (same bits everywhere), by the library's "
           "collectives (dp; cyclic rules within a slot), by one all-reduce per stage beside the "
           "backward (dp replicated), or first within a device (cyclic model).",
       .standard = text("ordered"),
       .choices = {"ordered", "fast", "overlapped", "local"}},
      {.name = "transport",
       .doc = "How devices exchange messages; auto is mpi under a launcher, local without.",
       .standard = text("auto"),
       .choices = {"auto", "local", "mpi"},
       .later = {"nccl"}},
  };
}

std::vector<KeySpec> train_keys() {
  return {
      {.name = "micro_batch_size",
       .type = KeyType::integer,
       .doc = "Samples of one micro-batch.",
       .required = true,
       .range = {.min = 1, .max = most_micro_batch_size}},
      {.name = "epochs",
       .type = KeyType::integer,
       .doc = "Passes over the training set; either this or steps.",
       .range = {.min = 1, .max = 1e9}},
      {.name = "steps",
       .type = KeyType::integer,
       .doc = "Training steps; either this or epochs.",
       .range = {.min = 1, .max = 1e12}},
      {.name = "evaluate_every",
       .type = KeyType::integer,
       .doc = "Distance of evaluations on the test set; 0 is only at the end.",
       .standard = integer(1),
       .range = {.min = 0, .max = 1e9},
       .unit = "epochs"},
      {.name = "label_smoothing",
       .type = KeyType::number,
       .doc = "Part of the target that all classes have alike; evaluation has none.",
       .standard = number(0),
       .range = fraction},
  };
}

std::vector<KeySpec> optimizer_keys() {
  return {
      {.name = "name",
       .doc = "Update of the parameters; sgd is that of PyTorch.",
       .standard = text("sgd"),
       .choices = {"sgd"},
       .later = {"adam", "adamw"}},
      {.name = "learning_rate",
       .type = KeyType::number,
       .doc = "Highest learning rate of the schedule.",
       .standard = number(0.1),
       .range = not_negative},
      {.name = "momentum",
       .type = KeyType::number,
       .doc = "Factor of the velocity of the step before.",
       .standard = number(0),
       .range = fraction},
      {.name = "dampening",
       .type = KeyType::number,
       .doc = "Part of a gradient that does not enter the velocity.",
       .standard = number(0),
       .range = fraction},
      {.name = "weight_decay",
       .type = KeyType::number,
       .doc = "Multiple of the parameters added to their gradient.",
       .standard = number(0),
       .range = not_negative},
      {.name = "decay_norm_and_bias",
       .type = KeyType::boolean,
       .doc = "Weight decay of biases and batch norm, too.",
       .standard = flag(true)},
      {.name = "nesterov",
       .type = KeyType::boolean,
       .doc = "Nesterov's momentum; needs momentum > 0 and dampening = 0.",
       .standard = flag(false)},
  };
}

std::vector<KeySpec> schedule_keys() {
  const std::string key = "train.schedule.name";
  const Condition drops = {key, {"step", "multistep"}};
  const Condition one_cycle = {key, {"one-cycle"}};
  const Condition others = {key, {"constant", "step", "multistep", "cosine"}};
  const Range divisor = {.min = 1};
  return {
      {.name = "name",
       .doc = "Learning rate as a function of the update's number.",
       .standard = text("constant"),
       .choices = {"constant", "step", "multistep", "cosine", "one-cycle"}},
      {.name = "warmup_epochs",
       .type = KeyType::number,
       .doc = "Linear rise to the learning rate at the start.",
       .standard = number(0),
       .range = not_negative,
       .only_with = {others},
       .unit = "epochs"},
      {.name = "warmup_factor",
       .type = KeyType::number,
       .doc = "Where the rise starts, as a fraction of the learning rate.",
       .standard = number(0),
       .range = fraction,
       .only_with = {others}},
      {.name = "step_epochs",
       .type = KeyType::number,
       .doc = "Distance of two drops.",
       .standard = number(30),
       .range = {.min = 0, .open_min = true},
       .only_with = {{key, {"step"}}},
       .unit = "epochs"},
      {.name = "milestones",
       .type = KeyType::numbers,
       .doc = "When the learning rate drops, in rising order.",
       .required = true,
       .range = {.min = 0, .open_min = true},
       .only_with = {{key, {"multistep"}}},
       .unit = "epochs"},
      {.name = "gamma",
       .type = KeyType::number,
       .doc = "Factor of a drop.",
       .standard = number(0.1),
       .range = fraction,
       .only_with = {drops}},
      {.name = "final_factor",
       .type = KeyType::number,
       .doc = "Learning rate at the end, as a fraction of the highest.",
       .standard = number(0),
       .range = fraction,
       .only_with = {{key, {"cosine"}}}},
      {.name = "peak_fraction",
       .type = KeyType::number,
       .doc = "Part of the run in which the learning rate rises.",
       .standard = number(0.3),
       .range = {.min = 0, .max = 1, .open_min = true, .open_max = true},
       .only_with = {one_cycle}},
      {.name = "initial_divisor",
       .type = KeyType::number,
       .doc = "Highest learning rate over the first.",
       .standard = number(25),
       .range = divisor,
       .only_with = {one_cycle}},
      {.name = "final_divisor",
       .type = KeyType::number,
       .doc = "First learning rate over the last.",
       .standard = number(1e4),
       .range = divisor,
       .only_with = {one_cycle}},
      {.name = "per_epoch",
       .type = KeyType::boolean,
       .doc = "Change the learning rate only between epochs.",
       .standard = flag(false)},
  };
}

std::vector<KeySpec> engine_keys() {
  return {
      {.name = "threads",
       .type = KeyType::integer,
       .doc = "Threads of one process; 0 is what the environment gives.",
       .standard = integer(0),
       .range = {.min = 0, .max = most_threads}},
  };
}

std::vector<KeySpec> checkpoint_keys() {
  return {
      {.name = "every",
       .type = KeyType::integer,
       .doc = "Distance of checkpoints; 0 is none for epochs. There is always one at the end.",
       .standard = integer(1),
       .range = {.min = 0, .max = 1e9},
       .unit = "epochs"},
      {.name = "every_steps",
       .type = KeyType::integer,
       .doc = "The same for training steps, whatever the epochs; 0 is none.",
       .standard = integer(0),
       .range = {.min = 0, .max = 1e12},
       .unit = "training steps"},
      {.name = "keep",
       .type = KeyType::integer,
       .doc = "The newest checkpoints that stay; 0 is all.",
       .standard = integer(2),
       .range = {.min = 0, .max = 1e9}},
  };
}

std::vector<KeySpec> profile_keys() {
  return {
      {.name = "steps",
       .doc = "Training steps whose actions are recorded, as Python slices; \"\" is none.",
       .standard = text("0:20,::1000")},
      {.name = "audit",
       .type = KeyType::boolean,
       .doc = "Record samples and parameters of every step, so that anybody can replay the run.",
       .standard = flag(false)},
  };
}

std::vector<KeySpec> machine_keys() {
  const auto positive = [](const char* name, const char* doc, const char* unit) {
    return KeySpec{.name = name,
                   .type = KeyType::number,
                   .doc = doc,
                   .required = true,
                   .range = {.min = 1},
                   .unit = unit};
  };
  const auto latency = [](const char* name, const char* doc) {
    return KeySpec{.name = name,
                   .type = KeyType::number,
                   .doc = doc,
                   .required = true,
                   .range = not_negative,
                   .unit = "seconds"};
  };
  return {
      positive("flops", "What one device computes.", "FLOP/s"),
      positive("memory_bandwidth", "What one device reads and writes in its memory.", "bytes/s"),
      latency("node_latency", "Of a message between two devices of a node."),
      positive("node_bandwidth", "From one device of a node to another, in each direction.",
               "bytes/s"),
      latency("network_latency", "Of a message between devices of two nodes."),
      positive("network_bandwidth", "From a device to one of another node, in each direction.",
               "bytes/s"),
      {.name = "devices_per_node",
       .type = KeyType::integer,
       .doc = "Devices of a node, which have consecutive numbers.",
       .required = true,
       .range = counts},
      {.name = "devices",
       .type = KeyType::integer,
       .doc = "Devices that plan --advise may use; without it, as many as the deck's plan.",
       .range = {.min = 1, .max = 1e6}},
      {.name = "memory",
       .type = KeyType::number,
       .doc = "Memory of a device, which plan --advise keeps to.",
       .range = {.min = 0, .open_min = true},
       .unit = "bytes"},
      {.name = "jitter",
       .type = KeyType::number,
       .doc = "Relative standard deviation of the time of every action, at random.",
       .standard = number(0),
       .range = fraction},
      {.name = "slow_factor",
       .type = KeyType::number,
       .doc = "One device takes this many times as long as the others.",
       .standard = number(1),
       .range = {.min = 1, .max = 1000}},
      {.name = "slow_device",
       .type = KeyType::integer,
       .doc = "Which device that is.",
       .standard = integer(0),
       .range = {.min = 0, .max = 1e9}},
  };
}

TableSpec table(const char* name, const char* doc, std::vector<KeySpec> keys) {
  for (KeySpec& spec : keys) spec.table = name;
  return {.name = name, .doc = doc, .keys = std::move(keys)};
}

TableSpec optional_table(const char* name, const char* doc, std::vector<KeySpec> keys) {
  TableSpec spec = table(name, doc, std::move(keys));
  spec.optional = true;
  return spec;
}

}  // namespace

const std::vector<TableSpec>& deck_tables() {
  static const std::vector<TableSpec> tables = {
      table("run", "name and place of the run", run_keys()),
      table("model", "the network", model_keys()),
      table("data", "what it learns from", data_keys()),
      table("parallel", "how a training step is spread over devices and time", parallel_keys()),
      table("train", "how long, and with how many samples at a time", train_keys()),
      table("train.optimizer", "how gradients change parameters", optimizer_keys()),
      table("train.schedule", "how the learning rate changes", schedule_keys()),
      table("engine", "how it is computed", engine_keys()),
      table("checkpoint", "how often all that a run has learned is saved", checkpoint_keys()),
      table("profile", "what is recorded beyond losses", profile_keys()),
      optional_table("machine", "what step times are predicted for; optional", machine_keys()),
  };
  return tables;
}

const KeySpec* find_key(std::string_view key) {
  for (const TableSpec& table : deck_tables())
    for (const KeySpec& spec : table.keys)
      if (spec.key() == key) return &spec;
  return nullptr;
}

bool Range::contains(double value) const {
  return (open_min ? value > min : value >= min) && (open_max ? value < max : value <= max);
}

}  // namespace carousel
