#!/usr/bin/python3
"""Compares the types and functions of a library's debug information with frozen/libsluice.abi, by libabigail.

usage: check_diff.py LIBRARY HEADER_FOLDER [--update]

It sees what a list of sizes does not: types of members, arguments, results and callbacks. abidiff reports a member
appended to a struct like any other change, and if told to ignore that, it also ignores other changes of the same
struct. So this program reads the report: a line that neither is a location nor says that a struct has grown at its end
is a break. --update writes down additions, and refuses all other changes.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

BASELINE = pathlib.Path(__file__).resolve().parent / "frozen/libsluice.abi"
# Not abidiff's own --headers-dir: it silently drops types without a location, as in the baseline, as private.
DESCRIBE = ["abidw", "--drop-private-types", "--exported-interfaces-only", "--no-show-locs", "--no-corpus-path",
            "--no-comp-dir-path", "--no-elf-needed", "--headers-dir"]
COMPARE = ["abidiff", "--leaf-changes-only", "--no-added-syms"]
TOOL_FAILED, CHANGED, INCOMPATIBLE = 1 | 2, 4, 8
SUMMARY = re.compile(r"Leaf changes summary: |Changed leaf types summary: |Removed/Changed/Added (functions|variables) "
                     r"summary: 0 Removed, 0 Changed, 0 Added ")


def describe(library, folder):
    text = subprocess.run([*DESCRIBE, folder, library], check=True, capture_output=True, text=True).stdout
    if "<function-decl " not in text:
        sys.exit(f"{library} describes no function: has it no debug information?")
    return re.sub(r" path='[^']*/", " path='", text) # where it was built is of no interest


def incompatible(report):
    """The lines of a report that say more than that structs have grown at their ends."""
    found, bits = [], 0
    for line in report.splitlines():
        if re.fullmatch(r"'struct sluice_\w+' changed:", line):
            bits = 0
        elif match := re.fullmatch(r"  type size changed from (\d+) to \d+ \(in bits\)", line):
            bits = int(match.group(1))
        elif match := re.fullmatch(r"    '.*', at offset (\d+) \(in bits\)", line):
            if bits == 0 or int(match.group(1)) < bits:
                found.append(line)
        elif line and not re.fullmatch(r"  \d+ data member insertions?:", line) and not SUMMARY.match(line):
            found.append(line)
    return found


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--update"]
    if len(arguments) != 2:
        sys.exit(__doc__)
    library, folder = arguments
    text = describe(library, folder)
    update = len(arguments) < len(sys.argv) - 1
    if update and not BASELINE.exists():
        BASELINE.write_text(text)
    with tempfile.TemporaryDirectory() as work:
        now = pathlib.Path(work) / "now.abi"
        now.write_text(text)
        done = subprocess.run([*COMPARE, BASELINE, now], capture_output=True, text=True)
    if done.returncode & TOOL_FAILED or done.returncode & ~(CHANGED | INCOMPATIBLE):
        sys.exit(f"abidiff failed with {done.returncode}:\n{done.stdout}{done.stderr}")
    if done.returncode & INCOMPATIBLE or incompatible(done.stdout):
        sys.exit(f"breaks of the ABI, against {BASELINE.name}:\n{done.stdout}")
    if update:
        BASELINE.write_text(text)
    print(f"compatible with {BASELINE.name}, {'with additions' if done.returncode else 'without a change'}:"
          f" {text.count('<function-decl ')} functions")


if __name__ == "__main__":
    main()
