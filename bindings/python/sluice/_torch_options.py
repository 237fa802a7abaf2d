"""The arguments that all attention of torch shares, and the problems that they make."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional

import torch

from ._enums import Lse, MaskAlignment, ScaleKind
from ._errors import InvalidArgument
from ._problem import Problem
from ._torch_checks import BITS, F32, FLOATS, INT32, VALUES, Extents

Arrays = Dict[str, Any]


def bound(number: int) -> int:
    """The next power of two: few plans serve all lengths, and each has at most twice the workspace it needs."""
    return 1 << max(number - 1, 0).bit_length()


def type_of_o(q: torch.Tensor, wanted: Optional[torch.dtype]) -> torch.dtype:
    """The requested type of O; by default that of Q, or bfloat16 for FP8."""
    if wanted is not None:
        return wanted
    return torch.bfloat16 if q.dtype.itemsize == 1 else q.dtype


def _scale_kind(scale: Optional[torch.Tensor]) -> ScaleKind:
    if scale is None:
        return ScaleKind.NONE
    return ScaleKind.PER_TENSOR if scale.numel() == 1 else ScaleKind.PER_HEAD


def _key_scale_kind(scale: Optional[torch.Tensor], scales: Optional[torch.Tensor], is_paged: bool) -> ScaleKind:
    """Scales of a cache in pages are per token, [pages, page_size, heads], or per page, [pages, heads]."""
    if scales is None:
        return _scale_kind(scale)
    return ScaleKind.PER_PAGE if is_paged and scales.dim() == 2 else ScaleKind.PER_TOKEN


class SharedPrefix(NamedTuple):
    """Keys that groups of rows see before their sequence's own keys; each prefix is read once for all its rows.

    Rows of q, counted over all sequences, from q_starts[p] on and before q_starts[p + 1] see prefix p; rows before the
    first start and from the last one on see none. Its keys are in the call's own caches, or in tensors of their own.
    """

    q_starts: torch.Tensor
    """int32 [prefixes + 1]."""
    lengths: Optional[torch.Tensor] = None
    """int32 [prefixes]: keys of each prefix; for pages, and for prefixes of different lengths."""
    block_table: Optional[torch.Tensor] = None
    """With pages: [prefixes, pages of a prefix], of the type of the call's block_table."""
    max_len: int = 0
    """With pages: the largest of `lengths`."""
    k: Optional[torch.Tensor] = None
    """Without pages: [prefixes, keys, kv_heads, dim]."""
    v: Optional[torch.Tensor] = None
    """The same for V."""


