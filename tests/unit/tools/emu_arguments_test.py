#!/usr/bin/python3
"""Tests the arguments and the memory that `sluice-emu run` gives to a kernel. See emu_fixture.py."""
import bisect
import struct

from emu_fixture import KERNELS, REGISTERS, EmuTest, main
from npy_files import read_npy, write_npy

ECHO_SCALARS = ["i8:-5", "u8:0xC8", "i16:-30000", "u16:60000", "f16:1.5", "bf16:-2.5", "i32:-2000000000",
                "u32:4000000000", "f32:0.1", "i64:-9000000000000000000", "u64:18000000000000000000", "f64:-1e-300",
                "raw:0102030405aF"]
# The layout of a structure of these types in the System V ABI, computed independently.
ECHO_BYTES = struct.pack("<bBhHeHxxiIfqQd6Bxx", -5, 200, -30000, 60000, 1.5, 0xc020, -2000000000, 4000000000, 0.1,
                         -9 * 10**18, 18 * 10**18, -1e-300, 1, 2, 3, 4, 5, 0xaf)


class ArgumentTest(EmuTest):
    def echo(self, *more, kernel="echo", arguments=None, status=0):
        arguments = [*ECHO_SCALARS, "ptr:0+16", "ptr:0"] if arguments is None else arguments
        flags = [word for argument in ["size:128", *arguments] for word in ("--arg", argument)]
        self.succeeds("run", REGISTERS, "--kernel", kernel, *flags, "--out", f"0={self.out}", *more, status=status)
        header, data = read_npy(self.out)
        self.assertEqual((header["descr"], header["shape"]), ("|u1", (128,)))
        return data

    def test_every_kind_at_the_offset_that_the_metadata_says(self):
        data = self.echo("--grid", "3,2", "--block", "32,2", "--check=pending")  # all workgroups write the same
        self.assertEqual(data[8:8 + len(ECHO_BYTES)], ECHO_BYTES)
        out, inside, start = struct.unpack_from("<Q", data, 0) + struct.unpack_from("<QQ", data, 64)
        self.assertNotEqual(out, 0)
        self.assertEqual((inside, start), (out + 16, out))
        # The hidden ones: workgroups of the grid and work-items of a workgroup.
        self.assertEqual(struct.unpack_from("<IIIHH", data, 80), (3, 2, 1, 32, 2))

    def test_without_metadata_they_are_aligned_to_their_size(self):
        data = self.echo(kernel="bare", arguments=["u8:1", "u16:2", "u8:3", "u32:4", "u8:5", "u64:6", "raw:070707",
                                                   "f64:8", "i64:-1", "raw:" + "09" * 16, "raw:" + "0a" * 12,
                                                   "raw:" + "0b" * 32])
        expected = bytearray(128)
        for offset, value in [(8, b"\1"), (10, b"\2\0"), (12, b"\3"), (16, b"\4\0\0\0"), (20, b"\5"),
                              (24, b"\6" + bytes(7)), (32, b"\7" * 3), (40, struct.pack("<d", 8)), (48, b"\xff" * 8),
                              (64, b"\x09" * 16), (80, b"\x0a" * 12), (96, b"\x0b" * 32)]:
            expected[offset:offset + len(value)] = value
        self.assertEqual(data[8:], bytes(expected[8:]))
        # Up to 7 bytes may be missing at the end, not more; and extra bytes are refused.
        message = "the values of --arg take {} bytes; the descriptor of kernel 'bare', which has no metadata, declares 128"
        for size in (104, 136):
            self.refuses(message.format(8 + size), "run", REGISTERS, "--kernel", "bare", "--arg", "size:128", "--arg",
                         "raw:" + "00" * size)

    def test_sizes_and_numbers_of_arguments(self):
        self.refuses("--arg f64:1.5 (argument 0): has 8 bytes; kernel 'steps' takes 4 there (value, by_value, at offset 0)",
                     "run", REGISTERS, "--kernel", "steps", "--arg", "f64:1.5")
        self.refuses("--arg u8:1 (argument 0): has 1 byte; kernel 'spin' takes 4 there (by_value, at offset 0)",
                     "run", KERNELS, "--kernel", "spin", "--arg", "u8:1")
        self.refuses("--arg is given 0 times; kernel 'steps' takes 1 argument: value (4 bytes, by_value)",
                     "run", REGISTERS, "--kernel", "steps")
        self.refuses("--arg is given 2 times; kernel 'steps' takes 1 argument", "run", REGISTERS, "--kernel", "steps",
                     "--arg", "u32:1", "--arg", "u32:1")

    def test_wrong_values(self):
        for argument, message in {
            "7": "an argument begins with one of buf: size: i8: u8: i16: u16: i32: u32: i64: u64: f16: bf16: f32: f64: "
                 "raw: ptr:",
            "u128:7": "an argument begins with one of",
            "u32:": "'' is not a whole number, decimal or hexadecimal after 0x",
            "u32:1x": "'1x' is not a whole number",
            "u32:0x": "'0x' is not a whole number",
            "u32:+1": "'+1' is not a whole number",
            "i32:--1": "'--1' is not a whole number",
            "u8:256": "256 is not within 0 and 255",
            "u8:-1": "-1 is not within 0 and 255",
            "i8:128": "128 is not within -128 and 127",
            "i8:-129": "-129 is not within -128 and 127",
            "u32:0x100000000": "0x100000000 is not within 0 and 4294967295",
            "i64:9223372036854775808": "is not within -9223372036854775808 and 9223372036854775807",
            "u64:18446744073709551616": "is not within 0 and 18446744073709551615",
            "f32:one": "'one' is not a number such as 1.5, -2e-3, inf or nan",
            "f32:1.5f": "'1.5f' is not a number",
            "f32:1e39": "1e39 does not fit f32",
            "f64:1e999": "1e999 does not fit f64",
            "f16:65520": "65520 does not fit f16",
            "bf16:3.38e38": None,
            "bf16:3.4e39": "3.4e39 does not fit bf16",
            "f16:inf": None,
            "raw:": "after 'raw:' come bytes, two hexadecimal digits each",
            "raw:123": "two hexadecimal digits each",
            "raw:0g": "two hexadecimal digits each",
            "buf:": "after 'buf:' comes the name of a .npy file",
            "buf:none.npy": "none.npy: cannot be opened: No such file",
            "size:": "'' is not a whole number",
            "size:many": "'many' is not a whole number",
            "size:99999999999999999999": "99999999999999999999 is beyond 64 bits",
            "size:1000000000000000": "1000000000000000 bytes of memory cannot be allocated",
            "size:64:fill=256": "fill is '256'; it must be undefined, a byte from 0 to 255, random or random(SEED)",
            "size:64:fill=random(x)": "'x' is not a whole number",
            "size:64:fill=": "fill is ''",
            "size:64:type=f8": "type is 'f8'; it must be one of bool, i8, u8, i16,",
            "size:62:type=f32": "62 bytes are not a whole number of elements of f32",
            "size:64:zero": "'zero' is not a setting of a buffer; the settings are fill=... and type=...",
            "ptr:1": "argument 1 is not a buffer (buf: or size:)",
            "ptr:0": "argument 0 is not a buffer",
            "ptr:x": "'x' is not a whole number",
        }.items():
            # None: the value is valid, but of the wrong size.
            self.refuses([f"--arg {argument} (argument 0): ", message or "has 2 bytes"], "run", REGISTERS, "--kernel",
                         "careless", "--arg", argument)

    def test_addresses_may_point_to_the_end_of_a_buffer_and_no_further(self):
        call = ["run", REGISTERS, "--kernel", "echo", "--arg", "size:128"]
        for argument in (*ECHO_SCALARS, "ptr:0+128"):
            call += ["--arg", argument]
        self.succeeds(*call, "--arg", "size:8")
        self.refuses("--arg ptr:0+129 (argument 15): offset 129 is beyond the 128 bytes of argument 0", *call, "--arg",
                     "ptr:0+129")

    def test_an_address_in_a_later_buffer(self):
        out = self.folder / "late.npy"
        call = ["run", REGISTERS, "--kernel", "echo", "--arg", "ptr:15+64"]
        for argument in (*ECHO_SCALARS, "u64:1", "size:192:fill=9"):
            call += ["--arg", argument]
        self.succeeds(*call, "--out", f"15={out}")
        _, data = read_npy(out)
        self.assertEqual((data[:64], data[64 + 8:64 + 8 + len(ECHO_BYTES)]), (b"\x09" * 64, ECHO_BYTES))

    def test_kernarg_file(self):
        file = self.folder / "kernarg.bin"
        file.write_bytes(struct.pack("<I", 0x89abcdef))
        text = self.succeeds("run", REGISTERS, "--kernel", "steps", "--kernarg-file", file, "--trace")
        self.assertIn("s5 arrived = 0x89abcdef", text)
        self.refuses("excludes", "run", REGISTERS, "--kernel", "steps", "--kernarg-file", file, "--arg", "u32:1")
        file.write_bytes(bytes(3))
        self.refuses("kernarg.bin has 3 bytes; kernel 'steps' takes 4", "run", REGISTERS, "--kernel", "steps",
                     "--kernarg-file", file)
        file.write_bytes(bytes(5))
        self.refuses("kernarg.bin has 5 bytes; kernel 'steps' declares 4", "run", REGISTERS, "--kernel", "steps",
                     "--kernarg-file", file)
        self.refuses("none: cannot be opened", "run", REGISTERS, "--kernel", "steps", "--kernarg-file", "none")
        self.refuses("--kernarg-file: is empty", "run", REGISTERS, "--kernel", "steps", "--kernarg-file", "")


