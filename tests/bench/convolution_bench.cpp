// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Speed of convolutions with the shapes of ResNets, pass by pass and kernel by kernel: portable, in
// blocks of channels by direct sums, by Winograd, and oneDNN's where it was found. It prints
// GFLOP/s of direct sums; judge them by the peak of the machine, and name it beside them. Gradients
// of inputs are what `both_gradients` takes more than `weight_gradient`.

#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <array>

#include "core/base/vectors.hpp"
#include "core/model/kernels.hpp"
#include "core/model/op.hpp"
#include "layers/convolution/op.hpp"
#include "layers/factory.hpp"
#ifdef CAROUSEL_ONEDNN
#include "tests/bench/onednn.hpp"
#endif

namespace carousel {
namespace {

using Storage = Kokkos::View<real*, MemorySpace>;

enum Pass : std::int64_t { forward, weight_gradient, both_gradients };
enum Library : std::int64_t { portable, direct, winograd, onednn };

LayerSpec convolution(int in, int out, int size, const Window& window, Library kernels) {
  LayerSpec spec;
  spec.kind = &op_named("convolution");
  spec.attributes = op::Convolution{window};
  spec.inputs = {{-1, {in, size, size}}};
  const int side = (size + 2 * window.padding - window.kernel) / window.stride + 1;
  spec.output = {out, side, side};
  spec.parameters = {{.name = "weight", .shape = {out, in, window.kernel, window.kernel}}};
  if (kernels != direct && kernels != winograd) return spec;
  spec.inputs.front().format.block = vector_block;
  choose_kernels(spec, {.block = vector_block, .winograd = kernels == winograd});
  return spec;
}

/// Runs one pass of our kernels again and again.
void run_ours(benchmark::State& state, const LayerSpec& spec, int n, Pass pass) {
  const ExecutionSpace exec;
  const Storage x("carousel::bench::x", n * spec.input().size());
  const Storage y("carousel::bench::y", n * spec.output.size());
  const Storage d_x("carousel::bench::d_x", n * spec.input().size());
  const Storage w("carousel::bench::w", spec.parameter_size());
  const Storage d_w("carousel::bench::d_w", spec.parameter_size());
  const Kokkos::View<std::byte*, MemorySpace> workspace("carousel::bench::workspace",
                                                        spec.workspace_bytes(n));
  Kokkos::deep_copy(x, 0.5);
  Kokkos::deep_copy(y, 0.125);
  Kokkos::deep_copy(w, 0.25);
  const auto layer = make_layer(spec, n, {exec, {workspace.data(), workspace.size()}});
  const bool both = pass == both_gradients;
  while (state.KeepRunning()) {
    if (pass == forward)
      layer->forward(exec, {.input = {x.data(), n, spec.input()},
                            .output = {y.data(), n, spec.output},
                            .parameters = w.data()});
    else
      layer->backward(exec, {.input = {x.data(), n, spec.input()},
                             .output = {y.data(), n, spec.output},
                             .d_output = {y.data(), n, spec.output},
                             .d_input = {both ? d_x.data() : nullptr, n, spec.input()},
                             .parameters = w.data(),
                             .d_parameters = d_w.data()});
    exec.fence("carousel::bench::convolution done");
  }
}

/// Arguments: kernels, pass, images, channels in, channels out, height, kernel, stride.
void convolution(benchmark::State& state) {
  const auto argument = [&](int k) { return static_cast<int>(state.range(k)); };
  const auto kernels = static_cast<Library>(state.range(0));
  const auto pass = static_cast<Pass>(state.range(1));
  const int n = argument(2);
  const int kernel = argument(6);
  const LayerSpec spec = convolution(argument(3), argument(4), argument(5),
                                     {kernel, argument(7), kernel / 2}, kernels);
  static constexpr std::array<const char*, 4> names = {"portable", "direct", "winograd", "oneDNN"};
  static constexpr std::array<const char*, 3> passes = {"forward", "weight gradient",
                                                        "both gradients"};
  state.SetLabel(fmt::format("{} {}", names[kernels], passes[pass]));
  const bool blocks = kernels == direct || kernels == winograd;
  if (blocks && vector_block == 1) return state.SkipWithError("no blocks of channels here");
  if (kernels == winograd && !spec.as<op::Convolution>().winograd)
    return state.SkipWithError("no convolution for Winograd");
  if (kernels == onednn) {
#ifdef CAROUSEL_ONEDNN
    bench::OnednnConvolution theirs(spec, n);
    while (state.KeepRunning()) {
      if (pass == forward) theirs.forward();
      if (pass != forward) theirs.weight_gradient();
      if (pass == both_gradients) theirs.input_gradient();
    }
#else
    return state.SkipWithError("built without oneDNN");
#endif
  } else {
    run_ours(state, spec, n, pass);
  }
  state.counters["GFLOP/s"] = benchmark::Counter(
      (pass == both_gradients ? 4e-9 : 2e-9) * n * static_cast<double>(spec.parameter_size()) *
          spec.output.height * spec.output.width * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}
const std::vector<std::int64_t> all_kernels = {portable, direct, winograd, onednn};
const std::vector<std::int64_t> without_winograd = {portable, direct, onednn};
BENCHMARK(convolution)
    ->ArgNames({"kernels", "pass", "images", "in", "out", "size", "kernel", "stride"})
    ->ArgsProduct({all_kernels, {0, 1, 2}, {32}, {16}, {16}, {32}, {3}, {1}})
    ->ArgsProduct({all_kernels, {0, 1, 2}, {32}, {32}, {32}, {16}, {3}, {1}})
    ->ArgsProduct({all_kernels, {0, 1, 2}, {32}, {64}, {64}, {32}, {3}, {1}})
    ->ArgsProduct({all_kernels, {0, 1, 2}, {32}, {512}, {512}, {4}, {3}, {1}})
    ->ArgsProduct({without_winograd, {0, 1, 2}, {32}, {64}, {128}, {32}, {3}, {2}})
    ->ArgsProduct({without_winograd, {0, 1, 2}, {8}, {256}, {64}, {56}, {1}, {1}})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace carousel
