// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Kernels over rows of channels reach every number once, in several slabs of channels and chunks of
// rows, too, and where no pack fits. All numbers are whole, so that sums are exact in any order.

#include "layers/channels_last/column_sums.hpp"

#include "tests/layers/device.hpp"

namespace carousel::test {
namespace {

using channels_last::Sums;

/// Sums of numbers, and of their squares.
struct Powers {
  const real* data;
  int channels;

  template <int Width>
  KOKKOS_FUNCTION void add(int c, std::int64_t row, int stride, std::int64_t end,
                           Sums* sums) const {
    for (; row < end; row += stride) {
      for (int l = 0; l < Width; ++l) {
        const double value = data[row * channels + c + l];
        sums[l] += {value, value * value};
      }
    }
  }
};

/// Adds to every number one more than its channel.
struct AddChannel {
  int* data;

  template <int Width>
  KOKKOS_FUNCTION void visit(int c, std::int64_t first, std::int64_t step, std::int64_t end) const {
    for (; first < end; first += step) {
      for (int l = 0; l < Width; ++l) data[first + l] += 1 + c + l;
    }
  }
};

/// Of every channel; then of the squares.
std::vector<double> column_sums(const ExecutionSpace& exec, const Device<real>& data,
                                std::int64_t rows, int channels) {
  static const std::string chunks = "carousel::test::chunks";
  static const std::string total = "carousel::test::total";
  const Device<double> sums = to_device(std::vector<double>(2 * channels, -1));
  const Device<double> partial("carousel::test::partial", norm_workspace / sizeof(double));
  channels_last::add_up(
      exec, {chunks, total}, rows, channels, Powers{data.data(), channels}, partial.data(),
      KOKKOS_LAMBDA(int c, const Sums& found) {
        sums(c) = found.first;
        sums(channels + c) = found.second;
      });
  exec.fence("carousel::test::column_sums");
  return to_host(sums);
}

struct Shape {
  std::int64_t rows;
  int channels;
};

class ColumnSums : public ::testing::TestWithParam<Shape> {
 protected:
  const ExecutionSpace exec_;
  const std::int64_t rows_ = GetParam().rows;
  const int channels_ = GetParam().channels;
};

TEST_P(ColumnSums, AddEveryRowOnce) {
  std::vector<real> numbers(rows_ * channels_);
  std::vector<double> expected(2 * channels_);
  for (std::int64_t i = 0; i < rows_ * channels_; ++i) {
    const auto value = static_cast<double>((i * 7 + i / channels_) % 31 - 15);
    numbers[i] = static_cast<real>(value);
    expected[i % channels_] += value;
    expected[channels_ + i % channels_] += value * value;
  }
  EXPECT_EQ(column_sums(exec_, to_device(numbers), rows_, channels_), expected);
}

TEST_P(ColumnSums, PacksReachEveryNumberOnce) {
  static const std::string label = "carousel::test::packs";
  const Device<int> data("carousel::test::numbers", rows_ * channels_);
  channels_last::for_each_pack(exec_, label, rows_ * channels_, channels_, AddChannel{data.data()});
  exec_.fence("carousel::test::packs");
  const std::vector<int> found = to_host(data);
  for (std::int64_t i = 0; i < rows_ * channels_; ++i) ASSERT_EQ(found[i], 1 + i % channels_) << i;
}

INSTANTIATE_TEST_SUITE_P(Shapes, ColumnSums,
                         ::testing::Values(Shape{1, 8},        //
                                           Shape{5, 24},       // lanes left over
                                           Shape{63, 7},       // no packs
                                           Shape{200, 40},     // three chunks
                                           Shape{130, 257},    // slabs of single channels
                                           Shape{333, 264},    // a second slab of one pack
                                           Shape{1100, 2048},  // as many as a ResNet-50 has
                                           Shape{70'001, 8}),  // all chunks
                         [](const auto& instance) {
                           return std::to_string(instance.param.rows) + "x" +
                                  std::to_string(instance.param.channels);
                         });

}  // namespace
}  // namespace carousel::test
