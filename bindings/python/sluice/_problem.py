"""A class of attention calls."""

from __future__ import annotations

import dataclasses
import functools
import operator
from typing import Any, Mapping, Optional

from . import _core
from ._enums import (AttentionFlag, DType, KvFlag, Lse, MaskAlignment, MaskFlag, PageTableKind, ScaleKind, ScoresFlag)
from ._errors import InvalidArgument
from ._types import DTypeLike, dtype_of

# Fields of Problem by the flags that they stand for.
_KV_FLAGS = {"v_in_k": KvFlag.V_IN_K, "page_index_64": KvFlag.PAGE_INDEX_64}
_MASK_FLAGS = {"causal": MaskFlag.CAUSAL, "causal_by_sequence": MaskFlag.CAUSAL_BY_SEQUENCE, "bool_mask": MaskFlag.BITS,
               "mask_new_rows": MaskFlag.BITS_OF_NEW, "spans": MaskFlag.SPANS,
               "missing_pages_hidden": MaskFlag.MISSING_PAGES}
_SCORES_FLAGS = {"alibi": ScoresFlag.ALIBI, "sink_logits": ScoresFlag.SINK, "bias_scale": ScoresFlag.BIAS_SCALE}
_FLAGS = {"shared_prefix": AttentionFlag.PREFIXES, "padded_rows": AttentionFlag.PADDED_ROWS,
          "ragged": AttentionFlag.RAGGED, "batch_invariant": AttentionFlag.BATCH_INVARIANT}
# Members of sluice_bounds by the fields that have their numbers.
_BOUNDS = {"batch": "max_batch", "q_len": "max_q_len", "kv_len": "max_kv_len", "groups": "max_prefixes",
           "group_keys": "max_prefix_len", "q_rows": "max_q_tokens"}


def put(struct: Any, member: str, value: Any, field: Optional[str] = None) -> None:
    """Sets a member; a value that it cannot hold is refused by the name of the caller's argument."""
    try:
        setattr(struct, member, value)
    except TypeError:
        kind = "number" if isinstance(getattr(struct, member), float) else "integer"
        name = field or member
        raise InvalidArgument(f"{name} is {value!r}; it must be a {kind} of the library's struct", name) from None


@dataclasses.dataclass(frozen=True)
class Problem:
    """Everything that selects a kernel, and nothing that changes from call to call: sluice_attention and what it leads to.

    sluice/attention.h has the numerical contract and the rules. Types may be given as DType, as names ("bf16"), or as numpy
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
    ragged: bool = False
    """Sequences follow one another: q, o, and k and v unless in pages, have starts."""

    causal: bool = False
    lse: Lse = Lse.NONE
    """Whether the logarithm of the denominator is written, and to which base."""
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
    """Tokens per page; 0: K and V are not in pages."""
    page_table_kind: PageTableKind = PageTableKind.NONE
    k_pack: int = 0
    batch_invariant: bool = False
    """Results of a row do not depend on the other rows and sequences of the call."""

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
    """Tokens per pack of V by columns, where the tokens of a column are neighbours, or PACK_ALL; 0: V is by rows."""

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

    def _flags(self, names: Mapping[str, int]) -> int:
        return functools.reduce(operator.or_, (int(bit) for name, bit in names.items() if getattr(self, name)), 0)

    def _format(self, struct: Any, side: str, pack: int = 0) -> None:
        struct.type = getattr(self, f"{side}_type")
        put(struct, "scale_kind", getattr(self, f"{side}_scale_kind"), f"{side}_scale_kind")
        put(struct, "pack", pack, f"{side}_pack")
        if struct.scale_kind == ScaleKind.PER_GROUP:
            self._groups(struct)

    def _groups(self, struct: Any) -> None:
        put(struct, "scale_group", self.scale_group)
        struct.zero_points = int(self.zero_points)

    @functools.cached_property
    def _kv(self) -> Any:
        """The sluice_kv_format."""
        made = _core.KvFormat()
        made.flags = self._flags(_KV_FLAGS)
        for field in ("kv_heads", "head_dim_qk", "head_dim_v", "page_size"):
            put(made, field, getattr(self, field))
        put(made, "page_table", self.page_table_kind, "page_table_kind")
        self._format(made.k, "k", self.k_pack)
        if not self.v_in_k:
            self._format(made.v, "v", self.v_pack)
        if ScaleKind.PER_GROUP not in (made.k.scale_kind, made.v.scale_kind):
            self._groups(made.k)  # The library refuses groups that no scales are for.
        return made

    @functools.cached_property
    def _mask(self) -> Any:
        """The sluice_mask, or None if every key is visible."""
        made = _core.Mask()
        made.flags = self._flags(_MASK_FLAGS)
        for field, flag in (("window_left", MaskFlag.WINDOW_LEFT), ("window_right", MaskFlag.WINDOW_RIGHT)):
            if getattr(self, field) is not None:
                made.flags |= flag
                put(made, field, getattr(self, field))
        put(made, "alignment", self.mask_alignment, "mask_alignment")
        put(made, "sink_tokens", self.sink_tokens)
        return made if made.flags or made.alignment or made.sink_tokens else None

    @functools.cached_property
    def _scores(self) -> Any:
        """The sluice_scores, or None if scores stay as they are."""
        made = _core.Scores()
        made.flags = self._flags(_SCORES_FLAGS)
        put(made, "soft_cap", self.soft_cap)
        made.bias_type = 0 if self.bias_type is None else type_of(self, "bias_type")
        return made if made.flags or made.soft_cap or made.bias_type else None

    @functools.cached_property
    def _c(self) -> Any:
        """The sluice_attention, which plans and calls only read."""
        made = _core.Attention()
        made.flags = self._flags(_FLAGS)
        put(made, "q_heads", self.q_heads)
        put(made, "lse", self.lse)
        self._format(made.q, "q")
        self._format(made.o, "o")
        made.kv, made.mask, made.scores = self._kv, self._mask, self._scores
        for member, field in _BOUNDS.items():
            put(made.bounds, member, getattr(self, field), field)
        put(made, "workspace_ceiling_bytes", self.workspace_ceiling_bytes)
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
