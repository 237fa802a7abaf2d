#!/usr/bin/python3
"""Writes sluice.h as another release might have it.

usage: make_header.py newer|older HEADER OUT

newer: every sized struct has a member `appended` at its end.
older: sluice_args ends after lse, as it did before it had starts of sequences; libraries still accept that size.
"""
import pathlib
import re
import sys


def newer(text):
    return re.subn(r"(typedef struct \w+ \{\n  uint32_t struct_size;[^}]*)\} (sluice_\w+);",
                   r"\1  uint64_t appended;\n} \2;", text)


def older(text):
    return re.subn(r"(\n  sluice_tensor lse;[^\n]*\n)\n  const int32_t \*q_starts;[^}]*(\} sluice_args;)", r"\1\2", text)


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("newer", "older"):
        sys.exit(__doc__)
    source = pathlib.Path(sys.argv[2]).read_text()
    text, changes = newer(source) if sys.argv[1] == "newer" else older(source)
    expected = source.count("\n  uint32_t struct_size;") if sys.argv[1] == "newer" else 1
    if changes != expected:
        sys.exit(f"{sys.argv[2]}: {changes} structs changed, not {expected}")
    pathlib.Path(sys.argv[3]).write_text(text)


if __name__ == "__main__":
    main()
