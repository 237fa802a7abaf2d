#!/bin/bash
# Checks that the Go example's output up to its report matches the C++ program's, byte for byte: greedy text, logits,
# and text sampled with the same random numbers. usage: compare_texts.sh GO CPP_PROGRAM MODEL, in the folder of this
# script
set -euo pipefail
go=$1 cpp=$2 model=$3
written() { sed '/^== [0-9]* prompts served\|^== what ran/,$d' "$1"; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$go" run ./examples/jargon_lm -model "$model" -bytes 60 >"$folder/go"
"$cpp" --model "$model" --bytes 60 --cache f16 >"$folder/cpp"
[[ $(written "$folder/go" | wc -c) -gt 300 ]] # there is something to compare
diff <(written "$folder/cpp") <(written "$folder/go")
