"""What the element types of _enums.py have besides their numbers."""

from __future__ import annotations

import enum
import functools
from typing import Tuple

from ._errors import InvalidArgument


class Elements(enum.IntEnum):
    """An element type. Arrays of types without bytes per element, U4, Q8_0 and Q4_0, have bytes: those of whole rows."""

    @functools.cached_property
    def block(self) -> Tuple[int, int]:
        """How many elements are stored together, and their bytes: one element for most types."""
        return {"U4": (2, 1), "Q8_0": (32, 34), "Q4_0": (32, 18)}.get(self.name) or (1, self.bytes)

    @functools.cached_property
    def bytes(self) -> int:
        """Size of an element."""
        if self.name in ("U4", "Q8_0", "Q4_0"):
            raise InvalidArgument(f"dtype is {self.name}, whose elements have no bytes of their own; arrays of it are of"
                                  " bytes, uint8", "dtype")
        return {"F16": 2, "BF16": 2, "F32": 4}.get(self.name, 1)
