// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A kind of layer as plans know it: its name, what it may be told, what follows from that and from
// its inputs, and which kernels it has. Each kind is a folder of layers/: op.cpp there makes its
// Op, kernels.cpp its kernels. The build collects both; nothing else lists all kinds.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/arguments.hpp"
#include "core/model/kernel_choice.hpp"
#include "core/model/layer_spec.hpp"
#include "core/model/target.hpp"

namespace carousel {

/// Layers in a row, each of which reads what the one before left, and the one that stands for them.
struct Fusion {
  std::vector<std::string_view> ops;  // names, in their order
  /// Completes the layer, but for what fit() says: its op with its attributes. Set already are what
  /// follows from the run: the name of the first layer, inputs from outside the run and parameters
  /// and buffers in their order, the output of the last one, and the sum of the FLOPs.
  void (*complete)(std::span<const LayerSpec> run, LayerSpec& fused);
  bool is_sole_reader = false;  // nobody but the run may read its first input
  bool recomputes = false;      // what the run leaves between its layers, in backward
};

/// What a layer stands in.
struct Surroundings {
  std::string network;
  SampleShape images;
  TargetSpec target = {};  // of the loss
  bool learns = false;     // something before the layer does, so that its input needs a gradient

  /// Axes of space that samples have. Images may become one column wide, and stay images.
  [[nodiscard]] int axes() const { return images.axes(); }
};

/// What a kind of layer that is a loss is to decks. It reads the network's outputs and the targets,
/// and reports its mean over the samples of a micro-batch.
struct LossFacts {
  const char* name;  // "cross-entropy", the value of task.loss
  const char* doc;
  std::vector<const char*> metrics = {};  // that are reported where a deck names none, of labels
  bool takes_labels = true;
  bool takes_numbers = false;
  bool takes_weights = false;  // of classes
  bool takes_shares = false;   // numbers from 0 to 1 alone

  [[nodiscard]] bool takes(TargetKind kind) const {
    return kind == TargetKind::labels ? takes_labels : takes_numbers;
  }
};

struct Model;

struct Op {
  const char* name;                 // "group_norm", as networks and plans say it
  const char* deck_word = nullptr;  // as decks say it; null: the name
  std::vector<ArgumentSpec> arguments = {};
  const char* size =
      nullptr;         // the argument that a deck gives beside the word; null: the first one
  bool joins = false;  // reads two tensors
  /// From inputs and arguments: attributes, output, parameters and buffers with PyTorch's names,
  /// costs, and what backward reads. Error(usage) where they do not fit together.
  void (*infer)(LayerSpec& layer, const GivenArguments& arguments, const Surroundings& around);
  /// Whether there are kernels for a layer in the formats and types of its tensors: whose they are,
  /// what they save and work with, which it writes down. Otherwise why there are none, for people;
  /// in plain order and full numbers each op has some. Called by fit_kernels().
  std::string (*fit)(LayerSpec& layer, const KernelChoice& choice);
  /// Runs that it computes as one, where fit() says so.
  std::vector<Fusion> fusions = {};
  /// Name with what is fused; null: the name alone.
  std::string (*describe)(const LayerSpec& layer) = nullptr;
  /// What people call a layer that a GPU computes slowly without the library of a vendor; null:
  /// none has it.
  const char* of_vendor = nullptr;
  bool by_graph = false;  // the library is one of graphs, not of products
  std::optional<LossFacts> loss = {};

