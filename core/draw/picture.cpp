// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/draw/picture.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/draw/picture_grid.hpp"
#include "core/draw/picture_legend.hpp"
#include "core/draw/picture_style.hpp"
#include "core/draw/svg.hpp"
#include "core/draw/timeline.hpp"

namespace carousel {
namespace {

constexpr double right = 150;   // labels behind it
constexpr double memory = 96;   // height of the curve
constexpr double spacing = 24;  // between the parts

std::string plural(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : noun.ends_with("ch") ? "es" : "s");
}

/// Puts the parts of a picture one under the other.
class Picture {
 public:
  Picture(const Schedule& schedule, const PictureSpec& spec)
      : schedule_(schedule),
        timeline_(timeline_of(schedule, spec.most_rows, spec.most_times)),
        scale_(timeline_),
        colours_(stage_colours(schedule.rule().stages())),
        shown_(picture_travels(schedule, timeline_, spec.most_arrows)),
        end_x_(scale_.x(timeline_.times)),
        end_y_(grid_top + scale_.pitch * static_cast<double>(timeline_.rows.size())),
        width_(std::max(end_x_ + right, 860.0)) {}

  [[nodiscard]] std::string draw() {
    const std::string title = draw_title();
    draw_steps();
    draw_time_axis();
    draw_rows();
    svg_.open_clipped("grid");
    PictureGrid(svg_, scale_, timeline_, colours_).draw(shown_.travels, shows_holding());
    svg_.close_clipped();
    draw_memory();
    const double height =
        draw_legend(svg_, legend(), 16, width_ - 16, memory_y(0) + spacing * 0.75);
    return svg_.document(width_, height, title, definitions());
  }

 private:
  std::string draw_title();
  void draw_steps();
  void draw_time_axis();
  void draw_rows();
  void draw_memory();
  [[nodiscard]] Legend legend() const;
  [[nodiscard]] std::string definitions() const;
  [[nodiscard]] double memory_y(double stages) const;
  /// Where a device holds one micro-batch at a time, whether it computes or not.
  [[nodiscard]] bool shows_holding() const {
    return schedule_.traits().holds_one && schedule_.rule().stages() > 1;
  }
  /// What dp holds when all micro-batches have run forward.
  [[nodiscard]] int together() const {
    return schedule_.rule().micro_batches() * schedule_.rule().stages();
  }

