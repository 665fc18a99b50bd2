// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/optim/optimizers/adamw.hpp"

#include "core/optim/optimizers/moment_rows.hpp"

namespace carousel {

std::vector<Row<AdamW>> AdamW::rows() {
  return moment_rows<AdamW>();
}

}  // namespace carousel
