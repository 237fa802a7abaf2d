#!/bin/sh
# Pipelines of 1, 3 and 4 stages, which no shipped kernel has, give the same results: kernels with that many LDS slots
# for each tile, with a page table and without, pass a part of the conformance suite, with all checks on.
#   usage: stages.sh BIN
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for stages in 1 3 4; do
  for row in attn_fwd_f16_d64_q128_kv64_w4 attn_fwd_bf16_d64_q256_kv64_w8 attn_fwd_f16_d64_q64_kv32_w4_decode; do
    "$1/sluice-kernelgen" --row "$row" --stages "$stages" --pack "$folder/pack" 2>"$folder/log" ||
      { cat "$folder/log"; exit 1; }
    "$1/sluice-conformance" --device emulated --pack "$folder/pack" --all-kernels --case "$(echo "$row" | cut -d_ -f3)_d64_*_q65_kv*" >"$folder/log" 2>&1 ||
      { cat "$folder/log"; exit 1; }
    echo "$stages stages, $row: $(tail -n 1 "$folder/log")"
  done
done
