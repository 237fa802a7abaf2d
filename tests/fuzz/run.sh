#!/bin/bash
# Runs a fuzzer for some seconds: run.sh FUZZER SECONDS MAX_BYTES INPUTS...
# New inputs that it finds are discarded, so that each run begins the same; an input that crashes it is kept in the
# working directory, and printed.
set -euo pipefail
fuzzer=$1 seconds=$2 max_bytes=$3
# No seconds: only the inputs that are there.
limit=(-max_total_time="$seconds")
if [[ $seconds == 0 ]]; then limit=(-runs=0); fi
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT

# LLVM's own libraries are not instrumented, so a container that they grew looks wrong to the instrumented code. The
# leak checker needs to trace the process, which containers forbid.
export UBSAN_OPTIONS=print_stacktrace=1
export ASAN_OPTIONS=detect_container_overflow=0:detect_leaks=0
"$fuzzer" -seed=1 "${limit[@]}" -max_len="$max_bytes" -timeout=20 -rss_limit_mb=3000 -print_final_stats=1 "$found" "${@:4}"
