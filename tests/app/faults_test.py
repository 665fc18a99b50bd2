# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks that die or stop, in training and around it: the others end with 77 in time and say why.

Usage: faults_test.py CAROUSEL MPIEXEC PROJECT COMPILER [ROUNDS]. Each round kills and stops one rank
of four at a random moment, in every placement in turn; 100 rounds are a test of their own.
"""

import contextlib
import json
import os
import pathlib
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from engines import is_open_mpi, rank_in

CAROUSEL, PROJECT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[3]).resolve()
MPIEXEC = shutil.which(sys.argv[2])  # a path or a name
COMPILER = sys.argv[4]
ROUNDS = int(sys.argv[5]) if len(sys.argv) > 5 else 2
RANKS = 4
WATCHDOG = 3  # seconds
# Until a whole run is over beside that; Open MPI's launcher takes a second to start and to end.
PATIENCE = 6 if is_open_mpi(MPIEXEC) else 5

# Four devices each.
PLACEMENTS = [
    ["parallel.placement=replicated"],
    ["parallel.placement=pipeline"],
    ["parallel.placement=sharded"],
    ["parallel.placement=model", "parallel.rule=dp", "parallel.micro_batches=2",
     "parallel.stages=2"],
    ["parallel.placement=replicated", "parallel.rule=dp", "parallel.reduction=fast"],
    ["parallel.placement=sharded", "parallel.rule=dp"],
]
WITH_GROUPS = PLACEMENTS[4]  # of ranks, for collectives

# By which launchers leave all ranks alone when one has ended.
LEAVE_ALONE = (["--enable-recovery"] if is_open_mpi(MPIEXEC) else ["-disable-auto-cleanup"])


# Keeps the launcher from seeing that a rank has ended until the test is over: it would signal and
# kill the others at once.
SHELL = """sh -c 'rank=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}
trap "" USR1; "$@" 2> "err.$rank"; echo $? > "code.$rank"
until [ -e over ]; do sleep 0.1; done' sh"""


# The same for ranks that may end well: the last one to end ends all.
TELL_CODES = ["sh", "-c", """"$@"; echo $? > "code.${PMI_RANK:-$OMPI_COMM_WORLD_RANK}"
until [ -s code.0 ] && [ -s code.1 ] && [ -s code.2 ] && [ -s code.3 ]; do sleep 0.1; done""", "sh"]


