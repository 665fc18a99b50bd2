#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/reference/networks.json: what PyTorch computes with torchvision's
residual networks and vision transformer.

    make_network_fixtures.py                  writes the file
    make_network_fixtures.py --compare FILE   compares with all numbers that network_numbers wrote

Needs torch and torchvision (CPU); to compare, h5py as well. Weights, images and labels are not
stored: both sides draw them from the generator of core/base/random.hpp. Neither are whole tensors:
of each there are the largest magnitude, a sum in which every element has a random weight, a random
sample of the elements, and how far PyTorch's own single precision is from its double precision: the
furthest of several ways in which PyTorch computes, as one way comes near by chance.

A gradient jumps where a rectifier is at its kink, and then rounding says nothing of the kernels.
The images of a case with a margin are therefore drawn until the input of no rectifier is nearer to
zero than so many errors of single precision. Winograd's convolutions err up to ten times as much,
and the largest network has too many rectifiers: there, batch norm moves what they are given away
from zero.
"""
import argparse
import json
import math
import pathlib

import numpy as np
import torch
import torchvision
from torchvision.models.resnet import BasicBlock

from fixture_files import text, ways_of_single_precision
from random_numbers import SEED, hash_name, normal, uniform, uniform01

# Rates are small: in ten steps on random images, single precision should not lose its way.
CASES = [dict(name="resnet20", depth=20, stem="cifar", image=32, classes=10, samples=4, lr=0.002,
              norm_bias=0, margin=3, steps=10),
         dict(name="resnet18-cifar", depth=18, stem="cifar", image=16, classes=10, samples=4,
              lr=0.001, norm_bias=0, margin=2, steps=10),
         dict(name="resnet20-shifted", depth=20, stem="cifar", image=32, classes=10, samples=4,
              lr=0.002, norm_bias=2, margin=12, steps=1),
         dict(name="resnet18-cifar-shifted", depth=18, stem="cifar", image=16, classes=10,
              samples=4, lr=0.001, norm_bias=2, margin=12, steps=1),
         dict(name="resnet50", depth=50, stem="imagenet", image=48, classes=100, samples=4, lr=1e-5,
              norm_bias=0, margin=0, steps=10),
         dict(name="resnet50-shifted", depth=50, stem="imagenet", image=48, classes=100, samples=4,
              lr=1e-5, norm_bias=2, margin=2, steps=1),
         dict(name="vit", patch=4, width=64, depth=2, heads=2, mlp=160, image=32, classes=10,
              samples=4, lr=1e-3, optimizer="adamw", norm_bias=0, margin=0, steps=10)]
FILE = pathlib.Path(__file__).with_name("networks.json")
SGD = dict(momentum=0.9, weight_decay=5e-4)
ADAMW = dict(weight_decay=0.05, eps=1e-6)  # the bias of keys has no gradient but rounding
GRADIENT_SAMPLE, STATE_SAMPLE = 64, 16


class SmallResNet(torch.nn.Module):
    """The networks of CIFAR of He et al. 2016, depth 6 n + 2, out of torchvision's blocks."""

    def __init__(self, depth, classes):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(16)
        self.relu = torch.nn.ReLU()
        channels = 16
        for group, width in enumerate((16, 32, 64), 1):
            blocks = []
            for block in range((depth - 2) // 6):
                stride = 2 if group > 1 and block == 0 else 1
                shortcut = torch.nn.Sequential(
                    torch.nn.Conv2d(channels, width, 1, stride, bias=False),
                    torch.nn.BatchNorm2d(width)) if stride > 1 else None
                blocks.append(BasicBlock(channels, width, stride, shortcut))
                channels = width
            setattr(self, f"layer{group}", torch.nn.Sequential(*blocks))
        self.fc = torch.nn.Linear(channels, classes)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.relu(self.bn1(self.conv1(x))))))
        return self.fc(x.mean((2, 3)))


def build(case):
    if "patch" in case:
        return torchvision.models.VisionTransformer(
            image_size=case["image"], patch_size=case["patch"], num_layers=case["depth"],
            num_heads=case["heads"], hidden_dim=case["width"], mlp_dim=case["mlp"],
            num_classes=case["classes"])
    if case["depth"] % 6 == 2 and case["depth"] not in (18, 34, 50):
        return SmallResNet(case["depth"], case["classes"])
    model = getattr(torchvision.models, f"resnet{case['depth']}")(num_classes=case["classes"])
    if case["stem"] == "cifar":
        model.conv1 = torch.nn.Conv2d(3, 64, 3, padding=1, bias=False)
        model.maxpool = torch.nn.Identity()
    return model


