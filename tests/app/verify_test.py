# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Receipts of real runs: verify accepts them and rejects every altered row, diff finds the first
step and stage where two part.

Usage: verify_test.py CAROUSEL PROJECT. Everything happens in a temporary folder.
"""

import collections
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import h5py
import numpy as np

CAROUSEL, PROJECT = sys.argv[1], pathlib.Path(sys.argv[2])
DECK = PROJECT / "inputs/digits.toml"
PROFILE = 'profile.steps="0:3,20:24,-1:"'
RING = ("parallel.placement=replicated",)
CUT = ("parallel.micro_batches=6", "parallel.stages=3")  # N = 2 S
GAPS = ("parallel.micro_batches=3", "parallel.stages=4")  # N < S


def digest(values):
    """That of core/base/digest.hpp."""
    bits = values.reshape(-1).view(f"u{values.itemsize}").astype(np.uint64)
    z = bits ^ (np.arange(1, bits.size + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))).sum(dtype=np.uint64)


# What is altered, of which kind, and how; times are moved to where they cannot have been.
FIELDS = {
    "action": ("actions/kind", "actions/step", "actions/micro_batch", "actions/stage"),
    "version": ("actions/version",),
    "byte count": ("messages/bytes",),
    "message": ("messages/kind", "messages/direction", "messages/step", "messages/stage",
                "messages/micro_batch", "messages/peer"),
    "memory": ("memory/action", "memory/seconds", "memory/parameters",
               "memory/previous_parameters", "memory/gradients", "memory/optimizer",
               "memory/activations", "memory/boundary", "memory/scratch", "memory/communication",
               "memory/data"),
    "time": ("actions/begin", "actions/end", "messages/posted", "messages/completed",
             "messages/waited"),
}
MUTATIONS_PER_KIND = 24  # of each, in every run


class Runs(unittest.TestCase):
    """Trains what the tests look at once, into one folder."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)

    @classmethod
    def train(cls, name, *words, length="train.epochs=2", code=0):
        result = subprocess.run([CAROUSEL, "train", DECK, f"run.output={name}", PROFILE, length,
                                 *words],
                                cwd=cls.folder, text=True, capture_output=True, timeout=100)
        assert result.returncode == code, result.stderr

    def carousel(self, *words, code=0, inside=None):
        result = subprocess.run([CAROUSEL, *words], cwd=inside or self.folder, text=True,
                                capture_output=True, timeout=100)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def incomplete(self, name):
        """verify finds nothing wrong, but says that there should be more; returns what it says."""
        result = self.carousel("verify", name, code=4)
        self.assertEqual(result.stderr, "")
        self.assertIn("the run is incomplete", result.stdout)
        self.assertNotIn("All checks passed", result.stdout)
        return result.stdout

    def set_status(self, name, **changes):
        """Alters status.json; a process of another host may still be running."""
        status = self.folder / name / "status.json"
        status.write_text(json.dumps({**json.loads(status.read_text()), "host": "elsewhere",
                                      **changes}))

    def rejected(self, name, code=65):
        """verify names one thing that is wrong and claims nothing; returns the line."""
        result = self.carousel("verify", name, code=code)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        return result.stderr

    def copy(self, name):
        shutil.rmtree(self.folder / "copy", ignore_errors=True)
        shutil.copytree(self.folder / name, self.folder / "copy", symlinks=True)
        return self.folder / "copy"


