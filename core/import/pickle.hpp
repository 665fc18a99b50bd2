// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the few things that Python's pickles of data sets hold: numbers, texts, lists, dictionaries
// and numpy's arrays (pickletools.py of CPython tells the format). It calls nothing by its name.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace carousel {

struct Pickled {
  enum class Kind : std::uint8_t { none, integer, text, sequence, dictionary, object };
  Kind kind = Kind::none;
  std::int64_t integer = 0;
  std::string text = {};  // of a text, or what made an object
  std::vector<std::shared_ptr<Pickled>> items =
      {};  // of a sequence; of an object its arguments, then its state
  std::map<std::string, std::shared_ptr<Pickled>> entries = {};  // of a dictionary, by texts
};

/// Protocols 1 to 4, texts of Python 2 and 3 alike as bytes. Throws Error(bad_data) with the reason
/// alone for what is damaged or of another kind.
[[nodiscard]] Pickled read_pickle(std::span<const std::byte> bytes);

/// The bytes of a numpy array of uint8 in C order; Error(bad_data) if it is none.
[[nodiscard]] std::span<const std::uint8_t> bytes_of_array(const Pickled& array);

}  // namespace carousel
