#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# The full matrix of runs that must agree: matrix.sh [PRESET [MODEL]]
# Every rule, every slack, N in {1, 2, 3, 4, 6, 8}, S in {1, 2, 4}, both kinds of momentum, 100
# steps with a drop of the learning rate in the middle; for N up to 4 resnet8 with batch norm, a
# vision transformer and a U-Net that a deck lists, 40 steps; all of it in bf16, too (double: a
# fourth of it). One device against all devices in one process, against one rank per device over MPI
# (up to 16 ranks), and against the serial oracle; with 4 ranks and in one process 1,000 runs in which
# messages and kernels are late at random, with other ranks 100. Fast sums in single precision are
# compared after 12 steps, of resnet8 and the U-Net after 2, since rounding parts them later. ctest
# runs a part of it with 12 and 4 steps. Needs a built PRESET (release); ends with the number of runs
# compared. MODEL, a model.name, is the part of it with that kind of network, less the oracle.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
if [ -n "${2:-}" ]; then export CAROUSEL_MATRIX_MODEL=$2; fi
tests=build/$preset/tests
log=build/$preset/matrix.log
export CAROUSEL_FULL_MATRIX=1 OMP_NUM_THREADS=1 OMP_PROC_BIND=false KOKKOS_DISABLE_WARNINGS=1

for program in train_placements train_queues train_oracle train_ranks; do
  if [ ! -x "$tests/test_$program" ]; then
    echo "$tests/test_$program is missing; build it first: bash jobscripts/setup.sh $preset" >&2
    exit 2
  fi
done

: > "$log"
programs=0
failed=0
run() {
  programs=$((programs + 1))
  # Who compares nothing has shown nothing.
  if ! "$@" > "$log.part" 2>&1 ||
    { [ -z "${CAROUSEL_MATRIX_MODEL:-}" ] && ! grep -q '^matrix: [1-9]' "$log.part"; }; then
    failed=$((failed + 1))
  fi
  grep '^matrix:' "$log.part" || true
  cat "$log.part" >> "$log"
}

run "$tests/test_train_placements" --gtest_filter='*GiveTheSameBits*'
run "$tests/test_train_queues" --gtest_filter='*GiveTheSameBits*'
for ranks in 1 2 3 4 6 8 9 10 12 16; do
  run mpiexec -n "$ranks" "$tests/test_train_ranks" --gtest_filter='*GivesTheBits*:*AgreesToRounding*:*WhateverIsLate*'
done
if [ -z "${CAROUSEL_MATRIX_MODEL:-}" ]; then
  run "$tests/test_train_oracle" --gtest_filter='*AfterEveryStep*'
fi

rm "$log.part"
count=$(awk '/^matrix:/ { sum += $2 } END { print sum + 0 }' "$log")
if [ "$failed" -gt 0 ]; then
  echo "$preset: $failed of $programs programs FAILED after $count runs; see $log" >&2
  exit 1
fi
if [ "$count" -eq 0 ]; then
  echo "$preset: nothing was compared; no network is called ${CAROUSEL_MATRIX_MODEL:-}" >&2
  exit 1
fi
echo "$preset: all $count runs agree"
