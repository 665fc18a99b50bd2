#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Four ranks on a network whose speed is chosen: shaped_network.sh FOLDER [PRESET [STEPS [PASSES]]]
# As root on Linux. Makes four network namespaces, each a host with a veth to a bridge in a fifth,
# keeps MPI from shared memory, and lets `tc tbf` give every link a bandwidth, both ways. dp and the
# cyclic rules then train a perceptron of four equal stages: dp with an all-reduce per stage beside the
# backward, as PyTorch DDP has it, as ZeRO-1, with and without a barrier, and as FSDP; v1 by its ring
# and by late sums; v2. Prints, for links on which a stage's message takes a given part of a time step,
# as measured between two ranks: what a step computes, what of it is exposed communication, and what
# the simulator says of the same plan. With jitter the median of three seeds is shown. The first 40
# steps and the last 3 of STEPS (80) are left out. With PASSES (1) every rank takes so many
# micro-batches in a step, of which a run has STEPS / PASSES and leaves out the first 40 / PASSES,
# and a message takes two time steps. Rows that FOLDER has are not measured again. Needs a built
# PRESET (release), iproute2 and h5py for $PYTHON (python3); takes about 50 minutes.
set -euo pipefail
case ${1:-} in
  -*)
    sed -n '5,/^set/s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
if [ $# -eq 0 ]; then
  echo "shaped_network.sh: name a folder for what it measures" >&2
  exit 2
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
preset=${2:-release}
steps=${3:-80}
passes=${4:-1}
hosts="carousel0 carousel1 carousel2 carousel3"
switch=carousel-switch

for program in ip tc nsenter mpiexec; do
  if ! command -v "$program" >/dev/null; then
    echo "shaped_network.sh: $program is missing; bash jobscripts/packages.sh build test bench" >&2
    exit 2
  fi
done
for file in carousel bench_message tests/bench_stretch_kernels.so; do
  if [ ! -e "build/$preset/$file" ]; then
    echo "build/$preset/$file is missing; build it first: bash jobscripts/setup.sh $preset" >&2
    exit 2
  fi
done
if [ "$(id -u)" -ne 0 ]; then
  echo "shaped_network.sh: only root can make network namespaces" >&2
  exit 2
fi

clean_up() {
  for host in $hosts $switch; do
    ip netns pids "$host" 2>/dev/null | xargs --no-run-if-empty kill -9 2>/dev/null || true
    ip netns delete "$host" 2>/dev/null || true
  done
}
trap clean_up EXIT

ip netns add $switch
ip -n $switch link add bridge0 type bridge
ip -n $switch link set bridge0 up
number=0
for host in $hosts; do
  number=$((number + 1))
  ip netns add "$host"
  ip -n "$host" link add eth0 type veth peer name "$host" netns $switch
  ip -n "$host" address add "10.77.0.$number/24" dev eth0
  ip -n "$host" link set lo up
  ip -n "$host" link set eth0 up
  ip -n $switch link set "$host" master bridge0 up
done
# shellcheck disable=SC2086  # several words
"${PYTHON:-python3}" -B tests/bench/shaped_network.py "$PWD/build/$preset" "$folder" \
  "$steps" "$passes" $switch $hosts
