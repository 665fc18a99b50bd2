# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the measured time grid: a row per device, in it a lane per micro-batch, boxes for what was
done and arrows for messages. The times are those of the run file, in seconds until they are drawn.
"""

import math
from dataclasses import dataclass

from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

import palette
import timeline

GAP = 0.9  # lanes between two devices, for the arrows
TEXT_POINTS = 5.5  # size of the stage numbers
LABEL_POINTS = 6.5
MANY_ARROWS = 150  # are drawn thinner


@dataclass
class Row:
    """A device's place: its lanes go down from `top`, in units of a lane."""

    device: int
    top: float
    lanes: list  # micro-batches

    @property
    def height(self):
        return max(len(self.lanes), 1)


def place_rows(run, most_lanes):
    """As many whole devices as fit, from the first on; at least one."""
    rows, top = [], 0.0
    for d, device in enumerate(run.devices):
        row = Row(d, top, timeline.lanes(device))
        if rows and top + row.height > most_lanes:
            break
        rows.append(row)
        top += row.height + GAP
    return rows


def height_of(rows):
    return rows[-1].top + rows[-1].height


def draw_grid(axes, run, window, rows):
    unit_name, unit = palette.second_unit(window.end - window.begin)
    scale = 1 / unit
    axes.set_xlim(0, (window.end - window.begin) * scale)
    axes.set_ylim(height_of(rows) + 0.15, -0.15)
    for row in rows:
        draw_row(axes, run, window, row, scale)
    for step, begin in timeline.step_begins(run).items():
        if window.first < step < window.first + window.steps:
            axes.axvline((begin - window.begin) * scale, color=palette.INK, linewidth=0.6,
                         linestyle=(0, (1, 2)))
    draw_arrows(axes, timeline.arrows(run, window), window, {row.device: row for row in rows}, scale)
    label_rows(axes, rows)
    axes.set_xlabel(f"{unit_name} since the begin of step {window.first}")
    axes.grid(False)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)


def draw_row(axes, run, window, row, scale):
    boxes = timeline.boxes(run.devices[row.device], window)
    waits, others, numbered = [], [], []
    for box in boxes:
        low, high = max(box.begin, window.begin), min(box.end, window.end)
        x, width = (low - window.begin) * scale, (high - low) * scale
        if box.kind in ("forward", "backward", "update"):
            numbered.append((box, x, width))
        elif box.kind == "wait":
            waits.append(Rectangle((x, row.top + 0.18), width, row.height - 0.36))
        else:
            top, height = place(row, box)
            others.append(Rectangle((x, top), width, height))
    axes.add_patch(Rectangle((0, row.top), 1, row.height, transform=axes.get_yaxis_transform(),
                             facecolor="#f5f5f5", linewidth=0, zorder=0))
    axes.add_collection(PatchCollection(waits, facecolor="white", edgecolor=palette.GREY,
                                        hatch="////////", linewidth=0, zorder=1))
    axes.add_collection(PatchCollection(others, linewidth=0, facecolor=palette.GREY, zorder=2))
    for box, x, width in numbered:
        draw_numbered(axes, box, x, width, row)


def place(row, box):
    """Top and height of an action: in the lane of its micro-batch, or over all when it has none."""
    if box.micro_batch in row.lanes:
        return row.top + row.lanes.index(box.micro_batch) + 0.05, 0.9
    return row.top + 0.05, row.height - 0.1


def draw_numbered(axes, box, x, width, row):
    colour = {"forward": palette.forward, "backward": palette.backward,
              "update": lambda _: palette.BLACK}[box.kind](box.micro_batch)
    top, height = place(row, box)
    wide, high = points(axes, width, height)
    # A thin box would be all edge.
    axes.add_patch(Rectangle((x, top), width, height, facecolor=colour, edgecolor=palette.INK,
                             linewidth=0.25 if wide > 3 else 0, zorder=3,
                             gid=f"{box.kind}:{row.device}"))
    if wide > 0.62 * TEXT_POINTS * len(str(box.stage)) + 1 and high > TEXT_POINTS:
        axes.text(x + width / 2, top + height / 2, str(box.stage), ha="center", va="center",
                  fontsize=TEXT_POINTS, color=palette.ink_on(colour), zorder=4, clip_on=True)


def points(axes, width, height):
    """A width and a height in units of the axes, in points."""
    place, (inches_wide, inches_high) = axes.get_position(), axes.figure.get_size_inches()
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    return (72 * width * place.width * inches_wide / (right - left),
            72 * height * place.height * inches_high / abs(bottom - top))


def draw_arrows(axes, arrows, window, rows, scale):
    for kind in sorted({arrow.kind for arrow in arrows}):
        colour, style = palette.message(kind)
        width = 0.5 if len(arrows) <= MANY_ARROWS else 0.3
        lines, heads = [], {"v": [], "^": []}
        for arrow in arrows:
            if arrow.kind != kind or arrow.sender not in rows or arrow.receiver not in rows:
                continue
            sender, receiver = rows[arrow.sender], rows[arrow.receiver]
            down = sender.top < receiver.top
            start = sender.top + (sender.height if down else 0)
            end = receiver.top + (0 if down else receiver.height)
            sent, seen = ((t - window.begin) * scale for t in (arrow.sent, arrow.seen))
            lines.append([(sent, start), (seen, end)])
            heads["v" if down else "^"].append((seen, end))
        axes.add_collection(LineCollection(lines, colors=colour, linestyles=[style], linewidths=width,
                                           zorder=5, gid=f"messages:{kind}"))
        for marker, points in heads.items():
            if points:
                axes.scatter(*zip(*points), marker=marker, s=4, color=colour, linewidth=0, zorder=6)


def label_rows(axes, rows):
    ticks, labels = [], []
    for row in rows:
        for k, i in enumerate(row.lanes or [None]):
            ticks.append(row.top + k + 0.5)
            if len(rows) == 1 and len(row.lanes) > 1:
                labels.append(f"micro-batch {i}")
            elif len(row.lanes) > 1:
                labels.append(f"device {row.device}: {i}")
            else:
                labels.append(f"device {row.device}")
    lane = points(axes, 0, height_of(rows) / len(ticks))[1]
    every = math.ceil(1.15 * LABEL_POINTS / lane)  # lane, where not all labels find room
    axes.set_yticks(ticks[::every], labels[::every], fontsize=LABEL_POINTS)
    axes.tick_params(axis="y", length=0)


def legend_entries(runs):
    """What the boxes, and the arrows where there are any, mean."""
    entries = [Patch(facecolor=palette.forward(0), edgecolor=palette.INK, linewidth=0.3,
                     label="forward of a stage"),
               Patch(facecolor=palette.backward(0), edgecolor=palette.INK, linewidth=0.3,
                     label="backward"),
               Patch(facecolor=palette.BLACK, label="update"),
               Patch(facecolor=palette.GREY, label="load, sum, send")]
    if any((device.actions["kind"] == "wait").any() for run in runs for device in run.devices):
        entries.append(Patch(facecolor="white", edgecolor=palette.GREY, hatch="////////",
                             linewidth=0, label="wait"))
    kinds = {str(kind) for run in runs for device in run.devices
             for kind in device.messages["kind"][device.messages["direction"] == "send"]}
    for word, members in (("gradient", {"gradient", "total"}), ("parameters", {"parameters"}),
                          ("token", {"token"})):
        if kinds & members:
            colour, style = palette.message(word)
            entries.append(Line2D([], [], color=colour, linestyle=style, linewidth=0.8,
                                  label=word))
    return entries
