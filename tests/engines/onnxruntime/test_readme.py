"""The page's commands and its program run, and print what the page says."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "docs" / "examples" / "onnxruntime"
README = (EXAMPLE / "README.md").read_text(encoding="utf-8")
sys.path.insert(0, str(EXAMPLE))


class Readme(unittest.TestCase):
    def test_commands(self):
        commands, printed = re.search(r"```sh\n(.*?)```.*?```\n(.*?)```", README, re.DOTALL).groups()
        with tempfile.TemporaryDirectory() as folder:
            checkout = pathlib.Path(folder)  # as after a build
            (checkout / "build").mkdir()
            for place, target in (("docs", ROOT / "docs"), ("include", ROOT / "include"),
                                  ("build/dev", os.environ["SLUICE_DIR"])):
                (checkout / place).symlink_to(target)
            result = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=checkout, capture_output=True,
                                    text=True)
        if "No matching distribution found" in result.stderr:
            self.skipTest("pip reaches no packages any more")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertTrue(result.stdout.endswith(printed), result.stdout)

    def test_use(self):
        import jargon_lm

        names = {"provider": os.environ["SLUICE_ONNXRUNTIME"], "model": jargon_lm.load().SerializeToString()}
        exec(re.search(r"<!-- use -->\n```python\n(.*?)```", README, re.DOTALL).group(1), names)
        self.assertIn("SluiceExecutionProvider", names["session"].get_providers())
        self.assertEqual(bytes(jargon_lm.generate(names["session"], b"Compare ", 3)), b"{bl")

    def test_versions(self):
        """The page names the packages that the tests install."""
        import environment

        for pinned in [*environment.PACKAGES[:2], environment.HEADERS]:
            self.assertIn(pinned, README)


if __name__ == "__main__":
    unittest.main()
