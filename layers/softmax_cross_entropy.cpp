// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/softmax_cross_entropy.hpp"

#include "core/base/range.hpp"

namespace carousel {
namespace {

// Sample i belongs to lane i mod lanes. Each lane adds its samples in ascending order, then the
// lanes are added in order: the sum depends on n alone, whoever computes the lanes.
constexpr int lanes = 16;
constexpr int vector_length = runs_on_host ? 1 : 32;

/// What one lane has added up.
struct LaneSum {
  double loss;
  double correct;
};

/// Where the largest logit of a sample is; the first one of equals, as torch.argmax.
struct Largest {
  real value;
  int index;
};

struct Forward {
  int n;
  int classes;
  const real* logits;   // [n, classes]
  real* probabilities;  // [n, classes]; may be the logits
  const int* labels;    // [n]
  Metrics* metrics;     // one
  int* chosen;          // [n], or null
  double smoothing;

  KOKKOS_FUNCTION Largest largest(const Team& team, const real* row) const {
    using Reducer = Kokkos::MaxFirstLoc<real, int>;
    typename Reducer::value_type found;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, classes),
        [&](int c, typename Reducer::value_type& best) {
          if (row[c] > best.val) best = {row[c], c};
        },
        Reducer(found));
    return {found.val, found.loc};
  }

  /// How far the logits of a sample are below the largest one in the mean.
  KOKKOS_FUNCTION double mean_below(const Team& team, const real* row, real top) const {
    double sum = 0;
    if (smoothing == 0) return sum;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, classes),
        [&](int c, double& partial) { partial += static_cast<double>(top) - row[c]; }, sum);
    return sum / classes;
  }

  /// Writes the probabilities of one sample and adds it to its lane.
  KOKKOS_FUNCTION void sample(const Team& team, int i, LaneSum& sum) const {
    const real* row = logits + static_cast<std::int64_t>(i) * classes;
    real* p = probabilities + static_cast<std::int64_t>(i) * classes;
    const real at_label = row[labels[i]];  // before it is overwritten: the search synchronises
    const Largest top = largest(team, row);
    const double below = mean_below(team, row, top.value);
    double total = 0;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, classes),
        [&](int c, double& partial) {
          p[c] = Kokkos::exp(row[c] - top.value);
          partial += p[c];
        },
        total);
    const real inverse = static_cast<real>(1 / total);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, classes), [&](int c) { p[c] *= inverse; });
    // -sum of target_c log p_c, with log p_c = x_c - top - log(total)
    sum.loss += Kokkos::log(total) - (1 - smoothing) * (static_cast<double>(at_label) - top.value) +
                smoothing * below;
    sum.correct += top.index == labels[i] ? 1 : 0;
    if (chosen != nullptr) Kokkos::single(Kokkos::PerThread(team), [&] { chosen[i] = top.index; });
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    auto* sums = static_cast<LaneSum*>(
        team.team_scratch(0).get_shmem_aligned(lanes * sizeof(LaneSum), alignof(LaneSum)));
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, lanes), [&](int lane) {
      LaneSum sum = {0, 0};
      for (int i = lane; i < n; i += lanes) sample(team, i, sum);
      Kokkos::single(Kokkos::PerThread(team), [&] { sums[lane] = sum; });
    });
    team.team_barrier();
    Kokkos::single(Kokkos::PerTeam(team), [&] {
      LaneSum all = {0, 0};
      for (int lane = 0; lane < lanes; ++lane) {
        all.loss += sums[lane].loss;
        all.correct += sums[lane].correct;
      }
      const double loss = all.loss / n;
      *metrics = {loss, all.correct, Kokkos::isfinite(loss) ? 0.0 : 1.0, static_cast<double>(n)};
    });
  }
};

}  // namespace

void SoftmaxCrossEntropy::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::softmax_cross_entropy_forward";
  // One team computes all samples: the scores of a classifier are few beside its layers.
  TeamPolicy policy(exec, 1, runs_on_host ? 1 : lanes, vector_length);
  policy.set_scratch_size(0, Kokkos::PerTeam(lanes * sizeof(LaneSum) + alignof(LaneSum)));
  Kokkos::parallel_for(label, policy,
                       Forward{arguments.input.n, classes_, arguments.input.data,
                               arguments.output.data, arguments.labels, arguments.metrics,
                               arguments.chosen, arguments.training ? smoothing_ : 0});
}

void SoftmaxCrossEntropy::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::softmax_cross_entropy_backward";
  if (arguments.d_input.data == nullptr) return;
  const real* p = arguments.output.data;
  const int* labels = arguments.labels;
  real* d_x = arguments.d_input.data;
  const int classes = classes_;
  const int n = arguments.output.n;
  const auto everywhere = static_cast<real>(smoothing_ / classes);
  const auto at_label = static_cast<real>(1 - smoothing_ + smoothing_ / classes);
  Kokkos::parallel_for(
      label, range(exec, arguments.output.size()), KOKKOS_LAMBDA(std::int64_t i) {
        const real target = labels[i / classes] == i % classes ? at_label : everywhere;
        d_x[i] = (p[i] - target) / n;
      });
}

}  // namespace carousel
