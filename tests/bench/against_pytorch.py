#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Images per second of a training step beside PyTorch's, on this machine.

    against_pytorch.py [--build build/release] [--threads 2] [--rounds 3] [--steps STEPS]
                       [--only NETWORK]

Needs torch, torchvision and h5py. All train the same network on random images, volumes, or windows of
text, with one micro-batch per step, in turn within one run; what is printed are medians over the steps of all rounds, of which
small networks make more, so that a round lasts for seconds. Carousel runs in fp32 and in bf16, with
products in pairs and, where the processor has AMX, which PyTorch takes, in tiles; PyTorch eager and
compiled, in fp32 and by autocast in bf16, with either order of its images in memory, and with fused
optimizers. The last column is the ratio to the best of PyTorch. Where other programs keep the
processor busy it ends with exit code 3 and judges nothing.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

# What a shell sets for ranks of MPI would bind all threads of these programs to one core.
for variable in [name for name in os.environ if name.startswith("OMP_")]:
    del os.environ[variable]

import h5py  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torchvision  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/reference"))
from cosmoflow import CosmoFlow  # noqa: E402
from gpt import Gpt  # noqa: E402
from make_network_fixtures import build  # noqa: E402

SGD = dict(lr=0.01, momentum=0.9, weight_decay=5e-4)
ADAMW = dict(lr=1e-3, weight_decay=0.05)


def resnet(name, optimizer=SGD, **case):
    deck = f'name = "resnet"\ndepth = {case["depth"]}\nstem = "{case["stem"]}"'
    return dict(images(case["image"], case["classes"]), **case, name=name, optimizer=optimizer,
                deck=deck, build=lambda: build(case))


def vit_b_16(name, optimizer):
    return dict(images(224, 1000), name=name, batch=8, optimizer=optimizer,
                deck='name = "vit"\npatch = 16\nwidth = 768\ndepth = 12\nheads = 12',
                build=torchvision.models.vit_b_16)


def images(side, classes):
    """Labelled images of a data set."""
    return dict(shape=(3, side, side), write=write_dataset, data='file = "{}"', classes=classes,
                loss=torch.nn.functional.cross_entropy)


def cosmoflow(name, side, batch, **sizes):
    """Four numbers of volumes in a file of arrays."""
    let = ", ".join(f"{key} = {value}" for key, value in sizes.items())
    return dict(name=name, shape=(4, side, side, side), write=write_volumes, data=VOLUMES, batch=batch,
                loss=torch.nn.functional.mse_loss, optimizer=SGD,
                deck=f'file = "{ROOT}/inputs/networks/cosmoflow.toml"\nlet = {{ {let} }}',
                task='[task]\nloss = "mse"', build=lambda: CosmoFlow(4, side, 4, **sizes))


def gpt(name, vocabulary, context, batch, steps=8, **sizes):
    """Windows of a text, whose loss PyTorch finds as nanoGPT does, row by row."""
    let = ", ".join(f"{key} = {value}" for key, value in {"vocabulary": vocabulary, **sizes}.items())
    return dict(name=name, shape=(1, context, 1), tokens=vocabulary, write=write_tokens, batch=batch,
                data=f'tokens = "{{}}"\ncontext = {context}', steps=steps, optimizer=ADAMW,
                loss=lambda scores, targets: torch.nn.functional.cross_entropy(
                    scores.transpose(1, 2).flatten(0, 1), targets.flatten()),
                deck=f'file = "{ROOT}/inputs/networks/gpt.toml"\nlet = {{ {let} }}',
                build=lambda: Gpt(vocabulary, context, **sizes))


VOLUMES = """files = "{}"
validation_fraction = 0.01
input = {{ from = "volumes", axes = "n c z y x" }}
target = {{ from = "numbers" }}"""


