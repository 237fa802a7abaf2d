"""Calls that have nothing to do, numbers that are 0, and every argument that is wrong, without torch."""

import inspect
import pathlib
import sys
import unittest

import numpy

import sluice

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from emulated import CONTEXT, normal, zeros  # noqa: E402

F16, I32, I64 = numpy.float16, numpy.int32, numpy.int64
DENSE = sluice.Problem("f16", q_heads=4, kv_heads=2, head_dim_qk=64, lse=sluice.Lse.LN)
RAGGED = sluice.Problem("f16", 4, 2, 64, ragged=True, max_batch=2, max_q_len=3, max_kv_len=5, lse=sluice.Lse.LN)
PAGED = sluice.Problem("f16", 4, 2, 64, page_size=16, max_batch=2, max_q_len=3, max_kv_len=32,
                       page_table_kind=sluice.PageTableKind.BLOCK, lse=sluice.Lse.LN)
LISTS = sluice.Problem("f16", 4, 2, 64, page_size=16, max_batch=2, max_q_len=3, max_kv_len=32,
                       page_table_kind=sluice.PageTableKind.CSR)


def on_device(array):
    types = {"float16": "f16", "float32": "f32", "int32": "int32", "int64": "int64", "uint8": "uint8"}
    return CONTEXT.array(array, types[str(array.dtype)])


def f16(*shape, seed=0):
    return normal(*shape, seed=seed).astype(F16)


