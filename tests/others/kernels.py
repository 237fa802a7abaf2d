"""Compiles attention kernels with Triton and IREE for gfx942, on a machine without one."""

import dataclasses
import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys

CHIP = "gfx942"
HEAD_DIM = 128


@dataclasses.dataclass
class Kernel:
    """A kernel of a code object, and how it is launched."""
    code: pathlib.Path
    name: str
    block: int
    lds_bytes: int = 0  # that the launch adds
    hidden_pointers: int = 0  # that the compiler appends to the arguments, null here


class Triton:
    """Compiled by Triton, ahead of time."""

    TYPES = {"f16": "fp16", "bf16": "bf16"}
    TILE_Q = 128
    TILE_KV = 64
    PAGE = 16
    MOST_PARTS = 16

    def __init__(self, work):
        self.folder = pathlib.Path(work) / "triton"
        self.folder.mkdir(parents=True, exist_ok=True)
        os.environ["TRITON_CACHE_DIR"] = str(self.folder / "cache")
        import triton
        import triton_kernels
        self.version = triton.__version__
        self.triton = triton
        self.kernels = triton_kernels

    def compile(self, label, function, types, constants, waves, multiples=(), **options):
        """`multiples`: integer arguments that are promised to be multiples of 16, as all pointers are."""
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
        signature = {name: "constexpr" if name in constants else types[name] for name in function.arg_names}
        attributes = {}
        for place, name in enumerate(function.arg_names):
            if signature[name].startswith("*"):  # tensors have less than 2 GiB
                attributes[place,] = [["tt.divisibility", 16], ["tt.pointer_range", 32]]
            elif name in multiples:
                attributes[place,] = [["tt.divisibility", 16]]
        compiled = self.triton.compile(ASTSource(function, signature, constants, attributes),
                                       target=GPUTarget("hip", CHIP, 64),
                                       options={"num_warps": waves, "enable_fp_fusion": True, **options})
        code = self.folder / f"{label}.hsaco"
        code.write_bytes(compiled.asm["hsaco"])
        return Kernel(code, compiled.metadata.name, 64 * waves, compiled.metadata.shared, hidden_pointers=2)

    def rows(self, dtype, causal):
        """The tile and the two workgroups per compute unit that AMD's tuned kernels have."""
        pointer = "*" + self.TYPES[dtype]
        return self.compile(
            f"rows_{dtype}_{'causal' if causal else 'full'}", self.kernels.attention_rows,
            {"q_pointer": pointer, "k_pointer": pointer, "v_pointer": pointer, "o_pointer": pointer,
             "length": "i32", "q_heads": "i32", "kv_heads": "i32", "scale_log2": "fp32"},
            {"HEAD_DIM": HEAD_DIM, "TILE_Q": self.TILE_Q, "TILE_KV": self.TILE_KV, "CAUSAL": causal},
            waves=4, num_stages=1, waves_per_eu=2, matrix_instr_nonkdim=32)

    def decode(self, dtype, group):
        """The fastest on the timing model among tiles of 16 to 128 keys, 1 to 4 waves and 1 or 2 stages."""
        pointer = "*" + self.TYPES[dtype]
        return self.compile(
            f"decode_{dtype}", self.kernels.decode_part,
            {"q_pointer": pointer, "k_pointer": pointer, "v_pointer": pointer, "pages_pointer": "*i32",
             "lengths_pointer": "*i32", "partial_pointer": "*fp32", "maxima_pointer": "*fp32",
             "totals_pointer": "*fp32", "most_pages": "i32", "part_keys": "i32", "scale_log2": "fp32"},
            {"HEAD_DIM": HEAD_DIM, "GROUP": group, "TILE_Q": 16, "TILE_KV": 16, "PAGE": self.PAGE},
            waves=1, multiples=("part_keys",), num_stages=2)

    def merge(self, dtype):
        return self.compile(
            f"merge_{dtype}", self.kernels.merge_parts,
            {"partial_pointer": "*fp32", "maxima_pointer": "*fp32", "totals_pointer": "*fp32",
             "o_pointer": "*" + self.TYPES[dtype], "parts": "i32"},
            {"HEAD_DIM": HEAD_DIM, "TILE_PARTS": self.MOST_PARTS}, waves=4)


