# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""The measurements of shaped_network.sh, which makes the network and calls this.

Usage: shaped_network.py BUILD WORK STEPS ROUNDS SWITCH HOST HOST HOST HOST
"""

import json
import pathlib
import statistics
import subprocess
import sys
import time

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "app"))
from dataset import write_dataset
from stretched import environment

BUILD, WORK = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
STEPS, ROUNDS = int(sys.argv[3]), int(sys.argv[4])
SWITCH, HOSTS = sys.argv[5], sys.argv[6:]
WARM = 4  # steps left out
STRETCH = 24  # times the processor time: four ranks use a sixth of a core, MPI and TCP the rest
SECONDS = 180  # that a run may take

# Linear layers of 512 x 512, eight of them in four stages; 128 samples per micro-batch.
DECK = """
[run]
name = "shaped"
seed = 1
output = "run"
[model]
name = "mlp"
widths = [64, 512, 512, 512, 512, 512, 512, 512, 512, 512, 10]
[data]
file = "data.h5"
[parallel]
rule = "cdp-v1"
placement = "replicated"
micro_batches = 4
stages = 4
balance = "parameters"
transport = "mpi"
[train]
micro_batch_size = 128
steps = 4
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

CASES = {
    "dp, all-reduce": ["parallel.rule=dp", "parallel.reduction=fast"],
    "dp, overlapped": ["parallel.rule=dp", "parallel.reduction=overlapped"],
    "cdp-v1": ["parallel.rule=cdp-v1"],
    "cdp-v2": ["parallel.rule=cdp-v2"],
    "cdp-v2, slack 1": ["parallel.rule=cdp-v2", "parallel.slack=1"],
    "cdp-v2, slack 2": ["parallel.rule=cdp-v2", "parallel.slack=2"],
}

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


def environment_of(settings):
    return environment(
        BUILD, WORK / "times", CAROUSEL_STRETCH=str(STRETCH),
        # Over TCP through the veth, as between hosts; for MPICH with UCX or libfabric.
        MPIR_CVAR_NOLOCAL="1", UCX_TLS="tcp,self", UCX_NET_DEVICES="eth0", FI_PROVIDER="tcp",
        FI_TCP_IFACE="eth0",
        # dp at its best: a ring, as NCCL and Gloo have it and the simulator assumes. What MPICH 4.0
        # chooses by itself takes a fifth longer on these links.
        MPIR_CVAR_IALLREDUCE_INTRA_ALGORITHM="tsp_ring", **settings)


def carousel(*words):
    return [str(BUILD / "carousel"), *words]


def calibrate():
    """One rank alone: how long all others make their kernels take."""
    subprocess.run(carousel("train", "deck.toml", "run.output=alone", "parallel.rule=dp",
                            "parallel.placement=single", "parallel.order=accumulate",
                            "parallel.transport=local"),
                   cwd=WORK, env=environment_of({}), check=True, capture_output=True)


def run_on(hosts, words, settings):
    """What ranks print, one on every host, behind "done: "."""
    ranks = []
    for host in hosts:
        ranks += [":"] if ranks else []
        ranks += ["-n", "1", "nsenter", f"--net=/run/netns/{host}", *words]
    with open(WORK / "log", "w+") as log:
        process = subprocess.Popen(["mpiexec", *ranks], cwd=WORK, env=environment_of(settings),
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
    """Seconds per step of four ranks, one on every host."""
    run_on(HOSTS, carousel("train", "deck.toml", "--overwrite", f"run.output={name}",
                           f"train.steps={STEPS}", *overrides), settings)
    with h5py.File(WORK / name / "run.h5") as run:
        seconds = run["steps/seconds"][:]
    return (seconds[-1] - seconds[WARM]) / (len(seconds) - 1 - WARM)


def seconds_of_message(size):
    words = [str(BUILD / "bench_message"), str(size)]
    return float(run_on(HOSTS[:2], words, {}).split()[0])


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


def sent_per_step(overrides):
    """Bytes that the busiest device sends in a training step."""
    sent = dict.fromkeys(range(len(HOSTS)), 0)
    for link in plan(overrides)["simulation"]["links"]:
        sent[link["from"]] += sum(link["bytes"])
    return max(sent.values())


def measure(title, fraction, size, time_step, disturbance, cases):
    """Of messages of `size` bytes that take a fraction of a time step."""
    limit = rate_for(size, fraction * time_step)
    bandwidth = size / (fraction * time_step)  # of what a message carries
    print(f"\n{title}: a message takes {fraction} time steps, {bandwidth / 1e6:.1f} MB/s"
          f" on links of {limit / 1e6:.1f}")
    print(f"{'':16} step s  no limit  exposed   hidden  simulated   error  of first", flush=True)
    first = None
    for name in cases:
        settings, machine = disturbance
        seconds = {None: [], limit: []}
        for _ in range(ROUNDS):
            for rate, measured in seconds.items():
                shape(rate)
                measured.append(train("measured", CASES[name], settings))
        free, step = (statistics.median(measured) for measured in seconds.values())
        told = CASES[name] + machine + [f"machine.network_bandwidth={bandwidth}"]
        simulated = plan(told, "--measured", "alone-in-four")["simulation"]["seconds_per_step"]
        link = sent_per_step(CASES[name]) / bandwidth
        first = first or step
        hidden = 1 - (step - free) / link
        print(f"{name:15} {step:7.3f} {free:9.3f} {step - free:8.3f} {hidden:8.1%}"
              f" {simulated:10.3f} {simulated / step - 1:7.1%} {step / first:9.2f}", flush=True)


def main():
    (WORK / "deck.toml").write_text(DECK)
    write_dataset(WORK / "data.h5", (1, 8, 8), samples=512 * STEPS, test_samples=128)
    calibrate()
    shape(None)
    step = train("alone-in-four", CASES["cdp-v1"], {})
    schedule = plan(CASES["cdp-v1"])
    largest = max(action["bytes"] for action in schedule["actions"] if action["kind"] == "send")
    time_step = step / schedule["period_time"]
    print(f"a time step takes {time_step:.4f} s, the message of a stage has {largest} bytes")
    for fraction in (0.35, 0.7, 1.0):
        measure("undisturbed", fraction, largest, time_step, UNDISTURBED, CASES)
    for title, disturbance in DISTURBANCES.items():
        measure(title, 0.7, largest, time_step, disturbance, list(CASES)[:4])


if __name__ == "__main__":
    main()
