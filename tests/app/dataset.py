# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""A data set that only has the right shape, for tests of what happens before training."""

import h5py
import numpy


def write_dataset(path, shape, samples=128, classes=10, test_samples=None):
    """Black images [c, h, w] with labels of all classes in turn."""
    with h5py.File(path, "w") as file:
        for split, size in (("train", samples), ("test", test_samples or samples)):
            file[f"{split}/images"] = numpy.zeros((size, *shape), numpy.uint8)
            file[f"{split}/labels"] = numpy.arange(size) % classes
        file.attrs["format"] = numpy.bytes_("carousel dataset")
        file.attrs["format_version"] = 1
        file.attrs["class_names"] = numpy.array([str(k) for k in range(classes)], dtype="S")
        file.attrs["mean"] = numpy.full(shape[0], 0.5)
        file.attrs["std"] = numpy.full(shape[0], 0.25)
        file.attrs["source"] = file.attrs["licence"] = numpy.bytes_("none")
