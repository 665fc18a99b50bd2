# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Events of a run, read back by TensorBoard: tensorboard_test.py CAROUSEL PROJECT."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import h5py
import numpy

CAROUSEL, PROJECT = sys.argv[1], pathlib.Path(sys.argv[2])
PACKAGES = PROJECT / ".cache/tensorboard"
SKIPPED = 125

sys.path.insert(0, str(PACKAGES))
try:
    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader
except ModuleNotFoundError as missing:
    print(f"skipped: no {missing.name}")
    sys.exit(SKIPPED)
from tensorboard.util import tensor_util


class Events(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for name, seed in (("one", 1), ("two", 2)):
            subprocess.run([CAROUSEL, "train", PROJECT / "inputs/digits.toml", f"run.output={name}",
                            f"run.seed={seed}", "train.epochs=2", "profile.steps=\"\""],
                           cwd=self.folder, check=True, capture_output=True, timeout=100)

    def report(self, *words, packages=PACKAGES):
        return subprocess.run([sys.executable, "-B", PROJECT / "app/report", *words], text=True,
                              cwd=self.folder, capture_output=True, timeout=100,
                              env={"PYTHONPATH": str(packages), "PATH": "/usr/bin:/bin"})

    def test_are_the_rows_of_the_runs(self):
        result = self.report("one", "two/run.h5", "--tensorboard", "events")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.split(), ["events/one", "events/two"])
        for name in ("one", "two"):
            found = {}
            (path,) = (self.folder / "events" / name).iterdir()
            for event in LegacyEventFileLoader(str(path)).Load():
                for value in event.summary.value:
                    number = float(tensor_util.make_ndarray(value.tensor))
                    found.setdefault(value.tag, []).append((event.step, number, event.wall_time))
            with h5py.File(self.folder / name / "run.h5") as file:
                for group, tag in (("steps", "train"), ("evaluations", "test")):
                    columns = [column for column in file[group]
                               if column not in ("step", "epoch", "seconds")]
                    for column in columns:
                        rows = found.pop(f"{tag}/{column}")
                        steps, values, times = map(list, zip(*rows))
                        self.assertEqual(steps, file[group]["step"][:].tolist())
                        numpy.testing.assert_allclose(values, file[group][column][:], rtol=1e-6)
                        self.assertEqual(times, sorted(times))
            self.assertEqual(found, {})

    def test_parts_stand_where_they_were_made(self):
        with h5py.File(self.folder / "one/ranks/0000.h5", "r+") as file:
            begin = file["info"].attrs["start_time"].decode()
            file["info"].attrs["start_time"] = numpy.bytes_("2001" + begin[4:])
        subprocess.run([CAROUSEL, "train", "one", "train.epochs=3"], cwd=self.folder, check=True,
                       capture_output=True, timeout=100)
        self.assertEqual(self.report("one", "--tensorboard", "events").returncode, 0)
        (path,) = (self.folder / "events/one").iterdir()
        years = {}
        for event in LegacyEventFileLoader(str(path)).Load():
            if event.summary.value:
                early = time.gmtime(event.wall_time).tm_year == 2001
                years.setdefault(early, set()).add(event.step)
        self.assertEqual(max(years[True]), 44)
        self.assertEqual(max(years[False]), 66)
        self.assertLess(max(years[True]) - 1, min(years[False]))

    def test_refusals(self):
        for words, code, reason in ((("none",), 74, "no such file"),
                                    (("one",), 0, ""), (("one",), 2, "holds events already")):
            result = self.report(*words, "--tensorboard", "events")
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertIn(reason, result.stderr)
        result = self.report("two", "--tensorboard", "events", packages="/nowhere")
        self.assertEqual(result.returncode, 2)
        self.assertIn("pip install tensorboard", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
