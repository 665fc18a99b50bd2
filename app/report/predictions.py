# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Draws what `carousel predict` wrote beside the targets of the data: numbers against numbers, fields
and labels of pixels as pictures of a few samples."""

import pathlib
import tomllib

import h5py
import numpy
from matplotlib.figure import Figure

import palette
from run_file import BAD_DATA, INPUT_OUTPUT, Refusal, attributes

SAMPLES = 4  # of fields that are shown
PANELS = 16  # of numbers


def is_predictions(path):
    """Whether a path leads to a file of predictions."""
    if not pathlib.Path(path).is_file() or not h5py.is_hdf5(path):
        return False
    with h5py.File(path) as file:
        return "info" in file and attributes(file["info"]).get("format") == "carousel predictions"


class Predictions:
    """Outputs and targets [n, c, ...space], of labels with c = 1, for the samples whose target
    exists. `space` is the number of axes of space."""

    def __init__(self, path):
        self.path = path
        with h5py.File(path) as file:
            info = attributes(file["info"])
            self.step = int(info["step"])
            data = tomllib.loads(info["deck"])["data"]
            if "places" not in file:
                raise Refusal(BAD_DATA, f"{path}: its inputs are images; `carousel eval` compares "
                                        "them with their labels")
            self.has_labels = "labels" in file
            outputs = file["labels" if self.has_labels else "outputs"][()]
            files = [name.decode() for name in file["files"][()]]
            places = file["places"][()]
        self.target = data["target"]
        self.axes = self.target.get("axes", "n c").split()
        self.later = data["input"].get("history", 1) - 1 + self.target.get("ahead", 0)
        self.space = sum(axis in self.axes for axis in "zyx")
        if self.has_labels:
            outputs = outputs.reshape(len(outputs), 1, *outputs.shape[1:])
        self.outputs = outputs.reshape(*outputs.shape[:2], *outputs.shape[2:2 + self.space])
        kept, targets = [], []
        for index, name in enumerate(files):
            if not pathlib.Path(name).exists():
                raise Refusal(INPUT_OUTPUT, f"{name}: no such file; draw {path} in the folder in "
                                            "which `carousel predict` ran")
            with h5py.File(name) as file:
                for k in numpy.flatnonzero(places[:, 0] == index):
                    frame = self.frame(file, places[k])
                    if frame is not None:
                        kept.append(k)
                        targets.append(frame)
        if not kept:
            raise Refusal(BAD_DATA, f"{path}: the files of its inputs have no target for any of them")
        self.outputs = self.outputs[kept].astype(float)
        self.targets = numpy.array(targets, float)
        if self.has_labels and self.target.get("ignore", -1) >= 0:
            self.targets[self.targets == self.target["ignore"]] = numpy.nan

    def frame(self, file, place):
        """Of all arrays, cut out as the network saw it; None where there is none."""
        parts = []
        for name in self.target["from"]:
            if name not in file:
                return None
            array = file[name]
            time = int(place[2]) + self.later
            axes = self.axes
            if array.ndim < len(axes):  # one channel
                axes = [axis for axis in axes if axis != "c"]
            if "t" in axes and time >= array.shape[axes.index("t")]:
                return None
            part = array[tuple(int(place[1]) if axis == "n" else time if axis == "t"
                               else slice(None) for axis in axes)]
            left = [axis for axis in axes if axis not in "nt"]
            part = numpy.transpose(part, [left.index(axis) for axis in "czyx" if axis in left])
            parts.append(part if "c" in left else numpy.asarray(part)[None])
        joined = numpy.concatenate(parts)
        for axis, shown in enumerate(self.outputs.shape[2:], 1):
            begin = (joined.shape[axis] - shown) // 2
            joined = joined.take(range(begin, begin + shown), axis)
        return joined


def draw(path):
    """The page as a matplotlib Figure."""
    try:
        found = Predictions(path)
    except (OSError, KeyError, ValueError, IndexError) as error:
        raise Refusal(BAD_DATA, f"{path}: cannot compare it with its data: "
                                f"{' '.join(str(error).split())}") from None
    if found.space > 0:
        figure = draw_fields(found)
    else:
        figure = draw_classes(found) if found.has_labels else draw_numbers(found)
    figure.suptitle(f"{pathlib.Path(path).name}: {len(found.outputs)} predictions after "
                    f"{found.step} steps", x=0.08, ha="left", fontsize=9, fontweight="bold")
    return figure


def draw_numbers(found):
    """Each number that is predicted against its target."""
    count = min(PANELS, found.outputs.shape[1])
    across = min(4, count)
    down = -(-count // across)
    figure = Figure(figsize=(8.27, 0.9 + 1.85 * down))
    axes = figure.subplots(down, across, squeeze=False)
    figure.subplots_adjust(left=0.08, right=0.97, top=1 - 0.6 / figure.get_figheight(),
                           bottom=0.5 / figure.get_figheight(), wspace=0.35, hspace=0.4)
    for k, panel in enumerate(axes.flat):
        if k >= count:
            panel.axis("off")
            continue
        target, output = found.targets[:, k], found.outputs[:, k]
        ends = [min(target.min(), output.min()), max(target.max(), output.max())]
        panel.plot(ends, ends, color=palette.GREY, linewidth=0.8)
        panel.plot(target, output, ".", color=palette.BLUE, markersize=2, alpha=0.5,
                   rasterized=True)
        error = numpy.sqrt(((output - target) ** 2).mean())
        panel.set_title(f"number {k}: rmse {error:.3g}", fontsize=7)
    for panel in axes[-1]:
        panel.set_xlabel("target")
    for panel in axes[:, 0]:
        panel.set_ylabel("predicted")
    return figure


def draw_classes(found):
    """How many samples of each class were taken for which."""
    counted = ~numpy.isnan(found.targets)  # others have a label that is ignored
    targets, outputs = found.targets[counted].astype(int), found.outputs[counted].astype(int)
    classes = max(outputs.max(initial=0), targets.max(initial=0)) + 1
    counts = numpy.zeros((classes, classes), int)
    numpy.add.at(counts, (targets, outputs), 1)
    figure = Figure(figsize=(5.5, 5))
    panel = figure.subplots()
    panel.imshow(counts / numpy.maximum(1, counts.sum(1, keepdims=True)), cmap="Blues", vmin=0,
                 vmax=1)
    if classes <= 20:
        for (row, column), count in numpy.ndenumerate(counts):
            if count:
                panel.text(column, row, count, ha="center", va="center", fontsize=6)
    panel.set_xlabel("predicted class")
    panel.set_ylabel("class")
    panel.grid(False)
    return figure


def draw_fields(found):
    """Target, prediction and difference of the first channel of a few samples, of volumes in the
    middle slice."""
    chosen = numpy.linspace(0, len(found.outputs) - 1, min(SAMPLES, len(found.outputs))).astype(int)
    figure = Figure(figsize=(8.27, 0.8 + 2.2 * len(chosen)))
    axes = figure.subplots(len(chosen), 3, squeeze=False)
    figure.subplots_adjust(left=0.08, right=0.95, top=1 - 0.7 / figure.get_figheight(),
                           bottom=0.25 / figure.get_figheight(), wspace=0.15, hspace=0.15)
    for row, k in zip(axes, chosen):
        target, output = found.targets[k, 0], found.outputs[k, 0]
        if found.space == 3:
            target, output = target[len(target) // 2], output[len(output) // 2]
        low, high = numpy.nanmin(target), numpy.nanmax(target)
        reach = numpy.nanmax(abs(output - target)) or 1
        pictures = ((target, low, high, "viridis"), (output, low, high, "viridis"),
                    (output - target, -reach, reach, "RdBu_r"))
        for panel, (picture, least, most, colours) in zip(row, pictures):
            if found.space == 1:
                panel.plot(picture, color=palette.BLUE, linewidth=0.8)
                panel.set_ylim(least, most)
                continue
            shown = panel.imshow(picture, vmin=least, vmax=most, cmap=colours)
            panel.set_xticks([])
            panel.set_yticks([])
            figure.colorbar(shown, ax=panel, shrink=0.8).ax.tick_params(labelsize=5)
        row[0].set_ylabel(f"sample {k}")
    for panel, title in zip(axes[0], ("target", "predicted", "difference")):
        panel.set_title(title)
    return figure
