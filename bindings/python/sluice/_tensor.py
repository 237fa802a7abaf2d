"""Tensors: views of memory that others own."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any, Optional, Sequence, Tuple

from ._enums import DType
from ._errors import InvalidArgument
from ._types import DTypeLike, dtype_of

_HOST, _DEVICE = "host", "device"


@dataclasses.dataclass(frozen=True)
class Tensor:
    """Elements at an address, by shape and strides.

    Attributes:
        address: the address of element [0, 0, ...].
        shape: extents.
        strides: in elements, each >= 0, one for each extent.
        dtype: a DType, or None for other types (integers, bits of a mask).
        itemsize: bytes of an element.
        place: "device" or "host".
        owner: keeps the memory alive as long as this; may be None.
    """

    address: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    dtype: Optional[DType]
    itemsize: int
    place: str = _DEVICE
    owner: Any = dataclasses.field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.shape) != len(self.strides):
            raise InvalidArgument(f"strides are {self.strides}; there must be {len(self.shape)}, one for each extent",
                                  "strides")

    @staticmethod
    def at(address: int, shape: Sequence[int], dtype: DTypeLike, strides: Optional[Sequence[int]] = None,
           owner: Any = None) -> "Tensor":
        """Device memory that others own; without strides its elements are contiguous."""
        kind = dtype_of(dtype)
        steps = contiguous_strides(shape) if strides is None else tuple(strides)
        return Tensor(address, tuple(shape), steps, kind, kind.bytes, _DEVICE, owner)

    def permute(self, *order: int) -> "Tensor":
        """The same elements with their indices in another order: [batch, head, token, dim] as [batch, token, head,
        dim] is permute(0, 2, 1, 3)."""
        if sorted(order) != list(range(len(self.shape))):
            raise InvalidArgument(f"order is {order}; it must have each of 0 to {len(self.shape) - 1} once", "order")
        return dataclasses.replace(self, shape=tuple(self.shape[i] for i in order),
                                   strides=tuple(self.strides[i] for i in order))


def contiguous_strides(shape: Sequence[int]) -> Tuple[int, ...]:
    """Strides of contiguous elements, with the last index running fastest."""
    strides, stride = [], 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= max(extent, 1)
    return tuple(reversed(strides))


def has_no_gaps(tensor: Tensor) -> bool:
    """Whether its elements are contiguous; the stride of an extent of 1 has no effect."""
    plain = contiguous_strides(tensor.shape)
    return 0 in tensor.shape or all(extent == 1 or stride == wanted
                                    for extent, stride, wanted in zip(tensor.shape, tensor.strides, plain))


# ------------------------------------------------------------------------------------------------ others' arrays

_INTERFACE_TYPES = {"f2": DType.F16, "f4": DType.F32, "i1": DType.I8}


def _from_interface(array: Any, interface: Any, place: str, field: str) -> Tensor:
    """From __array_interface__ or __cuda_array_interface__."""
    typestr, shape = str(interface["typestr"]), tuple(interface["shape"])
    itemsize = int(typestr[2:])
    if typestr[0] == ">":
        raise InvalidArgument(f"{field} has elements of type {typestr}; they must be little-endian", field)
    if typestr[1] not in "biufV":
        raise InvalidArgument(f"{field} has elements of type {typestr}; the library has no such type", field)
    steps = interface.get("strides")
    if steps is None:
        strides = contiguous_strides(shape)
    else:
        if any(step % itemsize for step in steps):
            raise InvalidArgument(f"{field} has strides of {tuple(steps)} bytes; they must be multiples of its element's"
                                  f" {itemsize}", field)
        strides = tuple(step // itemsize for step in steps)
    kind = _INTERFACE_TYPES.get(typestr[1:])
    if kind is None and typestr[1] in "fV":
        # ml_dtypes' types are opaque to the interface; their names are not.
        kind = dtype_of(getattr(array, "dtype", typestr), field)
    return Tensor(int(interface["data"][0] or 0), shape, strides, kind, itemsize, place, array)


class _DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("dtype", _DLDataType), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


# Code and bits of DLPack 1.1. Other integers are not among the library's types.
_DL_TYPES = {(0, 8): DType.I8, (2, 16): DType.F16, (2, 32): DType.F32, (4, 16): DType.BF16, (10, 8): DType.E4M3FN,
             (11, 8): DType.E4M3FNUZ, (12, 8): DType.E5M2, (13, 8): DType.E5M2FNUZ}
_DL_INTEGERS = (0, 1, 6)
_DL_HOST = (1, 3, 11)  # CPU memory, and pinned CPU memory of CUDA and of ROCm

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _from_dlpack(array: Any, field: str) -> Tensor:
    device = array.__dlpack_device__()
    # -1: do not synchronise; the caller orders work with streams and events.
    capsule = array.__dlpack__() if device[0] == 1 else array.__dlpack__(stream=-1)
    found = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    shape = tuple(found.shape[:found.ndim])
    strides = tuple(found.strides[:found.ndim]) if found.strides else contiguous_strides(shape)
    kind = _DL_TYPES.get((found.dtype.code, found.dtype.bits))
    if found.dtype.lanes != 1 or (kind is None and found.dtype.code not in _DL_INTEGERS):
        raise InvalidArgument(f"{field} has elements of DLPack's type {found.dtype.code} with {found.dtype.bits} bits;"
                              " the library has no such type", field)
    place = _HOST if found.device_type in _DL_HOST else _DEVICE
    # The capsule keeps the memory, and releases it when it is destroyed without having been consumed.
    return Tensor((found.data or 0) + found.byte_offset, shape, strides, kind, found.dtype.bits // 8, place, capsule)


def _from_torch(array: Any, field: str) -> Tensor:
    kind: Optional[DType] = None
    if array.dtype.is_floating_point or array.dtype.is_complex or array.dtype.itemsize == 1:
        kind = _torch_kind(array.dtype, field)
    if str(array.layout) != "torch.strided":
        raise InvalidArgument(f"{field} has the layout {array.layout}; it must be torch.strided", field)
    return Tensor(array.data_ptr(), tuple(array.shape), tuple(array.stride()), kind, array.element_size(),
                  _place_of_torch(array), array)


def _torch_kind(dtype: Any, field: str) -> Optional[DType]:
    try:
        return dtype_of(dtype, field)
    except InvalidArgument:
        if dtype.is_floating_point or dtype.is_complex:
            raise
        return None


def _place_of_torch(array: Any) -> str:
    return _HOST if array.device.type == "cpu" else _DEVICE


def tensor_of(array: Any, field: str = "array") -> Tensor:
    """The elements of a Tensor, Buffer, torch tensor, or of anything with DLPack or one of the array interfaces."""
    if isinstance(array, Tensor):
        return array
    own = getattr(array, "__sluice_tensor__", None)
    if own is not None:
        found = own()
        if not isinstance(found, Tensor):
            raise InvalidArgument(f"{field}.__sluice_tensor__() is of type {type(found).__name__}; it must be a Tensor", field)
        return found
    if hasattr(array, "data_ptr") and hasattr(array, "element_size"):
        return _from_torch(array, field)
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        return _from_interface(array, interface, _DEVICE, field)
    interface = getattr(array, "__array_interface__", None)
    if interface is not None:
        return _from_interface(array, interface, _HOST, field)
    if hasattr(array, "__dlpack__"):
        return _from_dlpack(array, field)
    raise InvalidArgument(f"{field} is of type {type(array).__name__}; it must be a Tensor, a Buffer, a torch tensor, or"
                          " have __dlpack__, __cuda_array_interface__ or __array_interface__", field)
