#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Carries the tests of a CUDA build to a machine that has a GPU and little else:
#   gpu.sh pack [BUILD]  collects programs, libraries, inputs and the tests of label gpu from BUILD
#                        (default build/cuda) in build/gpu-pack.tar.gz, at most 64 MiB
#   gpu.sh run [PACK]    unpacks PACK (default: build/gpu-pack.tar.gz) and runs every test in it,
#                        then trains the digits; 125 where no GPU is
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
limit=$((64 << 20))

# ---- pack ---------------------------------------------------------------------------------------

# One line per test, words separated by tabs: name, seconds, command. @ stands for the pack.
list_tests() {
  ctest --test-dir "$build" --show-only=json-v1 -L gpu | python3 -c '
import json, os, sys
build, source = sys.argv[1:]
for test in json.load(sys.stdin)["tests"]:
    words = test["command"]
    if words[1:2] == [source + "/tests/gpu_or_skip.sh"]:
        words = words[2:]
    limit = next(p["value"] for p in test["properties"] if p["name"] == "TIMEOUT")
    place = lambda w: w.replace(build, "@").replace(source, "@")
    words = ["python3" if os.path.basename(w).startswith("python") else
             "@/bin/mpiexec" if os.path.basename(w).startswith("mpiexec") else
             place(w) for w in words]
    print(test["name"], round(limit), *words, sep="\t")
' "$build" "$here"
}

# The GPU's machine has its own driver, CUDA and C library.
stays() {
  case $1 in
    libcuda.so.* | libcudart.so.* | libcublas*.so.* | libcudnn*.so.* | libnccl.so.*) ;;
    libc.so.* | libm.so.* | libpthread.so.* | libdl.so.* | librt.so.* | libresolv.so.*) ;;
    *) return 1 ;;
  esac
}

copy_libraries() {
  local name arrow path
  while read -r name arrow path _; do
    if [ "$arrow" != "=>" ] || stays "$name"; then
      continue
    elif [ "$path" = not ]; then
      echo "gpu.sh: a packed program needs $name, which is not found" >&2
      exit 1
    fi
    case $name in
      libstdc++.so.* | libgcc_s.so.*) cp -L "$path" "$pack/lib/gnu/" ;;
      *) cp -L "$path" "$pack/lib/" ;;
    esac
  done < <(find "$pack" -type f -perm -u+x -exec ldd {} + | sort -u)
}

copy_launcher() {
  local launcher proxy
  launcher=$(sed -n 's/^MPIEXEC_EXECUTABLE:FILEPATH=//p' "$build/CMakeCache.txt")
  proxy=$(dirname "$launcher")/hydra_pmi_proxy
  if [ ! -x "$proxy" ]; then
    echo "gpu.sh: $launcher is not the launcher of MPICH; leaving out the tests that need it" >&2
    sed -i '\#@/bin/mpiexec#d' "$pack/tests.list"
    return
  fi
  cp -L "$launcher" "$pack/bin/mpiexec"
  cp -L "$proxy" "$pack/bin/"
}