  SvgWriter svg_;
  const Schedule& schedule_;
  Timeline timeline_;
  PictureScale scale_;
  std::vector<StageColour> colours_;
  PictureTravels shown_;
  double end_x_;
  double end_y_;
  double width_;
};

std::string Picture::draw_title() {
  const ParallelConfig& parallel = schedule_.parallel();
  std::string title =
      fmt::format("{}, {}, N = {} micro-batches, S = {} stages", to_string(parallel.rule),
                  to_string(parallel.placement), parallel.micro_batches, parallel.stages);
  if (parallel.passes > 1) title += fmt::format(", k = {} passes", parallel.passes);
  if (parallel.rule == RuleKind::cdp_v2) title += fmt::format(", slack {}", parallel.slack);
  if (parallel.predict > 0) title += fmt::format(", predict {}", parallel.predict);
  if (parallel.order != Order::together) title += fmt::format(", {}", to_string(parallel.order));
  if (parallel.reduction != Reduction::ordered)
    title += fmt::format(", {} reduction", to_string(parallel.reduction));
  const std::string line =
      fmt::format("{} busy in {:.3g}% of the time steps; a training step takes {}",
                  plural(schedule_.devices(), "device"), 100 * timeline_.busy,
                  plural(schedule_.period_time(), "time step"));
  svg_.text("title", 16, 26, title, Anchor::start, 16);
  svg_.text("quiet", 16, 46, line, Anchor::start, 13);
  return title;
}

/// A bracket over the time steps of every training step; those of neighbours overlap, so they take
/// turns in two lanes.
void Picture::draw_steps() {
  for (std::size_t t = 0; t < timeline_.steps.size(); ++t) {
    const bool odd = t % 2 == 1;
    const double y = grid_top - (odd ? 24 : 48);
    const double x1 = scale_.x(timeline_.steps[t].first) + 1;
    const bool whole = timeline_.steps[t].end <= timeline_.times;
    const double x2 = whole ? scale_.x(timeline_.steps[t].end) - 1 : end_x_;
    svg_.path(odd ? "odd-step" : "even-step",
              fmt::format("M{0} {1}V{2}H{3}{4}", pixels(x1), pixels(y + 6), pixels(y), pixels(x2),
                          whole ? fmt::format("V{}", pixels(y + 6)) : ""));
    std::string name = fmt::format("training step {}", t);
    if (text_width(name, 11) > x2 - x1) name = fmt::format("{}", t);
    if (text_width(name, 11) > x2 - x1) continue;
    svg_.text(odd ? "" : "quiet", (x1 + x2) / 2, y - 4, name, Anchor::middle, 11);
  }
}

void Picture::draw_time_axis() {
  std::int64_t every = 1;
  const double label = text_width(std::to_string(timeline_.times), 11) + 8;
  while (static_cast<double>(every) * scale_.cell < label) every *= 2;
  svg_.text("quiet", grid_left - 10, grid_top - 4, "time step", Anchor::end, 11);
  for (std::int64_t time = 0; time < timeline_.times; time += every)
    svg_.text("quiet", scale_.x(time) + scale_.cell / 2, grid_top - 4, std::to_string(time),
              Anchor::middle, 11);
}

void Picture::draw_rows() {
  const int every = std::max(1, static_cast<int>(std::ceil(10 / scale_.pitch)));
  const double size = std::min(12.0, scale_.pitch * every * 0.85);
  for (int r = 0; r < std::ssize(timeline_.rows); ++r) {
    svg_.rectangle("idle", grid_left, scale_.y(r), end_x_ - grid_left, scale_.box);
    if (r % every != 0) continue;
    const TimelineRow& row = timeline_.rows[r];
    const double y = scale_.middle(r) + size * 0.36;
    svg_.text("", grid_left - 10, y, name_of(row), Anchor::end, size);
    if (schedule_.devices() > 1)
      svg_.text("quiet", 12, y, fmt::format("device {}", row.device), Anchor::start, size);
  }
  const int more = timeline_.all_rows - static_cast<int>(timeline_.rows.size());
  if (more > 0)
    svg_.text("quiet", grid_left, end_y_ + 14,
              fmt::format("not drawn: {}",
                          plural(more, schedule_.devices() > 1 ? "device" : "micro-batch")));
  if (timeline_.times < timeline_.all_times)
    svg_.text("quiet", end_x_ + 8, grid_top + 12,
              fmt::format("of {} time steps", timeline_.all_times));
}

double Picture::memory_y(double stages) const {
  const double most = std::max(together(), timeline_.most_held);
  return end_y_ + spacing * 1.5 + memory * (1 - stages / most);
}

void Picture::draw_memory() {
  const double floor = memory_y(0);
  std::string outline = fmt::format("M{} {}", pixels(grid_left), pixels(floor));
  for (std::int64_t time = 0; time < timeline_.times; ++time)
    outline +=
        fmt::format("V{}H{}", pixels(memory_y(timeline_.held[time])), pixels(scale_.x(time + 1)));
  svg_.path("held", outline + fmt::format("V{}z", pixels(floor)));
  svg_.line("axis", grid_left, floor, end_x_, floor);

  if (timeline_.steady > 0 && timeline_.steady < timeline_.times) {
    const double x = scale_.x(timeline_.steady);
    svg_.line("steady", x, grid_top, x, floor);
    svg_.text("quiet", x + 5, memory_y(together()) + 15, "steady from here", Anchor::start, 11);
  }
  const int peak = timeline_.most_held;
  svg_.line("limit", grid_left, memory_y(together()), end_x_, memory_y(together()));
  svg_.text("", grid_left - 10, memory_y(together()) + 4, std::to_string(together()), Anchor::end);
  svg_.text("", grid_left - 10, floor, "0", Anchor::end);
  svg_.text("", 12, floor - 44, "activations held,");
  svg_.text("quiet", 12, floor - 29, "all devices, in units", Anchor::start, 11);
  svg_.text("quiet", 12, floor - 15, "of one stage of one", Anchor::start, 11);
  svg_.text("quiet", 12, floor - 1, "micro-batch", Anchor::start, 11);

  svg_.text("", end_x_ + 8, memory_y(together()) + 4, "dp, all at once");
  if (peak == together()) return;
  const double y = std::max(memory_y(peak) + 4, memory_y(together()) + 19);
  svg_.text("", end_x_ + 8, y,
            fmt::format("at most {} ({:.3g}%)", peak, 100.0 * peak / together()));
}

Legend Picture::legend() const {
  Legend legend{.colours = colours_,
                .numbers_are_stages = timeline_.rows_are_micro_batches,
                .outlines = scale_.roomy(),
                .holds = shows_holding(),
                .step = shown_.step};
  for (const DrawnPass& pass : timeline_.passes) legend.stale = legend.stale || !pass.fresh();
  for (const Bar& bar : shown_.travels.bars)
    legend.bars.emplace(bar.kind, travel_kind(bar.payload));
  for (const Arrow& arrow : shown_.travels.arrows) {
    legend.arrows.insert(travel_kind(arrow.payload));
    legend.upright = legend.upright || arrow.begin == arrow.end;
  }
  if (!shown_.thinned) return legend;
  const Rule& rule = schedule_.rule();
  const int activations = travel_kind(Payload::activations);
  if (legend.arrows.contains(activations))
    legend.only =
        fmt::format(", activations of micro-batch {} only", followed(rule.micro_batches()));
  if (legend.arrows.size() > legend.arrows.count(activations) || !legend.bars.empty())
    legend.only += fmt::format(", {} stage {} only", legend.only.empty() ? "of" : "the rest of",
                               followed(rule.stages()));
  return legend;
}

std::string Picture::definitions() const {
  return picture_definitions(colours_) +
         fmt::format(
             "<clipPath id=\"grid\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>"
             "</clipPath>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n",
             pixels(grid_left - 4), pixels(grid_top), pixels(end_x_ - grid_left + 8),
             pixels(end_y_ - grid_top));
}

}  // namespace

std::string draw_svg(const Schedule& schedule, const PictureSpec& spec) {
  return Picture(schedule, spec).draw();
}

}  // namespace carousel
