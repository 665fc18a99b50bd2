#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds Kokkos once into .cache/kokkos/FAMILY: kokkos.sh host|serial|cuda [SOURCE]
# Without SOURCE the sources come from the Python package pycompadre, which carries Kokkos 4.5.1.
# KOKKOS_ARCH names the processor (Kokkos_ARCH_*, default NATIVE) where the machine that builds is
# not the one that runs; for cuda, the GPU (default HOPPER90).
set -euo pipefail
family=${1:?usage: kokkos.sh host|serial|cuda [SOURCE]}
source=${2:-}
root=$(cd "$(dirname "$0")/.." && pwd)
cache=$root/.cache
package=pycompadre-1.7.6
sha256=c766ec4d445ce076069be4b8c51a23ffac4ee79ea949ca86446bfd8c299b154c
mkdir -p "$cache"
# An interrupted run leaves nothing that looks finished.
work=$(mktemp -d "$cache/kokkos-build.XXXXXX")
trap 'rm -rf "$work"' EXIT

if [ -z "$source" ]; then
  archive=$cache/$package.tar.gz
  if [ ! -f "$archive" ]; then
    pip download --quiet --disable-pip-version-check --no-deps --no-binary pycompadre \
      --dest "$work" "pycompadre==1.7.6"
    mv "$work/$package.tar.gz" "$archive"
  fi
  echo "$sha256  $archive" | sha256sum --check --quiet
  tar -xf "$archive" -C "$work" "$package/kokkos"
  source=$work/$package/kokkos
fi

options=(-DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=20 -DCMAKE_POSITION_INDEPENDENT_CODE=ON
         -DKokkos_ENABLE_SERIAL=ON -DCMAKE_INSTALL_PREFIX="$work/install")
case $family in
  host) options+=(-DKokkos_ENABLE_OPENMP=ON "-DKokkos_ARCH_${KOKKOS_ARCH:-NATIVE}=ON") ;;
  serial) options+=("-DKokkos_ARCH_${KOKKOS_ARCH:-NATIVE}=ON") ;;
  cuda)
    # The wrapper's own default architecture is one that CUDA 13 no longer knows.
    flags=-arch=sm_90
    if grep -q 'VERSION_MINOR [0-6])' "$source/CMakeLists.txt"; then
      mkdir -p "$cache/kokkos"
      cp "$root/jobscripts/kokkos_cuda13.hpp" "$cache/kokkos/"
      flags+=" -include $cache/kokkos/kokkos_cuda13.hpp"
    fi
    options+=(-DKokkos_ENABLE_CUDA=ON "-DKokkos_ARCH_${KOKKOS_ARCH:-HOPPER90}=ON"
              -DKokkos_ENABLE_CUDA_CONSTEXPR=ON
              -DCMAKE_CXX_COMPILER="$source/bin/nvcc_wrapper" "-DCMAKE_CXX_FLAGS=$flags") ;;
  *) echo "kokkos.sh: unknown family '$family'; known: host, serial, cuda" >&2; exit 2 ;;
esac
{
  cmake -S "$source" -B "$work/build" -G Ninja "${options[@]}"
  cmake --build "$work/build" --target install
} >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; exit 1; }
# The package names its compiler and itself by the paths of the build; they move.
final=$cache/kokkos/$family
sed -i "s#$source/bin/nvcc_wrapper#$final/bin/nvcc_wrapper#; s#$work/install#$final#" \
  "$work"/install/lib*/cmake/Kokkos/*.cmake
mkdir -p "$cache/kokkos"
rm -rf "$final"
mv "$work/install" "$final"
