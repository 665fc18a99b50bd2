// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Networks that decks list: names, structure, what is refused and where, and that every network can
// be written as such a list.

#include <gmock/gmock.h>

#include <fstream>

#include "app/deck.hpp"
#include "app/run_config.hpp"
#include "core/model/builder.hpp"
#include "core/model/model.hpp"
#include "core/model/op.hpp"
#include "tests/app/network_deck.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

using ::testing::ElementsAre;
using testing::failure;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

RunConfig config_of(const std::string& model, const std::vector<std::string>& overrides = {}) {
  return parse_run_config(test::network_deck(model), "net.toml", overrides);
}

Model model_of(const std::string& text, const SampleShape& input, int classes,
               const std::vector<std::string>& overrides = {}) {
  const RunConfig config = config_of(text, overrides);
  return build_model(config.model, input, classes, config.task);
}

std::string refusal(const std::string& text, const SampleShape& input = {3, 32, 32},
                    int classes = 10) {
  return failure(ExitCode::usage, [&] { static_cast<void>(model_of(text, input, classes)); });
}

std::vector<std::string> names_of(const Model& model) {
  std::vector<std::string> names;
  for (const LayerSpec& layer : model.layers) names.push_back(layer.name);
  names.pop_back();  // the loss
  return names;
}

void expect_same(const Model& actual, const Model& expected, bool with_names = true) {
  ASSERT_EQ(actual.layers.size(), expected.layers.size());
  for (std::size_t l = 0; l < expected.layers.size(); ++l) {
    const LayerSpec& a = actual.layers[l];
    const LayerSpec& b = expected.layers[l];
    SCOPED_TRACE(b.label());
    EXPECT_EQ(a.kind, b.kind);
    if (with_names && !b.name.empty()) {
      EXPECT_EQ(a.name, b.name);
    }
    EXPECT_EQ(a.output, b.output);
    EXPECT_EQ(a.forward_flops, b.forward_flops);
    EXPECT_EQ(a.backward_flops, b.backward_flops);
    ASSERT_EQ(a.inputs.size(), b.inputs.size());
    for (std::size_t k = 0; k < b.inputs.size(); ++k)
      EXPECT_EQ(a.inputs[k].layer, b.inputs[k].layer);
    ASSERT_EQ(a.parameters.size(), b.parameters.size());
    for (std::size_t p = 0; p < b.parameters.size(); ++p) {
      EXPECT_EQ(a.parameters[p].name, b.parameters[p].name);
      EXPECT_EQ(a.parameters[p].shape, b.parameters[p].shape);
      EXPECT_EQ(a.parameters[p].initial, b.parameters[p].initial);
    }
  }
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

TEST(Network, CountsLayersAsSequentialDoes) {
  const Model model = model_of(R"toml(layers = [ "flatten", { linear = 7 }, "tanh",
      { linear = 10, name = "head" }, { scale = 1 } ])toml",
                               {1, 2, 2}, 10);
  EXPECT_THAT(names_of(model), ElementsAre("0", "1", "2", "head", "4"));
  EXPECT_EQ(model.layers[1].parameters[0].name, "1.weight");
}

TEST(Network, NamesWhatIsInside) {
  const Model model = model_of(R"toml(let = { n = 2, w = "4 * n" }
layers = [
  { repeat = "n", name = "conv.{i}", layers = [ { conv = "w * 2**i", kernel = 3, padding = 1 }, "relu" ] },
  { repeat = 2, index = "k", layers = [ { block = "pair", out = "k + 3", name = "b{k}" }, "relu" ] },
  { residual = [ { conv = 4, kernel = 1, name = "a" }, "relu" ] },
  { residual = [ "relu" ], shortcut = [ { conv = 4, kernel = 1 } ], name = "last" },
  "flatten", { linear = 10 } ]
blocks.pair = [ { conv = "out", kernel = 1 }, { leaky_relu = 0.3 } ])toml",
                               {3, 4, 4}, 10);
  EXPECT_THAT(names_of(model), ElementsAre("conv.0.0", "conv.0.1", "conv.1.0", "conv.1.1", "b0.0",
                                           "b0.1", "3", "b1.0", "b1.1", "5", "a", "7", "8",
                                           "last.0", "last.1", "last", "10", "11"));
  EXPECT_EQ(model.layers[2].output.channels, 16);
  EXPECT_EQ(model.layers[7].output.channels, 4);
}

