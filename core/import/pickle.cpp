// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/import/pickle.hpp"

#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/base/check.hpp"

namespace carousel {
namespace {

using Kind = Pickled::Kind;
using Pointer = std::shared_ptr<Pickled>;

[[noreturn]] void damaged(const char* what) {
  fail(ExitCode::bad_data, "a damaged pickle: {}", what);
}

/// Each character of UTF-8 as one byte; how Python 3 writes bytes by protocol 2.
std::string latin1(std::string_view text) {
  std::string bytes;
  for (std::size_t k = 0; k < text.size(); ++k) {
    const auto first = static_cast<unsigned char>(text[k]);
    if (first < 0x80) {
      bytes += text[k];
    } else {
      if ((first & 0xfc) != 0xc0 || k + 1 == text.size()) damaged("text that is not latin1");
      bytes += static_cast<char>((first & 3) << 6 | (text[++k] & 0x3f));
    }
  }
  return bytes;
}

/// The stack machine that a pickle is a program of.
class Machine {
 public:
  explicit Machine(std::span<const std::byte> program) : left_(program) {}

  Pickled run() {
    while (true) {
      const auto code = static_cast<unsigned char>(take(1).front());
      if (code == '.') break;
      step(code);
    }
    return std::move(*pop());
  }

 private:
  void step(unsigned char code) {
    if (push_number(code) || push_text(code) || push_collection(code) || use_memory(code)) return;
    switch (code) {
      case 0x80:
        if (const std::uint64_t protocol = little(1); protocol > 4)
          fail(ExitCode::bad_data, "a pickle of protocol {}; write it by protocol 4", protocol);
        return;
      case 0x95:
        take(8);
        return;  // frame
      case '(':
        marks_.push_back(stack_.size());
        return;
      case '0':
        pop();
        return;
      case '1':
        pop_marked();
        return;
      case 'c': {
        const std::string module = line();
        return push_object(module + " " + line());
      }
      case 0x93: {
        const Pointer name = pop();
        return push_object(pop()->text + " " + name->text);
      }
      case 'R':
        return call();
      case 'b': {
        const Pointer state = pop();
        top().items.push_back(state);
        return;
      }
      default:
        fail(ExitCode::bad_data, "a pickle with a step 0x{:02x} that data sets lack", code);
    }
  }

  bool push_number(unsigned char code) {
    switch (code) {
      case 'N':
        push(Pickled{});
        return true;
      case 0x88:
        push_integer(1);
        return true;
      case 0x89:
        push_integer(0);
        return true;
      case 'J':
        push_integer(static_cast<std::int32_t>(little(4)));
        return true;
      case 'K':
        push_integer(static_cast<std::int64_t>(little(1)));
        return true;
      case 'M':
        push_integer(static_cast<std::int64_t>(little(2)));
        return true;
      case 0x8a: {
        const std::uint64_t bytes = little(1);
        if (bytes > 8) damaged("an integer of many bytes");
        push_integer(static_cast<std::int64_t>(little(bytes)));
        return true;
      }
      default:
        return false;
    }
  }

