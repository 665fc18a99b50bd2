#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Weak and strong scaling on paper: simulated steps on two described clusters.

    scaling_study.py FOLDER [--build build/release] [--stages 16] [--report] [key=value ...]

How the time of a network is shared among its stages is measured first: one micro-batch of every size
on this machine, which wants to be quiet until then, forward and backward of each stage. A device of
a cluster takes as long for all of them as its images per second say; updates and sums take what its
memory's bandwidth says. `carousel plan --measured` then simulates every rule with one micro-batch
per device: 32 images on each (weak), or 4,096 images on all of them (strong). Cyclic rules choose
the best slack, v1 among them. What FOLDER has is not done again. Prints a table and draws
FOLDER/scaling.png: the part of a step in which devices compute; `-` where a rule does not exist,
`?` where not all of it is done. Needs h5py, numpy and matplotlib.
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
WEAK = {devices: 32 for devices in (4, 16, 64, 256, 1024)}
STRONG = {devices: 4096 // devices for devices in (64, 256, 1024)}
MODES = {"weak": WEAK, "strong": STRONG}


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
    Cluster("25 Gbit/s Ethernet, 1 in a node", 3.1e9, 30e-6, 100e9, 1, 0.9e12,
            {"resnet50": 400, "vit_b_16": 150}),
]

REPLICATED, SHARDED = "parallel.placement=replicated", "parallel.placement=sharded"
# Name, colour, line and the keys of which the fastest counts.
CYCLIC = [["parallel.rule=cdp-v1"],
          *(["parallel.rule=cdp-v2", f"parallel.slack={slack}"] for slack in (0, 1, 2, 4, 8))]
RULES = [
    ("dp, all-reduces beside backward", "#000000", "-",
     [[REPLICATED, "parallel.rule=dp", "parallel.reduction=overlapped"]]),
    ("dp, ZeRO-1", "#999999", "-", [[REPLICATED, "parallel.rule=dp", "parallel.reduction=owner"]]),
    ("cyclic", "#0072b2", "-",
     [[REPLICATED, *keys, f"parallel.reduction={sums}"]
      for keys in CYCLIC for sums in ("ordered", "fast")]),
    ("dp, sharded", "#e69f00", "--", [[SHARDED, "parallel.rule=dp", "parallel.reduction=fast"]]),
    ("cyclic, sharded", "#d55e00", "--",
     [[SHARDED, *keys, f"parallel.reduction={sums}"]
      for keys in CYCLIC for sums in ("ordered", "fast")]),
]
PIPELINES = [("dp, 1F1B", ["parallel.placement=pipeline", "parallel.rule=dp"]),
             ("cdp-v2", ["parallel.placement=pipeline", "parallel.rule=cdp-v2"])]


