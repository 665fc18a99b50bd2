// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Every loss and every metric, in every type of outputs, against plain loops over samples.

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <ostream>

#include "core/model/builder.hpp"
#include "core/model/kernels.hpp"
#include "layers/factory.hpp"
#include "tests/layers/device.hpp"
#include "tests/layers/launches.hpp"
#include "tests/layers/stored.hpp"
#include "tests/reference/losses.hpp"

namespace carousel::test {
namespace {

/// A loss, as decks name it, and what it is told.
struct Example {
  std::string loss;
  Arguments arguments = {};
};
// NOLINTNEXTLINE(readability-identifier-naming): as GoogleTest calls it
void PrintTo(const Example& example, std::ostream* out) {
  *out << example.loss;
}

const std::vector<Example> examples = {
    {"cross-entropy"}, {"cross-entropy", {{"label_smoothing", 0.3}}},
    {"huber"},         {"huber", {{"delta", 0.3}}},
    {"mse"},
};

/// The loss of a network for that many classes, behind a layer that learns, with all metrics
/// that tell something of it.
LayerSpec spec_of(const Example& example, int classes, DataType type) {
  ModelBuilder builder("example", {4}, classes);
  builder.add("linear", "head", {{"features", 1.0 * classes}});
  TaskConfig task{.loss = example.loss, .arguments = example.arguments};
  for (const Metric& metric : all_metrics())
    if (classes >= metric.least_outputs) task.metrics.emplace_back(metric.name);
  builder.add_loss(task);
  return choose_kernels(builder.model(), {.type = type}).layers.back();
}

/// A loss and what it is given: outputs of the network, rounded to the type that stores them.
class LossRun {
 public:
  LossRun(const LayerSpec& spec, const Numbers& outputs, const std::vector<int>& labels)
      : spec_(spec),
        n_(static_cast<int>(labels.size())),
        type_(spec.inputs.front().format.type),
        outputs_(to_device(stored(outputs, type_))),
        gradient_(to_device(stored(Numbers(outputs.size(), real(-1e30)), type_))),
        labels_(to_device(labels)),
        report_("carousel::test::report",
                static_cast<std::size_t>(report_head + sums_of(spec.metrics))),
        chosen_("carousel::test::chosen", labels.size()),
        layer_(make_layer(spec, n_, {})) {
    EXPECT_EQ(spec.workspace_bytes(n_), 0);
    EXPECT_EQ(spec.converted, Converted::nothing) << "outputs are copied";
  }

  void forward(const ExecutionSpace& exec = {}, bool training = true) {
    layer_->forward(exec, {.input = tensor(outputs_),
                           .output = tensor(outputs_),
                           .targets = labels_.data(),
                           .report = report_.data(),
                           .chosen = chosen_.data(),
                           .training = training});
  }
  /// In the place of the outputs, as stages have it, or apart.
  void backward(bool in_place, const ExecutionSpace& exec = {}) {
    layer_->backward(exec, {.input = {},
                            .output = tensor(outputs_),
                            .d_output = {},
                            .d_input = tensor(in_place ? outputs_ : gradient_),
                            .targets = labels_.data()});
  }

  [[nodiscard]] std::vector<double> report() const { return to_host(report_); }
  [[nodiscard]] std::vector<int> chosen() const { return to_host(chosen_); }
  /// Or the gradient in their place.
  [[nodiscard]] Numbers outputs() const { return restored(to_host(outputs_), type_); }
  [[nodiscard]] Numbers gradient() const { return restored(to_host(gradient_), type_); }

 private:
  [[nodiscard]] Tensor tensor(const Device<std::byte>& bytes) const {
    return {reinterpret_cast<real*>(bytes.data()), n_, spec_.input()};
  }

  LayerSpec spec_;
  int n_;
  DataType type_;
  Device<std::byte> outputs_;
  Device<std::byte> gradient_;
  Device<int> labels_;
  Device<double> report_;
  Device<int> chosen_;
  std::unique_ptr<Layer> layer_;
};

struct Batch {
  Numbers outputs;  // [n, classes]
  std::vector<int> labels;
  int classes;

