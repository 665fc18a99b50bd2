// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/deck_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "app/deck_rules.hpp"
#include "app/nearest.hpp"
#include "app/schema.hpp"
#include "core/base/check.hpp"
#include "core/model/op.hpp"

namespace carousel {
namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Names of users may hold anything; plain ones are shown plainly.
std::string shown(const std::string& name) {
  const bool plain = name.size() <= 60 && std::all_of(name.begin(), name.end(),
                                                      [](char c) { return c > ' ' && c < 127; });
  return plain ? name : in_quotes(name);
}

/// A value as it was written, short enough for a message.
std::string shown(const DeckValue& value) {
  if (const auto* text = std::get_if<std::string>(&value.data)) return in_quotes(*text);
  const std::string toml = to_toml(value);
  return toml.size() > 60 ? toml.substr(0, 60) + " ..." : toml;
}

/// Checks one entry against its specification and brings the value into the key's type.
class ValueCheck {
 public:
  ValueCheck(const KeySpec& spec, const DeckEntry& entry) : spec_(spec), entry_(entry) {}

  [[nodiscard]] DeckValue run() const {
    switch (spec_.type) {
      case KeyType::boolean:
        if (!std::holds_alternative<bool>(entry_.value.data)) mistyped();
        return entry_.value;
      case KeyType::integer:
      case KeyType::number:
        return number(entry_.value, spec_.type == KeyType::integer);
      case KeyType::string:
        return string();
      case KeyType::table:
        if (!std::holds_alternative<DeckValue::Table>(entry_.value.data)) mistyped();
        return entry_.value;
      case KeyType::integers:
      case KeyType::numbers:
      case KeyType::strings:
      case KeyType::list:
        break;
    }
    const auto* list = std::get_if<DeckValue::List>(&entry_.value.data);
    // Where words may be several, one need not be a list.
    if (list == nullptr && spec_.type == KeyType::strings) return {DeckValue::List{string()}};
    if (list == nullptr) mistyped();
    if (list->empty()) refuse("is empty");
    if (spec_.type == KeyType::list) return entry_.value;
    DeckValue::List elements;
    for (const DeckValue& element : *list)
      elements.push_back(spec_.type == KeyType::strings
                             ? word(element)
                             : number(element, spec_.type == KeyType::integers));
    return {std::move(elements)};
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& hint = "") const {
    fail(ExitCode::usage, "{}: {} = {} {}; it must be {}{}", to_string(entry_.location), entry_.key,
         shown(entry_.value), what, allowed_words(spec_), hint);
  }
  [[noreturn]] void mistyped() const {
    if (!std::holds_alternative<std::monostate>(entry_.value.data)) refuse("has the wrong type");
    fail(ExitCode::usage, "{}: {} is a date, time or table; it must be {}",
         to_string(entry_.location), entry_.key, allowed_words(spec_));
  }

  [[nodiscard]] DeckValue number(const DeckValue& value, bool whole) const {
    double as_double = 0;
    if (const auto* integer = std::get_if<std::int64_t>(&value.data))
      as_double = static_cast<double>(*integer);
    else if (const auto* real = std::get_if<double>(&value.data); real != nullptr && !whole)
      as_double = *real;
    else
      mistyped();
    if (!std::isfinite(as_double)) refuse("is not a finite number");
    if (!spec_.allowed.contains(as_double)) refuse("is out of range");
    return whole ? value : DeckValue{as_double};
  }

  [[nodiscard]] DeckValue string() const {
    const auto* parsed = std::get_if<std::string>(&entry_.value.data);
    // run.name=1234 on a command line means the text.
    if (parsed == nullptr && entry_.text.empty()) mistyped();
    const std::string& text = parsed != nullptr ? *parsed : entry_.text;
    check_choice(text);
    if (text.empty() && spec_.traits.missing == Missing::refused)
      refuse("is empty", " that is not empty");
    if (text.find('\0') != std::string::npos) refuse("contains a null character", " without one");
    return {text};
  }

  [[nodiscard]] DeckValue word(const DeckValue& value) const {
    const auto* text = std::get_if<std::string>(&value.data);
    if (text == nullptr) mistyped();
    check_choice(*text);
    return value;
  }
  void check_choice(const std::string& text) const {
    if (!spec_.allowed.choices.empty() && !contains(spec_.allowed.choices, text))
      refuse("is unknown", did_you_mean(text, spec_.allowed.choices));
  }

