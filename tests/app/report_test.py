# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""The picture of a run: its files, its numbers against those of the run file, its refusals.

Usage: report_test.py CAROUSEL PROJECT. Everything happens in a temporary folder.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import h5py
import numpy

CAROUSEL, PROJECT = sys.argv[1], pathlib.Path(sys.argv[2])
DECK = PROJECT / "inputs/digits.toml"
REPORT = PROJECT / "app/report"
SKIPPED = 125

sys.dont_write_bytecode = True
sys.path.insert(0, str(REPORT))
try:
    import curves
    import page
except ModuleNotFoundError as missing:
    print(f"skipped: no {missing.name}")
    sys.exit(SKIPPED)
import run_file
import timeline

FOLDER = pathlib.Path(tempfile.mkdtemp())


def train(name, *words, code=0):
    result = subprocess.run([CAROUSEL, "train", DECK, f"run.output={FOLDER / name}",
                             "engine.threads=1", *words], capture_output=True, timeout=100)
    assert result.returncode == code, result.stderr
    return FOLDER / name


def setUpModule():
    train("single", "train.epochs=2")
    train("ring", "train.epochs=2", "parallel.placement=replicated")
    train("pipeline", "train.epochs=2", "parallel.placement=pipeline")
    train("dp", "train.epochs=2", "parallel.rule=dp")
    train("top5", "train.epochs=2", 'task.metrics=["top5"]')
    train("diverged", "train.epochs=2", "train.optimizer.learning_rate=1e6", code=76)
    train("parts", "train.epochs=1")
    train("parts", "train.epochs=2", "run.resume=auto", "parallel.placement=pipeline",
          'profile.steps="30:35"')
    train("late", "train.epochs=1")
    train("late", "train.epochs=2", "run.resume=auto", "parallel.placement=pipeline",
          'profile.steps=""')
    train("none", "train.steps=2", 'profile.steps=""')


def tearDownModule():
    shutil.rmtree(FOLDER)


def report(*words, inside=FOLDER):
    return subprocess.run([sys.executable, "-B", REPORT, *map(str, words)], cwd=inside, text=True,
                          capture_output=True, timeout=100)


