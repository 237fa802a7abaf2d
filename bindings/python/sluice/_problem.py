"""A class of attention calls."""

from __future__ import annotations

import dataclasses
from typing import Any, Optional

from . import _core
from ._errors import InvalidArgument
from ._types import (DType, DTypeLike, Determinism, LseBase, MaskAlignment, Mode, PageTableKind, ScaleKind, dtype_of)

_FLAGS = {
    "causal": 1 << 0,
    "write_lse": 1 << 1,
    "alibi": 1 << 4,
    "sink_logits": 1 << 5,
    "bool_mask": 1 << 6,
    "page_index_64": 1 << 7,
    "v_in_k": 1 << 8,
    "mask_new_rows": 1 << 9,
    "spans": 1 << 11,
    "causal_by_sequence": 1 << 12,
    "bias_scale": 1 << 14,
    "shared_prefix": 1 << 10,
    "zero_points": 1 << 13,
    "missing_pages_hidden": 1 << 15,
    "padded_rows": 1 << 16,
}
_HAS_WINDOW_LEFT, _HAS_WINDOW_RIGHT = 1 << 2, 1 << 3


def put(struct: Any, field: str, value: Any) -> None:
    """Sets a member; a value that it cannot hold is refused by its name."""
    try:
        setattr(struct, field, value)
    except TypeError:
        kind = "number" if isinstance(getattr(struct, field), float) else "integer"
        raise InvalidArgument(f"{field} is {value!r}; it must be a {kind} of the library's struct", field) from None


@dataclasses.dataclass(frozen=True)
class Problem:
    """Everything that selects a kernel, and nothing that changes from call to call: sluice_problem.

    sluice.h has the numerical contract and the rules. Types may be given as DType, as names ("bf16"), or as numpy
    or torch types. k_type and o_type default to q_type, v_type to k_type, and head_dim_v to head_dim_qk.
    """

    q_type: DTypeLike
    q_heads: int
    kv_heads: int
    head_dim_qk: int
    head_dim_v: Optional[int] = None
    k_type: Optional[DTypeLike] = None
    v_type: Optional[DTypeLike] = None
    o_type: Optional[DTypeLike] = None
    mode: Mode = Mode.DENSE

    causal: bool = False
    write_lse: bool = False
    alibi: bool = False
    sink_logits: bool = False
    bool_mask: bool = False
    page_index_64: bool = False
    v_in_k: bool = False
    mask_alignment: MaskAlignment = MaskAlignment.BOTTOM_RIGHT
    window_left: Optional[int] = None
    """Keys visible before the diagonal; None: no window on this side."""
    window_right: Optional[int] = None
    sink_tokens: int = 0
    soft_cap: float = 0.0
    bias_type: Optional[DTypeLike] = None
    q_scale_kind: ScaleKind = ScaleKind.NONE
    k_scale_kind: ScaleKind = ScaleKind.NONE
    v_scale_kind: ScaleKind = ScaleKind.NONE
    page_size: int = 0
    page_table_kind: PageTableKind = PageTableKind.NONE
    k_pack: int = 0
    lse_base: LseBase = LseBase.E
    determinism: Determinism = Determinism.FAST

    max_batch: int = 0
    """Sequences per call; 0 means unbounded, here and below. Bounds influence the kernel and fix the workspace."""
    max_q_len: int = 0
    max_kv_len: int = 0
    max_q_tokens: int = 0
    workspace_ceiling_bytes: int = 0

    mask_new_rows: bool = False
    """With bool_mask: it covers only a sequence's newest keys, as many as it has rows; those before are not masked."""
    spans: bool = False
    """Spans of keys see each other in both directions."""
    causal_by_sequence: bool = False
    """Each sequence says whether it is causal; not with causal."""
    bias_scale: bool = False
    """With bias_type: the bias is multiplied by a scale per query head."""
    missing_pages_hidden: bool = False
    """Keys of pages whose number is negative are invisible: page tables as lists with holes."""
    padded_rows: bool = False
    """Rows of q, k, v and o continue in memory to the next multiple of 8 elements, so that head dims may be any number.
    What is there is ignored in q and v, must be finite in k, and is undefined in o after a run. Arrays have whole rows."""
    o_scale_kind: ScaleKind = ScaleKind.NONE
    """Granularity of the scales that an FP8 O is divided by."""

    shared_prefix: bool = False
    """Groups of rows see a prefix of keys before their sequence's own keys; needs the bounds below and max_q_tokens."""
    max_prefixes: int = 0
    max_prefix_len: int = 0

    scale_group: int = 0
    """Elements that share a scale with PER_GROUP: 32 or 64."""
    zero_points: bool = False
    """With PER_GROUP: each group has a number to subtract; without, it is 8."""

    v_pack: int = 0
    """Tokens per pack of V by columns, where the tokens of a column are neighbours, or V_PACK_ALL; 0: V is by rows."""

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "q_type", dtype_of(self.q_type, "q_type"))
        set_field(self, "k_type", dtype_of(self.q_type if self.k_type is None else self.k_type, "k_type"))
        set_field(self, "v_type", dtype_of(self.k_type if self.v_type is None else self.v_type, "v_type"))
        set_field(self, "o_type", dtype_of(self.q_type if self.o_type is None else self.o_type, "o_type"))
        if self.bias_type is not None:
            set_field(self, "bias_type", dtype_of(self.bias_type, "bias_type"))
        if self.head_dim_v is None:
            set_field(self, "head_dim_v", self.head_dim_qk)

    def _c(self) -> Any:
        """The struct."""
        made = _core.Problem()
        for field in dataclasses.fields(self):
            name, value = field.name, getattr(self, field.name)
            if name in _FLAGS:
                made.flags |= _FLAGS[name] if value else 0
            elif value is not None:
                put(made, name, value)
        if self.window_left is not None:
            made.flags |= _HAS_WINDOW_LEFT
        if self.window_right is not None:
            made.flags |= _HAS_WINDOW_RIGHT
        return made


def checked_problem(problem: Any) -> Problem:
    if not isinstance(problem, Problem):
        raise InvalidArgument(f"problem is of type {type(problem).__name__}; it must be a Problem", "problem")
    return problem


def type_of(problem: Problem, name: str) -> DType:
    """One of the problem's types, which the constructor has made a DType."""
    value = getattr(problem, name)
    assert isinstance(value, DType)
    return value


def head_dim_v_of(problem: Problem) -> int:
    """Elements of a row of V and O, which the constructor has made a number."""
    assert problem.head_dim_v is not None
    return problem.head_dim_v
