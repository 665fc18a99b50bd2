# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by train.sbatch and sweep.sbatch: one training as a Slurm job, from the check that the job
# has the ranks of the plan to the decision whether Slurm should queue it again.
#
#   CAROUSEL_MAX_RESTARTS  how often that is done at most (20)
#   CAROUSEL_REQUEUE       exit codes after which it is done ("75"); "75 77" where nodes get lost: the
#                          other ranks end with 77 long before Slurm notices
# shellcheck shell=bash

# As squeue names it. The number of an array's task may be that of the whole array.
job=${SLURM_JOB_ID:?these scripts are for sbatch}
if [ -n "${SLURM_ARRAY_TASK_ID:-}" ]; then
  job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
fi
restarts=${SLURM_RESTART_COUNT:-0}
me="carousel job $job"
source "$(dirname "${BASH_SOURCE[0]}")/site.sh"

say() { echo "$me: $*"; }

# field NAME STATUS: a value in the text of a status.json, which has one to a line.
field() { sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\).*/\1/p" <<<"$2"; }

# The status.json of a run folder, if it is of this job: a run that is refused its folder leaves there
# what another one says of itself.
own_status() {
  local text
  text=$(cat "$1/status.json" 2>/dev/null || true)
  [ "$(field job "$text")" != "$job" ] || echo "$text"
}

# Sets `launcher` to the words that start RANKS ranks. Slurm has to speak the language of the MPI
# that the program is built with, or every rank is alone in a world of its own.
choose_launcher() {
  local ranks=$1 version kinds
  version=$("$CAROUSEL" --version)
  kinds=$(srun --mpi=list 2>&1 || true)
  launcher=(srun --kill-on-bad-exit=1 --ntasks="$ranks")
  # Since 22.05 Slurm does not hand this on to steps by itself.
  [ -z "${SLURM_CPUS_PER_TASK:-}" ] || launcher+=(--cpus-per-task="$SLURM_CPUS_PER_TASK")
  # shellcheck disable=SC2206  # several words of a site
  launcher+=(${CAROUSEL_SRUN:-})
  local mpirun=(mpirun -n "$ranks" --bind-to none)  # ranks take their cores themselves
  # Where Debian has two, that name may be the other one's.
  [[ $version != *"Open MPI"* ]] || ! command -v mpirun.openmpi >/dev/null || mpirun[0]=mpirun.openmpi
  if [ "${CAROUSEL_MPI:-}" = mpirun ]; then
    launcher=("${mpirun[@]}")
  elif [ -n "${CAROUSEL_MPI:-}" ]; then
    launcher+=(--mpi="$CAROUSEL_MPI")
  elif [ -n "${SLURM_MPI_TYPE:-}" ]; then
    :  # srun follows it; a module of this MPI has set it
  elif [[ $version == *"Open MPI"* ]]; then
    # The list may name a plug-in that cannot be loaded, or not on all nodes of the job at once.
    if [[ $kinds == *pmix* ]] && "${launcher[@]}" --mpi=pmix true 2>/dev/null; then
      launcher+=(--mpi=pmix)
    else
      launcher=("${mpirun[@]}")
    fi
  elif [[ $version == *CRAY* ]]; then
    launcher+=(--mpi=cray_shasta)
  elif [[ $kinds == *pmi2* ]]; then
    launcher+=(--mpi=pmi2)
  fi
}

