# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""What a job decides where Slurm or the run folder is not as usual: job_test.py CAROUSEL PROJECT.

Slurm's programs are stand-ins that run one rank here; tests/slurm.sh has the real ones.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

CAROUSEL, PROJECT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
DECK = PROJECT / "inputs/digits.toml"
LONG = ["train.epochs=", "train.steps=1000000", "run.wall_clock=00:00:02", "profile.steps="]
STAND_INS = {
    "srun": """[ "$1" != --mpi=list ] || { echo pmi2; exit; }
while [ "${1#-}" != "$1" ]; do shift; done
unset SLURM_NTASKS
exec "$@"
""",
    "scontrol": """echo "$@" >> asked
[ "$(wc -l < asked)" -gt "${BUSY:-0}" ] || { echo "Unable to contact slurm controller" >&2; exit 1; }
echo "JobId=7 JobState=RUNNING Reason=None Restarts=0"
""",
    "sleep": "exit 0\n",  # nobody waits for a controller here
}


class Job(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "bin").mkdir()
        for name, text in STAND_INS.items():
            program = self.folder / "bin" / name
            program.write_text("#!/bin/sh\n" + text)
            program.chmod(0o755)

    def job(self, *words, code, number=7, **variables):
        (self.folder / "asked").unlink(missing_ok=True)
        kept = {k: v for k, v in os.environ.items()
                if not k.startswith(("CAROUSEL", "SLURM", "NERSC", "BSC", "SYSTEM"))}
        done = subprocess.run(
            ["bash", PROJECT / "jobscripts/train.sbatch", DECK, "run.output=run", *words],
            cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
            check=False, env={**kept, "PATH": f"{self.folder / 'bin'}:{kept['PATH']}",
                              "CAROUSEL": str(CAROUSEL), "SLURM_JOB_ID": str(number),
                              "SLURM_NTASKS": "1", "CAROUSEL_JOBSCRIPTS": PROJECT / "jobscripts",
                              **variables})
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def asked(self):
        asked = self.folder / "asked"
        return asked.read_text().splitlines() if asked.exists() else []

    def test_a_busy_controller_is_asked_again(self):
        self.assertIn("is queued again after", self.job(*LONG, code=75, BUSY="3"))
        show = "show job --oneliner 7"
        self.assertEqual(self.asked(), [show, show, show, show, "requeue 7"])

    def test_a_controller_that_never_answers_costs_no_exit_code(self):
        self.assertIn("Slurm's controller does not answer", self.job(*LONG, code=75, BUSY="999"))

    def test_a_run_of_another_job_is_not_its_own(self):
        self.job("train.epochs=1", code=0, number=5)
        text = self.job("train.epochs=1", "train.optimizer.learning_rate=0.3", code=2,
                        SLURM_RESTART_COUNT="1")
        self.assertIn("already holds a run", text)
        self.assertEqual(self.asked(), [])
        # Nor is what that one says of itself: it may end while this one is refused.
        (self.folder / "bin/srun").write_text(
            "#!/bin/sh\n[ $1 != --mpi=list ] || exit 0\n"
            "sed -i 's/\"exit_code\": 0/\"exit_code\": 75/' run/status.json\nexit 2\n")
        self.assertIn("ends with exit code 2", self.job("train.epochs=1", code=2))
        self.assertEqual(self.asked(), [])

    def test_what_the_job_began_goes_on(self):
        self.job(*LONG, code=75)
        text = self.job(*LONG, code=75, SLURM_RESTART_COUNT="1")
        self.assertIn("goes on from", text)

    def test_a_run_that_kept_nothing_begins_again_where_it_began(self):
        self.job("train.epochs=1", code=0, number=5)
        (self.folder / "run").rename(self.folder / "first")
        words = ["train.epochs=3", "run.resume=first"]
        self.job(*words, code=0)
        for checkpoint in (self.folder / "run/checkpoints").iterdir():
            checkpoint.unlink()
        status = self.folder / "run/status.json"
        status.write_text(status.read_text().replace('"done"', '"failed"'))
        self.job(*words, code=0, SLURM_RESTART_COUNT="1")
        self.assertIn("done", status.read_text())

    def test_what_mpirun_starts_ends_before_the_job_does(self):
        for name, text in (("carousel", f"""if [ "$1" = --version ]; then echo Open MPI; else
exec {CAROUSEL} "$@"; fi
"""), ("mpirun", "shift 4; unset SLURM_NTASKS; exec \"$@\"\n"), ("squeue", "echo $LEFT\n")):
            program = self.folder / "bin" / name
            program.write_text("#!/bin/sh\n" + text)
            program.chmod(0o755)
        for left, words, clock in (
                ("4:06", [], "00:02:06"), ("1-00:02:01", [], "24:00:01"), ("0:31", [], "00:00:15"),
                ("UNLIMITED", [], ""), ("4:06", ["run.wall_clock=3:00:00"], "3:00:00")):
            text = self.job("train.epochs=1", *words, code=0, LEFT=left,
                            CAROUSEL=self.folder / "bin/carousel")
            self.assertIn("started by mpirun", text)
            told = subprocess.run([CAROUSEL, "plan", "run", "--get", "run.wall_clock"],
                                  cwd=self.folder, capture_output=True, text=True, check=True)
            self.assertEqual(told.stdout.strip(), clock)
            shutil.rmtree(self.folder / "run")

    def test_a_lost_start_is_not_queued_again_for_ever(self):
        (self.folder / "bin/srun").write_text("#!/bin/sh\nexit 77\n")
        text = self.job("train.epochs=1", code=77, CAROUSEL_REQUEUE="75 77")
        self.assertIn("is not queued again: it made no step; give it more time", text)
        self.assertEqual(self.asked(), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
