// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The rows of [model].

#include "core/deck/row.hpp"
#include "core/model/model.hpp"

namespace carousel {

std::vector<Row<ModelConfig>> ModelConfig::rows() {
  const auto with = [](std::vector<std::string> names, Missing missing = Missing::refused) {
    return only_with("model.name", std::move(names), missing);
  };
  constexpr int most = 1 << 20;
  return {
      key("name", &ModelConfig::name, one_of({"mlp", "resnet", "vit"}),
          "Kind of network: multi-layer perceptron, residual network or vision transformer."),
      key("widths", &ModelConfig::widths, within(1, most),
          "Features of the input, of each hidden layer and of the output.", with({"mlp"})),
      key("dropout", &ModelConfig::dropout, below_one,
          "Probability that training sets a hidden feature to zero.",
          with({"mlp", "vit"}, Missing::standard)),
      key("depth", &ModelConfig::depth, within(1, 4096),
          "Residual network: layers with weights. 18, 34 and 50 are ImageNet's networks; 8, 20, 32 "
          "and 56 are the CIFAR family. Vision transformer: blocks.",
          with({"resnet", "vit"})),
      key("stem", &ModelConfig::stem, one_of<Stem>(),
          "First layers. cifar: a 3x3 convolution. imagenet: a 7x7 convolution and a pooling, "
          "which make images smaller by a factor of 4. The CIFAR family takes cifar only.",
          with({"resnet"})),
      key("norm", &ModelConfig::norm, one_of<Norm>(),
          "What normalises images. batch: each channel, by the images of a micro-batch. group: "
          "groups of channels of each image, whatever the micro-batch is.",
          with({"resnet"}, Missing::standard)),
      key("groups", &ModelConfig::groups, within(1, most),
          "Groups of channels. They divide the channels of the first norm, 64, or 16 in the CIFAR "
          "family.",
          only_with("model.norm", {"group"})),
      key("patch", &ModelConfig::patch, within(1, 1024, "pixels"),
          "Side of the square patches that are the tokens.", with({"vit"})),
      key("width", &ModelConfig::width, within(1, most),
          "Features of a token. With a patch of 16 pixels, torchvision's vit_b_16 has 768, a depth "
          "of 12 and 12 heads; vit_l_16 has 1024, 24 and 16.",
          with({"vit"})),
      key("heads", &ModelConfig::heads, within(1, 1024),
          "Attention heads of a block. They divide the width.", with({"vit"})),
      key("mlp", &ModelConfig::mlp, within(0, most),
          "Hidden features of a block. 0 is four times the width.",
          with({"vit"}, Missing::standard)),
  };
}

}  // namespace carousel
