// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Convolutions in blocks of channels against naive loops: direct and by Winograd, alone and behind
// a batch norm and a ReLU that are made on the way.

#include "core/base/check.hpp"
#include "core/base/vectors.hpp"
#include "core/model/kernels.hpp"
#include "layers/convolution/op.hpp"
#include "tests/layers/heap_counter.hpp"
#include "tests/layers/single_layer.hpp"
#include "tests/reference/image_layers.hpp"

namespace carousel {
namespace {

using test::Numbers;
using test::SingleLayer;

/// Channels in blocks, or an image as files have it.
struct Case {
  int n;
  int in;  // blocks; of images: minus their channels, 0 for one
  int height;
  int width;
  int out;
  Window window;
  bool winograd = false;
};

/// Rounding of Winograd's transforms, whose numbers are up to 4 * 4 * 8 * 8 times as large.
double tolerance(bool winograd) {
  return (winograd ? 20 : 1) * test::rounding;
}

LayerSpec spec_of(const Case& c, bool normalises = false) {
  const bool image = c.in <= 0;
  const int in = image ? std::max(-c.in, 1) : c.in * vector_block;
  const int out = c.out * vector_block;
  LayerSpec spec = test::image_layer("convolution", op::Convolution{c.window, normalises},
                                     {in, c.height, c.width}, out, c.window);
  if (!image) spec.inputs[0].format.block = vector_block;
  if (normalises) {
    spec.parameters = {{"norm.weight", {in}}, {"norm.bias", {in}}};
    spec.buffers = {{"norm.running_mean", {in}}, {"norm.running_var", {in}}};
  }
  spec.parameters.push_back({"weight", {out, in, c.window.kernel, c.window.kernel}});
  choose_kernels(spec, {.block = vector_block, .winograd = c.winograd});
  return spec;
}

class BlockedConvolution : public testing::TestWithParam<Case> {
 protected:
  BlockedConvolution()
      : spec_(spec_of(GetParam())),
        n_(GetParam().n),
        windows_{n_, spec_.input(), spec_.output, GetParam().window},
        x_(test::random_numbers(n_ * spec_.input().size(), "x")),
        w_(test::random_numbers(spec_.parameters.back().size(), "w")),
        d_y_(test::random_numbers(n_ * spec_.output.size(), "d_y")),
        tolerance_(tolerance(GetParam().winograd)) {}

