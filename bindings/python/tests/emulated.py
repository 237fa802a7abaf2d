"""What tests of the package on the emulator share."""

import unittest

import numpy

import sluice

CONTEXT = sluice.Context("emulated")


def normal(*shape, seed=0):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(numpy.float32)


def zeros(*shape, dtype="bf16"):
    return CONTEXT.array(numpy.zeros(shape), dtype)


def on_host(bits, dtype):
    """A host array of stored elements, whose type numpy need not have."""
    strides = tuple(step // bits.itemsize for step in bits.strides)
    return sluice.Tensor(bits.ctypes.data, bits.shape, strides, sluice.DType[dtype.upper()], bits.itemsize, "host", bits)


def reference(problem, o_shape, **arrays):
    """The library's own reference, on the device's values, with O as F32."""
    plain = sluice.Problem("f32", problem.q_heads, problem.kv_heads, problem.head_dim_qk, problem.head_dim_v,
                           ragged=problem.ragged, causal=problem.causal, page_size=problem.page_size,
                           page_table_kind=problem.page_table_kind, v_in_k=problem.v_in_k,
                           lse=sluice.Lse.LN if "lse" in arrays else sluice.Lse.NONE,
                           max_q_len=problem.max_q_len, max_kv_len=problem.max_kv_len, k_scale_kind=problem.k_scale_kind)
    o = numpy.empty(o_shape, numpy.float32)
    q, k, v = (arrays.pop(name, None) for name in ("q", "k", "v"))
    sluice.reference(plain, q, k, v, o, **arrays)
    return o


class Case(unittest.TestCase):
    def check(self, o, wanted, largest, last_place):
        """Compares results of attention with those in double precision. `largest` is that of V's values."""
        error = numpy.abs(o.numpy().astype(numpy.float64) - wanted).max()
        self.assertLessEqual(error, largest * (2 * last_place + 500 * 2.0 ** -23))
