// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The loss of a classifier, of samples or of their pixels, torch.nn.CrossEntropyLoss (mean): reads
// logits in the type that they are stored in, computes in full numbers and reports the loss of the
// micro-batch. Of samples with one label, here, vector lanes share the classes; others: pixels.hpp.

#include <type_traits>

#include "core/engine/layer.hpp"
#include "layers/mean_loss.hpp"
#include "layers/softmax_cross_entropy/op.hpp"
#include "layers/softmax_cross_entropy/pixels.hpp"
#include "layers/stored.hpp"
#include "layers/targets.hpp"

namespace carousel::kernels {
namespace {

/// Where the largest logit of a sample is; the first one of equals, as torch.argmax.
struct Largest {
  real value;
  int index;
};

/// The logits of one sample. The power of one is e to that less the largest of them.
template <class Stored>
struct LogitRow {
  const Stored* logits;  // [classes]
  int classes;

  KOKKOS_FUNCTION LogitRow(const Stored* all, const Targets& targets, std::int64_t i)
      : logits(all + i * targets.outputs()), classes(targets.channels) {}

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

/// The loss of one sample with one label.
template <class Stored>
struct CrossEntropy {
  Targets targets;
  const Stored* logits;  // [n, classes]
  double smoothing;
  ClassWeights weights;

  /// How far the logits of a sample are below the largest one, each by its weight, in the mean.
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