TEST(Network, TakesNumbersFromTheCommandLine) {
  const std::string text =
      "let = { w = 4, d = \"2 * w\" }\nlayers = [ \"flatten\", { linear = \"d\" }, "
      "\"relu\", { linear = 10 } ]";
  EXPECT_EQ(model_of(text, {4}, 10).layers[1].output.channels, 8);
  EXPECT_EQ(model_of(text, {4}, 10, {"model.let.w=16"}).layers[1].output.channels, 32);
  EXPECT_THAT(failure(ExitCode::usage,
                      [&] { static_cast<void>(model_of(text, {4}, 10, {"model.let.v=16"})); }),
              HasSubstr("model.let.v: no size uses it"));
}

TEST(Network, OfResnet18IsTorchvisions) {
  const std::string text = R"toml(let = { w = 64 }
layers = [
  { conv = "w", bias = false, init = "kaiming_normal_fan_out", kernel = 7, stride = 2, padding = 3, name = "conv1" },
  { batch_norm = true, name = "bn1" }, { relu = true, name = "relu" },
  { max_pool = 3, stride = 2, padding = 1, name = "maxpool" },
  { repeat = 2, layers = [ { block = "basic", out = "w", name = "layer1.{i}" } ] },
  { repeat = 3, index = "g", layers = [
      { block = "first", out = "w * 2**(g + 1)", name = "layer{g + 2}.0" },
      { block = "basic", out = "w * 2**(g + 1)", name = "layer{g + 2}.1" } ] },
  { global_avg_pool = true, name = "avgpool" }, "flatten", { linear = 10, name = "fc" } ]
[model.blocks]
basic = [
  { residual = [
      { conv = "out", bias = false, init = "kaiming_normal_fan_out", kernel = 3, padding = 1, name = "conv1" }, { batch_norm = true, name = "bn1" }, "relu",
      { conv = "out", bias = false, init = "kaiming_normal_fan_out", kernel = 3, padding = 1, name = "conv2" }, { batch_norm = true, name = "bn2" } ] },
  "relu" ]
first = [
  { residual = [
      { conv = "out", bias = false, init = "kaiming_normal_fan_out", kernel = 3, stride = 2, padding = 1, name = "conv1" }, { batch_norm = true, name = "bn1" }, "relu",
      { conv = "out", bias = false, init = "kaiming_normal_fan_out", kernel = 3, padding = 1, name = "conv2" }, { batch_norm = true, name = "bn2" } ], shortcut = [ { conv = "out", bias = false, init = "kaiming_normal_fan_out", kernel = 1, stride = 2, name = "downsample.0" }, { batch_norm = true, name = "downsample.1" } ] },
  "relu" ])toml";
  expect_same(model_of(text, {3, 64, 64}, 10), build_resnet(18, Stem::imagenet, {3, 64, 64}, 10),
              false);
}

TEST(Network, OfAnyNameCanBeListed) {
  const SampleShape photograph{3, 64, 64};
  const std::vector<std::pair<Model, SampleShape>> known = {
      {build_mlp({48, 20, 10}, {3, 4, 4}, 10, 0.5), {3, 4, 4}},
      {build_resnet(8, Stem::cifar, {3, 32, 32}, 10), {3, 32, 32}},
      {build_resnet(18, Stem::imagenet, photograph, 10), photograph},
      {build_resnet(50, Stem::cifar, photograph, 10, 16), photograph},
      {build_vit({.name = "vit", .dropout = 0.1, .depth = 2, .patch = 16, .width = 48, .heads = 3},
                 photograph, 10),
       photograph}};
  for (const auto& [model, input] : known) {
    const std::string text = "layers = " + to_toml(as_list(model));
    SCOPED_TRACE(text);
    const Model again = model_of(text, input, 10);
    expect_same(again, model);
    EXPECT_EQ(as_list(model_of("layers = " + to_toml(as_list(again)), input, 10)), as_list(again));
  }
}

