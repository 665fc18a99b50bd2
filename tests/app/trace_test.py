# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""trace.json of real runs against the files it is made of.

Usage: trace_test.py CAROUSEL MPIEXEC PROJECT COMPILER. Everything happens in a temporary folder.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py

CAROUSEL, MPIEXEC, PROJECT = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
COMPILER = sys.argv[4]
DECK = PROJECT / "inputs/digits.toml"
ROUNDING = 0.0011  # microseconds; the trace counts in whole nanoseconds
RING = ("parallel.placement=replicated", "parallel.transport=mpi")

# The clock of a node that is set wrong.
OTHER_CLOCK = r"""
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec* now) {
  const long code = syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += atoi(getenv("SECONDS_AHEAD"));
  return (int)code;
}
"""


class Trace(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def train(self, *words, ranks=1, code=0):
        before = [MPIEXEC, "-n", str(ranks)] if ranks > 1 else []
        self.ends([*before, *self.training(*words)], code)
        self.read()

    def training(self, *words):
        return [CAROUSEL, "train", DECK, f"run.output={self.folder}/run", "train.epochs=2", *words]

    def ends(self, command, code=0):
        result = subprocess.run(command, text=True, capture_output=True, timeout=100)
        self.assertEqual(result.returncode, code, result.stderr)

    def read(self):
        with h5py.File(self.folder / "run/run.h5") as run:
            ranks = [run[f"ranks/{d:04d}"] for d in range(run["plan"].attrs["devices"])]
            self.actions = [self.rows(rank["actions"]) for rank in ranks]
            self.messages = [self.rows(rank["messages"]) for rank in ranks]
        trace = json.loads((self.folder / "run/trace.json").read_text())
        self.events = {phase: [e for e in trace["traceEvents"] if e["ph"] == phase]
                       for phase in "MXsf"}
        self.assertEqual(sum(map(len, self.events.values())), len(trace["traceEvents"]))

    @staticmethod
    def rows(group):
        names = list(group)
        return [dict(zip(names, values)) for values in zip(*(group[name][:] for name in names))]

    def expect_all_actions(self):
        names = {e["tid"]: e["args"]["name"] for e in self.events["M"] if e["name"] == "thread_name"}
        self.assertEqual(names, {d: f"device {d}" for d in range(len(self.actions))})
        for device, actions in enumerate(self.actions):
            track = [e for e in self.events["X"] if e["tid"] == device]
            self.assertEqual(len(track), len(actions))
            end = 0
            for event, action in zip(track, actions):
                self.assertTrue(event["name"].startswith(action["kind"].decode()))
                for key in ("step", "micro_batch", "stage", "piece", "version"):
                    self.assertEqual(event["args"][key], action[key])
                self.assertAlmostEqual(event["ts"], action["begin"] * 1e6, delta=ROUNDING)
                self.assertAlmostEqual(event["ts"] + event["dur"], action["end"] * 1e6,
                                       delta=ROUNDING)
                self.assertGreaterEqual(event["ts"], end - ROUNDING)
                self.assertGreaterEqual(event["dur"], 0)
                end = event["ts"] + event["dur"]

    def expect_all_messages(self):
        starts, ends = ({e["id"]: e for e in self.events[phase]} for phase in "sf")
        self.assertEqual(starts.keys(), ends.keys())
        self.assertEqual(len(starts), len(self.events["s"]))
        self.assertEqual(len(ends), len(self.events["f"]))
        for key, start in starts.items():
            self.assertLessEqual(start["ts"], ends[key]["ts"])
            self.assertEqual(start["name"], ends[key]["name"])
            self.assertEqual(self.kind_at(start), "send")
            self.assertEqual(self.kind_at(ends[key]), "wait")
        for direction, phase in ((b"send", "s"), (b"receive", "f")):
            for device, messages in enumerate(self.messages):
                waits = [a["begin"] for a in self.actions[device] if a["kind"] == b"wait"]
                self.assertEqual(len(waits), len(messages))
                wanted = sorted((m["posted"] if phase == "s" else max(m["completed"], wait)) * 1e6
                                for m, wait in zip(messages, waits) if m["direction"] == direction)
                found = sorted(e["ts"] for e in self.events[phase] if e["tid"] == device)
                self.assertEqual(len(found), len(wanted), f"{direction} of device {device}")
                for a, b in zip(found, wanted):
                    self.assertAlmostEqual(a, b, delta=ROUNDING)

    def kind_at(self, flow):
        """The kind of the action that a viewer hangs the end of a flow on."""
        inside = [e for e in self.events["X"] if e["tid"] == flow["tid"]
                  and e["ts"] <= flow["ts"] <= e["ts"] + e["dur"]]
        self.assertTrue(inside, flow)
        return inside[-1]["name"].split()[0]

    def test_ring_of_ranks(self):
        self.train(*RING, ranks=4)
        self.expect_all_actions()
        self.expect_all_messages()
        self.assertGreater(len(self.events["s"]), 20 * 4 * 6)

    def test_nodes_whose_clocks_differ(self):
        source, library = self.folder / "clock.c", self.folder / "clock.so"
        source.write_text(OTHER_CLOCK)
        subprocess.run([COMPILER, "-shared", "-fPIC", source, "-o", library], check=True)
        rank = self.training(*RING, "--overwrite")
        for ahead in (-3, 3):
            with self.subTest(ahead=ahead):
                other = ["env", f"LD_PRELOAD={library}", f"SECONDS_AHEAD={ahead}"]
                self.ends([MPIEXEC, "-n", "1", *rank, ":", "-n", "1", *other, *rank, ":",
                           "-n", "2", *rank])
                self.read()
                self.expect_all_actions()
                first, second = (self.actions[device][0]["begin"] for device in (0, 1))
                self.assertAlmostEqual(second - first, ahead, delta=1)
                starts = {e["id"]: e["ts"] for e in self.events["s"]}
                for end in self.events["f"]:
                    self.assertLessEqual(starts[end["id"]], end["ts"])
                self.ends([CAROUSEL, "verify", self.folder / "run"])

    def test_devices_in_one_process(self):
        self.train("parallel.placement=replicated")
        self.expect_all_actions()
        self.expect_all_messages()

    def test_pieces_of_stages(self):
        for rule in ("dp", "cdp-v2"):
            with self.subTest(rule=rule):
                self.train(*RING[:1], f"parallel.rule={rule}", "parallel.stages=2",
                           "parallel.shards=true", "parallel.chunks=2",
                           "model.widths=[64,512,256,10]", "--overwrite")
                self.expect_all_actions()
                self.expect_all_messages()
                pieces = {m["piece"] for messages in self.messages for m in messages}
                self.assertGreater(len(pieces), 4)

    def test_stages_on_devices(self):
        for placement in ("pipeline", "model"):
            for rule in ("dp", "cdp-v2"):
                with self.subTest(placement=placement, rule=rule):
                    self.train(f"parallel.placement={placement}", f"parallel.rule={rule}",
                               "parallel.stages=2", "--overwrite")
                    self.expect_all_actions()
                    self.expect_all_messages()

    def test_one_device_has_no_messages(self):
        self.train()
        self.expect_all_actions()
        self.assertEqual(self.events["s"], [])

    def test_nothing_profiled(self):
        self.train('profile.steps=""')
        self.assertEqual(self.events["X"], [])

    def test_a_run_that_diverged(self):
        self.train("train.optimizer.learning_rate=1e18", code=76)
        self.expect_all_actions()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
