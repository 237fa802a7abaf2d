#!/usr/bin/python3
"""check_table.py must fail for each figure, row and order that differs, and correct pages only where it is asked to."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PAGE = "Text.\n<!-- one: begin (x) -->\n| a | b |\n| --- | --- |\n| x | 1 |\n| y | 2 |\n<!-- one: end -->\n"


class CheckTableTest(unittest.TestCase):
    def check(self, printed, *options, page=PAGE, name="one", fix="", status=0):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "page.md"
            path.write_text(page, encoding="utf-8")
            command = [sys.executable, "-B", "check_table.py", *options, path, name, sys.executable, "-c",
                       f"print({printed!r}, end=''); exit({status})"]
            done = subprocess.run(command, env={**os.environ, "SLUICE_FIX_TABLES": fix}, capture_output=True, text=True, check=False)
            return done.returncode == 0, path.read_text(encoding="utf-8")

    def passes(self, *arguments, **more):
        return self.check(*arguments, **more)[0]

    table = PAGE.split("-->\n")[1].removesuffix("<!-- one: end ")

    def test_everything_is_compared(self):
        self.assertTrue(self.passes(self.table))
        self.assertFalse(self.passes(self.table.replace("2", "3")))
        self.assertFalse(self.passes(self.table + "| z | 3 |\n"))
        self.assertFalse(self.passes(self.table.replace("| x | 1 |\n", "")))
        self.assertFalse(self.passes(self.table.replace("| x | 1 |\n| y | 2 |\n", "| y | 2 |\n| x | 1 |\n")))
        self.assertFalse(self.passes("| a | b |\n| --- | --- |\n"))
        self.assertFalse(self.passes(self.table, status=1))

    def test_figures_may_be_close(self):
        page = PAGE.replace("| 2 |", "| 19147 at 89 %, x 0.50 |")
        table = self.table.replace("| 2 |", "| 19147 at 89 %, x 0.50 |")
        for other, within in (("19134", True), ("19047", False)):
            self.assertEqual(self.passes(table.replace("19147", other), "--within", "0.2", page=page), within)
            self.assertEqual(self.passes(table.replace("19147", other), "--within", "0.2", "--sample", page=page), within)
        self.assertTrue(self.passes(table.replace("89", "90").replace("0.50", "0.51"), "--within", "0.2", page=page))
        self.assertFalse(self.passes(table.replace("89", "91"), "--within", "0.2", page=page))
        self.assertFalse(self.passes(table.replace("0.50", "0.52"), "--within", "0.2", page=page))
        self.assertFalse(self.passes(table.replace("x 0", "y 0"), "--within", "0.2", page=page))
        self.assertFalse(self.passes(table.replace("19147", "19134"), page=page))

    def test_samples_are_rows_of_the_page(self):
        some = self.table.replace("| x | 1 |\n", "")
        self.assertTrue(self.passes(some, "--sample"))
        self.assertFalse(self.passes(some.replace("2", "3"), "--sample"))
        # A sample never replaces the table.
        self.assertEqual(self.check(some.replace("2", "3"), "--sample", fix="1"), (False, PAGE))

    def test_tables_among_other_lines(self):
        page = PAGE + PAGE.replace("one", "two").replace("1", "7")
        output = f"Lines.\n{self.table}\nMore.\n\n{self.table.replace('1', '7')}"
        self.assertTrue(self.passes(output, "--tables", page=page, name="one,two"))
        self.assertFalse(self.passes(output, "--tables", page=page, name="two,one"))
        self.assertFalse(self.passes(output, "--tables", page=page, name="one"))

    def test_fixes(self):
        other = self.table.replace("2", "3")
        self.assertEqual(self.check(other, fix="1"), (True, PAGE.replace("| 2 |", "| 3 |")))
        self.assertEqual(self.check(other, "--fix"), (True, PAGE.replace("| 2 |", "| 3 |")))
        self.assertEqual(self.check(other), (False, PAGE))
        self.assertEqual(self.check(other, fix="1", status=1), (False, PAGE))


if __name__ == "__main__":
    unittest.main()
