"""Attention as operators of torch.library, on ROCm's devices and, through the emulator, on the CPU.

An operator's tensors are laid out as in FlashAttention: [batch, tokens, heads, dim], and rows of several sequences
[tokens, heads, dim]. Each operator has a fake kernel, so that graphs with it are compiled and exported whole.
"""

from __future__ import annotations

import atexit
import functools
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import torch

from ._context import Context, Plan
from ._errors import InvalidArgument
from ._hip import Buffer
from ._problem import Problem
from ._types import DType, MaskAlignment, Mode, PageTableKind, ScaleKind, dtype_of

_contexts: Dict[Tuple[str, int], Context] = {}
atexit.register(_contexts.clear)  # waiting for their work needs a live interpreter


def context_of(device: torch.device) -> Context:
    """The context of a device: a GPU's own, or the emulator's for the CPU."""
    key = (device.type, device.index or 0)
    found = _contexts.get(key)
    if found is None:
        if device.type == "cpu":
            found = Context("emulated")
        elif device.type == "cuda" and torch.version.hip is not None:
            found = Context(f"hip:{device.index or 0}")
        else:
            raise InvalidArgument(f"q is on {device}; it must be on the CPU or on a device of ROCm", "q")
        _contexts[key] = found
    return found


def set_context(device: torch.device, context: Optional[Context]) -> None:
    """Uses this context for a device's tensors from now on; None restores the device's own."""
    key = (device.type, device.index or 0)
    if context is None:
        _contexts.pop(key, None)
    else:
        _contexts[key] = context


_Arrays = Dict[str, Any]


def _bound(number: int) -> int:
    """The next power of two: few plans serve all lengths, and each has at most twice the workspace it needs."""
    return 1 << max(number - 1, 0).bit_length()


def _o_type(q: torch.Tensor, wanted: Optional[torch.dtype]) -> torch.dtype:
    """The requested type of O; by default that of Q, or bfloat16 for FP8."""
    return wanted or (torch.bfloat16 if q.dtype.itemsize == 1 else q.dtype)


def _scale_kind(scale: Optional[torch.Tensor]) -> ScaleKind:
    if scale is None:
        return ScaleKind.NONE
    return ScaleKind.PER_TENSOR if scale.numel() == 1 else ScaleKind.PER_HEAD


class Options(NamedTuple):
    """The arguments that follow every operator's own tensors. Scales are F32, [1] or [heads]."""

    scale: float
    causal: bool
    top_left: bool
    window_left: int
    window_right: int
    softcap: float
    alibi_slopes: Optional[torch.Tensor]
    sinks: Optional[torch.Tensor]
    q_scale: Optional[torch.Tensor]
    k_scale: Optional[torch.Tensor]
    v_scale: Optional[torch.Tensor]

    def problem(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, write_lse: bool = True,
                o_type: Optional[torch.dtype] = None, **more: Any) -> Problem:
        has_right = self.window_right >= 0 and not self.causal
        return Problem(q.dtype, q_heads=q.shape[-2], kv_heads=k.shape[-2], head_dim_qk=q.shape[-1], head_dim_v=v.shape[-1],
                       k_type=k.dtype, v_type=v.dtype, o_type=_o_type(q, o_type), write_lse=write_lse, causal=self.causal,
                       mask_alignment=MaskAlignment.TOP_LEFT if self.top_left else MaskAlignment.BOTTOM_RIGHT,
                       window_left=self.window_left if self.window_left >= 0 else None,
                       window_right=self.window_right if has_right else None, soft_cap=self.softcap,
                       alibi=self.alibi_slopes is not None, sink_logits=self.sinks is not None,
                       q_scale_kind=_scale_kind(self.q_scale), k_scale_kind=_scale_kind(self.k_scale),
                       v_scale_kind=_scale_kind(self.v_scale), **more)

    def arrays(self) -> _Arrays:
        return {"alibi_slopes": self.alibi_slopes, "sink_logits": self.sinks, "q_scale": self.q_scale,
                "k_scale": self.k_scale, "v_scale": self.v_scale}


