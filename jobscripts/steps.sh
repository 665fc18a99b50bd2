# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the scripts that people start. step prints which step runs and how long it took, keeps
# its output in a log, and shows the end of the log if the step fails; fetch gets a Python package.
# shellcheck shell=bash

# Shows the newest "[42/189]" of a log, again and again.
show_progress() {
  while sleep 1; do
    printf '\r  %-52s%8s' "$2" "$(tail -c 400 "$1" | grep -ao '^\[[0-9/]*\]' | tail -n 1)"
  done
}

# step LOG WORDS -- COMMAND ...
step() {
  local log=$1 words=$2 begin=$SECONDS status=0 progress=
  shift 3
  mkdir -p "$(dirname "$log")"
  printf '  %-52s' "$words"
  if [ -t 1 ]; then
    : >"$log"
    show_progress "$log" "$words" &
    progress=$!
  fi
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if [ -n "$progress" ]; then
    kill "$progress" || true
    wait "$progress" 2>/dev/null || true
    printf '\r  %-52s' "$words"
  fi
  if [ "$status" -eq 0 ]; then
    printf '%6d s\n' $((SECONDS - begin))
    return 0
  fi
  printf '  failed\n'
  {
    echo "The last lines of $log:"
    tail -n 30 "$log" | sed 's/^/    /'
  } >&2
  return "$status"
}

# fetch CACHE WORK FILE SHA256 REQUIREMENT [OPTION...]: CACHE/FILE by pip unless it is there, whole or
# not at all. WORK is a folder of the caller's on the same file system.
fetch() {
  local archive=$1/$3
  if [ ! -f "$archive" ]; then
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$2" "${@:6}" "$5"
    mv "$2/$3" "$archive"
  fi
  if ! echo "$4  $archive" | sha256sum --check --status; then
    rm -f "$archive"
    echo "${0##*/}: $3 is damaged and was removed; run again" >&2
    exit 1
  fi
}
