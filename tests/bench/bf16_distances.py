#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""How far gradients in bf16 are from float64, beside PyTorch's autocast.

    bf16_distances.py [--build build/release] [--only NETWORK] [--seeds 5] [key=value ...]

Needs torch, torchvision and h5py. Both compute one micro-batch of the same images with the same
weights; Carousel's gradients are what one step of plain SGD has changed. The distance of a tensor
is the norm of its difference to PyTorch's gradient in float64 over the norm of that, its mean
square over so many networks and batches, since rounding at random decides about a single one.
Prints for each network how many tensors are at most as far as by autocast, quartiles and the
largest of the ratios, and the tensors that are farther. Keys are added to Carousel's deck:
engine.products=tiles. Ends with exit code 1 where a tensor is farther than by autocast by more than
a tenth. Autocast keeps the sums of a transformer's branches in fp32, Carousel in bf16.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import h5py
import numpy as np
import torch
from against_pytorch import CASES, ROOT, write_dataset

RATE = 1.0  # rounding the weights leaves five digits of their gradients, bf16 two
MOST = 1.1


def gradients_of(model, images, labels, autocast=False):
    model.zero_grad(set_to_none=True)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    return {name: each.grad.double().numpy() for name, each in model.named_parameters()}


def by_pytorch(case, folder, seed):
    """Its weights, and gradients in float64 and by autocast of what the data set has."""
    torch.manual_seed(seed)
    model = case["build"]().train()
    for each in model.parameters():
        if not each.any():  # from a transformer's head of zeros no gradient comes
            torch.nn.init.normal_(each, std=0.02)
    with h5py.File(folder / "data.h5") as file:
        images = torch.from_numpy(file["train/images"][:]).double()
        labels = torch.from_numpy(file["train/labels"][:]).long()
    images = (images / 255 - 0.5) / 0.25
    weights = {name: each.numpy().copy() for name, each in model.state_dict().items()}
    autocast = gradients_of(model, images.float(), labels, autocast=True)
    # Statistics of batch norms have moved, but training does not read them.
    return weights, gradients_of(model.double(), images, labels), autocast


def by_carousel(case, folder, weights, arguments):
    def carousel(*words):
        done = subprocess.run([ROOT / arguments.build / "carousel", *words], cwd=folder, text=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode != 0:
            sys.exit(f"bf16_distances.py: {done.stderr}")

    with h5py.File(folder / "weights.h5", "w") as file:
        for name, values in weights.items():
            file[name] = values
    (folder / "deck.toml").write_text(f"""
[run]
name = "distance"
output = "run"
[model]
{case["deck"]}
[data]
file = "data.h5"
[parallel]
rule = "dp"
transport = "local"
[train]
micro_batch_size = {case["batch"]}
steps = 1
[train.optimizer]
learning_rate = {RATE}
[engine]
precision = "bf16"
""")
    carousel("import", "weights", "weights.h5", "deck.toml", "start.h5")
    carousel("train", "deck.toml", "train.start=start.h5", "train.evaluate_every=0",
             *arguments.keys)
    carousel("export", "weights", "run/checkpoints/last.h5", "after.h5")
    with h5py.File(folder / "after.h5") as file:
        return {name: (weights[name].astype(np.float64) - values[()]) / RATE
                for name, values in file.items()}


def distance(found, exact):
    return np.linalg.norm(found - exact) / np.linalg.norm(exact)


def distances(case, arguments, seed):
    """[tensor] Carousel's and autocast's."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_dataset(folder / "data.h5", case, seed)
        weights, exact, autocast = by_pytorch(case, folder, seed)
        found = by_carousel(case, folder, weights, arguments)
    return {name: (distance(found[name], exact[name]), distance(autocast[name], exact[name]))
            for name in exact}


def compare(case, arguments):
    case = {**case, "steps": 1, "batch": min(case["batch"], 16)}
    of_seeds = [distances(case, arguments, seed) for seed in range(1, arguments.seeds + 1)]
    rows = [(*np.sqrt(np.mean([np.square(each[name]) for each in of_seeds], axis=0)), name)
            for name in of_seeds[0]]
    ratios = np.array([ours / theirs for ours, theirs, _ in rows])
    quartiles = " ".join(f"{each:.2f}" for each in np.quantile(ratios, [0.25, 0.5, 0.75, 1]))
    print(f"{case['name']:16} {(ratios <= 1).sum():4} of {len(rows):4} tensors at most as far; "
          f"ratios' quartiles and largest {quartiles}", flush=True)
    for ours, theirs, name in rows:
        if ours > theirs:
            print(f"    {name:44} {ours:.2e}, autocast {theirs:.2e}")
    return ratios.max() <= MOST


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--only", choices=[case["name"] for case in CASES])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("keys", nargs="*")
    arguments = parser.parse_args()
    cases = [case for case in CASES if arguments.only in (None, case["name"])
             and "classes" in case and "adamw" not in case["name"]]
    return 0 if all([compare(case, arguments) for case in cases]) else 1


if __name__ == "__main__":
    sys.exit(main())
