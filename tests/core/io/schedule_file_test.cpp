// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Schedules as files: what is written reads back as the same lists, and what cannot be a schedule
// is refused with the number of the action.

#include "core/io/schedule_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/check.hpp"
#include "core/io/plan_json.hpp"
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
        const Schedule copy(schedule, read_period(schedule_text(schedule), "x", schedule));
        for (const Segment segment : {Segment{0, 7}, Segment{2, 3}, Segment{5, 11}})
          ASSERT_EQ(lists_of(copy, segment), lists_of(schedule, segment));
        for (int d = 0; d < schedule.devices(); ++d)
          EXPECT_EQ(copy.buffers(d).frames, schedule.buffers(d).frames);
      }
    }
  }
}

TEST(ScheduleFile, RepeatsWhenAllTeamsHaveHadTheirTurns) {
  // Teams of 4, 3, 2 and 1 device and 4 micro-batches per step.
  EXPECT_EQ(schedule_of(parallel(RuleKind::cdp_v2, Placement::model, 4, 4)).period().steps, 3);
  EXPECT_EQ(schedule_of(parallel(RuleKind::cdp_v2, Placement::pipeline, 4, 4)).period().steps, 1);
  const Schedule large = schedule_of(parallel(RuleKind::cdp_v2, Placement::model, 16, 16));
  EXPECT_THROW(static_cast<void>(schedule_text(large)), Error);
}

const Schedule& ring() {
  static const Schedule schedule =
      schedule_of(parallel(RuleKind::cdp_v2, Placement::replicated, 2, 2));
  return schedule;
}

std::string refusal(const std::string& text) {
  try {
    static_cast<void>(read_period(text, "x.json", ring()));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  ADD_FAILURE() << "was accepted";
  return "";
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
  EXPECT_THAT(changed([](Json& j) { j.erase("format"); }), HasSubstr("format is missing"));
  EXPECT_THAT(changed([](Json& j) { j["N"] = 3; }), HasSubstr("N is 3, and the deck asks for 2"));
  EXPECT_THAT(changed([](Json& j) { j["steps"] = 0; }), HasSubstr("steps is not a positive"));
  EXPECT_THAT(changed([](Json& j) { j["actions"] = 1; }), HasSubstr("actions is not a list"));
  EXPECT_THAT(changed([](Json& j) { j["actions"][3] = 1; }), HasSubstr("actions[3]: is not an"));
  const auto with = [](const char* key, const Json& value) {
    return changed([&](Json& j) { j["actions"][5][key] = value; });
  };
  EXPECT_THAT(with("device", 2), HasSubstr("actions[5]: device = 2 is not between 0 and 1"));
  EXPECT_THAT(with("stage", 2), HasSubstr("stage = 2"));
  EXPECT_THAT(with("stage", 1e300), HasSubstr("stage is not an integer"));
  EXPECT_THAT(with("kind", "forwards"), HasSubstr("kind \"forwards\" is unknown"));
  EXPECT_THAT(with("payload", 7), HasSubstr("payload is not a text"));
  EXPECT_THAT(with("direction", "up"), HasSubstr("direction \"up\" is unknown"));
  EXPECT_THAT(with("group", 2), HasSubstr("group = 2"));
  EXPECT_THAT(changed([](Json& j) { j["actions"][5].erase("peer"); }),
              HasSubstr("actions[5]: peer is missing"));
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
