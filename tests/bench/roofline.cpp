// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// roofline MODEL BATCH [FRACTION]: what each layer of a network reaches of what this machine could,
// forward and backward together: `attainable` is the smaller of its peak and of what its memory
// feeds (Williams et al. 2009), with each tensor moved once. Winograd does a quarter of the
// multiplications of direct sums, so that its roof is four times as high. Layers of one kind and
// shape are one row; rows below FRACTION of the step (0.01) are summed up. OMP_NUM_THREADS as ever.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "core/base/check.hpp"
#include "core/base/range.hpp"
#include "core/base/vectors.hpp"
#include "core/base/zeros.hpp"
#include "core/model/kernels.hpp"
#include "layers/blocked/register_tile.hpp"
#include "layers/convolution/op.hpp"
#include "layers/factory.hpp"

namespace carousel {
namespace {

using Storage = Kokkos::View<real*, MemorySpace>;

/// The median of five measurements of at least ten milliseconds, in seconds of one call.
template <class Run>
double seconds_of(const ExecutionSpace& exec, const Run& run) {
  const auto measure = [&](int calls) {
    const auto begin = std::chrono::steady_clock::now();
    for (int k = 0; k < calls; ++k) run();
    exec.fence("carousel::bench::layer done");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / calls;
  };
  measure(1);
  const int calls = static_cast<int>(std::clamp(0.01 / measure(1), 1.0, 1000.0));
  std::vector<double> all;
  for (int k = 0; k < 5; ++k) all.push_back(measure(calls));
  std::ranges::nth_element(all, all.begin() + 2);
  return all[2];
}

/// FLOP/s of the register tile that all products are made of, out of the first cache, on all
/// threads.
double peak_of(const ExecutionSpace& exec) {
  using blocked::lanes;
  constexpr int depth = 16;
  constexpr int repeats = 2000;
  constexpr int columns = blocked::tile_vectors * lanes;
  const int threads = concurrency(exec);
  const Storage sums("carousel::bench::sums", threads * columns * blocked::tile_rows);
  real* to = sums.data();
  const double seconds = seconds_of(exec, [&] {
    Kokkos::parallel_for("carousel::bench::peak", RangePolicy(exec, 0, threads), [=](int thread) {
      real a[blocked::tile_rows * depth] = {};
      real b[columns * depth] = {};
      blocked::RegisterTile<blocked::tile_rows, blocked::tile_vectors> tile;
      tile.clear();
      for (int r = 0; r < repeats; ++r)
        tile.add_columns(depth, a, blocked::tile_rows, b, columns, lanes);
      tile.put(to + thread * columns * blocked::tile_rows, columns, lanes);
    });
  });
  return 2.0 * threads * repeats * depth * columns * blocked::tile_rows / seconds;
}

/// Bytes per second of a sum of two long vectors.
double bandwidth_of(const ExecutionSpace& exec) {
  constexpr std::int64_t size = std::int64_t{1} << 25;
  const Storage a = zeros<real>(exec, "carousel::bench::a", size);
  const Storage b = zeros<real>(exec, "carousel::bench::b", size);
  const double seconds = seconds_of(exec, [&] {
    Kokkos::parallel_for(
        "carousel::bench::triad", RangePolicy(exec, 0, size),
        KOKKOS_LAMBDA(std::int64_t i) { a(i) = real(0.5) * a(i) + b(i); });
  });
  return 3.0 * static_cast<double>(size * sizeof(real)) / seconds;
}

/// One layer with all that its kernels touch.
class Bench {
 public:
  Bench(const LayerSpec& spec, int n)
      : spec_(spec),
        n_(n),
        workspace_(zeros<real>(exec_, "carousel::bench::workspace",
                               spec.workspace_bytes(n) / sizeof(real) + 1)),
        saved_(
            zeros<real>(exec_, "carousel::bench::saved", spec.saved_bytes(n) / sizeof(real) + 1)),
        x_(zeros<real>(exec_, "carousel::bench::x", n * spec.input().size())),
        second_(zeros<real>(exec_, "carousel::bench::second", n * spec.inputs.back().shape.size())),
        y_(spec.in_place ? x_ : zeros<real>(exec_, "carousel::bench::y", n * spec.output.size())),
        d_y_(zeros<real>(exec_, "carousel::bench::d_y", n * spec.output.size())),
        d_x_(spec.in_place ? d_y_
                           : zeros<real>(exec_, "carousel::bench::d_x", n * spec.input().size())),
        parameters_(zeros<real>(exec_, "carousel::bench::parameters", spec.parameter_size())),
        d_parameters_(zeros<real>(exec_, "carousel::bench::d_parameters", spec.parameter_size())),
        buffers_(zeros<real>(exec_, "carousel::bench::buffers", spec.buffer_size())),
        labels_("carousel::bench::labels", n),
        report_("carousel::bench::report", report_head + sums_of(spec.metrics, spec.target)),
        layer_(
            make_layer(spec, n, {exec_, {bytes(workspace_), workspace_.size() * sizeof(real)}})) {
    for (const Storage& numbers : {x_, second_, d_y_, parameters_}) fill(numbers);
  }