  bool push_text(unsigned char code) {
    std::size_t width = 0;  // of the length
    switch (code) {
      case 'U':
      case 'C':
      case 0x8c:
        width = 1;
        break;
      case 'T':
      case 'B':
      case 'X':
        width = 4;
        break;
      case 0x8d:
      case 0x8e:
        width = 8;
        break;
      default:
        return false;
    }
    const std::span<const std::byte> bytes = take(little(width));
    push_words({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return true;
  }

  bool push_collection(unsigned char code) {
    switch (code) {
      case ']':
      case ')':
        push_sequence({});
        return true;
      case '}':
        push_made(Kind::dictionary);
        return true;
      case 'l':
      case 't':
        push_sequence(pop_marked());
        return true;
      case 0x85:
      case 0x86:
      case 0x87:
        push_sequence(pop_last(code - 0x84u));
        return true;
      case 'a':
        add_items(pop_last(1));
        return true;
      case 'e':
        add_items(pop_marked());
        return true;
      case 's':
        add_entries(pop_last(2));
        return true;
      case 'u':
        add_entries(pop_marked());
        return true;
      default:
        return false;
    }
  }

  bool use_memory(unsigned char code) {
    switch (code) {
      case 'q':
        memory_[little(1)] = last();
        return true;
      case 'r':
        memory_[little(4)] = last();
        return true;
      case 0x94:
        memory_[memory_.size()] = last();
        return true;
      case 'h':
        push(recall(little(1)));
        return true;
      case 'j':
        push(recall(little(4)));
        return true;
      default:
        return false;
    }
  }

  /// A function with arguments; only the one that turns text into bytes does anything here.
  void call() {
    const Pointer arguments = pop();
    const Pointer function = pop();
    if (function->text == "_codecs encode" && !arguments->items.empty())
      return push_words(latin1(arguments->items.front()->text));
    push_object(function->text);
    top().items = arguments->items;
  }

  std::span<const std::byte> take(std::uint64_t bytes) {
    if (bytes > left_.size()) damaged("it ends too early");
    const auto taken = left_.first(static_cast<std::size_t>(bytes));
    left_ = left_.subspan(taken.size());
    return taken;
  }
  std::uint64_t little(std::size_t bytes) {
    const auto taken = take(bytes);
    std::uint64_t value = 0;
    for (std::size_t k = taken.size(); k > 0; --k)
      value = value << 8 | std::to_integer<std::uint64_t>(taken[k - 1]);
    return value;
  }
  std::string line() {
    std::string text;
    while (true) {
      const auto next = static_cast<char>(take(1).front());
      if (next == '\n') return text;
      text += next;
    }
  }

  void push(Pointer value) { stack_.push_back(std::move(value)); }
  void push(Pickled value) { push(std::make_shared<Pickled>(std::move(value))); }
  void push_integer(std::int64_t value) { push({.kind = Kind::integer, .integer = value}); }
  void push_words(std::string words) { push({.kind = Kind::text, .text = std::move(words)}); }
  /// What may hold other things. Data sets have few of them; many could nest deeper than the
  /// stack of a destructor.
  void push_made(Kind kind) {
    constexpr int most = 1000;
    if (++made_ > most) damaged("too many collections");
    push({.kind = kind});
  }
  void push_object(const std::string& name) {
    push_made(Kind::object);
    top().text = name;
  }
  void push_sequence(std::vector<Pointer> items) {
    push_made(Kind::sequence);
    top().items = std::move(items);
  }

  const Pointer& last() const {
    if (stack_.empty()) damaged("it takes what is not there");
    return stack_.back();
  }
  Pickled& top() { return *last(); }
  Pointer pop() {
    Pointer value = last();
    stack_.pop_back();
    return value;
  }
  std::vector<Pointer> pop_last(std::size_t count) {
    if (count > stack_.size()) damaged("it takes what is not there");
    std::vector<Pointer> values(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return values;
  }
  std::vector<Pointer> pop_marked() {
    if (marks_.empty() || marks_.back() > stack_.size()) damaged("it takes what is not there");
    const std::size_t mark = marks_.back();
    marks_.pop_back();
    return pop_last(stack_.size() - mark);
  }
  void add_items(const std::vector<Pointer>& items) {
    if (top().kind != Kind::sequence) damaged("items of what is no list");
    top().items.insert(top().items.end(), items.begin(), items.end());
  }
  void add_entries(const std::vector<Pointer>& items) {
    if (top().kind != Kind::dictionary || items.size() % 2 != 0)
      damaged("entries of what is no dictionary");
    for (std::size_t k = 0; k < items.size(); k += 2) top().entries[items[k]->text] = items[k + 1];
  }
  Pointer recall(std::uint64_t place) const {
    const auto found = memory_.find(place);
    if (found == memory_.end()) damaged("it takes what is not there");
    return found->second;
  }

  std::span<const std::byte> left_;
  std::vector<Pointer> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, Pointer> memory_;
  int made_ = 0;
};

}  // namespace

Pickled read_pickle(std::span<const std::byte> bytes) {
  return Machine(bytes).run();
}

std::span<const std::uint8_t> bytes_of_array(const Pickled& array) {
  // numpy's state of an array: version, shape, type, whether in Fortran's order, bytes.
  constexpr std::size_t parts = 5;
  const auto is = [](const Pickled& value, Kind kind) { return value.kind == kind; };
  if (is(array, Kind::object) && !array.items.empty() &&
      array.items.back()->items.size() == parts) {
    const auto& state = array.items.back()->items;
    const Pickled& type = *state[2];
    const bool is_type =
        is(type, Kind::object) && type.text == "numpy dtype" && !type.items.empty();
    if (is_type && type.items.front()->text != "u1")
      fail(ExitCode::bad_data, "an array of numpy's type {}, not u1 (uint8)",
           type.items.front()->text);
    if (is_type && state[3]->integer == 0 && is(*state[4], Kind::text))
      return {reinterpret_cast<const std::uint8_t*>(state[4]->text.data()), state[4]->text.size()};
  }
  fail(ExitCode::bad_data, "a pickle whose data are no array of numpy in C order");
}

}  // namespace carousel
