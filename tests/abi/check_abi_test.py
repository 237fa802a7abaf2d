#!/usr/bin/python3
"""Tests, case by case, which changes the ABI checks call a break; break_test.py tests some of them on a library."""
import unittest

import check_abi
import check_diff

LAYOUT = """sluice_a: 16 bytes
  struct_size: 0, 4 bytes
  kind: 4, 4 bytes
  data: 8, 8 bytes
sluice_fixed: 8 bytes
  data: 0, 8 bytes
sluice_mode: values
  SLUICE_X: 0
  SLUICE_Y: 1
"""
REPORT = """Leaf changes summary: 1 artifact changed
Changed leaf types summary: 1 leaf type changed
Removed/Changed/Added functions summary: 0 Removed, 0 Changed, 0 Added function
Removed/Changed/Added variables summary: 0 Removed, 0 Changed, 0 Added variable

'struct sluice_a' changed:
  type size changed from 1024 to 1088 (in bits)
  1 data member insertion:
    'int64_t appended', at offset 1024 (in bits)
"""


class Breaks(unittest.TestCase):
    def changed(self, *edits):
        text = LAYOUT
        for old, new in edits:
            self.assertIn(old, text)
            text = text.replace(old, new)
        return check_abi.breaks(LAYOUT, text)

    def test_additions_are_none(self):
        self.assertEqual(self.changed(), [])
        self.assertEqual(self.changed(("  data: 8, 8 bytes\n", "  data: 8, 8 bytes\n  more: 16, 8 bytes\n"),
                                      ("sluice_a: 16", "sluice_a: 24")), [])
        self.assertEqual(self.changed(("  SLUICE_X: 0\n", "  SLUICE_X: 0\n  SLUICE_Z: 2\n")), [])
        self.assertEqual(check_abi.breaks(LAYOUT, LAYOUT + "sluice_b: 4 bytes\n  struct_size: 0, 4 bytes\n"), [])
        self.assertEqual(check_abi.breaks("f@@SLUICE_1\n", "f@@SLUICE_1\ng@@SLUICE_1.1\n"), [])

    def test_losses_and_moves(self):
        for edits, says in [
                ([("  kind: 4, 4 bytes\n", "")], "sluice_a: 'data: 8, 8 bytes' where 'kind: 4, 4 bytes' was"),
                ([("  data: 8, 8 bytes\n", "")], "sluice_a: 'None' where 'data: 8, 8 bytes' was"),
                ([("kind: 4", "sort: 4")], "sluice_a: 'sort: 4, 4 bytes' where 'kind: 4, 4 bytes' was"),
                ([("SLUICE_Y: 1", "SLUICE_Y: 2")], "sluice_mode: no more 'SLUICE_Y: 1'"),
                ([("sluice_mode", "sluice_modes")], "sluice_mode is gone"),
                ([("sluice_a:", "sluice_b:")], "sluice_a is gone")]:
            self.assertEqual(self.changed(*edits), [says])
        self.assertEqual(check_abi.breaks("f@@SLUICE_1\n", "f@@SLUICE_1.1\n"), ["f@@SLUICE_1 is gone"])

    def test_a_struct_without_struct_size_does_not_grow(self):
        self.assertEqual(self.changed(("sluice_fixed: 8", "sluice_fixed: 16"),
                                      ("  data: 0, 8 bytes\n", "  data: 0, 8 bytes\n  more: 8, 8 bytes\n")),
                         ["sluice_fixed is 16 bytes and was 8 bytes, without a struct_size that shows it"])

    def test_an_addition_is_behind_the_old_end(self):
        self.assertEqual(self.changed(("  data: 8, 8 bytes\n", "  data: 8, 8 bytes\n  more: 12, 4 bytes\n")),
                         ["sluice_a: 'more: 12, 4 bytes' is within the 16 bytes that it was"])


class Incompatible(unittest.TestCase):
    def test_growth_is_not(self):
        self.assertEqual(check_diff.incompatible(REPORT), [])

    def test_all_else_is(self):
        for old, new in [("offset 1024", "offset 960"), ("insertion:", "deletion:"), ("from 1024 to 1088", "from 0 to 8 to 1"),
                         ("sluice_a'", "tm'"), ("0 Removed, 0 Changed, 0 Added function", "1 Removed, 0 Changed, 0 Added function"),
                         ("  1 data", "  there are data member changes:\n  1 data")]:
            self.assertIn(old, REPORT)
            self.assertNotEqual(check_diff.incompatible(REPORT.replace(old, new)), [], new)


if __name__ == "__main__":
    unittest.main()
