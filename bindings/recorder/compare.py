#!/usr/bin/python3
"""Runs a program that makes the calls of calls.txt, and compares what the library was given with that file.

usage: compare.py [--write] [--without NAME]... RECORDER PROGRAM [ARGUMENT]...

RECORDER is loaded in the place of libsluice.so, and writes to the file that SLUICE_RECORD names; so does the program, before
each call the line "call NAME". --without: a call that the program does not make. --write writes calls.txt, from C.
"""
import argparse
import difflib
import os
import pathlib
import subprocess
import sys
import tempfile

EXPECTED = pathlib.Path(__file__).resolve().parent / "calls.txt"
SKIPPED = 77  # for CTest, from a program that lacks something


def without(text, names):
    """The recording without the calls of these names."""
    calls = text.split("call ")
    unknown = set(names) - {call.split("\n", 1)[0] for call in calls}
    if unknown:
        sys.exit(f"there is no call {', '.join(unknown)}")
    return "call ".join(call for call in calls if call.split("\n", 1)[0] not in names)


def recorded(recorder, program):
    """What the program's calls gave to the library."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "recording.txt"
        # A library of the same SONAME is not loaded a second time, wherever the program would find it.
        environment = {**os.environ, "LD_PRELOAD": recorder, "SLUICE_RECORD": str(file)}
        status = subprocess.run(program, env=environment, check=False).returncode
        if status == SKIPPED:
            sys.exit(status)
        if status != 0:
            sys.exit(f"{program[0]} failed with status {status}")
        if not file.exists():
            sys.exit(f"{program[0]} called nothing")
        return file.read_text(encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("recorder")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    text = recorded(arguments.recorder, arguments.program)
    if arguments.write:
        EXPECTED.write_text(text, encoding="utf-8")
        return
    expected = without(EXPECTED.read_text(encoding="utf-8"), arguments.without)
    if text != expected:
        lines = difflib.unified_diff(expected.splitlines(), text.splitlines(), "calls.txt", "the program", lineterm="", n=8)
        sys.exit("\n".join(lines))


if __name__ == "__main__":
    main()
