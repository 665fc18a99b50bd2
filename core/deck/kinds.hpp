// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of a struct that is one of several kinds, such as an optimizer: a std::variant of structs,
// each of which brings its name, a sentence and rows of its own.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/check.hpp"
#include "core/deck/row.hpp"

namespace carousel {

/// Lets a row that some kinds have, by the first of its conditions, be that of one more. What it
/// says of its own, and another default, are told by the name of the kind.
void join_kind(RowText& joined, const DeckValue& standard, const RowText& own,
               const DeckValue& own_standard, const char* kind);

/// " sgd: PyTorch's SGD. adamw: ..." of what has a name and a sentence, for a key that names them.
template <class Range>
[[nodiscard]] std::string docs_of(const Range& all) {
  std::string text;
  for (const auto& named : all) text += fmt::format(" {}: {}", named.name, named.doc);
  return text;
}

template <class Variant>
struct Kinds;

/// What can be asked of a variant of kinds.
template <class... Kind>
struct Kinds<std::variant<Kind...>> {
  using Variant = std::variant<Kind...>;

  [[nodiscard]] static std::vector<std::string> names() { return {Kind::name...}; }
  /// Those of which `holds` is true for a new one.
  template <class Predicate>
  [[nodiscard]] static std::vector<std::string> names_with(const Predicate& holds) {
    std::vector<std::string> names;
    (..., (holds(Kind()) ? names.push_back(Kind::name) : void()));
    return names;
  }
  [[nodiscard]] static const char* name_of(const Variant& value) {
    return std::visit([](const auto& kind) { return kind.name; }, value);
  }
  /// A new one of that name. Error(internal) where there is none.
  [[nodiscard]] static Variant named(std::string_view name) {
    Variant value;
    const bool found = (... || (name == Kind::name && (value = Kind(), true)));
    CAROUSEL_CHECK(found, "nothing is called {}", name);
    return value;
  }
  /// "sgd: PyTorch's SGD. adamw: ...", as kinds say it in `doc`.
  [[nodiscard]] static std::string docs() {
    std::string text;
    (..., (text += fmt::format("{}{}: {}", text.empty() ? "" : " ", Kind::name, Kind::doc)));
    return text;
  }

  /// The rows of all kinds in table `table` of a deck, whose key `name` says which one it is. What
  /// several kinds have under one name is one row.
  [[nodiscard]] static std::vector<Row<Variant>> rows(const std::string& table) {
    std::vector<Row<Variant>> joined;
    (..., join<Kind>(joined, table + ".name"));
    return joined;
  }
  /// The row of that key; `doc` comes before what the kinds say.
  [[nodiscard]] static Row<Variant> name_row(const std::string& doc) {
    Row<Variant> row;
    row.name = "name";
    row.allowed = one_of(names());
    row.doc = doc + " " + docs();
    row.traits.chooses = true;
    row.read = [](const Variant& value) { return DeckValue{std::string(name_of(value))}; };
    row.write = [](Variant& value, const DeckValue& name) {
      value = named(std::get<std::string>(name.data));
    };
    row.standard = [](const Variant&) { return DeckValue{std::string(name_of(Variant()))}; };
    return row;
  }

 private:
  template <class Kind1>
  static void join(std::vector<Row<Variant>>& joined, const std::string& chooser) {
    for (const Row<Kind1>& row : Kind1::rows()) {
      const auto known =
          std::ranges::find_if(joined, [&](const auto& other) { return other.name == row.name; });
      if (known == joined.end())
        joined.push_back(first_of(row, chooser));
      else
        add_to(*known, row);
    }
  }

  template <class Kind1>
  static Row<Variant> first_of(const Row<Kind1>& row, const std::string& chooser) {
    Row<Variant> result{static_cast<const RowText&>(row)};
    result.traits.only_with.insert(result.traits.only_with.begin(), {chooser, {Kind1::name}});
    // Of a kind without the key, what the first one with it has; nobody shows it.
    result.read = [row](const Variant& value) { return row.read(held<Kind1>(value)); };
    result.write = [row](Variant& value, const DeckValue& to) {
      if (auto* kind = std::get_if<Kind1>(&value)) row.write(*kind, to);
    };
    result.standard = [row](const Variant&) { return row.standard({}); };
    return result;
  }

  template <class Kind1>
  static void add_to(Row<Variant>& joined, const Row<Kind1>& row) {
    join_kind(joined, joined.standard({}), row, row.standard({}), Kind1::name);
    const auto choose = [](auto other, auto own) {
      return [=](const Variant& value) {
        return std::holds_alternative<Kind1>(value) ? own(std::get<Kind1>(value)) : other(value);
      };
    };
    joined.read = choose(joined.read, row.read);
    joined.standard = choose(joined.standard, row.standard);
    joined.write = [other = joined.write, row](Variant& value, const DeckValue& to) {
      if (auto* kind = std::get_if<Kind1>(&value))
        row.write(*kind, to);
      else
        other(value, to);
    };
  }

  template <class Kind1>
  static Kind1 held(const Variant& value) {
    const auto* kind = std::get_if<Kind1>(&value);
    return kind != nullptr ? *kind : Kind1();
  }
};

}  // namespace carousel
