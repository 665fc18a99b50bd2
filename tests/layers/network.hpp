// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A whole model as one stage on one micro-batch, for tests of kernels. It has neither versions nor
// messages; the executor's tests are elsewhere.

#include <memory>
#include <vector>

#include "core/base/copy.hpp"
#include "core/train/kernels.hpp"
#include "core/train/stage.hpp"
#include "layers/factory.hpp"
#include "tests/layers/device.hpp"

namespace carousel::test {

class Network {
 public:
  Network(const Model& model, int n, const LayerFactory& layers = make_layer,
          std::shared_ptr<VendorHandles> vendor = {})
      : n_(n),
        vendor_(std::move(vendor)),
        memory_(plan_stages(model, {{0, static_cast<int>(model.layers.size())}, {}}, n)[0]),
        workspace_("carousel::test::workspace", memory_.workspace_bytes),
        stage_(model, {&memory_, 1}, 0, n, {}, layers,
               {{}, {workspace_.data(), workspace_.size()}, vendor_.get()}),
        images_("carousel::test::images", n * model.input.size()),
        labels_("carousel::test::labels", n * model.target.pixels()),
        samples_("carousel::test::samples", n),
        frame_("carousel::test::frame", memory_.frame_bytes),
        scratch_("carousel::test::scratch", memory_.scratch_bytes),
        theta_("carousel::test::theta", memory_.message_size),
        stored_("carousel::test::stored", memory_.keeps_full ? memory_.stored_bytes : 0),
        gradient_("carousel::test::gradient", memory_.message_size),
        report_("carousel::test::report", report_head + memory_.sums),
        frames_{frame_.data()},
        arguments_{.samples = n,
                   .images = images_.data(),
                   .frames = frames_,
                   .scratch = scratch_.data(),
                   .parameters = memory_.keeps_full
                                     ? stored_.data()
                                     : reinterpret_cast<const std::byte*>(theta_.data()),
                   .d_parameters = gradient_.data(),
                   .targets = labels_.data(),
                   .report = report_.data(),
                   .draw = {.samples = samples_.data()}},
        output_type_(model.layers.back().output_format.type),
        output_size_(n * model.layers.back().output.size()) {}

  [[nodiscard]] const StageMemory& memory() const { return memory_; }
  [[nodiscard]] Device<real> parameters() const { return part(theta_, 0, memory_.parameter_size); }
  [[nodiscard]] Device<real> gradient() const { return part(gradient_, 0, memory_.parameter_size); }
  /// Running statistics, and those of the micro-batch.
  [[nodiscard]] Device<real> buffers() const {
    return part(theta_, memory_.parameter_size, memory_.rider_offset());
  }
  [[nodiscard]] Device<real> statistics() const {
    return part(gradient_, memory_.parameter_size, memory_.rider_offset());
  }
  /// Of the last forward: the loss, and the sum of the first metric.
  [[nodiscard]] double loss() const { return to_host(report_)[0]; }
  [[nodiscard]] double correct() const { return to_host(report_)[report_head]; }
  [[nodiscard]] double* report() const { return report_.data(); }
  /// What the last layer left: probabilities after a loss, logits without.
  [[nodiscard]] Numbers output() const {
    const Place& place = memory_.places.back().output;
    const auto& region = place.region == Region::frame ? frame_ : scratch_;
    const auto bytes = static_cast<std::size_t>(output_size_ * size_of(output_type_));
    std::vector<std::byte> stored(bytes);
    Kokkos::deep_copy(
        HostView<std::byte>(stored.data(), bytes),
        Kokkos::View<const std::byte*, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
            region.data() + place.offset, bytes));
    Numbers host(static_cast<std::size_t>(output_size_));
    restore_numbers(output_type_, stored.data(), host);
    return host;
  }

  void set_batch(const Numbers& images, const std::vector<int>& labels) {
    Kokkos::deep_copy(images_, to_device(images));
    Kokkos::deep_copy(labels_, to_device(labels));
  }
  void forward(const ExecutionSpace& exec, bool training = true) {
    arguments_.training = training;
    if (memory_.keeps_full) {
      store_parameters(exec, memory_.parameter_ranges, 0, memory_.parameter_size, theta_.data(),
                       stored_.data());
      copy<MemorySpace, MemorySpace>(exec, stored_.data() + memory_.stored_buffers(),
                                     theta_.data() + memory_.parameter_size,
                                     static_cast<std::size_t>(memory_.buffer_size) * sizeof(real));
    }
    stage_.forward(Workers(exec), arguments_);
  }
  void backward(const ExecutionSpace& exec) { stage_.backward(Workers(exec), arguments_); }

 private:
  [[nodiscard]] static Device<real> part(const Device<real>& all, std::int64_t begin,
                                         std::int64_t end) {
    return Kokkos::subview(all, Kokkos::pair(begin, end));
  }

  int n_;
  std::shared_ptr<VendorHandles> vendor_;
  StageMemory memory_;
  Device<std::byte> workspace_;
  Stage stage_;
  Device<real> images_;
  Device<int> labels_;
  Device<int> samples_;  // their numbers, all 0
  Device<std::byte> frame_, scratch_;
  Device<real> theta_;
  Device<std::byte> stored_;  // theta as kernels read it, if that is something else
  Device<real> gradient_;
  Device<double> report_;
  std::vector<std::byte*> frames_;
  StageArguments arguments_;
  DataType output_type_;
  std::int64_t output_size_;
};

/// The model as far as its logits.
[[nodiscard]] inline Model without_loss(Model model) {
  model.layers.pop_back();
  return model;
}

}  // namespace carousel::test
