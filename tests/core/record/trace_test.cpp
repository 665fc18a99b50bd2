// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// trace.json: what of the records is in it, and what bounds it.

#include "core/record/trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/base/descriptor.hpp"
#include "tests/core/record/sample_run.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

using testing::failure;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

/// Two devices and `steps` steps; in each, device 0 computes, sends a total to device 1, and that
/// computes. Device 1 also has a message whose other end nobody recorded.
std::vector<DeviceProfile> two_devices(int steps) {
  std::vector<DeviceProfile> devices(2);
  for (int t = 0; t < steps; ++t) {
    devices[0].actions.push_back({"forward", t, 0, 1, -1, t - 1, t + 0.25, t + 0.5});
    devices[0].actions.push_back({"send", t, 0, 1, -1, t, t + 0.5, t + 0.625});
    devices[1].actions.push_back({"wait", t, 1, 1, -1, t, t + 0.5, t + 0.75});
    devices[0].messages.push_back({"total", "send", t, 1, -1, 0, 1, 64, t + 0.5, t + 0.625, 0});
    devices[1].messages.push_back({"total", "receive", t, 1, -1, 0, 0, 64, t + 0.0, t + 0.75, 0});
    devices[1].messages.push_back(
        {"parameters", "receive", t, 1, -1, 1, 0, 64, t + 0.0, t + 0.75, 0});
  }
  return devices;
}

std::vector<nlohmann::json> events(const std::string& text, const std::string& kind) {
  std::vector<nlohmann::json> result;
  const nlohmann::json trace = nlohmann::json::parse(text);
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") == kind) result.push_back(event);
  }
  return result;
}

TEST(Trace, HasEveryActionAndMessage) {
  const std::string text = trace_text(testing::sample_plan(), two_devices(3));
  const auto actions = events(text, "X");
  ASSERT_EQ(actions.size(), 9U);
  EXPECT_EQ(actions[0].at("name"), "forward 1");
  EXPECT_EQ(actions[0].at("tid"), 0);
  EXPECT_EQ(actions[0].at("ts"), 250000);
  EXPECT_EQ(actions[0].at("dur"), 250000);
  EXPECT_EQ(actions[0].at("args").at("version"), -1);
  EXPECT_EQ(events(text, "M").size(), 5U);
  const auto starts = events(text, "s"), ends = events(text, "f");
  ASSERT_EQ(starts.size(), 3U);
  ASSERT_EQ(ends.size(), 3U);
  EXPECT_EQ(starts[1].at("ts"), 1500000);
  EXPECT_EQ(ends[1].at("ts"), 1750000);
  EXPECT_EQ(ends[1].at("tid"), 1);
  EXPECT_EQ(starts[1].at("args").at("bytes"), 64);
}

TEST(Trace, IsBoundedByWholeSteps) {
  for (const auto& [limit, steps] : std::map<int, std::size_t>{{1, 1}, {3, 1}, {8, 2}, {9, 3}}) {
    const std::string text = trace_text(testing::sample_plan(), two_devices(3), limit);
    EXPECT_EQ(events(text, "X").size(), 3 * steps) << limit;
    EXPECT_EQ(events(text, "s").size(), steps) << limit;
    EXPECT_EQ(events(text, "f").size(), steps) << limit;
  }
}

TEST(Trace, AFlowNeverEndsBeforeItStarts) {
  std::vector<DeviceProfile> devices = two_devices(1);
  devices[1].messages[0].completed = 0.25;  // by the clock of another node
  EXPECT_EQ(events(trace_text(testing::sample_plan(), devices), "f").at(0).at("ts"), 500000);
}

TEST(Trace, NothingRecordedIsStillATrace) {
  const std::vector<DeviceProfile> devices(2);
  EXPECT_EQ(events(trace_text(testing::sample_plan(), devices), "M").size(), 5U);
}

TEST(Trace, IsWrittenFromTheFilesOfARun) {
  const TemporaryFolder folder;
  testing::write_sample_run(folder.path(), 7);
  write_trace(folder.path());
  const std::vector<std::byte> bytes = read_file(folder / "trace.json");
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto actions = events(text, "X");
  ASSERT_EQ(actions.size(), 2U);
  EXPECT_EQ(actions[1].at("args").at("step"), 1);

  std::filesystem::remove(folder / "ranks/0001.h5");
  EXPECT_THAT(failure(ExitCode::input_output, [&] { write_trace(folder.path()); }),
              HasSubstr("ranks/0001.h5: cannot open"));
}

TEST(Profile, ColumnsOfDifferentLengthAreRefused) {
  const TemporaryFolder folder;
  testing::write_sample_run(folder.path(), 7);
  hdf5::File file = hdf5::File::create(folder / "ranks/0000.h5");
  file.append_strings("/actions/kind", std::vector<const char*>{"forward", "backward"});
  file.append<std::int64_t>("/actions/step", std::vector<std::int64_t>{1});
  file.close();
  EXPECT_THAT(failure(ExitCode::bad_data, [&] { (void)read_profile(folder.path(), 0, 0); }),
              HasSubstr("/actions/step has 1 rows"));
}

}  // namespace
}  // namespace carousel