# Prints the run.wall_clock of what mpirun starts: two minutes before the job's time is over, or the
# half of what is left where that is less. Slurm tells mpirun of its end, and mpirun not its ranks.
clock_for_mpirun() {
  local left days=0 hours=0 minutes seconds
  left=$(squeue --noheader --jobs="$job" --format=%L 2>/dev/null || true)
  [[ $left =~ ^(([0-9]+)-)?(([0-9]+):)?([0-9]+):([0-9]+)$ ]] || return 0  # UNLIMITED, say
  days=${BASH_REMATCH[2]:-0} hours=${BASH_REMATCH[4]:-0}
  minutes=${BASH_REMATCH[5]} seconds=${BASH_REMATCH[6]}
  seconds=$((((10#$days * 24 + 10#$hours) * 60 + 10#$minutes) * 60 + 10#$seconds))
  seconds=$((seconds > 240 ? seconds - 120 : seconds / 2))
  printf '%02d:%02d:%02d\n' $((seconds / 3600)) $((seconds / 60 % 60)) $((seconds % 60))
}

# controller WORD ...: scontrol, asked again for some minutes where it is busy or being restarted.
controller() {
  local tries=30
  until scontrol "$@"; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || return 1
    sleep 10
  done
}

# Has Slurm queue this job again, if that is of use. Returns if not.
requeue() {
  local before=$1 after=$2 most=${CAROUSEL_MAX_RESTARTS:-20} done_before='' step state
  if [ "$restarts" -ge "$most" ]; then
    say "is not queued again: it was $restarts times (CAROUSEL_MAX_RESTARTS)"
    return
  fi
  if [ "$restarts" -gt 0 ] && [[ $(field state "$before") =~ ^(stopped|failed)$ ]]; then
    done_before=$(field step "$before")
  fi
  step=$(field step "$after")
  if [ "${step:-0}" -le "${done_before:-0}" ]; then
    say "is not queued again: it made no step${done_before:+ behind $done_before}; give it more time"
    return
  fi
  # Whoever has cancelled it wants it to end, or has put it back into the queue already.
  if ! state=$(controller show job --oneliner "$job"); then
    say "is not queued again: Slurm's controller does not answer"
    return
  fi
  if [[ $state != *" JobState=RUNNING "* && $state != *" Reason=TimeLimit "* ]]; then
    say "is not queued again by itself: Slurm has ended it on demand"
    return
  fi
  say "is queued again after $step steps"
  if controller requeue "$job"; then
    trap - TERM
    sleep 60  # Slurm ends this script meanwhile
  fi
}

# train_job DECK [key=value ...]
train_job() {
  local folder ranks before after start clock code=0
  folder=$("$CAROUSEL" plan "$@" --get run.output)
  ranks=$("$CAROUSEL" plan "$@" --devices)
  local tasks=${SLURM_NTASKS:-${SLURM_JOB_NUM_NODES:-1}}
  if [ "$tasks" -ne "$ranks" ]; then
    stop 2 "the plan of $1 has $ranks devices, but the job has $tasks tasks; submit it with" \
      "--ntasks=$ranks, as submit.sh does"
  fi
  choose_launcher "$ranks"
  before=$(own_status "$folder")
  if [ "$restarts" -gt 0 ] && [ -n "$before" ]; then
    # What the job began goes on, whatever the deck says of runs that are there at the first start.
    # Where it began with a checkpoint of another run and kept none of its own, it begins again.
    start=$("$CAROUSEL" plan "$@" --get run.resume)
    if [[ $start =~ ^(auto|off)$ ]] || compgen -G "$folder/checkpoints/step-*.h5" >/dev/null; then
      with_key run.resume auto "$@"
      set -- "${with_key[@]}"
    else
      set -- "$@" --overwrite
    fi
  fi
  if [[ ${launcher[0]} == mpirun* ]] && [ -z "$("$CAROUSEL" plan "$@" --get run.wall_clock)" ]; then
    clock=$(clock_for_mpirun)
    [ -z "$clock" ] || set -- "$@" "run.wall_clock=$clock"
  fi
  say "run folder $folder, $ranks ranks on ${SLURM_JOB_NODELIST:-?}, started by ${launcher[*]}"

  # Slurm tells all processes of a job to end; this one has to see how the ranks did.
  trap : TERM USR1
  "${launcher[@]}" "$CAROUSEL" train "$@" || code=$?
  after=$(own_status "$folder")

  # srun makes 137 or 143 of the code of a rank that others were ended for; the run itself knows.
  if [ -n "$after" ] && [ "$after" != "$before" ] && [ "$(field state "$after")" != running ]; then
    code=$(field exit_code "$after")
  fi
  [[ " ${CAROUSEL_REQUEUE:-75} " != *" $code "* ]] || requeue "$before" "$after"
  say "ends with exit code $code; run folder $folder"
  exit "$code"
}
