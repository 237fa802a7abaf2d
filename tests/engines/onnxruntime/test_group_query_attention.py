"""GroupQueryAttention by Sluice, against attention in double precision and ONNX Runtime's own kernel in float32."""

import dataclasses
import unittest

import numpy as np

import sessions
from reference import Problem, attention, score_shift


@dataclasses.dataclass
class Case:
    keys: tuple[int, ...]  # of each sequence, when the call is done
    rows: int
    dtype: str = "float16"
    heads: int = 4
    kv_heads: int = 2
    head_size: int = 64
    past_capacity: int | None = None  # of past_key; None: without past_key
    total: int | None = None  # total_sequence_length, if it is not the longest sequence
    query_seqlens: tuple[int, ...] | None = None
    packed: bool = False
    pairs: int = 0  # of rotary; 0: without rotary
    interleaved: bool = False
    position_ids: bool = False
    causal: bool = True
    window: int = -1
    soft_cap: float = 0.0
    scale: float | None = None
    smooth: bool = False
    sinks: bool = False
    bias: tuple[bool, bool] | None = None  # whether there is one per sequence, and one per head
    seed: int = 0


CASES = {
    "prompt": Case((16,), 16),
    "prompt of BF16": Case((16,), 16, "bfloat16"),
    "long prompt": Case((150,), 150, head_size=128),
    "packed": Case((20,), 20, packed=True),
    "one KV head": Case((9,), 9, heads=8, kv_heads=1),
    "as many KV heads": Case((9,), 9, kv_heads=4),
    "head size 80": Case((12,), 12, head_size=80),
    "head size 256": Case((12,), 12, head_size=256, heads=2, kv_heads=1),
    "token": Case((38,), 1, past_capacity=37),
    "token of BF16, packed": Case((38,), 1, "bfloat16", past_capacity=37, packed=True),
    "token after many": Case((700,), 1, past_capacity=699, head_size=128, heads=8),
    "token in a cache of full length": Case((38,), 1, past_capacity=64),
    "first token": Case((1,), 1, past_capacity=0),
    "prompts of different lengths": Case((16, 5, 11), 16),
    "tokens of different lengths": Case((40, 7, 22), 1, past_capacity=40),
    "chunk": Case((25,), 5, past_capacity=20),
    "chunk in a cache of full length": Case((25,), 5, past_capacity=48),
    "chunks with padding": Case((25, 9), 6, past_capacity=32, total=32, query_seqlens=(6, 2)),
    "chunk of an idle sequence": Case((25, 9), 4, past_capacity=32, total=32, query_seqlens=(3, 0)),
    "window": Case((40,), 40, window=7),
    "window of a token": Case((40, 30), 1, past_capacity=39, window=7),
    "soft cap": Case((18,), 18, soft_cap=2.0),
    "scale": Case((18,), 18, scale=0.3),
    "scale of 0": Case((18,), 18, scale=0.0),  # as without one, to ONNX Runtime's own kernel too
    "rotary": Case((20, 13), 20, pairs=32),
    "rotary of pairs, token": Case((21, 13), 1, past_capacity=20, pairs=32, interleaved=True),
    "rotary of a part, packed": Case((20,), 20, pairs=16, packed=True),
    "rotary of BF16, chunk": Case((20,), 6, "bfloat16", past_capacity=14, pairs=32),
    "positions of a prompt": Case((12,), 12, pairs=32, position_ids=True),
    "positions of tokens": Case((12, 6), 1, past_capacity=11, pairs=32, position_ids=True),
    "smooth softmax": Case((14,), 14, smooth=True),
    "sinks": Case((14, 8), 14, sinks=True),
    "bias": Case((14,), 14, bias=(False, False)),
    "bias of each sequence and head": Case((14, 9), 1, past_capacity=13, bias=(True, True)),
    "not causal": Case((14, 10), 14, causal=False),
    "no rows": Case((7, 3), 0, past_capacity=7),
    "no rows, packed rotary": Case((7,), 0, past_capacity=7, packed=True, pairs=32),
    "no rows, no keys": Case((0,), 0, total=0),
    "no sequences": Case((), 5, total=5, past_capacity=7),
    "no keys of one sequence": Case((16, 0), 16),
    "no keys of an idle sequence": Case((25, 0), 4, past_capacity=32, total=32, query_seqlens=(3, 0), sinks=True),
    "all at once": Case((50, 31), 1, "bfloat16", heads=6, kv_heads=2, head_size=96, past_capacity=60, packed=True,
                        pairs=48, window=20, soft_cap=5.0, scale=0.2, sinks=True),
}