class Verify(Runs):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.train("single")
        cls.train("ring", *RING)
        cls.train("wide", *RING, *CUT, "parallel.rule=cdp-v1")

    def test_accepts_what_was_recorded(self):
        self.train("gaps", *RING, *GAPS, "parallel.slack=1", "train.evaluate_every=0")
        self.train("together", "parallel.rule=dp")
        self.train("accumulate", "parallel.rule=dp", "parallel.order=accumulate")
        self.train("ordered", "parallel.rule=dp", *RING)
        self.train("fast", "parallel.rule=dp", "parallel.reduction=fast", *RING)
        self.train("steps", *CUT, length="train.steps=30")
        self.train("one-step", *RING, length="train.steps=1")
        for name in ("single", "ring", "wide", "gaps", "together", "accumulate", "ordered", "fast",
                     "steps", "one-step"):
            report = self.carousel("verify", name).stdout
            self.assertIn("All checks passed", report)
            self.assertLessEqual(max(map(len, report.splitlines())), 80)
        self.assertRegex(self.carousel("verify", "ring/run.h5").stdout,
                         r"44 steps(.*\n)+.*8 profiled steps(.*\n)+ *messages +240,")

    def test_needs_neither_data_nor_engine(self):
        shutil.copy(CAROUSEL, self.folder / "alone")
        shutil.copy(PROJECT / "inputs/digits.h5", self.folder / "data.h5")
        self.train("moved", "data.file=data.h5")
        (self.folder / "data.h5").unlink()
        result = subprocess.run([self.folder / "alone", "verify", "moved"], cwd=self.folder,
                                text=True, capture_output=True)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_diverged_runs_end_where_the_rule_says(self):
        self.train("diverged", *RING, "train.optimizer.learning_rate=1e8", code=76)
        report = self.incomplete("diverged")
        self.assertIn("diverged after", report)
        self.assertRegex(report, r"incomplete, \d+ of 44 steps:\nit diverged:\n  the loss of step")
        self.copy("diverged")
        self.set_status("copy", exit_code=77)
        self.assertIn("status.json: exit_code is 77 in a run that is diverged",
                      self.rejected("copy"))
        self.set_status("copy", state="done", exit_code=0)
        self.assertIn("/steps/loss row", self.rejected("copy"))

    def test_the_checkpoint_has_its_receipts(self):
        for group in ("parameters", "previous"):
            copy = self.copy("ring")
            with h5py.File(copy / "checkpoints/last.h5", "r+") as checkpoint:
                name = sorted(checkpoint[group])[-1]
                checkpoint[group][name][0] += 1
            self.assertRegex(self.rejected("copy"), rf"/{group}/{name} has digest .* should have")
            with h5py.File(copy / "checkpoints/last.h5", "r+") as checkpoint:
                tensor = checkpoint[group][name]
                tensor.attrs["digest"] = digest(tensor[()])
            self.assertRegex(self.rejected("copy"),
                             rf"receipts/3 row \d+ is \d+, should be \d+ as in /{group}/ of ")

    def test_the_checkpoint_has_what_was_predicted(self):
        self.train("predicts", *RING, "parallel.rule=cdp-v1", "parallel.predict=1",
                   "engine.precision=bf16")
        self.assertIn("All checks passed", self.carousel("verify", "predicts").stdout)
        copy = self.copy("predicts")
        with h5py.File(copy / "checkpoints/last.h5", "r+") as checkpoint:
            name = sorted(checkpoint["predicted"])[0]
            checkpoint["predicted"][name][0] += 1
        self.assertIn(f"/predicted/{name} has digest", self.rejected("copy"))
        copy = self.copy("predicts")
        with h5py.File(copy / "checkpoints/last.h5", "r+") as checkpoint:
            del checkpoint["predicted"]
        self.assertIn("/predicted/0.weight is missing", self.rejected("copy"))

    def test_killed_runs_count_as_far_as_they_went(self):
        copy = self.copy("ring")
        self.set_status("copy", state="running")
        report = self.incomplete("copy")
        self.assertIn("running after 44", report)
        self.assertIn("44 of 44 steps:\nit was killed, or still runs on elsewhere\n", report)
        (copy / "status.json").unlink()
        self.assertIn("44 of 44 steps:\nit has no status.json\n", self.incomplete("copy"))
        # One rank was an epoch behind the others when the run was killed.
        copy = self.copy("ring")
        self.set_status("copy", state="failed", exit_code=77, cause="rank 2 is lost")
        shutil.rmtree(copy / "checkpoints")
        with h5py.File(copy / "ranks/0002.h5", "r+") as rank:
            cut_to_first_epoch(rank)
        report = self.incomplete("copy")
        self.assertIn("failed after 44", report)
        self.assertIn("it failed:\n  rank 2 is lost\n", report)

    def test_the_status_agrees_with_the_records(self):
        copy = self.copy("ring")
        cut_to_steps(copy, 22)
        self.assertIn("run.h5: /steps/loss has 22 rows, should have 44 in a run that is done",
                      self.rejected("copy"))
        self.copy("ring")
        for step in (22, 43, 45):
            self.set_status("copy", step=step)
            self.assertIn(f"status.json: step is {step}, but copy/run.h5 has 44 steps in a run "
                          "that is done", self.rejected("copy"))
        self.set_status("copy", step=44, exit_code=70)
        self.assertIn("status.json: exit_code is 70 in a run that is done", self.rejected("copy"))
        # A run that was killed may have written its records and not its status, and a rank that
        # fails tells what the devices have done since the last records.
        copy = self.copy("ring")
        cut_to_steps(copy, 22)
        for state, code in (("running", 0), ("failed", 77)):
            for step in (0, 10, 22, 43, 44):
                self.set_status("copy", state=state, exit_code=code, step=step)
                self.assertIn("22 of 44 steps", self.incomplete("copy"))
            for step in (-1, 45):
                self.set_status("copy", state=state, exit_code=code, step=step)
                self.assertIn(f"step is {step}, but", self.rejected("copy"))
        self.copy("ring")
        self.set_status("copy", state="running", step=21)
        self.assertIn("step is 21, but", self.rejected("copy"))

    def test_a_run_that_ended_before_its_plan(self):
        copy = self.copy("single")
        with h5py.File(copy / "run.h5", "r+") as run:
            del run["plan"]
        self.assertIn("run.h5: has no /plan", self.rejected("copy"))
        self.set_status("copy", state="running", step=0)
        self.assertIn("run.h5: has no /plan", self.rejected("copy", code=4))

    def test_killed_behind_a_checkpoint_and_before_its_link(self):
        copy = self.copy("ring")
        checkpoints = copy / "checkpoints"
        first, second = sorted(checkpoints.glob("step-*.h5"))
        self.assertEqual((checkpoints / "last.h5").readlink().name, second.name)
        (checkpoints / "last.h5").unlink()
        (checkpoints / "last.h5").symlink_to(first.name)
        self.assertIn("last.h5: was made after 22 steps, the newest is of 44", self.rejected("copy"))
        self.set_status("copy", state="running")
        self.incomplete("copy")
        (checkpoints / "last.h5").unlink()
        self.assertIn("last.h5: cannot open", self.rejected("copy", code=74))
        first.rename(copy / "aside.h5")  # as if checkpoint.keep had removed it
        self.assertIn("last.h5: cannot open", self.rejected("copy", code=74))
        # Whoever went on has its link, even where another rank was an epoch behind.
        second.unlink()
        (copy / "aside.h5").rename(first)
        with h5py.File(copy / "ranks/0002.h5", "r+") as rank:
            cut_to_first_epoch(rank)
        self.assertIn("last.h5: cannot open", self.rejected("copy", code=74))

    def test_killed_behind_its_first_checkpoint(self):
        self.train("short", *RING, length="train.epochs=1")
        (self.folder / "short/checkpoints/last.h5").unlink()
        self.assertIn("last.h5: cannot open", self.rejected("short", code=74))
        self.set_status("short", state="running")
        self.incomplete("short")

    def test_killed_in_the_first_epoch(self):
        # Long steps, so that the kill comes before the first segment ends.
        for name, words in (("early", ()), ("early-ring", RING)):
            process = subprocess.Popen([CAROUSEL, "train", DECK, f"run.output={name}", *words,
                                        "model.widths=[64,1500,1500,1500,10]"],
                                       cwd=self.folder, stderr=subprocess.DEVNULL)
            metrics = self.folder / name / "metrics.jsonl"
            while not metrics.exists() or metrics.stat().st_size == 0:
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            process.kill()
            process.wait()
            report = self.incomplete(name)
            self.assertIn("after 0 steps", report)
            self.assertIn(" 0 of 440 steps:\nit was killed\n", report)
            self.assertNotIn("peak bytes", self.carousel("inspect", name).stdout)
        # Of the other run, one rank had come to the end of its first segment, and one had not.
        copy = self.copy("ring")
        self.set_status("copy", state="failed", exit_code=77)
        shutil.rmtree(copy / "checkpoints")
        with h5py.File(copy / "ranks/0002.h5", "r+") as rank:
            cut_to_first_epoch(rank, steps=0)
        self.assertIn("failed after 44", self.incomplete("copy"))
        self.set_status("copy", state="done", exit_code=0)
        self.assertIn("ranks/0002.h5", self.rejected("copy"))

    def test_every_mutation_is_rejected(self):
        chance = random.Random(1)
        counts = collections.Counter()
        for name in ("single", "ring", "wide"):
            for kind, fields in FIELDS.items():
                for _ in range(MUTATIONS_PER_KIND // 3 + 1):
                    counts[kind] += self.mutate(chance, name, kind, fields)
        print("rejected:", ", ".join(f"{n} x {kind}" for kind, n in counts.items()))
        self.assertGreaterEqual(sum(counts.values()), 100)

    def mutate(self, chance, name, kind, fields):
        ranks = sorted((self.folder / name / "ranks").iterdir())
        rank = chance.choice(ranks)
        with h5py.File(rank) as file:
            fields = [f for f in fields if len(file[f])]
        if not fields:
            return 0  # one device sends no messages
        field = chance.choice(fields)
        copy = self.copy(name)
        with h5py.File(copy / "ranks" / rank.name, "r+") as file:
            row = chance.randrange(len(file[field]))
            before = file[field][row]
            file[field][row] = altered(chance, file, field, before)
            self.assertNotEqual(file[field][row], before)
            after = file[field][row]
        line = self.rejected("copy")
        where = f"{name} {rank.name} {field}[{row}]: {before} -> {after}: {line}"
        self.assertIn(f"ranks/{rank.name}: ", line, where)
        found = re.search(r": /(\w+)/\w+ row (\d+) ", line)
        self.assertTrue(found, where)
        # A time that is wrong may show in the row after it, or in the message or memory it times.
        if kind != "time":
            self.assertIn(f": /{field} row {row} is ", line, where)
        return 1

    def test_whole_files_are_judged_too(self):
        def put(dataset, row, value):
            return lambda file: file[dataset].__setitem__(row, value)

        def name(group, attribute, value):
            return lambda file: file[group].attrs.__setitem__(attribute, value)

        cases = [
            ("run.h5", put("plan/bytes/gradients", 2, 8), "/plan/bytes/gradients row 2"),
            ("run.h5", put("plan/messages_per_step", 1, 9), "/plan/messages_per_step row 1"),
            ("run.h5", put("plan/stage_activations", 1, 9), "/plan/stage_activations row 1"),
            ("run.h5", name("plan", "stages", 5), "stages of /plan is 5"),
            ("run.h5", name("plan/basis", "classes", 11), "/plan/basis"),
            ("run.h5", name("plan/basis", "target_type", "int9"), "target_type of /plan/basis is"),
            ("run.h5", name("plan/basis", "target_height", 7), "/plan/basis"),
            ("run.h5", name("info", "seed", 2), "seed of /info"),
            ("run.h5", put("steps/learning_rate", 30, 0.04), "/steps/learning_rate row 30"),
            ("run.h5", put("steps/step", 7, 8), "/steps/step row 7"),
            ("run.h5", put("evaluations/step", 0, 21), "/evaluations/step row 0"),
            ("run.h5", lambda f: f.pop("receipts/1"), "/receipts/1 is missing"),
            ("run.h5", lambda f: f.pop("receipts"), "/receipts/0 is missing"),
            ("run.h5", lambda f: f.pop("ranks"), "/ranks/0000 is missing"),
            ("run.h5", lambda f: relink(f, "receipts/1", "ranks/0000.h5"),
             "/receipts/1 leads to ranks/0000.h5:/receipts/1"),
            ("run.h5", lambda f: claim(f, "steps/loss", "f8"), "/steps/loss is [1125899906842624]"),
            ("run.h5", lambda f: claim(f, "plan/messages_per_step", "i8"),
             "/plan/messages_per_step is [1125899906842624]"),
            ("ranks/0002.h5", lambda f: f.pop("measured"), "/measured is missing"),
            ("run.h5", lambda f: f["steps/accuracy"].resize((43,)), "/steps/accuracy has 43"),
            ("ranks/0002.h5", lambda f: f["receipts/1"].resize((43,)), "/receipts/1 has 43 rows"),
            ("ranks/0002.h5", lambda f: f.pop("receipts/1"), "/receipts/1 is missing"),
            ("ranks/0002.h5", put("receipts/1", 43, 1), "/receipts/1 row 43"),
            ("ranks/0001.h5", name("measured", "bytes_sent", 7), "bytes_sent"),
            ("ranks/0001.h5", name("measured/peak_bytes", "activations", 7),
             "activations of /measured/peak_bytes"),
            ("ranks/0003.h5", lambda f: drop_last(f["messages"]), "/messages/kind has"),
            ("ranks/0003.h5", lambda f: drop_last(f["memory"]), "/memory/seconds has"),
            ("ranks/0003.h5", lambda f: drop_last(f["actions"]), "/actions/kind has"),
        ]
        for path, change, expected in cases:
            copy = self.copy("ring")
            with h5py.File(copy / path, "r+") as file:
                change(file)
            with self.subTest(expected):
                line = self.rejected("copy")
                self.assertIn(expected, line)
                self.assertIn(path, line)
        (self.copy("ring") / "ranks/0001.h5").unlink()
        self.assertIn("0001.h5", self.rejected("copy", code=74))


class Diff(Runs):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.train("one")

    def diff(self, other, code):
        return self.carousel("diff", "one", other, code=code).stdout

    def test_equal_runs(self):
        self.train("ring", *RING)
        self.assertIn("the same 44 updates, bit for bit", self.diff("ring", 0))
        self.assertEqual(self.diff("ring", 0).count("\n"), 1)

    def test_another_seed(self):
        self.train("seed", "run.seed=2")
        self.assertRegex(self.diff("seed", 3),
                         r"differ first after step 0, in stage 0 of 4\n"
                         r"(.*\n)*  run.seed +1  \|  2\n(.*\n)*  loss of step 0")

    def test_a_later_difference(self):
        self.train("late", "train.schedule.name=multistep", "train.schedule.milestones=[1]")
        self.train("later", "train.schedule.name=multistep", "train.schedule.milestones=[1]",
                   "train.schedule.gamma=0.2")
        text = self.carousel("diff", "late", "later", code=3).stdout
        self.assertRegex(text, r"differ first after step 22, in stage 0 of 4\n(.*\n)*"
                               r"  learning rate of step 22 +0.005\d*  \|  0.01\d*\n")

    def test_a_changed_receipt_names_its_stage(self):
        self.train("touched", *RING)
        with h5py.File(self.folder / "touched/ranks/0001.h5", "r+") as file:
            file["receipts/2"][17] += 1
        text = self.diff("touched", 3)
        self.assertIn("after step 17, in stage 2 of 4", text)
        self.assertIn("parallel.placement", text)

    def test_other_length(self):
        constant = ("train.schedule.name=constant", "train.schedule.per_epoch=false")
        self.train("long", *constant, length="train.epochs=3")
        self.train("short", *constant, length="train.epochs=1")
        text = self.carousel("diff", "short", "long", code=3).stdout
        self.assertIn("the same 22 updates, bit for bit; long made 44 more", text)
        self.assertIn("same for 22 steps", self.carousel("inspect", "short", "long").stdout)

    def test_other_model(self):
        self.train("wider", "model.widths=[64,65,64,64,10]")
        self.assertRegex(self.diff("wider", 3),
                         r"step 0, in stage 0 of 4\n(.*\n)*  model.widths +\[64")
        self.train("two", "parallel.stages=2")
        self.assertIn("one is cut into 4 stages and two into 2",
                      self.carousel("diff", "one", "two", code=2).stderr)

    def test_what_has_no_receipts(self):
        self.assertIn("none", self.carousel("diff", "one", "none", code=74).stderr)
        self.train("bare")
        with h5py.File(self.folder / "bare/ranks/0000.h5", "r+") as rank:
            del rank["receipts/1"]
        self.assertIn("no receipts", self.carousel("diff", "one", "bare", code=65).stderr)
        shutil.rmtree(self.folder / "bare/ranks")
        for inside in (self.folder, self.folder / "one"):
            result = self.carousel("diff", self.folder / "bare", self.folder / "one", code=74,
                                   inside=inside)
            self.assertIn("bare: ranks/0000.h5 is missing", result.stderr)
            self.assertIn("ranks/0000.h5 is missing",
                          self.carousel("inspect", self.folder / "bare", inside=inside).stdout)

    def test_unlinked_receipts_are_read_all_the_same(self):
        self.train("unlinked")
        with h5py.File(self.folder / "unlinked/run.h5", "r+") as run:
            del run["receipts/1"]
        self.assertIn("the same 44 updates", self.diff("unlinked", 0))


def altered(chance, file, field, value):
    """Another value for a field, one that an honest run could not have."""
    if field.endswith("kind"):
        kinds = sorted(set(file[field][:]) - {value}) or [b"other"]
        return chance.choice(kinds)
    if field.endswith("direction"):
        return b"send" if value == b"receive" else b"receive"
    if field == "memory/seconds":
        return value + chance.choice((-1, 1)) * 1e-6
    if field in FIELDS["time"]:
        return -value - 1e-3 if field == "messages/waited" else value + chance.choice((-1e4, 1e4))
    return value + chance.choice([d for d in (-64, -2, -1, 1, 2, 64, value + 1) if d != 0])


def drop_last(group):
    for column in group.values():
        column.resize((len(column) - 1,))


def relink(file, name, target):
    del file[name]
    file[name] = h5py.ExternalLink(target, "/" + name)


def claim(file, name, kind):
    """Puts a dataset there whose shape is far beyond what is stored."""
    del file[name]
    file.create_dataset(name, (2**50,), kind, chunks=(64,))


def cut_to_first_epoch(rank, steps=22):
    """Takes away what a rank of the ring wrote after its first segment of 22 steps, or all."""
    rows = int((rank["actions/step"][:] < steps).sum())
    for group, length in (("actions", rows), ("memory", rows),
                          ("messages", int((rank["messages/step"][:] < steps).sum()))):
        for column in rank[group].values():
            column.resize((length,))
    for column in rank["segments"].values():
        column.resize((1 if steps else 0,))
    if steps == 0:
        del rank["receipts"], rank["measured"]
        return
    for receipts in rank["receipts"].values():
        receipts.resize((22,))
    for name in ("messages_sent", "bytes_sent"):
        rank["measured"].attrs[name] = rank["measured"].attrs[name] // 2


def cut_to_steps(copy, steps):
    """Takes away what a run of the ring wrote after so many steps."""
    for name in ("0000", "0001", "0002", "0003"):
        with h5py.File(copy / f"ranks/{name}.h5", "r+") as rank:
            cut_to_first_epoch(rank, steps)
    with h5py.File(copy / "run.h5", "r+") as run:
        for column in run["steps"].values():
            column.resize((steps,))
        for column in run["evaluations"].values():
            column.resize((len(column) // 2,))
    shutil.rmtree(copy / "checkpoints")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
