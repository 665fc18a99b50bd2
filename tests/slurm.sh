#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs the job scripts on a real Slurm: slurm.sh [BUILD [OTHER]] [-- TEST ...]
# As root, installs slurm-wlm where it is missing and starts a cluster of four emulated nodes on this
# machine, in a folder of its own, without systemd or a user's configuration; runs the scenarios of
# tests/jobscripts/slurm_test.py, about six minutes, with the program of BUILD (build/release), and
# with that of OTHER the one of another MPI; takes all away again. Exit code 125 where it is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(id -u)" -ne 0 ]; then
  echo "skipped: a Slurm of one's own needs root"
  exit 125
fi
builds=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  builds+=("$(realpath "$1")")
  shift
done
[ $# -eq 0 ] || shift
[ ${#builds[@]} -gt 0 ] || builds=("$PWD/build/release")
for build in "${builds[@]}"; do
  if [ ! -x "$build/carousel" ]; then
    echo "slurm.sh: there is no $build/carousel; build it first: bash jobscripts/setup.sh" >&2
    exit 2
  fi
done
bash jobscripts/packages.sh slurm

cluster=$(mktemp -d /tmp/carousel-slurm.XXXXXX)
export SLURM_CONF=$cluster/slurm.conf
# shellcheck disable=SC2317  # a trap calls it
stop_cluster() {
  local file process
  scancel --quiet --user=root 2>/dev/null || true
  for _ in {1..200}; do  # no rank may stay behind
    [ -n "$(squeue --noheader 2>/dev/null)" ] || break
    sleep 0.1
  done
  for file in "$cluster"/run/slurmctld.pid "$cluster"/run/slurmd-*.pid "$cluster"/run/munged.pid; do
    [ -s "$file" ] || continue
    process=$(cat "$file")
    kill "$process" 2>/dev/null || continue
    for _ in {1..100}; do
      kill -0 "$process" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "$process" 2>/dev/null || true
  done
  # Those of nodes that were lost have nobody else to end them.
  for process in $(pgrep slurmstepd || true); do
    ! grep -qzF "$cluster" "/proc/$process/environ" 2>/dev/null || kill -KILL "$process"
  done
  rm -rf "$cluster"
}
trap stop_cluster EXIT

# Five ports that nobody listens to.
is_free() { ! (: >"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
port=17820
until is_free "$port" && is_free $((port + 1)) && is_free $((port + 2)) &&
  is_free $((port + 3)) && is_free $((port + 4)); do
  port=$((port + 10))
done

host=$(hostname -s)
mkdir "$cluster"/{run,state,log,spool,work}
cat >"$SLURM_CONF" <<END
ClusterName=carousel
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# A job that is queued again may start as soon as what it was allowed has expired.
AuthInfo=socket=$cluster/run/munge.sock,cred_expire=5
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool/%n
SlurmctldPidFile=$cluster/run/slurmctld.pid
SlurmdPidFile=$cluster/run/slurmd-%n.pid
SlurmctldLogFile=$cluster/log/slurmctld.log
SlurmdLogFile=$cluster/log/slurmd-%n.log
SlurmdParameters=config_overrides
SlurmdTimeout=4
MessageTimeout=3
KillWait=5
ReturnToService=2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
SchedulerParameters=sched_interval=1,bf_interval=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
$(for k in 1 2 3 4; do
  echo "NodeName=n$k NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + k)) CPUs=4"
done)
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
dd if=/dev/urandom of="$cluster/run/key" bs=1 count=256 status=none
chmod 600 "$cluster/run/key"
munged --force --key-file="$cluster/run/key" --socket="$cluster/run/munge.sock" \
  --pid-file="$cluster/run/munged.pid" --log-file="$cluster/log/munged.log" \
  --seed-file="$cluster/run/seed"
slurmctld -c
for k in 1 2 3 4; do
  mkdir "$cluster/spool/n$k"
  slurmd -N "n$k"
done
for _ in {1..100}; do
  [ "$(sinfo --noheader --format=%D --states=idle | head -n 1)" != 4 ] || break
  sleep 0.1
done
sinfo

python=python3
! /usr/bin/python3 -c 'import h5py' 2>/dev/null || python=/usr/bin/python3
cd "$cluster/work"
code=0
"$python" "$OLDPWD/tests/jobscripts/slurm_test.py" "$OLDPWD" "${builds[0]}/carousel" \
  "${builds[1]:+${builds[1]}/carousel}" "$@" || code=$?
if [ "$code" -ne 0 ]; then
  grep -h -i error "$cluster"/log/*.log | tail -n 20 >&2
fi
exit "$code"
