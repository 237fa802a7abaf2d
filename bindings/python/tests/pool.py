"""Device memory as torch's caching allocator hands it out: pieces of a few large blocks, reused as soon as they are free.

By itself the emulator sees the large blocks only, so an overrun from one piece into the next would pass. The pieces are
annotated with sluice_emulator_pool_*, so that it is found.
"""

import ctypes
from unittest import mock

from sluice import _hip

BLOCK_BYTES = 32 << 20
ROUNDING = 512  # of sizes, as in torch. As many bytes or more stay free between two pieces; torch leaves none.

CALL, QUERY = _hip.Hip.call, _hip.Hip.query


class Pool:
    """Takes the place of hipMalloc and hipFree in all contexts."""

    def __init__(self, annotated=True):
        self._annotated = annotated
        self._free = []  # (address, bytes), by address
        self._sizes = {}
        pool = self

        def call(hip, name, *arguments):
            if name == "hipMalloc":
                pool.allocate(hip, *arguments)
            else:
                CALL(hip, name, *arguments)

        def query(hip, name, *arguments):
            return pool.free(hip, *arguments) if name == "hipFree" else QUERY(hip, name, *arguments)

        self._patches = [mock.patch.object(_hip.Hip, "call", call), mock.patch.object(_hip.Hip, "query", query)]

    def start(self):
        for patch in self._patches:
            patch.start()
        return self

    def stop(self):
        for patch in self._patches:
            patch.stop()

    def allocate(self, hip, made, size):
        wanted = -(-size.value // ROUNDING) * ROUNDING + ROUNDING
        at = next((i for i, (_, free) in enumerate(self._free) if free >= wanted), None)
        if at is None:
            at = self._add_block(hip, max(wanted, BLOCK_BYTES))
        address, free = self._free.pop(at)
        if free > wanted:
            self._free.insert(at, (address + wanted, free - wanted))
        self._sizes[address] = wanted
        self._tell(hip, "allocated", address, size.value + -size.value % 4)
        made._obj.value = address

    def free(self, hip, address):
        if address.value not in self._sizes:
            return QUERY(hip, "hipFree", address)  # older than the pool
        address = address.value
        self._free.append((address, self._sizes.pop(address)))
        self._free.sort()
        joined = self._free[:1]
        for start, size in self._free[1:]:
            last, before = joined[-1]
            if last + before == start:
                joined[-1] = (last, before + size)
            else:
                joined.append((start, size))
        self._free = joined
        self._tell(hip, "freed", address)
        return 0

    def _add_block(self, hip, size):
        made = ctypes.c_void_p()
        CALL(hip, "hipMalloc", ctypes.byref(made), ctypes.c_size_t(size))
        self._tell(hip, "create", made.value, size)
        self._free.append((made.value, size))
        self._free.sort()
        return self._free.index((made.value, size))

    def _tell(self, hip, event, address, *size):
        if not self._annotated:
            return
        found = hip._core.hip_symbol("sluice_emulator_pool_" + event)
        function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_size_t] * len(size))(found)
        code = function(address, *size)
        if code != 0:
            raise AssertionError(f"sluice_emulator_pool_{event} of {address:#x} {size} returned {code}")
