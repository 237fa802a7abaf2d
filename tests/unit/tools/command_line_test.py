#!/usr/bin/python3
"""Tests the `sluice` program as a user sees it: results, messages and exit statuses.

usage: command_line_test.py SLUICE LIBRARY DATA LLVM_BIN [--emulator] [unittest arguments] LIBRARY is the libsluice.so
in use, DATA the folder tests/data, LLVM_BIN holds llvm-objdump. --emulator: the emulator is built, so calls can run.
"""
import array
import pathlib
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

from npy_files import read_npy, write_npy
from terminal import run_on_a_terminal

SLUICE, LIBRARY, DATA, LLVM_BIN = sys.argv[1:5]
HAS_EMULATOR = "--emulator" in sys.argv
QKV = pathlib.Path(DATA) / "jargon_lm/qkv"
INPUTS = ["--q", QKV / "q.npy", "--k", QKV / "k.npy", "--v", QKV / "v.npy"]
ATTENTION_KERNELS, CACHE_OP_KERNELS = 275, 41
KERNEL = "attn_fwd_f16_d128_q256_kv64_w8"


def sluice(*arguments):
    return subprocess.run([SLUICE, *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL)


def limit_file_size(size):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


class CommandLineTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def succeeds(self, *arguments):
        result = sluice(*arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        return result.stdout

    def refuses(self, text, *arguments, status=2):
        result = sluice(*arguments)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        self.assertIn(text, result.stdout + result.stderr)
        if status == 2:
            self.assertEqual(result.stdout, "")

    def test_help_and_wrong_commands(self):
        self.assertIn("run", self.succeeds("--help"))
        self.assertIn("--causal", self.succeeds("run", "--help"))
        self.refuses("A subcommand is required")
        self.refuses("A subcommand is required", "frobnicate")
        self.refuses("--q is required", "run")
        self.refuses("--loud", "info", "--loud")

    def test_info(self):
        text = self.succeeds("info")
        self.assertIn("ABI 2.", text)
        self.assertIn(f"{ATTENTION_KERNELS + CACHE_OP_KERNELS} for gfx942", text)
        self.assertRegex(text, r"(?m)^hip:0 ")

    def test_kernels(self):
        text = self.succeeds("kernels")
        self.assertEqual(len(text.splitlines()), 1 + ATTENTION_KERNELS + CACHE_OP_KERNELS)
        self.assertIn(KERNEL, text)
        self.refuses("--device is 'cuda:0'", "kernels", "--device", "cuda:0")
        self.refuses("--device is 'hip:x'", "kernels", "--device", "hip:x")
        self.refuses("gfx1100", "kernels", "--device", "gfx1100:96")

    def test_features(self):
        text = self.succeeds("features")
        self.assertNotIn("`: 0 of ", text) # every feature has kernels, those of later versions too
        self.assertEqual(text, self.succeeds("features", "--device", "gfx942:38"))
        self.assertIn("| feature | requested by | supported |", text)
        self.refuses("gfx1100", "features", "--device", "gfx1100:96")

    def test_inspect_lists_and_extracts(self):
        self.assertEqual(len(self.succeeds("inspect").splitlines()), 4 + ATTENTION_KERNELS + CACHE_OP_KERNELS)
        elf, bundle = self.folder / "a.co", self.folder / "a.hipfb"
        self.succeeds("inspect", LIBRARY, "--extract", KERNEL, "--elf", elf, "--bundle", bundle)
        code = subprocess.run([f"{LLVM_BIN}/llvm-objdump", "-d", elf], check=True, capture_output=True, text=True).stdout
        self.assertIn(f"<{KERNEL}>:", code)
        self.assertIn("v_mfma_f32_32x32x8_f16", code)
        self.assertIn("s_endpgm", code)
        # The bundle is in the format that HIP's loader reads: magic, count, and per entry offset, size and id.
        data = bundle.read_bytes()
        self.assertEqual(data[:24], b"__CLANG_OFFLOAD_BUNDLE__")
        entries, at = {}, 32
        for _ in range(struct.unpack_from("<Q", data, 24)[0]):
            offset, size, length = struct.unpack_from("<QQQ", data, at)
            entries[data[at + 24:at + 24 + length].decode()] = data[offset:offset + size]
            at += 24 + length
        self.assertEqual(list(entries.values()), [b"", elf.read_bytes()])
        self.assertEqual(list(entries)[1], "hipv4-amdgcn-amd-amdhsa--gfx942")

    def test_inspect_refuses(self):
        self.refuses("has no kernel 'attn'; it has append_step_", "inspect", "--extract", "attn", "--elf", self.folder / "x")
        self.refuses("needs --elf FILE or --bundle FILE", "inspect", "--extract", KERNEL)
        self.refuses("has no code for 'gfx90a'; it has code for gfx942", "inspect", "--extract", KERNEL, "--chip",
                     "gfx90a", "--elf", self.folder / "x")
        self.refuses("cannot be opened: No such file", "inspect", self.folder / "none.pack")
        self.refuses("holds no kernel pack", "inspect", SLUICE)
        (self.folder / "text").write_text("this is not a pack, although it is long enough " * 10)
        self.refuses("text: ", "inspect", self.folder / "text")
        self.refuses("cannot be written", "inspect", "--extract", KERNEL, "--elf", self.folder / "no/such/folder")

    def test_inspect_notices_damage(self):
        library = pathlib.Path(LIBRARY).read_bytes()
        # The magic also occurs in the code that looks for it; in the pack a version and a size follow.
        begin = -1
        while True:
            begin = library.index(b"SLUICEPK", begin + 1)
            version, kernels, size = struct.unpack_from("<IIQ", library, begin + 8)
            if version == 4 and kernels == ATTENTION_KERNELS + CACHE_OP_KERNELS and begin + size <= len(library):
                break
        pack = library[begin:begin + size]
        file = self.folder / "a.pack"
        file.write_bytes(pack)
        self.assertIn(KERNEL, self.succeeds("inspect", file))
        for place in (0, 9, 40, 60, size // 2, size - 1):
            file.write_bytes(pack[:place] + bytes([pack[place] ^ 1]) + pack[place + 1:])
            self.refuses("a.pack: ", "inspect", file)
        for length in (0, 7, 47, 48, size // 2, size - 1):
            file.write_bytes(pack[:length])
            self.refuses("a.pack: ", "inspect", file)
        damaged = self.folder / "lib.so"
        damaged.write_bytes(library[:begin + size // 2] + bytes([library[begin + size // 2] ^ 1]) +
                            library[begin + size // 2 + 1:])
        self.refuses("lib.so: ", "inspect", damaged)

    def test_inspect_refuses_what_is_no_file_or_too_large(self):
        self.refuses(f"{self.folder}: cannot be read: Is a directory", "inspect", self.folder)
        self.refuses("/dev/zero: is a device", "inspect", "/dev/zero")
        large = self.folder / "large.pack"
        with open(large, "wb") as file:
            file.truncate((1 << 30) + 1)
        self.refuses("large.pack: is larger than 1073741824 bytes", "inspect", large)

    def test_inspect_writes_all_or_nothing(self):
        elf, bundle = self.folder / "a.co", self.folder / "a.hipfb"
        extract = ["inspect", "--extract", KERNEL]
        self.refuses("are the same file; each needs its own", *extract, "--elf", elf, "--bundle", elf)
        self.refuses("has no code for 'gfx90a'", *extract, "--chip", "gfx90a", "--elf", elf, "--bundle", bundle)
        self.refuses("--elf: /dev/full cannot be written: No space left", *extract, "--elf", "/dev/full", "--bundle",
                     bundle)
        self.assertEqual(list(self.folder.iterdir()), [])
        # A quota that the file exceeds: the former contents stay.
        elf.write_text("before")
        result = subprocess.run([SLUICE, *extract, "--elf", elf], capture_output=True, text=True,
                                preexec_fn=lambda: limit_file_size(4096))
        self.assertEqual(result.returncode, 2)
        self.assertIn("cannot be written: File too large", result.stderr)
        self.assertEqual((elf.read_text(), list(self.folder.iterdir())), ("before", [elf]))

    def test_verify_judges_files(self):
        results = ["--o", QKV / "o.npy", "--lse", QKV / "lse.npy"]
        text = self.succeeds("verify", *INPUTS, "--causal", *results)
        self.assertRegex(text, r"(?m)^O +131072 elements .* ok$")
        self.assertRegex(text, r"(?m)^LSE +1024 elements .* ok$")
        # The same files are wrong for another mask, another alignment of a different shape, another scale.
        self.refuses("WRONG", "verify", *INPUTS, *results, status=1)
        self.refuses("WRONG", "verify", *INPUTS, *results, "--causal", "--scale", "0.0885", status=1)
        # One element in 131072, and one NaN.
        _, data = read_npy(QKV / "o.npy")
        values = array.array("f", data)
        values[77777] += 0.05
        bad = write_npy(self.folder / "o.npy", "<f4", (1, 256, 4, 128), values.tobytes())
        self.refuses("WRONG: 1 beyond tolerance", "verify", *INPUTS, "--causal", "--o", bad, status=1)
        values[77777] = float("nan")
        bad = write_npy(self.folder / "o.npy", "<f4", (1, 256, 4, 128), values.tobytes())
        self.refuses("WRONG: 1 beyond tolerance", "verify", *INPUTS, "--causal", "--o", bad, status=1)
        # Against given files instead of the reference.
        self.refuses("WRONG", "verify", *INPUTS, "--causal", *results, "--expect-o", bad, status=1)
        self.succeeds("verify", *INPUTS, "--causal", *results, "--expect-o", QKV / "o.npy", "--expect-lse",
                      QKV / "lse.npy")

    def test_verify_is_not_fooled_by_infinities_or_scales(self):
        _, data = read_npy(QKV / "v.npy")
        values = array.array("H", data)
        values[-1] = 0x7c00  # the last key, which only the last row sees
        call = [*INPUTS[:4], "--causal", "--v",
                write_npy(self.folder / "v.npy", "<f2", (1, 256, 2, 128), values.tobytes())]
        self.refuses("WRONG", "verify", *call, "--o", QKV / "q.npy", status=1)
        _, data = read_npy(QKV / "o.npy")
        good = array.array("f", data)
        for head in (2, 3):
            good[(255 * 4 + head) * 128 + 127] = float("nan")
        text = self.succeeds("verify", *call, "--o",
                             write_npy(self.folder / "o.npy", "<f4", (1, 256, 4, 128), good.tobytes()))
        self.assertIn(" 2 elements not checked", text)
        # One row earlier, the infinity cannot be the reason.
        good[(254 * 4 + 2) * 128 + 127] = float("nan")
        bad = write_npy(self.folder / "o.npy", "<f4", (1, 256, 4, 128), good.tobytes())
        self.refuses("WRONG: 1 beyond tolerance", "verify", *call, "--o", bad, status=1)
        zero = write_npy(self.folder / "zero.npy", "<f4", (1, 256, 4, 128), bytes(4 * 131072))
        self.refuses("the bound does not check them", "verify", *INPUTS, "--scale", "30000", "--o", zero, status=1)

    @unittest.skipUnless(HAS_EMULATOR, "the emulator is not built")
    def test_verify_accepts_rows_that_are_nan(self):
        _, data = read_npy(QKV / "q.npy")
        values = array.array("H", data)
        values[5 * 512] = 0x7e00  # row 5 of head 0
        q = write_npy(self.folder / "q.npy", "<f2", (1, 256, 4, 128), values.tobytes())
        text = self.succeeds("verify", "--q", q, *INPUTS[2:], "--causal")
        self.assertNotIn("not checked", text)

    def test_wrong_files_and_options(self):
        out = ["--out", self.folder / "o.npy"]
        q, k, v = QKV / "q.npy", QKV / "k.npy", QKV / "v.npy"
        self.refuses("none.npy: cannot be opened", "run", "--q", "none.npy", "--k", k, "--v", v, *out)
        self.refuses("--q: ", "run", "--q", QKV / "lse.npy", "--k", k, "--v", v, *out)
        self.refuses("holds f16 ('<f2'); u16 ('<u2') is needed", "run", *INPUTS, "--bf16", *out)
        self.refuses("--k has shape", "run", "--q", q, "--k",
                     write_npy(self.folder / "k.npy", "<f2", (2, 1, 2, 128), bytes(1024)), "--v", v, *out)
        self.refuses("--v has shape [1, 256, 4, 128]; [1, 256, 2, 128] is needed", "run", "--q", q, "--k", k, "--v", q,
                     *out)
        self.refuses("its length is 0", "run", "--q", write_npy(self.folder / "q.npy", "<f2", (1, 0, 4, 128), b""),
                     "--k", k, "--v", v, *out)
        truncated = self.folder / "t.npy"
        truncated.write_bytes(q.read_bytes()[:-1])
        self.refuses("is truncated", "run", "--q", truncated, "--k", k, "--v", v, *out)
        self.refuses("--alignment is 'sideways'", "run", *INPUTS, "--causal", "--alignment", "sideways", *out)
        self.refuses("it needs --causal", "run", *INPUTS, "--alignment", "top-left", *out)
        self.refuses("--device is 'gpu'", "run", *INPUTS, "--device", "gpu", *out)
        self.refuses("is a target without a device", "run", *INPUTS, "--device", "gfx942:304", *out)
        self.refuses("--lse is given without --o", "verify", *INPUTS, "--lse", QKV / "lse.npy")
        for scale in ("1e39", "-1e39", "1e-60", "1e999", "1e-999"):
            self.refuses(f"--scale is {scale}; it does not fit a float", "run", *INPUTS, "--scale", scale, *out)
        for scale in ("abc", "1x", ""):
            self.refuses(f"--scale is '{scale}'; it must be a number", "run", *INPUTS, "--scale", scale, *out)
        for option in ("--out", "--lse"):
            self.refuses(f"{option}: is empty; it must be the name of a file", "run", *INPUTS, *out, option, "")
        self.refuses("--o: is empty", "verify", *INPUTS, "--o", "")
        self.refuses("--out: " + str(self.folder / "no/such"), "run", *INPUTS, "--out", self.folder / "no/such")
        self.refuses("are the same file; each needs its own", "run", *INPUTS, *out, "--lse", self.folder / "o.npy")
        self.assertFalse((self.folder / "o.npy").exists())

    @unittest.skipUnless(HAS_EMULATOR, "the emulator is not built")
    def test_run_writes_all_or_nothing(self):
        small = write_npy(self.folder / "s.npy", "<f2", (1, 3, 2, 64), bytes(768))
        call = ["run", "--q", small, "--k", small, "--v", small]
        self.refuses("--lse: /dev/full cannot be written", *call, "--out", self.folder / "o.npy", "--lse", "/dev/full")
        self.assertEqual(list(self.folder.iterdir()), [small])
        self.succeeds(*call, "--out", "/dev/null", "--lse", self.folder / "lse.npy")
        self.assertEqual(read_npy(self.folder / "lse.npy")[0]["shape"], (1, 2, 3))

    @unittest.skipUnless(HAS_EMULATOR, "the emulator is not built")
    def test_run_on_real_tensors(self):
        o, lse = self.folder / "o.npy", self.folder / "lse.npy"
        result = sluice("run", *INPUTS, "--causal", "--out", o, "--lse", lse, "--device", "emulated")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"kernel attn_fwd_f16_d128_\w+, .* [1-9]\d* waves, [1-9]\d* instructions")
        header, _ = read_npy(o)
        self.assertEqual((header["descr"], header["shape"]), ("<f2", (1, 256, 4, 128)))
        header, _ = read_npy(lse)
        self.assertEqual((header["descr"], header["shape"]), ("<f4", (1, 4, 256)))
        self.succeeds("verify", *INPUTS, "--causal", "--o", o, "--lse", lse, "--expect-o", QKV / "o.npy",
                      "--expect-lse", QKV / "lse.npy")
        # A kernel's rounding is visible: these are not the reference's own numbers.
        self.assertNotIn("max abs 0 ", self.succeeds("verify", *INPUTS, "--causal", "--o", o))

    @unittest.skipUnless(HAS_EMULATOR, "the emulator is not built")
    def test_the_library_s_refusals_come_with_their_reason(self):
        out = ["--out", self.folder / "o.npy"]
        small = write_npy(self.folder / "s.npy", "<f2", (1, 3, 2, 100), bytes(1200))
        self.refuses("SLUICE_UNSUPPORTED", "run", "--q", small, "--k", small, "--v", small, *out)
        self.assertFalse((self.folder / "o.npy").exists())

    @unittest.skipUnless(HAS_EMULATOR, "the emulator is not built")
    def test_verify_runs_bf16_with_both_alignments(self):
        files = []
        for name, length, heads in (("q", 40, 4), ("k", 70, 2), ("v", 70, 2)):
            _, data = read_npy(QKV / f"{name}.npy")
            values = struct.unpack(f"<{length * heads * 128}e", data[:length * heads * 256])
            words = [struct.unpack("<I", struct.pack("<f", x))[0] >> 16 for x in values]
            files += [f"--{name}", write_npy(self.folder / f"{name}.npy", "<u2", (1, length, heads, 128),
                                             struct.pack(f"<{len(words)}H", *words))]
        for options in ([], ["--causal"], ["--causal", "--alignment", "top-left", "--scale", "0.2"]):
            result = sluice("verify", *files, "--bf16", *options)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertIn("attn_fwd_bf16_d128_", result.stdout)

    @unittest.skipUnless(HAS_EMULATOR, "the emulator is not built")
    def test_a_long_run_shows_progress(self):
        q = write_npy(self.folder / "q.npy", "<f2", (1, 2048, 8, 128), bytes(2048 * 8 * 256))
        kv = write_npy(self.folder / "kv.npy", "<f2", (1, 1536, 1, 128), bytes(1536 * 256))
        call = "run", "--q", q, "--k", kv, "--v", kv, "--out", self.folder / "o.npy"
        self.succeeds(*call)  # and writes nothing to anything but a terminal
        text, progress = run_on_a_terminal(SLUICE, *call)
        seconds = float(re.search(r", ([0-9.]+) s, ", text).group(1))
        if seconds < 2:
            self.skipTest(f"this machine needs only {seconds} s")
        self.assertRegex(progress, r"^(\r\x1b\[Kattn_fwd_f16_d128_\w+ \[=*>? *\] +\d+% \d+ s)+\r\x1b\[K$")

    @unittest.skipUnless(HAS_EMULATOR, "the emulator is not built")
    def test_kernel_statistics(self):
        text = self.succeeds("kernels", "--stats", "--kernel", "*_f16_d128_q256_*")
        self.assertIn(KERNEL, text)
        kernels = len(self.succeeds("kernels", "--kernel", "*_f16_d128_q256_*").splitlines()) - 1
        self.assertGreater(kernels, 1)
        self.assertEqual(text.count("spills: 0 VGPR, "), kernels)
        self.assertGreaterEqual(len(re.findall(r"(?m)^  loop 0x[0-9a-f]+-0x[0-9a-f]+ +\d+", text)), kernels)
        self.refuses("--kernel is 'none'; no kernel has such a name", "kernels", "--kernel", "none")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + [a for a in sys.argv[5:] if a != "--emulator"])
