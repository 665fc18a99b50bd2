// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A network that has learned, on one device, from inputs to outputs: forward alone, without
// targets, schedule or messages.

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/data/prefetcher.hpp"
#include "core/train/device.hpp"

namespace carousel {

struct PredictorSpec {
  const Model& model;  // with the kernels that were chosen
  const SourceSpec& source;
  std::vector<double> mean = {};  // [c] of images, as data sets have it
  std::vector<double> std = {};
  int largest_batch = 1;
  StateSource state;
  LayerFactory layers;
  std::function<std::shared_ptr<VendorHandles>(const ExecutionSpace&)> vendor = {};
};

class Predictor {
 public:
  /// Allocates all it needs and reads parameters and running statistics.
  Predictor(const ExecutionSpace& exec, const PredictorSpec& spec);

  /// Outputs of a batch, [n, outputs], in full numbers and plain order, on the host.
  void predict(const Batch& batch, std::span<real> outputs);

 private:
  using Bytes = Kokkos::View<std::byte*, MemorySpace>;

  [[nodiscard]] static Bytes bytes(const ExecutionSpace& exec, const char* what,
                                   std::int64_t count);

  ExecutionSpace exec_;
  Workers workers_;
  SourceSpec source_;
  StageMemory memory_;
  Bytes parameters_;
  Bytes frozen_;
  Bytes frame_;
  Bytes scratch_;
  Bytes workspace_;
  Bytes images_;
  Bytes read_;    // images as they were read; none on hosts
  Bytes parts_;   // likewise
  Bytes levels_;  // likewise
  Bytes outputs_;
  std::shared_ptr<VendorHandles> vendor_;
  std::unique_ptr<Stage> stage_;
};

}  // namespace carousel
