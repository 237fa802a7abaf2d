"""Operations on paged caches, and merges, on the emulator: the device stores what the host does."""

import pathlib
import sys
import unittest

import numpy

import sluice

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from emulated import CONTEXT, Case, normal, on_host  # noqa: E402


class Appends(unittest.TestCase):
    """New rows: what the device stores, and attention over it."""

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
                                   ("q", {"q": None, "q_out": q}, "q_out, q_tail and q_norm need it"),
                                   ("k_page_scales", {"k_page_scales": host["scales"][0][:, 0]}, "are both given"),
                                   ("k_token_scales", {"k_token_scales": host["scales"][0][:, :4]}, "rows of a page")):
            with self.assertRaises(sluice.InvalidArgument) as caught:
                sluice.reference_append(k, v, *views, **{**arrays, **wrong})
            self.assertEqual(caught.exception.field, field)
            self.assertIn(part, str(caught.exception))

    def test_numpys_bytes_are_integers_of_the_library(self):
        rows, slots = [normal(3, 2, 64, seed=seed).astype(numpy.float16) for seed in (1, 2)], numpy.array([5, -1, 30])
        caches, scales = ([numpy.zeros((2, 16, 2, *dim), kind) for _ in range(2)] for dim, kind in (((64,), numpy.int8),
                                                                                               ((), numpy.float32)))
        sluice.reference_append(*rows, *caches, slots=slots, k_token_scales=scales[0], v_token_scales=scales[1])
        for given, cache, row_scales in zip(rows, caches, scales):
            wanted = given.astype(numpy.float32)
            given_scales = numpy.abs(wanted).max(-1) / numpy.float32(127)
            for row, slot in ((0, 5), (2, 30)):
                numpy.testing.assert_array_equal(row_scales.reshape(32, 2)[slot], given_scales[row])
                numbers = numpy.rint(wanted[row] / given_scales[row][:, None])
                numpy.testing.assert_array_equal(cache.reshape(32, 2, 64)[slot], numbers)
            self.assertEqual(numpy.count_nonzero(row_scales), 4)
        there = numpy.zeros_like(caches[0])
        sluice.reference_copy(caches[0], None, there, None, pairs=numpy.array([[1, 0]]))
        numpy.testing.assert_array_equal(there, numpy.stack([caches[0][1], numpy.zeros_like(caches[0][1])]))

    def test_v_by_columns(self):
        """In packs of a page or of 8 tokens, each element goes where it does by rows."""
        rows, slots = [normal(4, 2, 64, seed=seed).astype(numpy.float16) for seed in (1, 2)], numpy.array([7, 47, -1, 40])
        k_cache, by_rows = (numpy.zeros((3, 16, 2, 64), numpy.float16) for _ in range(2))
        sluice.reference_append(*rows, k_cache, by_rows, slots=slots)
        device = [CONTEXT.array(x, "f16") for x in rows]
        pages = numpy.zeros((3, 2, 64, 16), numpy.float16)  # [page][head][column][token]
        packs = numpy.zeros((3, 2, 2, 64, 8), numpy.float16)  # [page][head][pack][column][token]
        for found, order, wanted in ((pages, (0, 3, 1, 2), by_rows.transpose(0, 2, 3, 1)),
                                     (packs, (0, 2, 1, 3, 4), by_rows.reshape(3, 2, 8, 2, 64).transpose(0, 3, 1, 4, 2))):
            with self.subTest(order):
                sluice.reference_append(*rows, k_cache, found.transpose(order), slots=slots)
                numpy.testing.assert_array_equal(found, wanted)
                on_device = CONTEXT.array(numpy.zeros(found.shape), "f16")
                CONTEXT.append(*device, CONTEXT.array(numpy.zeros(k_cache.shape), "f16"), on_device.permute(*order),
                               slots=CONTEXT.array(slots, "int64"))
                numpy.testing.assert_array_equal(on_device.numpy(), wanted)
        in_packs = packs.transpose(0, 2, 1, 3, 4)
        for v_cache, message in (
                (in_packs[:, :1], r"v_cache.shape\[1\] is 1; it must be 2 \(packs of a page of k_cache\)"),
                (in_packs[..., :4], r"v_cache.shape\[1\] is 2; it must be 4 \(packs"),
                (in_packs[:, :, :1], r"v_cache.shape\[2\] is 1; it must be 2 \(heads of k\)"),
                (in_packs[:, :, :, :32], r"v_cache.shape\[3\] is 32; it must be 64 \(elements of a row of v\)"),
                (in_packs.astype(numpy.float32), "v_cache is of F32; it must be of F16"),
                (numpy.zeros((3, 2, 2, 8, 64), numpy.float16).transpose(0, 1, 2, 4, 3),
                 "v_cache has a stride of 64 elements inside a pack; it must be 1"),
                (pages.transpose(0, 3, 1, 2)[:, :8], r"v_cache.shape\[1\] is 8; it must be 16 \(rows of a page of k_cache\)"),
                (numpy.zeros((3, 4, 2, 64, 4), numpy.float16), "kv.format.v.pack is 4; it must be a power of two from 8 on"),
                (numpy.zeros((3, 16, 2, 64, 0), numpy.float16), r"v_cache.shape\[4\] is 0; it must be at least 1 \(v_pack\)")):
            with self.subTest(message), self.assertRaisesRegex(sluice.InvalidArgument, message) as caught:
                sluice.reference_append(*rows, k_cache, v_cache, slots=slots)
            self.assertIn(caught.exception.field, ("v_cache", "kv.format.v.pack"))

    def test_arrays_have_the_pages_of_k(self):
        """A call with 0 pages would have an unknown number of them, and a pack without elements would be none."""
        rows, slots = numpy.zeros((2, 2, 64), numpy.float16), numpy.array([-1, -1])
        def f16(*shape):
            return numpy.zeros(shape, numpy.float16)
        def f32(*shape):
            return numpy.zeros(shape, numpy.float32)
        cache, bytes_, token_scales = f16(3, 16, 2, 64), numpy.zeros((3, 16, 2, 64), numpy.int8), f32(3, 16, 2)
        tokens = {"k_token_scales": token_scales, "v_token_scales": token_scales}
        for k_cache, v_cache, scales, field, message in (
                (f16(3, 16, 2, 64, 0), cache, {}, "k_cache", r"k_cache.shape\[4\] is 0; it must be at least 1 \(k_pack\)"),
                (cache, f16(0, 16, 2, 64), {}, "v_cache", r"shape\[0\] is 0"),
                (cache, f16(0, 2, 2, 64, 8), {}, "v_cache", r"shape\[0\] is 0"),
                (bytes_, bytes_, {**tokens, "v_token_scales": f32(0, 16, 2)}, "v_token_scales", r"shape\[0\] is 0"),
                (bytes_, bytes_, {"k_token_scales": token_scales, "v_page_scales": f32(0, 2)}, "v_page_scales",
                 r"shape\[0\] is 0")):
            with self.subTest(field, message=message), self.assertRaisesRegex(sluice.InvalidArgument, message) as caught:
                sluice.reference_append(rows, rows, k_cache, v_cache, slots=slots, **scales)
            self.assertEqual(caught.exception.field, field)
        with self.assertRaisesRegex(sluice.InvalidArgument, r"k_target.shape\[0\] is 2; it must be 3 \(pages of k_source\)"):
            sluice.reference_copy(cache, None, cache[:2], None)
        with self.assertRaisesRegex(sluice.InvalidArgument, r"k_cache.shape\[0\] is 0; it must be at least 1 \(pages\)"):
            sluice.reference_gather(cache[:0], None, f16(3, 2, 64), None, out_starts=numpy.zeros(2, numpy.int32),
                                    kv_lengths=numpy.zeros(1, numpy.int32), page_table=numpy.zeros((1, 2), numpy.int32))
        with self.assertRaisesRegex(sluice.InvalidArgument, r"k_cache.shape\[0\] is 0; it must be at least 1 \(pages\) with q"):
            sluice.reference_append(rows, None, cache[:0], None, slots=slots, q=rows)

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
        problem = sluice.Problem("bf16", q_heads=4, kv_heads=2, head_dim_qk=64, k_type="e4m3fnuz", 
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

        # Scales of keys and of pages.
        token = numpy.linspace(0.1, 0.9, 4 * 8 * 2, dtype=numpy.float32).reshape(4, 8, 2)
        key_scales = {"k_token_scales": token, "v_page_scales": numpy.ascontiguousarray(token[:, 0])}
        CONTEXT.gather(*device, *device_rows, **{name: CONTEXT.array(x, "int32") for name, x in arrays.items()},
                       **{name: CONTEXT.array(x, "f32") for name, x in key_scales.items()})
        sluice.reference_gather(*fp8, *rows, **arrays, **key_scales)
        for found, wanted in zip(device_rows, rows):
            numpy.testing.assert_array_equal(found.numpy(), wanted)
        keys = (device[0].numpy() * token[..., None])[table].reshape(2, 16, 2, -1)
        numpy.testing.assert_array_equal(rows[0][1:12], keys[0, 2:13].astype(numpy.float16))

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
                 "pages.table[0]", "4")):
            with self.subTest(message), self.assertRaises(invalid) as caught:
                call()
            self.assertEqual(caught.exception.field, field)
            self.assertIn(message, str(caught.exception))

    def test_packs_of_k(self):
        plain = normal(3, 4, 2, 64, seed=3).astype(numpy.float16)
        packed = numpy.zeros((3, 2, 8, 4, 8), numpy.float16)  # [page][head][pack][row][element]
        sluice.reference_copy(plain, None, packed.transpose(0, 3, 1, 2, 4), None)
        numpy.testing.assert_array_equal(packed, plain.reshape(3, 4, 2, 8, 8).transpose(0, 2, 3, 1, 4))


