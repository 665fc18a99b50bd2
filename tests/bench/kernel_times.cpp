// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// How long each kernel and copy of a program takes on a GPU, for gpu.py: a library that CUDA loads
// where CUDA_INJECTION64_PATH names it. It listens to CUPTI, which is part of CUDA, and writes
// CAROUSEL_KERNEL_TIMES.PID when the program ends: nanoseconds, calls and name, with tabs between.

#include <cupti.h>
#include <cxxabi.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace {

struct Sum {
  std::uint64_t nanoseconds = 0;
  std::int64_t calls = 0;
};

/// Never destroyed: CUPTI hands over records until the very end.
struct Times {
  std::mutex mutex;
  std::map<std::string, Sum> sums;
};
Times& times() {
  static auto* const all = new Times;
  return *all;
}

void add(const char* name, std::uint64_t begin, std::uint64_t end) {
  Sum& sum = times().sums[name];
  sum.nanoseconds += end - begin;
  ++sum.calls;
}

void add(const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
      return add(kernel->name, kernel->start, kernel->end);
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto* copy = reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
      const bool enters = copy->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
      const bool leaves = copy->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
      return add(enters   ? "copy from host"
                 : leaves ? "copy to host"
                          : "copy",
                 copy->start, copy->end);
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto* fill = reinterpret_cast<const CUpti_ActivityMemset4*>(record);
      return add("fill", fill->start, fill->end);
    }
    default:
      return;
  }
}

void give_room(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  constexpr std::size_t bytes = 8 << 20;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(alignof(std::max_align_t), bytes));
  *size = *buffer == nullptr ? 0 : bytes;
  *most_records = 0;  // as many as fit
}

void take(CUcontext /*context*/, std::uint32_t /*stream*/, std::uint8_t* buffer,
          std::size_t /*size*/, std::size_t used) {
  const std::lock_guard lock(times().mutex);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, used, &record) == CUPTI_SUCCESS) add(record);
  std::free(buffer);
}

void write() {
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  const char* const path = std::getenv("CAROUSEL_KERNEL_TIMES");
  const std::lock_guard lock(times().mutex);
  if (path == nullptr || times().sums.empty()) return;
  const std::string name = std::string(path).append(".").append(std::to_string(getpid()));
  std::FILE* const file = std::fopen(name.c_str(), "w");
  if (file == nullptr) return std::perror(name.c_str());
  for (const auto& [kernel, sum] : times().sums) {
    int status = 0;
    char* const readable = abi::__cxa_demangle(kernel.c_str(), nullptr, nullptr, &status);
    std::fprintf(file, "%llu\t%lld\t%s\n", static_cast<unsigned long long>(sum.nanoseconds),
                 static_cast<long long>(sum.calls), status == 0 ? readable : kernel.c_str());
    std::free(readable);
  }
  std::fclose(file);
}

}  // namespace

/// What CUDA calls before a program's first kernel.
extern "C" int InitializeInjection() {
  constexpr int success = 1;
  cuptiActivityRegisterCallbacks(give_room, take);
  for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                        CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET})
    cuptiActivityEnable(kind);
  std::atexit(write);
  return success;
}
