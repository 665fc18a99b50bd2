#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds Kokkos once into .cache/kokkos/FAMILY: kokkos.sh host|serial|cuda [SOURCE]
# Without SOURCE the sources come from the Python package pycompadre, which carries Kokkos 4.5.1.
set -euo pipefail
family=${1:?usage: kokkos.sh host|serial|cuda [SOURCE]}
source=${2:-}
root=$(cd "$(dirname "$0")/.." && pwd)
cache=$root/.cache
package=pycompadre-1.7.6
sha256=c766ec4d445ce076069be4b8c51a23ffac4ee79ea949ca86446bfd8c299b154c
mkdir -p "$cache"

if [ -z "$source" ]; then
  archive=$cache/$package.tar.gz
  if [ ! -f "$archive" ]; then
    pip download --quiet --disable-pip-version-check --no-deps --no-binary pycompadre \
      --dest "$cache" "pycompadre==1.7.6"
  fi
  echo "$sha256  $archive" | sha256sum --check --quiet
  [ -d "$cache/$package/kokkos" ] || tar -xf "$archive" -C "$cache" "$package/kokkos"
  source=$cache/$package/kokkos
fi

options=(-DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=20 -DCMAKE_POSITION_INDEPENDENT_CODE=ON
         -DKokkos_ENABLE_SERIAL=ON -DCMAKE_INSTALL_PREFIX="$cache/kokkos/$family")
case $family in
  host) options+=(-DKokkos_ENABLE_OPENMP=ON -DKokkos_ARCH_NATIVE=ON) ;;
  serial) options+=(-DKokkos_ARCH_NATIVE=ON) ;;
  *) echo "kokkos.sh: unknown family '$family'" >&2; exit 2 ;;
esac
cmake -S "$source" -B "$cache/build-kokkos-$family" -G Ninja "${options[@]}" >/dev/null
cmake --build "$cache/build-kokkos-$family" --target install >/dev/null
rm -rf "$cache/build-kokkos-$family"
