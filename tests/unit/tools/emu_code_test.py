#!/usr/bin/python3
"""Tests code objects in `sluice-emu`: which it accepts, and the output of list, disasm and check. See
emu_fixture.py."""
import json
import pathlib
import re
import struct
import subprocess

from emu_fixture import EMU, KERNELS, LLVM_BIN, REGISTERS, EmuTest, emu, main

EF_MACH, EF_XNACK = 0xff, 0x300


class GeneralTest(EmuTest):
    def test_help(self):
        self.assertRegex(self.succeeds("--help"), r"(?s)run .*disasm .*check .*list ")
        text = self.succeeds("run", "--help")
        for words in ("--kernarg-file", "--trace[=FILE]", "ptr:I[+OFFSET]", "fill=F", "Exit status: 0"):
            self.assertIn(words, text)
        self.assertIn("--kernel", self.succeeds("disasm", "--help"))
        self.assertIn("--json", self.succeeds("list", "--help"))

    def test_wrong_commands(self):
        self.refuses("A subcommand is required")
        self.refuses("A subcommand is required", "walk")
        self.refuses("code is required", "list")
        self.refuses("code: is empty; it must be the name of a file", "list", "")
        self.refuses("--kernel is required", "run", KERNELS)
        self.refuses("--loud", "list", KERNELS, "--loud")

    def test_needs_no_gpu_library_of_ours_or_others(self):
        libraries = subprocess.run(["ldd", EMU], check=True, capture_output=True, text=True).stdout
        self.assertNotIn("hip", libraries)
        self.assertNotIn("libsluice", libraries)