TEST(Network, SaysWhereItDoesNotFit) {
  EXPECT_THAT(refusal("layers = [ \"flatten\", { linaer = 10 } ]"),
              HasSubstr("net.toml:2:23: none of its keys (linaer) is a kind of layer; known: "
                        "adaptive_avg_pool, add"));
  EXPECT_THAT(refusal("layers = [ \"flatten\", \"rlu\" ]"),
              HasSubstr("net.toml:2:23: 'rlu' is no kind of layer"));
  EXPECT_THAT(refusal("layers = [\n { conv = 4 } ]"),
              HasSubstr("net.toml:3:2: 0: conv: kernel is missing"));
  EXPECT_THAT(refusal("layers = [\n { conv = 4, kernel = 3, strid = 2 } ]"),
              HasSubstr("net.toml:3:2: 0: conv: it has no strid; known: kernel, stride, padding"));
  EXPECT_THAT(refusal("layers = [\n { conv = 2.5, kernel = 3 } ]"),
              HasSubstr("channels = 2.5 is no whole number"));
  EXPECT_THAT(refusal("layers = [\n { conv = \"w\", kernel = 3 } ]"),
              HasSubstr("net.toml:3:11: conv: 'w' stands for no number"));
  EXPECT_THAT(
      refusal("layers = [ \"flatten\", { linear = 11 } ]"),
      HasSubstr("model.layers: the network leaves 11 numbers (11x1x1), and the data set has 10"));
  EXPECT_THAT(refusal("layers = [ { conv = 4, kernel = 3, save = \"a\" }, \"relu\",\n { conv = 4, "
                      "kernel = 3 },\n { add = \"a\", name = \"sum\" } ]"),
              HasSubstr("net.toml:4:2: sum: add adds 4x28x28 and 4x30x30 (a, line 2)"));
  EXPECT_THAT(refusal("layers = [ { add = \"a\" } ]"),
              HasSubstr("nothing before it is saved as 'a'; known: none"));
  EXPECT_THAT(refusal("layers = [ { conv = 4, kernel = 3, save = \"a\" }, \"relu\" ]"),
              HasSubstr("net.toml:2:43: nobody reads what is saved as 'a'"));
  EXPECT_THAT(
      refusal("layers = [ \"flatten\", { linear = 10, name = \"a\" },\n { linear = 10, name = "
              "\"a\" } ]"),
      HasSubstr("net.toml:3:2: a: parameter a.weight is that of line 2, too"));
  EXPECT_THAT(refusal("layers = [ { block = \"x\" } ]"),
              HasSubstr("net.toml:2:22: there is no block 'x'; known: none"));
  EXPECT_THAT(refusal("layers = [ { block = \"x\", out = 3, oot = 4 } ]\nblocks.x = [ { conv = "
                      "\"out\", kernel = 1 } ]"),
              HasSubstr("block 'x' makes no use of oot"));
  EXPECT_THAT(refusal("layers = [ { block = \"x\" } ]\nblocks.x = [ { block = \"x\" } ]"),
              HasSubstr("more than 32 lists lie in each other"));
  EXPECT_THAT(refusal("let = { a = \"b\", b = \"a\" }\nlayers = [ { linear = \"a\" } ]"),
              HasSubstr("'a' is defined by itself"));
  EXPECT_THAT(refusal("layers = [ { repeat = 1000000000, layers = [ \"relu\" ] } ]"),
              HasSubstr("repeat = 1000000000 is no whole number from 0 to 65536"));
  EXPECT_THAT(refusal("layers = [ { repeat = 60000, layers = [ { repeat = 60000, layers = [ "
                      "\"relu\" ] } ] } ]"),
              HasSubstr("the network has more than 65536 layers"));
  EXPECT_THAT(refusal("layers = [ { repeat = 60000, layers = [ { repeat = 60000, layers = [ { "
                      "repeat = 0, layers = [] } ] } ] } ]"),
              HasSubstr("the network has more than 1048576 elements"));
  EXPECT_THAT(refusal("layers = []"), HasSubstr("model.layers = [] is empty"));
  EXPECT_THAT(refusal("layers = [ 3 ]"), HasSubstr("a layer that is no word is no table"));
  EXPECT_THAT(refusal("layers = [ { relu = 3 } ]"), HasSubstr("write relu = true"));
  EXPECT_THAT(refusal("name = \"mlp\"\nwidths = [ 3, 10 ]\nlayers = [ \"relu\" ]"),
              HasSubstr("model.layers has no effect with model.name = \"mlp\""));
  EXPECT_THAT(refusal("name = \"layers\""), HasSubstr("model.layers is missing"));
  EXPECT_THAT(refusal("layers = [ \"flatten\", { linear = 10, init = \"nromal(1)\" } ]"),
              HasSubstr("init = 'nromal(1)' is unknown; known: zeros"));
  EXPECT_THAT(
      refusal("layers = [ \"flatten\", { linear = 10 }, { relu = true, init = \"ones\" } ]"),
      HasSubstr("2: it has no weights for init"));
}

