// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/predictor.hpp"

#include <string>

#include "core/base/check.hpp"
#include "core/base/copy.hpp"
#include "core/plan/partition.hpp"
#include "core/train/rider.hpp"
#include "core/train/shown_images.hpp"

namespace carousel {
namespace {

StageMemory whole_model(const Model& model, int batch) {
  return plan_stages(model, partition_model(model, 1, Balance::layers), batch).front();
}

}  // namespace

Predictor::Bytes Predictor::bytes(const ExecutionSpace& exec, const char* what,
                                  std::int64_t count) {
  return Bytes(Kokkos::view_alloc(exec, std::string("carousel::train::") + what),
               static_cast<std::size_t>(count));
}

Predictor::Predictor(const ExecutionSpace& exec, const PredictorSpec& spec)
    : exec_(exec),
      workers_(exec),
      source_(spec.source),
      memory_(whole_model(spec.model, spec.largest_batch)),
      parameters_(bytes(exec, "parameters", memory_.stored_bytes)),
      frozen_(bytes(exec, "frozen", memory_.frozen_bytes)),
      frame_(bytes(exec, "frame", memory_.frame_bytes)),
      scratch_(bytes(exec, "scratch", memory_.scratch_bytes)),
      workspace_(bytes(exec, "workspace", memory_.workspace_bytes)),
      vendor_(spec.vendor ? spec.vendor(exec) : nullptr) {
  const std::int64_t n = spec.largest_batch;
  const std::int64_t number = sizeof(real);
  images_ = bytes(exec, "images", n * source_.shown.size() * number);
  outputs_ = bytes(exec, "outputs", n * spec.model.layers.back().input().size() * number);
  if (!source_.is_shown_as_read()) {
    if constexpr (!runs_on_host) {
      read_ = bytes(exec, "read", n * source_.input.bytes());
      parts_ = bytes(exec, "parts", n * std::int64_t{sizeof(ShownPart)});
    }
    const std::vector<real> levels = normalised_levels(spec.mean, spec.std);
    levels_ = bytes(exec, "levels", std::ssize(levels) * number);
    copy_to_device(exec, reinterpret_cast<real*>(levels_.data()), levels);
  }
  finish(exec, "carousel::train::predictor");  // all is zeros first
  TensorReader tensors(spec.state);
  for (const StatePart part : {StatePart::parameters, StatePart::buffers})
    fill_stored(exec, spec.model, memory_, part, -1, tensors, parameters_.data());
  fill_frozen(exec, spec.model, memory_, tensors, frozen_.data(), nullptr);
  const Engine engine{exec, {workspace_.data(), workspace_.size()}, vendor_.get()};
  stage_ = std::make_unique<Stage>(spec.model, std::span(&memory_, 1), 0, spec.largest_batch,
                                   BufferCounts(), spec.layers, engine);
}

void Predictor::predict(const Batch& batch, std::span<real> outputs) {
  CAROUSEL_CHECK(outputs.size_bytes() <= outputs_.size(), "{} outputs", outputs.size());
  const auto null_if_empty = [](const Bytes& bytes) {
    return bytes.size() == 0 ? nullptr : bytes.data();
  };
  show_batch(
      exec_, exec_, source_, batch,
      {reinterpret_cast<std::uint8_t*>(null_if_empty(read_)),
       reinterpret_cast<ShownPart*>(null_if_empty(parts_)),
       reinterpret_cast<const real*>(levels_.data()), reinterpret_cast<real*>(images_.data())});
  std::byte* frame = frame_.data();
  auto* const given = reinterpret_cast<real*>(outputs_.data());
  stage_->forward(workers_, {.samples = batch.request.count,
                             .images = reinterpret_cast<const real*>(images_.data()),
                             .frames = std::span(&frame, 1),
                             .scratch = scratch_.data(),
                             .parameters = parameters_.data(),
                             .frozen = frozen_.data(),
                             .outputs = given,
                             .training = false});
  copy_to_host(exec_, outputs, given);
}

}  // namespace carousel
