// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/io/schedule_file.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/check.hpp"
#include "core/io/plan_json.hpp"

namespace carousel {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* format = "carousel schedule 1";

/// One action of a file; every complaint names it.
class ActionReader {
 public:
  ActionReader(const Json& json, std::size_t index, const std::string& path,
               const Schedule& schedule, std::int64_t steps)
      : json_(json), index_(index), path_(path), schedule_(schedule), steps_(steps) {}

  [[nodiscard]] int device() const {
    return static_cast<int>(number("device", 0, schedule_.devices() - 1));
  }

  [[nodiscard]] Action read() const {
    // Steps reach into a few periods before and behind; buffers are few.
    const std::int64_t far_step = 8 * std::max<std::int64_t>(steps_, 8);
    const std::int64_t far_time = far_step * schedule_.period_time();
    constexpr std::int64_t far = 1'000'000;
    const int stages = schedule_.rule().stages();
    Action action;
    action.kind = one_of("kind", ActionKind::save);
    if (json_.contains("payload")) action.payload = one_of("payload", Payload::metrics);
    if (json_.contains("direction")) action.direction = direction();
    const bool here = computes(action) || action.kind == ActionKind::release;
    if (here && action.payload != Payload::none)
      refuse("a {} has no payload", to_string(action.kind));
    action.time = number("time", -far_time, far_time);
    action.step = number("step", -far_step, far_step);
    action.version = number("version", -far_step, far_step);
    action.micro_batch =
        static_cast<int>(number("micro_batch", -1, schedule_.rule().micro_batches() - 1));
    action.stage = static_cast<int>(number("stage", least_stage(action), stages - 1));
    action.peer = static_cast<int>(number("peer", -1, schedule_.devices() - 1));
    action.bytes = number("bytes", 0, INT64_MAX);
    const auto groups = std::ssize(schedule_.groups());
    if (json_.contains("group")) action.group = static_cast<int>(number("group", 0, groups - 1));
    if (json_.contains("buffer")) action.buffer = static_cast<int>(number("buffer", 0, far));
    if (json_.contains("source")) action.source = static_cast<int>(number("source", 0, far));
    return action;
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    fail(ExitCode::bad_data, "{}: actions[{}]: {}", path_, index_,
         fmt::format(text, std::forward<Args>(args)...));
  }

  [[nodiscard]] std::int64_t number(const char* key, std::int64_t least, std::int64_t most) const {
    const auto found = json_.find(key);
    if (found == json_.end()) refuse("{} is missing", key);
    if (!found->is_number_integer()) refuse("{} is not an integer", key);
    const bool large = found->is_number_unsigned() && found->get<std::uint64_t>() > INT64_MAX;
    const std::int64_t value = large ? INT64_MAX : found->get<std::int64_t>();
    if (value < least || value > most)
      refuse("{} = {} is not between {} and {}", key, value, least, most);
    return value;
  }

  [[nodiscard]] std::string text(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) refuse("{} is missing", key);
    if (!found->is_string()) refuse("{} is not a text", key);
    return found->get<std::string>();
  }

  /// The value of an enumeration whose last one is `last`, by its name.
  template <class Enum>
  [[nodiscard]] Enum one_of(const char* key, Enum last) const {
    const std::string name = text(key);
    for (int code = 0; code <= static_cast<int>(last); ++code) {
      const auto value = static_cast<Enum>(code);
      if (name == to_string(value)) return value;
    }
    refuse("{} \"{}\" is unknown", key, name.substr(0, 60));
  }

  [[nodiscard]] Direction direction() const {
    const std::string name = text("direction");
    if (name == "send") return Direction::send;
    if (name == "receive") return Direction::receive;
    refuse("direction \"{}\" is unknown; use \"send\" or \"receive\"", name.substr(0, 60));
  }

  /// What crosses a cut arrives at a stage behind another; few actions are about no stage.
  [[nodiscard]] static int least_stage(const Action& action) {
    if (action.payload == Payload::activations) return 1;
    const bool none = action.payload == Payload::token ||
                      (action.payload == Payload::total && is_collective(action));
    return none ? -1 : 0;
  }

  const Json& json_;
  std::size_t index_;
  const std::string& path_;
  const Schedule& schedule_;
  std::int64_t steps_;  // of a period
};

/// Bytes of the messages of every stage, by the names in a file.
std::map<std::string, std::vector<std::int64_t>> bytes_of_stages(const ScheduleSpec& spec) {
  return {{"parameter_bytes", spec.message_bytes}, {"activation_bytes", spec.activation_bytes}};
}

/// For a complaint. The library writes by recursion, and a file may be nested as deeply as it
/// likes.
std::string quoted(const Json& json) {
  const bool nested =
      std::ranges::any_of(json, [](const Json& inner) { return inner.is_structured(); });
  return nested ? "nested" : json.dump().substr(0, 60);
}

