# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""What a model was trained to see goes with its weights: inputs_test.py CAROUSEL PROJECT.

Other statistics or names of classes than those of the training are refused, or those of the training
are taken; never is a number wrong in silence.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy

CAROUSEL, PROJECT = sys.argv[1], pathlib.Path(sys.argv[2])
DECK = PROJECT / "inputs/digits.toml"
DIGITS = PROJECT / "inputs/digits.h5"
FOLDER = pathlib.Path(tempfile.mkdtemp())


def run(*words, code=0):
    result = subprocess.run([CAROUSEL, *map(str, words)], cwd=FOLDER, text=True,
                            capture_output=True, timeout=100)
    assert result.returncode == code, (words, result.returncode, result.stdout + result.stderr)
    return result.stdout + result.stderr


def deck(output, *words):
    return DECK, f"run.output={output}", "engine.threads=1", *words


def train(output, *words, code=0):
    return run("train", *deck(output, *words), code=code)


def accuracy(told):
    return float(re.search(r"accuracy ([\d.]+)", told)[1])


def digits(name, **attributes):
    """The digits with other attributes."""
    path = FOLDER / name
    shutil.copy(DIGITS, path)
    with h5py.File(path, "r+") as file:
        for key, value in attributes.items():
            file.attrs[key] = value
    return path


def without_inputs(path, name):
    """A checkpoint as earlier versions wrote it."""
    shutil.copy(path, FOLDER / name)
    with h5py.File(FOLDER / name, "r+") as file:
        del file["inputs"]
    return name


NAMES = [f"digit {k}" for k in range(10)]
TURNED = NAMES[1:] + NAMES[:1]


