"""The enumerations of sluice.h."""

from __future__ import annotations

import enum
from typing import Any, Tuple, Union

from ._errors import InvalidArgument


class DType(enum.IntEnum):
    """Element types. The FP8 encodings are different types: FNUZ is CDNA3's, the other two are OCP's."""

    F16 = 1
    BF16 = 2
    F32 = 3
    E4M3FNUZ = 4
    E4M3FN = 5
    E5M2FNUZ = 6
    E5M2 = 7
    I8 = 8
    U4 = 9
    """4 bits with scales per group. Arrays of this type and of the next two have bytes, those of whole rows."""
    Q8_0 = 10
    """ggml's blocks of 32 numbers of 8 bits with a scale."""
    Q4_0 = 11
    """ggml's blocks of 32 numbers of 4 bits with a scale."""

    @property
    def block(self) -> Tuple[int, int]:
        """How many elements are stored together, and their bytes: one element for most types."""
        return {DType.U4: (2, 1), DType.Q8_0: (32, 34), DType.Q4_0: (32, 18)}.get(self) or (1, self.bytes)

    @property
    def bytes(self) -> int:
        """Size of an element."""
        if self in (DType.U4, DType.Q8_0, DType.Q4_0):
            raise InvalidArgument(f"dtype is {self.name}, whose elements have no bytes of their own; arrays of it are of"
                                  " bytes, uint8", "dtype")
        return {DType.F16: 2, DType.BF16: 2, DType.F32: 4}.get(self, 1)


class Mode(enum.IntEnum):
    """Layout of sequences in memory."""

    DENSE = 0
    RAGGED = 1
    PAGED = 2


class MaskAlignment(enum.IntEnum):
    """Where the diagonal of the mask is."""

    BOTTOM_RIGHT = 0
    TOP_LEFT = 1
    GIVEN_DIAGONAL = 2


V_PACK_ALL = 1 << 30
"""For Problem.v_pack: all tokens of a page, or of a sequence without pages, are one pack."""


class ScaleKind(enum.IntEnum):
    """Granularity of the scales that values are multiplied with. Q and O: NONE, PER_TENSOR, PER_HEAD."""

    NONE = 0
    PER_TENSOR = 1
    PER_HEAD = 2
    PER_TOKEN = 3
    PER_PAGE = 4
    PER_GROUP = 5


class PageTableKind(enum.IntEnum):
    """How a paged KV cache names its pages."""

    NONE = 0
    BLOCK = 1
    CSR = 2


class LseBase(enum.IntEnum):
    """Base of the logarithm in LSE."""

    E = 0
    TWO = 1


class Determinism(enum.IntEnum):
    """What may influence the bits of a result."""

    FAST = 0
    BATCH_INVARIANT = 1


class RotaryStyle(enum.IntEnum):
    """Which elements of a row of K a rotation pairs."""

    HALVES = 0
    PAIRS = 1


DTypeLike = Union[DType, str, Any]

# By their names in numpy, torch, ml_dtypes and sluice.
_DTYPES = {
    "f16": DType.F16, "float16": DType.F16, "half": DType.F16,
    "bf16": DType.BF16, "bfloat16": DType.BF16,
    "f32": DType.F32, "float32": DType.F32, "float": DType.F32,
    "e4m3fnuz": DType.E4M3FNUZ, "float8_e4m3fnuz": DType.E4M3FNUZ,
    "e4m3fn": DType.E4M3FN, "float8_e4m3fn": DType.E4M3FN,
    "e5m2fnuz": DType.E5M2FNUZ, "float8_e5m2fnuz": DType.E5M2FNUZ,
    "e5m2": DType.E5M2, "float8_e5m2": DType.E5M2, "i8": DType.I8, "int8": DType.I8,
    "u4": DType.U4, "q8_0": DType.Q8_0, "q4_0": DType.Q4_0,
}


def dtype_of(value: DTypeLike, field: str = "dtype") -> DType:
    """The DType of a DType, a name, or a numpy or torch type."""
    if isinstance(value, int):
        try:
            return DType(value)
        except ValueError:
            pass
    found = _DTYPES.get(str(value).rsplit(".", 1)[-1].lower())
    if found is None and hasattr(value, "name"):
        found = _DTYPES.get(str(value.name).lower())
    if found is None:
        raise InvalidArgument(f"{field} is {value!r}; it must be one of {', '.join(t.name for t in DType)}", field)
    return found
