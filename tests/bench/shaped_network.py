# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""The measurements of shaped_network.sh, which makes the network and calls this.

Usage: shaped_network.py BUILD FOLDER STEPS PASSES SWITCH HOST HOST HOST HOST
"""

import functools
import json
import pathlib
import statistics
import subprocess
import sys
import time

import h5py
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "app"))
from dataset import write_dataset
from stretched import environment

BUILD, WORK = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
PASSES, SWITCH, HOSTS = int(sys.argv[4]), sys.argv[5], sys.argv[6:]
# Steps left out: ranks of a cyclic rule drift apart until the messages hold them, and the last steps
# wait for nobody.
STEPS, WARM, TAIL = int(sys.argv[3]) // PASSES, 40 // PASSES, 3
COMPUTING = ["load", "copy", "forward", "backward", "accumulate", "measure", "update"]
STRETCH = 27  # times the processor time: four ranks use a seventh of a core, MPI and TCP the rest
SECONDS = 180  # that a run may take
JITTER_SEEDS = 3

# Linear layers of 128 x 128, eight of them in four stages. With 1024 samples per micro-batch every
# parameter takes part in 6,144 floating-point operations between two updates: next to them an update
# is as little as in residual networks (ResNet-50: 960 for each photograph of a micro-batch).
DECK = """
[run]
name = "shaped"
seed = 1
output = "run"
[model]
name = "mlp"
widths = [64, 128, 128, 128, 128, 128, 128, 128, 128, 128, 10]
[data]
file = "data.h5"
[parallel]
rule = "cdp-v1"
placement = "replicated"
micro_batches = {micro_batches}
passes = {passes}
stages = 4
balance = "parameters"
transport = "mpi"
[train]
micro_batch_size = 1024
steps = 4
evaluate_every = 0
[train.optimizer]
name = "sgd"
learning_rate = 0.001
momentum = 0.9
[profile]
steps = "::1"
[machine]
flops = 1e9
memory_bandwidth = 1e9
node_latency = 0
node_bandwidth = 1e9
network_latency = 3e-4
network_bandwidth = 1e9
devices_per_node = 1
"""

# By the library's collectives: ordered sums, for which every rank sends to all others at once, leave
# ZeRO-1 1.6 to 1.8 times as much exposed.
SHARDS = ["parallel.shards=true", "parallel.reduction=fast"]
# DDP as PyTorch has it: an all-reduce per stage beside the backward. ZeRO-1 as DeepSpeed has it. FSDP
# gathers two stages ahead. R = 2: two stages, rings of two devices, two of them side by side.
CASES = {
    "DDP": ["parallel.rule=dp", "parallel.reduction=overlapped"],
    "ZeRO-1": ["parallel.rule=dp", *SHARDS, "parallel.updates=together"],
    "eager ZeRO-1": ["parallel.rule=dp", *SHARDS],
    "FSDP": ["parallel.rule=dp", "parallel.placement=sharded", *SHARDS],
    "v1, late": ["parallel.rule=cdp-v1", *SHARDS, "parallel.sums=late"],
    "v1": ["parallel.rule=cdp-v1"],
    "v1, R = 2": ["parallel.rule=cdp-v1", "parallel.stages=2", *SHARDS],
    "v2, slack 1": ["parallel.rule=cdp-v2", "parallel.slack=1"],
    "v2, R = 2": ["parallel.rule=cdp-v2", "parallel.slack=1", "parallel.stages=2", *SHARDS],
}
BASELINES = ("DDP", "eager ZeRO-1")
# Runs of v1 whose kernels are the simulator's, by the number of stages.
REFERENCES = {4: [], 2: ["parallel.stages=2"]}

# What disturbs the ranks: settings of the kernels' tool, and the same for the simulator.
UNDISTURBED = ({}, [])
DISTURBANCES = {
    "rank 1 takes 30% longer": ({"CAROUSEL_SLOW": "1 1.3"},
                                ["machine.slow_device=1", "machine.slow_factor=1.3"]),
    "jitter 0.3": ({"CAROUSEL_JITTER": "0.3"}, ["machine.jitter=0.3"]),
}


def shape(bandwidth):
    """Gives all links a bandwidth in bytes/s, or takes it away with None."""
    for host in HOSTS:
        for space, device in ((host, "eth0"), (SWITCH, host)):
            tc = ["ip", "netns", "exec", space, "tc", "qdisc"]
            subprocess.run([*tc, "delete", "dev", device, "root"], stderr=subprocess.DEVNULL)
            if bandwidth is not None:
                subprocess.run([*tc, "add", "dev", device, "root", "tbf", "rate",
                                f"{round(8 * bandwidth)}bit", "burst", "128kb", "limit", "16mb"],
                               check=True)


def environment_of(settings, overrides=()):
    return environment(
        BUILD, times(overrides), CAROUSEL_STRETCH=str(STRETCH),
        # Over TCP through the veth, as between hosts; for MPICH with UCX or libfabric.
        MPIR_CVAR_NOLOCAL="1", UCX_TLS="tcp,self", UCX_NET_DEVICES="eth0", FI_PROVIDER="tcp",
        FI_TCP_IFACE="eth0",
        # dp at its best: a ring, as NCCL and Gloo have it and the simulator assumes. What MPICH 4.0
        # chooses by itself takes a fifth longer on these links.
        MPIR_CVAR_IALLREDUCE_INTRA_ALGORITHM="tsp_ring", **settings)


def carousel(*words):
    return [str(BUILD / "carousel"), *words]


def stages_of(overrides):
    return 2 if "parallel.stages=2" in overrides else 4


def times(overrides):
    """The file of the kernels' times, which are named by their stages."""
    return WORK / f"times-{stages_of(overrides)}"