def vit_values(name, shape):
    """As torchvision does; but its classifier starts from zeros, which stop all gradients."""
    if name.endswith("pos_embedding"):
        return 0.02 * normal("parameters", hash_name(name), shape)
    if name == "conv_proj.weight":
        deviation = math.sqrt(1 / math.prod(shape[1:]))
        return deviation * normal("parameters", hash_name(name), shape)
    if ".mlp." in name and name.endswith("bias"):
        return 1e-6 * normal("parameters", hash_name(name), shape)
    if len(shape) == 2:
        lecun = name.endswith("out_proj.weight") or name.startswith("heads.")
        bound = math.sqrt(1 / shape[1]) if lecun else math.sqrt(6 / sum(shape))
        return bound * (2 * uniform("parameters", hash_name(name), shape) - 1)
    return np.ones(shape) if ".ln" in name and name.endswith("weight") else np.zeros(shape)


@torch.no_grad()
def initialise(model, norm_bias):
    """As torchvision does, out of core/train/initialise.hpp's generator."""
    for name, parameter in model.named_parameters():
        shape = tuple(parameter.shape)
        if isinstance(model, torchvision.models.VisionTransformer):
            values = vit_values(name, shape)
        elif len(shape) == 4:  # Kaiming, normal, by the fan of the outputs
            deviation = math.sqrt(2 / (shape[0] * shape[2] * shape[3]))
            values = deviation * normal("parameters", hash_name(name), shape)
        elif name.startswith("fc."):
            bound = 1 / math.sqrt(model.fc.in_features)
            values = bound * (2 * uniform("parameters", hash_name(name), shape) - 1)
        else:
            values = np.ones(shape)
            if name.endswith("bias"):  # of every other channel the negative
                values = norm_bias * (1 - 2 * (np.arange(shape[0]) % 2))
        parameter.copy_(torch.from_numpy(values))


def prepared(case, dtype):
    model = build(case).double()
    initialise(model, case["norm_bias"])
    return model.to(dtype).train()


def draw_images(case, stream, dtype):
    shape = (case["samples"], 3, case["image"], case["image"])
    return torch.from_numpy(uniform("images", stream, shape) - 0.5).to(dtype)


class TooNear(Exception):
    """A rectifier is at its kink."""


class Rectified:
    """What the rectifiers of a network are given in a forward pass."""

    def __init__(self, case, dtype):
        self.model = prepared(case, dtype)
        for module in self.model.modules():
            if isinstance(module, torch.nn.ReLU):
                module.register_forward_pre_hook(lambda _, inputs: self.see(inputs[0].double()))

    def forward(self, images, see):
        self.see = see
        with torch.no_grad():
            self.model(images)


def first_stream(case):
    """Of the images of the first step; the steps after it take those that follow."""
    if case["margin"] == 0:
        return 0
    single, double = Rectified(case, torch.float32), Rectified(case, torch.float64)
    for stream in range(0, 10**6, 10):
        given = []
        single.forward(draw_images(case, stream, torch.float32), lambda x: given.append(x.clone()))

        def see(exact):
            error = (given.pop(0) - exact).abs().max()
            if exact.abs().min() < case["margin"] * error:
                raise TooNear
        try:
            double.forward(draw_images(case, stream, torch.float64), see)
            return stream
        except TooNear:
            pass


def is_adamw(case):
    return case.get("optimizer") == "adamw"


def options_of(case):
    return ADAMW if is_adamw(case) else SGD


def train(case, dtype, stream, steps):
    """Tensors by quantity and name, as arrays of double precision."""
    model = prepared(case, dtype)
    kind = torch.optim.AdamW if is_adamw(case) else torch.optim.SGD
    optimizer = kind(model.parameters(), lr=case["lr"], **options_of(case))

    def arrays(tensors):
        return {name: tensor.detach().double().numpy().copy() for name, tensor in tensors
                if tensor.is_floating_point()}

    result = {"losses": []}
    for step in range(steps):
        labels = uniform("labels", step, (case["samples"],)) * case["classes"]
        labels = torch.from_numpy(labels.astype(int))
        optimizer.zero_grad()
        logits = model(draw_images(case, stream + step, dtype))
        loss = torch.nn.functional.cross_entropy(logits, labels)
        loss.backward()
        result["losses"].append(loss.item())
        if step == 0:
            result["logits"] = {"": logits.detach().double().numpy()}
            result["gradients"] = arrays((name, parameter.grad)
                                         for name, parameter in model.named_parameters())
            result["buffers_after_1"] = arrays(model.named_buffers())
        optimizer.step()
    if steps == 10:
        result["parameters_after_10"] = arrays(model.named_parameters())
        result["buffers_after_10"] = arrays(model.named_buffers())
    return result


