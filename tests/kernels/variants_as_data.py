#!/usr/bin/python3
"""A row of the variant table is all that a kernel needs, and a changed row makes one kernel again.

usage: variants_as_data.py BIN TABLE KERNEL_PACK_CMAKE PACK
BIN holds sluice-kernelgen, sluice and sluice-conformance; PACK is the pack of TABLE for gfx942.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

BIN, TABLE, KERNEL_PACK, PACK = (pathlib.Path(path).resolve() for path in sys.argv[1:5])
NEW_ROW, NEW_KERNEL = "SLUICE_ATTENTION_FORWARD(f16, 64, 64, 2)", "attn_fwd_f16_d64_q64_kv64_w2"


def run(*command, status=0):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert result.returncode == status, f"{command}: {result.returncode}\n{result.stdout}{result.stderr}"
    return result.stdout + result.stderr


def kernelgen(*arguments, **keywords):
    return run(BIN / "sluice-kernelgen", *arguments, **keywords)


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class NewRow(InFolder):
    def test_everything_follows(self):
        table = self.folder / "table.inc"
        table.write_text(TABLE.read_text() + "\n" + NEW_ROW + "\n")
        before = kernelgen("--list", "--table", TABLE).split()
        self.assertNotIn(NEW_KERNEL, before)
        self.assertEqual(kernelgen("--list", "--table", table).split(), before + [NEW_KERNEL])
        part, extended = self.folder / "part.pack", self.folder / "extended.pack"
        kernelgen("--row", "f16,64,64,2", "--pack", part)
        kernelgen("--merge", "--pack", extended, PACK, part)
        listed = re.findall(r"(?m)^(?:attn|kv|merge)_\w+", run(BIN / "sluice", "inspect", extended))
        self.assertEqual(sorted(listed), sorted(before + [NEW_KERNEL]))
        # Dispatch chooses it where it is the best, and the conformance suite meets it.
        ran = run(BIN / "sluice-conformance", "--device", "emulated", "--pack", extended, "--case", "f16_d64_*_q6[45]_kv6[45]_*")
        self.assertIn(f" {NEW_KERNEL} ", ran)

    def test_a_kernel_that_no_case_uses_is_noticed(self):
        ran = run(BIN / "sluice-conformance", "--device", "emulated", "--pack", PACK, "--all-kernels", "--case",
                  "f16_d64_*_q17_kv17_*", status=1)
        self.assertIn("FAIL no case used attn_fwd_bf16_", ran)

    def test_a_pack_without_the_chip_says_what_it_has(self):
        part = self.folder / "part.pack"
        kernelgen("--row", "f16,64,64,4", "--chips", "gfx90a,gfx950", "--pack", part)
        ran = run(BIN / "sluice-conformance", "--device", "emulated", "--pack", part, status=1)
        self.assertIn("SLUICE_WRONG_ARCH", ran)
        self.assertIn("the kernel pack has kernels for gfx90a,gfx950", ran)


class Rebuild(InFolder):
    """A project of its own with the build's function, two rows and two chips."""

    def setUp(self):
        super().setUp()
        self.rows = [line for line in TABLE.read_text().splitlines() if line.startswith("SLUICE_ATTENTION_FORWARD")][-2:]
        self.table, self.generator = self.folder / "table.inc", self.folder / "generator"
        self.write_table()
        self.generator.write_text(f'#!/bin/sh\nexec "{BIN}/sluice-kernelgen" "$@"\n')
        self.generator.chmod(0o755)
        (self.folder / "CMakeLists.txt").write_text(f"""
cmake_minimum_required(VERSION 3.25)
project(scratch LANGUAGES NONE)
add_executable(sluice-kernelgen IMPORTED)
set_target_properties(sluice-kernelgen PROPERTIES IMPORTED_LOCATION "{self.generator}")
include("{KERNEL_PACK}")
sluice_add_kernel_pack(pack OUTPUT ${{CMAKE_BINARY_DIR}}/all.pack TABLE "{self.table}" CHIPS gfx942 gfx950)
""")

    def write_table(self, comment="// a table"):
        self.table.write_text("\n".join([comment] + self.rows) + "\n")

    def configure(self, build):
        run("cmake", "-G", "Ninja", "-S", self.folder, "-B", self.folder / build)

    def build(self, build, jobs):
        self.configure(build)
        run("ninja", "-C", self.folder / build, f"-j{jobs}", "pack")
        return (self.folder / build / "all.pack").read_bytes()

    def would_generate(self, build):
        self.configure(build)
        planned = run("ninja", "-C", self.folder / build, "-n", "pack")
        return re.findall(r"Generating the kernel (\w+) for (\w+)", planned), "Packing" in planned

    def test_only_what_changed_is_made_again(self):
        first = self.build("a", 2)
        self.assertEqual(self.would_generate("a"), ([], False))
        self.write_table("// another comment")
        self.assertEqual(self.would_generate("a"), ([], False))
        self.rows[1] = NEW_ROW
        self.write_table()
        generated, packed = self.would_generate("a")
        self.assertEqual(sorted(generated), [("attention_forward_f16_64_64_2", chip) for chip in ("gfx942", "gfx950")])
        self.assertTrue(packed)
        self.assertNotEqual(self.build("a", 2), first)
        self.assertEqual(self.would_generate("a"), ([], False))
        # A new generator may make every kernel differently.
        later = time.time() + 5
        os.utime(self.generator, (later, later))
        self.assertEqual(len(self.would_generate("a")[0]), 4)

    def test_folders_jobs_and_order_do_not_show(self):
        one = self.build("one", 1)
        self.assertEqual(self.build("other/deeper", 3), one)
        whole = self.folder / "whole.pack"
        kernelgen("--table", self.table, "--chips", "gfx950,gfx942", "--pack", whole)
        self.assertEqual(whole.read_bytes(), one)
        self.rows.reverse()
        self.write_table()
        self.assertEqual(self.build("reversed", 2), one)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