def calibrate(overrides):
    """One rank alone: how long all others make their kernels take. What is evaluated in the end is
    as many samples as a micro-batch has, since the least time of a kernel counts."""
    if times(overrides).exists():
        return
    subprocess.run(carousel("train", "deck.toml", "--overwrite", "run.output=alone", *overrides,
                            "parallel.rule=dp", "parallel.placement=single",
                            "parallel.order=accumulate", "parallel.transport=local"),
                   cwd=WORK, env=environment_of({}, overrides), check=True, capture_output=True)


def run_on(hosts, words, environment_of_ranks):
    """What ranks print, one on every host, behind "done: "."""
    ranks = []
    for host in hosts:
        ranks += [":"] if ranks else []
        ranks += ["-n", "1", "nsenter", f"--net=/run/netns/{host}", *words]
    with open(WORK / "log", "w+") as log:
        process = subprocess.Popen(["mpiexec", *ranks], cwd=WORK, env=environment_of_ranks,
                                   stdout=log, stderr=log)
        begin = done = time.monotonic()
        while process.poll() is None and time.monotonic() - begin < SECONDS:
            time.sleep(0.1)
            log.seek(0)
            if "done: " not in log.read():
                done = time.monotonic()
            elif time.monotonic() - done > 5:
                break  # MPICH 4.0 over TCP at times never returns from MPI_Finalize
        log.seek(0)
        text = log.read()
    for host in hosts:
        pids = subprocess.run(["ip", "netns", "pids", host], capture_output=True, text=True).stdout
        subprocess.run(["kill", "-9", *pids.split()], stderr=subprocess.DEVNULL)
    process.wait()
    if "done: " not in text:
        sys.exit(f"shaped_network.py: {' '.join(words)} failed:\n{text[-2000:]}")
    return text.split("done: ")[1]


def train(name, overrides, settings):
    """Seconds per step of the slowest of four ranks, one on every host; and those in which the rank
    that computes longest does so."""
    run_on(HOSTS, carousel("train", "deck.toml", "--overwrite", f"run.output={name}",
                           f"train.steps={STEPS}", *overrides), environment_of(settings, overrides))
    with h5py.File(WORK / name / "run.h5") as run:
        ranks = [seconds_of_rank(run[f"ranks/{d:04}/actions"]) for d in range(len(HOSTS))]
    return [max(each) for each in zip(*ranks)]


class Rows:
    """What was measured, in a file: what is there is not done again."""

    def __init__(self):
        self.file = WORK / "rows.json"
        self.all = json.loads(self.file.read_text()) if self.file.exists() else {}

    def get(self, name, measure):
        if name not in self.all:
            self.all[name] = measure()
            self.file.write_text(json.dumps(self.all, indent=0))
        return self.all[name]


def seconds_of_rank(actions):
    """Per step, and of them those in which it computes."""
    step, end = actions["step"][:], actions["end"][:]
    computes = np.isin(actions["kind"].asstr()[:], COMPUTING)
    first, last = WARM, STEPS - 1 - TAIL
    period = end[computes & (step == last)].max() - end[computes & (step == first)].max()
    inside = computes & (step > first) & (step <= last)
    computing = (end - actions["begin"][:])[inside].sum()
    return float(period) / (last - first), float(computing) / (last - first)


def seconds_of_message(size):
    words = [str(BUILD / "bench_message"), str(size)]
    return float(run_on(HOSTS[:2], words, environment_of({})).split()[0])


def rate_for(size, seconds):
    """What links must carry, in bytes/s, for a message of `size` bytes to take that long: more than
    its bytes, for headers travel, too, and MPI asks before it sends."""
    rate = size / seconds
    for _ in range(2):
        shape(rate)
        rate *= seconds_of_message(size) / seconds
    return rate