class Data:
    """The inputs of a case, and the expected results."""

    def __init__(self, case):
        self.case = case
        random = np.random.default_rng(case.seed)
        batch, size = len(case.keys), case.head_size

        def numbers(*shape):
            return sessions.rounded(random.standard_normal(shape), case.dtype)

        self.q = numbers(batch, case.rows, case.heads, size)
        self.k, self.v = (numbers(batch, case.rows, case.kv_heads, size) for _ in "kv")
        self.total = max(case.keys) if case.total is None else case.total
        self.past = None
        if case.past_capacity is not None:
            self.past = [numbers(batch, case.kv_heads, case.past_capacity, size) for _ in "kv"]
        self.new = case.query_seqlens or [min(case.rows, keys) for keys in case.keys]
        self.cosines = self.sines = self.ids = self.sinks = self.bias = None
        if case.pairs:
            angles = np.arange(self.total + 8)[:, None] * 100.0 ** -(np.arange(case.pairs) / case.pairs)
            self.cosines, self.sines = (sessions.rounded(f(angles), case.dtype) for f in (np.cos, np.sin))
        if case.position_ids:
            self.ids = np.array([[3 + keys - new + row for row in range(case.rows)]
                                 for keys, new in zip(case.keys, self.new)], np.int64)
            self.ids[:, 1:] = 0  # of a first prompt, only the first counts
        if case.sinks:
            self.sinks = numbers(case.heads)
        if case.bias:
            self.bias = numbers(batch if case.bias[0] else 1, case.heads if case.bias[1] else 1, case.rows, self.total)

    def inputs(self):
        case, batch = self.case, len(self.case.keys)
        flat = [x.reshape(batch, case.rows, x.shape[2] * x.shape[3]) for x in (self.q, self.k, self.v)]
        lengths = np.array(case.keys, np.int32) - 1
        seqlens = None if case.query_seqlens is None else np.array(case.query_seqlens, np.int32)
        return [*([np.concatenate(flat, axis=2), None, None] if case.packed else flat), *(self.past or [None, None]),
                lengths, np.array(self.total, np.int32), self.cosines, self.sines, self.ids, self.bias, self.sinks,
                None, None, None, None, seqlens]

    def attributes(self):
        case = self.case
        return {"num_heads": case.heads, "kv_num_heads": case.kv_heads, "local_window_size": case.window,
                "do_rotary": int(case.pairs > 0), "rotary_interleaved": int(case.interleaved),
                "softcap": case.soft_cap, "smooth_softmax": int(case.smooth), "causal": int(case.causal),
                **({} if case.scale is None else {"scale": case.scale})}

    def model(self, dtype):
        return sessions.model_of_node("GroupQueryAttention", self.attributes(), self.inputs(), [True] * 3, dtype,
                                      domain="com.microsoft")

    def past_rows(self, b):
        return self.case.keys[b] - self.new[b]

    def rotated(self, rows, b):
        """New rows [row, head, element] of a sequence, in float32 as docs/examples/onnxruntime/rotary.h has it."""
        case = self.case
        if not case.pairs:
            return rows
        first = self.past_rows(b) if self.ids is None else self.ids[b][0]
        cosines, sines = (x[first:first + len(rows), None, :] for x in (self.cosines, self.sines))
        x, y = np.arange(case.pairs), np.arange(case.pairs) + case.pairs
        if case.interleaved:
            x, y = 2 * x, 2 * x + 1
        result = rows.copy()
        result[..., x] = rows[..., x] * cosines - rows[..., y] * sines
        result[..., y] = rows[..., y] * cosines + rows[..., x] * sines
        return sessions.rounded(result, case.dtype)

    def keys_and_values(self, b):
        """[KV head, key, element] of a sequence, when the call is done."""
        joined = []
        for rows, past in zip((self.rotated(self.k[b][:self.new[b]], b), self.v[b][:self.new[b]]),
                              self.past or [np.zeros((len(self.case.keys), self.case.kv_heads, 0, self.case.head_size),
                                                     np.float32)] * 2):
            joined.append(np.concatenate([past[b][:, :self.past_rows(b)], rows.swapaxes(0, 1)], axis=1))
        return joined

    def problem(self, b):
        case, keys, new = self.case, self.case.keys[b], self.new[b]
        k, v = self.keys_and_values(b)
        row = self.past_rows(b) + np.arange(new)[:, None]
        key = np.arange(keys)[None, :]
        visible = np.full((new, keys), True)
        if case.causal:
            visible &= key <= row
        if case.window > 0:
            visible &= key > row - case.window
        bias = None if self.bias is None else self.bias[b % len(self.bias)][None, :, :new, :keys]
        sinks = self.sinks if case.sinks else np.zeros(case.heads) if case.smooth else None
        return Problem(self.rotated(self.q[b][:new], b).swapaxes(0, 1)[None], k[None], v[None], visible, case.scale or None,
                       case.soft_cap, bias, sinks)


