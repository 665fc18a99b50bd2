# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the engines that a test has started, by MPICH's launcher or Open MPI's."""

import pathlib
import subprocess


def is_open_mpi(launcher):
    return "OpenRTE" in subprocess.run([launcher, "--version"], capture_output=True, text=True,
                                       check=True).stdout


def rank_in(environment):
    """The rank that the variables of a process tell, b"NAME=value"; None where they tell none."""
    for word in environment:
        if word.startswith((b"PMI_RANK=", b"OMPI_COMM_WORLD_RANK=")):
            return int(word.split(b"=")[1])
    return None


def engines_in(folder):
    """Processes of engines that work in a folder."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if ((process / "exe").resolve().name == "carousel-engine"
                    and (process / "cwd").resolve() == folder.resolve()):
                found.append(int(process.name))
        except OSError:  # it has ended
            pass
    return found
