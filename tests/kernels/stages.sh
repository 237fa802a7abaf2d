#!/bin/sh
# Pipelines of 1, 3 and 4 stages, which no shipped kernel has, compute the same: kernels with that many LDS slots
# for each tile pass a part of the conformance suite, with all checks on.
#   usage: stages.sh BIN
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for stages in 1 3 4; do
  for row in f16,64,64,4 bf16,64,64,8; do
    "$1/sluice-kernelgen" --row "$row" --stages "$stages" --pack "$folder/pack" 2>"$folder/log" ||
      { cat "$folder/log"; exit 1; }
    "$1/sluice-conformance" --device emulated --pack "$folder/pack" --all-kernels --case "${row%%,*}_d64_*_q65_kv*" >"$folder/log" 2>&1 ||
      { cat "$folder/log"; exit 1; }
    echo "$stages stages, $row: $(tail -n 1 "$folder/log")"
  done
done