/// While a file is read, refuses what a reader would lose: a key that an object has twice.
class UniqueKeys {
 public:
  explicit UniqueKeys(const std::string& path) : path_(path) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& json) {
    if (event == Json::parse_event_t::object_start) {
      keys_.emplace_back();
      if (depth == 2) ++index_;
    } else if (event == Json::parse_event_t::object_end) {
      keys_.pop_back();
    } else if (event == Json::parse_event_t::key) {
      const auto& key = json.get_ref<const std::string&>();
      if (keys_.size() == 1) {
        list_ = key;
        index_ = -1;
      }
      if (!keys_.back().insert(key).second)
        fail(ExitCode::bad_data, "{}: {}{} is given twice", path_, place(), key.substr(0, 60));
    }
    return true;
  }

 private:
  [[nodiscard]] std::string place() const {
    if (keys_.size() == 1) return "";
    const std::string index = index_ < 0 ? "" : fmt::format("[{}]", index_);
    return fmt::format("{}{}: ", list_.substr(0, 60), index);
  }

  const std::string& path_;
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
  std::string list_;                         // the key of the outermost one
  std::int64_t index_ = -1;                  // of an object in that list
};

void expect(const Json& json, const std::string& path, const char* key, const Json& wanted) {
  const auto found = json.find(key);
  if (found == json.end()) fail(ExitCode::bad_data, "{}: {} is missing", path, key);
  if (*found != wanted)
    fail(ExitCode::bad_data, "{}: {} is {}, and the deck asks for {}", path, key, quoted(*found),
         wanted.dump());
}

}  // namespace

std::string schedule_text(const Schedule& schedule) {
  const ParallelConfig& parallel = schedule.parallel();
  const std::int64_t steps = schedule.repeats_after(most_actions);
  std::int64_t count = 0;
  for (int d = 0; d < schedule.devices(); ++d) {
    const bool first = d == 0 || &schedule.program(d) != &schedule.program(d - 1);
    if (first) count += steps * std::ssize(schedule.program(d).actions);
  }
  if (count > most_actions)
    fail(ExitCode::usage,
         "parallel.stages = {}: the devices take turns, and their schedule repeats only after more "
         "than {} actions; use fewer stages",
         parallel.stages, most_actions);
  const Period period = schedule.period();
  std::string text = fmt::format(
      "{{\"format\": \"{}\", \"rule\": \"{}\", \"placement\": \"{}\", \"N\": {}, \"S\": {}, "
      "\"slack\": {}, \"order\": \"{}\", \"reduction\": \"{}\", \"devices\": {}, \"steps\": {},\n",
      format, to_string(parallel.rule), to_string(parallel.placement), parallel.micro_batches,
      parallel.stages, parallel.slack, to_string(parallel.order), to_string(parallel.reduction),
      schedule.devices(), period.steps);
  for (const auto& [key, bytes] : bytes_of_stages(schedule.spec()))
    text += fmt::format("\"{}\": {},\n", key, Json(bytes).dump());
  text += "\"actions\": [";
  const char* separator = "\n";
  for (int d = 0; d < schedule.devices(); ++d) {
    for (const Action& action : period.lists[d]) {
      text += separator + action_json(d, action);
      separator = ",\n";
    }
  }
  return text + "\n]}\n";
}

ScheduleFile read_schedule(std::string_view text, const std::string& path,
                           const Schedule& schedule) {
  const Json json = Json::parse(text, UniqueKeys(path), false);
  if (json.is_discarded() || !json.is_object())
    fail(ExitCode::bad_data, "{}: is not a JSON object; carousel plan --emit writes one", path);
  const ParallelConfig& parallel = schedule.parallel();
  expect(json, path, "format", format);
  expect(json, path, "rule", to_string(parallel.rule));
  expect(json, path, "placement", to_string(parallel.placement));
  expect(json, path, "N", parallel.micro_batches);
  expect(json, path, "S", parallel.stages);
  expect(json, path, "slack", parallel.slack);
  expect(json, path, "order", to_string(parallel.order));
  expect(json, path, "reduction", to_string(parallel.reduction));
  expect(json, path, "devices", schedule.devices());
  // Whoever writes a file anew may leave these out; the checker looks at the bytes of every
  // message.
  for (const auto& [key, bytes] : bytes_of_stages(schedule.spec())) {
    if (json.contains(key) && json[key] != Json(bytes))
      fail(ExitCode::bad_data,
           "{}: is for another model, batch size or precision: {} is {}, and the deck's is {}",
           path, key, quoted(json[key]), Json(bytes).dump());
  }
  const auto steps = json.find("steps");
  if (steps == json.end() || !steps->is_number_integer() || steps->get<std::int64_t>() < 1 ||
      steps->get<std::int64_t>() > most_actions)
    fail(ExitCode::bad_data, "{}: steps is not a positive number of training steps", path);
  const auto actions = json.find("actions");
  if (actions == json.end() || !actions->is_array())
    fail(ExitCode::bad_data, "{}: actions is not a list", path);
  ScheduleFile file{.period = {.steps = steps->get<std::int64_t>(), .lists{}}, .places{}};
  file.period.lists.resize(schedule.devices());
  file.places.resize(schedule.devices());
  for (std::size_t k = 0; k < actions->size(); ++k) {
    if (!(*actions)[k].is_object())
      fail(ExitCode::bad_data, "{}: actions[{}]: is not an object", path, k);
    const ActionReader reader((*actions)[k], k, path, schedule, file.period.steps);
    file.period.lists[reader.device()].push_back(reader.read());
    file.places[reader.device()].push_back(k);
  }
  return file;
}

}  // namespace carousel
