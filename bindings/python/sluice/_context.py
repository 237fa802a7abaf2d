"""Contexts and plans."""

from __future__ import annotations

import dataclasses
import os
import threading
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import _core
from ._cache import append_struct, copy_struct, gather_struct
from ._call import CallShape, call_args
from ._enums import Lse, RotaryStyle
from ._errors import InvalidArgument
from ._hip import Buffer, Event, Hip, Stream, buffer_type, stream_handle
from ._merge import merge_struct
from ._problem import Problem, checked_problem
from ._tensor import tensor_of
from ._types import DTypeLike

_HIP, _EMULATED, _TARGET = 1, 2, 3
_ON_EVENT, _ON_STREAM = 1, 2


def _device_of(device: str) -> Tuple[int, int, Optional[str]]:
    """(kind, ordinal, target) of "hip:0", "emulated:1" or "gfx942:304"."""
    name, _, number = device.partition(":")
    if name in ("hip", "emulated"):
        if number and not number.isdigit():
            raise InvalidArgument(f"device is {device!r}; after the colon it must have the number of a device", "device")
        return (_HIP if name == "hip" else _EMULATED), int(number or 0), None
    return _TARGET, 0, device


@dataclasses.dataclass(frozen=True)
class Wait:
    """Something that must complete before a run starts: the work before `event`, or with `stream` all work that is on
    that stream now, after which the event is recorded there."""

    event: Any
    stream: Any = None
    on_stream: bool = False
    """Whether `stream` applies; None is then the default stream."""

    def _c(self) -> Tuple[int, int, int]:
        is_stream = self.on_stream or self.stream is not None
        return (_ON_STREAM if is_stream else _ON_EVENT, stream_handle(self.event, "wait.event"),
                stream_handle(self.stream, "wait.stream"))


def _waits(wait: Sequence[Wait]) -> List[Tuple[int, int, int]]:
    if not isinstance(wait, (list, tuple)) or not all(isinstance(one, Wait) for one in wait):
        raise InvalidArgument(f"wait is {wait!r}; it must be a list of Wait", "wait")
    return [one._c() for one in wait]