def slack_of(keys):
    """None where no key says it."""
    return next((int(key.split("=")[1]) for key in keys if key.startswith("parallel.slack=")), None)


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

    def keys(self, network, images):
        return [study.ROOT / f"inputs/paper/{network}_memory.toml", f"data.file={self.pictures}",
                "data.augment.size=224", "data.augment.resize=224",
                f"train.micro_batch_size={images}", f"parallel.stages={self.arguments.stages}",
                "parallel.balance=flops", *self.arguments.keys]

    def measure(self, network, images):
        """A run of one micro-batch per step on this machine."""
        run = self.folder / f"{network}-{self.arguments.stages}-{images}"
        if not (run / "done").exists():
            print(f"measuring {run.name}", file=sys.stderr, flush=True)
            done = subprocess.run(
                [self.program, "train", *self.keys(network, images), "--overwrite",
                 f"run.output={run}", "parallel.micro_batches=1", "parallel.rule=dp",
                 "train.steps=3"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if done.returncode != 0:
                sys.exit(f"scaling_study.py: {run.name} failed:\n{done.stderr[-2000:]}")
            shutil.rmtree(run / "checkpoints", ignore_errors=True)
            (run / "done").touch()
        return run

    @functools.cache
    def on_cluster(self, cluster, network, images):
        """The same run as a device of the cluster would have made it."""
        measured = self.measure(network, images)
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

    def has(self, devices, keys):
        """Whether there is such a variant."""
        stages = self.arguments.stages
        whole = SHARDED not in keys or "parallel.rule=dp" in keys or devices % stages == 0
        return whole and (slack_of(keys) or 0) <= stages

    def simulate(self, cluster, network, devices, images, keys):
        """Seconds of a step; None where the rule has no such variant, nan where it is still to be
        done."""
        if not self.has(devices, keys):
            return None
        name = " ".join([cluster.name, network, str(self.arguments.stages), str(devices),
                         str(images), *keys])
        if name not in self.seconds and not self.arguments.report:
            done = subprocess.run(
                [self.program, "plan", *self.keys(network, images), *cluster.keys, *keys,
                 f"parallel.micro_batches={devices}",
                 "--measured", self.on_cluster(cluster, network, images)],
                capture_output=True, text=True)
            found = re.search(r"^simulated +(\S+) s per step", done.stdout, re.MULTILINE)
            # Refused are collectives where a slot has one micro-batch.
            refused = done.returncode == 2 and "has no effect" in done.stderr
            if not refused and (done.returncode != 0 or not found):
                sys.exit(f"scaling_study.py: {name}\n{done.stderr}")
            self.seconds[name] = None if refused else float(found.group(1))
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
        return images / cluster.images[network] / seconds, keys

    @staticmethod
    def show(part):
        if part is None:
            return "-"
        return "?" if math.isnan(part) else f"{part:.1%}"

    def report(self):
        """A table, and the picture."""
        figure, axes = pyplot.subplots(2, 4, figsize=(13, 6), sharey=True, layout="constrained")
        for row, cluster in enumerate(CLUSTERS):
            for column, (network, title) in enumerate(NETWORKS.items()):
                for place, (mode, sizes) in enumerate(MODES.items()):
                    axis = axes[row, 2 * column + place]
                    images = "32 each" if mode == "weak" else "4,096 in all"
                    axis.set_title(f"{title}, {images}\n{cluster.name}", fontsize=8)
                    print(f"\n{title}, {mode} scaling ({images}), {cluster.name}\n"
                          f"{'devices':32}" + "".join(f"{count:>9}" for count in sizes), flush=True)
                    for name, colour, line, variants in RULES:
                        parts, notes = [], []
                        for devices, each in sizes.items():
                            part, keys = self.best(cluster, network, devices, each, variants)
                            parts.append(part)
                            notes.append(self.note(keys))
                        print(f"{name:32}" + "".join(f"{self.show(part):>9}" for part in parts),
                              flush=True)
                        if any(notes):
                            print(f"{'':32}" + "".join(f"{note:>9}" for note in notes), flush=True)
                        axis.plot(list(sizes), np.array(parts, float), line, color=colour,
                                  marker="o", markersize=3, label=name)
                    axis.set_xscale("log", base=4)
                    axis.set_xticks(list(sizes), [str(count) for count in sizes])
                    axis.set_ylim(0, 1)
                    axis.grid(alpha=0.3)
                    axis.spines[["top", "right"]].set_visible(False)
        for axis in axes[1]:
            axis.set_xlabel("devices")
        for axis in axes[:, 0]:
            axis.set_ylabel("part of a step in passes")
        axes[0, 0].legend(fontsize=7, frameon=False, loc="lower left")
        figure.savefig(self.folder / "scaling.png", dpi=140)
        self.report_pipelines()

    @staticmethod
    def note(keys):
        """Which of its variants a cyclic rule took: v1 or v2 with a slack; f: fast sums in slots."""
        if keys is None or "parallel.rule=dp" in keys:
            return ""
        slack = slack_of(keys)
        rule = "v1" if slack is None else f"v2+{slack}"
        return rule + (", f" if "parallel.reduction=fast" in keys else "")

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
    parser.add_argument("--stages", type=int, default=16)
    arguments = study.parse(parser, "stages")
    scaling = Scaling(arguments)
    if arguments.report and not scaling.seconds:
        sys.exit(f"scaling_study.py: {arguments.folder} has no finished run")
    for network in [] if arguments.report else NETWORKS:
        for images in sorted({images for sizes in MODES.values() for images in sizes.values()}):
            scaling.measure(network, images)
    scaling.report()


if __name__ == "__main__":
    main()
