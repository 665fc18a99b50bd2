// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/rule.hpp"

#include "core/base/check.hpp"

namespace carousel {

Rule::Rule(RuleKind kind, int micro_batches, int stages, int slack)
    : kind_(kind),
      n_(micro_batches),
      s_(stages),
      slack_(kind == RuleKind::cdp_v1 ? stages : slack) {
  CAROUSEL_CHECK(n_ >= 1 && s_ >= 1, "N = {}, S = {}", n_, s_);
  CAROUSEL_CHECK(slack_ >= 0 && slack_ <= s_, "slack = {}, S = {}", slack_, s_);
}

int Rule::slot(int i) const {
  return static_cast<int>(static_cast<std::int64_t>(s_) * i / n_);
}

int Rule::first_of_slot(int i) const {
  while (i > 0 && slot(i - 1) == slot(i)) --i;
  return i;
}

int Rule::last_of_slot(int i) const {
  while (i + 1 < n_ && slot(i + 1) == slot(i)) ++i;
  return i;
}

std::int64_t Rule::forward_time(int i, int j, std::int64_t t) const {
  return offset(i) + 2 * s_ * t + j;
}

std::int64_t Rule::backward_time(int i, int j, std::int64_t t) const {
  return offset(i) + 2 * s_ * t + 2 * s_ - 1 - j;
}

bool Rule::fresh(int i, int j) const {
  switch (kind_) {
    case RuleKind::dp:
      return true;
    case RuleKind::cdp_v1:
      return false;
    case RuleKind::cdp_v2:
      return slot(i) + j >= slot(n_ - 1) + slack_;
  }
  return true;
}

const char* to_string(RuleKind rule) {
  switch (rule) {
    case RuleKind::dp:
      return "dp";
    case RuleKind::cdp_v1:
      return "cdp-v1";
    case RuleKind::cdp_v2:
      return "cdp-v2";
  }
  return "?";
}

const char* to_string(Placement placement) {
  switch (placement) {
    case Placement::single:
      return "single";
    case Placement::replicated:
      return "replicated";
    case Placement::model:
      return "model";
    case Placement::pipeline:
      return "pipeline";
    case Placement::sharded:
      return "sharded";
  }
  return "?";
}

const char* to_string(Order order) {
  return order == Order::together ? "together" : "accumulate";
}

const char* to_string(Reduction reduction) {
  switch (reduction) {
    case Reduction::ordered:
      return "ordered";
    case Reduction::fast:
      return "fast";
    case Reduction::overlapped:
      return "overlapped";
    case Reduction::owner:
      return "owner";
    case Reduction::local:
      return "local";
  }
  return "?";
}

const char* to_string(Balance balance) {
  switch (balance) {
    case Balance::flops:
      return "flops";
    case Balance::activations:
      return "activations";
    case Balance::parameters:
      return "parameters";
    case Balance::layers:
      return "layers";
    case Balance::time:
      return "time";
  }
  return "?";
}

}  // namespace carousel
