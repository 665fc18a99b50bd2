# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""A user's own HDF5 files from a deck to predictions: fields in time with skips over cut stages,
numbers of signals, labels of pixels.

Usage: arrays_test.py CAROUSEL MPIEXEC PROJECT. Everything happens in a temporary folder.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy

CAROUSEL, MPIEXEC, PROJECT = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
ONE = {"OMP_NUM_THREADS": "1"}

TAIL = """
[parallel]
rule = "cdp-v2"
placement = "single"
micro_batches = 4
stages = 4
[train]
micro_batch_size = 2
epochs = 2
[train.optimizer]
name = "adamw"
learning_rate = 2e-3
[checkpoint]
every_steps = 3
[profile]
steps = "::1"
"""
UNET = """
[run]
name = "flow"
output = "run"
[model]
layers = [
  { block = "double", out = 4, name = "down.0", save = "skip0" }, { max_pool = 2 },
  { block = "double", out = 8, name = "down.1", save = "skip1" }, { max_pool = 2 },
  { block = "double", out = 8, name = "middle" },
  { conv_transpose = 8, kernel = 2, stride = 2, name = "up.1" }, { concat = "skip1" },
  { block = "double", out = 8, name = "join.1" },
  { conv_transpose = 4, kernel = 2, stride = 2, name = "up.0" }, { concat = "skip0" },
  { block = "double", out = 4, name = "join.0" },
  { conv = CHANNELS, kernel = 1, name = "head" } ]
blocks.double = [ { conv = "out", kernel = 3, padding = 1, bias = false }, "batch_norm", "relu" ]
"""
FLOW = UNET.replace("CHANNELS", "2") + """
[task]
loss = "mse"
metrics = ["vrmse", "rmse"]
[data]
files = "flow*.h5"
validation_fraction = 0.25
test_fraction = 0.25
[data.input]
from = ["fields/velocity"]
axes = "n t y x c"
history = 2
normalise = "standard"
[data.target]
from = "fields/velocity"
axes = "n t y x c"
ahead = 1
normalise = "standard"
""" + TAIL
CELLS = UNET.replace("CHANNELS", "3") + """
[data]
files = "cells.h5"
test_fraction = 0.25
[data.input]
from = ["a", "b"]
axes = "n y x"
[data.target]
from = "labels"
axes = "n y x"
classes = 3
ignore = 255
[data.augment]
size = 8
crop = "random"
flip = 0.5
""" + TAIL
# Volumes of voxels that have one of three classes, on the way through 16 channels.
VOXELS = """
[run]
name = "voxels"
output = "run"
[model]
layers = [
  { conv = 16, kernel = 3, padding = 1, name = "before" }, { leaky_relu = 0.3, save = "skip" },
  { max_pool = 2 }, { conv = 16, kernel = 3, padding = 1, bias = false, name = "middle" },
  { group_norm = 4, name = "norm" }, "relu", { conv_transpose = 16, kernel = 2, stride = 2, name = "up" },
  { concat = "skip" }, { conv = 3, kernel = 1, name = "head" } ]
[data]
files = "voxels.h5"
test_fraction = 0.25
[data.input]
from = "density"
axes = "n z y x c"
normalise = "standard"
[data.target]
from = "kind"
axes = "n z y x"
classes = 3
ignore = 255
[data.augment]
flip = 0.5
""" + TAIL


def waves(random, samples, times, channels, height, width):
    """[n, t, c, y, x]: fields of two wavelengths that move along y."""
    y, x = (numpy.linspace(0, 2 * numpy.pi, n, endpoint=False) for n in (height, width))
    moved = y[:, None] + 0.4 * numpy.arange(times)[:, None, None, None]
    field = 0
    for k in range(1, 3):
        phase = random.uniform(0, 2 * numpy.pi, (samples, 1, channels, 1, 1))
        field = field + numpy.sin(k * moved + phase) * numpy.cos(k * x + phase)
    return field


