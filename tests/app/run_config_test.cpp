// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// From deck to structs: every value arrives, every kind of mistake is refused with its place, and
// the resolved deck reads back as the same deck.

#include "app/run_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "app/schema.hpp"
#include "core/model/op.hpp"
#include "layers/softmax_cross_entropy/op.hpp"

namespace carousel {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* digits = R"([run]
name = "digits"
seed = 7
output = "runs/digits"
[model]
widths = [64, 32, 10]
[data]
file = "digits.h5"
[parallel]
rule = "cdp-v2"
placement = "replicated"
micro_batches = 4
stages = 2
balance = "parameters"
slack = 1
transport = "local"
[train]
micro_batch_size = 16
epochs = 20
evaluate_every = 5
[train.optimizer]
learning_rate = 0.05
momentum = 0.9
weight_decay = 5e-4
nesterov = true
[train.schedule]
name = "multistep"
milestones = [3, 4.5]
warmup_epochs = 2
[engine]
threads = 3
[profile]
steps = "0:3"
audit = true
)";

RunConfig load(const std::vector<std::string>& overrides = {}) {
  return parse_run_config(digits, "inputs/x.toml", overrides);
}

std::string refusal_of(const std::string& text, const std::vector<std::string>& overrides) {
  try {
    static_cast<void>(parse_run_config(text, "inputs/x.toml", overrides));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  ADD_FAILURE() << "the deck was accepted";
  return "";
}

std::string refusal(const std::vector<std::string>& overrides) {
  return refusal_of(digits, overrides);
}

/// The refusal of the deck with one piece of its text replaced.
std::string refusal(const std::string& from, const std::string& to) {
  std::string text = digits;
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return refusal_of(text.replace(at, from.size(), to), {});
}

TEST(RunConfig, HoldsWhatTheDeckSays) {
  const RunConfig config = load();
  EXPECT_EQ(config.run.name, "digits");
  EXPECT_EQ(config.run.seed, 7U);
  EXPECT_EQ(config.run.output, "runs/digits");
  EXPECT_EQ(config.model.name, "mlp");
  EXPECT_EQ(config.model.widths, (std::vector<int>{64, 32, 10}));
  EXPECT_EQ(config.data.file, "inputs/digits.h5");
  EXPECT_EQ(config.parallel.rule, RuleKind::cdp_v2);
  EXPECT_EQ(config.parallel.placement, Placement::replicated);
  EXPECT_EQ(config.parallel.balance, Balance::parameters);
  EXPECT_EQ(config.parallel.micro_batches, 4);
  EXPECT_EQ(config.parallel.stages, 2);
  EXPECT_EQ(config.parallel.slack, 1);
  EXPECT_EQ(config.transport, TransportKind::local);
  EXPECT_EQ(config.train.micro_batch_size, 16);
  EXPECT_EQ(config.train.epochs, 20);
  EXPECT_EQ(config.train.steps, 0);
  EXPECT_EQ(config.train.evaluate_every, 5);
  EXPECT_EQ(config.train.optimizer.learning_rate, 0.05);
  EXPECT_EQ(config.train.optimizer.weight_decay, 5e-4);
  EXPECT_TRUE(std::get<Sgd>(config.train.optimizer.kind).nesterov);
  EXPECT_EQ(std::get<MultistepRate>(config.train.schedule.kind).milestones,
            (std::vector<double>{3, 4.5}));
  EXPECT_EQ(config.train.schedule.warmup_epochs, 2);
  EXPECT_EQ(config.engine.threads, 3);
  EXPECT_EQ(config.profile.steps, "0:3");
  EXPECT_TRUE(config.profile.audit);
}

TEST(RunConfig, DefaultsAreThoseOfTheStructs) {
  const RunConfig config = parse_run_config(
      "[run]\nname='a'\noutput='b'\n[model]\nwidths=[1,2]\n[data]\nfile='c'\n"
      "[train]\nmicro_batch_size=1\nsteps=5\n",
      "x.toml", {});
  for (const TableSpec& table : deck_tables()) {
    for (const KeySpec& spec : table.keys) {
      if (spec.traits.missing != Missing::standard || table.optional) continue;
      EXPECT_EQ(spec.read(config), standard_value(spec)) << spec.key();
    }
  }
  EXPECT_EQ(config.run.watchdog_seconds, RunTable{}.watchdog_seconds);
  EXPECT_FALSE(config.machine);
}

TEST(RunConfig, OverridesWin) {
  EXPECT_EQ(load({"parallel.rule=cdp-v2", "model.widths=[64,10]"}).model.widths.size(), 2U);
  EXPECT_EQ(load({"run.name=1234"}).run.name, "1234");
  EXPECT_EQ(load({"data.file=other/a.h5"}).data.file, "other/a.h5");
  EXPECT_EQ(load({"data.file=/a.h5"}).data.file, "/a.h5");
}

TEST(RunConfig, RefusesUnknownNames) {
  EXPECT_EQ(
      refusal("seed = 7", "sead = 7"),
      "inputs/x.toml:3:1: unknown key run.sead (did you mean run.seed?); `carousel help deck` "
      "lists all keys");
  EXPECT_THAT(refusal("[parallel]", "[paralel]"),
              HasSubstr(":9:2: unknown table [paralel] (did you mean parallel?)"));
  EXPECT_THAT(refusal({"train.momentum=0.5"}),
              AllOf(StartsWith("command line: "), HasSubstr("train.optimizer.momentum?")));
  EXPECT_THAT(refusal({"resume=true"}), HasSubstr("unknown key resume"));
  EXPECT_THAT(refusal("[data]\nfile = \"digits.h5\"", "data = 3"), HasSubstr("unknown key"));
  EXPECT_THAT(refusal("[run]", "model = 3\n[run]"), HasSubstr("cannot redefine"));
  EXPECT_THAT(refusal({"model=3"}), HasSubstr("model is a table, not a key"));
  EXPECT_THAT(refusal("[model]\nwidths = [64, 32, 10]", "[model.widths]\nx = 1"),
              HasSubstr("model.widths is a key, not a table"));
  EXPECT_THAT(refusal("[profile]", "[empty]\n[profile]"), HasSubstr("unknown table [empty]"));
  EXPECT_THAT(refusal("[data]", "[[data]]"), HasSubstr("data is a table"));
}

TEST(RunConfig, RefusesWrongTypes) {
  EXPECT_EQ(refusal("seed = 7", "seed = \"7\""),
            "inputs/x.toml:3:1: run.seed = \"7\" has the wrong type; it must be an integer "
            "of at least 0");
  EXPECT_THAT(refusal("epochs = 20", "epochs = 20.0"), HasSubstr("wrong type"));
  EXPECT_THAT(refusal("nesterov = true", "nesterov = 1"), HasSubstr("true or false"));
  EXPECT_THAT(refusal("name = \"digits\"", "name = 3"), HasSubstr("a string"));
  EXPECT_THAT(refusal("[64, 32, 10]", "64"), HasSubstr("a list of integers"));
  EXPECT_THAT(refusal("[64, 32, 10]", "[64, 3.5]"), HasSubstr("a list of integers"));
  EXPECT_THAT(refusal("[64, 32, 10]", "[64, [3]]"), HasSubstr("a list of integers"));
  EXPECT_THAT(refusal("[64, 32, 10]", "[]"), HasSubstr("is empty"));
  EXPECT_THAT(refusal("seed = 7", "seed = 2026-01-01"), HasSubstr("a date, time or table"));
  EXPECT_THAT(refusal({"train.optimizer.learning_rate=0.o5"}), HasSubstr("a number"));
}

TEST(RunConfig, RefusesOutOfRange) {
  EXPECT_THAT(refusal("stages = 2", "stages = 0"),
              AllOf(StartsWith("inputs/x.toml:13:1: parallel.stages = 0"), HasSubstr("1 to 4096")));
  EXPECT_THAT(refusal("seed = 7", "seed = -1"), HasSubstr("out of range"));
  EXPECT_THAT(refusal("epochs = 20", "epochs = 99999999999"), HasSubstr("out of range"));
  EXPECT_THAT(refusal("momentum = 0.9", "momentum = 1.5"), HasSubstr("0 to 1"));
  EXPECT_THAT(refusal("0.05", "inf"), HasSubstr("not a finite number"));
  EXPECT_THAT(refusal("0.05", "nan"), HasSubstr("not a finite number"));
  EXPECT_THAT(refusal("[3, 4.5]", "[0, 4.5]"), HasSubstr("above 0"));
  EXPECT_THAT(refusal("slack = 1", "slack = 3"), HasSubstr("more than parallel.stages = 2"));
}

TEST(RunConfig, RefusesUnknownChoices) {
  EXPECT_THAT(refusal("cdp-v2", "cdpv2"), HasSubstr("\"dp\", \"cdp-v1\" or \"cdp-v2\" (did you "
                                                    "mean cdp-v2?)"));
  EXPECT_THAT(refusal({"parallel.transport=ncl"}), HasSubstr("did you mean nccl?"));
}

TEST(RunConfig, RefusesAWatchdogThatIsTooQuick) {
  EXPECT_THAT(refusal({"run.watchdog_seconds=0.5"}), HasSubstr("0.5 is less than a second"));
}

/// What is said about the keys that `overrides` deprive of their effect; the resolved deck reads
/// back the same without a word.
std::vector<std::string> notes(const std::vector<std::string>& overrides) {
  const RunConfig config = load(overrides);
  const RunConfig again = parse_run_config(resolved_deck(config), "y.toml", {});
  EXPECT_EQ(resolved_deck(again, false), resolved_deck(config, false));
  EXPECT_THAT(again.notes, IsEmpty());
  return config.notes;
}

TEST(RunConfig, RefusesMissingKeys) {
  EXPECT_THAT(refusal("epochs = 20", ""), HasSubstr("train.epochs or train.steps"));
  EXPECT_THAT(refusal("epochs = 20", "epochs = 20\nsteps = 3"), HasSubstr("both given"));
  EXPECT_THAT(refusal("widths = [64, 32, 10]", ""),
              StartsWith("inputs/x.toml: model.widths is missing"));
  EXPECT_THAT(refusal("milestones = [3, 4.5]", ""),
              HasSubstr("milestones or train.schedule.milestone_steps is missing"));
}

TEST(RunConfig, TakesScheduleInStepsOrEpochs) {
  EXPECT_THAT(refusal("warmup_epochs = 2", "warmup_epochs = 2\nwarmup_steps = 3"),
              HasSubstr("warmup_steps and train.schedule.warmup_epochs are both given"));
  EXPECT_THAT(notes({"train.schedule.milestone_steps=[5, 6]"}),
              ElementsAre(HasSubstr("train.schedule.milestones is dropped: the command line gives "
                                    "train.schedule.milestone_steps")));
  const LearningRateConfig schedule =
      load({"train.schedule.milestone_steps=[5, 6]", "train.schedule.warmup_steps=7"})
          .train.schedule;
  const auto& multistep = std::get<MultistepRate>(schedule.kind);
  EXPECT_EQ(multistep.milestone_steps, (std::vector<std::int64_t>{5, 6}));
  EXPECT_TRUE(multistep.milestones.empty());
  EXPECT_EQ(schedule.warmup_steps, 7);
  EXPECT_EQ(schedule.warmup_epochs, 0);
  EXPECT_THAT(refusal({"train.schedule.milestone_steps=[6, 6]"}), HasSubstr("rising order"));
  // The default gives way to what a deck says.
  const std::vector<std::string> step = {"train.schedule.name=step", "train.schedule.step_size=9"};
  EXPECT_THAT(resolved_deck(load(step), false),
              AllOf(HasSubstr("step_size = 9"), Not(HasSubstr("step_epochs"))));
  EXPECT_THAT(notes(step), ElementsAre(HasSubstr("milestones is dropped")));
}

TEST(RunConfig, RefusesKeysWithoutEffect) {
  EXPECT_THAT(refusal("cdp-v2", "dp"),
              AllOf(StartsWith("inputs/x.toml:15:1: parallel.slack has no effect"),
                    HasSubstr("only with \"cdp-v2\"")));
  EXPECT_THAT(refusal({"parallel.rule=dp", "parallel.slack=1"}),
              StartsWith("command line: parallel.slack has no effect"));
  EXPECT_THAT(refusal({"parallel.order=accumulate"}), HasSubstr("parallel.order has no effect"));
  EXPECT_THAT(refusal({"parallel.reduction=fast", "parallel.micro_batches=2"}),
              HasSubstr("no effect with parallel.rule = \"cdp-v2\", parallel.micro_batches = 2, "
                        "parallel.stages = 2; gradients"));
  EXPECT_THAT(refusal({"train.schedule.final_factor=0.1"}), HasSubstr("only with \"cosine\""));
  EXPECT_THAT(refusal({"train.schedule.warmup_epochs=0", "train.schedule.warmup_factor=0.1"}),
              HasSubstr("with train.schedule.warmup_epochs = 0.0"));
  EXPECT_THAT(refusal({"train.optimizer.dampening=0.1"}), HasSubstr("nesterov = true needs"));
  EXPECT_THAT(refusal("momentum = 0.9", "momentum = 0"), HasSubstr("it needs momentum"));
  EXPECT_THAT(refusal("[3, 4.5]", "[3, 3]"), HasSubstr("rising order"));
  std::string dp = digits;
  dp.replace(dp.find("slack = 1\n"), 10, "");
  EXPECT_THAT(refusal_of(dp, {"parallel.rule=dp", "parallel.order=together"}),
              HasSubstr("parallel.placement = \"replicated\""));
  EXPECT_THAT(
      refusal_of(dp, {"parallel.rule=dp", "parallel.placement=single", "parallel.reduction=fast"}),
      HasSubstr("one device"));
  EXPECT_THAT(refusal({"parallel.reduction=local"}),
              HasSubstr("it needs parallel.placement = \"model\""));
}

TEST(RunConfig, DropsKeysThatTheCommandLineDeprivesOfEffect) {
  EXPECT_THAT(notes({}), IsEmpty());
  EXPECT_THAT(notes({"parallel.rule=dp"}),
              ElementsAre("inputs/x.toml:15:1: parallel.slack is dropped: it has no effect with "
                          "parallel.rule = \"dp\" from the command line"));
  EXPECT_THAT(notes({"train.steps=3"}),
              ElementsAre("inputs/x.toml:19:1: train.epochs is dropped: the command line gives "
                          "train.steps"));
  EXPECT_THAT(notes({"train.schedule.name=one-cycle"}),
              ElementsAre(HasSubstr("warmup_epochs is dropped"), HasSubstr("milestones is")));
  EXPECT_THAT(notes({"train.schedule.name="}),
              ElementsAre(HasSubstr("with train.schedule.name = \"constant\" by default, as the "
                                    "command line removes the key")));
  EXPECT_THAT(notes({"model.name=resnet", "model.depth=18", "model.stem=cifar"}),
              ElementsAre(HasSubstr("model.widths is dropped")));
  EXPECT_THAT(notes({"train.optimizer.momentum="}),
              ElementsAre(HasSubstr("nesterov = true is dropped: it has no effect with "
                                    "train.optimizer.momentum = 0.0 by default")));
  EXPECT_FALSE(std::get<Sgd>(load({"train.optimizer.momentum="}).train.optimizer.kind).nesterov);
  EXPECT_EQ(load({"parallel.rule=dp"}).parallel.slack, 0);
}

TEST(RunConfig, DropsValuesOnlyWhereTheCommandLineIsTheCause) {
  std::string fast = digits;
  fast.replace(fast.find("slack = 1"), 9, "reduction = \"fast\"");
  const auto read = [&](const std::vector<std::string>& overrides) {
    return parse_run_config(fast, "x.toml", overrides);
  };
  EXPECT_EQ(read({}).parallel.reduction, Reduction::fast);
  const RunConfig config = read({"parallel.stages=4"});
  EXPECT_EQ(config.parallel.reduction, Reduction::ordered);
  EXPECT_THAT(config.notes,
              ElementsAre("x.toml:15:1: parallel.reduction = \"fast\" is dropped: it has no effect "
                          "with parallel.rule = \"cdp-v2\", parallel.micro_batches = 4, "
                          "parallel.stages = 4 from the command line"));
  EXPECT_THAT(resolved_deck(config),
              HasSubstr("reduction = \"ordered\"                     # def"));
  fast.replace(fast.find("replicated"), 10, "single");
  EXPECT_THAT(refusal_of(fast, {"parallel.stages=4"}), HasSubstr("one device"));
}

TEST(RunConfig, RemovedKeysHaveTheirDefault) {
  EXPECT_EQ(load({"run.seed="}).run.seed, RunTable{}.seed);
  EXPECT_EQ(load({"train.epochs=", "train.steps=7"}).train.epochs, 0);
  EXPECT_THAT(notes({"train.epochs=", "train.steps=7", "machine.memory="}), IsEmpty());
  EXPECT_THAT(refusal({"run.name="}), StartsWith("inputs/x.toml: run.name is missing"));
  EXPECT_THAT(refusal({"run.nam="}), HasSubstr("did you mean run.name?"));
}

TEST(RunConfig, RefusesPlacementsThatNeedWholeSlots) {
  for (const char* placement : {"model", "sharded"}) {
    const std::string override = fmt::format("parallel.placement={}", placement);
    EXPECT_THAT(refusal({override, "parallel.micro_batches=3"}),
                HasSubstr("parallel.micro_batches = 3 is not a multiple of parallel.stages = 2"));
  }
}

TEST(RunConfig, ReadsResidualNetworks) {
  const std::string resnet =
      std::string(digits).replace(std::string(digits).find("widths = [64, 32, 10]"), 21,
                                  "name = \"resnet\"\ndepth = 18\nstem = \"imagenet\"");
  const auto load_resnet = [&](const std::vector<std::string>& overrides) {
    return parse_run_config(resnet, "inputs/x.toml", overrides);
  };
  const RunConfig config =
      load_resnet({"task.label_smoothing=0.1", "train.optimizer.decay_norm_and_bias=false"});
  EXPECT_EQ(config.model.depth, 18);
  EXPECT_EQ(config.model.stem, Stem::imagenet);
  EXPECT_EQ(build_model(config.model, {3, 32, 32}, 10, config.task)
                .layers.back()
                .as<op::SoftmaxCrossEntropy>()
                .smoothing,
            0.1);
  EXPECT_FALSE(config.train.optimizer.decay_norm_and_bias);
  EXPECT_EQ(load_resnet({"model.depth=20", "model.stem=cifar"}).model.stem, Stem::cifar);

  EXPECT_EQ(
      refusal_of(resnet, {"model.depth=20"}),
      "inputs/x.toml:8:1: model.stem = \"imagenet\" is not for model.depth = 20, a network for "
      "small images; use \"cifar\"");
  EXPECT_THAT(refusal_of(resnet, {"model.depth=19"}),
              AllOf(StartsWith("command line: model.depth = 19"), HasSubstr("18, 34, 50")));
  EXPECT_THAT(refusal_of(resnet, {"model.widths=[1,2]"}),
              HasSubstr("no effect with model.name = \"resnet\""));
  EXPECT_THAT(refusal({"model.depth=18"}), HasSubstr("no effect with model.name = \"mlp\""));
  EXPECT_THAT(refusal({"model.stem=cifar"}), HasSubstr("no effect with model.name = \"mlp\""));
  EXPECT_THAT(refusal({"model.name=resnet"}), HasSubstr("model.depth is missing"));
  EXPECT_THAT(refusal("widths = [64, 32, 10]", "name = \"resnet\"\nstem = \"cifar\""),
              HasSubstr("model.depth is missing"));
  EXPECT_THAT(refusal("widths = [64, 32, 10]", "name = \"resnet\"\ndepth = 18"),
              HasSubstr("model.stem is missing"));
  EXPECT_THAT(refusal({"task.label_smoothing=1.1"}), HasSubstr("0 to 1"));

  const std::string grouped = std::string(resnet).replace(
      resnet.find("depth = 18"), 10, "depth = 18\nnorm = \"group\"\ngroups = 16");
  EXPECT_THAT(refusal_of(resnet, {"model.groups=16"}),
              HasSubstr("model.groups has no effect with model.norm = \"batch\", only with"));
  // What the command line makes void it makes void to the last key that follows.
  const auto groups_with = [&](const std::vector<std::string>& overrides) {
    const RunConfig read = parse_run_config(grouped, "inputs/x.toml", overrides);
    return std::pair(read.deck.has("model.groups"), read.notes.size());
  };
  EXPECT_EQ(groups_with({}), std::pair(true, std::size_t{0}));
  EXPECT_EQ(groups_with({"model.norm=batch"}), std::pair(false, std::size_t{1}));
  EXPECT_EQ(groups_with({"model.norm="}), std::pair(false, std::size_t{1}));
  // stem, depth, norm, groups
  EXPECT_EQ(groups_with({"model.name=mlp", "model.widths=[64,10]"}),
            std::pair(false, std::size_t{4}));
  EXPECT_THAT(
      refusal({"train.optimizer.weight_decay=0", "train.optimizer.decay_norm_and_bias=false"}),
      HasSubstr("decay_norm_and_bias = false has no effect with train.optimizer.weight_decay"));
}

/// The digits' deck with what is added to its [train].
RunConfig with_train(const std::string& lines, const std::vector<std::string>& overrides = {}) {
  const std::string deck =
      std::string(digits).replace(std::string(digits).find("[train]"), 7, "[train]\n" + lines);
  return parse_run_config(deck, "inputs/x.toml", overrides);
}

TEST(RunConfig, KnowsFormerNamesOfKeys) {
  const auto smoothing = [](const RunConfig& config) {
    return to_toml(find_key("task.label_smoothing")->read(config));
  };
  EXPECT_EQ(smoothing(with_train("label_smoothing = 0.25")), "0.25");
  EXPECT_EQ(smoothing(with_train("", {"train.label_smoothing=0.5"})), "0.5");
  // The command line counts under either name.
  EXPECT_EQ(smoothing(with_train("label_smoothing = 0.25", {"task.label_smoothing=0.5"})), "0.5");
  EXPECT_EQ(smoothing(with_train("label_smoothing = 0.25", {"train.label_smoothing=0.5"})), "0.5");
  EXPECT_EQ(smoothing(with_train("label_smoothing = 0.25", {"task.label_smoothing="})), "0.0");
  EXPECT_THAT(refusal({"train.label_smoothing=", "task.label_smoothing=0.3"}),
              HasSubstr("task.label_smoothing is given and removed"));
  EXPECT_THAT(refusal({"task.label_smoothing=0.3", "train.label_smoothing="}),
              HasSubstr("task.label_smoothing is given and removed"));
  EXPECT_THAT(
      resolved_deck(with_train("label_smoothing = 0.25")),
      AllOf(HasSubstr("[task]\nloss = \"cross-entropy\""), HasSubstr("\nlabel_smoothing = 0.25")));
  EXPECT_THAT(refusal("[train]", "[task]\nlabel_smoothing = 0.5\n[train]\nlabel_smoothing = 0.25"),
              HasSubstr("task.label_smoothing is given twice"));
  EXPECT_THAT(refusal({"train.label_smoothing=2"}), HasSubstr("task.label_smoothing = 2"));
}

TEST(RunConfig, ReadsTheTask) {
  EXPECT_THAT(names_of(metrics_of(with_train("").task, 10)), ElementsAre("accuracy"));
  EXPECT_THAT(refusal({"task.loss=mean"}), HasSubstr("task.loss = \"mean\" is unknown"));
  EXPECT_THAT(refusal({"task.metrics=[\"acuracy\"]"}), HasSubstr("did you mean accuracy?"));
  EXPECT_THAT(names_of(metrics_of(with_train("", {"task.metrics=top5"}).task, 10)),
              ElementsAre("top5"));
  EXPECT_THAT(refusal({"task.metrics=[1]"}), HasSubstr("must be a list of"));
  EXPECT_THAT(refusal({"task.metrics=[\"accuracy\", \"accuracy\"]"}),
              HasSubstr("task.metrics has accuracy twice"));
}

constexpr const char* machine_table = R"([machine]
flops = 1e13
memory_bandwidth = 1e12
node_latency = 2e-6
node_bandwidth = 1e11
network_latency = 5e-6
network_bandwidth = 25_000_000_000
devices_per_node = 8
)";

