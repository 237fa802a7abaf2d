#!/bin/bash
# Builds a sanitizer preset and runs its tests: run.sh SOURCE PRESET PACK LABELS
# PACK is the kernel pack of the build that runs this test; generating it again under a sanitizer would prove nothing.
set -euo pipefail
source=$1 preset=$2 pack=$3 labels=$4
cd "$source"

# LLVM's own libraries are not instrumented, so a container that they grew looks wrong to the instrumented code. Neither
# are the programs that `sluice-emu exec` runs: there libsluice loads the sanitizer late.
export ASAN_OPTIONS=detect_container_overflow=0:detect_stack_use_after_return=1:verify_asan_link_order=0
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1

cmake --preset "$preset" "-DSLUICE_KERNEL_PACK=$pack" -DSLUICE_BUILD_TESTS=ON
cmake --build "build/$preset"
ctest --test-dir "build/$preset" --parallel "$(nproc)" --output-on-failure --no-tests=error -L "$labels"
