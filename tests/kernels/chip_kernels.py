#!/usr/bin/python3
"""The machine code of a kernel pack for several chips, read by LLVM's tools and not by ours.

usage: chip_kernels.py SLUICE LLVM_BIN PACK

For every kernel: its fat binary has one entry per chip that has its types, each an ELF file of the right machine; no
chip uses scratch, spills more than that kind of kernel may, or needs more LDS than it has; and copies are as wide as
the chip allows.
"""
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

SLUICE, LLVM_BIN, PACK = sys.argv[1:4]

# ELF machine (llvm/BinaryFormat/ELF.h), LDS of a workgroup, and the dwords of a lane's widest load into LDS.
CHIPS = {
    "gfx90a": (0x3f, 65536, 1),
    "gfx942": (0x4c, 65536, 1),
    "gfx950": (0x4f, 163840, 4),
}
# The chips with a flavour of FP8: elsewhere its bytes are other numbers. The words of a kernel's name, and the largest
# numbers, to which results are limited, as the bits of F32.
FLAVOURS = {"e4m3fnuz": (("gfx942",), 240), "e5m2fnuz": (("gfx942",), 57344),
            "e4m3fn": (("gfx950",), 448), "e5m2": (("gfx950",), 57344)}
# The memory that the register allocator sets aside once it has spilled to lanes, and never touches: one dword, aligned.
UNUSED_SLOT_BYTES = 20
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


def check_spills(kernel, chip, figures):
    vgprs, sgprs, private = (figures[name] for name in ("vgpr_spill_count", "sgpr_spill_count",
                                                        "private_segment_fixed_size"))
    few, unlimited = 8, None
    if re.search(r"_w8$", kernel):
        limits = 0, 0, 0
    elif re.search(r"_w4$", kernel):
        # They also read masks and biases again, on their detour for V that is not finite: registers that this path
        # needs in addition are in scratch, outside the common path.
        limits = few, few, 4 * few
    elif chip != "gfx942" and kernel.endswith("_q128_kv16_w4_mla"):
        # Two blocks of rows take all registers of gfx942, for whose instructions their shape is chosen.
        limits = few, unlimited, 4 * few + UNUSED_SLOT_BYTES
    else:
        # They look up pages or gather rows: scalar registers are spilled to lanes of vector registers.
        limits = 0, unlimited, UNUSED_SLOT_BYTES
    for what, seen, limit in zip(("VGPR spills", "SGPR spills", "bytes of scratch"), (vgprs, sgprs, private), limits):
        require(limit is unlimited or seen <= limit, kernel, chip, f"{seen} {what}, more than {limit}")
    return limits


def way_of_keys(kernel):
    """How K and V reach the products: with copies into LDS, through registers into LDS, or in registers."""
    head_dim = int(re.search(r"_d(\d+)", kernel)[1])
    if re.search(r"_q16_kv\d+_w4_decode$", kernel):
        return "in registers"
    if flavour_of(kernel) and "_to_" not in kernel:
        return "through registers"  # which convert them
    # Four waves of 32 rows each, whose rows of O leave enough registers for that.
    is_prefill = re.search(r"_q128_kv\d+_w4(?:_paged)?$", kernel)
    widest = 192 if "_e4m3fnuz_to_" in kernel else 256
    return "through registers" if is_prefill and head_dim <= widest else "copied"


def check_copies(kernel, chip, code):
    """Returns how many copies there are of each width."""
    widest = CHIPS[chip][2]
    into_lds = r"^\s+(?:(?:buffer|global)_load_dword(?=.* lds\b)|global_load_lds_dword)(?:x(\d))?\b"
    copies = [int(dwords or 1) for dwords in re.findall(into_lds, code, re.M)]
    way = way_of_keys(kernel)
    if way != "copied":
        writes = len(re.findall(r"^\s+ds_write", code, re.M))
        require(not copies, kernel, chip, f"{len(copies)} copies, and K and V come {way}")
        require(writes or way == "in registers", kernel, chip, "nothing is written to LDS")
        return f"K and V {way}"
    width, waves = (int(re.search(pattern, kernel)[1]) for pattern in (r"_d(\d+)", r"_w(\d)"))
    rows = int(re.search(r"_kv(\d+)", kernel)[1])
    # All lanes copy alike: the rest of a tile after their widest copies, they copy in narrower ones.
    tile_bytes, lanes_bytes = rows * width * (1 if "_e4m3fnuz_to_" in kernel else 2), waves * 64 * 4 * widest
    wide, narrow = widest in copies, any(dwords < widest for dwords in copies)
    require(wide == (tile_bytes >= lanes_bytes) and (not narrow or tile_bytes % lanes_bytes != 0), kernel, chip,
            f"copies of {sorted(set(copies))} dwords, {widest} would go")
    return ", ".join(f"{copies.count(dwords)} copies of {dwords} dwords" for dwords in sorted(set(copies)))


