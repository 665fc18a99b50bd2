// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/reports.hpp"

#include <algorithm>
#include <atomic>

#include "core/base/range.hpp"
#include "core/plan/rule.hpp"

namespace carousel {

Reports::Reports(const ExecutionSpace& exec, std::span<const StageMemory> stages,
                 std::int64_t first_step)
    : sums_(stages.front().sums),
      shared_("carousel::train::reports"),
      digests_(Kokkos::view_alloc(exec, "carousel::train::digests"), rows, stages.size()) {
  static_assert(rows > decision_lag + 1);
  shared_().decisions = {};
  shared_().known_step = first_step - 1;
}

void Reports::learn(const ExecutionSpace& exec, std::int64_t step, const real* rider,
                    std::int64_t segment_first) const {
  static const std::string label = "carousel::train::learn";
  ReportMemory* const shared = shared_.data();
  double* const sums = shared->sums[row(step)];
  const RiderSums said{rider, sums_};
  Kokkos::parallel_for(
      label, range(exec, 1), KOKKOS_LAMBDA(int) {
        if (step <= shared->known_step) return;
        for (int k = 0; k <= said.sums; ++k) sums[k] = said.sum(k);
        Decisions& known = shared->decisions;
        if (said.is_non_finite() && known.diverged_at < 0) known.diverged_at = step;
        if (said.wants_pause() && known.paused_at < 0 && step >= segment_first)
          known.paused_at = step;
        // For the host, which looks at any time; fences of Kokkos are for the device.
        KOKKOS_IF_ON_DEVICE((__threadfence_system();))
        KOKKOS_IF_ON_HOST((Kokkos::memory_fence();))
        Kokkos::atomic_store(&shared->known_step, step);
      });
}

std::int64_t Reports::known_step() const {
  return std::atomic_ref(shared_().known_step).load(std::memory_order_acquire);
}

StepSums Reports::sums(std::int64_t step) const {
  const double* numbers = shared_().sums[row(step)];
  StepSums sums{.loss = numbers[0]};
  std::copy_n(numbers + 1, sums_, sums.metrics.begin());
  return sums;
}

}  // namespace carousel
