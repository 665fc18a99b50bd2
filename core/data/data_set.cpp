// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/data_set.hpp"

#include "core/data/array_set.hpp"
#include "core/data/image_set.hpp"
#include "core/data/token_set.hpp"

namespace carousel {

std::unique_ptr<DataSet> open_data_set(const DataConfig& config) {
  if (config.kind == DataKind::arrays) return std::make_unique<ArraySet>(config);
  if (config.kind == DataKind::tokens) return std::make_unique<TokenSet>(config);
  return std::make_unique<ImageSet>(config.file);
}

}  // namespace carousel
