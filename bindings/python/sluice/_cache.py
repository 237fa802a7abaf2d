"""Appends to paged caches, copies and gathers of them: makes their structs from arrays.

Everything except the caller's choices is derived from the arrays and checked against them.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Optional, Tuple

from . import _core
from ._call import array_of, at_least, c_tensor, checked, exactly, intervals, keys_of, set_pages
from ._enums import PACK_ALL, DType, KvFlag, PageTableKind, RotaryStyle, ScaleKind
from ._errors import InvalidArgument
from ._kv import Cache, arrays_of_cache, copied_arrays, dtype_of_tensor, tensor_of_any_type, with_dimensions
from ._problem import put
from ._tensor import Tensor, has_no_gaps, tensor_of
from ._types import DTypeLike, dtype_of

_NO_PAIRS = 8
"""The address of an empty list of pairs: NULL would be all pages, each to itself."""


def append_struct(place: str, k: Any, v: Any, k_cache: Any, v_cache: Any, *, slots: Any, starts: Any, kv_lengths: Any,
                  page_table: Any, page_starts: Any, k_scale: Any, v_scale: Any, rotary: Any, rotary_style: RotaryStyle,
                  positions: Any, rotary_sin: Any, rotary_first: int, q: Any, q_out: Any, k_tail: Any, q_tail: Any,
                  q_norm: Any, k_norm: Any, norm_epsilon: float, k_token_scales: Any, v_token_scales: Any, k_page_scales: Any,
                  v_page_scales: Any, cache_type: Optional[DTypeLike], k_group_scales: Any, v_group_scales: Any, k_zeros: Any,
                  v_zeros: Any) -> Any:
    """The sluice_append_args of Context.append's arguments."""
    made, cache = _core.AppendArgs(), Cache()
    form = cache.format
    rows = with_dimensions(k, "k", (3,))
    made.tokens, form.kv_heads, form.head_dim_qk = rows.shape
    made.kv = cache.kv
    made.tail_dim = 0 if k_tail is None else with_dimensions(k_tail, "k_tail", (3,)).shape[2]
    form.head_dim_qk += made.tail_dim
    source, heads = dtype_of_tensor(rows), exactly(form.kv_heads, "heads of k")
    checked(k, "k", place, source, source.bytes, [at_least(0, "tokens"), heads, at_least(0, "elements")])
    made.k, made.source_type = c_tensor(rows), source
    target = _given_type(cache_type) or dtype_of_tensor(with_dimensions(k_cache, "k_cache", (4, 5)))
    pages = _k_cache_of_append(cache, k_cache, target, place).shape[0]
    form.page_table = PageTableKind.BLOCK
    if v is None and v_cache is None:
        cache.without_v()
    else:
        v_rows = checked(v, "v", place, source, source.bytes,
                         [exactly(made.tokens, "tokens of k"), heads, at_least(0, "elements")])
        form.head_dim_v = v_rows.shape[2]
        made.v = c_tensor(v_rows)
        _v_cache_of_append(cache, v_cache, target, pages, place)
    set_pages(cache.kv, pages)
    arrays_of_cache(cache, "k_cache", pages, place, k_token_scales=k_token_scales, v_token_scales=v_token_scales,
                     k_page_scales=k_page_scales, v_page_scales=v_page_scales, k_group_scales=k_group_scales,
                     v_group_scales=v_group_scales, k_zeros=k_zeros, v_zeros=v_zeros)
    cache.put_scale("k", k_scale, place)
    cache.put_scale("v", v_scale, place)
    tokens = exactly(made.tokens, "tokens of k")
    made.slots = array_of(slots, "slots", place, None, 8, tokens)
    if starts is not None:
        batch = made.batch = intervals(starts, "starts", "batch")
        made.starts = array_of(starts, "starts", place, None, 4, exactly(batch + 1, "batch + 1"))
        made.lengths = array_of(kv_lengths, "kv_lengths", place, None, 4, at_least(batch, "batch"))
        if page_table is not None:
            cache.put_pages(made.pages, page_table, page_starts, batch, place)
    elif kv_lengths is not None or page_table is not None or page_starts is not None:
        raise InvalidArgument("starts is None; kv_lengths, page_table and page_starts need it", "starts")
    made.positions = array_of(positions, "positions", place, None, 4, tokens)
    rotation = _core.Rotation()
    put(rotation, "style", rotary_style, "rotary_style")
    put(rotation, "first", rotary_first, "rotary_first")
    if rotary is not None:
        _rotate(rotation, rotary, rotary_sin, place)
        made.rotation = rotation
    elif rotary_sin is not None:
        raise InvalidArgument("rotary is None; rotary_sin needs it", "rotary")
    _step(made, form, source, place, norm_epsilon, q=q, q_out=q_out, k_tail=k_tail, q_tail=q_tail, q_norm=q_norm,
          k_norm=k_norm)
    if pages == 0 and made.tokens != 0:
        # The library takes 0 as unknown. Rows are skipped whose page does not exist, but rows of Q are not.
        if q is not None:
            raise InvalidArgument("k_cache.shape[0] is 0; it must be at least 1 (pages) with q", "k_cache")
        made.tokens = 0
    return made


