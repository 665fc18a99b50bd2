# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Every help text, and every sentence about a deck, as golden/messages.txt has them to be read.

Usage: messages_test.py CAROUSEL ROOT. With CAROUSEL_RENEW=1 in the environment it writes the file
instead of comparing: read the difference before you commit it. What a sentence says in the sources
must occur in the file, so that a new refusal needs a case here.
"""

import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

CAROUSEL, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
GOLDEN = ROOT / "tests/app/golden/messages.txt"

DECK = """[run]
name = "digits"
seed = 7
output = "runs/digits"
[model]
widths = [64, 32, 32, 10]
[data]
file = "digits.h5"
[parallel]
rule = "cdp-v2"
placement = "replicated"
micro_batches = 4
stages = 2
slack = 1
[train]
micro_batch_size = 16
epochs = 20
[train.optimizer]
learning_rate = 0.05
momentum = 0.9
nesterov = true
[train.schedule]
name = "multistep"
milestones = [3, 4.5]
warmup_epochs = 2
warmup_factor = 0.1
per_epoch = true
"""
MACHINE = ["machine.flops=1e9", "machine.memory_bandwidth=1e10", "machine.node_latency=0",
           "machine.node_bandwidth=1e9", "machine.network_latency=0",
           "machine.network_bandwidth=1e9", "machine.devices_per_node=4"]

HELP = [[], ["train"], ["plan"], ["eval"], ["predict"], ["inspect"], ["verify"], ["diff"], ["import"],
        ["sample"], ["import", "tokens"], ["import", "cifar10"], ["import", "images"], ["import", "imagenet"],
        ["import", "weights"], ["export"], ["export", "weights"], ["help"], ["deck"],
        ["deck", "data"], ["deck", "data.input"], ["deck", "data.target"], ["network"], ["layers"]]

# Words behind `carousel`; x.toml is DECK.
WRONG_WORDS = [
    [], ["trian"], ["frob"], ["import"], ["import", "wieghts"], ["--versoin"],
    ["train", "x.toml", "--overwrit"], ["train"], ["import", "weights", "a.h5"],
    ["eval", "a", "b", "c"], ["plan", "x.toml", "--steps=2"], ["plan", "x.toml", "--svg", ""],
    ["plan", "x.toml", "--devices", "--json"], ["plan", "x.toml", "--get", "run.sed"],
    ["plan", "x.toml", "--json", "--steps=0"], ["plan", "x.toml", "--json", "--advise"],
    ["plan", "x.toml", "--sweep", "parallel.stages"], ["plan", "x.toml", "--sweep", "a=1,,2"],
    ["help", "trian"], ["help", "import", "wights"], ["help", "train", "x"],
    ["help", "deck", "trian"], ["help", "deck", "frob"], ["help", "deck", "train", "data"],
    ["plan", "none.toml"], ["plan", "."], ["plan", "pipe"],
]

# Lines of DECK that are replaced.
WRONG_TEXT = [
    ("seed = 7", "seed ="), ("seed = 7", "seed = 7\nseed = 8"), ("[data]", "[run]\n[data]"),
    ("seed = 7", "sead = 7"), ("seed = 7", "zzz = 7"), ("seed = 7", "'a b' = 7"),
    ("[data]", "[dta]"), ("[data]", "[empty]\n[data]"), ("[data]", "[[data]]"),
    ("[run]", "model = 3\n[run]"), ("widths = [64, 32, 32, 10]", "widths.x = 3"),
    ("seed = 7", "seed = \x01"), ("[run]", "\xe9[run]"), ("[run]", "\xff\xfe[run]"),
    ("[run]", "[run" + ".a" * 17 + "]"), ("seed = 7", "seed = " + "[" * 40),
    ("[run]", "#" * 65536), ("widths = [64, 32, 32, 10]", f"widths = [64{',1' * 30000},10]"),
    ("seed = 7", 'seed = "7"'), ("seed = 7", "seed = 2026-01-01"), ("nesterov = true",
                                                                     "nesterov = 1"),
    ("name = \"digits\"", "name = 3"), ("name = \"digits\"", 'name = ""'),
    ("name = \"digits\"", 'name = "a\\u0000b"'), ("[64, 32, 32, 10]", "64"),
    ("[64, 32, 32, 10]", "[64, 3.5]"), ("[64, 32, 32, 10]", "[]"),
    ("[64, 32, 32, 10]", "[64, [1], 'x', true, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 0.5]"),
    ("seed = 7", "seed = -1"), ("epochs = 20", "epochs = 0"), ("momentum = 0.9", "momentum = 1.5"),
    ("0.05", "inf"), ("0.05", "nan"), ("[3, 4.5]", "[0, 4.5]"), ("stages = 2", "stages = 5000"),
    ('"cdp-v2"', '"cdpv2"'), ('"cdp-v2"', '"fancy"'), ('"multistep"', '"adam"'),
    ("epochs = 20", ""), ("epochs = 20", "epochs = 20\nsteps = 3"), ("name = \"digits\"", ""),
    ("widths = [64, 32, 32, 10]", ""), ("milestones = [3, 4.5]", ""),
    ("widths = [64, 32, 32, 10]", "name = \"resnet\""), ('"cdp-v2"', '"dp"'),
    ("slack = 1", 'order = "accumulate"'), ("[3, 4.5]", "[3, 3]"), ("momentum = 0.9", ""),
    ("slack = 1", "slack = 3"), ("[train]", "[machine]\n[train]"),
    ("warmup_epochs = 2\nwarmup_factor = 0.1", "warmup_factor = 0.1"),
    ("epochs = 20", "epochs = 20\nlabel_smoothing = 0.1\n[task]\nlabel_smoothing = 0.2"),
]
# In the place of the widths; the files are FILES.
WIDTHS = "widths = [64, 32, 32, 10]"
FILES = {"net.toml": 'layer = ["relu"]\n', "let.toml": "let = { w = 3 }\n",
         "relu.toml": 'layers = ["relu"]\n'}
WRONG_TEXT += [(WIDTHS, text) for text in (
    'file = "none.toml"', 'file = "net.toml"', 'file = "let.toml"', "file = 3",
    'file = "relu.toml"\nlayers = ["tanh"]', "let = 3", 'layers = ["relu"]\nlet = 3',
    "layers = 3", "layers = []", 'name = "layers"', WIDTHS + '\nname = "mlp"\nlayers = ["relu"]',
    'layers = ["flatten", "rlu"]', 'layers = ["flatten", {linaer = 10}]', "layers = [3]",
    "layers = [{conv = 4}]", "layers = [{conv = 4, kernel = 9, name = \"a\"}]",
    "layers = [{conv = 4, kernel = 3, strid = 2}]", "layers = [{conv = 4.5, kernel = 3}]",
    "layers = [{conv = 4, kernel = 3, groups = 3}]", 'layers = [{linear = "w"}]',
    'layers = [{linear = "2 *"}]', "layers = [{linear = 10}]",
    'layers = ["flatten", {linear = 11}]', 'layers = [{relu = 3}]', 'layers = [{relu = true, '
    'init = "ones"}]', 'layers = ["flatten", {linear = 10, init = "one"}]',
    'layers = [{add = "a"}]', 'layers = [{relu = true, save = "a"}]', "layers = [\"add\"]",
    'layers = [{conv = 1, kernel = 3, save = "a"}, {conv = 1, kernel = 3}, {add = "a"}]',
    'layers = [{conv = 1, kernel = 3, save = "a"}, {conv = 1, kernel = 3}, {concat = "a"}]',
    'layers = [{block = "a"}]', 'layers = [{block = "a"}]\nblocks.a = [{block = "a"}]',
    'layers = [{block = "a", out = 3}]\nblocks.a = ["relu"]',
    "layers = [{repeat = 2}]", 'layers = [{repeat = 1e9, layers = ["relu"]}]',
    'layers = [{repeat = 2, layer = ["relu"]}]', 'layers = [{branches = [["relu"]]}]',
    'layers = [{relu = true, name = "a b"}]', 'layers = [{relu = true, name = "a{"}]',
    'let = {w = 3}\nlayers = ["relu"]', 'let = {w = "v", v = "w"}\nlayers = [{linear = "w"}]',
    'layers = ["flatten", {linear = 10, name = "a"}, {linear = 10, name = "a"}]',
    'layers = [{repeat = 60000, layers = [{repeat = 60000, layers = ["relu"]}]}]',
    'layers = [{repeat = 60000, layers = [{repeat = 60000, layers = [{repeat = 0, layers = []}]}]}]',
    'layers = [{repeat = 0, layers = ["relu"]}]', 'layers = [{repeat = 2, index = "2", '
    'layers = ["relu"]}]', "layers = [{relu = true, save = 3}]",
    "layers = [{conv = [1], kernel = 3}]", "layers = [{conv = inf, kernel = 3}]",
    'layers = [{linear = 10, init = "normal(-1)"}]', 'layers = [{linear = 10, init_bias = '
    '"kaiming_normal"}]', 'layers = [{branches = [["relu"], ["relu"]], join = "relu"}]',
    'layers = [{relu = true, name = ""}]', "layers = [{branches = 3}]",
    'let = {"a b" = 3}\nlayers = ["relu"]', 'layers = [{block = "a", "b c" = 3}]\nblocks.a = '
    '["relu"]', 'layers = [{batch_norm = true, init = "kaiming_normal"}]',
    'layers = ["flatten", {linear = 10, bias = false, init_bias = "ones"}]',
    'layers = [{conv = 1, kernel = 3, save = "a"}, {conv = 2, kernel = 5}, {multiply = "a"}]',
    'layers = ["flatten", "instance_norm"]')]

# Overrides of DECK that are refused by the deck's own rules, or by the plan that it makes.
WRONG_OVERRIDES = [
    ["frob"], ["=3"], ["task.weights=[0, 0]"], ["task.weights=[1, 2]"], ["train.patience=-1"],
    ["run.seed=1", "run.seed=2"], ["run.seed=[1, 2"], ["train.momentum=0.5"],
    ["run.sed="], ["model=3"], ["run.name="], ["parallel.rule=dp", "parallel.slack=1"],
    ["train.schedule.final_factor=0.1"], ["parallel.order=accumulate"], ["model.depth=18"],
    ["parallel.rule=dp", "parallel.reduction=local"], ["parallel.reduction=local"],
    ["parallel.reduction=overlapped"],
    ["parallel.rule=dp", "parallel.placement=model", "parallel.reduction=overlapped"],
    ["parallel.reduction=owner"],
    ["parallel.placement=single", "parallel.reduction=fast"],
    ["parallel.micro_batches=2", "parallel.reduction=fast"], ["train.optimizer.dampening=0.1"],
    ["train.optimizer.momentum=0", "train.optimizer.nesterov=true"],
    ["train.optimizer.nesterov=false", "train.optimizer.momentum=0",
     "train.optimizer.dampening=0.1"],
    ["train.optimizer.decay_norm_and_bias=false"], ["train.optimizer.clip_norm=1"],
    ["parallel.rule=dp", "parallel.slack=", "train.optimizer.clip_norm=1",
     "train.optimizer.clip_stage_norm=1"],
    ["train.schedule.warmup_epochs=0", "train.schedule.warmup_factor=0.2"],
    ["train.schedule.name=constant", "train.schedule.warmup_epochs=0",
     "train.schedule.per_epoch=true"],
    ["data.augment.resize=20"],
    ["data.augment.size=20", "data.augment.resize=19"], ["data.augment.crop=resized"],
    ["data.augment.crop=random"], ["data.augment.crop=resized", "data.augment.size=8",
                                   "data.augment.scale=[0.5]"],
    ["data.augment.mean=[0.5,0.5]"], ["data.augment.size=7"],
    ["run.watchdog_seconds=0.5"], ["run.wall_clock=90"], ["train.new_head=true"],
    ['train.start_only="0.*"'], ['train.freeze="none.*"'], ['train.freeze="*.weight"'],
    ['train.freeze="*"'],
    ["run.output=\udcff"],  # a byte that is no UTF-8
    ["parallel.placement=model", "parallel.micro_batches=3"],
    ["parallel.shards=true", "parallel.micro_batches=3"], ["parallel.passes=3"],
    ["parallel.passes=2", "parallel.slack=9"], ["parallel.passes=2", "parallel.placement=pipeline"],
    ["parallel.predict=1", "parallel.placement=sharded"],
    ["parallel.predict=1", "parallel.placement=replicated", "parallel.shards=true"],
    ["parallel.passes=4", "parallel.shards=true"],
    ["parallel.shards=true", "parallel.rule=dp", "parallel.slack=", "parallel.reduction=owner"],
    ["parallel.shards=true", "profile.audit=true"], ["parallel.chunks=2"],
    ["parallel.shards=true", "parallel.placement=sharded", "parallel.rule=cdp-v1",
     "parallel.slack=", "parallel.sums=late"],
    ["parallel.shards=true", "train.optimizer.name=lamb", "train.optimizer.momentum=",
     "train.optimizer.nesterov="],
    ["profile.steps=1:2:0"], ["model.name=vgg"], ["model.name=vit"], ["parallel.transport=ncl"],
    ["train.optimizer.name=adam"], ["engine.threads=513"], ["machine.flops=1e12"],
    ["parallel.balance=time"], ["parallel.stages=4096", "parallel.slack=0"],
    ["model.widths=[64]"], ["model.widths=[3,10]"], ["model.widths=[64,3]"],
    ["model.layers=[\"relu\"]", "model.let={w=3}", "model.let.w=4", "model.widths="],
    ["model.name=resnet", "model.depth=19", "model.stem=cifar"],
    ["model.name=resnet", "model.depth=20", "model.stem=imagenet"],
    ["model.name=resnet", "model.depth=20", "model.stem=cifar", "model.norm=group"],
    ["model.name=resnet", "model.depth=18", "model.stem=cifar", "model.norm=layer"],
    ["task.loss=hinge"], ["task.metrics=[\"acuracy\"]"], ["task.metrics=accuracy"],
    ["task.metrics=[\"accuracy\",\"accuracy\"]"],
    ["task.label_smoothing=0.3", "train.label_smoothing="],
    ["train.micro_batch_size=65536"], ["data.file=none.h5"],
    [*MACHINE, "machine.slow_factor=2", "machine.slow_device=4"], ["--advise"],
    [*MACHINE, "machine.memory=1000", "engine.vendor=none", "--advise"],
]

# Overrides that deprive keys of DECK of their effect.
DROPPED = [
    ["parallel.rule=dp"], ["parallel.rule=cdp-v1"], ["train.steps=100"],
    ["train.schedule.name=cosine"], ["train.schedule.name=one-cycle"], ["train.schedule.name="],
    ["train.optimizer.momentum=0"], ["train.optimizer.momentum="],
    ["train.schedule.warmup_epochs=0"], ["--sweep", "parallel.rule=dp,cdp-v1,cdp-v2"],
]
FAST = DECK.replace("slack = 1", 'reduction = "fast"')
DROPPED_FAST = [["parallel.placement=single"], ["parallel.stages=4"]]

# Starts of `train` by a launcher, as its variables tell of it.
STARTS = [
    (["parallel.transport=mpi"], {}), (["parallel.transport=local"], {"PMI_RANK": "0",
                                                                      "PMI_SIZE": "4"}),
    ([], {"PMI_RANK": "0", "PMI_SIZE": "2"}), ([], {"SLURM_NTASKS": "4"}),
    ([], {"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "0"}),
]

SOURCES = ["app/deck.cpp", "app/deck_reader.cpp", "app/deck_rules.cpp", "app/run_config.cpp",
           "app/schema_help.cpp", "app/launcher.cpp", "app/toml_text.cpp", "app/usage.cpp",
           "core/plan/costs.cpp", "core/plan/partition.cpp", "core/train/slices.cpp",
           "core/model/layer_list.cpp", "core/model/listed.cpp", "core/model/mlp.cpp",
           "core/model/resnet.cpp"]
SENTENCE = re.compile(r"\b(?:fail\(ExitCode::usage,|(?:refuse|note|wrong|push_back|return fmt::format)\()")
LITERALS = re.compile(r'"(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*')


class Transcript:
    def __init__(self, folder):
        self.folder = folder
        self.lines = []
        self.said = ""  # without line breaks

    def add(self, text=""):
        self.lines += text.split("\n")

    def title(self, text):
        self.add(f"\n{text}\n{'=' * len(text)}")

    def command(self, *words, deck="", variables=None):
        """Runs the program and writes down what it says; of a plan that is made, only notes."""
        environment = {k: v for k, v in os.environ.items()
                       if not k.startswith(("PMI", "SLURM", "OMPI", "MPI_"))}
        result = subprocess.run([CAROUSEL, *words], cwd=self.folder, text=True, timeout=60,
                                env={**environment, **(variables or {})}, capture_output=True)
        start = [f"{k}={v}" for k, v in (variables or {}).items()]
        shown = [word if word and " " not in word else f"'{word}'" for word in words]
        shown = [word.encode(errors="backslashreplace").decode() for word in shown]
        self.add("\n" + wrapped("$ " + " ".join([*start, "carousel", *shown])))
        for line in deck.split("\n") if deck else []:
            line = line.encode("ascii", "backslashreplace").decode().replace("\x01", "\\x01")
            self.add("| " + (line if len(line) < 70 else line[:60] + " ..."))
        if words[:1] == ("help",) and result.returncode == 0:
            self.add(result.stdout.rstrip("\n"))
        for line in result.stderr.splitlines():
            # A build for GPUs needs more memory; any other number shows.
            line = line.replace("the smallest needs 58112", "the smallest needs 54336")
            self.said += line + "\n"
            self.add(wrapped(line))
        if result.returncode not in (0, 2):
            self.add(f"[exit code {result.returncode}]")
        return result


def wrapped(line):
    return textwrap.fill(line, 80, subsequent_indent="    ", break_long_words=False,
                         break_on_hyphens=False)


def write_transcript(folder):
    transcript = Transcript(folder)
    deck = folder / "x.toml"
    (folder / "digits.h5").symlink_to(ROOT / "inputs/digits.h5")
    os.mkfifo(folder / "pipe")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    transcript.add("What carousel says: help, and every sentence about a deck.\n"
                   "CAROUSEL_RENEW=1 ctest --preset release -R app.messages writes this file;\n"
                   "read what changes.\n"
                   "Refusals end with exit code 2 where no other is given.")
    transcript.title("Help")
    for topic in HELP:
        transcript.command("help", *topic)
    transcript.title("Command lines")
    deck.write_text(DECK)
    for words in WRONG_WORDS:
        transcript.command(*words)
    transcript.title("The deck x.toml")
    transcript.add(textwrap.indent(DECK.rstrip("\n"), "  "))
    transcript.title("Other lines in x.toml")
    for old, new in WRONG_TEXT:
        assert DECK.count(old) >= 1, old
        text = DECK.replace(old, new, 1)
        deck.write_bytes(text.encode("latin-1"))
        begin = DECK.index(old)
        changed = text[text.rfind("\n", 0, begin) + 1:]
        changed = changed[:changed.find("\n", max(begin + len(new) - len(text) + len(changed), 0))]
        transcript.command("plan", "x.toml", deck=changed or f"(without {old})")
    transcript.title("Overrides that are refused")
    deck.write_text(DECK)
    for overrides in WRONG_OVERRIDES:
        transcript.command("plan", "x.toml", *overrides)
    transcript.title("Keys that are dropped")
    for overrides in DROPPED:
        transcript.command("plan", "x.toml", *overrides)
    deck.write_text(FAST)
    for overrides in DROPPED_FAST:
        transcript.command("plan", "x.toml", *overrides, deck='reduction = "fast"')
    transcript.title("Starts")
    deck.write_text(DECK)
    for overrides, variables in STARTS:
        transcript.command("train", "x.toml", *overrides, variables=variables)
    return transcript


def call(source, start):
    """The arguments of a call whose parenthesis opens before `start`."""
    depth, position = 1, start
    while depth:
        literal = LITERALS.match(source, position)
        if literal:
            position = literal.end()
            continue
        depth += {"(": 1, ")": -1}.get(source[position], 0)
        position += 1
    return source[start:position]


def pieces(path):
    """What the sentences of a source say between their placeholders."""
    source = (ROOT / path).read_text()
    for match in SENTENCE.finditer(source):
        for literal in LITERALS.findall(call(source, match.end())):
            text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literal)).replace('\\"', '"')
            yield from (piece for piece in re.split(r"\{[^}]*\}|\\n", text)
                        if len(re.findall(r"[a-z]", piece)) > 4)


def main():
    with tempfile.TemporaryDirectory() as folder:
        transcript = write_transcript(pathlib.Path(folder))
    text = "\n".join(transcript.lines) + "\n"
    failed = False
    for line in transcript.lines:
        if len(line) > 80:
            print(f"longer than 80 columns: {line}")
            failed = True
    for path in SOURCES:
        for piece in pieces(path):
            if piece not in transcript.said and piece not in text:
                print(f"{path}: no case says \"{piece}\"")
                failed = True
    if os.environ.get("CAROUSEL_RENEW"):
        GOLDEN.write_text(text)
    expected = GOLDEN.read_text()
    if expected != text:
        print("".join(difflib.unified_diff(expected.splitlines(True), text.splitlines(True),
                                           "golden/messages.txt", "carousel", n=2)))
        print("If this is what carousel shall say: "
              "CAROUSEL_RENEW=1 ctest --preset release -R app.messages")
        failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
