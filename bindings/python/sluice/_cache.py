"""Appends to paged caches, copies and gathers of them: makes their structs from arrays.

Everything except the caller's choices is derived from the arrays and checked against them.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping, Optional, Sequence, Tuple

from . import _core
from ._call import Extent, array_of, at_least, block_table, c_tensor, checked, exactly, intervals, keys_of
from ._errors import InvalidArgument
from ._problem import put
from ._tensor import Tensor, has_no_gaps, tensor_of
from ._types import V_PACK_ALL, DType, DTypeLike, PageTableKind, RotaryStyle, ScaleKind, dtype_of

_PAGE_INDEX_64, _V_IN_K, _ZERO_POINTS = 1 << 7, 1 << 8, 1 << 13
_NO_PAIRS = 8
"""The address of an empty list of pairs: NULL would be all pages, each to itself."""


def _tensor_of_any_type(array: Any, field: str, counts: Tuple[int, ...]) -> Tensor:
    tensor = tensor_of(array, field)
    if len(tensor.shape) not in counts:
        raise InvalidArgument(f"{field} has {len(tensor.shape)} dimensions; it must have"
                              f" {' or '.join(str(count) for count in counts)}", field)
    return tensor


def with_dimensions(array: Any, field: str, counts: Tuple[int, ...]) -> Tensor:
    tensor = _tensor_of_any_type(array, field, counts)
    if tensor.dtype is None:
        raise InvalidArgument(f"{field} is of integers; it must be of one of the library's types", field)
    return tensor


def dtype_of_tensor(tensor: Tensor) -> DType:
    assert tensor.dtype is not None  # checked above
    return tensor.dtype


def put_scale(made: Any, field: str, array: Any, heads: int, place: str) -> None:
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
        made.page_starts = array_of(page_starts, "page_starts", place, None, 4, at_least(batch + 1, "batch + 1"))
        made.page_table = array_of(array, "page_table", place, None, table.itemsize, at_least(0, "entries"))
        return
    made.page_table_kind = PageTableKind.BLOCK
    made.page_table, made.page_table_stride = block_table(array, place, table.itemsize, batch, at_least(0, "pages"))


def append_struct(place: str, k: Any, v: Any, k_cache: Any, v_cache: Any, *, slots: Any, starts: Any, kv_lengths: Any,
                  page_table: Any, page_starts: Any, k_scale: Any, v_scale: Any, rotary: Any, rotary_style: RotaryStyle,
                  positions: Any, rotary_sin: Any, rotary_first: int, q: Any, q_out: Any, k_tail: Any, q_tail: Any,
                  q_norm: Any, k_norm: Any, norm_epsilon: float, k_token_scales: Any, v_token_scales: Any, k_page_scales: Any,
                  v_page_scales: Any, cache_type: Optional[DTypeLike], k_group_scales: Any, v_group_scales: Any, k_zeros: Any,
                  v_zeros: Any) -> Any:
    """The sluice_append of Context.append's arguments."""
    made = _core.Append()
    rows = with_dimensions(k, "k", (3,))
    made.tokens, made.kv_heads, made.head_dim_qk = rows.shape
    made.tail_dim = 0 if k_tail is None else with_dimensions(k_tail, "k_tail", (3,)).shape[2]
    made.head_dim_qk += made.tail_dim
    source, heads = dtype_of_tensor(rows), exactly(made.kv_heads, "heads of k")
    checked(k, "k", place, source, source.bytes, [at_least(0, "tokens"), heads, at_least(0, "elements")])
    made.k, made.source_type = c_tensor(rows), source
    target = _given_type(cache_type) or dtype_of_tensor(with_dimensions(k_cache, "k_cache", (4, 5)))
    pages = _k_cache_of_append(made, k_cache, target, place).shape[0]
    if v is None and v_cache is None:
        made.flags |= _V_IN_K
    else:
        v_rows = checked(v, "v", place, source, source.bytes,
                         [exactly(made.tokens, "tokens of k"), heads, at_least(0, "elements")])
        made.head_dim_v = v_rows.shape[2]
        made.v = c_tensor(v_rows)
        _v_cache_of_append(made, v_cache, target, pages, place)
    _arrays_of_cache(made, "k_cache", pages, place, k_token_scales=k_token_scales, v_token_scales=v_token_scales,
                     k_page_scales=k_page_scales, v_page_scales=v_page_scales, k_group_scales=k_group_scales,
                     v_group_scales=v_group_scales, k_zeros=k_zeros, v_zeros=v_zeros)
    made.page_count = pages
    put_scale(made, "k_scale", k_scale, made.kv_heads, place)
    put_scale(made, "v_scale", v_scale, made.kv_heads, place)
    tokens = exactly(made.tokens, "tokens of k")
    made.slots = array_of(slots, "slots", place, None, 8, tokens)
    if starts is not None:
        batch = made.batch = intervals(starts, "starts", "batch")
        made.starts = array_of(starts, "starts", place, None, 4, exactly(batch + 1, "batch + 1"))
        made.kv_lengths = array_of(kv_lengths, "kv_lengths", place, None, 4, at_least(batch, "batch"))
        if page_table is not None:
            _table(made, page_table, page_starts, batch, place)
    elif kv_lengths is not None or page_table is not None or page_starts is not None:
        raise InvalidArgument("starts is None; kv_lengths, page_table and page_starts need it", "starts")
    made.positions = array_of(positions, "positions", place, None, 4, tokens)
    for field, number in (("rotary_style", rotary_style), ("rotary_first", rotary_first), ("norm_epsilon", norm_epsilon)):
        put(made, field, number)
    if rotary is not None:
        _rotation(made, rotary, rotary_sin, place)
    elif rotary_sin is not None:
        raise InvalidArgument("rotary is None; rotary_sin needs it", "rotary")
    else:
        made.rotary_style = made.rotary_first = 0
    if q_norm is None and k_norm is None:
        made.norm_epsilon = 0.0
    _step(made, source, place, q=q, q_out=q_out, k_tail=k_tail, q_tail=q_tail, q_norm=q_norm, k_norm=k_norm)
    if pages == 0 and made.tokens != 0:
        # The library takes 0 as unknown. Rows are skipped whose page does not exist, but rows of Q are not.
        if q is not None:
            raise InvalidArgument("k_cache.shape[0] is 0; it must be at least 1 (pages) with q", "k_cache")
        made.tokens = 0
    return made


