// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How far the work of an execution space has come. On hosts a kernel is over when its launch
// returns; on GPUs events tell.

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/base/cuda.hpp"
#include "core/engine/queue.hpp"

namespace carousel {

/// Mark k, from 1 on, is reached when all is done that was launched before it. One thread marks;
/// any may ask.
class LaunchTimeline final : public Timeline {
 public:
  /// Of so many marks at a time somebody may ask when they are reached.
  LaunchTimeline(const ExecutionSpace& exec, int marks);
  LaunchTimeline(const LaunchTimeline&) = delete;
  LaunchTimeline& operator=(const LaunchTimeline&) = delete;
  ~LaunchTimeline() override;

  /// Whether there is room for another mark: the one that it takes the place of is reached.
  [[nodiscard]] bool has_room() const;
  std::int64_t mark();
  [[nodiscard]] std::int64_t marked() const { return marked_.load(std::memory_order_acquire); }

  [[nodiscard]] bool has_reached(std::int64_t value) const override;
  [[nodiscard]] bool is_launched(std::int64_t value) const override { return marked() >= value; }
  void hold(const ExecutionSpace& exec, std::int64_t value) const override;

 private:
  std::atomic<std::int64_t> marked_ = 0;
#ifdef KOKKOS_ENABLE_CUDA
  [[nodiscard]] cudaEvent_t event(std::int64_t value) const {
    return events_[static_cast<std::size_t>(value) % events_.size()];
  }

  ExecutionSpace exec_;
  std::vector<cudaEvent_t> events_;                // of mark k in k % marks
  mutable std::atomic<std::int64_t> reached_ = 0;  // that mark, as somebody has seen, maybe more
#endif
};

#ifdef KOKKOS_ENABLE_CUDA

inline LaunchTimeline::LaunchTimeline(const ExecutionSpace& exec, int marks)
    : exec_(exec), events_(static_cast<std::size_t>(marks)) {
  (void)cudaGetLastError();  // of what libraries have tried, and seen, at their start
  for (cudaEvent_t& event : events_)
    CAROUSEL_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
}

inline LaunchTimeline::~LaunchTimeline() {
  for (cudaEvent_t event : events_) cudaEventDestroy(event);
}

inline bool LaunchTimeline::has_room() const {
  return has_reached(marked() + 1 - static_cast<std::int64_t>(events_.size()));
}

inline std::int64_t LaunchTimeline::mark() {
  CAROUSEL_CHECK(has_room(), "more than {} marks that are not reached", events_.size());
  check_launches();
  const std::int64_t value = marked() + 1;
  CAROUSEL_CUDA(cudaEventRecord(event(value), exec_.cuda_stream()));
  marked_.store(value, std::memory_order_release);
  return value;
}

inline bool LaunchTimeline::has_reached(std::int64_t value) const {
  std::int64_t reached = reached_.load(std::memory_order_acquire);
  if (reached >= value) return true;
  if (marked() < value) return false;
  check_launches();  // CUDA keeps one error, and this answer would take the place of another
  // Where the event stands for a later mark by now, this one is reached, and the next look sees it.
  const cudaError_t code = cudaEventQuery(event(value));
  if (code == cudaErrorNotReady) {
    (void)cudaGetLastError();
    return false;
  }
  cuda_must(code, "cudaEventQuery");
  while (reached < value && !reached_.compare_exchange_weak(reached, value)) {
  }
  return true;
}

inline void LaunchTimeline::hold(const ExecutionSpace& exec, std::int64_t value) const {
  if (!has_reached(value)) CAROUSEL_CUDA(cudaStreamWaitEvent(exec.cuda_stream(), event(value), 0));
}

#else

inline LaunchTimeline::LaunchTimeline(const ExecutionSpace& /*exec*/, int /*marks*/) {}
inline LaunchTimeline::~LaunchTimeline() = default;
inline bool LaunchTimeline::has_room() const {
  return true;
}
inline std::int64_t LaunchTimeline::mark() {
  return marked_.fetch_add(1) + 1;
}
inline bool LaunchTimeline::has_reached(std::int64_t value) const {
  return marked() >= value;
}
inline void LaunchTimeline::hold(const ExecutionSpace& /*exec*/, std::int64_t /*value*/) const {}

#endif

}  // namespace carousel
