# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by submit.sh and by the job scripts: finds the program and sets what depends on the
# machine, by one of the files in sites/.
#
#   CAROUSEL_SITE     the file to take: NAME of sites/NAME.sh; otherwise the machine tells
#   CAROUSEL          the program, if not that of this tree or of this installation
#   CAROUSEL_MPI      for srun --mpi=..., if the choice of job.sh is not right, or mpirun for that
#                     of Open MPI; a site may set it
#   CAROUSEL_SRUN     further words for srun, such as binding; a site may set it
#   CAROUSEL_SBATCH   the same for sbatch; a site may set it
# shellcheck shell=bash

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# stop CODE WORDS: one line, and the end.
stop() {
  echo "${me:-$(basename "$0")}: ${*:2}" >&2
  exit "$1"
}

# Modules one by one, so that the one that is missing is named.
load_modules() {
  [ $# -gt 0 ] || return 0
  local module log
  set +u  # what modules do is not written for it
  type module >/dev/null 2>&1 ||
    stop 2 "site $site wants modules ($*), but this shell has no module command; start submit.sh" \
      "from a login shell of bash, or set CAROUSEL_SITE"
  log=$(mktemp)
  for module in "$@"; do
    # In this very shell, or it would have no effect. Old modules fail without an exit code.
    if ! module load "$module" >"$log" 2>&1 || grep -q 'ERROR:' "$log"; then
      module="$module: $(grep -m 1 '[a-z]' "$log" || echo failed)"
      rm -f "$log"
      stop 2 "site $site: module load $module"
    fi
  done
  rm -f "$log"
  set -u
}

# with_key KEY VALUE WORD ...: sets `with_key` to the words, in which KEY=VALUE stands for whatever
# they say of KEY.
with_key() {
  local word
  with_key=()
  for word in "${@:3}"; do
    [[ $word == "$1="* ]] || with_key+=("$word")
  done
  with_key+=("$1=$2")
}

# Behind CAROUSEL_SITE is what each of these machines sets for everybody who logs in.
site=${CAROUSEL_SITE:-${NERSC_HOST:-${SYSTEMNAME:-${BSC_MACHINE:-generic}}}}
if [ ! -f "$scripts/sites/$site.sh" ]; then
  [ -z "${CAROUSEL_SITE:-}" ] ||
    stop 2 "CAROUSEL_SITE=$site: there is no $scripts/sites/$site.sh; copy generic.sh and adapt it"
  site=generic
fi
# shellcheck source=/dev/null
source "$scripts/sites/$site.sh"

if [ -z "${CAROUSEL:-}" ]; then
  # This tree's, that of the installation these scripts are part of, or whatever the path has.
  for CAROUSEL in "${scripts%/*}/build/release/carousel" "${scripts%/*/*/*}/bin/carousel" \
    "$(command -v carousel || true)"; do
    [ ! -x "$CAROUSEL" ] || break
  done
fi
[ -x "$CAROUSEL" ] || stop 2 "there is no program carousel; build it (jobscripts/README.md), or set CAROUSEL to its path"