  const KeySpec& spec_;
  const DeckEntry& entry_;
};

/// The deck with the names that keys have today. What the command line says of a key counts for its
/// former name, too.
Deck up_to_date(Deck deck) {
  for (std::vector<DeckEntry>* entries : {&deck.entries, &deck.removed})
    for (DeckEntry& entry : *entries) entry.key = present_name(entry.key);
  for (const DeckEntry& removed : deck.removed) {
    std::erase_if(deck.entries, [&](const DeckEntry& entry) {
      if (entry.key == removed.key && entry.location.file == command_line)
        fail(ExitCode::usage, "{}: {} is given and removed, under two names; do either",
             to_string(entry.location), entry.key);
      return entry.key == removed.key;
    });
  }
  std::vector<DeckEntry> entries;
  for (const DeckEntry& entry : deck.entries) {
    const auto before = std::ranges::find(entries, entry.key, &DeckEntry::key);
    if (before == entries.end()) {
      entries.push_back(entry);
      continue;
    }
    const bool typed = entry.location.file == command_line;
    if (!typed || before->location.file == command_line)
      fail(ExitCode::usage, "{}: {} is given twice, under two names; remove one",
           to_string(entry.location), entry.key);
    *before = entry;
  }
  deck.entries = std::move(entries);
  return deck;
}

/// Which key that is a table of names has the key of that name below it; null: none.
const KeySpec* table_around(const std::string& key) {
  for (const TableSpec& table : deck_tables()) {
    for (const KeySpec& spec : table.keys) {
      if (spec.type == KeyType::table && key.starts_with(spec.key() + ".")) return &spec;
    }
  }
  return nullptr;
}

/// The deck with what the file has that it names for its layers, whose sizes it may replace.
Deck with_layers_of_file(Deck deck) {
  const auto named = std::ranges::find(deck.entries, "model.file", &DeckEntry::key);
  if (named == deck.entries.end()) return deck;
  const auto* const text = std::get_if<std::string>(&named->value.data);
  if (text == nullptr || text->empty()) return deck;  // which is refused where values are
  const bool typed = named->location.file == command_line;
  const std::filesystem::path folder = std::filesystem::path(deck.path).parent_path();
  const Deck file = read_deck(typed ? *text : (folder / *text).string(), {});
  const DeckEntry naming = *named;
  deck.entries.erase(named);
  for (DeckEntry entry : file.entries) {
    if (entry.key != "layers" && !entry.key.starts_with("let.") &&
        !entry.key.starts_with("blocks."))
      fail(ExitCode::usage, "{}: {} is not known in a file of layers; known: layers, let, blocks",
           to_string(entry.location), shown(entry.key));
    entry.key = "model." + entry.key;
    const auto before = std::ranges::find(deck.entries, entry.key, &DeckEntry::key);
    if (before == deck.entries.end())
      deck.entries.push_back(std::move(entry));
    else if (before->location.file != command_line && !entry.key.starts_with("model.let."))
      fail(ExitCode::usage, "{}: {} is given here and in {}; remove one",
           to_string(before->location), entry.key, to_string(entry.location));
  }
  if (std::ranges::find(deck.entries, "model.layers", &DeckEntry::key) == deck.entries.end())
    fail(ExitCode::usage, "{}: model.file: {} has no layers", to_string(naming.location),
         file.path);
  return deck;
}

/// The deck with one entry for every table of names.
Deck with_tables(Deck deck) {
  std::vector<DeckEntry> entries;
  for (DeckEntry& entry : deck.entries) {
    const KeySpec* const around = table_around(entry.key);
    if (around == nullptr) {
      entries.push_back(std::move(entry));
      continue;
    }
    const std::string key = around->key();
    auto joined = std::ranges::find(entries, key, &DeckEntry::key);
    if (joined == entries.end()) {
      entries.push_back({key, {DeckValue::Table()}, entry.location, entry.text});
      joined = entries.end() - 1;
    }
    auto* const table = std::get_if<DeckValue::Table>(&joined->value.data);
    const std::string name = entry.key.substr(key.size() + 1);
    if (table == nullptr || find_field(*table, name) != nullptr)
      fail(ExitCode::usage, "{}: {} is given twice", to_string(entry.location), entry.key);
    table->push_back({name, std::move(entry.value)});
  }
  deck.entries = std::move(entries);
  const auto is_inside = [](const auto& named) {
    return table_around(named) != nullptr ||
           (find_key(named) != nullptr && find_key(named)->type == KeyType::table);
  };
  std::erase_if(deck.tables, [&](const DeckTable& table) { return is_inside(table.name); });
  std::erase_if(deck.removed,
                [&](const DeckEntry& entry) { return table_around(entry.key) != nullptr; });
  return deck;
}

void check_names(const Deck& deck) {
  const std::vector<std::string> tables = table_names();
  const std::vector<std::string> keys = key_names();
  for (const DeckTable& table : deck.tables) {
    if (contains(tables, table.name)) continue;
    if (contains(keys, table.name))
      fail(ExitCode::usage, "{}: {} is a key, not a table", to_string(table.location), table.name);
    fail(ExitCode::usage, "{}: unknown table [{}]{}; tables are {}", to_string(table.location),
         shown(table.name), did_you_mean(table.name, tables), fmt::join(tables, ", "));
  }
  std::vector<DeckEntry> entries = deck.entries;
  entries.insert(entries.end(), deck.removed.begin(), deck.removed.end());
  for (const DeckEntry& entry : entries) {
    if (contains(keys, entry.key)) continue;
    if (contains(tables, entry.key))
      fail(ExitCode::usage, "{}: {} is a table, not a key; write [{}] and its keys below it",
           to_string(entry.location), entry.key, entry.key);
    fail(ExitCode::usage, "{}: unknown key {}{}; `carousel help deck` lists all keys",
         to_string(entry.location), shown(entry.key), did_you_mean(entry.key, keys));
  }
}

/// Whether the deck has the table, if only its name.
bool uses(const Deck& deck, const TableSpec& spec) {
  if (!spec.optional) return true;
  const auto named = [&](const DeckTable& table) { return table.name == spec.name; };
  const auto keyed = [&](const DeckEntry& entry) {
    return find_key(entry.key)->table == spec.name;
  };
  return std::ranges::any_of(deck.tables, named) || std::ranges::any_of(deck.entries, keyed);
}

/// Fills a RunConfig row by row.
class Reader {
 public:
  explicit Reader(const Deck& deck) : deck_(deck) {
    config_.deck = DeckKeys(deck.path);
    for (const TableSpec& table : deck_tables()) {
      if (!uses(deck, table)) continue;
      for (const KeySpec& spec : table.keys) rows_.push_back(&spec);
      if (table.optional) config_.machine.emplace();
    }
  }

