// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A convolution by oneDNN (its interface of version 2) in the layouts and by the algorithm that it
// prefers, as a yardstick. Nothing but benchmarks uses it.

#include <oneapi/dnnl/dnnl.hpp>

#include "core/model/layer_spec.hpp"
#include "layers/convolution/op.hpp"

namespace carousel::bench {

class OnednnConvolution {
 public:
  OnednnConvolution(const LayerSpec& spec, int n) {
    using dnnl::memory;
    const auto any = [](const memory::dims& dims) {
      return memory::desc(dims, memory::data_type::f32, memory::format_tag::any);
    };
    const Window& window = spec.as<op::Convolution>().window;
    const SampleShape& in = spec.input();
    const SampleShape& out = spec.output;
    const memory::desc x = any({n, in.channels, in.height, in.width});
    const memory::desc y = any({n, out.channels, out.height, out.width});
    const memory::desc w = any({out.channels, in.channels, window.kernel, window.kernel});
    const memory::dims strides(2, window.stride);
    const memory::dims padding(2, window.padding);
    const auto algorithm = dnnl::algorithm::convolution_auto;
    const dnnl::convolution_forward::primitive_desc of_forward(
        {dnnl::prop_kind::forward_training, algorithm, x, w, y, strides, padding, padding},
        engine_);
    const dnnl::convolution_backward_weights::primitive_desc of_weights(
        {algorithm, x, w, y, strides, padding, padding}, engine_, of_forward);
    const dnnl::convolution_backward_data::primitive_desc of_data(
        {algorithm, x, w, y, strides, padding, padding}, engine_, of_forward);
    forward_ = {dnnl::convolution_forward(of_forward),
                {{DNNL_ARG_SRC, filled(of_forward.src_desc())},
                 {DNNL_ARG_WEIGHTS, filled(of_forward.weights_desc())},
                 {DNNL_ARG_DST, filled(of_forward.dst_desc())}}};
    weights_ = {dnnl::convolution_backward_weights(of_weights),
                {{DNNL_ARG_SRC, filled(of_weights.src_desc())},
                 {DNNL_ARG_DIFF_DST, filled(of_weights.diff_dst_desc())},
                 {DNNL_ARG_DIFF_WEIGHTS, filled(of_weights.diff_weights_desc())}}};
    data_ = {dnnl::convolution_backward_data(of_data),
             {{DNNL_ARG_WEIGHTS, filled(of_data.weights_desc())},
              {DNNL_ARG_DIFF_DST, filled(of_data.diff_dst_desc())},
              {DNNL_ARG_DIFF_SRC, filled(of_data.diff_src_desc())}}};
  }

  void forward() { run(forward_); }
  void weight_gradient() { run(weights_); }
  void input_gradient() { run(data_); }

 private:
  struct Call {
    dnnl::primitive primitive;
    std::unordered_map<int, dnnl::memory> arguments;
  };

  [[nodiscard]] dnnl::memory filled(const dnnl::memory::desc& desc) const {
    dnnl::memory memory(desc, engine_);
    auto* numbers = static_cast<float*>(memory.get_data_handle());
    for (std::size_t i = 0; i < desc.get_size() / sizeof(float); ++i) numbers[i] = 0.25F;
    return memory;
  }
  void run(Call& call) {
    call.primitive.execute(stream_, call.arguments);
    stream_.wait();
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  Call forward_, weights_, data_;
};

}  // namespace carousel::bench
