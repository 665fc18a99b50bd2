#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Carries the tests of a CUDA build to a machine that has a GPU and little else:
#   gpu.sh pack [BUILD]  collects programs, libraries, inputs and the tests of label gpu from BUILD
#                        (default build/cuda) in build/gpu-pack.tar.xz, at most 64 MiB
#   gpu.sh run [PACK] [PART...]  unpacks PACK (default: build/gpu-pack.tar.xz) and does what PARTs
#                        name, by default all, in this order; 125 where no GPU is
#     tests      every test of label gpu: kernels and networks against PyTorch's numbers in fp32 and
#                bf16, with vendors' kernels and our own, and the bits of placements on one GPU
#     digits     trains them under two rules, and checks the accuracy
#     nccl       the same by NCCL, one rank to itself and, where there are two GPUs, two: same bits
#     sanitizer  compute-sanitizer over the tests of layers and of the launch queue
#     bench      gpu.py: images per second beside the machine's own PyTorch; CAROUSEL_GPU_BENCH
#                holds more words for it, as "--rounds 1 --no-compile"
# At most 60 lines are printed; whole outputs are in gpu-logs beside PACK. Exit code 1 if anything
# failed; what the machine lacks is named and skipped.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
limit=$((64 << 20))
lines=60

# ---- pack ---------------------------------------------------------------------------------------