class Context:
    """A device, or a chip by name, and the kernels for it.

    Args:
        device: "hip:0" for a GPU through the process's HIP runtime; "emulated" for the bundled emulator, which runs the
            same machine code on the CPU; "gfx942:304", a chip and its compute units, to ask questions only.
        pack: a kernel pack to use instead of the library's own: its bytes, or the path of a file.
        hip_resolver: the address of a sluice_hip_resolver that every HIP function comes from; for "hip" only.

    Threads may use a context at once. Plans are made once for each problem and live as long as the context, which waits
    for the device's work before it destroys them.

    Raises:
        NoDevice: the device, runtime or emulator does not exist. WrongArch: no kernels for it. PackCorrupt.
    """

    def __init__(self, device: str = "hip:0", *, pack: Union[bytes, str, "os.PathLike[str]", None] = None,
                 hip_resolver: Any = None) -> None:
        kind, ordinal, target = _device_of(device)
        if pack is not None and not isinstance(pack, bytes):
            with open(pack, "rb") as file:
                pack = file.read()
        self._core = _core.Context(kind, ordinal, target, pack, _address_of(hip_resolver), hip_resolver)
        self._hip = Hip(self._core)
        self._plans: Dict[Problem, "Plan"] = {}
        self._lock = threading.Lock()

    @property
    def device(self) -> Any:
        """The device of the context: kind, ordinal, compute_units, chip, arch, name, runtime and more."""
        return self._core.device()

    def kernels(self) -> List[Any]:
        """The kernels for the device's chip, in the order of their names."""
        return list(self._core.kernels())

    def query_support(self, problem: Problem) -> Any:
        """What a plan would use and need: kernel, workspace_bytes, alignments. Raises Unsupported with the nearest
        supported value if no kernel fits. Touches no device."""
        return self._core.query_support(checked_problem(problem)._c)

    def plan(self, problem: Problem) -> "Plan":
        """The plan for a problem; the first time, its kernels are chosen and loaded."""
        checked_problem(problem)
        with self._lock:
            found = self._plans.get(problem)
            if found is None:
                found = self._plans[problem] = Plan(self, problem)
            return found

    def preload(self, problem: Optional[Problem] = None) -> None:
        """Loads the kernels of a problem, or all kernels, so that nothing is loaded while a graph is captured."""
        self._core.preload(None if problem is None else checked_problem(problem)._c)

    def append(self, k: Any, v: Any, k_cache: Any, v_cache: Any, *, slots: Any = None, starts: Any = None,
               kv_lengths: Any = None, page_table: Any = None, page_starts: Any = None, k_scale: Any = None,
               v_scale: Any = None, rotary: Any = None, rotary_style: RotaryStyle = RotaryStyle.HALVES,
               positions: Any = None, rotary_sin: Any = None, rotary_first: int = 0, q: Any = None, q_out: Any = None,
               k_tail: Any = None, q_tail: Any = None, q_norm: Any = None, k_norm: Any = None, norm_epsilon: float = 0.0,
               k_token_scales: Any = None, v_token_scales: Any = None, k_page_scales: Any = None, v_page_scales: Any = None,
               cache_type: Optional[DTypeLike] = None, k_group_scales: Any = None, v_group_scales: Any = None,
               k_zeros: Any = None, v_zeros: Any = None, stream: Any = None, wait: Sequence["Wait"] = (),
               signal: Any = None) -> None:
        """Enqueues an append of new rows of K and V to a paged cache, with rotation and scaling.

            k, v              [tokens, kv_heads, dim], F16 or BF16; v and v_cache are None if V is in K
            k_cache, v_cache  [pages, page_size, kv_heads, dim], of that type, E4M3FNUZ, E5M2FNUZ or I8; an x-packed k_cache
                              is [pages, page_size, kv_heads, dim / k_pack, k_pack], in any order in memory. V is
                              stored by columns in a v_cache whose stride between tokens is 1, or that is
                              [pages, page_size / v_pack, kv_heads, dim, v_pack]
            cache_type        for caches of U4, Q8_0 and Q4_0, which are uint8 with the bytes of dim elements in place of
                              dim; else the type of k_cache
            slots             [tokens], int64: page * page_size + row; a negative one is skipped. Or:
            starts            [batch + 1], int32: new rows before each sequence's first, with
            kv_lengths        [batch], int32: keys of each sequence, including the new ones, and
            page_table        [batch, pages], int32 or int64, or with page_starts [batch + 1] the entries of all
            k_scale, v_scale  [1] or [kv_heads], F32: the scales of a cache of FP8 or I8
            rotary            [positions, rotary_dim], F32, F16 or BF16: cosines, then sines
            positions         [tokens], int32; without them a row's position is the number of its key

        The whole step of a layer, since ABI 1.1:

            rotary_sin        [positions, rotary_dim / 2], the sines; then rotary has the cosines, as many
            rotary_first      the first element that is rotated; a multiple of 8
            q                 [tokens, q_heads, dim of k]: normed and rotated like k, and stored to q_out or, without it,
                              to q
            k_tail, q_tail    [tokens, heads, tail]: the last elements of rows, if k and q (q_out does) lack them; an
                              expanded array repeats one tail for all heads
            q_norm, k_norm    [dim of k without its tail], of its type or F32: weights of RMS norms
            norm_epsilon      added to the mean square
            k_token_scales, v_token_scales  [pages, page_size, kv_heads], F32: scales of FP8 or I8, computed and written
            k_page_scales, v_page_scales    [pages, kv_heads], F32: scales of FP8 or I8, read
            k_group_scales, v_group_scales  [pages, page_size, kv_heads, groups of a row], F16: scales of U4, computed and
                                            written
            k_zeros, v_zeros                the same: what U4 subtracts from the numbers of a group, computed and written;
                                            without them it is 8

        stream, wait and signal as for Plan.run. Raises as it does."""
        struct = append_struct("device", k, v, k_cache, v_cache, slots=slots, starts=starts, kv_lengths=kv_lengths,
                               page_table=page_table, page_starts=page_starts, k_scale=k_scale, v_scale=v_scale,
                               rotary=rotary, rotary_style=rotary_style, positions=positions, rotary_sin=rotary_sin,
                               rotary_first=rotary_first, q=q, q_out=q_out, k_tail=k_tail, q_tail=q_tail, q_norm=q_norm,
                               k_norm=k_norm, norm_epsilon=norm_epsilon, k_token_scales=k_token_scales,
                               v_token_scales=v_token_scales, k_page_scales=k_page_scales, v_page_scales=v_page_scales,
                               cache_type=cache_type, k_group_scales=k_group_scales, v_group_scales=v_group_scales,
                               k_zeros=k_zeros, v_zeros=v_zeros)
        self._core.append(struct, launch_of(stream, None, signal), _waits(wait))

    def merge(self, partial: Any, partial_lse: Any, o: Any, *, lse: Any = None, sink_logits: Any = None,
              lse_base: Lse = Lse.LN, infinity_is_empty: bool = False, o_scale: Any = None, stream: Any = None,
              wait: Sequence["Wait"] = (), signal: Any = None) -> None:
        """Enqueues a merge of results of attention over splits of the keys.

            partial   [parts, tokens, heads, dim], F32, F16 or BF16    partial_lse [parts, tokens, heads], F32
            o         [tokens, heads, dim]                             lse [tokens, heads], F32, or None

        Since ABI 1.1 partial and partial_lse may also be lists of arrays, one for each part, without the first dimension
        and all with the same strides. LSEs may be [..., sequences, tokens of each, heads] in place of [..., tokens, heads]:
        FlashAttention's [sequences, heads, tokens] as permute(0, 2, 1). With infinity_is_empty, an LSE of +infinity also
        marks a part that does not count, as in FlashAttention's results for rows without keys. An o of E4M3FNUZ is divided by
        o_scale, [1] or [heads] in F32.

        stream, wait and signal as for Plan.run. Raises as it does."""
        struct, parts, lses = merge_struct("device", partial, partial_lse, o, lse=lse, sink_logits=sink_logits,
                                           lse_base=lse_base, infinity_is_empty=infinity_is_empty, o_scale=o_scale)
        self._core.merge(struct, parts, lses, launch_of(stream, None, signal), _waits(wait))

    def copy(self, k_source: Any, v_source: Any, k_target: Any, v_target: Any, *, pairs: Any = None, k_scale: Any = None,
             v_scale: Any = None, k_token_scales: Any = None, v_token_scales: Any = None, k_page_scales: Any = None,
             v_page_scales: Any = None, cache_type: Optional[DTypeLike] = None, k_group_scales: Any = None,
             v_group_scales: Any = None, k_zeros: Any = None, v_zeros: Any = None, k_target_scales: Any = None,
             v_target_scales: Any = None, k_target_zeros: Any = None, v_target_zeros: Any = None, stream: Any = None,
             wait: Sequence["Wait"] = (), signal: Any = None) -> None:
        """Enqueues a copy of pages of K and V, to other pages or to other caches. Since ABI 1.1.

            k_source, k_target  [pages, page_size, kv_heads, dim], an x-packed K as for append; v_source and v_target are
                                None if there is only K. Both of one type, or of F16 or BF16 to E4M3FNUZ, or to F16 or BF16
                                from E4M3FNUZ, E5M2FNUZ, I8, U4, Q8_0 or Q4_0
            cache_type          for sources of U4, Q8_0 and Q4_0, as for append; targets of bytes are of the same type
            pairs               [pairs, 2], int32 or int64: page of the source, page of the target; None: each to itself
            k_scale, v_scale    [1] or [kv_heads], F32: the scales of the cache of 8 bits
            k_token_scales, v_token_scales, k_page_scales, v_page_scales, k_group_scales, v_group_scales, k_zeros, v_zeros
                                as for append, of the source, and read: to F16 or BF16, or between equal types
            k_target_scales, v_target_scales, k_target_zeros, v_target_zeros
                                between equal types: where those of the source go, with the same extents

        stream, wait and signal as for Plan.run. Raises as it does."""
        struct = copy_struct("device", k_source, v_source, k_target, v_target, pairs=pairs, k_scale=k_scale, v_scale=v_scale,
                             k_token_scales=k_token_scales, v_token_scales=v_token_scales, k_page_scales=k_page_scales,
                             v_page_scales=v_page_scales, cache_type=cache_type, k_group_scales=k_group_scales,
                             v_group_scales=v_group_scales, k_zeros=k_zeros, v_zeros=v_zeros,
                             k_target_scales=k_target_scales, v_target_scales=v_target_scales,
                             k_target_zeros=k_target_zeros, v_target_zeros=v_target_zeros)
        self._core.copy(struct, launch_of(stream, None, signal), _waits(wait))

    def gather(self, k_cache: Any, v_cache: Any, k_out: Any, v_out: Any, *, out_starts: Any, kv_lengths: Any,
               page_table: Any, first_keys: Any = None, page_starts: Any = None, k_scale: Any = None, v_scale: Any = None,
               k_token_scales: Any = None, v_token_scales: Any = None, k_page_scales: Any = None, v_page_scales: Any = None,
               cache_type: Optional[DTypeLike] = None, k_group_scales: Any = None, v_group_scales: Any = None,
               k_zeros: Any = None, v_zeros: Any = None, k_out_scales: Any = None, v_out_scales: Any = None,
               k_out_zeros: Any = None, v_out_zeros: Any = None, stream: Any = None, wait: Sequence["Wait"] = (),
               signal: Any = None) -> None:
        """Enqueues a gather of keys of a paged cache in contiguous rows. Since ABI 1.1.

            k_cache, v_cache  as k_source and v_source of copy; v_cache and v_out are None if there is only K
            k_out, v_out      [rows, kv_heads, dim]
            out_starts        [batch + 1], int32: rows of the outputs before each sequence's first
            kv_lengths        [batch], int32: keys of each sequence in the cache
            first_keys        [batch], int32: the first key to gather; None: from the first on
            page_table        [batch, pages], int32 or int64, or with page_starts [batch + 1] the entries of all
            cache_type, k_scale, v_scale, k_token_scales ... v_zeros   as for copy
            k_out_scales, v_out_scales  between equal types: [rows, kv_heads], where scales per token go, and scales per page,
                                        to each of the page's keys; [rows, kv_heads, groups of a row] of U4
            k_out_zeros, v_out_zeros    as k_out_scales of U4

        stream, wait and signal as for Plan.run. Raises as it does."""
        struct = gather_struct("device", k_cache, v_cache, k_out, v_out, out_starts=out_starts, kv_lengths=kv_lengths,
                               page_table=page_table, first_keys=first_keys, page_starts=page_starts, k_scale=k_scale,
                               v_scale=v_scale, k_token_scales=k_token_scales, v_token_scales=v_token_scales,
                               k_page_scales=k_page_scales, v_page_scales=v_page_scales, cache_type=cache_type,
                               k_group_scales=k_group_scales, v_group_scales=v_group_scales, k_zeros=k_zeros,
                               v_zeros=v_zeros, k_out_scales=k_out_scales, v_out_scales=v_out_scales,
                               k_out_zeros=k_out_zeros, v_out_zeros=v_out_zeros)
        self._core.gather(struct, launch_of(stream, None, signal), _waits(wait))

    def set_ranges(self, enabled: bool) -> None:
        """Turns ranges of roctx around runs and cache operations, which profilers show, on or off. No other thread may use
        the context or its plans during the call. Raises Unsupported if there is no roctx."""
        self._core.set_ranges(enabled)

    # From here on: for programs without their own runtime.

    def bind_thread(self) -> None:
        """Makes the context's device the calling thread's current one, as runs and memory need it."""
        self._hip.call("hipSetDevice", self.device.ordinal)

    def empty(self, shape: Sequence[int], dtype: Any) -> Buffer:
        """Device memory; dtype is one of the library's, or "int32", "int64" or "uint8"."""
        self.bind_thread()
        return Buffer(self._hip, shape, *buffer_type(dtype))

    def array(self, values: Any, dtype: Any) -> Buffer:
        """Device memory with these values, rounded to nearest even."""
        import numpy

        host = numpy.asarray(values)
        made = self.empty(host.shape, dtype)
        made.copy_from(host)
        return made

    def stream(self) -> Stream:
        """A stream of the device."""
        self.bind_thread()
        return Stream(self._hip)

    def event(self) -> Event:
        """An event of the device."""
        self.bind_thread()
        return Event(self._hip)

    def reports(self) -> List[Any]:
        """The emulator's reports since the last call, as dictionaries, see sluice/emulator.h: an access out of bounds,
        a race, a value read before it was written. Empty for a GPU."""
        return self._hip.reports()

    def configure(self, key: str, value: str) -> None:
        """Sets how the emulator runs launches enqueued from now on, of all contexts: sluice_emulator_configure."""
        self._hip.configure(key, value)

    def synchronize(self) -> None:
        """Waits for all work of the device; raises the error of a failed kernel."""
        self.bind_thread()
        self._hip.call("hipDeviceSynchronize")