class Arrays(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        random = numpy.random.default_rng(3)
        for name in "ab":
            with h5py.File(self.folder / f"flow-{name}.h5", "w") as file:
                velocity = 5 + 3 * waves(random, 8, 6, 2, 12, 16)
                velocity = numpy.moveaxis(velocity, 2, -1).astype(">f4")
                if name == "a":
                    file["fields/velocity"] = velocity
                else:
                    file.create_dataset("fields/velocity", data=velocity, chunks=(1, 3, 12, 7, 2),
                                        compression="gzip", shuffle=True, fletcher32=True)
        with h5py.File(self.folder / "cells.h5", "w") as file:
            a, b = numpy.moveaxis(waves(random, 48, 1, 2, 12, 12)[:, 0], 1, 0)
            labels = numpy.where(a > 0.5, 2, numpy.where(b > 0, 1, 0)).astype("u1")
            labels[random.uniform(size=labels.shape) < 0.2] = 255
            file["a"], file["b"], file["labels"] = a.astype("f2"), (100 * b).astype("i2"), labels
        with h5py.File(self.folder / "voxels.h5", "w") as file:
            density = random.uniform(size=(32, 6, 10, 8, 2))
            kind = (density.sum(-1) * 1.5).astype("u1")
            kind[random.uniform(size=kind.shape) < 0.2] = 255
            file.create_dataset("density", data=density, chunks=(1, 4, 3, 8, 2), compression="gzip")
            file["kind"] = kind
        (self.folder / "voxels.toml").write_text(VOXELS)
        (self.folder / "flow.toml").write_text(FLOW)
        (self.folder / "cells.toml").write_text(CELLS)

    def carousel(self, *words, ranks=1, code=0, **variables):
        before = [MPIEXEC, "-n", str(ranks)] if ranks > 1 else []
        result = subprocess.run([*before, CAROUSEL, *map(str, words)], cwd=self.folder, text=True,
                                env=os.environ | variables, capture_output=True, timeout=100)
        if ranks == 1 or code == 0:  # launchers have codes of their own for failures
            self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.returncode == 0, code == 0)
        return result

    def train(self, deck, name, *words, ranks=1, **keywords):
        if ranks == 1:
            keywords |= ONE
        return self.carousel("train", deck, f"run.output={name}", *words, ranks=ranks, **keywords)

    def check_everywhere(self, deck):
        for rule in ("dp", "cdp-v1", "cdp-v2"):
            self.train(deck, f"{rule} one", f"parallel.rule={rule}")
            for placement, ranks in (("replicated", 4), ("pipeline", 4), ("model", 1),
                                     ("sharded", 1)):
                name = f"{rule} {placement}"
                self.train(deck, name, f"parallel.rule={rule}", f"parallel.placement={placement}",
                           ranks=ranks)
                self.carousel("diff", f"{rule} one", name)
                self.assertIn("All checks passed", self.carousel("verify", name).stdout)

    def test_fields_in_time_are_learned_alike_everywhere(self):
        self.check_everywhere("flow.toml")

    def test_labels_of_pixels_are_learned_alike_everywhere(self):
        self.check_everywhere("cells.toml")

    def test_volumes_are_learned_alike_everywhere(self):
        self.check_everywhere("voxels.toml")

    def test_voxels_are_predicted(self):
        learn = "train.epochs=20", "train.optimizer.learning_rate=0.02"
        self.train("voxels.toml", "run", *learn)
        self.train("voxels.toml", "parts", *learn[1:], "train.epochs=", "train.steps=6")
        self.train("voxels.toml", "parts", *learn, "run.resume=auto",
                   "parallel.placement=replicated", ranks=4)
        self.carousel("diff", "run", "parts")
        self.carousel("predict", "run", "voxels.h5", "out.h5", **ONE)
        self.assertIn("run/checkpoints/last.h5 after 60 steps",
                      self.carousel("export", "weights", "run", "weights.h5").stdout)
        out = self.predictions("out.h5")
        self.assertEqual(out["outputs"].shape, (32, 3, 6, 10, 8))
        self.assertTrue(numpy.array_equal(out["outputs"].argmax(1), out["labels"]))
        with h5py.File(self.folder / "voxels.h5") as file:
            kind = file["kind"][()]
        self.assertGreater((out["labels"] == kind)[kind != 255].mean(), 0.8)
        self.assertIn("2x6x10x8", self.carousel("inspect", "run", "--json").stdout
                      + self.carousel("plan", "voxels.toml", "--layers").stdout)
        for words, said in ((["data.augment.size=4"], "volumes of 2x6x10x8 are shown whole"),
                            (['data.input.axes="n z y c c"'], "must name each axis once"),
                            (['data.input.axes="n t z y c"'], "volumes have y and x as well")):
            refused = self.carousel("train", "--validate", "voxels.toml", "run.output=no", *words,
                                    code=2)
            self.assertIn(said, refused.stderr)

    def test_runs_go_on_with_the_statistics_that_they_began_with(self):
        self.train("flow.toml", "whole")
        self.train("flow.toml", "parts", "train.epochs=", "train.steps=4",
                   "parallel.placement=pipeline", ranks=4)
        self.train("flow.toml", "parts", "parallel.placement=sharded", "run.resume=auto")
        self.carousel("diff", "whole", "parts")
        # Statistics that a deck says itself must be those.
        result = self.train("flow.toml", "whole", "run.resume=auto", "data.input.mean=[1, 2]",
                            "data.input.std=[1, 1]", code=2)
        self.assertIn("mean is [1, 2]", result.stderr)
        # As must be the numbers in the files.
        with h5py.File(self.folder / "flow-a.h5", "r+") as file:
            file["fields/velocity"][0, 0, 0, 0, 0] += 1
        result = self.train("flow.toml", "whole", "run.resume=auto", "train.epochs=3", code=2)
        self.assertIn("holds other data", result.stderr)

    def predictions(self, name):
        with h5py.File(self.folder / name) as file:
            return {key: file[key][()] for key in file if isinstance(file[key], h5py.Dataset)}

    def test_predictions_are_in_order_and_in_their_units(self):
        self.train("flow.toml", "run", "train.epochs=12")
        self.carousel("predict", "run", "flow-*.h5", "one.h5", **ONE)
        self.carousel("predict", "run", "flow-*.h5", "four.h5", ranks=4)
        one, four = self.predictions("one.h5"), self.predictions("four.h5")
        self.assertEqual(one.keys(), four.keys())
        for key in one:
            self.assertTrue(numpy.array_equal(one[key], four[key]), key)
        self.assertEqual(one["outputs"].shape, (2 * 8 * 5, 2, 12, 16))  # the last has no target
        self.assertEqual([name.decode() for name in one["files"]], ["flow-a.h5", "flow-b.h5"])
        truth = []
        for name in one["files"]:
            with h5py.File(self.folder / name.decode()) as file:
                truth.append(file["fields/velocity"][()])
        errors, spread = [], []
        for output, (file, sample, time) in zip(one["outputs"], one["places"]):
            if time + 2 < 6:
                target = numpy.moveaxis(truth[file][sample, time + 2], -1, 0)
                errors.append(((output - target) ** 2).mean())
                spread.append(target.var())
        self.assertLess(numpy.mean(errors), numpy.mean(spread))
        # Of the split that no step has seen, the same numbers.
        self.carousel("predict", "run", "flow-*.h5", "test.h5", "--split", "test", **ONE)
        test = self.predictions("test.h5")
        self.assertEqual(len(test["outputs"]), 4 * 5)
        rows = {tuple(place): k for k, place in enumerate(one["places"])}
        order = [rows[tuple(place)] for place in test["places"]]
        self.assertTrue(numpy.allclose(test["outputs"], one["outputs"][order], atol=1e-5))
        # By the units that the training had, the loss says the same.
        result = self.carousel("eval", "run", **ONE)
        loss = float(result.stdout.split("loss ")[1].split(",")[0])
        with h5py.File(self.folder / "run/checkpoints/last.h5") as file:
            std = file["inputs"].attrs["target_std"]
        squares = []
        for output, (file, sample, time) in zip(test["outputs"], test["places"]):
            if time + 2 < 6:
                target = numpy.moveaxis(truth[file][sample, time + 2], -1, 0)
                squares.append((((output - target) / std[:, None, None]) ** 2).mean())
        self.assertAlmostEqual(loss, numpy.mean(squares), delta=1e-5 * loss + 1e-6)
        self.assertIn("already exists", self.carousel("predict", "run", "flow-*.h5", "one.h5",
                                                      code=2).stderr)

    def test_labels_are_predicted_without_targets(self):
        self.train("cells.toml", "run", "train.epochs=10")
        with h5py.File(self.folder / "cells.h5") as file:
            labels = file["labels"][()]
        with h5py.File(self.folder / "cells.h5", "r+") as file:
            del file["labels"]
        self.carousel("predict", "run", "cells.h5", "out.h5", **ONE)
        out = self.predictions("out.h5")
        self.assertTrue(numpy.array_equal(out["outputs"].argmax(1), out["labels"]))
        seen = labels[:, 2:10, 2:10]  # the centre of the fields
        right = (out["labels"] == seen)[seen != 255].mean()
        often = max((seen == k).mean() / (seen != 255).mean() for k in range(3))
        self.assertGreater(right, often)

    def test_samples_are_taken_for_classes(self):
        random = numpy.random.default_rng(5)
        numbers = random.normal(size=(400, 6))
        with h5py.File(self.folder / "rows.h5", "w") as file:
            file["numbers"], file["kind"] = numbers, numbers[:, :3].argmax(1)
        (self.folder / "rows.toml").write_text("""
[run]
name = "rows"
output = "run"
[model]
widths = [6, 32, 32, 3]
[data]
files = "rows.h5"
test_fraction = 0.25
[data.input]
from = "numbers"
[data.target]
from = "kind"
classes = 3
""" + TAIL.replace("stages = 4", "stages = 2"))
        self.train("rows.toml", "run", "train.epochs=20")
        self.assertIn("All checks passed", self.carousel("verify", "run").stdout)
        self.carousel("predict", "run", "rows.h5", "out.h5", "--split", "test", **ONE)
        out = self.predictions("out.h5")
        self.assertEqual(out["labels"].shape, (100,))
        right = (out["labels"] == numbers[out["places"][:, 1], :3].argmax(1)).mean()
        said = self.carousel("eval", "run", **ONE).stdout
        self.assertIn(f"100 samples, loss", said)
        self.assertIn(f"accuracy {right:.4f}", said)
        self.assertGreater(right, 0.8)
        self.assertIn("Predictions out.h5", self.carousel("inspect", "out.h5").stdout)
        refused = self.carousel("train", "--validate", "rows.toml", "data.input.axes=n",
                                "run.output=no", code=2)
        self.assertIn("400 x 6", refused.stderr)

    def test_examples_run_as_their_first_lines_say(self):
        for name, words in (("heat", ("--samples", "640")),
                            ("flow", ("--trajectories", "10", "--times", "6", "--points", "16")),
                            ("cosmo", ("--universes", "40", "--points", "16"))):
            data = self.folder / f"{name}.h5"
            subprocess.run([sys.executable, PROJECT / f"inputs/{name}/make_{name}.py", data, *words],
                           check=True, capture_output=True, timeout=60)
            deck = PROJECT / f"inputs/{name}/{name}.toml"
            self.train(deck, name, "train.epochs=2", f"data.files={data}")
            self.assertIn("All checks passed", self.carousel("verify", name).stdout)
            self.carousel("predict", name, data, f"{name}-test.h5", "--split", "test", **ONE)
            self.assertIn(f"Predictions {name}-test.h5",
                          self.carousel("inspect", f"{name}-test.h5").stdout)

    def test_files_written_anew_hold_the_same_numbers(self):
        said = self.carousel("import", "fields", "flow.toml", "whole", "--workers", "3").stdout
        self.assertIn("whole: 2 files with 2 arrays", said)
        for name in ("flow-a.h5", "flow-b.h5"):
            with h5py.File(self.folder / name) as before, \
                    h5py.File(self.folder / "whole" / name) as now:
                old, new = before["fields/velocity"], now["fields/velocity"]
                self.assertIsNone(new.chunks)
                self.assertEqual(new.dtype, old.dtype)
                numpy.testing.assert_array_equal(new, old)
                self.assertEqual(now["checksums/fields/velocity"].shape,
                                 ((new.nbytes + 2**20 - 1) // 2**20,))
        files = f'data.files="{self.folder}/whole/flow*.h5"'
        self.train("flow.toml", "packed")
        self.train("flow.toml", "one piece", files)
        for key in ("loss", "vrmse"):
            with h5py.File(self.folder / "packed/run.h5") as before, \
                    h5py.File(self.folder / "one piece/run.h5") as now:
                numpy.testing.assert_array_equal(now["steps"][key], before["steps"][key])

        # Chunks of other shapes, ends that are cut, one axis, and numbers that are packed by nobody.
        random = numpy.random.default_rng(5)
        shapes = {"one": ((301,), (7,)), "two": ((50, 33), (8, 33)), "three": ((9, 10, 11), (9, 4, 3)),
                  "four": ((3, 5, 7, 2), (2, 5, 7, 2))}
        with h5py.File(self.folder / "odd.h5", "w") as file:
            for name, (shape, chunks) in shapes.items():
                file.create_dataset(name, data=random.integers(-99, 99, shape).astype("i2"),
                                    chunks=chunks, compression="gzip" if name != "two" else None)
        names = ", ".join(f'"{name}"' for name in shapes)
        (self.folder / "odd.toml").write_text(FLOW.replace("flow*.h5", "odd.h5").replace(
            'from = ["fields/velocity"]', f"from = [{names}]").replace(
            'from = "fields/velocity"', 'from = "one"'))
        self.carousel("import", "fields", "odd.toml", "odd", "--workers", "2")
        with h5py.File(self.folder / "odd.h5") as old, h5py.File(self.folder / "odd/odd.h5") as new:
            for name in shapes:
                numpy.testing.assert_array_equal(new[name], old[name], name)

        # What was imported is looked at when it is read.
        with h5py.File(self.folder / "whole/flow-a.h5") as file:
            offset = file["fields/velocity"].id.get_offset()
        with open(self.folder / "whole/flow-a.h5", "r+b") as file:
            file.seek(offset + 1000)
            file.write(b"!")
        line = self.train("flow.toml", "damaged", files, code=65).stderr
        self.assertIn("fields/velocity is damaged in its MiB 1 of 1; copy or import it again", line)

        for code, words, said in (
                (2, ("flow.toml", "whole"), "whole/flow-a.h5: already exists; give --overwrite"),
                (2, ("flow.toml", "."), "flow-a.h5: is read, and would be lost"),
                (2, ("flow.toml", "again", 'data.files="flow-a.h5"'),
                 "all 1 arrays lie in one piece already"),
                (2, ("flow.toml", "again", 'data.test_files="odd/../flow-a.h5"',
                     "data.test_fraction=0"), "would both become again/flow-a.h5"),
                (65, ("flow.toml", "again", 'data.files="cells.h5"'), "cells.h5"),
                (74, ("flow.toml", "again", 'data.files="none*.h5"'), "none*.h5")):
            line = self.carousel("import", "fields", *words, code=code).stderr
            self.assertEqual(line.count("\n"), 1, line)
            self.assertIn(said, line)
            self.assertFalse((self.folder / "again").exists())
        with open(self.folder / "flow-b.h5", "r+b") as file:
            file.seek(-2000, 2)
            file.write(bytes(1000))
        line = self.carousel("import", "fields", "flow.toml", "again", "--workers", "2",
                             code=65).stderr
        self.assertIn("flow-b.h5", line)
        self.assertEqual([path.name for path in (self.folder / "again").iterdir()], ["flow-a.h5"])
        self.carousel("import", "fields", "flow.toml", "whole", "--overwrite", code=65)

    def test_what_the_files_lack_is_said_with_its_place(self):
        for change, words in (
                ('from = "fields/velocity"', 'from = "fields/vorticity"'),
                ('axes = "n t y x c"\nahead', 'axes = "n t c"\nahead'),
                ("history = 2", "history = 7"),
                ("ahead = 1\n", ""),
                ("validation_fraction = 0.25\ntest_fraction = 0.25", ""),
                ('metrics = ["vrmse", "rmse"]', 'metrics = ["accuracy"]'),
                ('loss = "mse"\nmetrics = ["vrmse", "rmse"]', ""),
                ("conv = 2, kernel = 1", "conv = 3, kernel = 1")):
            self.assertIn(change, FLOW)
            (self.folder / "flow.toml").write_text(FLOW.replace(change, words))
            result = self.carousel("train", "--validate", "flow.toml",
                                   code=65 if "vorticity" in words or "7" in words else 2)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
            self.assertIn("flow", result.stderr)

    def test_what_is_no_number_ends_the_run(self):
        with h5py.File(self.folder / "flow-b.h5", "r+") as file:
            file["fields/velocity"][3, 2, 1, 0, 1] = numpy.nan
        deck = FLOW.replace('normalise = "standard"\n', "")
        (self.folder / "flow.toml").write_text(deck.replace("_fraction = 0.25", "_fraction = 0.1"))
        for ranks, words in ((1, ()), (4, ("parallel.placement=pipeline",))):
            result = self.train("flow.toml", f"run {ranks}", *words, ranks=ranks, code=65)
            self.assertIn("fields/velocity[3, 2, 1, 0, 1] is not a finite number", result.stderr)
            status = json.loads((self.folder / f"run {ranks}/status.json").read_text())
            self.assertEqual(status["exit_code"], 65)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