class Inputs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.data = digits("data.h5", class_names=numpy.array(NAMES, "S"))
        cls.darker = digits("darker.h5", mean=[0.9], std=[0.05],
                            class_names=numpy.array(NAMES, "S"))
        cls.turned = digits("turned.h5", class_names=numpy.array(TURNED, "S"))
        cls.fewer = digits("fewer.h5", class_names=numpy.array(NAMES[:9], "S"))
        with h5py.File(cls.fewer, "r+") as file:
            for half in ("train", "test"):
                file[f"{half}/labels"][:] = numpy.minimum(file[f"{half}/labels"][:], 8)
        train("run", f"data.file={cls.data}", "train.epochs=4")
        cls.last = FOLDER / "run/checkpoints/last.h5"
        cls.right = accuracy(run("eval", "run", cls.data))

    def test_a_checkpoint_tells_its_inputs(self):
        with h5py.File(self.last) as checkpoint, h5py.File(self.data) as data:
            told = checkpoint["inputs"].attrs
            for name in ("mean", "std"):
                numpy.testing.assert_array_equal(told[name], data.attrs[name])
            self.assertEqual([name.decode() for name in told["class_names"]], NAMES)
            self.assertEqual([int(told[side]) for side in ("channels", "height", "width")], [1, 8, 8])
        self.assertIn("10: digit 0, digit 1,", run("inspect", self.last))
        told = json.loads(run("inspect", "--json", self.last))[0]["inputs"]
        self.assertEqual((told["shape"], told["class_names"]), ([1, 8, 8], NAMES))
        # The plan counts them, and the deck, which is in the file, too.
        said = run("plan", *deck("run", f"data.file={self.data}", "train.epochs=4"))
        planned = re.search(r"checkpoint +([\d.]+ \w+)", said)
        self.assertEqual(planned[1], f"{self.last.stat().st_size / 1024:.1f} KiB")

    def test_eval_refuses_what_was_not_trained(self):
        self.assertGreater(self.right, 0.9)
        line = run("eval", "run", self.darker, code=2)
        self.assertRegex(line, r"darker.h5: mean is \[0.9\], and run/checkpoints/last.h5 was trained "
                               r"with \[0.30[\d]+\]; .*--as-trained")
        self.assertEqual(accuracy(run("eval", "run", self.darker, "--as-trained")), self.right)
        line = run("eval", "run", self.turned, code=2)
        self.assertIn("turned.h5: class 0 is digit 1, and run/checkpoints/last.h5 was trained with "
                      "digit 0; give data of the same kind\n", line)
        run("eval", "run", self.turned, "--as-trained", code=2)  # of statistics alone
        other = digits("other_std.h5", std=[0.2], class_names=numpy.array(NAMES, "S"))
        self.assertIn("other_std.h5: std is [0.2], ", run("eval", "run", other, code=2))
        # Single precision is no difference.
        with h5py.File(self.data) as data:
            rounded = digits("rounded.h5", class_names=numpy.array(NAMES, "S"),
                             **{name: data.attrs[name].astype("f4") for name in ("mean", "std")})
        self.assertEqual(accuracy(run("eval", "run", rounded)), self.right)

    def test_shapes_count_where_features_do_not(self):
        flat = FOLDER / "flat.h5"
        shutil.copy(self.data, flat)
        with h5py.File(flat, "r+") as file:
            for half in ("train", "test"):
                images = file[f"{half}/images"][:].reshape(-1, 1, 4, 16)
                del file[f"{half}/images"]
                file[f"{half}/images"] = images
        self.assertIn("shape of an input is 1x4x16, and", run("eval", "run", flat, code=2))

    def test_a_run_goes_on_with_its_inputs(self):
        for data, word in ((self.darker, "mean is [0.9]"), (self.turned, "class 0 is digit 1")):
            line = train("run", f"data.file={data}", "run.resume=auto", "train.epochs=5", code=2)
            self.assertIn(f'command line: data.file = "{data}": {word}, and run/checkpoints/step-', line)
        # Also from weights, which were never trained on any data.
        run("export", "weights", self.last, "w.h5")
        run("import", "weights", "w.h5", DECK, "first.h5", f"data.file={self.data}")
        self.assertIn("mean is [0.9]", train("from_first", f"data.file={self.darker}",
                                             "run.resume=first.h5", code=2))
        train("from_first", f"data.file={self.data}", "run.resume=first.h5", "train.epochs=1")

    def test_a_start_takes_statistics_along(self):
        words = [f"data.file={self.darker}", f"train.start={self.last}", "train.epochs=1",
                 "train.optimizer.learning_rate=0"]
        self.assertIn("data.augment.mean = [0.30", train("valid", *words, "--validate"))
        self.assertIn("that of darker.h5 is [0.9]", train("tuned", *words).replace(f"{FOLDER}/", ""))
        tuned = FOLDER / "tuned/checkpoints/last.h5"
        # A rate of 0 keeps the weights, so that only right inputs give the right number.
        self.assertEqual(accuracy(run("eval", "tuned", self.darker)), self.right)
        self.assertEqual(accuracy(run("eval", "tuned", self.data)), self.right)
        # The deck that named the weights goes on without them, and so does the folder.
        moved = FOLDER / "moved.h5"
        self.last.resolve().rename(moved)
        try:
            train("tuned", *words[:2], "train.epochs=2", "run.resume=auto",
                  "train.optimizer.learning_rate=0")
            run("train", "tuned", "train.epochs=3")
        finally:
            moved.rename(self.last.resolve())
        self.assertIn("All checks passed", run("verify", "tuned"))
        self.assertEqual(accuracy(run("eval", tuned, self.darker)), self.right)
        # What the deck gives counts, aloud.
        told = train("own", *words, "data.augment.mean=[0.9]", "data.augment.std=[0.05]")
        self.assertRegex(told, r"data.augment.mean = \[0.9\] is of the deck; \S+ was trained with "
                               r"\[0.30\d+\]")
        self.assertLess(accuracy(run("eval", "own", self.darker)), 0.5)

    def test_a_start_of_other_classes_needs_a_new_head(self):
        for data, word in ((self.turned, "class 0 is digit 0, and in turned.h5 it is digit 1"),
                           (self.fewer, "data set is 10 classes (digit 0, digit 1, digit 2, ...), "
                                        "and in fewer.h5 it is 9 classes (")):
            words = [f"data.file={data.name}", f"train.start={self.last}", "train.epochs=1"]
            words += ["model.widths=[64,64,64,64,9]"] if data == self.fewer else []
            for extra in (["--validate"], []):
                line = train("anew", *words, *extra, code=2)
                self.assertIn(word, line)
                self.assertIn("train.new_head = true", line)
            self.assertFalse((FOLDER / "anew").exists())
        train("anew", *words, "train.new_head=true")
        with h5py.File(FOLDER / "anew/checkpoints/last.h5") as file:
            self.assertEqual(len(file["inputs"].attrs["class_names"]), 9)

    def test_weights_carry_inputs(self):
        run("export", "weights", self.last, "weights.h5")
        with h5py.File(FOLDER / "weights.h5") as file:
            self.assertEqual(len(file), 8)  # a state_dict and nothing else
            self.assertEqual(file.attrs["class_names"][9], b"digit 9")
        told = run("import", "weights", "weights.h5", DECK, "again.h5", f"data.file={self.darker}")
        self.assertIn("data.augment.mean = [0.30", told)
        self.assertEqual(accuracy(run("eval", "again.h5", self.darker)), self.right)
        self.assertIn("class 0 is digit 0", run("import", "weights", "weights.h5", DECK, "turned.c.h5",
                                                f"data.file={self.turned}", code=2))

    def test_imported_weights_have_those_of_their_data(self):
        with h5py.File(self.last) as checkpoint, h5py.File(FOLDER / "plain.h5", "w") as file:
            for name, tensor in checkpoint["parameters"].items():
                file[name] = tensor[()]
        run("import", "weights", "plain.h5", DECK, "plain.c.h5", f"data.file={self.data}")
        self.assertEqual(accuracy(run("eval", "plain.c.h5", self.data)), self.right)
        self.assertIn("mean is [0.9]", run("eval", "plain.c.h5", self.darker, code=2))

    def test_a_run_replaces_nothing_that_it_reads(self):
        def refused(output, word, *words):
            folder = FOLDER / output
            before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
            for extra in (["--validate"], []):
                line = run("train", *words, f"run.output={output}", "--overwrite", *extra, code=2)
                self.assertRegex(line, f"{word} of this run, and --overwrite would delete it; set "
                                       "run.output to another folder")
            self.assertEqual(before, {path: path.read_bytes() for path in folder.rglob("*")
                                      if path.is_file()})

        data = f"data.file={self.data}"
        train("read", data, "train.epochs=1")
        last = FOLDER / "read/checkpoints/last.h5"
        (FOLDER / "link.h5").symlink_to(last.resolve())
        for start in (last, last.resolve(), "link.h5", "../" + FOLDER.name + "/link.h5"):
            refused("read", "step-00000022.h5: is train.start|last.h5: is train.start", DECK, data,
                    f"train.start={start}")
        shutil.copytree(FOLDER / "read", FOLDER / "kept", symlinks=True)
        os.link(self.data, FOLDER / "kept/ranks/0007.h5")
        refused("kept", "ranks/0007.h5: is data.file", DECK, data)
        shutil.copy(DECK, FOLDER / "kept/checkpoints/step-00000099.h5")
        refused("kept", "step-00000099.h5: is the deck", "kept/checkpoints/step-00000099.h5",
                f"data.file={DIGITS}")
        # Through a link it is not plain that a checkpoint is the run's own.
        line = train("read", data, "run.resume=link.h5", "--overwrite", "train.epochs=2", code=2)
        self.assertIn("is run.resume of this run", line)
        train("read", data, f"run.resume={last}", "--overwrite", "train.epochs=2")
        run("train", "read", data, "--overwrite", "run.resume=off", "train.epochs=1")

    def test_a_checkpoint_that_does_not_tell_is_read(self):
        old = without_inputs(self.last, "old.h5")
        told = run("eval", old, self.darker)
        self.assertIn("note: old.h5 does not tell mean, std and classes", told)
        self.assertLess(accuracy(told), 0.5)
        self.assertEqual(accuracy(run("eval", old, self.data)), self.right)
        self.assertIn("old.h5: does not tell", run("eval", old, self.data, "--as-trained", code=2))
        train("from_old", f"data.file={self.turned}", f"train.start={old}", "train.epochs=1")
        train("on_old", f"data.file={self.data}", f"run.resume={old}", "train.epochs=5")
        run("export", "weights", old, "old.w.h5")

    def test_many_classes(self):
        names = [f"a class whose name is rather long, number {k}" for k in range(5000)]
        many = digits("many.h5", class_names=numpy.array(names, "S"))
        train("many", f"data.file={many}", "model.widths=[64,8,5000]", "parallel.stages=1",
              "train.epochs=1")
        told = json.loads(run("inspect", "--json", "many/checkpoints/last.h5"))[0]
        self.assertEqual(told["inputs"]["class_names"], names)


if __name__ == "__main__":
    try:
        unittest.main(argv=sys.argv[:1])
    finally:
        shutil.rmtree(FOLDER)
