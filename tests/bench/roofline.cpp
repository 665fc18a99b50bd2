// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// roofline MODEL BATCH [FRACTION [fp32|pairs|tiles]]: what each layer of a network reaches of what
// this machine could, forward and backward together: `attainable` is the smaller of its peak and of
// what its memory feeds (Williams et al. 2009), with each tensor moved once. pairs and tiles: in
// bf16, with that engine.products, and its peak. Winograd does a quarter of the multiplications of
// direct sums, so that its roof is four times the peak in fp32. Layers of one kind and shape are
// one row; rows below FRACTION of the step (0.01) are summed up. OMP_NUM_THREADS as ever.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/range.hpp"
#include "core/base/vectors.hpp"
#include "core/base/zeros.hpp"
#include "core/model/builder.hpp"
#include "core/model/kernels.hpp"
#include "layers/blocked/register_tile.hpp"
#include "layers/convolution/op.hpp"
#include "layers/factory.hpp"
#if defined(CAROUSEL_MATRIX_PRODUCTS)
#include "layers/blocked/matrix_sums.hpp"
#endif

namespace carousel {
namespace {

using Storage = Kokkos::View<real*, MemorySpace>;
using Bytes = Kokkos::View<std::byte*, MemorySpace>;

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

/// Unlike ones: processors that multiply zeros take less power, and run faster.
template <class Stored>
std::vector<Stored> numbers(int count) {
  std::vector<Stored> result(count);
  for (int i = 0; i < count; ++i) put(result[i], static_cast<real>(i * 37 % 101 - 50) / 64);
  return result;
}

/// FLOP/s of the sums that all products of a kind are added to, out of the first cache, on all
/// threads.
template <class Products>
double peak_of(const ExecutionSpace& exec) {
  using blocked::lanes;
  using Sums = blocked::SumsOf<Products>;
  using Stored = blocked::StoredBy<Products>;
  constexpr int depth = lanes;
  constexpr int pairs = depth / Products::together;
  constexpr int repeats = 20000;
  constexpr int columns = blocked::tile_vectors * lanes;
  const int threads = concurrency(exec);
  std::vector<real> sums(static_cast<std::size_t>(threads) * columns * Sums::rows);
  real* to = sums.data();
  const double seconds = seconds_of(exec, [&] {
    Kokkos::parallel_for("carousel::bench::peak", RangePolicy(exec, 0, threads), [=](int thread) {
      [[maybe_unused]] const typename Sums::Session session;
      const std::vector<Stored> a = numbers<Stored>(Sums::rows * depth);
      const std::vector<Stored> b = numbers<Stored>(columns * depth);
      Sums::template with<blocked::tile_vectors>(Sums::rows, pairs, [&](auto& tile) {
        tile.clear();
        for (int r = 0; r < repeats; ++r)
          tile.template add_rows<Products>(pairs, a.data(), depth, b.data(),
                                           Products::together * columns);
        tile.put(to + thread * columns * Sums::rows, columns, lanes);
      });
    });
  });
  return 2.0 * threads * repeats * depth * columns * Sums::rows / seconds;
}

/// What layers are asked to be.
struct Kind {
  const char* name;
  DataType type = DataType::full;
  ProductOrder products = ProductOrder::pairs;
};
constexpr Kind kinds[] = {
    {"fp32"}, {"pairs", DataType::bfloat16}, {"tiles", DataType::bfloat16, ProductOrder::tiles}};

double peak_of(const ExecutionSpace& exec, const Kind& kind) {
  if (kind.type == DataType::full) return peak_of<blocked::FullProducts>(exec);
  double peak = 0;
  blocked::with_products<Bfloat16>(
      kind.products,
      [&]<class Products>(std::type_identity<Products>) { peak = peak_of<Products>(exec); });
  return peak;
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
        x_(tensor("x", spec.input(), spec.inputs.front().format)),
        second_(tensor("second", spec.inputs.back().shape, spec.inputs.back().format)),
        y_(spec.in_place ? x_ : tensor("y", spec.output, spec.output_format)),
        d_y_(tensor("d_y", spec.output, spec.output_format)),
        d_x_(spec.in_place ? d_y_ : tensor("d_x", spec.input(), spec.inputs.front().format)),
        parameters_(parameters()),
        d_parameters_(zeros<real>(exec_, "carousel::bench::d_parameters", spec.parameter_size())),
        buffers_(zeros<real>(exec_, "carousel::bench::buffers", spec.buffer_size())),
        labels_("carousel::bench::labels", n),
        report_("carousel::bench::report", report_head + sums_of(spec.metrics, spec.target)),
        layer_(
            make_layer(spec, n, {exec_, {bytes(workspace_), workspace_.size() * sizeof(real)}})) {}

  double forward() {
    return seconds_of(exec_, [&] {
      layer_->forward(exec_, {.input = {at(x_), n_, spec_.input()},
                              .output = {at(y_), n_, spec_.output},
                              .parameters = at(parameters_),
                              .targets = labels_.data(),
                              .report = report_.data(),
                              .second = {at(second_), n_, spec_.inputs.back().shape},
                              .saved = bytes(saved_),
                              .buffers = buffers_.data()});
    });
  }
  double backward() {
    const bool learns = spec_.inputs.front().layer >= 0;
    return seconds_of(exec_, [&] {
      layer_->backward(exec_, {.input = {at(x_), n_, spec_.input()},
                               .output = {at(y_), n_, spec_.output},
                               .d_output = {at(d_y_), n_, spec_.output},
                               .d_input = {learns ? at(d_x_) : nullptr, n_, spec_.input()},
                               .parameters = at(parameters_),
                               .d_parameters = d_parameters_.data(),
                               .targets = labels_.data(),
                               .saved = bytes(saved_),
                               .statistics = buffers_.data()});
    });
  }
  /// Moved by both passes when nothing is moved twice.
  [[nodiscard]] double bytes_moved() const {
    const auto reads = static_cast<double>(x_.size());
    const auto writes = static_cast<double>(y_.size());
    const auto gradients = static_cast<double>(spec_.parameter_size() * sizeof(real));
    const double second = spec_.inputs.size() == 2 ? writes : 0;
    const double again = (spec_.saves_input ? reads : 0) + (spec_.saves_output ? writes : 0);
    return 2 * (reads + writes) + second + again + 2 * static_cast<double>(parameters_.size()) +
           gradients;
  }

 private:
  static std::byte* bytes(const Storage& storage) {
    return reinterpret_cast<std::byte*>(storage.data());
  }
  static real* at(const Bytes& stored) { return reinterpret_cast<real*>(stored.data()); }

  /// Numbers of no importance, none of them large.
  static void fill(DataType type, std::byte* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const real number = static_cast<real>(i % 101) / 101 - real(0.5);
      if (type == DataType::full)
        reinterpret_cast<real*>(to)[i] = number;
      else
        put(reinterpret_cast<Bfloat16*>(to)[i], number);
    }
  }
  [[nodiscard]] Bytes tensor(const char* name, const SampleShape& shape,
                             const TensorFormat& format) const {
    Bytes bytes = zeros<std::byte>(exec_, std::string("carousel::bench::") + name,
                                   tensor_bytes(shape, format, n_));
    fill(format.type, bytes.data(), std::ssize(bytes) / size_of(format.type));
    return bytes;
  }
  [[nodiscard]] Bytes parameters() const {
    std::int64_t size = 0;
    for (const ParameterSpec& each : spec_.parameters) size += each.stored_bytes();
    Bytes bytes = zeros<std::byte>(exec_, "carousel::bench::parameters", size);
    std::byte* to = bytes.data();
    for (const ParameterSpec& each : spec_.parameters) {
      fill(each.type, to, each.size());
      to += each.stored_bytes();
    }
    return bytes;
  }

