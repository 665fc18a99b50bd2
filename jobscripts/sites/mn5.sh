# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
# NOT RUN: written from what is cited here, without access to the machine.
#
# BSC MareNostrum 5; CAROUSEL_NODES is acc (default; 4 H100) or gpp (112 cores). BSC's own pages
# could not be read. Read on 2026-11-25:
#   nodes                https://github.com/TRUBA-HPC/Belgeler (in Turkish, after BSC's of June 2025),
#                        source/1-kaynaklar/mn5/hesaplama_kumeleri.rst at 4015a10
#   queues, limits       the same, kuyruk_bilgisi.rst: 2 h in acc_debug and gp_debug, 48 or 72 h else
#   options of acc       https://github.com/horses-framework/horses3d-gpu/wiki/Marenostrum-5-GPU
#                        (2026-05-06): 20 cores with every GPU
#   no --gpu-bind        https://github.com/jorditorresBCN/Marenostrum5, jacobi-template.slurm at
#                        03264d6
#   modules of gpp       https://github.com/horses-framework/horses3d/wiki/Marenostrum-5 (2025-03-07)
# Nothing was found on how the modules of acc, an MPI that takes device buffers and srun fit together:
# name them in CAROUSEL_MODULES, and the kind of srun in CAROUSEL_MPI if need be.
# Give both: submit.sh --account=NAME --qos=acc_... or gp_...
# shellcheck shell=bash disable=SC2034,SC2086  # submit.sh and job.sh use it; several words

if [ "${CAROUSEL_NODES:-acc}" = gpp ]; then
  load_modules ${CAROUSEL_MODULES:-gcc/12.3.0 ucx/1.16.0-gcc openmpi/5.0.5-gcc}
  CAROUSEL_SBATCH="--partition=gpp --ntasks-per-node=2 --cpus-per-task=56"
  CAROUSEL_SRUN="--cpu-bind=cores"
else
  load_modules ${CAROUSEL_MODULES:-}
  CAROUSEL_SBATCH="--partition=acc --gres=gpu:4 --ntasks-per-node=4 --cpus-per-task=20"
  CAROUSEL_SRUN="--cpu-bind=cores --gpu-bind=none --distribution=block:block"
fi