def single_precision(case, stream):
    """The first step in each way of computing."""
    return [train(case, torch.float32, stream, 1) for _ in ways_of_single_precision()]


def short(number):
    """Enough digits for comparisons to 1e-13."""
    return float(f"{number:.14g}")


def positions(name, size, count):
    """Of the sampled elements; all of a small tensor."""
    if size <= count:
        return np.arange(size)
    return (uniform01("sample", hash_name(name), count) * size).astype(int)


def distance(actual, expected):
    return float(np.abs(actual - expected).max() / np.abs(expected).max())


def furthest(singles, quantity, name, exact):
    return max(distance(single[quantity][name], exact) for single in singles)


def describe(name, exact, count):
    flat = exact.reshape(-1)
    weights = uniform01("weights", hash_name(name), flat.size) - 0.5
    return {"size": flat.size, "largest": short(np.abs(flat).max()),
            "checksum": short(flat @ weights),
            "sample": [short(flat[k]) for k in positions(name, flat.size, count)]}


def fixture(case):
    torch.set_num_threads(1)
    stream = first_stream(case)
    exact = train(case, torch.float64, stream, case["steps"])
    singles = single_precision(case, stream)
    result = {**case, "seed": SEED, "stream": stream, **options_of(case),
              "losses": exact["losses"]}
    for quantity, tensors in exact.items():
        if quantity == "losses":
            continue
        count = {"logits": 1000, "gradients": GRADIENT_SAMPLE}.get(quantity, STATE_SAMPLE)
        result[quantity] = {name: describe(name, tensor, count) for name, tensor in tensors.items()}
        if quantity in singles[0]:
            for name, tensor in tensors.items():
                result[quantity][name]["distance"] = float(
                    f"{furthest(singles, quantity, name, tensor):.3g}")
            off = max((tensor["distance"] for tensor in result[quantity].values()), default=0)
            print(f"{case['name']:16} {quantity:20} float32 is off by up to {off:.1e}")
    return result


def compare(path):
    """Every element of every tensor; the measure is max|d| / max|expected| of a tensor."""
    import h5py
    fixtures = json.loads(FILE.read_text())
    with h5py.File(path) as file:
        for case in CASES:
            stream = fixtures["models"][case["name"]]["stream"]
            exact = train(case, torch.float64, stream, case["steps"])
            singles = single_precision(case, stream)
            for quantity in file[case["name"]]:
                off, ratio = {}, {}
                for name, tensor in exact[quantity].items():
                    ours = file[f"{case['name']}/{quantity}/{name}"][...]
                    off[name] = distance(ours.reshape(tensor.shape), tensor)
                    if quantity in singles[0]:
                        ratio[name] = off[name] / furthest(singles, quantity, name, tensor)
                worst = max(off, key=off.get)
                print(f"{case['name']:16} {quantity:20} {len(off):4} tensors, "
                      f"{sum(tensor.size for tensor in exact[quantity].values()):9} numbers: "
                      f"off by up to {off[worst]:.1e} in {worst}")
                if ratio:
                    worst = max(ratio, key=ratio.get)
                    print(f"{'':38}at most {ratio[worst]:.2g} times as far as PyTorch's float32, "
                          f"in {worst}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--compare", metavar="FILE", help="HDF5, as network_numbers writes it")
    parser.add_argument("--only", metavar="NAME", help="writes one case anew and keeps the others")
    arguments = parser.parse_args()
    if arguments.compare:
        compare(arguments.compare)
        return
    fixtures = {"torch": torch.__version__.split("+")[0],
                "torchvision": torchvision.__version__.split("+")[0],
                "models": json.loads(FILE.read_text())["models"] if arguments.only else {}}
    for case in CASES:
        if arguments.only in (None, case["name"]):
            fixtures["models"][case["name"]] = fixture(case)
    FILE.write_text(text(fixtures))


if __name__ == "__main__":
    main()
