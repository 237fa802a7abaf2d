#!/usr/bin/python3
"""The machine code of a kernel pack for several chips, read by LLVM's tools and not by ours.

usage: chip_kernels.py SLUICE LLVM_BIN PACK

For every kernel: its fat binary has one entry per chip, each an ELF file of the right machine; no chip needs scratch,
spills or more LDS than it has; and copies are as wide as the chip allows.
"""
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

SLUICE, LLVM_BIN, PACK = sys.argv[1:4]

# ELF machine (llvm/BinaryFormat/ELF.h), LDS of a workgroup, and the direct-to-LDS load that a kernel should use.
CHIPS = {
    "gfx90a": (0x3f, 65536, "buffer_load_dword"),
    "gfx942": (0x4c, 65536, "buffer_load_dword"),
    "gfx950": (0x4f, 163840, "buffer_load_dwordx4"),
}
problems = []


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def require(held, kernel, chip, what):
    if not held:
        problems.append(f"{kernel} on {chip}: {what}")


def bundle_entries(data):
    assert data[:24] == b"__CLANG_OFFLOAD_BUNDLE__"
    entries, at = {}, 32
    for _ in range(struct.unpack_from("<Q", data, 24)[0]):
        offset, size, length = struct.unpack_from("<QQQ", data, at)
        entries[data[at + 24:at + 24 + length].decode()] = data[offset:offset + size]
        at += 24 + length
    return entries


def check_code(kernel, chip, file):
    machine, lds, copy = CHIPS[chip]
    elf = file.read_bytes()
    require(elf[:4] == b"\x7fELF" and struct.unpack_from("<H", elf, 18)[0] == 224, kernel, chip, "no AMDGPU ELF")
    flags, = struct.unpack_from("<I", elf, 48)
    require(flags & 0xff == machine, kernel, chip, f"its ELF flags are {flags:#x}, the machine should be {machine:#x}")
    notes = output(f"{LLVM_BIN}/llvm-readelf", "--notes", file)
    figures = {name: int(value) for name, value in re.findall(r"\.(\w+): +(\d+)", notes)}
    # Those of four waves read masks and biases as well, on their detour for V that is not finite once more: what that
    # takes too much lies in scratch, beside the usual way.
    few = 8 if kernel.endswith("_w4") else 0
    for name in ("vgpr_spill_count", "sgpr_spill_count"):
        require(figures[name] <= few, kernel, chip, f"{name} is {figures[name]}, more than {few}")
    require(figures["private_segment_fixed_size"] <= 4 * few, kernel, chip,
            f"private_segment_fixed_size is {figures['private_segment_fixed_size']}")
    require(figures["group_segment_fixed_size"] <= lds, kernel, chip,
            f"LDS is {figures['group_segment_fixed_size']} of {lds}")
    code = output(f"{LLVM_BIN}/llvm-objdump", "-d", file)
    require(f"<{kernel}>:" in code, kernel, chip, "its symbol is missing")
    copies = set(re.findall(r"^\s+(\w+)[^/]* lds\b", code, re.M))
    require(copies == {copy}, kernel, chip, f"copies with {sorted(copies)} instead of {copy}")
    return f"{figures['vgpr_count']} VGPR, {figures['group_segment_fixed_size']} bytes LDS, " \
           f"{len(re.findall(r' lds ', code))} {copy} ... lds"


kernels = re.findall(r"^(attn_\w+)", output(SLUICE, "inspect", PACK), re.M)
assert kernels, "no kernels in the pack"
with tempfile.TemporaryDirectory() as folder:
    bundle, elf = pathlib.Path(folder) / "bundle", pathlib.Path(folder) / "elf"
    for kernel in kernels:
        output(SLUICE, "inspect", PACK, "--extract", kernel, "--bundle", str(bundle))
        entries = bundle_entries(bundle.read_bytes())
        host, *chips = entries
        require(entries[host] == b"" and chips == [f"hipv4-amdgcn-amd-amdhsa--{chip}" for chip in CHIPS], kernel,
                "every chip", f"the bundle has {list(entries)}")
        for chip in CHIPS:
            elf.write_bytes(entries.get(f"hipv4-amdgcn-amd-amdhsa--{chip}", b""))
            if elf.stat().st_size:
                print(f"{kernel:<34} {chip}: {check_code(kernel, chip, elf)}")
for problem in problems:
    print("FAILED", problem)
print(f"{len(kernels)} kernels for {len(CHIPS)} chips, {len(problems)} problems")
sys.exit(bool(problems))
