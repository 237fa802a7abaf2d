#!/usr/bin/python3
"""docs/concepts/chips.md shows the chip table of the generator.

usage: check_chip_table.py ROOT KERNELGEN [--fix]
"""
import pathlib
import re
import subprocess
import sys

root, kernelgen = pathlib.Path(sys.argv[1]), sys.argv[2]
page = root / "docs/concepts/chips.md"
table = subprocess.run([kernelgen, "--chip-table"], check=True, capture_output=True, text=True).stdout
text = page.read_text()
place = re.compile(r"(<!-- chip table: begin [^\n]*-->\n).*?(<!-- chip table: end -->)", re.S)
assert len(place.findall(text)) == 1, "docs/concepts/chips.md has no place for the chip table"
expected = place.sub(lambda match: match[1] + table + match[2], text)
if "--fix" in sys.argv:
    page.write_text(expected)
elif text != expected:
    sys.exit("docs/concepts/chips.md does not show the chip table of kernels/target/Chips.cpp; run\n"
             f"    {' '.join(sys.argv)} --fix")
