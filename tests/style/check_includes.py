#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Checks who includes whom: check_includes.py [ROOT]. The table of rooms, foreign libraries only
where they belong, a thinking half that never reaches the engine's, and a .cpp file that begins with
its own header, so that no header needs what others include."""

import re
import sys

from sources import INCLUDE, files, line_of, report, text

# Whom a room may include beside itself: rooms above it in this list alone, so that there is no
# circle. core/README.md says what the rooms are for. Folders inside a room, such as
# core/plan/placements, belong to it.
ALLOWED = {
    "core/base": "",
    "core/deck": "base",
    "core/optim": "base deck",
    "core/model": "base deck",
    "core/text": "base",
    "core/data": "base deck model text",
    "core/import": "base data model text",
    "core/engine": "base model",
    "core/plan": "base deck model optim",
    "core/proof": "base model plan",
    "core/train": "base data deck engine model optim plan",
    "core/forecast": "base model optim plan train",
    "core/draw": "base forecast model plan",
    "core/prepare": "base data forecast model plan proof train",
    "core/record": "base data forecast model plan prepare train",
    "core/state": "base model optim record",
    "core/audit": "base data model plan prepare record state train",
    "layers": "base engine model",
    "comm": "base engine model",
}
ALLOWED = {room: {room} | {f"core/{name}" for name in names.split()}
           for room, names in ALLOWED.items()}
ALLOWED["app"] = {"app", *ALLOWED}
# What has no kernels of core/train may yet include its plain structs.
PLAIN_TRAIN = re.compile(r"core/train/(config|initialise|learning_rate|records|slices)\.hpp")

# What computes; everything else only thinks and must load on a login node. Of a kind of layer, op.cpp
# and op.hpp think.
ENGINE = re.compile(
    r"core/base/(add|copy|cuda|cuda_stream|range|view|workers|zeros)\.hpp|core/(engine|train)/"
    r"|layers/(?!\w+/op\.[ch]pp$)|comm/|tests/|jobscripts/"
    r"|app/(engine(?!_process)|pauses|ranks|run_observer|run_start|state_files)")

# (what, included name, the files that may include it)
FOREIGN = (
    ("Kokkos", re.compile(r"Kokkos_"), re.compile(r"core/base/view\.hpp|core/train/|layers/|comm/"
                                                  r"|tests/|app/(engine(?!_process)|run_observer)")),
    ("MPI", re.compile(r"mpi\.h$"), re.compile(r"comm/|tests/")),
    ("NCCL", re.compile(r"nccl\.h$"), re.compile(r"comm/|tests/comm/")),
    ("CUDA", re.compile(r"cu(da|dnn|blas)[A-Za-z_]*\.h"),
     re.compile(r"core/base/cuda_stream|(tests/)?layers/|comm/|jobscripts/|tests/core/engine/")),
    ("a codec", re.compile(r"j(peglib|error)\.h$|png\.h$"), re.compile(r"core/data/picture\.cpp")),
    ("zlib", re.compile(r"zlib\.h$"), re.compile(r"core/import/gzip\.[ch]pp|core/data/chunk_reader\.cpp")),
    ("utf8proc", re.compile(r"utf8proc\.h$"), re.compile(r"core/text/")),
    ("libarchive", re.compile(r"archive(_entry)?\.h$"),
     re.compile(r"core/import/file_source\.cpp")),
    ("HDF5", re.compile(r"hdf5\.h$|H5[A-Za-z]*public\.h$"),
     re.compile(r"core/base/hdf5")),
)
COMPUTING = ("Kokkos", "MPI", "NCCL", "CUDA")


def room(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "core" else parts[0]


def foreign(name):
    return next((what for what, pattern, _ in FOREIGN if pattern.match(name)), None)


def check(root):
    paths = files(root, ".hpp", ".cpp")
    known = set(paths)
    includes = {}  # file -> project files it includes
    reaches = {}  # file -> computing libraries it includes itself
    complaints = []
    for path in paths:
        source = text(root, path)
        includes[path], reaches[path] = [], []
        for match in INCLUDE.finditer(source):
            bracket, name = match.groups()
            where = f"{path}:{line_of(source, match.start())}"
            what = foreign(name)
            if what in COMPUTING:
                reaches[path].append(what)
            if what and not next(f for f in FOREIGN if f[0] == what)[2].match(path):
                complaints.append(f"{where}: {what} is not for this file ({name})")
            if bracket == '"' and not what:
                complaints += check_own(path, name, where, known)
                if name in known:
                    includes[path].append(name)
        complaints += check_first(path, source, known)
    return complaints + thinking(paths, includes, reaches)


def check_own(path, name, where, known):
    """An include in quotes names an existing file by its full path, in a room that is allowed."""
    if name not in known:
        # A header that the build writes has no folder of its own.
        return [] if "/" not in name and path.endswith(".cpp") else [f"{where}: no file {name}"]
    here, there = room(path), room(name)
    if here.startswith("core/") and here not in ALLOWED:
        return [f"{where}: {here} is not in the table of rooms"]
    if here in ALLOWED and there not in ALLOWED[here]:
        return [f"{where}: {here} must not include {there} ({name})"]
    if here.startswith("core/") and there == "core/train" != here and not PLAIN_TRAIN.match(name):
        return [f"{where}: {here} may include the plain structs of {there} alone ({name})"]
    return []


def check_first(path, source, known):
    """A .cpp file begins with its own header, where it has one."""
    header = re.sub(r"cpp$", "hpp", path)
    first = INCLUDE.search(source)
    if header == path or header not in known or (first and first.group(2) == header):
        return []
    return [f"{path}: does not include its own header {header} first"]


def thinking(paths, includes, reaches):
    """Files of the thinking half that reach a computing library, by whatever way."""
    complaints = []
    for path in paths:
        if ENGINE.match(path):
            continue
        way = {path: None}
        queue = [path]
        for file in queue:
            for name in includes[file]:
                if name not in way:
                    way[name] = file
                    queue.append(name)
        guilty = next((file for file in queue if reaches[file]), None)
        if guilty and guilty != path:
            steps = [guilty]
            while way[steps[-1]]:
                steps.append(way[steps[-1]])
            complaints.append(f"{path}: only thinks, but reaches {reaches[guilty][0]} by "
                              + " <- ".join(steps))
    return complaints


if __name__ == "__main__":
    sys.exit(report(check))
