# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""The job scripts on a real Slurm, which tests/slurm.sh has started.

Usage: slurm_test.py PROJECT CAROUSEL OTHER [TEST ...]; OTHER is the program of another MPI, or "".
Works in the current folder, which the cluster's nodes see.
"""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

PROJECT, CAROUSEL, OTHER = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
sys.path.insert(0, str(PROJECT / "tests/app"))
from engines import rank_in  # noqa: E402
CLUSTER = pathlib.Path(os.environ["SLURM_CONF"]).parent
SCRIPTS = PROJECT / "jobscripts"
DECK = PROJECT / "inputs/digits.toml"
RANKS = ["parallel.transport=mpi", "parallel.placement=replicated", "engine.threads=1",
         "profile.steps="]
ROUNDS = 20
SECONDS = 15  # in which a job has to end or to be queued again


def call(*words, **variables):
    done = subprocess.run([*map(str, words)], text=True, capture_output=True, timeout=100,
                          env={**os.environ, "CAROUSEL": CAROUSEL, **variables})
    return done.returncode, done.stdout + done.stderr


def job_facts(job):
    """What Slurm says of a job: JobState, Reason, Restarts, ExitCode, ..."""
    for _ in range(10):
        code, text = call("scontrol", "show", "job", "--oneliner", job)
        if code == 0:
            return dict(word.split("=", 1) for word in text.split() if "=" in word)
        time.sleep(0.5)  # it is busy with a node that it has lost
    raise AssertionError(f"no word of job {job}: {text}")


def status_of(folder):
    try:
        return json.loads(pathlib.Path(folder, "status.json").read_text(encoding="utf-8"))
    except OSError:
        return {}


def wait_until(condition, seconds, what):
    """Seconds until a condition holds; an error where that takes too long."""
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > seconds:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.1)
    return time.monotonic() - begin


def engines():
    """Process numbers of all ranks, by their number."""
    found = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (process / "exe").resolve().name != "carousel-engine":
                continue
            rank = rank_in((process / "environ").read_bytes().split(b"\0"))
        except OSError:  # it has ended
            continue
        if rank is not None:
            found[rank] = int(process.name)
    return found


# These tests are root's. Slurm's PMIx wants nodes that have a /tmp of their own, which emulated ones
# have not.
BY_MPIRUN = {"CAROUSEL": OTHER, "CAROUSEL_MPI": "mpirun", "OMPI_ALLOW_RUN_AS_ROOT": "1",
             "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Slurm(unittest.TestCase):
    def setUp(self):
        self.run = pathlib.Path("runs", self.id().rsplit(".", 1)[-1])
        self.job = None

    def tearDown(self):
        call("scancel", "--quiet", "--user=root")
        wait_until(lambda: not call("squeue", "--noheader")[1].strip(), 30, "an empty queue")

    def submit(self, *words, options=(), code=0, **variables):
        """Submits and returns the number of the job, or what was said where that was refused."""
        found, text = call("bash", SCRIPTS / "submit.sh", "--parsable", "--time=30", *options, DECK,
                           *RANKS, f"run.output={self.run}", *words, **variables)
        self.assertEqual(found, code, text)
        if code == 0:
            self.job = text.split()[0]
        return self.job if code == 0 else text

    def output(self, job=None):
        return (self.run.parent / f"{self.run.name}-{job or self.job}.out").read_text(
            encoding="utf-8")

    def wait_for_end(self, state, seconds=60):
        """Waits for the end of the job; returns the seconds that took."""
        def ended():
            return job_facts(self.job).get("JobState") in (
                "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
        took = wait_until(ended, seconds, "end of the job")
        self.assertEqual(job_facts(self.job)["JobState"], state, self.output())
        return took

    def wait_for_steps(self, steps, seconds=60):
        def reached():
            if job_facts(self.job).get("JobState") in ("FAILED", "CANCELLED"):
                self.fail(self.output())
            status = status_of(self.run)
            return status.get("state") == "done" or (
                status.get("state") == "running" and status.get("step", 0) >= steps)
        wait_until(reached, seconds, f"step {steps}")

    def reference(self, *words):
        """The same run in one process of its own."""
        folder = self.run.with_name(self.run.name + "-alone")
        code, text = call(CAROUSEL, "train", DECK, f"run.output={folder}", "engine.threads=1",
                          *words)
        self.assertEqual(code, 0, text)
        return folder

    def assert_same_bits(self, *words):
        code, text = call(CAROUSEL, "diff", self.reference(*words), self.run)
        self.assertEqual(code, 0, text)

    def test_four_ranks_on_four_nodes_make_the_same_updates(self):
        self.submit(options=["--nodes=4"])
        self.wait_for_end("COMPLETED")
        self.assertEqual(job_facts(self.job)["NumNodes"], "4")
        self.assert_same_bits()
        self.assertIn("started by srun", self.output())
        self.assertIn("--mpi=pmi2", self.output())
        # Job, output and run folder find each other.
        self.assertIn(f"run folder {self.run}", self.output())
        self.assertEqual(job_facts(self.job)["JobName"], "digits")
        code, text = call(CAROUSEL, "inspect", self.run)
        self.assertRegex(text, rf"job +{self.job}\n")
        self.assertEqual(status_of(self.run)["job"], self.job)

    @unittest.skipUnless(OTHER, "no build of another MPI was given")
    def test_another_mpi_makes_the_same_updates(self):
        self.submit(options=["--nodes=4"], **BY_MPIRUN)
        self.wait_for_end("COMPLETED", 120)
        self.assert_same_bits()
        self.assertIn("started by mpirun", self.output())

    @unittest.skipUnless(OTHER, "no build of another MPI was given")
    def test_a_job_of_another_mpi_near_its_limit_is_queued_again(self):
        self.goes_on_behind_its_limit(by="stopped by", **BY_MPIRUN)

    def test_a_job_near_its_limit_is_queued_again(self):
        self.goes_on_behind_its_limit(by="stopped by SIGUSR1")

    def goes_on_behind_its_limit(self, by, **variables):
        words = ["train.epochs=400"]
        self.submit(*words, options=["--nodes=4", "--time=1", "--signal=USR1@45"], **variables)
        wait_until(lambda: job_facts(self.job).get("Restarts") == "1", 60, "the restart")
        self.assertIn(by, self.output())
        self.assertIn("is queued again after", self.output())
        call("scontrol", "update", f"JobId={self.job}", "TimeLimit=30")
        self.wait_for_end("COMPLETED", 200)
        self.assertIn("goes on from", self.output())
        self.assert_same_bits(*words)
        self.assertRegex(call(CAROUSEL, "inspect", self.run)[1],
                         rf"job {self.job}, restart 1|{self.job},\s+restart 1")

    def end_node(self):
        """Kills the slurmd of a node, which Slurm then loses."""
        node = random.choice(["n1", "n2", "n3", "n4"])
        pid = int((CLUSTER / f"run/slurmd-{node}.pid").read_text())
        os.kill(pid, signal.SIGKILL)
        return node

    def start_node(self, node):
        """Starts it again, once that was noticed."""
        wait_until(lambda: "DOWN" in call("scontrol", "show", "node", node)[1], 30, "node down")
        subprocess.run(["slurmd", "-N", node], check=True)

    def test_whatever_stops_it_the_job_goes_on_with_the_same_bits(self):
        words = ["train.epochs=600", "checkpoint.every_steps=50"]
        self.submit(*words, "run.resume=auto", options=["--nodes=4"])
        kinds = ["requeue", "cancel", "USR1", "TERM", "node"]
        times = {kind: [] for kind in kinds}
        for k in range(ROUNDS):
            kind = kinds[k % len(kinds)]
            before = status_of(self.run).get("step", 0)
            # Slurm waits a while on purpose, until nothing of the former start is valid any more.
            wait_until(lambda: job_facts(self.job)["JobState"] == "RUNNING", 60, "start")
            self.wait_for_steps(before + random.randint(5, 60))
            if status_of(self.run)["state"] == "done":
                self.fail(f"the run was over in round {k}")
            restarts = int(job_facts(self.job)["Restarts"])
            node = None
            if kind == "requeue":
                self.assertEqual(call("scontrol", "requeue", self.job)[0], 0)
            elif kind == "cancel":
                call("scancel", self.job)
            elif kind == "node":
                node = self.end_node()
            else:
                call("scancel", f"--signal={kind}", self.job)

            def answered():
                facts = job_facts(self.job)
                if kind == "cancel":
                    return facts["JobState"] == "CANCELLED"
                return int(facts["Restarts"]) > restarts
            times[kind].append(wait_until(answered, SECONDS, f"round {k}, {kind}"))
            if kind == "cancel":
                self.assertEqual(job_facts(self.job)["ExitCode"], "75:0", self.output())
                self.submit(*words, "run.resume=auto", options=["--nodes=4"])
            elif node:
                self.start_node(node)
        self.wait_for_end("COMPLETED", 300)
        self.assert_same_bits(*words)
        for kind, seconds in times.items():
            print(f"{kind}: {len(seconds)} rounds, at most {max(seconds):.1f} s")

    def test_a_job_is_queued_again_no_more_often_than_allowed(self):
        self.submit("train.epochs=400", "run.resume=auto", options=["--nodes=4"],
                    CAROUSEL_MAX_RESTARTS="1")
        for expected in (1, 0):
            self.wait_for_steps(1)
            call("scancel", "--signal=USR1", self.job)
            if expected:
                wait_until(lambda: job_facts(self.job)["Restarts"] == "1", SECONDS, "restart")
                wait_until(lambda: status_of(self.run)["state"] == "running", 60, "next part")
        self.wait_for_end("FAILED")
        self.assertEqual(job_facts(self.job)["ExitCode"], "75:0")
        self.assertIn("is not queued again: it was 1 times (CAROUSEL_MAX_RESTARTS)", self.output())

    def test_a_job_that_makes_no_step_is_not_queued_again(self):
        self.submit("train.epochs=400", "run.wall_clock=00:00:00", options=["--nodes=4"])
        self.wait_for_end("FAILED")
        self.assertEqual((job_facts(self.job)["ExitCode"], job_facts(self.job)["Restarts"]),
                         ("75:0", "0"), self.output())
        self.assertIn("is not queued again: it made no step; give it more time", self.output())

    def test_members_of_a_sweep_stand_alone(self):
        rates = [0.01, 0.02, 0.05, 1e30, 0.1, 0.03, 0.04, 0.06]
        sweep = pathlib.Path("rates.txt")
        sweep.write_text("# learning rates\n\n" + "".join(
            f"train.optimizer.learning_rate={rate}\n" for rate in rates), encoding="utf-8")
        code, text = call("bash", SCRIPTS / "submit.sh", "--parsable", f"--sweep={sweep}", DECK,
                          f"run.output={self.run}", "train.epochs=2", "engine.threads=1")
        self.assertEqual(code, 0, text)
        job = text.split()[0]
        wait_until(lambda: not call("squeue", "--noheader", f"--jobs={job}")[1].strip(), 100,
                   "end of the sweep")
        folders = sorted(pathlib.Path(f"{self.run}-{job}").iterdir())
        self.assertEqual([folder.name for folder in folders],
                         [f"{k:03}" for k in range(1, 9)])
        for k, folder in enumerate(folders):
            facts = job_facts(f"{job}_{k + 1}")
            state, exit_code = ("FAILED", "76:0") if k == 3 else ("COMPLETED", "0:0")
            self.assertEqual((facts["JobState"], facts["ExitCode"], facts["Restarts"]),
                             (state, exit_code, "0"), self.output(f"{job}_{k + 1}"))
            self.assertEqual(status_of(folder)["job"], f"{job}_{k + 1}")
        code, table = call(CAROUSEL, "inspect", *folders)
        self.assertEqual(code, 0, table)
        self.assertIn("diverged", table)
        self.assertLessEqual(max(map(len, table.splitlines())), 80, table)

    def test_a_dead_and_a_stuck_rank_end_the_job(self):
        for kind, limit in ((signal.SIGKILL, 10), (signal.SIGSTOP, 5 + 5)):
            self.run = self.run.with_name(f"fault-{kind}")
            self.submit("train.epochs=4000", "run.watchdog_seconds=5", options=["--nodes=4"])
            self.wait_for_steps(5)
            begin = time.monotonic()
            os.kill(engines()[random.randint(0, 3)], kind)
            self.wait_for_end("FAILED", limit)
            print(f"{kind.name}: the job ended after {time.monotonic() - begin:.1f} s")
            self.assertEqual(job_facts(self.job)["ExitCode"], "77:0", self.output())
            status = status_of(self.run)
            self.assertEqual((status["state"], status["exit_code"]), ("failed", 77))
            self.assertRegex(status["cause"], "rank [0-3]")
            self.assertEqual(job_facts(self.job)["Restarts"], "0")

    def test_a_lost_rank_is_queued_again_where_asked_for(self):
        words = ["train.epochs=100", "checkpoint.every_steps=10"]
        self.submit(*words, options=["--nodes=4"], CAROUSEL_REQUEUE="75 77")
        self.wait_for_steps(30)
        os.kill(engines()[2], signal.SIGKILL)
        wait_until(lambda: job_facts(self.job)["Restarts"] == "1", SECONDS, "restart")
        self.wait_for_end("COMPLETED", 200)
        self.assert_same_bits(*words)

    def refused(self, line, *words, options=(), **variables):
        """A job that ends with one line and exit code 2 before it trains."""
        code, text = call("sbatch", "--parsable", f"--output={self.run.name}-%j.out",
                          "--nodes=4", *options, SCRIPTS / "train.sbatch", DECK, *RANKS,
                          f"run.output={self.run}", *words, **variables)
        self.assertEqual(code, 0, text)
        self.job = text.split()[0]
        wait_until(lambda: job_facts(self.job)["JobState"] != "PENDING", 30, "start")
        begin = time.monotonic()
        wait_until(lambda: job_facts(self.job)["JobState"] == "FAILED", 5, line)
        text = pathlib.Path(f"{self.run.name}-{self.job}.out").read_text(encoding="utf-8")
        self.assertEqual(job_facts(self.job)["ExitCode"], "2:0", text)
        ours = [text for text in text.splitlines() if not text.startswith(("srun:", "slurmstepd"))
                and "run folder" not in text]
        self.assertEqual(len(ours), 1, text)
        self.assertRegex(ours[0], line)
        self.assertFalse(self.run.exists())
        print(f"refused after {time.monotonic() - begin:.1f} s: {ours[0]}")

    def test_wrong_starts_are_refused_in_one_line(self):
        self.refused("the plan of .* has 4 devices, but the job has 3 tasks", options=["-n3"])
        self.refused("no module command", options=["-n4"], CAROUSEL_MODULES="gcc/none")
        self.refused("Slurm started 4 tasks without MPI", options=["-n4"], CAROUSEL_MPI="none")

    def test_submission_is_refused_where_the_deck_is_wrong(self):
        self.assertIn("unknown key run.sed", self.submit("run.sed=3", code=2))
        code, text = call("bash", SCRIPTS / "submit.sh", "-t", "10", DECK)
        self.assertEqual(code, 2)
        self.assertIn("--time=24:00:00", text)

    def test_every_script_is_accepted(self):
        pathlib.Path("one.txt").write_text("run.seed=1\n", encoding="utf-8")
        for words in ([DECK, *RANKS], ["--sweep=one.txt", DECK, *RANKS]):
            code, text = call("bash", SCRIPTS / "submit.sh", "--test-only", *words)
            self.assertEqual(code, 0, text)
            self.assertRegex(text, "Job [0-9]+ to start at")
        for script in SCRIPTS.glob("*.sbatch"):
            code, text = call("sbatch", "--test-only", "--array=1-2", "--ntasks=4", script, DECK)
            self.assertEqual(code, 0, text)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[4:]])
