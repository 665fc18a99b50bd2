// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/optim/optimizer.hpp"

#include "core/base/check.hpp"
#include "core/deck/kinds.hpp"

namespace carousel {
namespace {

using OptimizerKinds = Kinds<Optimizer>;

}  // namespace

std::vector<Row<OptimizerConfig>> OptimizerConfig::rows() {
  const auto kind = [](auto& config) -> auto& {
    return config.kind;
  };
  std::vector<Row<OptimizerConfig>> rows = rows_at<OptimizerConfig>(
      std::vector{OptimizerKinds::name_row("How the parameters are updated.")}, kind);
  rows.front().traits.bond = Bond::fixed;
  const std::vector<Row<OptimizerConfig>> common = {
      key("learning_rate", &OptimizerConfig::learning_rate, at_least(0),
          "Highest learning rate of the schedule."),
      key("weight_decay", &OptimizerConfig::weight_decay, at_least(0),
          "sgd: multiple of the parameters that is added to their gradient. lamb: to their "
          "direction. Others: multiple of the learning rate by which they shrink."),
      key("decay_norm_and_bias", &OptimizerConfig::decay_norm_and_bias, anything,
          "Whether weight decay applies to biases and norms, too."),
      key("clip_norm", &OptimizerConfig::clip_norm, at_least(0),
          "Most that the norm of the whole gradient may have; a longer one is shortened to it, as "
          "PyTorch's clip_grad_norm_ does. Every update then waits for all gradients, which cyclic "
          "rules never have at once; they have clip_stage_norm. 0 shortens none.",
          only_with("parallel.rule", {"dp"})),
      key("clip_stage_norm", &OptimizerConfig::clip_stage_norm, at_least(0),
          "The same for the gradient of each stage by itself, under every rule. It depends on "
          "where stages begin.")};
  rows.insert(rows.end(), common.begin(), common.end());
  const auto own = rows_at<OptimizerConfig>(OptimizerKinds::rows("train.optimizer"), kind);
  rows.insert(rows.end(), own.begin(), own.end());
  return rows;
}

Row<OptimizerConfig> OptimizerConfig::average_row() {
  return key(
      "ema", &OptimizerConfig::ema, below_one,
      "Whether checkpoints have averages of the parameters, too, and what the average before "
      "counts for after an update, such as 0.999: ema average + (1 - ema) parameters, as "
      "PyTorch's AveragedModel with get_ema_multi_avg_fn. eval, predict and export use them; "
      "evaluations of the training itself do not. 0: none.",
      bound(Bond::numbers));
}

std::vector<NoEffect> OptimizerConfig::without_effect() const {
  std::vector<NoEffect> found = std::visit(
      [](const auto& optimizer) -> std::vector<NoEffect> {
        if constexpr (requires { optimizer.without_effect(); }) return optimizer.without_effect();
        return {};
      },
      kind);
  if (!decay_norm_and_bias && weight_decay == 0)
    found.push_back({"train.optimizer.decay_norm_and_bias",
                     {"train.optimizer.weight_decay"},
                     "it needs weight decay"});
  return found;
}

void OptimizerConfig::check() const {
  if (clip_norm > 0 && clip_stage_norm > 0)
    fail(ExitCode::usage,
         "train.optimizer.clip_stage_norm and train.optimizer.clip_norm are both given; remove "
         "one");
  std::visit(
      [](const auto& optimizer) {
        if constexpr (requires { optimizer.check(); }) optimizer.check();
      },
      kind);
}

const char* OptimizerConfig::name() const {
  return OptimizerKinds::name_of(kind);
}

std::vector<std::string> OptimizerConfig::states() const {
  auto states = std::visit([](const auto& optimizer) { return optimizer.states(); }, kind);
  if (ema > 0) states.emplace_back(average_state);
  return states;
}

std::int64_t OptimizerConfig::workspace_bytes(std::int64_t largest_tensor) const {
  return std::visit(
      [&](const auto& optimizer) -> std::int64_t {
        if constexpr (requires { optimizer.workspace_bytes(largest_tensor); })
          return optimizer.workspace_bytes(largest_tensor);
        return 0;
      },
      kind);
}

Clipping OptimizerConfig::clipping() const {
  if (clip_norm > 0) return Clipping::model;
  return clip_stage_norm > 0 ? Clipping::stage : Clipping::none;
}

}  // namespace carousel