  [[nodiscard]] int n() const { return static_cast<int>(labels.size()); }
  [[nodiscard]] std::vector<double> row(int i) const {
    return {outputs.begin() + std::ptrdiff_t{i} * classes,
            outputs.begin() + std::ptrdiff_t{i + 1} * classes};
  }
};

/// Outputs from -4 to 4, of which some are equal, as that type has them. None is a multiple of 1/8,
/// where a loss may bend and differences have fewer digits.
Batch batch_of(int n, int classes, DataType type) {
  Numbers outputs = random_numbers(std::size_t(n) * classes, "outputs");
  for (real& x : outputs) x = (std::round(64 * x) + real(0.5)) / 8;
  return {rounded_to(outputs, type), random_labels(n, classes), classes};
}

double mean_loss(const Example& example, const Batch& batch, bool training = true) {
  double sum = 0;
  for (int i = 0; i < batch.n(); ++i)
    sum +=
        reference::loss(example.loss, example.arguments, batch.row(i), batch.labels[i], training);
  return sum / batch.n();
}

/// Of the mean over the samples, by central differences of the formula in double.
std::vector<double> mean_gradient(const Example& example, const Batch& batch) {
  constexpr double step = 1e-5;
  std::vector<double> gradient;
  for (int i = 0; i < batch.n(); ++i) {
    for (int c = 0; c < batch.classes; ++c) {
      const auto moved = [&](double by) {
        std::vector<double> row = batch.row(i);
        row[c] += by;
        return reference::loss(example.loss, example.arguments, row, batch.labels[i]);
      };
      gradient.push_back((moved(step) - moved(-step)) / (2 * step) / batch.n());
    }
  }
  return gradient;
}

class EveryLoss : public testing::TestWithParam<std::tuple<Example, DataType>> {
 protected:
  [[nodiscard]] const Example& example() const { return std::get<0>(GetParam()); }
  [[nodiscard]] DataType type() const { return std::get<1>(GetParam()); }
  /// Of the gradient, in the type of the outputs.
  [[nodiscard]] double tolerance() const {
    // Central differences have no more digits than that.
    return type() == DataType::full ? std::max(rounding, 1e-7) : 1.0 / 256;
  }
  [[nodiscard]] LossRun run_of(const Batch& batch) const {
    return {spec_of(example(), batch.classes, type()), batch.outputs, batch.labels};
  }
};

TEST_P(EveryLoss, IsWhatItsFormulaSays) {
  for (const auto& [n, classes] :
       {std::pair(1, 1), {1, 10}, {16, 10}, {17, 3}, {128, 100}, {67, 7}}) {
    SCOPED_TRACE(fmt::format("{} samples of {} outputs", n, classes));
    const Batch batch = batch_of(n, classes, type());
    LossRun run = run_of(batch);
    run.forward();
    EXPECT_EQ(run.outputs(), batch.outputs) << "forward leaves the outputs as they are";
    const double expected = mean_loss(example(), batch);
    EXPECT_NEAR(run.report()[0], expected, rounding * (1 + expected));
    EXPECT_EQ(run.report()[1], 0) << "it is finite";
    EXPECT_EQ(run.report()[2], n);
    run.forward({}, false);
    const double evaluated = mean_loss(example(), batch, false);
    EXPECT_NEAR(run.report()[0], evaluated, rounding * (1 + evaluated));

    run.backward(false);
    EXPECT_LE(relative_difference(run.gradient(), mean_gradient(example(), batch)), tolerance());
    const Numbers apart = run.gradient();
    run.backward(true);
    EXPECT_EQ(run.outputs(), apart) << "in the place of the outputs";
  }
}

TEST_P(EveryLoss, ReportsWhatIsNotFiniteOrTooLargeToBeAdded) {
  using Limits = std::numeric_limits<real>;
  for (const real bad : {Limits::quiet_NaN(), Limits::infinity(), Limits::max() / 100}) {
    Batch batch = batch_of(5, 4, type());
    batch.outputs[4 * 3 + (batch.labels[3] + 1) % 4] = bad;
    LossRun run = run_of(batch);
    run.forward();
    EXPECT_EQ(run.report()[1], 1) << bad;
  }
}

TEST_P(EveryLoss, OnlyLaunches) {
  const Batch batch = batch_of(33, 10, type());
  LossRun run = run_of(batch);
  const ExecutionSpace exec;
  const std::vector<Launch> launches = launches_alone([&] {
    run.forward(exec);
    run.backward(false, exec);
  });
  EXPECT_GE(launches.size(), 2 + all_metrics().size());
  for (const Launch& launch : launches)
    EXPECT_TRUE(launch.label.starts_with("carousel::layers::")) << launch.label;
}

INSTANTIATE_TEST_SUITE_P(Examples, EveryLoss,
                         testing::Combine(testing::ValuesIn(examples),
                                          testing::Values(DataType::full, DataType::bfloat16)),
                         [](const auto& instance) {
                           return fmt::format("{}_{}_{}", in_name(std::get<0>(instance.param).loss),
                                              to_string(std::get<1>(instance.param)),
                                              instance.index);
                         });

TEST(Losses, HaveAnExample) {
  for (const Op& op : all_ops()) {
    if (!op.loss) continue;
    EXPECT_NE(std::ranges::find(examples, op.loss->name, &Example::loss), examples.end())
        << "the loss '" << op.loss->name
        << "' is checked by nobody: give it an example in tests/layers/every_loss_test.cpp";
  }
}

TEST(Metrics, AddUpWhatItsFormulaSays) {
  for (const DataType type : {DataType::full, DataType::bfloat16}) {
    for (const int classes : {1, 2, 7, 100}) {
      SCOPED_TRACE(fmt::format("{}, {} outputs", to_string(type), classes));
      const Batch batch = batch_of(77, classes, type);
      const LayerSpec spec = spec_of(examples.front(), classes, type);
      LossRun run(spec, batch.outputs, batch.labels);
      run.forward();
      const std::vector<double> report = run.report();
      int first = report_head;
      for (const Metric* metric : spec.metrics) {
        ASSERT_EQ(metric->sums, 1) << "for more, reference::metric() must know more";
        double expected = 0;
        for (int i = 0; i < batch.n(); ++i)
          expected += reference::metric(metric->name, batch.row(i), batch.labels[i]);
        EXPECT_EQ(report[first], expected) << metric->name;
        first += metric->sums;
      }
      for (int i = 0; i < batch.n(); ++i)
        EXPECT_EQ(reference::metric("accuracy", batch.row(i), run.chosen()[i]), 1);
    }
  }
}

}  // namespace
}  // namespace carousel::test
