# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Weights in and out of checkpoints, with the very lines of inputs/README, and what is refused.

Usage: weights_test.py CAROUSEL PROJECT. No engine is needed, and no PyTorch: modules of its names
stand in for it, and tests/reference/torchvision_names.json knows what a state_dict holds.
"""

import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy

from dataset import write_dataset

CAROUSEL, PROJECT = sys.argv[1], pathlib.Path(sys.argv[2])

DECK = """[run]
name = "a"
output = "runs/a"
[model]
name = "resnet"
depth = 8
stem = "cifar"
[data]
file = "data.h5"
[train]
micro_batch_size = 2
steps = 5
[train.optimizer]
momentum = 0.9
"""

# A model with random numbers of all sizes and, but for variances, both signs, which loads only what
# it gave away.
TORCH = """import numpy

class Tensor:
    def __init__(self, values): self.values = values
    def numpy(self): return self.values

from_numpy = Tensor

class Model:
    def __init__(self, tensors):
        random = numpy.random.default_rng(1)
        self.tensors = {name: random.standard_normal(shape).astype(numpy.float32)
                        for name, shape in tensors.items()}
        for name, values in self.tensors.items():
            if name.endswith("running_var"): numpy.abs(values, out=values)
    def state_dict(self):
        counter = {"bn1.num_batches_tracked": numpy.array(7)}
        return {name: Tensor(values) for name, values in (self.tensors | counter).items()}
    def load_state_dict(self, given):
        assert given.keys() == self.tensors.keys()
        for name, values in self.tensors.items():
            # A build in double precision writes float64, which PyTorch rounds to what it holds.
            taken = given[name].numpy().astype(values.dtype)
            assert taken.tobytes() == values.tobytes(), name
        print("all the same")
"""
TORCHVISION = """import json, torch

class models:
    @staticmethod
    def resnet18(weights):
        return torch.Model(json.load(open(%r))["resnet18 imagenet"])