def _run_on_device(plan: Plan, arrays: _Arrays, numbers: Dict[str, Any]) -> None:
    q = arrays["q"]
    workspace = None
    if plan.info.workspace_bytes:
        workspace = torch.empty(plan.info.workspace_bytes, dtype=torch.uint8, device=q.device)
    stream = torch.cuda.current_stream(q.device)
    with torch.cuda.device(q.device):
        plan.run(**arrays, **numbers, workspace=workspace, stream=stream)


def _buffers(context: Context, arrays: _Arrays) -> Dict[str, Any]:
    """Copies in memory of the emulated device."""
    made: Dict[str, Any] = {}
    for name, tensor in arrays.items():
        if tensor is not None:
            made[name] = context.empty(tensor.shape, str(tensor.dtype).rsplit(".", 1)[-1])
            made[name].copy_bits_from(tensor.contiguous())
    return made


def _copy_back(buffer: Buffer, tensor: torch.Tensor) -> None:
    if tensor.is_contiguous():
        buffer.copy_bits_to(tensor)
        return
    plain = torch.empty_like(tensor, memory_format=torch.contiguous_format)
    buffer.copy_bits_to(plain)
    tensor.copy_(plain)


def _run_on_emulator(context: Context, plan: Plan, arrays: _Arrays, numbers: Dict[str, Any]) -> None:
    """Runs a call with copies in memory of the emulated device."""
    buffers = _buffers(context, arrays)
    workspace = None
    if plan.info.workspace_bytes:
        workspace = context.empty((plan.info.workspace_bytes,), "uint8")
    plan.run(**buffers, **numbers, workspace=workspace)
    context.synchronize()
    for name in ("o", "lse"):
        if name in buffers:
            _copy_back(buffers[name], arrays[name])


_TORCH_TYPES = {DType.F16: torch.float16, DType.BF16: torch.bfloat16, DType.F32: torch.float32}


def _is_emulated(tensor: torch.Tensor) -> bool:
    return tensor.device.type == "cpu"


def _one_device(arrays: _Arrays) -> torch.device:
    devices = {tensor.device for tensor in arrays.values() if tensor is not None}
    if len(devices) != 1:
        raise InvalidArgument(f"tensors are on {', '.join(sorted(map(str, devices)))}; all must be on one device", "q")
    found: torch.device = devices.pop()
    return found


