// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/rule.hpp"

#include "core/base/check.hpp"

namespace carousel {

Rule::Rule(RuleKind kind, int micro_batches, int stages, int slack, bool together)
    : kind_(kind),
      n_(micro_batches),
      s_(stages),
      slack_(kind == RuleKind::cdp_v1 ? stages : slack),
      together_(together || kind == RuleKind::dp) {
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

}  // namespace carousel
