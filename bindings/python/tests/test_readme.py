"""The README's programs run, and print what it says."""

import contextlib
import io
import pathlib
import re
import textwrap
import unittest

README = (pathlib.Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def program(name):
    return re.search(rf"<!-- {name} -->\n```python\n(.*?)```", README, re.DOTALL).group(1)


class Readme(unittest.TestCase):
    def test_first(self):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(program("first"), {})
        self.assertIn(f"prints `{printed.getvalue().strip()}`", README)

    def test_the_package_says_the_same(self):
        import sluice

        example = re.search(r"\n\n(    .*?)\n\n\S", sluice.__doc__, re.DOTALL).group(1)
        self.assertEqual(textwrap.dedent(example).strip(), program("first").strip())

    def test_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not installed")
        for name, shape in (("torch", [1, 100, 8, 64]), ("extra", [3, 4, 64])):
            names = {}
            exec(program(name), names)
            self.assertEqual(names["o"].shape, torch.Size(shape))
        only = names["v"][5].float().repeat_interleave(2, 0)  # the second row sees one key
        self.assertLess((names["o"][1].float() - only).abs().max().item(), 0.1)
        exec(program("invariant"), {})


if __name__ == "__main__":
    unittest.main()
