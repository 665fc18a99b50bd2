# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""From files of pictures to a network: pictures_test.py CAROUSEL MPIEXEC.

Pictures of several sizes are imported, augmented and learned, with the same bits however many threads
read them and in whatever placement.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy

from drawn import png

CAROUSEL, MPIEXEC = sys.argv[1:3]
DECK = """
[run]
name = "pictures"
output = "run"
[model]
name = "resnet"
depth = 8
stem = "cifar"
[data]
file = "pictures.h5"
[data.augment]
size = 16
resize = 20
crop = "resized"
scale = [0.3, 1.0]
flip = 0.5
[parallel]
rule = "cdp-v2"
placement = "single"
micro_batches = 2
stages = 2
[train]
micro_batch_size = 10
epochs = 4
[train.optimizer]
name = "sgd"
learning_rate = 0.05
[checkpoint]
every_steps = 5
[profile]
audit = true
"""


class Pictures(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        random = numpy.random.default_rng(3)
        for half, count in (("train", 30), ("test", 11)):
            for name, red in (("day", 190), ("night", 60)):
                (self.folder / f"set/{half}/{name}").mkdir(parents=True)
                for k in range(count):
                    pixels = random.integers(0, 120, (*random.integers(12, 70, 2), 3))
                    pixels[..., 0] = pixels[..., 0] // 2 + red
                    (self.folder / f"set/{half}/{name}/{k:02}.png").write_bytes(
                        png(pixels.astype(numpy.uint8)))
        (self.folder / "deck.toml").write_text(DECK)
        self.carousel("import", "images", "set", "pictures.h5")

    def carousel(self, *words, ranks=1, code=0):
        before = [MPIEXEC, "-n", str(ranks)] if ranks > 1 else []
        result = subprocess.run([*before, CAROUSEL, *words], cwd=self.folder, text=True,
                                capture_output=True, timeout=100)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout + result.stderr

    def train(self, name, *words, **keywords):
        return self.carousel("train", "deck.toml", f"run.output={name}", *words, **keywords)

    def test_bits_depend_on_no_threads_and_no_placement(self):
        self.train("whole")
        self.assertIn("All checks passed", self.carousel("verify", "whole"))
        self.train("threads", "data.workers=4")
        self.train("ranks", "parallel.placement=replicated", "data.workers=2", ranks=2)
        self.train("parts", "train.schedule.name=constant", "run.wall_clock=00:00:00", code=75)
        self.carousel("train", "parts", "run.wall_clock=", "parallel.placement=pipeline")
        for other in ("threads", "ranks", "parts"):
            self.assertIn("bit for bit", self.carousel("diff", "whole", other))
            self.assertIn("All checks passed", self.carousel("verify", other))
        self.assertIn("data wait", self.carousel("inspect", "whole"))
        # It learns, and what it learned is judged alike in and after the run.
        with h5py.File(self.folder / "whole/run.h5") as file:
            loss, accuracy = (file["evaluations/" + what][-1] for what in ("loss", "accuracy"))
            self.assertLess(file["steps/loss"][-2:].mean(), file["steps/loss"][:2].mean())
        told = self.carousel("eval", "whole/checkpoints/last.h5", "pictures.h5")
        self.assertIn(f"loss {loss:.6f}, accuracy {accuracy:.4f}", told)
        classes = re.findall(r"^  (day|night) +(\d+) +([\d.]+)$", told, re.M)
        self.assertEqual([(name, samples) for name, samples, _ in classes],
                         [("day", "11"), ("night", "11")])
        self.assertAlmostEqual(sum(float(share) for _, _, share in classes) / 2, accuracy, 4)

    def test_augmentation_changes_what_is_learned(self):
        self.train("augmented")
        for word in ("data.augment.flip=0", "data.augment.scale=[0.3,0.9]", "run.seed=2",
                     "data.augment.mean=[0.5,0.5,0.5]"):
            self.train("other", word, "--overwrite")
            self.carousel("diff", "augmented", "other", code=3)

    def test_what_does_not_fit(self):
        for words, reason in (
                (["data.augment.size=", "data.augment.resize=", "data.augment.crop=",
                  "data.augment.scale="], "data.augment.size is missing: the pictures of"),
                (["data.augment.mean=[0.5]"], "data.augment.mean has 1 values"),
                (["data.augment.resize=15"], "= 15 is less than data.augment.size = 16"),
                (["data.augment.scale=[0.5]"], "must be two numbers, the smaller one first"),
                (["data.augment.ratio=[2,1]"], "must be two numbers, the smaller one first")):
            told = self.train("run", *words, code=2)
            self.assertEqual(told.count("\n"), len(re.findall("carousel: ", told)) + told.count("\n    "),
                             told)
            self.assertIn(reason, told.replace("\n    ", " "))

    def test_damage_is_found(self):
        path = self.folder / "pictures.h5"
        with h5py.File(path) as file:
            middle = file["train/images"].id.get_offset() + file["train/images"].size // 2
        with open(path, "r+b") as file:
            file.seek(middle)
            byte = file.read(1)[0]
            file.seek(middle)
            file.write(bytes([byte ^ 1]))
        told = self.train("run", code=65)
        self.assertIn("/train/images is damaged in its MiB 1 of 1", told.replace("\n    ", " "))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
