"""The package on the emulator: results against a reference, and errors."""

import gc
import importlib.metadata
import pathlib
import threading
import unittest

import numpy

import sluice

CONTEXT = sluice.Context("emulated")
PACKAGE = pathlib.Path(__file__).resolve().parents[1]


def normal(*shape, seed=0):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(numpy.float32)


def zeros(*shape, dtype="bf16"):
    return CONTEXT.array(numpy.zeros(shape), dtype)


def on_host(bits, dtype):
    """A host array of stored elements, whose type numpy need not have."""
    strides = tuple(step // bits.itemsize for step in bits.strides)
    return sluice.Tensor(bits.ctypes.data, bits.shape, strides, sluice.DType[dtype.upper()], bits.itemsize, "host", bits)


def reference(problem, o_shape, **arrays):
    """The library's own reference, on the device's values, with O as F32."""
    plain = sluice.Problem("f32", problem.q_heads, problem.kv_heads, problem.head_dim_qk, problem.head_dim_v,
                           mode=problem.mode, causal=problem.causal, page_size=problem.page_size,
                           page_table_kind=problem.page_table_kind, v_in_k=problem.v_in_k, write_lse="lse" in arrays,
                           max_q_len=problem.max_q_len, max_kv_len=problem.max_kv_len, k_scale_kind=problem.k_scale_kind)
    o = numpy.empty(o_shape, numpy.float32)
    q, k, v = (arrays.pop(name, None) for name in ("q", "k", "v"))
    sluice.reference(plain, q, k, v, o, **arrays)
    return o


class Runs(unittest.TestCase):
    def check(self, o, wanted, largest, last_place):
        error = numpy.abs(o.numpy().astype(numpy.float64) - wanted).max()
        self.assertLessEqual(error, largest * (2 * last_place + 500 * 2.0 ** -23))

    def test_dense_of_each_type(self):
        for dtype, last_place in (("f16", 2.0 ** -11), ("bf16", 2.0 ** -8)):
            problem = sluice.Problem(dtype, q_heads=4, kv_heads=2, head_dim_qk=64, causal=True, write_lse=True)
            q, k, v = (CONTEXT.array(normal(2, *shape, seed=i), dtype)
                       for i, shape in enumerate([(19, 4, 64), (33, 2, 64), (33, 2, 64)]))
            o, lse = CONTEXT.empty((2, 19, 4, 64), dtype), CONTEXT.empty((2, 19, 4), "f32")
            CONTEXT.plan(problem).run(q, k, v, o, lse=lse)
            wanted_lse = numpy.empty((2, 19, 4), numpy.float32)
            values = [numpy.ascontiguousarray(x.numpy().astype(numpy.float32)) for x in (q, k, v)]
            wanted = reference(problem, o.shape, q=values[0], k=values[1], v=values[2], lse=wanted_lse)
            self.check(o, wanted, numpy.abs(values[2]).max(), last_place)
            self.assertLess(numpy.abs(lse.numpy() - wanted_lse).max(), 1e-5 * 20)

    def test_heads_before_tokens_are_strides(self):
        problem = sluice.Problem("bf16", q_heads=2, kv_heads=2, head_dim_qk=64)
        values = [normal(1, 2, 17, 64, seed=i) for i in range(3)]
        by_head = [CONTEXT.array(x, "bf16") for x in values]
        by_token = [CONTEXT.array(x.transpose(0, 2, 1, 3), "bf16") for x in values]
        o_by_head, o_by_token = CONTEXT.empty((1, 2, 17, 64), "bf16"), CONTEXT.empty((1, 17, 2, 64), "bf16")
        plan = CONTEXT.plan(problem)
        plan.run(*(x.permute(0, 2, 1, 3) for x in (*by_head, o_by_head)))
        plan.run(*by_token, o_by_token)
        numpy.testing.assert_array_equal(o_by_head.bits().transpose(0, 2, 1, 3), o_by_token.bits())

    def test_a_step_is_that_of_the_host(self):
        """Q in place, norms, tails, tables in two arrays and computed scales."""
        context, pages, page_size, tokens = CONTEXT, 4, 16, 5
        def f16(*shape, seed):
            return normal(*shape, seed=seed).astype(numpy.float16)
        k, v = f16(tokens, 2, 48, seed=4), f16(tokens, 2, 64, seed=5)
        q, k_tail = f16(tokens, 3, 64, seed=6), f16(tokens, 2, 16, seed=7)
        cosines, sines = f16(tokens, 8, seed=8), f16(tokens, 8, seed=9)
        k_norm = normal(48, seed=10).astype(numpy.float32)
        slots, positions = numpy.array([3, -1, 17, 40, 0]), numpy.array([4, 0, 3, 1, 2], numpy.int32)
        shape = (pages, page_size, 2, 64)
        host = {"caches": [numpy.zeros(shape, numpy.uint8) for _ in range(2)],
                "scales": [numpy.zeros(shape[:3], numpy.float32) for _ in range(2)], "q": q.copy()}
        caches = [context.array(numpy.zeros(shape), "e5m2fnuz") for _ in range(2)]
        scales = [context.array(numpy.zeros(shape[:3]), "f32") for _ in range(2)]
        device_q = context.array(q, "f16")
        usual = {"rotary_first": 48, "norm_epsilon": 1e-5, "rotary_style": sluice.RotaryStyle.PAIRS}
        context.append(context.array(k, "f16"), context.array(v, "f16"), *caches, slots=context.array(slots, "int64"),
                       positions=context.array(positions, "int32"), rotary=context.array(cosines, "f16"),
                       rotary_sin=context.array(sines, "f16"), q=device_q, k_tail=context.array(k_tail, "f16"),
                       k_norm=context.array(k_norm, "f32"), k_token_scales=scales[0], v_token_scales=scales[1], **usual)
        views = [sluice.Tensor(c.ctypes.data, c.shape, (16 * 128, 128, 64, 1), sluice.DType.E5M2FNUZ, 1, "host", c)
                 for c in host["caches"]]
        arrays = {"slots": slots, "positions": positions, "rotary": cosines, "rotary_sin": sines, "q": host["q"],
                  "k_tail": k_tail, "k_norm": k_norm, "k_token_scales": host["scales"][0],
                  "v_token_scales": host["scales"][1], **usual}
        sluice.reference_append(k, v, *views, **arrays)
        numpy.testing.assert_array_equal(caches[1].bits(), host["caches"][1])  # no norm, no rotation: exact
        numpy.testing.assert_array_equal(scales[1].numpy(), host["scales"][1])
        numpy.testing.assert_allclose(scales[0].numpy(), host["scales"][0], rtol=1e-5)
        numpy.testing.assert_allclose(device_q.numpy(), host["q"], rtol=2e-3, atol=1e-6)
        self.assertLessEqual(abs(caches[0].bits().astype(int) - host["caches"][0]).max(), 1)  # the neighbouring number
        self.assertGreater(abs(host["q"] - q).max(), 0.1)
        for field, wrong, part in (("rotary_sin", {"rotary_sin": sines[:, :4]}, "cosines of a position"),
                                   ("k_norm", {"k_norm": k_norm[:40]}, "elements of a normed row"),
                                   ("q", {"q": None, "q_out": q}, "q_out and q_tail need it"),
                                   ("k_page_scales", {"k_page_scales": host["scales"][0][:, 0]}, "are both given"),
                                   ("k_token_scales", {"k_token_scales": host["scales"][0][:, :4]}, "rows of a page")):
            with self.assertRaises(sluice.InvalidArgument) as caught:
                sluice.reference_append(k, v, *views, **{**arrays, **wrong})
            self.assertEqual(caught.exception.field, field)
            self.assertIn(part, str(caught.exception))

    def test_append_then_decode_of_fp8_pages(self):
        context = CONTEXT
        pages, page_size, lengths = 12, 16, numpy.array([40, 17], numpy.int32)
        table = numpy.array([[3, 7, 1], [9, 0, 2]], numpy.int32)
        k_cache, v_cache = (context.array(numpy.zeros((pages, page_size, 2, 64)), "e4m3fnuz") for _ in range(2))
        k, v = normal(57, 2, 64, seed=1), normal(57, 2, 64, seed=2)
        starts = context.array(numpy.array([0, 40, 57]), "int32")
        scale = context.array(numpy.array([0.5, 0.25]), "f32")
        arrays = {"kv_lengths": context.array(lengths, "int32"), "page_table": context.array(table, "int32")}
        context.append(context.array(k, "bf16"), context.array(v, "bf16"), k_cache, v_cache, starts=starts, k_scale=scale,
                       v_scale=scale, **arrays)
        host = [numpy.zeros((pages, page_size, 2, 64), numpy.uint8) for _ in range(2)]
        bf16 = [context.array(x, "bf16") for x in (k, v)]
        # numpy has no BF16: views give host arrays their type.
        views = [sluice.Tensor(b.ctypes.data, b.shape, (128, 64, 1), sluice.DType.BF16, 2, "host", b)
                 for b in (x.bits() for x in bf16)]
        caches = [sluice.Tensor(c.ctypes.data, c.shape, (16 * 128, 128, 64, 1), sluice.DType.E4M3FNUZ, 1, "host", c)
                  for c in host]
        sluice.reference_append(*views, *caches, starts=starts.bits(), kv_lengths=lengths, page_table=table,
                                k_scale=scale.numpy(), v_scale=scale.numpy())
        numpy.testing.assert_array_equal(k_cache.bits(), host[0])
        numpy.testing.assert_array_equal(v_cache.bits(), host[1])

        per_head = sluice.ScaleKind.PER_HEAD
        problem = sluice.Problem("bf16", q_heads=4, kv_heads=2, head_dim_qk=64, k_type="e4m3fnuz", mode=sluice.Mode.PAGED,
                                 page_size=page_size, page_table_kind=sluice.PageTableKind.BLOCK, max_batch=2, max_q_len=1,
                                 max_kv_len=48, k_scale_kind=per_head, v_scale_kind=per_head)
        q, o = context.array(normal(2, 1, 4, 64, seed=3), "bf16"), context.empty((2, 1, 4, 64), "bf16")
        plan = context.plan(problem)
        workspace = context.empty((max(plan.info.workspace_bytes, 1),), "uint8")
        plan.run(q, k_cache, v_cache, o, k_scale=scale, v_scale=scale, workspace=workspace, **arrays)
        for sequence, length in enumerate(lengths):
            keys, values = (cache.numpy()[table[sequence]].reshape(48, 2, 64)[:length] * scale.numpy()[:, None]
                            for cache in (k_cache, v_cache))
            for head in range(4):
                score = keys[:, head // 2] @ q.numpy()[sequence, 0, head] / 8
                weight = numpy.exp(score - score.max())
                wanted = weight @ values[:, head // 2] / weight.sum()
                self.assertLess(numpy.abs(o.numpy()[sequence, 0, head] - wanted).max(), 0.03)

    def test_keys_of_a_prefix_come_before_those_of_a_sequence(self):
        problem = sluice.Problem("bf16", q_heads=4, kv_heads=2, head_dim_qk=64, shared_prefix=True, max_prefixes=1,
                                 max_prefix_len=100, max_q_tokens=6, causal=True)
        q, k, v, prefix_k, prefix_v = (CONTEXT.array(normal(*shape, seed=i), "bf16") for i, shape in enumerate(
            [(3, 2, 4, 64), (3, 9, 2, 64), (3, 9, 2, 64), (1, 100, 2, 64), (1, 100, 2, 64)]))
        o, plan = CONTEXT.empty((3, 2, 4, 64), "bf16"), CONTEXT.plan(problem)
        # The rows of the last two sequences see it.
        arrays = {"prefix_q_starts": CONTEXT.array(numpy.array([2, 6]), "int32"), "prefix_k": prefix_k,
                  "prefix_v": prefix_v}
        plan.run(q, k, v, o, workspace=CONTEXT.empty((plan.info.workspace_bytes,), "uint8"), **arrays)
        values = [numpy.ascontiguousarray(x.numpy().astype(numpy.float32)) for x in (q, k, v, prefix_k, prefix_v)]
        joined = [numpy.concatenate([numpy.repeat(prefix, 3, 0), own], 1)
                  for prefix, own in ((values[3], values[1]), (values[4], values[2]))]
        plain = sluice.Problem("bf16", q_heads=4, kv_heads=2, head_dim_qk=64, causal=True)
        own, both = (reference(plain, o.shape, q=values[0], k=k, v=v)
                     for k, v in ((values[1], values[2]), joined))
        self.check(o, numpy.concatenate([own[:1], both[1:]]), numpy.abs(joined[1]).max(), 2.0 ** -8)
        for name, wrong in (("prefix_q_starts", None), ("prefix_k", k)):
            with self.assertRaises(sluice.InvalidArgument) as caught:
                plan.run(q, k, v, o, prefix_len=100, **{**arrays, name: wrong})
            self.assertEqual(caught.exception.field, name)
        with self.assertRaises(sluice.InvalidArgument) as caught:
            CONTEXT.plan(plain).run(q, k, v, o, **arrays)
        self.assertEqual(caught.exception.field, "prefix_q_starts")

    def test_merge(self):
        partial, lse = normal(3, 5, 2, 64, seed=4), normal(3, 5, 2, seed=5)
        o, merged = CONTEXT.empty((5, 2, 64), "bf16"), CONTEXT.empty((5, 2), "f32")
        CONTEXT.merge(CONTEXT.array(partial, "f32"), CONTEXT.array(lse, "f32"), o, lse=merged)
        weight = numpy.exp(lse.astype(numpy.float64))
        wanted = (partial * weight[..., None]).sum(0) / weight.sum(0)[..., None]
        self.check(o, wanted, numpy.abs(partial).max(), 2.0 ** -8)
        self.assertLess(numpy.abs(merged.numpy() - numpy.log(weight.sum(0))).max(), 1e-5)

    def test_streams_wait_and_signal(self):
        problem = sluice.Problem("f16", q_heads=1, kv_heads=1, head_dim_qk=64)
        plan = CONTEXT.plan(problem)
        q, k, v = (CONTEXT.array(normal(1, 9, 1, 64, seed=i), "f16") for i in range(3))
        first, second = CONTEXT.stream(), CONTEXT.stream()
        between, last = CONTEXT.event(), CONTEXT.event()
        middle, o, wanted = (CONTEXT.empty((1, 9, 1, 64), "f16") for _ in range(3))
        plan.run(q, k, v, middle, stream=first, signal=between)
        plan.run(middle, k, v, o, stream=second, wait=[sluice.Wait(between)], signal=last)
        last.synchronize()
        self.assertTrue(last.query())
        plan.run(middle, k, v, wanted)
        numpy.testing.assert_array_equal(o.bits(), wanted.bits())
        second.synchronize()

    def test_threads_share_a_plan(self):
        problem = sluice.Problem("bf16", q_heads=2, kv_heads=1, head_dim_qk=64, causal=True)
        q, k, v = (CONTEXT.array(normal(1, 40, heads, 64, seed=heads), "bf16") for heads in (2, 1, 1))
        results = []

        def work():
            CONTEXT.bind_thread()
            o = CONTEXT.empty((1, 40, 2, 64), "bf16")
            CONTEXT.plan(problem).run(q, k, v, o)
            results.append(o.bits())

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(results), 4)
        for bits in results[1:]:
            numpy.testing.assert_array_equal(bits, results[0])

    def test_a_forgotten_context_waits_for_its_work(self):
        context = sluice.Context("emulated")
        problem = sluice.Problem("bf16", q_heads=8, kv_heads=1, head_dim_qk=128)
        q, k, v = (CONTEXT.array(normal(1, 300, heads, 128, seed=heads), "bf16") for heads in (8, 1, 1))
        o, wanted = (CONTEXT.empty((1, 300, 8, 128), "bf16") for _ in range(2))
        stream = CONTEXT.stream()
        done = CONTEXT.event()
        context.plan(problem).run(q, k, v, o, stream=stream, signal=done)
        del context
        gc.collect()
        self.assertTrue(done.query())
        CONTEXT.plan(problem).run(q, k, v, wanted)
        numpy.testing.assert_array_equal(o.bits(), wanted.bits())


class MasksAndScales(unittest.TestCase):
    """What problems have since ABI 1.1: the device and the library's reference, against loops in double precision."""

    BATCH, ROWS, KEYS, HEADS, KV_HEADS, DIM = 2, 9, 40, 4, 2, 64
    ALL = numpy.ones((ROWS, KEYS), bool)

    def attend(self, b, h, sees, score=lambda s: s, of_v=1.0):
        """O [rows, dim] of a head: `score` changes the scores [rows, keys], and `of_v` are scales of V's rows."""
        q, k, v = (x[b, :, h * x.shape[2] // self.HEADS].astype(numpy.float64) for x in self.values)
        weight = numpy.where(sees, numpy.exp(score(q @ k.T / numpy.sqrt(self.DIM))), 0)
        return weight @ (v * numpy.reshape(of_v, (-1, 1))) / weight.sum(1, keepdims=True)

    def check(self, wanted, problem, arrays, o_type="f16", last_place=2.0 ** -11, kv_type="f16"):
        """Runs a call on both sides; `wanted` is O of a sequence and head."""
        shapes = [(self.ROWS, self.HEADS), (self.KEYS, self.KV_HEADS), (self.KEYS, self.KV_HEADS)]
        kinds = ("f16", kv_type, kv_type)
        on_device = [CONTEXT.array(normal(self.BATCH, *shape, self.DIM, seed=i), kind)
                     for i, (shape, kind) in enumerate(zip(shapes, kinds))]
        self.values = [x.numpy() for x in on_device]
        problem = sluice.Problem("f16", self.HEADS, self.KV_HEADS, self.DIM, k_type=kv_type, o_type=o_type, **problem)
        o, of_host = (CONTEXT.empty((self.BATCH, self.ROWS, self.HEADS, self.DIM), o_type) for _ in range(2))
        types = {"f": "f32", "i": "int32", "u": "uint8"}
        CONTEXT.plan(problem).run(*on_device, o, **{
            name: CONTEXT.array(array, types[array.dtype.kind]) for name, array in arrays.items()})
        bits = o.bits().copy()  # of the right type; all of it is overwritten
        plain = on_host(bits, o_type)
        bits.fill(0)
        sluice.reference(problem, *(on_host(x.bits(), kind) for x, kind in zip(on_device, kinds)), plain, **arrays)
        of_host.copy_bits_from(plain)
        wanted = numpy.stack([numpy.stack([wanted(b, h) for h in range(self.HEADS)], 1) for b in range(self.BATCH)])
        wanted = numpy.clip(wanted, -240, 240) if o_type == "e4m3fnuz" else wanted
        rounding = last_place * numpy.abs(wanted) * 1.000001
        # Half of the last place of the smallest numbers. P is rounded too, by at most 2^-10 of a sum of |P V|.
        for found, allowed in ((of_host, 2.0 ** -11 if o_type == "e4m3fnuz" else 2.0 ** -24), (o, self.largest(wanted))):
            error = numpy.abs(found.numpy().astype(numpy.float64) - wanted)
            self.assertTrue((error <= rounding + allowed).all(), (error - rounding).max())

    def largest(self, wanted):
        """The most that rounding P may change of each head."""
        return 2.0 ** -8 * numpy.abs(wanted).max((0, 1, 3), keepdims=True)

    def test_scales_of_tokens(self):
        token = sluice.ScaleKind.PER_TOKEN
        k_scales, v_scales = (numpy.abs(normal(self.BATCH, self.KEYS, self.KV_HEADS, seed=i)) + 0.25 for i in (5, 6))
        for kv_type, factor in (("e4m3fnuz", 1), ("i8", 0.5)):  # integers reach 4, and the scores the same size
            k, v = k_scales * numpy.float32(factor), v_scales * numpy.float32(factor)
            self.check(lambda b, h, k=k, v=v: self.attend(b, h, self.ALL, lambda s: s * k[b, :, h // 2], v[b, :, h // 2]),
                       {"k_scale_kind": token, "v_scale_kind": token}, {"k_scales": k, "v_scales": v}, kv_type=kv_type)

    def test_scales_of_tokens_of_sequences_one_after_the_other(self):
        token = sluice.ScaleKind.PER_TOKEN
        q, k, v = normal(2, 3, 2, 8), normal(2, 5, 1, 8, seed=1), normal(2, 5, 1, 8, seed=2)
        scales = numpy.abs(normal(2, 5, 1, seed=3))
        results = []
        for mode, rows, starts in ((sluice.Mode.DENSE, lambda x: x, {}), (
                sluice.Mode.RAGGED, lambda x: x.reshape(-1, *x.shape[2:]),
                {"q_starts": numpy.array([0, 3, 6], numpy.int32), "kv_starts": numpy.array([0, 5, 10], numpy.int32)})):
            problem = sluice.Problem("f32", 2, 1, 8, mode=mode, k_scale_kind=token, v_scale_kind=token, max_q_len=3, max_kv_len=5)
            o = rows(numpy.zeros((2, 3, 2, 8), numpy.float32))
            sluice.reference(problem, rows(q), rows(k), rows(v), o, k_scales=rows(scales), v_scales=rows(scales[:, ::-1].copy()),
                             **starts)
            results.append(o.reshape(2, 3, 2, 8))
        numpy.testing.assert_array_equal(*results)
        self.assertGreater(numpy.abs(results[0]).min(), 0)

    def test_scales_of_pages(self):
        page = sluice.ScaleKind.PER_PAGE
        table, lengths = numpy.array([[2, 0, 5], [4, 1, 3]], numpy.int32), numpy.array([40, 33], numpy.int32)
        problem = sluice.Problem("bf16", 4, 2, 64, k_type="e4m3fnuz", mode=sluice.Mode.PAGED, page_size=16, max_kv_len=48,
                                 page_table_kind=sluice.PageTableKind.BLOCK, k_scale_kind=page, v_scale_kind=page)
        q = CONTEXT.array(normal(2, 3, 4, 64), "bf16")
        k, v = (CONTEXT.array(normal(6, 16, 2, 64, seed=i), "e4m3fnuz") for i in (1, 2))
        k_scales, v_scales = (CONTEXT.array(numpy.abs(normal(6, 2, seed=i)) + 0.25, "f32") for i in (3, 4))
        o = CONTEXT.empty((2, 3, 4, 64), "bf16")
        CONTEXT.plan(problem).run(q, k, v, o, page_table=CONTEXT.array(table, "int32"), k_scales=k_scales,
                                  v_scales=v_scales, kv_lengths=CONTEXT.array(lengths, "int32"))
        for b, length in enumerate(lengths):
            keys, values = ((x.numpy() * scales.numpy()[:, None, :, None])[table[b]].reshape(48, 2, 64)[:length]
                            for x, scales in ((k, k_scales), (v, v_scales)))
            for h in range(4):
                weight = numpy.exp(q.numpy()[b, :, h].astype(numpy.float64) @ keys[:, h // 2].T / 8)
                wanted = weight @ values[:, h // 2] / weight.sum(1, keepdims=True)
                self.assertLess(numpy.abs(o.numpy()[b, :, h] - wanted).max(), 2.0 ** -7 * numpy.abs(wanted).max())

    def test_an_fp8_result_with_scales(self):
        o_scale = numpy.array([0.25, 0.01, 0.001, 1], numpy.float32)
        self.check(lambda b, h: self.attend(b, h, self.ALL) / o_scale[h], {"o_scale_kind": sluice.ScaleKind.PER_HEAD},
                   {"o_scale": o_scale}, "e4m3fnuz", 2.0 ** -4)

    def test_diagonals_and_spans_of_causal_sequences(self):
        diagonals, causal = numpy.array([5, 20], numpy.int32), numpy.array([1, 0], numpy.int32)
        spans = numpy.array([[[2, 9], [11, 30]], [[0, 0], [15, 26]]], numpy.int32)

        def sees(b):
            place, key = diagonals[b] + numpy.arange(self.ROWS)[:, None], numpy.arange(self.KEYS)[None, :]
            together = numpy.zeros((self.ROWS, self.KEYS), bool)
            for first, end in spans[b]:
                together |= (first <= place) & (place < end) & (first <= key) & (key < end)
            in_place = (key >= place - 3) & ((key <= place) if causal[b] else True)
            return in_place | together

        self.check(lambda b, h: self.attend(b, h, sees(b)),
                   {"mask_alignment": sluice.MaskAlignment.GIVEN_DIAGONAL, "spans": True, "causal_by_sequence": True,
                    "window_left": 3}, {"diagonals": diagonals, "causal": causal, "spans": spans})

    def test_a_mask_of_new_rows(self):
        bits = numpy.random.default_rng(8).integers(0, 256, (self.BATCH, 1, self.ROWS, 2)).astype(numpy.uint8)
        sees = numpy.ones((self.BATCH, self.ROWS, self.KEYS), bool)
        sees[:, :, -self.ROWS:] = numpy.unpackbits(bits[:, 0], axis=2, bitorder="little")[:, :, :self.ROWS]
        self.check(lambda b, h: self.attend(b, h, sees[b]), {"bool_mask": True, "mask_new_rows": True}, {"mask": bits})

    def test_factors_and_slopes(self):
        distance = numpy.abs(numpy.arange(self.KEYS - self.ROWS, self.KEYS)[:, None] - numpy.arange(self.KEYS)[None, :])
        bias = normal(1, 1, self.ROWS, self.KEYS, seed=9)
        for shape in ((self.BATCH, self.HEADS), (self.HEADS,)):
            factors, slopes = normal(*shape, seed=10), numpy.abs(normal(*shape, seed=11)) / 8
            factor, slope = (numpy.broadcast_to(x, (self.BATCH, self.HEADS)) for x in (factors, slopes))

            def wanted(b, h, factor=factor, slope=slope):
                return self.attend(b, h, self.ALL, lambda s: s + factor[b, h] * bias[0, 0] - slope[b, h] * distance)

            self.check(wanted, {"bias_type": "f32", "bias_scale": True, "alibi": True},
                       {"bias": bias, "bias_scale": factors, "alibi_slopes": slopes})

    def test_refusals(self):
        page, token, head = sluice.ScaleKind.PER_PAGE, sluice.ScaleKind.PER_TOKEN, sluice.ScaleKind.PER_HEAD
        invalid = sluice.InvalidArgument
        for fields, kind, field, message in (
                ({"k_scale_kind": page}, invalid, "k_scale_kind", "SLUICE_MODE_PAGED"),
                ({"q_scale_kind": token}, sluice.Unsupported, "q_scale_kind", "q_scale_kind is 3"),
                ({"o_scale_kind": head}, invalid, "o_scale_kind", "unless o_type is e4m3fnuz"),
                ({"mask_new_rows": True}, invalid, "flags", "lacks SLUICE_BOOL_MASK"),
                ({"causal": True, "causal_by_sequence": True}, invalid, "flags", "at most one"),
                ({"bias_scale": True}, invalid, "flags", "bias_type is 0")):
            with self.subTest(message), self.assertRaisesRegex(kind, message) as caught:
                CONTEXT.query_support(sluice.Problem("f16", 4, 2, 64, **fields))
            self.assertEqual(caught.exception.field, field)

        def floats(*shape):
            return CONTEXT.array(numpy.ones(shape), "f32")

        def ints(*shape):
            return CONTEXT.array(numpy.zeros(shape, numpy.int32), "int32")

        scaled, fp8 = {"k_scale_kind": token, "k_type": "e4m3fnuz"}, {"k_type": "e4m3fnuz"}
        for fields, arrays, field, message in (
                (scaled, {}, "k_scales.data", "k_scales.data is NULL"),
                (scaled, {"k_scales": floats(2, 39, 2)}, "k_scales", "k_scales.shape[1] is 39; it must be at least 40"),
                (scaled, {"k_scales": floats(2, 40, 4)}, "k_scales", "k_scales.shape[2] is 4; it must be 2 (kv_heads)"),
                (scaled, {"k_scales": zeros(2, 40, 2)}, "k_scales", "k_scales is of BF16; it must be of F32"),
                (fp8, {"v_scales": floats(2, 40, 2)}, "v_scales.data", "v_scale_kind is not PER_TOKEN, PER_PAGE or PER_GROUP"),
                ({}, {"diagonals": ints(2)}, "diagonals", "mask_alignment"),
                ({}, {"causal": ints(1)}, "causal", "causal.shape[0] is 1; it must be at least 2 (batch)"),
                ({}, {"spans": ints(2, 3)}, "spans", "spans has 2 dimensions; it must have 3"),
                ({}, {"spans": ints(2, 3, 3)}, "spans", "spans.shape[2] is 3; it must be 2"),
                ({"spans": True}, {"spans": ints(1, 3, 2)}, "spans", "spans.shape[0] is 1; it must be at least 2 (batch)"),
                ({"spans": True}, {"spans": ints(2, 2, 3).permute(0, 2, 1)}, "spans", "they must have no gaps"),
                ({"spans": True}, {}, "spans", "spans is NULL"),
                ({"alibi": True}, {"alibi_slopes": floats(1, 4)}, "alibi_slopes", "must be at least 2 (batch)"),
                ({"alibi": True}, {"alibi_slopes": floats(2, 3)}, "alibi_slopes", "must be 4 (q_heads)"),
                ({"alibi": True}, {"alibi_slopes": floats(4, 2).permute(1, 0)}, "alibi_slopes", "between heads; it must be 1"),
                ({}, {"bias_scale": floats(4)}, "bias_scale", "lack SLUICE_BIAS_SCALE"),
                ({}, {"o_scale": floats(1)}, "o_scale", "o_scale_kind is SLUICE_SCALE_NONE"),
                ({"bool_mask": True, "mask_new_rows": True}, {"mask": CONTEXT.empty((2, 1, 9, 1), "uint8")}, "mask",
                 "mask.shape[3] is 1; it must be at least 2")):
            with self.subTest(message), self.assertRaises(invalid) as caught:
                problem = sluice.Problem("bf16", 4, 2, 64, **fields)
                keys = zeros(2, 40, 2, 64, dtype=fields.get("k_type", "bf16"))
                CONTEXT.plan(problem).run(zeros(2, 9, 4, 64), keys, keys, zeros(2, 9, 4, 64), **arrays)
            self.assertEqual(caught.exception.field, field)
            self.assertIn(message, str(caught.exception))

    def test_page_numbers_stay_within_scales(self):
        """Scales count as pages: no page number leads out of them."""
        page = sluice.ScaleKind.PER_PAGE
        problem = sluice.Problem("f32", 1, 1, 8, mode=sluice.Mode.PAGED, page_size=16, max_kv_len=16,
                                 page_table_kind=sluice.PageTableKind.BLOCK, k_scale_kind=page)
        arrays = {"page_table": numpy.array([[1]], numpy.int32), "kv_lengths": numpy.array([3], numpy.int32)}
        rows, pages = numpy.ones((1, 1, 1, 8), numpy.float32), numpy.ones((2, 16, 1, 8), numpy.float32)
        sluice.reference(problem, rows, pages, pages, rows.copy(), k_scales=numpy.ones((2, 1), numpy.float32), **arrays)
        with self.assertRaisesRegex(sluice.InvalidArgument, "page_count, which is 1"):
            sluice.reference(problem, rows, pages, pages, rows.copy(), k_scales=numpy.ones((1, 1), numpy.float32), **arrays)

    def test_kernels_list_these_features(self):
        self.assertTrue(any("spans" in kernel.more_features for kernel in CONTEXT.kernels()))


class Blocks(unittest.TestCase):
    """K and V in bytes of blocks: the device and the library's reference, against loops over their elements."""

    PAGES, PAGE_SIZE, HEADS, KV_HEADS, DIM, GROUP = 7, 16, 4, 2, 128, 64
    TABLE, LENGTHS = numpy.array([[5, 0, 3], [2, 6, 1]], numpy.int32), numpy.array([41, 20], numpy.int32)

    def cache(self, dtype, seed):
        """Bytes of pages, the elements, and scales and zeros of groups."""
        random, shape = numpy.random.default_rng(seed), (self.PAGES, self.PAGE_SIZE, self.KV_HEADS)
        if dtype == "u4":
            numbers = random.integers(0, 256, (*shape, self.DIM // 2)).astype(numpy.uint8)
            scales = random.uniform(0.05, 0.2, (*shape, self.DIM // self.GROUP)).astype(numpy.float16)
            zeros_ = random.uniform(6, 9, scales.shape).astype(numpy.float16)
            of_pairs = numpy.stack([numbers & 15, numbers >> 4], -1).reshape(*shape, -1, self.GROUP).astype(numpy.float64)
            elements = (of_pairs - zeros_[..., None]) * scales[..., None]
            return numbers, elements.reshape(*shape, self.DIM), scales, zeros_
        blocks = (*shape, self.DIM // 32)
        if dtype == "q8_0":
            scales, numbers = random.uniform(0.005, 0.01, blocks), random.integers(-127, 128, (*blocks, 32)).astype(numpy.int8)
            of_blocks = numbers.astype(numpy.float64)
        else:
            scales, numbers = random.uniform(-0.2, 0.2, blocks), random.integers(0, 256, (*blocks, 16)).astype(numpy.uint8)
            of_blocks = numpy.concatenate([numbers & 15, numbers >> 4], -1).astype(numpy.float64) - 8
        scales = scales.astype(numpy.float16)
        data = numpy.concatenate([scales[..., None].view(numpy.uint8), numbers.view(numpy.uint8)], -1)
        return data.reshape(*shape, -1), (of_blocks * scales[..., None]).reshape(*shape, self.DIM), None, None

    def problem(self, dtype, **fields):
        if dtype == "u4":
            group = sluice.ScaleKind.PER_GROUP
            fields = {"k_scale_kind": group, "v_scale_kind": group, "scale_group": self.GROUP, "zero_points": True, **fields}
        return sluice.Problem("f16", self.HEADS, self.KV_HEADS, self.DIM, k_type=dtype, mode=sluice.Mode.PAGED,
                              page_size=self.PAGE_SIZE, max_kv_len=48, page_table_kind=sluice.PageTableKind.BLOCK, **fields)

    def arrays(self, dtype):
        """The arguments of a call on the host, and the elements of K and V."""
        (k, k_elements, k_scales, k_zeros), (v, v_elements, v_scales, v_zeros) = (self.cache(dtype, seed) for seed in (1, 2))
        arrays = {"q": normal(2, 1, self.HEADS, self.DIM).astype(numpy.float16), "k": k, "v": v, "page_table": self.TABLE,
                  "kv_lengths": self.LENGTHS, "k_scales": k_scales, "v_scales": v_scales, "k_zeros": k_zeros,
                  "v_zeros": v_zeros}
        return {name: array for name, array in arrays.items() if array is not None}, k_elements, v_elements

    @staticmethod
    def on_device(arrays):
        types = {"f": "f16", "i": "int32", "u": "uint8"}
        return {name: CONTEXT.array(array, types[array.dtype.kind]) for name, array in arrays.items()}

    def test_results(self):
        for dtype in ("q8_0", "q4_0", "u4"):
            arrays, k, v = self.arrays(dtype)
            of_host, o = numpy.zeros(arrays["q"].shape, numpy.float16), CONTEXT.empty(arrays["q"].shape, "f16")
            problem = self.problem(dtype)
            sluice.reference(problem, **arrays, o=of_host)
            CONTEXT.plan(problem).run(**self.on_device(arrays), o=o)
            for b, length in enumerate(self.LENGTHS):
                keys, values = (x[self.TABLE[b]].reshape(-1, self.KV_HEADS, self.DIM)[:length] for x in (k, v))
                for h in range(self.HEADS):
                    scores = arrays["q"][b, 0, h].astype(numpy.float64) @ keys[:, h // 2].T / numpy.sqrt(self.DIM)
                    wanted = numpy.exp(scores) @ values[:, h // 2] / numpy.exp(scores).sum()
                    last_place = 2.0 ** -11 * numpy.abs(wanted) + 2.0 ** -24
                    self.assertTrue((numpy.abs(of_host[b, 0, h] - wanted) <= last_place * 1.000001).all(), dtype)
                    # Elements are rounded to 11 bits, and P too.
                    self.assertLess(numpy.abs(o.numpy()[b, 0, h] - wanted).max(), 4 * 2.0 ** -10, dtype)
                    self.assertGreater(numpy.abs(wanted).max(), 0.1)

    def test_strides_of_bytes(self):
        """Pages of [head][row] in memory, with a gap of a block after each row."""
        arrays, _, _ = self.arrays("q4_0")
        size, wanted = self.DIM // 32 * 18, numpy.zeros(arrays["q"].shape, numpy.float16)
        problem, found = self.problem("q4_0"), wanted.copy()
        sluice.reference(problem, **arrays, o=wanted)
        for name in ("k", "v"):
            wide = numpy.full((self.PAGES, self.KV_HEADS, self.PAGE_SIZE, size + 18), 255, numpy.uint8)
            wide[..., :size] = arrays[name].transpose(0, 2, 1, 3)
            arrays[name] = wide.transpose(0, 2, 1, 3)[..., :size]
        sluice.reference(problem, **arrays, o=found)
        numpy.testing.assert_array_equal(found, wanted)
        arrays["k"] = numpy.zeros((*arrays["k"].shape[:3], size + 1), numpy.uint8)[..., :size]
        with self.assertRaisesRegex(sluice.InvalidArgument, "a stride of .* bytes; it must be a multiple of 18"):
            sluice.reference(problem, **arrays, o=found)

    def test_refusals(self):
        group, invalid = sluice.ScaleKind.PER_GROUP, sluice.InvalidArgument
        for dtype, fields, field, message in (
                ("q8_0", {"head_dim_v": 136}, "head_dim_v", "136; it must be a multiple of 32 for q8_0"),
                ("q4_0", {"k_scale_kind": group}, "k_scale_kind", "unless the type is u4"),
                ("q4_0", {"scale_group": 32}, "scale_group", "it must be 0 without scales per group"),
                ("q8_0", {"zero_points": True}, "flags", "SLUICE_ZERO_POINTS"),
                ("u4", {"scale_group": 48}, "scale_group", "48; it must be 32 or 64"),
                ("u4", {"v_scale_kind": sluice.ScaleKind.NONE}, "v_scale_kind", "for u4")):
            with self.subTest(message), self.assertRaises(invalid) as caught:
                CONTEXT.query_support(self.problem(dtype, **fields))
            self.assertEqual(caught.exception.field, field)
            self.assertIn(message, str(caught.exception))
        arrays, _, _ = self.arrays("u4")
        for changed, field, message in (
                ({"k": arrays["k"][..., :40]}, "k", "k.shape[3] is 40; it must be 64 (bytes of a row of 128 elements of U4)"),
                ({"k": arrays["k"].astype(numpy.int32)}, "k", "it must be of integers of 1 bytes"),
                ({"v_scales": arrays["v_scales"][..., :1]}, "v_scales", "it must be at least 2 (groups of a row)"),
                ({"k_zeros": arrays["k_zeros"].astype(numpy.float32)}, "k_zeros", "it must be of F16"),
                ({"k_zeros": None}, "k_zeros.data", "NULL"),
                ({"v_zeros": arrays["v_zeros"][:3]}, "page_table[0]", "page_count, which is 3")):
            with self.subTest(message), self.assertRaises(invalid) as caught:
                sluice.reference(self.problem("u4"), **{**arrays, **changed}, o=arrays["q"].copy())
            self.assertEqual(caught.exception.field, field)
            self.assertIn(message, str(caught.exception))
        with self.assertRaisesRegex(invalid, "dtype is Q8_0, .* arrays of it are of bytes"):
            CONTEXT.empty((2, 64), "q8_0")


class PagesAndKeys(unittest.TestCase):
    """Copies of pages, gathers of keys: the device stores what the host does."""

    def test_copies_and_gathers(self):
        values = [normal(4, 8, 2, dim, seed=dim).astype(numpy.float16) for dim in (64, 32)]
        scale, pairs = numpy.array([0.5, 0.125], numpy.float32), numpy.array([[0, 3], [-1, 1], [2, 0]])
        host = [numpy.zeros(x.shape, numpy.uint8) for x in values]
        device = [CONTEXT.array(numpy.zeros(x.shape), "e4m3fnuz") for x in values]
        scales = {"k_scale": scale, "v_scale": scale[:1]}
        on_device = {name: CONTEXT.array(array, "f32") for name, array in scales.items()}
        CONTEXT.copy(*(CONTEXT.array(x, "f16") for x in values), *device, pairs=CONTEXT.array(pairs, "int64"), **on_device)
        fp8 = [on_host(x, "e4m3fnuz") for x in host]
        sluice.reference_copy(*values, *fp8, pairs=pairs.astype(numpy.int32), **scales)
        for found, wanted in zip(device, host):
            numpy.testing.assert_array_equal(found.bits(), wanted)
            self.assertTrue(wanted[0].any() and wanted[3].any() and not wanted[1:3].any())

        table, lengths, first = (numpy.array(x, numpy.int32) for x in ([[3, 0], [0, 2]], [13, 5], [2, 1]))
        starts = numpy.array([1, 12, 20], numpy.int32)
        rows = [numpy.zeros((20, 2, dim), numpy.float16) for dim in (64, 32)]
        device_rows = [CONTEXT.array(x, "f16") for x in rows]
        arrays = {"out_starts": starts, "kv_lengths": lengths, "page_table": table, "first_keys": first}
        CONTEXT.gather(*device, *device_rows, **{name: CONTEXT.array(x, "int32") for name, x in arrays.items()}, **on_device)
        sluice.reference_gather(*fp8, *rows, **arrays, **scales)
        for found, wanted, cache in zip(device_rows, rows, device):
            numpy.testing.assert_array_equal(found.numpy(), wanted)
            factor = scale if wanted.shape[2] == 64 else scale[:1]
            keys = cache.numpy()[table].reshape(2, 16, 2, -1) * factor[:, None]
            numpy.testing.assert_array_equal(wanted[1:12], keys[0, 2:13].astype(numpy.float16))
            numpy.testing.assert_array_equal(wanted[12:16], keys[1, 1:5].astype(numpy.float16))
            self.assertFalse(wanted[0].any() or wanted[16:].any())
        csr = {**arrays, "page_table": numpy.array([3, 0, 0], numpy.int64), "page_starts": numpy.array([0, 2, 3], numpy.int32)}
        again = [numpy.zeros_like(x) for x in rows]
        sluice.reference_gather(*fp8, *again, **csr, **scales)
        numpy.testing.assert_array_equal(again[0], rows[0])

        invalid = sluice.InvalidArgument
        for call, field, message in (
                (lambda: sluice.reference_copy(*values, *fp8, pairs=numpy.array([[4, 0]]), **scales), "pairs[0]", "4"),
                (lambda: sluice.reference_copy(*values, *fp8, pairs=numpy.zeros((2, 3), int), **scales), "pairs",
                 "pairs.shape[1] is 3; it must be 2"),
                (lambda: sluice.reference_copy(*values, fp8[0], None, **scales), "v_target", "v_target is None"),
                (lambda: sluice.reference_copy(*values, fp8[1], fp8[1], **scales), "k_target", "it must have 64, as k_source"),
                (lambda: sluice.reference_copy(values[0], fp8[1], *fp8, **scales), "v_source", "it must be of F16"),
                (lambda: sluice.reference_gather(*fp8, rows[0], rows[0], **arrays, **scales), "v_out", "v_out.shape[2] is 64"),
                (lambda: sluice.reference_gather(*fp8, *rows, **{**arrays, "kv_lengths": lengths[:1]}, **scales), "kv_lengths",
                 "it must be at least 2 (batch)"),
                (lambda: sluice.reference_gather(*fp8, *rows, **{**arrays, "page_table": table + 1}, **scales),
                 "page_table[0]", "4")):
            with self.subTest(message), self.assertRaises(invalid) as caught:
                call()
            self.assertEqual(caught.exception.field, field)
            self.assertIn(message, str(caught.exception))

    def test_packs_of_k(self):
        plain = normal(3, 4, 2, 64, seed=3).astype(numpy.float16)
        packed = numpy.zeros((3, 2, 8, 4, 8), numpy.float16)  # [page][head][pack][row][element]
        sluice.reference_copy(plain, None, packed.transpose(0, 3, 1, 2, 4), None)
        numpy.testing.assert_array_equal(packed, plain.reshape(3, 4, 2, 8, 8).transpose(0, 2, 3, 1, 4))


class Columns(unittest.TestCase):
    """V by columns gives what V by rows gives."""

    def test_sequences_and_pages(self):
        q, k, v = (normal(2, *shape, seed=i).astype(numpy.float16)
                   for i, shape in enumerate([(3, 4, 64), (21, 2, 64), (21, 2, 64)]))
        wanted, found = numpy.zeros(q.shape, numpy.float16), numpy.zeros(q.shape, numpy.float16)
        plain = {"q_heads": 4, "kv_heads": 2, "head_dim_qk": 64, "causal": True}
        sluice.reference(sluice.Problem("f16", **plain), q, k, v, wanted)
        self.assertGreater(numpy.abs(wanted).max(), 0.1)

        def check(problem, turned, order, **arrays):
            """`turned` is V as it is in memory."""
            found[:] = 0
            sluice.reference(problem, q, arrays.get("k", k), turned.transpose(order), found,
                             **{name: array for name, array in arrays.items() if name != "k"})
            numpy.testing.assert_array_equal(found, wanted)
            o = CONTEXT.empty(q.shape, "f16")
            on_device = {name: CONTEXT.array(array, "int32") for name, array in arrays.items() if name != "k"}
            CONTEXT.plan(problem).run(CONTEXT.array(q, "f16"), CONTEXT.array(arrays.get("k", k), "f16"),
                                      CONTEXT.array(turned, "f16").permute(*order), o, **on_device)
            self.assertLess(numpy.abs(o.numpy().astype(numpy.float64) - wanted).max(), 4 * 2.0 ** -10)

        by_columns = numpy.zeros((2, 2, 64, 24), numpy.float16)  # [sequence][head][column][key]
        by_columns[..., :21] = v.transpose(0, 2, 3, 1)
        check(sluice.Problem("f16", **plain, v_pack=sluice.V_PACK_ALL), by_columns, (0, 3, 1, 2))

        table, lengths = numpy.array([[3, 1], [0, 2]], numpy.int32), numpy.array([21, 21], numpy.int32)
        paged = {**plain, "mode": sluice.Mode.PAGED, "page_size": 16, "page_table_kind": sluice.PageTableKind.BLOCK,
                 "max_kv_len": 21}
        pages = []  # of K and V
        for rows in (k, v):
            padded = numpy.zeros((2, 32, 2, 64), numpy.float16)
            padded[:, :21] = rows
            cache = numpy.zeros((4, 16, 2, 64), numpy.float16)
            cache[table.reshape(-1)] = padded.reshape(4, 16, 2, 64)
            pages.append(cache)
        arrays = {"k": pages[0], "page_table": table, "kv_lengths": lengths}
        check(sluice.Problem("f16", **paged, v_pack=sluice.V_PACK_ALL),
              numpy.ascontiguousarray(pages[1].transpose(0, 2, 3, 1)), (0, 3, 1, 2), **arrays)
        in_packs = pages[1].reshape(4, 2, 8, 2, 64).transpose(0, 3, 1, 4, 2)  # [page][head][pack][column][token]
        check(sluice.Problem("f16", **paged, v_pack=8), numpy.ascontiguousarray(in_packs), (0, 2, 1, 3, 4), **arrays)

    def test_refusals(self):
        plain = {"q_heads": 4, "kv_heads": 2, "head_dim_qk": 64}
        q, k = numpy.zeros((1, 3, 4, 64), numpy.float16), numpy.zeros((1, 21, 2, 64), numpy.float16)
        with self.assertRaisesRegex(sluice.InvalidArgument, "v_pack is 8; it must be SLUICE_V_PACK_ALL"):
            CONTEXT.query_support(sluice.Problem("f16", **plain, v_pack=8))
        problem = sluice.Problem("f16", **plain, v_pack=sluice.V_PACK_ALL)
        with self.assertRaisesRegex(sluice.InvalidArgument, r"v.shape\[1\] is 21; it must be at least 24"):
            sluice.reference(problem, q, k, k, q.copy())
        by_rows = numpy.zeros((1, 24, 2, 64), numpy.float16)
        with self.assertRaisesRegex(sluice.InvalidArgument, r"v.stride\[1\] is 128; it must be 1"):
            sluice.reference(problem, q, k, by_rows, q.copy())
        paged = sluice.Problem("f16", **plain, v_pack=8, mode=sluice.Mode.PAGED, page_size=16, max_kv_len=16,
                               page_table_kind=sluice.PageTableKind.BLOCK)
        arrays = {"page_table": numpy.zeros((1, 1), numpy.int32), "kv_lengths": numpy.array([16], numpy.int32)}
        pages = numpy.zeros((1, 16, 2, 64), numpy.float16)
        with self.assertRaisesRegex(sluice.InvalidArgument, "v has 4 dimensions; it must have 5"):
            sluice.reference(paged, q, pages, pages, q.copy(), **arrays)
        with self.assertRaisesRegex(sluice.InvalidArgument, "v has a stride of 64 elements inside a pack; it must be 1"):
            sluice.reference(paged, q, pages, numpy.zeros((1, 2, 2, 8, 64), numpy.float16).transpose(0, 1, 2, 4, 3), q.copy(),
                             **arrays)


class Merges(unittest.TestCase):
    """Parts in any place, and LSEs as FlashAttention has them."""

    def test_lists_and_sequences(self):
        partial, lse = normal(3, 6, 2, 64, seed=4), normal(3, 6, 2, seed=5)
        lse[1, 2:4], lse[2, :, 1] = numpy.inf, numpy.inf  # parts without keys
        weight = numpy.where(numpy.isinf(lse), 0, numpy.exp(lse.astype(numpy.float64)))
        wanted = (partial * weight[..., None]).sum(0) / weight.sum(0)[..., None]
        # Two sequences of three tokens, [sequence][head][token].
        by_head = lse.reshape(3, 2, 3, 2).transpose(0, 1, 3, 2).copy()
        whole, parts = CONTEXT.array(partial, "f32"), [CONTEXT.array(x, "f32") for x in partial]
        lses = [CONTEXT.array(x, "f32").permute(0, 2, 1) for x in by_head]
        together = CONTEXT.array(by_head, "f32").permute(0, 1, 3, 2)
        for given, of_given, o_lse in ((parts, lses, CONTEXT.empty((6, 2), "f32")),
                                       (whole, together, CONTEXT.empty((2, 2, 3), "f32")),
                                       (whole, CONTEXT.array(lse, "f32"), CONTEXT.empty((2, 2, 3), "f32"))):
            o = CONTEXT.array(numpy.zeros((6, 2, 64)), "f32")
            flipped = o_lse.permute(0, 2, 1) if len(o_lse.shape) == 3 else o_lse
            CONTEXT.merge(given, of_given, o, lse=flipped, infinity_is_empty=True)
            self.assertLess(numpy.abs(o.numpy() - wanted).max(), 1e-5)
            found = o_lse.numpy()
            found = found if found.ndim == 2 else found.transpose(0, 2, 1).reshape(6, 2)
            self.assertLess(numpy.abs(found - numpy.log(weight.sum(0))).max(), 1e-5)
        CONTEXT.merge(whole, CONTEXT.array(lse, "f32"), o)
        self.assertTrue(numpy.isnan(o.numpy()[2]).all())  # without the flag they count as NaN

        for given, of_given, field, message in (
                (parts, lses[:2], "partial_lse", "both must have as many"), (parts, together, "partial_lse", "no parts in a list"),
                ([], [], "partial", "partial is empty"),
                ([*parts[:2], CONTEXT.empty((6, 2, 32), "f32")], lses, "partial[2]", "partial[2].shape[2] is 32"),
                ([*parts[:2], CONTEXT.empty((2, 6, 64), "f32").permute(1, 0, 2)], lses, "partial[2]", "other strides"),
                (parts, [*lses[:2], CONTEXT.empty((2, 3, 2), "f32")], "partial_lse[2]", "other strides"),
                (whole, CONTEXT.empty((3, 2, 4, 2), "f32"), "partial_lse", "2 sequences of 4 tokens; there must be 6 tokens")):
            with self.subTest(message), self.assertRaises(sluice.InvalidArgument) as caught:
                CONTEXT.merge(given, of_given, o)
            self.assertEqual(caught.exception.field, field)
            self.assertIn(message, str(caught.exception))


class Observed(unittest.TestCase):
    def test_counters_of_a_plan(self):
        plan = sluice.Context("emulated").plan(sluice.Problem("bf16", q_heads=2, kv_heads=2, head_dim_qk=64))
        rows = zeros(1, 5, 2, 64)
        for _ in range(3):
            plan.run(rows, rows, rows, zeros(1, 5, 2, 64))
        with self.assertRaises(sluice.Unsupported):
            plan.run(rows, rows, rows, rows, scale=-1.0)
        counted = plan.counters()
        self.assertEqual((counted.runs, counted.refused, counted.launches, counted.merge_launches), (3, 1, 3, 0))
        self.assertEqual(counted.main_launches + counted.other_launches, counted.launches)

    def test_ranges(self):
        context = sluice.Context("emulated")
        context.set_ranges(False)
        try:
            context.set_ranges(True)
        except sluice.Unsupported as refused:  # where there is no roctx
            self.assertIn("librocprofiler-sdk-roctx.so.1", str(refused))
        else:
            rows = zeros(1, 5, 2, 64)
            context.plan(sluice.Problem("bf16", q_heads=2, kv_heads=2, head_dim_qk=64)).run(rows, rows, rows, zeros(1, 5, 2, 64))


class Values(unittest.TestCase):
    """Conversions, against the definition of each type."""

    def test_fp8_values_come_back(self):
        for dtype, largest, count in (("e4m3fnuz", 240.0, 255), ("e4m3fn", 448.0, 254), ("e5m2fnuz", 57344.0, 255)):
            with self.subTest(dtype):
                buffer = CONTEXT.array(numpy.zeros(256), dtype)
                buffer.copy_bits_from(sluice.Tensor(*self.all_bytes(), sluice.DType[dtype.upper()], 1, "host"))
                values = buffer.numpy()
                self.assertEqual(numpy.isfinite(values).sum(), count)
                self.assertEqual(numpy.nanmax(values), largest)
                again = CONTEXT.array(values, dtype).bits()
                finite = numpy.isfinite(values)
                numpy.testing.assert_array_equal(again[finite], numpy.arange(256)[finite])

    BYTES = numpy.arange(256, dtype=numpy.uint8)

    def all_bytes(self):
        return self.BYTES.ctypes.data, (256,), (1,)

    def test_rounding_is_to_nearest_even(self):
        for dtype, step in (("bf16", 2.0 ** -7), ("f16", 2.0 ** -10), ("e4m3fnuz", 0.125)):
            values = numpy.array([1 + step / 2, 1 + 3 * step / 2, 1 + step * 0.51, -1 - step / 2])
            numpy.testing.assert_array_equal(CONTEXT.array(values, dtype).numpy(), [1, 1 + 2 * step, 1 + step, -1])

    def test_values_beyond_fp8(self):
        values = numpy.array([1e9, -1e9, numpy.nan, 0.0, -0.0])
        found = CONTEXT.array(values, "e4m3fnuz").numpy()
        numpy.testing.assert_array_equal(found, [240, -240, numpy.nan, 0, 0])
        self.assertEqual(CONTEXT.array(values, "bf16").numpy()[4], 0)


class Reports(unittest.TestCase):
    def test_findings_of_the_emulator_are_reported(self):
        context = sluice.Context("emulated")
        problem = sluice.Problem("bf16", q_heads=1, kv_heads=1, head_dim_qk=64)
        never_written = context.empty((1, 5, 1, 64), "bf16")
        context.plan(problem).run(never_written, zeros(1, 9, 1, 64), zeros(1, 9, 1, 64), zeros(1, 5, 1, 64))
        with self.assertRaises(sluice.HipError) as caught:
            context.synchronize()
        self.assertEqual(caught.exception.hip_code, 719)
        self.assertIn("hipErrorLaunchFailure", str(caught.exception))
        self.assertIn("never written", context.reports()[0]["message"])
        self.assertEqual(context.reports(), [])
        context.configure("clear_fault", "1")
        context.synchronize()

    def test_settings(self):
        with self.assertRaisesRegex(sluice.InvalidArgument, "key is 'speed'; it must be a setting of the emulator"):
            CONTEXT.configure("speed", "fast")
        with self.assertRaisesRegex(sluice.InvalidArgument, "value is 'many'; threads does not take it"):
            CONTEXT.configure("threads", "many")
        with self.assertRaisesRegex(sluice.NoDevice, "no emulated device"):
            sluice.Context("gfx942:304").configure("threads", "1")


class Packages(unittest.TestCase):
    def test_versions_are_the_librarys(self):
        for name in ("sluice-attention", "sluice-attention-emulator"):
            self.assertEqual(importlib.metadata.version(name), sluice.__version__)
        self.assertIn(f'"sluice-attention-emulator=={sluice.__version__}"', (PACKAGE / "pyproject.toml").read_text())

    def test_wheels_carry_the_licence(self):
        licence = (PACKAGE.parents[1] / "LICENSE").read_bytes()
        for name, folder in (("sluice-attention", PACKAGE), ("sluice-attention-emulator", PACKAGE / "emulator")):
            self.assertEqual((folder / "LICENSE").read_bytes(), licence)
            files = importlib.metadata.files(name)
            self.assertEqual([file.locate().read_bytes() for file in files if file.name == "LICENSE"], [licence])


class Refusals(unittest.TestCase):
    PROBLEM = sluice.Problem("bf16", q_heads=4, kv_heads=2, head_dim_qk=64)

    def refused(self, kind, field, message, call, *arguments, **named):
        with self.assertRaises(kind) as caught:
            call(*arguments, **named)
        self.assertEqual(caught.exception.field, field)
        self.assertIn(message, str(caught.exception))
        self.assertTrue(caught.exception.name.startswith("SLUICE_"))

    def run_with(self, **changed):
        arrays = {"q": zeros(1, 5, 4, 64), "k": zeros(1, 9, 2, 64), "v": zeros(1, 9, 2, 64), "o": zeros(1, 5, 4, 64), **changed}
        CONTEXT.plan(self.PROBLEM).run(**arrays)

    def test_the_librarys_own(self):
        self.refused(sluice.Unsupported, "head_dim_qk", "head_dim_qk is 1000; nearest supported: 512", CONTEXT.query_support,
                     sluice.Problem("bf16", 1, 1, 1000))
        self.refused(sluice.InvalidArgument, "q_heads", "q_heads is 5", CONTEXT.plan, sluice.Problem("bf16", 5, 2, 64))
        self.refused(sluice.WrongArch, "target", "supported chips", sluice.Context, "gfx1100:96")
        self.refused(sluice.PackCorrupt, "pack", "less than its header", sluice.Context, "gfx942:304", pack=b"none")
        self.refused(sluice.NoDevice, "device_ordinal", "device_ordinal is 7", sluice.Context, "emulated:7")
        self.assertTrue(issubclass(sluice.InvalidArgument, ValueError))

    def test_arrays(self):
        self.run_with()
        kind = sluice.InvalidArgument
        for changed, field, message in (
                ({"q": None}, "q", "q is None; it is required"),
                ({"q": 5}, "q", "q is of type int; it must be a Tensor, a Buffer"),
                ({"q": numpy.zeros((1, 5, 4, 64), numpy.float16)}, "q", "q is in host memory; it must be in device memory"),
                ({"q": CONTEXT.empty((1, 5, 4, 64), "f16")}, "q", "q is of F16; it must be of BF16"),
                ({"q": CONTEXT.empty((5, 4, 64), "bf16")}, "q", "q has 3 dimensions; it must have 4"),
                ({"o": CONTEXT.empty((1, 4, 4, 64), "bf16")}, "o", "o.shape[1] is 4; it must be at least 5 (rows of each seq"),
                ({"v": CONTEXT.empty((1, 8, 2, 64), "bf16")}, "v", "v.shape[1] is 8; it must be at least 9 (keys of each seq"),
                ({"k": CONTEXT.empty((1, 9, 4, 64), "bf16")}, "k", "k.shape[2] is 4; it must be 2 (kv_heads)"),
                ({"q_lengths": CONTEXT.empty((0,), "int32")}, "q_lengths", "q_lengths.shape[0] is 0; it must be at least 1"),
                ({"q_lengths": CONTEXT.empty((1,), "int64")}, "q_lengths", "integers of 4 bytes"),
                ({"lse": CONTEXT.empty((1, 5, 4), "f32")}, "lse.data", "SLUICE_WRITE_LSE"),
                ({"stream": "first"}, "stream", "stream is of type str")):
            with self.subTest(message):
                self.refused(kind, field, message, self.run_with, **changed)

    def test_other_arguments(self):
        self.refused(sluice.InvalidArgument, "q_type", "q_type is 'int7'; it must be one of F16, BF16", sluice.Problem, "int7",
                     1, 1, 64)
        self.refused(sluice.InvalidArgument, "device", "after the colon", sluice.Context, "hip:first")
        self.refused(sluice.InvalidArgument, "starts", "starts is None", CONTEXT.append, CONTEXT.empty((1, 1, 64), "f16"),
                     CONTEXT.empty((1, 1, 64), "f16"), CONTEXT.empty((1, 16, 1, 64), "f16"),
                     CONTEXT.empty((1, 16, 1, 64), "f16"), kv_lengths=CONTEXT.empty((1,), "int32"))
        self.refused(sluice.InvalidArgument, "order", "order is (0, 1)", CONTEXT.empty((1, 1, 64), "f16").permute, 0, 1)
        target = sluice.Context("gfx942:304")
        self.refused(sluice.NoDevice, "context", "", target.preload)
        self.assertEqual(target.device.chip, "gfx942")
        self.assertGreater(len(target.kernels()), 100)
        self.assertEqual(sluice.build_info().kernel_count, len(target.kernels()))


if __name__ == "__main__":
    unittest.main()
