"""The HIP calls of a run, counted by a fake HIP whose functions are written here and run nothing."""

import contextlib
import ctypes
import pathlib
import struct
import subprocess
import sys
import types
import unittest
from unittest import mock

import sluice

RESOLVER = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class CountingHip:
    """A sluice_hip_resolver and the functions it finds."""

    def __init__(self):
        self.calls = []
        self.kernargs = b""
        self._functions = {}
        self.resolver = RESOLVER(self._resolve)

    def _resolve(self, name, _):
        name = name.decode()
        if name.startswith("sluice_") or name.endswith("R0600"):
            return 0
        if name not in self._functions:
            action = getattr(self, "_" + name, lambda *_: 0)
            kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 11)

            def called(*arguments):
                self.calls.append(name)
                return action(*arguments)

            self._functions[name] = kind(called)
        return ctypes.cast(self._functions[name], ctypes.c_void_p).value

    @staticmethod
    def _write(address, kind, value):
        kind.from_address(address).value = value
        return 0

    def _hipGetDeviceCount(self, count, *_):
        return self._write(count, ctypes.c_int, 1)

    def _hipGetDevice(self, device, *_):
        return self._write(device, ctypes.c_int, 0)

    def _hipDeviceGetAttribute(self, value, attribute, *_):
        return self._write(value, ctypes.c_int, {63: 304, 74: 65536, 87: 64}[attribute])

    def _hipGetDevicePropertiesR0000(self, properties, *_):
        ctypes.memmove(properties + 396, b"gfx942:sramecc+:xnack-\0", 23)
        return 0

    def _hipModuleLoadData(self, module, *_):
        return self._write(module, ctypes.c_void_p, 1)

    def _hipModuleGetFunction(self, function, *_):
        return self._write(function, ctypes.c_void_p, 2)

    def _hipModuleLaunchKernel(self, *arguments):
        extra = (ctypes.c_void_p * 4).from_address(arguments[10])
        size = ctypes.c_size_t.from_address(extra[3]).value
        self.kernargs = ctypes.string_at(extra[1], size)
        self.stream = arguments[8]
        return 0