pack() {
  build=$(realpath "${1:-$here/build/cuda}")
  if [ ! -x "$build/carousel-engine" ]; then
    echo "gpu.sh: no engine in $build; run cmake --build --preset cuda first" >&2
    exit 2
  fi
  pack=$work/pack
  mkdir -p "$pack"/{bin,lib/gnu,tests/app,tests/reference,inputs}
  list_tests >"$pack/tests.list"
  copy_launcher
  local program
  for program in carousel carousel-engine $(grep -o '@/[^[:space:]]*' "$pack/tests.list" | sort -u); do
    program=${program#@/}
    [ ! -f "$build/$program" ] || cp "$build/$program" "$pack/$program"
  done
  copy_libraries
  find "$pack" -type f \( -perm -u+x -o -name '*.so.*' \) -exec strip --strip-unneeded {} +
  cp "$here"/inputs/{README.md,digits.toml,digits.h5} "$pack/inputs/"
  cp "$here"/tests/gpu_or_skip.sh "$pack/tests/"
  cp "$here/tests/app/run_test.py" "$pack/tests/app/"
  cp "$here"/tests/reference/{pytorch,resnets}.json "$pack/tests/reference/"

  local bytes
  tar -C "$pack" -czf "$archive" .
  bytes=$(stat -c %s "$archive")
  echo "$archive: $(wc -l <"$pack/tests.list") tests, $((bytes >> 20)) MiB"
  if [ "$bytes" -gt "$limit" ]; then
    echo "gpu.sh: the pack is larger than $((limit >> 20)) MiB" >&2
    exit 1
  fi
}

# ---- run ----------------------------------------------------------------------------------------

add_folder() { export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$1; }

# Where the loader does not find CUDA by itself, it is in one of these.
find_libraries() {
  local folder name
  export LD_LIBRARY_PATH=$pack/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  for name in $(ldd "$pack/carousel-engine" 2>&1 | sed -n 's/^\s*\(\S*\) => not found.*/\1/p'); do
    for folder in "${CUDA_HOME:-}"/lib64 "${CUDA_PATH:-}"/lib64 /usr/local/cuda*/lib64 \
      /usr/local/cuda*/targets/*/lib /usr/local/nvidia/lib64 /usr/lib/x86_64-linux-gnu/nvidia/* \
      /opt/nvidia/hpc_sdk/Linux_x86_64/*/cuda/lib64 \
      "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null)"/nvidia/*/lib; do
      [ -e "$folder/$name" ] || continue
      add_folder "$folder"
      break
    done
  done
  # A compiler's library newer than the machine's own, only if need be: Python uses these folders too.
  if ldd "$pack/carousel-engine" 2>&1 | grep -q "version .* not found"; then
    add_folder "$pack/lib/gnu"
  fi
}

passed=0
failed=0
skipped=0

# report NAME CODE SECONDS LOG
report() {
  local word
  case $2 in
    0) word=passed; passed=$((passed + 1)) ;;
    125) word=skipped; skipped=$((skipped + 1)) ;;
    *) word="FAILED (exit code $2)"; failed=$((failed + 1)) ;;
  esac
  printf '%-36s %4d s  %s\n' "$1" "$3" "$word"
  [ "$2" -eq 0 ] || tail -n 40 "$4"
}

run_tests() {
  local name seconds words start code
  while IFS=$'\t' read -r -a words; do
    name=${words[0]} seconds=${words[1]}
    words=("${words[@]:2}")
    words=("${words[@]//@/$pack}")
    start=$SECONDS code=0
    if [ "${words[0]}" = python3 ] && ! python3 -c 'import h5py, numpy' 2>/dev/null; then
      echo "python3 has no h5py" >"$work/log" && code=125
    else
      timeout "$seconds" "${words[@]}" >"$work/log" 2>&1 </dev/null || code=$?
    fi
    report "$name" "$code" $((SECONDS - start)) "$work/log"
  done <"$pack/tests.list"
}

# The digits on one device: any rule gets nineteen of twenty right.
train() {
  local rule start code accuracy
  for rule in dp cdp-v2; do
    start=$SECONDS code=0
    timeout 300 "$pack/carousel" train "$pack/inputs/digits.toml" "parallel.rule=$rule" \
      "run.output=$work/$rule" >"$work/log" 2>&1 </dev/null || code=$?
    accuracy=$("$pack/carousel" inspect "$work/$rule" 2>/dev/null |
      sed -n 's/.*accuracy \([0-9.]*\).*/\1/p' | tail -n 1)
    if [ "$code" -eq 0 ] && ! awk -v a="${accuracy:-0}" 'BEGIN { exit !(a >= 0.95) }'; then
      code=1
    fi
    report "digits.$rule, accuracy ${accuracy:--}" "$code" $((SECONDS - start)) "$work/log"
  done
}

run() {
  bash "$here/tests/gpu_or_skip.sh" true || exit 125
  archive=${1:-$archive}
  if [ ! -f "$archive" ]; then
    echo "gpu.sh: there is no $archive; run gpu.sh pack where the build is" >&2
    exit 2
  fi
  pack=$work/pack
  mkdir "$pack"
  tar -C "$pack" -xzf "$archive"
  find_libraries
  export OMP_NUM_THREADS=1 OMP_PROC_BIND=false CAROUSEL_FIXTURES=$pack/tests/reference
  run_tests
  train
  echo
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

archive=$here/build/gpu-pack.tar.gz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case ${1:-} in
  pack | run) "$@" ;;
  *) echo "usage: gpu.sh pack [BUILD] | run [PACK]" >&2; exit 2 ;;
esac
