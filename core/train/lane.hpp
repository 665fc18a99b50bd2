// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One of the compute queues of a device, with what passes need that run on it and on no other at
// the same time.

#include <memory>
#include <vector>

#include "core/base/workers.hpp"
#include "core/train/launch_queue.hpp"
#include "core/train/stage.hpp"

namespace carousel {

struct Lane {
  ExecutionSpace exec;
  Workers workers;  // of the same
  std::shared_ptr<VendorHandles> vendor;
  std::vector<Stage> stages;  // those of the device
  std::byte* scratch = nullptr;
  LaunchQueue queue;
};

}  // namespace carousel