class Nothing(unittest.TestCase):
    """On the device and in the reference, with the same results."""

    def both(self, problem, arrays, **numbers):
        """O and LSE of both; memory around the results must stay as it was."""
        o_shape = (*arrays["q"].shape[:-1], problem.head_dim_v)
        found = []
        for side in ("device", "host"):
            o, lse = numpy.full(o_shape, 7, F16), numpy.full(o_shape[:-1], 7, numpy.float32)
            if side == "host":
                sluice.reference(problem, **arrays, o=o, lse=lse, **numbers)
                found.append((o, lse))
                continue
            given = {name: None if array is None else on_device(array) for name, array in arrays.items()}
            o, lse, plan = on_device(o), on_device(lse), CONTEXT.plan(problem)
            workspace = CONTEXT.empty((max(plan.info.workspace_bytes, 1),), "uint8")
            before = plan.counters().launches
            plan.run(**given, o=o, lse=lse, workspace=workspace, **numbers)
            self.launches = plan.counters().launches - before
            CONTEXT.synchronize()
            found.insert(0, (o.numpy(), lse.numpy()))
        numpy.testing.assert_allclose(*(o.astype(numpy.float64) for o, _ in found), atol=0.01)
        numpy.testing.assert_allclose(*(lse for _, lse in found), atol=1e-4)
        return found[0]

    def test_no_rows(self):
        for rows, batch in ((0, 2), (3, 0), (0, 0)):
            self.both(DENSE, {"q": f16(batch, rows, 4, 64), "k": f16(batch, 5, 2, 64), "v": f16(batch, 5, 2, 64)})
            self.assertEqual(self.launches, 0)
        none, keys = f16(0, 4, 64), f16(5, 2, 64)
        for starts in ([0, 0, 0], [0]):
            self.both(RAGGED, {"q": none, "k": keys, "v": keys, "q_starts": numpy.array(starts, I32),
                               "kv_starts": numpy.array([0, 5, 5][:len(starts)], I32)})
            self.assertEqual(self.launches, 0)
        # A number of rows that is given is that of this call, whatever memory there is.
        o, _ = self.both(DENSE, {"q": f16(1, 3, 4, 64), "k": f16(1, 5, 2, 64), "v": f16(1, 5, 2, 64)}, q_len=0)
        self.assertEqual((o == 7).all(), True)
        self.assertEqual(self.launches, 0)

    def test_no_keys(self):
        def empty(problem, arrays, **numbers):
            o, lse = self.both(problem, arrays, **numbers)
            self.assertTrue((o == 0).all() and (lse == -numpy.inf).all())

        rows, none = f16(2, 3, 4, 64), f16(2, 0, 2, 64)
        empty(DENSE, {"q": rows, "k": none, "v": none})
        empty(DENSE, {"q": rows, "k": f16(2, 5, 2, 64), "v": f16(2, 5, 2, 64)}, kv_len=0)
        starts, no_starts = numpy.array([0, 3, 6], I32), numpy.zeros(3, I32)
        empty(RAGGED, {"q": f16(6, 4, 64), "k": none[0], "v": none[0], "q_starts": starts, "kv_starts": no_starts})
        keys = f16(5, 2, 64)
        empty(RAGGED, {"q": f16(6, 4, 64), "k": keys, "v": keys, "q_starts": starts, "kv_starts": no_starts}, kv_len=0)
        pages, lengths = f16(0, 16, 2, 64), numpy.zeros(2, I32)
        for columns in (0, 2):
            empty(PAGED, {"q": rows, "k": pages, "v": pages, "kv_lengths": lengths,
                          "page_table": numpy.zeros((2, columns), I32)}, **({"kv_len": 0} if columns == 0 else {}))

    def test_numbers_that_lead_into_a_cache_without_pages(self):
        """The library takes 0 pages, or 0 rows of the tensors, as unknown numbers of them."""
        none = on_device(f16(0, 16, 2, 64))
        rows, o, lse = on_device(f16(2, 3, 4, 64)), on_device(f16(2, 3, 4, 64)), on_device(normal(2, 3, 4))
        table, lengths = on_device(numpy.array([[0, 1], [2, 3]], I32)), on_device(numpy.array([20, 7], I32))
        CONTEXT.plan(PAGED).run(rows, none, none, o, lse=lse, kv_lengths=lengths, page_table=table)
        CONTEXT.synchronize()
        self.assertTrue((o.numpy() == 0).all() and (lse.numpy() == -numpy.inf).all())
        flat, starts = on_device(f16(6, 4, 64)), on_device(numpy.array([0, 3, 6], I32))
        o, lse, keys = on_device(f16(6, 4, 64)), on_device(normal(6, 4)), on_device(f16(0, 2, 64))
        CONTEXT.plan(RAGGED).run(flat, keys, keys, o, lse=lse, q_starts=starts, kv_starts=starts)
        CONTEXT.synchronize()
        self.assertTrue((o.numpy() == 0).all() and (lse.numpy() == -numpy.inf).all())
        new = on_device(f16(3, 2, 64))
        CONTEXT.append(new, new, none, none, slots=on_device(numpy.array([0, 1, 40])))
        CONTEXT.synchronize()

    def test_0_is_a_scale(self):
        v = numpy.broadcast_to(numpy.arange(5, dtype=F16)[None, :, None, None], (1, 5, 2, 64)).copy()
        arrays = {"q": f16(1, 3, 4, 64), "k": f16(1, 5, 2, 64, seed=1), "v": v}
        o, lse = self.both(DENSE, arrays, scale=0.0)
        numpy.testing.assert_allclose(o, 2, atol=0.01)
        numpy.testing.assert_allclose(lse, numpy.log(5), atol=1e-5)
        plain, given = (self.both(DENSE, arrays, scale=scale)[0] for scale in (None, 0.125))
        numpy.testing.assert_array_equal(plain, given)

    def test_caches_and_merges(self):
        rows, cache = f16(3, 2, 64), f16(4, 16, 2, 64)
        kept, none, slots = cache.copy(), cache[:0], numpy.array([-1, -1, -1])
        pairs, tables = numpy.zeros((0, 2), I32), {"kv_lengths": numpy.array([], I32), "page_table": numpy.zeros((0, 2), I32)}
        append = {"k": rows[:0], "v": rows[:0], "k_cache": cache, "v_cache": cache, "slots": slots[:0]}
        appends = (append, {**append, "k": rows, "v": rows, "k_cache": none, "v_cache": none, "slots": slots},
                   {**append, "slots": None, "k": rows, "v": rows, "starts": numpy.array([0], I32), **tables})
        copies = ({"k_source": cache, "v_source": cache, "k_target": cache, "v_target": cache, "pairs": pairs},
                  {"k_source": none, "v_source": none, "k_target": none, "v_target": none},
                  {"k_source": none, "v_source": none, "k_target": cache, "v_target": cache, "pairs": numpy.array([[0, 0]], I32)})
        gathers = ({"k_cache": cache, "v_cache": cache, "k_out": rows[:0], "v_out": rows[:0],
                    "out_starts": numpy.array([0, 0], I32), "kv_lengths": numpy.array([5], I32),
                    "page_table": numpy.zeros((1, 2), I32)},
                   {"k_cache": none, "v_cache": none, "k_out": rows, "v_out": rows, "out_starts": numpy.array([0], I32), **tables})
        for calls, on_host, method in ((appends, sluice.reference_append, CONTEXT.append),
                                       (copies, sluice.reference_copy, CONTEXT.copy),
                                       (gathers, sluice.reference_gather, CONTEXT.gather)):
            for arrays in calls:
                on_host(**arrays)
                given = {name: None if array is None else on_device(array) for name, array in arrays.items()}
                method(**given)
                CONTEXT.synchronize()
                for name, array in given.items():
                    if array is not None:
                        numpy.testing.assert_array_equal(array.numpy(), arrays[name])
        numpy.testing.assert_array_equal(cache, kept)
        CONTEXT.merge(zeros(3, 0, 4, 64), zeros(3, 0, 4, dtype="f32"), zeros(0, 4, 64), lse=zeros(0, 4, dtype="f32"))
        CONTEXT.merge([zeros(0, 4, 64)] * 2, [zeros(0, 4, dtype="f32")] * 2, zeros(0, 4, 64))
        CONTEXT.synchronize()

    def test_strides_of_one_part(self):
        """Those of extents of 1 differ from part to part."""
        parts, lses = [zeros(1, 4, 64, dtype="f32") for _ in range(2)], [zeros(1, 4, dtype="f32") for _ in range(2)]
        odd = [sluice.Tensor.at(x.address, x.shape, "f32", (steps, 64, 1)) for x, steps in zip(parts, (3, 999))]
        odd_lse = [sluice.Tensor.at(x.address, x.shape, "f32", (steps, 1)) for x, steps in zip(lses, (77, 0))]
        o = zeros(1, 4, 64, dtype="f32")
        CONTEXT.merge(odd, odd_lse, o)
        CONTEXT.synchronize()
        self.assertTrue((o.numpy() == 0).all())

    def test_longer_starts(self):
        """Arrays of lengths and of starts may be longer than the batch."""
        cache = f16(4, 16, 2, 64)
        arrays = {"q": f16(2, 1, 4, 64), "k": cache, "v": cache, "kv_lengths": numpy.array([20, 3, 9], I32),
                  "page_table": numpy.array([3, 1, 2], I32), "page_starts": numpy.array([0, 2, 3, 3, 3], I32)}
        problem = sluice.Problem("f16", 4, 2, 64, page_size=16, max_batch=2, max_q_len=3, max_kv_len=32,
                                 page_table_kind=sluice.PageTableKind.CSR, lse=sluice.Lse.LN)
        long = self.both(problem, arrays)
        exact = self.both(problem, {**arrays, "kv_lengths": arrays["kv_lengths"][:2], "page_starts": arrays["page_starts"][:3]})
        numpy.testing.assert_array_equal(long[0], exact[0])
        out = numpy.zeros((9, 2, 64), F16)
        sluice.reference_gather(cache, cache, out, out.copy(), out_starts=numpy.array([0, 9], I32),
                                kv_lengths=numpy.array([9, 9], I32), page_table=numpy.array([2], I32),
                                page_starts=numpy.array([0, 1, 1], I32))
        numpy.testing.assert_array_equal(out, cache[2, :9])


