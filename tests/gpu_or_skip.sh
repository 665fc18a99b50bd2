#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs a test of a CUDA build, or reports it as skipped where no driver is: such a program cannot
# even be loaded there.
if ! ldconfig -p | grep -q 'libcuda\.so\.1' || ! ls /dev/nvidia[0-9]* >/dev/null 2>&1; then
  echo "skipped: no NVIDIA driver or GPU on this machine"
  exit 125
fi
exec "$@"