"""


class Weights(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "x.toml").write_text(DECK)
        write_dataset(self.folder / "data.h5", (3, 32, 32))

    def carousel(self, *words, code=0):
        result = subprocess.run([CAROUSEL, *map(str, words)], cwd=self.folder, text=True,
                                capture_output=True, timeout=60)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def refused(self, code, *words):
        line = self.carousel(*words, code=code).stderr
        self.assertEqual(line.count("\n"), 1, line)
        return line

    def weights(self, name="w.h5", dtype=numpy.float32):
        """Random weights of the deck's network, in a file and as a dictionary."""
        names = json.loads((PROJECT / "tests/reference/torchvision_names.json").read_text())
        random = numpy.random.default_rng(2)
        tensors = {key: random.standard_normal(shape).astype(dtype)
                   for key, shape in names["resnet8 cifar"].items()}
        for key in tensors:
            if key.endswith("running_var"):
                numpy.abs(tensors[key], out=tensors[key])
        with h5py.File(self.folder / name, "w") as file:
            for key, values in tensors.items():
                file[key] = values
        return tensors

    def exported(self, checkpoint):
        self.carousel("export", "weights", checkpoint, "out.h5", "--overwrite")
        with h5py.File(self.folder / "out.h5") as file:
            return {key: values[()] for key, values in file.items()}

    def assert_same(self, given, expected):
        self.assertEqual(given.keys(), expected.keys())
        for key, values in expected.items():
            numpy.testing.assert_array_equal(given[key], values, key)

    def test_readme_moves_weights_both_ways(self):
        write_dataset(self.folder / "data.h5", (3, 64, 64), 4, 1000)
        stand_in = self.folder / "stand_in"
        stand_in.mkdir()
        (stand_in / "torch.py").write_text(TORCH)
        names = str(PROJECT / "tests/reference/torchvision_names.json")
        (stand_in / "torchvision.py").write_text(TORCHVISION % names)
        section = (PROJECT / "inputs/README.md").read_text().split("## Weights in and out")[1]
        write, read = re.findall(r"```python\n(.*?)```", section, re.DOTALL)[:2]
        commands = re.findall(r"^    carousel ((?:import|export) .*)$", section, re.MULTILINE)
        self.assertEqual(len(commands), 2)
        deck = DECK.replace("depth = 8", "depth = 18").replace('"cifar"', '"imagenet"').replace(
            "[train]", '[parallel]\nrule = "dp"\n[train]').replace("momentum = 0.9", "")
        (self.folder / "DECK").write_text(deck)

        def python(program):
            path = f"import sys; sys.path.insert(0, {str(stand_in)!r})\n"
            result = subprocess.run([sys.executable, "-c", path + program], cwd=self.folder,
                                    text=True, capture_output=True)
            self.assertEqual(result.returncode, 0, result.stderr)
            return result.stdout

        python(write)
        for command in commands:
            self.carousel(*command.split())
        self.assertEqual(python(write + read), "all the same\n")

    def test_a_checkpoint_is_whole(self):
        weights = self.weights()
        said = self.carousel("import", "weights", "w.h5", "x.toml", "c.h5").stdout
        self.assertIn(f"resnet8 with {len(weights)} tensors", said)
        self.assertIn("0 steps done", self.carousel("inspect", "c.h5").stdout)
        with h5py.File(self.folder / "c.h5") as file:
            for key, values in weights.items():
                group = "buffers" if "running" in key else "parameters"
                numpy.testing.assert_array_equal(file[group][key], values)
                if group == "parameters":
                    numpy.testing.assert_array_equal(file["previous"][key], values)
                    self.assertFalse(file["optimizer/momentum"][key][()].any())
            self.assertEqual({*file["parameters"], *file["buffers"]}, weights.keys())
        self.assert_same(self.exported("c.h5"), weights)
        self.assertIn("layer3.0.downsample.1.running_var", self.carousel("inspect", "out.h5").stdout)
        self.carousel("import", "weights", "w.h5", "x.toml", "d.h5", "parallel.rule=dp",
                      "train.optimizer.momentum=0")
        with h5py.File(self.folder / "d.h5") as file:
            self.assertEqual({*file}, {"info", "inputs", "parameters", "buffers"})

    def test_a_new_head_for_own_classes(self):
        def imported(*words):
            self.carousel("import", "weights", "w.h5", "x.toml", "c.h5", "--overwrite",
                          "train.new_head=true", *words)
            return self.exported("c.h5")

        weights = self.weights()
        with h5py.File(self.folder / "w.h5", "r+") as file:  # of 1,000 classes
            for key, shape in (("fc.weight", (1000, 64)), ("fc.bias", (1000,))):
                del file[key]
                file[key] = numpy.ones(shape, "f4")
        self.assertIn("train.new_head=true leaves the last layer out",
                      self.refused(65, "import", "weights", "w.h5", "x.toml", "c.h5"))
        found = imported()
        for key, values in weights.items():
            if not key.startswith("fc."):
                numpy.testing.assert_array_equal(found[key], values, key)
        # Kaiming-uniform numbers of the seed, not those of the file.
        self.assertEqual(found["fc.weight"].shape, (10, 64))
        self.assertEqual(len(numpy.unique(found["fc.weight"])), 640)
        self.assertLessEqual(abs(found["fc.weight"]).max(), 64**-0.5)
        self.assertFalse((found["fc.weight"] == imported("run.seed=2")["fc.weight"]).any())
        # A deck that trains from the checkpoint says the same, and its file may have no head at all.
        deck = (self.folder / "x.toml").read_text()
        (self.folder / "x.toml").write_text(
            deck.replace("steps = 5", 'steps = 5\nstart = "c.h5"\nnew_head = true'))
        with h5py.File(self.folder / "w.h5", "r+") as file:
            del file["fc.weight"], file["fc.bias"]
        self.carousel("import", "weights", "w.h5", "x.toml", "c.h5", "--overwrite")
        self.assert_same(self.exported("c.h5"), found)
        # What was done stands in no deck any more.
        with h5py.File(self.folder / "c.h5") as file:
            stored = file["info"].attrs["deck"].decode()
        self.assertIn("new_head = false", stored)
        self.assertNotIn("start =", stored)

    def test_double_precision_and_groups(self):
        weights = self.weights(dtype=numpy.float64)
        with h5py.File(self.folder / "w.h5", "r+") as file:
            file.move("layer1.0.bn1.weight", "layer1/0/bn1/weight")
            file["bn1.num_batches_tracked"] = 5
        self.carousel("import", "weights", "w.h5", "x.toml", "c.h5")
        found = self.exported("c.h5")
        precision = found["conv1.weight"].dtype
        self.assert_same(found, {key: values.astype(precision) for key, values in weights.items()})

    def safetensors(self, name, tensors, metadata=None):
        """Writes a file of arrays by name: of float32, or as bytes with (type, shape, bytes)."""
        header, numbers = {"__metadata__": metadata} if metadata else {}, b""
        for key, values in tensors.items():
            kind, shape, content = values if isinstance(values, tuple) else (
                "F64" if values.dtype == numpy.float64 else "F32", values.shape, values.tobytes())
            header[key] = {"dtype": kind, "shape": list(shape),
                           "data_offsets": [len(numbers), len(numbers) + len(content)]}
            numbers += content
        text = json.dumps(header).encode()
        (self.folder / name).write_bytes(struct.pack("<Q", len(text)) + text + numbers)

    def read_safetensors(self, name):
        content = (self.folder / name).read_bytes()
        size = struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8:8 + size])
        metadata = header.pop("__metadata__")
        kinds = {"F32": numpy.float32, "F64": numpy.float64}
        return metadata, {key: numpy.frombuffer(
            content[8 + size:][slice(*of["data_offsets"])], kinds[of["dtype"]]).reshape(of["shape"])
            for key, of in header.items()}

    def test_safetensors_both_ways(self):
        weights = self.weights()
        self.safetensors("w.safetensors", weights | {
            "bn1.num_batches_tracked": ("I64", (), bytes(8))})
        self.carousel("import", "weights", "w.safetensors", "x.toml", "c.h5")
        said = self.carousel("export", "weights", "c.h5", "out.safetensors").stdout
        self.assertIn("parameters and buffers of c.h5 after 0 steps", said)
        metadata, found = self.read_safetensors("out.safetensors")
        self.assertEqual(metadata["format"], "pt")
        self.assertIn("micro_batch_size = 2", metadata["carousel.deck"])
        self.assert_same(self.exported("c.h5"), {key: values.astype(found[key].dtype)
                                                 for key, values in weights.items()})
        self.assert_same(found, self.exported("c.h5"))
        # What the file says of inputs is taken, as from HDF5.
        self.carousel("import", "weights", "out.safetensors", "x.toml", "d.h5",
                      "data.augment.mean=[0.1,0.2,0.3]")
        inputs = json.loads(metadata["carousel.inputs"])
        self.assertEqual(inputs["shape"], [3, 32, 32])
        self.assertEqual(len(inputs["class_names"]), 10)
        inputs["class_names"][3] = "another"
        self.safetensors("other.safetensors", weights, {"carousel.inputs": json.dumps(inputs)})
        line = self.refused(2, "import", "weights", "other.safetensors", "x.toml", "e.h5")
        self.assertIn("other.safetensors: class 3 is another", line)
        self.assertIn("train.new_head = true learns other classes", line)
        # Half precision is rounded to nothing.
        halves = {key: values.astype(numpy.float16) for key, values in weights.items()}
        self.safetensors("half.safetensors", {key: ("F16", values.shape, values.tobytes())
                                              for key, values in halves.items()})
        self.carousel("import", "weights", "half.safetensors", "x.toml", "d.h5", "--overwrite")
        found = self.exported("d.h5")
        self.assert_same(found, {key: values.astype(found[key].dtype)
                                 for key, values in halves.items()})
        # Only a file of the same kind is replaced.
        self.assertIn("w.h5: already exists", self.refused(2, "export", "weights", "c.h5", "w.h5"))
        (self.folder / "x.safetensors").write_bytes((self.folder / "w.h5").read_bytes())
        self.assertIn("is no safetensors file", self.refused(
            2, "export", "weights", "c.h5", "x.safetensors", "--overwrite"))
        self.carousel("export", "weights", "c.h5", "out.safetensors", "--overwrite")

    def test_broken_safetensors(self):
        weights = self.weights()

        def refused(name="w.safetensors"):
            line = self.refused(65, "import", "weights", name, "x.toml", "c.h5")
            self.assertFalse((self.folder / "c.h5").exists())
            self.assertTrue(line.startswith(f"carousel: {name}: "), line)
            return line

        self.safetensors("w.safetensors", weights | {"fc.bias": ("I64", (10,), bytes(80))})
        self.assertIn("fc.bias holds I64", refused())
        self.safetensors("w.safetensors", weights)
        whole = (self.folder / "w.safetensors").read_bytes()
        (self.folder / "w.safetensors").write_bytes(whole[:-4])
        self.assertIn("was it cut off?", refused())
        self.safetensors("w.safetensors", weights, {"carousel.inputs": "{}"})
        self.assertIn("carousel.inputs of its metadata is not what Carousel writes", refused())

    def test_some_tensors_alone(self):
        weights = self.weights()
        first = {key: values for key, values in weights.items() if key.startswith("layer1.")}
        with h5py.File(self.folder / "w.h5", "w") as file:
            for key, values in first.items():
                file[key] = values
            file["decoder.weight"] = numpy.zeros(3)
        only = 'train.start_only=["layer1.*"]'
        said = self.carousel("import", "weights", "w.h5", "x.toml", "c.h5", only).stdout
        self.assertIn(f"with {len(first)} tensors", said)
        self.assertIn("and first values of bn1.bias, bn1.running_mean, bn1.running_var, bn1.weight "
                      f"and {len(weights) - len(first) - 4} more", said)
        found = self.exported("c.h5")
        self.assertEqual(found.keys(), weights.keys())
        for key, values in first.items():
            numpy.testing.assert_array_equal(found[key], values, key)
        # The others are those of the seed, buffers too.
        self.assertTrue((found["layer2.0.bn1.weight"] == 1).all())
        self.assertFalse(found["bn1.running_mean"].any())
        self.assertGreater(len(numpy.unique(found["conv1.weight"])), 400)
        # Training by that deck does not ask for them again.
        with h5py.File(self.folder / "c.h5") as file:
            self.assertNotIn("start_only", file["info"].attrs["deck"].decode())
        line = self.refused(2, "import", "weights", "w.h5", "x.toml", "d.h5",
                            'train.start_only=["layer1.*", "encoder.*"]')
        self.assertIn("train.start_only: 'encoder.*' matches no tensor of resnet8; the first one is "
                      "conv1.weight", line)
        self.assertIn("layer2.0.downsample.0.weight [32, 16, 1, 1] of resnet8 is missing\n", self.refused(
            65, "import", "weights", "w.h5", "x.toml", "d.h5", 'train.start_only=["layer?.*"]'))

    def test_averages_of_an_imported_network_are_it_itself(self):
        weights = self.weights()
        self.carousel("import", "weights", "w.h5", "x.toml", "c.h5", "train.ema=0.9")
        with h5py.File(self.folder / "c.h5") as file:
            numpy.testing.assert_array_equal(file["ema/conv1.weight"], weights["conv1.weight"])
            self.assertNotIn("ema", file["optimizer"])
        said = self.carousel("export", "weights", "c.h5", "out.h5").stdout
        self.assertIn("averages of parameters (ema) and buffers of c.h5", said)
        self.assert_same(self.exported("c.h5"), weights)

    def test_what_does_not_fit_is_named(self):
        def refused(change):
            self.weights()
            with h5py.File(self.folder / "w.h5", "r+") as file:
                change(file)
            line = self.refused(65, "import", "weights", "w.h5", "x.toml", "c.h5")
            self.assertFalse((self.folder / "c.h5").exists())
            self.assertTrue(line.startswith("carousel: w.h5: "), line)
            return line

        def replace(file, key, values):
            del file[key]
            file[key] = values

        self.assertIn("layer2.0.bn2.running_var [32] of resnet8 is missing\n",
                      refused(lambda f: f.pop("layer2.0.bn2.running_var")))
        self.assertIn("conv1.weight [16, 3, 3, 3] of resnet8 is missing; the file has "
                      "module.conv1.weight, which is unknown",
                      refused(lambda f: f.move("conv1.weight", "module.conv1.weight")))
        self.assertIn("layer4.0.conv1.weight is not a tensor of resnet8",
                      refused(lambda f: f.create_dataset("layer4.0.conv1.weight", data=[1.0])))
        self.assertIn("fc.weight has shape [1000, 64], the model needs [10, 64]",
                      refused(lambda f: replace(f, "fc.weight", numpy.zeros((1000, 64)))))
        self.assertIn("bn1.bias holds int64",
                      refused(lambda f: replace(f, "bn1.bias", numpy.arange(16))))
        self.assertIn("number 3 of bn1.bias is not finite", refused(
            lambda f: replace(f, "bn1.bias", numpy.where(numpy.arange(16) == 3, numpy.nan, 0))))
        self.assertIn("number 0 of bn1.running_var is negative", refused(
            lambda f: replace(f, "bn1.running_var", -numpy.ones(16))))

        def write_part(file, rows):
            values = file["fc.weight"][:]
            del file["fc.weight"]
            made = file.create_dataset("fc.weight", values.shape, "f4", chunks=(2, 64))
            made[:rows] = values[:rows]

        self.assertIn("only 2 of the 5 chunks of /fc.weight were ever written",
                      refused(lambda f: write_part(f, 4)))
        self.assertIn("/fc.weight was created but never written",
                      refused(lambda f: write_part(f, 0)))

        def loop(file):
            file["loop"] = file["/"]

        self.assertIn("groups nested too deeply", refused(loop))
        self.assertIn("/bn1/bias and /bn1.bias are the same tensor",
                      refused(lambda f: f.copy("bn1.bias", "bn1/bias")))
        (self.folder / "w.h5").write_text("no HDF5")
        self.refused(65, "import", "weights", "w.h5", "x.toml", "c.h5")

    def test_files(self):
        self.weights()
        words = ("weights", "w.h5", "x.toml", "c.h5")
        self.assertIn("none.h5", self.refused(74, "import", "weights", "none.h5", "x.toml", "c.h5"))
        self.assertIn("model.depth = 9", self.refused(2, "import", *words, "model.depth=9"))
        self.refused(74, "import", *words[:3], "none/c.h5")
        self.carousel("import", *words)
        self.assertIn("--overwrite", self.refused(2, "import", *words))
        self.carousel("import", *words, "--overwrite")
        self.assertIn("--overwrite", self.refused(2, "export", "weights", "c.h5", "w.h5"))
        # What is read is never what is written, by whatever name.
        os.link(self.folder / "c.h5", self.folder / "hard.h5")
        (self.folder / "soft.h5").symlink_to("c.h5")
        before = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        for name in ("c.h5", "./c.h5", "hard.h5", "soft.h5", self.folder / "c.h5"):
            self.assertIn("is the checkpoint, which would be lost", self.refused(
                2, "export", "weights", "c.h5", name, "--overwrite"))
        self.assertIn("is the checkpoint", self.refused(
            2, "export", "weights", "soft.h5", "c.h5", "--overwrite"))
        for name, what in (("w.h5", "the file of the weights"), ("x.toml", "the deck"),
                           ("data.h5", "data.file of the deck")):
            self.assertIn(f"{name}: is {what}, which would be lost", self.refused(
                2, "import", *words[:3], name, "--overwrite"))
        (self.folder / "folder").mkdir()
        for name in ("/dev/null", "folder"):
            self.assertIn("is a folder or device", self.refused(
                2, "export", "weights", "c.h5", name, "--overwrite"))
        (self.folder / "folder").rmdir()
        (self.folder / "notes.txt").write_text("notes")
        before["notes.txt"] = b"notes"
        for command in (("export", "weights", "c.h5"), ("import", *words[:3])):
            self.assertIn("notes.txt: is no HDF5 file, and so nothing to replace",
                          self.refused(2, *command, "notes.txt", "--overwrite"))
        self.assertEqual(before, {path.name: path.read_bytes() for path in self.folder.iterdir()})
        self.refused(65, "export", "weights", "w.h5", "out.h5")
        self.refused(74, "export", "weights", "none.h5", "out.h5")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
