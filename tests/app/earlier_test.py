# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""What an earlier program wrote stays readable: its decks, data sets, checkpoints and run folders.

Usage: earlier_test.py CAROUSEL FOLDER. FOLDER is named after the commit whose program wrote what
lies in it; the numbers below are what that program printed of its own uninterrupted runs.
"""

import csv
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy

from dataset import write_dataset

CAROUSEL, WRITTEN = sys.argv[1], pathlib.Path(sys.argv[2])

# Processors differ in how they round.
TOLERANCE = 1e-3
MLP_LOSSES = [2.985048532, 3.165908813, 2.533769846, 2.758297443, 2.515629768, 1.971608877,
              2.264629364, 2.278280020, 1.791713238, 1.936091304, 2.537671328, 2.168307781]
MLP_EVALUATIONS = [(4, 2.852), (8, 2.583389513), (12, 2.478990739)]
RESNET_LOSSES = [0.543027997, 0.822329879, 0.558817387]
RESNET_EVALUATIONS = [(1, 0.6372), (2, 0.600094713), (3, 0.579579843)]


class Earlier(unittest.TestCase):
    def setUp(self):
        self.parent = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.parent)
        # The project has moved since.
        self.folder = self.parent / "moved"
        shutil.copytree(WRITTEN, self.folder, symlinks=True)

    def carousel(self, *arguments):
        done = subprocess.run([CAROUSEL, *map(str, arguments)], capture_output=True, text=True,
                              cwd=self.folder, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def column(self, run, table, name):
        rows = csv.DictReader(self.carousel("inspect", run, "--csv", table).splitlines())
        return [float(row[name]) for row in rows]

    def check_goes_on(self, run, losses, evaluations):
        self.assertIn(f"{run}: done after", self.carousel("verify", run))
        self.carousel("train", f"{run}.toml", "run.resume=auto", f"train.steps={len(losses)}")
        numpy.testing.assert_allclose(self.column(run, "steps", "loss"), losses, rtol=TOLERANCE)
        self.assertEqual(self.column(run, "evaluations", "step"), [k for k, _ in evaluations])
        numpy.testing.assert_allclose(self.column(run, "evaluations", "loss"),
                                      [loss for _, loss in evaluations], rtol=TOLERANCE)
        self.assertIn("All checks passed", self.carousel("verify", run))

    def test_runs_go_on(self):
        self.check_goes_on("mlp", MLP_LOSSES, MLP_EVALUATIONS)
        self.check_goes_on("resnet", RESNET_LOSSES, RESNET_EVALUATIONS)

    def test_plans_of_several_devices_are_made_again(self):
        # Without its checkpoint, which nobody needs here. Devices of the time staged all labels.
        told = self.carousel("verify", "pipeline")
        self.assertIn("cdp-v2, pipeline on 3 devices", told)
        self.assertIn("All checks passed", told)

    def test_checkpoints_are_evaluated(self):
        for run, data, line in (("mlp", "digits.h5", "20 samples, loss 2.8517"),
                                ("resnet", "pictures.h5", "4 samples, loss 0.6371")):
            with self.subTest(run):
                self.assertIn(line, self.carousel("eval", f"{run}/checkpoints/last.h5", data))

    def test_weights_are_started_with_and_exported(self):
        weights = "resnet/checkpoints/last.h5"
        self.carousel("train", "resnet.toml", "run.output=again", f"train.start={weights}",
                      "train.optimizer.learning_rate=0")
        self.carousel("export", "weights", weights, "weights.h5")
        with h5py.File(self.folder / "weights.h5") as exported, \
                h5py.File(self.folder / "again/checkpoints/last.h5") as again, \
                h5py.File(self.folder / weights) as checkpoint:
            for name, values in checkpoint["parameters"].items():
                numpy.testing.assert_array_equal(exported[name][...], values[...], name)
                numpy.testing.assert_array_equal(again["parameters"][name][...], values[...], name)
            for name, values in checkpoint["buffers"].items():
                numpy.testing.assert_array_equal(exported[name][...], values[...], name)

    def test_files_are_inspected(self):
        for file, line in (("mlp", "mlp"), ("resnet", "conv1"), ("digits.h5", "64 train"),
                           ("pictures.h5", "8 train"), ("mlp/checkpoints/last.h5", "4 steps")):
            with self.subTest(file):
                self.assertIn(line, self.carousel("inspect", file))

    def test_decks_are_valid(self):
        write_dataset(self.folder / "small.h5", (3, 32, 32), samples=1024)
        write_dataset(self.folder / "large.h5", (3, 224, 224), samples=1024, test_samples=8)
        write_dataset(self.folder / "digits_of_decks.h5", (1, 8, 8), samples=1024)
        for deck in sorted(WRITTEN.glob("decks/*.toml")):
            text = deck.read_text()
            data = ("digits_of_decks" if 'name = "mlp"' in text
                    else "large" if "memory" in deck.name or "size = 224" in text else "small")
            with self.subTest(deck.name):
                self.carousel("train", deck, "--validate", f"data.file={data}.h5",
                              "parallel.transport=local")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
