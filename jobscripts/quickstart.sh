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

# The picture is a bonus: a machine without matplotlib still has everything else.
draws() { "$1" -c 'import h5py, matplotlib' 2>/dev/null; }
draws python3 || draws /usr/bin/python3 || bash jobscripts/packages.sh report || true
picture=
for python in python3 /usr/bin/python3; do
  if [ -z "$picture" ] && draws $python && step $runs/report.log "picture" -- \
    $python app/report $runs/dp $runs/cdp-v2 $runs/cdp-v2-ring --output $runs/report; then
    picture=$runs/report.png
  fi
done

echo
build/release/carousel inspect $runs/dp $runs/cdp-v2 $runs/cdp-v2-ring
cat <<END

Look at one run:   build/release/carousel inspect $runs/cdp-v2
See its schedule:  build/release/carousel plan inputs/digits.toml
Then read README.md: how to read this table, and how to run your own deck.
${picture:+
The picture of all three: $picture (and .svg)}
END
