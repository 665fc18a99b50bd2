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

from run_file import BAD_DATA, INPUT_OUTPUT, USAGE, Refusal, attributes

STEP_COLUMNS = ("loss", "accuracy", "learning_rate", "images_per_second")
EVALUATION_COLUMNS = ("loss", "accuracy")


def write_events(run, folder):
    """Returns the folder of the run's events. Refusal where it is no run, or has events already."""
    given = pathlib.Path(run)
    main = given / "run.h5" if given.is_dir() else given
    target = pathlib.Path(folder) / main.resolve().parent.name
    if any(target.glob("events.out.tfevents.*")):
        raise Refusal(USAGE, f"{target}: holds events already; remove it or name another folder")
    try:
        with h5py.File(main, "r") as file:
            begun = datetime.datetime.fromisoformat(attributes(file["info"])["start_time"]).timestamp()
            steps = {name: file["steps"][name][:] for name in ("step", "seconds", *STEP_COLUMNS)}
            tests = {name: file["evaluations"][name][:] for name in ("step", *EVALUATION_COLUMNS)}
    except FileNotFoundError:
        raise Refusal(INPUT_OUTPUT, f"{main}: no such file; name the folder of a run") from None
    except (KeyError, OSError, ValueError) as error:
        raise Refusal(BAD_DATA, f"{main}: not a whole run file: "
                                f"{' '.join(str(error).split())}") from None
    moments = {int(step) + 1: begun + seconds
               for step, seconds in zip(steps["step"], steps["seconds"])}
    try:
        writer = Writer(str(target))
        for name in STEP_COLUMNS:
            for step, value in zip(steps["step"], steps[name]):
                writer.add_scalar(f"train/{name}", value, int(step),
                                  wall_time=moments[int(step) + 1])
        for name in EVALUATION_COLUMNS:
            for step, value in zip(tests["step"], tests[name]):
                writer.add_scalar(f"test/{name}", value, int(step),
                                  wall_time=moments.get(int(step), begun))
        writer.close()
    except OSError as error:
        raise Refusal(INPUT_OUTPUT, f"{target}: cannot write: {error.strerror}") from None
    return target
