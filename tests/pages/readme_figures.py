#!/usr/bin/python3
"""Checks the README's count of attention kernels, and the size of the pack to a tenth of a megabyte.

usage: readme_figures.py README SLUICE PACK
"""
import pathlib
import re
import subprocess
import sys

readme, sluice, pack = sys.argv[1:]
found = re.search(r"\*\*(\d+) attention kernels in (\d+\.\d) MB\*\*", pathlib.Path(readme).read_text(encoding="utf-8"))
assert found, f"{readme} does not say how many attention kernels there are, and their size"

lines = subprocess.run([sluice, "kernels"], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
kernels = sum(line.startswith("attn_fwd_") for line in lines)
assert kernels == int(found[1]), f"{readme} says {found[1]} attention kernels; the library has {kernels}"

megabytes = pathlib.Path(pack).stat().st_size / 1e6
# Compilers differ by some bytes per kernel.
assert abs(megabytes - float(found[2])) <= 0.1, f"{readme} says {found[2]} MB; the pack has {megabytes:.2f} MB"
