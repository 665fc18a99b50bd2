#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Trains inputs/heat and inputs/flow with Carousel and with PyTorch: the same samples, windows,
splits, statistics, network, first values by the same rules, optimizer and schedule, with three seeds.

Usage: arrays_against_pytorch.py CAROUSEL FOLDER [--threads N] [--epochs E] [--only heat|flow]

FOLDER gets the data and the runs. Prints for each seed what both reach on the validation samples (r2
of heat, VRMSE of flow), and the samples per second of training, of PyTorch in its faster layout and
in both compiled and not. Carousel runs dp with accumulation, whose numbers are those of one large
batch but for batch norm, which PyTorch is given in the same micro-batches.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import sys
import time

import h5py
import numpy
import torch

PROJECT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "tests/reference"))
from random_numbers import hash_name, uniform01  # noqa: E402
from unet import UNet  # noqa: E402

SEEDS = (1, 2, 3)
MICRO_BATCHES = 4


def split(count):
    """Which trajectories are for validation and for training, as the decks have it."""
    draws = uniform01("permutation", 0, count, seed=1 ^ hash_name("split"))
    order = list(range(count))
    for k in range(count - 1, 0, -1):
        other = int(draws[k] * (k + 1))
        order[k], order[other] = order[other], order[k]
    share = max(1, round(0.1 * count))
    held = set(order[:2 * share])
    return sorted(order[:share]), [n for n in range(count) if n not in held]


def heat_samples(path):
    with h5py.File(path) as file:
        inputs, targets = file["rod/parameters"][()], file["rod/temperature"][()]
    validation, training = split(len(inputs))

    def scaled(values):
        return (values - values[training].mean(0)) / values[training].std(0)

    inputs, targets = (torch.tensor(scaled(a), dtype=torch.float32) for a in (inputs, targets))
    return [(inputs[part], targets[part]) for part in (training, validation)]


def flow_samples(path):
    with h5py.File(path) as file:
        fields = numpy.moveaxis(file["flow/velocity"][()], -1, 2)  # [n, t, c, y, x]
    validation, training = split(len(fields))
    axes = (0, 1, 3, 4)
    mean = fields[training].mean(axes, dtype=float, keepdims=True)
    std = fields[training].std(axes, dtype=float, keepdims=True)
    fields = torch.tensor((fields - mean) / std, dtype=torch.float32)

    def windows(part):
        inputs = torch.cat([fields[part, :-2], fields[part, 1:-1]], 2)
        return inputs.flatten(0, 1), fields[part, 2:].flatten(0, 1)

    return [windows(part) for part in (training, validation)]


def perceptron():
    layers, width = [], 5
    for _ in range(3):
        layers += [torch.nn.Linear(width, 128), torch.nn.Tanh()]
        width = 128
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 16))


def r2(outputs, targets):
    errors = ((outputs - targets) ** 2).sum(0)
    spread = ((targets - targets.mean(0)) ** 2).sum(0)
    return (1 - errors / spread).mean().item()


def vrmse(outputs, targets):
    errors = ((outputs - targets) ** 2).mean((2, 3))
    return (errors / (targets.var((2, 3), unbiased=False) + 1e-7)).sqrt().mean().item()


TASKS = {"heat": (heat_samples, perceptron, r2, 16, 100),
         "flow": (flow_samples, lambda: UNet(4, 2, 16, 2), vrmse, 4, 10)}


def train_torch(task, samples, seed, epochs, layout, compiled):
    """The metric on validation samples and samples per second."""
    _, network, metric, batch, _ = TASKS[task]
    torch.manual_seed(seed)
    model = network().to(memory_format=layout)
    step = torch.compile(model) if compiled else model
    (inputs, targets), (test_inputs, test_targets) = samples
    if inputs.ndim == 4:
        inputs = inputs.contiguous(memory_format=layout)
    per_step = batch * MICRO_BATCHES
    steps = len(inputs) // per_step
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps * epochs)
    seconds = []
    for epoch in range(epochs):
        order = torch.randperm(len(inputs))
        model.train()
        begin = time.perf_counter()
        for k in range(steps):
            optimizer.zero_grad()
            for part in order[k * per_step:(k + 1) * per_step].split(batch):
                loss = torch.nn.functional.mse_loss(step(inputs[part]), targets[part])
                (loss / MICRO_BATCHES).backward()
            optimizer.step()
            schedule.step()
        if epoch > 0:  # the first one compiles
            seconds.append(time.perf_counter() - begin)
    model.eval()
    with torch.no_grad():
        outputs = torch.cat([model(part) for part in test_inputs.split(64)])
    return metric(outputs, test_targets), steps * per_step / min(seconds)


def train_carousel(carousel, task, data, folder, seed, epochs, threads):
    words = [carousel, "train", PROJECT / f"inputs/{task}/{task}.toml", f"data.files={data}",
             f"run.output={folder / f'{task}-{seed}'}", f"run.seed={seed}", "--overwrite",
             "parallel.rule=dp", "parallel.order=accumulate", f"train.epochs={epochs}",
             f"engine.threads={threads}"]
    subprocess.run(words, check=True, capture_output=True)
    with h5py.File(folder / f"{task}-{seed}/run.h5") as file:
        metric = file["evaluations"]["r2" if task == "heat" else "vrmse"][-1]
        speeds = file["steps/images_per_second"][()]
    return float(metric), statistics.median(speeds[len(speeds) // 5:])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("carousel")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--only", choices=TASKS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        name = re.search(r"model name\s*:\s*(.*)", file.read())
    print(f"{name[1] if name else 'unknown processor'}, {arguments.threads} threads, torch "
          f"{torch.__version__}")
    for task, (samples_of, _, metric, _, epochs) in TASKS.items():
        if arguments.only not in (None, task):
            continue
        epochs = arguments.epochs or epochs
        data = (arguments.folder / f"{task}.h5").resolve()
        if not data.exists():
            subprocess.run([sys.executable, PROJECT / f"inputs/{task}/make_{task}.py", data],
                           check=True, capture_output=True)
        samples = samples_of(data)
        plain, last = torch.contiguous_format, torch.channels_last
        ways = {"eager": (plain, False), "compiled": (plain, True)}
        if task == "flow":
            ways |= {"channels last": (last, False), "channels last, compiled": (last, True)}
        for seed in SEEDS:
            own, own_speed = train_carousel(arguments.carousel, task, data, arguments.folder, seed,
                                            epochs, arguments.threads)
            line = f"{task} seed {seed}: Carousel {metric.__name__} {own:.4f}, {own_speed:.0f}/s"
            for way, options in ways.items():
                reached, speed = train_torch(task, samples, seed, epochs, *options)
                line += f"; {way} {reached:.4f}, {speed:.0f}/s"
                if seed != SEEDS[0]:
                    break  # layouts and compilers change speed alone
            print(line, flush=True)


if __name__ == "__main__":
    main()
