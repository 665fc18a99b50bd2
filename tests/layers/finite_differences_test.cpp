// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
// Gradients of whole networks against central differences of the loss. Needs the double preset: in
// single precision the differences drown in rounding.

#include "core/base/vectors.hpp"
#include "core/model/builder.hpp"
#include "core/model/kernels.hpp"
#include "tests/layers/central_differences.hpp"
#include "tests/layers/residual_blocks.hpp"

namespace carousel {
namespace {

constexpr int n = 5;
constexpr double step = 1e-6;

TEST(FiniteDifferences, AgreeInAPerceptron) {
  EXPECT_LE(test::difference(build_mlp({6, 9, 7, 4}, {6}, 4), n, step), 1e-8);
}

TEST(FiniteDifferences, AgreeInResidualBlocks) {
  EXPECT_LE(test::difference(test::residual_blocks(), n, step), 1e-8);
}

TEST(FiniteDifferences, AgreeInAVisionTransformer) {
  const ModelConfig config = {.depth = 2, .patch = 3, .width = 6, .heads = 2, .mlp = 7};
  EXPECT_LE(test::difference(build_vit(config, {2, 6, 9}, 4), 2, step), 1e-8);
}

/// Networks in which tensors have several readers, some of them layers that work in place.
struct Net {
  const char* name;
  void (*build)(ModelBuilder& net, int width);
};

// NOLINTNEXTLINE(readability-identifier-naming): as GoogleTest calls it
void PrintTo(const Net& net, std::ostream* out) {
  *out << net.name;
}

int convolve(ModelBuilder& net, int channels, int kernel = 3) {
  net.add("convolution", fmt::format("{}", net.last()),
          {{"channels", 1.0 * channels},
           {"kernel", 1.0 * kernel},
           {"padding", std::floor(kernel / 2.0)}});
  return net.last();
}

int add(ModelBuilder& net, const char* kind, const Arguments& arguments = {}) {
  net.add(kind, fmt::format("{}", net.last()), arguments);
  return net.last();
}

void join(ModelBuilder& net, int second) {
  net.add_joining("add", fmt::format("{}", net.last()), second);
}

const Arguments same_size = {{"kernel", 3}, {"stride", 1}, {"padding", 1}};

const std::vector<Net> nets = {
    {"XPlusConvolution",
     [](ModelBuilder& net, int width) {
       const int x = convolve(net, width);
       convolve(net, width, 5);
       join(net, x);
     }},
    {"XPlusConvolutionOfOddWidth",
     [](ModelBuilder& net, int /*width*/) {
       const int x = convolve(net, 5);
       convolve(net, 5);
       join(net, x);
     }},
    {"XPlusPool",
     [](ModelBuilder& net, int width) {
       const int x = convolve(net, width);
       add(net, "max_pool", same_size);
       join(net, x);
     }},
    {"XPlusX",
     [](ModelBuilder& net, int width) {
       const int x = convolve(net, width);
       join(net, x);
     }},
    {"XPlusNorm",
     [](ModelBuilder& net, int width) {
       const int x = convolve(net, width);
       add(net, "group_norm", {{"groups", 2}});
       join(net, x);
       add(net, "relu");
     }},
    {"ReluPlusX",
     [](ModelBuilder& net, int width) {
       const int x = convolve(net, width);
       convolve(net, width);
       add(net, "relu");
       join(net, x);
       convolve(net, width);
     }},
    {"AddsOntoWhatNormReads",
     [](ModelBuilder& net, int width) {
       const int x = convolve(net, width);
       add(net, "group_norm", {{"groups", 2}});
       const int branch = convolve(net, width);
       net.from(x);
       join(net, branch);
       convolve(net, width);
     }},
    {"RectifiesWhatIsReadBefore",
     [](ModelBuilder& net, int width) {
       const int x = convolve(net, width);
       const int branch = add(net, "silu");
       net.from(x);
       add(net, "relu");
       join(net, branch);
     }},
    {"RectifiesWhatIsReadLater",
     [](ModelBuilder& net, int width) {
       const int x = convolve(net, width);
       add(net, "relu");
       const int branch = convolve(net, width);
       net.from(x);
       add(net, "silu");
       join(net, branch);
     }},
    {"DropsWhatIsReadLater",
     [](ModelBuilder& net, int width) {
       const int x = convolve(net, width);
       add(net, "dropout", {{"probability", 0.3}});
       const int branch = convolve(net, width);
       net.from(x);
       convolve(net, width);
       join(net, branch);
     }},
    {"DropsWhatWasRectified",
     [](ModelBuilder& net, int width) {
       convolve(net, width);
       add(net, "relu");
       add(net, "dropout", {{"probability", 0.3}});
       add(net, "relu");
     }},
    {"RectifiesTheImages",
     [](ModelBuilder& net, int width) {
       const int rectified = add(net, "relu");
       net.from(-1);
       join(net, rectified);
       convolve(net, width);
     }},
    {"FlattensWhatOthersRead",
     [](ModelBuilder& net, int width) {
       const int x = convolve(net, width);
       net.add("flatten");
       net.add("linear", "first", {{"features", 6}});
       const int branch = net.last();
       net.from(x);
       convolve(net, width);
       net.add("flatten");
       net.add("linear", "second", {{"features", 6}});
       join(net, branch);
     }},
    {"ActivatesBeforeItConvolves",
     [](ModelBuilder& net, int width) {
       convolve(net, width);
       for (int k = 0; k < 2; ++k) {
         const int x = add(net, "silu");
         add(net, "batch_norm");
         add(net, "relu");
         convolve(net, width);
         join(net, x);
       }
     }},
};

class OwnNetwork : public testing::TestWithParam<Net> {};

TEST_P(OwnNetwork, HasTheGradientOfItsLoss) {
  const int width = 2 * std::max(vector_block, 2);
  ModelBuilder net(GetParam().name, {3, 5, 4}, 4);
  GetParam().build(net, width);
  net.add("flatten");
  net.add("linear", "head", {{"features", 4}});
  net.add_loss({});
  for (const int block : {1, vector_block, 0}) {
    for (const Recompute recompute : {Recompute::none, Recompute::cheap, Recompute::stage}) {
      const Model model = choose_kernels(net.model(), {.block = block, .recompute = recompute});
      EXPECT_LE(test::directional_difference(model, n, step), 1e-7)
          << "block " << block << ", recompute " << to_string(recompute);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, OwnNetwork, testing::ValuesIn(nets),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace carousel
