# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Whole runs of the real program, as a user and a job script meet them.

Usage: run_test.py CAROUSEL MPIEXEC PROJECT. Everything happens in a temporary folder.
"""

import contextlib
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import h5py
import numpy

from dataset import write_dataset
from engines import engines_in, rank_in

CAROUSEL, MPIEXEC, PROJECT = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
DECK = PROJECT / "inputs/digits.toml"
# Threads of small kernels that wait for each other are slow on a busy machine.
ONE = {"OMP_NUM_THREADS": "1"}
RING = ("parallel.placement=replicated", "parallel.transport=mpi")
STEADY = ("train.schedule.name=constant", "train.schedule.per_epoch=false")  # learning rate


class Run(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def carousel(self, *words, ranks=1, code=0, **variables):
        """Variables that are None are taken away."""
        before = [MPIEXEC, "-n", str(ranks)] if ranks > 1 else []
        variables = {key: value for key, value in (os.environ | variables).items()
                     if value is not None}
        result = subprocess.run([*before, CAROUSEL, *map(str, words)], cwd=self.folder, text=True,
                                env=variables, capture_output=True, timeout=100)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def train(self, name, *words, deck=DECK, **keywords):
        return self.carousel("train", deck, f"run.output={name}", *words, **keywords)

    def refused(self, code, name, *words, **keywords):
        result = self.train(name, *words, code=code, **keywords)
        return self.complaint(result)

    def complaint(self, result):
        """The one line that says what went wrong."""
        lines = [l for l in result.stderr.splitlines() if l.startswith("carousel: ")]
        self.assertEqual(len(lines), 1, result.stderr)
        return lines[0]

    def parameters(self, name, group="parameters", checkpoint="last"):
        with h5py.File(self.folder / name / f"checkpoints/{checkpoint}.h5") as file:
            return {key: value[()] for key, value in file[group].items()}


class Training(Run):
    def test_checkpoints_between_segments(self):
        words = [*STEADY, "checkpoint.every_steps=10", "checkpoint.keep=0"]
        for name, more, keywords in (("one", (), {}), ("ring", RING, {"ranks": 4}),
                                     ("sharded", ("parallel.placement=sharded",), {})):
            self.train(name, "train.epochs=2", *words, *more, **keywords)
            self.assertIn("All checks passed", self.carousel("verify", name).stdout)
        saved = sorted(path.name for path in (self.folder / "one/checkpoints").iterdir())
        self.assertEqual(saved, ["last.h5", *(f"step-{k:08}.h5" for k in (10, 20, 22, 30, 40, 44))])
        for number in (20, 22, 30):
            # What a run that ends there leaves.
            short = f"short{number}"
            self.train(short, f"train.steps={number}", *STEADY)
            for group in ("parameters", "previous", "optimizer/momentum"):
                wanted = self.parameters(short, group)
                self.assertEqual(len(wanted), 8)
                for name in ("one", "ring", "sharded"):
                    found = self.parameters(name, group, f"step-{number:08}")
                    for key, value in wanted.items():
                        numpy.testing.assert_array_equal(found[key], value, f"{name} {key}")

    def test_a_checkpoint_is_as_large_as_planned(self):
        # Weights of more than 2^20 numbers, which HDF5's chunks would round up.
        words = [*STEADY, "model.widths=[64, 16400, 10]",
                 "parallel.stages=2", "train.steps=1", "train.epochs="]
        plan = self.carousel("plan", DECK, "run.output=run", *words).stdout
        self.train("run", *words)
        size = (self.folder / "run/checkpoints/last.h5").stat().st_size
        self.assertRegex(plan, rf"checkpoint +{size / 2**20:.1f} MiB; ")

    def test_as_many_checkpoints_as_the_deck_says(self):
        self.train("run", "train.epochs=5", "checkpoint.every=2", "checkpoint.keep=3")
        saved = sorted(path.name for path in (self.folder / "run/checkpoints").glob("step*"))
        self.assertEqual(saved, [f"step-{k:08}.h5" for k in (44, 88, 110)])
        # A run whose newest one is from where the deck wants none.
        os.rename(self.folder / "run/checkpoints/step-00000044.h5",
                  self.folder / "run/checkpoints/last.h5")
        line = self.complaint(self.carousel("verify", "run", code=65))
        self.assertIn("last.h5: was made after 44 steps, the newest is of 110", line)

    def test_foreign_files_among_checkpoints(self):
        folder = self.folder / "run/checkpoints"
        for name in ("last.h5", "step-00000003.h5"):
            (folder / name).mkdir(parents=True)
            self.assertIn(f"{name}: is not a file, but a run writes one", self.refused(2, "run"))
            (folder / name).rmdir()

    def test_all_placements_have_the_same_bits(self):
        for rule in ("dp", "cdp-v2"):
            self.train(f"{rule} single", "train.epochs=2", f"parallel.rule={rule}", **ONE)
            one = self.parameters(f"{rule} single")
            for placement in ("replicated", "model", "pipeline", "sharded"):
                name = f"{rule} {placement}"
                self.train(name, "train.epochs=2", f"parallel.rule={rule}",
                           f"parallel.placement={placement}", "profile.steps=::1", **ONE)
                for key, value in self.parameters(name).items():
                    numpy.testing.assert_array_equal(one[key], value, f"{name} {key}")
                self.assertIn("All checks passed", self.carousel("verify", name).stdout)

    def test_shards_have_the_same_bits(self):
        wide = ["model.widths=[64,192,128,96,10]", "train.epochs=2", "profile.steps=::1",
                "parallel.micro_batches=4", "parallel.stages=2"]
        shards = ["parallel.placement=replicated", "parallel.shards=true"]
        sharded = "parallel.placement=sharded"
        for rule, keys in (("dp", ("", "parallel.updates=together", sharded)),
                           ("cdp-v1", ("", "parallel.sums=late", "parallel.chunks=8")),
                           ("cdp-v2", ("", "parallel.chunks=8", sharded))):
            self.train(f"{rule} one", *wide, f"parallel.rule={rule}", **ONE)
            for number, key in enumerate(keys):
                name = f"{rule} {number}"
                ranks = 4 if number == 0 else 1
                words = [*shards[key == sharded:], *filter(None, [key])]
                self.train(name, *wide, f"parallel.rule={rule}", *words,
                           **({"ranks": ranks} if ranks > 1 else ONE))
                self.carousel("diff", f"{rule} one", name)
                self.assertIn("All checks passed", self.carousel("verify", name).stdout)

    def test_a_listed_network_has_the_same_bits_everywhere(self):
        short = ["train.epochs=", "train.steps=12", "profile.steps=::1", "checkpoint.every_steps=5"]
        listed = {"deck": PROJECT / "inputs/digits_unet.toml"}
        for rule in ("dp", "cdp-v1", "cdp-v2"):
            self.train(f"{rule} one", *short, f"parallel.rule={rule}", **listed, **ONE)
            for placement, ranks in (("replicated", 1), ("pipeline", 4), ("model", 1),
                                     ("sharded", 1)):
                name = f"{rule} {placement}"
                self.train(name, *short, f"parallel.rule={rule}", f"parallel.placement={placement}",
                           **listed, **({"ranks": ranks} if ranks > 1 else ONE))
                self.carousel("diff", f"{rule} one", name)
                self.assertIn("All checks passed", self.carousel("verify", name).stdout)
        # What a checkpoint says of its network is enough to go on elsewhere.
        long = [word.replace("steps=12", "steps=24") for word in short]
        self.train("long", *long, **listed, **ONE)
        self.train("cdp-v2 pipeline", *long, "parallel.placement=sharded", "run.resume=auto",
                   **listed, **ONE)
        self.carousel("diff", "long", "cdp-v2 pipeline")

    def test_frozen_and_averaged_parameters_are_alike_everywhere(self):
        """The first two layers stay as they begin; checkpoints have averages of the others."""
        words = ("train.epochs=", "train.steps=12", 'train.freeze=["0.*", "3.*"]', "train.ema=0.9")
        for precision in ("fp32", "bf16"):
            name = f"{precision} one"
            kind = f"engine.precision={precision}"
            self.train(name, *words, kind, "checkpoint.every_steps=6", "checkpoint.keep=0", **ONE)
            before = self.parameters(name, checkpoint="step-00000006")
            after = self.parameters(name)
            averages = self.parameters(name, "ema")
            learned = {"6.weight", "6.bias", "9.weight", "9.bias"}
            self.assertEqual(averages.keys(), learned)
            self.assertEqual(self.parameters(name, "previous").keys(), learned)
            self.assertEqual(self.parameters(name, "optimizer/momentum").keys(), learned)
            for key, values in after.items():
                self.assertEqual((values == before[key]).all(), key not in learned, key)
            # Frozen numbers are not rounded to what kernels read.
            self.assertFalse((after["0.weight"].view("u4") << 16 == 0).all())
            for placement, ranks in (("replicated", 4), ("pipeline", 4), ("model", 1),
                                     ("sharded", 4)):
                other = f"{precision} {placement}"
                self.train(other, *words, kind, f"parallel.placement={placement}", ranks=ranks)
                self.carousel("diff", name, other)
                self.assertIn("All checks passed", self.carousel("verify", other).stdout)
                for group in ("parameters", "ema"):
                    for key, values in self.parameters(other, group).items():
                        numpy.testing.assert_array_equal(
                            values, self.parameters(name, group)[key], key)
            shards = ("parallel.placement=replicated", "parallel.shards=true",
                      "parallel.stages=2")
            self.train("cut", *words, kind, *shards, "--overwrite", ranks=4)
            self.train("whole", *words, kind, "parallel.stages=2", "--overwrite", **ONE)
            self.carousel("diff", "whole", "cut")
            # A run goes on with them, elsewhere.
            self.train("parts", *words[:1], "train.steps=5", *words[2:], kind, "--overwrite",
                       "parallel.placement=pipeline", ranks=4)
            self.train("parts", *words, kind, "run.resume=auto", "parallel.placement=sharded")
            self.carousel("diff", name, "parts")
            numpy.testing.assert_array_equal(self.parameters("parts", "ema")["9.weight"],
                                             averages["9.weight"])

        # Who looks at the network gets the averages and is told so.
        said = self.carousel("eval", "fp32 one").stdout
        self.assertIn("step 12, averages of parameters (ema), ", said)
        self.assertIn("parameters without ema", self.carousel("eval", "fp32 one",
                                                              "--without-ema").stdout)
        checkpoint = "fp32 one/checkpoints/last.h5"
        for words, group in (((), "ema"), (("--without-ema",), "parameters")):
            self.carousel("export", "weights", checkpoint, "w.h5", "--overwrite", *words)
            with h5py.File(self.folder / "w.h5") as file:
                expected = self.parameters("fp32 one") | self.parameters("fp32 one", group)
                self.assertEqual({*file}, expected.keys())
                for key, values in expected.items():
                    numpy.testing.assert_array_equal(file[key], values, key)
        line = self.refused(2, "fp32 one", "train.epochs=", "train.steps=14", "run.resume=auto",
                            'train.freeze=["0.*"]', "train.ema=0.9")
        self.assertIn("train.freeze", line)

    def test_bf16_has_the_same_bits_everywhere(self):
        words = [*STEADY, "train.epochs=2", "engine.precision=bf16", "profile.steps=::1"]
        self.train("one", *words)
        for name, more, keywords in (("ring", RING, {"ranks": 4}),
                                     ("model", ("parallel.placement=model",), {}),
                                     ("sharded", ("parallel.placement=sharded",), {})):
            self.train(name, *words, *more, **keywords)
            self.carousel("diff", "one", name)
            self.assertIn("All checks passed", self.carousel("verify", name).stdout)
        # Whoever updates keeps full numbers; what was used before is what bf16 has of them.
        weights = "3.weight"
        old, new = (self.parameters("one", group)[weights] for group in ("previous", "parameters"))
        self.assertTrue(numpy.all(old.view(numpy.uint32) & 0xffff == 0))
        self.assertFalse(numpy.all(new.view(numpy.uint32) & 0xffff == 0))
        plan = self.carousel("plan", DECK, *words, "parallel.placement=sharded").stdout
        self.assertRegex(plan, r"precision +bf16: sends 69\.\d% and holds \d+\.\d% of the bytes")

    # Sums do not depend on who computes them, nor on what backward makes again.
    def test_threads_and_recomputation_change_no_bits(self):
        words = [*self.random_images((3, 17, 14)), "model.name=resnet", "model.depth=8",
                 "model.stem=cifar"]
        for winograd in ("true", "false"):
            self.compare_threads_and_recomputation(
                winograd, [*words, f"engine.winograd={winograd}"])
        self.carousel("diff", "true none 1", "false none 1", code=3)
        self.assertIn("All checks passed", self.carousel("verify", "true stage 1").stdout)

    def test_threads_and_recomputation_change_no_bits_of_tokens(self):
        self.compare_threads_and_recomputation("vit", [
            *self.random_images((3, 24, 28)), "model.name=vit", "model.patch=4", "model.width=64",
            "model.depth=2", "model.heads=2", "train.optimizer.momentum=",
            "train.optimizer.name=adamw", "train.optimizer.learning_rate=0.001"])
        self.assertIn("All checks passed", self.carousel("verify", "vit cheap 2").stdout)

    def random_images(self, shape):
        write_dataset(self.folder / "images.h5", shape)
        with h5py.File(self.folder / "images.h5", "r+") as file:
            images = file["train/images"]
            images[...] = numpy.random.default_rng(1).integers(0, 256, images.shape)
        return ["model.widths=", f"data.file={self.folder}/images.h5", "train.epochs=",
                "train.steps=3"]

    def compare_threads_and_recomputation(self, name, words):
        runs = [(threads, recompute) for recompute in ("none", "cheap", "stage")
                for threads in (1, 2, 4)]
        for threads, recompute in runs:
            self.train(f"{name} {recompute} {threads}", *words, "parallel.stages=1",
                       f"engine.recompute={recompute}", f"engine.threads={threads}",
                       OMP_PROC_BIND="false")
        for threads, recompute in runs[1:]:
            self.carousel("diff", f"{name} none 1", f"{name} {recompute} {threads}")

    def test_sums_of_collectives_agree_to_rounding(self):
        self.train("exact", "train.epochs=1", "parallel.stages=2", **ONE)
        exact = self.parameters("exact")
        for placement, reduction in (("replicated", "fast"), ("sharded", "fast"), ("model", "fast"),
                                     ("model", "local")):
            name = f"{placement} {reduction}"
            words = ["parallel.stages=2", f"parallel.placement={placement}",
                     f"parallel.reduction={reduction}"]
            self.train(name, "train.epochs=1", "profile.steps=::1", *words, **ONE)
            for key, value in self.parameters(name).items():
                self.assertLess(abs(value - exact[key]).max(), 1e-4 * abs(exact[key]).max(), name)
            self.assertIn("All checks passed", self.carousel("verify", name).stdout)
            with h5py.File(self.folder / name / "run.h5") as run:
                plan = run["plan"]
                sent = sum(plan["bytes_per_step"]) + plan.attrs["collective_bytes_per_step"]
            self.assertIn(f" {sent / 1024:.1f} KiB in all",
                          self.carousel("plan", DECK, *words).stdout)
        self.assertIn("by collectives", self.carousel("inspect", "exact", "sharded fast").stdout)

    def test_one_device_and_a_ring_have_the_same_bits(self):
        self.train("one", "train.epochs=2")
        self.train("ring", "train.epochs=2", *RING, ranks=4)
        self.train("local", "train.epochs=2", "parallel.placement=replicated")
        for group in ("parameters", "previous", "optimizer/momentum"):
            one = self.parameters("one", group)
            for other in ("ring", "local"):
                values = self.parameters(other, group)
                self.assertEqual(one.keys(), values.keys())
                for key, value in one.items():
                    numpy.testing.assert_array_equal(value, values[key], f"{other} {group} {key}")
        table = self.carousel("inspect", "one", "ring").stdout
        self.assertIn("yes, as one", table)
        self.assertLessEqual(max(map(len, table.splitlines())), 80)

    def test_digits_reach_their_accuracy(self):
        for rule, least in (("dp", 0.97), ("cdp-v2", 0.97), ("cdp-v1", 0.95)):
            accuracy = []
            for seed in (1, 2, 3):
                name = f"{rule}-{seed}"
                self.train(name, f"parallel.rule={rule}", f"run.seed={seed}")
                with h5py.File(self.folder / name / "run.h5") as run:
                    accuracy.append(run["evaluations/accuracy"][-1])
            self.assertGreaterEqual(numpy.mean(accuracy), least, f"{rule} {accuracy}")

    def test_readme_reads_a_run(self):
        self.train("runs/digits", "train.epochs=1")
        text = (PROJECT / "inputs/README.md").read_text().split("## Reading a run")[1]
        program = re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1)
        result = subprocess.run([sys.executable, "-c", program], cwd=self.folder, text=True,
                                capture_output=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("'0.weight'", result.stdout)

    def test_measured_is_planned(self):
        self.train("run", "train.epochs=1", *RING, ranks=4)
        with h5py.File(self.folder / "run/run.h5") as run:
            steps = len(run["steps/step"])
            for device in range(4):
                measured = run[f"ranks/{device:04d}/measured"]
                for category, planned in run["plan/bytes"].items():
                    self.assertEqual(measured["peak_bytes"].attrs[category], planned[device],
                                     f"device {device} {category}")
                for kind in ("messages", "bytes"):
                    self.assertEqual(measured.attrs[f"{kind}_sent"],
                                     steps * run[f"plan/{kind}_per_step"][device])
            self.assertEqual(steps, 22)

    def test_predicts_from_what_was_measured(self):
        self.train("run", "train.epochs=1")
        text = self.carousel("plan", DECK, "--measured", "run").stdout
        predicted = float(re.search(r"simulated +(\S+) s", text).group(1))
        with h5py.File(self.folder / "run/ranks/0000.h5") as file:
            columns = {name: file[f"actions/{name}"][()] for name in
                       ("kind", "stage", "step", "begin", "end")}
        expected = 0
        for kind, count in {b"load": 4, b"forward": 4, b"backward": 4, b"accumulate": 3,
                            b"update": 1}.items():
            for stage in range(1 if kind == b"load" else 4):
                rows = ((columns["kind"] == kind) & (columns["stage"] == stage) &
                        (columns["step"] >= 2))
                seconds = numpy.sort((columns["end"] - columns["begin"])[rows])
                expected += count * seconds[len(seconds) // 2]
        self.assertAlmostEqual(predicted, expected, delta=1e-6)
        table = self.carousel("plan", DECK, "--measured", "run", "--compare").stdout
        self.assertIn("simulated", table)
        other = self.carousel("plan", DECK, "parallel.stages=2", "--measured", "run", code=2)
        self.assertIn("--measured run: has 4 stages, the plan has 2", self.complaint(other))

    def test_eval_repeats_the_last_evaluation(self):
        self.train("run", "train.epochs=2")
        with h5py.File(self.folder / "run/run.h5") as run:
            loss, accuracy = (run[f"evaluations/{k}"][-1] for k in ("loss", "accuracy"))
        words = self.carousel("eval", "run/checkpoints/last.h5", PROJECT / "inputs/digits.h5").stdout
        self.assertIn(f"loss {loss:.6f}, accuracy {accuracy:.4f}", words)
        table = self.carousel("eval", "run", PROJECT / "inputs/digits.h5", "--confusion").stdout
        head, *rows = [line.split(",") for line in table.splitlines()]
        self.assertEqual(head[1:], [row[0] for row in rows])
        counts = numpy.array([row[1:] for row in rows], int)
        self.assertEqual(counts.sum(), 360)
        self.assertAlmostEqual(counts.trace() / 360, accuracy, delta=1e-6)

    def test_weights_come_back_as_they_went(self):
        self.train("run", "train.epochs=2")
        last, data = "run/checkpoints/last.h5", PROJECT / "inputs/digits.h5"
        self.carousel("export", "weights", last, "weights.h5")
        self.carousel("import", "weights", "weights.h5", DECK, "start.h5")
        told = [self.carousel("eval", checkpoint, data).stdout.split("samples", 1)[1]
                for checkpoint in (last, "start.h5")]
        self.assertEqual(told[0], told[1])

    def test_metrics_are_lines_of_json(self):
        self.train("run", "train.steps=30")
        lines = [json.loads(l) for l in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        with h5py.File(self.folder / "run/run.h5") as run:
            numpy.testing.assert_allclose([l["loss"] for l in lines if "images_per_second" in l],
                                          run["steps/loss"][:], rtol=1e-6)

    def test_start_is_quick(self):
        self.train("run", "train.epochs=1")
        with h5py.File(self.folder / "run/run.h5") as run:
            self.assertLess(run["ranks/0000/measured"].attrs["first_step_seconds"], 2)


class Axes(Run):
    def write(self, name, images, mean, axes=None):
        """The same digits in three colours, in any order of axes."""
        with h5py.File(PROJECT / "inputs/digits.h5") as digits, \
                h5py.File(self.folder / name, "w") as file:
            for half in ("train", "test"):
                stacked = numpy.concatenate([digits[f"{half}/images"][:] * k for k in (1, 2, 3)], 1)
                file[f"{half}/images"] = images(stacked.astype(numpy.uint8))
                file[f"{half}/labels"] = digits[f"{half}/labels"][:]
            file.attrs.update(format="carousel dataset", format_version=1, mean=mean,
                              std=[0.25] * len(mean), source="digits", licence="none",
                              class_names=[str(k) for k in range(10)])
            if axes:
                file.attrs["axes"] = axes

    def test_images_of_numpy_are_those_of_torch(self):
        last = lambda images: images.transpose(0, 2, 3, 1)
        self.write("first.h5", lambda images: images, [0.25, 0.5, 0.75])
        self.write("last.h5", last, [0.25, 0.5, 0.75], "n h w c")
        self.write("unsaid.h5", last, [0.25] * 8)
        crop = ("data.augment.size=8", 'data.augment.crop="random"', "data.augment.padding=1",
                "data.augment.flip=0.5")
        evaluated = []
        for name in ("first", "last"):
            for run, words in ((name, ()), (f"{name}_cropped", crop)):
                result = self.train(run, f"data.file={self.folder / name}.h5", *words,
                                    "model.widths=[192, 64, 64, 64, 10]", "train.epochs=2", **ONE)
                self.assertIn("  data     1,437 training and 360 test samples, 3x8x8",
                              result.stderr.splitlines())
            evaluated.append(self.carousel("eval", f"{name}/checkpoints/last.h5", f"{name}.h5",
                                           **ONE).stdout)
            self.assertIn("uint8 3x8x8", self.carousel("inspect", f"{name}.h5").stdout)
        self.assertEqual(*(text.split(": ", 1)[1] for text in evaluated))
        for suffix in ("", "_cropped"):
            first, last = self.parameters(f"first{suffix}"), self.parameters(f"last{suffix}")
            for key, values in first.items():
                numpy.testing.assert_array_equal(values, last[key])
        said = self.refused(65, "unsaid", f"data.file={self.folder}/unsaid.h5", **ONE)
        self.assertIn("[1437, 8, 8, 3], which reads as 8 channels of 8 x 3 pixels; set the "
                      "attribute axes of the file", said)
        self.assertFalse((self.folder / "unsaid").exists())


class Start(Run):
    def said(self, name, *words, **keywords):
        """What comes before the first step, which one rank alone says."""
        words = (*words, "train.epochs=", "train.steps=30")
        lines = self.train(name, *words, **keywords).stderr.splitlines()
        self.assertEqual(sum(line.startswith("digits: ") for line in lines), 1)
        first_step = next(k for k, line in enumerate(lines) if line.startswith("step 1/30  "))
        self.assertLessEqual(max(map(len, lines)), 80)
        return lines[:first_step]

    def facts(self, name, *words, **keywords):
        """The lines of a run about itself by their first word: {"rule": "cdp-v2, ..."}."""
        first, *lines = self.said(name, *words, **keywords)
        self.assertEqual(first, "digits: mlp, 13,130 parameters")
        return dict(line.split(maxsplit=1) for line in lines)

    def test_what_a_run_says_of_itself(self):
        lines = self.said("one", "engine.threads=1")
        with h5py.File(PROJECT / "inputs/digits.h5") as data:
            counts = numpy.bincount(data["train/labels"]).tolist()
        least, most = min(counts), max(counts)
        self.assertEqual(lines[:4], ["digits: mlp, 13,130 parameters",
                                     "  data     1,437 training and 360 test samples, 1x8x8",
                                     f"  labels   10 classes, from {least} ({counts.index(least)}) "
                                     f"to {most} ({counts.index(most)}) for training",
                                     "  rule     cdp-v2, single: N = 4, S = 4"])
        self.assertRegex(lines[4], r"^  devices  1, \w+( with 1 thread)?$")
        with h5py.File(self.folder / "one/run.h5") as run:
            planned = sum(category[0] for category in run["plan/bytes"].values())
        self.assertRegex(lines[5], rf"^  memory   {planned / 1024:.1f} KiB per device, "
                         r"[0-9.]+ KiB of it activations$")
        self.assertEqual(lines[6:], ["  steps    30 of 64 samples each, in 2 epochs",
                                     "  folder   one"])

    def test_devices_are_told_from_ranks(self):
        facts = self.facts("local", "parallel.placement=pipeline", "engine.threads=1")
        self.assertIn("4 in one process, ", facts["devices"])
        self.assertIn("at most ", facts["memory"])
        self.assertNotIn("warning:", facts)
        facts = self.facts("ring", *RING, ranks=4, **ONE)
        self.assertIn("4 ranks, ", facts["devices"])

    def test_too_many_threads_are_warned_of(self):
        cores = len(os.sched_getaffinity(0))
        if " with " not in self.facts("few", "engine.threads=1")["devices"]:
            self.skipTest("threads of the host compute nothing here")
        self.assertIn(f"warning: {cores + 1} threads share {cores} core",
                      self.said("many", f"engine.threads={cores + 1}")[-1])
        self.assertIn("warning: 4 ranks of ",
                      self.said("ring", *RING, f"engine.threads={cores}", ranks=4)[-1])
        # Who places threads has counted cores.
        self.assertNotIn("warning:", self.facts("placed", f"engine.threads={cores + 1}",
                                                OMP_PROC_BIND="true"))

    def test_threads_that_have_places_take_all_cores(self):
        cores = len(os.sched_getaffinity(0))
        if cores < 2 or " with " not in self.facts("few", "engine.threads=1")["devices"]:
            self.skipTest("needs two cores, and threads of the host that compute")
        for name in ("OMP_PROC_BIND", "OMP_PLACES"):
            facts = self.facts(name, OMP_NUM_THREADS=None,
                               **{name: "true" if name == "OMP_PROC_BIND" else "cores"})
            self.assertIn(f" with {cores} threads", facts["devices"])

    def test_images_that_were_never_written_are_warned_of(self):
        with h5py.File(PROJECT / "inputs/digits.h5") as data, \
                h5py.File(self.folder / "part.h5", "w") as part:
            part.attrs.update(data.attrs)
            images = data["train/images"][:]
            part.create_dataset("train/images", images.shape, "u1")[:1000] = images[:1000]
            for name in ("train/labels", "test/images", "test/labels"):
                part[name] = data[name][()]
        facts = self.facts("part", f"data.file={self.folder}/part.h5", "engine.threads=1")
        self.assertEqual(facts["warning:"], "19 of 64 training images looked at are black; were all "
                         "of them written?")

    def test_ranks_with_cores_of_their_own_are_not_warned_of(self):
        cores = sorted(os.sched_getaffinity(0))[:2]
        if len(cores) < 2 or not shutil.which("taskset"):
            self.skipTest("needs two cores and taskset")
        two = [*RING, "parallel.micro_batches=2", "parallel.stages=2", "train.steps=1"]
        words = [MPIEXEC]
        for k, core in enumerate(cores):
            words += [*([":"] if k else []), "-n", "1", "taskset", "-c", str(core), CAROUSEL,
                      "train", DECK, "run.output=run", *two]
        result = subprocess.run(words, cwd=self.folder, text=True, capture_output=True, timeout=60,
                                env={**os.environ, **ONE})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("2 ranks", result.stderr)
        self.assertNotIn("warning", result.stderr)

    def test_each_rank_tells_the_cores_it_has(self):
        cores = len(os.sched_getaffinity(0))
        if cores < 2 or cores != os.cpu_count():
            self.skipTest("ranks cannot have cores of their own here")
        # Open MPI's launcher binds ranks, unless told not to.
        unbound = {"OMPI_MCA_hwloc_base_binding_policy": "none"}
        self.train("bound", *RING, "parallel.micro_batches=2", "train.steps=2", ranks=2, **unbound)
        machines = []
        for rank in range(2):
            with h5py.File(self.folder / f"bound/ranks/{rank:04}.h5") as file:
                machines.append(file["info"].attrs["machine"].decode())
        found = [re.search(r"on cores? (\S+), NUMA", text).group(1) for text in machines]
        self.assertEqual(len(set(found)), 2, machines)
        # Whoever wants to place threads by himself can: a launcher that says so is believed.
        self.train("free", *RING, "parallel.micro_batches=2", "train.steps=2", ranks=2,
                   SLURM_CPU_BIND_TYPE="mask_cpu:", **unbound)
        with h5py.File(self.folder / "free/ranks/0000.h5") as file:
            self.assertNotIn("on core", file["info"].attrs["machine"].decode())


class Refusals(Run):
    def test_an_earlier_run_is_kept(self):
        self.train("run", "train.epochs=1")
        before = self.parameters("run")
        self.assertIn("--overwrite", self.refused(2, "run", "train.epochs=1"))
        self.assertIn("--overwrite", self.refused(2, "run", *RING, ranks=4))
        numpy.testing.assert_array_equal(before["0.bias"], self.parameters("run")["0.bias"])
        self.train("run", "train.epochs=1", "--overwrite")

    def test_ranks_must_fit_the_plan(self):
        for ranks in (2, 5):
            self.assertIn("4 devices", self.refused(2, "run", *RING, ranks=ranks))

    def test_ranks_must_agree(self):
        train = [CAROUSEL, "train", DECK, "run.output=run", *RING]
        shutil.copy(PROJECT / "inputs/digits.h5", self.folder)
        for other in ("parallel.rule=cdp-v1", "run.seed=5", "train.micro_batch_size=4",
                      "run.watchdog_seconds=0", "data.file=digits.h5"):
            result = subprocess.run([MPIEXEC, "-n", "3", *train, ":", "-n", "1", *train, other],
                                    cwd=self.folder, text=True, capture_output=True, timeout=100)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("rank 3: this rank has another deck", self.complaint(result))

    def test_ranks_must_share_the_run_folder(self):
        two = [*RING, "parallel.micro_batches=2", "parallel.stages=2", "run.watchdog_seconds=4"]
        words = [MPIEXEC]
        for k in range(2):
            (self.folder / f"node{k}").mkdir()
            words += [*([":"] if k else []), "-n", "1", "env", "-C", self.folder / f"node{k}",
                      CAROUSEL, "train", DECK, "run.output=run", *two]
        result = subprocess.run(words, text=True, capture_output=True, timeout=60)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("rank 1: run.output = run is not the folder that rank 0 made",
                      self.complaint(result))

    def test_data_that_is_not_what_it_should_be(self):
        data = self.folder / "data.h5"
        shutil.copy(PROJECT / "inputs/digits.h5", data)
        with h5py.File(data, "r+") as file:
            file["train/labels"][7] = 10
        for ranks, words in ((1, ()), (4, RING)):
            line = self.refused(65, "run", f"data.file={data}", *words, ranks=ranks)
            self.assertIn("7", line)
        data.write_bytes(data.read_bytes()[:50000])
        self.refused(65, "run", f"data.file={data}", *RING, ranks=4)
        self.refused(74, "run", "data.file=none.h5", *RING, ranks=4)

    def test_divergence_stops_all_after_the_same_step(self):
        stopped = []
        for name, words, ranks in (("one", (), 1), ("ring", RING, 4)):
            line = self.refused(76, name, "train.optimizer.learning_rate=1e8", *words, ranks=ranks)
            stopped.append(line)
            status = json.loads((self.folder / name / "status.json").read_text())
            self.assertEqual((status["state"], status["exit_code"]), ("diverged", 76))
            self.assertFalse(list((self.folder / name / "checkpoints").iterdir()))
        self.assertEqual(stopped[0], stopped[1])
        with h5py.File(self.folder / "ring/run.h5") as run:
            lengths = {len(run[f"receipts/{j}"]) for j in range(4)}
        self.assertEqual(len(lengths), 1)

    def test_numbers_lost_in_the_last_update_are_a_divergence_too(self):
        for name, words, ranks in (("one", (), 1), ("ring", RING, 4)):
            line = self.refused(76, name, "train.steps=1", "train.optimizer.learning_rate=1e200",
                                *words, ranks=ranks)
            self.assertIn("after step 0", line)
            status = json.loads((self.folder / name / "status.json").read_text())
            self.assertEqual((status["state"], status["step"]), ("diverged", 1))
            self.assertFalse(list((self.folder / name / "checkpoints").iterdir()))

    def test_the_last_checkpoint_comes_before_the_last_evaluation(self):
        # Parameters as large as this are finite, but what they compute is not.
        for name, words, ranks in (("one", (), 1), ("ring", RING, 4)):
            self.train(f"{name} whole", "train.steps=1", *words, ranks=ranks)
            values = self.parameters(f"{name} whole").values()
            rate = "1e30" if next(iter(values)).dtype == numpy.float32 else "1e250"
            line = self.refused(76, name, "train.steps=1", f"train.optimizer.learning_rate={rate}",
                                *words, ranks=ranks)
            self.assertIn("the test loss after step 0 is not a finite number", line)
            self.assertTrue(all(numpy.isfinite(value).all()
                                for value in self.parameters(name).values()))
            status = json.loads((self.folder / name / "status.json").read_text())
            self.assertEqual((status["state"], status["step"]), ("diverged", 1))
            with h5py.File(self.folder / name / "run.h5") as run:
                self.assertFalse(numpy.isfinite(run["evaluations/loss"][0]))
            self.assertIn("passed all checks", self.carousel("verify", name, code=4).stdout)

    def test_a_closed_terminal_does_not_end_a_run(self):
        script = f"{CAROUSEL} train {DECK} run.output=run train.epochs=3 2>&1 | true; echo $PIPESTATUS"
        result = subprocess.run(["bash", "-c", script], cwd=self.folder, text=True,
                                capture_output=True, timeout=60)
        self.assertEqual(result.stdout, "0\n")
        self.assertIn("done after 66 steps", self.carousel("inspect", "run").stdout)

    def test_the_engine_holds_closed_descriptors(self):
        process = subprocess.Popen(
            ["bash", "-c", 'exec "$@" <&- >&- 2>&-', "-", pathlib.Path(CAROUSEL).with_name(
                "carousel-engine"), "train", DECK, "run.output=run", "engine.threads=1",
             "train.epochs=10000"], cwd=self.folder)
        try:
            while process.poll() is None and not (self.folder / "run/metrics.jsonl").exists():
                time.sleep(0.01)
            held = [os.readlink(f"/proc/{process.pid}/fd/{k}") for k in range(3)]
            self.assertEqual(held, ["/dev/null"] * 3)
        finally:
            process.kill()
            process.wait()

    def test_programs_read_what_inspect_knows(self):
        self.train("run", "train.epochs=2")
        paths = ["run", "run/checkpoints/last.h5", str(DECK.parent / "digits.h5")]
        run, checkpoint, data = json.loads(self.carousel("inspect", *paths, "--json").stdout)
        rows = self.carousel("inspect", "run", "--csv", "steps").stdout.split()
        with h5py.File(self.folder / "run/run.h5") as file:
            columns = {name: values[:].tolist() for name, values in file["steps"].items()}
            self.assertEqual(run["steps"], columns)
            names = rows[0].split(",")
            self.assertEqual(sorted(names), sorted(columns))
            table = [[float(word) for word in row.split(",")] for row in rows[1:]]
            self.assertEqual(table, [list(row) for row in zip(*(columns[name] for name in names))])
            self.assertEqual(run["evaluations"],
                             {name: values[:].tolist() for name, values in file["evaluations"].items()})
            self.assertEqual(run["peak_bytes"]["activations"]["planned"],
                             file["plan/bytes/activations"][:].tolist())
            self.assertEqual(run["receipts"], [f"{file[f'receipts/{s}'][-1]:016x}" for s in range(4)])
            self.assertEqual(run["info"]["deck"], file["info"].attrs["deck"].decode())
        self.assertEqual((run["kind"], run["status"]["state"], run["plan"]["rule"]),
                         ("run", "done", "cdp-v2"))
        self.assertEqual((checkpoint["step"], checkpoint["tensors"]["/parameters/0.weight"]),
                         (44, [64, 64]))
        self.assertEqual((data["train_samples"], data["shape"]), (1437, [1, 8, 8]))
        evaluations = self.carousel("inspect", "run", "--csv", "evaluations").stdout.splitlines()
        self.assertEqual((evaluations[0], len(evaluations)), ("step,epoch,loss,accuracy", 3))
        for words in (["run", "--csv", "stages"], ["run", "run", "--csv", "steps"],
                      ["run", "--csv", "steps", "--json"]):
            self.assertEqual(self.carousel("inspect", *words, code=2).stdout, "")

    def test_a_run_that_cannot_start_leaves_the_former_one(self):
        self.train("run", "train.epochs=1")
        before = self.parameters("run")
        limited = ["bash", "-c", f"ulimit -v 3000000; exec {CAROUSEL} --version"]
        if subprocess.run(limited, capture_output=True).returncode != 0:
            self.skipTest("a sanitizer needs more address space than this test allows")
        script = (f"ulimit -v 3000000; exec {CAROUSEL} train {DECK} run.output=run --overwrite "
                  "model.widths=[64,30000,30000,30000,10]")
        result = subprocess.run(["bash", "-c", script], cwd=self.folder, text=True,
                                capture_output=True, timeout=60)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("bytes for", result.stderr)
        for key, value in self.parameters("run").items():
            numpy.testing.assert_array_equal(value, before[key])

    @unittest.skipUnless(os.path.exists("/proc"), "needs a folder nobody can write to")
    def test_unwritable_folder(self):
        self.refused(74, "/proc/run")
        self.refused(74, "/proc/run", *RING, ranks=4)

    def test_a_folder_nobody_may_look_into(self):
        os.symlink("loop", self.folder / "loop")
        for name in ("x" * 300, "loop/run"):
            for ranks, words in ((1, ()), (4, RING)):
                line = self.refused(74, name, *words, ranks=ranks)
                self.assertIn("set run.output to a folder you may write to", line)

    def test_files_of_others_are_kept(self):
        for name in ("checkpoints/last.h5", "ranks/0000.h5"):
            (self.folder / "run" / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / "run" / name).write_text("mine")
        self.assertIn("--overwrite", self.refused(2, "run", "train.steps=1"))
        self.assertEqual((self.folder / "run/checkpoints/last.h5").read_text(), "mine")
        (self.folder / "run/checkpoints/mine.h5").write_text("mine")
        (self.folder / "run/checkpoints/step-best.h5").write_text("mine")
        self.train("run", "train.steps=1", "--overwrite")
        for name in ("mine", "step-best"):
            self.assertEqual((self.folder / f"run/checkpoints/{name}.h5").read_text(), "mine")

    def test_a_gpu_that_cannot_be(self):
        line = self.refused(2, "run", "engine.device=900")
        self.assertRegex(line, "command line: engine.device = 900: this process sees [0-9]+ GPU")

    def test_threads_that_cannot_be(self):
        for variables in ({"OMP_NUM_THREADS": "600"}, {"OMP_NUM_THREADS": "many"},
                          {"KOKKOS_NUM_THREADS": "abc"}, {"KOKKOS_NUM_THREADS": "4,2"},
                          {"KOKKOS_NUM_THREADS": "600"}):
            for ranks, words in ((1, ()), (4, RING)):
                line = self.refused(2, "run", *words, ranks=ranks, **variables)
                self.assertIn("a number of threads from 1 to 512", line)
        self.train("run", "train.steps=1", OMP_NUM_THREADS="2,1")
        self.train("run", "train.steps=1", "--overwrite", "engine.threads=2", OMP_NUM_THREADS="600")

    def test_fewer_threads_than_asked_for(self):
        words = ("engine.threads=2", "train.epochs=1")
        self.train("plain", *words)
        plain = self.carousel("eval", "plain", PROJECT / "inputs/digits.h5").stdout
        note = "note: computing with 1 thread of the 2 asked for: OpenMP starts no more here"
        for name, value, ranks in (("OMP_DYNAMIC", "true", 4), ("OMP_THREAD_LIMIT", "1", 4),
                                   ("OMP_MAX_ACTIVE_LEVELS", "0", 4), ("OMP_NUM_THREADS", "1", 1),
                                   ("OMP_PLACES", "{0}", 1)):
            with self.subTest(name):
                more = RING if ranks > 1 else ()
                said = self.train(name, *words, *more, ranks=ranks, **{name: value}).stderr
                self.assertEqual(said.count(note), int(name == "OMP_THREAD_LIMIT"), said)
                self.carousel("diff", "plain", name)
                data = PROJECT / "inputs/digits.h5"
                self.assertEqual(self.carousel("eval", "plain", data, **{name: value}).stdout, plain)

    def test_threads_do_not_spin_for_long(self):
        for variables, expected in (({}, b"GOMP_SPINCOUNT=2000"),
                                    ({"GOMP_SPINCOUNT": "7"}, b"GOMP_SPINCOUNT=7"),
                                    ({"OMP_WAIT_POLICY": "active"}, b"OMP_WAIT_POLICY=active")):
            with subprocess.Popen([CAROUSEL, "train", DECK, "run.output=run", "--overwrite",
                                   "train.epochs=100000"], cwd=self.folder,
                                  stderr=subprocess.DEVNULL, env={**os.environ, **variables}) as run:
                environment = pathlib.Path(f"/proc/{run.pid}/environ")
                words = []  # of the engine, which the front end becomes
                while run.pid not in engines_in(self.folder) or len(words) < 2:
                    self.assertIsNone(run.poll())
                    time.sleep(0.01)
                    with contextlib.suppress(ProcessLookupError):  # while it becomes another
                        words = environment.read_bytes().split(b"\0")
                words = environment.read_bytes().split(b"\0")
                run.kill()
            found = [w for w in words if w.startswith((b"GOMP_SPINCOUNT=", b"OMP_WAIT_POLICY="))]
            self.assertEqual(found, [expected])

    def test_an_error_is_one_line_whatever_it_quotes(self):
        data = self.folder / "data.h5"
        shutil.copy(PROJECT / "inputs/digits.h5", data)
        with h5py.File(data, "r+") as file:
            file.attrs["format"] = numpy.bytes_("x\ny")
        self.assertIn("'x\\u000Ay'", self.refused(65, "run", f"data.file={data}"))
        (self.folder / "two\nlines").mkdir()
        (self.folder / "two\nlines/run.h5").touch()
        self.assertIn("two\\u000Alines", self.refused(2, "two\nlines"))

    def test_a_damaged_checkpoint_is_no_mistake_of_the_user(self):
        self.train("run", "train.steps=1")
        with h5py.File(self.folder / "run/checkpoints/last.h5", "r+") as file:
            deck = file["info"].attrs["deck"].replace(b"[run]", b"[nur]")
            file["info"].attrs["deck"] = numpy.bytes_(deck)
        result = self.carousel("eval", "run/checkpoints/last.h5", PROJECT / "inputs/digits.h5",
                               code=65)
        self.assertIn("run/checkpoints/last.h5, deck:", self.complaint(result))

    def test_full_disk(self):
        result = subprocess.run(["bash", "-c", f"ulimit -f 40; exec {CAROUSEL} train {DECK} "
                                 "run.output=run"], cwd=self.folder, text=True,
                                capture_output=True, timeout=60)
        self.assertEqual(result.returncode, 74, result.stderr)
        self.assertIn("check free space", self.complaint(result))

    def test_data_that_break_off_in_an_epoch(self):
        data = self.folder / "data.h5"
        for name, launcher, words in ("one", [], ()), ("four", [MPIEXEC, "-n", "4"], RING):
            shutil.copy(PROJECT / "inputs/digits.h5", data)
            process = subprocess.Popen(
                [*launcher, CAROUSEL, "train", DECK, *words, f"data.file={data}",
                 f"run.output={name}", "train.epochs=100000", "train.micro_batch_size=1"],
                cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(process.kill)
            while self.steps_told(name) < 50:
                self.assertIsNone(process.poll())
                time.sleep(0.002)
            os.truncate(data, 3000)
            self.assertNotEqual(process.wait(60), 0)
            status = json.loads((self.folder / name / "status.json").read_text())
            self.assertEqual((status["state"], status["exit_code"]), ("failed", 74))
            rank = "rank [0-3]: " if launcher else ""
            self.assertRegex(status["cause"], rf"^{rank}\S*data.h5: ends at byte 3000")
            self.assertLess(abs(status["step"] - self.steps_told(name)), 5)

    def test_a_killed_run_has_all_up_to_its_last_segment(self):
        words = ["train.steps=1000000", "train.evaluate_every=0", "checkpoint.every=0",
                 "checkpoint.every_steps=10", "profile.steps=::7", "profile.audit=true"]
        for attempt, placement in enumerate(["single", "replicated"] * 4):
            name = f"run{attempt}"
            process = subprocess.Popen([CAROUSEL, "train", DECK, f"run.output={name}", *words,
                                        f"parallel.placement={placement}"], cwd=self.folder,
                                       stderr=subprocess.DEVNULL)
            self.addCleanup(process.kill)
            while not (self.folder / name / "run.h5").exists():
                self.assertIsNone(process.poll())
                time.sleep(0.002)
            looks = [self.rows_of(name) for _ in range(attempt + 1)]  # while it goes on
            time.sleep(random.random() / 2)
            process.kill()
            process.wait()
            looks.append(self.rows_of(name))
            self.assertEqual(looks, sorted(looks))
            self.assertIn(0, (looks[-1] % 10, looks[-1] % 22))  # segments end with epochs, too
            self.assertLessEqual(self.steps_told(name) - looks[-1], 10)
            with open(self.folder / name / "metrics.jsonl") as lines:
                told = [line["step"] for line in map(json.loads, lines)]
            self.assertEqual(told, list(range(len(told))))
            self.assertIn("ended without a word", self.carousel("inspect", name).stdout)
            self.assertIn("passed all checks", self.carousel("verify", name, code=4).stdout)

    def test_status_moves_within_a_segment(self):
        # A minute for the segment, and a rate at which no processor reaches a loss that diverges.
        process = subprocess.Popen([CAROUSEL, "train", DECK, "run.output=run",
                                    "train.micro_batch_size=1", "train.optimizer.learning_rate=1e-6",
                                    "model.widths=[64,4000,4000,4000,10]"], cwd=self.folder,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        while self.steps_told("run") == 0:
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        begin = time.monotonic()
        seen = []
        while len(seen) < 3:
            self.assertLess(time.monotonic(), begin + 10 * (len(seen) + 1))
            status = json.loads((self.folder / "run/status.json").read_text())
            if not seen or status["updated"] != seen[-1]["updated"]:
                seen.append(status)
                self.assertLessEqual(status["step"], self.steps_told("run") + 1)
            time.sleep(0.05)
        self.assertEqual(self.rows_of("run"), 0)
        self.assertEqual({status["state"] for status in seen}, {"running"})
        self.assertLess(seen[0]["step"], seen[1]["step"])
        self.assertLess(seen[1]["step"], seen[2]["step"])

    def rows_of(self, name):
        """Steps that a run file tells of, in all of its columns; metrics.jsonl has them too."""
        with h5py.File(self.folder / name / "run.h5") as run:
            steps = run["steps/step"][:].tolist()
            self.assertEqual(steps, list(range(len(steps))))
            self.assertTrue(all(len(run["steps"][column]) == len(steps) for column in run["steps"]))
        self.assertGreaterEqual(self.steps_told(name), len(steps))
        return len(steps)

    def steps_told(self, name):
        metrics = self.folder / name / "metrics.jsonl"
        return metrics.read_text().count('"kind":"step"') if metrics.exists() else 0

    def begin_training(self, *words):
        """Four ranks in a training without end, and their engines."""
        process = subprocess.Popen([MPIEXEC, "-n", "4", CAROUSEL, "train", DECK, *RING,
                                    "run.output=run", "train.epochs=100000", *words],
                                   cwd=self.folder, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        metrics = self.folder / "run/metrics.jsonl"
        while not metrics.exists() or metrics.stat().st_size == 0:
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        engines = engines_in(self.folder)
        self.assertEqual(len(engines), 4)
        return process, engines

    def test_one_line_tells_of_all_disks_that_are_full(self):
        process, engines = self.begin_training("checkpoint.every=0")  # rank files grow alone
        for engine in engines:
            environment = pathlib.Path(f"/proc/{engine}/environ").read_bytes()
            if rank_in(environment.split(b"\0")) != 0:  # which writes metrics all the time
                resource.prlimit(engine, resource.RLIMIT_FSIZE, (4096, 4096))
        _, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 74, stderr)
        lines = [line for line in stderr.splitlines() if line.startswith("carousel: ")]
        self.assertEqual(len(lines), 1, stderr)
        self.assertRegex(lines[0], r"rank ([123]): run/ranks/000\1.h5.*check free space")
        status = json.loads((self.folder / "run/status.json").read_text())
        self.assertEqual((status["state"], status["exit_code"]), ("failed", 74))

    def test_no_rank_outlives_a_killed_one(self):
        process, engines = self.begin_training()
        self.assertIn("running", self.carousel("inspect", "run").stdout)
        self.assertIn("still writing", self.refused(2, "run", "--overwrite"))
        os.kill(engines[2], signal.SIGKILL)
        self.assertNotEqual(process.wait(timeout=10), 0)
        deadline = time.monotonic() + 10
        while any(pathlib.Path(f"/proc/{pid}").exists() for pid in engines):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.assertIn("ended without a word", self.carousel("inspect", "run").stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
