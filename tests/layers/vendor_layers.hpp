// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Convolutions that a vendor's libraries compute, and what they must be, for tests on GPUs by these
// libraries and on hosts by others in their place.

#include <gtest/gtest.h>

#include "core/model/kernels.hpp"
#include "layers/convolution/op.hpp"
#include "layers/vendor/vendor.hpp"
#include "tests/layers/single_layer.hpp"
#include "tests/reference/image_layers.hpp"

namespace carousel::test {

/// Channels, or an image as files have it: minus its channels.
struct ConvolutionCase {
  int n;
  int in;
  int height;
  int width;
  int out;
  Window window;
  DataType type = DataType::full;
};
// NOLINTNEXTLINE(readability-identifier-naming): as GoogleTest calls it
inline void PrintTo(const ConvolutionCase& c, std::ostream* out) {
  *out << c.n << " of " << c.in << "x" << c.height << "x" << c.width << " to " << c.out
       << ", window " << c.window.kernel << " " << c.window.stride << " " << c.window.padding
       << ", " << to_string(c.type);
}

inline LayerSpec spec_of(const ConvolutionCase& c, bool normalises = false) {
  const int in = std::abs(c.in);
  LayerSpec spec = image_layer("convolution", op::Convolution{c.window, normalises},
                               {in, c.height, c.width}, c.out, c.window);
  if (c.in > 0) spec.inputs[0].format = {c.type, in};
  if (normalises) {
    spec.parameters = {{"norm.weight", {in}}, {"norm.bias", {in}}};
    spec.buffers = {{"norm.running_mean", {in}}, {"norm.running_var", {in}}};
  }
  spec.parameters.push_back(
      {.name = "weight", .shape = {c.out, in, c.window.kernel, c.window.kernel}, .type = c.type});
  choose_kernels(spec, {.block = 0, .type = c.type, .vendor = VendorKernels::graphs});
  return spec;
}

class VendorConvolution : public ::testing::TestWithParam<ConvolutionCase> {
 protected:
  VendorConvolution() { handles_ = vendor::make_handles(ExecutionSpace()); }
  void TearDown() override { handles_.reset(); }
  [[nodiscard]] Numbers numbers(std::int64_t size, const char* name) const {
    return rounded_to(random_numbers(static_cast<std::size_t>(size), name), GetParam().type);
  }
  /// A convolution behind a batch norm and a ReLU.
  void expect_normalised() const {
    const LayerSpec spec = spec_of(GetParam(), true);
    const SampleShape& shape = spec.input();
    const Numbers scale = random_numbers(static_cast<std::size_t>(shape.channels), "scale");
    const Numbers shift = random_numbers(static_cast<std::size_t>(shape.channels), "shift");
    SingleLayer layer(spec, n_, joined(joined(scale, shift), w_), {}, handles_.get());
    const auto statistics = reference::statistics(n_, shape, x_);
    const Numbers normal = reference::batch_norm(n_, shape, x_, statistics, scale, shift);
    Numbers rectified = normal;
    for (real& number : rectified) number = std::max(number, real(0));
    EXPECT_LE(
        relative_difference(layer.forward(x_), reference::convolution(windows_, rectified, w_, {})),
        tolerance());

    const auto gradients = reference::convolution_gradients(windows_, rectified, w_, d_y_);
    Numbers d_normal = gradients.d_x;
    for (std::size_t k = 0; k < normal.size(); ++k) d_normal[k] = normal[k] > 0 ? d_normal[k] : 0;
    const auto expected = reference::batch_norm_gradients(n_, shape, x_, scale, d_normal);
    EXPECT_LE(relative_difference(layer.backward(d_y_), expected.d_x), 10 * tolerance());
    const Numbers d_norm = joined(expected.d_w, expected.d_b);
    EXPECT_LE(relative_difference(layer.d_parameters(), joined(d_norm, gradients.d_w)),
              10 * tolerance());
  }
  /// Of what is stored in the type; sums are in full numbers.
  [[nodiscard]] static double tolerance() {
    return GetParam().type == DataType::full ? rounding : 1.0 / 128;
  }

  LayerSpec spec_ = spec_of(GetParam());
  int n_ = GetParam().n;
  reference::Windows windows_{n_, spec_.input(), spec_.output, GetParam().window};
  Numbers x_ = numbers(n_ * spec_.input().size(), "x");
  Numbers w_ = numbers(spec_.parameters.back().size(), "w");
  Numbers d_y_ = numbers(n_ * spec_.output.size(), "d_y");
  std::shared_ptr<VendorHandles> handles_;
};

}  // namespace carousel::test
