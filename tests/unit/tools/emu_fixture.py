"""Shared by the tests of the `sluice-emu` program, which use it as a user would.

usage of each: TEST.py SLUICE_EMU KERNELS REGISTERS LLVM_BIN [unittest arguments]
KERNELS and REGISTERS are the code objects of emu_kernels.cl and emu_registers.s, LLVM_BIN holds llvm-objdump.
"""
import array
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from npy_files import read_npy

EMU, KERNELS, REGISTERS, LLVM_BIN = sys.argv[1:5]


def emu(*arguments):
    return subprocess.run([EMU, *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL)


class EmuTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "out.npy"

    def succeeds(self, *arguments, status=0):
        result = emu(*arguments)
        self.assertEqual((result.returncode, result.stderr), (status, ""), result.stdout)
        return result.stdout

    def refuses(self, text, *arguments):
        """`text`: the expected text of stderr, or several such."""
        result = emu(*arguments)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        for part in [text] if isinstance(text, str) else text:
            self.assertIn(part, result.stderr)

    def json(self, *arguments, status=0):
        return json.loads(self.succeeds(*arguments, "--json", status=status))

    def elements(self, code, path=None):
        """A file's elements as an array of the type `code`."""
        return array.array(code, read_npy(path or self.out)[1])


def main():
    unittest.main(argv=[sys.argv[0]] + sys.argv[5:])
