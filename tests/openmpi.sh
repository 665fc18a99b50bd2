#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# The same with Open MPI as with MPICH: openmpi.sh builds the preset openmpi and runs the tests of
# label mpi, and on Debian, as root, first installs Open MPI beside MPICH, which stays the default.
# With the build, `tests/slurm.sh build/release build/openmpi` has a job of both.
set -euo pipefail
cd "$(dirname "$0")/.."

# Debian would make the newcomer what mpicc and mpiexec mean, for every other build, too.
chosen() { update-alternatives --query "$1" 2>/dev/null | sed -n 's/^Value: //p'; }
mpi=$(chosen mpi)
mpirun=$(chosen mpirun)
bash jobscripts/packages.sh ompi
[ -z "$mpi" ] || [ "$(chosen mpi)" = "$mpi" ] || update-alternatives --quiet --set mpi "$mpi"
[ -z "$mpirun" ] || [ "$(chosen mpirun)" = "$mpirun" ] ||
  update-alternatives --quiet --set mpirun "$mpirun"

CAROUSEL_TARGETS="all test_programs" bash jobscripts/setup.sh openmpi
ctest --preset openmpi --label-regex mpi --label-exclude long
