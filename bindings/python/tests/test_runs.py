"""Attention on the emulator against references."""

import gc
import pathlib
import sys
import threading
import unittest

import numpy

import sluice

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from emulated import CONTEXT, Case, normal, on_host, reference, zeros  # noqa: E402


class Runs(Case):
    def test_dense_of_each_type(self):
        for dtype, last_place in (("f16", 2.0 ** -11), ("bf16", 2.0 ** -8)):
            problem = sluice.Problem(dtype, q_heads=4, kv_heads=2, head_dim_qk=64, causal=True, lse=sluice.Lse.LN)
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

    def attend(self, b, h, sees, score=lambda s: s, v_scales=1.0):
        """O [rows, dim] of a head: `score` changes the scores [rows, keys], and `v_scales` are scales of V's rows."""
        q, k, v = (x[b, :, h * x.shape[2] // self.HEADS].astype(numpy.float64) for x in self.values)
        weight = numpy.where(sees, numpy.exp(score(q @ k.T / numpy.sqrt(self.DIM))), 0)
        return weight @ (v * numpy.reshape(v_scales, (-1, 1))) / weight.sum(1, keepdims=True)

    def check(self, wanted, problem, arrays, o_type="f16", last_place=2.0 ** -11, kv_type="f16"):
        """Runs a call on both sides; `wanted` is O of a sequence and head."""
        shapes = [(self.ROWS, self.HEADS), (self.KEYS, self.KV_HEADS), (self.KEYS, self.KV_HEADS)]
        kinds = ("f16", kv_type, kv_type)
        on_device = [CONTEXT.array(normal(self.BATCH, *shape, self.DIM, seed=i), kind)
                     for i, (shape, kind) in enumerate(zip(shapes, kinds))]
        self.values = [x.numpy() for x in on_device]
        problem = sluice.Problem("f16", self.HEADS, self.KV_HEADS, self.DIM, k_type=kv_type, o_type=o_type, **problem)
        o, host_o = (CONTEXT.empty((self.BATCH, self.ROWS, self.HEADS, self.DIM), o_type) for _ in range(2))
        types = {"f": "f32", "i": "int32", "u": "uint8"}
        CONTEXT.plan(problem).run(*on_device, o, **{
            name: CONTEXT.array(array, types[array.dtype.kind]) for name, array in arrays.items()})
        bits = o.bits().copy()  # of the right type; all of it is overwritten
        plain = on_host(bits, o_type)
        bits.fill(0)
        sluice.reference(problem, *(on_host(x.bits(), kind) for x, kind in zip(on_device, kinds)), plain, **arrays)
        host_o.copy_bits_from(plain)
        wanted = numpy.stack([numpy.stack([wanted(b, h) for h in range(self.HEADS)], 1) for b in range(self.BATCH)])
        wanted = numpy.clip(wanted, -240, 240) if o_type == "e4m3fnuz" else wanted
        rounding = last_place * numpy.abs(wanted) * 1.000001
        # Half of the last place of the smallest numbers. P is rounded too, by at most 2^-10 of a sum of |P V|.
        for found, allowed in ((host_o, 2.0 ** -11 if o_type == "e4m3fnuz" else 2.0 ** -24), (o, self.largest(wanted))):
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
        for ragged, rows, starts in ((False, lambda x: x, {}), (
                True, lambda x: x.reshape(-1, *x.shape[2:]),
                {"q_starts": numpy.array([0, 3, 6], numpy.int32), "kv_starts": numpy.array([0, 5, 10], numpy.int32)})):
            problem = sluice.Problem("f32", 2, 1, 8, ragged=ragged, k_scale_kind=token, v_scale_kind=token, max_q_len=3,
                                     max_kv_len=5)
            o = rows(numpy.zeros((2, 3, 2, 8), numpy.float32))
            sluice.reference(problem, rows(q), rows(k), rows(v), o, k_scales=rows(scales), v_scales=rows(scales[:, ::-1].copy()),
                             **starts)
            results.append(o.reshape(2, 3, 2, 8))
        numpy.testing.assert_array_equal(*results)
        self.assertGreater(numpy.abs(results[0]).min(), 0)

    def test_tensors_are_as_long_as_those_of_q_and_k(self):
        f16 = numpy.float16
        rows, few = numpy.zeros((6, 2, 64), f16), numpy.zeros((5, 2, 64), f16)
        starts = numpy.array([0, 3, 6], numpy.int32)
        ragged = sluice.Problem("f16", 2, 2, 64, ragged=True, max_batch=2,
                                max_q_len=3, max_kv_len=3)
        tensors = {"q": rows, "k": rows, "v": rows, "o": rows.copy()}
        for name, rule in (("v", "keys of k"), ("o", "rows of q")):
            with self.subTest(name), self.assertRaisesRegex(
                    sluice.InvalidArgument, rf"{name}.shape\[0\] is 5; it must be at least 6 \({rule}\)") as caught:
                sluice.reference(ragged, **{**tensors, name: few}, q_starts=starts, kv_starts=starts)
            self.assertEqual(caught.exception.field, name)
        with self.assertRaisesRegex(sluice.InvalidArgument, r"q_starts.shape\[0\] is 0; it must be at least 1 \(batch \+ 1\)"):
            sluice.reference(ragged, **tensors, q_starts=starts[:0], kv_starts=starts)

    def test_scales_of_pages(self):
        page = sluice.ScaleKind.PER_PAGE
        table, lengths = numpy.array([[2, 0, 5], [4, 1, 3]], numpy.int32), numpy.array([40, 33], numpy.int32)
        problem = sluice.Problem("bf16", 4, 2, 64, k_type="e4m3fnuz", page_size=16, max_kv_len=48,
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

    def test_no_spans(self):
        self.check(lambda b, h: self.attend(b, h, self.ALL), {"spans": True},
                   {"spans": numpy.zeros((self.BATCH, 0, 2), numpy.int32)})

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
                ({"k_scale_kind": page}, invalid, "kv.k.scale_kind", "kv.page_size is 0"),
                ({"q_scale_kind": token}, sluice.Unsupported, "q.scale_kind", "q.scale_kind is 3"),
                ({"o_scale_kind": head}, invalid, "o.scale_kind", "unless o.type is e4m3fnuz"),
                ({"mask_new_rows": True}, invalid, "mask.flags", "lacks SLUICE_MASK_BITS"),
                ({"causal": True, "causal_by_sequence": True}, invalid, "mask.flags", "at most one"),
                ({"bias_scale": True}, invalid, "scores.flags", "bias_type is 0")):
            with self.subTest(message), self.assertRaisesRegex(kind, message) as caught:
                CONTEXT.query_support(sluice.Problem("f16", 4, 2, 64, **fields))
            self.assertEqual(caught.exception.field, field)

        def floats(*shape):
            return CONTEXT.array(numpy.ones(shape), "f32")

        def ints(*shape):
            return CONTEXT.array(numpy.zeros(shape, numpy.int32), "int32")

        scaled, fp8 = {"k_scale_kind": token, "k_type": "e4m3fnuz"}, {"k_type": "e4m3fnuz"}
        for fields, arrays, field, message in (
                (scaled, {}, "keys[0].kv.scales.k.data", "is NULL"),
                (scaled, {"k_scales": floats(2, 39, 2)}, "k_scales", "k_scales.shape[1] is 39; it must be at least 40"),
                (scaled, {"k_scales": floats(2, 40, 4)}, "k_scales", "k_scales.shape[2] is 4; it must be 2 (kv_heads)"),
                (scaled, {"k_scales": zeros(2, 40, 2)}, "k_scales", "k_scales is of BF16; it must be of F32"),
                (fp8, {"v_scales": floats(2, 40, 2)}, "v_scales", "v_scale_kind is not PER_TOKEN, PER_PAGE or PER_GROUP"),
                ({}, {"diagonals": ints(2)}, "mask.diagonals", "mask.alignment"),
                ({}, {"causal": ints(1)}, "causal", "causal.shape[0] is 1; it must be at least 2 (batch)"),
                ({}, {"spans": ints(2, 3)}, "spans", "spans has 2 dimensions; it must have 3"),
                ({}, {"spans": ints(2, 3, 3)}, "spans", "spans.shape[2] is 3; it must be 2"),
                ({"spans": True}, {"spans": ints(1, 3, 2)}, "spans", "spans.shape[0] is 1; it must be at least 2 (batch)"),
                ({"spans": True}, {"spans": ints(2, 2, 3).permute(0, 2, 1)}, "spans", "they must have no gaps"),
                ({"spans": True}, {}, "spans", "spans is None, but the problem has spans"),
                ({"alibi": True}, {"alibi_slopes": floats(1, 4)}, "alibi_slopes", "must be at least 2 (batch)"),
                ({"alibi": True}, {"alibi_slopes": floats(2, 3)}, "alibi_slopes", "must be 4 (q_heads)"),
                ({"alibi": True}, {"alibi_slopes": floats(4, 2).permute(1, 0)}, "alibi_slopes", "between heads; it must be 1"),
                ({}, {"bias_scale": floats(4)}, "scores.bias_scale", "SLUICE_SCORES_BIAS_SCALE"),
                ({}, {"o_scale": floats(1)}, "o_scale", "o.scale_kind is SLUICE_SCALE_NONE"),
                ({"bool_mask": True, "mask_new_rows": True}, {"mask": CONTEXT.empty((2, 1, 9, 1), "uint8")}, "mask",
                 "mask.shape[3] is 1; it must be at least 2")):
            with self.subTest(message), self.assertRaises(invalid) as caught:
                problem = sluice.Problem("bf16", 4, 2, 64, **fields)
                keys = zeros(2, 40, 2, 64, dtype=fields.get("k_type", "bf16"))
                CONTEXT.plan(problem).run(zeros(2, 9, 4, 64), keys, keys, zeros(2, 9, 4, 64), **arrays)
            self.assertEqual(caught.exception.field, field)
            self.assertIn(message, str(caught.exception))

    def test_page_numbers_stay_within_scales(self):
        """K has as many pages as scales: no page number leads out of them."""
        page = sluice.ScaleKind.PER_PAGE
        problem = sluice.Problem("f32", 1, 1, 8, page_size=16, max_kv_len=16,
                                 page_table_kind=sluice.PageTableKind.BLOCK, k_scale_kind=page)
        arrays = {"page_table": numpy.array([[1]], numpy.int32), "kv_lengths": numpy.array([3], numpy.int32)}
        rows, pages = numpy.ones((1, 1, 1, 8), numpy.float32), numpy.ones((2, 16, 1, 8), numpy.float32)
        sluice.reference(problem, rows, pages, pages, rows.copy(), k_scales=numpy.ones((2, 1), numpy.float32), **arrays)
        with self.assertRaisesRegex(sluice.InvalidArgument, r"k_scales.shape\[0\] is 1; it must be at least 2 \(pages of k\)"):
            sluice.reference(problem, rows, pages, pages, rows.copy(), k_scales=numpy.ones((1, 1), numpy.float32), **arrays)

    def test_kernels_list_these_features(self):
        self.assertTrue(any("spans" in kernel.more_features for kernel in CONTEXT.kernels()))


class Lists(Case):
    """Page tables as lists with holes, one for each sequence and KV head: the device and the library's reference, against
    loops over what is listed."""

    HEADS, KV_HEADS, DIM, PAGES = 4, 2, 64, 90

    def setUp(self):
        self.caches = [CONTEXT.array(normal(self.PAGES, 1, self.KV_HEADS, self.DIM, seed=i), "f16") for i in (1, 2)]

    def lists(self, count, length, dtype, holes=0.3):
        """[count, kv_heads, length] numbers of keys, with -1 at any place."""
        random = numpy.random.default_rng(3)
        made = numpy.stack([random.permutation(self.PAGES)[:length] for _ in range(count * self.KV_HEADS)])
        made[random.random(made.shape) < holes] = -1
        return made.reshape(count, self.KV_HEADS, length).astype(dtype)

    def check_lists(self, lists, lengths, table, dtype="int32", heads_first=False, **arrays):
        """lists[b][kv head] has the numbers of the keys that row b sees; `table` and arrays say the same to the library.
        `heads_first`: in memory, the table has a head's lists of all rows before those of the next head."""
        rows = len(lists)
        q = CONTEXT.array(normal(rows, 1, self.HEADS, self.DIM, seed=4), "f16")
        kind = sluice.PageTableKind.CSR if "page_starts" in arrays else sluice.PageTableKind.BLOCK
        problem = sluice.Problem("f16", self.HEADS, self.KV_HEADS, self.DIM, page_size=1,
                                 page_table_kind=kind, page_index_64=dtype == "int64", missing_pages_hidden=True,
                                 lse=sluice.Lse.LN, max_kv_len=int(max(lengths)))
        arrays = {"kv_lengths": numpy.array(lengths, numpy.int32), "page_table": table, **arrays}
        o, lse = CONTEXT.empty((rows, 1, self.HEADS, self.DIM), "f16"), CONTEXT.empty((rows, 1, self.HEADS), "f32")
        types = {name: "int64" if array.dtype == numpy.int64 else "int32" for name, array in arrays.items()}
        on_device = {name: CONTEXT.array(array, types[name]) for name, array in arrays.items()}
        if heads_first:
            by_head = numpy.ascontiguousarray(table.transpose(1, 0, 2))
            on_device["page_table"] = CONTEXT.array(by_head, dtype).permute(1, 0, 2)
            arrays["page_table"] = by_head.transpose(1, 0, 2)
        CONTEXT.plan(problem).run(q, *self.caches, o, lse=lse, kv_len=int(max(lengths)), **on_device)
        host, host_lse = numpy.zeros(o.shape, numpy.float16), numpy.zeros(lse.shape, numpy.float32)
        sluice.reference(problem, q.numpy(), *(x.numpy() for x in self.caches), host, lse=host_lse, **arrays)
        k, v = (x.numpy()[:, 0].astype(numpy.float64) for x in self.caches)
        for b in range(rows):
            for h in range(self.HEADS):
                kv = h // (self.HEADS // self.KV_HEADS)
                listed = lists[b][kv][:lengths[b]]
                listed = listed[listed >= 0]
                scores = k[listed, kv] @ q.numpy()[b, 0, h].astype(numpy.float64) / numpy.sqrt(self.DIM)
                weight = numpy.exp(scores)
                wanted = weight @ v[listed, kv] / weight.sum() if len(listed) else numpy.zeros(self.DIM)
                wanted_lse = numpy.log(weight.sum()) if len(listed) else -numpy.inf
                # Half of the last place of O, and P rounded by at most 0.7 of one, of at most the largest |V|.
                for found, found_lse in ((o.numpy(), lse.numpy()), (host, host_lse)):
                    self.assertLess(numpy.abs(found[b, 0, h] - wanted).max(), numpy.abs(v).max() * 2 ** -10, (b, h))
                    self.assertTrue(found_lse[b, 0, h] == wanted_lse or abs(found_lse[b, 0, h] - wanted_lse) < 1e-4, (b, h))

    def test_a_list_for_each_head(self):
        for dtype, lengths in (("int32", (40, 33, 40)), ("int64", (1, 40, 7))):
            lists = self.lists(3, 40, dtype)
            lists[2] = -1
            self.check_lists(lists, lengths, lists, dtype)
            self.check_lists(lists, lengths, lists, dtype, heads_first=True)

    def test_a_list_for_all_heads(self):
        lists = self.lists(3, 40, "int32")[:, :1]
        self.check_lists(numpy.repeat(lists, self.KV_HEADS, 1), (40, 39, 2), numpy.ascontiguousarray(lists[:, 0]))

    def test_one_list_after_the_other(self):
        lists, lengths = self.lists(3, 40, "int64"), (40, 5, 33)
        table = numpy.concatenate([lists[b, :, :length] for b, length in enumerate(lengths)], 1)
        self.check_lists(lists, lengths, table, "int64", page_starts=numpy.array([0, 40, 45, 78], numpy.int32))

    def test_refusals(self):
        lists, one = self.lists(2, 40, "int32"), numpy.zeros((2, 1, 2, 64), numpy.float32)
        problem = sluice.Problem("f32", 4, 2, 64, page_size=1, max_kv_len=40,
                                 page_table_kind=sluice.PageTableKind.BLOCK, missing_pages_hidden=True)
        arrays = {"q": numpy.zeros((2, 1, 4, 64), numpy.float32), "k": one, "v": one,
                  "o": numpy.zeros((2, 1, 4, 64), numpy.float32), "kv_lengths": numpy.array([40, 40], numpy.int32)}
        for table, field, message in (
                (lists[:1], "page_table", "page_table.shape[0] is 1; it must be at least 2 (batch)"),
                (numpy.repeat(lists, 2, 1), "page_table", "page_table.shape[1] is 4; it must be 2 (kv_heads)"),
                (lists[:, :, :39], "page_table", "page_table.shape[2] is 39; it must be at least 40 (pages of kv_len keys)"),
                (numpy.repeat(lists, 2, 2)[:, :, ::2], "page_table", "2 elements between pages; it must be 1"),
                (lists[None], "page_table", "page_table has 4 dimensions; it must have 2"),
                (numpy.full_like(lists, 2), "keys[0].pages.table[0]", "page_count, which is 2")):
            with self.subTest(message), self.assertRaises(sluice.InvalidArgument) as caught:
                sluice.reference(problem, **arrays, page_table=table)
            self.assertEqual(caught.exception.field, field)
            self.assertIn(message, str(caught.exception))


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
        check(sluice.Problem("f16", **plain, v_pack=sluice.PACK_ALL), by_columns, (0, 3, 1, 2))

        table, lengths = numpy.array([[3, 1], [0, 2]], numpy.int32), numpy.array([21, 21], numpy.int32)
        paged = {**plain, "page_size": 16, "page_table_kind": sluice.PageTableKind.BLOCK,
                 "max_kv_len": 21}
        pages = []  # of K and V
        for rows in (k, v):
            padded = numpy.zeros((2, 32, 2, 64), numpy.float16)
            padded[:, :21] = rows
            cache = numpy.zeros((4, 16, 2, 64), numpy.float16)
            cache[table.reshape(-1)] = padded.reshape(4, 16, 2, 64)
            pages.append(cache)
        arrays = {"k": pages[0], "page_table": table, "kv_lengths": lengths}
        check(sluice.Problem("f16", **paged, v_pack=sluice.PACK_ALL),
              numpy.ascontiguousarray(pages[1].transpose(0, 2, 3, 1)), (0, 3, 1, 2), **arrays)
        in_packs = pages[1].reshape(4, 2, 8, 2, 64).transpose(0, 3, 1, 4, 2)  # [page][head][pack][column][token]
        check(sluice.Problem("f16", **paged, v_pack=8), numpy.ascontiguousarray(in_packs), (0, 2, 1, 3, 4), **arrays)

    def test_refusals(self):
        plain = {"q_heads": 4, "kv_heads": 2, "head_dim_qk": 64}
        q, k = numpy.zeros((1, 3, 4, 64), numpy.float16), numpy.zeros((1, 21, 2, 64), numpy.float16)
        with self.assertRaisesRegex(sluice.InvalidArgument, "kv.v.pack is 8; it must be SLUICE_PACK_ALL"):
            CONTEXT.query_support(sluice.Problem("f16", **plain, v_pack=8))
        problem = sluice.Problem("f16", **plain, v_pack=sluice.PACK_ALL)
        with self.assertRaisesRegex(sluice.InvalidArgument, r"v.shape\[1\] is 21; it must be at least 24"):
            sluice.reference(problem, q, k, k, q.copy())
        by_rows = numpy.zeros((1, 24, 2, 64), numpy.float16)
        with self.assertRaisesRegex(sluice.InvalidArgument, r"keys\[0\].kv.v.stride\[1\] is 128; it must be 1"):
            sluice.reference(problem, q, k, by_rows, q.copy())
        paged = sluice.Problem("f16", **plain, v_pack=8, page_size=16, max_kv_len=16,
                               page_table_kind=sluice.PageTableKind.BLOCK)
        arrays = {"page_table": numpy.zeros((1, 1), numpy.int32), "kv_lengths": numpy.array([16], numpy.int32)}
        pages = numpy.zeros((1, 16, 2, 64), numpy.float16)
        with self.assertRaisesRegex(sluice.InvalidArgument, "v has 4 dimensions; it must have 5"):
            sluice.reference(paged, q, pages, pages, q.copy(), **arrays)
        with self.assertRaisesRegex(sluice.InvalidArgument, "v has a stride of 64 elements inside a pack; it must be 1"):
            sluice.reference(paged, q, pages, numpy.zeros((1, 2, 2, 8, 64), numpy.float16).transpose(0, 1, 2, 4, 3), q.copy(),
                             **arrays)


if __name__ == "__main__":
    unittest.main()
