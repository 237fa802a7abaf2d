#!/usr/bin/python3
"""Tests compare.py: it accepts the calls in C without some of them, and notices a change of a number, and a failure.

usage: compare_test.py RECORDER PROGRAM
"""
import pathlib
import subprocess
import sys
import unittest

COMPARE = pathlib.Path(__file__).resolve().parent / "compare.py"
RECORDER, PROGRAM = sys.argv[1:]


class Compared(unittest.TestCase):
    def compare(self, program, *options):
        """Exit status and messages with a shell's program, in which $0 makes the calls."""
        done = subprocess.run([sys.executable, "-B", COMPARE, *options, RECORDER, "sh", "-c", program, PROGRAM],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    def test_the_same_calls(self):
        self.assertEqual(self.compare("$0"), (0, ""))

    def test_a_number_that_differs(self):
        status, message = self.compare('$0; sed -i "s/scale = 0.125/scale = 0.25/" $SLUICE_RECORD')
        self.assertEqual(status, 1)
        self.assertIn("-  args.scale = 0.125\n+  args.scale = 0.25", message)

    def test_calls_that_a_program_lacks(self):
        drop = '$0; sed -i "/^call gather/,/^call merge_lists/{/^call merge_lists/!d}" $SLUICE_RECORD'
        self.assertEqual(self.compare(drop)[0], 1)
        self.assertEqual(self.compare(drop, "--without", "gather"), (0, ""))
        self.assertIn("there is no call gathers", self.compare(drop, "--without", "gathers")[1])

    def test_a_program_that_fails(self):
        self.assertIn("failed with status 3", self.compare("$0; exit 3")[1])
        self.assertEqual(self.compare("exit 77")[0], 77)
        self.assertIn("called nothing", self.compare("exit 0")[1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
