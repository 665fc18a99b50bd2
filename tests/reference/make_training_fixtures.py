#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/reference/training.json: what PyTorch makes of a hundred training steps in double
precision, for all that an optimizer and a loss can be asked for.

The data are inputs/digits.h5 in the order of core/data/sampler.hpp, first values and dropped
features are those of Carousel's generator. Of each tensor in the end there are the largest
magnitude and a sum in which every element has a random weight. Needs torch, numpy and h5py.
"""
import json
import math
import pathlib

import h5py
import numpy as np
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import random_numbers
from make_network_fixtures import SmallResNet, initialise
from random_numbers import hash_name, uniform, uniform01

SAMPLES, STEPS, WIDTHS = 8, 100, [64, 32, 16, 10]
DATA = pathlib.Path(__file__).resolve().parents[2] / "inputs/digits.h5"
CASES = [
    dict(name="nesterov", model="mlp", dropout=0.2, label_smoothing=0.1, clip=0, ema=0.9,
         sgd=dict(lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)),
    dict(name="dampening", model="mlp", dropout=0, label_smoothing=0, clip=0.7, ema=0.3,
         sgd=dict(lr=0.05, momentum=0.9, dampening=0.3)),
    dict(name="adamw", model="mlp", dropout=0.1, label_smoothing=0.05, clip=1.5, ema=0.99,
         adamw=dict(lr=2e-3, weight_decay=0.05, betas=(0.9, 0.99), eps=1e-6)),
    dict(name="batch_norm", model="resnet8", dropout=0, label_smoothing=0.1, clip=0, ema=0.999,
         sgd=dict(lr=0.02, momentum=0.9, nesterov=True, weight_decay=5e-4)),
]


class Dropped(torch.nn.Module):
    """torch.nn.Dropout with the masks of layers/dropout.cpp."""

    def __init__(self, name, probability):
        super().__init__()
        self.name, self.probability, self.drawn_for = name, probability, []

    def forward(self, x):
        if self.probability == 0:
            return x
        drawn = np.stack([uniform01(f"dropout {self.name}", epoch << 32 | sample, x.shape[1])
                          for epoch, sample in self.drawn_for])
        return x * torch.from_numpy(drawn >= self.probability) / (1 - self.probability)


def build(case):
    if case["model"] == "resnet8":
        model = SmallResNet(8, 10)
        model.conv1 = torch.nn.Conv2d(1, 16, 3, padding=1, bias=False)
        model = model.double()
        initialise(model, 0)
        return model
    layers = []
    for k in range(len(WIDTHS) - 1):
        layers += [torch.nn.Linear(WIDTHS[k], WIDTHS[k + 1]), torch.nn.ReLU(),
                   Dropped(str(3 * k + 2), case["dropout"])]
    model = torch.nn.Sequential(torch.nn.Flatten(), *layers[:-2]).double()
    return model


def named(model):
    """Parameters by Carousel's names, which do not count the flattening."""
    for name, parameter in model.named_parameters():
        if isinstance(model, torch.nn.Sequential):
            number, rest = name.split(".")
            name = f"{int(number) - 1}.{rest}"
        yield name, parameter


def permutation(epoch, samples):
    order = np.arange(samples)
    draws = uniform01("permutation", epoch, samples)
    for k in range(samples - 1, 0, -1):
        other = int(draws[k] * (k + 1))
        order[k], order[other] = order[other], order[k]
    return order


def told(values):
    """Of a tensor: its largest magnitude, and a sum of random shares of its elements."""
    flat = values.detach().numpy().reshape(-1)
    return [float(abs(flat).max()), float(flat @ (uniform("shares", 0, flat.shape) - 0.5))]


def train(case):
    with h5py.File(DATA) as file:
        mean, std = (file.attrs[what].reshape(1, -1, 1, 1) for what in ("mean", "std"))
        images = torch.from_numpy((file["train/images"][:] / 255 - mean) / std)
        labels = torch.from_numpy(file["train/labels"][:].astype(np.int64))
    model = build(case)
    if case["model"] == "mlp":
        with torch.no_grad():
            for name, parameter in named(model):
                bound = math.sqrt(6 / parameter.shape[-1])
                parameter.copy_(torch.from_numpy(
                    bound * (2 * uniform("parameters", hash_name(name), tuple(parameter.shape)) - 1)
                    if name.endswith("weight") else np.zeros(parameter.shape)))
    kind, options = next((kind, case[key]) for key, kind in
                         (("sgd", torch.optim.SGD), ("adamw", torch.optim.AdamW)) if key in case)
    optimizer = kind(model.parameters(), **options)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(case["ema"]))
    per_epoch = len(images) // SAMPLES
    losses = []
    for step in range(STEPS):
        epoch, first = step // per_epoch, step % per_epoch * SAMPLES
        chosen = permutation(epoch, len(images))[first:first + SAMPLES]
        for module in model.modules():
            if isinstance(module, Dropped):
                module.drawn_for = [(epoch, int(sample)) for sample in chosen]
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images[chosen]), labels[chosen],
                                                 label_smoothing=case["label_smoothing"])
        loss.backward()
        if case["clip"]:
            torch.nn.utils.clip_grad_norm_(model.parameters(), case["clip"])
        optimizer.step()
        average.update_parameters(model)
        losses.append(loss.item())
    buffers = {name: told(values) for name, values in model.named_buffers()
               if values.is_floating_point()}
    return dict(case, losses=losses, buffers=buffers,
                parameters={name: told(values) for name, values in named(model)},
                averages={name: told(values) for name, values in named(average.module)})


def main():
    random_numbers.SEED = 5  # of the trainings in tests/core/train
    fixtures = dict(torch=torch.__version__.split("+")[0], samples=SAMPLES, steps=STEPS,
                    widths=WIDTHS, cases=[train(case) for case in CASES])
    pathlib.Path(__file__).with_name("training.json").write_text(json.dumps(fixtures) + "\n")


if __name__ == "__main__":
    main()
