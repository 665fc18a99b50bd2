// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The update rules of Cyclic Data Parallelism (Fournier & Oyallon, arXiv 2403.08837) as functions
// of (N, S, slack): when a micro-batch runs and which parameters it reads. No devices, no actions.

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/words.hpp"

namespace carousel {

template <class Struct>
struct Row;

enum class RuleKind : std::uint8_t { dp, cdp_v1, cdp_v2 };
constexpr auto words_of(RuleKind) {
  return all_words<RuleKind>("dp", "cdp-v1", "cdp-v2");
}

/// Each is described in core/plan/placements/kinds.hpp.
enum class Placement : std::uint8_t { single, replicated, model, pipeline, sharded };
[[nodiscard]] Words<Placement> words_of(Placement);

enum class Order : std::uint8_t { together, accumulate };
constexpr auto words_of(Order) {
  return all_words<Order>("together", "accumulate");
}

enum class Balance : std::uint8_t { flops, activations, parameters, layers, time };
constexpr auto words_of(Balance) {
  return all_words<Balance>("flops", "activations", "parameters", "layers", "time");
}

enum class Reduction : std::uint8_t { ordered, fast, overlapped, owner, local };
constexpr auto words_of(Reduction) {
  return all_words<Reduction>("ordered", "fast", "overlapped", "owner", "local");
}
/// Whether the library's collectives add up gradients.
[[nodiscard]] inline bool by_collectives(Reduction reduction) {
  return reduction == Reduction::fast || reduction == Reduction::overlapped ||
         reduction == Reduction::owner;
}

enum class Sums : std::uint8_t { ring, late };
constexpr auto words_of(Sums) {
  return all_words<Sums>("ring", "late");
}

enum class Updates : std::uint8_t { eager, together };
constexpr auto words_of(Updates) {
  return all_words<Updates>("eager", "together");
}

/// Micro-batches, and stages, that a deck may ask for.
inline constexpr int most_parallel = 4096;
/// What was decided at the end of step t is known on every device before it begins step
/// t + device_lag. Proven by core/proof/checker.
inline constexpr std::int64_t device_lag = 3;
/// Training steps that the host hands over before the device has begun them, at most.
inline constexpr std::int64_t host_lead = 2;
/// The host knows it before it hands over any action of step t + decision_lag, with which a segment
/// therefore ends.
inline constexpr std::int64_t decision_lag = device_lag + host_lead;
/// Samples that a micro-batch may have.
inline constexpr int most_micro_batch_size = 65536;

/// The `[parallel]` table of a deck, less the transport.
struct ParallelConfig {
  RuleKind rule = RuleKind::cdp_v2;
  Placement placement = Placement::single;
  Order order = Order::together;  // dp on one device only
  // local: cyclic model only; overlapped, owner: dp replicated only; fast: see has_fast_sums
  Reduction reduction = Reduction::ordered;
  Balance balance = Balance::flops;
  int micro_batches = 1;             // N, per training step
  int stages = 1;                    // S
  int slack = 0;                     // cdp-v2 only; 0 .. S
  Updates updates = Updates::eager;  // dp with shards only
  Sums sums = Sums::ring;            // late: cdp-v1 with shards only
  bool shards = false;               // stages are cut among the devices of a slot,
  int chunks = 1;  // and so that no message has more than 1 / chunks of all parameters

  [[nodiscard]] static std::vector<Row<ParallelConfig>> rows();
  /// The same with stages that are not cut.
  [[nodiscard]] ParallelConfig whole() const {
    ParallelConfig result = *this;
    result.shards = false;
    result.chunks = 1;
    result.updates = Updates::eager;
    result.sums = Sums::ring;
    return result;
  }
};

/// One time step is one forward or one backward of one stage. Micro-batches are i = 0 .. N-1,
/// stages j = 0 .. S-1, training steps t = 0, 1, ...
class Rule {
 public:
  /// `together`: the micro-batches of a step run at the same time, as those of dp always do.
  Rule(RuleKind kind, int micro_batches, int stages, int slack, bool together = false);

  [[nodiscard]] RuleKind kind() const { return kind_; }
  [[nodiscard]] bool cyclic() const { return kind_ != RuleKind::dp; }
  [[nodiscard]] bool together() const { return together_; }
  [[nodiscard]] int micro_batches() const { return n_; }
  [[nodiscard]] int stages() const { return s_; }
  [[nodiscard]] int slack() const { return slack_; }

  /// floor(S i / N): micro-batches of one slot run at the same time.
  [[nodiscard]] int slot(int i) const;
  /// First and last micro-batch of the slot of micro-batch i.
  [[nodiscard]] int first_of_slot(int i) const;
  [[nodiscard]] int last_of_slot(int i) const;
  /// Time steps by which micro-batch i starts after micro-batch 0 of the same training step.
  [[nodiscard]] int offset(int i) const { return together_ ? 0 : 2 * slot(i); }
  /// Time step at which the forward (backward) of stage j of micro-batch i, training step t, runs.
  [[nodiscard]] std::int64_t forward_time(int i, int j, std::int64_t t) const;
  [[nodiscard]] std::int64_t backward_time(int i, int j, std::int64_t t) const;
  /// Whether micro-batch i reads theta_t of stage j in step t; otherwise it reads theta_{t-1}.
  [[nodiscard]] bool fresh(int i, int j) const;
  /// The version read by micro-batch i in stage j in step t; -1 stands for theta_{-1} = theta_0.
  [[nodiscard]] std::int64_t version(int i, int j, std::int64_t t) const {
    return fresh(i, j) ? t : t - 1;
  }
  /// Copies of the parameters of a stage that the rule needs: one for dp, two for cyclic rules.
  [[nodiscard]] int versions() const { return cyclic() ? 2 : 1; }

 private:
  RuleKind kind_;
  int n_;
  int s_;
  int slack_;
  bool together_;
};

}  // namespace carousel
