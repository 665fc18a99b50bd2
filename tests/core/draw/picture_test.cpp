// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Pictures of schedules as programs see them: well-formed, complete, the same every time. Whether
// they please the eye is not tested.

#include "core/draw/picture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "core/draw/picture_style.hpp"
#include "core/draw/svg.hpp"
#include "core/draw/timeline.hpp"
#include "tests/core/plan/schedules.hpp"

namespace carousel {
namespace {

using testing::describe;
using testing::parallel;
using testing::schedule_of;
using testing::variants;

/// What is wrong with the tags, attributes and entities of an XML text; empty if nothing is.
std::string fault_of(const std::string& xml) {
  static const std::regex tag(
      R"(<([a-zA-Z]+)((\s+[-:a-zA-Z0-9]+="[^"<]*")*)\s*(/?)>|</([a-zA-Z]+)>|<\?xml[^?]*\?>)");
  static const std::regex entity("&(amp|lt|gt|quot|apos);");
  std::vector<std::string> open;
  int roots = 0;
  std::size_t at = 0;
  const auto is_text = [&](const std::string& text) {
    const std::string rest = std::regex_replace(text, entity, "");
    return rest.find_first_of("<>&") == std::string::npos;
  };
  for (std::sregex_iterator next(xml.begin(), xml.end(), tag), end; next != end; ++next) {
    const std::smatch& match = *next;
    if (!is_text(xml.substr(at, match.position() - at))) return "text before " + match.str();
    at = match.position() + match.length();
    if (!is_text(match[2].str())) return "attributes of " + match.str();
    if (match[1].matched) {
      if (open.empty()) ++roots;
      if (match[4].length() == 0) open.push_back(match[1]);
    } else if (match[5].matched) {
      if (open.empty() || open.back() != match[5]) return "unexpected " + match.str();
      open.pop_back();
    }
  }
  if (!is_text(xml.substr(at))) return "text at the end";
  return roots == 1 && open.empty() ? "" : "tags do not balance";
}

struct Box {
  std::string title;
  double x = 0;
  double y = 0;
};

/// The boxes of passes: paths with a title.
std::vector<Box> boxes_of(const std::string& svg) {
  static const std::regex box("d=\"M([-0-9.]+) ([-0-9.]+)[^\"]*\"><title>(step [^<]*)</title>");
  std::vector<Box> boxes;
  for (std::sregex_iterator next(svg.begin(), svg.end(), box), end; next != end; ++next)
    boxes.push_back({(*next)[3], std::stod((*next)[1]), std::stod((*next)[2])});
  return boxes;
}

std::string title_of(const Action& action) {
  return fmt::format("step {}, micro-batch {}, {} of stage {} with version {}", action.step,
                     action.micro_batch, to_string(action.kind), action.stage, action.version);
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

/// Calls visit with every schedule of these sizes.
template <class Visit>
void for_all(std::initializer_list<int> sizes, Visit&& visit) {
  for (const int n : sizes) {
    for (const int stages : sizes) {
      for (const ParallelConfig& config : variants(n, stages)) {
        if (config.slack > 1) continue;
        SCOPED_TRACE(describe(config));
        visit(schedule_of(config));
      }
    }
  }
}

TEST(Picture, IsWellFormedAndStandsAlone) {
  for_all({1, 2, 4, 9}, [](const Schedule& schedule) {
    const std::string svg = draw_svg(schedule);
    EXPECT_EQ(fault_of(svg), "");
    EXPECT_EQ(svg, draw_svg(schedule));
    for (const char* foreign : {"script", "href", "@import", "<image", "nan", "inf"})
      EXPECT_EQ(count_of(svg, foreign), 0) << foreign;
    EXPECT_EQ(count_of(svg, "http"), 1) << "more than the name space";
  });
}

TEST(Picture, HasExactlyOneBoxForEveryPassOfItsWindow) {
  for_all({1, 2, 3, 4, 6}, [](const Schedule& schedule) {
    const std::int64_t times = timeline_of(schedule, 1, 512).times;
    std::map<std::string, std::int64_t> times_of;
    for (const std::vector<Action>& list : schedule.lists({0, 4}))
      for (const Action& action : list)
        if (is_pass(action) && action.time < times) times_of[title_of(action)] = action.time;

    std::set<std::string> drawn;
    std::map<double, std::int64_t> time_at;
    std::set<std::string> places;
    for (const Box& box : boxes_of(draw_svg(schedule))) {
      EXPECT_TRUE(drawn.insert(box.title).second) << box.title << " is drawn twice";
      EXPECT_TRUE(places.insert(fmt::format("{} {}", box.x, box.y)).second) << box.title;
      ASSERT_TRUE(times_of.contains(box.title)) << box.title;
      const auto [column, is_new] = time_at.try_emplace(box.x, times_of[box.title]);
      EXPECT_EQ(column->second, times_of[box.title]) << box.title;
    }
    EXPECT_EQ(drawn.size(), times_of.size());
    EXPECT_TRUE(
        std::ranges::is_sorted(time_at, {}, [](const auto& entry) { return entry.second; }));
  });
}

TEST(Picture, ShowsTwoWholeTrainingStepsAndTheFactsOfTheRule) {
  for (const PlacementKind& kind : placement_kinds()) {
    const Schedule schedule = schedule_of(parallel(RuleKind::cdp_v2, kind.placement, 4, 4));
    const Timeline timeline = timeline_of(schedule, 128, 512);
    EXPECT_LE(timeline.steps[1].end, timeline.times);
    EXPECT_EQ(timeline.steady, schedule.rule().offset(3));
    for (std::int64_t time = timeline.steady; time < timeline.times; ++time)
      EXPECT_EQ(timeline.held[time], 10) << kind.name << " at " << time;
    EXPECT_EQ(count_of(draw_svg(schedule), "at most 10 (62.5%)"), 1);
    EXPECT_DOUBLE_EQ(timeline.busy, kind.placement == Placement::model ? 2.0 / 5 : 1);
  }
  // 1F1B idles (S - 1) / (N + S - 1) of the time.
  const Schedule flushed = schedule_of(parallel(RuleKind::dp, Placement::pipeline, 6, 3));
  EXPECT_DOUBLE_EQ(timeline_of(flushed, 128, 512).busy, 6.0 / 8);
  const Schedule wide = schedule_of(parallel(RuleKind::dp, Placement::model, 6, 3));
  EXPECT_DOUBLE_EQ(timeline_of(wide, 128, 512).busy, 1.0 / 3);
}

TEST(Picture, DrawsEveryMessageOfATrainingStepOnce) {
  for_all({1, 2, 3, 4, 6}, [](const Schedule& schedule) {
    int messages = 0;
    for (const std::vector<Action>& list : schedule.lists({0, 4}))
      messages += static_cast<int>(std::ranges::count_if(list, [](const Action& action) {
        return action.kind == ActionKind::send && action.payload != Payload::token &&
               action.step == 0;
      }));
    const Travels travels = travels_of(schedule, 0, schedule.devices());
    EXPECT_EQ(std::ssize(travels.arrows), messages);
    for (const Arrow& arrow : travels.arrows) {
      EXPECT_NE(arrow.from, arrow.to);
      EXPECT_LE(arrow.begin, arrow.end) << to_string(arrow.payload);
    }
    for (const Bar& bar : travels.bars) {
      EXPECT_EQ(bar.rows, schedule.groups()[bar.group]);
      EXPECT_LE(bar.begin, bar.end);
    }
  });
  const Schedule ring = schedule_of(parallel(RuleKind::cdp_v2, Placement::replicated, 4, 4));
  EXPECT_EQ(count_of(draw_svg(ring), "<title>gradient of stage"), 12);
  EXPECT_EQ(count_of(draw_svg(ring), "<title>parameters of stage"), 12);
  EXPECT_EQ(count_of(draw_svg(ring), "<title>total of stage"), 3);
}

TEST(Picture, OfManyDevicesStaysReadable) {
  const Schedule schedule = schedule_of(parallel(RuleKind::cdp_v2, Placement::model, 24, 24));
  ASSERT_EQ(schedule.devices(), 300);
  const std::string svg = draw_svg(schedule);
  EXPECT_EQ(fault_of(svg), "");
  EXPECT_EQ(count_of(svg, "not drawn: 172 devices"), 1);
  EXPECT_EQ(count_of(svg, "at most 300 (52.1%)"), 1);

  const PictureSpec small{.most_rows = 2, .most_times = 5, .most_arrows = 0};
  const std::string part =
      draw_svg(schedule_of(parallel(RuleKind::dp, Placement::single, 4, 4)), small);
  EXPECT_EQ(boxes_of(part).size(), 10U);
  EXPECT_EQ(count_of(part, "not drawn: 2 micro-batches"), 1);
  EXPECT_EQ(count_of(part, "of 17 time steps"), 1);

  const std::string thinned = draw_svg(
      schedule_of(parallel(RuleKind::cdp_v2, Placement::replicated, 4, 4)), {.most_arrows = 0});
  EXPECT_EQ(count_of(thinned, "<title>gradient of stage"), 3);
  EXPECT_EQ(count_of(thinned, "training step 0, of stage 2 only:"), 1);
}

TEST(Picture, TellsForwardFromBackwardInGrey) {
  const auto brightness = [](const std::string& hex) {
    const auto part = [&](int at) { return std::stoi(hex.substr(at, 2), nullptr, 16); };
    return 0.299 * part(1) + 0.587 * part(3) + 0.114 * part(5);
  };
  for (const int stages : {1, 2, 6, 7, 8, 64}) {
    double darkest_light = 255;
    double brightest_strong = 0;
    std::set<std::string> strong;
    for (const StageColour& colour : stage_colours(stages)) {
      darkest_light = std::min(darkest_light, brightness(colour.light));
      brightest_strong = std::max(brightest_strong, brightness(colour.strong));
      strong.insert(colour.strong);
    }
    EXPECT_GT(darkest_light, brightest_strong + 10) << stages;
    EXPECT_EQ(std::ssize(strong), stages);
  }
}

TEST(Svg, EscapesMarkup) {
  EXPECT_EQ(xml_escaped("a < b && \"c\" > 'd'\x01"),
            "a &lt; b &amp;&amp; &quot;c&quot; &gt; &apos;d&apos;");
  SvgWriter svg;
  svg.text("title", 1, 2.04, "<&>", Anchor::end);
  svg.rectangle("box", -0.01, 0, 1, 1, "\"quoted\"");
  const std::string file = svg.document(10, 10, "a & b", "");
  EXPECT_EQ(fault_of(file), "");
  EXPECT_EQ(count_of(file, "x=\"0\""), 1);
  EXPECT_NE(fault_of("<svg><g></svg>"), "");
  EXPECT_NE(fault_of("<svg>a & b</svg>"), "");
  EXPECT_NE(fault_of("<svg a=\"<\"/>"), "");
}

}  // namespace
}  // namespace carousel
