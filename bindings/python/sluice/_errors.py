"""The library's errors as exceptions."""

from __future__ import annotations

from typing import Dict, Type

from . import _core


class Error(Exception):
    """A failed call.

    Attributes:
        code: the number of the status, as in sluice.h.
        name: its name, "SLUICE_UNSUPPORTED".
        field: the argument or field at fault, "k.stride[1]", or "".
        message: one sentence: the field, its value, and the rule or the nearest supported value.
        hip_code: the hipError_t if a HIP call failed, else 0.
    """

    code = 0

    def __init__(self, message: str, field: str = "", hip_code: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.hip_code = hip_code

    @property
    def name(self) -> str:
        return str(_core.status_name(self.code))


class InvalidArgument(Error, ValueError):
    """An argument breaks a documented rule: fix the call."""

    code = 1


class Unsupported(Error, NotImplementedError):
    """Legal, but this library cannot compute it: use another path."""

    code = 2


class NewerStruct(Error):
    """A field, flag or enumerator that this library does not know is set: upgrade it."""

    code = 3


class NoDevice(Error):
    """The device, HIP runtime or emulator does not exist here."""

    code = 4


class WrongArch(Error):
    """The pack has no kernels for the device."""

    code = 5


class HipError(Error, RuntimeError):
    """A HIP call failed; hip_code has its code."""

    code = 6


class PackCorrupt(Error):
    """The kernel pack is truncated or altered: install it again."""

    code = 7


class WorkspaceTooSmall(Error, ValueError):
    """The workspace has fewer bytes than the plan needs."""

    code = 8


class OutOfMemory(Error, MemoryError):
    """Host memory ran out."""

    code = 9


class InternalError(Error):
    """A defect of the library: report it with the message."""

    code = 10


_BY_CODE: Dict[int, Type[Error]] = {
    kind.code: kind
    for kind in (InvalidArgument, Unsupported, NewerStruct, NoDevice, WrongArch, HipError, PackCorrupt,
                 WorkspaceTooSmall, OutOfMemory, InternalError)
}


def _make(code: int, field: str, message: str, hip_code: int) -> Error:
    return _BY_CODE.get(code, InternalError)(message, field, hip_code)


_core.set_error(_make)
