#!/usr/bin/python3
"""Runs the quick tests of a build folder and writes what each costs, in CPU seconds, dearest first.

usage: measure.py BUILD TABLE [NAME...]
As many run at a time as there are cores. With names only those tests run, and the other rows of TABLE stay. The costs are
those of a test and of all processes that it starts. Fixtures are not set up again: they are tests themselves.
Ends with the names of the tests that failed, and then with status 1.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

HEADER = "# CPU seconds of each quick test, dearest first: written by tests/quick/measure.py.\n"


def tests_of(build):
    """{name: properties} of the quick tests, in CTest's order."""
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    tests = {}
    for test in json.loads(shown.stdout)["tests"]:
        properties = {each["name"]: each["value"] for each in test.get("properties", [])}
        if "quick" in properties.get("LABELS", []):
            tests[test["name"]] = properties
    return tests


def read(table):
    """{name: CPU seconds} of a table."""
    rows = (line.split() for line in table.read_text().splitlines() if line and not line.startswith("#"))
    return {name: float(seconds) for seconds, name in rows}


def run(build, name):
    """(CPU seconds, whether it passed)."""
    with open(os.devnull, "wb") as nothing:
        process = subprocess.Popen(["ctest", "--test-dir", build, "-R", f"^{re.escape(name)}$", "--fixture-exclude-any", "."],
                                   stdout=nothing, stderr=nothing)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, process.returncode == 0


def main(build, table, names):
    costs = read(table) if names else {}
    tests = tests_of(build)
    chosen = names or sorted(tests, key=lambda name: "FIXTURES_SETUP" not in tests[name])
    failed = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, (seconds, passed) in zip(chosen, pool.map(lambda name: run(build, name), chosen)):
            costs[name] = seconds
            print(f"{seconds:8.1f} {name}{'' if passed else ' FAILED'}", flush=True)
            failed += [] if passed else [name]
    rows = sorted(((seconds, name) for name, seconds in costs.items() if name in tests), key=lambda row: (-row[0], row[1]))
    table.write_text(HEADER + "".join(f"{seconds:.1f} {name}\n" for seconds, name in rows))
    print(f"{sum(seconds for seconds, _ in rows):.0f} CPU seconds of {len(rows)} tests")
    if failed:
        sys.exit("failed: " + " ".join(failed))


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:])
