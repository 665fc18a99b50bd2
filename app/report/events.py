# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the history of a run as TensorBoard's events, through TensorBoard's own writer.

A run becomes a folder of its name: train/* for every step, test/* for every evaluation, at the times
when they were.
"""

import datetime
import pathlib

import h5py
from tensorboard.summary import Writer

from run_file import BAD_DATA, INPUT_OUTPUT, USAGE, Refusal, attributes, read_metrics


def begin_of(main, part):
    """When a part of a run began, as seconds since 1970, from the file of its rank 0."""
    ranks = main.resolve().parent / "ranks"
    path = ranks / "0000.h5" if part == 0 else ranks / f"part-{part}" / "0000.h5"
    try:
        with h5py.File(path, "r") as file:
            begin = attributes(file["info"])["start_time"]
    except FileNotFoundError:
        raise Refusal(INPUT_OUTPUT,
                      f"{path}: no such file; copy the folder of a run as a whole") from None
    return datetime.datetime.fromisoformat(begin).timestamp()


def moment_of(parts, step, seconds):
    """Seconds of a run leave out its pauses between parts: (first step, seconds before, begin)."""
    _, before, begin = [part for part in parts if part[0] <= step][-1]
    return begin + seconds - before


def write_events(run, folder):
    """Returns the folder of the run's events. Refusal where it is no run, or has events already."""
    given = pathlib.Path(run)
    main = given / "run.h5" if given.is_dir() else given
    target = pathlib.Path(folder) / main.resolve().parent.name
    if any(target.glob("events.out.tfevents.*")):
        raise Refusal(USAGE, f"{target}: holds events already; remove it or name another folder")
    try:
        with h5py.File(main, "r") as file:
            parts = [(int(first), float(seconds), begin_of(main, k))
                     for k, (first, seconds) in enumerate(zip(file["parts/first_step"],
                                                              file["parts/seconds"]))]
            of_tests = ("loss", *read_metrics(file["plan"]))
            of_steps = (*of_tests, "learning_rate", "images_per_second")
            steps = {name: file["steps"][name][:] for name in ("step", "seconds", *of_steps)}
            tests = {name: file["evaluations"][name][:] for name in ("step", *of_tests)}
    except FileNotFoundError:
        raise Refusal(INPUT_OUTPUT, f"{main}: no such file; name the folder of a run") from None
    except (KeyError, OSError, ValueError) as error:
        raise Refusal(BAD_DATA, f"{main}: not a whole run file: "
                                f"{' '.join(str(error).split())}") from None
    moments = {int(step) + 1: moment_of(parts, int(step), float(seconds))
               for step, seconds in zip(steps["step"], steps["seconds"])}
    try:
        writer = Writer(str(target))
        for name in of_steps:
            for step, value in zip(steps["step"], steps[name]):
                writer.add_scalar(f"train/{name}", value, int(step),
                                  wall_time=moments[int(step) + 1])
        for name in of_tests:
            for step, value in zip(tests["step"], tests[name]):
                writer.add_scalar(f"test/{name}", value, int(step),
                                  wall_time=moments.get(int(step), parts[0][2]))
        writer.close()
    except OSError as error:
        raise Refusal(INPUT_OUTPUT, f"{target}: cannot write: {error.strerror}") from None
    return target
