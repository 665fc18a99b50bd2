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
constexpr auto data = [](auto& config) -> auto& {
  return config.data;
};
constexpr auto augment = [](auto& config) -> auto& {
  return config.data.augment;
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
Allowed words(std::vector<std::string> choices) {
  return {.choices = std::move(choices)};
}
template <class Enum>
Allowed one_of(std::initializer_list<Enum> values) {
  Allowed allowed;
  for (const Enum value : values) allowed.choices.emplace_back(to_string(value));
  return allowed;
}

constexpr double most_queues = 64;    // streams that are of use to a GPU
constexpr double most_threads = 512;  // what Kokkos' OpenMP backend has room for
const Allowed anything = {};
const Allowed fraction = within(0, 1);
// Bounds keep products of two of these, and the number of samples of a step, within 32 bits.
const Allowed counts = within(1, most_parallel);

const KeyTraits required = {.missing = Missing::refused};
const KeyTraits optional = {.missing = Missing::nothing};
/// Of keys that have a meaning where another key has one of some values.
KeyTraits only_with(const char* key, std::vector<std::string> values,
                    Missing missing = Missing::standard) {
  return {.missing = missing, .only_with = {{key, std::move(values)}}};
}

/// Of keys in other units, of which a deck gives one.
KeyTraits instead_of(const char* key, std::vector<Condition> only_with = {}) {
  return {.missing = Missing::nothing, .only_with = std::move(only_with), .instead_of = key};
}

/// A row: name, the member that holds the value, what is allowed, help, and what few rows have.
template <class Table, class Struct, class Value>
KeySpec key(const char* name, Table table, Value Struct::*member, Allowed allowed, const char* doc,
            KeyTraits traits = {}) {
  return {name, {table, member}, std::move(allowed), doc, std::move(traits)};
}

std::vector<KeySpec> run_keys() {
  return {
      key("name", run, &RunTable::name, anything, "Name of the run, stored in its files.",
          required),
      key("seed", run, &RunTable::seed, at_least(0),
          "Seeds the initial parameters and the order of the samples."),
      key("output", run, &RunTable::output, anything,
          "Run folder, relative to the folder where the command runs.", required),
      key("resume", run, &RunTable::resume, anything,
          "off: a run folder that holds a run is refused. auto: a run there goes on from its "
          "newest "
          "checkpoint, and one begins where there is none; exit code 0 if it is done. The path of "
          "a "
          "checkpoint: a run begins with it in a folder of its own, or goes on from it in its own "
          "run folder. Model, data, rule and seed must be the same; `carousel help restart` says "
          "more."),
      key("wall_clock", run, &RunTable::wall_clock, anything,
          "Time after which the run writes a checkpoint and ends with exit code 75, such as "
          "\"23:30:00\" or \"2-12:00:00\", from its start. Leave time for a few steps, the "
          "checkpoint and an evaluation.",
          optional),
      key("watchdog_seconds", run, &RunTable::watchdog_seconds, within(0, 1e6, "s"),
          "Ends all ranks when one makes no progress for this long, or for ten times as long while "
          "it reads or writes files. 0 never ends them, not even when a rank dies."),
  };
}

std::vector<KeySpec> model_keys() {
  const auto with = [](std::vector<std::string> names, Missing missing = Missing::refused) {
    return only_with("model.name", std::move(names), missing);
  };
  constexpr int most = 1 << 20;
  return {
      key("name", model, &ModelConfig::name, words({"mlp", "resnet", "vit"}),
          "Kind of network: multi-layer perceptron, residual network or vision transformer."),
      key("widths", model, &ModelConfig::widths, within(1, most),
          "Features of the input, of each hidden layer and of the output.", with({"mlp"})),
      key("dropout", model, &ModelConfig::dropout, Allowed{.min = 0, .max = 1, .open_max = true},
          "Probability that training sets a hidden feature to zero.",
          with({"mlp", "vit"}, Missing::standard)),
      key("depth", model, &ModelConfig::depth, within(1, 4096),
          "Residual network: layers with weights. 18, 34 and 50 are ImageNet's networks; 8, 20, 32 "
          "and 56 are the CIFAR family. Vision transformer: blocks.",
          with({"resnet", "vit"})),
      key("stem", model, &ModelConfig::stem, one_of({Stem::cifar, Stem::imagenet}),
          "First layers. cifar: a 3x3 convolution. imagenet: a 7x7 convolution and a pooling, "
          "which make images smaller by a factor of 4. The CIFAR family takes cifar only.",
          with({"resnet"})),
      key("patch", model, &ModelConfig::patch, within(1, 1024, "pixels"),
          "Side of the square patches that are the tokens.", with({"vit"})),
      key("width", model, &ModelConfig::width, within(1, most),
          "Features of a token. With a patch of 16 pixels, torchvision's vit_b_16 has 768, a depth "
          "of 12 and 12 heads; vit_l_16 has 1024, 24 and 16.",
          with({"vit"})),
      key("heads", model, &ModelConfig::heads, within(1, 1024),
          "Attention heads of a block. They divide the width.", with({"vit"})),
      key("mlp", model, &ModelConfig::mlp, within(0, most),
          "Hidden features of a block. 0 is four times the width.",
          with({"vit"}, Missing::standard)),
  };
}

std::vector<KeySpec> data_keys() {
  return {
      key("file", data, &DataConfig::file, anything,
          "HDF5 data set. A path in the deck is relative to the deck; on the command line, to the "
          "folder where the command runs.",
          required),
      key("workers", data, &DataConfig::workers, within(1, most_threads),
          "Threads of a device that read, decode and resize samples ahead of use. More than one "
          "helps where a run says that it waits for data. Results do not depend on it."),
  };
}

std::vector<KeySpec> augment_keys() {
  const KeyTraits random = only_with("data.augment.crop", {"random"});
  const KeyTraits resized = only_with("data.augment.crop", {"resized"});
  return {
      key("size", augment, &AugmentConfig::size, within(0, 1 << 14, "pixels"),
          "Side of the square images that the model sees. 0: pictures as they are, which then must "
          "have one size."),
      key("resize", augment, &AugmentConfig::resize, within(0, 1 << 14, "pixels"),
          "Shorter side that pictures are resized to before size is cut out of their centre, or by "
          "crop = random. 0: size. With crop = resized it is of evaluations only."),
      key("crop", augment, &AugmentConfig::crop,
          one_of({CropKind::centre, CropKind::random, CropKind::resized}),
          "What training sees of a picture; evaluations see its centre. random: any place, after "
          "padding. resized: a box of random area, aspect ratio and place, resized to size."),
      key("padding", augment, &AugmentConfig::padding, within(0, 1 << 14, "pixels"),
          "Zeros around a picture on every side before a random crop.", random),
      key("scale", augment, &AugmentConfig::scale, Allowed{.min = 0, .max = 1, .open_min = true},
          "Least and greatest share of a picture's area.", resized),
      key("ratio", augment, &AugmentConfig::ratio, above(0),
          "Least and greatest aspect ratio, width / height.", resized),
      key("flip", augment, &AugmentConfig::flip, fraction,
          "Probability that training mirrors a picture."),
      key("mean", augment, &AugmentConfig::mean, anything,
          "Of each channel, of values from 0 to 1, which is taken off all pixels. Instead of the "
          "data set's, such as for imported weights that were trained on other images.",
          optional),
      key("std", augment, &AugmentConfig::std, above(0),
          "Of each channel, by which all pixels are divided. Likewise.", optional),
  };
}

std::vector<KeySpec> parallel_keys() {
  return {
      key("rule", parallel, &ParallelConfig::rule,
          one_of({RuleKind::dp, RuleKind::cdp_v1, RuleKind::cdp_v2}),
          "Which parameters a gradient is computed with. dp: those of the current step. cdp-v1: "
          "those of the step before. cdp-v2: the freshest that exist in time."),
      key("placement", parallel, &ParallelConfig::placement,
          one_of({Placement::single, Placement::replicated, Placement::model, Placement::pipeline,
                  Placement::sharded}),
          "Which device runs what. single: one device runs everything. replicated: a device for "
          "each micro-batch. model: a device for each stage of each micro-batch; cyclic rules need "
          "about half of them. pipeline: a device for each stage. sharded: as replicated, but each "
          "parameter is stored on one device."),
      key("order", parallel, &ParallelConfig::order, one_of({Order::together, Order::accumulate}),
          "together: all micro-batches of a step at once. accumulate: one after the other.",
          {.only_with = {{"parallel.rule", {"dp"}}, {"parallel.placement", {"single"}}}}),
      key("micro_batches", parallel, &ParallelConfig::micro_batches, counts,
          "Number of micro-batches in a training step, N."),
      key("stages", parallel, &ParallelConfig::stages, counts,
          "Number of consecutive stages of the model, S."),
      key("balance", parallel, &ParallelConfig::balance,
          one_of({Balance::flops, Balance::activations, Balance::parameters, Balance::layers,
                  Balance::time}),
          "What the cut makes equal between stages. time needs a [machine] table."),
      key("slack", parallel, &ParallelConfig::slack, within(0, most_parallel),
          "Extra time for messages: each unit gives them two more time steps. 0 is the paper's "
          "cdp-v2. At most parallel.stages.",
          {.only_with = {{"parallel.rule", {"cdp-v2"}}}}),
      key("reduction", parallel, &ParallelConfig::reduction,
          one_of({Reduction::ordered, Reduction::fast, Reduction::overlapped, Reduction::owner,
                  Reduction::local}),
          "How gradients are summed. ordered: in the order of the micro-batches, with the same "
          "bits everywhere. fast: by collectives of the library (dp, or slots of several "
          "micro-batches). overlapped: by one all-reduce for each stage, beside the backward pass "
          "(dp, replicated). owner: by one reduction to a device that alone updates the stage and "
          "broadcasts it, which is ZeRO-1 (dp, replicated). local: first within each device "
          "(cyclic rules, model)."),
      key("transport", whole, &RunConfig::transport,
          one_of({TransportKind::automatic, TransportKind::local, TransportKind::mpi,
                  TransportKind::nccl, TransportKind::rounds}),
          "How devices exchange messages. auto is mpi under a launcher and local without one. nccl "
          "needs a GPU for each rank. rounds is auto with messages in groups that wait for each "
          "other, as NCCL's do: for tests."),
      key("gpu_aware", whole, &RunConfig::gpu_aware, anything,
          "Whether MPI is given memory of GPUs, where the library takes it, instead of copies in "
          "host memory.",
          only_with("parallel.transport", {"auto", "mpi", "rounds"})),
  };
}

std::vector<KeySpec> train_keys() {
  return {
      key("micro_batch_size", train, &TrainConfig::micro_batch_size,
          within(1, most_micro_batch_size), "Samples in a micro-batch.", required),
      key("epochs", train, &TrainConfig::epochs, within(1, 1e9),
          "Length of the training in passes over the training set. Give either this or steps.",
          optional),
      key("steps", train, &TrainConfig::steps, within(1, 1e12),
          "Length of the training in training steps. Give either this or epochs.",
          instead_of("train.epochs")),
      key("evaluate_every", train, &TrainConfig::evaluate_every, within(0, 1e9, "epochs"),
          "Interval between evaluations on the test set. 0 evaluates only at the end."),
      key("label_smoothing", train, &TrainConfig::label_smoothing, fraction,
          "Share of the target that is spread evenly over all classes. Evaluation does not "
          "smooth."),
      key("start", train, &TrainConfig::start, anything,
          "Checkpoint, also of `carousel import weights`, whose weights training starts with. "
          "Optimizer and steps start anew. Mean and std are those that the weights were trained "
          "with, unless the deck gives its own; other names of classes need new_head. Relative as "
          "data.file.",
          optional),
      key("new_head", train, &TrainConfig::new_head, anything,
          "Whether the last layer with weights starts anew, so that train.start, or the file of "
          "`carousel import weights`, may be of other classes."),
  };
}

std::vector<KeySpec> optimizer_keys() {
  const KeyTraits sgd = only_with("train.optimizer.name", {"sgd"});
  const KeyTraits adamw = only_with("train.optimizer.name", {"adamw"});
  const Allowed below_one = {.min = 0, .max = 1, .open_max = true};
  return {
      key("name", optimizer, &OptimizerConfig::kind,
          one_of({OptimizerKind::sgd, OptimizerKind::adamw}),
          "How the parameters are updated: PyTorch's SGD or AdamW."),
      key("learning_rate", optimizer, &OptimizerConfig::learning_rate, at_least(0),
          "Highest learning rate of the schedule."),
      key("momentum", optimizer, &OptimizerConfig::momentum, fraction,
          "Share of its velocity that a parameter keeps from step to step.", sgd),
      key("dampening", optimizer, &OptimizerConfig::dampening, fraction,
          "Share of a gradient that does not enter the velocity.", sgd),
      key("weight_decay", optimizer, &OptimizerConfig::weight_decay, at_least(0),
          "sgd: multiple of the parameters that is added to their gradient. adamw: multiple of "
          "the learning rate by which they shrink, 0.01 in PyTorch unless told otherwise."),
      key("decay_norm_and_bias", optimizer, &OptimizerConfig::decay_norm_and_bias, anything,
          "Whether weight decay applies to biases and norms, too."),
      key("clip_norm", optimizer, &OptimizerConfig::clip_norm, at_least(0),
          "Most that the norm of the whole gradient may have; a longer one is shortened to it, as "
          "PyTorch's clip_grad_norm_ does. Every update then waits for all gradients, which cyclic "
          "rules never have at once; they have clip_stage_norm. 0 shortens none.",
          only_with("parallel.rule", {"dp"})),
      key("clip_stage_norm", optimizer, &OptimizerConfig::clip_stage_norm, at_least(0),
          "The same for the gradient of each stage by itself, under every rule. It depends on "
          "where "
          "stages begin."),
      key("nesterov", optimizer, &OptimizerConfig::nesterov, anything,
          "Nesterov's momentum. It needs momentum above 0 and dampening = 0.", sgd),
      key("beta1", optimizer, &OptimizerConfig::beta1, below_one,
          "Share of the mean of gradients that is kept from step to step.", adamw),
      key("beta2", optimizer, &OptimizerConfig::beta2, below_one,
          "Share of the mean of their squares that is kept from step to step.", adamw),
      key("epsilon", optimizer, &OptimizerConfig::epsilon, at_least(1e-37),  // not 0 as a float
          "What is added to the root of that mean, by which gradients are divided.", adamw),
  };
}

std::vector<KeySpec> schedule_keys() {
  const auto with = [](std::vector<std::string> names, Missing missing = Missing::standard) {
    return only_with("train.schedule.name", std::move(names), missing);
  };
  const KeyTraits not_one_cycle = with({"constant", "step", "multistep", "cosine"});
  const KeyTraits one_cycle = with({"one-cycle"});
  return {
      key("name", schedule, &LearningRateConfig::kind,
          one_of({ScheduleKind::constant, ScheduleKind::step, ScheduleKind::multistep,
                  ScheduleKind::cosine, ScheduleKind::one_cycle}),
          "How the learning rate changes during training."),
      key("warmup_epochs", schedule, &LearningRateConfig::warmup_epochs, at_least(0, "epochs"),
          "Length of the linear rise of the learning rate at the start.", not_one_cycle),
      key("warmup_steps", schedule, &LearningRateConfig::warmup_steps,
          within(0, 1e12, "training steps"), "The same in training steps; give either.",
          instead_of("train.schedule.warmup_epochs", not_one_cycle.only_with)),
      key("warmup_factor", schedule, &LearningRateConfig::warmup_factor, fraction,
          "Where that rise starts, as a fraction of the learning rate.", not_one_cycle),
      key("step_epochs", schedule, &LearningRateConfig::step_epochs, above(0, "epochs"),
          "Interval between drops of the learning rate; what is no whole number of training steps "
          "is rounded to one.",
          with({"step"})),
      key("step_size", schedule, &LearningRateConfig::step_size, within(1, 1e12, "training steps"),
          "The same in training steps, as PyTorch's StepLR has it; give either.",
          instead_of("train.schedule.step_epochs", with({"step"}).only_with)),
      key("milestones", schedule, &LearningRateConfig::milestones, above(0, "epochs"),
          "When the learning rate drops, in rising order; inside of a training step, it drops "
          "behind it.",
          with({"multistep"}, Missing::nothing)),
      key("milestone_steps", schedule, &LearningRateConfig::milestone_steps,
          within(1, 1e12, "training steps"), "The same in training steps; give either.",
          instead_of("train.schedule.milestones", with({"multistep"}).only_with)),
      key("gamma", schedule, &LearningRateConfig::gamma, fraction, "Factor of each drop.",
          with({"step", "multistep"})),
      key("final_factor", schedule, &LearningRateConfig::final_factor, fraction,
          "Learning rate at the end, as a fraction of the highest.", with({"cosine"})),
      key("peak_fraction", schedule, &LearningRateConfig::peak_fraction,
          Allowed{.min = 0, .max = 1, .open_min = true, .open_max = true},
          "Share of the training during which the learning rate rises.", one_cycle),
      key("initial_divisor", schedule, &LearningRateConfig::initial_divisor, at_least(1),
          "Highest learning rate divided by the first.", one_cycle),
      key("final_divisor", schedule, &LearningRateConfig::final_divisor, at_least(1),
          "First learning rate divided by the last.", one_cycle),
      key("per_epoch", schedule, &LearningRateConfig::per_epoch, anything,
          "Whether the learning rate changes only between epochs; keys in training steps count "
          "each of them."),
  };
}

std::vector<KeySpec> engine_keys() {
  const KeyTraits resnet = only_with("model.name", {"resnet"});
  return {
      key("threads", engine, &EngineConfig::threads, within(0, most_threads),
          "Threads of one process. 0 takes KOKKOS_NUM_THREADS or OMP_NUM_THREADS, or shares the "
          "cores among the ranks of a node. Each has a few MB of scratch memory for tiles, beyond "
          "what plans count."),
      key("device", engine, &EngineConfig::device, within(0, 1023),
          "GPU of a process that no launcher has started, of those that it sees, counted from 0. "
          "Ranks take theirs by themselves.",
          optional),
      key("winograd", engine, &EngineConfig::winograd, anything,
          "Whether 3x3 convolutions may use Winograd's algorithm, about twice as fast and a little "
          "less precise than direct sums.",
          resnet),
      key("recompute", engine, &EngineConfig::recompute,
          one_of({Recompute::none, Recompute::cheap, Recompute::stage}),
          "What backward computes again instead of keeping it. cheap: norms and activation "
          "functions in front of convolutions, poolings and the linear layers of tokens. stage: "
          "also the whole forward of each stage, so that only what leaves the stage is kept. In "
          "fp32 no choice changes the bits of a stage, but none may cut stages elsewhere; in bf16, "
          "none also rounds what norms hand to convolutions and poolings."),
      key("vendor", engine, &EngineConfig::vendor, one_of({VendorUse::automatic, VendorUse::none}),
          "Kernels of layers that a vendor's libraries have, too. auto takes the vendor's where "
          "the build has them: in a build for GPUs cuBLASLt's for linear layers and cuDNN's for "
          "convolutions and, in bf16, attention."),
      key("queues", engine, &EngineConfig::queues, within(1, most_queues),
          "Compute queues of a device, at most N: the passes of other micro-batches that are due "
          "at the same time may then run at the same time on a GPU. Each queue has scratch and "
          "workspace of its own. Results do not depend on it; CPUs run one pass after the other.",
          {.only_with = {{"parallel.rule", {"cdp-v1", "cdp-v2"}},
                         {"parallel.placement", {"single"}}}}),
      key("precision", engine, &EngineConfig::precision,
          one_of({DataType::full, DataType::bfloat16}),
          "Type of activations and weights where they are kept and sent. bf16: both take half the "
          "memory, and so do messages that carry them; sums, gradients, biases, norms and what the "
          "optimizer updates, a further copy of the weights, stay fp32: it saves memory where "
          "activations are most of it. cuDNN's gradients of weights are rounded before they are "
          "summed. CPUs compute in fp32 and round, which is slower and takes workspace."),
  };
}

std::vector<KeySpec> checkpoint_keys() {
  return {
      key("every", checkpoint, &CheckpointConfig::every, within(0, 1e9, "epochs"),
          "Interval between checkpoints. 0 writes none after epochs. The end of a run always has "
          "one."),
      key("every_steps", checkpoint, &CheckpointConfig::every_steps,
          within(0, 1e12, "training steps"),
          "Interval between further checkpoints. 0 writes none."),
      key("every_minutes", checkpoint, &CheckpointConfig::every_minutes, within(0, 1e9, "minutes"),
          "Interval between further checkpoints, which come a few steps later. 0 writes none."),
      key("keep", checkpoint, &CheckpointConfig::keep, within(0, 1e9),
          "How many checkpoints stay, the newest ones. 0 keeps all."),
      key("keep_best", checkpoint, &CheckpointConfig::keep_best, anything,
          "Whether there is a checkpoint for every evaluation, and the one of the highest accuracy "
          "stays, as checkpoints/best.h5, the first of several."),
  };
}

std::vector<KeySpec> profile_keys() {
  return {
      key("steps", profile, &ProfileConfig::steps, anything,
          "Training steps whose actions are recorded, as Python slices. \"\" records none."),
      key("audit", profile, &ProfileConfig::audit, anything,
          "Whether to record samples and parameters of every step, so that anybody can replay the "
          "run."),
  };
}

std::vector<KeySpec> machine_keys() {
  return {
      key("flops", machine, &Machine::flops, at_least(1, "FLOP/s"),
          "Speed at which one device computes.", required),
      key("memory_bandwidth", machine, &Machine::memory_bandwidth, at_least(1, "bytes/s"),
          "Speed at which one device reads and writes its memory.", required),
      key("node_latency", machine, &Machine::latency_inside, at_least(0, "seconds"),
          "Latency of a message between two devices of a node.", required),
      key("node_bandwidth", machine, &Machine::bandwidth_inside, at_least(1, "bytes/s"),
          "Bandwidth from one device of a node to another, in each direction.", required),
      key("network_latency", machine, &Machine::latency_between, at_least(0, "seconds"),
          "Latency of a message between devices of two nodes.", required),
      key("network_bandwidth", machine, &Machine::bandwidth_between, at_least(1, "bytes/s"),
          "Bandwidth from a device to one of another node, in each direction.", required),
      key("devices_per_node", machine, &Machine::devices_per_node, counts,
          "Devices of a node. They have consecutive numbers.", required),
      key("devices", machine, &Machine::devices, within(1, 1e6),
          "Devices that plan --advise may use. Without this key, as many as the deck's plan has.",
          optional),
      key("memory", machine, &Machine::memory, above(0, "bytes"),
          "Memory of a device, which the plans of plan --advise must fit.", optional),
      key("jitter", machine, &Machine::jitter, fraction,
          "Relative standard deviation of the time of each action, drawn at random."),
      key("slow_factor", machine, &Machine::slow_factor, within(1, 1000),
          "How many times as long as the others one slow device takes."),
      key("slow_device", machine, &Machine::slow_device, within(0, 1e9),
          "Number of the slow device."),
  };
}

std::vector<TableSpec> make_tables() {
  std::vector<TableSpec> tables = {
      {"run", "name and folder of the run", run_keys()},
      {"model", "the network", model_keys()},
      {"data", "the data set", data_keys()},
      {"data.augment", "what the model sees of pictures", augment_keys()},
      {"parallel", "how a training step is spread over devices and time", parallel_keys()},
      {"train", "length of the training and size of its micro-batches", train_keys()},
      {"train.optimizer", "how gradients change the parameters", optimizer_keys()},
      {"train.schedule", "how the learning rate changes", schedule_keys()},
      {"engine", "how the kernels run", engine_keys()},
      {"checkpoint", "how often checkpoints are written, and how many stay", checkpoint_keys()},
      {"profile", "what a run records beyond its losses", profile_keys()},
      {"machine", "optional: the cluster whose step times plan predicts", machine_keys(), true},
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
