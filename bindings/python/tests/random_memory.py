"""Device memory of random calls: strides and gaps of its own, and only the elements that a call reads are written."""

import ctypes

import numpy

import sluice

PATTERN = 0xA5
ANY_STRIDES = (0, 1, 3, 7, -5, 1 << 20, 8)


def bits_of(values, dtype):
    """The stored form of values that the type represents."""
    x = numpy.ascontiguousarray(values, numpy.float32)
    return {"f16": lambda: x.astype(numpy.float16), "f32": lambda: x, "int8": lambda: x.astype(numpy.int8),
            "bf16": lambda: (x.view(numpy.uint32) >> 16).astype(numpy.uint16)}[dtype]()


def values_of(bits, dtype):
    return (bits.astype(numpy.uint32) << 16).view(numpy.float32) if dtype == "bf16" else bits.astype(numpy.float32)


def item_bytes(dtype):
    return {"f32": 4, "int8": 1}.get(dtype, 2)


def copy_to(context, address, values):
    """Writes a part of device memory."""
    host = numpy.ascontiguousarray(values)
    if host.nbytes:
        context._hip.call("hipMemcpy", ctypes.c_void_p(address), ctypes.c_void_p(host.ctypes.data),
                          ctypes.c_size_t(host.nbytes), ctypes.c_int(1))


class Memory:
    """Device memory for a tensor with strides of its own."""

    def __init__(self, rng, context, shape, dtype, multiple=8, row=True):
        self.context, self.dtype, self.shape = context, dtype, shape
        lead = len(shape) - 1 if row else len(shape)
        width, strides = (shape[-1] if row else 1), [1] * len(shape)
        step = -(-max(width, 1) // multiple) * multiple
        for i in rng.permutation(lead):
            step += multiple * int(rng.integers(3))
            strides[i] = step
            step *= max(shape[i], 1)
        self.elements = step + multiple
        self.size = item_bytes(dtype)
        self.buffer = context.empty((self.elements * self.size,), "uint8")
        self.places = strides
        given = [int(rng.choice(ANY_STRIDES)) if shape[i] <= 1 and i < lead else strides[i] for i in range(len(shape))]
        self.tensor = sluice.Tensor.at(self.buffer.address, shape, dtype, given, self.buffer)

    def fill(self):
        copy_to(self.context, self.buffer.address, numpy.full(self.elements * self.size, PATTERN, numpy.uint8))

    def put(self, index, values):
        """Stores a row, or an element."""
        offset = sum(i * step for i, step in zip(index, self.places)) * self.size
        copy_to(self.context, self.buffer.address + offset, bits_of(values, self.dtype))

    def put_rows(self, values, rows):
        """Stores rows of all heads; `rows` are the first indices."""
        for at in rows:
            for head in range(self.shape[len(at)]):
                self.put((*at, head), values[(*at, head)])

    def read(self):
        """All elements as stored, and which bytes hold no element of the tensor."""
        raw = self.buffer.bits()
        kind = {"f32": numpy.float32, "f16": numpy.float16, "int8": numpy.int8}.get(self.dtype, numpy.uint16)
        steps = [step * self.size for step in self.places]
        found = numpy.lib.stride_tricks.as_strided(raw.view(kind), self.shape, steps).copy() if 0 not in self.shape else \
            numpy.zeros(self.shape, kind)
        used = numpy.zeros(self.elements, bool)
        if 0 not in self.shape:
            numpy.lib.stride_tricks.as_strided(used, self.shape, self.places)[...] = True
        gaps = raw.reshape(-1, self.size)[~used]
        return found, gaps


def integers(context, values, spare=0, dtype="int32"):
    """An array with entries after its last that are never written."""
    values = numpy.asarray(values, {"int32": numpy.int32, "int64": numpy.int64}[dtype])
    made = context.empty((len(values) + spare,), dtype)
    copy_to(context, made.address, values)
    return made


def floats(context, values):
    return context.array(numpy.asarray(values, numpy.float32), "f32")


def quarters(rng, *shape):
    return rng.integers(-8, 9, shape).astype(numpy.float32) / 4
