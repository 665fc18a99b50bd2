// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/vendor/graph.hpp"

#include <cudnn_frontend.h>

#include <cmath>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "layers/vendor/workspace.hpp"

namespace carousel::vendor {

namespace fe = cudnn_frontend;

struct Graph::Built {
  fe::graph::Graph graph;
  std::int64_t workspace = 0;  // bytes that the plan needs
};

namespace {

using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
using Built = std::unique_ptr<Graph::Built>;
using Dims = std::vector<std::int64_t>;

fe::DataType_t type_of(DataType type) {
  return type == DataType::full ? fe::DataType_t::FLOAT : fe::DataType_t::BFLOAT16;
}

/// Sums are always full.
Built begin(DataType type) {
  auto built = std::make_unique<Graph::Built>();
  built->graph.set_io_data_type(type_of(type))
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  return built;
}

/// Number `id` of those that a call is given.
Tensor tensor(Graph::Built& built, int id, const Dims& dims, const Dims& strides) {
  return built.graph.tensor(fe::graph::Tensor_attributes()
                                .set_name(fmt::format("t{}", id))
                                .set_uid(id)
                                .set_dim(dims)
                                .set_stride(strides));
}
void leave(const Tensor& tensor, int id, DataType type, const Dims& dims, const Dims& strides) {
  tensor->set_output(true)
      .set_uid(id)
      .set_data_type(type_of(type))
      .set_dim(dims)
      .set_stride(strides);
}

/// cuDNN names dimensions in the order n, c, h, w, whatever lies side by side.
struct ChannelsLast {
  Dims dims;
  Dims strides;

  ChannelsLast(int n, const SampleShape& shape)
      : dims{n, shape.channels, shape.height, shape.width},
        strides{shape.size(), 1, std::int64_t{shape.width} * shape.channels, shape.channels} {}
};

/// Notes of engines that none is taken with.
using Notes = std::vector<fe::NumericalNote_t>;

Notes approximate() {
  return {fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION};
}
Notes unwanted(DataType type) {
  Notes notes = approximate();
  notes.push_back(fe::NumericalNote_t::NONDETERMINISTIC);
  if (type == DataType::full) {
    notes.push_back(fe::NumericalNote_t::TENSOR_CORE);  // TF32's
    notes.push_back(fe::NumericalNote_t::DOWN_CONVERT_INPUTS);
  }
  return notes;
}

/// Chooses the plan; null where there is none.
std::unique_ptr<Graph> complete(cudnnHandle_t handle, Built built, const Notes& notes,
                                std::int64_t workspace, std::string& reason) {
  fe::graph::Graph& graph = built->graph;
  const auto holds = [&](fe::error_t error) {
    if (error.is_bad()) reason = error.get_message();
    return error.is_good();
  };
  if (!holds(graph.validate()) || !holds(graph.build_operation_graph(handle)) ||
      !holds(graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK})))
    return nullptr;
  // Only what the heuristics have offered by now is looked at.
  const std::int64_t usable = usable_bytes(workspace);
  graph.deselect_numeric_notes(notes).deselect_workspace_greater_than(usable);
  if (!holds(graph.check_support()) ||
      !holds(graph.build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE)))
    return nullptr;
  built->workspace = graph.get_workspace_size();  // with what the front end itself adds
  if (built->workspace > usable) {
    reason = fmt::format("it needs {} bytes of workspace", built->workspace);
    return nullptr;
  }
  return std::make_unique<Graph>(handle, std::move(built));
}

template <class Attributes>
Attributes windows(const ConvolutionShape& shape) {
  return Attributes()
      .set_padding({shape.padding, shape.padding})
      .set_stride({shape.stride, shape.stride})
      .set_dilation({1, 1})
      .set_convolution_mode(fe::ConvolutionMode_t::CROSS_CORRELATION);
}

/// max(0, scale x + shift), on the way to who reads it; scale and shift are tensors 3 and 4.
Tensor normalised(Graph::Built& built, const Tensor& x, int channels) {
  const auto of_channels = [&](int id) {
    Tensor each = tensor(built, id, {1, channels, 1, 1}, {channels, 1, channels, channels});
    each->set_data_type(fe::DataType_t::FLOAT);
    return each;
  };
  const auto mode = [](fe::PointwiseMode_t of) {
    return fe::graph::Pointwise_attributes().set_mode(of);
  };
  const Tensor scaled = built.graph.pointwise(x, of_channels(3), mode(fe::PointwiseMode_t::MUL));
  const Tensor shifted =
      built.graph.pointwise(scaled, of_channels(4), mode(fe::PointwiseMode_t::ADD));
  return built.graph.pointwise(shifted, mode(fe::PointwiseMode_t::RELU_FWD));
}

}  // namespace

Graph::Graph(cudnnHandle_t handle, std::unique_ptr<Built> built)
    : handle_(handle), built_(std::move(built)) {}

Graph::~Graph() = default;

void Graph::operator()(const std::string& layer, std::span<void* const> tensors,
                       std::span<std::byte> workspace) const {
  CAROUSEL_CHECK(usable_bytes(std::ssize(workspace)) >= built_->workspace,
                 "{}: a workspace of {} bytes", layer, workspace.size());
  std::unordered_map<std::int64_t, void*> pack;
  for (std::size_t k = 0; k < tensors.size(); ++k)
    pack.emplace(static_cast<std::int64_t>(k), tensors[k]);
  fe::error_t error = built_->graph.execute(handle_, pack, aligned(workspace));
  if (error.is_bad()) fail(ExitCode::internal, "{}: cuDNN: {}", layer, error.get_message());
}