class Calls(unittest.TestCase):
    def compare(self, data, results, dtype, factor, shift=0.0):
        """Results and reference may differ by `factor` times the bound of that type."""
        case = data.case
        o, present_k, present_v = results
        capacity = max(case.past_capacity or 0, data.total)
        self.assertEqual(present_k.shape, (len(case.keys), case.kv_heads, capacity, case.head_size))
        for b, new in enumerate(data.new):
            k, v = data.keys_and_values(b)
            if new:
                wanted, bound = attention(data.problem(b), dtype)
                got = o[b, :new].reshape(new, case.heads, case.head_size).swapaxes(0, 1)
                allowed = factor * bound[0] + (score_shift(data.problem(b), shift)[0] if shift else 0)
                self.assertLess(np.max(np.abs(got - wanted[0]) / allowed), 1)
            np.testing.assert_array_less(np.abs(present_k[b][:, :case.keys[b]] - k),
                                         shift * 2 * np.abs(k).max(initial=0) + 1e-30)
            np.testing.assert_array_equal(present_v[b][:, :case.keys[b]], v)

    def test_results(self):
        for name, case in CASES.items():
            with self.subTest(name):
                data = Data(case)
                with sessions.Traced(data.model(case.dtype)) as traced:
                    results = traced.session.run(None, sessions.feeds_of(data.inputs()))
                    self.assertEqual(len(traced.lines(sessions.KERNELS[case.dtype])) > 0, data.q.size > 0)
                self.compare(data, results, case.dtype, factor=1)
                for b, new in enumerate(data.new):
                    np.testing.assert_array_equal(results[0][b, new:], 0)  # padding

    def test_own_kernel_of_float16(self):
        """Both are near the reference, so they are near each other: this says how near ONNX Runtime's is."""
        for name, case in CASES.items():
            if case.dtype == "float16" and not name.startswith("no "):
                with self.subTest(name):
                    data = Data(case)
                    own = sessions.plain_session(data.model("float16"))
                    self.compare(data, own.run(None, sessions.feeds_of(data.inputs())), "float16", factor=2,
                                 shift=2.0 ** -11 if case.pairs else 0)

    def test_reference(self):
        """The reference equals ONNX Runtime's own kernel, except for rotations, which it does not round."""
        for name, case in CASES.items():
            if name.startswith("no "):
                continue  # it refuses calls without rows, sequences or keys, or crashes
            with self.subTest(name):
                data = Data(case)
                own = sessions.plain_session(data.model("float32"))
                shift = {"float16": 2.0 ** -11, "bfloat16": 2.0 ** -8}[case.dtype] if case.pairs else 0
                self.compare(data, own.run(None, sessions.feeds_of(data.inputs())), "float32", factor=4, shift=shift)


if __name__ == "__main__":
    unittest.main()
