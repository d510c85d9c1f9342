#!/usr/bin/env bash
# tests/fuzz/run.sh BUILD_DIR SECONDS: runs each fuzzer in BUILD_DIR for SECONDS, from the seeds in
# tests/fuzz/seeds/NAME. Findings are written to BUILD_DIR and end the run.
set -euo pipefail
build=$1
seconds=$2
here=$(cd "$(dirname "$0")" && pwd)
shopt -s nullglob
fuzzers=("$build"/fuzz_*)
count=0
for fuzzer in "${fuzzers[@]}"; do
  [[ -x "$fuzzer" && ! -d "$fuzzer" ]] || continue
  name=$(basename "$fuzzer")
  corpus=$build/corpus/$name
  mkdir -p "$corpus"
  seeds=()
  [[ -d "$here/seeds/$name" ]] && seeds=("$here/seeds/$name")
  echo "--- $name, $seconds s"
  "$fuzzer" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$build/$name-" -seed="${HOLDFAST_FUZZ_SEED:-1}" \
    "$corpus" "${seeds[@]}" > "$build/$name.log" 2>&1 || { tail -n 60 "$build/$name.log"; exit 1; }
  grep -E 'stat::(number_of_executed_units|average_exec_per_sec)' "$build/$name.log"
  count=$((count + 1))
done
[[ $count -gt 0 ]] || { echo "no fuzzers in $build" >&2; exit 1; }
echo "$count fuzzers clean"
