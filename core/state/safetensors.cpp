// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/state/safetensors.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/check.hpp"
#include "core/base/number_layout.hpp"
#include "core/base/text.hpp"

namespace carousel {
namespace {

using Json = nlohmann::json;

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t most_header_bytes = 100'000'000;  // as the format has it
constexpr std::size_t most_tensors = 100'000;
constexpr int most_nested = 3;  // file, tensor, its shape
constexpr std::size_t most_axes = 16;

/// Bytes of a number; 0: none that we know.
std::int64_t number_bytes(const std::string& type) {
  const std::map<std::string, std::int64_t, std::less<>> known = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
      {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},
      {"I32", 4},  {"F32", 4}, {"U64", 8}, {"I64", 8},     {"F64", 8}};
  const auto found = known.find(type);
  return found == known.end() ? 0 : found->second;
}

/// The format's numbers lie with their lowest byte first, as on all machines that we build for.
std::uint64_t header_length(std::span<const std::byte> image) {
  std::uint64_t length = 0;
  std::memcpy(&length, image.data(), length_bytes);
  return length;
}

/// Reads one file.
class Reader {
 public:
  Reader(const std::string& path, std::span<const std::byte> image) : path_(path), image_(image) {}

  SafeTensors read() {
    if (image_.size() < length_bytes) wrong("it is shorter than the length of its header");
    const std::uint64_t length = header_length(image_);
    if (length > image_.size() - length_bytes)
      wrong("its header has {} bytes, the file {}; was it cut off?", length, image_.size());
    if (length > most_header_bytes) wrong("its header has {} bytes", length);
    numbers_ = image_.subspan(length_bytes + length);
    const Json header = parse(image_.subspan(length_bytes, length));
    SafeTensors result;
    for (const auto& [name, value] : header.items()) {
      if (name == "__metadata__")
        result.metadata = metadata(value);
      else
        result.tensors.push_back(tensor(name, value));
    }
    order(result.tensors);
    return result;
  }

 private:
  template <class... Args>
  [[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ExitCode::bad_data, "{}: no sound file of safetensors: {}", path_,
         fmt::format(format, std::forward<Args>(args)...));
  }

  /// The header, of which nothing is nested deeper than it may be and no name stands twice.
  [[nodiscard]] Json parse(std::span<const std::byte> header) const {
    std::set<std::string> names;
    const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
      if (depth > most_nested) wrong("its header is nested too deeply");
      if (event != Json::parse_event_t::key || depth != 1) return true;
      if (names.size() == most_tensors) wrong("it has more than {} tensors", most_tensors);
      if (!names.insert(parsed.get<std::string>()).second)
        wrong("{} is there twice", in_quotes(parsed.get<std::string>()));
      return true;
    };
    const auto* const text = reinterpret_cast<const char*>(header.data());
    try {
      Json parsed = Json::parse(text, text + header.size(), check);
      if (!parsed.is_object()) wrong("its header is no table of tensors");
      return parsed;
    } catch (const Json::exception& error) {
      wrong("its header is no JSON");
    }
  }

  [[nodiscard]] std::map<std::string, std::string> metadata(const Json& value) const {
    std::map<std::string, std::string> result;
    if (!value.is_object()) wrong("its __metadata__ is no table");
    for (const auto& [name, text] : value.items()) {
      if (!text.is_string()) wrong("its __metadata__ holds other things than texts");
      result.emplace(name, text.get<std::string>());
    }
    return result;
  }

  /// A list of whole numbers from 0 to 2^40.
  [[nodiscard]] std::vector<std::int64_t> whole_numbers(const std::string& name,
                                                        const Json& list) const {
    constexpr std::uint64_t most = std::uint64_t{1} << 40;
    if (!list.is_array() || list.size() > most_axes)
      wrong("{} has no lists of whole numbers", in_quotes(name));
    std::vector<std::int64_t> result;
    for (const Json& each : list) {
      if (!each.is_number_unsigned() || each.get<std::uint64_t>() > most)
        wrong("{} has a size or place that is no whole number below 2^40", in_quotes(name));
      result.push_back(each.get<std::int64_t>());
    }
    return result;
  }

