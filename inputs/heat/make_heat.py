#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Makes heat.h5: rods of two materials that are heated, solved by Crank and Nicolson's scheme.

Usage: make_heat.py [FILE] [--samples N]

    /rod/parameters   float64 [n, 5]   conductivity left and right of the joint, its place, power
                                       and place of the source
    /rod/temperature  float64 [n, 16]  at 16 points of the rod, in kelvin above its ends, after one
                                       unit of time

u_t = (k u_x)_x + q with u = 0 at both ends and in the beginning, on 127 points, in 40 steps. The
source q is a bump of width 0.05.
"""

import argparse
import pathlib

import h5py
import numpy

POINTS = 127
STEPS = 40
SENSORS = 16
LOW = numpy.array([0.2, 0.2, 0.2, 10.0, 0.1])
HIGH = numpy.array([2.0, 2.0, 0.8, 50.0, 0.9])


def solve(parameters):
    """Temperatures [n, SENSORS] of rods [n, 5]."""
    x = numpy.linspace(0, 1, POINTS + 2)
    step = x[1] - x[0]
    left, right, joint, power, place = (column[:, None] for column in parameters.T)
    between = (x[:-1] + x[1:]) / 2
    k = numpy.where(between < joint, left, right)  # [n, POINTS + 1]
    q = power * numpy.exp(-(((x[1:-1] - place) / 0.05) ** 2))
    n = len(parameters)
    flow = numpy.zeros((n, POINTS, POINTS))  # (k u_x)_x = flow u
    inner = numpy.arange(POINTS)
    flow[:, inner, inner] = -(k[:, :-1] + k[:, 1:]) / step**2
    flow[:, inner[1:], inner[:-1]] = flow[:, inner[:-1], inner[1:]] = k[:, 1:-1] / step**2
    half = flow / (2 * STEPS)
    one = numpy.eye(POINTS)
    forward = numpy.linalg.solve(one - half, one + half)
    source = numpy.linalg.solve(one - half, q[..., None] / STEPS)
    u = numpy.zeros((n, POINTS, 1))
    for _ in range(STEPS):
        u = forward @ u + source
    sensors = numpy.linspace(0, POINTS - 1, SENSORS).round().astype(int)
    return u[:, sensors, 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", default=pathlib.Path(__file__).with_name("heat.h5"))
    parser.add_argument("--samples", type=int, default=4096)
    arguments = parser.parse_args()
    random = numpy.random.default_rng(1)
    parameters = random.uniform(LOW, HIGH, (arguments.samples, len(LOW)))
    parts = numpy.array_split(parameters, -(-arguments.samples // 64))
    with h5py.File(arguments.file, "w") as file:
        file["rod/parameters"] = parameters
        file["rod/temperature"] = numpy.concatenate([solve(part) for part in parts])
    print(f"{arguments.file}: {arguments.samples} rods")


if __name__ == "__main__":
    main()
