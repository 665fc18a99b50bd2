# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
# NOT RUN: written from what is cited here, without access to the machine.
#
# JSC JUWELS Booster. Read on 2026-11-25; pages and files bear no date of their own unless one is
# given:
#   nodes                https://apps.fz-juelich.de/jsc/hps/juwels/booster-overview.html (its
#                        beginning): 2 x 24 cores in 8 NUMA domains, 4 A100
#   batch system         https://apps.fz-juelich.de/jsc/hps/juwels/batchsystem.html (its beginning)
#   folders              https://apps.fz-juelich.de/jsc/hps/juwels/environment.html (its beginning):
#                        $SCRATCH exists after `jutil env activate -p PROJECT`
#   the machine's name   https://github.com/FZJ-JSC/tutorial-multi-gpu, .etc/jsccourse-bashrc.sh at
#                        11a2f05 (2024): SYSTEMNAME
#   modules              the same, .etc/modules.sh at 003de79: Stages/2024; later ones have others
#   srun without --mpi   https://github.com/easybuilders/JSC, Golden_Repo/p/psmpi-settings at 652a101:
#                        the module sets SLURM_MPI_TYPE=pspmix, PSP_CUDA and the rest
#   options              https://github.com/FZJ-JSC/jubench-nekrs, src/submit.job at 789874c
#   order of the GPUs    https://github.com/FZJ-JSC/jubench-osu, benchmark/jube/osu_gpu.xml at aed5619:
#                        GPUs 0, 1, 2, 3 are next to NUMA domains 3, 1, 7, 5
# Give the account: submit.sh --account=NAME ...
# shellcheck shell=bash disable=SC2034,SC2086  # submit.sh and job.sh use it; several words

load_modules ${CAROUSEL_MODULES:-GCC CUDA ParaStationMPI MPI-settings/CUDA}
CAROUSEL_SBATCH="--partition=booster --gres=gpu:4 --ntasks-per-node=4 --cpus-per-task=12"
CAROUSEL_SBATCH+=" --hint=nomultithread"
CAROUSEL_SRUN="--cpu-bind=map_ldom:3,1,7,5"
