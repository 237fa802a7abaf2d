#!/bin/sh
# Generates a kernel behind the command line of a compiler, so that ccache can keep kernels as it keeps object files.
#
# usage: kernel_compiler.sh --kernel=NAME --chip=CHIP -c SOURCE -o PACK
# SLUICE_KERNELGEN in the environment is the generator: ccache compares its contents, not where a clone has it. SOURCE has
# nothing to say: ccache wants a file.
set -eu

while [ $# -gt 0 ]; do
  case $1 in
    --kernel=*) kernel=${1#*=} ;;
    --chip=*) chip=${1#*=} ;;
    -o)
      pack=$2
      shift
      ;;
  esac
  shift
done
exec "$SLUICE_KERNELGEN" --row "$kernel" --chips "$chip" --pack "$pack"
