"""K and V in blocks on the emulator, against loops over their elements."""

import pathlib
import sys
import unittest

import numpy

import sluice

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from emulated import CONTEXT, normal  # noqa: E402


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
            pair_numbers = numpy.stack([numbers & 15, numbers >> 4], -1).reshape(*shape, -1, self.GROUP).astype(numpy.float64)
            elements = (pair_numbers - zeros_[..., None]) * scales[..., None]
            return numbers, elements.reshape(*shape, self.DIM), scales, zeros_
        blocks = (*shape, self.DIM // 32)
        if dtype == "q8_0":
            scales, numbers = random.uniform(0.005, 0.01, blocks), random.integers(-127, 128, (*blocks, 32)).astype(numpy.int8)
            block_numbers = numbers.astype(numpy.float64)
        else:
            scales, numbers = random.uniform(-0.2, 0.2, blocks), random.integers(0, 256, (*blocks, 16)).astype(numpy.uint8)
            block_numbers = numpy.concatenate([numbers & 15, numbers >> 4], -1).astype(numpy.float64) - 8
        scales = scales.astype(numpy.float16)
        data = numpy.concatenate([scales[..., None].view(numpy.uint8), numbers.view(numpy.uint8)], -1)
        return data.reshape(*shape, -1), (block_numbers * scales[..., None]).reshape(*shape, self.DIM), None, None

    def problem(self, dtype, **fields):
        if dtype == "u4":
            group = sluice.ScaleKind.PER_GROUP
            fields = {"k_scale_kind": group, "v_scale_kind": group, "scale_group": self.GROUP, "zero_points": True, **fields}
        return sluice.Problem("f16", self.HEADS, self.KV_HEADS, self.DIM, k_type=dtype,
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
            host_o, o = numpy.zeros(arrays["q"].shape, numpy.float16), CONTEXT.empty(arrays["q"].shape, "f16")
            problem = self.problem(dtype)
            sluice.reference(problem, **arrays, o=host_o)
            CONTEXT.plan(problem).run(**self.on_device(arrays), o=o)
            for b, length in enumerate(self.LENGTHS):
                keys, values = (x[self.TABLE[b]].reshape(-1, self.KV_HEADS, self.DIM)[:length] for x in (k, v))
                for h in range(self.HEADS):
                    scores = arrays["q"][b, 0, h].astype(numpy.float64) @ keys[:, h // 2].T / numpy.sqrt(self.DIM)
                    wanted = numpy.exp(scores) @ values[:, h // 2] / numpy.exp(scores).sum()
                    last_place = 2.0 ** -11 * numpy.abs(wanted) + 2.0 ** -24
                    self.assertTrue((numpy.abs(host_o[b, 0, h] - wanted) <= last_place * 1.000001).all(), dtype)
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
                ("q8_0", {"head_dim_v": 136}, "kv.head_dim_v", "136; it must be a multiple of 32 for q8_0"),
                ("q4_0", {"k_scale_kind": group, "scale_group": 32}, "kv.k.scale_kind", "unless the type is u4"),
                ("q4_0", {"scale_group": 32}, "kv.k.scale_group", "only scales per group have groups"),
                ("q8_0", {"zero_points": True}, "kv.k.zero_points", "only scales per group have zero points"),
                ("u4", {"scale_group": 48}, "kv.k.scale_group", "48; it must be 32 or 64"),
                ("u4", {"v_scale_kind": sluice.ScaleKind.NONE}, "kv.v.scale_kind", "for u4")):
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
                ({"k_zeros": None}, "keys[0].kv.scales.k_zeros.data", "NULL"),
                ({"v_zeros": arrays["v_zeros"][:3]}, "v_zeros", "v_zeros.shape[0] is 3; it must be at least")):
            with self.subTest(message), self.assertRaises(invalid) as caught:
                sluice.reference(self.problem("u4"), **{**arrays, **changed}, o=arrays["q"].copy())
            self.assertEqual(caught.exception.field, field)
            self.assertIn(message, str(caught.exception))
        with self.assertRaisesRegex(invalid, "dtype is Q8_0, .* arrays of it are of bytes"):
            CONTEXT.empty((2, 64), "q8_0")


class Appends(unittest.TestCase):
    """New rows in caches of blocks: the device and the library's reference, against sluice.h's steps in F32."""

    TOKENS, HEADS, DIM, PAGES, PAGE_SIZE = 9, 2, 128, 3, 16
    SLOTS = numpy.array([5, 0, -1, 17, 47, 16, 30, 31, 2])

    @staticmethod
    def inverse(scales):
        return numpy.divide(1, scales, dtype=numpy.float32, where=scales != 0, out=numpy.zeros_like(scales))

    def q8_0(self, rows):
        blocks = rows.reshape(*rows.shape[:-1], -1, 32)
        scales = numpy.abs(blocks).max(-1) / numpy.float32(127)
        products = blocks * self.inverse(scales)[..., None]
        numbers = (numpy.sign(products) * numpy.floor(numpy.abs(products) + numpy.float32(0.5))).astype(numpy.int8)
        return self.bytes_of(scales, numbers.view(numpy.uint8))

    def q4_0(self, rows):
        blocks = rows.reshape(*rows.shape[:-1], -1, 32)
        largest = numpy.take_along_axis(blocks, numpy.abs(blocks).argmax(-1)[..., None], -1)[..., 0]
        scales = largest / numpy.float32(-8)
        products = blocks * self.inverse(scales)[..., None] + numpy.float32(8.5)
        numbers = numpy.minimum(products.astype(numpy.int32), 15).astype(numpy.uint8)
        return self.bytes_of(scales, numbers[..., :16] | numbers[..., 16:] << 4)

    @staticmethod
    def bytes_of(scales, numbers):
        data = numpy.concatenate([scales.astype(numpy.float16)[..., None].view(numpy.uint8), numbers], -1)
        return data.reshape(*scales.shape[:-1], -1)

    def u4(self, rows, group, with_zeros):
        """Bytes of pairs, scales and zeros."""
        groups = rows.reshape(*rows.shape[:-1], -1, group)
        low, high = groups.min(-1), groups.max(-1)
        if with_zeros:
            scales = (high - low) / numpy.float32(15)
            scales = numpy.where(scales < numpy.abs(low) / numpy.float32(32768), numpy.float32(1), scales)
        else:
            scales = numpy.abs(groups).max(-1) / numpy.float32(7)
        scales = scales.astype(numpy.float16)
        scales[scales == 0] = 1
        inverse = 1 / scales.astype(numpy.float32)
        zeros = (-low * inverse).astype(numpy.float16) if with_zeros else numpy.full(scales.shape, 8, numpy.float16)
        numbers = numpy.clip(numpy.rint(groups * inverse[..., None] + zeros.astype(numpy.float32)[..., None]), 0, 15)
        numbers = numbers.astype(numpy.uint8).reshape(rows.shape)
        return numbers[..., ::2] | numbers[..., 1::2] << 4, scales, zeros

    def rows(self):
        made = [normal(self.TOKENS, self.HEADS, self.DIM, seed=seed).astype(numpy.float16) for seed in (3, 4)]
        made[0][1, 1] = 0  # whose scales are 0, or 1
        return made

    def stored(self, cache):
        """The rows of a cache that belong to tokens, and those of the others."""
        flat, there = cache.reshape(-1, *cache.shape[2:]), self.SLOTS >= 0
        rest = numpy.ones(len(flat), bool)
        rest[self.SLOTS[there]] = False
        return flat[self.SLOTS[there]], flat[rest]

    def append(self, dtype, bytes_of_row, **extra):
        """Appends on both sides; returns what both have stored, caches first. `extra` are arrays that are written."""
        shape, rows = (self.PAGES, self.PAGE_SIZE, self.HEADS), self.rows()
        host = {"k_cache": numpy.zeros((*shape, bytes_of_row), numpy.uint8)}
        host["v_cache"] = numpy.zeros_like(host["k_cache"])
        host.update({name: numpy.zeros((*shape, groups), numpy.float16) for name, groups in extra.items()})
        types = {"f": "f16", "u": "uint8"}
        device = {name: CONTEXT.array(array, types[array.dtype.kind]) for name, array in host.items()}
        CONTEXT.append(*(CONTEXT.array(x, "f16") for x in rows), slots=CONTEXT.array(self.SLOTS, "int64"), cache_type=dtype,
                       **device)
        sluice.reference_append(*rows, slots=self.SLOTS, cache_type=dtype, **host)
        for name, array in host.items():
            numpy.testing.assert_array_equal(device[name].bits().view(array.dtype), array, name)
            self.assertFalse(self.stored(array)[1].any(), name)
        return [self.stored(array)[0] for array in host.values()]

    def test_blocks(self):
        for dtype, bytes_of_row, wanted in (("q8_0", 136, self.q8_0), ("q4_0", 72, self.q4_0)):
            there = self.SLOTS >= 0
            for found, rows in zip(self.append(dtype, bytes_of_row), self.rows()):
                numpy.testing.assert_array_equal(found, wanted(rows[there].astype(numpy.float32)), dtype)

    def test_groups(self):
        there = self.SLOTS >= 0
        for group, with_zeros in ((64, False), (32, True)):
            names = [f"{side}_{what}" for what in (["group_scales", "zeros"] if with_zeros else ["group_scales"])
                     for side in "kv"]
            found = self.append("u4", self.DIM // 2, **{name: self.DIM // group for name in names})
            for side, rows in enumerate(self.rows()):
                wanted = self.u4(rows[there].astype(numpy.float32), group, with_zeros)
                for side_found, side_wanted in zip(found[side::2], wanted):
                    numpy.testing.assert_array_equal(side_found, side_wanted)

    def test_refusals(self):
        rows, shape = self.rows(), (self.PAGES, self.PAGE_SIZE, self.HEADS)
        cache, groups = numpy.zeros((*shape, self.DIM // 2), numpy.uint8), numpy.zeros((*shape, 2), numpy.float16)
        right = {"k_cache": cache, "v_cache": cache.copy(), "cache_type": "u4", "k_group_scales": groups,
                 "v_group_scales": groups.copy()}
        for changed, field, message in (
                ({"cache_type": None}, "k_cache", "k_cache is of integers; it must be of one of the library's types"),
                ({"cache_type": "q4_0"}, "k_cache", "must be 72 (bytes of a row of 128 elements of Q4_0)"),
                ({"cache_type": "u5"}, "cache_type", "cache_type is 'u5'"),
                ({"k_group_scales": None}, "v_group_scales", "without k_group_scales, which say how large a group is"),
                ({"v_group_scales": groups[..., :1]}, "v_group_scales", "it must be 2 (groups of 64 elements of a row)"),
                ({"k_group_scales": groups[..., :1], "v_group_scales": groups[..., :1]}, "kv.format.k.scale_group",
                 "128; it must be 32 or 64"),
                ({"k_group_scales": groups.astype(numpy.float32)}, "k_group_scales", "it must be of F16"),
                ({"k_zeros": groups}, "kv.format.v.zero_points", "that of K"),
                ({"k_token_scales": groups}, "k_group_scales", "k_token_scales and k_group_scales are both given")):
            with self.subTest(message), self.assertRaises((sluice.InvalidArgument, sluice.Unsupported)) as caught:
                sluice.reference_append(*rows, slots=self.SLOTS, **{**right, **changed})
            self.assertEqual(caught.exception.field, field)
            self.assertIn(message, str(caught.exception))


class Copies(unittest.TestCase):
    """Copies and gathers between equal types take scales and zeros along: the device and the library's reference, against
    what sluice.h says of each number. And blocks become F16."""

    PAGES, PAGE_SIZE, HEADS, DIM, ROWS = 4, 8, 2, 64, 12
    PAIRS = numpy.array([[0, 3], [-1, 1], [2, 0]], numpy.int32)
    TABLES = {"out_starts": numpy.array([1, 10], numpy.int32), "kv_lengths": numpy.array([11], numpy.int32),
              "first_keys": numpy.array([2], numpy.int32), "page_table": numpy.array([[3, 1]], numpy.int32)}

    def source(self, dtype):
        """Elements, and arrays by their names."""
        random, shape = numpy.random.default_rng(7), (self.PAGES, self.PAGE_SIZE, self.HEADS)
        if dtype == "i8":
            elements = [random.integers(-127, 128, (*shape, self.DIM)).astype(numpy.int8) for _ in "kv"]
            return elements, {"k_token_scales": random.random(shape, numpy.float32),
                              "v_page_scales": random.random((self.PAGES, self.HEADS), numpy.float32)}
        elements = [random.integers(0, 256, (*shape, self.DIM // 2)).astype(numpy.uint8) for _ in "kv"]
        names = [f"{side}_{what}" for what in ("group_scales", "zeros") for side in "kv"]
        return elements, {name: random.uniform(1, 9, (*shape, 2)).astype(numpy.float16) for name in names}

    @staticmethod
    def on_device(array):
        types = {"int8": "i8", "float16": "f16", "float32": "f32"}
        return CONTEXT.array(array, types.get(array.dtype.name, array.dtype.name))

    def both(self, calls, arrays, written, **usual):
        """Calls the device and the host; returns what both have written. `arrays` and `written` by their names."""
        on_device = {name: self.on_device(array) for name, array in {**arrays, **written}.items()}
        calls[0](**on_device, **usual)
        calls[1](**arrays, **written, **usual)
        for name, array in written.items():
            numpy.testing.assert_array_equal(on_device[name].bits().view(array.dtype), array, name)
        return list(written.values())

    def copied(self, array):
        made = numpy.zeros_like(array)
        made[3], made[0] = array[0], array[2]
        return made

    def gathered(self, array, is_of_pages=False):
        if is_of_pages:
            array = numpy.repeat(array[:, None], self.PAGE_SIZE, 1)
        made = numpy.zeros((self.ROWS, *array.shape[2:]), array.dtype)
        made[1:10] = array[[3, 1]].reshape(-1, *array.shape[2:])[2:11]
        return made

    @staticmethod
    def targets(arrays, word):
        """The names of the arrays of a target, by those of the source."""
        return {name: f"{name[0]}_{word}_{'zeros' if name.endswith('zeros') else 'scales'}" for name in arrays}

    def test_arrays_go_along(self):
        for dtype in ("i8", "u4"):
            elements, arrays = self.source(dtype)
            usual = {"cache_type": dtype} if dtype == "u4" else {}
            names = {"k_source": "k_target", "v_source": "v_target", **self.targets(arrays, "target")}
            given = {"k_source": elements[0], "v_source": elements[1], **arrays}
            found = self.both((CONTEXT.copy, sluice.reference_copy), {**given, "pairs": self.PAIRS},
                              {names[name]: numpy.zeros_like(array) for name, array in given.items()}, **usual)
            for name, found_array in zip(given, found):
                numpy.testing.assert_array_equal(found_array, self.copied(given[name]), f"{dtype}, {names[name]}")

            names = {"k_cache": "k_out", "v_cache": "v_out", **self.targets(arrays, "out")}
            given = {"k_cache": elements[0], "v_cache": elements[1], **arrays}
            wanted = {name: self.gathered(array, "page" in name) for name, array in given.items()}
            found = self.both((CONTEXT.gather, sluice.reference_gather), {**given, **self.TABLES},
                              {names[name]: numpy.zeros_like(array) for name, array in wanted.items()}, **usual)
            for name, found_array in zip(given, found):
                numpy.testing.assert_array_equal(found_array, wanted[name], f"{dtype}, {names[name]}")

    def test_groups_become_f16(self):
        elements, arrays = self.source("u4")
        numbers = numpy.stack([elements[1] & 15, elements[1] >> 4], -1).reshape(*elements[1].shape[:3], 2, 32)
        values = (numbers - arrays["v_zeros"][..., None].astype(numpy.float64)) * arrays["v_group_scales"][..., None]
        values = values.reshape(*values.shape[:3], self.DIM).astype(numpy.float16)
        targets = {name: numpy.zeros(values.shape, numpy.float16) for name in ("k_target", "v_target")}
        found = self.both((CONTEXT.copy, sluice.reference_copy),
                          {"k_source": elements[0], "v_source": elements[1], "pairs": self.PAIRS, **arrays}, targets,
                          cache_type="u4")
        numpy.testing.assert_array_equal(found[1], self.copied(values))
        out = {name: numpy.zeros((self.ROWS, self.HEADS, self.DIM), numpy.float16) for name in ("k_out", "v_out")}
        found = self.both((CONTEXT.gather, sluice.reference_gather),
                          {"k_cache": elements[0], "v_cache": elements[1], **arrays, **self.TABLES}, out, cache_type="u4")
        numpy.testing.assert_array_equal(found[1], self.gathered(values))

    def test_refusals(self):
        elements, arrays = self.source("u4")
        pages = {"k_source": elements[0], "v_source": elements[1], "k_target": elements[0].copy(),
                 "v_target": elements[1].copy(), "cache_type": "u4", "pairs": self.PAIRS, **arrays,
                 **{to: arrays[name].copy() for name, to in self.targets(arrays, "target").items()}}
        rows = {"k_cache": elements[0], "v_cache": elements[1], "cache_type": "u4", **arrays, **self.TABLES,
                "k_out": self.gathered(elements[0]), "v_out": self.gathered(elements[1]),
                **{to: self.gathered(arrays[name]) for name, to in self.targets(arrays, "out").items()}}
        sluice.reference_copy(**pages)
        sluice.reference_gather(**rows)
        groups, row_scales = pages["k_target_scales"], rows["k_out_scales"]
        for call, right, changed, field, message in (
                (sluice.reference_copy, pages, {"k_target_scales": groups[:, :7]}, "k_target_scales",
                 "it must be 8 (rows of a page of k_source)"),
                (sluice.reference_copy, pages, {"v_target_zeros": groups[..., :1]}, "v_target_zeros",
                 "it must be 2 (groups of 32 elements of a row)"),
                (sluice.reference_copy, pages, {"k_target_zeros": groups.astype(numpy.float32)}, "k_target_zeros",
                 "it must be of F16"),
                (sluice.reference_copy, pages, {"v_target_scales": None}, "target.scales.v.data", "NULL"),
                (sluice.reference_copy, pages, {"k_target_scales": groups[:3], "k_target_zeros": groups[:3]},
                 "k_target_scales", "pages of k_target"),
                (sluice.reference_copy, pages, {"k_zeros": groups[:, :, :1]}, "k_zeros", "heads of k"),
                (sluice.reference_copy, pages, {"cache_type": "q4_0"}, "k_source", "bytes of a row of 32 elements of Q4_0"),
                (sluice.reference_copy, pages, {"cache_type": None}, "k_source", "is of integers"),
                (sluice.reference_gather, rows, {"k_out_scales": row_scales[:11]}, "k_out_scales",
                 "it must be 12 (rows of k_out)"),
                (sluice.reference_gather, rows, {"v_out_zeros": row_scales[:, :1]}, "v_out_zeros", "heads of k"),
                (sluice.reference_gather, rows, {"k_out_zeros": None}, "target.scales.k_zeros.data", "NULL"),
                (sluice.reference_gather, rows, {"v_zeros": groups[:3]}, "v_zeros", "pages of k_cache"),
                (sluice.reference_gather, rows, {"v_out": rows["v_out"][..., :16]}, "v_out", "bytes of a row of 64 elements")):
            with self.subTest(message, field=field), self.assertRaises(sluice.InvalidArgument) as caught:
                call(**{**right, **changed})
            self.assertEqual(caught.exception.field, field)
            self.assertIn(message, str(caught.exception))

        elements, arrays = self.source("i8")
        pages = {"k_source": elements[0], "v_source": elements[1], "k_target": elements[0].copy(),
                 "v_target": elements[1].copy(), **arrays, "k_target_scales": arrays["k_token_scales"].copy()}
        for wrong, message in ((arrays["k_token_scales"], "it must have 2"), (arrays["v_page_scales"][:, :1], "heads of k")):
            with self.assertRaisesRegex(sluice.InvalidArgument, message) as caught:
                CONTEXT.copy(**{name: self.on_device(array) for name, array in {**pages, "v_target_scales": wrong}.items()})
            self.assertEqual(caught.exception.field, "v_target_scales")


if __name__ == "__main__":
    unittest.main()
