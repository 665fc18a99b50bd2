#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""What the rules cost in accuracy: a deck of inputs/paper under several rules and seeds.

    accuracy_study.py FOLDER [--deck DECK] [--seeds 1,2,3] [--jobs 1] [--build build/release]
                      [--only NAME] [--report] [key=value ...]

Trains what FOLDER does not hold yet, seed after seed, as many runs at a time as --jobs says (each
then wants its share of the cores by OMP_NUM_THREADS); a run that was stopped goes on from its last
checkpoint, so that the same command goes on with the study, which SIGTERM ends. Then, or with
--report at once, it prints a table of the finished runs (accuracy on the test set after the last
epoch, mean and standard deviation over seeds, and differences from dp of the same seed, which has
the same first parameters and order of samples, with their 95% interval by Student's t) and draws
FOLDER/accuracy.png. `recipe` is what a delay wants of SGD, Nesterov's momentum (other optimizers:
nothing) and the gradient of every stage shortened to a norm of 1; it is compared with dp that has
it, too. `predict` is parallel.predict = 1, `both` that and the recipe. --only trains what has NAME
in its name. key=value goes to every run that does not set this key by itself, as N = 8 does with
the number of samples; that is of decks with N = S = 4 alone. Needs h5py, numpy and matplotlib.
"""
import concurrent.futures
import functools
import json
import pathlib
import signal
import subprocess
import sys
import threading
import tomllib

import h5py
import matplotlib
import numpy as np
import study

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

TWICE = "twice"  # as many micro-batches and stages as the deck has, of half as many samples
NESTEROV = "train.optimizer.nesterov=true"
PREDICT = "parallel.predict=1"
RECIPE = [NESTEROV, "train.optimizer.clip_stage_norm=1"]
# Name, colour and what replaces keys of the deck.
VARIANTS = [("dp", "#000000", ["parallel.rule=dp"]),
            ("cdp-v2", "#0072b2", ["parallel.rule=cdp-v2"]),
            ("cdp-v2, slack 1", "#56b4e9", ["parallel.rule=cdp-v2", "parallel.slack=1"]),
            ("cdp-v2, slack 2", "#009e73", ["parallel.rule=cdp-v2", "parallel.slack=2"]),
            ("cdp-v1", "#d55e00", ["parallel.rule=cdp-v1"]),
            ("cdp-v2, N = 8", "#cc79a7", ["parallel.rule=cdp-v2", TWICE]),
            ("cdp-v1, Nesterov", "#e69f00", ["parallel.rule=cdp-v1", NESTEROV]),
            ("cdp-v1, recipe", "#f0e442", ["parallel.rule=cdp-v1", *RECIPE]),
            ("cdp-v2, predict", "#44aa99", ["parallel.rule=cdp-v2", PREDICT]),
            ("cdp-v2, slack 2, predict", "#aa4499", ["parallel.rule=cdp-v2", "parallel.slack=2",
                                                     PREDICT]),
            ("cdp-v1, predict", "#882255", ["parallel.rule=cdp-v1", PREDICT]),
            ("cdp-v1, both", "#117733", ["parallel.rule=cdp-v1", PREDICT, *RECIPE]),
            ("dp, recipe", "#999999", ["parallel.rule=dp", *RECIPE])]
BASELINES = {"cdp-v1, recipe": "dp, recipe", "cdp-v1, both": "dp, recipe"}  # of all others: dp
# Student's t, quantile 0.975, for 1, 2, ... degrees of freedom.
STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228]


def run_folder(study, name, seed):
    return study / f"{name.replace(', ', '-').replace(' = ', '').replace(' ', '')}-seed{seed}"


def key_of(word):
    return word.split("=")[0]


def asked_by(arguments):
    """What deck and keys say: a function of the names of a table and of a key in it."""
    deck = tomllib.loads(arguments.deck.read_text())
    given = dict(word.split("=", 1) for word in arguments.keys)

    def asked(table, key):
        return given.get(f"{table}.{key}", functools.reduce(dict.get, table.split("."), deck)[key])

    return asked


def variants_of(asked):
    """Those that a deck can have: Nesterov's momentum is SGD's, and twice as many micro-batches are
    of 4."""
    sgd = asked("train.optimizer", "name") == "sgd"
    return [(name, colour, [key for key in keys if sgd or key != NESTEROV])
            for name, colour, keys in VARIANTS
            if (sgd or keys[-1] != NESTEROV) and (TWICE not in keys or twice_as_many(asked))]


def twice_as_many(asked):
    """What TWICE stands for; None of a deck with other numbers than it is about."""
    def value(table, key):
        return int(asked(table, key))

    batch = value("train", "micro_batch_size")
    if value("parallel", "micro_batches") != 4 or value("parallel", "stages") != 4 or batch % 2:
        return None
    return ["parallel.micro_batches=8", "parallel.stages=8", f"train.micro_batch_size={batch // 2}"]


running = set()
stopped = False
guard = threading.RLock()  # of both


def stop(*_):
    global stopped
    with guard:
        stopped = True
        for process in running:
            process.terminate()  # it saves, and goes on next time


def train(arguments, folder, seed, keys):
    """Returns whether the run is finished; what it says goes into a file beside its folder."""
    own = [f"run.output={folder}", f"run.seed={seed}", "run.resume=auto", "checkpoint.keep=1",
           "profile.steps=", *keys]
    given = [word for word in arguments.keys if key_of(word) not in map(key_of, own)]
    with open(f"{folder}.log", "a") as log:
        with guard:
            if stopped:
                return False
            process = subprocess.Popen([arguments.program, "train", arguments.deck, *own, *given],
                                       stdout=log, stderr=log)
            running.add(process)
        code = process.wait()
        with guard:
            running.remove(process)
    if code != 0:
        print(f"{folder}: exit code {code}; see {folder}.log", file=sys.stderr)
    return code == 0


def state_of(folder):
    """As its status file has it; "" where there is none."""
    try:
        return json.loads((folder / "status.json").read_text())["state"]
    except OSError:
        return ""


def accuracies(folder):
    """Percent on the test set after every epoch; None where a run is not done."""
    if state_of(folder) != "done":
        return None
    with h5py.File(folder / "run.h5") as run:
        return 100 * run["evaluations/accuracy"][:]


def interval(values):
    """Mean and half the width of its 95% interval; None of one value."""
    half = None
    if len(values) > 1:
        half = STUDENT[len(values) - 2] * np.std(values, ddof=1) / np.sqrt(len(values))
    return np.mean(values), half


def describe(values, signed=False):
    mean, half = interval(values)
    return f"{mean:+6.2f}" if half is None else f"{mean:{'+' if signed else ''}6.2f} +- {half:.2f}"


def report(arguments, found, diverged):
    """`found`: {variant: {seed: [epoch] accuracy}} of finished runs; `diverged`: {variant: seeds}"""
    print(f"{'':26}runs  mean   deviation  difference from dp, 95% interval   seeds")
    for name, _, _ in arguments.variants:
        runs = found[name]
        if diverged[name]:
            print(f"{name:26}diverged with seeds {', '.join(map(str, sorted(diverged[name])))}")
        if not runs:
            continue
        last = {seed: curve[-1] for seed, curve in sorted(runs.items())}
        baseline = BASELINES.get(name, "dp")
        paired = [last[seed] - found[baseline][seed][-1] for seed in last
                  if seed in found[baseline]]
        deviation = f"{np.std(list(last.values()), ddof=1):6.2f}" if len(last) > 1 else "     -"
        difference = describe(paired, signed=True) if paired and name != baseline else ""
        print(f"{name:26}{len(last):4}  {np.mean(list(last.values())):5.2f}  {deviation}     "
              f"{difference:39} {' '.join(f'{value:.2f}' for value in last.values())}")
    draw(arguments, found)


def draw(arguments, found):
    figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    for name, colour, _ in arguments.variants:
        if not found[name]:
            continue
        curves = np.array(list(found[name].values()))
        mean, epochs = curves.mean(axis=0), np.arange(1, curves.shape[1] + 1)
        axes.plot(epochs, mean, color=colour, linewidth=1.2, marker="o", markersize=2.5,
                  label=f"{name}: {mean[-1]:.2f} ({len(curves)} runs)")
        if len(curves) > 1:
            deviation = curves.std(axis=0, ddof=1)
            axes.fill_between(epochs, mean - deviation, mean + deviation, color=colour, alpha=0.12,
                              linewidth=0)
    axes.set_xlabel("epoch")
    axes.set_ylabel("accuracy on the test set (%)")
    axes.set_title(f"{arguments.deck.stem}: mean and standard deviation over seeds", loc="left",
                   fontsize=10)
    axes.grid(color="#dddddd", linewidth=0.4)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    figure.savefig(arguments.folder / "accuracy.png", dpi=160)
    print(f"wrote {arguments.folder / 'accuracy.png'}")


def parse():
    parser = study.parser(__doc__)
    parser.add_argument("--deck", type=study.existing_file,
                        default=study.ROOT / "inputs/paper/resnet20_cifar10.toml")
    parser.add_argument("--seeds", type=study.numbers, default=[1, 2, 3])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", metavar="NAME", default="")

    def check(arguments):
        if not any(arguments.only in name for name, _, _ in VARIANTS):
            parser.error(f"no variant has {arguments.only} in its name")
        if len(arguments.seeds) > len(STUDENT) + 1:
            parser.error(f"at most {len(STUDENT) + 1} seeds")
        if arguments.jobs < 1:
            parser.error("at least one job")
        for word in arguments.keys:
            if key_of(word) in ("parallel.rule", "parallel.slack", "run.seed", "run.output",
                                *map(key_of, [PREDICT, *RECIPE])):
                parser.error(f"{key_of(word)} is what the study varies")
        asked = asked_by(arguments)
        arguments.variants = variants_of(asked)
        arguments.twice = twice_as_many(asked)

    return study.parse(parser, "deck", check=check)


def main():
    arguments = parse()
    cases = [(name, seed, keys) for seed in arguments.seeds for name, _, keys in arguments.variants]
    found = {name: {} for name, _, _ in arguments.variants}
    diverged = {name: [] for name, _, _ in arguments.variants}
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)

    def finish(case):
        """Returns False where a run failed."""
        name, seed, keys = case
        folder = run_folder(arguments.folder, name, seed)
        wanted = arguments.only in name and not arguments.report
        if wanted and state_of(folder) not in ("done", "diverged"):
            more = [word for key in keys for word in (arguments.twice if key == TWICE else [key])]
            if not train(arguments, folder, seed, more) and state_of(folder) != "diverged":
                return False
        curve = accuracies(folder)
        if curve is not None:
            found[name][seed] = curve
        elif state_of(folder) == "diverged":
            diverged[name].append(seed)
        if curve is not None or seed in diverged[name]:
            print(f"{name}, seed {seed}: {'diverged' if curve is None else f'{curve[-1]:.2f}'}",
                  flush=True)
        return True

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        failed = list(pool.map(finish, cases)).count(False)
    if not any(found.values()) and not any(diverged.values()):
        print(f"accuracy_study.py: {arguments.folder} has no finished run", file=sys.stderr)
        return 1
    report(arguments, found, diverged)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
