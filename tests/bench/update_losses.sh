#!/bin/sh
# Compares the tables of docs/concepts/f16_d128_losses.md with the timing model's current results, or rewrites them.
#
# usage: update_losses.sh [--check | --check-first] BUILD-FOLDER
# --check-first leaves out the table of all kernels.
set -eu
fix=--fix
first=
case $1 in
--check) fix= && shift ;;
--check-first) fix= && first=yes && shift ;;
esac
build=$1
here=$(dirname "$0")
page=$here/../../docs/concepts/f16_d128_losses.md
table() {
  name=$1
  shift
  python3 "$here/../tree/check_table.py" $fix "$page" "$name" \
    "$build/bin/kernel_losses" "$build/kernels/sluice.pack" "$@"
}
table "f16 d128 what-ifs" --what-if attn_fwd_f16_d128_q256_kv64_w8
table "f16 d128 listing" --listing attn_fwd_f16_d128_q256_kv64_w8
if [ -n "$first" ]; then exit; fi
names=
for kernel in f16_d128_q256_kv64_w8 f16_d128_q128_kv32_w4 bf16_d128_q256_kv64_w8 bf16_d128_q128_kv32_w4; do
  names="$names attn_fwd_$kernel attn_fwd_$kernel+causal"
done
# shellcheck disable=SC2086
table "d128 what-ifs" --what-if $names
