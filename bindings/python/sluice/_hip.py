"""Memory, streams and events of the HIP runtime that a context is bound to, real or emulated.

An engine that has its own passes its arrays and handles instead.
"""

from __future__ import annotations

import ctypes
import json
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

from ._enums import DType
from ._errors import HipError, InvalidArgument, NoDevice
from ._tensor import Tensor, contiguous_strides, has_no_gaps, tensor_of
from ._types import dtype_of

if TYPE_CHECKING:
    import numpy

_TO_DEVICE, _TO_HOST = 1, 2  # hipMemcpyKind


class Hip:
    """The HIP functions of a context's runtime, by name."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self._functions: Dict[str, Any] = {}

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function that returns hipError_t; raises HipError for any other than hipSuccess."""
        code = self._function(name)(*arguments)
        if code != 0:
            raise HipError(f"{name} failed with {self._text(code)} ({code})", "", code)

    def query(self, name: str, *arguments: Any) -> int:
        """The hipError_t of a function."""
        return int(self._function(name)(*arguments))

    def _function(self, name: str) -> Any:
        found = self._functions.get(name)
        if found is None:
            address = self._core.hip_symbol(name)
            if address == 0:
                raise NoDevice(f"the runtime '{self._core.device().runtime}' of the context has no {name}", name)
            found = ctypes.CFUNCTYPE(ctypes.c_int)(address)
            self._functions[name] = found
        return found

    def reports(self) -> List[Any]:
        """The emulator's reports since the last call; empty for a GPU."""
        address = self._core.hip_symbol("sluice_emulator_take_reports")
        if address == 0:
            return []
        take = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)(address)
        size = 1 << 16
        while True:
            text = ctypes.create_string_buffer(size)
            needed = take(text, size)
            if needed <= size:
                return list(json.loads(text.value or b"[]"))
            size = needed

    def configure(self, key: str, value: str) -> None:
        """sluice_emulator_configure."""
        address = self._core.hip_symbol("sluice_emulator_configure")
        if address == 0:
            raise NoDevice("context has no emulated device", "context")
        function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)(address)
        code = function(key.encode(), value.encode())
        if code == 1:
            raise InvalidArgument(f"key is {key!r}; it must be a setting of the emulator", "key")
        if code != 0:
            raise InvalidArgument(f"value is {value!r}; {key} does not take it, or not now", "value")

    def _text(self, code: int) -> str:
        address = self._core.hip_symbol("hipGetErrorName")
        if address == 0:
            return "an error"
        return str(ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_int)(address)(code).decode())


_NOT_READY = 600  # hipErrorNotReady


class Event:
    """A point in a stream's work. The context makes it: Context.event()."""

    def __init__(self, hip: Hip) -> None:
        self._hip = hip
        made = ctypes.c_void_p()
        hip.call("hipEventCreateWithFlags", ctypes.byref(made), ctypes.c_uint(2))  # hipEventDisableTiming
        self.handle = made.value or 0

    def record(self, stream: Optional["Stream"] = None) -> None:
        """Records the event after the work that is on the stream now; None is the default stream."""
        self._hip.call("hipEventRecord", ctypes.c_void_p(self.handle), ctypes.c_void_p(stream_handle(stream)))

    def synchronize(self) -> None:
        """Waits for that work."""
        self._hip.call("hipEventSynchronize", ctypes.c_void_p(self.handle))

    def query(self) -> bool:
        """Whether it is done."""
        code = self._hip.query("hipEventQuery", ctypes.c_void_p(self.handle))
        if code not in (0, _NOT_READY):
            raise HipError(f"hipEventQuery failed ({code})", "", code)
        return code == 0

    def __del__(self) -> None:
        if getattr(self, "handle", 0):
            self._hip.query("hipEventDestroy", ctypes.c_void_p(self.handle))


class Stream:
    """A stream of work. The context makes it: Context.stream()."""

    def __init__(self, hip: Hip) -> None:
        self._hip = hip
        made = ctypes.c_void_p()
        hip.call("hipStreamCreateWithFlags", ctypes.byref(made), ctypes.c_uint(1))  # hipStreamNonBlocking
        self.handle = made.value or 0

    def synchronize(self) -> None:
        """Waits for its work; raises the error of a failed kernel."""
        self._hip.call("hipStreamSynchronize", ctypes.c_void_p(self.handle))

    def __del__(self) -> None:
        if getattr(self, "handle", 0):
            self._hip.query("hipStreamSynchronize", ctypes.c_void_p(self.handle))
            self._hip.query("hipStreamDestroy", ctypes.c_void_p(self.handle))


