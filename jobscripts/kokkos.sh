#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds Kokkos once into a folder of its own: kokkos.sh host|serial|cuda PREFIX [SOURCE]
# Without SOURCE the sources come from the Python package pycompadre, which carries Kokkos 4.5.1.
#
#   Carousel_KOKKOS_ARCH  processor to compile for: NATIVE (default) or a name that Kokkos knows as
#                         Kokkos_ARCH_..., such as ZEN3, where login and compute nodes differ
#   Carousel_CUDA_ARCH    GPU to compile for, a name that Kokkos knows (default HOPPER90)
#
# If it is interrupted, PREFIX still holds either nothing or a complete Kokkos.
set -euo pipefail
usage='usage: kokkos.sh host|serial|cuda PREFIX [SOURCE]'
family=${1:?$usage}
prefix=$(realpath -m "${2:?$usage}")
source=${3:-}
arch=${Carousel_KOKKOS_ARCH:-NATIVE}
cuda_arch=${Carousel_CUDA_ARCH:-HOPPER90}
here=$(cd "$(dirname "$0")" && pwd)
source "$here/steps.sh"
cache=$(cd "$here/.." && pwd)/.cache
package=pycompadre-1.7.6
sha256=c766ec4d445ce076069be4b8c51a23ffac4ee79ea949ca86446bfd8c299b154c

# Two presets configured at once must not build the same folder: the second waits, then finds it.
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
[ ! -e "$prefix/lib/cmake/Kokkos/KokkosConfig.cmake" ] || exit 0
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

if [ -z "$source" ]; then
  fetch "$cache" "$work" "$package.tar.gz" "$sha256" "${package/-/==}" --no-binary pycompadre
  tar -xf "$cache/$package.tar.gz" -C "$work" "$package/kokkos"
  source=$work/$package/kokkos
fi

options=(-DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=20 -DCMAKE_POSITION_INDEPENDENT_CODE=ON
         -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib
         -DKokkos_ENABLE_SERIAL=ON "-DKokkos_ARCH_$arch=ON")
case $family in
  host) options+=(-DKokkos_ENABLE_OPENMP=ON) ;;
  serial) ;;
  cuda)
    # The wrapper's own default, sm_70, no longer exists in CUDA 13, and CMake tries the compiler
    # before Kokkos adds its flags.
    flags="-arch=sm_${cuda_arch//[^0-9]/}"
    minor=$(sed -n 's/^set(Kokkos_VERSION_MINOR \([0-9]*\))/\1/p' "$source/CMakeLists.txt")
    major=$(sed -n 's/^set(Kokkos_VERSION_MAJOR \([0-9]*\))/\1/p' "$source/CMakeLists.txt")
    if [ "$((major * 100 + minor))" -lt 407 ]; then
      flags+=" -include $here/kokkos_cuda13.hpp"
    fi
    options+=(-DKokkos_ENABLE_CUDA=ON "-DKokkos_ARCH_$cuda_arch=ON"
              -DCMAKE_CXX_COMPILER="$source/bin/nvcc_wrapper" "-DCMAKE_CXX_FLAGS=$flags")
    ;;
  *) echo "kokkos.sh: unknown family '$family'; $usage" >&2; exit 2 ;;
esac
{
  cmake -S "$source" -B "$work/build" -G Ninja "${options[@]}" &&
    cmake --build "$work/build" &&
    cmake --install "$work/build" --prefix "$work/installed"
} >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; exit 1; }
# The package remembers the compiler by its path in the sources, which go away.
sed -i "s#$source/bin/nvcc_wrapper#$prefix/bin/nvcc_wrapper#" \
  "$work"/installed/lib/cmake/Kokkos/*.cmake
mkdir -p "$(dirname "$prefix")"
rm -rf "$prefix"
mv "$work/installed" "$prefix"