class Pictures(unittest.TestCase):
    def expect_pictures(self, result, prefix):
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.split(), [f"{prefix}.png", f"{prefix}.svg"])
        self.assertEqual(pathlib.Path(f"{prefix}.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        root = xml.etree.ElementTree.parse(f"{prefix}.svg").getroot()
        self.assertTrue(root.tag.endswith("svg"))
        width, height = (float(root.get(k).removesuffix("pt")) for k in ("width", "height"))
        self.assertLessEqual(width, 596)  # A4
        self.assertLessEqual(height, 842)


class Files(Pictures):
    def test_one_run_has_them_in_its_folder(self):
        self.expect_pictures(report(FOLDER / "ring"), FOLDER / "ring/report")

    def test_nobody_reads_their_names(self):
        for gone in (FOLDER / "dp/report.png", FOLDER / "dp/report.svg"):
            gone.unlink(missing_ok=True)
        for unbuffered in ("", "1"):
            reader, writer = os.pipe()
            os.close(reader)
            result = subprocess.run([sys.executable, "-B", REPORT, FOLDER / "dp"], text=True,
                                    stdout=writer, stderr=subprocess.PIPE, timeout=100,
                                    env=os.environ | {"PYTHONUNBUFFERED": unbuffered})
            os.close(writer)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertTrue((FOLDER / "dp/report.svg").is_file())

    def test_several_runs_in_one_picture(self):
        self.expect_pictures(report(*(FOLDER / name for name in ("dp", "single", "ring", "single")),
                                    "--output", FOLDER / "all"), FOLDER / "all")

    def test_parts_of_a_run_are_joined_where_they_go_on(self):
        for name, devices in (("parts", 4), ("late", 1)):
            run = run_file.read_run(FOLDER / name)
            self.assertEqual(run.joints, [22])
            self.assertEqual(len(run.devices), devices)
            self.assertEqual(run.steps["step"].tolist(), list(range(44)))
            svg = FOLDER / f"{name}.svg"
            page.save(page.draw_page([run]), str(svg))
            self.assertIn(f"joint:{name}:22", svg.read_text())

    def test_same_run_same_bytes(self):
        first = (report(FOLDER / "dp/run.h5"), (FOLDER / "dp/report.svg").read_bytes())
        second = (report(FOLDER / "dp"), (FOLDER / "dp/report.svg").read_bytes())
        self.assertEqual(first[1], second[1])


class Drawn(unittest.TestCase):
    """What hangs in the figure is what stands in the file."""

    def draw(self, name):
        self.run_ = run_file.read_run(FOLDER / name)
        self.figure = page.draw_page([self.run_])
        self.file = h5py.File(FOLDER / name / "run.h5")
        self.addCleanup(self.file.close)

    def line(self, gid):
        found = [line for axes in self.figure.axes for line in axes.lines if line.get_gid() == gid]
        self.assertEqual(len(found), 1, gid)
        return found[0]

    def test_loss_and_accuracy(self):
        self.draw("single")
        for gid, x, y in (("loss:single", "steps/step", "steps/loss"),
                          ("accuracy:single", "steps/step", "steps/accuracy"),
                          ("test loss:single", "evaluations/step", "evaluations/loss"),
                          ("test accuracy:single", "evaluations/step", "evaluations/accuracy")):
            numpy.testing.assert_array_equal(self.line(gid).get_xdata(), self.file[x][:])
            numpy.testing.assert_array_equal(self.line(gid).get_ydata(), self.file[y][:])

    def test_another_metric(self):
        self.draw("top5")
        for gid, column in (("top5:top5", "steps/top5"), ("test top5:top5", "evaluations/top5")):
            numpy.testing.assert_array_equal(self.line(gid).get_ydata(), self.file[column][:])
        runs = [self.run_, run_file.read_run(FOLDER / "single")]  # that have no metric in common
        titles = [axes.get_title("left") for axes in page.draw_page(runs).axes]
        self.assertIn("Loss", titles[0])
        self.assertNotIn("Accuracy", titles)
        self.assertNotIn("Top5", titles)

    def test_memory_of_one_device(self):
        self.draw("single")
        window = timeline.steady_window(self.run_, page.MEMORY_STEPS)
        memory = self.file["ranks/0000/memory"]
        seconds, held = memory["seconds"][:], memory["activations"][:]
        inside = (seconds > window.begin) & (seconds <= window.end)
        line = self.line("held:single")
        numpy.testing.assert_array_equal(line.get_ydata()[1:-1] * 1024, held[inside])
        numpy.testing.assert_allclose(
            window.begin + (line.get_xdata()[1:-1] - window.first) * window.step_seconds,
            seconds[inside], atol=1e-9)
        self.assertEqual(max(line.get_ydata()) * 1024, self.file["plan/bytes/activations"][0])

    def test_memory_of_a_ring_is_the_sum_at_any_time(self):
        self.draw("ring")
        window = timeline.steady_window(self.run_, page.MEMORY_STEPS)
        line = self.line("held:ring")
        for x, y in list(zip(line.get_xdata(), line.get_ydata()))[:-1:7]:
            now = window.begin + (x - window.first) * window.step_seconds
            held = 0
            for rank in self.file["ranks"].values():
                before = rank["memory/seconds"][:] <= now + 1e-9
                held += rank["memory/activations"][:][before][-1]
            self.assertEqual(y * 1024, held)

    def test_predicted_line(self):
        self.draw("single")
        planned = self.file["plan/bytes/activations"][0]
        self.assertEqual(self.line("predicted:single").get_ydata()[0] * 1024, planned)

    def test_time_grids(self):
        for name in ("ring", "pipeline"):
            with self.subTest(name):
                self.expect_time_grid(name)

    def expect_time_grid(self, name):
        self.draw(name)
        within = timeline.steady_window(self.run_, page.MEMORY_STEPS)
        window = timeline.steady_window(self.run_, page.GRID_STEPS, within)
        self.assertEqual(window.steps, page.GRID_STEPS)
        patches = [patch.get_gid() for axes in self.figure.axes for patch in axes.patches]
        arrows = 0
        for d in range(4):
            rank = self.file[f"ranks/{d:04d}"]
            begin, end = rank["actions/begin"][:], rank["actions/end"][:]
            seen = (end > window.begin) & (begin < window.end)
            for kind in ("forward", "backward", "update"):
                wanted = numpy.sum(seen & (rank["actions/kind"][:] == kind.encode()))
                self.assertGreaterEqual(wanted, 2)
                self.assertEqual(patches.count(f"{kind}:{d}"), wanted, f"{kind} on device {d}")
            arrows += self.messages_within(d, window)
        drawn = [c for axes in self.figure.axes for c in axes.collections
                 if str(c.get_gid()).startswith("messages:")]
        self.assertEqual(sum(len(lines.get_segments()) for lines in drawn), arrows)

    def messages_within(self, device, window):
        """Counts messages received by a device, asking the sender's file for their begin."""
        count = 0
        rows = {name: column[:] for name, column in self.file[f"ranks/{device:04d}/messages"].items()}
        for k in numpy.flatnonzero(rows["direction"] == b"receive"):
            peer = self.file[f"ranks/{rows['peer'][k]:04d}/messages"]
            other = numpy.flatnonzero(
                (peer["direction"][:] == b"send") & (peer["kind"][:] == rows["kind"][k])
                & (peer["step"][:] == rows["step"][k]) & (peer["stage"][:] == rows["stage"][k])
                & (peer["micro_batch"][:] == rows["micro_batch"][k]) & (peer["peer"][:] == device))
            self.assertEqual(len(other), 1)
            posted = peer["posted"][int(other[0])]
            self.assertLess(posted, rows["completed"][k])
            count += rows["completed"][k] > window.begin and posted < window.end
        return count


def invented_run(steps, **plan):
    """A run of one device whose step t begins at steps[t] and is a forward of 0.1 s."""
    actions = {"kind": numpy.array(["forward"] * len(steps)),
               "step": numpy.array(list(steps)), "stage": numpy.zeros(len(steps), int),
               "micro_batch": numpy.zeros(len(steps), int),
               "begin": numpy.array(list(steps.values())),
               "end": numpy.array(list(steps.values())) + 0.1}
    memory = {"seconds": actions["end"], "activations": 10 * actions["step"]}
    device = run_file.Device(actions, {"direction": numpy.array([], dtype=str)}, memory)
    return run_file.Run("invented", {}, {}, plan, numpy.array([]), numpy.array([]), {}, {}, [device],
                        joints=[], metrics=[])


def progress(name, losses, test_losses):
    """A run of one training step for each loss, evaluated after the last ones."""
    run = invented_run({0: 0.0})
    run.name = name
    first = len(losses) - len(test_losses)
    run.steps = {"step": numpy.arange(len(losses)), "loss": numpy.array(losses, float)}
    run.evaluations = {"step": numpy.arange(first, len(losses)) + 1,
                       "loss": numpy.array(test_losses, float)}
    for table in (run.steps, run.evaluations):
        table["accuracy"] = numpy.zeros(len(table["loss"]))
    return run


class LossAxis(unittest.TestCase):
    """Whatever single values do, most of them have room."""

    GOOD = list(numpy.linspace(2.5, 1.0, 40))

    def draw(self, *runs):
        self.axes = page.Figure().add_subplot()
        curves.draw_loss(self.axes, runs)
        return self.axes.get_ylim()

    def room(self, low, high):
        """The part of the height between two losses."""
        to_axes = self.axes.transData + self.axes.transAxes.inverted()
        return to_axes.transform((0, high))[1] - to_axes.transform((0, low))[1]

    def expect_above(self, name, steps, word):
        found = [line for line in self.axes.lines if line.get_gid() == f"loss above:{name}"]
        self.assertEqual([list(line.get_xdata()) for line in found], [steps] if steps else [])
        self.assertEqual(self.axes.get_title("right")[-len(word):] if word else
                         self.axes.get_title("right"), word)

    def test_all_is_usual(self):
        self.draw(progress("a", self.GOOD, [1.1, 1.0]))
        self.assertEqual(self.axes.get_yscale(), "linear")
        self.assertGreater(self.room(1.0, 2.5), 0.5)
        self.expect_above("a", [], "")

    def test_a_bad_test_loss_is_shown_and_leaves_room(self):
        low, high = self.draw(progress("a", self.GOOD, [1.1, 20.0]))
        self.assertTrue(low <= 1.0 and high >= 20.0)
        self.assertEqual(self.axes.get_yscale(), "log")
        self.assertGreater(self.room(1.0, 2.5), 0.25)
        self.assertGreaterEqual(sum(low <= y <= high for y in self.axes.get_yticks()), 3)
        self.expect_above("a", [], "")

    def test_a_very_bad_test_loss_is_told(self):
        for bad, word in ((1234.0, "up to 1234"), (1e30, "up to 1e+30"), (numpy.inf, "inf")):
            self.draw(progress("a", self.GOOD, [1.1, bad]))
            self.assertGreater(self.room(1.0, 2.5), 0.5)
            self.expect_above("a", [40], word)

    def test_a_run_that_exploded_leaves_the_others_room(self):
        self.draw(progress("a", self.GOOD, [1.1]),
                  progress("b", [2.5, 7e21, numpy.nan, numpy.nan], []))
        self.assertGreater(self.room(1.0, 2.5), 0.5)
        self.expect_above("b", [1], "7e+21")

    def test_better_first_weights_do_not_hide_the_rest(self):
        self.draw(progress("a", [0.01] + self.GOOD, [1.1]))
        self.expect_above("a", [], "")

    def test_no_loss_at_all(self):
        self.draw(progress("a", [numpy.nan], []))
        self.draw(progress("a", [0.0, 0.0], [0.0]))
        self.expect_above("a", [], "")


def planned(name, together, accumulate):
    """A run under dp whose plan holds so many bytes."""
    run = invented_run({0: 0.0}, rule="dp", placement="single", order="together", micro_batches=4,
                       stages=4, activation_bytes_together=together,
                       activation_bytes_accumulate=accumulate)
    run.name = name
    return run


class References(unittest.TestCase):
    """The lines beside the memory and what is written at them."""

    def draw(self, *runs):
        self.axes = page.Figure().add_subplot()
        self.axes.set_ylim(0, 1000)
        curves.draw_memory(self.axes, runs, [timeline.Window(0, 1, 0.0, 1.0)] * len(runs))
        self.heights = [line.get_ydata()[0] for line in self.axes.lines
                        if str(line.get_gid()).startswith(("reference:", "predicted:"))]
        self.assertEqual(len(self.axes.texts) % 2, 0)  # bytes, then lines of text
        return [line for text in self.axes.texts[1::2] for line in text.get_text().split("\n")]

    def test_equal_plans_have_one_line_each_and_no_names(self):
        words = self.draw(planned("a", 400, 100), planned("b", 400, 100))
        self.assertEqual(words, ["dp, all at once (N A)", "predicted peak", "dp, accumulating (A)"])
        self.assertEqual(sorted(self.heights), [100, 400])

    def test_other_plans_are_named(self):
        words = self.draw(planned("a", 400, 100), planned("b", 400, 200), planned("c", 400, 100))
        self.assertEqual(words, ["dp, all at once (N A)", "predicted peak",
                                 "dp, accumulating (A): b", "dp, accumulating (A): a, c"])
        self.assertEqual(sorted(self.heights), [100, 200, 400])

    def test_one_value_is_one_line_whatever_it_is(self):
        words = self.draw(planned("a", 400, 200), planned("b", 200, 100))
        self.assertIn("dp, accumulating (A): a", words)
        self.assertIn("dp, all at once (N A): b", words)
        self.assertEqual(sorted(self.heights), [100, 200, 400])

    def test_labels_of_four_runs_with_long_names_do_not_touch(self):
        runs = [planned(20 * letter, 400 - k, 100 - k) for k, letter in enumerate("abcd")]
        words = self.draw(*runs)
        self.assertIn("dp, accumulating (A): run 3", words)
        self.assertLessEqual(len(words), 12)
        legend = [text.get_text() for text in self.axes.get_legend().get_texts()]
        self.assertTrue(legend[2].startswith("3 " + 20 * "c"), legend)
        heights = [(text.get_position()[1] if text.get_text()[0].isdigit() else text.xy[1])
                   for text in self.axes.texts[::2]]
        for above, below in zip(heights, heights[1:]):
            self.assertGreater(above - below, 0.08)


class Origin(unittest.TestCase):
    """The last lines of the page."""

    def lines(self, *versions):
        runs = []
        for name, version in zip("abcd", versions):
            runs.append(invented_run({0: 0.0}))
            runs[-1].name = name
            runs[-1].info = {"program_version": version, "git_hash": "1234", "libraries": "Kokkos",
                             "start_time": f"noon {name}"}
        return page.origin(runs)

    def test_one_program_is_named_once(self):
        self.assertEqual(self.lines("1.0", "1.0"),
                         ["Carousel 1.0 (1234), Kokkos; started noon a"])

    def test_every_program_is_named(self):
        self.assertEqual(self.lines("1.0", "2.0", "1.0", "3.0"),
                         ["a, c: Carousel 1.0 (1234), Kokkos; started noon a",
                          "b: Carousel 2.0 (1234), Kokkos; started noon b",
                          "d: Carousel 3.0 (1234), Kokkos; started noon d"])


class Diverged(unittest.TestCase):
    """That a run diverged is said where nobody overlooks it."""

    def title(self, *names, rename=str):
        runs = [run_file.read_run(FOLDER / name) for name in names]
        for run in runs:
            run.name = rename(run.name)
        return page.draw_page(runs).texts[0].get_text()

    def test_title_of_one_run(self):
        self.assertTrue(self.title("diverged").startswith("Diverged run of digits: cdp-v2"))
        self.assertTrue(self.title("single").startswith("digits: cdp-v2"))

    def test_title_of_several(self):
        self.assertEqual(self.title("single", "diverged"), "digits: single, diverged (diverged)")
        self.assertEqual(self.title("single", "diverged", "dp", rename=lambda name: 7 * name[:4]),
                         "3 runs, diverged: divedivedivedivedivedivedive")

    def test_losses_tell_it_without_a_status(self):
        run = run_file.read_run(FOLDER / "diverged")
        for state in ("", "running"):
            run.state = state
            self.assertTrue(page.title([run]).startswith("Diverged"))
        run.state, run.steps["loss"] = "diverged", numpy.ones(5)
        self.assertTrue(page.title([run]).startswith("Diverged"))


class Computed(unittest.TestCase):
    def test_predicted_peak_is_that_of_the_paper(self):
        for n in (1, 2, 3, 4, 7):
            run = invented_run({0: 0.0}, rule="cdp-v2", micro_batches=n, stages=n)
            run.stage_activations = numpy.array([100 + 7 * j * j for j in range(n)])
            self.assertEqual(timeline.predicted_peak(run),
                             sum((n - j) * a for j, a in enumerate(run.stage_activations)))

    def test_window_is_steady_and_of_median_duration(self):
        begins = {t: float(t) for t in range(10)} | {7: 7.75, 8: 8.0, 9: 9.0, 10: 10.0}
        window = timeline.steady_window(invented_run(begins), 1)
        self.assertGreaterEqual(window.first, 2)
        self.assertEqual(window.end - window.begin, 1.0)
        two = timeline.steady_window(invented_run(begins), 2)
        inner = timeline.steady_window(invented_run(begins), 1, two)
        self.assertTrue(two.first <= inner.first < two.first + 2)

    def test_window_where_little_was_recorded(self):
        for begins, first, steps, end in (({0: 5.0}, 0, 1, 5.1), ({7: 5.0}, 7, 1, 5.1),
                                          ({0: 1.0, 1: 2.0}, 0, 2, 2.1),
                                          ({0: 1.0, 1: 2.0, 50: 3.0}, 0, 2, 2.1)):
            window = timeline.steady_window(invented_run(begins), 2)
            self.assertEqual((window.first, window.steps), (first, steps), begins)
            self.assertAlmostEqual(window.end, end)

    def test_held_starts_with_what_was_before(self):
        run = invented_run({t: float(t) for t in range(5)})
        curve = timeline.held_by(run.devices[0], timeline.Window(2, 1, 2.0, 3.0))
        numpy.testing.assert_allclose(curve.seconds, [2.0, 2.1])
        numpy.testing.assert_array_equal(curve.bytes, [10, 20])

    def test_working_fraction(self):
        run = invented_run({t: float(t) for t in range(5)})
        self.assertAlmostEqual(
            timeline.working_fraction(run, timeline.Window(1, 2, 1.05, 3.0)), 0.15 / 1.95)


PREDICTED = """
[run]
name = "rows"
output = "rows"
[model]
layers = LAYERS
[task]
loss = "LOSS"
[data]
files = "rows.h5"
test_fraction = 0.25
[data.input]
from = "INPUT"
axes = "AXES"
[data.target]
from = "TARGET"
axes = "TARGET_AXES"
MORE
[parallel]
micro_batches = 2
[train]
micro_batch_size = 4
epochs = 1
[train.optimizer]
learning_rate = 0.01
"""


class PredictionFiles(Pictures):
    """What `carousel predict` wrote, of every kind of targets."""

    def predict(self, name, layers, loss, data, target, more=""):
        folder = FOLDER / name
        folder.mkdir()
        deck = PREDICTED
        for word, value in {"LAYERS": layers, "LOSS": loss, "INPUT": data[0], "TARGET_AXES": target[1],
                            "AXES": data[1], "TARGET": target[0], "MORE": more}.items():
            deck = deck.replace(word, value, 1)
        (folder / "deck.toml").write_text(deck)
        random = numpy.random.default_rng(2)
        with h5py.File(folder / "rows.h5", "w") as file:
            file["numbers"] = random.normal(size=(64, 5))
            file["more"] = random.normal(size=(64, 18))
            file["signals"] = random.normal(size=(64, 12))
            file["fields"] = random.normal(size=(64, 6, 8))
            file["kinds"] = random.integers(0, 3, 64)
            file["pixels"] = random.integers(0, 3, (64, 6, 8))
            file["columns"] = random.normal(size=(64, 6, 1))
            file["slices"] = random.normal(size=(64, 2, 1, 6, 1))
            file["voxels"] = random.integers(0, 3, (64, 1, 6, 1))
            file["points"] = random.normal(size=(64, 1))
        for words in (("train", "deck.toml"), ("predict", "rows", "rows.h5", "out.h5")):
            result = subprocess.run([CAROUSEL, *words], cwd=folder, capture_output=True, text=True,
                                    env=os.environ | {"OMP_NUM_THREADS": "1"}, timeout=100)
            self.assertEqual(result.returncode, 0, result.stderr)
        return folder / "out.h5"

    def draw(self, path):
        result = subprocess.run([sys.executable, "-B", REPORT, path], text=True, cwd=path.parent,
                                capture_output=True, timeout=100)
        self.expect_pictures(result, path.with_suffix(""))

    def test_numbers(self):
        self.draw(self.predict("numbers", '["flatten", {linear = 18}]', "mse", ("numbers", "n c"),
                               ("more", "n c")))

    def test_curves(self):
        self.draw(self.predict("curves", "[{conv = 1, kernel = 3, padding = 1}]", "mse",
                               ("signals", "n x"), ("signals", "n x")))

    def test_fields_cut_out(self):
        self.draw(self.predict("fields", "[{conv = 1, kernel = 3, padding = 1}]", "mse",
                               ("fields", "n y x"), ("fields", "n y x"),
                               "[data.augment]\nsize = 4\ncrop = 'random'"))

    def test_labels_of_pixels(self):
        self.draw(self.predict("pixels", "[{conv = 3, kernel = 3, padding = 1}]", "cross-entropy",
                               ("fields", "n y x"), ("pixels", "n y x"), "classes = 3"))

    def test_axes_of_one(self):
        convolution = "[{conv = CHANNELS, kernel = 3, padding = 1}]"
        for name, channels, target, axes, shape, more in (
                ("columns", 1, "columns", "n y x", (1, 6, 1), ""),
                ("slices", 2, "slices", "n c z y x", (2, 1, 6, 1), ""),
                ("voxels", 3, "voxels", "n z y x", (3, 1, 6, 1), "classes = 3"),
                ("points", 1, "points", "n x", (1, 1), "")):
            data = "slices" if name == "voxels" else target
            data_axes = "n c z y x" if name == "voxels" else axes
            path = self.predict(f"one-{name}", convolution.replace("CHANNELS", str(channels)),
                                "cross-entropy" if more else "mse", (data, data_axes),
                                (target, axes), more)
            with h5py.File(path) as file:
                self.assertEqual(file["outputs"].shape[1:], shape)
                if more:
                    self.assertEqual(file["labels"].shape[1:], shape[1:])
            self.draw(path)

    def test_classes(self):
        path = self.predict("classes", '["flatten", {linear = 3}]', "cross-entropy",
                            ("numbers", "n c"), ("kinds", "n"), "classes = 3")
        self.draw(path)
        (path.parent / "rows.h5").unlink()
        result = subprocess.run([sys.executable, "-B", REPORT, path], text=True, cwd=path.parent,
                                capture_output=True, timeout=100)
        self.assertEqual(result.returncode, 74, result.stderr)
        self.assertIn("rows.h5: no such file", result.stderr)


class Refusals(unittest.TestCase):
    def refused(self, code, word, *words, **keywords):
        result = report(*words, **keywords)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("report: "), result.stderr)
        self.assertIn(word, result.stderr)

    def copy(self, name):
        folder = FOLDER / "copy"
        shutil.copytree(FOLDER / name, folder)
        self.addCleanup(shutil.rmtree, folder)
        return folder

    def test_usage(self):
        self.refused(2, "RUN")
        self.refused(2, "--frob", FOLDER / "ring", "--frob")
        self.refused(2, "at most 4", *[FOLDER / "ring"] * 5)
        self.refused(2, "no step was profiled", FOLDER / "none")

    def test_not_a_run(self):
        self.refused(74, "no such file", FOLDER / "nowhere")
        self.refused(74, "run.h5: no such file", FOLDER)
        self.refused(65, "carousel checkpoint", FOLDER / "ring/checkpoints/last.h5")
        self.refused(65, "cannot read it", DECK)

    def test_damaged_runs(self):
        folder = self.copy("ring")
        with h5py.File(folder / "ranks/0001.h5", "a") as rank:
            del rank["actions/begin"]
        self.refused(65, "begin", folder)
        (folder / "ranks/0001.h5").write_text("no HDF5")
        self.refused(65, "0001.h5: cannot read it", folder)
        (folder / "ranks/0001.h5").unlink()
        self.refused(74, "0001.h5", folder)
        self.refused(74, "0001.h5", folder, inside=FOLDER / "ring")
        with h5py.File(folder / "run.h5", "a") as run:
            del run["plan"]
        self.refused(65, "plan", folder)

    def test_damaged_status(self):
        folder = self.copy("single")
        for text in ("", "[]", "{}", "\xff"):
            (folder / "status.json").write_text(text, encoding="latin-1")
            self.refused(65, "status.json: not a status", folder)
        (folder / "status.json").unlink()
        self.assertEqual(report(folder).returncode, 0)

    def test_nowhere_to_write(self):
        self.refused(74, "cannot write", FOLDER / "ring", "--output", FOLDER / "nowhere/report")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
