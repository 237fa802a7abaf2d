"""Element types by their names."""

from __future__ import annotations

from typing import Any, Union

from ._enums import DType
from ._errors import InvalidArgument

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