def check_code(kernel, chip, file):
    machine, lds, _ = CHIPS[chip]
    elf = file.read_bytes()
    require(elf[:4] == b"\x7fELF" and struct.unpack_from("<H", elf, 18)[0] == 224, kernel, chip, "no AMDGPU ELF")
    flags, = struct.unpack_from("<I", elf, 48)
    require(flags & 0xff == machine, kernel, chip, f"its ELF flags are {flags:#x}, the machine should be {machine:#x}")
    notes = output(f"{LLVM_BIN}/llvm-readelf", "--notes", file)
    figures = {name: int(value) for name, value in re.findall(r"\.(\w+): +(\d+)", notes)}
    limits = check_spills(kernel, chip, figures)
    require(figures["group_segment_fixed_size"] <= lds, kernel, chip,
            f"LDS is {figures['group_segment_fixed_size']} of {lds}")
    code = output(f"{LLVM_BIN}/llvm-objdump", "-d", file)
    require(f"<{kernel}>:" in code, kernel, chip, "its symbol is missing")
    check_conversions(kernel, chip, code)
    if not kernel.startswith("attn_"):
        return f"{figures['vgpr_count']} VGPR"
    if limits[0] == 0:
        require(not re.search(r"^\s+scratch_|^\s+buffer_(load|store).* off, s\[0:3\]", code, re.M), kernel, chip,
                "it goes through scratch")
    return f"{figures['vgpr_count']} VGPR, {figures['group_segment_fixed_size']} bytes LDS, " \
           f"{check_copies(kernel, chip, code)}"


def flavour_of(kernel):
    return next((word for word in kernel.split("_") if word in FLAVOURS), None)


def check_conversions(kernel, chip, code):
    """FP8 in memory is converted by the chip, and what is stored is limited to the largest number of the flavour."""
    word = flavour_of(kernel)
    if word is None or "_to_" in kernel or kernel.endswith(f"_{word}_{word}"):
        return
    short = "fp8" if word.startswith("e4m3") else "bf8"
    stores = kernel.startswith(("append_step_", "kv_append_", "kv_copy_f16_", "kv_copy_bf16_"))
    wanted = f"v_cvt_pk_{short}_f32" if stores else f"v_cvt_pk_f32_{short}"
    require(wanted in code, kernel, chip, f"no {wanted}")
    bits, = struct.unpack("<I", struct.pack("<f", FLAVOURS[word][1]))
    require(not stores or f"{bits:#x}" in code, kernel, chip, f"no number is limited to {FLAVOURS[word][1]}")


kernels = re.findall(r"^((?:attn|append|kv)_\w+)", output(SLUICE, "inspect", PACK), re.M)
assert kernels, "no kernels in the pack"
with tempfile.TemporaryDirectory() as folder:
    bundle, elf = pathlib.Path(folder) / "bundle", pathlib.Path(folder) / "elf"
    for kernel in kernels:
        output(SLUICE, "inspect", PACK, "--extract", kernel, "--bundle", str(bundle))
        entries = bundle_entries(bundle.read_bytes())
        host, *chips = entries
        word = flavour_of(kernel)
        wanted = FLAVOURS[word][0] if word else tuple(CHIPS)
        require(entries[host] == b"" and chips == [f"hipv4-amdgcn-amd-amdhsa--{chip}" for chip in wanted], kernel,
                "every chip", f"the bundle has {list(entries)}")
        for chip in wanted:
            elf.write_bytes(entries.get(f"hipv4-amdgcn-amd-amdhsa--{chip}", b""))
            if elf.stat().st_size:
                print(f"{kernel:<34} {chip}: {check_code(kernel, chip, elf)}")
for problem in problems:
    print("FAILED", problem)
print(f"{len(kernels)} kernels for {len(CHIPS)} chips, {len(problems)} problems")
sys.exit(bool(problems))
