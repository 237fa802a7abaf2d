#!/usr/bin/python3
"""Checks that a new kernel needs only a line of the kernel table, and that a changed line rebuilds only its kernels.

usage: variants_as_data.py BIN TABLE KERNEL_PACK_CMAKE PACK
BIN holds sluice-kernelgen, sluice-kernelfigures, sluice and sluice-conformance; PACK is the pack of TABLE for gfx942.
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
NEW_KERNEL = "attn_fwd_f16_d64_q64_kv64_w2"
TWO_KERNELS = """// two kernels, which are generated in no time
merge_states
  types  f32_f32 f16_f16
"""


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
        shipped = kernelgen("--list").split()
        self.assertNotIn(NEW_KERNEL, shipped)
        part, extended = self.folder / "part.pack", self.folder / "extended.pack"
        kernelgen("--row", NEW_KERNEL, "--pack", part)
        kernelgen("--merge", "--pack", extended, PACK, part)
        other_types = {"e4m3fn", "e5m2"}  # the FP8 of gfx950
        shipped = [kernel for kernel in shipped if not other_types & set(kernel.split("_"))]
        listed = re.findall(r"(?m)^(?:attn|append|kv|merge)_\w+", run(BIN / "sluice", "inspect", extended))
        self.assertEqual(sorted(listed), sorted(shipped + [NEW_KERNEL]))
        # Dispatch chooses it where it is the best, and the conformance suite covers it.
        ran = run(BIN / "sluice-conformance", "--device", "emulated", "--pack", extended, "--case", "f16_d64_*_h1x1_q100_kv100_*")
        self.assertIn(f" {NEW_KERNEL} ", ran)

    def test_a_kernel_that_no_case_uses_is_noticed(self):
        ran = run(BIN / "sluice-conformance", "--device", "emulated", "--pack", PACK, "--all-kernels", "--case",
                  "f16_d64_*_q17_kv17_*", status=1)
        self.assertIn("FAIL no case used attn_fwd_bf16_", ran)

    def test_a_pack_without_the_chip_says_what_it_has(self):
        part = self.folder / "part.pack"
        kernelgen("--row", "attn_fwd_f16_d64_q128_kv64_w4", "--chips", "gfx90a,gfx950", "--pack", part)
        ran = run(BIN / "sluice-conformance", "--device", "emulated", "--pack", part, status=1)
        self.assertIn("SLUICE_WRONG_ARCH", ran)
        self.assertIn("the kernel pack has kernels for gfx90a,gfx950", ran)


class Table(InFolder):
    """The values that the table's only reader, a CMake function, gets from it."""

    def read(self, text, status=0):
        table, script = self.folder / "Table.inc", self.folder / "read.cmake"
        table.write_text(text)
        script.write_text(f"""
cmake_minimum_required(VERSION 3.25)
include("{KERNEL_PACK.with_name('KernelTable.cmake')}")
sluice_kernel_names(names "{table}")
foreach(name line IN ZIP_LISTS names names_LINES)
  message(NOTICE "${{name}} ${{line}}")
endforeach()
""")
        said = run("cmake", "-P", script, status=status)
        # Messages are wrapped.
        return said.split("\n") if status == 0 else " ".join(said.split()).replace("- ", "-")

    def test_the_shipped_kernels_are_the_table(self):
        names = [line.split()[0] for line in self.read(TABLE.read_text()) if line]
        self.assertEqual(names, kernelgen("--list").split())

    def test_a_block_is_a_product_and_the_table_their_union(self):
        text = """merge_states // parts; [and] O
  types f32_f16   f16_f16

attn_fwd
  tiles  q16_kv16_w1 q64_kv16_w4
  dims   d64 d192v128
  types  f16_e4m3fnuz
  forms  decode
attn_fwd
  forms contiguous paged
  types bf16
  dims  d128
  tiles q16_kv32_w4"""
        self.assertEqual(self.read(text), [
            "merge_states_f32_f16 1", "merge_states_f16_f16 1",
            "attn_fwd_f16_e4m3fnuz_d64_q16_kv16_w1_decode 4", "attn_fwd_f16_e4m3fnuz_d192v128_q16_kv16_w1_decode 4",
            "attn_fwd_f16_e4m3fnuz_d64_q64_kv16_w4_decode 4", "attn_fwd_f16_e4m3fnuz_d192v128_q64_kv16_w4_decode 4",
            "attn_fwd_bf16_d128_q16_kv32_w4 9", "attn_fwd_bf16_d128_q16_kv32_w4_paged 9", ""])
        self.assertEqual(self.read("// nothing\n"), [""])

    def test_what_is_wrong_is_said_with_its_line(self):
        block = "attn_fwd\n  forms contiguous\n  types f16\n  dims d64\n  tiles q128_kv64_w4\n"
        for text, line, message in [
                ("attn_bwd\n  types f16\n", 1, "'attn_bwd' is not an operation; the operations are: attn_fwd, kv_append, kv_copy, append_step, merge_states"),
                ("  types f16\n", 1, "'types' is not an axis of ''"),
                ("kv_append\n  dims d64\n", 2, "'dims' is not an axis of 'kv_append', which has: types"),
                ("kv_append f16_f16\n", 1, "'f16_f16' after 'kv_append'; its axes are indented lines of their own"),
                ("\nkv_append\n\nmerge_states\n  types f32_f32\n", 2, "'kv_append' has no 'types'"),
                (block.replace("  dims d64\n", ""), 1, "'attn_fwd' has no 'dims'"),
                ("kv_append\n  types\n", 2, "'types' has no values"),
                ("kv_append\n  types f16_f16\n  types bf16_bf16\n", 3, "the block at line 1 has 'types' already"),
                (block.replace("d64", "d064"), 4, "dims has 'd064', which is not of the form"),
                (block.replace("d64", "64"), 4, "dims has '64', which is not of the form"),
                (block.replace("d64", "d64 d192v"), 4, "dims has 'd192v', which is not of the form"),
                (block.replace("_kv64", ""), 5, "tiles has 'q128_w4', which is not of the form"),
                (block.replace("f16", "16"), 3, "types has '16', which is not of the form"),
                (block.replace("contiguous", "in_pages"), 2, "forms has 'in_pages', which is not of the form"),
                (block.replace("f16", "f16,bf16"), 3, "',' is not part of a word of a kernel table"),
                (block.replace("d64", "d64 d64"), 1, "'attn_fwd_f16_d64_q128_kv64_w4' is in the block at line 1 already"),
                (block + block, 6, "'attn_fwd_f16_d64_q128_kv64_w4' is in the block at line 1 already")]:
            with self.subTest(text):
                self.assertIn(f"Table.inc:{line}: {message}", self.read(text, status=1))

    def test_what_cannot_be_built_is_for_the_generator_to_say(self):
        name = self.read("attn_fwd\n  forms decode\n  types f17\n  dims d64\n  tiles q16_kv16_w1\n")[0].split()[0]
        self.assertIn("no name goes on with 'f17_", kernelgen("--row", name, "--pack", self.folder / "pack", status=1))


