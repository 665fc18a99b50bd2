#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds and runs all tests: run.sh [PRESET...]
# Without PRESET all of release and, in double, where the oracles are compared, all that compute.
# Ends with the closing lines of every ctest, and with an error when any test failed.
set -euo pipefail
[ $# -gt 0 ] || set -- release double
cd "$(dirname "$0")/.."

bash jobscripts/packages.sh report || echo "Going on without: app.report may be skipped."

# One preset's failure must not hide another's: all run, then the results stand together.
failed=()
for preset in "$@"; do
  echo "== $preset: build"
  bash jobscripts/setup.sh "$preset"
  echo "== $preset: tests"
  mkdir -p "build/$preset"
  ctest --preset "$preset" --parallel "$(nproc)" 2>&1 | tee "build/$preset/ctest.log" ||
    failed+=("$preset")
done

for preset in "$@"; do
  echo
  echo "== $preset"
  sed -n '/tests passed/,$p' "build/$preset/ctest.log"
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "Failed: ${failed[*]}" >&2
  exit 1
fi
