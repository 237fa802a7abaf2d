"""The installed package's types, as mypy sees them."""

import os
import pathlib
import subprocess
import sys
import unittest


class Types(unittest.TestCase):
    def check(self, *words):
        # Run next to the installed package; else mypy would read the sources, which have no _core.
        folder = pathlib.Path(sys.prefix)
        checked = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder / "mypy", *words],
                                 cwd=folder, capture_output=True, text=True, check=False,
                                 env={**os.environ, "NO_COLOR": "1"})
        return checked.returncode, checked.stdout + checked.stderr

    def test_the_package_is_typed(self):
        # torch need not be installed.
        code, said = self.check("-p", "sluice", "--ignore-missing-imports", "--no-warn-return-any")
        self.assertEqual(code, 0, said)

    def test_wrong_calls_are_seen(self):
        code, said = self.check("-c", "import sluice\nsluice.Context(5)\n")
        self.assertEqual(code, 1, said)
        self.assertIn('Argument 1 to "Context" has incompatible type "int"; expected "str"', said)


if __name__ == "__main__":
    unittest.main()
