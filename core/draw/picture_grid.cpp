// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/draw/picture_grid.hpp"

#include <fmt/core.h>

#include <utility>

namespace carousel {
namespace {

/// Of too many messages and collectives, follows one stage and one micro-batch.
void thin_out(Travels& travels, const Rule& rule) {
  const int stage = followed(rule.stages());
  const int micro_batch = followed(rule.micro_batches());
  std::erase_if(travels.bars, [&](const Bar& bar) { return bar.stage >= 0 && bar.stage != stage; });
  std::erase_if(travels.arrows, [&](const Arrow& arrow) {
    if (travel_kind(arrow.payload) == travel_kind(Payload::activations))
      return arrow.micro_batch != micro_batch;
    return arrow.stage != stage;
  });
}

}  // namespace

PictureTravels picture_travels(const Schedule& schedule, const Timeline& timeline,
                               int most_arrows) {
  if (schedule.devices() == 1) return {};
  const auto within = [&](const PictureTravels& shown) {
    return std::ranges::count_if(shown.travels.arrows, [&](const Arrow& arrow) {
      return arrow.begin >= 0 && arrow.end <= timeline.times;
    });
  };
  const int rows = static_cast<int>(timeline.rows.size());
  PictureTravels result{0, travels_of(schedule, 0, rows)};
  PictureTravels next{1, travels_of(schedule, 1, rows)};
  if (within(next) > within(result)) std::swap(result, next);
  // A collective covers as much of the picture as a few messages.
  result.thinned =
      std::ssize(result.travels.arrows) + 3 * std::ssize(result.travels.bars) > most_arrows;
  if (result.thinned) thin_out(result.travels, schedule.rule());
  return result;
}

void PictureGrid::draw(const Travels& travels, bool show_holding) {
  if (show_holding) draw_holding();
  for (const DrawnPass& pass : timeline_.passes) draw_pass(pass);
  for (const Bar& bar : travels.bars) draw_bar(bar);
  for (const Arrow& arrow : travels.arrows) draw_arrow(arrow);
  if (!scale_.roomy()) return draw_step_borders();
  for (const DrawnPass& pass : timeline_.passes) draw_number(pass);
}

/// A device that idles between the forward and the backward of a micro-batch holds its
/// activations.
void PictureGrid::draw_holding() {
  for (std::size_t k = 0; k < timeline_.passes.size(); ++k) {
    const DrawnPass& pass = timeline_.passes[k];
    if (pass.backward) continue;
    const bool last = k + 1 == timeline_.passes.size() || timeline_.passes[k + 1].row != pass.row;
    const std::int64_t end = last ? timeline_.times : timeline_.passes[k + 1].time;
    if (end == pass.time + 1) continue;
    const double height = scale_.box / 4;
    svg_.rectangle(fmt::format("f{}", pass.stage), scale_.x(pass.time + 1),
                   scale_.middle(pass.row) - height / 2, scale_.x(end) - scale_.x(pass.time + 1),
                   height);
  }
}

/// What reads theta_{t-1} lacks a corner.
void PictureGrid::draw_pass(const DrawnPass& pass) {
  const double gap = scale_.roomy() ? 1 : 0;
  const double width = scale_.cell - 2 * gap;
  const double height = scale_.box;
  const double cut = pass.fresh() ? 0 : std::min({9.0, width * 0.6, height * 0.6});
  const double x = scale_.x(pass.time) + gap;
  const double y = scale_.y(pass.row);
  const char* kind = pass.backward ? "backward" : "forward";
  std::string outline = fmt::format("M{} {}h{}", pixels(x), pixels(y), pixels(width - cut));
  if (cut > 0) outline += fmt::format("l{0} {0}", pixels(cut));
  outline += fmt::format("V{}H{}z", pixels(y + height), pixels(x));
  svg_.path(fmt::format("{}{}{}", kind[0], pass.stage,
                        pass.step % 2 == 1 && scale_.roomy() ? " odd" : ""),
            outline,
            fmt::format("step {}, micro-batch {}, {} of stage {} with version {}", pass.step,
                        pass.micro_batch, kind, pass.stage, pass.version));
}

/// Above whatever travels: the number that the row does not tell.
void PictureGrid::draw_number(const DrawnPass& pass) {
  const int number = timeline_.rows_are_micro_batches ? pass.stage : pass.micro_batch;
  const std::string text = fmt::format("{}{}", number, pass.fresh() ? "" : "′");
  const double size = std::min(13.0, scale_.box * 0.75);
  if (size < 7 || text_width(text, size) > scale_.cell - 3) return;
  svg_.text(pass.backward && colours_[pass.stage].white_text ? "white" : "",
            scale_.x(pass.time) + scale_.cell / 2, scale_.middle(pass.row) + size * 0.36, text,
            Anchor::middle, size);
}

/// Where boxes are too small for outlines, a line where a row's training step begins.
void PictureGrid::draw_step_borders() {
  if (!timeline_.rows_are_micro_batches) return;
  for (std::size_t k = 1; k < timeline_.passes.size(); ++k) {
    const DrawnPass& pass = timeline_.passes[k];
    if (pass.row != timeline_.passes[k - 1].row || pass.step == timeline_.passes[k - 1].step)
      continue;
    const double x = scale_.x(pass.time);
    svg_.line("border", x, scale_.y(pass.row), x, scale_.y(pass.row) + scale_.box);
  }
}

/// A collective is a line through its devices; its root is a ring. A broadcast stands in the time
/// step that needs it, a sum in the one that has made it.
void PictureGrid::draw_bar(const Bar& bar) {
  const double aside = std::min(5.0, scale_.cell / 5);
  const double x =
      bar.kind == ActionKind::broadcast ? scale_.x(bar.end) + aside : scale_.x(bar.begin) - aside;
  const std::string& style = travel_styles()[travel_kind(bar.payload)].css_class;
  svg_.line(fmt::format("bar-{}", style), x, scale_.middle(bar.rows.front()), x,
            scale_.middle(bar.rows.back()),
            fmt::format("{} of {}", to_string(bar.kind), to_string(bar.payload)));
  for (const int row : bar.rows)
    svg_.circle(fmt::format("{}-{}", row == bar.root ? "root" : "bar", style), x,
                scale_.middle(row), row == bar.root ? 3.5 : 2);
}

/// Between the edges of boxes, so that their texts stay free. What goes up and what goes down at
/// the same time keep apart.
void PictureGrid::draw_arrow(const Arrow& arrow) {
  const bool down = arrow.to > arrow.from;
  const double aside = std::min(2.5, scale_.cell / 8) * (arrow.begin != arrow.end ? 0
                                                         : down                   ? -1
                                                                                  : 1);
  svg_.line(travel_styles()[travel_kind(arrow.payload)].css_class, scale_.x(arrow.begin) + aside,
            scale_.y(arrow.from) + (down ? scale_.box : 0), scale_.x(arrow.end) + aside,
            scale_.y(arrow.to) + (down ? 0 : scale_.box),
            fmt::format("{} of stage {} from row {} to row {}", to_string(arrow.payload),
                        arrow.stage, arrow.from, arrow.to));
}

}  // namespace carousel
