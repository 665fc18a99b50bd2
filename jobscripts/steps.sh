# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the scripts that people start: says which step runs and how long it took, keeps its
# output in a log, and shows the log's end when the step fails. It decides nothing.

# step LOG WORDS -- COMMAND ...
step() {
  local log=$1 words=$2 begin=$SECONDS status=0
  shift 3
  mkdir -p "$(dirname "$log")"
  printf '  %-52s' "$words"
  "$@" >"$log" 2>&1 </dev/null || status=$?
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
