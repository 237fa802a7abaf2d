"""Merges of partial results: makes their struct from arrays."""

from __future__ import annotations

import dataclasses
from typing import Any, List, Optional, Tuple

from . import _core
from ._call import array_of, c_tensor, checked, exactly
from ._enums import DType, Lse, MergeFlag
from ._errors import InvalidArgument
from ._kv import dtype_of_tensor, scale_of, tensor_form, with_dimensions
from ._problem import put
from ._tensor import Tensor, tensor_of


def _parts_of(arrays: Any, field: str) -> Tuple[Any, Optional[int]]:
    """The array of a list's first part, and the number of parts; or all parts in one array, and None."""
    if not isinstance(arrays, (list, tuple)):
        return arrays, None
    if not arrays:
        raise InvalidArgument(f"{field} is empty; it must have at least one part", field)
    return arrays[0], len(arrays)


def _same_places(one: Tensor, other: Tensor) -> bool:
    """Whether elements of equal indices are as far from the first; the strides of extents of 1 have no effect."""
    return all(extent <= 1 or step == its for extent, step, its in zip(one.shape, one.strides, other.strides))


def merge_struct(place: str, partial: Any, partial_lse: Any, o: Any, *, lse: Any, sink_logits: Any, lse_base: Lse,
                 infinity_is_empty: bool, o_scale: Any) -> Tuple[Any, List[int], List[int]]:
    """The sluice_merge of Context.merge's arguments, and the addresses of parts in lists."""
    made = _core.MergeArgs()
    made.flags = MergeFlag.INFINITY_IS_EMPTY if infinity_is_empty else 0
    one, listed = _parts_of(partial, "partial")
    one_lse, listed_lse = _parts_of(partial_lse, "partial_lse")
    if listed != listed_lse:
        raise InvalidArgument(f"partial_lse has {listed_lse or 'no'} parts in a list, and partial {listed or 'none'}; both"
                              " must have as many", "partial_lse")
    # A list's arrays lack the dimension of parts.
    before = 0 if listed is not None else 1
    parts, result = with_dimensions(one, "partial", (3 + before,)), with_dimensions(o, "o", (3,))
    made.tokens, made.heads, made.head_dim = parts.shape[before:]
    made.parts.count = parts.shape[0] if listed is None else listed
    made.parts.type, made.o_format.type = dtype_of_tensor(parts), dtype_of_tensor(result)
    put(made, "lse_base", lse_base)
    tokens, heads = exactly(made.tokens, "tokens of partial"), exactly(made.heads, "heads of partial")
    dim = exactly(made.head_dim, "elements of partial")
    part_extents = [exactly(made.parts.count, "parts of partial")] * before

    def tensor(array: Any, field: str, dtype: DType, *extents: Any) -> Tensor:
        return checked(array, field, place, dtype, dtype.bytes, extents)

    def lse_tensor(array: Any, field: str, first: List[Any]) -> Tuple[Tensor, int]:
        """LSEs [tokens, heads], or [sequences, tokens of each, heads]; and the stride of a sequence."""
        shape = tensor_of(array, field).shape
        if len(shape) != len(first) + 3:
            found = tensor(array, field, DType.F32, *first, tokens, heads)
            return found, made.sequence_tokens * found.strides[len(first)] if made.tokens > made.sequence_tokens else 0
        sequences, each = shape[len(first):len(first) + 2]
        if sequences * each != made.tokens or made.sequence_tokens not in (0, each):
            raise InvalidArgument(f"{field} has {sequences} sequences of {each} tokens; there must be {made.tokens} tokens, in"
                                  " sequences that are as long in partial_lse and lse", field)
        found = tensor(array, field, DType.F32, *first, exactly(sequences, "sequences"), exactly(each, "tokens"), heads)
        made.sequence_tokens = each
        at = len(first)
        shorter = dataclasses.replace(found, shape=found.shape[:at] + found.shape[at + 1:],
                                      strides=found.strides[:at] + found.strides[at + 1:])
        return shorter, found.strides[at] if sequences > 1 else 0

    first = tensor(one, "partial", dtype_of_tensor(parts), *part_extents, tokens, heads, dim)
    made.parts.o = c_tensor(first)
    if lse is not None and len(tensor_of(lse, "lse").shape) == 3:
        made.sequence_tokens = tensor_of(lse, "lse").shape[1]
    lses, made.parts.lse_sequence_stride = lse_tensor(one_lse, "partial_lse", part_extents)
    made.parts.lse = tensor_form(lses.address, *[0] * (1 - before), *lses.strides, 0)
    made.o = c_tensor(tensor(o, "o", dtype_of_tensor(result), tokens, heads, dim))
    if lse is not None:
        found, made.lse_sequence_stride = lse_tensor(lse, "lse", [])
        made.lse = tensor_form(found.address, 0, *found.strides, 0)
    made.sinks = array_of(sink_logits, "sink_logits", place, DType.F32, 4, heads)
    made.o_format.scale_kind, made.o_scale = scale_of("o_scale", o_scale, made.heads, place)
    if listed is None:
        return made, [], []
    addresses: List[List[int]] = [[], []]
    for i, (part, part_lse) in enumerate(zip(partial, partial_lse)):
        rows = tensor(part, f"partial[{i}]", dtype_of_tensor(parts), tokens, heads, dim)
        lse_rows, sequence = lse_tensor(part_lse, f"partial_lse[{i}]", [])
        for field, is_like in ((f"partial[{i}]", _same_places(rows, first)),
                               (f"partial_lse[{i}]", _same_places(lse_rows, lses) and
                                sequence == made.parts.lse_sequence_stride)):
            if not is_like:
                raise InvalidArgument(f"{field} has other strides than the first part; they must be the same", field)
        addresses[0].append(rows.address)
        addresses[1].append(lse_rows.address)
    for field in ("o", "lse"):
        setattr(made.parts, field, (0, 0, *getattr(made.parts, field)[2:]))
    return made, addresses[0], addresses[1]
