#!/bin/sh
# swizzle_mutation.sh BIN-FOLDER KERNEL...: builds each kernel with the swizzle on the copying side only, and compares.
set -eu
bin=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for kernel in "$@"; do
  "$bin/sluice-kernelgen" --variant "$kernel" -o "$work/intact.co"
  # After the tile pipeline the copies have their addresses; a tile's type only says how it is read.
  "$bin/sluice-kernelgen" --variant "$kernel" --emit input | "$bin/sluice-opt" --sluice-tile-pipeline > "$work/tiles.mlir"
  grep -q 'xor<8, 8>>' "$work/tiles.mlir"
  sed 's/, xor<8, 8>>/>/g' "$work/tiles.mlir" | "$bin/sluice-opt" --sluice-lowering-pipeline > "$work/broken.mlir"
  "$bin/sluice-kernelgen" --compile "$work/broken.mlir" -o "$work/broken.co"
  "$bin/swizzle_mutation" "$kernel" "$work/intact.co" "$work/broken.co"
done