def _run(problem: Problem, arrays: _Arrays, **numbers: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    o, lse = _results(arrays["q"], problem.head_dim_v, _TORCH_TYPES[dtype_of(problem.o_type)])
    _run_into(problem, {**arrays, "o": o, "lse": lse}, numbers)
    return o, lse


def _run_into(problem: Problem, arrays: _Arrays, numbers: Dict[str, Any]) -> None:
    """Runs a call with the results among the arrays."""
    context = context_of(_one_device(arrays))
    plan = context.plan(problem)
    if _is_emulated(arrays["q"]):
        _run_on_emulator(context, plan, arrays, numbers)
    else:
        _run_on_device(plan, arrays, numbers)


def _results(q: torch.Tensor, head_dim_v: int, o_type: Optional[torch.dtype] = None) -> Tuple[torch.Tensor, torch.Tensor]:
    return (q.new_empty((*q.shape[:-1], head_dim_v), dtype=_o_type(q, o_type)), q.new_empty(q.shape[:-1], dtype=torch.float32))


_OPTIONS = ("float scale, bool causal, bool top_left, int window_left, int window_right, float softcap,"
            " Tensor? alibi_slopes, Tensor? sinks, Tensor? q_scale, Tensor? k_scale, Tensor? v_scale")


def _operator(name: str, schema: str) -> Callable[[Callable[..., Any]], Any]:
    """Defines an operator for the CPU and ROCm's devices, with the shapes of its results as its fake kernel. The
    argument after V is the type of O, if the caller may choose it."""

    def define(function: Callable[..., Any]) -> Any:
        made = torch.library.custom_op(f"sluice::{name}", function, mutates_args=(), device_types=("cpu", "cuda"),
                                       schema=f"({schema}, {_OPTIONS}) -> (Tensor, Tensor)")

        def fake(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *more: Any) -> Tuple[torch.Tensor, torch.Tensor]:
            o_type = more[0] if more and isinstance(more[0], torch.dtype) else None
            return _results(q, v.shape[-1], o_type)

        made.register_fake(fake)
        return functools.wraps(function)(made)

    return define


@_operator("attention", "Tensor q, Tensor k, Tensor v, ScalarType? o_type, Tensor? bias, Tensor? mask")
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o_type: Optional[torch.dtype],
              bias: Optional[torch.Tensor], mask: Optional[torch.Tensor],
              *options: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    """O and LSE [batch, tokens, heads] of sequences of equal lengths. mask has a bit per key."""
    given = Options(*options)
    problem = given.problem(q, k, v, o_type=o_type, max_batch=_bound(q.shape[0]), max_q_len=_bound(q.shape[1]),
                            max_kv_len=_bound(k.shape[1]), bias_type=None if bias is None else bias.dtype,
                            bool_mask=mask is not None)
    return _run(problem, {"q": q, "k": k, "v": v, "bias": bias, "mask": mask, **given.arrays()}, scale=given.scale)


@_operator("attention_varlen", "Tensor q, Tensor k, Tensor v, Tensor cu_seqlens_q, Tensor cu_seqlens_k, SymInt max_seqlen_q,"
           " SymInt max_seqlen_k")
def attention_varlen(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cu_seqlens_q: torch.Tensor,
                     cu_seqlens_k: torch.Tensor, max_seqlen_q: int, max_seqlen_k: int,
                     *options: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    """O and LSE [tokens, heads] of sequences one after the other."""
    given = Options(*options)
    problem = given.problem(q, k, v, mode=Mode.RAGGED, max_batch=_bound(cu_seqlens_q.shape[0] - 1),
                            max_q_len=_bound(max_seqlen_q), max_kv_len=_bound(max_seqlen_k))
    return _run(problem, {"q": q, "k": k, "v": v, "q_starts": cu_seqlens_q, "kv_starts": cu_seqlens_k, **given.arrays()},
                scale=given.scale, q_len=max_seqlen_q, kv_len=max_seqlen_k)


@_operator("attention_paged", "Tensor q, Tensor k_cache, Tensor v_cache, Tensor block_table, Tensor cache_seqlens")
def attention_paged(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, block_table: torch.Tensor,
                    cache_seqlens: torch.Tensor, *options: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    """O and LSE [batch, tokens, heads] of new rows over a cache in pages [pages, page_size, kv_heads, dim]."""
    given = Options(*options)
    page_size = k_cache.shape[1]
    keys = block_table.shape[1] * page_size
    problem = given.problem(q, k_cache, v_cache, mode=Mode.PAGED, page_size=page_size, page_table_kind=PageTableKind.BLOCK,
                            page_index_64=block_table.dtype == torch.int64, max_batch=_bound(q.shape[0]),
                            max_q_len=_bound(q.shape[1]), max_kv_len=_bound(keys))
    return _run(problem, {"q": q, "k": k_cache, "v": v_cache, "page_table": block_table, "kv_lengths": cache_seqlens,
                          **given.arrays()}, scale=given.scale, kv_len=keys)


class _PagedRows(NamedTuple):
    """New rows of several sequences, one after the other, over a cache in pages."""

    q: torch.Tensor
    k_cache: torch.Tensor
    v_cache: torch.Tensor
    starts: torch.Tensor
    max_rows: int
    table: torch.Tensor
    lengths: torch.Tensor
    max_keys: int

    def problem(self, given: Options, write_lse: bool) -> Problem:
        return given.problem(self.q, self.k_cache, self.v_cache, write_lse, mode=Mode.PAGED,
                             page_size=self.k_cache.shape[1], page_table_kind=PageTableKind.BLOCK,
                             page_index_64=self.table.dtype == torch.int64, max_batch=_bound(self.starts.shape[0] - 1),
                             max_q_len=_bound(self.max_rows), max_kv_len=_bound(self.max_keys))

    def arrays(self, given: Options) -> _Arrays:
        return {"q": self.q, "k": self.k_cache, "v": self.v_cache, "q_starts": self.starts, "page_table": self.table,
                "kv_lengths": self.lengths, **given.arrays()}

    def numbers(self, given: Options) -> Dict[str, Any]:
        return {"scale": given.scale, "batch": self.starts.shape[0] - 1, "q_len": self.max_rows, "kv_len": self.max_keys}


_PAGED_ROWS = ("Tensor q, Tensor k_cache, Tensor v_cache, Tensor cu_seqlens_q, SymInt max_seqlen_q, Tensor block_table,"
               " Tensor cache_seqlens, SymInt max_seqlen_k")


def _paged_call(arguments: Tuple[Any, ...]) -> Tuple[_PagedRows, Options]:
    """The arguments of an operator on paged rows."""
    count = len(_PagedRows._fields)
    return _PagedRows(*arguments[:count]), Options(*arguments[count:])


@_operator("attention_paged_varlen", _PAGED_ROWS)
def attention_paged_varlen(*arguments: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    """O and LSE [tokens, heads] of new rows of several sequences, one after the other, over a cache in pages."""
    call, given = _paged_call(arguments)
    return _run(call.problem(given, write_lse=True), call.arrays(given), **call.numbers(given))


def _paged_varlen_into(out: torch.Tensor, *arguments: Any) -> None:
    call, given = _paged_call(arguments)
    _run_into(call.problem(given, write_lse=False), {**call.arrays(given), "o": out}, call.numbers(given))


attention_paged_varlen_into = torch.library.custom_op(
    "sluice::attention_paged_varlen_into", _paged_varlen_into, mutates_args=("out",), device_types=("cpu", "cuda"),
    schema=f"(Tensor(a!) out, {_PAGED_ROWS}, {_OPTIONS}) -> ()")
attention_paged_varlen_into.register_fake(lambda *_: None)


def _merged(partial: torch.Tensor, partial_lse: torch.Tensor,
            o_type: torch.dtype) -> Tuple[torch.Tensor, torch.Tensor]:
    return partial.new_empty(partial.shape[1:], dtype=o_type), torch.empty_like(partial_lse[0])


def _merge(partial: torch.Tensor, partial_lse: torch.Tensor,
           o_type: torch.dtype) -> Tuple[torch.Tensor, torch.Tensor]:
    o, lse = _merged(partial, partial_lse, o_type)
    arrays: _Arrays = {"partial": partial, "partial_lse": partial_lse, "o": o, "lse": lse}
    context = context_of(_one_device(arrays))
    if _is_emulated(partial):
        buffers = _buffers(context, arrays)
        context.merge(**buffers)
        context.synchronize()
        _copy_back(buffers["o"], o)
        _copy_back(buffers["lse"], lse)
    else:
        with torch.cuda.device(partial.device):
            context.merge(**arrays, stream=torch.cuda.current_stream(partial.device))
    return o, lse


merge = torch.library.custom_op("sluice::merge", _merge, mutates_args=(), device_types=("cpu", "cuda"))
merge.register_fake(_merged)


def _append_on_emulator(context: Context, arrays: _Arrays) -> None:
    buffers = _buffers(context, arrays)
    context.append(**buffers)
    context.synchronize()
    for name in ("k_cache", "v_cache"):
        _copy_back(buffers[name], arrays[name])


def _append(k: torch.Tensor, v: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor,
            slot_mapping: torch.Tensor, k_scale: Optional[torch.Tensor], v_scale: Optional[torch.Tensor]) -> None:
    arrays: _Arrays = {"k": k, "v": v, "k_cache": k_cache, "v_cache": v_cache, "slots": slot_mapping, "k_scale": k_scale,
                       "v_scale": v_scale}
    context = context_of(_one_device(arrays))
    if _is_emulated(k):
        _append_on_emulator(context, arrays)
        return
    with torch.cuda.device(k.device):
        context.append(**arrays, stream=torch.cuda.current_stream(k.device))


append = torch.library.custom_op("sluice::append", _append, mutates_args=("k_cache", "v_cache"),
                                 device_types=("cpu", "cuda"))
append.register_fake(lambda *_: None)

OPERATORS: List[str] = ["attention", "attention_varlen", "attention_paged", "attention_paged_varlen", "attention_paged_varlen_into",
                        "append", "merge"]
