// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/base/check.hpp"

#include <string_view>

namespace carousel::detail {

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  // Builds pass absolute paths; only the part inside the project says something to a reader.
  std::string_view path(file);
  for (const char* room : {"/app/", "/core/", "/layers/", "/comm/", "/tests/"}) {
    if (const auto at = path.rfind(room); at != std::string_view::npos) {
      path = path.substr(at + 1);
      break;
    }
  }
  fail(ExitCode::internal, "{}:{}: {} (violated: {}); this is a bug in Carousel, please report it",
       path, line, message, condition);
}

}  // namespace carousel::detail
