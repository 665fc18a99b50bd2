# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Puts one page together: title, what to see, curves, time grids, legend, where it comes from.

Lengths are inches; the page is as wide as A4 and at most as high.
"""

import textwrap

import matplotlib

matplotlib.use("Agg")

from matplotlib.figure import Figure

import curves
import palette
import time_grid
import timeline

WIDTH, HIGHEST = 8.27, 11.69
LEFT, RIGHT = 0.85, 0.35  # margins
CURVES, MEMORY, LEGEND = 1.55, 1.75, 0.55
LANE, THINNEST_LANE = 0.3, 0.085  # height of a lane of the time grid
GRID_STEPS, MEMORY_STEPS = 2, 4  # training steps shown
TITLE_WIDTH = 80  # characters
ORIGIN_WIDTH, ORIGIN_LINE = 150, 0.1  # characters, inches
STYLE = {"font.family": "DejaVu Sans", "font.size": 7, "axes.titlesize": 8,
         "axes.titleweight": "bold", "axes.linewidth": 0.6, "axes.grid": True,
         "grid.color": palette.PALE, "grid.linewidth": 0.4, "legend.frameon": False,
         "legend.fontsize": 6.5, "hatch.linewidth": 0.4, "axes.axisbelow": True,
         "xtick.major.width": 0.6, "ytick.major.width": 0.6, "svg.hashsalt": "carousel"}


def style():
    """A context in which all pictures look alike."""
    return matplotlib.rc_context(STYLE)


def draw_page(runs):
    """The page as a matplotlib Figure."""
    with style():
        return Page(runs).figure


def save(figure, path):
    """As a file whose bytes depend on nothing but the figure."""
    with style():
        figure.savefig(path, dpi=200, metadata={"Date": None} if path.endswith(".svg") else None)


class Page:
    def __init__(self, runs):
        self.runs = runs
        memory = [timeline.steady_window(run, MEMORY_STEPS) for run in runs]
        grids = [timeline.steady_window(run, GRID_STEPS, within)
                 for run, within in zip(runs, memory)]
        under = 0.7 if len(runs) > 2 else 0.55 if curves.has_legend(runs) else 0.35
        above = 0.85 + CURVES + 0.75 + MEMORY + under
        written = origin(runs)
        between, below = 0.75, LEGEND + 0.25 + ORIGIN_LINE * (len(written) - 1)
        share = (HIGHEST - above - below) / len(runs) - between
        rows = [time_grid.place_rows(run, share / THINNEST_LANE) for run in runs]
        heights = [min(share, LANE * time_grid.height_of(placed)) for placed in rows]
        self.height = above + below + between * len(runs) + sum(heights)
        self.figure = Figure(figsize=(WIDTH, self.height))

        self.write_title(memory)
        metric = curves.shared_metric(runs)
        half = (WIDTH - LEFT - RIGHT - 0.6) / 2
        width = half if metric else WIDTH - LEFT - RIGHT
        curves.draw_loss(self.axes(LEFT, 0.85, width, CURVES), runs)
        if metric:
            curves.draw_metric(self.axes(WIDTH - RIGHT - half, 0.85, half, CURVES), runs, metric)
        top = 0.85 + CURVES + 0.75
        curves.draw_memory(self.axes(LEFT, top, WIDTH - LEFT - 2.25, MEMORY), runs, memory)
        top += MEMORY + under
        for run, window, placed, height in zip(runs, grids, rows, heights):
            top += between - 0.35
            axes = self.axes(LEFT, top, WIDTH - LEFT - RIGHT, height)
            time_grid.draw_grid(axes, run, window, placed)
            axes.set_title(grid_title(run, window, len(placed), len(runs) > 1), loc="left")
            top += height + 0.35
        self.figure.legend(handles=time_grid.legend_entries(runs), loc="lower center", ncol=8,
                           bbox_to_anchor=(0.5, (below - LEGEND + 0.08) / self.height),
                           title="number in a box: stage; colour: micro-batch",
                           title_fontsize=6.5, columnspacing=1.4, handlelength=2.2)
        self.figure.text(LEFT / WIDTH, 0.16 / self.height, "\n".join(written), fontsize=5.5,
                         color=palette.GREY, va="bottom")

    def axes(self, left, top, width, height):
        return self.figure.add_axes([left / WIDTH, 1 - (top + height) / self.height,
                                     width / WIDTH, height / self.height])

    def write_title(self, windows):
        y = 1 - 0.3 / self.height
        self.figure.text(LEFT / WIDTH, y, title(self.runs), fontsize=10.5, fontweight="bold")
        self.figure.text(LEFT / WIDTH, y - 0.08 / self.height,
                         textwrap.fill(what_to_see(self.runs, windows), 130), fontsize=7.5,
                         color=palette.INK, va="top", linespacing=1.4)


def describe(run):
    """Rule, placement, N, S and devices of a run in a few words."""
    plan = run.plan
    rule, devices = plan["rule"], int(plan["devices"])
    if rule == "dp" and plan["placement"] == "single":
        rule += " " + plan["order"]
    slack = run.deck["parallel"].get("slack", 0)
    predict = run.deck["parallel"].get("predict", 0)
    transport = run.deck["parallel"].get("transport", "auto")
    return (f"{rule}{f' with slack {slack}' if slack else ''}"
            f"{f' that predicts {predict:g}' if predict else ''}, {plan['placement']}, "
            f"N = {plan['micro_batches']}, S = {plan['stages']}, "
            f"{devices} device{'s' if devices > 1 else ''}"
            f"{f' over {transport}' if devices > 1 and transport != 'auto' else ''}")


def title(runs):
    """Which runs, and which of them diverged: the other numbers of those mean little."""
    decks = ", ".join(dict.fromkeys(run.deck["run"]["name"] for run in runs))
    if len(runs) == 1:
        word = "Diverged run of " if timeline.diverged(runs[0]) else ""
        return textwrap.shorten(f"{word}{decks}: {describe(runs[0])}", TITLE_WIDTH)
    text = f"{decks}: {', '.join(map(curves.marked_name, runs))}"
    if len(text) <= TITLE_WIDTH:
        return text
    lost = list(dict.fromkeys(run.name for run in runs if timeline.diverged(run)))
    return f"{len(runs)} runs" + (f", diverged: {', '.join(lost)}" if lost else "")


def what_to_see(runs, windows):
    """The picture's message in one line, with measured numbers."""
    peaks = [int(timeline.held_by_all(run, window).bytes.max())
             for run, window in zip(runs, windows)]
    if len(runs) > 1:
        return "Most activations held at once in the steps shown, over all devices: " + ", ".join(
            f"{run.name} {palette.human_bytes(peak)}" for run, peak in zip(runs, peaks)) + "."
    run, peak = runs[0], palette.human_bytes(peaks[0])
    together = int(run.plan["activation_bytes_together"])
    predicted = timeline.predicted_peak(run)
    if peaks[0] > predicted:
        return (f"Devices ran ahead of the rule's pace: up to {peak} of activations were held at "
                f"once, planned are {palette.human_bytes(predicted)}.")
    if run.plan["rule"] != "dp":
        return (f"Micro-batches start one after the other: at most {peak} of activations are held, "
                f"{peaks[0] / together:.0%} of what dp holds at once.")
    if peaks[0] < together:
        return (f"One micro-batch runs after the other: at most {peak} of activations are held, "
                f"{peaks[0] / together:.0%} of what all at once hold.")
    return (f"All micro-batches run at once: activations rise to {peak} at the end of the forward "
            "passes and fall again.")


def grid_title(run, window, shown, several):
    last = window.first + window.steps - 1
    steps = f"step {last}" if window.steps == 1 else f"steps {window.first} and {last}"
    part = f", first {shown} devices" if shown < len(run.devices) else ""
    return (f"{run.name}: {describe(run)}; " if several else "Measured time grid: ") + (
        f"{steps}, {timeline.working_fraction(run, window):.0%} busy{part}")


def origin(runs):
    """Lines on each program with its libraries, the runs that it made where there are others, and
    the start of the first of them."""
    programs = {}  # program and libraries -> runs
    for run in runs:
        programs.setdefault("Carousel {program_version} ({git_hash}), {libraries}"
                            .format_map(run.info), []).append(run)
    lines = []
    for program, made in programs.items():
        whose = ", ".join(dict.fromkeys(run.name for run in made))
        lines += textwrap.wrap((f"{whose}: " if len(programs) > 1 else "")
                               + f"{program}; started {made[0].info['start_time']}", ORIGIN_WIDTH,
                               subsequent_indent="  ", break_on_hyphens=False)
    return lines
