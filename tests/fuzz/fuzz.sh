#!/usr/bin/env bash
# ./dev fuzz [--seconds 60] [target ...]: builds the fuzz targets with clang's libFuzzer, AddressSanitizer and
# UndefinedBehaviorSanitizer, and lets each look for trouble. What it finds stays in build-fuzz/found/TARGET.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

seconds=60
if [ "${1:-}" = --seconds ]; then
  seconds=$2
  shift 2
fi
clang=$(command -v clang++ clang++-{19,18,17,16} | head -n 1 || true)
if [ -z "$clang" ]; then
  echo "fuzz: skipped: it needs clang 16 or newer (apt-get install clang-16 libclang-rt-16-dev)" >&2
  exit 0
fi
cmake -S . -B build-fuzz -G Ninja -DCMAKE_CXX_COMPILER="$clang" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCMAKE_CXX_FLAGS="-fsanitize=fuzzer-no-link -Wno-unknown-warning-option -Wno-ignored-attributes" \
  -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" -DMUSTER_SANITIZE=address,undefined -DMUSTER_FUZZ=ON \
  -DMUSTER_PYTHON=OFF -DMUSTER_EXAMPLES=OFF >build-fuzz.log || { cat build-fuzz.log >&2; exit 1; }
rm -f build-fuzz.log
targets=("$@")
[ $# -gt 0 ] || targets=(frame credentials handshake first_frame hello launch_files rendezvous messages recovery_log settings checkpoint data_files pictures)
cmake --build build-fuzz --parallel "${MUSTER_JOBS:-$(nproc)}" --target "${targets[@]/#/fuzz_}"

status=0
for target in "${targets[@]}"; do
  mkdir -p "build-fuzz/corpus/$target" "build-fuzz/found/$target"
  echo "fuzz $target, $seconds s"
  UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 "build-fuzz/tests/fuzz/fuzz_$target" -max_total_time="$seconds" \
    -rss_limit_mb=2048 -timeout=10 -max_len=65536 -artifact_prefix="build-fuzz/found/$target/" -print_final_stats=1 \
    "build-fuzz/corpus/$target" "tests/fuzz/corpus/$target" >"build-fuzz/$target.log" 2>&1 || status=1
  grep -E 'number_of_executed_units|ERROR|SUMMARY|runtime error|Test unit written' "build-fuzz/$target.log" || true
done
exit "$status"
