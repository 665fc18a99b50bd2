#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Converts torchvision's classifiers and compares them with PyTorch, a line for each.

    convert_torchvision.py CAROUSEL [NAME ...]

Without names all of them. Each gets random weights and running statistics of random images; then
app/convert, `carousel import weights`, `carousel predict` and `carousel export weights`. Printed are
how far outputs are at most from PyTorch's double precision, as a share of the largest output, beside
PyTorch's own single precision, and whether the state_dict came back to the bit; or why app/convert
refuses. Exit code 1 where outputs are further than 8 times PyTorch's own, or weights differ.
Needs torch and torchvision, and 20 GiB of memory for the largest.
"""
import pathlib
import subprocess
import sys
import tempfile
import warnings

import h5py
import numpy
import torch
from torchvision import models

CONVERT = pathlib.Path(__file__).resolve().parents[2] / "app" / "convert"
SIDE = {"inception_v3": 299}
WITH = {"googlenet": {"aux_logits": False}, "inception_v3": {"aux_logits": False}}
IMAGES = 2
MOST = 8  # times the distance of PyTorch's own single precision


def made(name):
    """With statistics of random images, so that batch norms do something."""
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = models.get_model(name, **WITH.get(name, {}))
    for parameter in network.parameters():  # heads that start from zero would leave nothing
        if not parameter.any():
            torch.nn.init.normal_(parameter, std=0.02)
    side = SIDE.get(name, 224)
    images = torch.randn(IMAGES, 3, side, side)
    norms = [each for each in network.modules() if isinstance(each, torch.nn.BatchNorm2d)]
    before = [each.momentum for each in norms]
    for norm in norms:
        norm.momentum = 1.0
    network.train()
    with torch.no_grad():
        network(images)
    for norm, momentum in zip(norms, before):
        norm.momentum = momentum
    return network.eval(), images


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True)


def succeed(*words):
    done = run(*words)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(str(each) for each in words[1:3])}: {done.stderr.strip()}")


def distances(name, network, images, outputs):
    with torch.no_grad():
        single = network(images).double()
        exact = network.double()(images.double())
    largest = exact.abs().max()
    ours = (torch.from_numpy(outputs).double() - exact).abs().max() / largest
    return ours.item(), ((single - exact).abs().max() / largest).item()


def compare(carousel, name, folder):
    """Printed text, and whether all is well."""
    network, images = made(name)
    torch.save(network.state_dict(), folder / "state.pt")
    arguments = [f"--with={key}={value}" for key, value in WITH.get(name, {}).items()]
    converted = run(sys.executable, CONVERT, f"torchvision.models:{name}", "--output", folder,
                    "--input", ",".join(str(each) for each in images.shape[1:]),
                    "--weights", folder / "state.pt", *arguments)
    if converted.returncode != 0:
        return "refused: " + converted.stderr.strip().splitlines()[-1].split(": ", 2)[-1], True
    with h5py.File(folder / "data.h5", "w") as file:
        file["inputs"] = images.numpy()
        file["labels"] = numpy.zeros(IMAGES, numpy.int64)
    deck, start = folder / "deck.toml", folder / "start.h5"
    succeed(carousel, "import", "weights", folder / "weights.h5", deck, start,
            "parallel.stages=1", "parallel.micro_batches=1",
            "train.micro_batch_size=1", "data.validation_fraction=0.5")
    (folder / "weights.h5").unlink()
    succeed(carousel, "predict", start, folder / "data.h5", folder / "outputs.h5")
    succeed(carousel, "export", "weights", start, folder / "back.h5")
    start.unlink()
    with h5py.File(folder / "back.h5") as file:
        back = {key: torch.from_numpy(file[key][()]) for key in file}
    given = torch.load(folder / "state.pt", weights_only=True)
    kept = {key for key in given if not key.endswith("batches_tracked")}
    given.update(back)  # what the file does not have are counters, and MNASNet asks for the metadata
    network.load_state_dict(given)
    original = torch.load(folder / "state.pt", weights_only=True)
    is_same = back.keys() == kept and all(
        torch.equal(network.state_dict()[key], original[key]) for key in kept)
    with h5py.File(folder / "outputs.h5") as file:
        outputs = file["outputs"][()]
    ours, theirs = distances(name, network, images, outputs)
    is_near = ours <= MOST * theirs + 1e-7
    return (f"outputs {ours:.1e}, PyTorch's {theirs:.1e}; weights "
            f"{'the same' if is_same else 'DIFFER'}{'' if is_near else '; TOO FAR'}",
            is_same and is_near)


def main(words):
    carousel, names = words[0], words[1:] or models.list_models(module=models)
    all_well = True
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            try:
                text, is_well = compare(carousel, name, pathlib.Path(folder))
            except RuntimeError as error:
                text, is_well = f"FAILED: {error}", False
        all_well = all_well and is_well
        print(f"{name:<22} {text}", flush=True)
    return 0 if all_well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
