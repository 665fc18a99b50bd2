// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/run_config.hpp"

#include <algorithm>
#include <filesystem>

#include "app/toml_text.hpp"
#include "core/plan/placements/traits.hpp"
#include "core/train/slices.hpp"

namespace carousel {
namespace {

/// The value of an enumeration whose `word` is what the deck says; the schema knows the words.
template <class Enum>
Enum choice(const ResolvedDeck& deck, std::string_view key, std::initializer_list<Enum> values,
            const char* (*word)(Enum) = to_string) {
  for (const Enum value : values)
    if (deck.text(key) == word(value)) return value;
  fail(ExitCode::internal, "{} = \"{}\" is in the schema, but has no meaning", key, deck.text(key));
}

const char* schedule_word(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::constant:
      return "constant";
    case ScheduleKind::step:
      return "step";
    case ScheduleKind::multistep:
      return "multistep";
    case ScheduleKind::cosine:
      return "cosine";
    case ScheduleKind::one_cycle:
      return "one-cycle";
  }
  return "?";
}

int small(const ResolvedDeck& deck, std::string_view key) {
  return static_cast<int>(deck.integer(key));  // the schema bounds it
}

ModelConfig model(const ResolvedDeck& deck) {
  ModelConfig config{.name = deck.text("model.name")};
  if (deck.has("model.widths"))
    for (const double width : deck.numbers("model.widths"))
      config.widths.push_back(static_cast<int>(width));
  if (deck.has("model.dropout")) config.dropout = deck.number("model.dropout");
  if (deck.has("model.depth")) config.depth = small(deck, "model.depth");
  if (deck.has("model.stem"))
    config.stem = choice(deck, "model.stem", {Stem::cifar, Stem::imagenet});
  return config;
}

ParallelConfig parallel(const ResolvedDeck& deck) {
  ParallelConfig config;
  config.rule = choice(deck, "parallel.rule", {RuleKind::dp, RuleKind::cdp_v1, RuleKind::cdp_v2});
  config.placement = choice(deck, "parallel.placement",
                            {Placement::single, Placement::replicated, Placement::model,
                             Placement::pipeline, Placement::sharded});
  if (deck.has("parallel.order"))
    config.order = choice(deck, "parallel.order", {Order::together, Order::accumulate});
  config.reduction =
      choice(deck, "parallel.reduction",
             {Reduction::ordered, Reduction::fast, Reduction::overlapped, Reduction::local});
  config.balance = choice(
      deck, "parallel.balance",
      {Balance::flops, Balance::activations, Balance::parameters, Balance::layers, Balance::time});
  config.micro_batches = small(deck, "parallel.micro_batches");
  config.stages = small(deck, "parallel.stages");
  if (deck.has("parallel.slack")) config.slack = small(deck, "parallel.slack");
  return config;
}

OptimizerConfig optimizer(const ResolvedDeck& deck) {
  return {.learning_rate = deck.number("train.optimizer.learning_rate"),
          .momentum = deck.number("train.optimizer.momentum"),
          .dampening = deck.number("train.optimizer.dampening"),
          .weight_decay = deck.number("train.optimizer.weight_decay"),
          .nesterov = deck.flag("train.optimizer.nesterov"),
          .decay_norm_and_bias = deck.flag("train.optimizer.decay_norm_and_bias")};
}

LearningRateConfig schedule(const ResolvedDeck& deck) {
  LearningRateConfig config;
  config.kind = choice(deck, "train.schedule.name",
                       {ScheduleKind::constant, ScheduleKind::step, ScheduleKind::multistep,
                        ScheduleKind::cosine, ScheduleKind::one_cycle},
                       schedule_word);
  const auto read = [&](std::string_view name, double& value) {
    const std::string key = fmt::format("train.schedule.{}", name);
    if (deck.has(key)) value = deck.number(key);
  };
  read("warmup_epochs", config.warmup_epochs);
  read("warmup_factor", config.warmup_factor);
  read("step_epochs", config.step_epochs);
  read("gamma", config.gamma);
  read("final_factor", config.final_factor);
  read("peak_fraction", config.peak_fraction);
  read("initial_divisor", config.initial_divisor);
  read("final_divisor", config.final_divisor);
  if (deck.has("train.schedule.milestones"))
    config.milestones = deck.numbers("train.schedule.milestones");
  config.per_epoch = deck.flag("train.schedule.per_epoch");
  return config;
}

TrainConfig train(const ResolvedDeck& deck) {
  TrainConfig config;
  config.micro_batch_size = small(deck, "train.micro_batch_size");
  if (deck.has("train.epochs")) config.epochs = small(deck, "train.epochs");
  if (deck.has("train.steps")) config.steps = deck.integer("train.steps");
  config.evaluate_every = small(deck, "train.evaluate_every");
  config.label_smoothing = deck.number("train.label_smoothing");
  config.optimizer = optimizer(deck);
  config.schedule = schedule(deck);
  return config;
}

std::optional<Machine> machine(const ResolvedDeck& deck) {
  if (!deck.has_table("machine")) return std::nullopt;
  Machine machine{.flops = deck.number("machine.flops"),
                  .memory_bandwidth = deck.number("machine.memory_bandwidth"),
                  .latency_inside = deck.number("machine.node_latency"),
                  .bandwidth_inside = deck.number("machine.node_bandwidth"),
                  .latency_between = deck.number("machine.network_latency"),
                  .bandwidth_between = deck.number("machine.network_bandwidth"),
                  .devices_per_node = small(deck, "machine.devices_per_node"),
                  .jitter = deck.number("machine.jitter"),
                  .slow_factor = deck.number("machine.slow_factor"),
                  .slow_device = small(deck, "machine.slow_device")};
  if (deck.has("machine.devices")) machine.devices = small(deck, "machine.devices");
  if (deck.has("machine.memory")) machine.memory = deck.number("machine.memory");
  return machine;
}

/// A path is relative to where it is written.
std::string file_named(const ResolvedDeck& deck, const char* key) {
  const std::filesystem::path file = deck.text(key);
  const bool typed = deck.where(key) == command_line;
  const std::filesystem::path folder =
      typed ? std::filesystem::path() : std::filesystem::path(deck.path()).parent_path();
  return (folder / file).string();
}

/// Rules between keys that the schema cannot express. Refuse, never downgrade or ignore.
class CrossChecks {
 public:
  explicit CrossChecks(const RunConfig& config) : config_(config), deck_(config.deck) {}