class PlacedArgumentTest(EmuTest):
    CALL = ["run", KERNELS, "--kernel", "padded", "--grid", "2"]
    VALUES = ["0=size:512:type=u32", "0x10=size:512:type=u32:fill=random(3)", "32=u32:128", "48=u32:5",
              "64=ptr:16+512", "80=u32:7"]

    def flags(self, values):
        return [word for value in values for word in ("--arg-at", value)]

    def expect(self, addend):
        source = self.elements("I", self.folder / "in.npy")
        self.assertEqual(list(self.elements("I")), [(5 * value + addend + 128) % 2**32 for value in source])

    def test_padding_needs_no_values(self):
        outputs = ["--out", f"0={self.out}", "--out", f"0x10={self.folder}/in.npy"]
        text = self.succeeds(*self.CALL, *self.flags(self.VALUES), *outputs)
        self.assertIn("argument at byte 0: u32 [128] written to", text)
        self.assertIn("argument at byte 16: u32 [128] written to", text)
        self.expect(7)
        # In any order; arguments that are not given are 0.
        self.succeeds(*self.CALL, *self.flags(reversed(self.VALUES[:-1])), *outputs)
        self.expect(0)
        result = self.json(*self.CALL, *self.flags(self.VALUES), *outputs)
        self.assertEqual([(output["argument"], output["type"], output["shape"]) for output in result["outputs"]],
                         [(0, "u32", [128]), (16, "u32", [128])])

    def test_the_other_bytes_are_those_of_a_file(self):
        file = self.folder / "kernarg.bin"
        file.write_bytes(bytes(80) + struct.pack("<III", 9, 1 << 10, 1 << 11) + bytes(4))
        self.succeeds(*self.CALL, "--kernarg-file", file, *self.flags(self.VALUES[:-1]), "--out", f"0={self.out}", "--out",
                      f"16={self.folder}/in.npy")
        self.expect(9 + (1 << 10) + (1 << 11))
        self.refuses("--arg-at 96=u32:1: its 4 bytes end beyond the 96 of arguments that --kernarg-file has", *self.CALL,
                     "--kernarg-file", file, "--arg-at", "96=u32:1")

    def test_of_a_kernel_without_metadata(self):
        values = ["0=size:128", "112=ptr:0+8", "120=u32:77"]
        self.succeeds("run", REGISTERS, "--kernel", "bare", *self.flags(values), "--out", f"0={self.out}")
        data = read_npy(self.out)[1]
        start, inside, value = struct.unpack_from("<Q", data, 0) + struct.unpack_from("<QI", data, 112)
        self.assertEqual((inside, value), (start + 8, 77))
        self.assertEqual(data[8:112], bytes(104))

    def test_wrong_values(self):
        for values, message in (
                (["7"], "--arg-at 7: it must be OFFSET=VALUE, with OFFSET the byte of the arguments at which the value begins"),
                (["size:64:fill=1"], "--arg-at size:64:fill=1: it must be OFFSET=VALUE"),
                (["=u32:1"], "--arg-at =u32:1: '' is not a whole number"),
                (["-4=u32:1"], "--arg-at -4=u32:1: '-4' is not a whole number"),
                (["0=u33:1"], "--arg-at 0=u33:1: an argument begins with one of buf: size:"),
                (["96=u32:1"], "--arg-at 96=u32:1: its 4 bytes end beyond the 96 of arguments that kernel 'padded' takes"),
                (["94=u32:1"], "--arg-at 94=u32:1: its 4 bytes end beyond the 96 of"),
                (["0xffffffffffffffff=u32:1"], "its 4 bytes end beyond the 96 of"),
                (["0=u64:1", "4=u32:1"], "--arg-at 4=u32:1: its bytes 4 to 7 are also those of the value at 0"),
                (["4=u32:1", "0=u64:1"], "--arg-at 0=u64:1: its bytes 0 to 7 are also those of the value at 4"),
                (["0=size:4", "0=size:4"], "--arg-at 0=size:4: there is a value at this byte already"),
                (["0=ptr:16"], "--arg-at 0=ptr:16: argument at byte 16 is not a buffer (buf: or size:)"),
                (["0=size:4", "16=ptr:0+5"], "--arg-at 16=ptr:0+5: offset 5 is beyond the 4 bytes of argument at byte 0"),
        ):
            self.refuses(message, *self.CALL, *self.flags(values))
        self.refuses("--out 8=o.npy: argument at byte 8 is not a buffer", *self.CALL, "--arg-at", "0=size:4", "--out",
                     "8=o.npy")
        self.refuses("excludes", *self.CALL, "--arg", "u32:1", "--arg-at", "0=u32:1")
        self.refuses("--out 0=o.npy needs the --arg or --arg-at that makes the memory", *self.CALL, "--out", "0=o.npy")


