"""Appends to paged caches, and merges of partial results: makes their structs from arrays.

Everything except the caller's choices is derived from the arrays and checked against them.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Optional, Tuple

from . import _core
from ._call import array_of, at_least, block_table, c_tensor, checked, exactly
from ._errors import InvalidArgument
from ._tensor import Tensor, tensor_of
from ._types import DType, LseBase, PageTableKind, RotaryStyle, ScaleKind

_PAGE_INDEX_64, _V_IN_K = 1 << 7, 1 << 8


def _with_dimensions(array: Any, field: str, counts: Tuple[int, ...]) -> Tensor:
    tensor = tensor_of(array, field)
    if len(tensor.shape) not in counts:
        raise InvalidArgument(f"{field} has {len(tensor.shape)} dimensions; it must have"
                              f" {' or '.join(str(count) for count in counts)}", field)
    if tensor.dtype is None:
        raise InvalidArgument(f"{field} is of integers; it must be of one of the library's types", field)
    return tensor


def _dtype(tensor: Tensor) -> DType:
    assert tensor.dtype is not None  # checked above
    return tensor.dtype


def _scale(made: Any, field: str, array: Any, heads: int, place: str) -> None:
    if array is None:
        return
    is_one = tensor_of(array, field).shape == (1,)
    setattr(made, f"{field}_kind", ScaleKind.PER_TENSOR if is_one else ScaleKind.PER_HEAD)
    setattr(made, field, array_of(array, field, place, DType.F32, 4, exactly(1 if is_one else heads, "kv_heads, or 1")))


def _table(made: Any, array: Any, page_starts: Any, batch: int, place: str) -> None:
    table = tensor_of(array, "page_table")
    if table.itemsize == 8:
        made.flags |= _PAGE_INDEX_64
    if page_starts is not None:
        made.page_table_kind = PageTableKind.CSR
        made.page_starts = array_of(page_starts, "page_starts", place, None, 4, exactly(batch + 1, "batch + 1"))
        made.page_table = array_of(array, "page_table", place, None, table.itemsize, at_least(0, "entries"))
        return
    made.page_table_kind = PageTableKind.BLOCK
    made.page_table, made.page_table_stride = block_table(array, place, table.itemsize, batch, at_least(0, "pages"))


def append_struct(place: str, k: Any, v: Any, k_cache: Any, v_cache: Any, *, slots: Any, starts: Any, kv_lengths: Any,
                  page_table: Any, page_starts: Any, k_scale: Any, v_scale: Any, rotary: Any, rotary_style: RotaryStyle,
                  positions: Any, rotary_sin: Any, rotary_first: int, q: Any, q_out: Any, k_tail: Any, q_tail: Any,
                  q_norm: Any, k_norm: Any, norm_epsilon: float, k_token_scales: Any, v_token_scales: Any, k_page_scales: Any,
                  v_page_scales: Any) -> Any:
    """The sluice_append of Context.append's arguments."""
    made = _core.Append()
    rows, cache = _with_dimensions(k, "k", (3,)), _with_dimensions(k_cache, "k_cache", (4, 5))
    made.tokens, made.kv_heads, made.head_dim_qk = rows.shape
    made.tail_dim = 0 if k_tail is None else _with_dimensions(k_tail, "k_tail", (3,)).shape[2]
    made.head_dim_qk += made.tail_dim
    made.page_size, made.source_type, made.cache_type = cache.shape[1], _dtype(rows), _dtype(cache)
    source, target = _dtype(rows), _dtype(cache)
    heads, pages = exactly(made.kv_heads, "heads of k"), [cache.shape[0]]
    dims = [exactly(made.head_dim_qk, "elements of a row of k")]
    if len(cache.shape) == 5:
        made.k_pack = cache.shape[4]
        dims = [exactly(made.head_dim_qk // max(made.k_pack, 1), "packs of a row of k"), exactly(made.k_pack, "k_pack")]
    checked(k, "k", place, source, source.bytes, [at_least(0, "tokens"), heads, at_least(0, "elements")])
    checked(k_cache, "k_cache", place, target, target.bytes,
            [at_least(0, "pages"), at_least(0, "rows of a page"), heads, *dims])
    made.k = c_tensor(rows)
    made.k_cache = c_tensor(cache) if made.k_pack == 0 else c_tensor(dataclasses.replace(cache, strides=cache.strides[:4]))
    if v is None and v_cache is None:
        made.flags |= _V_IN_K
    else:
        of_v = checked(v, "v", place, source, source.bytes,
                       [exactly(made.tokens, "tokens of k"), heads, at_least(0, "elements")])
        made.head_dim_v = of_v.shape[2]
        v_pages = checked(v_cache, "v_cache", place, target, target.bytes,
                          [at_least(0, "pages"), exactly(made.page_size, "rows of a page of k_cache"), heads,
                           exactly(made.head_dim_v, "elements of a row of v")])
        made.v, made.v_cache = c_tensor(of_v), c_tensor(v_pages)
        pages.append(v_pages.shape[0])
    for side, of_tokens, of_pages in (("k", k_token_scales, k_page_scales), ("v", v_token_scales, v_page_scales)):
        pages.extend(_scales_of_pages(made, side, of_tokens, of_pages, place))
    made.page_count = min(pages)
    _scale(made, "k_scale", k_scale, made.kv_heads, place)
    _scale(made, "v_scale", v_scale, made.kv_heads, place)
    tokens = exactly(made.tokens, "tokens of k")
    made.slots = array_of(slots, "slots", place, None, 8, tokens)
    if starts is not None:
        batch = tensor_of(starts, "starts").shape[0] - 1
        made.batch = batch
        made.starts = array_of(starts, "starts", place, None, 4, exactly(batch + 1, "batch + 1"))
        made.kv_lengths = array_of(kv_lengths, "kv_lengths", place, None, 4, at_least(batch, "batch"))
        if page_table is not None:
            _table(made, page_table, page_starts, batch, place)
    elif kv_lengths is not None or page_table is not None or page_starts is not None:
        raise InvalidArgument("starts is None; kv_lengths, page_table and page_starts need it", "starts")
    made.positions = array_of(positions, "positions", place, None, 4, tokens)
    if rotary is not None:
        _rotation(made, rotary, rotary_sin, place)
        made.rotary_style, made.rotary_first = rotary_style, rotary_first
    _step(made, source, place, q=q, q_out=q_out, k_tail=k_tail, q_tail=q_tail, q_norm=q_norm, k_norm=k_norm,
          norm_epsilon=norm_epsilon)
    return made


def _scales_of_pages(made: Any, side: str, of_tokens: Any, of_pages: Any, place: str) -> Tuple[int, ...]:
    """Scales per token, [pages, page_size, kv_heads], or per page, [pages, kv_heads]; returns their number of pages."""
    heads = exactly(made.kv_heads, "heads of k")
    if of_tokens is not None and of_pages is not None:
        raise InvalidArgument(f"{side}_token_scales and {side}_page_scales are both given", f"{side}_page_scales")
    if of_tokens is not None:
        scales = checked(of_tokens, f"{side}_token_scales", place, DType.F32, 4,
                         [at_least(0, "pages"), exactly(made.page_size, "rows of a page of k_cache"), heads])
        kind, strides = ScaleKind.PER_TOKEN, scales.strides
    elif of_pages is not None:
        scales = checked(of_pages, f"{side}_page_scales", place, DType.F32, 4, [at_least(0, "pages"), heads])
        kind, strides = ScaleKind.PER_PAGE, (scales.strides[0], 0, scales.strides[1])
    else:
        return ()
    setattr(made, f"{side}_scale_kind", kind)
    setattr(made, f"{side}_scales", (scales.address, *strides, 0))
    return (scales.shape[0],)


def _rotation(made: Any, rotary: Any, rotary_sin: Any, place: str) -> None:
    def table_of(array: Any, field: str, dtype: DType, *extents: Any) -> Tensor:
        table = checked(array, field, place, dtype, dtype.bytes, extents)
        if table.strides[1] != 1 and table.shape[1] > 1:
            raise InvalidArgument(f"{field} has a stride of {table.strides[1]} elements in a row; it must be 1", field)
        return table

    dtype = _dtype(_with_dimensions(rotary, "rotary", (2,)))
    table = table_of(rotary, "rotary", dtype, at_least(0, "positions"), at_least(0, "rotary_dim"))
    made.rotary, made.rotary_stride, made.rotary_dim = table.address, table.strides[0], table.shape[1]
    made.rotary_type = 0 if dtype == DType.F32 else dtype
    if rotary_sin is None:
        return
    made.rotary_dim *= 2
    sines = table_of(rotary_sin, "rotary_sin", dtype, at_least(table.shape[0], "positions of rotary"),
                     exactly(table.shape[1], "cosines of a position"))
    made.rotary_sin = sines.address
    if sines.strides[0] != made.rotary_stride:
        raise InvalidArgument(f"rotary_sin has a stride of {sines.strides[0]} elements between positions; it must be that"
                              f" of rotary, {made.rotary_stride}", "rotary_sin")


def _step(made: Any, source: DType, place: str, *, q: Any, q_out: Any, k_tail: Any, q_tail: Any, q_norm: Any, k_norm: Any,
          norm_epsilon: float) -> None:
    """Q, tails and norms."""
    tokens, body = exactly(made.tokens, "tokens of k"), made.head_dim_qk - made.tail_dim

    def rows(array: Any, field: str, heads: int, what: str, dim: int) -> Any:
        return c_tensor(checked(array, field, place, source, source.bytes,
                                [tokens, exactly(heads, what), exactly(dim, "elements of a row")]))

    if k_tail is not None:
        made.k_tail = rows(k_tail, "k_tail", made.kv_heads, "heads of k", made.tail_dim)
    if q is not None:
        made.q_heads = _with_dimensions(q, "q", (3,)).shape[1]
        made.q = rows(q, "q", made.q_heads, "heads of q", made.head_dim_qk if q_tail is None else body)
        made.q_out = rows(q if q_out is None else q_out, "q_out", made.q_heads, "heads of q", made.head_dim_qk)
        if q_tail is not None:
            made.q_tail = rows(q_tail, "q_tail", made.q_heads, "heads of q", made.tail_dim)
    elif q_out is not None or q_tail is not None:
        raise InvalidArgument("q is None; q_out and q_tail need it", "q")
    for field, array in (("q_norm", q_norm), ("k_norm", k_norm)):
        if array is None:
            continue
        dtype = _dtype(_with_dimensions(array, field, (1,)))
        if made.norm_type not in (0, dtype):
            raise InvalidArgument(f"{field} is of another type than q_norm", field)
        made.norm_type, made.norm_epsilon = dtype, norm_epsilon
        setattr(made, field, array_of(array, field, place, dtype, dtype.bytes, exactly(body, "elements of a normed row")))


def merge_struct(place: str, partial: Any, partial_lse: Any, o: Any, *, lse: Any, sink_logits: Any,
                 lse_base: LseBase) -> Any:
    """The sluice_merge of Context.merge's arguments."""
    made = _core.Merge()
    parts, result = _with_dimensions(partial, "partial", (4,)), _with_dimensions(o, "o", (3,))
    made.parts, made.tokens, made.heads, made.head_dim_v = parts.shape
    made.partial_type, made.o_type, made.lse_base = _dtype(parts), _dtype(result), lse_base
    tokens, heads = exactly(made.tokens, "tokens of partial"), exactly(made.heads, "heads of partial")

    def tensor(array: Any, field: str, dtype: DType, *extents: Any) -> Tensor:
        return checked(array, field, place, dtype, dtype.bytes, extents)

    many = [at_least(0, "extent")] * 4
    made.partial = c_tensor(tensor(partial, "partial", _dtype(parts), *many))
    lses = tensor(partial_lse, "partial_lse", DType.F32, exactly(made.parts, "parts of partial"), tokens, heads)
    part, token, head = lses.strides
    made.partial_lse = (lses.address, part, token, head, 0)
    made.o = c_tensor(tensor(o, "o", _dtype(result), tokens, heads, exactly(made.head_dim_v, "elements of partial")))
    if lse is not None:
        made.lse = c_tensor(tensor(lse, "lse", DType.F32, tokens, heads), 3)
    made.sink_logits = array_of(sink_logits, "sink_logits", place, DType.F32, 4, heads)
    return made


def reference_append(k: Any, v: Any, k_cache: Any, v_cache: Any, *, slots: Any = None, starts: Any = None,
                     kv_lengths: Any = None, page_table: Any = None, page_starts: Any = None, k_scale: Any = None,
                     v_scale: Any = None, rotary: Any = None, rotary_style: RotaryStyle = RotaryStyle.HALVES,
                     positions: Optional[Any] = None, rotary_sin: Any = None, rotary_first: int = 0, q: Any = None,
                     q_out: Any = None, k_tail: Any = None, q_tail: Any = None, q_norm: Any = None, k_norm: Any = None,
                     norm_epsilon: float = 0.0, k_token_scales: Any = None, v_token_scales: Any = None,
                     k_page_scales: Any = None, v_page_scales: Any = None) -> None:
    """Performs an append on the host: the reference for what a device stores, and a check of its tables. Arrays as for
    Context.append, all in host memory."""
    _core.reference_append(append_struct("host", k, v, k_cache, v_cache, slots=slots, starts=starts, kv_lengths=kv_lengths,
                                         page_table=page_table, page_starts=page_starts, k_scale=k_scale, v_scale=v_scale,
                                         rotary=rotary, rotary_style=rotary_style, positions=positions, rotary_sin=rotary_sin,
                                         rotary_first=rotary_first, q=q, q_out=q_out, k_tail=k_tail, q_tail=q_tail,
                                         q_norm=q_norm, k_norm=k_norm, norm_epsilon=norm_epsilon,
                                         k_token_scales=k_token_scales, v_token_scales=v_token_scales,
                                         k_page_scales=k_page_scales, v_page_scales=v_page_scales))
