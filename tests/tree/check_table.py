#!/usr/bin/python3
"""Checks that a page shows the table that a command prints, between two comments that name it.

usage: check_table.py [--rows] [--fix] PAGE NAME COMMAND...
--rows: only the first column is compared: figures that a compiler's next release may change are dated, not wrong. --fix
corrects the page.
"""
import argparse
import pathlib
import re
import shlex
import subprocess
import sys

parser = argparse.ArgumentParser(usage=__doc__)
parser.add_argument("--rows", action="store_true")
parser.add_argument("--fix", action="store_true")
parser.add_argument("page", type=pathlib.Path)
parser.add_argument("name")
parser.add_argument("command", nargs=argparse.REMAINDER)
options = parser.parse_args()

table = subprocess.run(options.command, check=True, stdout=subprocess.PIPE, text=True).stdout
text = options.page.read_text(encoding="utf-8")
name = re.escape(options.name)
place = re.compile(rf"(<!-- {name}: begin [^\n]*-->\n)(.*?)(<!-- {name}: end -->)", re.S)
assert len(place.findall(text)) == 1, f"{options.page} has no place for the {options.name}"
assert len(table.splitlines()) > 2, f"the {options.name} is empty: nothing would be checked"


def compared(lines):
    return [line.split("|")[1] for line in lines.splitlines()] if options.rows else lines


if options.fix:
    options.page.write_text(place.sub(lambda match: match[1] + table + match[3], text), encoding="utf-8")
elif compared(place.search(text)[2]) != compared(table):
    again = shlex.join([sys.argv[0], "--fix", *sys.argv[1:]])
    sys.exit(f"{options.page} does not show the {options.name}; run\n    {again}")