def write_dataset(path, case, seed=1):
    random = np.random.default_rng(seed)
    with h5py.File(path, "w") as file:
        file.attrs["format"] = np.bytes_("carousel dataset")
        file.attrs["format_version"] = 1
        file.attrs["mean"] = [0.5] * 3
        file.attrs["std"] = [0.25] * 3
        file.attrs["class_names"] = np.array([str(k) for k in range(case["classes"])], dtype="S")
        file.attrs["source"] = np.bytes_("random numbers")
        file.attrs["licence"] = np.bytes_("none")
        for group, samples in (("train", case["steps"] * case["batch"]), ("test", case["batch"])):
            shape = (samples, *case["shape"])
            file[f"{group}/images"] = random.integers(0, 256, shape, dtype=np.uint8)
            file[f"{group}/labels"] = random.integers(0, case["classes"], samples, dtype=np.int32)


def write_volumes(path, case):
    random = np.random.default_rng(1)
    samples = case["batch"] * (case["steps"] + 1)
    with h5py.File(path, "w") as file:
        file["volumes"] = random.random((samples, *case["shape"]), np.float32)
        file["numbers"] = random.random((samples, 4), np.float32)


def write_tokens(path, case):
    random = np.random.default_rng(1)
    with h5py.File(path, "w", libver="latest") as file:
        for key, value in {"format": "carousel tokens", "tokenizer": "none", "source": "random numbers",
                           "licence": "none"}.items():
            file.attrs[key] = np.bytes_(value)
        file.attrs["format_version"] = 1
        file.attrs["vocabulary"] = case["tokens"]
        context = case["shape"][1]
        for group, windows in (("train", case["steps"] * case["batch"] + 1), ("validation", 1)):
            file[f"{group}/tokens"] = random.integers(0, case["tokens"], windows * context + 1,
                                                      dtype=np.uint16)


CASES = [resnet("resnet20", depth=20, stem="cifar", image=32, classes=10, batch=64, steps=80),
         resnet("resnet18-cifar", depth=18, stem="cifar", image=32, classes=10, batch=64),
         resnet("resnet50", depth=50, stem="imagenet", image=224, classes=1000, batch=8),
         vit_b_16("vit-b-16", SGD), vit_b_16("vit-b-16 adamw", ADAMW),
         gpt("gpt-char", 65, 64, 12, steps=80, width=128, depth=4, heads=4),
         gpt("gpt2-124m", 50257, 256, 1, width=768, depth=12, heads=12),
         cosmoflow("cosmo", 32, 16, w=16, blocks=4, dropout=0.3),
         cosmoflow("cosmoflow", 128, 1, w=32, blocks=5, dropout=0.5)]


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


def optimizer_deck(optimizer):
    keys = {"name": '"sgd"' if optimizer is SGD else '"adamw"', "learning_rate": optimizer["lr"],
            "weight_decay": optimizer["weight_decay"]}
    if "momentum" in optimizer:
        keys["momentum"] = optimizer["momentum"]
    return "\n".join(f"{key} = {value}" for key, value in keys.items())


# Keys of [engine]. Tiles are slow where processors have no AMX.
CAROUSEL = {"fp32": 'precision = "fp32"', "bf16": 'precision = "bf16"'}
if "amx_bf16" in pathlib.Path("/proc/cpuinfo").read_text().split():
    CAROUSEL["bf16 tiles"] = 'precision = "bf16"\nproducts = "tiles"'


