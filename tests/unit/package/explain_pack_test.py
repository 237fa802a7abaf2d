#!/usr/bin/python3
"""explain_pack.py refuses a pack with any byte altered, cut off or added.

usage: explain_pack_test.py SMALL_PACK [UNITTEST ARGUMENTS]
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import explain_pack


class ExplainPackTest(unittest.TestCase):
    def test_every_byte_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "small.pack"
            subprocess.run([PROGRAM, file], check=True)
            pack = file.read_bytes()
        rows = explain_pack.read(pack)
        self.assertEqual(sum(len(raw) for _, raw, _, _ in rows), 48 + int.from_bytes(pack[24:32], "little"))
        altered = [pack[:i] + bytes([pack[i] ^ 1]) + pack[i + 1:] for i in range(len(pack))]
        for number, other in enumerate([*altered, pack[:-1], pack + b"\0"]):
            with self.subTest(number), self.assertRaises(ValueError):
                explain_pack.read(other)

    def test_checksums_are_those_of_the_specification(self):
        self.assertEqual(explain_pack.xxh64(b""), 0xEF46DB3751D8E999)
        self.assertEqual(explain_pack.xxh64(b"a"), 0xD24EC4F1A98C6E5B)
        self.assertEqual(explain_pack.xxh64(b"abc"), 0x44BC2CF5AD770999)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
