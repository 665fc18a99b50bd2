#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/reference/torchvision_names.json: name and shape of every tensor in the state_dict
of torchvision's networks, without num_batches_tracked.

Needs torch and torchvision (CPU). The networks for small images are torchvision's classes put
together as He et al. 2016 do for CIFAR-10.
"""
import json
import pathlib

import torchvision
from torch import nn
from torchvision.models.resnet import BasicBlock, ResNet


def cifar_stem(model):
    model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    model.maxpool = nn.Identity()
    return model


def cifar_family(depth):
    blocks = (depth - 2) // 6
    model = cifar_stem(ResNet(BasicBlock, [1, 1, 1, 1]))
    model.inplanes = 16
    model.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
    model.bn1 = nn.BatchNorm2d(16)
    for group in range(3):
        layer = model._make_layer(BasicBlock, 16 << group, blocks, stride=1 if group == 0 else 2)
        setattr(model, f"layer{group + 1}", layer)
    del model.layer4
    model.fc = nn.Linear(64, 10)
    return model


def tensors(model):
    return {name: list(tensor.shape) for name, tensor in model.state_dict().items()
            if not name.endswith("num_batches_tracked")}


def main():
    models = torchvision.models
    networks = {"resnet18 imagenet": models.resnet18(), "resnet34 imagenet": models.resnet34(),
                "resnet50 imagenet": models.resnet50(),
                "resnet18 cifar": cifar_stem(models.resnet18(num_classes=10)),
                "resnet8 cifar": cifar_family(8), "resnet20 cifar": cifar_family(20),
                "vit_b_16": models.vit_b_16(), "vit_b_32": models.vit_b_32(),
                "vit_l_16": models.vit_l_16()}
    text = "{\n" + ",\n".join(f" {json.dumps(network)}: {{\n" + ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(shape)}" for name, shape in tensors(model).items())
        + "\n }" for network, model in networks.items()) + "\n}\n"
    pathlib.Path(__file__).with_name("torchvision_names.json").write_text(text)


if __name__ == "__main__":
    main()
