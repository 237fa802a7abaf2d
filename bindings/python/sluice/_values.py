"""Values of the element types as numpy arrays."""

from __future__ import annotations

import functools
from typing import Any, Optional

import numpy

from ._enums import DType
from ._errors import InvalidArgument

# (exponent bits, mantissa bits, bias, whether the exponent of all ones is for infinity and NaN, largest value)
_FP8 = {
    DType.E4M3FNUZ: (4, 3, 8, False, 240.0),
    DType.E4M3FN: (4, 3, 7, False, 448.0),
    DType.E5M2FNUZ: (5, 2, 16, False, 57344.0),
    DType.E5M2: (5, 2, 15, True, 57344.0),
}


@functools.lru_cache(maxsize=None)
def _fp8_values(dtype: DType) -> "numpy.ndarray":
    """The value of each of the 256 bytes."""
    _, mantissa_bits, bias, has_infinity, largest = _FP8[dtype]
    codes = numpy.arange(256)
    exponent, mantissa = (codes & 127) >> mantissa_bits, codes & (1 << mantissa_bits) - 1
    steps = numpy.where(exponent == 0, mantissa, mantissa + (1 << mantissa_bits)).astype(numpy.float64)
    values = steps * 2.0 ** (numpy.maximum(exponent, 1) - bias - mantissa_bits)
    if has_infinity:
        values[values > largest] = numpy.nan
        values[(codes & 127) == 0x7c] = numpy.inf
    else:
        values[values > largest] = numpy.nan
    values = numpy.where(codes & 128, -values, values)
    if dtype in (DType.E4M3FNUZ, DType.E5M2FNUZ):
        values[128] = numpy.nan
    result: "numpy.ndarray" = values.astype(numpy.float32)
    return result


def _to_fp8(values: "numpy.ndarray", dtype: DType) -> "numpy.ndarray":
    """Rounds to nearest even, and limits to the largest finite value; NaN stays NaN."""
    table = _fp8_values(dtype)[:128]
    codes = numpy.flatnonzero(numpy.isfinite(table))
    finite = table[codes].astype(numpy.float64)
    magnitude = numpy.minimum(numpy.abs(values.astype(numpy.float64)), finite[-1])
    above = numpy.clip(numpy.searchsorted(finite, magnitude), 1, len(finite) - 1)
    low, high = finite[above - 1], finite[above]
    up = (magnitude - low > high - magnitude) | ((magnitude - low == high - magnitude) & (codes[above] % 2 == 0))
    found = numpy.where(up, codes[above], codes[above - 1]).astype(numpy.uint8)
    is_fnuz = dtype in (DType.E4M3FNUZ, DType.E5M2FNUZ)
    negative = numpy.signbit(values) & ~((found == 0) & is_fnuz)
    found = numpy.where(negative, found | 128, found).astype(numpy.uint8)
    nan = 128 if is_fnuz else 127
    result: "numpy.ndarray" = numpy.where(numpy.isnan(values), nan, found).astype(numpy.uint8)
    return result


def bits_of(values: Any, dtype: Optional[DType], numpy_type: str) -> "numpy.ndarray":
    """Stored form of values, rounded to nearest even; NaN stays NaN."""
    array = numpy.asarray(values)
    if dtype is None:
        if array.dtype.kind not in "iub":
            raise InvalidArgument(f"values are of type {array.dtype}; integers are wanted", "values")
        return array.astype(numpy_type)
    if array.dtype.kind != "f":
        array = array.astype(numpy.float32)  # integers, and the types of ml_dtypes
    if dtype == DType.BF16:
        as_is = array.astype(numpy.float32).view(numpy.uint32)
        rounded = ((as_is + 0x7fff + ((as_is >> 16) & 1)) >> 16).astype(numpy.uint16)
        rounded[numpy.isnan(array)] = 0x7fc0
        return rounded
    if dtype in _FP8:
        return _to_fp8(array, dtype)
    if dtype == DType.I8:
        return numpy.clip(numpy.rint(array), -128, 127).astype(numpy_type)
    with numpy.errstate(over="ignore"):
        return array.astype(numpy_type)


def values_of(bits: "numpy.ndarray", dtype: Optional[DType]) -> "numpy.ndarray":
    """Values of their stored form."""
    if dtype == DType.BF16:
        return (bits.astype(numpy.uint32) << 16).view(numpy.float32)
    if dtype in _FP8:
        found: "numpy.ndarray" = _fp8_values(dtype)[bits]
        return found
    return bits
