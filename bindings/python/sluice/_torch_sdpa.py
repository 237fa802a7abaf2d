"""The shapes of torch's scaled_dot_product_attention: any leading dimensions, broadcast."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch

from ._errors import InvalidArgument
from ._torch_checks import FLOATS, VALUES


def packed_bits(mask: torch.Tensor) -> torch.Tensor:
    """Bit j % 8 of byte j / 8 for key j."""
    keys = mask.shape[-1]
    padded = torch.nn.functional.pad(mask.to(torch.uint8), (0, -keys % 8))
    weights = torch.tensor([1 << bit for bit in range(8)], dtype=torch.uint8, device=mask.device)
    packed: torch.Tensor = (padded.reshape(*padded.shape[:-1], (keys + 7) // 8, 8) * weights).sum(-1, dtype=torch.uint8)
    return packed


class Operands(NamedTuple):
    """A call as [batch, heads, tokens, dim]."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    before: Tuple[int, ...]
    """The dimensions before the heads."""
    heads: int
    shape: Tuple[int, ...]
    """Of the result."""

    def is_empty(self) -> bool:
        """Whether the result has no element that an operator could compute."""
        return self.heads == 0 or self.v.shape[3] == 0


def _check(tensor: torch.Tensor, name: str) -> None:
    if tensor.dtype not in VALUES:
        raise InvalidArgument(f"{name} is of {tensor.dtype}; it must be of {' or '.join(map(str, VALUES))}", name)
    if tensor.dim() < 2:
        raise InvalidArgument(f"{name} has {tensor.dim()} dimensions; it must have at least 2 (tokens, dim)", name)


def _same(name: str, tensor: torch.Tensor, dim: int, other: str, wanted: int) -> None:
    if tensor.shape[dim] != wanted:
        raise InvalidArgument(f"{name}.shape[{dim}] is {tensor.shape[dim]}; it must be {wanted}, as {other}", name)


def _broadcast(shapes: Dict[str, Sequence[int]]) -> Tuple[int, ...]:
    """The shape that all are broadcast to: dimensions before the last three."""
    made: List[int] = []
    for i in range(-max(len(shape) for shape in shapes.values()), 0):
        extent, owner = 1, ""
        for name, shape in shapes.items():
            if len(shape) < -i or shape[i] == 1:
                continue
            if owner and shape[i] != extent:
                raise InvalidArgument(f"{name}.shape[{i - 3}] is {shape[i]}; it must be {extent} or 1, as in {owner}", name)
            extent, owner = shape[i], name
        made.append(extent)
    return tuple(made)


def _heads(tensor: torch.Tensor) -> int:
    return tensor.shape[-3] if tensor.dim() > 2 else 1


def _whole(tensor: torch.Tensor, before: Tuple[int, ...], heads: int) -> torch.Tensor:
    """[batch, heads, tokens, dim]; views where torch can make them."""
    batch = 1
    for extent in before:
        batch *= extent
    rows, dim = tensor.shape[-2:]
    if tensor.dim() == 2:
        tensor = tensor.unsqueeze(0)
    return tensor.expand(*before, heads, rows, dim).reshape(batch, heads, rows, dim)


def _kv_heads(q_heads: int, key: torch.Tensor, value: torch.Tensor) -> None:
    for name, heads in (("key", _heads(key)), ("value", _heads(value))):
        if heads == 0 or q_heads % heads != 0:
            raise InvalidArgument(f"{name} has {heads} heads and query {q_heads}; with enable_gqa query's must be a multiple"
                                  " of it", name)


def operands(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, enable_gqa: bool) -> Operands:
    """A call that is checked and broadcast."""
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        _check(tensor, name)
    if query.shape[-1] == 0:
        raise InvalidArgument("query.shape[-1] is 0; it must be at least 1 (dim)", "query")
    _same("key", key, -1, "query's", query.shape[-1])
    _same("value", value, -2, "key's", key.shape[-2])
    before = _broadcast({"query": query.shape[:-3], "key": key.shape[:-3], "value": value.shape[:-3]})
    heads, k_heads, v_heads = _heads(query), _heads(key), _heads(value)
    if enable_gqa and heads != 0:
        _kv_heads(heads, key, value)
        if k_heads != v_heads:  # each has groups of its own
            key, value = (x.repeat_interleave(heads // _heads(x), -3) if x.dim() > 2 else x for x in (key, value))
            k_heads = v_heads = heads
    else:
        for name, its in (("key", k_heads), ("value", v_heads)):
            if its != heads and its != 1 and heads != 1:
                raise InvalidArgument(f"{name} has {its} heads and query {heads}; without enable_gqa they must be equal or 1",
                                      name)
            heads = its if heads == 1 else heads
        # One head of K and V serves all.
        k_heads = v_heads = 1 if k_heads == 1 and v_heads == 1 else heads
    has_heads = max(query.dim(), key.dim(), value.dim()) > 2
    shape = (*before, *((heads,) if has_heads else ()), query.shape[-2], value.shape[-1])
    return Operands(_whole(query, before, heads), _whole(key, before, k_heads), _whole(value, before, v_heads), before, heads,
                    shape)


def mask_of(mask: Optional[torch.Tensor], call: Operands) -> Tuple[Optional[torch.Tensor], Optional[torch.Tensor]]:
    """(bias, packed mask) of a mask that is broadcast to the call's scores."""
    if mask is None:
        return None, None
    if mask.dtype != torch.bool and mask.dtype not in FLOATS:
        raise InvalidArgument(f"attn_mask is of {mask.dtype}; it must be of torch.bool or {' or '.join(map(str, FLOATS))}",
                              "attn_mask")
    rows, keys = call.q.shape[2], call.k.shape[2]
    scores = (*call.before, call.heads, rows, keys)
    if mask.dim() > len(scores):
        raise InvalidArgument(f"attn_mask has {mask.dim()} dimensions; it must have at most {len(scores)}", "attn_mask")
    for i in range(-mask.dim(), 0):
        if mask.shape[i] != scores[i] and mask.shape[i] != 1:
            raise InvalidArgument(f"attn_mask.shape[{i}] is {mask.shape[i]}; it must be {scores[i]} or 1", "attn_mask")
    whole = mask[(None,) * (len(scores) - mask.dim())]
    mask_heads = whole.shape[-3]
    if any(extent != 1 for extent in whole.shape[:-3]):
        whole = whole.expand(*call.before, mask_heads, rows, keys).reshape(call.q.shape[0], mask_heads, rows, keys)
    else:
        whole = whole.expand(*whole.shape[:-2], rows, keys).reshape(1, mask_heads, rows, keys)
    if mask.dtype == torch.bool:
        return None, packed_bits(whole)
    return whole if whole.stride(-1) in (0, 1) else whole.contiguous(), None