# One line per test, words separated by tabs: name, seconds, command. @ stands for the pack. Kernels
# come first and whole programs last: what fails early explains most of what fails later.
list_tests() {
  ctest --test-dir "$build" --show-only=json-v1 -L gpu | python3 -c '
import json, os, sys
build, source = sys.argv[1:]
tests = json.load(sys.stdin)["tests"]
whole = ("app.", "bench.", "jobscripts.")
rank = lambda name: 0 if name.startswith("layers.") else 2 if name.startswith(whole) else 1
for test in sorted(tests, key=lambda test: rank(test["name"])):
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
    libcuda.so.* | libcudart.so.* | libcublas*.so.* | libcudnn*.so.* | \
      libnvrtc.so.* | libnccl.so.* | libcupti.so.*) ;;
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
  mkdir -p "$pack"/{app,bin,lib/gnu,tests/bench,tests/reference}
  list_tests >"$pack/tests.list"
  copy_launcher
  local program
  for program in carousel carousel-engine $(grep -o '@/[^[:space:]]*' "$pack/tests.list" | sort -u); do
    program=${program#@/}
    if [ -f "$build/$program" ]; then
      cp "$build/$program" "$pack/$program"
    elif [[ $program == tests/test_* || $program == bench_* ]]; then
      echo "gpu.sh: $build has no $program; build gpu_code first" >&2
      exit 1
    fi
  done
  local tool=$build/tests/bench_kernel_times.so
  [ ! -f "$tool" ] || cp "$tool" "$pack/tests/"
  copy_libraries
  find "$pack" -type f \( -perm -u+x -o -name '*.so.*' \) -exec strip --strip-unneeded {} +
  cp -r "$here"/{inputs,jobscripts} "$pack/"
  cp -r "$here/app/report" "$pack/app/"
  cp -r "$here"/tests/{app,jobscripts,gpu_or_skip.sh} "$pack/tests/"
  cp "$here"/tests/bench/{gpu,against_pytorch}.py "$pack/tests/bench/"
  cp "$here"/tests/reference/*.{h5,json,py} "$pack/tests/reference/"

  local bytes
  # Programs have most of their code in common, within reach of a dictionary this large.
  python3 -c '
import lzma, sys, tarfile
filters = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": 192 << 20}]
with lzma.open(sys.argv[2], "wb", filters=filters) as file:
    with tarfile.open(fileobj=file, mode="w|") as archive:
        archive.add(sys.argv[1], ".")
' "$pack" "$archive"
  bytes=$(stat -c %s "$archive")
  echo "$archive: $(wc -l <"$pack/tests.list") tests, $((bytes >> 20)) MiB"
  if [ "$bytes" -gt "$limit" ]; then
    echo "gpu.sh: the pack is larger than $((limit >> 20)) MiB" >&2
    exit 1
  fi
}

# ---- run ----------------------------------------------------------------------------------------

add_folder() { export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$1; }

# Of programs, what the loader does not find.
lacking() { ldd "$@" 2>&1 | sed -n 's/^\s*\(\S*\) => not found.*/\1/p' | sort -u; }

# Where the loader does not find CUDA by itself, it is in one of these.
find_libraries() {
  local folder name tool=$pack/tests/bench_kernel_times.so
  local -a programs=("$pack/carousel-engine")
  [ ! -f "$tool" ] || programs+=("$tool")
  export LD_LIBRARY_PATH=$pack/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  for name in $(lacking "${programs[@]}"); do
    for folder in "${CUDA_HOME:-}"/lib64 "${CUDA_PATH:-}"/lib64 /usr/local/cuda*/lib64 \
      /usr/local/cuda*/targets/*/lib /usr/local/cuda*/extras/CUPTI/lib64 \
      /usr/local/nvidia/lib64 /usr/lib/x86_64-linux-gnu/nvidia/* \
      /opt/nvidia/hpc_sdk/Linux_x86_64/*/cuda/lib64 \
      "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null)"/nvidia/*/lib; do
      [ -e "$folder/$name" ] || continue
      add_folder "$folder"
      break
    done
  done
  for name in $(lacking "$pack/carousel-engine"); do
    echo "gpu.sh: this machine has no $name" >&2
    exit 1
  done
  # A compiler's library newer than the machine's own, only if need be: Python uses these folders too.
  if ldd "$pack/carousel-engine" 2>&1 | grep -q "version .* not found"; then
    add_folder "$pack/lib/gnu"
  fi
}

passed=0
failed=0
skipped=0
printed=0

# Prints a line while there is room for it.
say() {
  printed=$((printed + 1))
  [ "$printed" -ge "$lines" ] || printf '%.160s\n' "$1"
}

# execute NAME SECONDS COMMAND...: leaves how it ended, and after how long, beside its output.
execute() {
  local name=$1 seconds=$2 start=$SECONDS code=0
  shift 2
  timeout "$seconds" "$@" >"$logs/$name.log" 2>&1 </dev/null || code=$?
  echo "$code $((SECONDS - start))" >"$logs/$name.code"
}

# judge NAME: counts how it ended, and shows the end of what failed.
judge() {
  local name=$1 log=$logs/$1.log code seconds line
  # What could not write how it ended, as on a full disk, failed.
  read -r code seconds <"$logs/$name.code" || code=1 seconds="?"
  case $code in
    0) passed=$((passed + 1)) ;;
    125) skip "$name" "$(tail -n 1 "$log")" ;;
    *)
      failed=$((failed + 1))
      say "FAILED $name, exit code $code after $seconds s"
      while IFS= read -r line; do say "    $line"; done < <(tail -n 4 "$log")
      ;;
  esac
  return "$code"
}

run_one() {
  execute "$@"
  judge "$1"
}

skip() {
  skipped=$((skipped + 1))
  say "skipped $1: $2"
}

# Several at a time: most of a test's time goes to its start and to the host.
part_tests() {
  local words name names=() running=0 jobs=$(($(nproc) / 2)) h5py=yes
  python3 -c 'import h5py, numpy' 2>/dev/null || h5py=
  while IFS=$'\t' read -r -a words; do
    if [ "${words[2]}" = python3 ] && [ -z "$h5py" ]; then
      skip "${words[0]}" "python3 has no h5py"
      continue
    fi
    if [ "$running" -ge $((jobs > 1 ? jobs : 1)) ]; then
      wait -n
      running=$((running - 1))
    fi
    execute "${words[0]}" "${words[1]}" "${words[@]:2}" &
    running=$((running + 1))
    names+=("${words[0]}")
  done < <(sed "s#@#$pack#g" "$pack/tests.list")
  wait
  for name in "${names[@]}"; do judge "$name" || true; done
}

# train NAME KEY=VALUE...: the digits, of which any rule gets nineteen of twenty right.
train() {
  local name=$1 accuracy
  shift
  run_one "$name" 300 "${launcher[@]}" "$pack/carousel" train "$pack/inputs/digits.toml" \
    "run.output=$work/$name" "$@" || return 0
  accuracy=$("$pack/carousel" inspect "$work/$name" | sed -n 's/.*accuracy \([0-9.]*\).*/\1/p' |
    tail -n 1)
  run_one "$name.accuracy" 10 awk -v a="${accuracy:-0}" 'BEGIN { print a; exit !(a >= 0.95) }' || true
}

