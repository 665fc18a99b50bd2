#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Table 1 of arXiv 2403.08837, measured: what dp and cdp-v2 need in every placement.

    paper_table.py [--deck DECK] [--build build/release] [--mpiexec mpiexec] [--parts 4] [key=value ...]

Trains DECK (inputs/digits.toml) with N = S = PARTS in every placement, one rank per device, for 4 and
for 10 steps; what the six steps between add is what a training step sends. Counted below the program,
by a library in MPI's place: point-to-point messages, and collectives, whose bytes count as those of a
ring (2 (p - 1) b for an all-reduce over p devices, (p - 1) b for a reduction or a broadcast). Memory
is what each rank measured. Prints the table behind that of `carousel plan --compare`; exit code 1
where a measured number is not the plan's. Needs h5py and mpiexec.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import h5py

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACEMENTS = ["single", "replicated", "model", "pipeline", "sharded"]
STEPS = (4, 10)
KIB = 1024
# Of the bytes that p devices put into a collective of a ring, the part that travels is this times
# (p - 1) / p.
WAYS = {"all_reduces": 2, "reduces": 1, "broadcasts": 1}
CATEGORIES = ["activations", "parameters", "previous_parameters", "optimizer"]


def variants(parts):
    """Name of the rule, placement and what replaces keys; dp with the library's sums where it has
    them, as the paper counts it, and with a sharded optimizer."""
    for placement in PLACEMENTS:
        fast = "fast" if placement not in ("single", "pipeline") else "ordered"
        transport = "local" if placement == "single" else "mpi"
        common = [f"parallel.micro_batches={parts}", f"parallel.stages={parts}",
                  f"parallel.placement={placement}", f"parallel.transport={transport}",
                  "parallel.order="]
        dp = [*common, "parallel.rule=dp"]
        yield "dp", placement, [*dp, f"parallel.reduction={fast}"]
        if placement == "replicated":
            yield "dp, owner", placement, [*dp, "parallel.reduction=owner"]
        yield "cdp-v2", placement, [*common, "parallel.rule=cdp-v2", "parallel.reduction="]


class Table:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = folder
        self.program = ROOT / arguments.build / "carousel"
        self.counter = ROOT / arguments.build / "tests/bench_message_counts.so"
        self.differs = False

    def plan(self, keys, *words):
        command = [self.program, "plan", self.arguments.deck, *words, *keys, *self.arguments.keys]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"paper_table.py: {done.stderr.strip()}")
        return done.stdout

    def train(self, devices, keys, steps):
        """Counts of all ranks by kind of call, [calls, bytes]; and the run file's path."""
        run = self.folder / "run"
        counts = self.folder / "counts"
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "false",
                                    "CAROUSEL_MESSAGE_COUNTS": str(counts)}
        command = [self.program, "train", self.arguments.deck, f"run.output={run}", "--overwrite",
                   f"train.steps={steps}", "train.epochs=", "checkpoint.every=0", *keys,
                   *self.arguments.keys]
        if devices > 1:
            launcher = [self.arguments.mpiexec, "-n", str(devices)]
            environment["LD_PRELOAD"] = str(self.counter)
        else:
            launcher = []
        done = subprocess.run([*launcher, *command], env=environment, capture_output=True,
                              text=True)
        if done.returncode != 0:
            sys.exit(f"paper_table.py: {' '.join(map(str, command))}\n{done.stderr[-2000:]}")
        sums = {name: [0, 0] for name in ("sends", *WAYS)}
        for rank in range(devices if devices > 1 else 0):
            found = json.loads(pathlib.Path(f"{counts}.{rank}").read_text())
            for name, (calls, count) in found.items():
                sums[name][0] += calls
                sums[name][1] += count
        return sums, run / "run.h5"

    @staticmethod
    def planned_step(actions):
        """The same counts of a step in the middle, by the plan's actions."""
        sums = {name: [0, 0] for name in ("sends", *WAYS)}
        for action in actions:
            name = action["kind"] + "s"
            if name in sums and action["step"] == 3:
                sums[name][0] += 1
                sums[name][1] += action["bytes"]
        return sums

    def row(self, rule, placement, keys):
        plan = json.loads(self.plan(keys, "--json", "--steps", "6"))
        devices = plan["devices"]
        shorter, longer = (self.train(devices, keys, steps) for steps in STEPS)
        steps = STEPS[1] - STEPS[0]
        counted = {name: [(longer[0][name][k] - shorter[0][name][k]) / steps for k in (0, 1)]
                   for name in longer[0]}
        planned = self.planned_step(plan["actions"])
        with h5py.File(longer[1]) as run:
            held = {name: [int(run[f"ranks/{d:04}/measured/peak_bytes"].attrs[name])
                           for d in range(devices)] for name in CATEGORIES}
        parts = self.arguments.parts
        sent = counted["sends"][1] + sum(
            ways * (parts - 1) / parts * counted[name][1] for name, ways in WAYS.items())
        collectives = sum(counted[name][0] for name in WAYS)
        to_hold = {name: plan["bytes"][name] for name in CATEGORIES}
        same = counted == planned and held == to_hold
        self.differs = self.differs or not same
        parameters = sum(held["parameters"]) + sum(held["previous_parameters"])
        cells = [max(held["activations"]), sum(held["activations"]), parameters,
                 sum(held["optimizer"])]
        print(f"{placement:<11}{rule:<10}{devices:>3}"
              + "".join(f"{count / KIB:>8.1f}" for count in cells)
              + f"{counted['sends'][0]:>6g}{collectives:>6g}{sent / KIB:>8.1f}"
              f"  {'as planned' if same else 'NOT AS PLANNED'}", flush=True)
        if not same:
            print(f"  counted {counted}\n  planned {planned}\n  held {held}\n  planned {to_hold}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("keys", metavar="key=value", nargs="*", default=[])
    parser.add_argument("--deck", default=ROOT / "inputs/digits.toml")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--mpiexec", default="mpiexec")
    parser.add_argument("--parts", type=int, default=4)
    arguments = parser.parse_intermixed_args()
    if arguments.parts < 2:
        parser.error("--parts takes 2 and more")
    with tempfile.TemporaryDirectory() as folder:
        table = Table(arguments, pathlib.Path(folder))
        parts = [f"parallel.micro_batches={arguments.parts}", f"parallel.stages={arguments.parts}"]
        print(table.plan(parts, "--compare"))
        print("measured, KiB           activations     parameters    each training step\n"
              "placement  rule    devices at most  in all  in all  optim. sends coll.    sent")
        for variant in variants(arguments.parts):
            table.row(*variant)
    sys.exit(1 if table.differs else 0)


if __name__ == "__main__":
    main()
