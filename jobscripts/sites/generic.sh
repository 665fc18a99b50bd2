# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Any cluster: run on the Slurm of tests/slurm.sh. Copy this file to NAME.sh for one that has needs
# of its own, and set CAROUSEL_SITE=NAME.
#
#   CAROUSEL_MODULES  modules to load, in order, such as "gcc/12 mpich/4.2 hdf5"
# shellcheck shell=bash disable=SC2086  # several modules are several words

load_modules ${CAROUSEL_MODULES:-}
