#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Prints how far apart the devices of a replicated run really were: offsets.py RUN

The offset of a device is the begin of its step less that of device 0, in time steps of the rule; a
time step is 1 / (2 S) of the time from one step of device 0 to its next. Medians over the recorded
steps, so record enough of them: profile.steps="::". The first two steps of the run do not count.
"""
import sys
from statistics import median

import h5py


def begins(rank):
    """Step -> begin of its first forward."""
    actions = rank["actions"]
    rows = zip(actions["kind"][:], actions["stage"][:], actions["step"][:], actions["begin"][:])
    return {int(step): float(begin) for kind, stage, step, begin in rows
            if kind == b"forward" and stage == 0}


def main(folder):
    with h5py.File(f"{folder}/run.h5", "r") as run:
        plan = run["plan"].attrs
        n, s = int(plan["micro_batches"]), int(plan["stages"])
        rule = plan["rule"].decode()
        devices = [begins(run["ranks"][name]) for name in sorted(run["ranks"])]
    if len(devices) != n:
        sys.exit(f"{folder}: has {len(devices)} devices for {n} micro-batches; offsets are those "
                 "of parallel.placement=replicated")
    steps = [t for t in sorted(devices[0]) if t >= 2 and all(t in d for d in devices)]
    lengths = [devices[0][t + 1] - devices[0][t] for t in steps if t + 1 in devices[0]]
    if not lengths:
        sys.exit(f"{folder}: no two consecutive steps were recorded; set profile.steps=\"::\"")
    time_step = median(lengths) / (2 * s)

    print(f"{rule}, N = {n}, S = {s}: {len(steps)} steps, time step {time_step * 1e3:.3f} ms")
    print("device   rule   realised: median   10 %    90 %")
    worst = 0.0
    for i, device in enumerate(devices):
        wanted = 0 if rule == "dp" else 2 * (s * i // n)
        found = sorted((device[t] - devices[0][t]) / time_step for t in steps)
        low, high = found[len(found) // 10], found[-1 - len(found) // 10]
        print(f"{i:6} {wanted:6} {median(found):18.2f} {low:7.2f} {high:7.2f}")
        worst = max(worst, abs(median(found) - wanted))
    print(f"largest distance from the rule: {worst:.2f} time steps")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[0])
    main(sys.argv[1])
