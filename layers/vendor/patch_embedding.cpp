// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/vendor/patch_embedding.hpp"

#include "core/base/check.hpp"
#include "layers/channels_last/rows.hpp"
#include "layers/patch_embedding/op.hpp"

namespace carousel::vendor {
namespace {

using channels_last::for_each_number;

/// Rows of the numbers of a patch, in the order of weights [in, patch, patch].
template <class Stored>
void gather(const ExecutionSpace& exec, const ConstTensor& images, int patch, Stored* rows) {
  static const std::string label = "carousel::layers::patch_embedding_gather";
  const SampleShape shape = images.shape;
  const int across = shape.width / patch;
  const int taps = shape.channels * patch * patch;
  const std::int64_t patches = std::int64_t{shape.height / patch} * across;
  const real* const x = images.data;
  for_each_number(
      exec, label, images.size(), taps, KOKKOS_LAMBDA(int tap, std::int64_t i) {
        const std::int64_t row = i / taps;
        const std::int64_t image = row / patches;
        const int place = static_cast<int>(row % patches);
        const int y = place / across * patch + tap / patch % patch;
        const int z = place % across * patch + tap % patch;
        const std::int64_t plane = image * shape.channels + tap / (patch * patch);
        put(rows[i], x[(plane * shape.height + y) * shape.width + z]);
      });
}

/// y [n][1 + patches][c] = the class token or a product [n][patches][c], and positions.
template <class Stored>
void add_positions(const ExecutionSpace& exec, const Stored* products, const Stored* class_token,
                   const Stored* positions, const Tensor& tokens) {
  static const std::string label = "carousel::layers::patch_embedding_forward";
  const channels_last::Rows<Stored> y(tokens);
  const std::int64_t sample = tokens.shape.size();
  for_each_number(
      exec, label, y.size(), y.channels, KOKKOS_LAMBDA(int c, std::int64_t i) {
        const std::int64_t within = i % sample;
        const std::int64_t before = (i / sample + 1) * y.channels;  // class tokens, in numbers
        const real value = within < y.channels ? full(class_token[c]) : full(products[i - before]);
        put(y.data[i], value + full(positions[within]));
      });
}

/// The gradients of the patches' products, one image behind the other.
template <class Stored>
void leave_out_class_tokens(const ExecutionSpace& exec, const ConstTensor& d_tokens, Stored* to) {
  static const std::string label = "carousel::layers::patch_embedding_backward";
  const channels_last::Rows<const Stored> d_y(d_tokens);
  const std::int64_t patches = d_tokens.shape.size() - d_y.channels;  // numbers of an image
  for_each_number(
      exec, label, d_tokens.n * patches, d_y.channels, KOKKOS_LAMBDA(int, std::int64_t i) {
        to[i] = d_y.data[i + (i / patches + 1) * d_y.channels];
      });
}

/// Of positions [tokens, c], sums over images in order; the first is the class token's, too.
template <class Stored>
void sum_images(const ExecutionSpace& exec, const ConstTensor& d_tokens, real* d_class_token,
                real* d_positions) {
  static const std::string label = "carousel::layers::patch_embedding_backward_positions";
  const channels_last::Rows<const Stored> d_y(d_tokens);
  const std::int64_t sample = d_tokens.shape.size();
  const int n = d_tokens.n;
  for_each_number(
      exec, label, sample, d_y.channels, KOKKOS_LAMBDA(int c, std::int64_t i) {
        double sum = 0;
        for (int k = 0; k < n; ++k) sum += full(d_y.data[k * sample + i]);
        d_positions[i] = static_cast<real>(sum);
        if (i < d_y.channels) d_class_token[c] = static_cast<real>(sum);
      });
}

}  // namespace

PatchEmbedding::PatchEmbedding(const LayerSpec& spec, int samples, const Engine& engine)
    : spec_(spec),
      type_(spec.output_format.type),
      patches_(spec.output.height - 1),
      workspace_(engine.workspace),
      memory_(patch_memory(spec, samples)),
      products_(engine, spec.label(), static_cast<int>(spec.input().size() / patches_),
                spec.output.channels, type_, samples * patches_) {
  CAROUSEL_CHECK(spec.parameters.size() == 4 && spec.input().size() % patches_ == 0 &&
                     spec.parameters[3].size() == spec.output.size(),
                 "{} has {} parameters", spec.name, spec.parameter_size());
  std::int64_t bytes = 0;
  std::int64_t numbers = 0;
  const auto next = [&](std::size_t k, std::int64_t& stored, std::int64_t& gradient) {
    stored = bytes += spec.parameters[k].stored_bytes();
    gradient = numbers += spec.parameters[k].size();
  };
  next(0, stored_.weight, gradients_.weight);
  next(1, stored_.bias, gradients_.bias);
  next(2, stored_.positions, gradients_.positions);
}

void PatchEmbedding::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  const auto* parameters = reinterpret_cast<const std::byte*>(arguments.parameters);
  std::byte* const rows = workspace_.data() + memory_.rows;
  std::byte* const products = workspace_.data() + memory_.products;
  const int patch = spec_.as<op::PatchEmbedding>().window.kernel;
  with_stored(type_, [&]<class Stored>() {
    gather(exec, arguments.input, patch, reinterpret_cast<Stored*>(rows));
    products_.forward(exec, arguments.input.n * patches_, rows, parameters + stored_.weight,
                      reinterpret_cast<const real*>(parameters + stored_.bias), products);
    add_positions(exec, reinterpret_cast<const Stored*>(products),
                  reinterpret_cast<const Stored*>(parameters),
                  reinterpret_cast<const Stored*>(parameters + stored_.positions),
                  arguments.output);
  });
}

void PatchEmbedding::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  CAROUSEL_CHECK(arguments.d_input.data == nullptr, "{}: images have no gradient", spec_.label());
  std::byte* const rows = workspace_.data() + memory_.rows;
  std::byte* const d_products = workspace_.data() + memory_.products;
  const int patch = spec_.as<op::PatchEmbedding>().window.kernel;
  real* const gradients = arguments.d_parameters;
  with_stored(type_, [&]<class Stored>() {
    gather(exec, arguments.input, patch, reinterpret_cast<Stored*>(rows));
    leave_out_class_tokens(exec, arguments.d_output, reinterpret_cast<Stored*>(d_products));
    products_.find_parameter_gradients(exec, arguments.input.n * patches_, rows, d_products,
                                       gradients + gradients_.weight, gradients + gradients_.bias);
    sum_images<Stored>(exec, arguments.d_output, gradients, gradients + gradients_.positions);
  });
}

}  // namespace carousel::vendor