TEST(RunConfig, ReadsTheMachineIfThereIsOne) {
  EXPECT_FALSE(load().machine.has_value());
  EXPECT_THAT(resolved_deck(load()), Not(HasSubstr("[machine]")));
  const RunConfig config = parse_run_config(std::string(digits) + machine_table, "x.toml", {});
  const Machine expected = {.flops = 1e13,
                            .memory_bandwidth = 1e12,
                            .latency_inside = 2e-6,
                            .bandwidth_inside = 1e11,
                            .latency_between = 5e-6,
                            .bandwidth_between = 2.5e10,
                            .devices_per_node = 8};
  EXPECT_EQ(config.machine, expected);
  EXPECT_EQ(parse_run_config(resolved_deck(config), "y.toml", {}).machine, expected);
}

TEST(RunConfig, WantsTheWholeMachine) {
  const std::string whole = std::string(digits) + machine_table;
  const auto refused = [&](const std::string& from, const std::string& to) {
    return refusal_of(std::string(whole).replace(whole.find(from), from.size(), to), {});
  };
  EXPECT_EQ(refused("node_latency = 2e-6\n", ""),
            "inputs/x.toml: machine.node_latency is missing; it must be a number of at least 0 "
            "(seconds)");
  EXPECT_THAT(refusal({"machine.flops=1e12"}), HasSubstr("machine.memory_bandwidth is missing"));
  EXPECT_THAT(refusal_of(std::string(digits) + "[machine]\n", {}),
              HasSubstr("machine.flops is missing"));
  EXPECT_THAT(refused("1e13", "0"), HasSubstr("a number of at least 1 (FLOP/s)"));
  EXPECT_THAT(refused("2e-6", "-1"), HasSubstr("out of range"));
  EXPECT_THAT(refused("1e11", "inf"), HasSubstr("not a finite number"));
  EXPECT_THAT(refused("node = 8", "node = 0"), HasSubstr("1 to 4096"));
}

