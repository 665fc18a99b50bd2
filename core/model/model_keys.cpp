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
  const auto listed = [&](const char* name, DeckValue ModelConfig::*member, KeyType type,
                          const char* words, const char* doc, Missing missing) {
    KeyTraits traits = with({"layers"}, missing);
    traits.implies = {"model.name", {"layers"}};
    Row<ModelConfig> row = key(name, member, {.unit = words}, doc, traits);
    row.type = type;
    return row;
  };
  KeyTraits in_file = with({"layers"}, Missing::nothing);
  in_file.implies = {"model.name", {"layers"}};
  constexpr int most = 1 << 20;
  return {
      key("name", &ModelConfig::name, one_of({"mlp", "resnet", "vit", "layers"}),
          "Kind of network: multi-layer perceptron, residual network, vision transformer, or the "
          "layers that the deck lists, which is what a deck with a list means."),
      listed(
          "layers", &ModelConfig::layers, KeyType::list, "a list of layers",
          "One after the other: words such as \"relu\", and tables such as { conv = 64, kernel = "
          "3, padding = 1 }. `carousel help layers` has them all.",
          Missing::refused),
      listed("let", &ModelConfig::let, KeyType::table, "a table of numbers",
             "Numbers and expressions that sizes of layers may use by their names.",
             Missing::nothing),
      listed("blocks", &ModelConfig::blocks, KeyType::table, "a table of lists of layers",
             "Layers that the list may use more than once, by the name of the block.",
             Missing::nothing),
      key("file", &ModelConfig::file, anything,
          "A file that has layers, let and blocks in their place, relative to the deck. What the "
          "deck's own let says replaces that of the file.",
          in_file),
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