def _one_within_a_pack(cache: Tensor, field: str) -> None:
    if cache.strides[4] != 1 and cache.shape[4] > 1:
        raise InvalidArgument(f"{field} has a stride of {cache.strides[4]} elements inside a pack; it must be 1", field)


def _k_cache_of_append(made: Any, k_cache: Any, target: DType, place: str) -> Tensor:
    cache = tensor_of(k_cache, "k_cache")
    first = [at_least(0, "pages"), at_least(1, "rows of a page"), exactly(made.kv_heads, "heads of k")]
    made.cache_type = target
    if len(cache.shape) == 5:
        made.k_pack = cache.shape[4]
        packs = exactly(made.head_dim_qk // max(made.k_pack, 1), "packs of a row of k")
        checked(k_cache, "k_cache", place, target, target.bytes, [*first, packs, at_least(1, "k_pack")])
        _one_within_a_pack(cache, "k_cache")
        made.k_cache = c_tensor(dataclasses.replace(cache, shape=cache.shape[:4], strides=cache.strides[:4]))
    else:
        cache, made.k_cache = keys_of(k_cache, "k_cache", place, target, first,
                                      exactly(made.head_dim_qk, "elements of a row of k"))
    made.page_size = cache.shape[1]
    return cache


def _v_cache_of_append(made: Any, v_cache: Any, target: DType, pages: int, place: str) -> None:
    cache = tensor_of(v_cache, "v_cache")
    heads, dim = exactly(made.kv_heads, "heads of k"), exactly(made.head_dim_v, "elements of a row of v")
    if len(cache.shape) == 5:
        # [page, pack, head, column, token of the pack]
        made.v_pack = cache.shape[4]
        packs = exactly(made.page_size // max(made.v_pack, 1), "packs of a page of k_cache")
        checked(v_cache, "v_cache", place, target, target.bytes,
                [at_least(pages, "pages of k_cache"), packs, heads, dim, at_least(1, "v_pack")])
        _one_within_a_pack(cache, "v_cache")
        made.v_cache = c_tensor(dataclasses.replace(cache, shape=cache.shape[:4], strides=cache.strides[:4]))
    else:
        rows = exactly(made.page_size, "rows of a page of k_cache")
        _, form = keys_of(v_cache, "v_cache", place, target, [at_least(pages, "pages of k_cache"), rows, heads], dim)
        made.v_cache = form
        if form[2] == 1 and made.page_size > 1:
            made.v_pack = V_PACK_ALL  # neighbouring tokens are never rows


def tensor_form(address: int, *strides: int) -> Tuple[int, int, int, int, int]:
    """The library's form of a tensor with four strides."""
    a, b, c, d = strides
    return address, a, b, c, d


def _group_tensor(made: Any, side: str, array: Any, field: str, first: Sequence[Extent], place: str) -> Tensor:
    """Scales or zeros of groups, with these extents before the heads. K's scales say how large a group is."""
    if not made.scale_group:
        raise InvalidArgument(f"{field} is given without k_group_scales, which say how large a group is", field)
    groups = (made.head_dim_qk if side == "k" else made.head_dim_v) // made.scale_group
    return checked(array, field, place, DType.F16, 2,
                   [*first, exactly(made.kv_heads, "heads of k"),
                    exactly(groups, f"groups of {made.scale_group} elements of a row")])


def _rows_of_pages(made: Any, cache: str, pages: int) -> Sequence[Extent]:
    return at_least(pages, f"pages of {cache}"), exactly(made.page_size, f"rows of a page of {cache}")


def _scales_of_pages(made: Any, cache: str, pages: int, side: str, token_scales: Any, page_scales: Any, group_scales: Any,
                     place: str) -> None:
    """Scales per token, [pages, page_size, kv_heads], per page, [pages, kv_heads], or per group. `cache` is what K's is
    called."""
    heads, rows = exactly(made.kv_heads, "heads of k"), _rows_of_pages(made, cache, pages)
    given = [f"{side}_{what}_scales" for what, array in (("token", token_scales), ("page", page_scales), ("group", group_scales))
             if array is not None]
    if len(given) > 1:
        raise InvalidArgument(f"{given[0]} and {given[1]} are both given", given[1])
    if token_scales is not None:
        scales = checked(token_scales, f"{side}_token_scales", place, DType.F32, 4, [*rows, heads])
        kind, strides = ScaleKind.PER_TOKEN, (*scales.strides, 0)
    elif page_scales is not None:
        scales = checked(page_scales, f"{side}_page_scales", place, DType.F32, 4, [rows[0], heads])
        kind, strides = ScaleKind.PER_PAGE, (scales.strides[0], 0, scales.strides[1], 0)
    elif group_scales is not None:
        if side == "k":
            groups = _tensor_of_any_type(group_scales, "k_group_scales", (4,)).shape[3]
            made.scale_group = made.head_dim_qk // max(1, groups)
        scales = _group_tensor(made, side, group_scales, f"{side}_group_scales", rows, place)
        kind, strides = ScaleKind.PER_GROUP, scales.strides
    else:
        return
    setattr(made, f"{side}_scale_kind", kind)
    setattr(made, f"{side}_scales", (scales.address, *strides))


def _arrays_of_cache(made: Any, cache: str, pages: int, place: str, *, k_token_scales: Any, v_token_scales: Any,
                     k_page_scales: Any, v_page_scales: Any, k_group_scales: Any, v_group_scales: Any, k_zeros: Any,
                     v_zeros: Any) -> None:
    """Scales and zeros of a cache."""
    for side, token_scales, page_scales, group_scales, zeros in (
            ("k", k_token_scales, k_page_scales, k_group_scales, k_zeros),
            ("v", v_token_scales, v_page_scales, v_group_scales, v_zeros)):
        _scales_of_pages(made, cache, pages, side, token_scales, page_scales, group_scales, place)
        if zeros is not None:
            made.flags |= _ZERO_POINTS
            found = _group_tensor(made, side, zeros, f"{side}_zeros", _rows_of_pages(made, cache, pages), place)
            setattr(made, f"{side}_zeros", c_tensor(found))


def _copied_arrays(made: Any, place: str, first: Sequence[Extent], arrays: Mapping[str, Any]) -> None:
    """Where the scales and zeros of a cache go between equal types, by their names. `first` are the extents before the
    heads: of pages and their rows, or of rows."""
    for field, array in arrays.items():
        if array is None:
            continue
        kind = getattr(made, f"{field[0]}_scale_kind")
        if field.endswith("zeros") or kind == ScaleKind.PER_GROUP:
            tensor = _group_tensor(made, field[0], array, field, first, place)
            form = c_tensor(tensor)
        else:
            # A page's only scale stays one in pages, but goes to each of the page's rows in a gather.
            is_per_page = kind == ScaleKind.PER_PAGE and len(first) == 2
            tensor = checked(array, field, place, DType.F32, 4,
                             [*(first[:1] if is_per_page else first), exactly(made.kv_heads, "heads of k")])
            rest = (0,) if is_per_page else tensor.strides[1:-1]
            form = tensor_form(tensor.address, *(0,) * (2 - len(first)), tensor.strides[0], *rest, tensor.strides[-1], 0)
        setattr(made, field, form)


def _rotation(made: Any, rotary: Any, rotary_sin: Any, place: str) -> None:
    def table_of(array: Any, field: str, dtype: DType, *extents: Any) -> Tensor:
        table = checked(array, field, place, dtype, dtype.bytes, extents)
        if table.strides[1] != 1 and table.shape[1] > 1:
            raise InvalidArgument(f"{field} has a stride of {table.strides[1]} elements in a row; it must be 1", field)
        return table

    dtype = dtype_of_tensor(with_dimensions(rotary, "rotary", (2,)))
    table = table_of(rotary, "rotary", dtype, at_least(0, "positions"), at_least(0, "rotary_dim"))
    made.rotary, made.rotary_dim = table.address, table.shape[1]
    made.rotary_stride = table.strides[0] if table.shape[0] > 1 else table.shape[1]
    made.rotary_type = 0 if dtype == DType.F32 else dtype
    if rotary_sin is None:
        return
    made.rotary_dim *= 2
    sines = table_of(rotary_sin, "rotary_sin", dtype, at_least(table.shape[0], "positions of rotary"),
                     exactly(table.shape[1], "cosines of a position"))
    made.rotary_sin = sines.address
    if sines.strides[0] != made.rotary_stride and table.shape[0] > 1:
        raise InvalidArgument(f"rotary_sin has a stride of {sines.strides[0]} elements between positions; it must be that"
                              f" of rotary, {made.rotary_stride}", "rotary_sin")


def _step(made: Any, source: DType, place: str, *, q: Any, q_out: Any, k_tail: Any, q_tail: Any, q_norm: Any,
          k_norm: Any) -> None:
    """Q, tails and norms."""
    tokens, body = exactly(made.tokens, "tokens of k"), made.head_dim_qk - made.tail_dim

    def rows(array: Any, field: str, heads: int, what: str, dim: int) -> Any:
        return c_tensor(checked(array, field, place, source, source.bytes,
                                [tokens, exactly(heads, what), exactly(dim, "elements of a row")]))

    if k_tail is not None:
        made.k_tail = rows(k_tail, "k_tail", made.kv_heads, "heads of k", made.tail_dim)
    if q is not None:
        made.q_heads = with_dimensions(q, "q", (3,)).shape[1]
        made.q = rows(q, "q", made.q_heads, "heads of q", made.head_dim_qk if q_tail is None else body)
        made.q_out = rows(q if q_out is None else q_out, "q_out", made.q_heads, "heads of q", made.head_dim_qk)
        if q_tail is not None:
            made.q_tail = rows(q_tail, "q_tail", made.q_heads, "heads of q", made.tail_dim)
    elif q_out is not None or q_tail is not None:
        raise InvalidArgument("q is None; q_out and q_tail need it", "q")
    for field, array in (("q_norm", q_norm), ("k_norm", k_norm)):
        if array is None:
            continue
        dtype = dtype_of_tensor(with_dimensions(array, field, (1,)))
        if made.norm_type not in (0, dtype):
            raise InvalidArgument(f"{field} is of another type than q_norm", field)
        made.norm_type = dtype
        setattr(made, field, array_of(array, field, place, dtype, dtype.bytes, exactly(body, "elements of a normed row")))


def _cache_of(array: Any, field: str, place: str, given: Optional[DType], pages: Any, heads: Any,
              page_size: Any) -> Tuple[Tensor, DType, int, int, Any]:
    """A cache of K or V: its tensor, type, elements of a row and of a pack (0 without packs), and the struct's form. Without
    a given type it is that of the array."""
    many = at_least(0, "extent")
    first = [pages or many, page_size or many, heads or many]
    if given is not None and given.block[0] > 1:
        elements, size = given.block
        dim = _tensor_of_any_type(array, field, (4,)).shape[3] // size * elements
        cache, made = keys_of(array, field, place, given, first, exactly(dim, "elements of a row"))
        return cache, given, dim, 0, made
    cache = _tensor_of_any_type(array, field, (4, 5))
    dtype = dtype_of_tensor(with_dimensions(array, field, (4, 5))) if given is None else given
    checked(array, field, place, dtype, dtype.bytes, [*first, *[many] * (len(cache.shape) - 3)])
    if len(cache.shape) == 4:
        return cache, dtype, cache.shape[3], 0, c_tensor(cache)
    _one_within_a_pack(cache, field)
    made = c_tensor(dataclasses.replace(cache, shape=cache.shape[:4], strides=cache.strides[:4]))
    return cache, dtype, cache.shape[3] * cache.shape[4], cache.shape[4], made


def _given_type(cache_type: Optional[DTypeLike]) -> Optional[DType]:
    return None if cache_type is None else dtype_of(cache_type, "cache_type")


def _type_of_bytes(array: Any, field: str, given: Optional[DType]) -> Optional[DType]:
    """The type of a target: that given for the source if the array is of bytes, else None, for the array's own."""
    return given if given is not None and tensor_of(array, field).dtype in (None, DType.I8) else None


def _exact_row(field: str, dim: int, wanted: int, of: str) -> None:
    if dim != wanted:
        raise InvalidArgument(f"{field} has rows of {dim} elements; it must have {wanted}, as {of}", field)


def _same_type(field: str, dtype: DType, wanted: DType, of: str) -> None:
    if dtype != wanted:
        raise InvalidArgument(f"{field} is of {dtype.name}; it must be of {wanted.name}, as {of}", field)


def _both_or_neither(first: Any, first_field: str, second: Any, second_field: str) -> bool:
    """Whether there is a V."""
    if (first is None) != (second is None):
        given, missing = (second_field, first_field) if first is None else (first_field, second_field)
        raise InvalidArgument(f"{missing} is None, but {given} is given; it must be given too", missing)
    return first is not None


def copy_struct(place: str, k_source: Any, v_source: Any, k_target: Any, v_target: Any, *, pairs: Any, k_scale: Any,
                v_scale: Any, cache_type: Optional[DTypeLike], k_target_scales: Any, v_target_scales: Any,
                k_target_zeros: Any, v_target_zeros: Any, **source_arrays: Any) -> Any:
    """The sluice_page_copy of Context.copy's arguments."""
    made, given = _core.PageCopy(), _given_type(cache_type)
    source, made.source_type, made.head_dim_qk, made.source_k_pack, made.k_source = _cache_of(
        k_source, "k_source", place, given, None, None, None)
    made.page_size, made.kv_heads = source.shape[1], source.shape[2]
    rows, heads = exactly(made.page_size, "rows of a page of k_source"), exactly(made.kv_heads, "heads of k_source")
    # Without pairs each page goes to itself.
    to_all = exactly(source.shape[0], "pages of k_source") if pairs is None else None
    target, made.target_type, dim, made.target_k_pack, made.k_target = _cache_of(
        k_target, "k_target", place, _type_of_bytes(k_target, "k_target", given), to_all, heads, rows)
    _exact_row("k_target", dim, made.head_dim_qk, "k_source")
    if _both_or_neither(v_source, "v_source", v_target, "v_target"):
        for field, array, dtype, of, k_pages in (("v_source", v_source, made.source_type, given, source),
                                                 ("v_target", v_target, made.target_type,
                                                  _type_of_bytes(v_target, "v_target", given), target)):
            _, found, dim, pack, form = _cache_of(array, field, place, of, at_least(k_pages.shape[0], f"pages of k{field[1:]}"),
                                                  heads, rows)
            _same_type(field, found, DType(dtype), f"k{field[1:]}")
            if pack:
                raise InvalidArgument(f"{field} has 5 dimensions; it must have 4", field)
            if field == "v_target":
                _exact_row(field, dim, made.head_dim_v, "v_source")
            made.head_dim_v = dim
            setattr(made, field, form)
    else:
        made.flags |= _V_IN_K
    put_scale(made, "k_scale", k_scale, made.kv_heads, place)
    put_scale(made, "v_scale", v_scale, made.kv_heads, place)
    _arrays_of_cache(made, "k_source", source.shape[0], place, **source_arrays)
    _copied_arrays(made, place, [at_least(target.shape[0], "pages of k_target"), rows],
                   {"k_target_scales": k_target_scales, "v_target_scales": v_target_scales,
                    "k_target_zeros": k_target_zeros, "v_target_zeros": v_target_zeros})
    _pairs(made, pairs, min(source.shape[0], target.shape[0]), place)
    return made


def _pairs(made: Any, pairs: Any, pages: int, place: str) -> None:
    """Which pages are copied, of those that source and target both have."""
    made.page_count = pages
    if pairs is not None:
        numbers = tensor_of(pairs, "pairs")
        listed = checked(pairs, "pairs", place, None, 8 if numbers.itemsize == 8 else 4,
                         [at_least(0, "pairs"), exactly(2, "source and target")])
        if not has_no_gaps(listed):
            raise InvalidArgument(f"pairs has strides of {listed.strides} elements; they must have no gaps", "pairs")
        made.pairs, made.pair_count = listed.address, listed.shape[0]
        made.flags |= _PAGE_INDEX_64 if numbers.itemsize == 8 else 0
    if pages == 0 or (pairs is not None and made.pair_count == 0):
        made.pairs, made.pair_count = _NO_PAIRS, 0


def gather_struct(place: str, k_cache: Any, v_cache: Any, k_out: Any, v_out: Any, *, out_starts: Any, kv_lengths: Any,
                  page_table: Any, first_keys: Any, page_starts: Any, k_scale: Any, v_scale: Any,
                  cache_type: Optional[DTypeLike], k_out_scales: Any, v_out_scales: Any, k_out_zeros: Any, v_out_zeros: Any,
                  **cache_arrays: Any) -> Any:
    """The sluice_gather of Context.gather's arguments."""
    made, given = _core.Gather(), _given_type(cache_type)
    cache, made.cache_type, made.head_dim_qk, made.k_pack, made.k_cache = _cache_of(k_cache, "k_cache", place, given, None,
                                                                                    None, None)
    made.page_size, made.kv_heads = cache.shape[1], cache.shape[2]
    rows, heads = exactly(made.page_size, "rows of a page of k_cache"), exactly(made.kv_heads, "heads of k_cache")
    out_type = _type_of_bytes(k_out, "k_out", given) or dtype_of_tensor(with_dimensions(k_out, "k_out", (3,)))
    made.out_type, made.tokens = out_type, _tensor_of_any_type(k_out, "k_out", (3,)).shape[0]
    tokens, pages = exactly(made.tokens, "rows of k_out"), cache.shape[0]

    def rows_of(array: Any, field: str, dim: int, of: str) -> Any:
        return keys_of(array, field, place, out_type, [tokens, heads], exactly(dim, f"elements of a row of {of}"))[1]

    made.k_out = rows_of(k_out, "k_out", made.head_dim_qk, "k_cache")
    if _both_or_neither(v_cache, "v_cache", v_out, "v_out"):
        _, found, made.head_dim_v, pack, made.v_cache = _cache_of(v_cache, "v_cache", place, given,
                                                                  at_least(pages, "pages of k_cache"), heads, rows)
        _same_type("v_cache", found, DType(made.cache_type), "k_cache")
        if pack:
            raise InvalidArgument("v_cache has 5 dimensions; it must have 4", "v_cache")
        made.v_out = rows_of(v_out, "v_out", made.head_dim_v, "v_cache")
    else:
        made.flags |= _V_IN_K
    put_scale(made, "k_scale", k_scale, made.kv_heads, place)
    put_scale(made, "v_scale", v_scale, made.kv_heads, place)
    _arrays_of_cache(made, "k_cache", pages, place, **cache_arrays)
    made.page_count = pages
    _copied_arrays(made, place, [tokens], {"k_out_scales": k_out_scales, "v_out_scales": v_out_scales,
                                           "k_out_zeros": k_out_zeros, "v_out_zeros": v_out_zeros})
    made.batch = intervals(out_starts, "out_starts", "batch")
    if pages == 0 and made.tokens != 0 and made.batch != 0:
        # The library takes 0 as unknown.
        raise InvalidArgument("k_cache.shape[0] is 0; it must be at least 1 (pages)", "k_cache")
    made.out_starts = array_of(out_starts, "out_starts", place, None, 4, exactly(made.batch + 1, "batch + 1"))
    for field, array in (("kv_lengths", kv_lengths), ("first_keys", first_keys)):
        setattr(made, field, array_of(array, field, place, None, 4, at_least(made.batch, "batch")))
    _table(made, page_table, page_starts, made.batch, place)
    return made


def reference_append(k: Any, v: Any, k_cache: Any, v_cache: Any, *, slots: Any = None, starts: Any = None,
                     kv_lengths: Any = None, page_table: Any = None, page_starts: Any = None, k_scale: Any = None,
                     v_scale: Any = None, rotary: Any = None, rotary_style: RotaryStyle = RotaryStyle.HALVES,
                     positions: Optional[Any] = None, rotary_sin: Any = None, rotary_first: int = 0, q: Any = None,
                     q_out: Any = None, k_tail: Any = None, q_tail: Any = None, q_norm: Any = None, k_norm: Any = None,
                     norm_epsilon: float = 0.0, k_token_scales: Any = None, v_token_scales: Any = None,
                     k_page_scales: Any = None, v_page_scales: Any = None, cache_type: Optional[DTypeLike] = None,
                     k_group_scales: Any = None, v_group_scales: Any = None, k_zeros: Any = None,
                     v_zeros: Any = None) -> None:
    """Performs an append on the host: the reference for what a device stores, and a check of its tables. Arrays as for
    Context.append, all in host memory."""
    _core.reference_append(append_struct("host", k, v, k_cache, v_cache, slots=slots, starts=starts, kv_lengths=kv_lengths,
                                         page_table=page_table, page_starts=page_starts, k_scale=k_scale, v_scale=v_scale,
                                         rotary=rotary, rotary_style=rotary_style, positions=positions, rotary_sin=rotary_sin,
                                         rotary_first=rotary_first, q=q, q_out=q_out, k_tail=k_tail, q_tail=q_tail,
                                         q_norm=q_norm, k_norm=k_norm, norm_epsilon=norm_epsilon,
                                         k_token_scales=k_token_scales, v_token_scales=v_token_scales,
                                         k_page_scales=k_page_scales, v_page_scales=v_page_scales, cache_type=cache_type,
                                         k_group_scales=k_group_scales, v_group_scales=v_group_scales, k_zeros=k_zeros,
                                         v_zeros=v_zeros))


def reference_copy(k_source: Any, v_source: Any, k_target: Any, v_target: Any, *, pairs: Any = None, k_scale: Any = None,
                   v_scale: Any = None, k_token_scales: Any = None, v_token_scales: Any = None, k_page_scales: Any = None,
                   v_page_scales: Any = None, cache_type: Optional[DTypeLike] = None, k_group_scales: Any = None,
                   v_group_scales: Any = None, k_zeros: Any = None, v_zeros: Any = None, k_target_scales: Any = None,
                   v_target_scales: Any = None, k_target_zeros: Any = None, v_target_zeros: Any = None) -> None:
    """Copies pages on the host: the reference for what a device stores. Arrays as for Context.copy, all in host memory."""
    _core.reference_copy(copy_struct("host", k_source, v_source, k_target, v_target, pairs=pairs, k_scale=k_scale,
                                     v_scale=v_scale, k_token_scales=k_token_scales, v_token_scales=v_token_scales,
                                     k_page_scales=k_page_scales, v_page_scales=v_page_scales, cache_type=cache_type,
                                     k_group_scales=k_group_scales, v_group_scales=v_group_scales, k_zeros=k_zeros,
                                     v_zeros=v_zeros, k_target_scales=k_target_scales, v_target_scales=v_target_scales,
                                     k_target_zeros=k_target_zeros, v_target_zeros=v_target_zeros))


def reference_gather(k_cache: Any, v_cache: Any, k_out: Any, v_out: Any, *, out_starts: Any, kv_lengths: Any,
                     page_table: Any, first_keys: Any = None, page_starts: Any = None, k_scale: Any = None,
                     v_scale: Any = None, k_token_scales: Any = None, v_token_scales: Any = None,
                     k_page_scales: Any = None, v_page_scales: Any = None, cache_type: Optional[DTypeLike] = None,
                     k_group_scales: Any = None, v_group_scales: Any = None, k_zeros: Any = None, v_zeros: Any = None,
                     k_out_scales: Any = None, v_out_scales: Any = None, k_out_zeros: Any = None,
                     v_out_zeros: Any = None) -> None:
    """Gathers keys on the host: the reference for what a device stores. Arrays as for Context.gather, all in host
    memory. The page table must have all entries that lengths lead to."""
    _core.reference_gather(gather_struct("host", k_cache, v_cache, k_out, v_out, out_starts=out_starts,
                                         kv_lengths=kv_lengths, page_table=page_table, first_keys=first_keys,
                                         page_starts=page_starts, k_scale=k_scale, v_scale=v_scale,
                                         k_token_scales=k_token_scales, v_token_scales=v_token_scales,
                                         k_page_scales=k_page_scales, v_page_scales=v_page_scales, cache_type=cache_type,
                                         k_group_scales=k_group_scales, v_group_scales=v_group_scales, k_zeros=k_zeros,
                                         v_zeros=v_zeros, k_out_scales=k_out_scales, v_out_scales=v_out_scales,
                                         k_out_zeros=k_out_zeros, v_out_zeros=v_out_zeros))
