#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/reference/views.h5: a data set of pictures, drawn here, and what torchvision shows of
them where its random numbers are those of core/data/augment.hpp.

/cases/NAME has a configuration as attributes, `train` [epochs, n, 3, size, size] and `test` likewise
for one pass. The pictures of `large` are so much larger than what is shown that they are decoded at
a reduced scale; Pillow's draft() does the same. /pixels has what random crops show of images
[7, 3, 20, 22] whose value x is 37 x mod 251. Needs torch, torchvision, Pillow, numpy and h5py.
"""
import io
import math
import pathlib

import h5py
import numpy as np
import torch
import torchvision
from PIL import Image
from torchvision import transforms

from make_picture_fixtures import drawing
from random_numbers import uniform01

EPOCHS = (0, 1, 5)
SIZES = ((45, 60), (60, 45), (33, 120), (110, 31), (48, 48), (24, 24), (25, 90), (64, 50))
LARGE = ((210, 300), (300, 190), (256, 256))
CASES = {
    "resized": {"size": 24, "resize": 32, "crop": "resized", "flip": 0.5},
    "narrow": {"size": 20, "crop": "resized", "scale": (0.3, 0.9), "ratio": (0.4, 3.0)},
    "random": {"size": 24, "resize": 30, "crop": "random", "padding": 3, "flip": 0.5},
    "centre": {"size": 24, "resize": 29},
    "grown": {"size": 72, "crop": "resized", "flip": 1.0},
}


def encoded(size, number):
    buffer = io.BytesIO()
    image = Image.fromarray(drawing(*size, 3))
    if number % 4 == 3:
        image = image.convert("L")
    image.save(buffer, "PNG" if number % 3 == 2 else "JPEG")
    return buffer.getvalue()


class Draws:
    """Answers what torchvision asks of torch with the numbers of one sample."""

    def __init__(self, epoch, sample):
        self.numbers = uniform01("augment", epoch, 64, first=64 * sample)
        self.box = False
        self.asked = 0
        self.chosen = 0

    def rand(self, _count):
        return torch.tensor([self.numbers[0]])

    def empty(self, _count):
        return self

    def uniform_(self, low, high):
        draw = self.numbers[4 + 4 * (self.asked // 2) + self.asked % 2]
        self.asked += 1
        self.chosen = 0
        return torch.tensor([float(low) + (float(high) - float(low)) * draw])

    def randint(self, low, high, size):
        assert low == 0 and size == (1,)
        first = 4 + 4 * (self.asked // 2 - 1) + 2 if self.box else 1
        draw = self.numbers[first + self.chosen]
        self.chosen += 1
        return torch.tensor([int(high * draw)])


class Patched:
    """While it lasts, torch draws from a Draws."""

    def __init__(self, draws):
        self.draws = draws

    def __enter__(self):
        self.kept = torch.rand, torch.empty, torch.randint
        torch.rand, torch.empty = self.draws.rand, self.draws.empty
        torch.randint = lambda low, high, size=None: self.draws.randint(low, high, size)

    def __exit__(self, *_):
        torch.rand, torch.empty, torch.randint = self.kept


def reduction(box, size):
    smaller = min(box[2] / size[0], box[3] / size[1])
    return next((r for r in (8, 4, 2) if smaller >= 2 * r), 1)


def opened(file):
    return Image.open(io.BytesIO(file))


def resized_box(file, box, size):
    """A box (top, left, height, width) of a picture as `size`, decoded no finer than needed."""
    top, left, height, width = box
    by = reduction(box, size)
    image = opened(file)
    if by == 1 or image.format != "JPEG":
        return transforms.functional.resized_crop(image.convert("RGB"), *box, list(size))
    whole = image.size
    image.draft("RGB", (whole[0] // by, whole[1] // by))
    assert image.size == (-(-whole[0] // by), -(-whole[1] // by))
    # What lies outside of the box counts for nothing, as where pictures are not reduced.
    edges = (left / by, top / by, (left + width) / by, (top + height) / by)
    low = [math.floor(edge) for edge in edges[:2]]
    image = image.convert("RGB").crop((*low, *(math.ceil(edge) for edge in edges[2:])))
    return image.resize((size[1], size[0]), Image.Resampling.BILINEAR,
                        box=[edge - first for edge, first in zip(edges, low + low)])


def resized_whole(file, shorter):
    width, height = opened(file).size
    size = transforms.functional._compute_resized_output_size((height, width), [shorter])
    return resized_box(file, (0, 0, height, width), size)


def planes(image):
    return np.moveaxis(np.asarray(image), -1, 0)


def plain(file, case):
    image = resized_whole(file, case.get("resize", case["size"]))
    return planes(transforms.CenterCrop(case["size"])(image))


def augmented(file, case, epoch, sample):
    draws = Draws(epoch, sample)
    size = case["size"]
    crop = case.get("crop", "centre")
    if crop == "centre":
        image = transforms.CenterCrop(size)(resized_whole(file, case.get("resize", size)))
    elif crop == "random":
        image = resized_whole(file, case.get("resize", size))
        with Patched(draws):
            image = transforms.RandomCrop(size, padding=case.get("padding", 0))(image)
    else:
        draws.box = True
        with Patched(draws):
            box = transforms.RandomResizedCrop.get_params(
                opened(file), case.get("scale", (0.08, 1.0)), case.get("ratio", (3 / 4, 4 / 3)))
        image = resized_box(file, box, (size, size))
    with Patched(draws):
        image = transforms.RandomHorizontalFlip(case.get("flip", 0.0))(image)
    return planes(image)


def crops_of_pixels():
    images = (37 * np.arange(7 * 3 * 20 * 22) % 251).astype(np.uint8).reshape(7, 3, 20, 22)
    for epoch in EPOCHS:
        for k, image in enumerate(images):
            with Patched(Draws(epoch, k)):
                crop = transforms.RandomCrop((20, 22), padding=4)
                shown = crop(Image.fromarray(np.moveaxis(image, 0, -1)))
                yield planes(transforms.RandomHorizontalFlip(0.4)(shown))


def write_half(out, half, files):
    group = out.create_group(half)
    group["images"] = np.frombuffer(b"".join(files), np.uint8)
    group["offsets"] = np.cumsum([0] + [len(file) for file in files])
    group["sizes"] = [opened(file).size[::-1] for file in files]
    group["labels"] = np.arange(len(files)) % 3


def main():
    torch.set_default_dtype(torch.float64)
    path = pathlib.Path(__file__).with_name("views.h5")
    train = [encoded(size, k) for k, size in enumerate(SIZES)]
    train += [encoded(size, 3 * k + 1) for k, size in enumerate(LARGE)]
    test = [encoded(size, k + 1) for k, size in enumerate(SIZES[:4])]
    with h5py.File(path, "w") as out:
        out.attrs["format"] = np.bytes_("carousel dataset")
        out.attrs["format_version"] = 1
        out.attrs["class_names"] = np.array(["wave", "edge", "noise"], "S")
        out.attrs["mean"] = [0.5, 0.4, 0.3]
        out.attrs["std"] = [0.2, 0.3, 0.4]
        out.attrs["source"] = np.bytes_("drawn by make_view_fixtures.py")
        out.attrs["licence"] = np.bytes_("Apache-2.0")
        out.attrs["made_by"] = np.bytes_(
            f"torchvision {torchvision.__version__}, Pillow {Image.__version__}")
        write_half(out, "train", train)
        write_half(out, "test", test)
        out["pixels"] = np.stack(list(crops_of_pixels())).reshape(len(EPOCHS), 7, 3, 20, 22)
        for name, case in CASES.items():
            group = out.create_group("cases/" + name)
            for key, value in case.items():
                group.attrs[key] = np.bytes_(value) if isinstance(value, str) else value
            group["train"] = np.stack([
                np.stack([augmented(file, case, epoch, k) for k, file in enumerate(train)])
                for epoch in EPOCHS])
            group["test"] = np.stack([plain(file, case) for file in test])


if __name__ == "__main__":
    main()
