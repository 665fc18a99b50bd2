#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Whether two builds of Carousel compute the same bits: same_receipts.py PROGRAM PROGRAM

Both train the same decks: every placement with a rule of each kind, a perceptron and a small
residual network on made-up images, on one process. The receipts of every stage after every update
must be equal. Run it with one thread and with several; ends with the number of decks compared.
"""
import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy

PLACEMENTS = ("single", "replicated", "model", "pipeline", "sharded")
RULES = {"dp": (), "cdp-v1": (), "cdp-v2": ("parallel.slack=1",)}
MODELS = {"mlp": 'name = "mlp"\nwidths = [192, 48, 48, 48, 10]\ndropout = 0.1',
          "resnet8": 'name = "resnet"\ndepth = 8\nstem = "cifar"'}
DECK = """
[run]
name = "receipts"
output = "run"
[model]
{model}
[data]
file = "data.h5"
[parallel]
rule = "cdp-v2"
micro_batches = 4
stages = 4
transport = "local"
[train]
micro_batch_size = 4
epochs = 3
label_smoothing = 0.1
[train.optimizer]
name = "sgd"
learning_rate = 0.05
momentum = 0.9
weight_decay = 5e-4
[train.schedule]
name = "cosine"
"""


def write_data(path):
    random = numpy.random.default_rng(1)
    with h5py.File(path, "w") as file:
        for split, size in (("train", 100), ("test", 40)):
            file[f"{split}/images"] = random.integers(0, 256, (size, 3, 8, 8), numpy.uint8)
            file[f"{split}/labels"] = numpy.arange(size) % 10
        file.attrs["format"] = numpy.bytes_("carousel dataset")
        file.attrs["format_version"] = 1
        file.attrs["class_names"] = numpy.array([str(k) for k in range(10)], dtype="S")
        file.attrs["mean"] = numpy.full(3, 0.5)
        file.attrs["std"] = numpy.full(3, 0.25)
        file.attrs["source"] = file.attrs["licence"] = numpy.bytes_("made up")


def receipts(program, folder, overrides):
    """[stage, step] after a training of the deck in `folder`."""
    subprocess.run([program, "train", "deck.toml", "--overwrite", *overrides], cwd=folder,
                   check=True, capture_output=True, text=True)
    with h5py.File(Path(folder) / "run" / "run.h5", "r") as run:
        return numpy.array([run["receipts"][stage][:] for stage in sorted(run["receipts"])])


def main(programs):
    programs = [str(Path(program).resolve()) for program in programs]
    differ = 0
    cases = list(itertools.product(MODELS, PLACEMENTS, RULES))
    for model, placement, rule in cases:
        with tempfile.TemporaryDirectory() as folder:
            write_data(f"{folder}/data.h5")
            (Path(folder) / "deck.toml").write_text(DECK.format(model=MODELS[model]))
            words = [f"parallel.placement={placement}", f"parallel.rule={rule}", *RULES[rule]]
            a, b = (receipts(program, folder, words) for program in programs)
        same = a.shape == b.shape and a.size > 0 and (a == b).all()
        differ += not same
        print(f"{model:8} {placement:10} {rule:7} {a.size:4} receipts "
              f"{'the same' if same else 'DIFFERENT'}")
    print(f"{len(cases) - differ} of {len(cases)} decks have the same receipts")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:3]) if len(sys.argv) == 3 else __doc__)
