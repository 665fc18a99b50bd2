// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The loss of a classifier, torch.nn.CrossEntropyLoss (mean): reads logits in the type that they
// are stored in, computes in full numbers and reports the loss of the micro-batch. It knows class
// indices, not class weights.

#include <type_traits>

#include "core/engine/layer.hpp"
#include "layers/mean_loss.hpp"
#include "layers/softmax_cross_entropy/op.hpp"
#include "layers/stored.hpp"

namespace carousel::kernels {
namespace {

/// Where the largest logit of a sample is; the first one of equals, as torch.argmax.
struct Largest {
  real value;
  int index;
};

/// e to the power of a logit less the largest one of its sample, where the classes share no more
/// than that.
template <class Stored>
struct LogitRow {
  const Stored* logits;  // [classes]
  int classes;

  /// Where the largest logit is.
  KOKKOS_FUNCTION Largest largest(const Team& team) const {
    using Reducer = Kokkos::MaxFirstLoc<real, int>;
    typename Reducer::value_type found;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, classes),
        [&](int c, typename Reducer::value_type& best) {
          const real value = full(logits[c]);
          if (value > best.val) best = {value, c};
        },
        Reducer(found));
    return {found.val, found.loc};
  }
  [[nodiscard]] KOKKOS_FUNCTION real power(int c, real top) const {
    return Kokkos::exp(full(logits[c]) - top);
  }
  /// The sum of the powers.
  KOKKOS_FUNCTION double total(const Team& team, real top) const {
    double sum = 0;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, classes),
        [&](int c, double& partial) { partial += power(c, top); }, sum);
    return sum;
  }
};

/// The loss of one sample.
template <class Stored>
struct CrossEntropyForward {
  int classes;
  const Stored* logits;  // [n, classes]
  const int* labels;     // [n]
  double smoothing;

  /// How far the logits of a sample are below the largest one in the mean.
  KOKKOS_FUNCTION double mean_below(const Team& team, const LogitRow<Stored>& row, real top) const {
    double sum = 0;
    if (smoothing == 0) return sum;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, classes),
        [&](int c, double& partial) { partial += static_cast<double>(top) - full(row.logits[c]); },
        sum);
    return sum / classes;
  }

  KOKKOS_FUNCTION double operator()(const Team& team, int i) const {
    const LogitRow<Stored> row = {logits + static_cast<std::int64_t>(i) * classes, classes};
    const Largest top = row.largest(team);
    const double at_label = full(row.logits[labels[i]]);
    // -sum of target_c log p_c, with log p_c = x_c - top - log(total)
    return Kokkos::log(row.total(team, top.value)) - (1 - smoothing) * (at_label - top.value) +
           smoothing * mean_below(team, row, top.value);
  }
};

/// d_logits = (probabilities - target) / n of one sample, which may take the place of the logits.
template <class Stored>
struct CrossEntropyBackward {
  int n;
  int classes;
  const Stored* logits;  // [n, classes]
  const int* labels;     // [n]
  Stored* d_logits;      // [n, classes]
  real everywhere;       // part of the target that all classes have
  real at_label;         // the target of the label

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const int i = team.league_rank();
    const std::int64_t begin = static_cast<std::int64_t>(i) * classes;
    const LogitRow<Stored> row = {logits + begin, classes};
    Stored* d = d_logits + begin;
    const int label = labels[i];
    const real top = row.largest(team).value;
    const real inverse = static_cast<real>(1 / row.total(team, top));
    if constexpr (std::is_same_v<Stored, real>) {
      // In two loops: nothing may be computed in one operation with what it is rounded before.
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, classes),
                           [&](int c) { d[c] = row.power(c, top) * inverse; });
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, classes), [&](int c) {
        const real target = c == label ? at_label : everywhere;
        d[c] = (d[c] - target) / n;
      });
    } else {
      // Rows sum to 0. The difference of two numbers near 1 would have few digits left, and a
      // gradient in bf16 is small against the logits where the others still have all of theirs.
      double others = 0;
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, classes),
          [&](int c, double& partial) {
            if (c == label) return;
            const real gradient = row.power(c, top) * inverse - everywhere;
            partial += gradient;
            put(d[c], gradient / n);
          },
          others);
      Kokkos::single(Kokkos::PerThread(team),
                     [&] { put(d[label], static_cast<real>(-others / n)); });
    }
  }
};

class SoftmaxCrossEntropy final : public Layer {
 public:
  explicit SoftmaxCrossEntropy(const LayerSpec& spec)
      : classes_(spec.input().channels),
        smoothing_(spec.as<op::SoftmaxCrossEntropy>().smoothing),
        type_(spec.inputs.front().format.type) {}

  /// Leaves the logits as they are; the loss goes to `arguments.report`. In training, all
  /// classes share the smoothing of the target (Szegedy et al. 2016); evaluation reports the plain
  /// loss.
  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  /// d_input = (softmax(logits) - target) / n; may overwrite the logits. Where these are bf16, the
  /// entry of the label is minus the sum of the others.
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  int classes_;
  double smoothing_;
  DataType type_;
};

void SoftmaxCrossEntropy::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::softmax_cross_entropy_forward";
  const double smoothing = arguments.training ? smoothing_ : 0;
  with_stored(type_, [&]<class Stored>() {
    const auto* logits = reinterpret_cast<const Stored*>(arguments.input.data);
    report_mean(
        label, exec, arguments.input.n,
        CrossEntropyForward<Stored>{classes_, logits, labels_of(arguments.targets), smoothing},
        arguments.report);
  });
}

void SoftmaxCrossEntropy::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::softmax_cross_entropy_backward";
  if (arguments.d_input.data == nullptr) return;
  const int n = arguments.output.n;
  with_stored(type_, [&]<class Stored>() {
    const auto* logits = reinterpret_cast<const Stored*>(arguments.output.data);
    auto* d_logits = reinterpret_cast<Stored*>(arguments.d_input.data);
    Kokkos::parallel_for(
        label, TeamPolicy(exec, n, 1, loss_vector),
        CrossEntropyBackward<Stored>{n, classes_, logits, labels_of(arguments.targets), d_logits,
                                     static_cast<real>(smoothing_ / classes_),
                                     static_cast<real>(1 - smoothing_ + smoothing_ / classes_)});
  });
}

}  // namespace

std::unique_ptr<Layer> softmax_cross_entropy(const LayerSpec& spec, int /*samples*/,
                                             const Engine& /*engine*/) {
  return std::make_unique<SoftmaxCrossEntropy>(spec);
}

}  // namespace carousel::kernels
