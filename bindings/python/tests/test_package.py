"""The package on the emulator: values, reports, what it says about itself, and errors."""

import importlib.metadata
import pathlib
import sys
import unittest

import numpy

import sluice

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from emulated import CONTEXT, zeros  # noqa: E402

PACKAGE = pathlib.Path(__file__).resolve().parents[1]


class Observed(unittest.TestCase):
    def test_numbers_of_a_plan(self):
        problem = sluice.Problem("bf16", 8, 2, 64, max_batch=3, max_q_len=70, max_kv_len=100)
        info = CONTEXT.plan(problem).info
        tiles = -(-70 * 4 // info.tile_q)
        self.assertEqual(sorted(info.max_grid), sorted((tiles, 2, 3)))
        self.assertEqual(info.block, (info.waves * CONTEXT.device.wave_size, 1, 1))

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
        self.refused(sluice.Unsupported, "kv.head_dim_qk", "kv.head_dim_qk is 1000; nearest supported: 576", CONTEXT.query_support,
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
                ({"lse": CONTEXT.empty((1, 5, 4), "f32")}, "lse.data", "writes no LSE"),
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
