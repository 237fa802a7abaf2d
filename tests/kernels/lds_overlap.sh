#!/bin/sh
# lds_overlap.sh BIN-FOLDER KERNELS.mlir: builds the kernels as reuse-lds leaves them, without its barrier, and with
# offsets that it would never assign; runs all three.
set -eu
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compile() {
  "$bin/sluice-opt" --sluice-lowering-pipeline "$work/$1.mlir" -o "$work/$1.lowered.mlir"
  "$bin/sluice-kernelgen" --compile "$work/$1.lowered.mlir" -o "$work/$1.co"
}
"$bin/sluice-opt" --pass-pipeline='builtin.module(gpu.module(gpu.func(annotate-lds-liveness,reuse-lds)))' \
  "$2" -o "$work/intact.mlir" 2> /dev/null
compile intact
# The barrier that reuse-lds has added is the one right before a live_in.
sed -e '/sluice\.barrier/{N' -e '/live_in/s/.*\n//' -e '}' "$work/intact.mlir" > "$work/unguarded.mlir"
compile unguarded
sed 's/offset = [0-9]*/offset = 0/' "$work/intact.mlir" > "$work/overlapping.mlir"
compile overlapping
"$bin/lds_overlap" "$work/intact.co" "$work/unguarded.co" "$work/overlapping.co"
