// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/base/range.hpp"
#include "core/engine/layer.hpp"
#include "layers/mean_loss.hpp"
#include "layers/stored.hpp"

namespace carousel::kernels {
namespace {

/// How far an output is from its target.
template <class Stored>
KOKKOS_FUNCTION real error_of(const Stored& output, bool is_label) {
  return full(output) - (is_label ? real(1) : real(0));
}

/// The loss of one sample.
template <class Stored>
struct Forward {
  int outputs;
  const Stored* values;  // [n, outputs]
  const int* labels;     // [n]

  KOKKOS_FUNCTION double operator()(const Team& team, int i) const {
    const Stored* row = values + static_cast<std::int64_t>(i) * outputs;
    double sum = 0;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, outputs),
        [&](int c, double& partial) {
          const double error = error_of(row[c], c == labels[i]);
          partial += error * error;
        },
        sum);
    return sum / outputs;
  }
};

/// 2 (output - target) / (n outputs), which may take the place of the outputs.
template <class Stored>
struct Backward {
  int outputs;
  const Stored* values;  // [n, outputs]
  const int* labels;     // [n]
  Stored* d_values;      // [n, outputs]
  real scale;

  KOKKOS_FUNCTION void operator()(std::int64_t k) const {
    const bool is_label = k % outputs == labels[k / outputs];
    put(d_values[k], scale * error_of(values[k], is_label));
  }
};

class Mse final : public Layer {
 public:
  explicit Mse(const LayerSpec& spec)
      : outputs_(static_cast<int>(spec.input().size())), type_(spec.inputs.front().format.type) {}

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    static const std::string label = "carousel::layers::mse_forward";
    with_stored(type_, [&]<class Stored>() {
      const auto* values = reinterpret_cast<const Stored*>(arguments.input.data);
      report_mean(label, exec, arguments.input.n,
                  Forward<Stored>{outputs_, values, labels_of(arguments.targets)},
                  arguments.report);
    });
  }

  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    static const std::string label = "carousel::layers::mse_backward";
    if (arguments.d_input.data == nullptr) return;
    const std::int64_t size = arguments.output.size();
    with_stored(type_, [&]<class Stored>() {
      const auto* values = reinterpret_cast<const Stored*>(arguments.output.data);
      auto* d_values = reinterpret_cast<Stored*>(arguments.d_input.data);
      Kokkos::parallel_for(
          label, range(exec, size),
          Backward<Stored>{outputs_, values, labels_of(arguments.targets), d_values,
                           static_cast<real>(2.0 / static_cast<double>(size))});
    });
  }

 private:
  int outputs_;
  DataType type_;
};

}  // namespace

std::unique_ptr<Layer> mse(const LayerSpec& spec, int /*samples*/, const Engine& /*engine*/) {
  return std::make_unique<Mse>(spec);
}

}  // namespace carousel::kernels
