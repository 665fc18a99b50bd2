// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/state/input_record.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/check.hpp"
#include "core/record/stored_shape.hpp"

namespace carousel {
namespace {

/// "3 classes" or "3 classes, cat, dog, ...": enough to know a data set by.
std::string describe(const std::vector<std::string>& names) {
  constexpr std::size_t most = 3;
  return fmt::format("{} classes ({}{})", names.size(),
                     fmt::join(names.begin(), names.begin() + std::min(most, names.size()), ", "),
                     names.size() > most ? ", ..." : "");
}

}  // namespace

std::string to_string(const std::vector<double>& statistics) {
  return fmt::format("[{}]", fmt::join(statistics, ", "));
}

bool same_statistics(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr double rounding = 1e-6;
  return std::ranges::equal(a, b, [](double x, double y) {
    return std::abs(x - y) <= rounding * std::max(std::abs(x), std::abs(y));
  });
}

std::optional<InputDifference> class_difference(const InputRecord& first,
                                                const InputRecord& second) {
  const std::vector<std::string>& a = first.class_names;
  const std::vector<std::string>& b = second.class_names;
  if (a.size() != b.size()) return InputDifference{"data set", describe(a), describe(b)};
  const auto [x, y] = std::ranges::mismatch(a, b);
  if (x == a.end()) return {};
  return InputDifference{fmt::format("class {}", x - a.begin()), *x, *y};
}

std::optional<InputDifference> difference(const InputRecord& first, const InputRecord& second) {
  if (first.shape != second.shape)
    return InputDifference{"shape of an input", to_string(first.shape), to_string(second.shape)};
  if (first.resize != second.resize)
    return InputDifference{"data.augment.resize", fmt::to_string(first.resize),
                           fmt::to_string(second.resize)};
  if (auto classes = class_difference(first, second)) return classes;
  if (first.target.outputs() != second.target.outputs() || first.target.kind != second.target.kind)
    return InputDifference{"kind of targets", to_string(first.target), to_string(second.target)};
  if (!same_statistics(first.mean, second.mean))
    return InputDifference{"mean", to_string(first.mean), to_string(second.mean), true};
  if (!same_statistics(first.std, second.std))
    return InputDifference{"std", to_string(first.std), to_string(second.std), true};
  if (!same_statistics(first.target_mean, second.target_mean))
    return InputDifference{"mean of targets", to_string(first.target_mean),
                           to_string(second.target_mean), true};
  if (!same_statistics(first.target_std, second.target_std))
    return InputDifference{"std of targets", to_string(first.target_std),
                           to_string(second.target_std), true};
  return {};
}

void write_inputs(hdf5::File& file, const InputRecord& inputs, const std::string& group) {
  file.create_group(group);
  file.set_list(group, "mean", inputs.mean);
  file.set_list(group, "std", inputs.std);
  if (!inputs.class_names.empty()) file.set_list(group, "class_names", inputs.class_names);
  file.set(group, "channels", std::int64_t{inputs.shape.channels});
  write_extents(file, group, "", inputs.shape);
  file.set(group, "resize", std::int64_t{inputs.resize});
  const TargetSpec& target = inputs.target;
  if (target.has_labels() && target.pixels() == 1) return;
  file.set(group, "target_numbers", std::int64_t{!target.has_labels()});
  file.set(group, "target_channels", std::int64_t{target.shape.channels});
  write_extents(file, group, "target_", target.shape);
  file.set(group, "target_classes", std::int64_t{target.classes});
  if (target.has_labels()) return;
  file.set_list(group, "target_mean", inputs.target_mean);
  file.set_list(group, "target_std", inputs.target_std);
}

std::optional<InputRecord> read_inputs(const hdf5::File& file, const std::string& group) {
  if (!file.contains(group) || !file.has(group, "mean")) return {};
  const auto number = [&](const char* name) { return read_count(file, group, name); };
  const auto list = [&](const char* name) {
    return file.has(group, name) ? file.reals(group, name) : std::vector<double>();
  };
  const std::vector<std::string> names = file.has(group, "class_names")
                                             ? file.strings(group, "class_names")
                                             : std::vector<std::string>();
  TargetSpec target(static_cast<int>(names.size()));
  if (file.has(group, "target_numbers")) {
    target.kind = number("target_numbers") != 0 ? TargetKind::numbers : TargetKind::labels;
    target.shape = read_extents(file, group, "target_", number("target_channels"));
    target.classes = number("target_classes");
  }
  return InputRecord{.mean = file.reals(group, "mean"),
                     .std = file.reals(group, "std"),
                     .class_names = names,
                     .shape = read_extents(file, group, "", number("channels")),
                     .resize = number("resize"),
                     .target = target,
                     .target_mean = list("target_mean"),
                     .target_std = list("target_std")};
}

std::string inputs_to_json(const InputRecord& inputs) {
  const TargetSpec& target = inputs.target;
  const nlohmann::ordered_json json{{"mean", inputs.mean},
                                    {"std", inputs.std},
                                    {"class_names", inputs.class_names},
                                    {"shape", inputs.shape.extents()},
                                    {"resize", inputs.resize},
                                    {"target_numbers", !target.has_labels()},
                                    {"target_shape", target.shape.extents()},
                                    {"target_classes", target.classes},
                                    {"target_mean", inputs.target_mean},
                                    {"target_std", inputs.target_std}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

InputRecord inputs_from_json(const std::string& path, const std::string& text) {
  const std::string group = "carousel.inputs";
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    const auto number = [&](const char* name, const nlohmann::json& value) {
      return checked_count(path, group, name, value.get<std::int64_t>());
    };
    const auto shape = [&](const char* name) {
      const nlohmann::json& list = json.at(name);
      const std::size_t last = list.size() - 1;  // width; before it the height, and the depth
      return SampleShape{number(name, list.at(0)), number(name, list.at(last - 1)),
                         number(name, list.at(last)), last > 2 ? number(name, list.at(1)) : 1};
    };
    const auto reals = [&](const char* name) { return json.at(name).get<std::vector<double>>(); };
    TargetSpec target(number("target_classes", json.at("target_classes")));
    if (json.at("target_numbers").get<bool>()) target.kind = TargetKind::numbers;
    target.shape = shape("target_shape");
    return {.mean = reals("mean"),
            .std = reals("std"),
            .class_names = json.at("class_names").get<std::vector<std::string>>(),
            .shape = shape("shape"),
            .resize = number("resize", json.at("resize")),
            .target = target,
            .target_mean = reals("target_mean"),
            .target_std = reals("target_std")};
  } catch (const nlohmann::json::exception& error) {
    fail(ExitCode::bad_data, "{}: {} of its metadata is not what Carousel writes: {}", path, group,
         error.what());
  }
}

}  // namespace carousel