std::unique_ptr<Graph> make_convolution(cudnnHandle_t handle, const ConvolutionShape& shape,
                                        Pass pass, DataType result, std::int64_t workspace,
                                        std::string& reason) {
  Built built = begin(shape.type);
  const ChannelsLast x(shape.n, shape.in);
  const ChannelsLast w(shape.out.channels, {shape.in.channels, shape.kernel, shape.kernel});
  const ChannelsLast y(shape.n, shape.out);
  if (pass == Pass::forward) {
    const Tensor read = tensor(*built, 0, x.dims, x.strides);
    const Tensor images = shape.normalises ? normalised(*built, read, shape.in.channels) : read;
    const Tensor made = built->graph.conv_fprop(images, tensor(*built, 1, w.dims, w.strides),
                                                windows<fe::graph::Conv_fprop_attributes>(shape));
    leave(made, 2, result, y.dims, y.strides);
  } else if (pass == Pass::d_input) {
    const Tensor made = built->graph.conv_dgrad(tensor(*built, 0, y.dims, y.strides),
                                                tensor(*built, 1, w.dims, w.strides),
                                                windows<fe::graph::Conv_dgrad_attributes>(shape));
    leave(made, 2, result, x.dims, x.strides);
  } else {
    const Tensor made = built->graph.conv_wgrad(tensor(*built, 1, y.dims, y.strides),
                                                tensor(*built, 0, x.dims, x.strides),
                                                windows<fe::graph::Conv_wgrad_attributes>(shape));
    leave(made, 2, result, w.dims, w.strides);
  }
  return complete(handle, std::move(built), unwanted(shape.type), workspace, reason);
}

namespace {

struct AttentionTensors {
  Dims dims;     // [n, heads, tokens, size]
  Dims packed;   // strides of queries, keys and values, and of their gradients
  Dims strides;  // of the output
  Dims sum_dims;
  Dims sum_strides;

  explicit AttentionTensors(const AttentionShape& shape) {
    const std::int64_t size = shape.size;
    const std::int64_t row = shape.heads * size;
    dims = {shape.n, shape.heads, shape.tokens, size};
    packed = {shape.tokens * 3 * row, size, 3 * row, 1};
    strides = {shape.tokens * row, size, row, 1};
    sum_dims = {shape.n, shape.heads, shape.tokens, 1};
    sum_strides = {std::int64_t{shape.heads} * shape.tokens, shape.tokens, 1, 1};
  }
};

float scale_of(const AttentionShape& shape) {
  return 1 / std::sqrt(static_cast<float>(shape.size));
}

}  // namespace

namespace {

/// As one operation of cuDNN or as products and sums, whichever it has a plan for.
template <class Make>
std::unique_ptr<Graph> first_offered(const Make& make) {
  using fe::AttentionImplementation_t;
  for (const auto way : {AttentionImplementation_t::AUTO, AttentionImplementation_t::COMPOSITE})
    if (std::unique_ptr<Graph> graph = make(way)) return graph;
  return nullptr;
}

}  // namespace

std::unique_ptr<Graph> make_attention(cudnnHandle_t handle, const AttentionShape& shape,
                                      std::int64_t workspace, std::string& reason) {
  const AttentionTensors all(shape);
  return first_offered([&](fe::AttentionImplementation_t way) {
    Built built = begin(DataType::bfloat16);
    const auto read = [&](int id) { return tensor(*built, id, all.dims, all.packed); };
    auto attributes =
        fe::graph::SDPA_attributes().set_name("sdpa").set_generate_stats(true).set_attn_scale(
            scale_of(shape));
    attributes.set_causal_mask(shape.causal).set_implementation(way);
    const auto [y, sums] = built->graph.sdpa(read(0), read(1), read(2), attributes);
    leave(y, 3, DataType::bfloat16, all.dims, all.strides);
    leave(sums, 4, DataType::full, all.sum_dims, all.sum_strides);
    return complete(handle, std::move(built), unwanted(DataType::bfloat16), workspace, reason);
  });
}

std::unique_ptr<Graph> make_attention_gradient(cudnnHandle_t handle, const AttentionShape& shape,
                                               std::int64_t workspace, std::string& reason) {
  Built built = begin(DataType::bfloat16);
  const AttentionTensors all(shape);
  const auto read = [&](int id) { return tensor(*built, id, all.dims, all.packed); };
  const Tensor y = tensor(*built, 3, all.dims, all.strides);
  const Tensor sums = tensor(*built, 4, all.sum_dims, all.sum_strides);
  sums->set_data_type(fe::DataType_t::FLOAT);
  const Tensor d_y = tensor(*built, 5, all.dims, all.strides);
  const auto made = built->graph.sdpa_backward(read(0), read(1), read(2), y, d_y, sums,
                                               fe::graph::SDPA_backward_attributes()
                                                   .set_name("sdpa_backward")
                                                   .set_attn_scale(scale_of(shape))
                                                   .set_causal_mask(shape.causal)
                                                   .set_deterministic_algorithm(true));
  for (int k = 0; k < 3; ++k)
    leave(made[static_cast<std::size_t>(k)], 6 + k, DataType::bfloat16, all.dims, all.packed);
  // Its engine has a note of other uses; this one it was asked to make the same every time.
  return complete(handle, std::move(built), approximate(), workspace, reason);
}

}  // namespace carousel::vendor
