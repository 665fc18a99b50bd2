#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Puts the headers of cuDNN's C++ front end into a folder: cudnn_frontend.sh PREFIX
# They come from the Python package nvidia-cudnn-frontend, of which every platform has the same ones.
# If it is interrupted, PREFIX still holds either nothing or all of them.
set -euo pipefail
prefix=$(realpath -m "${1:?usage: cudnn_frontend.sh PREFIX}")
cd "$(dirname "$0")/.."
source jobscripts/steps.sh
mkdir -p .cache
exec 9>.cache/lock
flock 9
[ ! -e "$prefix/include/cudnn_frontend.h" ] || exit 0
work=$(mktemp -d .cache/work.XXXXXX)
trap 'rm -rf "$work"' EXIT

wheel=nvidia_cudnn_frontend-1.32.0-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl
sha256=c6006556017a4d1c914c52a556c71b1267f2d6a0500f742e7b4edef539878df0
fetch .cache "$work" "$wheel" "$sha256" nvidia-cudnn-frontend==1.32.0 \
  --only-binary :all: --python-version 3.11 --platform manylinux_2_28_x86_64
python3 -m zipfile -e ".cache/$wheel" "$work"
mkdir -p "$prefix"
mv "$work/include" "$prefix/include"
