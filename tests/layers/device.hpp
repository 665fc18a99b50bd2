// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbers for tests: random ones, on the host and on the device, and how to compare them. It holds
// no reference results; those are in tests/reference.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/random.hpp"
#include "core/base/view.hpp"

namespace carousel::test {

using Numbers = std::vector<real>;
template <class T>
using Device = Kokkos::View<T*, MemorySpace>;

template <class T>
using HostView = Kokkos::View<T*, HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

template <class T>
[[nodiscard]] Device<T> to_device(std::vector<T> host) {
  Device<T> device("carousel::test::numbers", host.size());
  Kokkos::deep_copy(device, HostView<T>(host.data(), host.size()));
  return device;
}

template <class T>
[[nodiscard]] std::vector<T> to_host(const Device<T>& device) {
  std::vector<T> host(device.size());
  Kokkos::deep_copy(HostView<T>(host.data(), host.size()), device);
  return host;
}

/// Uniform in [-1/2, 1/2); another sequence for every (purpose, stream).
[[nodiscard]] inline Numbers random_numbers(std::size_t size, std::string_view purpose,
                                            std::uint64_t stream = 0) {
  Numbers numbers(size);
  for (std::size_t k = 0; k < size; ++k)
    numbers[k] = static_cast<real>(uniform01(random_key(7, purpose), stream, k) - 0.5);
  return numbers;
}

[[nodiscard]] inline std::vector<int> random_labels(int n, int classes, std::uint64_t stream = 0) {
  std::vector<int> labels(n);
  for (int i = 0; i < n; ++i)
    labels[i] = static_cast<int>(uniform01(random_key(7, "labels"), stream, i) * classes);
  return labels;
}

/// A text as GoogleTest allows it in the name of a test.
[[nodiscard]] inline std::string in_name(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return text;
}

/// max|actual - expected|; infinite where a number is none.
template <class A, class B>
[[nodiscard]] double largest_difference(const std::vector<A>& actual,
                                        const std::vector<B>& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double largest = 0;
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const double d = std::abs(static_cast<double>(actual[k]) - static_cast<double>(expected[k]));
    largest = std::isnan(d) ? INFINITY : std::max(largest, d);
  }
  return largest;
}

/// max|actual - expected| / max|expected|, the measure of design.md section 8.
template <class A, class B>
[[nodiscard]] double relative_difference(const std::vector<A>& actual,
                                         const std::vector<B>& expected) {
  double largest = 0;
  for (const B& number : expected)
    largest = std::max(largest, std::abs(static_cast<double>(number)));
  const double difference = largest_difference(actual, expected);
  return largest > 0 ? difference / largest : difference;
}

/// What rounding in sums of a few thousand terms may do, in the precision of this build.
inline constexpr double rounding = sizeof(real) == 8 ? 1e-13 : 2e-5;

}  // namespace carousel::test
