#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Brings a machine to a finished build in build/PRESET: setup.sh [PRESET [TARGET...]]
# PRESET is release (default), double, asan, tsan or cuda. As root on Debian it installs what is
# missing; otherwise it lists what to install or load and ends with exit code 2. Run it again at any
# time: it does only what is left to do.
set -euo pipefail
preset=${1:-release}
targets=("${@:2}")
cd "$(dirname "$0")/.."

# Where modules or Spack provide the libraries, CMake is the judge of what is there.
if ! jobscripts/packages.sh build test; then
  [ -n "${LOADEDMODULES:-}${SPACK_ENV:-}" ] && command -v cmake >/dev/null || exit 2
  echo "Trying with the modules that are loaded."
fi
if [ "$preset" = cuda ] && ! command -v nvcc >/dev/null; then
  echo "setup.sh: the preset cuda needs nvcc in PATH: install the CUDA toolkit or load its module" >&2
  exit 2
fi

# Only the closing summary is worth reading; errors come by themselves.
cmake --preset "$preset" | sed -n '/^-- Carousel /,$p'
cmake --build --preset "$preset" ${targets[@]:+--target "${targets[@]}"}