IREE_SOURCE = """\
func.func @attention(%q: {queries}, %k: {keys}, %v: {keys}{mask_parameter}) -> {queries} {{
  %scale = arith.constant {scale} : {dtype}
  %empty = tensor.empty() : {queries}
  %o = iree_linalg_ext.attention <{{
    indexing_maps = [
      affine_map<(b, h, g, m, n, k1, k2) -> (b, m, h, g, k1)>,
      affine_map<(b, h, g, m, n, k1, k2) -> (b, k2, h, k1)>,
      affine_map<(b, h, g, m, n, k1, k2) -> (b, k2, h, n)>,
      affine_map<(b, h, g, m, n, k1, k2) -> ()>,
      {mask_map}affine_map<(b, h, g, m, n, k1, k2) -> (b, m, h, g, n)>]}}>
    ins(%q, %k, %v, %scale{mask} : {queries}, {keys}, {keys}, {dtype}{mask_type}) outs(%empty : {queries}) {{
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  }} -> {queries}
  return %o : {queries}
}}
"""


class Iree:
    """Compiled by IREE with its own choice of tiles: shapes are part of the kernel."""

    def __init__(self, work):
        self.version = importlib.metadata.version("iree-base-compiler")
        self.folder = pathlib.Path(work) / "iree"

    def attention(self, label, dtype, batch, length, q_heads, kv_heads, head_dim, masked=False):
        """The kernel, and the number of workgroups. Tensors [sequence, token, head, dim]; the mask [query, key]."""
        folder = self.folder / label
        folder.mkdir(parents=True, exist_ok=True)
        for old in [*folder.glob("*.hsaco"), *folder.glob("configured_*.mlir")]:
            old.unlink()
        mask_type = f"tensor<{length}x{length}xi1>"
        source = folder / "attention.mlir"
        source.write_text(IREE_SOURCE.format(
            dtype=dtype, scale=f"{head_dim ** -0.5:.10f}",
            queries=f"tensor<{batch}x{length}x{kv_heads}x{q_heads // kv_heads}x{head_dim}x{dtype}>",
            keys=f"tensor<{batch}x{length}x{kv_heads}x{head_dim}x{dtype}>",
            mask=", %mask" if masked else "",
            mask_type=f", {mask_type}" if masked else "",
            mask_parameter=f", %mask: {mask_type}" if masked else "",
            mask_map="affine_map<(b, h, g, m, n, k1, k2) -> (m, k2)>,\n      " if masked else ""), encoding="utf-8")
        host = folder / "host.mlir"
        command = [pathlib.Path(sys.prefix) / "bin" / "iree-compile", source, "-o", host, "--compile-to=hal",
                   "--iree-hal-target-device=hip", f"--iree-rocm-target={CHIP}",
                   f"--iree-hal-dump-executable-configurations-to={folder}",
                   f"--iree-hal-dump-executable-binaries-to={folder}"]
        subprocess.run(command, check=True)

        def only(what, found):
            if len(found) != 1:
                raise RuntimeError(f"{label}: IREE made {len(found)} of {what}; one is expected")
            return found[0]

        code = only("code objects", list(folder.glob("*.hsaco")))
        configuration = only("configurations", list(folder.glob("configured_*.mlir"))).read_text(encoding="utf-8")
        host_code = host.read_text(encoding="utf-8")
        name = only("kernels", re.findall(r"function\(@\w+::@\w+::@(\w+)\)", host_code))
        workgroups = only("launches", re.findall(r"workgroups\(\[%c(\d+), %c1, %c1\]\)", host_code))
        block = only("workgroup sizes", re.findall(r"workgroup_size = \[(\d+), 1, 1\]", configuration))
        return Kernel(code, name, int(block)), int(workgroups)
