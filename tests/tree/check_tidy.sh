#!/bin/bash
# usage: check_tidy.sh RUN_CLANG_TIDY BUILD [FILES], in the project's root: checks the C++ files of src/ that BUILD compiles, or
# only those whose path in src/, without ".cpp", matches the regular expression FILES.
set -euo pipefail
path="$PWD/src/${3:-.*}[.]cpp"
grep -qE "\"file\": \"$path\"" "$2/compile_commands.json" || { echo "no such file is compiled" >&2; exit 1; }
exec "$1" -quiet -hide-progress -j 2 -p "$2" "^$path\$"
