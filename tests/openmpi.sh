#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# The same with Open MPI as with MPICH: openmpi.sh builds the preset openmpi and runs the tests of
# label mpi, and on Debian, as root, first installs Open MPI beside MPICH, which stays the default.
# With the build, `tests/slurm.sh build/release build/openmpi` has a job of both.
set -euo pipefail
cd "$(dirname "$0")/.."

# Debian would make the newcomer what mpicc, mpiexec and -lmpi mean, for every other build, too.
chosen() { update-alternatives --get-selections 2>/dev/null | awk '$1 ~ /^mpi/ {print $1, $3}' || true; }
before=$(chosen)
bash jobscripts/packages.sh ompi
while read -r name value; do
  [ -z "$name" ] || [ "$(chosen | sed -n "s/^$name //p")" = "$value" ] ||
    update-alternatives --quiet --set "$name" "$value"
done <<<"$before"

CAROUSEL_TARGETS="all test_programs" bash jobscripts/setup.sh openmpi
ctest --preset openmpi --label-regex mpi --label-exclude long