def _address_of(function: Any) -> int:
    if function is None or isinstance(function, int):
        return function or 0
    import ctypes

    return ctypes.cast(function, ctypes.c_void_p).value or 0


class Plan:
    """A problem with its kernels chosen and loaded. Context.plan makes it."""

    def __init__(self, context: Context, problem: Problem) -> None:
        self.problem = problem
        self._core = _core.Plan(context._core, problem._c)
        self._info = self._core.describe()

    def counters(self) -> Any:
        """What the runs so far have done: runs, refused, launches, main_launches, other_launches and merge_launches."""
        return self._core.counters()

    @property
    def info(self) -> Any:
        """kernel, reason, workspace_bytes, workspace_alignment, tile_q, tile_kv, waves, lds_bytes, max_grid and block."""
        return self._info

    def run(self, q: Any, k: Any, v: Any, o: Any, *, lse: Any = None, batch: Optional[int] = None,
            q_len: Optional[int] = None, kv_len: Optional[int] = None, scale: Optional[float] = None, q_starts: Any = None,
            kv_starts: Any = None, q_lengths: Any = None, kv_lengths: Any = None, page_table: Any = None,
            page_starts: Any = None, bias: Any = None, mask: Any = None, alibi_slopes: Any = None,
            sink_logits: Any = None, q_scale: Any = None, k_scale: Any = None, v_scale: Any = None, k_scales: Any = None,
            v_scales: Any = None, k_zeros: Any = None, v_zeros: Any = None, o_scale: Any = None, bias_scale: Any = None,
            diagonals: Any = None, causal: Any = None, spans: Any = None, prefix_q_starts: Any = None,
            prefix_lengths: Any = None, prefix_page_table: Any = None, prefix_page_starts: Any = None,
            prefix_k: Any = None, prefix_v: Any = None,
            prefix_len: Optional[int] = None, stream: Any = None, workspace: Any = None, wait: Sequence[Wait] = (),
            signal: Any = None) -> None:
        """Enqueues one call and returns without waiting; nothing is copied and nothing allocated on the device.

        Arrays are Tensors, Buffers, torch tensors, or anything with DLPack or __cuda_array_interface__, in the memory of
        the context's device, which must be the calling thread's current one. Their memory must live until the run is
        done. Shapes, with [total rows, ...] instead of [batch, rows, ...] if there are starts:

            q    [batch, rows, q_heads, head_dim_qk]    k [batch, keys, kv_heads, head_dim_qk]
            o    [batch, rows, q_heads, head_dim_v]     v [batch, keys, kv_heads, head_dim_v]; None with v_in_k
            lse  [batch, rows, q_heads], F32
            k, v in pages                               [pages, page_size, kv_heads, dim]; with k_pack K is
                                                        [pages, page_size, kv_heads, dim / k_pack, k_pack]
            v by columns                                with v_pack [pages, page_size / v_pack, kv_heads, dim, v_pack], or
                                                        with PACK_ALL as above, but the stride between tokens is 1; in
                                                        sequences, keys are rounded up to a multiple of 8
            k, v of U4, Q8_0, Q4_0                      uint8, with the bytes of dim elements in place of dim: dim / 2,
                                                        dim / 32 * 34 and dim / 32 * 18
            bias, mask                                  [batch, q_heads, rows, keys, or bytes of 8 keys]; an extent of 1
                                                        (but not of bytes) is the same for all
            k_scales, v_scales                          F32, [batch, keys, kv_heads]; in pages [pages, page_size, kv_heads],
                                                        and per page [pages, kv_heads]; per group F16, with groups of a
                                                        row as one more dimension; k_zeros and v_zeros the same
            alibi_slopes, bias_scale                    F32, [q_heads], or [batch, q_heads]
            q_scale, k_scale, v_scale, o_scale          F32, [1] or [heads]; sink_logits [q_heads]
            diagonals, causal                           int32, [batch]
            spans                                       int32, [batch, spans, 2]: first key, and the one after the last
            starts [batch + 1], lengths [batch]         int32
            page_table                                  int32, or int64 with page_index_64: [batch, pages], or for CSR
                                                        [entries]; with a list for each KV head [batch, kv_heads, pages] or
                                                        [kv_heads, entries]. A negative number is a page of zeros, or with
                                                        missing_pages_hidden one whose keys no row sees
            prefix_...                                  with shared_prefix: the same with prefixes instead of sequences;
                                                        prefix_q_starts are rows of q; without pages, prefix_k and
                                                        prefix_v are [prefixes, keys, kv_heads, dim]

        Args:
            batch, q_len, kv_len, prefix_len: sequences, and the maximum of rows and keys of each, and of keys of each
                prefix. By default those of q, k, prefix_k and the starts; with starts and for pages, the problem's
                bounds of rows and keys. 0 is none: a call without rows launches nothing, and a row without keys is 0,
                with an LSE of -infinity or the sink.
            scale: scale of the scores; None is 1 / sqrt(head_dim_qk). 0 is a number like any other.
            stream: a Stream, a torch stream, or a hipStream_t as an integer; None is the default stream.
            workspace: memory of info.workspace_bytes or more, aligned to info.workspace_alignment.
            wait: what must complete before.
            signal: an event to record after the run.

        Raises:
            InvalidArgument, Unsupported, WorkspaceTooSmall, HipError; then nothing is enqueued.
        """
        arrays = {"q": q, "k": k, "v": v, "o": o, "lse": lse, "q_starts": q_starts, "kv_starts": kv_starts,
                  "q_lengths": q_lengths, "kv_lengths": kv_lengths, "page_table": page_table, "page_starts": page_starts,
                  "bias": bias, "mask": mask, "alibi_slopes": alibi_slopes, "sink_logits": sink_logits,
                  "q_scale": q_scale, "k_scale": k_scale, "v_scale": v_scale, "k_scales": k_scales, "v_scales": v_scales,
                  "k_zeros": k_zeros, "v_zeros": v_zeros, "o_scale": o_scale, "bias_scale": bias_scale,
                  "diagonals": diagonals, "causal": causal, "spans": spans,
                  "prefix_q_starts": prefix_q_starts, "prefix_lengths": prefix_lengths,
                  "prefix_page_table": prefix_page_table, "prefix_page_starts": prefix_page_starts,
                  "prefix_k": prefix_k, "prefix_v": prefix_v}
        call = call_args(self.problem, arrays, CallShape(batch, q_len, kv_len, prefix_len), scale, "device")
        self._core.run(call.args, call.keys, call.prefixes, call.scale, call.lse, launch_of(stream, workspace, signal),
                       _waits(wait))


def launch_of(stream: Any, workspace: Any, signal: Any) -> Any:
    """The struct."""
    launch = _core.Launch()
    launch.stream = stream_handle(stream)
    if workspace is not None:
        tensor = tensor_of(workspace, "workspace")
        elements = 1
        for extent in tensor.shape:
            elements *= extent
        launch.workspace, launch.workspace_bytes = tensor.address, elements * tensor.itemsize
    if signal is not None:
        launch.signal_event = stream_handle(signal, "signal")
    return launch


def reference(problem: Problem, q: Any, k: Any, v: Any, o: Any, *, batch: Optional[int] = None,
              q_len: Optional[int] = None, kv_len: Optional[int] = None, prefix_len: Optional[int] = None,
              scale: Optional[float] = None, **arrays: Any) -> None:
    """Computes a call on the host in double precision: the reference for results. Arrays as for Plan.run, all in host
    memory."""
    everything = {"q": q, "k": k, "v": v, "o": o, **arrays}
    call = call_args(problem, everything, CallShape(batch, q_len, kv_len, prefix_len), scale, "host")
    _core.reference(problem._c, call.args, call.keys, call.prefixes, call.scale, call.lse)