TEST(Network, StartsAsTheDeckSays) {
  const Model model = model_of(R"toml(let = { n = 8 }
layers = [ "flatten", { linear = 20, init = "normal(0.02 / (2 * n)**0.5)", init_bias = "zeros" },
  { linear = 10, init = "xavier_uniform" } ])toml",
                               {4}, 10);
  EXPECT_EQ(model.layers[1].parameters[0].initial, normal(0.02 / 4));
  EXPECT_EQ(model.layers[1].parameters[1].initial, zeros());
  EXPECT_EQ(model.layers[2].parameters[0].initial, xavier_uniform(20, 10));
}

TEST(Network, MayLieInAFileOfItsOwn) {
  const TemporaryFolder folder;
  write_text(folder / "net.toml",
             "let = { w = 8 }\nlayers = [ \"flatten\", { block = \"two\" }, { linear = 10 } ]\n"
             "blocks.two = [ { linear = \"w\" }, \"relu\" ]\n");
  write_text(folder / "deck.toml", test::network_deck("file = \"net.toml\""));
  const RunConfig config = load_run_config(folder / "deck.toml", {"model.let.w=16"});
  EXPECT_EQ(build_model(config.model, {4}, 10).layers[1].output.channels, 16);
  // As the deck may say itself.
  write_text(folder / "sized.toml", test::network_deck("file = \"net.toml\"\nlet = { w = 12 }"));
  const RunConfig sized = load_run_config(folder / "sized.toml", {});
  EXPECT_EQ(build_model(sized.model, {4}, 10).layers[1].output.channels, 12);
  // What a run keeps needs no other file.
  const RunConfig again = parse_run_config(resolved_deck(config), "resolved", {});
  EXPECT_EQ(again.model.layers, config.model.layers);
  EXPECT_EQ(resolved_deck(again, false), resolved_deck(config, false));

  write_text(folder / "net.toml", "layer = [ \"flatten\" ]\n");
  EXPECT_THAT(failure(ExitCode::usage,
                      [&] { static_cast<void>(load_run_config(folder / "deck.toml", {})); }),
              HasSubstr("net.toml:1:1: layer is not known in a file of layers"));
}

}  // namespace
}  // namespace carousel
