#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds and runs the tests: run.sh [--all] [PRESET...]
# Without PRESET those of release and, in double, where the oracles are compared, those that compute.
# --all adds the tests of label long, which repeat with more ranks what others show, the full matrix
# of tests/matrix.sh and, as root, the job scripts on a real Slurm, tests/slurm.sh. Ends with the closing lines of every ctest, and with an error when
# anything failed.
set -euo pipefail
all=
skip=(--label-exclude long)
if [ "${1:-}" = --all ]; then all=yes skip=(); shift; fi
[ $# -gt 0 ] || set -- release double
cd "$(dirname "$0")/.."

bash jobscripts/packages.sh report || echo "Going on without: app.report may be skipped."
bash tests/tensorboard.sh || echo "Going on without: app.tensorboard may be skipped."

# One preset's failure must not hide another's: all run, then the results stand together.
failed=()
for preset in "$@"; do
  echo "== $preset: build"
  # In double precision only the test programs are new.
  targets=
  [ "$preset" != double ] || targets=test_programs
  CAROUSEL_TARGETS=$targets bash jobscripts/setup.sh "$preset"
  echo "== $preset: tests"
  mkdir -p "build/$preset"
  ctest --preset "$preset" --parallel "$(nproc)" ${skip[@]+"${skip[@]}"} 2>&1 |
    tee "build/$preset/ctest.log" || failed+=("$preset")
  if [ -n "$all" ]; then
    echo "== $preset: matrix"
    bash tests/matrix.sh "$preset" || failed+=("$preset (matrix)")
  fi
done

if [ -n "$all" ] && [ -x build/release/carousel ]; then
  echo "== slurm"
  code=0
  bash tests/slurm.sh || code=$?
  [ "$code" -eq 0 ] || [ "$code" -eq 125 ] || failed+=(slurm)
fi

for preset in "$@"; do
  echo
  echo "== $preset"
  sed -n '/tests passed/,$p' "build/$preset/ctest.log"
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "Failed: ${failed[*]}" >&2
  exit 1
fi
