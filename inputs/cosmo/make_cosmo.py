#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Makes cosmo.h5: counts of galaxies in periodic boxes of universes that four numbers tell apart.

Usage: make_cosmo.py [FILE] [--universes N] [--points P]

    /universe/counts      int16   [universe, time, z, y, x]
    /universe/parameters  float32 [universe, 4]  clustering, slope, smallest, growth

The logarithm of the density is a Gaussian field whose waves of k turns in the box have the power
k^slope exp(-(k / smallest)^2), scaled so that its deviation is `clustering` at the last of four times;
at a time before, it is smaller by `growth`. Galaxies are drawn from that density, 4 in a cell on
average. A small stand-in for the N-body volumes of CosmoFlow (Mathuriya et al. 2018).
"""

import argparse
import pathlib

import h5py
import numpy

TIMES = 4
GALAXIES = 4  # in a cell
LIMITS = numpy.array([[0.4, -2.5, 4, 0.5], [1.2, -0.5, 12, 0.9]])  # least and most of each number


def turns(points):
    """Of each wave, along all axes together."""
    across = numpy.fft.rfftfreq(points, 1 / points)
    along = numpy.fft.fftfreq(points, 1 / points)
    return numpy.sqrt(along[:, None, None] ** 2 + along[:, None] ** 2 + across**2)


def universe(random, k, parameters):
    """Counts [time, z, y, x]."""
    clustering, slope, smallest, growth = parameters
    points = k.shape[0]
    power = numpy.where(k > 0, numpy.maximum(k, 1) ** slope * numpy.exp(-((k / smallest) ** 2)), 0)
    waves = numpy.fft.rfftn(random.standard_normal((points,) * 3)) * numpy.sqrt(power)
    field = numpy.fft.irfftn(waves, (points,) * 3, (0, 1, 2))
    field *= clustering / field.std()
    for time in range(TIMES):
        now = field * growth ** (TIMES - 1 - time)
        density = numpy.exp(now)
        yield random.poisson(GALAXIES * density / density.mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", default=pathlib.Path(__file__).with_name("cosmo.h5"))
    parser.add_argument("--universes", type=int, default=640)
    parser.add_argument("--points", type=int, default=32)
    arguments = parser.parse_args()
    random = numpy.random.default_rng(1)
    k = turns(arguments.points)
    with h5py.File(arguments.file, "w") as file:
        shape = (arguments.universes, TIMES, *(arguments.points,) * 3)
        counts = file.create_dataset("universe/counts", shape, "i2")
        parameters = random.uniform(*LIMITS, (arguments.universes, LIMITS.shape[1]))
        file["universe/parameters"] = parameters.astype("f4")
        for number, each in enumerate(parameters):
            counts[number] = numpy.stack(list(universe(random, k, each))).clip(0, 32767)
    print(f"{arguments.file}: {arguments.universes} universes of {TIMES} x {arguments.points}^3 cells")


if __name__ == "__main__":
    main()
