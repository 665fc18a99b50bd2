# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""What a picture shows, as plain numbers: which steps, who held how much when, who did what when,
and which message went where. Times are seconds since the start of the run, sizes bytes.

Nothing is drawn here, so that tests can compare these numbers with those of the file.
"""

from dataclasses import dataclass

import numpy


@dataclass
class Window:
    """Consecutive training steps, from the begin of the first to the begin of the one after."""

    first: int
    steps: int
    begin: float
    end: float

    @property
    def step_seconds(self):
        return (self.end - self.begin) / self.steps


@dataclass
class Curve:
    """Bytes in use: `bytes[k]` from `seconds[k]` on, the last until the end of the window."""

    seconds: numpy.ndarray
    bytes: numpy.ndarray


@dataclass
class Box:
    """One action on a device; begin and end in seconds."""

    kind: str
    step: int
    micro_batch: int
    stage: int
    begin: float
    end: float


@dataclass
class Arrow:
    """One message: sent by `sender` at `sent`, seen by `receiver` to have come at `seen`."""

    kind: str
    sender: int
    receiver: int
    sent: float
    seen: float


def diverged(run):
    """Whether its numbers ceased to be finite: it says so itself, or, where it has no status or was
    killed before it could, its losses do."""
    return run.state == "diverged" or not numpy.isfinite(run.steps["loss"]).all()


def step_begins(run):
    """Step -> begin of its first forward on any device, for the profiled steps."""
    begins = {}
    for device in run.devices:
        rows = device.actions
        for k in numpy.flatnonzero((rows["kind"] == "forward") & (rows["stage"] == 0)):
            step, begin = int(rows["step"][k]), float(rows["begin"][k])
            begins[step] = min(begin, begins.get(step, begin))
    return begins


def steady_window(run, count, within=None):
    """At most `count` consecutive profiled steps, of median duration among those in question, so
    that neither luck nor a hiccup is shown; not from the first two steps, if there are others.
    With `within`, another window, only its steps are in question."""
    begins = step_begins(run)
    if within:
        begins = {step: begin for step, begin in begins.items()
                  if within.first <= step <= within.first + within.steps}
    for steps in range(count, 0, -1):
        windows = []
        for first, begin in sorted(begins.items()):
            if all(first + k in begins for k in range(steps)):
                end = begins.get(first + steps)
                windows.append(Window(first, steps, begin,
                                      last_end(run, first + steps - 1) if end is None else end))
        for wanted in (lambda w: w.first >= 2 and w.first + w.steps in begins,
                       lambda w: w.first >= 2, lambda w: True):
            chosen = sorted(filter(wanted, windows), key=lambda w: w.end - w.begin)
            if chosen:
                return chosen[(len(chosen) - 1) // 2]
    raise ValueError("no forward of stage 0 was recorded")


def last_end(run, step):
    """When the last action of a step ended."""
    return max(float(device.actions["end"][device.actions["step"] == step].max(initial=0))
               for device in run.devices)


def held_by(device, window):
    """Curve of the activation bytes of one device within a window. Where nothing was recorded
    before the window, it starts with the first record."""
    seconds, held = device.memory["seconds"], device.memory["activations"]
    first = max(int(numpy.searchsorted(seconds, window.begin, side="right")) - 1, 0)
    last = int(numpy.searchsorted(seconds, window.end, side="right"))
    return Curve(numpy.maximum(seconds[first:last], window.begin), held[first:last])


def held_by_all(run, window):
    """Curve of the sum over all devices, from when all of them are known."""
    curves = [held_by(device, window) for device in run.devices]
    curves = [curve for curve in curves if len(curve.seconds)]
    seconds = numpy.unique(numpy.concatenate([curve.seconds for curve in curves]))
    seconds = seconds[seconds >= max(curve.seconds[0] for curve in curves)]
    total = numpy.zeros(len(seconds), dtype=numpy.int64)
    for curve in curves:
        total += curve.bytes[numpy.searchsorted(curve.seconds, seconds, side="right") - 1]
    return Curve(seconds, total)


def predicted_peak(run):
    """Bytes that the plan lets all devices together hold at once: micro-batch i holds stage j from
    its forward to its backward, at the time steps of the rule (S stages, N micro-batches)."""
    n, s = int(run.plan["micro_batches"]), int(run.plan["stages"])
    if run.plan["rule"] == "dp":
        one_by_one = run.plan["placement"] == "single" and run.plan["order"] == "accumulate"
        return int(run.plan["activation_bytes_" + ("accumulate" if one_by_one else "together")])
    period = numpy.zeros(2 * s, dtype=numpy.int64)  # time steps of a steady training step
    for i in range(n):
        for j, held in enumerate(run.stage_activations):
            for time in range(j, 2 * s - j):
                period[(2 * (s * i // n) + time) % (2 * s)] += held
    return int(period.max())


def boxes(device, window):
    """The actions of a device that overlap a window, in the order in which they ran."""
    rows = device.actions
    inside = numpy.flatnonzero((rows["end"] > window.begin) & (rows["begin"] < window.end))
    return [Box(str(rows["kind"][k]), int(rows["step"][k]), int(rows["micro_batch"][k]),
                int(rows["stage"][k]), float(rows["begin"][k]), float(rows["end"][k]))
            for k in inside]


def working_fraction(run, window):
    """Part of the time of all devices, 0 to 1, in which they did anything but wait."""
    working = sum(min(box.end, window.end) - max(box.begin, window.begin)
                  for device in run.devices for box in boxes(device, window) if box.kind != "wait")
    return working / (len(run.devices) * (window.end - window.begin))


def lanes(device):
    """The micro-batches that a device computes, in order."""
    rows = device.actions
    return sorted({int(i) for i in rows["micro_batch"][rows["kind"] == "forward"]})


def arrows(run, window):
    """The messages that were on their way in a window and whose both ends were recorded."""
    sent = {}
    for d, device in enumerate(run.devices):
        rows = device.messages
        for k in numpy.flatnonzero(rows["direction"] == "send"):
            sent[message_key(rows, k, d, int(rows["peer"][k]))] = float(rows["posted"][k])
    found = []
    for d, device in enumerate(run.devices):
        rows = device.messages
        for k in numpy.flatnonzero(rows["direction"] == "receive"):
            peer, seen = int(rows["peer"][k]), float(rows["completed"][k])
            begin = sent.get(message_key(rows, k, peer, d))
            if begin is not None and begin < window.end and seen > window.begin:
                found.append(Arrow(str(rows["kind"][k]), peer, d, begin, seen))
    return found


def message_key(rows, k, sender, receiver):
    """What both ends of a message agree on."""
    numbers = (int(rows[name][k]) for name in ("step", "micro_batch", "stage"))
    return str(rows["kind"][k]), *numbers, sender, receiver