  [[nodiscard]] RunConfig read() {
    take_values();
    for (const KeySpec* spec : rows_) choose_between(*spec);
    for (const KeySpec* spec : rows_) drop_without_effect(*spec);
    for (const KeySpec* spec : rows_) require(*spec);
    if (keys().given("model.layers")) config_.model.layers_file = keys().file_of("model.layers");
    config_.data.target.are_shares = loss_named(config_.task.loss).loss->takes_shares;
    place("data.file", config_.data.file);
    place("data.tokens", config_.data.tokens);
    for (std::string& path : config_.data.files) place("data.files", path);
    for (std::string& path : config_.data.validation_files) place("data.validation_files", path);
    for (std::string& path : config_.data.test_files) place("data.test_files", path);
    place("train.start", config_.train.start);
    if (config_.run.resumes_from_path()) place("run.resume", config_.run.resume);
    for (const NoEffect& value : values_without_effect(config_)) reset_without_effect(value);
    check_deck_rules(config_);
    return std::move(config_);
  }

 private:
  void take_values() {
    for (const KeySpec* spec : rows_)
      if (spec->traits.missing == Missing::standard) keys().add(spec->key());
    for (const DeckEntry& entry : deck_.entries) imply(find_key(entry.key)->traits.implies);
    for (const bool choosing : {true, false}) {
      for (const DeckEntry& entry : deck_.entries) {
        const KeySpec& spec = *find_key(entry.key);
        if (spec.traits.chooses != choosing) continue;
        spec.write(config_, ValueCheck(spec, entry).run());
        keys().add(entry.key, entry.location);
      }
    }
  }

  /// Lets a key have a value unless the deck gives it one.
  void imply(const Condition& condition) {
    const auto given = [&](const DeckEntry& entry) { return entry.key == condition.key; };
    if (condition.key.empty() || std::ranges::any_of(deck_.entries, given)) return;
    find_key(condition.key)->write(config_, DeckValue{condition.values.front()});
  }

  /// Of two keys that exclude each other, the command line's replaces the deck's, and the deck's
  /// the default.
  void choose_between(const KeySpec& spec) {
    const std::string& other = spec.traits.instead_of;
    if (other.empty()) return;
    const std::string key = spec.key();
    displace(key, other);
    displace(other, key);
    if (!keys().given(key)) return;
    if (keys().given(other))
      fail(ExitCode::usage, "{}: {} and {} are both given; remove one", keys().where(key), key,
           other);
    drop(*find_key(other));
  }

  void displace(const std::string& key, const std::string& other) {
    if (!keys().typed(key) || !keys().given(other) || keys().typed(other)) return;
    note(other, "{} is dropped: the command line gives {}", other, key);
    drop(*find_key(other));
  }

