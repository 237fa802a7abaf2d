#!/bin/sh
# Generates a kernel behind the command line of a compiler, so that ccache can keep kernels as it keeps object files.
#
# usage: kernel_compiler.sh --generator=PROGRAM --kernel=NAME --chip=CHIP -c SOURCE -o PACK
# SOURCE has nothing to say: ccache wants a file.
set -eu

while [ $# -gt 0 ]; do
  case $1 in
    --generator=*) generator=${1#*=} ;;
    --kernel=*) kernel=${1#*=} ;;
    --chip=*) chip=${1#*=} ;;
    -o)
      pack=$2
      shift
      ;;
  esac
  shift
done
exec "$generator" --row "$kernel" --chips "$chip" --pack "$pack"
