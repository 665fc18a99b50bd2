# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Draws what activation memory is compared with: lines for what dp would hold and for the peaks
that the plans predict, and their names at the right of the axes.

Each number of bytes has one line, whatever and whosever it is. Nothing measured is drawn here.
"""

import textwrap

import palette
import timeline

LINE = 0.085  # height of a line of text, as a part of the axis
MOST_LINES = 12  # of text beside the axis
LABEL_WIDTH = 28  # characters
TOGETHER, ACCUMULATING = "dp, all at once (N A)", "dp, accumulating (A)"
PREDICTED = "predicted peak"


def draw(axes, runs, unit):
    """The lines and their labels. Returns what the legend calls the runs: their names or,
    where labels with names do not fit, those with a number before each."""
    found = find(runs)
    for value, owners in found.items():
        predicted = PREDICTED in owners
        axes.axhline(value / unit, linewidth=0.9, color=palette.BLUE if predicted else palette.GREY,
                     linestyle=(0, (5, 3)) if predicted else (0, (1, 1.5)),
                     gid="predicted:" + ",".join(runs[k].name for k in owners[PREDICTED])
                     if predicted else f"reference:{value}")
    names = [run.name for run in runs]
    labels = label(found, names)
    if sum(map(len, labels.values())) > MOST_LINES:
        labels = label(found, [f"run {k + 1}" for k in range(len(runs))])
        names = [f"{k + 1} {name}" for k, name in enumerate(names)]
    write_beside(axes, labels, unit)
    return names


def find(runs):
    """Bytes -> what they are -> indices of the runs that it holds for."""
    found = {}
    for k, run in enumerate(runs):
        for what, value in ((TOGETHER, int(run.plan["activation_bytes_together"])),
                            (ACCUMULATING, int(run.plan["activation_bytes_accumulate"])),
                            (PREDICTED, timeline.predicted_peak(run))):
            found.setdefault(value, {}).setdefault(what, []).append(k)
    return found


def label(found, names):
    """Bytes -> lines of text, which name the runs where it does not hold for all of them."""
    labels = {}
    for value, owners in found.items():
        for what, runs in owners.items():
            whose = ", ".join(dict.fromkeys(names[k] for k in runs))
            text = what if len(runs) == len(names) else f"{what}: {whose}"
            labels.setdefault(value, []).extend(textwrap.wrap(
                text, LABEL_WIDTH, subsequent_indent="  ", break_on_hyphens=False))
    return labels


def write_beside(axes, labels, unit):
    """Texts at the height of their bytes, moved apart where they touch."""
    top = axes.get_ylim()[1]
    below = sum(map(len, labels.values()))  # lines still to be placed
    ceiling = 1.06
    for value in sorted(labels, reverse=True):
        lines = labels[value]
        below -= len(lines)
        half = LINE * len(lines) / 2
        wanted = value / unit / top
        height = max(min(wanted, ceiling - half), LINE * below + half)
        ceiling = height - half - 0.02
        axes.annotate(palette.human_bytes(value), xy=(1, wanted), xytext=(1.03, height),
                      xycoords="axes fraction", textcoords="axes fraction", va="center",
                      annotation_clip=False, fontsize=6.5,
                      arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": palette.GREY,
                                  "shrinkA": 0, "shrinkB": 0})
        axes.annotate("\n".join(lines), xy=(1.03, height), xytext=(38, 0), va="center",
                      xycoords="axes fraction", textcoords="offset points", annotation_clip=False,
                      fontsize=6.5)