  [[nodiscard]] const char* word() const { return deck_word != nullptr ? deck_word : name; }
  /// Of a kind that has arguments.
  [[nodiscard]] const char* main() const { return size != nullptr ? size : arguments.front().name; }
};

/// All kinds.
[[nodiscard]] std::span<const Op> all_ops();
/// Error(usage) for a name that none has.
[[nodiscard]] const Op& op_named(std::string_view name);

/// What the kind of a layer of a model says of it anew, without a deck's own starts, where
/// something before it learns or does not.
[[nodiscard]] LayerSpec inferred(const Model& model, const LayerSpec& layer, bool learns);

/// Lets the kind of a layer find kernels for it, from none: portable ones that save nothing and
/// work with nothing, unless it says otherwise. Returns why there are none.
[[nodiscard]] std::string fit_kernels(LayerSpec& layer, const KernelChoice& choice);

/// Whether all tensors and parameters of a layer are full numbers.
[[nodiscard]] bool has_full_numbers(const LayerSpec& layer);
/// Whether all tensors of a layer, and the weights of its products, are stored in one type.
[[nodiscard]] bool has_one_type(const LayerSpec& layer);
/// Whether all tensors of a layer lie in plain order.
[[nodiscard]] bool is_plain(const LayerSpec& layer);
/// Whether a tensor lies in blocks of that many channels, which are all filled. Where there is one
/// pixel, plain order is that.
[[nodiscard]] bool lies_in_blocks(const SampleShape& shape, const TensorFormat& format, int block);
/// Whether all tensors of a layer lie in the blocks of a choice, in one type.
[[nodiscard]] bool is_blocked(const LayerSpec& layer, const KernelChoice& choice);
/// Whether all channels of all tensors lie side by side, for kernels that take any type.
[[nodiscard]] bool is_channels_last(const LayerSpec& layer, const KernelChoice& choice);

/// Of how many numbers, at least, the channels of a block are made that all kernels can take.
[[nodiscard]] int filled_block(const KernelChoice& choice);
/// Why so many channels fill no blocks, for people; empty where they do.
[[nodiscard]] std::string odd_channels(int channels, const KernelChoice& choice);

/// fit() of kernels that work number by number, in any order that all tensors have, and any type.
[[nodiscard]] std::string fit_in_any_order(LayerSpec& layer, const KernelChoice& choice);
/// fit() of kernels that take any type, in plain order.
[[nodiscard]] std::string fit_in_plain_order(LayerSpec& layer, const KernelChoice& choice);
/// fit() of losses, which do the same.
[[nodiscard]] std::string fit_loss(LayerSpec& layer, const KernelChoice& choice);
/// The end of a fit() that has nothing but portable kernels for what is left.
[[nodiscard]] std::string fit_portable(LayerSpec& layer);

/// Arguments of a window that moves over images, and the window they make.
[[nodiscard]] std::vector<ArgumentSpec> window_arguments();
/// Those of a convolution, which has a dilation, groups and channels besides.
[[nodiscard]] std::vector<ArgumentSpec> convolution_arguments();
/// Error(usage) for groups that do not divide the channels.
void check_groups(int groups, int in, int out);
/// Those of a pooling, which moves by its size where no stride is given.
[[nodiscard]] std::vector<ArgumentSpec> pool_arguments();
[[nodiscard]] Window window_of(const GivenArguments& arguments, const Surroundings& around);
/// Writes down shape and FLOPs of a layer that changes numbers one by one.
void infer_by_number(LayerSpec& layer, double forward_flops, double backward_flops);
/// The same of a layer whose backward reads its input, from which its output can be made again. Not
/// in place, even where the output would do: a layer in place behind it, such as an addition or a
/// dropout, would change what backward reads.
void infer_from_input(LayerSpec& layer, double forward_flops, double backward_flops);
/// The same of a loss, whose backward reads the outputs of the network where they are, and may
/// leave the gradient there.
void infer_loss(LayerSpec& layer, double forward_flops, double backward_flops,
                const Surroundings& around);
/// The weight and the bias of each channel that norms have, from 1 and 0 on.
[[nodiscard]] std::vector<ParameterSpec> channel_parameters(const LayerSpec& layer);
/// What norms add to a variance; zero would divide by it.
[[nodiscard]] ArgumentSpec epsilon_argument(double otherwise);
/// An argument that may be any number.
[[nodiscard]] ArgumentSpec any_number(const char* name, double otherwise);
/// The shape behind a window that moves over the image. Error(usage) where nothing would be left.
[[nodiscard]] SampleShape behind_window(const LayerSpec& layer, int channels, const Window& window,
                                        const Surroundings& around);
/// A shape of so many channels whose every axis of space becomes of_axis(its extent).
template <class OfAxis>
[[nodiscard]] SampleShape with_each_axis(const SampleShape& shape, int channels, int axes,
                                         const OfAxis& of_axis) {
  return {channels, of_axis(shape.height), axes > 1 ? of_axis(shape.width) : 1,
          axes > 2 ? of_axis(shape.depth) : 1};
}

}  // namespace carousel