class Options(NamedTuple):
    """The arguments that follow every operator's own tensors, as the caller has chosen them."""

    scale: Optional[float] = None
    causal: bool = False
    top_left: bool = False
    window_left: int = -1
    window_right: int = -1
    softcap: float = 0.0
    alibi_slopes: Optional[torch.Tensor] = None
    sinks: Optional[torch.Tensor] = None
    q_scale: Optional[torch.Tensor] = None
    k_scale: Optional[torch.Tensor] = None
    v_scale: Optional[torch.Tensor] = None
    o_type: Optional[torch.dtype] = None
    o_scale: Optional[torch.Tensor] = None
    k_scales: Optional[torch.Tensor] = None
    v_scales: Optional[torch.Tensor] = None
    bias: Optional[torch.Tensor] = None
    bias_scale: Optional[torch.Tensor] = None
    mask: Optional[torch.Tensor] = None
    mask_new_rows: bool = False
    spans: Optional[torch.Tensor] = None
    diagonals: Optional[torch.Tensor] = None
    causal_sequences: Optional[torch.Tensor] = None
    missing_pages_hidden: bool = False
    head_dim_v: int = 0
    prefix_q_starts: Optional[torch.Tensor] = None
    prefix_lengths: Optional[torch.Tensor] = None
    prefix_table: Optional[torch.Tensor] = None
    prefix_max_len: int = 0
    prefix_k: Optional[torch.Tensor] = None
    prefix_v: Optional[torch.Tensor] = None
    batch_invariant: bool = False

    def dim_of_v(self, v: Optional[torch.Tensor]) -> int:
        """Elements of a row of O. Without a V it is the first part of K's rows."""
        if (v is None) != (self.head_dim_v != 0):
            given = "None" if v is None else "given"
            raise InvalidArgument(f"head_dim_v is {self.head_dim_v} and V is {given}; exactly one of them must be there",
                                  "head_dim_v")
        return self.head_dim_v if v is None else v.shape[-1]

    def check(self, extents: Extents, k_rows: str, table: Optional[torch.Tensor] = None) -> None:
        """Checks these tensors against those of the call. `k_rows` are the names of K's first extents, `table` the
        call's block table."""
        check = extents.check
        for field, tensor in (("alibi_slopes", self.alibi_slopes), ("bias_scale", self.bias_scale)):
            check(tensor, field, ("q_heads", "batch q_heads"), F32)
        check(self.sinks, "sinks", "q_heads", F32)
        for field, tensor, heads in (("q_descale", self.q_scale, "q_heads"), ("k_descale", self.k_scale, "kv_heads"),
                                     ("v_descale", self.v_scale, "kv_heads"), ("o_scale", self.o_scale, "q_heads")):
            check(tensor, field, f"{heads}?", F32)
        per_page = ["pages kv_heads"] if k_rows == "pages page_size" else []
        for field, tensor in (("k_scales", self.k_scales), ("v_scales", self.v_scales)):
            check(tensor, field, [f"{k_rows} kv_heads", *per_page], F32)
        check(self.bias, "bias", "batch? q_heads? rows? keys?", FLOATS)
        bits = "row_bytes" if self.mask_new_rows else "key_bytes"
        if self.mask is not None:
            covered = extents.of("rows") if self.mask_new_rows else extents.of("keys")
            extents.given(bits, -(-covered // 8), "bytes of 8 keys")
            check(self.mask, "new_rows_mask" if self.mask_new_rows else "attn_mask", f"batch? q_heads? rows? {bits}", BITS)
        check(self.spans, "spans", "batch spans 2", INT32)
        check(self.diagonals, "diagonals", "batch", INT32)
        check(self.causal_sequences, "causal_sequences", "batch", INT32)
        self._check_prefix(extents, table)

    def _check_prefix(self, extents: Extents, table: Optional[torch.Tensor]) -> None:
        starts, check = self.prefix_q_starts, extents.check
        if starts is None:
            return
        check(starts, "prefix.q_starts", "prefixes_and_1", INT32)
        extents.given("prefixes", starts.shape[0] - 1, "prefix.q_starts.shape[0] - 1")
        check(self.prefix_lengths, "prefix.lengths", "prefixes", INT32)
        in_pages, has_v = table is not None, self.head_dim_v == 0
        for field, tensor, wanted in (("block_table", self.prefix_table, in_pages), ("k", self.prefix_k, not in_pages),
                                      ("v", self.prefix_v, not in_pages and has_v)):
            if (tensor is not None) != wanted:
                rule = f"given; it must be None {'with' if in_pages else 'without'} pages"
                if wanted:
                    rule = f"None; it is required {'with' if in_pages else 'without'} pages"
                raise InvalidArgument(f"prefix.{field} is {rule}", f"prefix.{field}")
        if in_pages and self.prefix_lengths is None:
            raise InvalidArgument("prefix.lengths is None; it is required with pages", "prefix.lengths")
        check(self.prefix_k, "prefix.k", "prefixes prefix_keys kv_heads dim_qk", VALUES)
        check(self.prefix_v, "prefix.v", "prefixes prefix_keys kv_heads dim_v", VALUES)
        if table is not None:
            extents.given("prefix_keys", self.prefix_max_len, "prefix.max_len")
            extents.given("prefix_pages", -(-self.prefix_max_len // extents.of("page_size")), "prefix.max_len")
            check(self.prefix_table, "prefix.block_table", "prefixes prefix_pages+", (table.dtype,))

    def prefix_len(self) -> int:
        """The most keys of a prefix."""
        return self.prefix_max_len if self.prefix_k is None else self.prefix_k.shape[1]

    def used(self, pages: int = 1) -> "Options":
        """Without spans and prefixes that do not exist; `pages` are those of a cache."""
        made = self
        if self.spans is not None and self.spans.shape[1] == 0:
            made = made._replace(spans=None)
        starts = self.prefix_q_starts
        if starts is not None and (starts.shape[0] == 1 or self.prefix_len() == 0 or pages == 0):
            made = made._replace(prefix_q_starts=None, prefix_lengths=None, prefix_table=None, prefix_max_len=0,
                                 prefix_k=None, prefix_v=None)
        return made

    def problem(self, q: torch.Tensor, k: torch.Tensor, v: Optional[torch.Tensor], write_lse: bool = True,
                **more: Any) -> Problem:
        has_right = self.window_right >= 0 and not self.causal
        alignment = MaskAlignment.TOP_LEFT if self.top_left else MaskAlignment.BOTTOM_RIGHT
        if self.diagonals is not None:
            alignment = MaskAlignment.GIVEN_DIAGONAL
        if self.prefix_q_starts is not None:
            more.update(shared_prefix=True, max_prefixes=bound(self.prefix_q_starts.shape[0] - 1),
                        max_prefix_len=bound(self.prefix_len()), max_q_tokens=bound(q.shape[:-2].numel()))
        is_paged = "page_size" in more
        return Problem(q.dtype, q_heads=q.shape[-2], kv_heads=k.shape[-2], head_dim_qk=q.shape[-1],
                       head_dim_v=self.dim_of_v(v), k_type=k.dtype, v_type=k.dtype if v is None else v.dtype,
                       o_type=type_of_o(q, self.o_type), lse=Lse.LN if write_lse else Lse.NONE, causal=self.causal,
                       mask_alignment=alignment,
                       window_left=self.window_left if self.window_left >= 0 else None,
                       window_right=self.window_right if has_right else None, soft_cap=self.softcap,
                       alibi=self.alibi_slopes is not None, sink_logits=self.sinks is not None,
                       q_scale_kind=_scale_kind(self.q_scale), o_scale_kind=_scale_kind(self.o_scale),
                       k_scale_kind=_key_scale_kind(self.k_scale, self.k_scales, is_paged),
                       v_scale_kind=_key_scale_kind(self.v_scale, self.v_scales, is_paged),
                       bias_type=None if self.bias is None else self.bias.dtype, bias_scale=self.bias_scale is not None,
                       bool_mask=self.mask is not None, mask_new_rows=self.mask_new_rows, spans=self.spans is not None,
                       causal_by_sequence=self.causal_sequences is not None,
                       missing_pages_hidden=self.missing_pages_hidden, v_in_k=v is None,
                       batch_invariant=bool(self.batch_invariant), **more)

    def arrays(self) -> Arrays:
        return {"alibi_slopes": self.alibi_slopes, "sink_logits": self.sinks, "q_scale": self.q_scale,
                "k_scale": self.k_scale, "v_scale": self.v_scale, "o_scale": self.o_scale, "k_scales": self.k_scales,
                "v_scales": self.v_scales, "bias": self.bias, "bias_scale": self.bias_scale, "mask": self.mask,
                "spans": self.spans, "diagonals": self.diagonals, "causal": self.causal_sequences,
                "prefix_q_starts": self.prefix_q_starts, "prefix_lengths": self.prefix_lengths,
                "prefix_page_table": self.prefix_table, "prefix_k": self.prefix_k, "prefix_v": self.prefix_v}

    def numbers(self) -> Dict[str, Any]:
        return {"scale": self.scale, "prefix_len": None if self.prefix_q_starts is None else self.prefix_len()}
