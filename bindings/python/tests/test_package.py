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
