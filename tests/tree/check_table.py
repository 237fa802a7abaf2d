#!/usr/bin/python3
"""Checks that a page shows the tables that a command prints, between two comments that name each of them.

usage: check_table.py [--tables | --sample] [--within PERCENT] [--fix] PAGE NAME COMMAND...
Everything that the command prints is compared, figures included.
--within: figures may differ by this much, or by one in their last digit. The timing model needs it: the arguments of a kernel are
somewhere in the host's memory, so that a launch may wait for a line of a cache more or less.
--tables: the output has other lines too; NAME is a list with commas, and the output's tables belong to its names in turn.
--sample: the command prints some rows of the table, and each of them is on the page as it is printed.
--fix corrects the page, and so does SLUICE_FIX_TABLES=1 in the environment: `SLUICE_FIX_TABLES=1 ctest -R NAME` writes the
tables of a test again. A sample corrects nothing: the test of the whole table does.
"""
import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--within", type=float, default=0, metavar="PERCENT")
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("names", metavar="NAME")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    assert options.command, "no command to compare with"
    options.names = options.names.split(",") if options.tables else [options.names]
    options.fix = (options.fix or os.environ.get("SLUICE_FIX_TABLES") == "1") and not options.sample
    return options


def output_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\n{shlex.join(command)} ended with {done.returncode}")
    return done.stdout


def printed_tables(options):
    """What the command prints for each name."""
    output = output_of(options.command)
    if not options.tables:
        return [output]
    found = [table[0] for table in re.finditer(r"(?:^\|.*\n)+", output, re.MULTILINE)]
    assert len(found) == len(options.names), f"{len(found)} tables for {len(options.names)} names:\n{output}"
    return found


NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")


def are_equal(ours, theirs, percent):
    """Whether lines are the same but for figures that are close enough."""
    if ours == theirs or percent == 0 or NUMBER.sub("", ours) != NUMBER.sub("", theirs):
        return ours == theirs
    return all(abs(float(a) - float(b)) <= max(float(b) * percent / 100, 1.001 * 10.0 ** -len(b.partition(".")[2]))
               for a, b in zip(NUMBER.findall(ours), NUMBER.findall(theirs)))


def differences(shown, printed, is_sample, percent):
    """Lines of the command that the page lacks, and lines of the page that the command does not print."""
    ours, theirs = shown.splitlines(), printed.splitlines()
    if len(ours) == len(theirs) and all(are_equal(a, b, percent) for a, b in zip(ours, theirs)):
        return []
    lacking = [f"+ {line}" for line in theirs if not any(are_equal(other, line, percent) for other in ours)]
    if is_sample:
        return lacking
    return lacking + [f"- {line}" for line in ours if not any(are_equal(line, other, percent) for other in theirs)] or ["the order"]


def main():
    options = arguments()
    tables, problems = printed_tables(options), []
    # Read only now: other tests may have corrected tables of this page meanwhile.
    text = options.page.read_text(encoding="utf-8")
    for name, table in zip(options.names, tables):
        place = re.compile(rf"(<!-- {re.escape(name)}: begin [^\n]*-->\n)(.*?)(<!-- {re.escape(name)}: end -->)", re.S)
        assert len(place.findall(text)) == 1, f"{options.page} has no place for the {name}"
        assert len(table.splitlines()) > 2, f"the {name} is empty: nothing would be checked"
        if options.fix:
            text = place.sub(lambda match: match[1] + table + match[3], text)
        else:
            found = differences(place.search(text)[2], table, options.sample, options.within)
            problems += [f"{options.page} does not show the {name}:", *found] if found else []
    if options.fix:
        options.page.write_text(text, encoding="utf-8")
    elif problems:
        sys.exit("\n".join([*problems, "SLUICE_FIX_TABLES=1 ctest -R TEST, with the test of the whole table, corrects the page"]))


if __name__ == "__main__":
    main()
