#!/usr/bin/python3
"""Compiles a header on its own with each compiler and language standard, and names every combination that fails.

usage: check_header.py HEADER FLAG... -- COMPILER STANDARD... [FLAG...] [-- COMPILER STANDARD... [FLAG...]]...

STANDARD is as after -std=: c17, c++20. The flags before the first -- are those of all compilers.
"""
import itertools
import subprocess
import sys


def groups_of(words):
    """The words between the -- of a command line."""
    return [list(group) for is_border, group in itertools.groupby(words, lambda word: word == "--") if not is_border]


def main():
    groups = groups_of(sys.argv[1:])
    if len(groups) < 2:
        sys.exit(__doc__)
    (header, *common), *compilers = groups
    failed = 0
    for compiler, *words in compilers:
        flags = [word for word in words if word.startswith("-")]
        standards = [word for word in words if not word.startswith("-")]
        if not standards:
            sys.exit(f"check_header.py: no standard for {compiler}")
        for standard in standards:
            language = "c++" if standard.startswith("c++") else "c"
            command = [compiler, f"-std={standard}", *flags, *common, "-fsyntax-only", "-include", header, "-x",
                       language, "/dev/null"]
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode != 0 or result.stderr:
                failed += 1
                print(f"{' '.join([compiler, standard, *flags])}: {header} does not compile:\n{result.stdout}{result.stderr}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
