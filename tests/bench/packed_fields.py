#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Trains an epoch on packed fields of more bytes than memory may hold: what reading costs.

Usage: packed_fields.py CAROUSEL FOLDER [--mebibytes M] [--names K] [--workers W] [--threads T]

FOLDER gets one file of M MiB of noisy fields, packed by shuffle and deflate, under K names, which are
hard links to it, so that an epoch reads it K times. Prints how far it packs; the time of the epoch;
the most memory that the run had; the share of the time that training waited for samples; the
processor time of all threads beside that of the same epoch on the same fields in one piece, as
`carousel import fields` writes them; what is more is the workers' cost of unpacking.
"""

import argparse
import os
import pathlib
import re
import resource
import subprocess
import sys
import time

import h5py
import numpy

CHANNELS, SIDE = 16, 512
DECK = """[run]
name = "packed"
output = "run"
[model]
layers = [
  { conv = 16, kernel = 3, padding = 1 }, "relu", { conv = 16, kernel = 3, padding = 1 }, "relu",
  { max_pool = 8 }, { conv = 16, kernel = 3 }, "relu", "global_avg_pool", { linear = 4 } ]
[task]
loss = "mse"
[data]
files = "packed-*.h5"
validation_files = "held.h5"
[data.input]
from = "fields"
axes = "n c y x"
[data.target]
from = "numbers"
[parallel]
rule = "dp"
placement = "single"
micro_batches = 4
order = "accumulate"
[train]
micro_batch_size = 1
epochs = 1
[train.optimizer]
learning_rate = 1e-4
[profile]
steps = ""
audit = false
"""


def write_fields(path, samples):
    """Waves with noise in all but the last bits, a chunk for each sample."""
    random = numpy.random.default_rng(1)
    y, x = numpy.meshgrid(*2 * (numpy.linspace(0, 6, SIDE, dtype="f4"),), indexing="ij")
    with h5py.File(path, "w") as file:
        fields = file.create_dataset("fields", (samples, CHANNELS, SIDE, SIDE), "f4",
                                     chunks=(1, CHANNELS, SIDE, SIDE), compression="gzip",
                                     compression_opts=1, shuffle=True)
        for k in range(samples):
            phase = random.uniform(0, 6, (CHANNELS, 1, 1)).astype("f4")
            noise = random.standard_normal((CHANNELS, SIDE, SIDE), dtype="f4")
            fields[k] = numpy.round((numpy.sin(x + phase) * numpy.cos(y) + 0.1 * noise) * 2**15) / 2**15
        file["numbers"] = random.standard_normal((samples, 4)).astype("f4")
        stored = fields.id.get_storage_size()
    return samples * CHANNELS * SIDE * SIDE * 4 / stored


def train(carousel, folder, *words):
    """Seconds, processor seconds and the most MiB of a run, and what inspect says of waiting."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    run = subprocess.Popen([carousel, "train", "deck.toml", "--overwrite", *words], cwd=folder,
                           stdout=subprocess.DEVNULL)
    most = 0
    while run.poll() is None:
        try:
            text = pathlib.Path(f"/proc/{run.pid}/status").read_text()
            most = max([most, *map(int, re.findall(r"VmHWM:\s+(\d+)", text))])
        except OSError:
            pass
        time.sleep(0.2)
    if run.returncode != 0:
        sys.exit(f"packed_fields: the run ended with {run.returncode}")
    seconds = time.monotonic() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    told = subprocess.run([carousel, "inspect", "run"], cwd=folder, capture_output=True,
                          text=True, check=True).stdout
    wait = re.search(r"data wait\s+(.*)", told)
    return seconds, used, most / 1024, wait.group(1) if wait else "none"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("carousel", type=os.path.abspath)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--mebibytes", type=int, default=2048)
    parser.add_argument("--names", type=int, default=20)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    samples = given.mebibytes * 2**20 // (CHANNELS * SIDE * SIDE * 4)
    whole = given.folder / "whole.h5"
    ratio = write_fields(whole, samples)
    write_fields(given.folder / "held.h5", 4)
    for k in range(given.names):
        link = given.folder / f"packed-{k:02}.h5"
        link.unlink(missing_ok=True)
        link.hardlink_to(whole)
    (given.folder / "deck.toml").write_text(DECK)
    print(f"{samples} samples of {CHANNELS}x{SIDE}x{SIDE}, packed to 1 / {ratio:.2f}, under "
          f"{given.names} names", flush=True)
    settings = (f"data.workers={given.workers}", f"engine.threads={given.threads}")
    seconds, used, most, wait = train(given.carousel, given.folder, *settings)
    print(f"packed:       {seconds:7.1f} s, {used:7.1f} s of processors, {most:6.0f} MiB at most, "
          f"waited {wait}", flush=True)

    begun = time.monotonic()
    subprocess.run([given.carousel, "import", "fields", "deck.toml", "pieces", "--overwrite",
                    'data.files="packed-00.h5"'], cwd=given.folder, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(f"import fields: {given.mebibytes / (time.monotonic() - begun):.0f} MiB/s", flush=True)
    for k in range(1, given.names):
        link = given.folder / f"pieces/packed-{k:02}.h5"
        link.unlink(missing_ok=True)
        link.hardlink_to(given.folder / "pieces/packed-00.h5")
    plain = train(given.carousel, given.folder, *settings, 'data.files="pieces/packed-*.h5"',
                  'data.validation_files="pieces/held.h5"')
    print(f"in one piece: {plain[0]:7.1f} s, {plain[1]:7.1f} s of processors, {plain[2]:6.0f} MiB at "
          f"most, waited {plain[3]}")
    print(f"unpacking costs {used - plain[1]:.1f} s of processors, "
          f"{given.mebibytes * given.names / (used - plain[1]):.0f} MiB/s of a thread")


if __name__ == "__main__":
    main()
