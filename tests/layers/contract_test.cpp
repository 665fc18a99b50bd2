// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// What the layer contract allows and no layer of today needs: two inputs of different shapes, saved
// bytes that grow with the samples, a workspace, and refusals of what there are no kernels for.

#include <gmock/gmock.h>

#include "core/base/check.hpp"
#include "core/base/range.hpp"
#include "core/model/builder.hpp"
#include "core/model/op.hpp"
#include "tests/layers/central_differences.hpp"

namespace carousel {
namespace {

constexpr int n = 3;
constexpr SampleShape image = {4, 3, 5};

void multiply(const ExecutionSpace& exec, const SampleShape& shape, const real* x, const real* s,
              real* y, int samples) {
  const std::int64_t pixels = shape.pixels();
  Kokkos::parallel_for(
      "carousel::test::scale", range(exec, samples * shape.size()),
      KOKKOS_LAMBDA(std::int64_t i) { y[i] = x[i] * s[i / pixels]; });
}

void fill(const ExecutionSpace& exec, std::byte* bytes, std::int64_t count) {
  Kokkos::parallel_for(
      "carousel::test::fill", range(exec, count),
      KOKKOS_LAMBDA(std::int64_t i) { bytes[i] = std::byte{0xff}; });
}

/// y = x * s, where s has one number per channel and sample; forward keeps s, and both passes fill
/// their workspace.
class Scale final : public Layer {
 public:
  Scale(const LayerSpec& spec, int samples, const Engine& engine)
      : shape_(spec.input()),
        saved_bytes_(spec.saved_bytes(samples)),
        workspace_(engine.workspace),
        wanted_(spec.workspace_bytes(samples)) {
    CAROUSEL_CHECK(spec.inputs[1].shape == SampleShape{shape_.channels}, "other shapes");
  }

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    use_workspace(exec);
    const real* s = arguments.second.data;
    auto* kept = reinterpret_cast<real*>(arguments.saved);
    const std::int64_t factors = std::int64_t{arguments.input.n} * shape_.channels;
    ASSERT_GE(saved_bytes_, factors * std::int64_t{sizeof(real)});
    Kokkos::parallel_for(
        "carousel::test::keep", range(exec, factors),
        KOKKOS_LAMBDA(std::int64_t i) { kept[i] = s[i]; });
    multiply(exec, shape_, arguments.input.data, s, arguments.output.data, arguments.input.n);
  }

  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    use_workspace(exec);
    const auto* kept = reinterpret_cast<const real*>(arguments.saved);
    multiply(exec, shape_, arguments.d_output.data, kept, arguments.d_input.data,
             arguments.input.n);
    const std::int64_t pixels = shape_.pixels();
    const real* x = arguments.input.data;
    const real* d = arguments.d_output.data;
    real* d_s = arguments.d_second.data;
    Kokkos::parallel_for(
        "carousel::test::scale_gradient",
        range(exec, std::int64_t{arguments.input.n} * shape_.channels),
        KOKKOS_LAMBDA(std::int64_t c) {
          real sum = 0;
          for (std::int64_t p = 0; p < pixels; ++p) sum += x[c * pixels + p] * d[c * pixels + p];
          d_s[c] = sum;
        });
  }

 private:
  void use_workspace(const ExecutionSpace& exec) {
    ASSERT_GE(std::ssize(workspace_), wanted_);
    fill(exec, workspace_.data(), wanted_);
  }

  SampleShape shape_;
  std::int64_t saved_bytes_;
  std::span<std::byte> workspace_;
  std::int64_t wanted_;
};

