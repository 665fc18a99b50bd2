#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""The memory figure of arXiv 2403.08837: activation bytes of one device over time.

    memory_figure.py FOLDER [--build build/release] [--only resnet50 | vit_b_16] [--counts 4,8,32]
                     [--report] [key=value ...]

Trains the decks inputs/paper/*_memory.toml for a few steps with N = S of the counts: dp with all
micro-batches together, dp one after the other (gradient accumulation), and cdp-v2 cut by flops, by
activations and by time, and with whole stages recomputed. What FOLDER has is not run again. Then, or
with --report at once, a table: measured activations at most, the plan's, the law sum (N - j) a_j, what
is left of dp's, all bytes of the plan and the resident memory of the process beside them, without
what the same program holds with next to no model; a table of where a micro-batch has its activations
A = sum a_j, which decides how much of N A the law leaves; and FOLDER/memory.png. Exit code 1 where
a measured number is not the plan's. Needs h5py, numpy and matplotlib.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import threading
import time

import h5py
import matplotlib
import numpy as np
import study

matplotlib.use("Agg")
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "app"))
from dataset import write_dataset  # noqa: E402
from matplotlib import pyplot  # noqa: E402

NETWORKS = {"resnet50": "ResNet-50", "vit_b_16": "ViT-B/16"}
DP, CYCLIC = "parallel.rule=dp", "parallel.rule=cdp-v2"
# Name, colour and what replaces keys of the deck; those with a colour are drawn.
VARIANTS = [("dp together", "#000000", [DP]),
            ("dp accumulate", "#999999", [DP, "parallel.order=accumulate"]),
            ("cdp by flops", "#0072b2", [CYCLIC, "parallel.balance=flops"]),
            ("cdp by activations", "#d55e00", [CYCLIC, "parallel.balance=activations"]),
            ("cdp by time", None, [CYCLIC, "parallel.balance=time"]),
            ("cdp, stages again", None,
             [CYCLIC, "parallel.balance=activations", "engine.recompute=stage"])]
# What replaces keys for a model with next to no memory of its own.
TINY = ["model.name=vit", "model.depth=1", "model.stem=", "model.patch=16", "model.width=16",
        "model.heads=1", "parallel.stages=1", "parallel.micro_batches=1", "parallel.balance=flops",
        DP]
MIB = 1 << 20


def resident_bytes(pid):
    """The most that a process has held; 0 when it is gone."""
    try:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def engine_of(pid):
    """The command starts the engine and waits for it, or becomes it."""
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return pid
    return int(children[0]) if children else pid


def train(arguments, network, folder, keys):
    """Runs a deck unless FOLDER has it; leaves resident bytes beside its run."""
    if (folder / "resident.json").exists():
        return
    deck = study.ROOT / f"inputs/paper/{network}_memory.toml"
    command = [arguments.program, "train", deck, f"run.output={folder}",
               f"data.file={arguments.folder / 'pictures.h5'}", "--overwrite", *keys,
               *arguments.keys]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    most = 0

    def watch():
        nonlocal most
        while process.poll() is None:
            most = max(most, resident_bytes(engine_of(process.pid)))
            time.sleep(0.05)

    watcher = threading.Thread(target=watch)
    watcher.start()
    code = process.wait()
    watcher.join()
    if code != 0:
        sys.exit(f"memory_figure.py: {folder.name} ended with exit code {code}")
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)  # a gigabyte each
    (folder / "resident.json").write_text(json.dumps(most))


class Run:
    def __init__(self, folder):
        self.resident = json.loads((folder / "resident.json").read_text())
        with h5py.File(folder / "run.h5") as run:
            rank = run["ranks/0000"]
            self.peak = int(rank["measured/peak_bytes"].attrs["activations"])
            self.held = {name: int(value) for name, value in
                         rank["measured/peak_bytes"].attrs.items()}
            self.planned = {name: int(values[0]) for name, values in run["plan/bytes"].items()}
            self.stages = [int(a) for a in run["plan/stage_activations"]]
            seconds = rank["memory/seconds"][:]
            self.bytes = rank["memory/activations"][:]
            steps = rank["actions/step"][:]
        # Step numbers as a scale of time, from when the first backward of each step ended; what
        # follows the last of them has no scale.
        begins = [seconds[np.flatnonzero(steps == step)[0]] for step in np.unique(steps)]
        drawn = seconds <= begins[-1]
        self.times = np.interp(seconds[drawn], begins, np.arange(len(begins)))
        self.bytes = self.bytes[drawn]

    def law(self):
        """sum (N - j) a_j for N = S stages."""
        count = len(self.stages)
        return sum((count - j) * a for j, a in enumerate(self.stages))

    def quarters(self):
        """Percent of a micro-batch's activations that each quarter of the stages holds."""
        held = np.array(self.stages).reshape(4, -1).sum(axis=1)
        return 100 * held / held.sum()


def collect(arguments):
    """{network: {N: {variant: Run}}} of what there is, and resident bytes of a tiny model."""
    found, tiny = {}, {}
    for network in NETWORKS:
        if arguments.only not in (None, network):
            continue
        folder = arguments.folder / f"{network}-tiny"
        if not arguments.report:
            train(arguments, network, folder, TINY)
        if not (folder / "resident.json").exists():
            continue
        tiny[network] = json.loads((folder / "resident.json").read_text())
        for count in arguments.counts:
            for name, _, keys in VARIANTS:
                folder = arguments.folder / f"{network}-{count}-{name.replace(',', '').replace(' ', '-')}"
                if not arguments.report:
                    train(arguments, network, folder,
                          [f"parallel.micro_batches={count}", f"parallel.stages={count}", *keys])
                    print(f"{network}, N = {count}, {name}", flush=True)
                if (folder / "resident.json").exists():
                    found.setdefault(network, {}).setdefault(count, {})[name] = Run(folder)
    return found, tiny


def report(found, tiny):
    """Returns how many measured numbers are not the plan's."""
    wrong = 0
    print(f"{'':30}activations, MiB            of dp    all, MiB")
    print(f"{'':30}measured   plan    law      %      plan   resident   ratio")
    for network, counts in found.items():
        for count, runs in counts.items():
            dp = runs.get("dp together")
            for name, run in runs.items():
                law = run.law() if name.startswith("cdp") else None
                total = sum(run.planned.values())
                resident = run.resident - tiny[network]
                same = run.held == run.planned
                wrong += not same
                shown = f"{law / MIB:8.1f}" if law is not None else " " * 8
                part = f"{100 * run.peak / dp.peak:6.1f}" if dp else " " * 6
                print(f"{network:9} {count:2} {name:18}{run.peak / MIB:8.1f}"
                      f"{run.planned['activations'] / MIB:8.1f}{shown} {part}"
                      f"{total / MIB:10.1f}{resident / MIB:10.1f}{resident / total:8.3f}"
                      f"{'' if same else '  NOT THE PLAN'}")
    print(f"\nwhere activations are, in %{'':15}first to last quarter of stages    law of N A")
    for network, counts in found.items():
        for count, runs in counts.items():
            for name, run in runs.items():
                if name.startswith("cdp by"):
                    quarters = "".join(f"{part:8.1f}" for part in run.quarters())
                    print(f"{network:9} {count:2} {name:27}{quarters}"
                          f"{100 * run.law() / (count * sum(run.stages)):16.1f}")
    return wrong


def draw(arguments, found):
    counts = sorted({count for runs in found.values() for count in runs})
    figure, grid = pyplot.subplots(len(found), len(counts), layout="constrained", squeeze=False,
                                   figsize=(3.1 * len(counts), 2.6 * len(found)), sharex=True)
    for row, (network, runs) in zip(grid, found.items()):
        for axes, count in zip(row, counts):
            of_count = runs.get(count, {})
            for name, colour, _ in VARIANTS:
                if colour is None or name not in of_count:
                    continue
                run = of_count[name]
                axes.step(run.times, run.bytes / MIB, where="post", color=colour, linewidth=1,
                          label=name)
            cyclic = of_count.get("cdp by activations")
            if cyclic:
                axes.axhline(cyclic.law() / MIB, color="#d55e00", linewidth=0.7, linestyle=":")
            axes.set_title(f"{NETWORKS[network]}, N = {count}", fontsize=9, loc="left")
            axes.set_ylim(bottom=0)
            axes.grid(color="#dddddd", linewidth=0.4)
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(labelsize=8)
        row[0].set_ylabel("activations (MiB)", fontsize=8)
    for axes in grid[-1]:
        axes.set_xlabel("training step", fontsize=8)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=8, ncol=4, loc="upper center",
                  bbox_to_anchor=(0.5, 0))
    figure.savefig(arguments.folder / "memory.png", dpi=160, bbox_inches="tight")
    print(f"wrote {arguments.folder / 'memory.png'}; dotted: sum (N - j) a_j of the cut by activations")


def main():
    parser = study.parser(__doc__)
    parser.add_argument("--only", choices=list(NETWORKS))
    parser.add_argument("--counts", type=study.numbers, default=[4, 8, 32], help="multiples of 4")

    def check(arguments):
        if any(count % 4 for count in arguments.counts):
            parser.error("--counts takes multiples of 4")

    arguments = study.parse(parser, check=check)
    if not arguments.report and not (arguments.folder / "pictures.h5").exists():
        write_dataset(arguments.folder / "pictures.h5", (3, 224, 224), samples=256, classes=1000,
                      test_samples=1)
    found, tiny = collect(arguments)
    if not found:
        sys.exit(f"memory_figure.py: {arguments.folder} has no finished run")
    wrong = report(found, tiny)
    draw(arguments, found)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