  double forward() {
    return seconds_of(exec_, [&] {
      layer_->forward(exec_, {.input = {x_.data(), n_, spec_.input()},
                              .output = {y_.data(), n_, spec_.output},
                              .parameters = parameters_.data(),
                              .targets = labels_.data(),
                              .report = report_.data(),
                              .second = {second_.data(), n_, spec_.inputs.back().shape},
                              .saved = bytes(saved_),
                              .buffers = buffers_.data()});
    });
  }
  double backward() {
    const bool learns = spec_.inputs.front().layer >= 0;
    return seconds_of(exec_, [&] {
      layer_->backward(exec_, {.input = {x_.data(), n_, spec_.input()},
                               .output = {y_.data(), n_, spec_.output},
                               .d_output = {d_y_.data(), n_, spec_.output},
                               .d_input = {learns ? d_x_.data() : nullptr, n_, spec_.input()},
                               .parameters = parameters_.data(),
                               .d_parameters = d_parameters_.data(),
                               .targets = labels_.data(),
                               .saved = bytes(saved_),
                               .statistics = buffers_.data()});
    });
  }
  /// Moved by both passes when nothing is moved twice.
  [[nodiscard]] double bytes_moved() const {
    const auto reads = static_cast<double>(n_ * spec_.input().size());
    const auto writes = static_cast<double>(n_ * spec_.output.size());
    const auto parameters = static_cast<double>(spec_.parameter_size());
    const double second = spec_.inputs.size() == 2 ? writes : 0;
    const double again = (spec_.saves_input ? reads : 0) + (spec_.saves_output ? writes : 0);
    return sizeof(real) * (2 * (reads + writes) + second + again + 3 * parameters);
  }

 private:
  static std::byte* bytes(const Storage& storage) {
    return reinterpret_cast<std::byte*>(storage.data());
  }
  void fill(const Storage& numbers) const {
    Kokkos::parallel_for(
        "carousel::bench::fill", RangePolicy(exec_, 0, numbers.size()),
        KOKKOS_LAMBDA(std::int64_t i) {
          numbers(i) = static_cast<real>(i % 101) / 101 - real(0.5);
        });
  }

