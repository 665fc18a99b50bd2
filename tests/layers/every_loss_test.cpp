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
  bool weighted = false;  // its classes count for 0.25, 0.75 and so on
};
// NOLINTNEXTLINE(readability-identifier-naming): as GoogleTest calls it
void PrintTo(const Example& example, std::ostream* out) {
  *out << example.loss;
}

const std::vector<Example> examples = {
    {"cross-entropy"},
    {"cross-entropy", {{"label_smoothing", 0.3}}},
    {"cross-entropy", {}, true},
    {"cross-entropy", {{"label_smoothing", 0.3}}, true},
    {"huber"},
    {"huber", {{"delta", 0.3}}},
    {"mse"},
    {"mae"},
    {"bce"},
};

/// What outputs are compared with.
enum class Compared : std::uint8_t { labels, pixels, some_pixels, numbers, fields, some_numbers };

const std::vector<Compared> all_compared = {Compared::labels,      Compared::pixels,
                                            Compared::some_pixels, Compared::numbers,
                                            Compared::fields,      Compared::some_numbers};
constexpr int ignored = 250;

TargetSpec target_of(Compared compared, int channels) {
  TargetSpec target(channels);
  if (compared == Compared::pixels || compared == Compared::some_pixels)
    target = TargetSpec::of_pixels(channels, {1, 3, 5});
  if (compared == Compared::some_pixels) target.ignored = ignored;
  if (compared == Compared::numbers) target = TargetSpec::of_numbers({channels, 1, 1});
  if (compared == Compared::fields || compared == Compared::some_numbers)
    target = TargetSpec::of_numbers({channels, 3, 5});
  target.has_gaps = compared == Compared::some_numbers;
  return target;
}

bool takes(const Example& example, Compared compared) {
  return loss_named(example.loss).loss->takes(target_of(compared, 1).kind);
}

std::vector<double> weights_of(const Example& example, int classes) {
  std::vector<double> weights;
  for (int c = 0; example.weighted && c < classes; ++c) weights.push_back(0.25 + 0.5 * (c % 5));
  return weights;
}

/// The loss of a network for such targets, behind a layer that learns, with all metrics that tell
/// something of it.
LayerSpec spec_of(const Example& example, const TargetSpec& target, DataType type) {
  const SampleShape shape = target.outputs();
  ModelBuilder builder("example", {4, shape.height, shape.width}, target);
  builder.add("convolution", "head", {{"channels", 1.0 * shape.channels}, {"kernel", 1}});
  TaskConfig task{.loss = example.loss,
                  .weights = weights_of(example, target.channels()),
                  .arguments = example.arguments};
  for (const Metric& metric : all_metrics()) {
    if (metric.takes(target.kind) && shape.channels >= metric.least_outputs &&
        (!metric.needs_pixels || target.pixels() > 1))
      task.metrics.emplace_back(metric.name);
  }
  builder.add_loss(task);
  return choose_kernels(builder.model(), {.type = type}).layers.back();
}

struct Batch {
  TargetSpec target;
  std::vector<reference::Scored> samples;

  [[nodiscard]] int n() const { return static_cast<int>(samples.size()); }
  /// [n, c, pixels]
  [[nodiscard]] Numbers outputs() const {
    Numbers all;
    for (const reference::Scored& sample : samples)
      all.insert(all.end(), sample.outputs.begin(), sample.outputs.end());
    return all;
  }
  /// As the loss reads them.
  [[nodiscard]] std::vector<std::byte> targets() const {
    std::vector<std::byte> bytes;
    const auto add = [&](const auto& values) {
      const std::span<const std::byte> own = std::as_bytes(std::span(values));
      bytes.insert(bytes.end(), own.begin(), own.end());
    };
    for (const reference::Scored& sample : samples) {
      if (target.has_labels())
        add(sample.labels);
      else
        add(Numbers(sample.numbers.begin(), sample.numbers.end()));
    }
    return bytes;
  }
};

/// Outputs from -4 to 4, of which some are equal, as that type has them, and numbers as targets
/// from 0 to 1. Targets are multiples of 1/8 and outputs none, so that no output lies where a loss
/// bends (there differences have fewer digits): they are apart by odd multiples of 1/16.
Batch batch_of(int n, int channels, DataType type, Compared compared = Compared::labels) {
  Batch batch{target_of(compared, channels), {}};
  const auto pixels = static_cast<std::size_t>(batch.target.pixels());
  const std::size_t size = channels * pixels;
  Numbers outputs = random_numbers(size * n, "outputs");
  for (real& x : outputs) x = (std::round(64 * x) + real(0.5)) / 8;
  outputs = rounded_to(outputs, type);
  const Numbers numbers = random_numbers(size * n, "targets");
  const std::vector<int> labels = random_labels(n * static_cast<int>(pixels), channels);
  for (int i = 0; i < n; ++i) {
    reference::Scored sample{.channels = channels,
                             .pixels = static_cast<int>(pixels),
                             .outputs = {outputs.begin() + std::ptrdiff_t(i * size),
                                         outputs.begin() + std::ptrdiff_t((i + 1) * size)},
                             .ignored = batch.target.ignored};
    for (std::size_t p = 0; batch.target.has_labels() && p < pixels; ++p) {
      const bool counts = batch.target.ignored < 0 || (i + p) % 3 != 0;
      sample.labels.push_back(counts ? labels[i * pixels + p] : ignored);
    }
    for (std::size_t k = 0; !batch.target.has_labels() && k < size; ++k) {
      const real number = std::round(4 * numbers[i * size + k] + 2) / 8;
      sample.numbers.push_back(batch.target.has_gaps && (i + k) % 3 == 0 ? std::nan("") : number);
    }
    batch.samples.push_back(std::move(sample));
  }
  return batch;
}