class Rebuild(InFolder):
    """A separate project with the build's function, two kernels and two chips."""

    def setUp(self):
        super().setUp()
        self.table, self.generator = self.folder / "table.inc", self.folder / "generator"
        self.table.write_text(TWO_KERNELS)
        self.generator.write_text(f'#!/bin/sh\nexec "{BIN}/sluice-kernelgen" "$@"\n')
        self.generator.chmod(0o755)
        (self.folder / "CMakeLists.txt").write_text(f"""
cmake_minimum_required(VERSION 3.25)
project(scratch LANGUAGES NONE)
add_executable(sluice-kernelgen IMPORTED)
set_target_properties(sluice-kernelgen PROPERTIES IMPORTED_LOCATION "{self.generator}")
add_executable(sluice-kernelfigures IMPORTED)
set_target_properties(sluice-kernelfigures PROPERTIES IMPORTED_LOCATION "{BIN}/sluice-kernelfigures")
include("{KERNEL_PACK}")
sluice_add_kernel_pack(pack OUTPUT ${{CMAKE_BINARY_DIR}}/all.pack TABLE "{self.table}" CHIPS gfx942 gfx950)
""")

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
        self.table.write_text("// another comment, which moves the lines\n\n" + TWO_KERNELS)
        self.assertEqual(self.would_generate("a"), ([], False))
        self.table.write_text(TWO_KERNELS.replace("f32_f32", "bf16_bf16"))
        generated, packed = self.would_generate("a")
        self.assertEqual(sorted(generated), [("merge_states_bf16_bf16", chip) for chip in ("gfx942", "gfx950")])
        self.assertTrue(packed)
        self.assertNotEqual(self.build("a", 2), first)
        self.assertEqual(self.would_generate("a"), ([], False))
        # A new generator may generate every kernel differently.
        later = time.time() + 5
        os.utime(self.generator, (later, later))
        self.assertEqual(len(self.would_generate("a")[0]), 4)

    def test_folders_jobs_and_order_do_not_show(self):
        one = self.build("one", 1)
        self.assertEqual(self.build("other/deeper", 3), one)
        generated, whole, names = (self.folder / name for name in ("generated.pack", "whole.pack", "names.txt"))
        names.write_text("merge_states_f32_f32\nmerge_states_f16_f16\n")
        kernelgen("--names", names, "--chips", "gfx950,gfx942", "--pack", generated)
        run(BIN / "sluice-kernelfigures", generated, whole)
        self.assertEqual(whole.read_bytes(), one)
        self.table.write_text(TWO_KERNELS.replace("f32_f32 f16_f16", "f16_f16 f32_f32"))
        self.assertEqual(self.build("reversed", 2), one)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
