// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks the file of one rank, row by row, against the plan of its device. What lies between ranks
// is verify.cpp's.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/audit/judged_file.hpp"
#include "core/audit/verify.hpp"

namespace carousel {

/// One end of a recorded message.
struct MessageEnd {
  const char* kind = "";
  std::int64_t step = -1;
  int stage = -1;
  int piece = -1;
  int micro_batch = -1;
  int peer = -1;
  std::int64_t bytes = 0;
  bool sent = false;
  bool collective = false;
};

/// What a rank's file was found to hold.
struct VerifiedRank {
  std::int64_t actions = 0;
  std::vector<MessageEnd> messages;  // [row]
};

/// Checks actions, messages, memory and totals of `device` for `segments`, all that it recorded.
[[nodiscard]] VerifiedRank verify_rank(const JudgedFile& file, const Expectation& expected,
                                       int device, std::span<const Segment> segments);

}  // namespace carousel
