// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/record/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <string_view>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/descriptor.hpp"
#include "core/record/run_reader.hpp"

namespace carousel {
namespace {

/// The format counts in microseconds; whole nanoseconds keep the order of what touches.
double microseconds(double seconds) {
  return std::round(seconds * 1e9) / 1e3;
}

/// What both ends of a message agree on; one pair of devices has at most one such message.
struct MessageKey {
  std::string_view kind;
  std::int64_t step = 0;
  int micro_batch = 0;
  int stage = 0;
  int piece = 0;
  int from = 0;
  int to = 0;

  auto operator<=>(const MessageKey&) const = default;
};

MessageKey key_of(const MessageRecord& message, int from, int to) {
  return {message.kind, message.step, message.micro_batch, message.stage, message.piece, from, to};
}

/// The step after the last one that is drawn.
std::int64_t end_of_trace(std::span<const DeviceProfile> devices, std::int64_t limit) {
  std::map<std::int64_t, std::int64_t> actions;  // of each step, on all devices
  for (const DeviceProfile& device : devices) {
    for (const ActionRecord& action : device.actions) ++actions[action.step];
  }
  std::int64_t sum = 0;
  for (const auto& [step, count] : actions) {
    sum += count;
    if (sum > limit && step != actions.begin()->first) return step;
  }
  return std::numeric_limits<std::int64_t>::max();
}

/// Lines of JSON, one event each.
class Events {
 public:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    text_ += text_.empty() ? "\n" : ",\n";
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void name_tracks(Events& events, const PlanRecord& plan, int devices) {
  events.add(
      R"({{"ph":"M","pid":0,"name":"process_name","args":{{"name":"{}, {}, N = {}, S = {}"}}}})",
      plan.rule, plan.placement, plan.micro_batches, plan.stages);
  for (int d = 0; d < devices; ++d) {
    events.add(
        R"({{"ph":"M","pid":0,"tid":{0},"name":"thread_name","args":{{"name":"device {0}"}}}})", d);
    events.add(
        R"({{"ph":"M","pid":0,"tid":{0},"name":"thread_sort_index","args":{{"sort_index":{0}}}}})",
        d);
  }
}

void add_action(Events& events, int device, const ActionRecord& action) {
  const double begin = microseconds(action.begin);
  const std::string stage = action.stage < 0 ? "" : fmt::format(" {}", action.stage);
  events.add(R"({{"ph":"X","pid":0,"tid":{},"ts":{:.3f},"dur":{:.3f},"name":"{}{}",)"
             R"("args":{{"step":{},"micro_batch":{},"stage":{},"piece":{},"version":{}}}}})",
             device, begin, microseconds(action.end) - begin, action.kind, stage, action.step,
             action.micro_batch, action.stage, action.piece, action.version);
}

/// When each message of a device was taken notice of: the begin of its wait, which follows in the
/// same order. Viewers hang a flow on what its end lies in, and a message often lands long before.
std::vector<double> begins_of_waits(const DeviceProfile& device) {
  std::vector<double> begins;
  for (const ActionRecord& action : device.actions) {
    if (std::string_view(action.kind) == "wait") begins.push_back(action.begin);
  }
  if (begins.size() != device.messages.size()) begins.assign(device.messages.size(), 0);
  return begins;
}

/// A flow needs both ends, which the edge of the recorded steps may cut; a collective has none.
void add_flows(Events& events, std::span<const DeviceProfile> devices, std::int64_t end) {
  std::map<MessageKey, const MessageRecord*> sent;
  for (int d = 0; d < std::ssize(devices); ++d) {
    for (const MessageRecord& message : devices[d].messages) {
      if (message.step < end && std::string_view(message.direction) == "send")
        sent[key_of(message, d, message.peer)] = &message;
    }
  }
  std::int64_t id = 0;
  for (int d = 0; d < std::ssize(devices); ++d) {
    const std::vector<double> waits = begins_of_waits(devices[d]);
    for (std::size_t k = 0; k < waits.size(); ++k) {
      const MessageRecord& message = devices[d].messages[k];
      if (std::string_view(message.direction) != "receive") continue;
      const auto start = sent.find(key_of(message, message.peer, d));
      if (start == sent.end()) continue;
      const double begin = microseconds(start->second->posted);
      // Clocks of two nodes may differ by more than a message takes.
      const double seen = std::max(begin, microseconds(std::max(message.completed, waits[k])));
      events.add(R"({{"ph":"s","pid":0,"tid":{},"ts":{:.3f},"id":{},"cat":"message","name":"{}",)"
                 R"("args":{{"bytes":{}}}}})",
                 message.peer, begin, id, message.kind, message.bytes);
      events.add(R"({{"ph":"f","bp":"e","pid":0,"tid":{},"ts":{:.3f},"id":{},"cat":"message",)"
                 R"("name":"{}"}})",
                 d, seen, id, message.kind);
      ++id;
    }
  }
}

}  // namespace

std::string trace_text(const PlanRecord& plan, std::span<const DeviceProfile> devices,
                       std::int64_t limit) {
  const std::int64_t end = end_of_trace(devices, limit);
  Events events;
  name_tracks(events, plan, static_cast<int>(devices.size()));
  for (int d = 0; d < std::ssize(devices); ++d) {
    for (const ActionRecord& action : devices[d].actions) {
      if (action.step < end) add_action(events, d, action);
    }
  }
  // After the actions, since a flow belongs to the action of that time that was read before it.
  add_flows(events, devices, end);
  return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[" + events.text() + "\n]}\n";
}

void write_trace(const std::filesystem::path& folder) {
  const RunSummary run = read_run(folder.string());
  if (!run.plan) fail(ExitCode::bad_data, "{}: run.h5 has no /plan", run.folder);
  std::vector<DeviceProfile> devices;
  devices.reserve(static_cast<std::size_t>(run.plan->devices));
  for (int d = 0; d < run.plan->devices; ++d)
    devices.push_back(read_profile(folder, run.number, d));
  const std::string text = trace_text(*run.plan, devices);
  replace_file((folder / "trace.json").string(), std::as_bytes(std::span(text)),
               Durability::process);
}

}  // namespace carousel