TEST(RunConfig, RefusesBadSlices) {
  for (const char* slices :
       {"a", "1:2:0", "1:2:-1", "1:2:3:4", ",", "1,,2", "99999999999999999999"})
    EXPECT_THAT(refusal({std::string("profile.steps=\"") + slices + "\""}),
                StartsWith("command line: profile.steps"))
        << slices;
  EXPECT_EQ(load({"profile.steps=::1000"}).profile.steps, "::1000");
}

TEST(RunConfig, ResolvedDeckReadsBackTheSame) {
  for (const std::vector<std::string>& overrides :
       {std::vector<std::string>{}, {"run.name='a \"b\" \\'"}, {"data.file=../x.h5"}}) {
    const RunConfig config = load(overrides);
    const std::string text = resolved_deck(config, false);
    const RunConfig again = parse_run_config(resolved_deck(config), "elsewhere/y.toml", {});
    EXPECT_EQ(resolved_deck(again, false), text);
    EXPECT_EQ(std::filesystem::absolute(config.data.file).string(), again.data.file);
  }
}

TEST(RunConfig, ResolvedDeckSaysWhereValuesComeFrom) {
  const std::string text = resolved_deck(load({"run.seed=9"}));
  EXPECT_THAT(text, HasSubstr("seed = 9                                  # command line\n"));
  EXPECT_THAT(text, HasSubstr("stages = 2                                # inputs/x.toml:13:1\n"));
  EXPECT_THAT(text, HasSubstr("reduction = \"ordered\"                     # default\n"));
}

TEST(RunConfig, LaterChecksNameThePlace) {
  const RunConfig config = load();
  EXPECT_EQ(where(config, "model.widths"), "inputs/x.toml:6:1");
  EXPECT_EQ(where(config, "parallel.reduction"), "inputs/x.toml");
  EXPECT_EQ(located(config, "model.widths starts with 3"),
            "inputs/x.toml:6:1: model.widths starts with 3");
  EXPECT_EQ(located(config, "x.h5 is missing"), "x.h5 is missing");
  try {
    with_locations(config, [] { fail(ExitCode::usage, "model.widths: no"); });
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "inputs/x.toml:6:1: model.widths: no");
  }
}

TEST(RunConfig, MissingFileIsNamed) {
  try {
    static_cast<void>(load_run_config("no/such.toml", {}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "no/such.toml: the deck cannot be opened: No such file or directory");
  }
}

}  // namespace
}  // namespace carousel
