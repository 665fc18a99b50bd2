# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by submit.sh and sweep.sbatch, behind site.sh: what the members of a sweep are.
# shellcheck shell=bash

# read_members LIST [WORD ...]: sets `lines` to those of LIST that count, and `common` to what all
# members have.
read_members() {
  [ -r "$1" ] || stop 2 "$1: cannot be read; give a list with a line for every member of the sweep"
  mapfile -t lines < <(grep -v '^[[:space:]]*\(#\|$\)' "$1")
  common=("${@:2}")
  [ ${#lines[@]} -gt 0 ] || stop 2 "$1: has no members, a line with keys and values for each"
}

# choose_member K JOB: sets `member` to the words of `carousel train` for line K, from 1 on, and
# `folder` to its run.output. Unless the line itself names that, the member runs in a folder of its
# own, behind whose name is the number of the job.
choose_member() {
  local words
  read -r -a words <<<"${lines[$1 - 1]}"
  member=("${common[@]}" "${words[@]}")
  folder=$("$CAROUSEL" plan "${member[@]}" --get run.output)
  [[ " ${words[*]}" != *" run.output="* ]] || return 0
  with_key run.output "${folder%/}-$2/$(printf %03d "$1")" "${member[@]}"
  member=("${with_key[@]}")
}
