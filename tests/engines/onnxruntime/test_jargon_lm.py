"""The small language model as an ONNX model: what it generates, and that its attention is Sluice's."""

import json
import pathlib
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


if __name__ == "__main__":
    unittest.main()