/// A loss and what it is given: outputs of the network, rounded to the type that stores them.
class LossRun {
 public:
  LossRun(const LayerSpec& spec, const Batch& batch)
      : spec_(spec),
        n_(batch.n()),
        type_(spec.inputs.front().format.type),
        outputs_(to_device(stored(batch.outputs(), type_))),
        gradient_(to_device(stored(Numbers(batch.outputs().size(), real(-1e30)), type_))),
        targets_(to_device(batch.targets())),
        saved_("carousel::test::saved", static_cast<std::size_t>(spec.saved_bytes(n_))),
        report_("carousel::test::report",
                static_cast<std::size_t>(report_head + sums_of(spec.metrics, spec.target))),
        chosen_("carousel::test::chosen", batch.samples.size()),
        workspace_("carousel::test::workspace", static_cast<std::size_t>(spec.workspace_bytes(n_))),
        layer_(make_layer(spec, n_,
                          {.exec = {}, .workspace = {workspace_.data(), workspace_.size()}})) {
    EXPECT_EQ(spec.converted, Converted::nothing) << "outputs are copied";
  }

  void forward(const ExecutionSpace& exec = {}, bool training = true) {
    layer_->forward(exec, {.input = tensor(outputs_),
                           .output = tensor(outputs_),
                           .targets = targets_.data(),
                           .report = report_.data(),
                           .chosen = chooses() ? chosen_.data() : nullptr,
                           .saved = saved_.data(),
                           .training = training});
  }
  /// In the place of the outputs, as stages have it, or apart.
  void backward(bool in_place, const ExecutionSpace& exec = {}) {
    layer_->backward(exec, {.input = {},
                            .output = tensor(outputs_),
                            .d_output = {},
                            .d_input = tensor(in_place ? outputs_ : gradient_),
                            .targets = targets_.data(),
                            .saved = saved_.data()});
  }

  [[nodiscard]] std::vector<double> report() const { return to_host(report_); }
  [[nodiscard]] std::vector<int> chosen() const { return to_host(chosen_); }
  /// Or the gradient in their place.
  [[nodiscard]] Numbers outputs() const { return restored(to_host(outputs_), type_); }
  [[nodiscard]] Numbers gradient() const { return restored(to_host(gradient_), type_); }

 private:
  [[nodiscard]] bool chooses() const {
    return spec_.target.has_labels() && spec_.target.pixels() == 1;
  }
  [[nodiscard]] Tensor tensor(const Device<std::byte>& bytes) const {
    return {reinterpret_cast<real*>(bytes.data()), n_, spec_.input()};
  }

  LayerSpec spec_;
  int n_;
  DataType type_;
  Device<std::byte> outputs_;
  Device<std::byte> gradient_;
  Device<std::byte> targets_;
  Device<std::byte> saved_;
  Device<double> report_;
  Device<int> chosen_;
  Device<std::byte> workspace_;
  std::unique_ptr<Layer> layer_;
};

/// The batch as that loss weighs it.
Batch weighed(const Example& example, Batch batch) {
  batch.target.weights = weights_of(example, batch.target.channels());
  for (reference::Scored& sample : batch.samples) sample.weights = batch.target.weights;
  return batch;
}

double mean_loss(const Example& example, const Batch& batch, bool training = true) {
  reference::LossSum all;
  for (const reference::Scored& sample : batch.samples) {
    const reference::LossSum own =
        reference::loss(example.loss, example.arguments, sample, training);
    all.sum += own.sum;
    all.count += own.count;
  }
  return all.sum / all.count;
}