class Zero(unittest.TestCase):
    PROBLEM = sluice.Problem("bf16", q_heads=4, kv_heads=2, head_dim_qk=64, max_batch=1, max_q_len=64, max_kv_len=64,
                             lse=sluice.Lse.LN)

    def setUp(self):
        self.hip = CountingHip()
        self.context = sluice.Context("hip:0", hip_resolver=self.hip.resolver)
        self.plan = self.context.plan(self.PROBLEM)
        self.hip.calls.clear()

    def addresses(self):
        """q, k, v and o, which kernargs begin with."""
        return struct.unpack_from("<4Q", self.hip.kernargs)

    def test_a_run_is_one_launch(self):
        shapes = ((1, 40, 4, 64), (1, 40, 2, 64), (1, 40, 2, 64), (1, 40, 4, 64))
        tensors = [sluice.Tensor.at(0x10000 * (i + 1), shape, "bf16") for i, shape in enumerate(shapes)]
        lse = sluice.Tensor.at(0x90000, (1, 40, 4), "f32")
        self.plan.run(*tensors, lse=lse)
        self.assertEqual(self.hip.calls, ["hipModuleLaunchKernel"])
        self.assertEqual(self.addresses(), (0x10000, 0x20000, 0x30000, 0x40000))

    def test_the_end_of_the_interpreter(self):
        """A context with work that the last collection destroys still finds HIP's functions, which are Python's
        here."""
        program = ("import sys; sys.path.insert(0, sys.argv[1])\n"
                   "import sluice, test_gpu_path as t\n"
                   "hip = t.CountingHip()\n"
                   "context = sluice.Context('hip:0', hip_resolver=hip.resolver)\n"
                   "arrays = [sluice.Tensor.at(0x10000, (1, 40, h, 64), 'f16') for h in (4, 2, 2)]\n"
                   "context.plan(sluice.Problem('f16', 4, 2, 64)).run(*arrays, sluice.Tensor.at(0x40000, (1, 40, 4, 64), 'f16'))\n"
                   "hip.ring = [context, hip]\n")
        done = subprocess.run([sys.executable, "-B", "-c", program, str(pathlib.Path(__file__).parent)], capture_output=True,
                              text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_cuda_array_interface(self):
        class Array:
            def __init__(self, address, heads):
                self.__cuda_array_interface__ = {"typestr": "<f2", "shape": (1, 40, heads, 64), "data": (address, False),
                                                 "strides": None, "version": 3}

        plan = self.context.plan(sluice.Problem("f16", q_heads=4, kv_heads=2, head_dim_qk=64))
        self.hip.calls.clear()
        plan.run(Array(0x10000, 4), Array(0x20000, 2), Array(0x30000, 2), Array(0x40000, 4))
        self.assertEqual(self.hip.calls, ["hipModuleLaunchKernel"])
        self.assertEqual(self.addresses(), (0x10000, 0x20000, 0x30000, 0x40000))

    def test_an_empty_list_of_pairs_has_no_address(self):
        """NULL would be all pages."""
        pages = [sluice.Tensor.at(0x10000 * (i + 1), (4, 16, 2, 64), "bf16") for i in range(4)]
        none = sluice.Tensor(0, (0, 2), (2, 1), None, 4)
        self.context.copy(*pages, pairs=none)
        self.assertNotIn("hipModuleLaunchKernel", self.hip.calls)
        self.context.copy(*pages)
        self.assertIn("hipModuleLaunchKernel", self.hip.calls)

    def test_torch(self):
        torch, st = self.with_torch()
        from sluice import _torch_run

        q, k, v = (torch.zeros(1, 40, heads, 64, dtype=torch.bfloat16) for heads in (4, 2, 2))
        made = []
        results = _torch_run.results

        def remembered(*arguments):
            made.append(results(*arguments))
            return made[-1]

        with self.as_a_gpu(torch, st), mock.patch.object(_torch_run, "results", remembered):
            o = st.flash_attn_func(q, k, v)
        self.assertEqual(self.launches(), ["hipModuleLaunchKernel"])
        self.assertEqual(self.addresses(), (q.data_ptr(), k.data_ptr(), v.data_ptr(), o.data_ptr()))
        self.assertEqual(o.data_ptr(), made[0][0].data_ptr())
        self.assertEqual(self.hip.stream, 0x77)

    def test_torch_without_rows_or_keys(self):
        """The address of an empty tensor is 0."""
        torch, st = self.with_torch()

        def zeros(*shape, dtype=torch.bfloat16):
            return torch.zeros(*shape, dtype=dtype)

        def ints(*shape):
            return zeros(*shape, dtype=torch.int32)

        self.assertEqual(zeros(0, 4, 64).data_ptr(), 0)
        pages, rows, starts = zeros(4, 16, 2, 64), zeros(2, 1, 4, 64), ints(3)
        empty_pages, no_keys = zeros(0, 16, 2, 64), zeros(2, 0, 2, 64)
        f32 = torch.float32
        for launches, call in (
                (0, lambda: st.flash_attn_func(zeros(2, 0, 4, 64), zeros(2, 5, 2, 64), zeros(2, 5, 2, 64))),
                (0, lambda: st.flash_attn_func(zeros(0, 3, 4, 64), zeros(0, 5, 2, 64), zeros(0, 5, 2, 64))),
                (0, lambda: st.flash_attn_varlen_func(zeros(0, 4, 64), zeros(9, 2, 64), zeros(9, 2, 64), starts, starts, 3, 9)),
                (0, lambda: st.flash_attn_with_kvcache(zeros(0, 1, 4, 64), pages, pages, ints(0), ints(0, 2))),
                (0, lambda: st.flash_attn_varlen_paged(zeros(0, 4, 64), pages, pages, ints(1), 1, ints(0, 2), ints(0), 9)),
                (0, lambda: st.sparse_attn_with_kvcache(zeros(0, 4, 64), pages, pages, ints(0, 7))),
                (0, lambda: st.scaled_dot_product_attention(zeros(2, 4, 0, 64), zeros(2, 4, 5, 64), zeros(2, 4, 5, 64))),
                (0, lambda: st.append_kv(zeros(0, 2, 64), zeros(0, 2, 64), pages, pages, zeros(0, dtype=torch.int64))),
                (0, lambda: st.append_kv(zeros(3, 2, 64), zeros(3, 2, 64), empty_pages, empty_pages,
                                         zeros(3, dtype=torch.int64))),
                (0, lambda: st.merge_states(zeros(3, 0, 4, 64, dtype=f32), zeros(3, 0, 4, dtype=f32), torch.bfloat16)),
                (1, lambda: st.flash_attn_func(rows, no_keys, no_keys)),
                (1, lambda: st.flash_attn_varlen_func(rows[:, 0], no_keys[0], no_keys[0], starts, starts, 1, 9)),
                (1, lambda: st.flash_attn_with_kvcache(rows, empty_pages, empty_pages, ints(2), ints(2, 2))),
                (1, lambda: st.flash_attn_with_kvcache(rows, pages, pages, ints(2), ints(2, 0))),
                (1, lambda: st.sparse_attn_with_kvcache(rows[:, 0], pages, pages, ints(2, 0))),
                (1, lambda: st.flash_attn_with_kvcache(rows, empty_pages, empty_pages, ints(2), ints(2, 2), extra=st.Extra(
                    prefix=st.SharedPrefix(ints(1), ints(0), ints(0, 2), 0)))),
                (1, lambda: st.flash_attn_with_kvcache(rows, pages, pages, ints(2), ints(2, 2), extra=st.Extra(
                    prefix=st.SharedPrefix(ints(1), ints(0), ints(0, 2), 9)))),
                (1, lambda: st.scaled_dot_product_attention(zeros(2, 4, 3, 64), zeros(2, 4, 0, 64), zeros(2, 4, 0, 64),
                                                            zeros(3, 0, dtype=f32)))):
            with self.subTest(launches=launches, call=call.__code__.co_firstlineno), self.as_a_gpu(torch, st):
                self.hip.calls.clear()
                call()
                self.assertEqual(len(self.launches()), launches)

    def with_torch(self):
        try:
            import torch

            import sluice.torch as st
        except ImportError:
            self.skipTest("torch is not installed")
        return torch, st

    def launches(self):
        loads = ["hipGetDevice", "hipModuleLoadData", "hipModuleGetFunction"]
        return [call for call in self.hip.calls if call not in loads]

    @contextlib.contextmanager
    def as_a_gpu(self, torch, st):
        """Without a GPU, torch's CPU tensors take the place of a device's."""
        from sluice import _tensor, _torch_run

        stream = types.SimpleNamespace(cuda_stream=0x77)
        st.set_context(torch.device("cpu"), self.context)
        try:
            with mock.patch.object(_tensor, "_place_of_torch", lambda _: "device"), \
                    mock.patch.object(_torch_run, "is_emulated", lambda _: False), \
                    mock.patch.object(torch.cuda, "current_stream", lambda _: stream), \
                    mock.patch.object(torch.cuda, "device", lambda _: contextlib.nullcontext()):
                yield
        finally:
            st.set_context(torch.device("cpu"), None)


if __name__ == "__main__":
    unittest.main()
