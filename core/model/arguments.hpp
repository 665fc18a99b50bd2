// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a layer is told beside what it reads, as numbers by name: {{"channels", 64}, {"kernel", 3}}.
// Which names there are, and what they may be, its kind says.

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace carousel {

struct Argument {
  std::string name;
  double value = 0;
};
using Arguments = std::vector<Argument>;

/// One of the arguments of a kind of layer.
struct ArgumentSpec {
  const char* name;
  std::optional<double> otherwise = {};  // none: it must be given
  double least = 0;
  double most = 1 << 24;
  bool whole = true;     // no fractions
  const char* doc = "";  // of a loss, for decks, and the key that it had in earlier ones
  const char* former = "";
};

/// The arguments of one layer, of which each has a value.
class GivenArguments {
 public:
  /// Error(usage), beginning with `layer`, for what the kind does not know, cannot take or lacks.
  GivenArguments(const std::string& layer, std::span<const ArgumentSpec> known,
                 const Arguments& given);

  /// Of a name that the kind knows.
  [[nodiscard]] double number(const std::string& name) const;
  [[nodiscard]] int whole(const std::string& name) const { return static_cast<int>(number(name)); }
  [[nodiscard]] bool flag(const std::string& name) const { return number(name) != 0; }

 private:
  Arguments values_;
};

}  // namespace carousel
