// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The update rules of Cyclic Data Parallelism (Fournier & Oyallon, arXiv 2403.08837) as functions
// of (N, S, slack, passes): when a micro-batch runs and which parameters it reads. No devices, no
// actions.

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
  int passes = 1;                    // k, of which a worker takes one after the other; divides N
  int stages = 1;                    // S
  int slack = 0;                     // cdp-v2 only; 0 .. S k
  double predict = 0;                // kappa; cyclic rules only
  Updates updates = Updates::eager;  // dp with shards only
  Sums sums = Sums::ring;            // late: cdp-v1 with shards only
  bool shards = false;               // stages are cut among the devices of a slot,
  int chunks = 1;  // and so that no message has more than 1 / chunks of all parameters

  [[nodiscard]] static std::vector<Row<ParallelConfig>> rows();
  /// W = N / k. The gradients of a worker are added up first, and then those of all workers.
  [[nodiscard]] int workers() const { return micro_batches / passes; }
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
/// stages j = 0 .. S-1, training steps t = 0, 1, ... Worker w = 0 .. W-1 takes micro-batches
/// k w .. k w + k - 1 one after the other, one in every pass; the paper has k = 1.
class Rule {
 public:
  /// `together`: the workers of a step run at the same time, as those of dp always do.
  Rule(RuleKind kind, int micro_batches, int stages, int slack, bool together = false,
       int passes = 1);

  [[nodiscard]] RuleKind kind() const { return kind_; }
  [[nodiscard]] bool cyclic() const { return kind_ != RuleKind::dp; }
  [[nodiscard]] bool together() const { return together_; }
  [[nodiscard]] int micro_batches() const { return n_; }
  [[nodiscard]] int stages() const { return s_; }
  [[nodiscard]] int slack() const { return slack_; }
  [[nodiscard]] int passes() const { return k_; }
  [[nodiscard]] int workers() const { return n_ / k_; }

  [[nodiscard]] int worker_of(int i) const { return i / k_; }
  /// First and last micro-batch of a worker.
  [[nodiscard]] int first_of(int worker) const { return worker * k_; }
  [[nodiscard]] int last_of(int worker) const { return worker * k_ + k_ - 1; }
  /// floor(S w / W): workers of one slot run at the same time.
  [[nodiscard]] int slot_of(int worker) const;
  /// First and last worker of the slot of a worker.
  [[nodiscard]] int first_in_slot(int worker) const;
  [[nodiscard]] int last_in_slot(int worker) const;
  /// Time steps of a training step, 2 S k.
  [[nodiscard]] std::int64_t period() const { return 2LL * s_ * k_; }
  /// Time steps by which a worker starts after worker 0 of the same training step: 2 k for every
  /// slot. Where k and S have a common divisor g, slots S / g apart would then be at the same stage
  /// at the same time, and their activations grow and shrink together; there they start up to
  /// 2 (g - 1) time steps later, so that all slots are at different stages, as they are for k = 1.
  [[nodiscard]] std::int64_t offset(int worker) const;
  /// Time step at which the forward (backward) of stage j of micro-batch i, training step t, runs.
  [[nodiscard]] std::int64_t forward_time(int i, int j, std::int64_t t) const;
  [[nodiscard]] std::int64_t backward_time(int i, int j, std::int64_t t) const;
  /// Time step of the last backward of a worker, which completes its gradient of stage j.
  [[nodiscard]] std::int64_t gradient_time(int worker, int j, std::int64_t t) const {
    return backward_time(last_of(worker), j, t);
  }
  /// Whether micro-batch i reads theta_t of stage j in step t; otherwise it reads theta_{t-1}.
  [[nodiscard]] bool fresh(int i, int j) const;
  /// Whether no micro-batch reads theta_t of any stage in step t.
  [[nodiscard]] bool always_stale() const { return slack_ == s_ * k_ && cyclic(); }
  /// The version read by micro-batch i in stage j in step t; -1 stands for theta_{-1} = theta_0.
  [[nodiscard]] std::int64_t version(int i, int j, std::int64_t t) const {
    return fresh(i, j) ? t : t - 1;
  }
  /// The first micro-batch of a worker that is fresh in stage j; first_of(worker) + k where none
  /// is. Those behind it are fresh, too.
  [[nodiscard]] int first_fresh(int worker, int j) const;
  /// When a worker reads theta_{t+1} of stage j for the first time.
  [[nodiscard]] std::int64_t first_use(int worker, int j, std::int64_t t) const;
  /// Whether a worker reads theta_t of stage j in any micro-batch, and whether theta_{t-1}.
  [[nodiscard]] bool reads_new(int worker, int j) const {
    return first_fresh(worker, j) <= last_of(worker);
  }
  [[nodiscard]] bool reads_old(int worker, int j) const {
    return first_fresh(worker, j) > first_of(worker);
  }
  /// When a worker reads what takes the place of theta_{t+1} of stage j, in step t + 2.
  [[nodiscard]] std::int64_t first_old_use(int worker, int j, std::int64_t t) const {
    return forward_time(first_of(worker), j, t + 2);
  }
  /// Copies of the parameters of a stage that the rule needs: one for dp, two for cyclic rules.
  [[nodiscard]] int versions() const { return cyclic() ? 2 : 1; }

 private:
  RuleKind kind_;
  int n_;
  int s_;
  int k_;
  int slack_;
  bool together_;
};

}  // namespace carousel
