# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Runs that are stopped, killed and gone on with: restart_test.py CAROUSEL MPIEXEC PROJECT [ROUNDS].

Whatever ends a run, wherever and in which placement it goes on, its parameters end with the bits of
a run that was not interrupted.
"""

import contextlib
import json
import os
import pathlib
import random
import re
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
from engines import engines_in, is_open_mpi

CAROUSEL, MPIEXEC, PROJECT = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
ROUNDS = int(sys.argv[4]) if len(sys.argv) > 4 else 8  # of kills while a checkpoint is written
DECK = PROJECT / "inputs/digits.toml"
REQUEUE = 75
# Told to end, Open MPI's launcher answers with a code of its own, whatever the ranks have done.
TOLD = [signal.SIGTERM, signal.SIGINT] if is_open_mpi(MPIEXEC) else []
ADAMW = ["train.optimizer.name=adamw", "train.optimizer.momentum=",
         "train.optimizer.learning_rate=0.002"]
# (ranks, placement and transport); a launcher is needed where there are several ranks.
PLACES = [(1, ["parallel.placement=single", "parallel.transport=local"]),
          (4, ["parallel.placement=replicated", "parallel.transport=mpi"]),
          (4, ["parallel.placement=replicated", "parallel.transport=mpi", "parallel.shards=true"]),
          (1, ["parallel.placement=sharded", "parallel.transport=local"]),
          (4, ["parallel.placement=sharded", "parallel.transport=mpi", "parallel.shards=true"]),
          (1, ["parallel.placement=pipeline", "parallel.transport=local"])]

# What these rules compute does not depend on S.
CUTS = {"dp": [(4, ["parallel.placement=replicated", "parallel.transport=mpi",
                    "parallel.shards=true", "parallel.stages=2"])],
        "cdp-v1": [(4, ["parallel.placement=replicated", "parallel.transport=mpi",
                        "parallel.shards=true", f"parallel.stages={stages}", *more])
                   for stages in (1, 2) for more in ([], ["parallel.sums=late"])],
        "cdp-v2": []}


class Restart(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def start(self, *words, ranks=1):
        before = [MPIEXEC, "-n", str(ranks)] if ranks > 1 else []
        # A group of its own, as a job has, so that a signal reaches launcher and ranks.
        return subprocess.Popen([*before, CAROUSEL, *map(str, words)], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                start_new_session=True)

    def carousel(self, *words, code=0, ranks=1):
        process = self.start(*words, ranks=ranks)
        out, err = process.communicate(timeout=100)
        self.assertEqual(process.returncode, code, out + err)
        return out + err

    def test_a_signal_that_comes_before_the_engine_listens_is_heard(self):
        # The front end holds it back,
        shutil.copy(CAROUSEL, self.folder)
        engine = self.folder / "carousel-engine"
        engine.write_text(f"#!{sys.executable}\nimport signal\n"
                          "print(*map(int, signal.pthread_sigmask(signal.SIG_BLOCK, [])))\n")
        engine.chmod(0o755)
        told = subprocess.run([self.folder / "carousel", "train", DECK, "run.output=run"],
                              capture_output=True, text=True, check=True).stdout
        self.assertEqual(set(map(int, told.split())), {signal.SIGTERM, signal.SIGUSR1})

        # and the engine asks for it.
        def signalled():
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
            os.kill(os.getpid(), signal.SIGUSR1)
        done = subprocess.run([CAROUSEL, "train", DECK, "run.output=run"], cwd=self.folder,
                              capture_output=True, text=True, preexec_fn=signalled, check=False)
        self.assertEqual(done.returncode, REQUEUE, done.stderr)
        self.assertIn("stopped by SIGUSR1 after 0 of", done.stderr)

    def train(self, name, *words, deck=DECK, **keywords):
        return self.carousel("train", deck, f"run.output={name}", *words, **keywords)

    def status(self, name):
        return json.loads((self.folder / name / "status.json").read_text())

    def wait_for_steps(self, name, steps, process):
        """Until a run is well under way, or over."""
        log = self.folder / name / "metrics.jsonl"
        while process.poll() is None:
            time.sleep(0.01)
            try:
                if self.status(name)["process"] not in engines_in(self.folder):
                    continue  # the log may be that of the part before
            except (OSError, ValueError):
                continue
            lines = log.read_text().splitlines() if log.exists() else []
            told = [json.loads(line)["step"] for line in lines if line.endswith("}")]
            if told and told[-1] >= steps:
                return

    def tensors(self, name, checkpoint="last"):
        found = {}
        with h5py.File(self.folder / name / f"checkpoints/{checkpoint}.h5") as file:
            file.visititems(lambda path, item: found.update({path: item[:].tobytes()})
                            if isinstance(item, h5py.Dataset) else None)
            return found, int(file.attrs["step"])

    def assert_same_end(self, name, wanted):
        self.assertEqual(self.tensors(name), self.tensors(wanted))
        self.assertIn("bit for bit", self.carousel("diff", name, wanted))
        self.assertIn("All checks passed", self.carousel("verify", name))
        self.assertEqual(self.rows(name), self.rows(wanted))

    def rows(self, name):
        """The history less the times, which a run file and a log must tell alike."""
        with h5py.File(self.folder / name / "run.h5") as file:
            rows = [file[group][column][:].tolist() for group in ("steps", "evaluations")
                    for column in ("step", "epoch", "loss", "accuracy")]
            seconds = file["steps/seconds"][:]
        self.assertTrue((numpy.diff(seconds) >= 0).all())
        log = [json.loads(line) for line in
               (self.folder / name / "metrics.jsonl").read_text().splitlines()]
        for group, kind in (("steps", "step"), ("evaluations", "evaluation")):
            told = [row["step"] for row in log if row["kind"] == kind]
            self.assertEqual(told, rows[0 if group == "steps" else 4], group)
        return rows

    def interrupt(self, process, how):
        """Ends a run somehow."""
        if how == "kill":  # every rank at once, as a node that loses power
            for engine in engines_in(self.folder):
                with contextlib.suppress(ProcessLookupError):  # its launcher was quicker
                    os.kill(engine, signal.SIGKILL)
            process.kill()
        elif how == "one rank":  # of which the others hear
            os.kill(random.choice(engines_in(self.folder) or [process.pid]), signal.SIGUSR1)
        else:
            os.killpg(process.pid, how)
        process.communicate(timeout=60)

    def go_through(self, rule, optimizer, seed):
        dice = random.Random(seed)
        # Every step counts: a killed run loses what came after its last checkpoint.
        words = [f"parallel.rule={rule}", "model.dropout=0.2", "train.epochs=60",
                 "data.augment.crop=random", "data.augment.padding=1", "data.augment.flip=0.3",
                 "checkpoint.every_steps=100", "profile.steps=0:3,::500", *optimizer]
        self.train("whole", *words)
        total = self.tensors("whole")[1]
        legs = 0
        ways = [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, "kill", "one rank"]
        dice.shuffle(ways)
        for how in ways:
            ranks, place = dice.choice(PLACES + CUTS[rule])
            process = self.start("train", DECK, "run.output=run", "run.resume=auto", *words, *place,
                                 ranks=ranks)
            begun = self.tensors("run")[1] if (self.folder / "run/checkpoints/last.h5").exists() \
                else 0
            self.wait_for_steps("run", begun + dice.randrange(1, 200), process)
            if process.poll() is None:
                self.interrupt(process, how)
                code = process.returncode
                if ranks > 1 and how in TOLD and code == 1:
                    code = self.status("run")["exit_code"]
                if how != "kill" and code != 0:  # 0: it was quicker
                    self.assertEqual(code, REQUEUE, how)
                    self.assertEqual(self.status("run")["state"], "stopped")
                    self.assertEqual(self.status("run")["exit_code"], REQUEUE)
                legs += 1
            else:
                process.communicate()
            # Where it stands is whole, too.
            self.carousel("inspect", "run")
        self.assertGreaterEqual(legs, 4)
        ranks, place = dice.choice(PLACES)
        # Runs are told apart by steps and stages.
        self.carousel("train", "run", *place, "parallel.stages=4", ranks=ranks)
        self.assertEqual(self.tensors("run")[1], total)
        self.assert_same_end("run", "whole")
        with h5py.File(self.folder / "run/run.h5") as file:
            self.assertGreater(len(file["parts/first_step"]), legs - 1)
        # Its last part may have been one over MPI that ended before it was interrupted.
        self.assertIn("nothing is left", self.carousel("train", "run", *PLACES[0][1]))

    def test_kills_leave_a_checkpoint_that_is_one_interval_old(self):
        dice = random.Random(6)
        every = 2
        words = ["run.output=run", "run.resume=auto", "train.epochs=100000", "train.evaluate_every=0",
                 f"checkpoint.every_steps={every}", "checkpoint.keep=2", "model.widths=[64,700,700,10]",
                 "parallel.stages=2", "profile.steps=0:1"]
        begun = 0
        for number in range(ROUNDS):
            ranks = 4 if number % 4 == 3 else 1
            place = dict(PLACES)[ranks] if ranks > 1 else []
            process = self.start("train", DECK, *words, *place, ranks=ranks)
            self.wait_for_steps("run", begun + dice.randrange(1, 8), process)
            self.assertIsNone(process.poll(), process.poll() and process.communicate())
            time.sleep(dice.random() * 0.1)  # most of which it spends with checkpoints
            self.interrupt(process, "kill")
            log = (self.folder / "run/metrics.jsonl").read_bytes()
            done = max(json.loads(line)["step"] + 1 for line in log.splitlines()
                       if line.endswith(b"}") and b'"kind":"step"' in line.replace(b" ", b""))
            self.carousel("inspect", "run/checkpoints/last.h5")  # reads all of it
            begun = self.tensors("run")[1]
            self.assertLessEqual(done - begun, every, number)

    def test_dp_with_sgd(self):
        self.go_through("dp", [], 1)

    def test_dp_with_adamw(self):
        self.go_through("dp", ADAMW, 5)

    def test_cdp_v1_with_sgd(self):
        self.go_through("cdp-v1", [], 6)

    def test_cdp_v1_with_adamw(self):
        self.go_through("cdp-v1", ADAMW, 2)

    def test_cdp_v2_with_sgd(self):
        self.go_through("cdp-v2", [], 3)

    def test_cdp_v2_with_adamw(self):
        self.go_through("cdp-v2", ADAMW, 4)

    # What goes on, and what does not.

    def stopped_run(self, *words, name="run", steps=30, deck=DECK):
        """A run that was asked to stop soon after some steps; returns where it stands."""
        process = self.start("train", deck, f"run.output={name}", "train.epochs=2000", *words)
        self.wait_for_steps(name, steps, process)
        process.terminate()
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, REQUEUE, err)
        self.assertIn("stopped by SIGTERM after", err)
        self.assertIn(f"carousel train {name}", err)
        return self.tensors(name)[1]

    def refused(self, code, *words):
        lines = [line for line in self.carousel(*words, code=code).splitlines()
                 if line.startswith("carousel: ")]
        self.assertEqual(len(lines), 1, lines)
        return lines[0]

    def test_by_default_a_run_is_not_gone_on_with(self):
        self.train("run", "train.epochs=1")
        self.assertIn("already holds a run", self.refused(2, "train", DECK, "run.output=run"))

    def test_auto_begins_where_nothing_is(self):
        self.train("run", "train.epochs=2", "run.resume=auto")
        self.train("plain", "train.epochs=2")
        self.assertEqual(self.tensors("run"), self.tensors("plain"))
        # It is done then, and more epochs are more to do.
        self.assertIn("nothing is left",
                      self.train("run", "train.epochs=2", "run.resume=auto"))
        self.train("run", "train.epochs=3", "run.resume=auto", "train.schedule.name=constant",
                   "train.schedule.per_epoch=")
        self.assertEqual(self.tensors("run")[1], 66)

    def test_another_training_is_refused_by_name(self):
        self.stopped_run()
        for words, key in (
                (["model.widths=[64,32,32,64,10]"], "model.widths"),
                (["parallel.rule=cdp-v1"], "parallel.rule"),
                (["parallel.slack=1"], "parallel.slack"),
                (["run.seed=2"], "run.seed"),
                (ADAMW, "train.optimizer.name")):
            line = self.refused(2, "train", "run", *words)
            self.assertIn(f"{key} is", line)
            self.assertIn("was made with", line)
        other = self.folder / "other.h5"
        shutil.copy(DECK.parent / "digits.h5", other)
        with h5py.File(other, "r+") as file:
            file["train/labels"][5] = (file["train/labels"][5] + 1) % 10
        self.assertIn("data.file", self.refused(2, "train", "run", f"data.file={other}"))
        shutil.copy(DECK.parent / "digits.h5", other)
        with h5py.File(other, "r+") as file:
            file["train/images"][701, 0, 3, 3] ^= 1
        self.assertIn("holds other data", self.refused(2, "train", "run", f"data.file={other}"))
        self.carousel("verify", "run", code=4)

    def test_other_micro_batches_use_the_rest_of_the_epoch_once(self):
        for other, words in ((40, ("train.micro_batch_size=5", "parallel.micro_batches=8")),
                             (128, ("train.micro_batch_size=32",))):
            with self.subTest(other):
                self.check_rest_of_epoch(other, *words)
            shutil.rmtree(self.folder / "run")

    def check_rest_of_epoch(self, other, *words):
        begun = self.stopped_run("profile.audit=true", "profile.steps=", "train.schedule.name=constant",
                                 "train.schedule.per_epoch=false")
        first = self.audited_samples("run")
        self.carousel("train", "run", *words, f"train.epochs={begun // 22 + 2}")
        self.assertIn("2, from steps 0 and", self.carousel("verify", "run"))
        second = self.audited_samples("run")
        size = 64
        rest = 1437 - begun % 22 * size
        epoch = [*first[len(first) - begun % 22 * size:], *second[:rest // other * other]]
        self.assertEqual(len(epoch), len(set(epoch)))
        self.assertGreater(len(epoch), 1437 - other)
        with h5py.File(self.folder / "run/run.h5") as file:
            self.assertEqual(file["parts/position"][:].tolist(), [0, begun % 22 * size])
            epochs = file["steps/epoch"][:].tolist()
        self.assertEqual(epochs, sorted(epochs))
        self.assertEqual(epochs.count(epochs[-1]), 1437 // other)

    def test_an_epoch_ends_where_its_rest_is_less_than_a_step(self):
        self.train("run", "train.epochs=", "train.steps=60", "checkpoint.every_steps=43", "checkpoint.keep=0",
                   "train.schedule.name=constant", "train.schedule.per_epoch=false")
        checkpoints = self.folder / "run/checkpoints"
        for name in ("step-00000044.h5", "step-00000060.h5", "last.h5"):
            (checkpoints / name).unlink()
        (checkpoints / "last.h5").symlink_to("step-00000043.h5")
        # 93 samples of the second epoch are left, and a step takes 128.
        self.carousel("train", "run", "train.steps=", "train.epochs=3", "train.micro_batch_size=32")
        with h5py.File(self.folder / "run/run.h5") as file:
            self.assertEqual(file["evaluations/step"][:].tolist(), [22, 43, 54])
            self.assertEqual(file["evaluations/epoch"][:].tolist(), [1, 2, 3])
        self.carousel("verify", "run")

    def test_prediction_goes_on_as_it_was(self):
        same = ("parallel.rule=cdp-v1", "parallel.predict=1", "profile.audit=true", "profile.steps=",
                "train.schedule.name=constant", "train.schedule.per_epoch=false")
        self.train("run", "train.epochs=1", *same)
        self.assertIn("parallel.predict is",
                      self.refused(2, "train", "run", "train.epochs=2", "parallel.predict=0.5"))
        self.carousel("train", "run", "train.epochs=2")
        self.train("whole", "train.epochs=2", *same)
        self.assertEqual(self.tensors("run"), self.tensors("whole"))
        with h5py.File(self.folder / "run/run.h5") as file:
            self.assertEqual(sorted(file["audit"]),
                             ["optimizer", "parameters", "predicted", "previous", "samples"])

    def test_an_audited_part_has_all_that_it_went_on_from(self):
        begun = self.stopped_run("profile.audit=true", "profile.steps=", "checkpoint.keep=0")
        with h5py.File(self.folder / "run/run.h5") as file:
            self.assertEqual(sorted(file["audit"]), ["parameters", "samples"])
        self.carousel("train", "run", f"train.epochs={begun // 22 + 2}")
        with h5py.File(self.folder / "run/run.h5") as file, \
                h5py.File(self.folder / f"run/checkpoints/step-{begun:08}.h5") as checkpoint:
            audit = file["audit"]
            self.assertEqual(sorted(audit), ["optimizer", "parameters", "previous", "samples"])
            found = []
            for group in ("parameters", "previous", "optimizer/momentum"):
                self.assertEqual(sorted(audit[group]), sorted(checkpoint[group]))
                for name, tensor in checkpoint[group].items():
                    rows = audit[group][name]
                    self.assertEqual(rows[0].tobytes(), tensor[:].tobytes())
                    found.append(len(rows))
            steps = len(audit["samples"])
            tensors = len(checkpoint["parameters"])
            self.assertEqual(found, tensors * [steps + 1] + 2 * tensors * [1])

    def audited_samples(self, name):
        """Of the newest part, step by step."""
        with h5py.File(self.folder / name / "run.h5") as file:
            return file["audit/samples"][:].ravel().tolist()

    def test_a_damaged_checkpoint_is_passed_over_aloud(self):
        end = self.stopped_run("checkpoint.keep=0")
        last = self.folder / f"run/checkpoints/step-{end:08}.h5"
        with open(last, "r+b") as file:
            file.seek(9000)
            byte = file.read(1)[0]
            file.seek(9000)
            file.write(bytes([byte ^ 1]))
        told = self.carousel("train", "run", f"train.epochs={end // 22 + 1}")
        self.assertRegex(told, r"note: .*is damaged; the run goes on from the checkpoint before it")
        self.assertIn("2, from steps 0 and", self.carousel("verify", "run"))

    def test_nothing_begins_again_where_none_is_whole(self):
        self.stopped_run("checkpoint.keep=0")
        before = (self.folder / "run/run.h5").read_bytes()
        for file in (self.folder / "run/checkpoints").glob("step-*.h5"):
            os.truncate(file, 9000)
        self.assertIn("has no whole checkpoint to go on from", self.refused(65, "train", "run"))
        self.assertEqual((self.folder / "run/run.h5").read_bytes(), before)

    def test_a_run_that_is_done_needs_no_checkpoint_to_say_so(self):
        self.train("run", "train.epochs=1")
        before = (self.folder / "run/run.h5").read_bytes()
        shutil.rmtree(self.folder / "run/checkpoints")
        self.assertIn("nothing is left to train, 22 steps", self.carousel("train", "run"))
        self.assertIn("run is valid", self.carousel("train", "run", "--validate"))
        self.assertIn("has no checkpoint to go on from; to begin the run again, pass --overwrite",
                      self.refused(2, "train", "run", "train.epochs=2"))
        self.assertEqual((self.folder / "run/run.h5").read_bytes(), before)

    def test_momentum_does_not_come_later(self):
        self.stopped_run("train.optimizer.momentum=0", "train.optimizer.nesterov=false")
        self.assertIn("train.optimizer keeps momentum beside each parameter, and",
                      self.refused(2, "train", "run", "train.optimizer.momentum=0.9"))

    def test_a_checkpoint_begins_a_run_of_its_own(self):
        words = ["train.epochs=4", "checkpoint.keep=0"]
        self.train("whole", *words)
        half = "whole/checkpoints/step-00000044.h5"
        self.train("branch", *words, f"run.resume={half}")
        self.assertEqual(self.tensors("branch"), self.tensors("whole"))
        self.assertIn("44 updates, bit for bit, from step 44 on",
                      self.carousel("diff", "whole", "branch"))
        with h5py.File(self.folder / "branch/run.h5") as file:
            self.assertEqual(file["steps/step"][0], 44)
        self.carousel("verify", "branch")
        # And from a folder, the newest.
        self.train("more", "train.epochs=5", "train.schedule.name=constant",
                   "train.schedule.per_epoch=", "run.resume=branch")
        self.assertEqual(self.tensors("more")[1], 110)
        # In its own folder, what came later is forgotten.
        self.carousel("train", "whole", f"run.resume={half}", "train.epochs=3")
        self.assertEqual(self.tensors("whole")[1], 66)
        self.assertIn("2, from steps 0 and 44 on", self.carousel("verify", "whole"))
        self.assertIn("no such file", self.refused(2, "train", DECK, "run.output=x",
                                                   "run.resume=nowhere.h5"))

    def test_a_stop_during_an_evaluation_loses_nothing(self):
        # Most of the time goes to evaluations, between which there is no other checkpoint.
        write_dataset(self.folder / "long.h5", (1, 8, 8), samples=64, test_samples=60000)
        words = ["data.file=long.h5", "checkpoint.every=0"]
        for k in range(3):
            step = self.stopped_run(*words, name=f"run{k}", steps=3 + k)
            self.assertEqual(self.status(f"run{k}")["step"], step)
            self.carousel("verify", f"run{k}", code=4)

    def test_a_branch_that_was_stopped_or_killed_at_once(self):
        self.train("whole", "train.epochs=2", "checkpoint.keep=0")
        words = ["run.output=branch", "run.resume=whole/checkpoints/step-00000022.h5",
                 "train.epochs=100000", "checkpoint.every=0"]
        process = self.start("train", DECK, *words)
        self.wait_for_steps("branch", 30, process)
        process.kill()
        process.communicate()
        self.assertIn("began with a checkpoint of another one", self.refused(2, "train", "branch"))
        process = self.start("train", DECK, *words, "--overwrite", "run.wall_clock=00:00:00")
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, REQUEUE)
        self.assertEqual(self.tensors("branch")[1], 22)
        self.carousel("train", "branch", "run.wall_clock=", "train.epochs=2")
        self.assertEqual(self.tensors("branch"), self.tensors("whole"))
        self.carousel("verify", "branch")

    def test_a_run_without_a_checkpoint_begins_again(self):
        process = self.start("train", DECK, "run.output=run", "train.epochs=100000",
                             "checkpoint.every=0")
        self.wait_for_steps("run", 50, process)
        process.kill()
        process.communicate()
        told = self.train("run", "run.resume=auto", "train.epochs=2")
        self.assertIn("has no checkpoint to go on from; the run begins again", told)
        self.carousel("verify", "run")

    def test_a_run_that_diverged_stays_so(self):
        words = ["train.epochs=3", "train.optimizer.learning_rate=1e5"]
        self.train("run", *words, code=76)
        line = self.refused(76, "train", "run")
        self.assertIn("diverged", line)
        self.assertIn("with a lower rate it goes on from its newest checkpoint: "
                      "train.optimizer.learning_rate=RATE, which is 100000", line)
        # Neither another placement nor a longer run computes other numbers.
        for word in ("parallel.placement=pipeline", "checkpoint.keep=5", "run.watchdog_seconds=9"):
            self.refused(76, "train", "run", word)

    def test_a_run_that_diverged_goes_on_with_a_lower_rate(self):
        constant = ["train.schedule.name=constant", "train.schedule.per_epoch="]
        rate = "train.optimizer.learning_rate="
        self.train("run", "train.epochs=2", *constant)
        self.train("run", "train.epochs=4", *constant, rate + "1e6", "run.resume=auto", code=76)
        self.assertEqual(self.status("run")["state"], "diverged")
        # The deck that is queued again says the same as the command line.
        self.refused(76, "train", DECK, "run.output=run", "train.epochs=4", *constant, rate + "1e6",
                     "run.resume=auto")
        self.assertEqual(self.tensors("run")[1], 44)
        self.train("run", "train.epochs=4", *constant, rate + "1e7", "run.resume=auto", code=76)
        told = self.carousel("train", "run", rate + "0.01")
        self.assertIn("step-00000044.h5 after 44 steps", told)
        self.assertEqual(self.status("run")["state"], "done")
        self.assertIn("All checks passed", self.carousel("verify", "run"))
        self.train("wanted", "train.epochs=2", *constant)
        self.train("wanted", "train.epochs=4", *constant, rate + "0.01", "run.resume=auto")
        self.assertEqual(self.tensors("run"), self.tensors("wanted"))
        # One without a checkpoint begins again.
        words = ["run.output=young", "checkpoint.every=0", "train.epochs=1", "run.resume=auto"]
        self.carousel("train", DECK, *words, rate + "1e6", code=76)
        self.assertIn("the run begins again", self.carousel("train", DECK, *words, rate + "0.01"))

    def test_a_run_that_is_alive_is_left_alone(self):
        process = self.start("train", DECK, "run.output=run", "train.epochs=100000")
        self.wait_for_steps("run", 50, process)
        line = self.refused(2, "train", "run")
        self.assertIn("still writing", line)
        self.assertIn("within run.watchdog_seconds (300 unless the deck says otherwise): try again "
                      "then", line)
        process.terminate()
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, REQUEUE)

    def test_wall_clock_and_minutes(self):
        begin = time.monotonic()
        out = self.train("run", "train.epochs=100000", "run.wall_clock=00:00:02",
                         "checkpoint.every=0", "checkpoint.every_minutes=0.005",
                         "checkpoint.keep=0", code=REQUEUE)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertIn('stopped by run.wall_clock = "00:00:02"', out)
        saved = list((self.folder / "run/checkpoints").glob("step*"))
        self.assertGreater(len(saved), 3)
        self.assertLess(len(saved), 8)
        self.carousel("verify", "run", code=4)
        self.assertIn("must be a time such as",
                      self.refused(2, "train", DECK, "run.output=x", "run.wall_clock=90"))

    def test_the_best_checkpoint_is_kept(self):
        self.train("run", "train.epochs=12", "checkpoint.keep=1", "checkpoint.keep_best=true",
                   "checkpoint.every=5")
        with h5py.File(self.folder / "run/run.h5") as file:
            accuracy = file["evaluations/accuracy"][:]
            steps = file["evaluations/step"][:]
        best = int(steps[accuracy.argmax()])
        self.assertEqual(self.tensors("run", "best")[1], best)
        saved = sorted(path.name for path in (self.folder / "run/checkpoints").glob("step*"))
        self.assertEqual(saved, sorted({f"step-{best:08}.h5", "step-00000264.h5"}))
        self.carousel("verify", "run")

    def test_the_best_before_is_the_best_where_a_run_goes_back(self):
        words = ["checkpoint.keep=0", "checkpoint.keep_best=true"]
        self.train("run", "train.epochs=8", *words)
        checkpoints = self.folder / "run/checkpoints"
        self.carousel("train", "run", f"run.resume={checkpoints}/step-00000066.h5", "train.epochs=3",
                      "train.steps=")
        with h5py.File(self.folder / "run/run.h5") as file:
            best = int(file["evaluations/step"][file["evaluations/accuracy"][:].argmax()])
        self.assertEqual(self.tensors("run", "best")[1], best)

    def test_a_run_ends_where_its_evaluations_get_no_better(self):
        # At a rate of 0 none is better than the first one.
        words = ["train.epochs=9", "train.evaluate_every=1", "checkpoint.every=0",
                 "train.optimizer.learning_rate=0", "train.schedule.name=constant",
                 "train.schedule.per_epoch="]
        said = self.train("run", *words, "train.patience=2")
        self.assertIn("train.patience: 2 evaluations in a row were no better", said)
        self.assertEqual(self.status("run")["state"], "done")
        with h5py.File(self.folder / "run/run.h5") as file:
            self.assertEqual(list(file["evaluations/epoch"]), [1, 2, 3])
            steps = len(file["steps/step"])
        self.assertEqual(self.tensors("run")[1], steps)
        self.assertIn("All checks passed", self.carousel("verify", "run"))
        self.assertIn("a larger train.patience goes on", self.carousel("train", "run"))
        # With more of it the run goes on, on other ranks as on one.
        self.train("whole", *words, "train.patience=5")
        self.carousel("train", "run", "train.patience=5", *PLACES[1][1], ranks=4)
        self.assert_same_end("run", "whole")
        # Where they do get better, nothing says why it ended.
        with h5py.File(self.folder / "whole/run.h5", "r+") as file:
            best = file["evaluations/accuracy"]
            best[1:] = best[:-1] + numpy.linspace(0.001, 0.002, len(best) - 1)
        self.assertIn("/steps/loss has", self.carousel("verify", "whole", code=65))

    def test_training_starts_with_weights(self):
        self.train("first", "train.epochs=5")
        last = "first/checkpoints/last.h5"
        said = self.carousel("eval", last, DECK.parent / "digits.h5")
        accuracy = float(re.search(r"accuracy ([\d.]+)", said)[1])
        self.train("tuned", "train.epochs=1", f"train.start={last}", "train.evaluate_every=1",
                   "train.optimizer.learning_rate=1e-6", "train.schedule.name=constant",
                   "train.schedule.per_epoch=")
        with h5py.File(self.folder / "tuned/run.h5") as file:
            self.assertAlmostEqual(file["evaluations/accuracy"][0], accuracy, delta=0.01)
            self.assertEqual(file["steps/step"][0], 0)
        # Ten classes into eleven.
        other = self.folder / "eleven.h5"
        shutil.copy(DECK.parent / "digits.h5", other)
        with h5py.File(other, "r+") as file:
            names = [*file.attrs["class_names"], "none"]
            file.attrs["class_names"] = numpy.array([str(name).encode() for name in names])
        words = [f"data.file={other}", "model.widths=[64,64,64,64,11]", f"train.start={last}",
                 "train.epochs=1"]
        self.assertIn("train.new_head = true learns other classes",
                      self.refused(2, "train", DECK, "run.output=x", *words))
        self.train("head", *words, "train.new_head=true", "checkpoint.every_steps=1",
                   "checkpoint.keep=0", "train.optimizer.learning_rate=0")
        start, began = self.tensors("first")[0], self.tensors("head", "step-00000001")[0]
        self.assertEqual(began["parameters/6.weight"], start["parameters/6.weight"])
        self.assertEqual(len(began["parameters/9.weight"]), 11 * 64 * 4)
        self.assertIn("it needs weights to start with",
                      self.refused(2, "train", DECK, "run.output=y", "train.new_head=true"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
