# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""What submit.sh gives to sbatch, and an installation: submit_test.py BUILD CMAKE.

sbatch is a stand-in that prints its words; tests/slurm.sh has the real one. Works from an
installation in a temporary folder, so that what is missing there is noticed.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, CMAKE = pathlib.Path(sys.argv[1]), sys.argv[2]
FOLDER = pathlib.Path(tempfile.mkdtemp())
PREFIX = FOLDER / "a prefix"
SHARE = PREFIX / "share/carousel"
SUBMIT = SHARE / "jobscripts/submit.sh"
DECK = SHARE / "inputs/digits.toml"
SBATCH = """#!/bin/sh
printf '%s\\n' "$@" > words
env | grep ^SLURM_ > environment
echo "Submitted batch job 7"
"""


def setUpModule():
    subprocess.run([CMAKE, "--install", BUILD, "--prefix", PREFIX], check=True, capture_output=True)
    (FOLDER / "bin").mkdir()
    (FOLDER / "bin/sbatch").write_text(SBATCH)
    (FOLDER / "bin/sbatch").chmod(0o755)


def tearDownModule():
    shutil.rmtree(FOLDER)


class Submit(unittest.TestCase):
    def call(self, *words, code=0, path=True, **variables):
        environment = {k: v for k, v in os.environ.items()
                       if not k.startswith(("CAROUSEL", "SLURM", "SBATCH", "NERSC", "BSC", "SYSTEM"))}
        if path:
            environment["PATH"] = f"{FOLDER / 'bin'}:{environment['PATH']}"
        done = subprocess.run(["bash", SUBMIT, *words], cwd=FOLDER, text=True, capture_output=True,
                              timeout=60, env={**environment, **variables})
        self.assertEqual(done.returncode, code, done.stderr)
        if code:
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stdout + done.stderr

    def words(self, *words, **variables):
        self.call(*words, **variables)
        return (FOLDER / "words").read_text().splitlines()

    def test_the_installed_program_knows_its_decks_and_report(self):
        program = PREFIX / "bin/carousel"
        done = subprocess.run([program, "train", DECK, "--validate"], cwd=FOLDER, text=True,
                              capture_output=True, check=True)
        self.assertIn("is valid", done.stdout)
        done = subprocess.run([sys.executable, "-B", SHARE / "report", "--help"], text=True,
                              capture_output=True, check=True)
        self.assertIn("run folder", done.stdout)

    def test_ranks_threads_name_and_output_are_those_of_the_deck(self):
        words = self.words("--time=24:00:00", DECK, "parallel.transport=mpi",
                           "parallel.placement=replicated", "run.output=new/runs/100%/",
                           "engine.threads=3")
        for word in ("--ntasks=4", "--cpus-per-task=3", "--job-name=digits", "--time=24:00:00",
                     "--output=new/runs/100%%-%j.out"):
            self.assertIn(word, words)
        script = str(SHARE / "jobscripts/train.sbatch")
        self.assertEqual(words[words.index(script):][:3],
                         [script, str(DECK), "parallel.transport=mpi"])
        self.assertLess(words.index("--ntasks=4"), words.index("--time=24:00:00"))
        self.assertTrue((FOLDER / "new/runs").is_dir())
        self.assertFalse((FOLDER / "new/runs/100%").exists())
        self.assertIn("--ntasks=1", self.words(DECK))
        self.assertFalse([word for word in self.words(DECK) if "cpus-per-task" in word])

    def test_a_sweep_has_a_task_for_each_member(self):
        (FOLDER / "list").write_text("# rates\n\ntrain.optimizer.learning_rate=0.1\n"
                                     "  train.optimizer.learning_rate=0.2 run.seed=3\n")
        words = self.words("--sweep", "list", DECK, "train.epochs=1")
        self.assertIn("--array=1-2", words)
        self.assertIn("--output=runs/digits-%A_%a.out", words)
        script = str(SHARE / "jobscripts/sweep.sbatch")
        copy = words[words.index(script) + 1]
        self.assertEqual(words[words.index(script):], [script, copy, str(DECK), "train.epochs=1"])
        self.assertRegex(copy, r"^runs/digits-\w+\.list$")  # a member may start days later
        self.assertEqual((FOLDER / copy).read_text(), (FOLDER / "list").read_text())
        (FOLDER / "inputs").symlink_to(SHARE / "inputs")  # a list has no blanks in its paths
        (FOLDER / "decks").write_text("inputs/digits.toml run.seed=1\n"
                                      "inputs/digits.toml run.seed=2 run.output=elsewhere\n")
        self.assertIn("--array=1-2", self.words("--sweep=decks"))

    def test_members_that_need_other_ranks_are_refused(self):
        (FOLDER / "list").write_text("parallel.micro_batches=4\nparallel.micro_batches=2\n")
        words = ["--sweep=list", DECK, "parallel.transport=mpi", "parallel.placement=replicated"]
        self.assertIn("member 1 needs 4 ranks of engine.threads=0, but others 2 of 0",
                      self.call(*words, code=2))

    def test_members_that_would_share_a_run_folder_are_refused(self):
        (FOLDER / "list").write_text("run.seed=1\nrun.seed=2 run.output=a\nrun.seed=3 run.output=a\n")
        self.assertIn("members 2 and 3 have the same run.output, a",
                      self.call("--sweep=list", DECK, code=2))

    def test_a_job_does_not_take_itself_for_the_one_it_was_submitted_from(self):
        self.words(DECK, SLURM_RESTART_COUNT="3", SLURM_ARRAY_JOB_ID="7", SLURM_ARRAY_TASK_ID="5",
                   SLURM_NTASKS="9", SLURM_CPUS_PER_TASK="16", SLURM_MPI_TYPE="pmi2")
        self.assertEqual((FOLDER / "environment").read_text(), "SLURM_MPI_TYPE=pmi2\n")

    def test_submission_works_through_a_link(self):
        link = FOLDER / "submit"
        link.symlink_to(SUBMIT)
        path = f"{FOLDER / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run([link, "--sweep=none", DECK], cwd=FOLDER, text=True,
                              capture_output=True, check=False, env={**os.environ, "PATH": path})
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("none: cannot be read", done.stderr)

    def test_what_is_wrong_is_told_before_anything_is_submitted(self):
        self.assertIn("unknown key run.sed", self.call(DECK, "run.sed=1", code=2))
        self.assertIn("usage:", self.call(code=2))
        self.assertIn("10: no such deck", self.call("-t", "10", DECK, code=2))
        self.assertIn("cannot be read", self.call("--sweep=none", DECK, code=2))
        (FOLDER / "empty").write_text("# nothing\n")
        self.assertIn("has no members", self.call("--sweep=empty", DECK, code=2))
        if not shutil.which("sbatch"):
            self.assertIn("there is no sbatch here", self.call(DECK, code=2, path=False))

    def test_sites_are_found_and_their_modules_loaded(self):
        self.assertIn("CAROUSEL_SITE=none: there is no", self.call(DECK, code=2,
                                                                   CAROUSEL_SITE="none"))
        module = {"BASH_FUNC_module%%": '() { case $2 in gpu|cpu|PrgEnv-gnu|craype*|cudatoolkit)'
                                        ' echo $2 >> loaded;; *) echo "Lmod: unknown $2"; false;;'
                                        ' esac; }'}
        words = self.words(DECK, NERSC_HOST="perlmutter", CAROUSEL_NODES="cpu", **module)
        self.assertIn("--constraint=cpu", words)
        self.assertEqual((FOLDER / "loaded").read_text().split(), ["cpu", "PrgEnv-gnu"])
        self.assertIn("--gpus-per-node=4", self.words(DECK, NERSC_HOST="perlmutter", **module))
        text = self.call(DECK, code=2, CAROUSEL_MODULES="gpu none/1", **module)
        self.assertIn("site generic: module load none/1: Lmod: unknown none/1", text)
        # A machine that no file knows is like any other.
        self.assertIn("--ntasks=1", self.words(DECK, SYSTEMNAME="hal"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