def carousel_seconds(case, arguments, folder, engine):
    """Seconds of every step but the first."""
    deck = folder / "deck.toml"
    deck.write_text(f"""
[run]
name = "bench"
output = "{folder}/run"
[model]
{case["deck"]}
{case.get("task", "")}
[data]
{case["data"].format(folder / "data.h5")}
[parallel]
rule = "dp"
transport = "local"
[train]
micro_batch_size = {case["batch"]}
steps = {case["steps"]}
[train.optimizer]
{optimizer_deck(case["optimizer"])}
[engine]
threads = {arguments.threads}
{engine}
[profile]
steps = ""
""")
    subprocess.run([ROOT / arguments.build / "carousel", "train", deck, "--overwrite"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with h5py.File(folder / "run/run.h5") as file:
        return list(np.diff(file["steps/seconds"]))


def optimizer_of(case, model):
    kind = torch.optim.SGD if case["optimizer"] is SGD else torch.optim.AdamW
    return kind(model.parameters(), **case["optimizer"], fused=True)


def samples(case):
    """Inputs and targets at random."""
    shape = (case["batch"], *case["shape"])
    if "tokens" in case:
        return torch.randint(case["tokens"], shape), torch.randint(case["tokens"], (shape[0], shape[2]))
    if "classes" in case:
        return torch.randn(shape), torch.randint(case["classes"], shape[:1])
    return torch.randn(shape), torch.randn(case["batch"], 4)


class PyTorch:
    """A network that trains in one of PyTorch's ways."""

    def __init__(self, case, compiled, precision, memory_format):
        if memory_format == torch.channels_last and len(case["shape"]) == 4:
            memory_format = torch.channels_last_3d
        self.model = case["build"]().to(memory_format=memory_format)
        self.optimizer = optimizer_of(case, self.model)
        self.images, self.targets = (each.to(memory_format=memory_format) if each.dim() > 2 else each
                                     for each in samples(case))
        self.loss = case["loss"]
        self.precision = precision
        self.forward = torch.compile(self.model) if compiled else self.model

    def step(self):
        begin = time.perf_counter()
        self.optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=self.precision == "bf16"):
            outputs = self.forward(self.images)
            loss = self.loss(outputs.float(), self.targets)
        loss.backward()
        self.optimizer.step()
        return time.perf_counter() - begin


WAYS = {f"PyTorch {how} {precision} {order}": (how == "compiled", precision, memory_format)
        for precision in ("fp32", "bf16") for how in ("eager", "compiled")
        for order, memory_format in (("NCHW", torch.contiguous_format),
                                     ("NHWC", torch.channels_last))}


def busy_cores(seconds):
    """How many cores worked for others in the mean while this program slept."""
    def ticks():
        fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        numbers = [int(field) for field in fields]
        return sum(numbers) - numbers[3] - numbers[4]  # but for idle and waiting for files
    before = ticks()
    time.sleep(seconds)
    return (ticks() - before) / os.sysconf("SC_CLK_TCK") / seconds


def measure(case, arguments):
    """Images per second by program."""
    seconds = {f"Carousel {kind}": [] for kind in CAROUSEL}
    seconds |= {name: [] for name in WAYS}
    ways = {name: PyTorch(case, *way) for name, way in WAYS.items()}
    for way in ways.values():
        for _ in range(2):  # in which compilers work
            way.step()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        case["write"](folder / "data.h5", case)
        for _ in range(arguments.rounds):
            for kind, engine in CAROUSEL.items():
                seconds[f"Carousel {kind}"] += carousel_seconds(case, arguments, folder, engine)
            for key, way in ways.items():
                seconds[key] += [way.step() for _ in range(case["steps"])][1:]
    return {key: case["batch"] / statistics.median(values) for key, values in seconds.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="of each round, for every network")
    parser.add_argument("--only", help="name of one network")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    busy = busy_cores(3)
    if busy > 0.1:
        print(f"{busy:.1f} cores are busy with other programs; a quiet machine is needed",
              file=sys.stderr)
        return 3
    print(f"{cpu_name()}, {arguments.threads} threads, PyTorch {torch.__version__}")
    for case in CASES:
        if arguments.only not in (None, case["name"]):
            continue
        steps = arguments.steps or case.get("steps", 8)
        rate = measure(dict(case, steps=steps), arguments)
        best = max(rate[way] for way in WAYS)
        what = "windows" if "tokens" in case else "images"
        print(f"\n{case['name']}, {case['batch']} {what} in a step{'':20}{what}/s  of the best")
        for key, value in rate.items():
            print(f"  {key:48}{value:10.2f}{value / best:13.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
