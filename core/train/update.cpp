// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/update.hpp"

#include "core/base/check.hpp"
#include "core/base/digest.hpp"
#include "core/base/range.hpp"

namespace carousel {
namespace {

struct Statistics {
  StatisticsVectors vectors;
  std::int64_t begin;
  real m;

  KOKKOS_FUNCTION void operator()(std::int64_t index, std::uint64_t& sum) const {
    const std::int64_t i = begin + index;
    const real result = (1 - m) * vectors.running[i] + m * (vectors.scale * vectors.batch_sums[i]);
    vectors.next[i] = result;
    sum += digest_term(static_cast<std::uint64_t>(vectors.parameters + i), result);
  }
  KOKKOS_FUNCTION void final(std::uint64_t& sum) const {
    if (vectors.digest != nullptr) *vectors.digest += sum;
  }
};

}  // namespace

void update(const ExecutionSpace& exec, const OptimizerStep& step, const StageMemory& stage,
            const UpdateVectors& vectors) {
  const bool some = vectors.size > 0 || vectors.first == stage.parameter_size;
  CAROUSEL_CHECK(some && vectors.first + vectors.size <= stage.parameter_size,
                 "numbers {} .. {} of {} parameters", vectors.first, vectors.first + vectors.size,
                 stage.parameter_size);
  CAROUSEL_CHECK(vectors.states != nullptr || vectors.size == 0 || step.config.states().empty(),
                 "no room for the states of {}", step.config.name());
  CAROUSEL_CHECK(
      std::ssize(vectors.workspace) >= step.config.workspace_bytes(stage.largest_tensor()),
      "{} bytes to work with for {}", vectors.workspace.size(), step.config.name());
  std::visit(
      [&](const auto& optimizer) {
        optimizer.update({.exec = exec, .step = step, .stage = stage, .vectors = vectors});
      },
      step.config.kind);
}

void update_statistics(const ExecutionSpace& exec, std::span<const StatisticsRange> ranges,
                       const StatisticsVectors& vectors) {
  static const std::string label = "carousel::train::update_statistics";
  for (const StatisticsRange& each : ranges)
    Kokkos::parallel_reduce(label, range(exec, each.end - each.begin),
                            Statistics{vectors, each.begin, static_cast<real>(each.momentum)});
}

}  // namespace carousel
