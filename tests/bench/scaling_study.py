#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Weak and strong scaling on paper: simulated steps on three described clusters.

    scaling_study.py FOLDER [--build build/release] [--stages 16] [--most 1024] [--passes 1]
                     [--report] [key=value ...]

How the time of a network is shared among its stages is measured first: one micro-batch of every size
on this machine, which wants to be quiet until then, forward and backward of each stage. A device of
a cluster takes as long for all of them as its images per second say; updates and sums take what its
memory's bandwidth says. `carousel plan --measured` then simulates every rule with one micro-batch
per device, up to `--most` of them: 32 images on each (weak), or 4,096 images on all of them
(strong); and weak scaling where every action takes 3% or 10% more or less, at random, on up to 256
devices. dp and late sums have 4, 8 or 16 stages; rings have four or eight slots of devices, in
which stages are cut into shards, and v2 a slack of one or two; shards travel whole or in up to 16
chunks of the model; of each the fastest counts. With --passes K every device takes K such micro-
batches one after the other in a step, weak scaling alone, without FSDP and pipelines, which have no
passes; nothing is drawn. What FOLDER has is not done again. Prints a table
and draws FOLDER/scaling.png: the part of a step in which devices compute; `-` where a rule does not
exist, `?` where not all of it is done. Needs h5py, numpy and matplotlib.
"""
import functools
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys

import h5py
import matplotlib
import numpy as np
import study

matplotlib.use("Agg")
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "app"))
from dataset import write_dataset  # noqa: E402
from matplotlib import pyplot  # noqa: E402

NETWORKS = {"resnet50": "ResNet-50", "vit_b_16": "ViT-B/16"}
WEAK = {devices: 32 for devices in (4, 16, 64, 256, 1024, 4096)}
STRONG = {devices: 4096 // devices for devices in (64, 256, 1024)}
FEW = {devices: 32 for devices in (4, 16, 64, 256)}
# Title, devices with the images of each, and keys beside.
MODES = {"weak": ("32 each", WEAK, []), "strong": ("4,096 in all", STRONG, []),
         "weak, 3% jitter": ("32 each", FEW, ["machine.jitter=0.03"]),
         "weak, 10% jitter": ("32 each", FEW, ["machine.jitter=0.1"])}
DRAWN = ("weak", "strong")


class Cluster:
    """Rates in bytes/s, latencies in seconds, images per second that one device trains alone."""

    def __init__(self, name, between, latency, inside, per_node, memory, images):
        self.name = name
        self.images = images
        self.keys = [f"machine.network_bandwidth={between}", f"machine.network_latency={latency}",
                     f"machine.node_bandwidth={inside}", "machine.node_latency=3e-6",
                     f"machine.devices_per_node={per_node}",
                     f"machine.memory_bandwidth={memory}", "machine.flops=1e14"]


CLUSTERS = [
    Cluster("400 Gbit/s per GPU, 8 in a node", 50e9, 5e-6, 300e9, 8, 3e12,
            {"resnet50": 4000, "vit_b_16": 2000}),
    Cluster("100 Gbit/s Ethernet, 8 in a node", 12.5e9 / 8, 30e-6, 300e9, 8, 3e12,
            {"resnet50": 4000, "vit_b_16": 2000}),
    Cluster("25 Gbit/s Ethernet, 1 in a node", 3.1e9, 30e-6, 100e9, 1, 0.9e12,
            {"resnet50": 400, "vit_b_16": 150}),
]

REPLICATED, SHARDED = "parallel.placement=replicated", "parallel.placement=sharded"
FAST = "parallel.reduction=fast"
SHARDS = ["parallel.shards=true", FAST]
CHUNKS = (1, 16)
DP, V1, V2 = (f"parallel.rule={rule}" for rule in ("dp", "cdp-v1", "cdp-v2"))
SLOTS = (4, 8)
STAGES = (*SLOTS, 16)  # where micro-batches run together


def cut(keys, stages=STAGES):
    chunks = [[f"parallel.chunks={most}"] for most in CHUNKS] if SHARDS[0] in keys else [[]]
    return [[*keys, *most, f"parallel.stages={count}"] for count in stages for most in chunks]


# Name, colour, line and the keys of which the fastest counts.
RULES = [
    ("DDP", "#000000", "-", cut([REPLICATED, DP, "parallel.reduction=overlapped"])),
    ("ZeRO-1", "#999999", "-", cut([REPLICATED, DP, *SHARDS, "parallel.updates=together"])),
    ("ZeRO-1, eager", "#999999", "--", cut([REPLICATED, DP, *SHARDS])),
    ("FSDP", "#e69f00", "--", cut([SHARDED, DP, *SHARDS])),
    ("v1, late sums", "#56b4e9", "-", cut([REPLICATED, V1, *SHARDS, "parallel.sums=late"])),
    ("v1, ring", "#0072b2", "-", cut([REPLICATED, V1, *SHARDS], SLOTS)),
    ("v2, slack 1 or 2", "#d55e00", "-",
     [keys for slack in (1, 2)
      for keys in cut([REPLICATED, V2, *SHARDS, f"parallel.slack={slack}"], SLOTS)]),
]
PIPELINES = [("dp, 1F1B", ["parallel.placement=pipeline", "parallel.rule=dp"]),
             ("cdp-v2", ["parallel.placement=pipeline", "parallel.rule=cdp-v2"])]


def number_of(key, keys):
    """None where no key says it."""
    return next((int(word.split("=")[1]) for word in keys if word.startswith(f"{key}=")), None)


class Scaling:
    def __init__(self, arguments):
        self.arguments = arguments
        self.folder = arguments.folder
        self.program = arguments.program
        self.pictures = self.folder / "pictures.h5"
        if not arguments.report and not self.pictures.exists():
            # Pictures of one pixel, which are made larger.
            write_dataset(self.pictures, (3, 1, 1), samples=1 << 17, classes=1000, test_samples=1)
        self.found = self.folder / "found.json"
        self.seconds = json.loads(self.found.read_text()) if self.found.exists() else {}

    def stages_of(self, keys):
        return number_of("parallel.stages", keys) or self.arguments.stages

    def keys(self, network, images, stages):
        return [study.ROOT / f"inputs/paper/{network}_memory.toml", f"data.file={self.pictures}",
                "data.augment.size=224", "data.augment.resize=224",
                f"train.micro_batch_size={images}", f"parallel.stages={stages}",
                "parallel.balance=flops", *self.arguments.keys]

    def measure(self, network, images, stages):
        """A run of one micro-batch per step on this machine."""
        run = self.folder / f"{network}-{stages}-{images}"
        if not (run / "done").exists():
            print(f"measuring {run.name}", file=sys.stderr, flush=True)
            done = subprocess.run(
                [self.program, "train", *self.keys(network, images, stages), "--overwrite",
                 f"run.output={run}", "parallel.micro_batches=1", "parallel.rule=dp",
                 "train.steps=3"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if done.returncode != 0:
                sys.exit(f"scaling_study.py: {run.name} failed:\n{done.stderr[-2000:]}")
            shutil.rmtree(run / "checkpoints", ignore_errors=True)
            (run / "done").touch()
        return run

    @functools.cache
    def on_cluster(self, cluster, network, images, stages):
        """The same run as a device of the cluster would have made it."""
        measured = self.measure(network, images, stages)
        run = self.folder / f"{measured.name}-on-cluster-{CLUSTERS.index(cluster)}"
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(measured, run)
        with h5py.File(run / "ranks/0000.h5", "r+") as file:
            actions = file["actions"]
            kinds = actions["kind"].asstr()[:]
            passes = np.isin(kinds, ["forward", "backward"])
            last = passes & (actions["step"][:] == 2)
            spans = actions["end"][:] - actions["begin"][:]
            spans *= images / cluster.images[network] / spans[last].sum()
            actions["begin"][:] = 0
            actions["end"][:] = spans
            # What else devices do takes what [machine] says.
            step = actions["step"][:]
            step[~passes] = -1
            actions["step"][:] = step
        return run

    def simulate(self, cluster, network, devices, images, keys):
        """Seconds of a step; None where the rule has no such variant, nan where it is still to be
        done."""
        stages, passes = self.stages_of(keys), self.arguments.passes
        cyclic, late = DP not in keys, "parallel.sums=late" in keys
        if cyclic and not late and devices % stages != 0:
            return None
        if cyclic and not late and devices == stages:  # nobody to sum with in a slot
            keys = [key for key in keys if key != FAST]
        if passes > 1 and SHARDED in keys:
            return None
        words = [word for word in keys if not word.startswith("parallel.stages=")]
        if passes > 1:
            words.append(f"parallel.passes={passes}")
        name = " ".join([cluster.name, network, str(stages), str(devices), str(images), *words])
        if name not in self.seconds and not self.arguments.report:
            done = subprocess.run(
                [self.program, "plan", *self.keys(network, images, stages), *cluster.keys, *words,
                 f"parallel.micro_batches={devices * passes}",
                 "--measured", self.on_cluster(cluster, network, images, stages)],
                capture_output=True, text=True)
            found = re.search(r"^simulated +(\S+) s per step", done.stdout, re.MULTILINE)
            if done.returncode != 0 or not found:
                sys.exit(f"scaling_study.py: {name}\n{done.stderr}")
            self.seconds[name] = float(found.group(1))
            self.found.write_text(json.dumps(self.seconds, indent=0))
        return self.seconds.get(name, math.nan)

    def best(self, cluster, network, devices, images, variants):
        """The part of its step in which the devices of the fastest variant compute, and its keys:
        None where there is none, nan where not all of them are done."""
        found = [(self.simulate(cluster, network, devices, images, keys), keys)
                 for keys in variants]
        found = [(seconds, keys) for seconds, keys in found if seconds is not None]
        if any(math.isnan(seconds) for seconds, _ in found):
            return math.nan, None
        if not found:
            return None, None
        seconds, keys = min(found, key=lambda each: each[0])
        return self.arguments.passes * images / cluster.images[network] / seconds, keys

    @staticmethod
    def show(part):
        if part is None:
            return "-"
        return "?" if math.isnan(part) else f"{part:.1%}"

    def report(self):
        """Tables, and the picture."""
        figure, axes = pyplot.subplots(3, 4, figsize=(13, 9), sharey=True, layout="constrained")
        for row, cluster in enumerate(CLUSTERS):
            for column, (network, title) in enumerate(NETWORKS.items()):
                for mode, (images, sizes, more) in self.modes().items():
                    sizes = {count: each for count, each in sizes.items()
                             if count <= self.arguments.most}
                    print(f"\n{title}, {mode} ({images}), {cluster.name}\n"
                          f"{'devices':18}" + "".join(f"{count:>10}" for count in sizes), flush=True)
                    axis = None
                    if mode in DRAWN:
                        axis = axes[row, 2 * column + DRAWN.index(mode)]
                        axis.set_title(f"{title}, {images}\n{cluster.name}", fontsize=8)
                        self.prepare(axis, sizes)
                    for name, colour, line, variants in RULES:
                        parts, notes = [], []
                        for devices, each in sizes.items():
                            part, keys = self.best(cluster, network, devices, each,
                                                   [[*keys, *more] for keys in variants])
                            parts.append(part)
                            notes.append(self.note(keys))
                        print(f"{name:18}" + "".join(f"{self.show(part):>10}" for part in parts),
                              flush=True)
                        if any(notes):
                            print(f"{'':18}" + "".join(f"{note:>10}" for note in notes), flush=True)
                        if axis is not None:
                            axis.plot(list(sizes), np.array(parts, float), line, color=colour,
                                      marker="o", markersize=3, label=name)
        for axis in axes[-1]:
            axis.set_xlabel("devices")
        for axis in axes[:, 0]:
            axis.set_ylabel("part of a step in passes")
        axes[0, 0].legend(fontsize=7, frameon=False, loc="lower left")
        if self.arguments.passes == 1:
            figure.savefig(self.folder / "scaling.png", dpi=140)
            self.report_pipelines()

    def modes(self):
        if self.arguments.passes == 1:
            return MODES
        images, sizes, more = MODES["weak"]
        return {f"weak, {self.arguments.passes} passes": (images, sizes, more)}

    @staticmethod
    def prepare(axis, sizes):
        axis.set_xscale("log", base=4)
        axis.set_xticks(list(sizes), [str(count) for count in sizes])
        axis.set_ylim(0, 1)
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)

    @staticmethod
    def note(keys):
        """Which of its variants was the fastest: S stages, with a slack, in chunks."""
        slots, slack, chunks = (number_of(f"parallel.{key}", keys or [])
                                for key in ("stages", "slack", "chunks"))
        if slots is None:
            return ""
        return (f"S={slots}" + ("" if slack is None else f"+{slack}")
                + ("" if chunks in (None, 1) else f"/{chunks}"))

    def report_pipelines(self):
        """S devices, as many micro-batches in a step."""
        stages = self.arguments.stages
        print(f"\npipeline of {stages} devices, as many micro-batches of 32 images in a step")
        for cluster in CLUSTERS:
            for network, title in NETWORKS.items():
                text = f"{title}, {cluster.name}: "
                for name, keys in PIPELINES:
                    part, _ = self.best(cluster, network, stages, 32, [keys])
                    text += f"{name} {self.show(part)}  "
                print(text, flush=True)


def main():
    parser = study.parser(__doc__)
    parser.add_argument("--stages", type=int, default=16,
                        help="of pipelines")
    parser.add_argument("--most", type=int, default=1024, help="devices, up to 4,096")
    parser.add_argument("--passes", type=int, default=1,
                        help="micro-batches that a device takes in a step")
    arguments = study.parse(parser, "stages", "passes")
    scaling = Scaling(arguments)
    if arguments.report and not scaling.seconds:
        sys.exit(f"scaling_study.py: {arguments.folder} has no finished run")
    wanted = {images for _, sizes, _ in scaling.modes().values() for images in sizes.values()}
    for network in [] if arguments.report else NETWORKS:
        for images in sorted(wanted):
            for stages in sorted({arguments.stages, *STAGES}):
                scaling.measure(network, images, stages)
    scaling.report()


if __name__ == "__main__":
    main()
