#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Images per second of a training step on a GPU beside PyTorch's, in bf16.

    gpu.py [--build build/cuda] [--rounds 2] [--steps 40] [--only NAME] [--no-compile]

Needs torch, torchvision and h5py. Both train the same network on random images, in turn within one
run; what is printed are medians over the later half of the steps of all rounds, of Carousel over its
epochs of 8 steps: it may learn of several together where one ends. It trains with one micro-batch,
with four one after the other (accumulate) and with four under cdp-v2; PyTorch in channels_last with
bf16 autocast, as it is and compiled. Memory is what plans count and what PyTorch's allocator held at
most. Kernels are those of one PyTorch step by torch.profiler, and of Carousel's training by
kernel_times.cpp, where the build has it. Exit code 125 where PyTorch sees no GPU.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np
import torch

from against_pytorch import optimizer_deck, optimizer_of, resnet, vit_b_16, write_dataset, ADAMW

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = [dict(resnet("resnet50", depth=50, stem="imagenet", image=224, classes=1000, batch=128)),
         dict(vit_b_16("vit-b-16", ADAMW), batch=128),
         dict(resnet("resnet18-cifar", depth=18, stem="cifar", image=32, classes=10, batch=512))]
MICRO_BATCHES = 4
CYCLIC = f"micro_batches = {MICRO_BATCHES}\nstages = {MICRO_BATCHES}"
WAYS = {"step": (1, 'rule = "dp"'),
        "accumulate": (MICRO_BATCHES, f'rule = "dp"\norder = "accumulate"\n{CYCLIC}'),
        "cdp-v2": (MICRO_BATCHES, f'rule = "cdp-v2"\n{CYCLIC}')}
KERNELS = 6  # that are listed
EPOCH = 8    # steps


def write_deck(case, way, folder, steps):
    parts, parallel = WAYS[way]
    deck = folder / "deck.toml"
    deck.write_text(f"""
[run]
name = "bench"
output = "{folder}/run"
[model]
{case["deck"]}
[data]
file = "{folder}/data.h5"
workers = 8
[parallel]
{parallel}
transport = "local"
[train]
micro_batch_size = {case["batch"] // parts}
steps = {steps}
evaluate_every = 0
[train.optimizer]
{optimizer_deck(case["optimizer"])}
[engine]
precision = "bf16"
[checkpoint]
every = 0
[profile]
steps = ""
""")
    return deck


def later_half(seconds):
    return list(seconds[len(seconds) // 2:])


def carousel(case, way, arguments, folder):
    """Seconds of steps, and bytes that the plan counts."""
    deck = write_deck(case, way, folder, arguments.steps)
    subprocess.run([ROOT / arguments.build / "carousel", "train", deck, "--overwrite"], check=True,
                   stdout=subprocess.DEVNULL)
    with h5py.File(folder / "run/run.h5") as run:
        seconds = np.diff(run["steps/seconds"][EPOCH - 1::EPOCH]) / EPOCH
        total = sum(int(np.sum(values)) for values in run["plan/bytes"].values())
    return later_half(seconds), total


class Trainer:
    """PyTorch's side: the same images in the GPU's memory all the time, which costs it nothing."""

    def __init__(self, case, compiled):
        model = case["build"]().cuda().to(memory_format=torch.channels_last)
        self.optimizer = optimizer_of(case, model)
        self.model = torch.compile(model) if compiled else model
        shape = (case["batch"], *case["shape"])
        self.images = torch.randn(shape, device="cuda").to(memory_format=torch.channels_last)
        self.labels = torch.randint(case["classes"], shape[:1], device="cuda")

    def step(self):
        self.optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(self.model(self.images), self.labels)
        loss.backward()
        self.optimizer.step()


def pytorch(case, compiled, steps):
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    trainer = Trainer(case, compiled)
    seconds = []
    for _ in range(steps):
        begin = time.perf_counter()
        trainer.step()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    return later_half(seconds), torch.cuda.max_memory_allocated()


def show_kernels(rows, who):
    print(f"  {who}: ms of a step")
    for name, milliseconds in sorted(rows, key=lambda row: -row[1])[:KERNELS]:
        print(f"    {milliseconds:8.2f}  {name[:66]}")


def pytorch_kernels(case):
    trainer = Trainer(case, compiled=False)
    for _ in range(3):
        trainer.step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        trainer.step()
        torch.cuda.synchronize()
    rows = [(event.key, event.self_device_time_total / 1e3) for event in profile.key_averages()]
    show_kernels(rows, "PyTorch")


def short_name(kernel):
    """Of a kernel of Kokkos, what of Carousel it is made of: its function, and its functor if any."""
    words = re.findall(r"carousel::(?:[^\W\d]\w*::|\(anonymous namespace\)::)*(\w+)", kernel)
    names = dict.fromkeys(word for word in words if word not in ("real", "Bfloat16"))
    return " ".join(names) or kernel


def carousel_kernels(case, arguments, folder):
    tool = (ROOT / arguments.build / "tests/bench_kernel_times.so").resolve()
    if not tool.exists():
        print(f"  Carousel: there is no {tool.name}")
        return
    steps = 10
    deck = write_deck(case, "step", folder, steps)
    settings = {"CUDA_INJECTION64_PATH": str(tool), "CAROUSEL_KERNEL_TIMES": str(folder / "times")}
    subprocess.run([ROOT / arguments.build / "carousel", "train", deck, "--overwrite"], check=True,
                   stdout=subprocess.DEVNULL, env=os.environ | settings)
    sums = {}
    for file in folder.glob("times.*"):
        for line in file.read_text().splitlines():
            nanoseconds, _, kernel = line.split("\t", 2)
            name = short_name(kernel)
            sums[name] = sums.get(name, 0) + float(nanoseconds) / 1e6 / steps
    show_kernels(sums.items(), "Carousel, its start among them")


def measure(case, arguments):
    """{who: (images per second, bytes)}"""
    compiled = [False] if arguments.no_compile else [False, True]
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_dataset(folder / "data.h5", dict(case, steps=EPOCH))
        for _ in range(arguments.rounds):
            for way in WAYS:
                found.setdefault(way, []).append(carousel(case, way, arguments, folder))
            for each in compiled:
                who = "PyTorch compiled" if each else "PyTorch"
                found.setdefault(who, []).append(pytorch(case, each, arguments.steps))
        if case["name"] == arguments.kernels:
            carousel_kernels(case, arguments, folder)
            pytorch_kernels(case)
    return {who: (case["batch"] / statistics.median(sum((run[0] for run in runs), [])),
                  max(run[1] for run in runs)) for who, runs in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/cuda")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5 * EPOCH)
    parser.add_argument("--only", help="name of one network")
    parser.add_argument("--kernels", default="resnet50", help="network whose kernels are listed")
    parser.add_argument("--no-compile", action="store_true", help="without PyTorch's compiler")
    arguments = parser.parse_args()
    if arguments.steps < 3 * EPOCH:
        parser.error(f"at least {3 * EPOCH} steps")
    if not torch.cuda.is_available():
        print("gpu.py: PyTorch sees no GPU", file=sys.stderr)
        return 125
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, bf16")
    for case in CASES:
        if arguments.only not in (None, case["name"]):
            continue
        found = measure(case, arguments)
        best = max(rate for who, (rate, _) in found.items() if who.startswith("PyTorch"))
        print(f"{case['name']}, batch {case['batch']}: images/s, GiB, ratio to the faster PyTorch")
        for who, (rate, size) in found.items():
            print(f"  {who:<18}{rate:10.0f}{size / 2**30:8.2f}{rate / best:7.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
