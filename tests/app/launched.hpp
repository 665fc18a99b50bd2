// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "app/launcher.hpp"

namespace carousel {

using Variables = std::map<std::string, std::string>;

/// What a process finds of its launcher where the environment has these variables alone.
inline Launcher launcher(const Variables& variables) {
  return find_launcher([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

}  // namespace carousel
