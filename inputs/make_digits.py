#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Makes inputs/digits.h5 from the UCI optical digits that scikit-learn carries.

Needed only to make the file again (pip install scikit-learn h5py), never to build or test Carousel.
The set comes sorted by writer; without the permutation below, test digits would be by people whom
training never saw, and every rule would end near 92 %.
"""
import pathlib

import h5py
import numpy as np
from sklearn.datasets import load_digits

SEED = 2024
TRAIN = 1437

digits = load_digits()
images = np.rint(digits.images * (255 / 16)).astype(np.uint8)[:, np.newaxis]  # [n, 1, 8, 8]
labels = digits.target.astype(np.uint8)
order = np.random.Generator(np.random.PCG64(SEED)).permutation(len(labels))
train, test = order[:TRAIN], order[TRAIN:]
scaled = images[train] / 255.0

target = pathlib.Path(__file__).with_name("digits.h5")
# The format of 1.10 has checksums in all metadata, and text of fixed length stays out of the heap
# that has none.
with h5py.File(target, "w", libver=("v110", "v110")) as file:
    for name, index in (("train", train), ("test", test)):
        file[f"{name}/images"] = images[index]
        file[f"{name}/labels"] = labels[index]
    file.attrs["format"] = np.bytes_("carousel dataset")
    file.attrs["format_version"] = 1
    file.attrs["class_names"] = np.array([str(digit) for digit in range(10)], dtype="S")
    file.attrs["mean"] = scaled.mean(axis=(0, 2, 3))
    file.attrs["std"] = scaled.std(axis=(0, 2, 3))
    file.attrs["source"] = np.bytes_(
        "Optical Recognition of Handwritten Digits, E. Alpaydin and C. Kaynak, UCI Machine "
        "Learning Repository, 1998, doi 10.24432/C50P49; the 1,797 samples of its test part, as "
        "in sklearn.datasets.load_digits")
    file.attrs["licence"] = np.bytes_("CC BY 4.0")
    file.attrs["history"] = np.bytes_(
        f"inputs/make_digits.py: values 0..16 scaled by 255/16 and rounded; one random permutation "
        f"(numpy PCG64, seed {SEED}); first {TRAIN} samples train, the rest test; mean and std over "
        "train, of values scaled to [0, 1]")
print(f"{target}: {target.stat().st_size} bytes")
