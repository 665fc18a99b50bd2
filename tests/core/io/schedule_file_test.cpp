// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Schedules as files: what is written reads back as the same lists, and what cannot be a schedule
// is refused with the number of the action.

#include "core/io/schedule_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "core/base/check.hpp"
#include "core/io/plan_json.hpp"
#include "core/plan/account.hpp"
#include "core/plan/checker.hpp"
#include "core/plan/evaluation.hpp"
#include "core/plan/grid.hpp"
#include "tests/core/plan/schedules.hpp"

namespace carousel {
namespace {

using testing::describe;
using testing::lists_of;
using testing::parallel;
using testing::schedule_of;
using testing::variants;
using Json = nlohmann::json;
using ::testing::HasSubstr;

TEST(ScheduleFile, ReadsBackAsTheSameLists) {
  for (int n = 1; n <= 4; ++n) {
    for (int stages = 1; stages <= 4; ++stages) {
      for (const ParallelConfig& config : variants(n, stages)) {
        SCOPED_TRACE(describe(config));
        const Schedule schedule = schedule_of(config);
        const Schedule copy(schedule, read_schedule(schedule_text(schedule), "x", schedule).period);
        for (const Segment segment : {Segment{0, 7}, Segment{2, 3}, Segment{5, 11}})
          ASSERT_EQ(lists_of(copy, segment), lists_of(schedule, segment));
        for (int d = 0; d < schedule.devices(); ++d)
          EXPECT_EQ(copy.buffers(d).frames, schedule.buffers(d).frames);
        // What happens outside of training is not in the file.
        EXPECT_EQ(evaluation_actions(copy, 7, 5, 8), evaluation_actions(schedule, 7, 5, 8));
        for (int d = 0; d < schedule.devices(); ++d) {
          EXPECT_EQ(evaluation_share(copy, 7, d), evaluation_share(schedule, 7, d));
          EXPECT_EQ(sent_in(copy, d, {5, 11}).messages, sent_in(schedule, d, {5, 11}).messages);
        }
      }
    }
  }
}

/// What becomes of a file that anybody may have written: a refusal in words, or lists that are
/// proven, wherever a segment begins and ends, and can be drawn.
bool accepted(const Schedule& own, const std::string& text) {
  try {
    const Schedule other(own, read_schedule(text, "x.json", own).period);
    const std::optional<Fault> fault = find_fault(other);
    if (fault) return false;
    static_cast<void>(draw_grid(other));
    for (std::int64_t first = 0; first < 4; ++first) {
      for (std::int64_t last = first + 1; last < 8; ++last) {
        const auto missed = check_actions(other, {first, last}, other.lists({first, last}));
        EXPECT_FALSE(missed) << first << " .. " << last << ": " << missed->text;
      }
    }
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data) << error.what();
    return false;
  }
}

/// The same action, as many training steps later.
void count_later(Json& action, std::int64_t steps, std::int64_t period_time) {
  action["time"] = action["time"].get<std::int64_t>() + steps * period_time;
  action["step"] = action["step"].get<std::int64_t>() + steps;
  constexpr const char* versioned[] = {"forward",    "backward",     "update",
                                       "parameters", "forward_copy", "backward_copy"};
  const std::string what = action.value("payload", action["kind"].get<std::string>());
  if (std::ranges::count(versioned, what) > 0)
    action["version"] = action["version"].get<std::int64_t>() + steps;
}

TEST(ScheduleFile, MayHoldAnything) {
  std::mt19937 random(7);
  const auto below = [&](std::size_t end) { return random() % end; };
  constexpr const char* keys[] = {"time", "step",  "version", "micro_batch", "stage",
                                  "peer", "bytes", "device",  "buffer",      "source"};
  int refused = 0;
  for (const Placement placement : testing::all_placements) {
    for (const ParallelConfig& config : variants(placement, 4, 2)) {
      const Schedule own = schedule_of(config);
      const Json right = Json::parse(schedule_text(own));
      ASSERT_TRUE(accepted(own, right.dump()));
      for (int k = 0; k < 40; ++k) {
        Json wrong = right;
        Json& actions = wrong["actions"];
        const std::size_t at = below(actions.size());
        switch (k % 5) {
          case 0:
            actions.erase(at);
            break;
          case 1: {  // all of one kind
            const std::string kind = actions[at]["kind"];
            for (std::size_t i = actions.size(); i-- > 0;)
              if (actions[i]["kind"] == kind) actions.erase(i);
            break;
          }
          case 2:
            std::swap(actions[at], actions[below(actions.size())]);
            break;
          case 3:  // of another kind, with all that the former one had
            actions[at]["kind"] = actions[below(actions.size())]["kind"];
            break;
          default:
            actions[at][keys[below(std::size(keys))]] = static_cast<int>(below(9)) - 4;
        }
        if (!accepted(own, wrong.dump())) ++refused;
      }
    }
  }
  EXPECT_GT(refused, 500);
}

TEST(ScheduleFile, MayCountFromAnyStep) {
  int refused = 0;
  for (const Placement placement : testing::all_placements) {
    for (const ParallelConfig& config : variants(placement, 3, 3)) {
      const Schedule own = schedule_of(config);
      const Json right = Json::parse(schedule_text(own));
      const std::int64_t period = right["steps"];
      for (const std::int64_t periods : {-2, 1, 4}) {
        Json shifted = right;
        for (Json& action : shifted["actions"])
          count_later(action, periods * period, own.period_time());
        const Schedule same(own, read_schedule(shifted.dump(), "x", own).period);
        EXPECT_FALSE(find_fault(same)) << describe(config);
        EXPECT_EQ(lists_of(same, {2, 9}), lists_of(own, {2, 9})) << describe(config);
        for (int d = 0; d < own.devices(); ++d)
          EXPECT_EQ(same.buffers(d).requests, own.buffers(d).requests) << describe(config);

        // All of one kind belongs to later steps than the rest.
        for (const char* kind : {"load", "send", "post", "wait", "update", "release"}) {
          for (const std::int64_t later : {1, 4, 5}) {
            Json wrong = shifted;
            bool any = false;
            for (Json& action : wrong["actions"]) {
              if (action["kind"] != kind) continue;
              count_later(action, later * period, 0);
              any = true;
            }
            if (any && !accepted(own, wrong.dump())) ++refused;
          }
        }
      }
    }
  }
  EXPECT_GT(refused, 500);
}

/// Two training steps of a schedule that repeats after one.
Json twice(const Json& once, std::int64_t time) {
  Json doubled = once;
  doubled["steps"] = 2;
  for (Json action : once["actions"]) {
    count_later(action, 1, time);
    doubled["actions"].push_back(action);
  }
  return doubled;
}

// What a message is labelled with decides in which segment it travels; where all steps but every
// other one are labelled right, segments of an even number of steps may still be.
TEST(ScheduleFile, LabelsMessagesWithTheirStep) {
  int refused = 0;
  for (const Placement placement : testing::all_placements) {
    for (const ParallelConfig& config : variants(placement, 2, 2)) {
      const Schedule own = schedule_of(config);
      const Json once = Json::parse(schedule_text(own));
      if (once["steps"] != 1) continue;
      const Json right = twice(once, own.period_time());
      ASSERT_TRUE(accepted(own, right.dump())) << describe(config);
      for (const char* payload : {"parameters", "forward_copy", "backward_copy", "gradient",
                                  "total", "activations", "d_activations", "token"}) {
        for (const int odd : {0, 1}) {
          for (const int shift : {-2, -1, 1, 2}) {
            Json wrong = right;
            bool any = false;
            for (Json& action : wrong["actions"]) {
              const auto step = action["step"].get<std::int64_t>();
              if (action.value("payload", "") != payload || (step % 2 != 0) != (odd == 1)) continue;
              action["step"] = step + shift;
              any = true;
            }
            if (any && !accepted(own, wrong.dump())) ++refused;
          }
        }
      }
    }
  }
  EXPECT_GT(refused, 300);
}

TEST(ScheduleFile, MustNotRunBeforeTheSegment) {
  const Schedule own = schedule_of(parallel(RuleKind::cdp_v2, Placement::replicated, 4, 2));
  Json json = Json::parse(schedule_text(own));
  for (Json& action : json["actions"]) action["time"] = action["time"].get<int>() - 4;
  EXPECT_FALSE(accepted(own, json.dump()));
  json["actions"][0]["step"] = -1000000;
  EXPECT_FALSE(accepted(own, json.dump()));
}

// Device 0 lets devices 1 and 2 begin, and device 1 nobody.
TEST(ScheduleFile, MustPaceFromDeviceToDevice) {
  for (const Placement placement : {Placement::replicated, Placement::sharded}) {
    const Schedule own = schedule_of(parallel(RuleKind::cdp_v1, placement, 4, 2));
    const Json right = Json::parse(schedule_text(own));
    Json wrong = right;
    wrong["actions"] = Json::array();
    const auto paces = [](const Json& action, int device, int peer) {
      return action.value("payload", "") == "token" && action["device"] == device &&
             action["peer"] == peer;
    };
    for (Json action : right["actions"]) {
      if (paces(action, 1, 2)) continue;
      if (paces(action, 2, 1)) action["peer"] = 0;
      wrong["actions"].push_back(action);
      if (!paces(action, 0, 1)) continue;
      action["peer"] = 2;
      wrong["actions"].push_back(action);
    }
    EXPECT_FALSE(accepted(own, wrong.dump()));
  }
}

std::string fault_of(const Schedule& own, const Json& json) {
  const Schedule other(own, read_schedule(json.dump(), "x.json", own).period);
  const std::optional<Fault> fault = find_fault(other);
  return fault ? fault->text : "";
}

// Images, activations and parameters have room for two steps; the loss of a micro-batch has not.
TEST(ScheduleFile, ReportsALossBeforeTheNext) {
  const Schedule own = schedule_of(parallel(RuleKind::cdp_v1, Placement::single, 1, 1));
  Json json = Json::parse(schedule_text(own));
  for (Json& action : json["actions"]) {
    if (action["kind"] == "load" || action["kind"] == "forward")
      count_later(action, 1, own.period_time());
  }
  EXPECT_THAT(fault_of(own, json), HasSubstr("overwrites the loss of a step"));
}

/// Actions of a file in another order: which of them, and how many training steps later each.
Json reordered(const Json& json, const std::vector<std::pair<std::size_t, int>>& order,
               std::int64_t period_time) {
  Json result = json;
  result["actions"] = Json::array();
  for (const auto& [index, later] : order) {
    Json action = json["actions"][index];
    count_later(action, later, period_time);
    result["actions"].push_back(action);
  }
  return result;
}

// Behind a divergence the actions of later steps are left out, but images come as they were
// ordered.
TEST(ScheduleFile, LoadsStepsInOrder) {
  const Schedule own = schedule_of(parallel(RuleKind::cdp_v1, Placement::single, 2, 2));
  const Json json = Json::parse(schedule_text(own));
  const auto load = [&](int micro_batch) {
    std::size_t k = 0;
    while (json["actions"][k]["kind"] != "load" || json["actions"][k]["micro_batch"] != micro_batch)
      ++k;
    return k;
  };
  std::vector<std::pair<std::size_t, int>> order;
  for (std::size_t k = 0; k < json["actions"].size(); ++k) {
    if (k == load(1)) order.emplace_back(load(0), 1);
    if (k != load(0)) order.emplace_back(k, 0);
  }
  EXPECT_THAT(fault_of(own, reordered(json, order, own.period_time())),
              HasSubstr("loads images of a step behind those of a later one"));
}

// Every other version of stage 0 comes behind the next one; with it comes the loss of its step.
TEST(ScheduleFile, TellsLossesInOrder) {
  const Schedule own = schedule_of(parallel(RuleKind::cdp_v1, Placement::replicated, 2, 2));
  const Json two = twice(Json::parse(schedule_text(own)), own.period_time());
  const auto parameters = [&](const char* kind, int device) {
    const Json& actions = two["actions"];
    std::size_t k = 0;
    while (actions[k].value("payload", "") != "parameters" || actions[k]["stage"] != 0 ||
           actions[k]["kind"] != kind || actions[k]["device"] != device)
      ++k;
    return k;
  };
  const std::size_t half = two["actions"].size() / 2;
  const std::size_t post = parameters("post", 0), wait = parameters("wait", 0);
  const std::size_t send = parameters("send", 1);
  std::vector<std::pair<std::size_t, int>> order;
  for (std::size_t k = 0; k < 2 * half; ++k) {
    if (k == half + wait) order.emplace_back(wait, 2);
    if (k != wait && k != send && k != half + post) order.emplace_back(k, 0);
    if (k == post) order.emplace_back(half + post, -2);
    if (k == half + send) order.emplace_back(send, 0);
  }
  EXPECT_THAT(fault_of(own, reordered(two, order, own.period_time())),
              HasSubstr("brings the loss of a step before that of an earlier one"));
}

// A decision rides with activations as it was when they were made, not when they were sent. Device
// 0 sends them behind its next update, and device 1 relies on that to post two steps ahead.
TEST(ScheduleFile, KnowsNoMoreThanActivationsTell) {
  const Schedule own = schedule_of(parallel(RuleKind::cdp_v1, Placement::pipeline, 1, 2));
  const Json two = twice(Json::parse(schedule_text(own)), own.period_time());
  constexpr std::size_t b = 18;  // the second step of a period begins there
  ASSERT_EQ(two["actions"].size(), 2 * b);
  std::vector<std::pair<std::size_t, int>> order;
  for (const std::size_t step : {std::size_t{0}, b}) {
    order.insert(order.end(), {{step + 1, 0},   // load
                               {step + 2, 0},   // forward
                               {step + 5, -1},  // post d_activations of the step before
                               {step + 6, -1},  // wait
                               {step + 7, -1},  // backward
                               {step + 8, -1},  // release
                               {step + 0, 0},   // update
                               {step + 3, 0},   // send activations
                               {step + 4, 0}});
  }
  order.insert(order.end(), {{9, 0},        // wait until d_activations are sent
                             {11, 0},       // load
                             {12, 0},       // wait for activations
                             {13, 0},       // forward
                             {b + 16, -2},  // release the step before
                             {b + 10, 0},   // post activations of the next step
                             {14, 0},       // backward
                             {15, 0},       // send d_activations
                             {16, 0},       // release
                             {10, 2},       // post activations of the step after the next
                             {17, 0}});     // update
  for (const std::size_t k : {9, 11, 12, 13, 14, 15, 17}) order.emplace_back(b + k, 0);
  EXPECT_THAT(fault_of(own, reordered(two, order, own.period_time())),
              HasSubstr("runs before step - 3 is known to be complete"));
}

TEST(ScheduleFile, SendsNothingTwice) {
  const Schedule own = schedule_of(parallel(RuleKind::dp, Placement::pipeline, 1, 2));
  const Json right = Json::parse(schedule_text(own));
  const auto is_message = [](const Json& action, int device) {
    return action["device"] == device && action.value("payload", "") == "d_activations";
  };
  Json wrong = right;
  wrong["actions"] = Json::array();
  for (const Json& action : right["actions"]) {
    wrong["actions"].push_back(action);
    if (is_message(action, 1)) wrong["actions"].push_back(action);
    if (action["device"] != 0 || action["kind"] != "backward") continue;
    for (const Json& message : right["actions"])
      if (is_message(message, 0)) wrong["actions"].push_back(message);
  }
  EXPECT_THAT(fault_of(own, wrong), HasSubstr("starts what is under way already"));
}

const Schedule& ring() {
  static const Schedule schedule =
      schedule_of(parallel(RuleKind::cdp_v2, Placement::replicated, 2, 2));
  return schedule;
}

std::string refusal(const std::string& text) {
  try {
    static_cast<void>(read_schedule(text, "x.json", ring()));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  ADD_FAILURE() << "was accepted";
  return "";
}

TEST(ScheduleFile, IsForOneModel) {
  ScheduleSpec other = ring().spec();
  other.message_bytes[1] += 64;
  EXPECT_THAT(refusal(schedule_text(Schedule(other))),
              HasSubstr("x.json: is for another model, batch size or precision: parameter_bytes"));
  other = ring().spec();
  other.activation_bytes[0] += 64;
  const std::string text = schedule_text(Schedule(other));
  EXPECT_THAT(refusal(text), HasSubstr("precision: activation_bytes"));
  Json json = Json::parse(text);
  json.erase("activation_bytes");
  EXPECT_TRUE(accepted(ring(), json.dump()));
}

TEST(ScheduleFile, RepeatsWhenAllTeamsHaveHadTheirTurns) {
  // Teams of 4, 3, 2 and 1 device and 4 micro-batches per step.
  EXPECT_EQ(schedule_of(parallel(RuleKind::cdp_v2, Placement::model, 4, 4)).period().steps, 3);
  EXPECT_EQ(schedule_of(parallel(RuleKind::cdp_v2, Placement::pipeline, 4, 4)).period().steps, 1);
  const Schedule large = schedule_of(parallel(RuleKind::cdp_v2, Placement::model, 16, 16));
  EXPECT_THROW(static_cast<void>(schedule_text(large)), Error);
}

/// The right file with one thing changed.
template <class Change>
std::string changed(Change&& change) {
  Json json = Json::parse(schedule_text(ring()));
  change(json);
  return refusal(json.dump());
}

TEST(ScheduleFile, NamesWhatCannotBe) {
  EXPECT_THAT(refusal(""), HasSubstr("x.json: is not a JSON object"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("is not a JSON object"));
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_THAT(refusal("{\"format\": " + deep + "}"), HasSubstr("format is nested, and the deck"));
  std::string bytes = schedule_text(ring());
  bytes.replace(bytes.find("\"parameter_bytes\": [") + 19, 0, deep + ", \"more\": ");
  EXPECT_THAT(refusal(bytes), HasSubstr("parameter_bytes is nested, and the deck's is ["));
  const auto twice = [](std::string_view before, std::string_view more) {
    std::string text = schedule_text(ring());
    return refusal(text.insert(text.find(before), more));
  };
  EXPECT_THAT(twice("\"rule\":", "\"rule\": \"dp\", "), HasSubstr("x.json: rule is given twice"));
  EXPECT_THAT(twice("\"stage\":", "\"stage\": 1, "), HasSubstr("actions[0]: stage is given twice"));
  EXPECT_THAT(twice("\"rule\":", "\"x\": {\"a\": 1, \"a\": 2}, "),
              HasSubstr("x.json: x: a is given twice"));
  EXPECT_THAT(changed([](Json& j) { j.erase("format"); }), HasSubstr("format is missing"));
  EXPECT_THAT(changed([](Json& j) { j["N"] = 3; }), HasSubstr("N is 3, and the deck asks for 2"));
  EXPECT_THAT(changed([](Json& j) { j["slack"] = 1; }), HasSubstr("slack is 1, and the deck asks"));
  EXPECT_THAT(changed([](Json& j) { j.erase("reduction"); }), HasSubstr("reduction is missing"));
  EXPECT_THAT(changed([](Json& j) { j["steps"] = 0; }), HasSubstr("steps is not a positive"));
  EXPECT_THAT(changed([](Json& j) { j["actions"] = 1; }), HasSubstr("actions is not a list"));
  EXPECT_THAT(changed([](Json& j) { j["actions"][3] = 1; }), HasSubstr("actions[3]: is not an"));
  const auto with = [](const char* key, const Json& value) {
    return changed([&](Json& j) { j["actions"][5][key] = value; });
  };
  EXPECT_THAT(with("device", 2), HasSubstr("actions[5]: device = 2 is not between 0 and 1"));
  EXPECT_THAT(with("stage", 2), HasSubstr("stage = 2"));
  EXPECT_THAT(with("peer", 18446744073709551615U), HasSubstr("peer = "));
  EXPECT_THAT(with("stage", 1e300), HasSubstr("stage is not an integer"));
  EXPECT_THAT(with("kind", "forwards"), HasSubstr("kind \"forwards\" is unknown"));
  EXPECT_THAT(with("payload", 7), HasSubstr("payload is not a text"));
  EXPECT_THAT(with("direction", "up"), HasSubstr("direction \"up\" is unknown"));
  EXPECT_THAT(with("group", 2), HasSubstr("group = 2"));
  EXPECT_THAT(changed([](Json& j) { j["actions"][5].erase("peer"); }),
              HasSubstr("actions[5]: peer is missing"));
}

TEST(ScheduleFile, KnowsWhereActionsOfAFaultStand) {
  Json json = Json::parse(schedule_text(ring()));
  std::size_t update = json["actions"].size();
  while (json["actions"][update - 1]["kind"] != "update") --update;
  json["actions"][--update]["version"] = 3;
  const ScheduleFile file = read_schedule(json.dump(), "x.json", ring());
  const Schedule other(ring(), file.period);
  const std::optional<Fault> fault = find_fault(other);
  ASSERT_TRUE(fault);
  const std::optional<std::size_t> origin =
      other.origin(fault->device, fault->segment, fault->index);
  ASSERT_TRUE(origin);
  EXPECT_EQ(file.places[fault->device][*origin], update);
  const std::size_t all = other.actions(fault->device, fault->segment).size();
  EXPECT_EQ(other.origin(fault->device, fault->segment, all), std::nullopt);
}

TEST(ScheduleFile, IsListedActionByActionInThePlan) {
  const Schedule& schedule = ring();
  MemoryPlan memory;
  memory.devices.resize(2);
  const Json plan = Json::parse(plan_json(schedule, memory, 3));
  std::size_t k = 0;
  for (int d = 0; d < 2; ++d) {
    for (const Action& action : schedule.actions(d, {0, 3})) {
      const Json& json = plan["actions"][k++];
      EXPECT_EQ(json["device"], d);
      EXPECT_EQ(json["kind"], to_string(action.kind));
      EXPECT_EQ(json["time"], action.time);
      EXPECT_EQ(json["step"], action.step);
      EXPECT_EQ(json["peer"], action.peer);
      EXPECT_EQ(json["bytes"], action.bytes);
    }
  }
  EXPECT_EQ(plan["actions"].size(), k);
  EXPECT_EQ(plan["activation_units"], Json({2, 2}));
}

}  // namespace
}  // namespace carousel
