# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""What dp and cyclic placements leave idle, from the recorded actions of real ranks.

Usage: timelines.py BUILD [MPIEXEC]. Every rank's forwards and backwards are made to take one and
the same time (stretch_kernels.cpp), so that many ranks can share few cores and the paper's formulas
for stages of equal time hold. Prints busy fractions of `model`, the bubble of `pipeline`, and what
`local` sums move, each beside its formula; exits with 1 where one is off by more than a tenth.
"""

import pathlib
import subprocess
import sys
import tempfile

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "app"))
from dataset import write_dataset
from stretched import environment

BUILD = pathlib.Path(sys.argv[1]).resolve()
MPIEXEC = sys.argv[2] if len(sys.argv) > 2 else "mpiexec"
PASS = 0.1  # seconds of every forward and backward
STEPS, WARM = 12, 4
N = 4

DECK = f"""
[run]
name = "timelines"
seed = 1
output = "run"
[model]
name = "mlp"
widths = [64, 64, 64, 64, 64]
[data]
file = "data.h5"
[parallel]
rule = "cdp-v2"
placement = "single"
micro_batches = {N}
stages = {N}
balance = "layers"
transport = "mpi"
[train]
micro_batch_size = 8
steps = {STEPS}
[train.optimizer]
name = "sgd"
learning_rate = 0.01
momentum = 0.9
[profile]
steps = "::1"
"""


class Bench:
    def __init__(self, work):
        self.work = pathlib.Path(work)
        (self.work / "deck.toml").write_text(DECK)
        write_dataset(self.work / "data.h5", (1, 8, 8), classes=64,
                      samples=8 * N * STEPS, test_samples=8)
        # One rank alone tells which kernels there are; all of a pass share its time evenly.
        self.train("alone", 1, ["parallel.transport=local", "train.steps=1"])
        kernels = [line.split(" ", 2) for line in (self.work / "times").read_text().splitlines()]
        passes = [name for _, _, name in kernels if "forward" in name or "backward" in name]
        (self.work / "times").write_text("".join(
            f"{PASS / passes.count(name) if name in passes else 0} {number} {name}\n"
            for _, number, name in kernels))

    def train(self, name, ranks, overrides):
        launcher = [MPIEXEC, "-n", str(ranks)] if ranks > 1 else []
        subprocess.run(
            [*launcher, BUILD / "carousel", "train", "deck.toml", f"run.output={name}", *overrides],
            cwd=self.work, check=True, capture_output=True,
            env=environment(BUILD, self.work / "times"))
        return self.work / name

    def busy(self, name, ranks, overrides):
        """Fraction of their time in which the devices run passes, over whole steady steps."""
        folder = self.train(name, ranks, overrides)
        with h5py.File(folder / "run.h5") as run:
            devices = [run[f"ranks/{rank:04d}/actions"] for rank in range(ranks)]
            kinds = [device["kind"].asstr()[:] for device in devices]
            ends = [max(device["end"][(kind == "backward") & (device["step"][:] == step)])
                    for step in (WARM, STEPS - 2) for device, kind in zip(devices, kinds)]
            first, last = max(ends[:ranks]), max(ends[ranks:])
            seconds = 0
            for device, kind in zip(devices, kinds):
                passes = (kind == "forward") | (kind == "backward")
                begin = device["begin"][passes].clip(first, last)
                end = device["end"][passes].clip(first, last)
                seconds += (end - begin).sum()
        return seconds / (ranks * (last - first))

    def bytes_sent(self, name, ranks, overrides):
        """Of gradients and their sums, per step, by all devices, from one to another."""
        folder = self.train(name, ranks, overrides)
        total = 0
        with h5py.File(folder / "run.h5") as run:
            for rank in range(ranks):
                messages = run[f"ranks/{rank:04d}/messages"]
                kinds = messages["kind"].asstr()[:]
                chosen = (messages["direction"].asstr()[:] == "send") & (
                    (kinds == "gradient") | (kinds == "total"))
                total += messages["bytes"][chosen].sum()
        return total / STEPS


def main():
    wrong = 0

    def show(what, measured, expected, formula):
        nonlocal wrong
        wrong += abs(measured / expected - 1) > 0.1
        print(f"{what:44} {measured:9.3f} {expected:9.3f}  {formula}", flush=True)

    with tempfile.TemporaryDirectory() as work:
        bench = Bench(work)
        dp, cyclic = ["parallel.rule=dp"], ["parallel.rule=cdp-v1"]
        model, pipeline = ["parallel.placement=model"], ["parallel.placement=pipeline"]
        print(f"{f'N = S = {N}':44}  measured  expected")
        ranks = N * (N + 1) // 2
        show(f"model, cdp-v1: busy fraction of {ranks} ranks",
             bench.busy("model", ranks, model + cyclic), 2 / (N + 1), "2 / (N + 1)")
        show(f"model, dp: busy fraction of {N * N} ranks",
             bench.busy("model-dp", N * N, model + dp + ["parallel.reduction=fast"]), 1 / N,
             "1 / N")
        show("pipeline, cdp-v1: busy fraction", bench.busy("pipeline", N, pipeline + cyclic), 1,
             "no bubble")
        show("pipeline, dp: bubble of 1F1B", 1 - bench.busy("pipeline-dp", N, pipeline + dp),
             (N - 1) / (2 * N - 1), "(S - 1) / (N + S - 1)")
        ordered = bench.bytes_sent("ordered", N * N, model + dp)
        local = bench.bytes_sent("local", ranks, model + cyclic + ["parallel.reduction=local"])
        show("model: bytes of local sums over those of dp", local / ordered, 0.5, "1 / 2")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
