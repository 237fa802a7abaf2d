#!/bin/bash
# usage: check_shell.sh SHELLCHECK, in the project's root: checks every shell script that git knows.
set -euo pipefail
mapfile -d '' files < <(git grep -lz -I -E '^#!/bin/(ba)?sh' -- . ':!*.md')
[[ ${#files[@]} -gt 5 ]] || { echo "only ${#files[@]} scripts found: the check would prove nothing" >&2; exit 1; }
exec "$1" "${files[@]}"
