"""Attention of ONNX by Sluice, against double precision, ONNX's own reference and ONNX Runtime's kernel."""

import dataclasses
import unittest

import numpy as np
from onnx.reference import ReferenceEvaluator

import sessions
from reference import Problem, attention


@dataclasses.dataclass
class Case:
    rows: int
    keys: int  # of the call, without those of past_key
    dtype: str = "float16"
    opset: int = 23
    batch: int = 2
    heads: int = 4
    kv_heads: int = 2
    head_size: int = 64
    v_head_size: int = 0  # 0 is head_size
    flat: bool = False  # Q, K and V have 3 dimensions
    past: int | None = None  # keys of past_key; None: without past_key
    present: bool = False
    causal: bool = False
    scale: float | None = None
    soft_cap: float = 0.0
    mask: tuple[int, ...] | None = None  # its shape
    mask_type: str = "bool"
    hidden_rows: bool = False  # the mask hides all keys of the first rows
    lengths: tuple[int, ...] | None = None  # nonpad_kv_seqlen
    left: int = -1
    right: int = -1
    more: tuple[tuple[str, int], ...] = ()  # other attributes
    seed: int = 0


# Cases that ONNX Runtime's own kernel of this version refuses.
NOT_ITS_OWN = {"mask of each sequence", "mask of keys", "short mask", "short mask of float16", "short mask of bfloat16",
               "short mask of float", "short mask and lengths", "scale of 0", "no rows", "no rows, mask",
               "no rows, past", "no sequences", "no keys", "no keys, causal 3-D", "no keys, empty past", "no keys, mask",
               "no keys, mask of float", "no new keys", "mask without keys", "mask of float without keys"}

CASES = {
    "plain": Case(17, 17),
    "BF16": Case(17, 17, "bfloat16"),
    "3-D": Case(17, 17, flat=True),
    "3-D of BF16": Case(17, 17, "bfloat16", flat=True),
    "cross": Case(5, 33),
    "long": Case(100, 150, batch=1, head_size=128),
    "one KV head": Case(9, 9, heads=8, kv_heads=1),
    "as many KV heads": Case(9, 9, kv_heads=4),
    "values of another size": Case(9, 21, head_size=96, v_head_size=64),
    "3-D values of another size": Case(9, 21, head_size=64, v_head_size=128, flat=True),
    "causal": Case(19, 19, causal=True),
    "causal with more keys": Case(9, 30, causal=True),
    "causal with fewer keys": Case(30, 9, causal=True),
    "causal 3-D of BF16": Case(19, 19, "bfloat16", flat=True, causal=True),
    "scale": Case(9, 20, scale=0.4),
    "scale of 0": Case(9, 20, scale=0.0),
    "soft cap": Case(9, 20, soft_cap=1.5),
    "soft cap and mask": Case(9, 20, soft_cap=1.5, mask=(9, 20)),
    "mask": Case(9, 21, mask=(9, 21)),
    "mask of each head": Case(9, 21, mask=(4, 9, 21)),
    "mask of each sequence": Case(9, 21, mask=(2, 1, 1, 21)),
    "mask of all": Case(9, 21, mask=(2, 4, 9, 21)),
    "mask of keys": Case(9, 21, mask=(21,)),
    "causal and mask": Case(12, 12, mask=(12, 12), causal=True),
    "mask of float16": Case(9, 21, mask=(9, 21), mask_type="float16"),
    "mask of float16, each head": Case(9, 21, mask=(2, 4, 9, 21), mask_type="float16"),
    "mask of bfloat16": Case(9, 21, "bfloat16", mask=(1, 4, 9, 21), mask_type="bfloat16"),
    "mask of float": Case(9, 21, mask=(9, 21), mask_type="float32"),
    "rows without keys": Case(9, 21, mask=(9, 21), hidden_rows=True),
    "rows without keys, float": Case(9, 21, mask=(9, 21), mask_type="float16", hidden_rows=True),
    "token": Case(1, 1, past=40, present=True, causal=True),
    "token, 3-D": Case(1, 1, past=40, present=True, causal=True, flat=True),
    "token after many": Case(1, 1, batch=1, past=600, present=True, head_size=128),
    "chunk of BF16": Case(6, 6, "bfloat16", past=20, present=True, causal=True),
    "first chunk": Case(6, 6, past=0, present=True, causal=True),
    "present without past": Case(6, 6, present=True, flat=True),
    "past and mask": Case(3, 3, past=10, present=True, mask=(2, 1, 3, 13)),
    "past and other lengths": Case(3, 7, past=10, present=True),
    "softmax of float": Case(9, 21, more=(("softmax_precision", 1),)),
    "lengths": Case(5, 30, opset=24, lengths=(30, 11)),
    "lengths, causal": Case(5, 30, opset=24, lengths=(30, 11), causal=True),
    "more rows than keys": Case(8, 30, opset=24, lengths=(30, 3), causal=True),
    "short mask": Case(5, 30, opset=24, mask=(5, 24)),
    "short mask of float16": Case(5, 30, opset=24, mask=(2, 1, 5, 24), mask_type="float16"),
    "short mask of bfloat16": Case(5, 30, "bfloat16", opset=24, mask=(5, 24), mask_type="bfloat16"),
    "short mask of float": Case(5, 30, opset=24, mask=(4, 5, 24), mask_type="float32"),
    "short mask and lengths": Case(5, 30, opset=24, lengths=(20, 11), mask=(5, 24)),
    "no rows": Case(0, 9),
    "no rows, mask": Case(0, 9, mask=(0, 9)),
    "no rows, past": Case(0, 0, past=10, present=True, causal=True),
    "no sequences": Case(5, 9, batch=0, present=True),
    "no keys": Case(5, 0),
    "no keys, causal 3-D": Case(5, 0, causal=True, flat=True),
    "no keys, empty past": Case(3, 0, past=0, present=True),
    "no keys, mask": Case(5, 0, mask=(5, 0)),
    "no keys, mask of float": Case(5, 0, mask=(2, 4, 5, 0), mask_type="float32"),
    "no keys of one sequence": Case(5, 30, opset=24, lengths=(30, 0)),
    "no new keys": Case(3, 0, past=10, present=True),
    "mask without keys": Case(5, 9, opset=24, mask=(5, 0)),
    "mask of float without keys": Case(5, 9, opset=24, mask=(5, 0), mask_type="float32"),
    "window": Case(25, 25, opset=25, left=5, right=3),
    "causal window": Case(25, 25, opset=25, left=5, causal=True),
    "window of a token": Case(1, 1, opset=25, past=40, present=True, left=5, right=0),
    "window to the right, more keys": Case(8, 30, opset=25, right=4),
}