class BufferTest(EmuTest):
    def invert(self, argument, *more):
        return self.succeeds("run", KERNELS, "--kernel", "invert", "--grid", "4", "--arg", argument, "--arg", "u32:256",
                             "--out", f"0={self.out}", *more)

    def test_arrays_of_every_type_come_back_in_their_shape(self):
        data = bytes(range(256)) * 4
        for descr, size in (("|b1", 1), ("|i1", 1), ("|u1", 1), ("<i2", 2), ("<u2", 2), ("<f2", 2), ("<i4", 4),
                            ("<u4", 4), ("<f4", 4), ("<i8", 8), ("<u8", 8), ("<f8", 8)):
            source = write_npy(self.folder / "in.npy", descr, (2, 1024 // size // 2, 1), data)
            text = self.invert(f"buf:{source}")
            self.assertRegex(text, r"argument 0: \w+ \[2, \d+, 1\] written to .*out.npy\n")
            header, result = read_npy(self.out)
            self.assertEqual(header, {"descr": descr, "fortran_order": False, "shape": (2, 1024 // size // 2, 1)})
            self.assertEqual(result, bytes(255 - byte for byte in data))
            self.assertEqual(read_npy(source)[1], data)

    def test_filled_memory(self):
        self.invert("size:1024:fill=0x0f")
        self.assertEqual(read_npy(self.out)[1], b"\xf0" * 1024)
        contents = []
        for fill in ("random", "random(1)", "random(2)"):
            self.invert(f"size:1024:fill={fill}")
            contents.append(read_npy(self.out)[1])
        self.assertEqual(contents[0], contents[1])
        self.assertNotEqual(contents[0], contents[2])
        self.assertGreater(len(set(contents[0])), 200)

    def test_random_numbers_of_a_type(self):
        # splitmix64 with seed 7: its first number's upper 11 bits, as a multiple of 2^-10 from -1 on.
        z = 7 + 0x9e3779b97f4a7c15
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 % 2**64
        z = (z ^ z >> 27) * 0x94d049bb133111eb % 2**64
        first = ((z ^ z >> 31) >> 53) / 1024 - 1
        for keyword, code, count in (("f16", "e", 512), ("f32", "f", 256), ("f64", "d", 128)):
            self.succeeds("run", KERNELS, "--kernel", "invert", "--arg", f"size:1024:type={keyword}:fill=random(7)", "--arg",
                          "u32:0", "--out", f"0={self.out}")
            header, data = read_npy(self.out)
            self.assertEqual(header["shape"], (count,))
            values = struct.unpack(f"<{count}{code}", data)
            self.assertEqual(values[0], first)
            self.assertTrue(all(-1 <= value < 1 for value in values))
            self.assertTrue(min(values) < -0.8 and max(values) > 0.8)
        # Types that Python has no letter for: all their numbers by their bits, rounded to nearest even.
        wanted = []
        state = 7
        for _ in range(512):
            state = (state + 0x9e3779b97f4a7c15) % 2**64
            z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9 % 2**64
            z = (z ^ z >> 27) * 0x94d049bb133111eb % 2**64
            wanted.append(((z ^ z >> 31) >> 53) / 1024 - 1)
        for keyword, exponent_bits, mantissa_bits, bias, fnuz in (
                ("bf16", 8, 7, 127, False), ("e4m3fnuz", 4, 3, 8, True), ("e5m2fnuz", 5, 2, 16, True),
                ("e4m3fn", 4, 3, 7, False), ("e5m2", 5, 2, 15, False)):
            width = (1 + exponent_bits + mantissa_bits) // 8
            self.succeeds("run", KERNELS, "--kernel", "invert", "--arg",
                          f"size:{512 * width}:type={keyword}:fill=random(7)", "--arg", "u32:0", "--out", f"0={self.out}")
            header, data = read_npy(self.out)
            self.assertEqual((header["descr"], header["shape"]), ("<u2" if width == 2 else "|u1", (512,)))
            numbers = {}
            for bits in range(2**(8 * width - 1)):
                exponent, mantissa = bits >> mantissa_bits, bits % 2**mantissa_bits
                value = (mantissa + (2**mantissa_bits if exponent else 0)) * 2.0**(max(exponent, 1) - bias - mantissa_bits)
                if value <= 1:
                    numbers[value] = bits
                    if bits or not fnuz:
                        numbers.setdefault(-value, bits | 1 << 8 * width - 1)
            ordered = sorted(numbers)
            for want, bits in zip(wanted, struct.unpack(f"<512{'H' if width == 2 else 'B'}", data)):
                at = bisect.bisect_left(ordered, want)
                near = min(ordered[max(at - 1, 0):at + 1], key=lambda value: (abs(value - want), numbers[value] % 2))
                self.assertEqual(bits % 2**(8 * width - 1) if near == 0 else bits, numbers[near], (keyword, want))
        self.succeeds("run", KERNELS, "--kernel", "invert", "--arg", "size:64:type=bool:fill=random", "--arg", "u32:0",
                      "--out", f"0={self.out}")
        self.assertEqual(set(read_npy(self.out)[1]), {0, 1})

    def test_undefined_memory_is_reported_when_it_is_used(self):
        for argument in ("size:256", "size:256:fill=undefined"):
            text = self.succeeds("run", KERNELS, "--kernel", "invert", "--arg", argument, "--arg", "u32:64", status=1)
            self.assertIn("memory that was never written", text)

    def test_an_empty_buffer_is_a_null_pointer(self):
        empty = write_npy(self.folder / "in.npy", "<f4", (3, 0), b"")
        self.succeeds("run", KERNELS, "--kernel", "invert", "--arg", f"buf:{empty}", "--arg", "u32:0", "--out",
                      f"0={self.out}")
        self.assertEqual(read_npy(self.out), ({"descr": "<f4", "fortran_order": False, "shape": (3, 0)}, b""))

    def test_wrong_npy_files(self):
        def refused(message, path):
            self.refuses(f"--arg buf:{path} (argument 0): {path}: {message}", "run", KERNELS, "--kernel", "invert", "--arg",
                         f"buf:{path}", "--arg", "u32:0")
        bad = self.folder / "bad.npy"
        bad.write_bytes(b"PK\3\4 an archive")
        refused("is not a .npy file", bad)
        write_npy(bad, "<f4", (3,), bytes(11))
        refused("is truncated: shape [3] of f32 ('<f4') needs 12 bytes, 11 are there", bad)
        write_npy(bad, ">f4", (3,), bytes(12))
        refused("has element type '>f4'; '|b1', '|i1', ", bad)

    def test_wrong_outputs(self):
        call = ["run", KERNELS, "--kernel", "invert", "--arg", "size:256:fill=0", "--arg", "u32:0"]
        self.refuses("--out o.npy: it must be I=FILE, with I the number of an argument, counted from 0, or after --arg-at the "
                     "byte at which it begins", *call, "--out",
                     "o.npy")
        self.refuses("--out x=o.npy: 'x' is not a whole number", *call, "--out", "x=o.npy")
        self.refuses("--out 1=o.npy: argument 1 is not a buffer (buf: or size:)", *call, "--out", "1=o.npy")
        self.refuses("--out 2=o.npy: argument 2 is not a buffer", *call, "--out", "2=o.npy")
        self.refuses("--out 0 is empty; it must be the name of a file", *call, "--out", "0=")
        self.refuses("--out 0: /dev/full cannot be written: No space left", *call, "--out", "0=/dev/full")
        self.refuses("no/such/o.npy cannot be written", *call, "--out", f"0={self.folder}/no/such/o.npy")
        self.refuses("are the same file; each needs its own", *call, "--out", f"0={self.out}", "--out", f"0={self.out}")
        self.refuses("--out", "run", KERNELS, "--kernel", "invert", "--out", "0=o.npy")
        self.assertEqual(list(self.folder.iterdir()), [])
        self.succeeds(*call, "--out", "0=/dev/null")


if __name__ == "__main__":
    main()