  [[nodiscard]] SafeTensor tensor(const std::string& name, const Json& value) const {
    if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
        !value.contains("shape") || !value.contains("data_offsets") || !value["dtype"].is_string())
      wrong("{} does not have dtype, shape and data_offsets", in_quotes(name));
    SafeTensor result{.name = name,
                      .type = value["dtype"].get<std::string>(),
                      .shape = whole_numbers(name, value["shape"]),
                      .bytes = {}};
    const std::vector<std::int64_t> place = whole_numbers(name, value["data_offsets"]);
    const auto size = static_cast<std::int64_t>(numbers_.size());
    if (place.size() != 2 || place[0] > place[1] || place[1] > size)
      wrong("{} does not lie within the file; was it cut off?", in_quotes(name));
    const std::int64_t of_number = number_bytes(result.type);
    if (of_number == 0)
      wrong("{} is of type {}, which nobody knows", in_quotes(name), in_quotes(result.type));
    std::int64_t bytes = std::ranges::count(result.shape, 0) > 0 ? 0 : of_number;
    for (const std::int64_t axis : result.shape) {
      if (bytes > 0 && bytes > size / axis)
        wrong("{} has more numbers than the file", in_quotes(name));
      bytes *= axis;
    }
    if (bytes != place[1] - place[0])
      wrong("{} has {} bytes, its shape and type ask for {}", in_quotes(name), place[1] - place[0],
            bytes);
    result.bytes = numbers_.subspan(static_cast<std::size_t>(place[0]),
                                    static_cast<std::size_t>(place[1] - place[0]));
    return result;
  }

  /// Sorts tensors by where they lie, which must be everywhere and never twice.
  void order(std::vector<SafeTensor>& tensors) const {
    std::ranges::stable_sort(tensors, [](const SafeTensor& a, const SafeTensor& b) {
      return std::pair(a.bytes.data(), a.bytes.size()) < std::pair(b.bytes.data(), b.bytes.size());
    });
    const std::byte* at = numbers_.data();
    for (const SafeTensor& tensor : tensors) {
      if (tensor.bytes.data() != at)
        wrong("{} does not lie right behind the tensor before", in_quotes(tensor.name));
      at += tensor.bytes.size();
    }
    if (at != numbers_.data() + numbers_.size()) wrong("it goes on behind its last tensor");
  }

  const std::string& path_;
  std::span<const std::byte> image_;
  std::span<const std::byte> numbers_;  // of all tensors
};

}  // namespace

bool SafeTensor::has_reals() const {
  return type == "F64" || type == "F32" || type == "F16" || type == "BF16";
}

std::vector<real> SafeTensor::values() const {
  CAROUSEL_CHECK(has_reals(), "{} holds {}", name, type);
  const std::int64_t of_number = type == "F64" ? 8 : type == "F32" ? 4 : 2;
  std::vector<real> result(bytes.size() / static_cast<std::size_t>(of_number));
  if (type != "BF16") {
    decode_numbers<real>({.bytes = static_cast<int>(of_number)}, bytes.data(), of_number, result);
    return result;
  }
  // The upper half of a float.
  std::vector<std::byte> floats(2 * bytes.size());
  for (std::size_t k = 0; k < result.size(); ++k)
    std::memcpy(floats.data() + 4 * k + 2, bytes.data() + 2 * k, 2);
  decode_numbers<real>({.bytes = 4}, floats.data(), 4, result);
  return result;
}

bool is_safetensors(std::span<const std::byte> image) {
  return image.size() > length_bytes && image[length_bytes] == std::byte{'{'};
}

SafeTensors read_safetensors(const std::string& path, std::span<const std::byte> image) {
  return Reader(path, image).read();
}

std::vector<std::byte> write_safetensors(std::span<const WrittenTensor> tensors,
                                         const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header;
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t end = 0;
  for (const WrittenTensor& tensor : tensors) {
    const std::size_t begin = end;
    end += tensor.values.size_bytes();
    header[tensor.name] = {{"dtype", sizeof(real) == 8 ? "F64" : "F32"},
                           {"shape", tensor.shape},
                           {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  // Numbers begin at a multiple of their size.
  text.resize((text.size() + length_bytes - 1) / length_bytes * length_bytes, ' ');
  const std::uint64_t length = text.size();
  std::vector<std::byte> image(length_bytes + text.size() + end);
  std::memcpy(image.data(), &length, length_bytes);
  std::memcpy(image.data() + length_bytes, text.data(), text.size());
  std::byte* to = image.data() + length_bytes + text.size();
  for (const WrittenTensor& tensor : tensors) {
    std::memcpy(to, tensor.values.data(), tensor.values.size_bytes());
    to += tensor.values.size_bytes();
  }
  return image;
}

}  // namespace carousel