class CodeFileTest(EmuTest):
    def patched_flags(self, mask, value):
        data = bytearray(pathlib.Path(KERNELS).read_bytes())
        flags, = struct.unpack_from("<I", data, 48)
        struct.pack_into("<I", data, 48, flags & ~mask | value)
        (self.folder / "patched.co").write_bytes(data)
        return self.folder / "patched.co"

    def bundle(self, name, target):
        code = pathlib.Path(KERNELS).read_bytes()
        entries = [(b"host-x86_64-unknown-linux-gnu", 0, 0), (target.encode(), 4096, len(code))]
        head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries))
        for entry, offset, size in entries:
            head += struct.pack("<QQQ", offset, size, len(entry)) + entry
        (self.folder / name).write_bytes(head.ljust(4096, b"\0") + code)
        return self.folder / name

    def test_wrong_files(self):
        self.refuses("none.co: cannot be opened: No such file", "list", self.folder / "none.co")
        self.refuses(f"{self.folder}: cannot be read: Is a directory", "list", self.folder)
        self.refuses("/dev/zero: is a device; a code object is needed", "list", "/dev/zero")
        text = self.folder / "text.co"
        text.write_text("no ELF")
        self.refuses("text.co: ", "list", text)
        code = pathlib.Path(KERNELS).read_bytes()
        for length in (0, 3, 63, 64, len(code) // 2):
            (self.folder / "cut.co").write_bytes(code[:length])
            for command in (["list"], ["disasm"], ["run", "--kernel", "spin"]):
                self.refuses("cut.co: ", command[0], self.folder / "cut.co", *command[1:])
        self.refuses("gfx942", "list", self.patched_flags(EF_MACH, 0x3f))
        self.refuses("is compiled for gfx942:xnack+; the machine is gfx942:sramecc+:xnack-", "list",
                     self.patched_flags(EF_XNACK, 0x300))
        self.succeeds("list", self.patched_flags(EF_XNACK, 0x200))

    def test_bundles(self):
        for target in ("hipv4-amdgcn-amd-amdhsa--gfx942", "hip-amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-",
                       "hipv4-amdgcn-amd-amdhsa--gfx9-4-generic"):
            self.assertIn("6 kernels", self.succeeds("list", self.bundle("a.hipfb", target)))
        for chip in ("gfx90a", "gfx9420"):
            self.refuses(f"has no entry for gfx942; it has host-x86_64-unknown-linux-gnu, hipv4-amdgcn-amd-amdhsa--{chip}",
                         "list", self.bundle("a.hipfb", f"hipv4-amdgcn-amd-amdhsa--{chip}"))

    def test_unknown_kernels(self):
        message = "--kernel is 'scale'; the code object has "
        self.refuses(message, "run", KERNELS, "--kernel", "scale")
        self.refuses(message, "disasm", KERNELS, "--kernel", "scale")
        result = emu("run", KERNELS, "--kernel", "scale")
        self.assertEqual(set(re.findall(r"\b(invert|places|reverse|spin)\b", result.stderr)),
                         {"invert", "places", "reverse", "spin"})

    def test_names_of_cplusplus(self):
        # Symbols are replaced by others of the same length.
        symbols = {b"invert": b"_Z2fov", b"places": b"_Z2fof", b"reverse": b"_Z3barj"}
        data = pathlib.Path(KERNELS).read_bytes()
        for old, new in symbols.items():
            data = data.replace(old, new)
        code = self.folder / "mangled.co"
        code.write_bytes(data)
        data = pathlib.Path(REGISTERS).read_bytes().replace(b"preloaded", b"_Z1fIiEvv")
        template = self.folder / "template.co"
        template.write_bytes(data)
        listing = self.succeeds("disasm", code, "--kernel", "_Z3barj")
        for name in ("bar", "bar(unsigned int)"):
            self.assertEqual(self.succeeds("disasm", code, "--kernel", name), listing)
        listing = self.succeeds("disasm", code, "--kernel", "_Z2fof")
        self.assertEqual(self.succeeds("disasm", code, "--kernel", "fo(float)"), listing)
        self.refuses(("--kernel is 'fo', which could be ", "fo()", "fo(float)"), "disasm", code, "--kernel", "fo")
        self.refuses("--kernel is 'ba'; the code object has", "disasm", code, "--kernel", "ba")
        self.refuses("--kernel is ''; the code object has", "run", code, "--kernel", "")
        listing = self.succeeds("disasm", template, "--kernel", "_Z1fIiEvv")
        for name in ("f<int>", "void f<int>()"):
            self.assertEqual(self.succeeds("disasm", template, "--kernel", name), listing)
        self.assertIn("_Z3barj: 1 workgroup", self.succeeds(
            "run", code, "--kernel", "bar", "--block", "64", "--arg", "size:256:fill=0", "--arg", "u32:0",
            "--lds-bytes", "256"))


class ListTest(EmuTest):
    def test_json(self):
        listing = json.loads(self.succeeds("list", REGISTERS, "--json"))
        self.assertEqual((listing["target"], listing["code_object_version"]), ("gfx942", 5))
        kernels = {kernel["name"]: kernel for kernel in listing["kernels"]}
        self.assertEqual(set(kernels), {"echo", "bare", "steps", "careless", "hasty", "numbers", "preloaded"})
        # Granules: 8 vector registers, 16 scalar ones.
        careless = kernels["careless"]
        self.assertEqual({key: careless[key] for key in ("vgprs", "accum_offset", "sgprs", "lds_bytes", "scratch_bytes",
                                                         "kernarg_bytes", "max_workgroup_threads", "code_bytes")},
                         {"vgprs": 16, "accum_offset": 8, "sgprs": 32, "lds_bytes": 64, "scratch_bytes": 0,
                          "kernarg_bytes": 8, "max_workgroup_threads": 1024, "code_bytes": 56})
        self.assertEqual(careless["arguments"],
                         [{"name": "out", "kind": "global_buffer", "offset": 0, "size": 8, "hidden": False}])
        echo = kernels["echo"]["arguments"]
        self.assertEqual([a["offset"] for a in echo], [0, 8, 9, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 72, 80,
                                                       84, 88, 92, 94])
        self.assertEqual([a["name"] for a in echo if a["hidden"]], [""] * 5)
        self.assertEqual((kernels["bare"]["has_metadata"], kernels["bare"]["arguments"]), (False, []))

    def test_text(self):
        text = self.succeeds("list", REGISTERS)
        self.assertIn("gfx942, code object version 5, 7 kernels", text)
        self.assertRegex(text, r"(?m)^ +64  bytes of LDS")
        self.assertRegex(text, r"(?m)^  argument  7  offset  20   4 bytes  by_value  g$")
        self.assertRegex(text, r"(?m)^  argument  -  offset  92   2 bytes  hidden_group_size_x$")
        self.assertIn("no metadata", text)
        entry = json.loads(self.succeeds("list", REGISTERS, "--json"))["kernels"][0]["entry"]
        self.assertIn(f"  {entry:#x}  entry address", text)


class DisasmTest(EmuTest):
    LINE = re.compile(r"^\t(.*?) +// ([0-9A-F]{12}):((?: [0-9A-F]{8})+)$", re.MULTILINE)

    def lines(self, text):
        return [(re.sub(r"\s+", " ", line[0].strip()), *line[1:]) for line in self.LINE.findall(text)]

    def test_is_what_objdump_says(self):
        for code in (KERNELS, REGISTERS):
            listing = subprocess.run([f"{LLVM_BIN}/llvm-objdump", "-d", code], check=True, capture_output=True, text=True)
            for kernel in ("invert", "places", "spin") if code == KERNELS else ("echo", "bare", "steps", "careless"):
                body = re.search(rf"<{kernel}>:\n(.*?)(?:\n\n|\Z)", listing.stdout, re.DOTALL).group(1)
                body = re.sub(r" +<[^>]*>$", "", body, flags=re.MULTILINE)
                theirs = self.lines(body)
                ours = self.lines(self.succeeds("disasm", code, "--kernel", kernel))
                theirs = theirs[:len(ours)]  # objdump continues with the padding before the next kernel
                self.assertEqual([line[1:] for line in ours], [line[1:] for line in theirs])
                self.assertTrue(ours[-1][0], "s_endpgm")
                for mine, other in zip(ours, theirs):
                    if not mine[0].startswith("s_cbranch"):
                        self.assertEqual(mine[0], other[0])

    def test_names_and_labels(self):
        text = self.succeeds("disasm", KERNELS, "--kernel", "spin")
        self.assertRegex(text, r"\n[0-9a-f]{16} <spin>:\n")
        # A loop: the branch back names the label of its first instruction, the one around it the end.
        back = re.search(r"\n(L\d+):\n\ts_add.*?s_cbranch_scc1 (L\d+) .*?\n(L\d+):\n\ts_endpgm", text, re.DOTALL)
        self.assertEqual(back.group(1), back.group(2))
        self.assertNotEqual(back.group(1), back.group(3))
        self.assertIn(f"s_cbranch_scc1 {back.group(3)} ", text)
        # All of it: every kernel once, and the padding between them summed up.
        text = self.succeeds("disasm", KERNELS)
        for kernel in ("invert", "places", "reverse", "spin"):
            self.assertEqual(text.count(f" <{kernel}>:\n"), 1)
        self.assertLess(len(re.findall(r"\ts_nop 0 .*\n\ts_nop 0 .*\n", text)), 8)
        self.assertRegex(text, r"\n\t\.\.\. \d+ more of these\n")

    def test_says_what_cannot_run(self):
        code = bytearray(pathlib.Path(REGISTERS).read_bytes())
        at = code.index(struct.pack("<II", 0xc0020140, 0))  # s_load_dword s5, s[0:1], 0x0
        struct.pack_into("<II", code, at, 0xd9350000, 0)  # a semaphore of global wave sync
        (self.folder / "a.co").write_bytes(code)
        text = self.succeeds("disasm", self.folder / "a.co", "--kernel", "steps")
        self.assertRegex(text, r"\tds_gws_sema_v gds .*// \w+: D9350000 00000000 \(not executed: .+\)\n")
        struct.pack_into("<I", code, at, 0xffffffff)
        (self.folder / "a.co").write_bytes(code)
        self.assertRegex(self.succeeds("disasm", self.folder / "a.co", "--kernel", "steps"),
                         r"\t\.long 0xFFFFFFFF .*\(not executed: the bytes are not an instruction of gfx942\)\n")


class CheckTest(EmuTest):
    def test_finds_what_no_wave_meets(self):
        self.assertEqual(self.succeeds("check", KERNELS), "nothing to report\n")
        self.assertEqual(json.loads(self.succeeds("check", KERNELS, "--json")), [])
        text = self.succeeds("check", REGISTERS, status=1)
        self.assertRegex(text, r"\Ahasty at 0x\w+: hazard \(required\): s4: .*\n  instruction  v_readlane_b32 s5, v0, s4\n"
                               r" {15}\S*emu_registers.s:\d+\n  other        0x\w+: v_readfirstlane_b32 s4, v0\n"
                               r" {15}\S*emu_registers.s:\d+\n\n1 report: 1 required, 0 compiler, 0 by_count\n\Z")
        report, = json.loads(self.succeeds("check", REGISTERS, "--json", status=1))
        self.assertEqual((report["kernel"], report["kind"], report["level"], report["pc"] - report["other"]["pc"]),
                         ("hasty", "hazard", "required", 4))
        self.succeeds("run", REGISTERS, "--kernel", "hasty")


if __name__ == "__main__":
    main()
