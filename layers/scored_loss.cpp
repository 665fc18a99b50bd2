// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/scored_loss.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/model/metric.hpp"
#include "layers/metrics/largest.hpp"
#include "layers/metrics/metric_kernels.hpp"

namespace carousel {
namespace {

struct Scored {
  const MetricKernels* kernels = nullptr;
  int first = 0;  // of its sums
};

template <class Stored>
struct Choice {
  const Stored* values;  // [n, outputs], of labels one for each sample
  int outputs;
  int* chosen;  // [n]

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    chosen[i] = index_of_largest(values + i * outputs, outputs);
  }
};

void choose(const ExecutionSpace& exec, const MetricArguments& arguments, int* chosen) {
  static const std::string label = "carousel::layers::choose";
  with_stored(arguments.type, [&]<class Stored>() {
    const auto* values = reinterpret_cast<const Stored*>(arguments.values);
    Kokkos::parallel_for(label, range(exec, arguments.n),
                         Choice<Stored>{values, arguments.targets.channels, chosen});
  });
}

template <class Stored>
struct Shown {
  const Stored* stored;
  real* outputs;

  KOKKOS_FUNCTION void operator()(std::int64_t k) const { outputs[k] = full(stored[k]); }
};

/// Outputs as they are stored in full numbers.
void show_outputs(const ExecutionSpace& exec, DataType type, const ConstTensor& values,
                  real* outputs) {
  static const std::string label = "carousel::layers::show_outputs";
  with_stored(type, [&]<class Stored>() {
    const auto* stored = reinterpret_cast<const Stored*>(values.data);
    Kokkos::parallel_for(label, range(exec, values.size()), Shown<Stored>{stored, outputs});
  });
}

class ScoredLoss final : public Layer {
 public:
  ScoredLoss(std::unique_ptr<Layer> loss, const LayerSpec& spec)
      : loss_(std::move(loss)), target_(spec.target), type_(spec.inputs.front().format.type) {
    int first = report_head;
    for (const Metric* metric : spec.metrics) {
      const auto all = all_metric_kernels();
      const auto found = std::ranges::find_if(all, [&](const MetricKernels& each) {
        return std::string_view(each.name) == metric->name;
      });
      CAROUSEL_CHECK(found != all.end(), "{} has no kernels", metric->name);
      metrics_.push_back({&*found, first});
      first += metric->sums(spec.target);
    }
  }

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    if (arguments.outputs != nullptr)
      return show_outputs(exec, type_, arguments.input, arguments.outputs);
    loss_->forward(exec, arguments);
    MetricArguments scored{.n = arguments.input.n,
                           .type = type_,
                           .values = arguments.input.data,
                           .targets = Targets(arguments.targets, target_)};
    for (const Scored& metric : metrics_) {
      scored.sums = arguments.report + metric.first;
      metric.kernels->compute(exec, scored);
    }
    if (arguments.chosen != nullptr) choose(exec, scored, arguments.chosen);
  }
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    loss_->backward(exec, arguments);
  }

 private:
  std::unique_ptr<Layer> loss_;
  std::vector<Scored> metrics_;
  TargetSpec target_;
  DataType type_;
};

}  // namespace

std::unique_ptr<Layer> with_metrics(std::unique_ptr<Layer> loss, const LayerSpec& spec) {
  return std::make_unique<ScoredLoss>(std::move(loss), spec);
}

}  // namespace carousel
