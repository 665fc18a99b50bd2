// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data/config.hpp"

#include "core/deck/row.hpp"

namespace carousel {

std::vector<Row<DataConfig>> DataConfig::rows() {
  constexpr int most_workers = 512;
  return {
      key("file", &DataConfig::file, anything,
          "HDF5 data set. A path in the deck is relative to the deck; on the command line, to the "
          "folder where the command runs.",
          required_key),
      key("workers", &DataConfig::workers, within(1, most_workers),
          "Threads of a device that read, decode and resize samples ahead of use. More than one "
          "helps where a run says that it waits for data. Results do not depend on it."),
  };
}

}  // namespace carousel