# Calls that take their time, never come back or fail: checkpoints and the last word on their way to
# disk, metrics, rank 1 when it opens and when it reads its data, gets its memory, makes groups of
# ranks, at the end of MPI; rank 2 in MPI once there is a file of that name; ranks that stop or die
# while all meet by TCP, strangers who come there, too, and rank 0 when it has just made the run
# folder; rank 2 in MPI once all have met.
SLOW = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
typedef long Handle; /* of MPI: an int of MPICH, a pointer of Open MPI */
enum { AN_ERROR = 15 };
static int started = 0, met = 0;
static int is_rank(const char* wanted) {
  const char* rank = getenv("PMI_RANK");
  if (!rank) rank = getenv("OMPI_COMM_WORLD_RANK");
  return rank && strcmp(rank, wanted) == 0 && strstr(program_invocation_name, "engine");
}
static int is_set(const char* name) { return getenv(name) && is_rank("1"); }
static void rest(const char* seconds) {
  for (int left = atoi(getenv(seconds)); left > 0;) left = sleep(left);
}
static int is_below(int file, const char* folder) {
  char link[64], name[4096] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  return readlink(link, name, sizeof name - 1) > 0 && strstr(name, folder);
}
int fsync(int file) {
  if (getenv("SLOW") && is_below(file, "/checkpoints/")) rest("SLOW");
  return 0;
}
ssize_t write(int file, const void* bytes, size_t count) {
  static int calls = 0;
  if (getenv("SLOW_METRICS") && is_below(file, "/metrics.jsonl") && ++calls == 20)
    rest("SLOW_METRICS");
  if (getenv("SLOW_LAST_WORD") && is_below(file, "/status.json") &&
      memmem(bytes, count, getenv("SLOW_LAST_WORD"), strlen(getenv("SLOW_LAST_WORD"))))
    sleep(6);
  return ((ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write"))(file, bytes, count);
}
int open(const char* path, int flags, ...) {
  if (is_set("STOP_AT_DATA") && strstr(path, "digits.h5")) raise(SIGSTOP);
  return openat(AT_FDCWD, path, flags, 0666);
}
ssize_t pread64(int file, void* bytes, size_t count, off_t offset) {
  static int calls = 0;
  if (is_set("FAIL_AT_DATA") && ++calls > 400) {
    errno = EIO;
    return -1;
  }
  if (is_set("SLOW_DATA") && ++calls == 400) rest("SLOW_DATA");
  return ((ssize_t(*)(int, void*, size_t, off_t))dlsym(RTLD_NEXT, "pread64"))(file, bytes, count,
                                                                             offset);
}
ssize_t pread(int file, void* bytes, size_t count, off_t offset) {
  return pread64(file, bytes, count, offset);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  if (is_set("NO_MEMORY") && bytes > 50000) return NULL;
  return ((void* (*)(size_t, size_t))dlsym(RTLD_NEXT, "aligned_alloc"))(alignment, bytes);
}
int connect(int file, const struct sockaddr* to, socklen_t size) {
  /* MPI may connect to other things while it starts: hwloc's plug-ins look for a display. */
  const int meets = started && to->sa_family == AF_INET;
  if (meets && is_set("STOP_AT_CONNECT")) raise(SIGSTOP);
  met = met || meets;
  return ((int (*)(int, const struct sockaddr*, socklen_t))dlsym(RTLD_NEXT, "connect"))(file, to,
                                                                                     size);
}
int MPI_Init_thread(int* argc, char*** argv, int wanted, int* given) {
  int code = ((int (*)(int*, char***, int, int*))dlsym(RTLD_NEXT, "MPI_Init_thread"))(
      argc, argv, wanted, given);
  started = 1;
  return code;
}
int accept4(int file, struct sockaddr* from, socklen_t* size, int flags) {
  if (getenv("STOP_AT_ACCEPT") && is_rank("0")) raise(SIGSTOP);
  return ((int (*)(int, struct sockaddr*, socklen_t*, int))dlsym(RTLD_NEXT, "accept4"))(file, from,
                                                                                     size, flags);
}
int listen(int file, int backlog) {
  int code = ((int (*)(int, int))dlsym(RTLD_NEXT, "listen"))(file, backlog);
  struct sockaddr_in here;
  socklen_t size = sizeof here;
  if (getenv("STRANGERS") && is_rank("0") && code == 0 &&
      getsockname(file, (struct sockaddr*)&here, &size) == 0 && here.sin_family == AF_INET) {
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int left = atoi(getenv("STRANGERS")); left > 0; --left)
      ((int (*)(int, const struct sockaddr*, socklen_t))dlsym(RTLD_NEXT, "connect"))(
          socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr*)&here, size);
  }
  return code;
}
int MPI_Allreduce(const void* from, void* to, int count, Handle type, Handle op, Handle comm) {
  if (met && is_set("DIE_WHEN_MET")) {
    usleep(1000000 * atof(getenv("DIE_WHEN_MET")));
    raise(SIGKILL);
  }
  if (met && getenv("FAIL_WHEN_MET") && is_rank("2")) return AN_ERROR;
  if (met && getenv("ABORT_WHEN_MET") && is_rank("2")) raise(SIGABRT);
  return ((int (*)(const void*, void*, int, Handle, Handle, Handle))dlsym(
      RTLD_NEXT, "MPI_Allreduce"))(from, to, count, type, op, comm);
}
int remove(const char* path) {
  int code = ((int (*)(const char*))dlsym(RTLD_NEXT, "remove"))(path);
  if (getenv("STOP_AT_FOLDER") && is_rank("0") && strstr(path, ".lock")) raise(SIGSTOP);
  return code;
}
int MPI_Comm_create_group(Handle comm, Handle group, int tag, Handle* made) {
  if (is_set("STOP_AT_GROUPS")) raise(SIGSTOP);
  if (is_set("HANG_AT_GROUPS")) sleep(1000);
  return ((int (*)(Handle, Handle, int, Handle*))dlsym(RTLD_NEXT, "MPI_Comm_create_group"))(
      comm, group, tag, made);
}
int MPI_Testsome(int count, Handle* requests, int* done, int* indices, void* statuses) {
  const char* name = getenv("FAIL_IN_MPI");
  if (name && is_rank("2") && access(name, F_OK) == 0) return AN_ERROR;
  return ((int (*)(int, Handle*, int*, int*, void*))dlsym(RTLD_NEXT, "MPI_Testsome"))(
      count, requests, done, indices, statuses);
}
int MPI_Abort(Handle comm, int code) {
  if (getenv("FAIL_AT_DATA")) return 0;  // as some launchers do
  return ((int (*)(Handle, int))dlsym(RTLD_NEXT, "MPI_Abort"))(comm, code);
}
int MPI_Finalize(void) {
  if (is_set("STAY_IN_MPI")) sleep(1000);
  return ((int (*)(void))dlsym(RTLD_NEXT, "MPI_Finalize"))();
}
"""


def children_of(process):
    """Those of a process, which may end meanwhile."""
    with contextlib.suppress(OSError):
        return [int(child) for task in pathlib.Path(f"/proc/{process}/task").glob("*/children")
                for child in task.read_text().split()]
    return []


def ranks_below(process):
    """{rank: process} of the engines below a process."""
    found = {}
    for child in children_of(process):
        found |= ranks_below(child)
        try:
            name = pathlib.Path(f"/proc/{child}/comm").read_text().strip()
            words = pathlib.Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        rank = rank_in(words)
        if name == "carousel-engine" and rank is not None:
            found[rank] = child
    return found


def runs(process):
    """Whether a process has not ended; its parent may not have asked after it yet."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Faults(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.aside = pathlib.Path(tempfile.mkdtemp())  # what runs need beside theirs
        for folder in self.folder, self.aside:
            self.addCleanup(shutil.rmtree, folder)  # after all that is added later
        self.random = random.Random(7)

    def slow_calls(self):
        """The library of SLOW, built."""
        source, library = self.aside / "slow.c", self.aside / "slow.so"
        source.write_text(SLOW)
        subprocess.run([COMPILER, "-shared", "-fPIC", source, "-o", library], check=True)
        return library

    def start(self, words, watchdog=WATCHDOG, **environment):
        """Four ranks in training."""
        for leftover in self.folder.iterdir():
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        process = subprocess.Popen(
            [MPIEXEC, *LEAVE_ALONE, "-n", str(RANKS), *shlex.split(SHELL), CAROUSEL,
             "train", PROJECT / "inputs/digits.toml", "parallel.transport=mpi", "run.output=run",
             "train.epochs=", "train.steps=1000000", f"run.watchdog_seconds={watchdog}", *words],
            cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, **environment})
        self.addCleanup(self.clean_up, process)
        # Rank 0 tells a step that others may not have ended yet, so several are waited for.
        metrics = self.folder / "run/metrics.jsonl"
        while not (metrics.exists() and metrics.read_text().count("\n") > 3):
            ended = [code.name for code in self.folder.glob("code.*")]
            self.assertEqual((process.poll(), ended), (None, []), "the run never began")
            time.sleep(0.02)
        time.sleep(self.random.random())
        return process

    def clean_up(self, process):
        (self.folder / "over").touch()
        for rank in ranks_below(process.pid).values():
            with contextlib.suppress(ProcessLookupError):  # the launcher was quicker
                os.kill(rank, signal.SIGKILL)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:  # launchers have been seen to hang behind dead ranks
            process.kill()
            process.wait()

    def ends(self, others, limit):
        """All ranks but the lost one, {rank: process}, end with 77 within `limit` seconds and say
        why and where; returns the cause and the seconds."""
        begin = time.monotonic()
        while any(map(runs, others.values())):
            said = [(self.folder / f"err.{rank}").read_text()[-300:] for rank in others]
            self.assertLess(time.monotonic() - begin, limit, f"a rank of {others} hangs: {said}")
            time.sleep(0.02)
        seconds = time.monotonic() - begin
        for rank in others:
            code = self.folder / f"code.{rank}"
            while not (code.exists() and code.read_text()):
                self.assertLess(time.monotonic() - begin, limit + 5, "the shell says nothing")
                time.sleep(0.02)
            err = (self.folder / f"err.{rank}").read_text()
            self.assertEqual(code.read_text(), "77\n", err)
            said = [line for line in err.splitlines() if line.startswith("carousel: ")]
            self.assertEqual(len(said), 1, err)
            self.assertRegex(said[0], rf"^carousel: rank {rank}: .*; "
                                      r"(at its files; )?(now: \w+ .*|between segments); before: \w+ ")
        status = json.loads((self.folder / "run/status.json").read_text())
        self.assertEqual((status["state"], status["exit_code"]), ("failed", 77))
        self.assertGreater(status["step"], 0)
        return status["cause"], seconds

    def round(self, number, how, watchdog=WATCHDOG):
        process = self.start(PLACEMENTS[number % len(PLACEMENTS)], watchdog)
        lost = self.random.randrange(RANKS)
        ranks = ranks_below(process.pid)
        self.assertEqual(len(ranks), RANKS)
        os.kill(ranks.pop(lost), how)
        stopped = how == signal.SIGSTOP
        cause, seconds = self.ends(ranks, watchdog + 5 if stopped else 10)
        self.assertIn(f"rank {lost} " + ("does not answer" if stopped else "ended without a word"),
                      cause)
        self.clean_up(process)
        return seconds

    def report(self, what, times):
        print(f"{what}: {len(times)} rounds, at most {max(times):.1f} s", flush=True)

    def test_a_rank_that_dies_ends_all(self):
        self.report("killed", [self.round(k, signal.SIGKILL) for k in range(ROUNDS)])

    def test_a_rank_that_stops_ends_all(self):
        self.report("stopped", [self.round(k, signal.SIGSTOP) for k in range(ROUNDS)])

    def test_a_rank_that_is_aborted_ends_all(self):
        # By MPI below it, or by whoever wants a dump of its memory. It ends later than others may
        # be without progress.
        self.round(0, signal.SIGABRT, watchdog=2)

    def test_several_ranks_are_lost(self):
        for how, limit in ((signal.SIGKILL, 10), (signal.SIGSTOP, WATCHDOG + 5)):
            process = self.start(PLACEMENTS[0])
            ranks = ranks_below(process.pid)
            time.sleep(0.5)  # all have heard of rank 0; whom nobody has may take longer to start
            for lost in (1, 0):
                os.kill(ranks.pop(lost), how)
            cause, _ = self.ends(ranks, limit)
            self.assertRegex(cause, "rank [01] (does not answer|ended without a word)")
            self.clean_up(process)

    def test_a_rank_that_comes_back_blames_nobody(self):
        process = self.start(PLACEMENTS[0])
        ranks = ranks_below(process.pid)
        os.kill(ranks[0], signal.SIGSTOP)
        others = {rank: task for rank, task in ranks.items() if rank != 0}
        cause, _ = self.ends(others, WATCHDOG + 5)
        self.assertIn("rank 0 does not answer", cause)
        os.kill(ranks[0], signal.SIGCONT)
        self.assertEqual(self.ends(ranks, 10)[0], cause)

    def test_a_job_that_was_suspended_goes_on(self):
        process = self.start(PLACEMENTS[0])
        ranks = ranks_below(process.pid)
        for how in (signal.SIGSTOP, signal.SIGCONT):
            for rank in ranks.values():
                os.kill(rank, how)
            time.sleep(2 * WATCHDOG)
        self.assertTrue(all(map(runs, ranks.values())))

    def test_a_rank_that_fails_alone(self):
        # Also where the launcher does not end the others.
        _, result, status = self.train_on(TELL_CODES, FAIL_AT_DATA="1")
        self.assertEqual((status["state"], status["exit_code"]), ("failed", 74), result.stderr)
        self.assertIn("digits.h5", status["cause"])
        self.assertEqual(self.codes(), ["77\n", "74\n", "77\n", "77\n"], result.stderr)
        self.assertRegex(result.stderr, r"carousel: rank 2: rank 1 failed: \S+digits.h5: cannot read")

    def train_on(self, shell=(), watchdog=1, words=PLACEMENTS[0], **environment):
        """Seconds, result and status of a short run below the library of slow calls."""
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        for code in self.folder.glob("code.*"):
            code.unlink()
        begin = time.monotonic()
        result = subprocess.run(
            [MPIEXEC, "-n", str(RANKS), *shell, CAROUSEL, "train", PROJECT / "inputs/digits.toml",
             "parallel.transport=mpi", "run.output=run", "train.epochs=", "train.steps=40",
             f"run.watchdog_seconds={watchdog}", *words],
            cwd=self.folder, capture_output=True, text=True, timeout=60,
            env={**os.environ, "LD_PRELOAD": str(self.slow_calls()), **environment})
        status = self.folder / "run/status.json"
        status = json.loads(status.read_text()) if status.exists() else None
        return time.monotonic() - begin, result, status

    def codes(self):
        return [(self.folder / f"code.{rank}").read_text() for rank in range(RANKS)]

    def test_slow_files_end_nothing(self):
        for what in "SLOW", "SLOW_DATA", "SLOW_METRICS":
            with self.subTest(what):
                seconds, result, status = self.train_on(watchdog=1, **{what: "3"})
                self.assertEqual((result.returncode, status and status["state"]), (0, "done"),
                                 result.stderr)
                self.assertGreater(seconds, 3)
        self.assertTrue((self.folder / "run/checkpoints/last.h5").exists())

    def test_a_slow_last_word_is_said(self):
        seconds, result, status = self.train_on(
            TELL_CODES, watchdog=2, words=[*PLACEMENTS[0], "train.optimizer.learning_rate=1e6"],
            SLOW_LAST_WORD='"exit_code": 76')
        self.assertEqual(self.codes(), ["76\n"] * RANKS, result.stderr)
        self.assertEqual((status["state"], status["exit_code"]), ("diverged", 76))
        self.assertGreater(seconds, 6)

    def test_a_last_word_that_hangs_is_said_by_others(self):
        _, result, status = self.train_on(TELL_CODES, FAIL_AT_DATA="1",
                                          SLOW_LAST_WORD='"exit_code": 74')
        self.assertEqual(self.codes(), ["77\n", "74\n", "77\n", "77\n"], result.stderr)
        self.assertRegex(result.stderr, r"carousel: rank 1: \S+digits.h5: cannot read")
        self.assertEqual((status["state"], status["exit_code"]), ("failed", 77))
        self.assertRegex(status["cause"], r"rank 1 failed: \S+digits.h5: cannot read")

    def test_files_that_hang_end_all(self):
        seconds, result, status = self.train_on(SLOW="50")
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual((status["state"], status["exit_code"]), ("failed", 77), result.stderr)
        self.assertRegex(status["cause"], r"^nothing moved for 10 s while rank \d was at its files$")
        self.assertLess(seconds, 25)

    def test_a_rank_that_stops_before_training_ends_all(self):
        seconds, result, status = self.train_on(STOP_AT_DATA="1")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("rank 1 does not answer and nothing moved for 1 s", result.stderr)
        self.assertIn("outside training", result.stderr)
        self.assertLess(seconds, 1 + PATIENCE)
        self.assertIsNone(status)

    def test_ranks_that_stop_before_all_have_met_end_all(self):
        for what, lost in ("STOP_AT_CONNECT", 1), ("STOP_AT_ACCEPT", 0):
            with self.subTest(what):
                seconds, result, status = self.train_on(**{what: "1"})
                self.assertIn(f"rank {lost} was not met within 2 s", result.stderr)
                self.assertLess(seconds, 1 + PATIENCE)
                self.assertIsNone(status)

    def test_strangers_keep_nobody_waiting(self):
        _, result, _ = self.train_on(watchdog=2, STRANGERS="3")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_rank_that_dies_when_all_have_met_ends_all(self):
        # Also where MPI fails or aborts on another rank, which knows no cause.
        for other in "", "FAIL_WHEN_MET", "ABORT_WHEN_MET":
            with self.subTest(other):
                seconds, result, _ = self.train_on(TELL_CODES, watchdog=300, DIE_WHEN_MET="0.3",
                                                   **({other: "1"} if other else {}))
                self.assertEqual(self.codes(), ["77\n", "137\n", "77\n", "77\n"], result.stderr)
                for rank in 0, 2, 3:
                    self.assertIn(f"rank {rank}: rank 1 ended without a word; outside training",
                                  result.stderr)
                self.assertLess(seconds, 10)

    def test_a_first_rank_that_stops_when_it_has_its_folder_is_named_there(self):
        _, result, status = self.train_on(STOP_AT_FOLDER="1")
        self.assertEqual((status["state"], status["exit_code"]), ("failed", 77), result.stderr)
        self.assertIn("rank 0 does not answer", status["cause"])

    def test_a_rank_that_is_stuck_where_groups_are_made_ends_all(self):
        for what, why in ("STOP_AT_GROUPS", "rank 1 does not answer and nothing moved for 1 s"), (
                "HANG_AT_GROUPS", ": nothing moved for 1 s"):
            with self.subTest(what):
                seconds, result, status = self.train_on(words=WITH_GROUPS, **{what: "1"})
                self.assertIn(why, result.stderr)
                self.assertLess(seconds, 1 + PATIENCE)
                self.assertIsNone(status)

    def test_a_rank_without_memory_keeps_nobody_waiting(self):
        seconds, result, status = self.train_on(TELL_CODES, words=WITH_GROUPS, NO_MEMORY="1")
        self.assertEqual(self.codes(), ["2\n"] * RANKS, result.stderr)
        self.assertRegex(result.stderr, r"^carousel: rank 1: device 1 needs \d+ bytes .* cannot get")
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertLess(seconds, 5)
        self.assertIsNone(status)

    def test_mpi_that_fails_first_leaves_the_cause_to_the_watchdog(self):
        fails = self.aside / "fails"
        process = self.start(PLACEMENTS[0], LD_PRELOAD=str(self.slow_calls()),
                             FAIL_IN_MPI=str(fails))
        ranks = ranks_below(process.pid)
        fails.touch()
        os.kill(ranks.pop(1), signal.SIGKILL)
        self.assertIn("rank 1 ended without a word", self.ends(ranks, 10)[0])

    def test_a_rank_that_never_starts_ends_all(self):
        # The first of two programs never gets as far as MPI, and the launcher waits for it.
        begin = time.monotonic()
        process = subprocess.Popen(
            [MPIEXEC, *LEAVE_ALONE, "-n", "1", "sleep", "30", ":", "-n", "3", CAROUSEL,
             "train", PROJECT / "inputs/digits.toml", "parallel.transport=mpi", "run.output=run",
             "run.watchdog_seconds=2", *PLACEMENTS[0]],
            cwd=self.folder, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        self.addCleanup(process.stderr.close)
        said = [process.stderr.readline() for _ in range(3)]
        self.assertLess(time.monotonic() - begin, 2 + 5)
        for line in said:
            self.assertRegex(line, r"^carousel: rank [123]: not all ranks have started within 2 s")
        self.assertFalse((self.folder / "run").exists())

    def test_a_run_that_is_over_ends_whatever_mpi_does(self):
        # What the launcher makes of ranks that end without MPI is its own affair.
        seconds, result, status = self.train_on(TELL_CODES, STAY_IN_MPI="1")
        self.assertEqual(status["state"], "done", result.stderr)
        self.assertEqual(self.codes(), ["0\n"] * RANKS, result.stderr)
        self.assertLess(seconds, 10)


# Writes down what CUDA would find where MPI starts, which may be the first to call it, and ends.
SEES_CUDA = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int MPI_Init_thread(int* count, char*** words, int wanted, int* given) {
  const char* loading = getenv("CUDA_MODULE_LOADING");
  FILE* file = fopen("loading", "w");
  fprintf(file, "%s", loading ? loading : "nothing");
  fclose(file);
  _exit(0);
}
"""


class Kernels(unittest.TestCase):
    """Kernels of a GPU are loaded before messages of other ranks are waited for."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        source, self.library = self.folder / "sees.c", self.folder / "sees.so"
        source.write_text(SEES_CUDA)
        subprocess.run([COMPILER, "-shared", "-fPIC", source, "-o", self.library], check=True)

    def loading(self, program, **environment):
        subprocess.run([MPIEXEC, "-n", "1", program, "train", PROJECT / "inputs/digits.toml",
                        "parallel.transport=mpi", "parallel.placement=single"],
                       cwd=self.folder, capture_output=True, timeout=60,
                       env={**os.environ, "LD_PRELOAD": str(self.library), **environment})
        return (self.folder / "loading").read_text()

    def test_are_loaded_at_the_start(self):
        for program in CAROUSEL, CAROUSEL.with_name("carousel-engine"):
            self.assertEqual(self.loading(program), "EAGER")
            self.assertEqual(self.loading(program, CUDA_MODULE_LOADING="LAZY"), "LAZY")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