def plan(overrides, *words):
    command = carousel("plan", "deck.toml", "--json", *words, *overrides)
    return json.loads(subprocess.run(command, cwd=WORK, check=True, capture_output=True,
                                     text=True).stdout)


@functools.cache
def reference(stages):
    """A run without a limit, of whole stages."""
    name = f"reference-{stages}"
    if not (WORK / name / "run.h5").exists():
        shape(None)
        train(name, REFERENCES[stages], {})
    return name


def measure(rows, title, fraction, size, time_step, disturbance, cases):
    """Of messages of `size` bytes that take a fraction of a time step. What is exposed is what a
    step takes beyond the computing of the rank that computes longest; `no limit`, the same of ranks
    that nothing disturbs, without a limit of the network."""
    settings, machine = disturbance
    limit = rows.get(f"limit {fraction}", lambda: rate_for(size, fraction * time_step))
    bandwidth = size / (fraction * time_step)  # of what a message carries
    print(f"\n{title}: a message takes {fraction} time steps, {bandwidth / 1e6:.1f} MB/s"
          f" on links of {limit / 1e6:.1f}")
    print(f"{'seconds':14} computing exposed  no limit   step  of DDP  of eager simulated  error",
          flush=True)
    jitters = "CAROUSEL_JITTER" in settings
    steps = {}

    def run(name, number, rate):
        shape(rate)
        seed = {"CAROUSEL_JITTER_SEED": str(number)} if jitters else {}
        return train("measured", CASES[name], settings | seed)

    for name in cases:
        limited, free, simulated = [], [], []
        for number in range(JITTER_SEEDS if jitters else 1):
            row = f"{title}, {name}, {number}"
            limited.append(rows.get(f"{row}, {fraction}", lambda: run(name, number, limit)))
            if not settings:  # it does not depend on the limit
                free.append(rows.get(row, lambda: run(name, number, None)))
            told = [*CASES[name], *machine, f"machine.network_bandwidth={bandwidth}",
                    f"run.seed={number + 1}"]
            simulated.append(plan(told, "--measured", reference(stages_of(told)))["simulation"]
                             ["seconds_per_step"])
        computing = statistics.median(seconds for _, seconds in limited)
        exposed = statistics.median(step - seconds for step, seconds in limited)
        unlimited = f"{free[0][0] - free[0][1]:.3f}" if free else ""
        steps[name] = statistics.median(step for step, _ in limited)
        told = statistics.median(simulated)
        ratios = "".join(f"{steps[name] / steps[other]:{width}.2f}" if other in steps else
                         f"{'':{width}}" for other, width in zip(BASELINES, (8, 10)))
        print(f"{name:14} {computing:9.3f} {exposed:7.3f} {unlimited:>9} {steps[name]:6.3f}"
              f"{ratios} {told:9.3f} {told / steps[name] - 1:6.1%}", flush=True)


def main():
    if STEPS <= WARM + TAIL + 1:
        sys.exit(f"shaped_network.py: a run has {STEPS} steps; it takes more than {WARM + TAIL + 1}")
    micro_batches = len(HOSTS) * PASSES
    (WORK / "deck.toml").write_text(DECK.format(micro_batches=micro_batches, passes=PASSES))
    write_dataset(WORK / "data.h5", (1, 8, 8), samples=micro_batches * 1024 * STEPS,
                  test_samples=1024)
    for overrides in REFERENCES.values():
        calibrate(overrides)
    with h5py.File(WORK / reference(4) / "run.h5") as run:
        step = max(seconds_of_rank(run[f"ranks/{d:04}/actions"])[0] for d in range(len(HOSTS)))
    schedule = plan(REFERENCES[4])
    largest = max(action["bytes"] for action in schedule["actions"] if action["kind"] == "send")
    time_step = step / schedule["period_time"]
    print(f"a time step takes {time_step:.4f} s, the message of a stage has {largest} bytes")
    rows = Rows()
    if PASSES > 1:  # FSDP has none
        cases = [name for name, keys in CASES.items() if "parallel.placement=sharded" not in keys]
        measure(rows, f"{PASSES} passes", 2.0, largest, time_step, UNDISTURBED, cases)
        return
    for fraction in (0.35, 0.7, 1.0):
        measure(rows, "undisturbed", fraction, largest, time_step, UNDISTURBED, CASES)
    slow, jitter = DISTURBANCES
    measure(rows, slow, 0.7, largest, time_step, DISTURBANCES[slow], CASES)
    measure(rows, jitter, 0.7, largest, time_step, DISTURBANCES[jitter],
            ["DDP", "eager ZeRO-1", "v1, late", "v1", "v2, slack 1"])


if __name__ == "__main__":
    main()
