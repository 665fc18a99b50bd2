// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/model/layer_list.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "core/base/check.hpp"
#include "core/model/expression.hpp"
#include "core/model/op.hpp"

namespace carousel {
namespace {

constexpr std::size_t most_layers = 1 << 16;
constexpr std::int64_t most_elements = 1 << 20;  // that are looked at, repeats included
constexpr int most_nested = 32;
constexpr std::int64_t most_repeats = 1 << 16;

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && is_letter(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

/// Numbers by name, and those around. What is not a number yet is an expression over others.
class Scope {
 public:
  explicit Scope(const Scope* around = nullptr) : around_(around) {}

  void set(const std::string& name, const Number& value) { numbers_[name] = {value, "", false}; }
  void set(const std::string& name, const std::string& expression) {
    numbers_[name] = {{}, expression, false};
  }

  /// Error(usage) where there is none.
  [[nodiscard]] Number at(const std::string& name) const {
    const auto found = numbers_.find(name);
    if (found == numbers_.end()) {
      if (around_ != nullptr) return around_->at(name);
      fail(ExitCode::usage, "'{}' stands for no number{}", name, known());
    }
    Entry& entry = found->second;
    entry.used = true;
    if (entry.value) return *entry.value;
    if (std::exchange(entry.asked, true)) fail(ExitCode::usage, "'{}' is defined by itself", name);
    entry.value = evaluate(entry.expression, [this](const std::string& each) { return at(each); });
    return *entry.value;
  }
  /// One that no expression has asked for.
  [[nodiscard]] std::optional<std::string> unused() const {
    const auto found =
        std::ranges::find_if(numbers_, [](const auto& each) { return !each.second.used; });
    if (found == numbers_.end()) return {};
    return found->first;
  }

 private:
  struct Entry {
    std::optional<Number> value;
    std::string expression;
    bool used = false;
    bool asked = false;
  };

  [[nodiscard]] std::string known() const {
    std::vector<std::string> names;
    for (const auto& [name, entry] : numbers_) names.push_back(name);
    return names.empty() ? "" : fmt::format("; known: {}", fmt::join(names, ", "));
  }

  const Scope* around_;
  mutable std::map<std::string, Entry> numbers_;
};

/// Names of layers in one list: "prefix" and the number of the layer there, or its own name.
struct Names {
  std::string prefix;
  int count = 0;
};

/// A tensor that has a name.
struct NamedTensor {
  int layer = -1;
  DeckValue place;
  bool read = false;
};

/// The list that is expanded, and all that is known there.
struct Around {
  Scope& scope;
  Names& names;
  int depth = 0;
};

class Expansion {
 public:
  explicit Expansion(const LayerList& list) : list_(list) {}

  std::vector<LayerLine> run() {
    define_numbers();
    Names names;
    const Around around{let_, names};
    expand_list(list_.layers, around);
    for (const auto& [name, tensor] : tensors_) refuse_unread(name, tensor);
    if (lines_.empty()) wrong(list_.layers, "there is no layer in it");
    if (const auto unused = let_.unused())
      wrong(*find_field(std::get<DeckValue::Table>(list_.let.data), *unused),
            "model.let.{}: no size uses it; remove it, or correct its name", *unused);
    return std::move(lines_);
  }

 private:
  template <class... Args>
  [[noreturn]] void wrong(const DeckValue& where, fmt::format_string<Args...> format,
                          Args&&... args) const {
    fail(ExitCode::usage, "{}: {}", place_of(where, list_.file),
         fmt::format(format, std::forward<Args>(args)...));
  }
  /// Runs what fails without a place.
  template <class Function>
  auto placed(const DeckValue& where, const std::string& what, Function&& function) const {
    try {
      return std::forward<Function>(function)();
    } catch (const Error& error) {
      wrong(where, "{}{}{}", what, what.empty() ? "" : ": ", error.what());
    }
  }

  void define_numbers() {
    if (std::holds_alternative<std::monostate>(list_.let.data)) return;
    for (const DeckField& field : table_of(list_.let, "model.let")) {
      if (!is_name(field.name))
        wrong(field.value, "model.let: '{}' is no name; it has letters, digits and _", field.name);
      if (const auto* text = std::get_if<std::string>(&field.value.data))
        let_.set(field.name, *text);
      else
        let_.set(field.name, literal(field.value, "model.let." + field.name));
    }
  }

  [[nodiscard]] const DeckValue::Table& table_of(const DeckValue& value,
                                                 const std::string& what) const {
    const auto* const table = std::get_if<DeckValue::Table>(&value.data);
    if (table == nullptr) wrong(value, "{} is no table", what);
    return *table;
  }
  [[nodiscard]] const DeckValue::List& list_of(const DeckValue& value,
                                               const std::string& what) const {
    const auto* const list = std::get_if<DeckValue::List>(&value.data);
    if (list == nullptr) wrong(value, "{} is no list of layers", what);
    return *list;
  }
  [[nodiscard]] const std::string& text_of(const DeckValue& value, const std::string& what) const {
    const auto* const text = std::get_if<std::string>(&value.data);
    if (text == nullptr) wrong(value, "{} is no text", what);
    return *text;
  }
  /// true and false are 1 and 0.
  [[nodiscard]] Number literal(const DeckValue& value, const std::string& what) const {
    if (const auto* whole = std::get_if<std::int64_t>(&value.data)) return *whole;
    if (const auto* flag = std::get_if<bool>(&value.data)) return std::int64_t{*flag ? 1 : 0};
    const auto* const real = std::get_if<double>(&value.data);
    if (real == nullptr) wrong(value, "{} is neither a number nor an expression", what);
    if (!std::isfinite(*real)) wrong(value, "{} is not finite", what);
    return *real;
  }
  [[nodiscard]] Number number(const DeckValue& value, const std::string& what,
                              const Scope& scope) const {
    const auto* const text = std::get_if<std::string>(&value.data);
    if (text == nullptr) return literal(value, what);
    return placed(value, what, [&] {
      return evaluate(*text, [&](const std::string& name) { return scope.at(name); });
    });
  }
  /// A name with the values of what it has in braces.
  [[nodiscard]] std::string name(const DeckValue& value, const std::string& what,
                                 const Scope& scope) const {
    const std::string& text = text_of(value, what);
    std::string result = placed(value, what, [&] {
      return with_values(text, [&](const std::string& each) { return scope.at(each); });
    });
    if (result.empty() || result.size() > 200) wrong(value, "{} is empty or too long", what);
    for (const char c : result) {
      if (c <= ' ' || c == '/' || c == 127)
        wrong(value, "{} '{}' has blanks or slashes", what, result);
    }
    return result;
  }

  void expand_list(const DeckValue& value, const Around& around) {
    if (around.depth > most_nested)
      wrong(value, "more than {} lists lie in each other", most_nested);
    for (const DeckValue& element : list_of(value, "it")) {
      if (++elements_ > most_elements)
        wrong(element, "the network has more than {} elements", most_elements);
      if (const auto* word = std::get_if<std::string>(&element.data))
        add_layer(kind_of(*word, element), {}, element, around);
      else
        expand_table(table_of(element, "a layer that is no word"), element, around);
    }
  }

  static constexpr std::array structures{"repeat", "residual", "block", "branches"};
  [[nodiscard]] static const Op* find_kind(std::string_view word) {
    for (const Op& op : all_ops()) {
      if (!op.loss && word == op.word()) return &op;
    }
    return nullptr;
  }
  [[nodiscard]] const Op& kind_of(const std::string& word, const DeckValue& where) const {
    if (const Op* kind = find_kind(word)) return *kind;
    wrong(where, "'{}' is no kind of layer; known: {}", word, fmt::join(words(), ", "));
  }
  [[nodiscard]] static std::vector<std::string> words() {
    std::vector<std::string> all(structures.begin(), structures.end());
    for (const Op& op : all_ops()) {
      if (!op.loss) all.emplace_back(op.word());
    }
    std::ranges::sort(all);
    return all;
  }
  [[nodiscard]] static bool begins_element(const DeckField& field) {
    return std::ranges::find(structures, field.name) != structures.end() ||
           find_kind(field.name) != nullptr;
  }

  void expand_table(const DeckValue::Table& table, const DeckValue& where, const Around& around) {
    const auto head = std::ranges::find_if(table, begins_element);
    if (const DeckValue* from = find_field(table, "from"))
      current_ = read_tensor(name(*from, "from", around.scope), *from);
    if (head != table.end()) {
      expand_head(*head, table, where, around);
    } else if (find_field(table, "save") == nullptr) {
      std::vector<std::string> names;
      for (const DeckField& field : table) names.push_back(field.name);
      wrong(where, "none of its keys ({}) is a kind of layer; known: {}", fmt::join(names, ", "),
            fmt::join(words(), ", "));
    } else {
      allow(table, {"save", "from"});
    }
    if (const DeckValue* save = find_field(table, "save"))
      save_tensor(name(*save, "save", around.scope), *save);
  }

  void expand_head(const DeckField& head, const DeckValue::Table& table, const DeckValue& where,
                   const Around& around) {
    if (head.name == "repeat") return repeat(head.value, table, where, around);
    if (head.name == "residual") return add_residual(head.value, table, around);
    if (head.name == "block") return add_block(head.value, table, where, around);
    if (head.name == "branches") return add_branches(head.value, table, around);
    add_layer(kind_of(head.name, where), table, where, around);
  }

  /// All keys of a table must be among these.
  void allow(const DeckValue::Table& table, std::vector<std::string> names) const {
    for (const DeckField& field : table) {
      if (std::ranges::find(names, field.name) == names.end())
        wrong(field.value, "{} is not known here; known: {}", field.name, fmt::join(names, ", "));
    }
  }

  /// Names below an element: of one without a name, its layers are counted with those around it.
  template <class Expand>
  void below(const DeckValue::Table& table, Scope& scope, const Around& around, Expand&& expand) {
    const DeckValue* const given = find_field(table, "name");
    if (given == nullptr) return expand(Around{scope, around.names, around.depth + 1});
    ++around.names.count;
    Names own{around.names.prefix + name(*given, "name", scope) + "."};
    expand(Around{scope, own, around.depth + 1});
  }

  void repeat(const DeckValue& times, const DeckValue::Table& table, const DeckValue& where,
              const Around& around) {
    allow(table, {"repeat", "index", "layers", "name", "save", "from"});
    const Number count = number(times, "repeat", around.scope);
    const double real = as_real(count);
    if (!(real >= 0 && real <= most_repeats) || real != std::floor(real))
      wrong(times, "repeat = {} is no whole number from 0 to {}", real, most_repeats);
    const DeckValue* const layers = find_field(table, "layers");
    if (layers == nullptr) wrong(where, "repeat has no layers");
    const DeckValue* const index = find_field(table, "index");
    const std::string variable = index == nullptr ? "i" : text_of(*index, "index");
    if (!is_name(variable)) wrong(*index, "index = '{}' is no name", variable);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(real); ++i) {
      Scope scope(&around.scope);
      scope.set(variable, i);
      below(table, scope, around, [&](const Around& inner) { expand_list(*layers, inner); });
    }
  }

  /// The shortcut comes first, so that the addition directly follows the branch it works on.
  void add_residual(const DeckValue& layers, const DeckValue::Table& table, const Around& around) {
    allow(table, {"residual", "shortcut", "name", "save", "from"});
    const int input = current_;
    int shortcut = input;
    std::string full;
    below(table, around.scope, around, [&](const Around& inner) {
      full = inner.names.prefix;
      if (const DeckValue* other = find_field(table, "shortcut")) {
        expand_list(*other, inner);
        shortcut = std::exchange(current_, input);
      }
      expand_list(layers, inner);
    });
    if (find_field(table, "name") == nullptr)
      full = counted(around.names);
    else
      full.pop_back();
    add_line(kind_of("add", layers), full, {}, {current_, shortcut}, "its input", layers);
  }

  void add_block(const DeckValue& called, const DeckValue::Table& table, const DeckValue& where,
                 const Around& around) {
    const std::string& wanted = text_of(called, "block");
    const auto* const blocks = std::get_if<DeckValue::Table>(&list_.blocks.data);
    const DeckValue* const body = blocks == nullptr ? nullptr : find_field(*blocks, wanted);
    if (body == nullptr) {
      std::vector<std::string> names;
      for (const DeckField& field : blocks == nullptr ? DeckValue::Table() : *blocks)
        names.push_back(field.name);
      wrong(called, "there is no block '{}'; known: {}", wanted,
            names.empty() ? "none" : fmt::to_string(fmt::join(names, ", ")));
    }
    Scope scope(&let_);
    for (const DeckField& field : table) {
      if (field.name == "block" || field.name == "name" || field.name == "save" ||
          field.name == "from")
        continue;
      if (!is_name(field.name)) wrong(field.value, "'{}' is no name", field.name);
      scope.set(field.name, number(field.value, field.name, around.scope));
    }
    // The name is that of the caller.
    const auto expand = [&](const Around& inner) {
      expand_list(*body, Around{scope, inner.names, inner.depth});
    };
    below(table, around.scope, around, expand);
    if (const auto unused = scope.unused())
      wrong(where, "block '{}' makes no use of {}", wanted, *unused);
  }

  /// Each begins with what was there before; what they leave is joined in their order.
  void add_branches(const DeckValue& value, const DeckValue::Table& table, const Around& around) {
    allow(table, {"branches", "join", "name", "save", "from"});
    const DeckValue* const join = find_field(table, "join");
    const std::string word = join == nullptr ? "concat" : text_of(*join, "join");
    const Op& kind = kind_of(word, value);
    if (!kind.joins) wrong(join == nullptr ? value : *join, "{} joins no tensors", word);
    const DeckValue::List& branches = list_of(value, "branches");
    if (branches.size() < 2) wrong(value, "there must be two branches or more");
    const int input = current_;
    std::vector<int> ends;
    std::string full;
    below(table, around.scope, around, [&](const Around& inner) {
      full = inner.names.prefix;
      for (const DeckValue& branch : branches) {
        current_ = input;
        expand_list(branch, inner);
        ends.push_back(current_);
      }
    });
    if (find_field(table, "name") == nullptr)
      full = counted(around.names);
    else
      full.pop_back();
    current_ = ends.front();
    for (std::size_t b = 1; b < ends.size(); ++b)
      add_line(kind, full, {}, {current_, ends[b]}, fmt::format("branch {}", b + 1), value);
  }

  void add_layer(const Op& kind, const DeckValue::Table& table, const DeckValue& where,
                 const Around& around) {
    const std::string word = kind.word();
    const DeckValue* const given = find_field(table, "name");
    const std::string full = given == nullptr
                                 ? counted(around.names)
                                 : around.names.prefix + name(*given, "name", around.scope);
    if (given != nullptr) ++around.names.count;
    if (kind.joins) return add_joining(kind, table, full, where, around);
    Arguments arguments;
    std::vector<LineInitial> starts;
    for (const DeckField& field : table) {
      const std::string& key = field.name;
      if (key == "name" || key == "save" || key == "from") continue;
      if (key == "init" || key == "init_bias") {
        starts.push_back(start_of(field, around.scope));
        continue;
      }
      const bool is_main = key == word;
      if (is_main && field.value == DeckValue{true}) continue;
      if (is_main && kind.arguments.empty())
        wrong(field.value, "{}: there is no size to give; write {} = true", word, word);
      const std::string argument = is_main ? kind.main() : key;
      arguments.push_back({argument, as_real(number(field.value, key, around.scope))});
    }
    // What shapes do not decide is told here.
    placed(where, "",
           [&] { return GivenArguments(full + ": " + word, kind.arguments, arguments); });
    add_line(kind, full, std::move(arguments), {current_}, "", where);
    lines_.back().starts = std::move(starts);
  }

  /// With tensors that have names, one after the other.
  void add_joining(const Op& kind, const DeckValue::Table& table, const std::string& full,
                   const DeckValue& where, const Around& around) {
    allow(table, {kind.word(), "name", "save", "from"});
    const DeckValue* const value = find_field(table, kind.word());
    if (value == nullptr)
      wrong(where, "{}: say what with, as in {{ {} = \"skip\" }}", kind.word(), kind.word());
    DeckValue::List one{*value};
    const auto* const several = std::get_if<DeckValue::List>(&value->data);
    for (const DeckValue& each : several == nullptr ? one : *several) {
      const std::string other = name(each, kind.word(), around.scope);
      const int layer = read_tensor(other, each);
      const int line = tensors_.at(other).place.line;
      add_line(kind, full, {}, {current_, layer},
               line > 0 ? fmt::format("{}, line {}", other, line) : other, where);
    }
  }

  LineInitial start_of(const DeckField& field, const Scope& scope) const {
    using Kind = Initial::Kind;
    LineInitial start{.bias = field.name == "init_bias", .initial = {}};
    const std::string& text = text_of(field.value, field.name);
    if (text == "zeros") {
      start.initial = zeros();
    } else if (text == "ones") {
      start.initial = ones();
    } else if (text == "kaiming_uniform" || text == "kaiming_normal" || text == "xavier_uniform" ||
               text == "xavier_normal" || text == "kaiming_uniform_fan_out" ||
               text == "kaiming_normal_fan_out") {
      if (start.bias) wrong(field.value, "init_bias: {} is for weights", text);
      start.scale = text.starts_with("x")       ? LineInitial::Scale::xavier
                    : text.ends_with("fan_out") ? LineInitial::Scale::kaiming_fan_out
                                                : LineInitial::Scale::kaiming;
      start.initial.kind = text.find("uniform") != std::string::npos ? Kind::uniform : Kind::normal;
    } else {
      const std::map<std::string, Kind, std::less<>> kinds = {
          {"constant", Kind::constant}, {"uniform", Kind::uniform}, {"normal", Kind::normal}};
      const std::size_t open = text.find('(');
      const auto kind = kinds.find(text.substr(0, open));
      if (open == std::string::npos || !text.ends_with(')') || kind == kinds.end())
        wrong(field.value,
              "{} = '{}' is unknown; known: zeros, ones, constant(x), uniform(bound), "
              "normal(deviation), kaiming_uniform, kaiming_normal, the same with _fan_out, "
              "xavier_uniform, xavier_normal",
              field.name, text);
      const std::string size = text.substr(open + 1, text.size() - open - 2);
      start.initial = {kind->second, as_real(number({size, field.value.line, field.value.column},
                                                    field.name, scope))};
      if (kind->second != Kind::constant && start.initial.scale < 0)
        wrong(field.value, "{} = '{}' is negative", field.name, text);
    }
    return start;
  }

  [[nodiscard]] static std::string counted(Names& names) {
    return names.prefix + std::to_string(names.count++);
  }

  void add_line(const Op& kind, const std::string& full, Arguments arguments,
                std::vector<int> inputs, const std::string& joins, const DeckValue& where) {
    if (lines_.size() == most_layers)
      wrong(where, "the network has more than {} layers", most_layers);
    lines_.push_back({.kind = &kind,
                      .name = full,
                      .arguments = std::move(arguments),
                      .inputs = std::move(inputs),
                      .joins = joins,
                      .place = {.data = {}, .line = where.line, .column = where.column}});
    current_ = static_cast<int>(lines_.size()) - 1;
  }

  void save_tensor(const std::string& name, const DeckValue& where) {
    const auto before = tensors_.find(name);
    if (before != tensors_.end()) refuse_unread(name, before->second);
    tensors_[name] = {current_, {.data = {}, .line = where.line, .column = where.column}};
  }
  int read_tensor(const std::string& name, const DeckValue& where) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) {
      std::vector<std::string> names;
      for (const auto& [known, tensor] : tensors_) names.push_back(known);
      wrong(where, "nothing before it is saved as '{}'; known: {}", name,
            names.empty() ? "none" : fmt::to_string(fmt::join(names, ", ")));
    }
    found->second.read = true;
    return found->second.layer;
  }
  void refuse_unread(const std::string& name, const NamedTensor& tensor) const {
    if (!tensor.read) wrong(tensor.place, "nobody reads what is saved as '{}'", name);
  }

  const LayerList& list_;
  Scope let_;
  std::vector<LayerLine> lines_;
  std::map<std::string, NamedTensor> tensors_;
  int current_ = -1;
  std::int64_t elements_ = 0;
};

}  // namespace

std::vector<LayerLine> expand(const LayerList& list) {
  return Expansion(list).run();
}

}  // namespace carousel