/// Of the mean over the samples, by central differences of the formula in double.
std::vector<double> mean_gradient(const Example& example, const Batch& batch) {
  constexpr double step = 1e-5;
  double count = 0;
  for (const reference::Scored& sample : batch.samples)
    count += reference::loss(example.loss, example.arguments, sample).count;
  std::vector<double> gradient;
  for (const reference::Scored& sample : batch.samples) {
    for (std::size_t k = 0; k < sample.outputs.size(); ++k) {
      const auto moved = [&](double by) {
        reference::Scored other = sample;
        other.outputs[k] += by;
        return reference::loss(example.loss, example.arguments, other).sum;
      };
      gradient.push_back((moved(step) - moved(-step)) / (2 * step) / count);
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
    return {spec_of(example(), batch.target, type()), batch};
  }
};

TEST_P(EveryLoss, IsWhatItsFormulaSays) {
  for (const Compared compared : all_compared) {
    if (!takes(example(), compared)) continue;
    for (const auto& [n, channels] :
         {std::pair(1, 1), {1, 10}, {16, 10}, {17, 3}, {128, 100}, {67, 7}}) {
      SCOPED_TRACE(fmt::format("{} samples with {}", n, to_string(target_of(compared, channels))));
      if (n * channels > 1000 && target_of(compared, 1).pixels() > 1) continue;
      const Batch batch = weighed(example(), batch_of(n, channels, type(), compared));
      LossRun run = run_of(batch);
      run.forward();
      EXPECT_EQ(run.outputs(), batch.outputs()) << "forward leaves the outputs as they are";
      const double expected = mean_loss(example(), batch);
      EXPECT_NEAR(run.report()[0], expected, rounding * (1 + expected));
      EXPECT_EQ(run.report()[1], 0) << "it is finite";
      double counted = n;  // samples, or all that counts
      if (batch.target.is_weighted()) {
        counted = 0;
        for (const reference::Scored& sample : batch.samples)
          counted += reference::loss(example().loss, example().arguments, sample).count;
      }
      EXPECT_EQ(run.report()[2], counted);

      run.backward(false);
      EXPECT_LE(relative_difference(run.gradient(), mean_gradient(example(), batch)), tolerance());
      const Numbers apart = run.gradient();
      run.backward(true);
      EXPECT_EQ(run.outputs(), apart) << "in the place of the outputs";

      LossRun evaluation = run_of(batch);
      evaluation.forward({}, false);
      const double evaluated = mean_loss(example(), batch, false);
      EXPECT_NEAR(evaluation.report()[0], evaluated, rounding * (1 + evaluated));
    }
  }
}

TEST_P(EveryLoss, OfNothingIsNothing) {
  for (const Compared compared : {Compared::some_pixels, Compared::some_numbers}) {
    if (!takes(example(), compared)) continue;
    Batch batch = batch_of(3, 4, type(), compared);
    for (reference::Scored& sample : batch.samples) {
      std::ranges::fill(sample.labels, ignored);
      std::ranges::fill(sample.numbers, std::nan(""));
    }
    LossRun run = run_of(batch);
    run.forward();
    for (const double reported : run.report()) EXPECT_EQ(reported, 0);
    run.backward(false);
    for (const real gradient : run.gradient()) EXPECT_EQ(gradient, 0);
  }
}

TEST_P(EveryLoss, ReportsWhatIsNotFiniteOrTooLargeToBeAdded) {
  using Limits = std::numeric_limits<real>;
  for (const real bad : {Limits::quiet_NaN(), Limits::infinity(), Limits::max() / 100}) {
    Batch batch = batch_of(5, 4, type());
    batch.samples[3].outputs[(batch.samples[3].labels[0] + 1) % 4] = bad;
    LossRun run = run_of(batch);
    run.forward();
    EXPECT_EQ(run.report()[1], 1) << bad;
  }
}

TEST_P(EveryLoss, OnlyLaunches) {
  for (const Compared compared : all_compared) {
    if (!takes(example(), compared)) continue;
    const Batch batch = batch_of(33, 10, type(), compared);
    const LayerSpec spec = spec_of(example(), batch.target, type());
    LossRun run(spec, batch);
    const ExecutionSpace exec;
    const std::vector<Launch> launches = launches_alone([&] {
      run.forward(exec);
      run.backward(false, exec);
    });
    EXPECT_GE(launches.size(), 2 + spec.metrics.size());
    for (const Launch& launch : launches)
      EXPECT_TRUE(launch.label.starts_with("carousel::layers::")) << launch.label;
  }
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
    for (const Compared compared : all_compared) {
      for (const int channels : {1, 2, 7, 100}) {
        SCOPED_TRACE(
            fmt::format("{}, {}", to_string(type), to_string(target_of(compared, channels))));
        const Batch batch = batch_of(77, channels, type, compared);
        const Example example = {batch.target.has_labels() ? "cross-entropy" : "mse"};
        const LayerSpec spec = spec_of(example, batch.target, type);
        EXPECT_EQ(spec.metrics.empty(), false);
        LossRun run(spec, batch);
        run.forward();
        const std::vector<double> report = run.report();
        const MetricValues values =
            values_of(spec.metrics, std::span(report).subspan(report_head), 77, batch.target);
        for (std::size_t k = 0; k < spec.metrics.size(); ++k) {
          const double expected = reference::metric(spec.metrics[k]->name, batch.samples);
          EXPECT_NEAR(values[k], expected, rounding * (1 + std::abs(expected)))
              << spec.metrics[k]->name;
          EXPECT_GE(values[k], spec.metrics[k]->least);
          EXPECT_LE(values[k], spec.metrics[k]->most);
        }
        if (compared != Compared::labels) continue;
        for (int i = 0; i < batch.n(); ++i) {
          reference::Scored chosen = batch.samples[i];
          chosen.labels = {run.chosen()[i]};
          EXPECT_EQ(reference::metric("accuracy", std::span(&chosen, 1)), 1);
        }
      }
    }
  }
}

}  // namespace
}  // namespace carousel::test
