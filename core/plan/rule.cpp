// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/rule.hpp"

#include <algorithm>
#include <numeric>

#include "core/base/check.hpp"

namespace carousel {

Rule::Rule(RuleKind kind, int micro_batches, int stages, int slack, bool together, int passes)
    : kind_(kind),
      n_(micro_batches),
      s_(stages),
      k_(passes),
      slack_(kind == RuleKind::cdp_v1 ? stages * passes : slack),
      together_(together || kind == RuleKind::dp) {
  CAROUSEL_CHECK(n_ >= 1 && s_ >= 1, "N = {}, S = {}", n_, s_);
  CAROUSEL_CHECK(k_ >= 1 && n_ % k_ == 0, "N = {}, k = {}", n_, k_);
  CAROUSEL_CHECK(slack_ >= 0 && slack_ <= s_ * k_, "slack = {}, S = {}, k = {}", slack_, s_, k_);
}

int Rule::slot_of(int worker) const {
  return static_cast<int>(static_cast<std::int64_t>(s_) * worker / workers());
}

int Rule::first_in_slot(int worker) const {
  while (worker > 0 && slot_of(worker - 1) == slot_of(worker)) --worker;
  return worker;
}

int Rule::last_in_slot(int worker) const {
  while (worker + 1 < workers() && slot_of(worker + 1) == slot_of(worker)) ++worker;
  return worker;
}

std::int64_t Rule::offset(int worker) const {
  if (together_) return 0;
  const std::int64_t slot = slot_of(worker);
  // Slots of one block begin at different stages, those of the next at the same ones. Blocks wait
  // for 0, 2, 4, ..., 5, 3, 1 stages, so that slots in a row, and the last one and the first one of
  // the next step, stay about as far apart as without.
  const std::int64_t blocks = std::gcd(k_, s_);
  const std::int64_t block = slot / (s_ / blocks);
  const std::int64_t wait = std::min(2 * block, 2 * (blocks - block) - 1);
  return 2 * (k_ * slot + wait);
}

std::int64_t Rule::forward_time(int i, int j, std::int64_t t) const {
  return offset(worker_of(i)) + period() * t + 2LL * s_ * (i % k_) + j;
}

std::int64_t Rule::backward_time(int i, int j, std::int64_t t) const {
  return forward_time(i, 0, t) + 2LL * s_ - 1 - j;
}

bool Rule::fresh(int i, int j) const {
  switch (kind_) {
    case RuleKind::dp:
      return true;
    case RuleKind::cdp_v1:
      return false;
    case RuleKind::cdp_v2:
      // theta_{t+1} of the stage is complete behind its last gradient of step t.
      return forward_time(i, j, 1) >= gradient_time(workers() - 1, j, 0) + 1 + 2LL * slack_;
  }
  return true;
}

int Rule::first_fresh(int worker, int j) const {
  int i = first_of(worker);
  while (i <= last_of(worker) && !fresh(i, j)) ++i;
  return i;
}

std::int64_t Rule::first_use(int worker, int j, std::int64_t t) const {
  const int i = first_fresh(worker, j);
  return i > last_of(worker) ? forward_time(first_of(worker), j, t + 2) : forward_time(i, j, t + 1);
}

}  // namespace carousel
