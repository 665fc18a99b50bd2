#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# The one list of Debian packages that Carousel needs: packages.sh GROUP...
# As root on Debian, installs what the groups lack. Anybody else gets the list of what to install or
# load, and exit code 2 if something is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
source jobscripts/steps.sh

# group  package             what a cluster calls it
list='
build  cmake               CMake >= 3.25
build  ninja-build         Ninja
build  g++                 a C++20 compiler (GCC >= 12)
build  python3             Python 3 (only to fetch Kokkos and headers of cuDNN)
build  python3-pip         pip (likewise)
build  ca-certificates     certificates (likewise)
build  mpich               an MPI launcher
build  libmpich-dev        MPI
build  libhdf5-dev         HDF5 >= 1.10, serial
build  libjpeg62-turbo-dev libjpeg-turbo
build  libpng-dev          libpng
build  libarchive-dev      libarchive
build  zlib1g-dev          zlib
build  libutf8proc-dev     utf8proc
build  libfmt-dev          fmt
build  libcli11-dev        CLI11
build  libtomlplusplus-dev toml++
build  nlohmann-json3-dev  nlohmann_json
test   libgtest-dev        GoogleTest
test   libgmock-dev        GoogleMock
test   libbenchmark-dev    Google Benchmark
test   python3-h5py        h5py
report python3-matplotlib  matplotlib
bench  iproute2            ip and tc
ompi   libopenmpi-dev      Open MPI (only to test beside MPICH)
ompi   openmpi-bin         Open MPI (only to test beside MPICH)
slurm  slurm-wlm           Slurm (only to test the job scripts)
slurm  munge               munge (only to test the job scripts)
style  ccache              ccache (only to build again in less time)
style  git                 git
style  clang-format-14     clang-format 14
style  clang-tidy-14       clang-tidy 14
style  shellcheck          ShellCheck
'

packages=()
for group in "$@"; do
  while read -r of package _; do
    [ "$of" != "$group" ] || packages+=("$package")
  done <<<"$list"
done

missing=()
if command -v dpkg-query >/dev/null; then
  # One call for all; a package that was removed but not purged is known and yet missing.
  installed=$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' "${packages[@]}" \
    2>/dev/null | sed -n 's/^installed //p' || true)
  for package in "${packages[@]}"; do
    grep -qxF -- "$package" <<<"$installed" || missing+=("$package")
  done
else
  missing=("${packages[@]}")
fi
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2317  # step calls it
  install() {
    apt-get -o DPkg::Lock::Timeout=300 update
    apt-get -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends "${missing[@]}"
  }
  step build/logs/packages.log "install ${#missing[@]} packages" -- install
  exit 0
fi
echo "Missing here; install the package, or load the module (Spack package) in brackets:" >&2
for package in "${missing[@]}"; do
  sed -n "s/^[a-z]* *$package  *\(.*\)/  $package (\1)/p" <<<"$list" >&2
done
exit 2