  void run() const {
    with_locations(config_, [&] { check_model(config_.model); });
    check_length();
    check_watchdog();
    check_parallel();
    check_optimizer();
    check_schedule();
    with_locations(config_, [&] { return Slices(config_.profile.steps); });
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(std::string_view key, fmt::format_string<Args...> format,
                           Args&&... args) const {
    fail(ExitCode::usage, "{}: {} {}", deck_.where(key), key,
         fmt::format(format, std::forward<Args>(args)...));
  }

  void check_length() const {
    if (deck_.has("train.epochs") && deck_.has("train.steps"))
      refuse("train.steps", "and train.epochs are both given; remove one");
    if (!deck_.has("train.epochs") && !deck_.has("train.steps"))
      refuse("train.epochs", "or train.steps must be given");
  }

  void check_watchdog() const {
    const double seconds = config_.run.watchdog_seconds;
    if (seconds > 0 && seconds < 1)
      refuse("run.watchdog_seconds", "= {} is less than a second; 0 does without", seconds);
  }

  void check_parallel() const {
    const ParallelConfig& parallel = config_.parallel;
    if (parallel.slack > parallel.stages)
      refuse("parallel.slack", "= {} is more than parallel.stages = {}", parallel.slack,
             parallel.stages);
    if (needs_whole_slots(parallel.rule, parallel.placement) &&
        parallel.micro_batches % parallel.stages != 0)
      refuse("parallel.micro_batches",
             "= {} is no multiple of parallel.stages = {}, which parallel.placement = \"{}\" needs "
             "with parallel.rule = \"{}\"",
             parallel.micro_batches, parallel.stages, to_string(parallel.placement),
             to_string(parallel.rule));
    check_reduction();
  }

  void check_reduction() const {
    const ParallelConfig& parallel = config_.parallel;
    const bool cyclic = parallel.rule != RuleKind::dp;
    if (parallel.reduction == Reduction::ordered) return;
    if (parallel.reduction == Reduction::local) {
      if (!cyclic || parallel.placement != Placement::model)
        refuse("parallel.reduction",
               "= \"local\" needs a cyclic rule and parallel.placement = \"model\", where a device "
               "computes several micro-batches; use \"ordered\"");
      return;
    }
    if (parallel.reduction == Reduction::overlapped) {
      if (cyclic || parallel.placement != Placement::replicated)
        refuse("parallel.reduction",
               "= \"overlapped\" needs parallel.rule = \"dp\" and parallel.placement = "
               "\"replicated\", where all-reduces of stages can run beside the backward of others; "
               "use \"fast\" or \"ordered\"");
      return;
    }
    if (parallel.placement == Placement::single || parallel.placement == Placement::pipeline)
      refuse("parallel.reduction",
             "= \"fast\" has no effect with parallel.placement = \"{}\", "
             "which has one device for all micro-batches; use \"ordered\"",
             to_string(parallel.placement));
    if (!has_fast_sums(parallel))
      refuse("parallel.reduction",
             "= \"fast\" has no effect with parallel.rule = \"{}\" and N = {}, S = {}, where "
             "gradients travel from device to device one by one; use \"ordered\"",
             to_string(parallel.rule), parallel.micro_batches, parallel.stages);
  }

  void check_optimizer() const {
    const OptimizerConfig& optimizer = config_.train.optimizer;
    if (optimizer.dampening > 0 && optimizer.momentum == 0)
      refuse("train.optimizer.dampening", "has no effect without train.optimizer.momentum");
    if (!optimizer.decay_norm_and_bias && optimizer.weight_decay == 0)
      refuse("train.optimizer.decay_norm_and_bias", "has no effect without weight_decay");
    if (!optimizer.nesterov) return;
    if (optimizer.momentum == 0 || optimizer.dampening != 0)
      refuse("train.optimizer.nesterov", "needs momentum above 0 and dampening = 0");
  }

  void check_schedule() const {
    const LearningRateConfig& schedule = config_.train.schedule;
    if (schedule.warmup_factor > 0 && schedule.warmup_epochs == 0)
      refuse("train.schedule.warmup_factor", "has no effect without warmup_epochs");
    if (schedule.per_epoch && schedule.kind == ScheduleKind::constant &&
        schedule.warmup_epochs == 0)
      refuse("train.schedule.per_epoch", "has no effect on a constant learning rate");
    const std::vector<double>& milestones = schedule.milestones;
    if (std::adjacent_find(milestones.begin(), milestones.end(), std::greater_equal<>()) !=
        milestones.end())
      refuse("train.schedule.milestones", "must rise from one to the next");
  }

  const RunConfig& config_;
  const ResolvedDeck& deck_;
};

RunConfig make_run_config(const Deck& text) {
  RunConfig config;
  config.deck = ResolvedDeck(text);
  const ResolvedDeck& deck = config.deck;
  config.run = {.name = deck.text("run.name"),
                .seed = static_cast<std::uint64_t>(deck.integer("run.seed")),
                .output = deck.text("run.output"),
                .watchdog_seconds = deck.number("run.watchdog_seconds")};
  config.model = model(deck);
  config.data_file = file_named(deck, "data.file");
  config.parallel = parallel(deck);
  config.transport = choice(deck, "parallel.transport",
                            {TransportKind::automatic, TransportKind::local, TransportKind::mpi});
  config.train = train(deck);
  config.engine.threads = small(deck, "engine.threads");
  config.checkpoint = {.every = small(deck, "checkpoint.every"),
                       .every_steps = deck.integer("checkpoint.every_steps"),
                       .keep = small(deck, "checkpoint.keep")};
  config.profile = {.steps = deck.text("profile.steps"), .audit = deck.flag("profile.audit")};
  config.machine = machine(deck);
  CrossChecks(config).run();
  return config;
}

}  // namespace

const char* to_string(TransportKind transport) {
  switch (transport) {
    case TransportKind::automatic:
      return "auto";
    case TransportKind::local:
      return "local";
    case TransportKind::mpi:
      return "mpi";
  }
  return "?";
}

RunConfig load_run_config(const std::string& path, const std::vector<std::string>& overrides) {
  RunConfig config = make_run_config(read_deck(path, overrides));
  // What is written into files must be read from them again.
  if (const std::size_t bytes = resolved_deck(config).size(); bytes > max_deck_bytes)
    fail(ExitCode::usage, "{}: takes {} bytes with all defaults, and a deck may have {}", path,
         bytes, max_deck_bytes);
  return config;
}

RunConfig parse_run_config(std::string_view text, const std::string& path,
                           const std::vector<std::string>& overrides) {
  return make_run_config(parse_deck(text, path, overrides));
}

std::string resolved_deck(const RunConfig& config, bool origins) {
  // The resolved deck lies in other folders than the deck.
  ResolvedDeck deck = config.deck;
  deck.set_text("data.file", std::filesystem::absolute(config.data_file).string());
  return deck.to_toml(origins);
}

std::string where(const RunConfig& config, std::string_view key) {
  return config.deck.where(key);
}

std::string located(const RunConfig& config, const std::string& message) {
  const auto key = std::string_view(message).substr(0, message.find_first_of(" :,=;"));
  if (find_key(key) == nullptr) return message;
  return fmt::format("{}: {}", where(config, key), message);
}

}  // namespace carousel
