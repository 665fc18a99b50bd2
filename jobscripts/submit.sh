#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Checks a deck here and submits it to Slurm with as many ranks as its plan has devices:
#   submit.sh [--OPTION=VALUE ...] DECK [key=value ...]
#   submit.sh [--OPTION=VALUE ...] --sweep LIST [DECK [key=value ...]]
# Options are those of sbatch: --time=24:00:00 --account=NAME. LIST has a line for every member of
# the sweep: a deck, unless one is given, and keys with values; the job has a copy of it. The output
# of job J is beside the run folder OUTPUT: OUTPUT-J.out, or OUTPUT-J_K.out for member K, which runs
# in OUTPUT-J/00K.
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/site.sh"

usage() { stop 2 "usage: submit.sh [--OPTION=VALUE ...] [--sweep LIST] DECK [key=value ...]"; }

options=()
list=
while [ $# -gt 0 ]; do
  case $1 in
    --sweep=*) list=${1#*=} ;;
    --sweep)
      [ $# -gt 1 ] || usage
      list=$2
      shift
      ;;
    -*) options+=("$1") ;;
    *) break ;;
  esac
  shift
done
[ $# -gt 0 ] || [ -n "$list" ] || usage
if [ $# -gt 0 ] && [ ! -e "$1" ]; then
  stop 2 "$1: no such deck; options of sbatch have the form --time=24:00:00 and come before it"
fi
command -v sbatch >/dev/null || stop 2 "there is no sbatch here; submit where Slurm is"

# What sbatch has to know of a deck. Whatever is wrong with it is told now, not in a day's time.
look_at() {
  "$CAROUSEL" train "$@" --validate >/dev/null
  ranks=$("$CAROUSEL" plan "$@" --devices)
  threads=$("$CAROUSEL" plan "$@" --get engine.threads)
  name=$("$CAROUSEL" plan "$@" --get run.name)
  output=$("$CAROUSEL" plan "$@" --get run.output)
}

# submit FILE SCRIPT WORD ...: options of the user come last, where sbatch prefers them.
submit() {
  local before=(--ntasks="$ranks" --job-name="$name" --output="$1")
  [ "$threads" -eq 0 ] || before+=(--cpus-per-task="$threads")
  [ -z "$list" ] || before+=(--array="1-${#lines[@]}")
  export CAROUSEL_JOBSCRIPTS=$scripts CAROUSEL
  # A job takes over the environment, also what that says of a job in which this is typed.
  unset SLURM_RESTART_COUNT SLURM_NTASKS SLURM_CPUS_PER_TASK "${!SLURM_ARRAY_@}"
  # shellcheck disable=SC2206  # several words of a site
  before+=(${CAROUSEL_SBATCH:-})
  exec sbatch "${before[@]}" "${options[@]}" "$scripts/$2" "${@:3}"
}

if [ -z "$list" ]; then
  look_at "$@"
  mkdir -p "$(dirname "$output")"
  output=${output%/}
  submit "${output//%/%%}-%j.out" train.sbatch "$@"
fi

source "$scripts/members.sh"
read_members "$list" "$@"
declare -A member_of
for ((k = ${#lines[@]}; k > 0; --k)); do
  choose_member "$k" 0
  look_at "${member[@]}"
  if [ -n "${member_of[$output]:-}" ]; then
    stop 2 "$list: members $k and ${member_of[$output]} have the same run.output, $output"
  fi
  member_of[$output]=$k
  if [ "${first:=$ranks $threads}" != "$ranks $threads" ]; then
    stop 2 "$list: member $k needs $ranks ranks of engine.threads=$threads, but others" \
      "${first% *} of ${first#* }; an array gives all the same: make two sweeps of them"
  fi
done
output=${folder%/}
mkdir -p "$(dirname "$output")"
# Members that start later, or again, must find what they were.
copy=$(mktemp "$output-XXXXXX.list")
cp "$list" "$copy"
submit "${output//%/%%}-%A_%a.out" sweep.sbatch "$copy" "$@"