part_digits() {
  launcher=()
  for rule in dp cdp-v2; do train "digits.$rule" "parallel.rule=$rule"; done
}

part_nccl() {
  local ranks
  for ranks in 1 2; do
    if [ ! -x "$pack/bin/mpiexec" ]; then
      skip "nccl.$ranks" "the pack has no launcher"
    elif [ "$(find /dev -maxdepth 1 -name 'nvidia[0-9]*' | wc -l)" -lt "$ranks" ]; then
      skip "nccl.$ranks" "it takes $ranks GPUs"
    else
      local keys=("parallel.micro_batches=$ranks" "parallel.placement=replicated")
      launcher=()
      train "nccl.$ranks.alone" "${keys[@]}" parallel.transport=local
      launcher=("$pack/bin/mpiexec" -n "$ranks")
      train "nccl.$ranks" "${keys[@]}" parallel.transport=nccl
      run_one "nccl.$ranks.bits" 60 "$pack/carousel" diff "$work/nccl.$ranks.alone" \
        "$work/nccl.$ranks" || true
    fi
  done
}

part_sanitizer() {
  local program
  if ! command -v compute-sanitizer >/dev/null; then
    skip sanitizer "this machine has no compute-sanitizer"
    return
  fi
  for program in "$pack"/tests/test_layers_{add,channels_last,linear,pool,relu,token_layers,vendor_layers} \
    "$pack/tests/test_train_launch_queue"; do
    [ ! -x "$program" ] || run_one "sanitizer.${program##*/test_}" 600 compute-sanitizer \
      --error-exitcode 1 "$program" || true
  done
}

part_bench() {
  local line
  if python3 -c 'import torch, torchvision, h5py' 2>/dev/null; then
    # shellcheck disable=SC2086  # words, not one
    run_one bench 1800 python3 "$pack/tests/bench/gpu.py" --build . ${CAROUSEL_GPU_BENCH:-} || true
    while IFS= read -r line; do say "$line"; done <"$logs/bench.log"
  else
    skip bench "python3 lacks torch, torchvision or h5py"
  fi
}

run() {
  bash "$here/tests/gpu_or_skip.sh" true || exit 125
  if [ $# -gt 0 ] && [ "${1%.tar.xz}" != "$1" ]; then
    archive=$1
    shift
  fi
  [ $# -gt 0 ] || set -- tests digits nccl sanitizer bench
  local part
  for part in "$@"; do
    if [ "$(type -t "part_$part")" != function ]; then
      echo "gpu.sh: no part '$part'; known: tests, digits, nccl, sanitizer, bench" >&2
      exit 2
    fi
  done
  if [ ! -f "$archive" ]; then
    echo "gpu.sh: there is no $archive; run gpu.sh pack where the build is" >&2
    exit 2
  fi
  logs=$(dirname "$(realpath "$archive")")/gpu-logs
  pack=$work/pack
  mkdir -p "$pack" "$logs"
  python3 -c '
import sys, tarfile
with tarfile.open(sys.argv[1]) as archive:
    archive.extractall(sys.argv[2])
' "$archive" "$pack"
  find_libraries
  export OMP_NUM_THREADS=1 OMP_PROC_BIND=false CAROUSEL_FIXTURES=$pack/tests/reference
  for part in "$@"; do "part_$part"; done
  echo "$passed passed, $failed failed, $skipped skipped; outputs in $logs"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

archive=$here/build/gpu-pack.tar.xz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case ${1:-} in
  pack | run) "$@" ;;
  *) echo "usage: gpu.sh pack [BUILD] | run [PACK] [PART...]" >&2; exit 2 ;;
esac
