// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Stochastic depth (Huang et al. 2016, arXiv 1603.09382): at the end of a residual branch, whole
// samples are dropped and the others scaled. Which ones is a pure function of seed, epoch, sample
// and layer, so that backward draws them again and nothing is kept.

#include "core/base/random.hpp"
#include "core/base/range.hpp"
#include "core/engine/layer.hpp"
#include "layers/add_numbers.hpp"
#include "layers/stochastic_depth/op.hpp"
#include "layers/stored.hpp"

namespace carousel::kernels {
namespace {

/// Neighbours of a sample that one index stands for, with one draw.
constexpr int chunk = runs_on_host ? 1024 : 1;

/// Drops a sample when u < probability, with u = uniform01(random_key(seed, "stochastic depth
/// NAME"), epoch 2^32 + sample, 0), and scales the others by 1 / (1 - probability).
template <class Stored>
void drop(const ExecutionSpace& exec, const std::string& label, std::uint64_t key,
          double probability, const Draw& draw, const ConstTensor& from, const Tensor& to,
          bool adds) {
  const std::uint64_t epoch = static_cast<std::uint64_t>(draw.epoch) << 32;
  const int* samples = draw.samples;
  const auto scale = static_cast<real>(1 / (1 - probability));
  const std::int64_t size = to.shape.size();
  const std::int64_t chunks = (size + chunk - 1) / chunk;
  const auto* x = reinterpret_cast<const Stored*>(from.data);
  auto* y = reinterpret_cast<Stored*>(to.data);
  Kokkos::parallel_for(
      label, range(exec, to.n * chunks), KOKKOS_LAMBDA(std::int64_t index) {
        const std::int64_t sample = index / chunks;
        const std::uint64_t stream = epoch + static_cast<std::uint64_t>(samples[sample]);
        const bool drops = uniform01(key, stream, 0) < probability;
        const std::int64_t first = sample * size + index % chunks * chunk;
        const std::int64_t end = Kokkos::min(first + chunk, (sample + 1) * size);
        for (std::int64_t i = first; i < end; ++i) {
          const real left = drops ? real(0) : full(x[i]) * scale;
          put(y[i], adds ? full(y[i]) + left : left);
        }
      });
}

class StochasticDepth final : public Layer {
 public:
  explicit StochasticDepth(const LayerSpec& spec)
      : probability_(spec.as<op::StochasticDepth>().probability),
        type_(spec.output_format.type),
        purpose_(random_key(0, "stochastic depth " + spec.name)) {}

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    static const std::string label = "carousel::layers::stochastic_depth_forward";
    with_stored(type_, [&]<class Stored>() {
      if (arguments.training)
        drop<Stored>(exec, label, arguments.draw.seed ^ purpose_, probability_, arguments.draw,
                     arguments.input, arguments.output, false);
      else if (arguments.output.data != arguments.input.data)
        hand_on<Stored>(exec, label, arguments.input, arguments.output, false);
    });
  }
  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    static const std::string label = "carousel::layers::stochastic_depth_backward";
    if (arguments.d_input.data == nullptr) return;
    with_stored(type_, [&]<class Stored>() {
      drop<Stored>(exec, label, arguments.draw.seed ^ purpose_, probability_, arguments.draw,
                   arguments.d_output, arguments.d_input, arguments.adds_input);
    });
  }

 private:
  double probability_;
  DataType type_;
  std::uint64_t purpose_;
};

}  // namespace

std::unique_ptr<Layer> stochastic_depth(const LayerSpec& spec, int /*samples*/,
                                        const Engine& /*engine*/) {
  return std::make_unique<StochasticDepth>(spec);
}

}  // namespace carousel::kernels
