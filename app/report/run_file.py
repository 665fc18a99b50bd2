# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Reads what a picture needs from a run folder: run.h5, the ranks' files and the status beside it.

All times are seconds since the start of the run, all sizes bytes. Nothing is computed here.
"""

import json
import pathlib
import tomllib
from dataclasses import dataclass

import h5py
import numpy

USAGE, BAD_DATA, INPUT_OUTPUT = 2, 65, 74


class Refusal(Exception):
    """One line for the user, and the exit code that goes with it."""

    def __init__(self, code, line):
        super().__init__(line)
        self.code = code


@dataclass
class Device:
    """Rows of the profiled steps on one device: column name -> array, as in the file."""

    actions: dict  # kind, step, micro_batch, stage, version, begin, end (seconds)
    messages: dict  # kind, direction, step, stage, peer, bytes, posted, completed (seconds)
    memory: dict  # seconds, activations (bytes in use from then on)


@dataclass
class Run:
    """One run; `plan` are the attributes of /plan."""

    name: str  # that the picture calls it by
    info: dict
    deck: dict  # resolved: section -> key -> value
    plan: dict
    stage_activations: numpy.ndarray  # [stage], bytes that one micro-batch holds
    planned_activations: numpy.ndarray  # [device], bytes
    steps: dict  # step, loss, metrics
    evaluations: dict  # step, loss, metrics on the test set
    devices: list  # of Device, in the newest part of the run that has profiled steps
    joints: list  # steps from which later parts went on with the run
    metrics: list  # names of the columns beside the loss
    state: str = ""  # running, done, stopped, failed, diverged; empty where no status.json tells


def read_run(path):
    """The run in a folder, or of a run.h5. Refusal when it is none or has no profiled step."""
    given = pathlib.Path(path)
    main = given / "run.h5" if given.is_dir() else given
    if not main.is_file():
        raise Refusal(INPUT_OUTPUT, f"{main}: no such file; name the folder of a run")
    try:
        with h5py.File(main, "r") as file:
            return read_file(file, main)
    except PermissionError:
        raise Refusal(INPUT_OUTPUT, f"{main}: not allowed to read it") from None
    except (KeyError, ValueError, tomllib.TOMLDecodeError) as error:
        reason = " ".join(str(error.args[0]).split())
        raise Refusal(BAD_DATA, f"{main}: not a whole run file: {reason}") from None
    except OSError as error:
        raise Refusal(BAD_DATA, f"{main}: cannot read it: {' '.join(str(error).split())}") from None


def read_file(file, main):
    info = attributes(file["info"])
    if info["format"] != "carousel run" or info["format_version"] != 1:
        raise Refusal(BAD_DATA, f"{main}: is a '{info['format']}' of version "
                                f"{info['format_version']}, not a 'carousel run' of version 1")
    joints = file["parts/first_step"][1:].tolist() if "parts" in file else []
    ranks, plan, stage_activations, planned = profiled_part(file, main.parent / "ranks", len(joints))
    metrics = read_metrics(file["plan"])
    run = Run(name=main.resolve().parent.name,
              info=info,
              deck=tomllib.loads(info["deck"]),
              plan=plan,
              stage_activations=stage_activations,
              planned_activations=planned,
              steps=columns(file["steps"], "step", "loss", *metrics),
              evaluations=columns(file["evaluations"], "step", "loss", *metrics),
              devices=[read_device(ranks, d) for d in range(plan["devices"])],
              joints=joints,
              metrics=metrics,
              state=read_state(main.parent / "status.json"))
    if not len(run.steps["step"]):
        raise Refusal(USAGE, f"{main}: the run has not come to its first pause; metrics.jsonl has "
                             "the steps that it made")
    if not any(len(device.actions["step"]) for device in run.devices):
        raise Refusal(USAGE, f"{main}: no step was profiled; train again with, for example, "
                             "profile.steps=\"0:20\"")
    return run


def read_metrics(plan):
    """Names of the columns beside the loss. Earlier versions did not say them and knew one."""
    if "metrics" not in plan:
        return ["accuracy"]
    return plan["metrics"].asstr()[:].tolist()


def profiled_part(file, ranks, newest):
    """Folder and plan of the newest part of a run that has profiled steps, or of the first one."""
    for number in range(newest, 0, -1):
        folder = ranks / f"part-{number}"
        first = folder / "0000.h5"
        if not first.is_file():
            continue
        with h5py.File(first, "r") as rank:
            if len(rank["actions/step"]):
                return folder, *read_plan(rank["plan"])
    if newest == 0:
        return ranks, *read_plan(file["plan"])
    with h5py.File(ranks / "0000.h5", "r") as rank:
        return ranks, *read_plan(rank["plan"])


def read_plan(group):
    """Attributes, bytes of a stage's activations, and planned bytes of every device."""
    return attributes(group), group["stage_activations"][:], group["bytes/activations"][:]


def read_state(path):
    """How the run ended. A run.h5 that was copied alone has no status."""
    try:
        return str(json.loads(path.read_bytes())["state"])
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise Refusal(INPUT_OUTPUT, f"{path}: cannot read it: {error.strerror}") from None
    except (KeyError, TypeError, ValueError):
        raise Refusal(BAD_DATA, f"{path}: not a status that Carousel wrote") from None


def read_device(ranks, number):
    """By its name: where a link of run.h5 leads nowhere, HDF5 takes a file of the current folder."""
    path = ranks / f"{number:04d}.h5"
    if not path.is_file():
        raise Refusal(INPUT_OUTPUT, f"{path}: no such file; copy the whole folder of the run")
    try:
        rank = h5py.File(path, "r")
    except OSError as error:
        raise Refusal(BAD_DATA, f"{path}: cannot read it: {' '.join(str(error).split())}") from None
    with rank:
        return Device(
            actions=columns(rank["actions"], "kind", "step", "micro_batch", "stage", "version",
                            "begin", "end"),
            messages=columns(rank["messages"], "kind", "direction", "step", "micro_batch", "stage",
                             "peer", "bytes", "posted", "completed"),
            memory=columns(rank["memory"], "seconds", "activations"))


def columns(group, *names):
    """The named columns, which must have the same length; strings as str."""
    found = {name: group[name][:] for name in names}
    for name, column in found.items():
        if len(column) != len(found[names[0]]):
            raise ValueError(f"{group.name}/{name} has {len(column)} rows, {names[0]} beside it "
                             f"has {len(found[names[0]])}")
        if column.dtype.kind == "S":
            found[name] = column.astype(str)
    return found


def attributes(group):
    """The attributes of a group with text as str."""
    return {name: value.decode() if isinstance(value, bytes) else value
            for name, value in group.attrs.items()}
