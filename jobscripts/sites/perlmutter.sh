# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
# NOT RUN: written from what is cited here, without access to the machine.
#
# NERSC Perlmutter; CAROUSEL_NODES is gpu (default) or cpu. Read on 2026-11-25; pages and files bear
# no date of their own unless one is given:
#   nodes, NUMA domains  https://docs.nersc.gov/systems/perlmutter/architecture (its beginning)
#                        https://docs.nersc.gov/jobs/affinity (its beginning)
#   queues, accounts     https://docs.nersc.gov/jobs/policy/ (its beginning): debug is the default
#   network              https://docs.nersc.gov/performance/network/ (its beginning): leave
#                        FI_CXI_RX_MATCH_MODE as it is
#   order of the GPUs    https://github.com/NERSC/Migrate-to-Perlmutter, GPU/README.md at 197295e:
#                        GPUs 0, 1, 2, 3 are next to NUMA domains 3, 2, 1, 0
#   cores of a task      the same, CPU/xthi-example.README at 53e4874: -c 256 / tasks per node
#   no --gpu-bind        https://github.com/BLAST-WarpX/warpx/issues/6382 (2025-11-11): it hides the
#                        other GPUs of the node, without which MPI cannot copy between them
#   modules, options     https://github.com/BLAST-WarpX/warpx, Tools/machines/perlmutter-nersc at
#                        23aaefa (profile) and 72b746d (batch script)
#   scratch              https://docs.nersc.gov/filesystems/perlmutter-scratch/ (its beginning): run
#                        below $SCRATCH, where files are deleted that nobody reads for 8 weeks
# Give the account: submit.sh --account=NAME ...; that of a GPU project ends on _g.
# shellcheck shell=bash disable=SC2086  # several words

nodes=${CAROUSEL_NODES:-gpu}
load_modules "$nodes" PrgEnv-gnu ${CAROUSEL_MODULES:-}
CAROUSEL_SBATCH="--constraint=$nodes --qos=regular"
CAROUSEL_SRUN="--cpu-bind=cores"
export OMP_PROC_BIND=spread OMP_PLACES=threads OMP_NUM_THREADS=16
if [ "$nodes" = gpu ]; then
  load_modules craype-accel-nvidia80 cudatoolkit
  CAROUSEL_SBATCH+=" --gpus-per-node=4 --ntasks-per-node=4 --cpus-per-task=32"
  CAROUSEL_SRUN+=" --gpu-bind=none"
  # MPI takes device buffers, and each rank the network card next to its GPU.
  export MPICH_GPU_SUPPORT_ENABLED=1 MPICH_OFI_NIC_POLICY=GPU
else
  CAROUSEL_SBATCH+=" --ntasks-per-node=8 --cpus-per-task=32"  # a rank per NUMA domain
fi