class Data:
    def __init__(self, case):
        self.case = case
        random = np.random.default_rng(case.seed)
        v_size = case.v_head_size or case.head_size

        def numbers(*shape):
            return sessions.rounded(random.standard_normal(shape), case.dtype)

        self.q = numbers(case.batch, case.heads, case.rows, case.head_size)
        self.k, self.v = (numbers(case.batch, case.kv_heads, case.keys, size) for size in (case.head_size, v_size))
        self.past = None
        if case.past is not None:
            self.past = [numbers(case.batch, case.kv_heads, case.past, size) for size in (case.head_size, v_size)]
        self.mask = None
        if case.mask:
            self.mask = random.random(case.mask) < 0.7
            self.mask[..., :1] = True
            if case.hidden_rows:
                self.mask[..., :2, :] = False
            if case.mask_type != "bool":
                values = sessions.rounded(random.standard_normal(case.mask), case.mask_type)
                self.mask = np.where(self.mask, values, np.float32(-np.inf))

    def inputs(self, dtype):
        case = self.case
        tensors = [x.swapaxes(1, 2).reshape(case.batch, x.shape[2], x.shape[1] * x.shape[3]) if case.flat else x
                   for x in (self.q, self.k, self.v)]
        mask = self.mask
        if mask is not None and mask.dtype != bool and dtype != "float32":
            mask = (mask, case.mask_type)
        lengths = None if case.lengths is None else np.array(case.lengths, np.int64)
        return [*tensors, mask, *(self.past or [None, None]), lengths]

    def attributes(self):
        case = self.case
        windows = {"left_window_size": case.left, "right_window_size": case.right} if case.opset >= 25 else {}
        return {"is_causal": int(case.causal), "softcap": case.soft_cap, **dict(case.more), **windows,
                **({} if case.scale is None else {"scale": case.scale}),
                **({"q_num_heads": case.heads, "kv_num_heads": case.kv_heads} if case.flat else {})}

    def model(self, dtype):
        return sessions.model_of_node("Attention", self.attributes(), self.inputs(dtype),
                                      [True, self.case.present, self.case.present], dtype, self.case.opset)

    def cache(self):
        """Keys and values of past_key and past_value, then those of the call."""
        return [np.concatenate([past, new], axis=2) for past, new in zip(self.past, (self.k, self.v))] if self.past else [
            self.k, self.v]

    def problem(self):
        case = self.case
        k, v = self.cache()
        total = k.shape[2]
        offset = np.full((case.batch, 1, 1, 1), case.past or 0)
        visible = np.full((case.batch, 1, case.rows, total), True)
        if case.lengths is not None:
            lengths = np.array(case.lengths).reshape(-1, 1, 1, 1)
            offset = lengths - case.rows
            visible &= np.arange(total) < lengths
        distance = np.arange(total)[None, :] - np.arange(case.rows)[:, None] - offset
        if case.causal:
            visible &= distance <= 0
        if case.left >= 0:
            visible &= distance >= -case.left
        if case.right >= 0:
            visible &= distance <= case.right
        bias = None
        if self.mask is not None:
            missing = [(0, 0)] * (self.mask.ndim - 1) + [(0, total - self.mask.shape[-1])]
            if self.mask.dtype == bool:
                visible = visible & np.pad(self.mask, missing)
            else:
                bias = np.pad(self.mask, missing, constant_values=-np.inf)
        return Problem(self.q, k, v, visible, case.scale, case.soft_cap, bias)