  ExecutionSpace exec_;
  const LayerSpec& spec_;
  int n_;
  Storage workspace_, saved_;
  Bytes x_, second_, y_, d_y_, d_x_, parameters_;
  Storage d_parameters_, buffers_;
  Kokkos::View<int*, MemorySpace> labels_;
  Kokkos::View<double*, MemorySpace> report_;
  std::unique_ptr<Layer> layer_;
};

/// The convolutions of inputs/cosmo, and what is between them.
Model volumes() {
  ModelBuilder net("cosmo", {4, 32, 32, 32}, TargetSpec::of_numbers({4}));
  for (int i = 0; i < 4; ++i) {
    net.add("convolution", fmt::format("conv.{}", i),
            {{"channels", 16.0 * (1 << i)}, {"kernel", 3}, {"padding", 1}});
    net.add("leaky_relu", "", {{"negative_slope", 0.3}});
    net.add("max_pool", "", {{"kernel", 2}});
  }
  return net.model();
}

Model model_of(const std::string& name) {
  const SampleShape photograph = {3, 224, 224};
  if (name == "resnet20") return build_resnet(20, Stem::cifar, {3, 32, 32}, 10);
  if (name == "resnet18-cifar") return build_resnet(18, Stem::cifar, {3, 32, 32}, 10);
  if (name == "resnet50") return build_resnet(50, Stem::imagenet, photograph, 1000);
  if (name == "vit-b-16") return build_model({.name = "vit", .depth = 12}, photograph, 1000);
  if (name == "cosmo") return volumes();
  fail(ExitCode::usage,
       "{} is not a network of this program; known: resnet20, resnet18-cifar, "
       "resnet50, vit-b-16, cosmo",
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

void run(const std::string& name, int n, double fraction, const Kind& kind) {
  const ExecutionSpace exec;
  const double peak = peak_of(exec, kind);
  const double full_peak = peak_of(exec, kinds[0]);
  const double bandwidth = bandwidth_of(exec);
  const Model model = choose_kernels(
      model_of(name), {.block = vector_block, .type = kind.type, .products = kind.products});
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
    if (spec.is("convolution") && spec.as<op::Convolution>().winograd)
      row.roof = 4 * full_peak / peak;
  }
  double step = 0;
  for (const auto& [shapes, row] : rows) step += row.layers * (row.forward + row.backward);

  fmt::print("{}, batch {}, {}, {} threads: peak {:.0f} GFLOP/s, memory {:.1f} GB/s\n", name, n,
             kind.name, concurrency(exec), 1e-9 * peak, 1e-9 * bandwidth);
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
  const auto* kind = std::ranges::find(carousel::kinds, std::string(argc > 4 ? argv[4] : "fp32"),
                                       &carousel::Kind::name);
  if (argc < 3 || std::atoi(argv[2]) < 1 || kind == std::end(carousel::kinds)) {
    std::fputs("roofline MODEL BATCH [FRACTION [fp32|pairs|tiles]]: BATCH is a number of images\n",
               stderr);
    return 2;
  }
  try {
    carousel::run(argv[1], std::atoi(argv[2]), argc > 3 ? std::atof(argv[3]) : 0.01, *kind);
  } catch (const carousel::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}
