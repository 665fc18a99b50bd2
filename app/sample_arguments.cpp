// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/sample_arguments.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace carousel {

std::vector<std::string> SampleArguments::words() const {
  return {"--tokens=" + tokens,
          "--prompt=" + prompt,
          fmt::format("--count={}", count),
          fmt::format("--temperature={}", temperature),
          fmt::format("--top-k={}", top_k),
          fmt::format("--seed={}", seed)};
}

bool SampleArguments::take(const std::string& word) {
  const std::size_t end = word.find('=');
  if (end == std::string::npos) return false;
  const std::string name = word.substr(0, end);
  const std::string value = word.substr(end + 1);
  if (name == "--tokens")
    tokens = value;
  else if (name == "--prompt")
    prompt = value;
  else if (name == "--count")
    count = std::strtoll(value.c_str(), nullptr, 10);
  else if (name == "--temperature")
    temperature = std::strtod(value.c_str(), nullptr);
  else if (name == "--top-k")
    top_k = static_cast<int>(std::strtol(value.c_str(), nullptr, 10));
  else if (name == "--seed")
    seed = std::strtoull(value.c_str(), nullptr, 10);
  else
    return false;
  return true;
}

}  // namespace carousel