class Calls(unittest.TestCase):
    def compare(self, data, results, dtype, factor):
        case = data.case
        wanted, bound = attention(data.problem(), dtype)
        o = results[0]
        if case.flat:
            o = o.reshape(case.batch, case.rows, case.heads, -1).swapaxes(1, 2)
        self.assertEqual(o.shape, wanted.shape)
        # Rows without keys are 0, with a bound of nearly 0.
        self.assertLess(np.max(np.abs(o - wanted) / (factor * bound), initial=0), 1)
        if case.present:
            for present, cache in zip(results[1:], data.cache()):
                np.testing.assert_array_equal(present, cache)

    def test_results(self):
        for name, case in CASES.items():
            with self.subTest(name):
                data = Data(case)
                with sessions.Traced(data.model(case.dtype)) as traced:
                    results = traced.session.run(None, sessions.feeds_of(data.inputs(case.dtype)))
                    self.assertEqual(len(traced.lines(sessions.KERNELS[case.dtype])) > 0, data.q.size > 0)
                self.compare(data, results, case.dtype, factor=1)

    def test_reference(self):
        """The reference equals ONNX's own in double precision."""
        for name, case in CASES.items():
            if case.keys + (case.past or 0) == 0:
                continue  # it takes the maximum of no scores, which NumPy refuses
            with self.subTest(name):
                data = Data(case)
                inputs = [x[0] if isinstance(x, tuple) else x for x in data.inputs("float32")]
                inputs = [x.astype(np.float64) if x is not None and x.dtype == np.float32 else x for x in inputs]
                model = sessions.model_of_node("Attention", data.attributes(), inputs, [True], "float32", case.opset)
                node = next(node for node in model.graph.node if node.op_type == "Attention")
                o, *_ = ReferenceEvaluator(node, opsets={"": case.opset}).run(
                    None, {name: value for name, value in zip(node.input, inputs) if value is not None})
                if case.flat:
                    o = o.reshape(case.batch, case.rows, case.heads, -1).swapaxes(1, 2)
                wanted, bound = attention(data.problem(), "float32")
                self.assertLess(np.max(np.abs(o - wanted) / bound, initial=0), 1)

    def test_own_kernel_of_float32(self):
        """ONNX Runtime's kernel agrees in the cases that it accepts."""
        for name, case in CASES.items():
            with self.subTest(name):
                data = Data(case)
                model, feeds = data.model("float32"), sessions.feeds_of(data.inputs("float32"))
                if name in NOT_ITS_OWN:
                    with self.assertRaises(Exception):
                        sessions.plain_session(model).run(None, feeds)
                else:
                    self.compare(data, sessions.plain_session(model).run(None, feeds), "float32", factor=4)


if __name__ == "__main__":
    unittest.main()
