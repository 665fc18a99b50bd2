#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# From a clean clone to the first picture: builds, trains the embedded handwritten digits with data
# parallelism and with CDP on one device, then with CDP on four MPI ranks, and compares.
set -euo pipefail
cd "$(dirname "$0")/.."
source jobscripts/steps.sh

echo "Set-up (logs in build/logs)"
CAROUSEL_TARGETS="carousel carousel-engine" bash jobscripts/setup.sh release

runs=runs/quickstart
# One thread: these layers are far too small to share.
train=(build/release/carousel train inputs/digits.toml --overwrite engine.threads=1)
ring=(parallel.placement=replicated parallel.transport=mpi)

echo "Training (logs in $runs)"
step $runs/dp.log "dp, one device" -- \
  "${train[@]}" parallel.rule=dp run.output=$runs/dp
step $runs/cdp-v2.log "cdp-v2, one device" -- \
  "${train[@]}" parallel.rule=cdp-v2 run.output=$runs/cdp-v2
step $runs/cdp-v2-ring.log "cdp-v2, four MPI ranks in a ring" -- \
  mpiexec -n 4 "${train[@]}" parallel.rule=cdp-v2 "${ring[@]}" run.output=$runs/cdp-v2-ring

echo
build/release/carousel inspect $runs/dp $runs/cdp-v2 $runs/cdp-v2-ring
cat <<END

Look at one run:   build/release/carousel inspect $runs/cdp-v2
See its schedule:  build/release/carousel plan inputs/digits.toml
Then read README.md: how to read this table, and how to run your own deck.
END
