#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Brings a machine to finished builds in build/PRESET: setup.sh [PRESET...]
# PRESET is release (default), double, asan, tsan or cuda. As root on Debian it installs what is
# missing; otherwise it lists what to install or load and ends with exit code 2. Run it again at any
# time: it does only what is left to do. CAROUSEL_TARGETS names targets to build instead of all.
set -euo pipefail
cd "$(dirname "$0")/.."
source jobscripts/steps.sh
[ $# -gt 0 ] || set -- release

# If modules or Spack provide the libraries, CMake decides whether they suffice.
if ! jobscripts/packages.sh build test; then
  [ -n "${LOADEDMODULES:-}${SPACK_ENV:-}" ] && command -v cmake >/dev/null || exit 2
  echo "Trying with the modules that are loaded."
fi
for preset in "$@"; do
  if [ "$preset" = cuda ] && ! command -v nvcc >/dev/null; then
    echo "setup.sh: the preset cuda needs nvcc in PATH: install the CUDA toolkit or load its module" >&2
    exit 2
  fi
  step "build/logs/configure-$preset.log" "configure $preset (the first time with Kokkos)" -- \
    cmake --preset "$preset"
  # shellcheck disable=SC2086  # several targets are several words
  step "build/logs/build-$preset.log" "build $preset" -- \
    cmake --build --preset "$preset" ${CAROUSEL_TARGETS:+--target $CAROUSEL_TARGETS}
done