  /// Refuse, never ignore: a key that other choices make meaningless may not be given, unless they
  /// are the command line's and it is not.
  void drop_without_effect(const KeySpec& spec) {
    const Condition* broken = nullptr;
    for (const Condition& condition : spec.traits.only_with)
      if (!holds(condition) && (broken == nullptr || !decided(condition.key))) broken = &condition;
    if (broken == nullptr) return;
    const std::string key = spec.key();
    const bool is_decided = decided(broken->key);
    if (keys().typed(key) || (keys().given(key) && !is_decided))
      fail(ExitCode::usage, "{}: {} has no effect with {}, only with {}; remove it",
           keys().where(key), key, setting_of(broken->key), values_of(*broken));
    if (keys().given(key))
      note(key, "{} is dropped: it has no effect with {}", key, cause(broken->key));
    drop(spec);
    // What follows from its default is the command line's doing, too.
    if (is_decided) dropped_.push_back(key);
  }

  /// The same for a value that others make meaningless: its default takes its place.
  void reset_without_effect(const NoEffect& value) {
    const auto list = [&](auto&& words) {
      std::vector<std::string> causes;
      for (const std::string& key : value.causes) causes.push_back(words(key));
      return fmt::to_string(fmt::join(causes, ", "));
    };
    const bool lost = std::ranges::any_of(value.causes, [&](auto& key) { return decided(key); });
    const std::string setting = setting_of(value.key);
    if (keys().typed(value.key) || !lost)
      fail(ExitCode::usage, "{}: {} has no effect with {}; {}", keys().where(value.key), setting,
           list([&](auto& key) { return setting_of(key); }), value.hint);
    note(value.key, "{} is dropped: it has no effect with {}", setting,
         list([&](auto& key) { return cause(key); }));
    drop(*find_key(value.key));
    keys().add(value.key);
  }

  void require(const KeySpec& spec) const {
    if (spec.traits.missing != Missing::refused || keys().has(spec.key())) return;
    for (const Condition& condition : spec.traits.only_with)
      if (!holds(condition)) return;
    fail(ExitCode::usage, "{}: {} is missing; it must be {}", deck_.path, spec.key(),
         allowed_words(spec));
  }

  /// A path is relative to where it is written.
  void place(const char* key, std::string& path) {
    if (keys().typed(key) || path.empty()) return;
    path = (std::filesystem::path(deck_.path).parent_path() / path).string();
  }

  void drop(const KeySpec& spec) {
    spec.write(config_, spec.standard(config_));
    keys().remove(spec.key());
  }

  template <class... Args>
  void note(const std::string& key, fmt::format_string<Args...> format, Args&&... args) {
    config_.notes.push_back(
        fmt::format("{}: {}", keys().where(key), fmt::format(format, std::forward<Args>(args)...)));
  }

  [[nodiscard]] bool removed(std::string_view key) const {
    return std::ranges::any_of(deck_.removed, [&](auto& entry) { return entry.key == key; });
  }
  /// Whether the value is what it is through the command line.
  [[nodiscard]] bool decided(std::string_view key) const {
    return keys().typed(key) || removed(key) || contains(dropped_, key);
  }
  [[nodiscard]] std::string cause(const std::string& key) const {
    const char* origin = keys().typed(key) ? " from the command line"
                         : removed(key)    ? " by default, as the command line removes the key"
                                           : "";
    return setting_of(key) + origin;
  }
  [[nodiscard]] std::string setting_of(std::string_view key) const {
    return fmt::format("{} = {}", key, to_toml(find_key(key)->read(config_)));
  }
  [[nodiscard]] std::string values_of(const Condition& condition) const {
    const DeckValue value = find_key(condition.key)->read(config_);
    const char* const mark = std::holds_alternative<std::string>(value.data) ? "\"" : "";
    return fmt::format("{0}{1}{0}", mark,
                       fmt::join(condition.values, fmt::format("{0} or {0}", mark)));
  }
  [[nodiscard]] bool holds(const Condition& condition) const {
    const DeckValue value = find_key(condition.key)->read(config_);
    const auto* const word = std::get_if<std::string>(&value.data);
    return contains(condition.values, word != nullptr ? *word : to_toml(value));
  }

  [[nodiscard]] DeckKeys& keys() { return config_.deck; }
  [[nodiscard]] const DeckKeys& keys() const { return config_.deck; }

  const Deck& deck_;
  RunConfig config_;
  std::vector<const KeySpec*> rows_;  // of the tables that the deck has
  std::vector<std::string> dropped_;  // keys without effect through the command line
};

}  // namespace

RunConfig read_config(const Deck& deck) {
  const Deck renamed = with_tables(with_layers_of_file(up_to_date(deck)));
  check_names(renamed);
  return Reader(renamed).read();
}

}  // namespace carousel
