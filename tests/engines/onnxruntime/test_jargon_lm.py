"""The small language model as an ONNX model: its generated text, and that Sluice computes its attention."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "examples" / "onnxruntime"
sys.path.insert(0, str(EXAMPLE))

import jargon_lm  # noqa: E402
import sessions  # noqa: E402


class Text(unittest.TestCase):
    def test_greedy_bytes(self):
        expected = json.loads((jargon_lm.MODEL / "expected.json").read_text(encoding="utf-8"))
        prompt, count = expected["prompt"].encode(), expected["greedy_bytes"]
        with sessions.Traced(jargon_lm.load()) as traced:
            text = bytes(jargon_lm.generate(traced.session, prompt, count))
            calls = len(traced.lines("run attn_fwd_f16_d128_"))
        self.assertEqual(count, 100)
        self.assertEqual((prompt + text).decode(), expected["greedy_text"])
        self.assertGreaterEqual(calls, 100 * 3)  # of three layers; split keys take one more kernel

    def test_as_on_a_gpu(self):
        """Through the HIP runtime that a process finds by its name: the emulator's, whose checks find no errors."""
        tool = pathlib.Path(os.environ["SLUICE_DIR"]) / "bin" / "sluice-emu"
        if not tool.exists():
            self.skipTest("this build has no sluice-emu")
        result = subprocess.run([tool, "exec", sys.executable, "-B", EXAMPLE / "jargon_lm.py",
                                 os.environ["SLUICE_ONNXRUNTIME"], "hip:0"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("100 of 100 bytes are as expected", result.stdout)
        self.assertRegex(result.stderr, r"sluice-emu: [1-9]\d\d launches, .*; nothing to report")


if __name__ == "__main__":
    unittest.main()
