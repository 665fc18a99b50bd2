# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks whose kernels take a given time, so that many of them can share few cores."""

import os


def environment(build, times, **settings):
    """For runs with the tool of stretch_kernels.cpp, which says what else can be set: the kernels'
    times are those of the file `times`, which the first run makes."""
    return os.environ | {
        "OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "false", "KOKKOS_DISABLE_WARNINGS": "1",
        "KOKKOS_TOOLS_LIBS": str(build / "tests/bench_stretch_kernels.so"),
        "CAROUSEL_KERNEL_TIMES": str(times),
    } | settings
