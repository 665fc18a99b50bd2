# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Exit codes and messages of the command line, as a user and a job script meet them.

Usage: cli_test.py CAROUSEL COMPILER INPUTS. The engine is a stand-in here, which prints its
arguments; INPUTS is the folder of the decks that come with Carousel.
"""

import json
import os
import pathlib
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
from drawn import png

CAROUSEL, COMPILER, INPUTS = sys.argv[1:4]

DECK = """[run]
name = "a"
output = "runs/a"
[model]
widths = [4, 2]
[data]
file = "a.h5"
[parallel]
placement = "replicated"
micro_batches = 4
[train]
micro_batch_size = 1
steps = 5
"""
LAUNCHER_PREFIXES = ("PMI", "SLURM", "OMPI", "MPI_")


class CommandLine(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.program = self.folder / "carousel"
        shutil.copy(CAROUSEL, self.program)
        (self.folder / "x.toml").write_text(DECK)

    def run_carousel(self, *arguments, before=(), **variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHER_PREFIXES)}
        return subprocess.run([*before, self.program, *arguments], cwd=self.folder, text=True,
                              env={**environment, **variables}, capture_output=True, timeout=60)

    def refused(self, *arguments, code=2, **keywords):
        """Runs the program, expects one line of complaint and nothing else, and returns the line."""
        for _ in range(5):
            result = self.run_carousel(*arguments, **keywords)
            # One time in sixty MPICH's own launcher dies as it writes to a proxy that has ended.
            if not keywords.get("before") or result.returncode != -signal.SIGPIPE:
                break
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("carousel: "), result.stderr)
        return result.stderr

    def add_engine(self):
        engine = self.folder / "carousel-engine"
        engine.write_text('#!/bin/sh\nprintf "%s|" "$@"\nexit 76\n')
        engine.chmod(0o755)

    def test_plans_every_placement(self):
        deck = f"{INPUTS}/digits.toml"
        devices = {"single": 1, "replicated": 4, "model": 10, "pipeline": 4, "sharded": 4}
        for placement, count in devices.items():
            override = f"parallel.placement={placement}"
            text = self.run_carousel("plan", deck, override).stdout
            self.assertIn(f"on {count} device", text)
            self.assertLessEqual(max(map(len, text.splitlines())), 80)
            plan = json.loads(self.run_carousel("plan", deck, override, "--json", "--steps",
                                                "3").stdout)
            self.assertEqual(plan["devices"], count)
            self.assertEqual(len(plan["activation_units"]), count)
            self.assertEqual(len(plan["bytes"]["activations"]), count)
            passes = [a for a in plan["actions"] if a["kind"] in ("forward", "backward")]
            self.assertEqual(len(passes), 3 * 2 * 4 * 4)
            for action in passes:
                fresh = action["micro_batch"] + action["stage"] >= 3
                self.assertEqual(action["version"], action["step"] - (0 if fresh else 1))
            kinds = [action["kind"] for action in plan["actions"]]
            self.assertEqual(kinds.count("send"), kinds.count("post"))
        queues = self.run_carousel("plan", deck, "engine.queues=64").stdout
        self.assertIn("\ncompute queues: 4\n", queues)  # N
        fast = ["parallel.placement=replicated", "parallel.reduction=fast"]
        self.assertIn("one by one", self.refused("plan", deck, *fast))
        slots = [*fast, "parallel.stages=2"]
        self.assertIn("0 .. 1", self.run_carousel("plan", deck, *slots).stdout)

    def test_plans_fit_a_page(self):
        deck, table = f"{INPUTS}/digits.toml", re.compile(r"^layer +output +parameters", re.M)
        for words in (["plan", deck], ["train", "--validate", deck]):
            text = self.run_carousel(*words, "parallel.placement=replicated").stdout
            self.assertLessEqual(text.count("\n"), 50)
            self.assertNotRegex(text, table)
            self.assertRegex(self.run_carousel(*words, "--layers").stdout, table)
        for more in (["--json"], ["--compare"], ["--svg", "s.svg"]):
            self.refused("plan", deck, "--layers", *more)
        self.assertIn("--validate", self.refused("train", deck, "--layers"))

    def test_validate_notes_what_a_delay_wants(self):
        words = ["train", "--validate", f"{INPUTS}/digits.toml", f"run.output={self.folder}/run",
                 "train.optimizer.momentum=0.9"]
        nesterov, clip = "train.optimizer.nesterov=true", "train.optimizer.clip_stage_norm=1"
        for rule, keys, wanted in (("cdp-v1", [], "nesterov = true and train.optimizer.clip_stage"),
                                   ("cdp-v1", [nesterov], "least accuracy with train.optimizer.clip"),
                                   ("cdp-v1", [clip], "train.optimizer.nesterov = true; see"),
                                   ("cdp-v1", [nesterov, clip], None), ("cdp-v2", [], None)):
            told = self.run_carousel(*words, f"parallel.rule={rule}", *keys)
            self.assertEqual(told.returncode, 0)
            if wanted is None:
                self.assertEqual(told.stderr, "")
            else:
                self.assertIn(wanted, told.stderr)
                self.assertEqual(told.stderr.count("\n"), 1)

    def test_bytes_are_told_as_inspect_tells_them(self):
        deck, ring = f"{INPUTS}/digits.toml", "parallel.placement=replicated"
        text = self.run_carousel("plan", deck, ring).stdout
        self.assertRegex(text, r"memory on device +0 +1 +2 +3 +all\n")
        self.assertRegex(text, r"\nparameters +51.6 KiB +51.6 KiB +51.6 KiB +51.6 KiB +206.2 KiB\n")
        self.assertRegex(text, r"\n +0 +1 +8 +86.8 KiB\n")
        self.assertRegex(text, r"activations at once +this plan +36.6 KiB\n")
        self.assertRegex(text, r"sent per step +30 messages, 344.6 KiB in all\n")
        # Of 24 tensors, each in whole pages, and of what HDF5 says, which also depends on paths.
        size = re.search(r"checkpoint +([\d.]+) KiB; each device writes what it owns, without a copy",
                         text)
        self.assertTrue(208 < float(size[1]) < 224, size[1])
        # Programs get every byte.
        plan = json.loads(self.run_carousel("plan", deck, ring, "--json").stdout)
        self.assertEqual(plan["bytes"]["parameters"], [52800] * 4)
        self.assertRegex(self.run_carousel("plan", deck, "--compare").stdout,
                         r"single +50.5 KiB  N A +36.6 KiB  sum R")
        self.assertIn(" 36.6 KiB ", self.run_carousel("plan", deck, "--sweep",
                                                      "parallel.rule=cdp-v2").stdout)

    def test_tells_scripts_one_thing(self):
        deck = f"{INPUTS}/digits.toml"

        def told(*words):
            return self.run_carousel("plan", deck, *words).stdout
        self.assertEqual(told("--devices"), "1\n")  # all in one process
        ranks = ["parallel.placement=model", "parallel.transport=mpi"]
        self.assertEqual(told(*ranks, "--devices"), "10\n")
        self.assertEqual(told(ranks[0], "parallel.transport=auto", "--devices"), "10\n")
        self.assertEqual(told("--get", "run.output"), "runs/digits\n")
        self.assertEqual(told("run.output=a b%", "--get=run.output"), "a b%\n")
        self.assertEqual(told("--get=model.widths"), "[64, 64, 64, 64, 10]\n")
        self.assertEqual(told("--get=train.optimizer.learning_rate"), "0.05\n")
        self.assertEqual(told("--get=run.wall_clock"), "\n")
        self.assertEqual(told("--get=machine.flops"), "\n")

    def test_compares_and_sweeps(self):
        deck = f"{INPUTS}/digits.toml"
        table = self.run_carousel("plan", deck, "--compare").stdout
        self.assertRegex(table, r"model +16  N S +10  R S \(S \+ 1\) / 2")
        self.assertRegex(table, r"pipeline +0.571  N / \(N \+ S - 1\) +1.000")
        lines = self.run_carousel("plan", deck, "--sweep", "parallel.micro_batches=1,2,4").stdout
        self.assertEqual([line.split()[0] for line in lines.splitlines()[2:5]], ["1", "2", "4"])
        for wrong in ("parallel.stages", "parallel.stages=", "parallel.stages=1,,2",
                      "parallel.stags=1"):
            self.refused("plan", deck, "--sweep", wrong)
        machine = [f"machine.{key}=1e9" for key in
                   ("flops", "memory_bandwidth", "node_bandwidth", "network_bandwidth")]
        machine += ["machine.node_latency=0", "machine.network_latency=1e-6",
                    "machine.devices_per_node=2"]
        self.assertIn("s per step", self.run_carousel("plan", deck, *machine).stdout)
        self.assertIn("simulated", self.run_carousel("plan", deck, "--compare", *machine).stdout)
        ring = json.loads(self.run_carousel("plan", deck, "parallel.placement=replicated", *machine,
                                            "--json").stdout)["simulation"]
        self.assertEqual(len(ring["computing"]), 4)
        self.assertEqual(len(ring["activations"]), 2 * 4)
        # A ring, and totals from the last device straight to the owners of their stages.
        self.assertEqual({(link["from"], link["to"]) for link in ring["links"]},
                         {(0, 1), (1, 2), (2, 3), (3, 0), (3, 1), (3, 2)})
        self.assertGreaterEqual(ring["seconds_per_step"], ring["ideal_seconds_per_step"])
        self.assertNotIn("simulation", json.loads(self.run_carousel("plan", deck, "--json").stdout))

    def test_advises(self):
        deck = f"{INPUTS}/digits.toml"
        self.assertIn("[machine]", self.refused("plan", deck, "--advise"))
        self.assertIn("parallel.balance = \"time\" needs a [machine]",
                      self.refused("plan", deck, "parallel.balance=time"))
        machine = ["machine.flops=1e9", "machine.memory_bandwidth=1e10",
                   "machine.node_latency=1e-7", "machine.node_bandwidth=1e12",
                   "machine.network_latency=1e-6", "machine.network_bandwidth=1e9",
                   "machine.devices_per_node=8"]
        self.run_carousel("plan", deck, "parallel.balance=time", *machine)
        text = self.run_carousel("plan", deck, *machine, "machine.devices=4", "--advise").stdout
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        rows = [line.split() for line in text.splitlines()]
        rules = ("dp", "cdp-v1", "cdp-v2")
        plans = [row for row in rows if len(row) == 10 and row[0].split("+")[0] in rules]
        self.assertEqual(len({(row[0].split("+")[0], row[1]) for row in plans}), len(plans))
        self.assertLessEqual(max(int(row[7]) for row in plans), 4)
        seconds = [float(row[9]) for row in plans]
        self.assertEqual(seconds, sorted(seconds))
        keys = [part.split("\n\n")[0].split() for part in re.split(r"Keys of .*:\n", text)[1:]]
        self.run_carousel("train", "--validate", deck, *machine, *keys[-1])
        best = self.run_carousel("plan", deck, *machine, *keys[0]).stdout
        self.assertAlmostEqual(float(re.search(r"simulated +(\S+) s", best).group(1)), seconds[0],
                               delta=0.005 * seconds[0])
        self.assertIn("machine.slow_device = 4: the plan has 1 device",
                      self.refused("plan", deck, *machine, "machine.slow_factor=2",
                                   "machine.slow_device=4"))
        tight = self.run_carousel("plan", deck, *machine, "machine.memory=1000", "--advise")
        self.assertEqual(tight.returncode, 2)
        self.assertIn("no room", tight.stdout)
        self.assertRegex(tight.stderr,
                         r"machine.memory = 1000 bytes: no plan fits; the smallest needs \d{5,}")

    def test_draws_a_plan(self):
        words = (f"{INPUTS}/digits.toml", "parallel.placement=replicated", "--svg", "s.svg")
        said = self.run_carousel("plan", *words).stdout
        self.assertEqual(said, "s.svg: the picture of the schedule\n")
        self.assertTrue((self.folder / "s.svg").read_text().startswith("<"))
        self.assertIn("already exists", self.refused("plan", *words))
        self.assertIn("needs a value", self.refused("plan", words[0], "--svg", ""))

    def test_help_fits_a_terminal(self):
        for words in (["--help"], ["help"], ["help", "deck"], ["help", "train"], ["help", "plan"],
                      ["help", "files"], ["help", "faults"], ["help", "restart"], ["help", "rules"],
                      ["help", "placements"],
                      ["help", "exit-codes"], ["help", "help"],
                      ["train", "--help"], ["train", "--help-deck"], ["inspect", "--help"],
                      ["help", "verify"], ["diff", "--help"], ["help", "import"],
                      ["import", "weights", "--help"], ["export", "weights", "--help"]):
            result = self.run_carousel(*words)
            self.assertEqual(result.returncode, 0, words)
            self.assertEqual(result.stderr, "")
            self.assertLessEqual(max(map(len, result.stdout.splitlines())), 80, words)

    def test_help_lists_its_topics_and_their_pages_fit_two_screens(self):
        for words in (["help"], ["--help"], ["help", "help"]):
            text = self.run_carousel(*words).stdout
            listed = re.findall(r"^  (\S+) +\S", text.split("Topics of carousel help:\n")[1], re.M)
            self.assertEqual(listed, ["deck", "network", "layers", "rules", "placements", "files",
                                      "faults", "restart", "exit-codes"])
        for topic in listed[1:]:
            self.assertLessEqual(self.run_carousel("help", topic).stdout.count("\n"), 66, topic)

    def test_help_tells_every_exit_code(self):
        text = self.run_carousel("help", "exit-codes").stdout
        codes = [int(code) for code in re.findall(r"^ +(\d+)  \S", text, re.M)]
        self.assertEqual(codes, [0, 2, 3, 4, 65, 70, 74, 75, 76, 77])

    def test_wrong_command_lines(self):
        self.assertIn("give a command: train, plan, ", self.refused())
        self.assertIn("DECK", self.refused("train"))
        self.assertIn("--frob", self.refused("train", "x.toml", "--frob"))
        self.assertIn("table.key=value", self.refused("plan", "x.toml", "frob"))
        self.assertIn("topics are deck, network, layers, rules, placements, files, faults, restart, "
                      "exit-codes", self.refused("help", "frob"))
        self.assertIn("import: give a command: cifar10, imagenet, images, fields, tokens, weights", self.refused("import"))
        self.assertIn("DECK", self.refused("import", "weights", "a.h5"))
        self.assertIn("eval: unexpected argument \"c\"", self.refused("eval", "a", "b", "c"))

    def test_misspelt_words_are_guessed(self):
        for words, meant in ((["trian"], "train"), (["trian", "x.toml", "--overwrite"], "train"),
                             (["import", "wieghts", "a"], "weights"), (["--versoin"], "--version"),
                             (["train", "--overwrit"], "--overwrite"),
                             (["plan", "x.toml", "--sgv=a"], "--svg"), (["help", "trian"], "train"),
                             (["help", "import", "wights"], "weights"),
                             (["help", "deck", "trian"], "train"),
                             (["help", "deck", "optimizer"], "train.optimizer")):
            self.assertIn(f" (did you mean {meant}?)", self.refused(*words), words)
        for words in (["frob"], ["help", "frob"], ["help", "deck", "frob"], ["plan", "x", "--f"]):
            self.assertNotIn("did you mean", self.refused(*words), words)

    def test_help_on_one_table(self):
        whole = self.run_carousel("help", "deck").stdout
        for table in ("train", "train.optimizer", "machine"):
            text = self.run_carousel("help", "deck", table).stdout
            self.assertTrue(text.startswith(f"[{table}]  "))
            self.assertEqual(text.count("["), 1)
            self.assertIn(text, whole)
        self.assertIn("FILE", self.run_carousel("help", "import", "weights").stdout)

    def test_wrong_decks(self):
        self.assertIn("No such file", self.refused("plan", "none.toml"))
        self.assertIn("is a folder without a run", self.refused("plan", "."))
        self.assertIn("command line: unknown key train.step (did you mean train.steps?)",
                      self.refused("train", "x.toml", "train.step=3"))
        (self.folder / "bad.toml").write_text(DECK.replace("steps", "stpes"))
        self.assertIn("bad.toml:13:1: unknown key train.stpes", self.refused("plan", "bad.toml"))

    def test_keys_that_the_command_line_deprives_of_effect(self):
        data = pathlib.Path(INPUTS) / "digits.h5"
        deck = (pathlib.Path(INPUTS) / "digits.toml").read_text()
        slack = deck.replace("stages = 4 ", "slack = 1\nstages = 4 ").replace("digits.h5", str(data))
        (self.folder / "slack.toml").write_text(slack)
        line = slack[:slack.index("slack = 1")].count("\n") + 1
        dropped = (f"note: slack.toml:{line}:1: parallel.slack is dropped: it has no effect "
                   "with parallel.rule = \"dp\" from the command line\n")
        ways = (["plan", "slack.toml", "parallel.rule=dp"],
                ["train", "slack.toml", "parallel.rule=dp", "--validate"],
                ["plan", "slack.toml", "--sweep", "parallel.rule=dp,cdp-v2"],
                ["plan", "slack.toml", "parallel.rule=dp", "--sweep", "parallel.stages=1,2"])
        for words in ways:
            result = self.run_carousel(*words)
            self.assertEqual((result.stderr, result.returncode), (dropped, 0), words)
        for quiet in ("parallel.slack=", "parallel.slack=2"):
            self.assertEqual(self.run_carousel("plan", "slack.toml", quiet).stderr, "")
        # What the command line itself gives, or the deck alone, is refused.
        self.refused("plan", "slack.toml", "parallel.rule=dp", "parallel.slack=1")
        (self.folder / "slack.toml").write_text(slack.replace("cdp-v2", "dp"))
        self.refused("plan", "slack.toml", "train.epochs=3")
        self.assertIn("data.file is missing", self.refused("plan", "x.toml", "data.file="))
        self.assertIn("unknown key run.sed (did you mean run.seed?)",
                      self.refused("plan", "x.toml", "run.sed="))

    @unittest.skipUnless(shutil.which("mpiexec"), "no mpiexec")
    def test_one_rank_says_what_is_dropped(self):
        self.add_engine()
        result = self.run_carousel("train", "x.toml", "train.epochs=1",
                                   before=["mpiexec", "-n", "4"])
        self.assertEqual(result.stdout.count("train.epochs=1|"), 4)
        self.assertEqual(result.stderr.count("is dropped: the command line gives train.epochs"), 1)

    def add_dataset(self, name, *shape):
        write_dataset(self.folder / name, shape)
        return f"data.file={name}"

    def test_every_deck_is_valid_without_engine_and_launcher(self):
        cifar10 = self.add_dataset("cifar10.h5", 3, 32, 32)
        not_ours = {"resnet20_cifar10": cifar10, "vit_cifar10": cifar10,
                    "resnet50_pictures": self.add_dataset("pictures.h5", 3, 60, 80)}
        for deck in pathlib.Path(INPUTS).glob("*.toml"):
            words = [deck, *filter(None, [not_ours.get(deck.stem)])]
            begin = time.monotonic()
            result = self.run_carousel("train", *words, "--validate", SLURM_NTASKS="4")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("activations", result.stdout)
            self.assertLessEqual(max(map(len, result.stdout.splitlines()[:-1])), 80, deck)
            plan, said = self.run_carousel("plan", *words).stdout, f"\n{deck} is valid\n"
            self.assertEqual(result.stdout, plan + said)
            self.assertLess(time.monotonic() - begin, 4)

    def test_deck_and_data_must_fit(self):
        deck = pathlib.Path(INPUTS) / "digits.toml"
        self.assertIn("command line: model.widths starts with 3",
                      self.refused("plan", deck, "model.widths=[3,10]"))
        self.assertIn("none.h5", self.refused("plan", deck, "data.file=none.h5", code=74))
        (self.folder / "bad.h5").write_text("no HDF5")
        self.assertIn("bad.h5", self.refused("plan", deck, "data.file=bad.h5", code=65))

    def test_pipes_are_refused_at_once(self):
        os.mkfifo(self.folder / "pipe")
        deck, data = pathlib.Path(INPUTS) / "digits.toml", pathlib.Path(INPUTS) / "digits.h5"
        self.add_engine()
        self.assertIn("pipe: the deck is a pipe", self.refused("plan", "pipe"))
        for words in (["inspect", "pipe"], ["plan", deck, "data.file=pipe"], ["verify", "pipe"],
                      ["diff", "pipe", data]):
            line = self.refused(*words, code=74)
            self.assertIn("pipe: cannot open: it is a pipe or device", line)

    def test_data_that_claims_more_than_is_stored(self):
        deck = pathlib.Path(INPUTS) / "digits.toml"
        with h5py.File(self.folder / "huge.h5", "w") as file:
            for split in ("train", "test"):
                file.create_dataset(f"{split}/images", (2**36, 1, 8, 8), "u1", chunks=(1, 1, 8, 8))
                file.create_dataset(f"{split}/labels", (2**36,), "i8", chunks=(1,))
            with h5py.File(pathlib.Path(INPUTS) / "digits.h5") as digits:
                file.attrs.update(digits.attrs)
        for words in (["inspect", "huge.h5"], ["plan", deck, "data.file=huge.h5"]):
            self.assertIn("/train/images was created but never written",
                          self.refused(*words, code=65))
        with h5py.File(self.folder / "huge.h5", "r+") as file:
            file["train/images"][0] = 1
        self.assertIn("only 1 of the 68719476736 chunks of /train/images were ever written",
                      self.refused("inspect", "huge.h5", code=65))

    def test_a_run_folder_nobody_may_look_into(self):
        deck = pathlib.Path(INPUTS) / "digits.toml"
        os.symlink("loop", self.folder / "loop")
        os.symlink("nowhere", self.folder / "dangling")
        for name in ("x" * 300, "loop/run", "/dev/null/run", "dangling", "dangling/run"):
            self.assertIn("set run.output to a folder", self.refused(
                "train", deck, f"run.output={name}", "--validate", code=74))

    def test_only_named_files_are_complained_of(self):
        data = str(pathlib.Path(INPUTS) / "digits.h5")
        for words in (["verify", data], ["diff", data, data], ["inspect", data, data]):
            self.assertIn("digits.h5: has no /info", self.refused(*words, code=65))

    def test_decks_that_could_not_be_read_back(self):
        text = (pathlib.Path(INPUTS) / "digits.toml").read_text()
        wide = re.sub(r"widths = .*", f"widths = [64{',1' * 25000},10]", text)
        (self.folder / "wide.toml").write_text(wide)
        self.assertLess(len(wide), 65536)
        self.assertRegex(self.refused("plan", "wide.toml"),
                         r"wide.toml: with all defaults the deck has \d+ bytes; a deck may have at most "
                         "65536")

    def test_steps_larger_than_the_data(self):
        deck = pathlib.Path(INPUTS) / "digits.toml"
        self.assertIn("command line: train.micro_batch_size = 65536 in parallel.micro_batches = 4",
                      self.refused("plan", deck, "train.micro_batch_size=65536"))
        self.assertIn("0 to 512", self.refused("plan", deck, "engine.threads=513"))

    def test_residual_networks(self):
        deck = pathlib.Path(INPUTS) / "resnet20_cifar10.toml"
        small, point = self.add_dataset("small.h5", 3, 32, 32), self.add_dataset("point.h5", 3, 1, 1)
        for depth, stem in ((8, "cifar"), (56, "cifar"), (18, "imagenet"), (50, "imagenet")):
            plan = self.run_carousel("plan", deck, small, f"model.depth={depth}",
                                     f"model.stem={stem}")
            self.assertEqual(plan.returncode, 0, plan.stderr)
            self.assertLessEqual(max(map(len, plan.stdout.splitlines())), 80)
        self.assertIn("command line: model.depth = 21", self.refused(
            "plan", deck, small, "model.depth=21"))
        self.assertIn("command line: model.stem = \"imagenet\"", self.refused(
            "plan", deck, small, "model.stem=imagenet"))
        # A build for GPUs without cuDNN fuses fewer layers.
        version = self.run_carousel("--version").stdout
        portable = "CUDA" in version and "cuDNN" not in version
        most, norm = (44, "batch_norm") if portable else (35, "batch_norm+relu")
        self.assertIn(f"at most {most}", self.refused("plan", deck, small, "parallel.stages=99"))
        self.assertIn(f"leaves {norm} bn1 a single value per channel",
                      self.refused("plan", deck, point, "train.micro_batch_size=1"))

    def test_residual_networks_with_group_norms(self):
        deck = pathlib.Path(INPUTS) / "resnet20_cifar10.toml"
        point = self.add_dataset("point.h5", 3, 1, 1)
        group = "model.norm=group"
        self.assertIn("model.groups = 32 does not divide the 16 channels",
                      self.refused("plan", deck, point, group))
        self.assertIn("group_norm bn1: each of 16 groups of 16x1x1 is one number",
                      self.refused("plan", deck, point, group, "model.groups=16"))
        # Which do not normalise samples, so that one of them will do.
        plan = self.run_carousel("plan", deck, point, group, "model.groups=8",
                                 "train.micro_batch_size=1", "--layers")
        self.assertEqual(plan.returncode, 0, plan.stderr)
        self.assertIn("group_norm+", plan.stdout)
        self.assertNotIn("batch_norm", plan.stdout)

    def test_inspect_and_version(self):
        result = self.run_carousel("inspect", pathlib.Path(INPUTS) / "digits.h5")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("1437", result.stdout)
        self.assertIn("none.h5", self.refused("inspect", "none.h5", code=74))
        # What somebody wrote into a file does not reach the terminal.
        write_dataset(self.folder / "named.h5", (1, 2, 2))
        with h5py.File(self.folder / "named.h5", "r+") as file:
            file.attrs["class_names"] = numpy.array(["\x1b[31mred", "two\nlines", *"cdefghij"], "S")
            file.attrs["source"] = numpy.bytes_("a\rb\x7f")
        told = self.run_carousel("inspect", "named.h5").stdout
        self.assertIn("10: \\u001B[31mred, two\\u000Alines, c,", told)
        self.assertIn("a\\u000Db\\u007F", told)
        version = self.run_carousel("--version")
        self.assertEqual(version.returncode, 0)
        self.assertRegex(version.stdout, r"^carousel \d+\.\d+\.\d+ .*\n.*HDF5")

    def closed(self, *words, numbers="012", program=None, **variables):
        """Runs a program whose standard input, output or error is closed."""
        closings = " ".join(f"{number}>&-" for number in numbers)
        return subprocess.run(["bash", "-c", f'exec "$@" {closings}', "-", program or self.program,
                               *map(str, words)], cwd=self.folder, text=True, timeout=60,
                              capture_output=True, env={**os.environ, **variables})

    def test_closed_descriptors_are_held(self):
        # A file that got the number of standard error would get its text as well. Progress is told
        # every five seconds, of which this clock makes some for every picture.
        (self.folder / "clock.c").write_text("""#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *time) {
  static _Atomic long calls;
  long result = syscall(SYS_clock_gettime, id, time);
  if (id == CLOCK_MONOTONIC) time->tv_sec += 6 * ++calls;
  return (int)result;
}
""")
        clock = self.folder / "clock.so"
        subprocess.run([COMPILER, "-shared", "-fPIC", self.folder / "clock.c", "-o", clock], check=True)
        for k in range(400):
            path = self.folder / f"pictures/{'ab'[k % 2]}/{k:03}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(numpy.full((6, 6, 3), k % 256, numpy.uint8)))
        words = ["import", "images", "pictures", "--test-fraction", "0.1", "--workers", "1"]
        for numbers, code in (("", 0), ("2", 0), ("02", 0), ("12", 74), ("012", 74)):
            told = self.closed(*words, f"{numbers}.h5", numbers=numbers, LD_PRELOAD=str(clock))
            self.assertEqual(told.returncode, code, told.stderr)
            self.assertEqual((self.folder / f"{numbers}.h5").read_bytes(),
                             (self.folder / ".h5").read_bytes(), numbers)
        self.assertIn("import  ", self.closed(*words, "x.h5", numbers="0", LD_PRELOAD=str(clock)).stderr)
        # Standard output cannot be written to, whether anybody can be told or not.
        told = self.closed("inspect", ".h5", numbers="1")
        self.assertEqual((told.returncode, told.stderr),
                         (74, "carousel: standard output: Bad file descriptor\n"))
        self.assertEqual(self.closed("inspect", ".h5", numbers="12").returncode, 74)
        self.assertEqual(self.closed("inspect", "none.h5", numbers="12").returncode, 74)
        self.assertEqual(self.closed("train", "none.toml", numbers="12").returncode, 2)
        # The engine gets all three.
        (self.folder / "carousel-engine").write_text(
            f"#!{sys.executable}\nimport os\n"
            "open('held', 'w').write(' '.join(os.readlink(f'/proc/self/fd/{k}') for k in range(3)))\n")
        (self.folder / "carousel-engine").chmod(0o755)
        self.closed("train", "x.toml")
        self.assertEqual((self.folder / "held").read_text(), " ".join(["/dev/null"] * 3))

    def test_a_log_on_a_full_disk_ends_no_import(self):
        path = self.folder / "pictures/a/bad.png"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"no picture")
        for name in ("a/0.png", "a/1.png", "b/0.png", "b/1.png"):
            (self.folder / "pictures" / name).parent.mkdir(exist_ok=True)
            (self.folder / "pictures" / name).write_bytes(png(numpy.zeros((6, 6, 3), numpy.uint8)))
        with open("/dev/full", "w") as full:
            result = subprocess.run([self.program, "import", "images", "pictures", "x.h5", "--skip-bad",
                                     "--test-fraction", "0.5"], cwd=self.folder, stderr=full,
                                    stdout=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 0)
        self.assertIn("images for training", result.stdout)

    def test_full_disk_is_noticed(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([self.program, "help", "deck"], stdout=full,
                                    stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 74)
        self.assertIn("No space left", result.stderr)

    def test_engine_gets_the_words_and_gives_the_code(self):
        self.add_engine()
        result = self.run_carousel("train", "x.toml", "--overwrite", "run.name=b c",
                                   "model.widths=[4,3,2]")
        self.assertEqual(result.stdout, "train|x.toml|run.name=b c|model.widths=[4,3,2]|--overwrite|"
                         "--watchdog-seconds=300|")
        self.assertEqual(result.returncode, 76)
        (self.folder / "c.h5").touch()
        self.assertEqual(self.run_carousel("eval", "c.h5", "c.h5").stdout, "eval|c.h5|c.h5|")
        self.assertIn("none.h5: no such file", self.refused("eval", "c.h5", "none.h5", code=74))
        (self.folder / "run/checkpoints").mkdir(parents=True)
        self.assertIn("run/checkpoints/last.h5: no such file",
                      self.refused("eval", "run", "c.h5", code=74))
        (self.folder / "run/checkpoints/last.h5").touch()
        self.assertEqual(self.run_carousel("eval", "run", "c.h5").stdout,
                         "eval|run/checkpoints/last.h5|c.h5|")

    def test_missing_engine_is_named(self):
        self.assertIn("carousel-engine cannot be started: No such file", self.refused("train", "x.toml"))

    def test_missing_library_is_named(self):
        source = self.folder / "driver.c"
        source.write_text("int driver(void) { return 0; }\n")
        main = self.folder / "main.c"
        main.write_text("int driver(void);\nint main(void) { return driver(); }\n")
        library = self.folder / "libdriver.so"
        subprocess.run([COMPILER, "-shared", "-fPIC", source, "-o", library], check=True)
        subprocess.run([COMPILER, main, library, "-o", self.folder / "carousel-engine"], check=True)
        self.assertEqual(self.run_carousel("train", "x.toml").returncode, 0)
        library.unlink()
        self.assertIn("libdriver.so", self.refused("train", "x.toml"))

    def test_wrong_starts(self):
        self.add_engine()
        self.assertIn("srun --mpi=pmi2", self.refused("train", "x.toml", SLURM_NTASKS="4"))
        for words in ([], ["--validate"]):
            self.assertIn("4 devices", self.refused("train", "x.toml", *words, PMI_RANK="0",
                                                    PMI_SIZE="2"))
        self.assertIn("one process", self.refused("eval", "x", "x", PMI_RANK="0", PMI_SIZE="2"))

    def test_memory_of_gpus_needs_a_build_for_them(self):
        self.add_engine()
        for words in ([], ["--validate"]):
            result = self.run_carousel("train", "x.toml", "parallel.gpu_aware=true", *words,
                                       PMI_RANK="0", PMI_SIZE="4")
            self.assertEqual("built without CUDA" in result.stderr,
                             "CUDA" not in self.run_carousel("--version").stdout, result.stderr)

    def test_nccl_needs_a_build_that_has_it(self):
        self.add_engine()
        has_it = "NCCL" in self.run_carousel("--version").stdout
        for words in ([], ["--validate"]):
            result = self.run_carousel("train", "x.toml", "parallel.transport=nccl", *words,
                                       PMI_RANK="0", PMI_SIZE="4")
            self.assertEqual("without NCCL" in result.stderr, not has_it, result.stderr)

    @unittest.skipUnless(shutil.which("mpiexec"), "no mpiexec")
    def test_one_rank_speaks_and_all_give_the_code(self):
        before = ["mpiexec", "-n", "4"]
        self.assertIn("unknown key", self.refused("train", "x.toml", "a.b=3", before=before))
        self.assertIn("No such file", self.refused("train", "none.toml", before=before))
        self.assertIn("cannot be started", self.refused("train", "x.toml", before=before))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