def _one_within_a_pack(cache: Tensor, field: str) -> None:
    if cache.strides[4] != 1 and cache.shape[4] > 1:
        raise InvalidArgument(f"{field} has a stride of {cache.strides[4]} elements inside a pack; it must be 1", field)


def _k_cache_of_append(cache: Cache, k_cache: Any, target: DType, place: str) -> Tensor:
    form, found = cache.format, tensor_of(k_cache, "k_cache")
    first = [at_least(0, "pages"), at_least(1, "rows of a page"), exactly(form.kv_heads, "heads of k")]
    form.k.type = target
    if len(found.shape) == 5:
        form.k.pack = found.shape[4]
        packs = exactly(form.head_dim_qk // max(form.k.pack, 1), "packs of a row of k")
        checked(k_cache, "k_cache", place, target, target.bytes, [*first, packs, at_least(1, "k_pack")])
        _one_within_a_pack(found, "k_cache")
        cache.kv.k = c_tensor(dataclasses.replace(found, shape=found.shape[:4], strides=found.strides[:4]))
    else:
        found, cache.kv.k = keys_of(k_cache, "k_cache", place, target, first,
                                    exactly(form.head_dim_qk, "elements of a row of k"))
    form.page_size = found.shape[1]
    return found


def _v_cache_of_append(cache: Cache, v_cache: Any, target: DType, pages: int, place: str) -> None:
    form, found = cache.format, tensor_of(v_cache, "v_cache")
    form.v.type = target
    heads, dim = exactly(form.kv_heads, "heads of k"), exactly(form.head_dim_v, "elements of a row of v")
    if len(found.shape) == 5:
        # [page, pack, head, column, token of the pack]
        form.v.pack = found.shape[4]
        packs = exactly(form.page_size // max(form.v.pack, 1), "packs of a page of k_cache")
        checked(v_cache, "v_cache", place, target, target.bytes,
                [at_least(pages, "pages of k_cache"), packs, heads, dim, at_least(1, "v_pack")])
        _one_within_a_pack(found, "v_cache")
        cache.kv.v = c_tensor(dataclasses.replace(found, shape=found.shape[:4], strides=found.strides[:4]))
    else:
        rows = exactly(form.page_size, "rows of a page of k_cache")
        _, cache.kv.v = keys_of(v_cache, "v_cache", place, target, [at_least(pages, "pages of k_cache"), rows, heads], dim)
        if cache.kv.v[2] == 1 and form.page_size > 1:
            form.v.pack = PACK_ALL  # neighbouring tokens are never rows


def _rotate(made: Any, rotary: Any, rotary_sin: Any, place: str) -> None:
    """Fills in the tables of a sluice_rotation."""
    def table_of(array: Any, field: str, dtype: DType, *extents: Any) -> Tensor:
        table = checked(array, field, place, dtype, dtype.bytes, extents)
        if table.strides[1] != 1 and table.shape[1] > 1:
            raise InvalidArgument(f"{field} has a stride of {table.strides[1]} elements in a row; it must be 1", field)
        return table

    dtype = dtype_of_tensor(with_dimensions(rotary, "rotary", (2,)))
    table = table_of(rotary, "rotary", dtype, at_least(0, "positions"), at_least(0, "rotary_dim"))
    made.cosines, made.dim = table.address, table.shape[1]
    made.stride = table.strides[0] if table.shape[0] > 1 else table.shape[1]
    made.type = dtype
    if rotary_sin is None:
        return
    made.dim *= 2
    sines = table_of(rotary_sin, "rotary_sin", dtype, at_least(table.shape[0], "positions of rotary"),
                     exactly(table.shape[1], "cosines of a position"))
    made.sines = sines.address
    if sines.strides[0] != made.stride and table.shape[0] > 1:
        raise InvalidArgument(f"rotary_sin has a stride of {sines.strides[0]} elements between positions; it must be that"
                              f" of rotary, {made.stride}", "rotary_sin")


def _norm(field: str, weights: Any, body: int, epsilon: float, place: str) -> Any:
    """The sluice_norm, or None."""
    made = _core.Norm()
    put(made, "epsilon", epsilon, "norm_epsilon")
    if weights is None:
        return None
    made.type = dtype = dtype_of_tensor(with_dimensions(weights, field, (1,)))
    made.weights = array_of(weights, field, place, dtype, dtype.bytes, exactly(body, "elements of a normed row"))
    return made


def _step(made: Any, form: Any, source: DType, place: str, epsilon: float, *, q: Any, q_out: Any, k_tail: Any, q_tail: Any,
          q_norm: Any, k_norm: Any) -> None:
    """Q, tails and norms."""
    tokens, body = exactly(made.tokens, "tokens of k"), form.head_dim_qk - made.tail_dim

    def rows(array: Any, field: str, heads: int, what: str, dim: int) -> Any:
        return c_tensor(checked(array, field, place, source, source.bytes,
                                [tokens, exactly(heads, what), exactly(dim, "elements of a row")]))

    if k_tail is not None:
        made.k_tail = rows(k_tail, "k_tail", form.kv_heads, "heads of k", made.tail_dim)
    norms = [_norm(field, weights, body, epsilon, place) for field, weights in (("q_norm", q_norm), ("k_norm", k_norm))]
    made.k_norm = norms[1]
    if q is None:
        if q_out is not None or q_tail is not None or q_norm is not None:
            raise InvalidArgument("q is None; q_out, q_tail and q_norm need it", "q")
        return
    new = made.q = _core.AppendQ()
    new.heads, new.norm = with_dimensions(q, "q", (3,)).shape[1], norms[0]
    new.q = rows(q, "q", new.heads, "heads of q", form.head_dim_qk if q_tail is None else body)
    new.out = rows(q if q_out is None else q_out, "q_out", new.heads, "heads of q", form.head_dim_qk)
    if q_tail is not None:
        new.tail = rows(q_tail, "q_tail", new.heads, "heads of q", made.tail_dim)


def _cache_of(array: Any, field: str, place: str, given: Optional[DType], pages: Any, heads: Any,
              page_size: Any) -> Tuple[Tensor, DType, int, int, Any]:
    """A cache of K or V: its tensor, type, elements of a row and of a pack (0 without packs), and the struct's form. Without
    a given type it is that of the array."""
    many = at_least(0, "extent")
    first = [pages or many, page_size or many, heads or many]
    if given is not None and given.block[0] > 1:
        elements, size = given.block
        dim = tensor_of_any_type(array, field, (4,)).shape[3] // size * elements
        cache, made = keys_of(array, field, place, given, first, exactly(dim, "elements of a row"))
        return cache, given, dim, 0, made
    cache = tensor_of_any_type(array, field, (4, 5))
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


def _same_type(field: str, form: Any, of: str) -> None:
    if form.v.type != form.k.type:
        raise InvalidArgument(f"{field} is of {DType(form.v.type).name}; it must be of {DType(form.k.type).name}, as {of}",
                              field)


def _both_or_neither(first: Any, first_field: str, second: Any, second_field: str) -> bool:
    """Whether there is a V."""
    if (first is None) != (second is None):
        given, missing = (second_field, first_field) if first is None else (first_field, second_field)
        raise InvalidArgument(f"{missing} is None, but {given} is given; it must be given too", missing)
    return first is not None


def copy_struct(place: str, k_source: Any, v_source: Any, k_target: Any, v_target: Any, *, pairs: Any, k_scale: Any,
                v_scale: Any, cache_type: Optional[DTypeLike], k_target_scales: Any, v_target_scales: Any,
                k_target_zeros: Any, v_target_zeros: Any, **source_arrays: Any) -> Any:
    """The sluice_copy_args of Context.copy's arguments."""
    made, given = _core.CopyArgs(), _given_type(cache_type)
    source, target = Cache(), Cache()
    made.source, made.target = source.kv, target.kv
    form = source.format
    found, form.k.type, form.head_dim_qk, form.k.pack, source.kv.k = _cache_of(k_source, "k_source", place, given, None, None,
                                                                               None)
    form.page_size, form.kv_heads = found.shape[1], found.shape[2]
    rows, heads = exactly(form.page_size, "rows of a page of k_source"), exactly(form.kv_heads, "heads of k_source")
    # Without pairs each page goes to itself.
    to_all = exactly(found.shape[0], "pages of k_source") if pairs is None else None
    to, target.format.k.type, dim, target.format.k.pack, target.kv.k = _cache_of(
        k_target, "k_target", place, _type_of_bytes(k_target, "k_target", given), to_all, heads, rows)
    _exact_row("k_target", dim, form.head_dim_qk, "k_source")
    if _both_or_neither(v_source, "v_source", v_target, "v_target"):
        for field, array, cache, of, k_pages in (("v_source", v_source, source, given, found),
                                                 ("v_target", v_target, target,
                                                  _type_of_bytes(v_target, "v_target", given), to)):
            _, cache.format.v.type, dim, pack, cache.kv.v = _cache_of(
                array, field, place, of, at_least(k_pages.shape[0], f"pages of k{field[1:]}"), heads, rows)
            _same_type(field, cache.format, f"k{field[1:]}")
            if pack:
                raise InvalidArgument(f"{field} has 5 dimensions; it must have 4", field)
            if field == "v_target":
                _exact_row(field, dim, form.head_dim_v, "v_source")
            form.head_dim_v = dim
    else:
        source.without_v()
    arrays_of_cache(source, "k_source", found.shape[0], place, **source_arrays)
    _like_source(source, target, k_scale, v_scale, place)
    target.format.page_size = form.page_size
    form.page_table = target.format.page_table = PageTableKind.BLOCK
    copied_arrays(source, target, place, [at_least(to.shape[0], "pages of k_target"), rows],
                   {"k_target_scales": k_target_scales, "v_target_scales": v_target_scales,
                    "k_target_zeros": k_target_zeros, "v_target_zeros": v_target_zeros})
    pages = min(found.shape[0], to.shape[0])
    set_pages(source.kv, pages)
    set_pages(target.kv, pages)
    _pairs(made, pairs, pages, place)
    return made


def _like_source(source: Cache, target: Cache, k_scale: Any, v_scale: Any, place: str) -> None:
    """Gives the target the heads of the source, and each the scales that it must have. Scales of tensors or heads are those
    of the side with 8 bits."""
    form = source.format
    target.format.kv_heads, target.format.head_dim_qk, target.format.head_dim_v = (
        form.kv_heads, form.head_dim_qk, form.head_dim_v)
    target.format.flags |= form.flags & KvFlag.V_IN_K
    is_to_bytes = form.k.type in (DType.F16, DType.BF16)
    for side, scale in (("k", k_scale), ("v", v_scale)):
        if scale is not None and getattr(form, side).scale_kind:
            raise InvalidArgument(f"{side}_scale and scales of tokens, pages or groups are both given", f"{side}_scale")
        (target if is_to_bytes else source).put_scale(side, scale, place)
        if form.k.type == target.format.k.type:
            other, own = getattr(target.format, side), getattr(form, side)
            other.scale_kind, other.scale_group, other.zero_points = own.scale_kind, own.scale_group, own.zero_points


def _pairs(made: Any, pairs: Any, pages: int, place: str) -> None:
    """Which pages are copied, of those that source and target both have."""
    if pairs is not None:
        numbers = tensor_of(pairs, "pairs")
        made.pairs_64 = int(numbers.itemsize == 8)
        listed = checked(pairs, "pairs", place, None, 8 if made.pairs_64 else 4,
                         [at_least(0, "pairs"), exactly(2, "source and target")])
        if not has_no_gaps(listed):
            raise InvalidArgument(f"pairs has strides of {listed.strides} elements; they must have no gaps", "pairs")
        made.pairs, made.pair_count = listed.address, listed.shape[0]
    if pages == 0 or (pairs is not None and made.pair_count == 0):
        made.pairs, made.pair_count = _NO_PAIRS, 0


def gather_struct(place: str, k_cache: Any, v_cache: Any, k_out: Any, v_out: Any, *, out_starts: Any, kv_lengths: Any,
                  page_table: Any, first_keys: Any, page_starts: Any, k_scale: Any, v_scale: Any,
                  cache_type: Optional[DTypeLike], k_out_scales: Any, v_out_scales: Any, k_out_zeros: Any, v_out_zeros: Any,
                  **cache_arrays: Any) -> Any:
    """The sluice_gather_args of Context.gather's arguments."""
    made, given = _core.GatherArgs(), _given_type(cache_type)
    source, target = Cache(), Cache()
    made.source, made.target = source.kv, target.kv
    form = source.format
    found, form.k.type, form.head_dim_qk, form.k.pack, source.kv.k = _cache_of(k_cache, "k_cache", place, given, None, None,
                                                                               None)
    form.page_size, form.kv_heads, form.page_table = found.shape[1], found.shape[2], PageTableKind.BLOCK
    rows, heads = exactly(form.page_size, "rows of a page of k_cache"), exactly(form.kv_heads, "heads of k_cache")
    out_type = _type_of_bytes(k_out, "k_out", given) or dtype_of_tensor(with_dimensions(k_out, "k_out", (3,)))
    target.format.k.type, made.tokens = out_type, tensor_of_any_type(k_out, "k_out", (3,)).shape[0]
    tokens, pages = exactly(made.tokens, "rows of k_out"), found.shape[0]

    def rows_of(array: Any, field: str, dim: int, of: str) -> Any:
        return keys_of(array, field, place, out_type, [tokens, heads], exactly(dim, f"elements of a row of {of}"))[1]

    target.kv.k = rows_of(k_out, "k_out", form.head_dim_qk, "k_cache")
    if _both_or_neither(v_cache, "v_cache", v_out, "v_out"):
        _, form.v.type, form.head_dim_v, pack, source.kv.v = _cache_of(v_cache, "v_cache", place, given,
                                                                       at_least(pages, "pages of k_cache"), heads, rows)
        _same_type("v_cache", form, "k_cache")
        if pack:
            raise InvalidArgument("v_cache has 5 dimensions; it must have 4", "v_cache")
        target.format.v.type, target.kv.v = out_type, rows_of(v_out, "v_out", form.head_dim_v, "v_cache")
    else:
        source.without_v()
    arrays_of_cache(source, "k_cache", pages, place, **cache_arrays)
    _like_source(source, target, k_scale, v_scale, place)
    for side in (target.format.k, target.format.v):
        if side.scale_kind == ScaleKind.PER_PAGE:
            side.scale_kind = ScaleKind.PER_TOKEN  # each row gets that of its page
    set_pages(source.kv, pages)
    copied_arrays(source, target, place, [tokens], {"k_out_scales": k_out_scales, "v_out_scales": v_out_scales,
                                                     "k_out_zeros": k_out_zeros, "v_out_zeros": v_out_zeros})
    made.batch = intervals(out_starts, "out_starts", "batch")
    if pages == 0 and made.tokens != 0 and made.batch != 0:
        # The library takes 0 as unknown.
        raise InvalidArgument("k_cache.shape[0] is 0; it must be at least 1 (pages)", "k_cache")
    made.starts = array_of(out_starts, "out_starts", place, None, 4, exactly(made.batch + 1, "batch + 1"))
    for member, field, array in (("lengths", "kv_lengths", kv_lengths), ("first_keys", "first_keys", first_keys)):
        setattr(made, member, array_of(array, field, place, None, 4, at_least(made.batch, "batch")))
    source.put_pages(made.pages, page_table, page_starts, made.batch, place)
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
