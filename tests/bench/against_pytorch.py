#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Images per second of a training step beside PyTorch's, on this machine.

    against_pytorch.py [--build build/release] [--threads 2] [--rounds 3] [--steps 8]

Needs torch, torchvision and h5py. Both train the same network on random images with one
micro-batch per step and SGD with momentum, in turn within one run; what is printed are medians over
the steps of all rounds. PyTorch runs with either order of its images in memory.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/reference"))
from make_resnet_fixtures import build  # noqa: E402

CASES = [dict(name="resnet20", depth=20, stem="cifar", image=32, classes=10, batch=64),
         dict(name="resnet18-cifar", depth=18, stem="cifar", image=32, classes=10, batch=64),
         dict(name="resnet50", depth=50, stem="imagenet", image=224, classes=1000, batch=8)]
OPTIMIZER = dict(lr=0.01, momentum=0.9, weight_decay=5e-4)


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


def write_dataset(path, case, steps):
    random = np.random.default_rng(1)
    with h5py.File(path, "w") as file:
        file.attrs["format"] = np.bytes_("carousel dataset")
        file.attrs["format_version"] = 1
        file.attrs["mean"] = [0.5] * 3
        file.attrs["std"] = [0.25] * 3
        file.attrs["class_names"] = np.array([str(k) for k in range(case["classes"])], dtype="S")
        file.attrs["source"] = np.bytes_("random numbers")
        file.attrs["licence"] = np.bytes_("none")
        for group, samples in (("train", steps * case["batch"]), ("test", case["batch"])):
            shape = (samples, 3, case["image"], case["image"])
            file[f"{group}/images"] = random.integers(0, 256, shape, dtype=np.uint8)
            file[f"{group}/labels"] = random.integers(0, case["classes"], samples, dtype=np.int32)


def carousel_seconds(case, arguments, folder):
    """Seconds of every step but the first."""
    deck = folder / "deck.toml"
    deck.write_text(f"""
[run]
name = "bench"
output = "{folder}/run"
[model]
name = "resnet"
depth = {case["depth"]}
stem = "{case["stem"]}"
[data]
file = "{folder}/data.h5"
[parallel]
rule = "dp"
transport = "local"
[train]
micro_batch_size = {case["batch"]}
steps = {arguments.steps}
[train.optimizer]
name = "sgd"
learning_rate = {OPTIMIZER["lr"]}
momentum = {OPTIMIZER["momentum"]}
weight_decay = {OPTIMIZER["weight_decay"]}
[engine]
threads = {arguments.threads}
[profile]
steps = ""
""")
    subprocess.run([ROOT / arguments.build / "carousel", "train", deck, "--overwrite"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with h5py.File(folder / "run/run.h5") as file:
        return list(np.diff(file["steps/seconds"]))


def pytorch_seconds(case, arguments, memory_format):
    model = build(case).to(memory_format=memory_format)
    optimizer = torch.optim.SGD(model.parameters(), **OPTIMIZER)
    shape = (case["batch"], 3, case["image"], case["image"])
    images = torch.randn(shape).to(memory_format=memory_format)
    labels = torch.randint(case["classes"], shape[:1])
    seconds = []
    for _ in range(arguments.steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    return seconds[1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--only", help="name of one network")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(f"{cpu_name()}, {arguments.threads} threads, PyTorch {torch.__version__}, fp32")
    print(f"{'images/s':<16}{'batch':>6}{'Carousel':>10}{'PyTorch':>10}{'ratio':>7}"
          f"{'channels last':>15}{'ratio':>7}")
    for case in CASES:
        if arguments.only not in (None, case["name"]):
            continue
        seconds = {"carousel": [], "nchw": [], "nhwc": []}
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write_dataset(folder / "data.h5", case, arguments.steps)
            for _ in range(arguments.rounds):
                seconds["carousel"] += carousel_seconds(case, arguments, folder)
                seconds["nchw"] += pytorch_seconds(case, arguments, torch.contiguous_format)
                seconds["nhwc"] += pytorch_seconds(case, arguments, torch.channels_last)
        rate = {key: case["batch"] / statistics.median(values) for key, values in seconds.items()}
        print(f"{case['name']:<16}{case['batch']:>6}{rate['carousel']:>10.1f}{rate['nchw']:>10.1f}"
              f"{rate['carousel'] / rate['nchw']:>7.2f}{rate['nhwc']:>15.1f}"
              f"{rate['carousel'] / rate['nhwc']:>7.2f}", flush=True)


if __name__ == "__main__":
    main()
