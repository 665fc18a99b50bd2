# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Draws curves: loss and a metric over training steps, activation memory over time.

Lines carry a gid, "loss:NAME" and so on, by which tests find them. Nothing is computed here but
units: bytes become KiB and the like, seconds become training steps.
"""

import numpy
from matplotlib.ticker import LogLocator, MaxNLocator, StrMethodFormatter

import palette
import references
import timeline

MOST_DEVICES = 4  # with a curve of memory each
FEW_STEPS = 50  # of so many every one is a point
HIGH, TOO_HIGH = 4, 10  # times the usual loss: for a linear axis, for any axis


def draw_progress(axes, runs, column, word):
    """A column of /steps as a thin line, of /evaluations as a thick one with points."""
    for k, run in enumerate(runs):
        colour, style = palette.RUNS[k]
        axes.plot(run.steps["step"], run.steps[column], color=colour, linewidth=0.5, alpha=0.45,
                  marker="o" if len(run.steps["step"]) < FEW_STEPS else "", markersize=1.2,
                  gid=f"{column}:{run.name}")
        axes.plot(run.evaluations["step"], run.evaluations[column], color=colour, linestyle=style,
                  linewidth=line_width(runs, k), marker="o", markersize=line_width(runs, k) + 1,
                  gid=f"test {column}:{run.name}",
                  label=marked_name(run) if len(runs) > 1 else "test set")
        for joint in run.joints:
            axes.axvline(joint, color=colour, linewidth=0.6, linestyle=":", alpha=0.7,
                         gid=f"joint:{run.name}:{joint}")
    if len(runs) == 1:
        axes.plot([], [], color=palette.RUNS[0][0], linewidth=0.5, alpha=0.6,
                  label="training step")
    axes.set_title(word, loc="left")
    axes.set_xlabel("training step" if len(runs) == 1
                    else "training step (points: on the test set; thin: every step)")
    last = max(int(run.steps["step"].max(initial=0)) + 1 for run in runs)
    axes.set_xlim(-0.01 * last, 1.02 * last)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10]))


def marked_name(run):
    return run.name + (" (diverged)" if timeline.diverged(run) else "")


def line_width(runs, k):
    """Points, of the line of run k."""
    return palette.RUN_WIDTHS[k] if len(runs) > 1 else 1.3


def draw_loss(axes, runs):
    draw_progress(axes, runs, "loss", "Loss")
    values = numpy.concatenate([losses(run) for run in runs])
    usual = usual_loss(runs)
    ceiling = TOO_HIGH * usual if usual > 0 else numpy.inf
    shown = values[numpy.isfinite(values) & (values <= ceiling)]
    if len(shown):
        scale_loss(axes, shown.min(), shown.max(), usual)
    mark_above(axes, runs, ceiling)
    # Where there are several, their lines leave no room, and the metric beside has the legend.
    if len(runs) == 1 or shared_metric(runs) is None:
        axes.legend(loc="best")


def losses(run):
    """All of a run, of the training steps and on the test set."""
    return numpy.concatenate([run.steps["loss"], run.evaluations["loss"]])


def usual_loss(runs):
    """What a loss that exploded is measured by: the largest first loss, that of weights not yet
    trained, or the median, where training went on from better ones. 0 when none is finite."""
    values = numpy.sort(numpy.concatenate([losses(run) for run in runs]))
    values = values[numpy.isfinite(values)]
    firsts = [float(loss) for run in runs for loss in run.steps["loss"][:1] if numpy.isfinite(loss)]
    return max([*values[(len(values) - 1) // 2:][:1], *firsts], default=0.0)


def scale_loss(axes, low, high, usual):
    """From 0 on, or logarithmic where that would leave little room to most values."""
    if low <= 0 or (high <= 50 * low and high <= HIGH * usual):
        axes.set_ylim(0, 1.05 * high if high > 0 else 1)
        return
    axes.set_yscale("log")
    margin = (high / low) ** 0.05
    axes.set_ylim(low / margin, high * margin)
    if high < 1000 * low:  # powers of ten alone are too few
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.minorticks_off()


def mark_above(axes, runs, ceiling):
    """Triangles at the top where losses are too high to be shown, and how high they are."""
    largest = 0.0
    for k, run in enumerate(runs):
        steps = numpy.concatenate([run.steps["step"], run.evaluations["step"]])
        above = losses(run) > ceiling
        if not above.any():
            continue
        largest = max(largest, float(losses(run)[above].max()))
        axes.plot(steps[above], numpy.ones(above.sum()), transform=axes.get_xaxis_transform(),
                  color=palette.RUNS[k][0], linestyle="", marker="^", markersize=4, clip_on=False,
                  gid=f"loss above:{run.name}")
    if largest:
        axes.set_title(f"triangles: beyond the axis, up to {largest:.4g}", loc="right",
                       fontsize=6.5, fontweight="normal")


def shared_metric(runs):
    """The first metric of a run that all runs have; None where there is none."""
    return next((name for name in runs[0].metrics
                 if all(name in run.metrics for run in runs)), None)


def draw_metric(axes, runs, name):
    draw_progress(axes, runs, name, name.capitalize())
    largest = max(run.steps[name].max(initial=0) for run in runs)
    if largest <= 1:  # a part of the samples
        axes.set_ylim(0, 1.03)
    axes.legend(loc="best")


def draw_memory(axes, runs, windows):
    """Activation bytes of all devices together over a few steps, beside what was predicted."""
    curves = [timeline.held_by_all(run, window) for run, window in zip(runs, windows)]
    largest = max([int(run.plan["activation_bytes_together"]) for run in runs]
                  + [int(curve.bytes.max()) for curve in curves])
    name, unit = palette.byte_unit(largest)
    axes.set_ylim(0, 1.08 * largest / unit)
    names = references.draw(axes, runs, unit)
    for k, (run, window, curve) in enumerate(zip(runs, windows, curves)):
        colour, style = palette.RUNS[k]
        devices = len(run.devices)
        if len(runs) == 1 and has_legend(runs):
            for d, device in enumerate(run.devices):
                draw_curve(axes, runs, timeline.held_by(device, window), window, unit,
                           color=palette.backward(d), linewidth=0.7, gid=f"held:{run.name}:{d}",
                           label=f"device {d}")
        words = "all devices" if len(runs) == 1 and devices > 1 else "measured"
        draw_curve(axes, runs, curve, window, unit, color=colour, linestyle=style,
                   linewidth=line_width(runs, k), gid=f"held:{run.name}",
                   label=words if len(runs) == 1
                   else f"{names[k]}: a step takes {palette.human_seconds(window.step_seconds)}")
    axes.set_title("Activation memory" if all(len(run.devices) == 1 for run in runs)
                   else "Activation memory, sum over devices", loc="left")
    axes.set_ylabel(name)
    first = shown_step(runs, windows[0], 0)
    axes.set_xlim(first, first + max(window.steps for window in windows))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_xlabel("training steps" if len(runs) > 1 else
                    f"training step; one takes {palette.human_seconds(windows[0].step_seconds)}")
    if has_legend(runs):
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22),
                    ncol=2 if len(runs) > 2 else 5)


def has_legend(runs):
    """Whether there is more than one curve of memory: several runs, or few enough devices."""
    return len(runs) > 1 or 1 < len(runs[0].devices) <= MOST_DEVICES


def shown_step(runs, window, steps):
    """Where on the axis a time is, in training steps since the begin of the window: one run shows
    its own steps, several runs start together."""
    return steps + (window.first if len(runs) == 1 else 0)


def draw_curve(axes, runs, curve, window, unit, **style):
    steps = numpy.append((curve.seconds - window.begin) / window.step_seconds, window.steps)
    axes.step(shown_step(runs, window, steps), numpy.append(curve.bytes, curve.bytes[-1]) / unit,
              where="post", **style)
