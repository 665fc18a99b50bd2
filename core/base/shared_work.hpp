// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbered pieces of work that several threads take, each the next one. What they are, the caller
// says.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace carousel {

/// Calls make(thread) once in each of `threads` threads, of which this one is number 0, and what it
/// returns for pieces 0 .. count - 1, until one fails; then rethrows what the first piece that
/// failed has thrown.
template <class Make>
void share_work(std::int64_t count, int threads, const Make& make) {
  std::atomic<std::int64_t> next = 0;
  std::mutex mutex;  // of the failure
  std::exception_ptr failure;
  std::int64_t failed = count;
  const auto work = [&](int thread) {
    auto run = make(thread);
    for (std::int64_t k = next++; k < count; k = next++) {
      try {
        run(k);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (k < failed) failure = std::current_exception();
        failed = std::min(failed, k);
        next = count;
        return;
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (int thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
    work(0);
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace carousel
