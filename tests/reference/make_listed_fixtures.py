#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/reference/listed.json: what PyTorch computes with networks that decks list.

    make_listed_fixtures.py [--only NAME]

Those of inputs/networks beside torchvision's own, U-Nets, CosmoFlow, GPT, Llama and a perceptron beside torch.nn,
and those that random_networks.py draws: 200 of images, 60 of volumes. Needs torch and torchvision
(CPU). Parameters, images and labels are not stored: both sides draw them from the generator of
core/base/random.hpp, by name. Of each tensor there are its size, its norm, a sum in which every element has a random weight, and how far PyTorch's
own single precision is from its double precision, at most, in several ways of computing: with one
and two threads, with and without oneDNN; of gradients that are nothing but rounding, as those of
biases in front of a batch norm, the size alone. The images of random networks are drawn until nothing is
near a kink of a rectifier or a tie in a window, where rounding decides what a gradient is.
"""
import argparse
import json
import math
import pathlib

import numpy as np
import torch
import torchvision
from torch import nn
from torchvision.models import densenet, efficientnet, googlenet, mobilenet_v2, resnet18

from cosmoflow import CosmoFlow
from fixture_files import text, ways_of_single_precision
from gpt import Gpt, Llama
from random_networks import Drawn, Run, toml
from random_numbers import SEED, hash_name, uniform, uniform01
from unet import UNet

FILE = pathlib.Path(__file__).with_name("listed.json")
RANDOM = {2: 200, 3: 60}  # by axes of space
SAMPLES = 3
MARGIN = 1e-4
TOKENS = 1000  # the stream that tokens are from, behind that of labels


def without_dropout(network):
    """Dropouts draw other numbers than ours."""
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if isinstance(module, torchvision.ops.StochasticDepth):
            module.p = 0.0
    return network


class Known:
    """A network of torch or torchvision, and the deck that lists the same."""

    def __init__(self, network, model, image, classes, tokens=0):
        self.network = without_dropout(network).double()
        self.model, self.image, self.classes = model, image, classes
        self.tokens = tokens  # what it reads are whole numbers below this

    def run(self, parameters, images, dtype):
        self.network.to(dtype).train()
        return torch.func.functional_call(self.network, parameters, images), float("inf")

    def shapes(self):
        return {name: tuple(p.shape) for name, p in self.network.named_parameters()}


class Listed:
    """A list of layers."""

    tokens = 0

    def __init__(self, layers, image):
        self.layers = layers
        self.image = image
        self.model = f"layers = {toml(layers)}"
        self.found = {}

        def draw(name, shape):
            self.found[name] = shape
            return values(name, shape).float()

        self.classes = Run(draw).all(layers, torch.zeros(2, *image)).shape[1]

    def run(self, parameters, images, _dtype):
        run = Run(lambda name, _shape: parameters[name])
        return run.all(self.layers, images), run.margin

    def shapes(self):
        return self.found


def known():
    photograph = (3, 64, 64)

    def of_file(name, classes, let=""):
        return f'file = "inputs/networks/{name}.toml"\nlet = {{ classes = {classes}{let} }}'

    return {
        "mlp": Known(nn.Sequential(nn.Linear(5, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(),
                                   nn.Linear(128, 3)),
                     'layers = [ { linear = 128 }, "tanh", { linear = 128 }, "tanh", { linear = 3 } ]',
                     (5, 1, 1), 3),
        "unet": Known(UNet(2, 3, 8, 4), of_file("unet", 3, ", w = 8"), (2, 32, 48), 3),
        "unet_volumes": Known(UNet(2, 3, 16, 2, axes=3),
                              of_file("unet", 3, ", w = 16, levels = 2"), (2, 8, 12, 16), 3),
        "cosmoflow": Known(CosmoFlow(4, 16, 5, 16, 3, 0),
                           'file = "inputs/networks/cosmoflow.toml"\n'
                           "let = { outputs = 5, w = 16, blocks = 3, dropout = 0 }",
                           (4, 16, 16, 16), 5),
        "gpt": Known(Gpt(70, 37, 32, 2, 2), 'file = "inputs/networks/gpt.toml"\n'
                     "let = { vocabulary = 70, width = 32, depth = 2, heads = 2 }", (1, 37, 1), 70, 70),
        "llama": Known(Llama(70, 32, 2, 2, 48), 'file = "inputs/networks/llama.toml"\n'
                       "let = { vocabulary = 70, width = 32, depth = 2, heads = 2, hidden = 48 }",
                       (1, 37, 1), 70, 70),
        "resnet18": Known(resnet18(num_classes=10), of_file("resnet18", 10), photograph, 10),
        "mobilenet_v2": Known(mobilenet_v2(num_classes=10),
                              of_file("mobilenet_v2", 10, ", dropout = 0"), photograph, 10),
        "densenet121": Known(densenet.densenet121(num_classes=10), of_file("densenet121", 10),
                             photograph, 10),
        "efficientnet_b0": Known(
            efficientnet.efficientnet_b0(num_classes=10),
            of_file("efficientnet_b0", 10, ", dropout = 0, depth = 0"), photograph, 10),
        "googlenet": Known(googlenet(num_classes=10, aux_logits=False, init_weights=False),
                           of_file("googlenet", 10, ", dropout = 0"), photograph, 10)}


def drawn():
    networks = {}
    for axes, count in RANDOM.items():
        for seed in range(1, count + 1):
            network = Drawn(seed, axes)
            networks[f"{'random' if axes == 2 else 'volume'}{seed}"] = Listed(network.layers,
                                                                              network.image)
    return networks


def values(name, shape):
    """As tests/app/listed_networks_test.cpp has them."""
    numbers = uniform(name, 0, shape) - 0.5
    if len(shape) > 1:
        numbers *= math.sqrt(20 / math.prod(shape[1:]))
    elif name.endswith(".weight"):
        numbers += 1
    return torch.from_numpy(numbers)


def train(network, stream, dtype):
    """Outputs and gradients of the mean cross entropy, by name, and the margin."""
    parameters = {name: values(name, shape).to(dtype).requires_grad_()
                  for name, shape in network.shapes().items()}
    if network.tokens > 0:
        images = np.floor(uniform("labels", stream + TOKENS, (SAMPLES, *network.image)) * network.tokens)
    else:
        images = uniform("images", stream, (SAMPLES, *network.image)) - 0.5
    x = torch.from_numpy(images).to(dtype)
    if isinstance(network, Known) and network.image[1:] == (1, 1):
        x = x.flatten(1)
    y, margin = network.run(parameters, x, dtype)
    pixels = y.shape[2:]
    labels = uniform("labels", stream, (SAMPLES, *pixels)) * network.classes
    loss = nn.functional.cross_entropy(y, torch.from_numpy(labels.astype(int)))
    loss.backward()
    tensors = {"": y} | {name: p.grad for name, p in parameters.items()}
    return {name: t.detach().double().numpy().ravel() for name, t in tensors.items()}, \
        loss.item(), tuple(y.shape[1:]), margin


def describe(name, exact, singles, largest):
    if np.linalg.norm(exact) < 1e-12 * largest:
        return [exact.size]
    weights = uniform01("weights", hash_name(name), exact.size) - 0.5
    norm = float(np.linalg.norm(exact))
    off = max(float(np.linalg.norm(single[name] - exact)) for single in singles) / norm
    return [exact.size, float(f"{norm:.14g}"), float(f"{exact @ weights:.14g}"), float(f"{off:.3g}")]


def fixture(name, network):
    torch.set_num_threads(1)
    for stream in range(1000):
        exact, loss, shape, margin = train(network, stream, torch.float64)
        if margin > MARGIN:
            break
    singles = [train(network, stream, torch.float32)[0] for _ in ways_of_single_precision()]
    shape = (list(shape) + [1, 1])[:max(3, len(shape))]
    largest = max(np.linalg.norm(numbers) for numbers in exact.values())
    tensors = {tensor: describe(tensor, numbers, singles, largest)
               for tensor, numbers in exact.items()}
    off = max(tensor[-1] for tensor in tensors.values() if len(tensor) > 1)
    print(f"{name:16} {len(exact) - 1:4} parameters, images {stream}, float32 off by {off:.1e}",
          flush=True)
    tokens = {"tokens": network.tokens} if network.tokens > 0 else {}
    return {"model": network.model, "image": list(network.image), "outputs": shape, **tokens,
            "stream": stream, "loss": loss, "tensors": tensors}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", metavar="NAME",
                        help="writes networks whose names begin so anew and keeps the others")
    arguments = parser.parse_args()
    fixtures = {"torch": torch.__version__.split("+")[0],
                "torchvision": torchvision.__version__.split("+")[0], "seed": SEED,
                "samples": SAMPLES,
                "networks": json.loads(FILE.read_text())["networks"] if arguments.only else {}}
    for name, network in (known() | drawn()).items():
        if name.startswith(arguments.only or ""):
            fixtures["networks"][name] = fixture(name, network)
    FILE.write_text(text(fixtures))


if __name__ == "__main__":
    main()