  LayerSpec spec_;
  int n_;
  reference::Windows windows_;
  Numbers x_, w_, d_y_;
  double tolerance_;
};

TEST_P(BlockedConvolution, Forward) {
  SingleLayer layer(spec_, n_, w_);
  const Numbers expected = reference::convolution(windows_, x_, w_, {});
  EXPECT_LE(test::relative_difference(layer.forward(x_), expected), tolerance_);
}

TEST_P(BlockedConvolution, Backward) {
  SingleLayer layer(spec_, n_, w_);
  (void)layer.forward(x_);
  const auto expected = reference::convolution_gradients(windows_, x_, w_, d_y_);
  if (GetParam().in > 0) {
    EXPECT_LE(test::relative_difference(layer.backward(d_y_), expected.d_x), tolerance_);
    EXPECT_EQ(layer.d_output(), d_y_);
    const Numbers others = test::random_numbers(x_.size(), "others");
    EXPECT_LE(
        test::relative_difference(layer.backward(d_y_, others), test::sum(others, expected.d_x)),
        tolerance_);
  }
  layer.backward_without_input(d_y_);
  EXPECT_LE(test::relative_difference(layer.d_parameters(), expected.d_w), tolerance_);
}

TEST_P(BlockedConvolution, NormalisesOnTheWay) {
  if (GetParam().in <= 0) return;  // images of files have no batch norm
  const LayerSpec spec = spec_of(GetParam(), true);
  const SampleShape& shape = spec.input();
  const Numbers scale = test::random_numbers(shape.channels, "scale");
  const Numbers shift = test::random_numbers(shape.channels, "shift");
  SingleLayer layer(spec, n_, test::joined(test::joined(scale, shift), w_));
  const auto statistics = reference::statistics(n_, shape, x_);
  const Numbers normal = reference::batch_norm(n_, shape, x_, statistics, scale, shift);
  Numbers rectified = normal;
  for (real& number : rectified) number = std::max(number, real(0));
  EXPECT_LE(test::relative_difference(layer.forward(x_),
                                      reference::convolution(windows_, rectified, w_, {})),
            tolerance_);

  const auto gradients = reference::convolution_gradients(windows_, rectified, w_, d_y_);
  Numbers d_normal = gradients.d_x;
  for (std::size_t k = 0; k < normal.size(); ++k) d_normal[k] = normal[k] > 0 ? d_normal[k] : 0;
  const auto expected = reference::batch_norm_gradients(n_, shape, x_, scale, d_normal);
  EXPECT_LE(test::relative_difference(layer.backward(d_y_), expected.d_x), 10 * tolerance_);
  const Numbers d_norm = test::joined(expected.d_w, expected.d_b);
  EXPECT_LE(test::relative_difference(layer.d_parameters(), test::joined(d_norm, gradients.d_w)),
            10 * tolerance_);
}

/// The first time threads of the host make room for their caches' worth.
TEST_P(BlockedConvolution, TakesNothingFromTheHeap) {
  const bool image = GetParam().in <= 0;
  for (const bool normalises : {false, true}) {
    if (image && normalises) continue;
    const LayerSpec spec = spec_of(GetParam(), normalises);
    SingleLayer layer(spec, n_, test::random_numbers(spec.parameter_size(), "w"));
    (void)layer.forward(x_);
    if (image)
      layer.backward_without_input(d_y_);
    else
      (void)layer.backward(d_y_);
    const ExecutionSpace exec;
    const test::HeapCounter heap;
    layer.repeat(exec);
    heap.pause();
    EXPECT_EQ(heap.allocations(), 0) << (normalises ? "behind a norm" : "alone");
  }
}

/// Direct sums for shapes of residual networks and for what may sit badly in a tile, then
/// Winograd's, of which no image has a whole number of tiles but two.
std::vector<Case> cases() {
  constexpr Window three = {3, 1, 1};
  return {
      {2, -3, 17, 15, 1, {7, 2, 3}},    // stem of ImageNet
      {2, -3, 12, 12, 2, three},        // stem of CIFAR
      {2, 0, 8, 8, 1, {1, 1, 0}},       // pixels one by one
      {33, -20, 8, 8, 2, {4, 4, 0}},    // more channels than a register has numbers
      {4, 1, 8, 8, 1, three},           // inside a group
      {2, 4, 8, 8, 3, three},           // an odd number of registers
      {2, 1, 8, 8, 2, {3, 2, 1}},       // from group to group
      {2, 1, 8, 8, 2, {1, 2, 0}},       // its shortcut
      {2, 1, 9, 7, 2, {1, 2, 0}},       //
      {2, 4, 5, 5, 8, {1, 1, 0}},       // bottleneck
      {2, 2, 17, 16, 1, {1, 1, 0}},     // long rows
      {2, 72, 12, 11, 2, {1, 1, 0}},    // more weights than a first cache keeps
      {1, 71, 1, 130, 1, {3, 1, 1}},    // and several taps
      {1, 1, 1, 1, 1, three},           // one number in padding
      {1, 1, 7, 7, 1, {7, 1, 0}},       // one window
      {3, 1, 2, 2, 1, {7, 1, 3}},       // images smaller than the kernel
      {2, 1, 11, 13, 2, {3, 3, 0}},     // stride 3, odd sizes
      {1, 1, 8, 8, 1, {1, 3, 0}},       // most pixels are never seen
      {2, 1, 7, 9, 2, {3, 2, 0}},       // the last row and column are never seen
      {2, 1, 6, 6, 1, {1, 2, 3}},       // windows of nothing but padding
      {37, 1, 4, 4, 1, three},          // many small images
      {1, 1, 34, 29, 2, three},         // one large image
      {3, 2, 3, 3, 2, {3, 2, 1}},       //
      {2, 1, 8, 8, 1, three, true},     // whole tiles
      {3, 2, 4, 4, 2, three, true},     // one tile
      {2, 1, 7, 7, 2, three, true},     //
      {2, 3, 9, 14, 3, three, true},    // odd numbers of registers
      {1, 1, 1, 1, 1, three, true},     // one number in padding
      {1, 2, 2, 3, 1, three, true},     //
      {1, 2, 34, 29, 4, three, true},   // one large image
      {70, 1, 5, 4, 1, three, true},    // many small images
      {2, 16, 6, 6, 8, three, true},    // many channels
      {300, 16, 2, 1, 9, three, true},  // and many tiles
      {1, 4, 68, 66, 4, three, true},   // several turns of a cache
  };
}

std::string name_of(const testing::TestParamInfo<Case>& instance) {
  const auto& [n, in, height, width, out, window, winograd] = instance.param;
  return fmt::format("n{}c{}{}h{}w{}to{}k{}s{}p{}{}", n, in <= 0 ? "image" : "", std::abs(in),
                     height, width, out, window.kernel, window.stride, window.padding,
                     winograd ? "winograd" : "");
}

INSTANTIATE_TEST_SUITE_P(Shapes, BlockedConvolution, testing::ValuesIn(cases()), name_of);

// A micro-batch may be cut anywhere: an evaluation's last one is short.
TEST(BlockedConvolutions, GiveSamplesTheSameBitsInAnyCompany) {
  constexpr Window three = {3, 1, 1};
  // By Winograd, threads share tiles where these are many, and channels where they are few.
  for (const Case& whole : {Case{9, 2, 10, 6, 2, three}, Case{9, 2, 10, 6, 2, three, true},
                            Case{30, 8, 10, 6, 8, three, true}}) {
    const LayerSpec spec = spec_of(whole);
    const Numbers w = test::random_numbers(spec.parameter_size(), "w");
    const Numbers x = test::random_numbers(whole.n * spec.input().size(), "x");
    const Numbers together = SingleLayer(spec, whole.n, w).forward(x);
    for (int i = 0; i < whole.n; ++i) {
      const auto part = [&](const Numbers& numbers, std::int64_t size) {
        return Numbers(numbers.begin() + i * size, numbers.begin() + (i + 1) * size);
      };
      EXPECT_EQ(SingleLayer(spec, 1, w).forward(part(x, spec.input().size())),
                part(together, spec.output.size()));
    }
  }
}

}  // namespace
}  // namespace carousel
