#!/usr/bin/python3
"""Checks that the tests named on the page of features exist: the patterns match cases, the tests are registered.

usage: check_features.py PAGE CONFORMANCE BUILD_FOLDER
A row that is supported names a pattern.
"""
import fnmatch
import json
import pathlib
import re
import subprocess
import sys


def problems(page, cases, tests):
    """The errors, a sentence each."""
    found = []
    table = page[page.index("| feature |"):].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|\n ").split(" | ")] for line in table.splitlines()[2:]]
    for row in rows:
        pattern = row[-1].strip("` |")
        if row[2] == "no":
            continue
        if "*" not in pattern:
            found.append(f"'{row[0]}' is supported, but no cases are named")
        elif not fnmatch.filter(cases, pattern):
            found.append(f"no case of the suite is like '{pattern}', which the row '{row[0]}' names")
    if not rows:
        found.append("the page has no rows: nothing would be checked")
    named = re.findall(r"`([a-z_0-9]+)`", page[:page.index("| feature |")])
    if not named:
        found.append("the page names no tests")
    return found + [f"no test is called '{name}'" for name in named if name not in tests]


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    page = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    cases = subprocess.run([sys.argv[2], "--device", "reference", "--list"], check=True, capture_output=True,
                           text=True).stdout.split()
    shown = subprocess.run(["ctest", "--test-dir", sys.argv[3], "--show-only=json-v1"], check=True, capture_output=True,
                           text=True).stdout
    found = problems(page, cases, {test["name"] for test in json.loads(shown)["tests"]})
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