def stream_handle(stream: Any, field: str = "stream") -> int:
    """The handle of a Stream, of torch's stream (cuda_stream), or a number; None is the default stream."""
    if stream is None:
        return 0
    if isinstance(stream, int):
        return stream
    for name in ("handle", "cuda_stream"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    raise InvalidArgument(f"{field} is of type {type(stream).__name__}; it must be a Stream or an Event, torch's, a handle as"
                          " an integer, or None", field)


class Buffer:
    """Device memory of the context, with a shape. The context makes it: Context.empty() and Context.array().

    Copies wait for all work of the device. The memory is freed with the last reference, after the device's work is
    done.
    """

    def __init__(self, hip: Hip, shape: Sequence[int], itemsize: int, dtype: Optional[DType], numpy_type: str) -> None:
        self._hip = hip
        self.shape: Tuple[int, ...] = tuple(int(extent) for extent in shape)
        self.dtype = dtype
        self._itemsize = itemsize
        self._numpy_type = numpy_type
        self.nbytes = itemsize
        for extent in self.shape:
            self.nbytes *= extent
        made = ctypes.c_void_p()
        hip.call("hipMalloc", ctypes.byref(made), ctypes.c_size_t(max(self.nbytes, 1)))
        self.address = made.value or 0

    def __sluice_tensor__(self) -> Tensor:
        return Tensor(self.address, self.shape, contiguous_strides(self.shape), self.dtype, self._itemsize, owner=self)

    def permute(self, *order: int) -> Tensor:
        """As Tensor.permute."""
        return self.__sluice_tensor__().permute(*order)

    def copy_from(self, values: "numpy.ndarray") -> None:
        """Stores values of the same shape, rounded to nearest even in the buffer's type."""
        import numpy

        from ._values import bits_of

        bits = bits_of(values, self.dtype, self._numpy_type)
        if bits.shape != self.shape:
            raise InvalidArgument(f"values have the shape {bits.shape}; the buffer has {self.shape}", "values")
        bits = numpy.ascontiguousarray(bits)
        self._copy(self.address, bits.ctypes.data, _TO_DEVICE)

    def copy_bits_from(self, array: Any) -> None:
        """Stores the elements of a host array of the same shape and type, without gaps, as they are."""
        self._copy(self.address, self._like(array), _TO_DEVICE)

    def copy_bits_to(self, array: Any) -> None:
        """Copies its elements to such an array."""
        self._copy(self._like(array), self.address, _TO_HOST)

    def _like(self, array: Any) -> int:
        tensor = tensor_of(array, "array")
        if (tensor.shape, tensor.dtype, tensor.itemsize) != (self.shape, self.dtype, self._itemsize):
            raise InvalidArgument(f"array has the shape {tensor.shape} and elements of {tensor.itemsize} bytes; the buffer has"
                                  f" {self.shape} and {self._itemsize}, and the same type is wanted", "array")
        if tensor.place != "host" or not has_no_gaps(tensor):
            raise InvalidArgument("array must be in host memory and without gaps", "array")
        return tensor.address

    def _copy(self, target: int, source: int, kind: int) -> None:
        self._hip.call("hipDeviceSynchronize")
        if self.nbytes == 0:
            return  # the host's address may be 0
        self._hip.call("hipMemcpy", ctypes.c_void_p(target), ctypes.c_void_p(source), ctypes.c_size_t(self.nbytes),
                       ctypes.c_int(kind))

    def bits(self) -> "numpy.ndarray":
        """The stored elements as a numpy array: F16, F32 and integers as they are, BF16 as uint16 and FP8 as uint8."""
        import numpy

        out = numpy.empty(self.shape, self._numpy_type)
        self._copy(out.ctypes.data, self.address, _TO_HOST)
        return out

    def numpy(self) -> "numpy.ndarray":
        """The values: BF16 and FP8 as float32, which represents them all exactly; other types as stored."""
        from ._values import values_of

        return values_of(self.bits(), self.dtype)

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            self._hip.query("hipFree", ctypes.c_void_p(self.address))


_NUMPY_TYPES = {DType.F16: "<f2", DType.BF16: "<u2", DType.F32: "<f4", DType.I8: "|i1"}


def buffer_type(dtype: Any) -> Tuple[int, Optional[DType], str]:
    """(bytes of an element, DType or None, numpy's type for the bits) of a type of the library or an integer's."""
    name = str(getattr(dtype, "name", dtype)).lower()
    if name in ("int32", "int64", "uint8"):
        return {"int32": (4, None, "<i4"), "int64": (8, None, "<i8"), "uint8": (1, None, "|u1")}[name]
    kind = dtype_of(dtype)
    return kind.bytes, kind, _NUMPY_TYPES.get(kind, "|u1")

