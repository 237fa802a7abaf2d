#!/usr/bin/python3
"""Tests that explain_pack.py refuses a pack with any byte altered, cut off or added.

usage: explain_pack_test.py PAGE SMALL_PACK [UNITTEST ARGUMENTS]
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
        grammar = explain_pack.grammar_of(pathlib.Path(PAGE).read_text(encoding="utf-8"))
        rows = explain_pack.read(pack, grammar)
        self.assertEqual(sum(len(raw) for _, raw, _, _ in rows), 48 + int.from_bytes(pack[24:32], "little"))
        altered = [pack[:i] + bytes([pack[i] ^ 1]) + pack[i + 1:] for i in range(len(pack))]
        for number, other in enumerate([*altered, pack[:-1], pack + b"\0"]):
            with self.subTest(number), self.assertRaises(ValueError):
                explain_pack.read(other, grammar)

    def test_names_follow_the_grammar_of_the_page(self):
        page = "text\n```\nname = \"a_\" kind # one\n     | \"b\" [ \"_\" number ]  # two\nkind = \"x\" | \"y\"\n```\n"
        grammar = explain_pack.grammar_of(page)
        for name, is_one in (("a_x", 1), ("a_y", 1), ("b", 1), ("b_10", 1), ("a_z", 0), ("a_xy", 0), ("b_", 0), ("b_01", 0)):
            self.assertEqual(bool(grammar.fullmatch(name)), bool(is_one), name)
        with self.assertRaises(ValueError):
            explain_pack.grammar_of("no grammar")

    def test_checksums_are_those_of_the_specification(self):
        self.assertEqual(explain_pack.xxh64(b""), 0xEF46DB3751D8E999)
        self.assertEqual(explain_pack.xxh64(b"a"), 0xD24EC4F1A98C6E5B)
        self.assertEqual(explain_pack.xxh64(b"abc"), 0x44BC2CF5AD770999)


if __name__ == "__main__":
    PAGE, PROGRAM = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()
