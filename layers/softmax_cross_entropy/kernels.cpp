// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The loss of a classifier, of samples or of their pixels, torch.nn.CrossEntropyLoss (mean): reads
// logits in the type that they are stored in, computes in full numbers and reports the loss of the
// micro-batch.

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "core/base/check.hpp"
#include "core/engine/layer.hpp"
#include "core/model/task.hpp"
#include "layers/mean_loss.hpp"
#include "layers/softmax_cross_entropy/op.hpp"
#include "layers/stored.hpp"
#include "layers/targets.hpp"

namespace carousel::kernels {
namespace {

/// Where the largest logit of a pixel is; the first one of equals, as torch.argmax.
struct Largest {
  real value;
  int index;
};

/// The logits of one pixel. The power of one is e to that less the largest of them.
template <class Stored>
struct LogitRow {
  Strided<Stored> logits;  // [classes]
  int classes;

  KOKKOS_FUNCTION LogitRow(const Stored* all, const Targets& targets, std::int64_t i,
                           std::int64_t p)
      : logits{all + i * targets.outputs() + p, targets.pixels}, classes(targets.channels) {}

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

/// What classes count for, where they do not count alike.
struct ClassWeights {
  double of[most_weights] = {};  // NOLINT(modernize-avoid-c-arrays): kernels are given all of it
  bool differ = false;
  double sum = 0;

  explicit ClassWeights(const std::vector<double>& weights) : differ(!weights.empty()) {
    CAROUSEL_CHECK(weights.size() <= most_weights, "{} weights", weights.size());
    std::ranges::copy(weights, of);
    sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  }
  [[nodiscard]] KOKKOS_FUNCTION double operator[](int c) const { return differ ? of[c] : 1.0; }
};

/// The loss of one pixel.
template <class Stored>
struct CrossEntropy {
  Targets targets;
  const Stored* logits;  // [n, classes, pixels]
  double smoothing;
  ClassWeights weights;

  /// How far the logits of a pixel are below the largest one, each by its weight, in the mean.
  KOKKOS_FUNCTION double mean_below(const Team& team, const LogitRow<Stored>& row, real top) const {
    double sum = 0;
    if (smoothing == 0) return sum;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, row.classes),
        [&](int c, double& partial) {
          partial += weights[c] * (static_cast<double>(top) - full(row.logits[c]));
        },
        sum);
    return sum / row.classes;
  }

  KOKKOS_FUNCTION double of_pixel(const Team& team, int i, std::int64_t p) const {
    const LogitRow<Stored> row(logits, targets, i, p);
    const Largest top = row.largest(team);
    const int label = targets.label(i, p);
    const double at_label = full(row.logits[label]);
    const double of_all = Kokkos::log(row.total(team, top.value));
    // -sum of target_c log p_c, with log p_c = x_c - top - log(total)
    if (!weights.differ)
      return of_all - (1 - smoothing) * (at_label - top.value) +
             smoothing * mean_below(team, row, top.value);
    return (1 - smoothing) * weights[label] * (of_all - (at_label - top.value)) +
           smoothing * (weights.sum / row.classes * of_all + mean_below(team, row, top.value));
  }
  /// The mean over the pixels of one sample.
  KOKKOS_FUNCTION double operator()(const Team& team, int i) const {
    double sum = 0;
    for (std::int64_t p = 0; p < targets.pixels; ++p) sum += of_pixel(team, i, p);
    return sum / static_cast<double>(targets.pixels);
  }
  /// Of those whose label counts, the sum and what they count for.
  KOKKOS_FUNCTION void operator()(const Team& team, int i, Sums<2>& sums) const {
    for (std::int64_t p = 0; p < targets.pixels; ++p) {
      if (targets.label(i, p) == targets.ignored) continue;
      sums.of[0] += of_pixel(team, i, p);
      sums.of[1] += weights[targets.label(i, p)];
    }
  }
};

/// d_logits = (probabilities - target) / count of one pixel, which may take the place of the
/// logits; with weights, the target adds up to more or less than 1, and so do the probabilities.
template <class Stored>
struct CrossEntropyBackward {
  Targets targets;
  const double* weight;  // of all labels; null where all count alike
  real count;            // labels, where all count
  const Stored* logits;  // [n, classes, pixels]
  Stored* d_logits;      // [n, classes, pixels]
  real everywhere;       // part of the target that all classes have
  real at_label;         // the target of the label
  ClassWeights weights;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t i = team.league_rank() / targets.pixels;
    const std::int64_t p = team.league_rank() % targets.pixels;
    const LogitRow<Stored> row(logits, targets, i, p);
    Stored* const d = d_logits + i * targets.outputs() + p;
    const std::int64_t stride = targets.pixels;
    const int classes = targets.channels;
    const int label = targets.label(i, p);
    if (label == targets.ignored || (weight != nullptr && *weight == 0)) {
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, classes),
                           [&](int c) { put(d[c * stride], real(0)); });
      return;
    }
    const real n = weight == nullptr ? count : static_cast<real>(*weight);
    // Of a target that adds up to `scale`: with weights, that of class c is one times its weight.
    const double of_label = weights[label] * (double{at_label} - double{everywhere});
    const real scale =
        weights.differ ? static_cast<real>(of_label + double{everywhere} * weights.sum) : real(1);
    const auto target_of = [&](int c) {
      if (!weights.differ) return c == label ? at_label : everywhere;
      return static_cast<real>(double{everywhere} * weights[c] + (c == label ? of_label : 0.0));
    };
    const real top = row.largest(team).value;
    const real inverse = static_cast<real>(1 / row.total(team, top));
    if constexpr (std::is_same_v<Stored, real>) {
      // In two loops: nothing may be computed in one operation with what it is rounded before.
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, classes),
                           [&](int c) { d[c * stride] = row.power(c, top) * inverse; });
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, classes), [&](int c) {
        if (weights.differ) d[c * stride] *= scale;
        d[c * stride] = (d[c * stride] - target_of(c)) / n;
      });
    } else {
      // Rows sum to 0. The difference of two numbers near 1 would have few digits left, and a
      // gradient in bf16 is small against the logits where the others still have all of theirs.
      double others = 0;
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, classes),
          [&](int c, double& partial) {
            if (c == label) return;
            const real gradient = row.power(c, top) * inverse * scale - target_of(c);
            partial += gradient;
            put(d[c * stride], gradient / n);
          },
          others);
      Kokkos::single(Kokkos::PerThread(team),
                     [&] { put(d[label * stride], static_cast<real>(-others / n)); });
    }
  }
};

