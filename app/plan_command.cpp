// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "app/commands.hpp"
#include "app/deck.hpp"
#include "app/input_rules.hpp"
#include "app/nearest.hpp"
#include "app/plan_text.hpp"
#include "app/provenance.hpp"
#include "app/requested_run.hpp"
#include "app/schema.hpp"
#include "core/base/check.hpp"
#include "core/base/descriptor.hpp"
#include "core/base/text.hpp"
#include "core/draw/comparison.hpp"
#include "core/draw/picture.hpp"
#include "core/draw/plan_json.hpp"
#include "core/forecast/estimate.hpp"
#include "core/forecast/measured_costs.hpp"
#include "core/plan/costs.hpp"
#include "core/plan/placements/traits.hpp"
#include "core/record/plan_record.hpp"
#include "core/record/profile.hpp"
#include "core/record/run_reader.hpp"

namespace carousel {
namespace {

/// Seconds of the stages on the machine of the deck; zeros without one.
std::vector<StageSeconds> seconds_by_machine(const RunConfig& config, const PreparedRun& run) {
  if (!config.machine) return std::vector<StageSeconds>(run.schedule.rule().stages());
  return stage_seconds(stage_costs(run.model, run.partition, config.train.micro_batch_size,
                                   run.memory.optimizer_states),
                       *config.machine);
}

/// Seconds that the stages took in a run, which must have the same stages and samples.
std::vector<StageSeconds> seconds_by_run(const RunConfig& config, const PreparedRun& run,
                                         const RunSummary& measured) {
  if (!measured.plan) fail(ExitCode::bad_data, "{}: has no /plan", measured.file);
  const PlanRecord& theirs = *measured.plan;
  const PlanRecord ours = plan_record(run);
  if (theirs.stages != ours.stages)
    fail(ExitCode::usage, "--measured {}: has {} stages, the plan has {}", measured.folder,
         theirs.stages, ours.stages);
  for (int j = 0; j < ours.stages; ++j) {
    if (theirs.stage_layers[j] != ours.stage_layers[j])
      fail(ExitCode::usage, "--measured {}: stage {} is {}, but {} in the plan", measured.folder, j,
           theirs.stage_layers[j], ours.stage_layers[j]);
    if (theirs.stage_activations[j] != ours.stage_activations[j])
      fail(ExitCode::usage,
           "--measured {}: stage {} has {} bytes of activations, but {} in the plan; widths or "
           "train.micro_batch_size differ",
           measured.folder, j, theirs.stage_activations[j], ours.stage_activations[j]);
  }
  std::vector<DeviceProfile> profiles;  // what they read outlives the rows, which point at it
  std::vector<std::vector<ActionRecord>> actions;
  for (int d = 0; d < theirs.devices; ++d) {
    profiles.push_back(read_profile(measured.folder, measured.number, d));
    actions.push_back(std::move(profiles.back().actions));
  }
  const Deck deck = parse_deck(read_deck_of(measured.folder), measured.folder + ", deck", {});
  const bool cuts_stages = std::ranges::any_of(deck.entries, [](const DeckEntry& entry) {
    return entry.key == "parallel.shards" && entry.value.data == decltype(entry.value.data){true};
  });
  return measured_seconds(measured.folder, actions, seconds_by_machine(config, run), cuts_stages);
}

/// Estimates plans, with seconds where a machine or a run says what actions take.
class Estimator {
 public:
  explicit Estimator(const PlanArguments& arguments) {
    if (!arguments.measured.empty()) measured_ = read_run(arguments.measured);
  }

  [[nodiscard]] Estimate operator()(const RunConfig& config, const PreparedRun& run) const {
    return estimate(run.schedule, run.memory, speeds(config, run));
  }

  [[nodiscard]] std::optional<Forecast> forecast_of(const RunConfig& config,
                                                    const PreparedRun& run) const {
    const std::optional<Speeds> known = speeds(config, run);
    if (!known) return std::nullopt;
    return forecast(run.schedule, run.memory.stages, *known);
  }

 private:
  [[nodiscard]] std::optional<Speeds> speeds(const RunConfig& config,
                                             const PreparedRun& run) const {
    if (!config.machine && !measured_) return std::nullopt;
    // Without a machine, links cost nothing.
    return Speeds{config.machine ? *config.machine : with_ideal_links({}),
                  action_seconds(measured_ ? seconds_by_run(config, run, *measured_)
                                           : seconds_by_machine(config, run),
                                 run.schedule.spec().pieces)};
  }