class Refused(unittest.TestCase):
    """Errors are ValueErrors that name the argument."""

    def refused(self, name, call):
        with self.assertRaises(sluice.InvalidArgument) as caught:
            call()
        self.assertIsInstance(caught.exception, ValueError)
        self.assertNotEqual(caught.exception.field, "")
        self.assertIn(name, str(caught.exception))

    NUMBERS = {"batch", "q_len", "kv_len", "prefix_len", "scale", "rotary_first", "norm_epsilon", "rotary_style", "lse_base"}
    CHOICES = {"infinity_is_empty"}
    ARRAYS = ("text", [1.0, 2.0], object(), numpy.float64(1), numpy.zeros(3), numpy.zeros((1,) * 7, F16),
              numpy.zeros(3, numpy.complex64), numpy.zeros(3, numpy.float32)[0:0].reshape(0, 1, 1, 1, 1, 1))
    WRONG = {"stream": ("text", 1.5), "wait": ("text", [1], 5), "signal": ("text", 1.5), "cache_type": ("int7", 1.5),
             "workspace": ("text", [1.0], 5), "problem": ("text", None, 5)}

    def wrong(self, name, is_device):
        if name in self.NUMBERS:
            return ("text", [1], object())
        if name in self.WRONG:
            return self.WRONG[name]
        arrays = [on_device(x) if isinstance(x, numpy.ndarray) and x.dtype in (F16, numpy.float32) else x
                  for x in self.ARRAYS] if is_device else self.ARRAYS
        return arrays

    def each(self, function, right, is_device=False, skipped=()):
        for name in inspect.signature(function).parameters:
            if name in (*skipped, *self.CHOICES, "arrays"):
                continue
            for i, wrong in enumerate(self.wrong(name, is_device)):
                with self.subTest(function.__name__, name=name, i=i):
                    self.refused(name, lambda name=name, wrong=wrong: function(**{**right, name: wrong}))
        function(**right)

    def test_runs(self):
        dense = {"q": f16(2, 3, 4, 64), "k": f16(2, 5, 2, 64), "v": f16(2, 5, 2, 64), "o": f16(2, 3, 4, 64),
                 "lse": normal(2, 3, 4)}
        given = {name: on_device(array) for name, array in dense.items()}
        self.each(CONTEXT.plan(DENSE).run, given, True, skipped=("workspace",))
        self.each(sluice.reference, {**dense, "problem": DENSE})
        names = [name for name in inspect.signature(sluice.Plan.run).parameters if name not in (
            "self", "stream", "wait", "signal", "workspace")]
        for name in names:
            for i, wrong in enumerate(self.wrong(name, False)):
                with self.subTest("reference", name=name, i=i):
                    self.refused(name, lambda: sluice.reference(**{**dense, "problem": DENSE, name: wrong}))
        cache, lengths = on_device(f16(4, 16, 2, 64)), on_device(numpy.array([20, 3], I32))
        rows = {"q": given["q"], "k": cache, "v": cache, "o": given["o"], "kv_lengths": lengths}
        self.each(CONTEXT.plan(PAGED).run, {**rows, "page_table": on_device(numpy.array([[3, 1], [2, 0]], I32)),
                                            "lse": given["lse"]}, True, skipped=("workspace",))
        self.each(CONTEXT.plan(LISTS).run, {**rows, "page_table": on_device(numpy.array([3, 1, 2], I32)),
                                            "page_starts": on_device(numpy.array([0, 2, 3], I32))}, True, skipped=("workspace",))
        flat = {"q": f16(6, 4, 64), "k": f16(9, 2, 64), "v": f16(9, 2, 64), "o": f16(6, 4, 64), "lse": normal(6, 4),
                "q_starts": numpy.array([0, 3, 6], I32), "kv_starts": numpy.array([0, 5, 9], I32)}
        self.each(CONTEXT.plan(RAGGED).run, {name: on_device(array) for name, array in flat.items()}, True, skipped=("workspace",))
        CONTEXT.synchronize()

    def test_numbers(self):
        arrays = {"q": zeros(2, 3, 4, 64, dtype="f16"), "k": zeros(2, 5, 2, 64, dtype="f16"),
                  "v": zeros(2, 5, 2, 64, dtype="f16"), "o": zeros(2, 3, 4, 64, dtype="f16")}
        plan = CONTEXT.plan(sluice.Problem("f16", 4, 2, 64))
        for name, value in (("batch", -1), ("q_len", 1 << 40), ("kv_len", 1.5), ("batch", 3), ("q_len", 4), ("kv_len", 6),
                            ("scale", float("nan")), ("scale", 1e39), ("scale", float("inf"))):
            with self.subTest(name, value=value), self.assertRaises(sluice.InvalidArgument) as caught:
                plan.run(**arrays, **{name: value})
            if value not in (3, 4, 6):  # else it is an array that is too short
                self.assertEqual(caught.exception.field, name)
        with self.assertRaises(sluice.Unsupported) as caught:
            plan.run(**arrays, scale=-1.0)
        self.assertEqual(caught.exception.field, "scale")
        for problem, name, array in ((RAGGED, "q_len", "q_starts"), (PAGED, "kv_len", "page_table")):
            unbounded = sluice.Problem("f16", 4, 2, 64, ragged=problem.ragged, page_size=problem.page_size,
                                       page_table_kind=problem.page_table_kind)
            q = f16(6, 4, 64) if array == "q_starts" else f16(2, 3, 4, 64)
            keys = f16(9, 2, 64) if array == "q_starts" else f16(4, 16, 2, 64)
            more = {"q_starts": numpy.array([0, 3, 6], I32), "kv_starts": numpy.array([0, 5, 9], I32)} \
                if array == "q_starts" else {"kv_lengths": numpy.array([20, 3], I32), "page_table": numpy.zeros((2, 2), I32)}
            with self.assertRaisesRegex(sluice.InvalidArgument, f"{name} is None, and the problem's max_{name} is 0"):
                sluice.reference(unbounded, q=q, o=q.copy(), k=keys, v=keys, **more)
        for name, value in (("q_heads", "four"), ("head_dim_qk", None), ("page_size", 1.5), ("soft_cap", "high"),
                            ("max_batch", 1 << 40)):
            with self.subTest(name), self.assertRaises(sluice.InvalidArgument) as caught:
                CONTEXT.plan(sluice.Problem(**{"q_type": "f16", "q_heads": 4, "kv_heads": 2, "head_dim_qk": 64, name: value}))
            self.assertEqual(caught.exception.field, name)
        with self.assertRaises(sluice.InvalidArgument) as caught:
            CONTEXT.query_support(sluice.Problem("f16", 4, 2, 64, head_dim_v=0))
        self.assertEqual(caught.exception.field, "kv.head_dim_v")
        for call in (CONTEXT.plan, CONTEXT.query_support, CONTEXT.preload):
            self.refused("problem", lambda call=call: call("text"))
        self.refused("strides", lambda: sluice.Tensor.at(4096, (1, 2), "f16", (1,)))

    def test_queries_and_lengths_that_differ(self):
        """Rows without a length would have no result."""
        cache = f16(4, 16, 2, 64)
        with self.assertRaisesRegex(sluice.InvalidArgument, r"kv_lengths.shape\[0\] is 2; it must be at least 3 \(batch\)"):
            sluice.reference(PAGED, q=f16(3, 1, 4, 64), k=cache, v=cache, o=f16(3, 1, 4, 64), lse=normal(3, 1, 4),
                             kv_lengths=numpy.array([20, 3], I32), page_table=numpy.array([[3, 1], [2, 0]], I32))
        with self.assertRaisesRegex(sluice.InvalidArgument, r"v.shape\[0\] is 2; it must be at least 4 \(pages of k\)"):
            sluice.reference(PAGED, q=f16(2, 1, 4, 64), k=cache, v=cache[:2], o=f16(2, 1, 4, 64), lse=normal(2, 1, 4),
                             kv_lengths=numpy.array([20, 3], I32), page_table=numpy.array([[3, 1], [2, 0]], I32))

    def test_caches(self):
        rows, cache = f16(3, 2, 64), f16(4, 16, 2, 64)
        append = {"k": rows, "v": rows, "k_cache": cache, "v_cache": cache.copy(), "slots": numpy.array([0, 5, -1])}
        by_starts = {**append, "slots": None, "starts": numpy.array([0, 3], I32), "kv_lengths": numpy.array([9], I32),
                     "page_table": numpy.array([[1, 2]], I32), "rotary": normal(20, 64), "q": f16(3, 4, 64),
                     "q_norm": normal(64), "k_norm": normal(64)}
        copy = {"k_source": cache, "v_source": cache, "k_target": cache.copy(), "v_target": cache.copy(),
                "pairs": numpy.array([[0, 1]], I32)}
        gather = {"k_cache": cache, "v_cache": cache, "k_out": rows.copy(), "v_out": rows.copy(),
                  "out_starts": numpy.array([0, 3], I32), "kv_lengths": numpy.array([3], I32),
                  "page_table": numpy.array([[1]], I32)}
        for right, on_host, method in ((append, sluice.reference_append, CONTEXT.append),
                                       (by_starts, sluice.reference_append, CONTEXT.append),
                                       (copy, sluice.reference_copy, CONTEXT.copy),
                                       (gather, sluice.reference_gather, CONTEXT.gather)):
            self.each(on_host, right)
            self.each(method, {name: None if array is None else on_device(array) for name, array in right.items()}, True)
        CONTEXT.synchronize()

    def test_merges(self):
        right = {"partial": zeros(3, 5, 4, 64), "partial_lse": zeros(3, 5, 4, dtype="f32"), "o": zeros(5, 4, 64),
                 "lse": zeros(5, 4, dtype="f32")}
        self.each(CONTEXT.merge, right, True)
        lists = {**right, "partial": [zeros(5, 4, 64)] * 2, "partial_lse": [zeros(5, 4, dtype="f32")] * 2}
        self.each(CONTEXT.merge, lists, True)
        CONTEXT.synchronize()


if __name__ == "__main__":
    unittest.main()
