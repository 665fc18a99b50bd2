// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Speed of the tiled matrix product in the three forms that a linear layer needs. It prints
// GFLOP/s; judge them by the peak of the machine, and name the machine beside them.

#include <benchmark/benchmark.h>

#include "layers/gemm.hpp"

namespace carousel {
namespace {

using Storage = Kokkos::View<real*, MemorySpace>;

enum Form : std::int64_t { forward, weight_gradient, input_gradient };

/// Arguments: form, samples, outputs, inputs.
void product(benchmark::State& state) {
  const auto samples = static_cast<int>(state.range(1));
  const auto outputs = static_cast<int>(state.range(2));
  const auto inputs = static_cast<int>(state.range(3));
  const ExecutionSpace exec;
  const Storage x("carousel::bench::x", samples * inputs);
  const Storage w("carousel::bench::w", outputs * inputs);
  const Storage y("carousel::bench::y", samples * outputs);
  Kokkos::deep_copy(x, 0.5);
  Kokkos::deep_copy(w, 0.25);
  Kokkos::deep_copy(y, 0.125);
  const ConstMatrix x_matrix = {x.data(), inputs, 1};
  const ConstMatrix w_matrix = {w.data(), inputs, 1};
  const ConstMatrix y_matrix = {y.data(), outputs, 1};
  const std::string label = "carousel::bench::product";
  for (auto _ : state) {
    if (state.range(0) == forward)
      gemm(exec, label, {samples, outputs, inputs}, x_matrix, w_matrix.transposed(),
           {y.data(), outputs});
    else if (state.range(0) == weight_gradient)
      gemm(exec, label, {outputs, inputs, samples}, y_matrix.transposed(), x_matrix,
           {w.data(), inputs});
    else
      gemm(exec, label, {samples, inputs, outputs}, y_matrix, w_matrix, {x.data(), inputs});
    exec.fence("carousel::bench::product done");
  }
  state.counters["GFLOP/s"] = benchmark::Counter(
      2e-9 * samples * outputs * inputs * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}
BENCHMARK(product)
    ->ArgNames({"form", "samples", "outputs", "inputs"})
    ->ArgsProduct({{forward, weight_gradient, input_gradient}, {16}, {64}, {64}})
    ->ArgsProduct({{forward, weight_gradient, input_gradient}, {128}, {1024}, {1024}})
    ->ArgsProduct({{forward}, {512}, {512}, {512}})
    ->ArgsProduct({{forward}, {1024}, {1024}, {1024}})
    ->ArgsProduct({{forward, weight_gradient, input_gradient}, {2048}, {2048}, {2048}})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace carousel