class Merges(Case):
    """Parts in any place, and LSEs as FlashAttention has them."""

    def test_merge(self):
        partial, lse = normal(3, 5, 2, 64, seed=4), normal(3, 5, 2, seed=5)
        o, merged = CONTEXT.empty((5, 2, 64), "bf16"), CONTEXT.empty((5, 2), "f32")
        CONTEXT.merge(CONTEXT.array(partial, "f32"), CONTEXT.array(lse, "f32"), o, lse=merged)
        weight = numpy.exp(lse.astype(numpy.float64))
        wanted = (partial * weight[..., None]).sum(0) / weight.sum(0)[..., None]
        self.check(o, wanted, numpy.abs(partial).max(), 2.0 ** -8)
        self.assertLess(numpy.abs(merged.numpy() - numpy.log(weight.sum(0))).max(), 1e-5)

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
        for given, given_lse, o_lse in ((parts, lses, CONTEXT.empty((6, 2), "f32")),
                                        (whole, together, CONTEXT.empty((2, 2, 3), "f32")),
                                        (whole, CONTEXT.array(lse, "f32"), CONTEXT.empty((2, 2, 3), "f32"))):
            o = CONTEXT.array(numpy.zeros((6, 2, 64)), "f32")
            flipped = o_lse.permute(0, 2, 1) if len(o_lse.shape) == 3 else o_lse
            CONTEXT.merge(given, given_lse, o, lse=flipped, infinity_is_empty=True)
            self.assertLess(numpy.abs(o.numpy() - wanted).max(), 1e-5)
            found = o_lse.numpy()
            found = found if found.ndim == 2 else found.transpose(0, 2, 1).reshape(6, 2)
            self.assertLess(numpy.abs(found - numpy.log(weight.sum(0))).max(), 1e-5)
        CONTEXT.merge(whole, CONTEXT.array(lse, "f32"), o)
        self.assertTrue(numpy.isnan(o.numpy()[2]).all())  # without the flag they count as NaN

        # 3 over 1/4 and over 1/128, which is beyond FP8.
        threes, o = CONTEXT.array(numpy.full((3, 6, 2, 64), 3.0), "f32"), CONTEXT.empty((6, 2, 64), "e4m3fnuz")
        CONTEXT.merge(threes, CONTEXT.array(numpy.zeros((3, 6, 2)), "f32"), o,
                      o_scale=CONTEXT.array(numpy.array([1 / 4, 1 / 128]), "f32"))
        self.assertTrue((o.bits()[:, 0] == 0x5c).all() and (o.bits()[:, 1] == 0x7f).all())

        for given, given_lse, field, message in (
                (parts, lses[:2], "partial_lse", "both must have as many"), (parts, together, "partial_lse", "no parts in a list"),
                ([], [], "partial", "partial is empty"),
                ([*parts[:2], CONTEXT.empty((6, 2, 32), "f32")], lses, "partial[2]", "partial[2].shape[2] is 32"),
                ([*parts[:2], CONTEXT.empty((2, 6, 64), "f32").permute(1, 0, 2)], lses, "partial[2]", "other strides"),
                (parts, [*lses[:2], CONTEXT.empty((2, 3, 2), "f32")], "partial_lse[2]", "other strides"),
                (whole, CONTEXT.empty((3, 2, 4, 2), "f32"), "partial_lse", "2 sequences of 4 tokens; there must be 6 tokens")):
            with self.subTest(message), self.assertRaises(sluice.InvalidArgument) as caught:
                CONTEXT.merge(given, given_lse, o)
            self.assertEqual(caught.exception.field, field)
            self.assertIn(message, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
