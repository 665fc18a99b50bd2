#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Makes flow.h5: decaying two-dimensional turbulence in a periodic box.

Usage: make_flow.py [FILE] [--trajectories N] [--times T] [--points P]

    /flow/velocity   float32 [trajectory, time, y, x, component]  u along x, v along y
    /flow/vorticity  float32 [trajectory, time, y, x]

Vorticity w obeys w_t + u w_x + v w_y = viscosity (w_xx + w_yy). It is solved in Fourier space with the
products of the 2/3 rule and the classical Runge-Kutta scheme; viscosity is integrated exactly. It
begins as random waves of lengths around a fifth of the box.
"""

import argparse
import pathlib

import h5py
import numpy

VISCOSITY = 2e-3
STEP = 0.01
STEPS = 20  # between two times


class Box:
    """Waves of a box of length 2 pi with so many points on a side."""

    def __init__(self, points):
        self.ky = numpy.fft.fftfreq(points, 1 / points)[:, None]
        self.kx = numpy.fft.rfftfreq(points, 1 / points)
        self.squares = self.kx**2 + self.ky**2
        self.inverse = 1 / numpy.where(self.squares == 0, numpy.inf, self.squares)
        self.kept = numpy.maximum(abs(self.kx), abs(self.ky)) < points / 3

    def velocity(self, w):
        """[n, y, x] of both components, from waves of vorticity."""
        stream = w * self.inverse
        return numpy.fft.irfft2(1j * self.ky * stream), numpy.fft.irfft2(-1j * self.kx * stream)

    def transport(self, w):
        u, v = self.velocity(w)
        slope_x, slope_y = (numpy.fft.irfft2(1j * k * w) for k in (self.kx, self.ky))
        return self.kept * numpy.fft.rfft2(-u * slope_x - v * slope_y)

    def advance(self, w):
        half = numpy.exp(-VISCOSITY * self.squares * STEP / 2)
        a = self.transport(w)
        b = self.transport(half * (w + STEP / 2 * a))
        c = self.transport(half * w + STEP / 2 * b)
        d = self.transport(half**2 * w + STEP * half * c)
        return half**2 * w + STEP / 6 * (half**2 * a + 2 * half * (b + c) + d)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", default=pathlib.Path(__file__).with_name("flow.h5"))
    parser.add_argument("--trajectories", type=int, default=48)
    parser.add_argument("--times", type=int, default=21)
    parser.add_argument("--points", type=int, default=64)
    arguments = parser.parse_args()
    points = arguments.points
    box = Box(points)
    random = numpy.random.default_rng(1)
    shape = (arguments.times, points, points)
    with h5py.File(arguments.file, "w") as file:
        velocity = file.create_dataset("flow/velocity", (arguments.trajectories, *shape, 2), "f4")
        vorticity = file.create_dataset("flow/vorticity", (arguments.trajectories, *shape), "f4")
        spectrum = numpy.exp(-(((numpy.sqrt(box.squares) - 5) / 2) ** 2)) * box.kept
        for n in range(arguments.trajectories):
            w = spectrum * numpy.fft.rfft2(random.standard_normal((points, points)))
            w *= 3 / numpy.fft.irfft2(w).std()
            for t in range(arguments.times):
                velocity[n, t] = numpy.stack(box.velocity(w), -1)
                vorticity[n, t] = numpy.fft.irfft2(w)
                for _ in range(STEPS):
                    w = box.advance(w)
    print(f"{arguments.file}: {arguments.trajectories} flows of {arguments.times} times")


if __name__ == "__main__":
    main()