  KOKKOS_FUNCTION double operator()(const Team& team, int i) const {
    const LogitRow<Stored> row(logits, targets, i);
    const Largest top = row.largest(team);
    const int label = targets.label(i, 0);
    const double at_label = full(row.logits[label]);
    const double of_all = Kokkos::log(row.total(team, top.value));
    // -sum of target_c log p_c, with log p_c = x_c - top - log(total)
    if (!weights.differ)
      return of_all - (1 - smoothing) * (at_label - top.value) +
             smoothing * mean_below(team, row, top.value);
    return (1 - smoothing) * weights[label] * (of_all - (at_label - top.value)) +
           smoothing * (weights.sum / row.classes * of_all + mean_below(team, row, top.value));
  }
  /// Of those whose label counts, the sum and what they count for.
  KOKKOS_FUNCTION void operator()(const Team& team, int i, Sums<2>& sums) const {
    if (targets.label(i, 0) == targets.ignored) return;
    sums.of[0] += (*this)(team, i);
    sums.of[1] += weights[targets.label(i, 0)];
  }
};

/// d_logits = (probabilities - target) / count of one sample, which may take the place of the
/// logits; with weights, the target adds up to more or less than 1, and so do the probabilities.
template <class Stored>
struct CrossEntropyBackward {
  Targets targets;
  const double* weight;  // of all labels; null where all count alike
  real count;            // labels, where all count
  const Stored* logits;  // [n, classes]
  Stored* d_logits;      // [n, classes]
  real everywhere;       // part of the target that all classes have
  real at_label;         // the target of the label
  ClassWeights weights;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t i = team.league_rank();
    const LogitRow<Stored> row(logits, targets, i);
    Stored* const d = d_logits + i * targets.outputs();
    const int classes = targets.channels;
    const int label = targets.label(i, 0);
    if (label == targets.ignored || (weight != nullptr && *weight == 0)) {
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, classes),
                           [&](int c) { put(d[c], real(0)); });
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
                           [&](int c) { d[c] = row.power(c, top) * inverse; });
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, classes), [&](int c) {
        if (weights.differ) d[c] *= scale;
        d[c] = (d[c] - target_of(c)) / n;
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
  SoftmaxCrossEntropy(const LayerSpec& spec, int samples, const Engine& engine)
      : target_(spec.target),
        smoothing_(spec.as<op::SoftmaxCrossEntropy>().smoothing),
        weights_(spec.target.weights),
        type_(spec.inputs.front().format.type),
        labels_(samples * target_.pixels()),
        losses_(reinterpret_cast<double*>(engine.workspace.data())) {
    if (target_.pixels() > 1) sums_offset_ = spec.saved_offset(spec.saved.size() - 1, samples);
  }

  /// Leaves the logits as they are; the loss goes to `arguments.report`. In training, all
  /// classes share the smoothing of the target (Szegedy et al. 2016); evaluation reports the plain
  /// loss.
  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    with_stored(type_, [&]<class Stored>() {
      if (target_.pixels() == 1)
        report_samples<Stored>(exec, arguments);
      else
        report_pixels<Stored>(exec, arguments);
    });
  }
  /// d_input = (softmax(logits) - target) / labels; may overwrite the logits. Where these are bf16,
  /// the entry of the label is minus the sum of the others.
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    if (arguments.d_input.data == nullptr) return;
    with_stored(type_, [&]<class Stored>() {
      if (target_.pixels() == 1)
        differentiate_samples<Stored>(exec, arguments);
      else
        differentiate_pixels<Stored>(exec, arguments);
    });
  }

 private:
  template <class Loss>
  void report(const std::string& label, const ExecutionSpace& exec,
              const ForwardArguments& arguments, const Loss& loss) const {
    const int n = arguments.input.n;
    if (double* const weight = weight_in(arguments.saved, target_); weight != nullptr)
      report_weighted(label, exec, n, loss, arguments.report, weight);
    else
      report_mean(label, exec, n, loss, arguments.report);
  }
  template <class Stored>
  void report_samples(const ExecutionSpace& exec, const ForwardArguments& arguments) const {
    static const std::string label = "carousel::layers::softmax_cross_entropy_forward";
    report(label, exec, arguments,
           CrossEntropy<Stored>{Targets(arguments.targets, target_),
                                reinterpret_cast<const Stored*>(arguments.input.data),
                                arguments.training ? smoothing_ : 0, weights_});
  }
  template <class Stored>
  void report_pixels(const ExecutionSpace& exec, const ForwardArguments& arguments) const {
    static const std::string label = "carousel::layers::softmax_cross_entropy_forward";
    static const std::string sum_label = "carousel::layers::softmax_cross_entropy_report";
    const Targets targets(arguments.targets, target_);
    const PixelPieces of_pixels{targets.pixels};
    Kokkos::parallel_for(
        label, pieces(exec, arguments.input.n * of_pixels.of_sample()),
        PixelLosses<Stored>{targets, reinterpret_cast<const Stored*>(arguments.input.data),
                            arguments.training ? smoothing_ : 0, weights_,
                            PixelSums(arguments.saved + sums_offset_, labels_), losses_});
    report(sum_label, exec, arguments, AddedPixels{targets, weights_, losses_});
  }

  template <class Stored>
  void differentiate_samples(const ExecutionSpace& exec, const BackwardArguments& arguments) const {
    static const std::string label = "carousel::layers::softmax_cross_entropy_backward";
    const int n = arguments.output.n;
    const double everywhere = smoothing_ / target_.classes;
    Kokkos::parallel_for(
        label, TeamPolicy(exec, n, 1, sample_vector),
        CrossEntropyBackward<Stored>{
            Targets(arguments.targets, target_), weight_in(arguments.saved, target_),
            static_cast<real>(n), reinterpret_cast<const Stored*>(arguments.output.data),
            reinterpret_cast<Stored*>(arguments.d_input.data), static_cast<real>(everywhere),
            static_cast<real>(1 - smoothing_ + everywhere), weights_});
  }
  template <class Stored>
  void differentiate_pixels(const ExecutionSpace& exec, const BackwardArguments& arguments) const {
    static const std::string label = "carousel::layers::softmax_cross_entropy_backward";
    const Targets targets(arguments.targets, target_);
    const PixelPieces of_pixels{targets.pixels};
    const std::int64_t n = arguments.output.n;
    const double everywhere = smoothing_ / target_.classes;
    auto* const saved = const_cast<std::byte*>(arguments.saved);
    Kokkos::parallel_for(
        label, pieces(exec, n * of_pixels.of_sample()),
        PixelGradients<Stored>{targets,
                               weight_in(arguments.saved, target_),
                               static_cast<real>(n * targets.pixels),
                               reinterpret_cast<const Stored*>(arguments.output.data),
                               reinterpret_cast<Stored*>(arguments.d_input.data),
                               {everywhere, 1 - smoothing_ + everywhere},
                               weights_,
                               PixelSums(saved + sums_offset_, labels_)});
  }

  TargetSpec target_;
  double smoothing_;
  ClassWeights weights_;
  DataType type_;
  std::int64_t labels_;            // of the largest micro-batch
  std::int64_t sums_offset_ = -1;  // of pixels, among what is saved
  double* losses_;                 // of pixels
};

}  // namespace

std::unique_ptr<Layer> softmax_cross_entropy(const LayerSpec& spec, int samples,
                                             const Engine& engine) {
  return std::make_unique<SoftmaxCrossEntropy>(spec, samples, engine);
}

}  // namespace carousel::kernels
