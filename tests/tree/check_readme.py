#!/usr/bin/python3
"""The README's program is the example that is built and run, and its support table is what the library says.

usage: check_readme.py ROOT SLUICE [--fix]
SLUICE is the command line's binary; --fix writes what should be there.
"""
import pathlib
import re
import subprocess
import sys

PROGRAM = re.compile(r"(?<=```c\n).*?(?=```\n)", re.DOTALL)
TABLE = re.compile(r"(?<=<!-- support table: begin \(sluice kernels --markdown\) -->\n).*?(?=<!-- support table: end -->)",
                   re.DOTALL)


def expected_readme(readme, program, table):
    """The README with both parts as they should be; ValueError if a part has no place."""
    for pattern, text, name in ((PROGRAM, program, "program"), (TABLE, table, "support table")):
        readme, places = pattern.subn(lambda _: text, readme)
        if places != 1:
            raise ValueError(f"the README has {places} places for its {name}, not one")
    return readme


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    table = subprocess.run([sys.argv[2], "kernels", "--markdown"], check=True, capture_output=True, text=True).stdout
    readme = (root / "README.md").read_text(encoding="utf-8")
    expected = expected_readme(readme, (root / "docs/examples/hello/hello.c").read_text(encoding="utf-8"), table)
    if len(table.splitlines()) < 3:
        sys.exit("the support table is empty: nothing would be checked")
    if expected == readme:
        print("the README agrees with the example and the library")
    elif "--fix" in sys.argv:
        (root / "README.md").write_text(expected, encoding="utf-8")
        print("README.md brought up to date")
    else:
        print(f"README.md differs; to bring it up to date: {' '.join(sys.argv)} --fix\nexpected:\n{expected}")
        sys.exit(1)


if __name__ == "__main__":
    main()
