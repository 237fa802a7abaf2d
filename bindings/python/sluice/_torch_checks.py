"""Refusals of arguments for torch, by their names."""

from __future__ import annotations

import functools
import numbers
from typing import (Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple, Type, TypeVar, Union, cast, get_args,
                    get_origin, get_type_hints)

import torch

from ._errors import InvalidArgument

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Kind(NamedTuple):
    """What an argument may be."""

    classes: Tuple[Type[Any], ...]
    may_be_none: bool
    text: str


Window = Tuple[int, int]
# Symbolic numbers are those of graphs with dynamic shapes.
_CLASSES: Dict[Any, Tuple[Tuple[Type[Any], ...], str]] = {
    torch.Tensor: ((torch.Tensor,), "a torch.Tensor"),
    torch.dtype: ((torch.dtype,), "a torch.dtype"),
    float: ((float, int, numbers.Real, torch.SymFloat, torch.SymInt), "a number"),
    int: ((int, numbers.Integral, torch.SymInt), "an integer"),
    bool: ((bool, torch.SymBool), "True or False"),
    Window: ((tuple, list), "two integers"),
}


def kinds_of(hints: Dict[str, Any]) -> Dict[str, Kind]:
    """What arguments may be, by their annotations."""
    found: Dict[str, Kind] = {}
    for name, hint in hints.items():
        arguments = get_args(hint)
        is_optional = get_origin(hint) is Union and type(None) in arguments
        kind = next(one for one in arguments if one is not type(None)) if is_optional else hint
        classes, text = _CLASSES.get(kind) or ((kind,), f"of type {kind.__name__}")
        found[name] = Kind(classes, is_optional, text + " or None" if is_optional else text)
    return found


def check_kind(value: Any, name: str, kind: Kind) -> None:
    if value is None and kind.may_be_none:
        return
    if not isinstance(value, kind.classes):
        said = "None" if value is None else f"of type {type(value).__name__}"
        raise InvalidArgument(f"{name} is {said}; it must be {kind.text}", name)
    if isinstance(value, torch.Tensor) and value.layout != torch.strided:
        raise InvalidArgument(f"{name} has the layout {value.layout}; it must be torch.strided", name)
    if kind.text == "two integers" and (len(value) != 2 or not all(isinstance(x, (int, torch.SymInt)) for x in value)):
        raise InvalidArgument(f"{name} is {value!r}; it must be {kind.text}", name)


def named_arguments(function: _Function) -> _Function:
    """A function whose arguments are checked against their annotations before it runs."""
    hints = get_type_hints(function)
    hints.pop("return")
    kinds = kinds_of(hints)
    names = tuple(kinds)

    @functools.wraps(function)
    def checked(*arguments: Any, **named: Any) -> Any:
        for name, value in zip(names, arguments):
            check_kind(value, name, kinds[name])
        for name, value in named.items():
            if name in kinds:
                check_kind(value, name, kinds[name])
        return function(*arguments, **named)

    return cast(_Function, checked)


# Types of tensors. Those that the library cannot compute are its own to refuse, with the nearest that it can.
VALUES = (torch.float16, torch.bfloat16, torch.float32, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz,
          torch.float8_e4m3fn, torch.float8_e5m2, torch.int8)
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
F32 = (torch.float32,)
INT32 = (torch.int32,)
INT64 = (torch.int64,)
INDICES = (torch.int32, torch.int64)
BITS = (torch.uint8,)

_LARGEST = (1 << 31) - 1


class Extents:
    """Extents that the tensors of a call share, by their names: the first tensor with a name decides.

    The dimensions of a tensor are names with spaces between them, or numbers. A "?" after a name allows an extent of 1 too,
    which is the same for all; a "+" allows more than the name's."""

    def __init__(self, **least: int) -> None:
        self._least = least
        self._known: Dict[str, Tuple[int, str]] = {}

    def given(self, name: str, number: int, source: str) -> None:
        """An extent that an argument says."""
        if not 0 <= number <= _LARGEST:
            raise InvalidArgument(f"{source} is {number}; it must be from 0 to {_LARGEST}", source)
        self._known[name] = (number, source)

    def of(self, name: str) -> int:
        return self._known[name][0]

    def check(self, tensor: Optional[torch.Tensor], field: str, dims: Union[str, Sequence[str]],
              dtypes: Tuple[torch.dtype, ...]) -> None:
        """`dims` has several forms if tensors with other numbers of dimensions are allowed too."""
        if tensor is None:
            return
        if tensor.dtype not in dtypes:
            allowed = " or ".join(str(dtype) for dtype in dtypes)
            raise InvalidArgument(f"{field} is of {tensor.dtype}; it must be of {allowed}", field)
        forms = {len(form.split()): form.split() for form in ([dims] if isinstance(dims, str) else dims)}
        if tensor.dim() not in forms:
            meant = " or ".join(f"{count} ({', '.join(form)})" for count, form in forms.items())
            raise InvalidArgument(f"{field} has {tensor.dim()} dimensions; it must have {meant}", field)
        for i, (extent, name) in enumerate(zip(tensor.shape, forms[tensor.dim()])):
            self._one(extent, name, f"{field}.shape[{i}]", field)

    def _one(self, extent: int, name: str, place: str, field: str) -> None:
        plain = name.rstrip("?+")
        least = self._least.get(plain, 0)
        if extent < least:
            raise InvalidArgument(f"{place} is {extent}; it must be at least {least} ({plain})", field)
        if plain.isdigit():
            wanted, source = int(plain), ""
        else:
            wanted, source = self._known.setdefault(plain, (extent, place))
        if extent == wanted or (name[-1] == "?" and extent == 1) or (name[-1] == "+" and extent > wanted):
            return
        rule = {"?": f"{wanted} or 1", "+": f"at least {wanted}"}.get(name[-1], str(wanted))
        reason = f" ({plain}, as {source})" if source else ""
        raise InvalidArgument(f"{place} is {extent}; it must be {rule}{reason}", field)
