#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs a test of a CUDA build, or reports it as skipped where no driver is: such a program cannot
# even be loaded there.
PATH=$PATH:/usr/sbin:/sbin  # where ldconfig is, which users need not have in their path

# The driver is in the loader's cache, or in a folder that a container names.
has_driver() {
  local folder folders
  [[ $(ldconfig -p 2>/dev/null) != *libcuda.so.1* ]] || return 0
  IFS=: read -r -a folders <<<"${LD_LIBRARY_PATH:-}"
  for folder in "${folders[@]}"; do
    [ ! -e "$folder/libcuda.so.1" ] || return 0
  done
  return 1
}

if ! has_driver || ! ls /dev/nvidia[0-9]* >/dev/null 2>&1; then
  echo "skipped: no NVIDIA driver or GPU on this machine"
  exit 125
fi
exec "$@"
