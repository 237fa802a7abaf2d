#!/bin/sh
# fenced_loop.sh BIN-FOLDER KERNEL...: builds each kernel with workgroup fences instead of the wavefront fences of its
# loop. The backend then waits for all copies in the loop, which the budgets of the shipped kernels must notice.
set -eu
bin=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# refused CHECK KERNEL MESSAGE: the check fails on the fenced kernel, for that reason.
refused() {
  if "$bin/$1" "$work/fenced.co" "$2" > "$work/output"; then
    echo "$1 accepts the fenced $2"
    exit 1
  fi
  grep "^FAILED.*$3" "$work/output"
}

for kernel in "$@"; do
  "$bin/sluice-kernelgen" --variant "$kernel" --emit mlir > "$work/kernel.mlir"
  grep -q 'syncscope("wavefront")' "$work/kernel.mlir"
  sed 's/syncscope("wavefront")/syncscope("workgroup")/' "$work/kernel.mlir" > "$work/fenced.mlir"
  "$bin/sluice-kernelgen" --compile "$work/fenced.mlir" -o "$work/fenced.co"
  refused kernel_budgets "$kernel" 'no vmcnt(0)'
  # The same file without the fences is accepted: nothing else in the rebuild is to blame.
  "$bin/sluice-kernelgen" --compile "$work/kernel.mlir" -o "$work/intact.co"
  "$bin/loop_waits" "$work/intact.co" "$kernel"
done
