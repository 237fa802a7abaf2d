#!/usr/bin/python3
"""Checks that the quick tests stay quick.

usage: budget_test.py BUILD TABLE BUDGET
TABLE has the CPU seconds of each quick test (measure.py). The sum for the tests of this build is at most BUDGET; a test
without a row, which nobody has measured, fails as well. The rows are of one machine, so that the verdict is the same on all.
"""
import pathlib
import sys

import measure


def complaints(tests, costs, budget):
    missing = sorted(set(tests) - set(costs))
    if missing:
        yield f"not measured: {' '.join(missing)}"
    rows = {name: seconds for name, seconds in costs.items() if name in tests}
    total = sum(rows.values())
    if total > budget:
        dearest = sorted(rows.items(), key=lambda row: -row[1])[:10]
        yield f"the quick tests take {total:.0f} CPU seconds; at most {budget:.0f}. The dearest ten:"
        yield from (f"  {seconds:6.1f} {name}" for name, seconds in dearest)


def main(build, table, budget):
    costs = measure.read(table)
    tests = measure.tests_of(build)
    found = list(complaints(tests, costs, budget))
    if found:
        sys.exit("\n".join(found + [f"{pathlib.Path(__file__).parent / 'measure.py'} BUILD {table} [NAME...] measures"]))
    print(f"{sum(costs[name] for name in tests):.0f} of {budget:.0f} CPU seconds in {len(tests)} tests")


def self_test():
    """The ways to fail, each on its own."""
    for tests, costs, said in (({"a"}, {"a": 1.0}, []), ({"a", "b"}, {"a": 1.0}, ["not measured: b"]),
                               ({"a"}, {"a": 1.0, "b": 100.0}, []),
                               ({"a", "b"}, {"a": 8.0, "b": 3.0},
                                ["the quick tests take 11 CPU seconds; at most 10. The dearest ten:", "     8.0 a", "     3.0 b"])):
        if list(complaints(tests, costs, 10)) != said:
            sys.exit(f"{tests} and {costs}: {list(complaints(tests, costs, 10))}")


if __name__ == "__main__":
    self_test()
    main(sys.argv[1], pathlib.Path(sys.argv[2]), float(sys.argv[3]))
