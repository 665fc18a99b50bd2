// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/dropout/dropout.hpp"

#include "core/base/check.hpp"
#include "core/base/random.hpp"
#include "core/base/range.hpp"
#include "core/model/op.hpp"
#include "layers/add_numbers.hpp"
#include "layers/dropout/op.hpp"
#include "layers/row_chunks.hpp"
#include "layers/stored.hpp"

namespace carousel {
namespace {

/// The place in [c, pixels] of a number that is in [c / block][pixels][block].
KOKKOS_FUNCTION std::int64_t place_of(std::int64_t i, std::int64_t pixels, int block) {
  const std::int64_t plane = pixels * block;
  const std::int64_t within = i % plane;
  return (i / plane * block + within % block) * pixels + within / block;
}

/// Sets numbers to zero with a probability, and scales the others, which `to` may be the place of.
template <class Stored>
void drop_numbers(const ExecutionSpace& exec, const std::string& label, std::uint64_t key,
                  double probability, const Draw& draw, const ConstTensor& from, const Tensor& to,
                  bool adds, int block) {
  const std::uint64_t epoch = static_cast<std::uint64_t>(draw.epoch) << 32;
  const int* samples = draw.samples;
  const auto scale = static_cast<real>(1 / (1 - probability));
  const std::int64_t size = to.shape.size();
  const std::int64_t pixels = to.shape.pixels();
  const auto* x = reinterpret_cast<const Stored*>(from.data);
  auto* y = reinterpret_cast<Stored*>(to.data);
  Kokkos::parallel_for(
      label, range(exec, to.size()), KOKKOS_LAMBDA(std::int64_t i) {
        const std::uint64_t stream = epoch + static_cast<std::uint64_t>(samples[i / size]);
        const std::int64_t k = place_of(i % size, pixels, block);
        const double u = uniform01(key, stream, static_cast<std::uint64_t>(k));
        const real left = u < probability ? real(0) : full(x[i]) * scale;
        put(y[i], adds ? full(y[i]) + left : left);
      });
}

/// The same with all numbers of a sample.
template <class Stored>
void drop_samples(const ExecutionSpace& exec, const std::string& label, std::uint64_t key,
                  double probability, const Draw& draw, const ConstTensor& from, const Tensor& to,
                  bool adds) {
  const std::uint64_t epoch = static_cast<std::uint64_t>(draw.epoch) << 32;
  const int* samples = draw.samples;
  const auto scale = static_cast<real>(1 / (1 - probability));
  const RowChunks chunks{to.n, to.shape.size()};
  const auto* x = reinterpret_cast<const Stored*>(from.data);
  auto* y = reinterpret_cast<Stored*>(to.data);
  Kokkos::parallel_for(
      label, chunks.indices(exec), KOKKOS_LAMBDA(std::int64_t index) {
        const RowChunk chunk = chunks.at(index);
        const std::uint64_t stream = epoch + static_cast<std::uint64_t>(samples[chunk.row]);
        const bool drops = uniform01(key, stream, 0) < probability;
        const std::int64_t begin = chunk.row * chunks.count;
        for (std::int64_t i = begin + chunk.first; i < begin + chunk.end; ++i) {
          const real left = drops ? real(0) : full(x[i]) * scale;
          put(y[i], adds ? full(y[i]) + left : left);
        }
      });
}

}  // namespace

Dropout::Dropout(const LayerSpec& spec)
    : probability_(spec.as<op::Dropout>().probability),
      of_samples_(spec.as<op::Dropout>().of_samples),
      format_(spec.output_format),
      purpose_(random_key(0, (of_samples_ ? "stochastic depth " : "dropout ") + spec.name)),
      forward_label_("carousel::layers::" + std::string(spec.kind->name) + "_forward"),
      backward_label_("carousel::layers::" + std::string(spec.kind->name) + "_backward") {
  CAROUSEL_CHECK(spec.input() == spec.output && probability_ >= 0 && probability_ < 1,
                 "dropout {} with probability {}", spec.name, probability_);
}

template <class Stored>
void Dropout::drop(const ExecutionSpace& exec, const std::string& label, const Draw& draw,
                   const ConstTensor& from, const Tensor& to, bool adds) const {
  const std::uint64_t key = draw.seed ^ purpose_;
  if (of_samples_)
    drop_samples<Stored>(exec, label, key, probability_, draw, from, to, adds);
  else
    drop_numbers<Stored>(exec, label, key, probability_, draw, from, to, adds, format_.block);
}

void Dropout::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  with_stored(format_.type, [&]<class Stored>() {
    if (arguments.training && probability_ > 0)
      drop<Stored>(exec, forward_label_, arguments.draw, arguments.input, arguments.output, false);
    else if (arguments.output.data != arguments.input.data)
      hand_on<Stored>(exec, forward_label_, arguments.input, arguments.output, false);
  });
}

void Dropout::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  if (arguments.d_input.data == nullptr) return;
  const bool in_place = arguments.d_input.data == arguments.d_output.data;
  with_stored(format_.type, [&]<class Stored>() {
    if (probability_ > 0)
      drop<Stored>(exec, backward_label_, arguments.draw, arguments.d_output, arguments.d_input,
                   arguments.adds_input);
    else if (!in_place)
      hand_on<Stored>(exec, backward_label_, arguments.d_output, arguments.d_input,
                      arguments.adds_input);
  });
}

}  // namespace carousel
