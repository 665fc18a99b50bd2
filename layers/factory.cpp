// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/factory.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/check.hpp"
#include "core/model/op.hpp"
#include "layers/converted.hpp"
#include "layers/scored_loss.hpp"

namespace carousel {

std::unique_ptr<Layer> make_layer(const LayerSpec& spec, int samples, const Engine& engine) {
  CAROUSEL_CHECK(std::ssize(engine.workspace) >= spec.workspace_bytes(samples),
                 "{}: a workspace of {} bytes", spec.label(), engine.workspace.size());
  if (spec.converted != Converted::nothing)
    return make_converted(spec, samples, engine, make_layer);
  const std::string_view name = spec.kind->name;
  const std::span<const OpKernels> all = all_kernels();
  const auto found = std::ranges::find(
      all, name, [](const OpKernels& each) -> std::string_view { return each.name; });
  CAROUSEL_CHECK(found != all.end(), "{} has no kernels", name);
  std::unique_ptr<Layer> layer = found->make(spec, samples, engine);
  return spec.is_loss() ? with_metrics(std::move(layer), spec) : std::move(layer);
}

}  // namespace carousel
