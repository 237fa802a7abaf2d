"""Shared by the tests of `sluice bench`; the first argument of each is SLUICE, the program."""
import subprocess
import sys
import unittest

SLUICE = sys.argv[1]


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, stdin=subprocess.DEVNULL)


def bench(*arguments):
    return run(SLUICE, "bench", *arguments)


class BenchTestCase(unittest.TestCase):
    def refuses(self, text, *arguments):
        result = bench(*arguments)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertIn(text, result.stdout + result.stderr)
        if result.stderr.startswith("sluice: "):
            self.assertEqual(result.stdout, "")