  ExecutionSpace exec_;
  const LayerSpec& spec_;
  int n_;
  Storage workspace_, saved_, x_, second_, y_, d_y_, d_x_, parameters_, d_parameters_, buffers_;
  Kokkos::View<int*, MemorySpace> labels_;
  Kokkos::View<double*, MemorySpace> report_;
  std::unique_ptr<Layer> layer_;
};

Model model_of(const std::string& name) {
  const SampleShape photograph = {3, 224, 224};
  if (name == "resnet20") return build_resnet(20, Stem::cifar, {3, 32, 32}, 10);
  if (name == "resnet18-cifar") return build_resnet(18, Stem::cifar, {3, 32, 32}, 10);
  if (name == "resnet50") return build_resnet(50, Stem::imagenet, photograph, 1000);
  if (name == "vit-b-16") return build_model({.name = "vit", .depth = 12}, photograph, 1000);
  fail(ExitCode::usage,
       "{} is not a network of this program; known: resnet20, resnet18-cifar, "
       "resnet50, vit-b-16",
       name);
}

struct Row {
  int layers = 0;
  double forward = 0;
  double backward = 0;
  double flops = 0;
  double bytes = 0;
  double roof = 1;  // in peaks
};

void run(const std::string& name, int n, double fraction) {
  const ExecutionSpace exec;
  const double peak = peak_of(exec);
  const double bandwidth = bandwidth_of(exec);
  const Model model = choose_kernels(model_of(name), {.block = vector_block});
  std::map<std::string, Row> rows;
  for (const LayerSpec& spec : model.layers) {
    LayerSpec nameless = spec;
    nameless.name.clear();
    const std::string shapes = fmt::format("{} {} > {}", nameless.label(), to_string(spec.input()),
                                           to_string(spec.output));
    Row& row = rows[shapes];
    if (row.layers++ > 0) continue;
    Bench bench(spec, n);
    row.forward = bench.forward();
    row.backward = bench.backward();
    row.flops = n * (spec.forward_flops + spec.backward_flops);
    row.bytes = bench.bytes_moved();
    if (spec.is("convolution") && spec.as<op::Convolution>().winograd) row.roof = 4;
  }
  double step = 0;
  for (const auto& [shapes, row] : rows) step += row.layers * (row.forward + row.backward);

  fmt::print("{}, batch {}, {} threads: peak {:.0f} GFLOP/s, memory {:.1f} GB/s\n", name, n,
             concurrency(exec), 1e-9 * peak, 1e-9 * bandwidth);
  fmt::print("{:<54}{:>3}{:>9}{:>9}{:>9}{:>11}{:>6}{:>7}\n", "layers of one kind and shape", "",
             "fwd ms", "bwd ms", "GFLOP/s", "attainable", "%", "share");
  double others = 0;
  double at_roof = 0;
  std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
  const auto seconds = [](const Row& row) { return row.layers * (row.forward + row.backward); };
  std::ranges::sort(sorted, std::greater(), [&](const auto& pair) { return seconds(pair.second); });
  for (const auto& [shapes, row] : sorted) {
    const double each = row.forward + row.backward;
    const double least = std::max(row.flops / (row.roof * peak), row.bytes / bandwidth);
    at_roof += row.layers * least;
    if (seconds(row) < fraction * step) {
      others += seconds(row);
      continue;
    }
    fmt::print("{:<54}{:>3}{:>9.2f}{:>9.2f}{:>9.1f}{:>11.1f}{:>6.0f}{:>6.1f}%\n", shapes,
               row.layers, 1e3 * row.forward, 1e3 * row.backward, 1e-9 * row.flops / each,
               1e-9 * row.flops / least, 100 * least / each, 100 * seconds(row) / step);
  }
  fmt::print("{:<54}{:>53.1f}%\n", "others", 100 * others / step);
  fmt::print("all layers: {:.1f} ms, {:.1f} images/s; at the roof {:.1f} ms, {:.1f} images/s\n",
             1e3 * step, n / step, 1e3 * at_roof, n / at_roof);
}

}  // namespace
}  // namespace carousel

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  if (argc < 3 || std::atoi(argv[2]) < 1) {
    std::fputs("roofline MODEL BATCH [FRACTION]: BATCH is a number of images\n", stderr);
    return 2;
  }
  try {
    carousel::run(argv[1], std::atoi(argv[2]), argc > 3 ? std::atof(argv[3]) : 0.01);
  } catch (const carousel::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}