  std::optional<RunSummary> measured_ = {};
};

void print_comparison(const RunConfig& config, const Estimator& estimate_of) {
  const PreparedRun own = prepare_run(config, *open_data(config), config.transport);
  std::vector<Estimate> estimates;
  ComparisonBasis basis;
  for (const ParallelConfig& parallel : alternatives(config.parallel)) {
    RunConfig other = config;
    other.parallel = parallel;
    estimates.push_back(estimate_of(other, prepare_run(other, own.basis)));
    if (config.engine.precision == DataType::full) continue;
    other.engine.precision = DataType::full;
    basis.in_fp32.push_back(estimate_of(other, prepare_run(other, own.basis)));
  }
  for (int j = 0; j < own.schedule.rule().stages(); ++j) {
    basis.model_bytes += own.schedule.message_bytes(j);
    basis.parameter_bytes += own.schedule.parameter_bytes(j);
  }
  basis.micro_batch_bytes =
      activation_baselines(own.memory.stages, own.schedule.rule().micro_batches()).accumulate;
  fmt::print("{}", compare(estimates, basis));
}

void print_sweep(const PlanArguments& arguments, const Estimator& estimate_of) {
  const std::string& sweep = arguments.sweep;
  const std::size_t equals = sweep.find('=');
  if (equals == std::string::npos || equals + 1 == sweep.size())
    fail(ExitCode::usage, "--sweep {}: give a key and its values: parallel.stages=1,2,4", sweep);
  const std::string key = sweep.substr(0, equals);
  std::vector<LabelledEstimate> rows;
  for (std::size_t begin = equals + 1; begin <= sweep.size();) {
    const std::size_t end = std::min(sweep.find(',', begin), sweep.size());
    const std::string value = sweep.substr(begin, end - begin);
    std::vector<std::string> overrides = arguments.overrides;
    overrides.push_back(fmt::format("{}={}", key, value));
    const RunConfig config = load_run_config(arguments.deck, overrides);
    const PreparedRun run = prepare_run(config, *open_data(config), config.transport);
    rows.push_back({value, estimate_of(config, run)});
    begin = end + 1;
  }
  fmt::print("{}\n{}", key, tabulate("value", rows));
}

/// Keys that make a candidate the plan of a deck that has `deck`, in lines of at most 80 columns.
std::string overrides_of(const Candidate& candidate, const ParallelConfig& deck) {
  const ParallelConfig& parallel = candidate.parallel;
  std::vector<std::string> keys = {
      fmt::format("parallel.rule={}", to_string(parallel.rule)),
      fmt::format("parallel.placement={}", to_string(parallel.placement)),
      fmt::format("parallel.micro_batches={}", parallel.micro_batches),
      fmt::format("train.micro_batch_size={}", candidate.micro_batch_size),
      fmt::format("parallel.stages={}", parallel.stages),
      fmt::format("parallel.balance={}", to_string(parallel.balance)),
      fmt::format("parallel.reduction={}", to_string(parallel.reduction))};
  if (parallel.passes > 1 || (deck.passes > 1 && traits_of(parallel.placement).has_passes))
    keys.push_back(fmt::format("parallel.passes={}", parallel.passes));
  if (parallel.rule == RuleKind::dp && traits_of(parallel.placement).has_orders)
    keys.push_back(fmt::format("parallel.order={}", to_string(parallel.order)));
  if (parallel.rule == RuleKind::cdp_v2)
    keys.push_back(fmt::format("parallel.slack={}", parallel.slack));
  if (parallel.rule != RuleKind::dp)
    keys.push_back(fmt::format("parallel.predict={}", parallel.predict));
  if (parallel.shards || (deck.shards && traits_of(parallel.placement).cuts_stages))
    keys.push_back(fmt::format("parallel.shards={}", parallel.shards));
  if (parallel.shards) keys.push_back(fmt::format("parallel.chunks={}", parallel.chunks));
  if (parallel.shards && parallel.rule == RuleKind::dp)
    keys.push_back(fmt::format("parallel.updates={}", to_string(parallel.updates)));
  if (parallel.shards && parallel.rule == RuleKind::cdp_v1 &&
      traits_of(parallel.placement).sums_late)
    keys.push_back(fmt::format("parallel.sums={}", to_string(parallel.sums)));
  std::string text;
  std::size_t width = 0;
  for (const std::string& key : keys) {
    if (width + 1 + key.size() > 78) {
      text += "\n";
      width = 0;
    }
    text += (width == 0 ? "  " : " ") + key;
    width += 1 + key.size();
  }
  return text;
}

void print_advice(const RunConfig& config) {
  if (!config.machine)
    fail(ExitCode::usage,
         "{}: has no [machine] table, and --advise needs one; see carousel help deck",
         config.deck.path());
  const PreparedRun own = prepare_run(config, *open_data(config), config.transport);
  check_batch_norm(config, own);
  // The devices of an advised plan are ranks, whatever runs this deck.
  const PlannedDeck deck = planned_deck(config, TransportKind::mpi);
  const AdviceQuestion question = advice_question(deck, own);
  const Advice advice = advise(own.model, question);
  fmt::print("{}", to_string(advice, question));
  CAROUSEL_CHECK(!advice.best.empty(), "no plan for {} samples", question.samples);
  if (!advice.best.front().fits)
    fail(ExitCode::usage, "{}: machine.memory = {:.0f} bytes: no plan fits; the smallest needs {}",
         where(config, "machine.memory"), question.machine.memory, advice.best.front().fullest);
  const Candidate& taken = advice.to_take();
  fmt::print("\nKeys of {}:\n{}\n",
             &taken == &advice.best.front() ? "the fastest one" : "dp's fastest one",
             overrides_of(taken, config.parallel));
}

/// The slow device must be a device of the plan.
void check_slow_device(const RunConfig& config, const PreparedRun& run) {
  if (!config.machine || config.machine->slow_factor == 1) return;
  if (config.machine->slow_device < run.schedule.devices()) return;
  fail(ExitCode::usage, "{}: machine.slow_device = {}: the plan has {} device{}",
       where(config, "machine.slow_device"), config.machine->slow_device, run.schedule.devices(),
       run.schedule.devices() == 1 ? "" : "s");
}

void write_new(const std::string& path, const std::string& text, const char* what) {
  if (std::filesystem::exists(path))
    fail(ExitCode::usage, "{}: already exists; remove it or choose another name", path);
  replace_file(path, std::as_bytes(std::span(text)), Durability::process);
  fmt::print("{}: {}\n", path, what);
}

void print_plan(const RunConfig& config, const Estimator& estimate_of, bool layers) {
  const std::unique_ptr<DataSet> dataset = open_data(config);
  const PreparedRun run = prepare_run(config, *dataset, config.transport);
  check_batch_norm(config, run);
  check_slow_device(config, run);
  const Estimate costs = estimate_of(config, run);
  const std::int64_t checkpoint =
      checkpoint_layout(config, run)
          .file_bytes(provenance(config), {}, planned_inputs(config, *dataset));
  fmt::print("{}", describe(run, checkpoint, layers));
  if (config.engine.precision != DataType::full) {
    RunConfig full = config;
    full.engine.precision = DataType::full;
    const Estimate in_fp32 = estimate_of(full, prepare_run(full, run.basis));
    const std::string sends =
        in_fp32.sent.bytes == 0
            ? std::string()
            : fmt::format("sends {} and ", human_part(costs.sent.bytes, in_fp32.sent.bytes));
    fmt::print("precision           bf16: {}holds {} of the bytes of fp32\n", sends,
               human_part(costs.total(), in_fp32.total()));
  }
  if (!costs.seconds) return;
  fmt::print("simulated           {:.4g} s per step, of which {:.4g} s is communication\n",
             costs.seconds->step, costs.seconds->exposed());
}

/// The network as a deck lists it.
void print_as_deck(const RunConfig& config) {
  const Model model = described_model(config, *open_data(config));
  fmt::print("[model]\nname = \"layers\"\nlayers = {}\n", to_toml(as_list(model)));
}

/// For scripts: a number or words without quotes, nothing for a key without a value.
void print_value(const RunConfig& config, const std::string& key) {
  const KeySpec* spec = find_key(key);
  if (spec == nullptr)
    fail(ExitCode::usage, "--get: unknown key {}{}; `carousel help deck` lists all keys",
         in_quotes(key), did_you_mean(key, key_names()));
  if (!config.deck.has(key)) return fmt::print("\n");
  const DeckValue value = spec->read(config);
  const auto* text = std::get_if<std::string>(&value.data);
  fmt::print("{}\n", text != nullptr ? *text : to_toml(value));
}

/// What a script asks for: one line.
void print_one(const PlanArguments& arguments) {
  if ((arguments.devices && !arguments.key.empty()) || arguments.compare || arguments.advise ||
      arguments.json || arguments.layers || !arguments.svg.empty() || !arguments.sweep.empty() ||
      !arguments.measured.empty())
    fail(ExitCode::usage, "plan {}: goes with no other option",
         arguments.devices ? "--devices" : "--get");
  const RunConfig config = load_run_config(arguments.deck, arguments.overrides);
  if (!arguments.key.empty()) return print_value(config, arguments.key);
  const bool one = config.transport == TransportKind::local;
  fmt::print("{}\n", one ? 1 : devices_of(config.parallel));
}

}  // namespace

void plan_command(const PlanArguments& arguments) {
  if (arguments.devices || !arguments.key.empty()) return print_one(arguments);
  const Estimator estimate_of(arguments);
  if (!arguments.sweep.empty()) return print_sweep(arguments, estimate_of);
  const RunConfig config = load_run_config(arguments.deck, arguments.overrides);
  if (arguments.as_deck) return print_as_deck(config);
  if (arguments.compare) return print_comparison(config, estimate_of);
  if (arguments.advise) return print_advice(config);
  if (!arguments.json && arguments.svg.empty())
    return print_plan(config, estimate_of, arguments.layers);
  const PreparedRun run = prepare_run(config, *open_data(config), config.transport);
  check_slow_device(config, run);
  if (!arguments.svg.empty())
    write_new(arguments.svg, draw_svg(run.schedule, {}), "the picture of the schedule");
  if (!arguments.json) return;
  fmt::print("{}", plan_json(run.schedule, run.memory, arguments.steps,
                             estimate_of.forecast_of(config, run)));
}

void print_plan(const RunConfig& config, bool layers) {
  print_plan(config, Estimator({}), layers);
}

}  // namespace carousel
