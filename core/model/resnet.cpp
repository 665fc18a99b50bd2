// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Residual networks (He et al. 2016, arXiv 1512.03385) as model descriptions, with the names and
// the first values of torchvision.models.resnet.

#include <optional>

#include "core/base/check.hpp"
#include "core/model/builder.hpp"

namespace carousel {
namespace {

struct Design {
  std::vector<int> blocks;  // [group]
  int width = 0;            // channels of the first group; they double from group to group
  bool bottleneck = false;
  bool small_images = false;  // CIFAR's stem only
};

std::optional<Design> design_of(int depth) {
  switch (depth) {
    case 18:
      return Design{{2, 2, 2, 2}, 64};
    case 34:
      return Design{{3, 4, 6, 3}, 64};
    case 50:
      return Design{{3, 4, 6, 3}, 64, true};
    case 8:
    case 20:
    case 32:
    case 56: {
      const int blocks = (depth - 2) / 6;  // of two layers, in three groups
      return Design{{blocks, blocks, blocks}, 16, false, true};
    }
    default:
      return std::nullopt;
  }
}

class ResnetBuilder {
 public:
  ResnetBuilder(ModelBuilder& builder, const Design& design, int groups)
      : builder_(builder), design_(design), groups_(groups) {}

  void stem(Stem stem) {
    const bool imagenet = stem == Stem::imagenet;
    convolution("conv1", "bn1", design_.width, imagenet ? Window{7, 2, 3} : Window{3, 1, 1});
    builder_.add("relu", "relu");
    if (imagenet)
      builder_.add("max_pool", "maxpool", {{"kernel", 3}, {"stride", 2}, {"padding", 1}});
  }

  void groups() {
    int width = design_.width;
    for (std::size_t g = 0; g < design_.blocks.size(); ++g, width *= 2) {
      for (int b = 0; b < design_.blocks[g]; ++b)
        block(fmt::format("layer{}.{}", g + 1, b), width, g > 0 && b == 0 ? 2 : 1);
    }
  }

  void head(const TargetSpec& target, const TaskConfig& task) {
    builder_.add("average_pool", "avgpool");
    builder_.add("flatten");
    builder_.add("linear", "fc", {{"features", static_cast<double>(target.outputs().size())}});
    builder_.add_loss(task);
  }

 private:
  /// The shortcut comes first, so that the addition directly follows the branch it works on.
  void block(const std::string& name, int width, int stride) {
    const int input = builder_.last();
    const int channels = design_.bottleneck ? 4 * width : width;
    int shortcut = input;
    if (stride > 1 || builder_.shape().channels != channels) {
      convolution(name + ".downsample.0", name + ".downsample.1", channels, {1, stride, 0});
      shortcut = builder_.last();
      builder_.from(input);
    }
    if (design_.bottleneck) {
      inner(name, 1, width, {1, 1, 0});
      inner(name, 2, width, {3, stride, 1});
      convolution(name + ".conv3", name + ".bn3", channels, {1, 1, 0});
    } else {
      inner(name, 1, width, {3, stride, 1});
      convolution(name + ".conv2", name + ".bn2", channels, {3, 1, 1});
    }
    builder_.add_joining("add", name, shortcut);
    builder_.add("relu", name + ".relu");
  }

  void inner(const std::string& block, int number, int channels, const Window& window) {
    convolution(fmt::format("{}.conv{}", block, number), fmt::format("{}.bn{}", block, number),
                channels, window);
    builder_.add("relu", block + ".relu");
  }

  void convolution(const std::string& name, const std::string& norm, int channels,
                   const Window& window) {
    LayerSpec& layer = builder_.add("convolution", name,
                                    {{"channels", 1.0 * channels},
                                     {"kernel", 1.0 * window.kernel},
                                     {"stride", 1.0 * window.stride},
                                     {"padding", 1.0 * window.padding},
                                     {"bias", 0}});
    // He et al. 2015: by the fan of the output, the variance of gradients stays.
    layer.parameters.front().initial = kaiming_normal(std::int64_t{channels} * window.taps());
    if (groups_ == 0)
      builder_.add("batch_norm", norm);
    else
      builder_.add("group_norm", norm, {{"groups", 1.0 * groups_}});
  }

  ModelBuilder& builder_;
  const Design& design_;
  int groups_;  // of group norms; 0: batch norms
};

}  // namespace

void check_resnet(int depth, Stem stem, int groups) {
  const std::optional<Design> design = design_of(depth);
  if (!design)
    fail(ExitCode::usage,
         "model.depth = {} is no residual network of this version; known: 18, 34, 50, and with "
         "model.stem = \"cifar\" also 8, 20, 32, 56",
         depth);
  if (design->small_images && stem != Stem::cifar)
    fail(ExitCode::usage,
         "model.stem = \"{}\" is not for model.depth = {}, a network for small images; use "
         "\"cifar\"",
         to_string(stem), depth);
  if (groups > 0 && design->width % groups != 0)
    fail(
        ExitCode::usage,
        "model.groups = {} does not divide the {} channels of the first norm of a residual network "
        "of depth {}; give a power of two up to {}",
        groups, design->width, depth, design->width);
}

Model build_resnet(int depth, Stem stem, const SampleShape& input, const TargetSpec& target,
                   int groups, const TaskConfig& task) {
  check_resnet(depth, stem, groups);
  const Design design = design_of(depth).value();
  ModelBuilder builder(fmt::format("resnet{}", depth), input, target);
  ResnetBuilder resnet(builder, design, groups);
  resnet.stem(stem);
  resnet.groups();
  resnet.head(target, task);
  return builder.model();
}

}  // namespace carousel
