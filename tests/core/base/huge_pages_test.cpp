// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// What Linux notes about memory that wants huge pages, and that all of it can be used.

#include "core/base/huge_pages.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

namespace carousel {
namespace {

constexpr std::int64_t page = std::int64_t{2} << 20;

/// "rd wr ... hg", of the part of memory around an address.
std::string flags_at(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0;
    std::uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx ", &first, &end) == 2)
      inside = first <= wanted && wanted < end;
    else if (inside && line.starts_with("VmFlags:"))
      return line.substr(8) + " ";
  }
  return "";
}

using Memory = std::unique_ptr<char, decltype(&std::free)>;
Memory allocate(std::int64_t bytes) {
  return {static_cast<char*>(std::aligned_alloc(64, static_cast<std::size_t>(bytes))), &std::free};
}

TEST(HugePages, AreAskedForWhereWholeOnesFit) {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled")) GTEST_SKIP() << "unknown here";
  const Memory memory = allocate(4 * page);
  EXPECT_EQ(flags_at(memory.get() + 2 * page).find(" hg "), std::string::npos);
  prefer_huge_pages(memory.get(), 4 * page);
  EXPECT_NE(flags_at(memory.get() + 2 * page).find(" hg "), std::string::npos);
  std::memset(memory.get(), 1, 4 * page);
  EXPECT_EQ(memory.get()[4 * page - 1], 1);
}

TEST(HugePages, AreNotAskedForBeyondWhatIsGiven) {
  const Memory memory = allocate(4 * page);
  char* inside = memory.get() + 64;
  for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{64}, page - 64})
    prefer_huge_pages(inside, bytes);
  prefer_huge_pages(nullptr, 0);
  EXPECT_EQ(flags_at(inside).find(" hg "), std::string::npos);
}

}  // namespace
}  // namespace carousel
