// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/optim/schedules/constant.hpp"

namespace carousel {

std::vector<Row<ConstantRate>> ConstantRate::rows() {
  return {};
}

double ConstantRate::rate(double base, const TrainingTime& /*time*/) const {
  return base;
}

}  // namespace carousel
