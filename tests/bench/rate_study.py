#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""How much learning rate the rules stand: accuracy on the digits over the rate.

    rate_study.py FOLDER [--seeds 1,2,3] [--build build/release] [--report] [key=value ...]

Trains inputs/digits.toml with rates from 0.005 to 0.64, each twice the one before, under dp, cdp-v2 and
cdp-v1, and cdp-v1 with the rate rising over the first quarter of the training (warm-up); what FOLDER
has is not run again. Then a table of mean accuracies on the test set and FOLDER/rates.png. A run that
diverges counts with the accuracy of a guess, 10%. Needs h5py, numpy and matplotlib.
"""
import json
import subprocess
import sys

import h5py
import matplotlib
import numpy as np
import study

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

RATES = [0.005 * 2 ** k for k in range(8)]
VARIANTS = [("dp", "#000000", ["parallel.rule=dp"]),
            ("cdp-v2", "#0072b2", ["parallel.rule=cdp-v2"]),
            ("cdp-v1", "#d55e00", ["parallel.rule=cdp-v1"]),
            ("cdp-v1, warm-up", "#cc79a7", ["parallel.rule=cdp-v1", "train.schedule.warmup_epochs=5"])]
GUESS = 10.0
DIVERGED = 76


def accuracy(arguments, name, keys, rate, seed):
    """Percent after the last epoch; None where FOLDER has no such run."""
    folder = arguments.folder / f"{name.replace(', ', '-')}-{rate:g}-{seed}"
    if not (folder / "ended.json").exists():
        if arguments.report:
            return None
        done = subprocess.run(
            [arguments.program, "train", study.ROOT / "inputs/digits.toml",
             f"run.output={folder}", "--overwrite", f"run.seed={seed}",
             f"train.optimizer.learning_rate={rate}", "checkpoint.every=0", "profile.steps=", *keys,
             *arguments.keys], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode not in (0, DIVERGED):
            sys.exit(f"rate_study.py: {folder} ended with exit code {done.returncode}:\n"
                     f"{done.stderr[-2000:]}")
        (folder / "ended.json").write_text(json.dumps(done.returncode))
    if json.loads((folder / "ended.json").read_text()) == DIVERGED:
        return GUESS
    with h5py.File(folder / "run.h5") as run:
        return 100 * float(run["evaluations/accuracy"][-1])


def draw(arguments, found):
    figure, axes = pyplot.subplots(figsize=(6, 3.8), layout="constrained")
    for name, colour, _ in VARIANTS:
        values = np.array(found[name])  # [rate, seed]
        mean = values.mean(axis=1)
        axes.plot(RATES, mean, color=colour, linewidth=1.2, marker="o", markersize=3, label=name)
        axes.fill_between(RATES, values.min(axis=1), values.max(axis=1), color=colour, alpha=0.12,
                          linewidth=0)
    axes.set_xscale("log", base=2)
    axes.set_xticks(RATES, [f"{rate:g}" for rate in RATES])
    axes.set_xlabel("highest learning rate")
    axes.set_ylabel("accuracy on the test set (%)")
    axes.set_title("digits: mean and range over seeds", loc="left", fontsize=10)
    axes.grid(color="#dddddd", linewidth=0.4)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="lower left")
    figure.savefig(arguments.folder / "rates.png", dpi=160)
    print(f"wrote {arguments.folder / 'rates.png'}")


def main():
    parser = study.parser(__doc__)
    parser.add_argument("--seeds", type=study.numbers, default=[1, 2, 3])
    arguments = study.parse(parser)
    found = {}
    print(f"{'rate':18}" + "".join(f"{rate:8g}" for rate in RATES))
    for name, _, keys in VARIANTS:
        rows = [[accuracy(arguments, name, keys, rate, seed)
                 for seed in arguments.seeds] for rate in RATES]
        if any(value is None for row in rows for value in row):
            sys.exit(f"rate_study.py: {arguments.folder} lacks runs of {name}")
        found[name] = rows
        print(f"{name:18}" + "".join(f"{np.mean(row):8.2f}" for row in rows), flush=True)
    draw(arguments, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