class SoftmaxCrossEntropy final : public Layer {
 public:
  explicit SoftmaxCrossEntropy(const LayerSpec& spec)
      : target_(spec.target),
        smoothing_(spec.as<op::SoftmaxCrossEntropy>().smoothing),
        weights_(spec.target.weights),
        type_(spec.inputs.front().format.type) {}

  /// Leaves the logits as they are; the loss goes to `arguments.report`. In training, all
  /// classes share the smoothing of the target (Szegedy et al. 2016); evaluation reports the plain
  /// loss.
  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override;
  /// d_input = (softmax(logits) - target) / labels; may overwrite the logits. Where these are bf16,
  /// the entry of the label is minus the sum of the others.
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override;

 private:
  TargetSpec target_;
  double smoothing_;
  ClassWeights weights_;
  DataType type_;
};

void SoftmaxCrossEntropy::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::softmax_cross_entropy_forward";
  const double smoothing = arguments.training ? smoothing_ : 0;
  const int n = arguments.input.n;
  with_stored(type_, [&]<class Stored>() {
    const auto* logits = reinterpret_cast<const Stored*>(arguments.input.data);
    const CrossEntropy<Stored> loss{Targets(arguments.targets, target_), logits, smoothing,
                                    weights_};
    if (double* const weight = weight_in(arguments.saved, target_); weight != nullptr)
      report_weighted(label, exec, n, loss, arguments.report, weight);
    else
      report_mean(label, exec, n, loss, arguments.report);
  });
}

void SoftmaxCrossEntropy::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::softmax_cross_entropy_backward";
  if (arguments.d_input.data == nullptr) return;
  const auto labels = static_cast<int>(arguments.output.n * target_.pixels());
  const double everywhere = smoothing_ / target_.classes;
  with_stored(type_, [&]<class Stored>() {
    const auto* logits = reinterpret_cast<const Stored*>(arguments.output.data);
    auto* d_logits = reinterpret_cast<Stored*>(arguments.d_input.data);
    Kokkos::parallel_for(
        label, TeamPolicy(exec, labels, 1, sample_vector),
        CrossEntropyBackward<Stored>{Targets(arguments.targets, target_),
                                     weight_in(arguments.saved, target_), static_cast<real>(labels),
                                     logits, d_logits, static_cast<real>(everywhere),
                                     static_cast<real>(1 - smoothing_ + everywhere), weights_});
  });
}

}  // namespace

std::unique_ptr<Layer> softmax_cross_entropy(const LayerSpec& spec, int /*samples*/,
                                             const Engine& /*engine*/) {
  return std::make_unique<SoftmaxCrossEntropy>(spec);
}

}  // namespace carousel::kernels
