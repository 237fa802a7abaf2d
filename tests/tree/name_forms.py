#!/usr/bin/python3
"""Fails if a C or C++ source has a name of the form ofLane, of_lane or OfLane.

A name says first what a value is, and then whose: laneKey, not ofLane. `of` itself is a plain word (`members(auto &of)`).

usage: name_forms.py ROOT
"""
import pathlib
import re
import sys

from function_sizes import sources

# Raw strings first, since they may hold quotes. A character in quotes, so that '"' begins no string.
NOT_CODE = re.compile(r'R"([^\s()\\]*)\(.*?\)\1"' r'|"(?:[^"\\\n]|\\.)*"' r"|'(?:[^'\\\n]|\\.)'" r"|//[^\n]*|/\*.*?\*/", re.DOTALL)
FORM = re.compile(r"\b[oO]f[A-Z_]\w*")


def names_of(text):
    """(line from 1, name) of each name of the form, outside strings and comments."""
    code = NOT_CODE.sub(lambda found: "\n" * found[0].count("\n"), text)
    return [(code.count("\n", 0, found.start()) + 1, found[0]) for found in FORM.finditer(code)]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1]).resolve()
    paths = list(sources(root))
    wrong = [f"{path.relative_to(root).as_posix()}:{line}: {name} says whose it is before what it is"
             for path in paths for line, name in names_of(path.read_text(encoding="utf-8"))]
    if len(paths) < 1000:
        wrong.append(f"only {len(paths)} sources found")
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main()