/// Convolution, then its pixels scaled by their own average, as in squeeze-and-excitation networks.
Model scaled_network() {
  ModelBuilder builder("scaled", {2, 3, 5}, 4);
  builder.add("convolution", "conv", {{"channels", 1.0 * image.channels}, {"kernel", 1}});
  builder.add("average_pool", "squeeze");
  Model model = builder.model();
  LayerSpec scale;
  scale.kind = &op_named("relu");  // any: the factory below knows it by its name
  scale.name = "scale";
  scale.inputs = {{0, image}, {1, {image.channels}}};
  scale.output = image;
  scale.saves_input = true;
  scale.saved = {{"factors", {0, image.channels * std::int64_t{sizeof(real)}}, true}};
  scale.workspace = {{64, 8}};
  model.layers.push_back(scale);
  LayerSpec pool = model.layers[1];
  pool.name = "pool";
  pool.inputs = {{2, image}};
  model.layers.push_back(pool);
  ModelBuilder tail("tail", {image.channels}, 4);
  tail.add("linear", "fc", {{"features", 4}});
  tail.add("softmax_cross_entropy");
  for (LayerSpec layer : tail.model().layers) {
    layer.inputs.front().layer = static_cast<int>(model.layers.size()) - 1;
    model.layers.push_back(layer);
  }
  return model;
}

std::unique_ptr<Layer> make_scaled(const LayerSpec& spec, int samples, const Engine& engine) {
  if (spec.name == "scale") return std::make_unique<Scale>(spec, samples, engine);
  return make_layer(spec, samples, engine);
}

TEST(Contract, TakesInputsOfDifferentShapes) {
  // In single precision rounding of the loss parts the two.
  const bool is_double = sizeof(real) == 8;
  EXPECT_LE(test::difference(scaled_network(), n, is_double ? 1e-6 : 1e-2, make_scaled),
            is_double ? 1e-8 : 2e-3);
}

TEST(Contract, PlansSavedBytesAndWorkspaceForTheSamples) {
  const Model model = scaled_network();
  const Partition partition{{0, static_cast<int>(model.layers.size())}, {}};
  for (const int samples : {1, 8, 100}) {
    const StageMemory stage = plan_stages(model, partition, samples)[0];
    EXPECT_EQ(stage.workspace_bytes, align_up(64 + 8 * samples));
    const Place& saved = stage.places[2].saved;
    ASSERT_EQ(saved.region, Region::frame);
    // Behind what was saved lies the next tensor of the frame.
    std::int64_t next = stage.frame_bytes;
    for (const LayerPlaces& places : stage.places) {
      if (places.output.region == Region::frame && places.output.offset > saved.offset)
        next = std::min(next, places.output.offset);
    }
    EXPECT_EQ(next - saved.offset, align_up(samples * image.channels * std::int64_t{sizeof(real)}));
  }
}

TEST(Contract, CountsBytesByFormat) {
  EXPECT_EQ(tensor_bytes({3, 2, 2}, {}, 5), 5 * 3 * 4 * std::int64_t{sizeof(real)});
  EXPECT_EQ(tensor_bytes({3, 2, 2}, {DataType::full, 16}, 5),
            5 * 16 * 4 * std::int64_t{sizeof(real)});
  EXPECT_EQ(tensor_bytes({32, 2, 2}, {DataType::bfloat16, 16}, 5), 5 * 32 * 4 * 2);
}

TEST(Contract, RefusesAFormatThatNobodyLeft) {
  Model model = scaled_network();
  model.layers[1].inputs[0].format = {DataType::full, 16};
  EXPECT_THROW(check_tensors(model), Error);
  model.layers[0].output_format = {DataType::full, 16};
  EXPECT_NO_THROW(check_tensors(scaled_network()));
  EXPECT_THROW(check_tensors(model), Error);  // layer 2 reads it, too
}

TEST(Contract, RefusesAFormatWithoutKernels) {
  LayerSpec spec = scaled_network().layers[0];
  EXPECT_NO_THROW((void)make_layer(spec, n, {}));
  LayerSpec other = spec;
  other.output_format = {DataType::bfloat16, 16};
  EXPECT_NE(fit_kernels(other, {.block = 16, .type = DataType::bfloat16}), "");
  spec.workspace = {{64, 0}};
  EXPECT_THROW((void)make_layer(spec, n, {}), Error);  // the engine has none
}

}  // namespace
}  // namespace carousel
