"""Attention as operators of torch.library, on ROCm's devices and, through the emulator, on the CPU.

An operator's tensors are laid out as in FlashAttention: [batch, tokens, heads, dim], and rows of several sequences
[tokens, heads, dim]. Each operator has a fake kernel, so that graphs with it are compiled and exported whole.
"""

from __future__ import annotations

import atexit
import functools
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, get_type_hints

import torch

from ._context import Context, Plan
from ._errors import InvalidArgument
from ._hip import Buffer
from ._problem import Problem
from ._types import MaskAlignment, Mode, PageTableKind, ScaleKind

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


def _key_scale_kind(scale: Optional[torch.Tensor], scales: Optional[torch.Tensor], is_paged: bool) -> ScaleKind:
    """Scales of a cache in pages are per token, [pages, page_size, heads], or per page, [pages, heads]."""
    if scales is None:
        return _scale_kind(scale)
    return ScaleKind.PER_PAGE if is_paged and scales.dim() == 2 else ScaleKind.PER_TOKEN


class SharedPrefix(NamedTuple):
    """Keys that groups of rows see before their sequence's own keys; each prefix is read once for all its rows.

    Rows of q, counted over all sequences, from q_starts[p] on and before q_starts[p + 1] see prefix p; rows before the
    first start and from the last one on see none. Its keys are in the call's own caches, or in tensors of their own.
    """

    q_starts: torch.Tensor
    """int32 [prefixes + 1]."""
    lengths: Optional[torch.Tensor] = None
    """int32 [prefixes]: keys of each prefix; for pages, and for prefixes of different lengths."""
    block_table: Optional[torch.Tensor] = None
    """With pages: [prefixes, pages of a prefix], of the type of the call's block_table."""
    max_len: int = 0
    """With pages: the largest of `lengths`."""
    k: Optional[torch.Tensor] = None
    """Without pages: [prefixes, keys, kv_heads, dim]."""
    v: Optional[torch.Tensor] = None
    """The same for V."""


class Options(NamedTuple):
    """The arguments that follow every operator's own tensors, as the caller has chosen them."""

    scale: float = 0.0
    causal: bool = False
    top_left: bool = False
    window_left: int = -1
    window_right: int = -1
    softcap: float = 0.0
    alibi_slopes: Optional[torch.Tensor] = None
    sinks: Optional[torch.Tensor] = None
    q_scale: Optional[torch.Tensor] = None
    k_scale: Optional[torch.Tensor] = None
    v_scale: Optional[torch.Tensor] = None
    o_type: Optional[torch.dtype] = None
    o_scale: Optional[torch.Tensor] = None
    k_scales: Optional[torch.Tensor] = None
    v_scales: Optional[torch.Tensor] = None
    bias: Optional[torch.Tensor] = None
    bias_scale: Optional[torch.Tensor] = None
    mask: Optional[torch.Tensor] = None
    mask_new_rows: bool = False
    spans: Optional[torch.Tensor] = None
    diagonals: Optional[torch.Tensor] = None
    causal_sequences: Optional[torch.Tensor] = None
    missing_pages_hidden: bool = False
    head_dim_v: int = 0
    prefix_q_starts: Optional[torch.Tensor] = None
    prefix_lengths: Optional[torch.Tensor] = None
    prefix_table: Optional[torch.Tensor] = None
    prefix_max_len: int = 0
    prefix_k: Optional[torch.Tensor] = None
    prefix_v: Optional[torch.Tensor] = None

    def dim_of_v(self, v: Optional[torch.Tensor]) -> int:
        """Elements of a row of O. Without a V it is the first part of K's rows."""
        if (v is None) != (self.head_dim_v != 0):
            given = "None" if v is None else "given"
            raise InvalidArgument(f"head_dim_v is {self.head_dim_v} and V is {given}; exactly one of them must be there",
                                  "head_dim_v")
        return self.head_dim_v if v is None else v.shape[-1]

    def prefix_len(self) -> int:
        """The most keys of a prefix."""
        return self.prefix_max_len if self.prefix_k is None else self.prefix_k.shape[1]

    def problem(self, q: torch.Tensor, k: torch.Tensor, v: Optional[torch.Tensor], write_lse: bool = True,
                **more: Any) -> Problem:
        has_right = self.window_right >= 0 and not self.causal
        alignment = MaskAlignment.TOP_LEFT if self.top_left else MaskAlignment.BOTTOM_RIGHT
        if self.diagonals is not None:
            alignment = MaskAlignment.GIVEN_DIAGONAL
        if self.prefix_q_starts is not None:
            more.update(shared_prefix=True, max_prefixes=_bound(self.prefix_q_starts.shape[0] - 1),
                        max_prefix_len=_bound(self.prefix_len()), max_q_tokens=_bound(q.shape[:-2].numel()))
        is_paged = more.get("mode") == Mode.PAGED
        return Problem(q.dtype, q_heads=q.shape[-2], kv_heads=k.shape[-2], head_dim_qk=q.shape[-1],
                       head_dim_v=self.dim_of_v(v), k_type=k.dtype, v_type=k.dtype if v is None else v.dtype,
                       o_type=_o_type(q, self.o_type), write_lse=write_lse, causal=self.causal, mask_alignment=alignment,
                       window_left=self.window_left if self.window_left >= 0 else None,
                       window_right=self.window_right if has_right else None, soft_cap=self.softcap,
                       alibi=self.alibi_slopes is not None, sink_logits=self.sinks is not None,
                       q_scale_kind=_scale_kind(self.q_scale), o_scale_kind=_scale_kind(self.o_scale),
                       k_scale_kind=_key_scale_kind(self.k_scale, self.k_scales, is_paged),
                       v_scale_kind=_key_scale_kind(self.v_scale, self.v_scales, is_paged),
                       bias_type=None if self.bias is None else self.bias.dtype, bias_scale=self.bias_scale is not None,
                       bool_mask=self.mask is not None, mask_new_rows=self.mask_new_rows, spans=self.spans is not None,
                       causal_by_sequence=self.causal_sequences is not None,
                       missing_pages_hidden=self.missing_pages_hidden, v_in_k=v is None, **more)

    def arrays(self) -> _Arrays:
        return {"alibi_slopes": self.alibi_slopes, "sink_logits": self.sinks, "q_scale": self.q_scale,
                "k_scale": self.k_scale, "v_scale": self.v_scale, "o_scale": self.o_scale, "k_scales": self.k_scales,
                "v_scales": self.v_scales, "bias": self.bias, "bias_scale": self.bias_scale, "mask": self.mask,
                "spans": self.spans, "diagonals": self.diagonals, "causal": self.causal_sequences,
                "prefix_q_starts": self.prefix_q_starts, "prefix_lengths": self.prefix_lengths,
                "prefix_page_table": self.prefix_table, "prefix_k": self.prefix_k, "prefix_v": self.prefix_v}

    def numbers(self) -> Dict[str, Any]:
        return {"scale": self.scale, "prefix_len": None if self.prefix_q_starts is None else self.prefix_len()}


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
    plan.run(**{"v": None, **buffers}, **numbers, workspace=workspace)
    context.synchronize()
    for name in ("o", "lse"):
        if name in buffers:
            _copy_back(buffers[name], arrays[name])


def _is_emulated(tensor: torch.Tensor) -> bool:
    return tensor.device.type == "cpu"


def _one_device(arrays: _Arrays) -> torch.device:
    devices = {tensor.device for tensor in arrays.values() if tensor is not None}
    if len(devices) != 1:
        raise InvalidArgument(f"tensors are on {', '.join(sorted(map(str, devices)))}; all must be on one device", "q")
    found: torch.device = devices.pop()
    return found


def _run(problem: Problem, given: Options, arrays: _Arrays, **numbers: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    o, lse = _results(arrays["q"], problem.head_dim_v, given.o_type)
    _run_into(problem, {**arrays, **given.arrays(), "o": o, "lse": lse}, {**given.numbers(), **numbers})
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


_SCHEMA_TYPES = {float: "float", bool: "bool", int: "SymInt", Optional[torch.Tensor]: "Tensor?",
                 Optional[torch.dtype]: "ScalarType?"}
_OPTIONS = ", ".join(f"{_SCHEMA_TYPES[kind]} {name}" for name, kind in get_type_hints(Options).items())


def _operator(name: str, schema: str) -> Callable[[Callable[..., Any]], Any]:
    """Defines an operator for the CPU and ROCm's devices, with the shapes of its results as its fake kernel."""

    def define(function: Callable[..., Any]) -> Any:
        made = torch.library.custom_op(f"sluice::{name}", function, mutates_args=(), device_types=("cpu", "cuda"),
                                       schema=f"({schema}, {_OPTIONS}) -> (Tensor, Tensor)")

        def fake(q: torch.Tensor, k: torch.Tensor, v: Optional[torch.Tensor],
                 *more: Any) -> Tuple[torch.Tensor, torch.Tensor]:
            given = Options(*more[-len(Options._fields):])
            return _results(q, given.dim_of_v(v), given.o_type)

        made.register_fake(fake)
        return functools.wraps(function)(made)

    return define


@_operator("attention", "Tensor q, Tensor k, Tensor? v")
def attention(q: torch.Tensor, k: torch.Tensor, v: Optional[torch.Tensor],
              *options: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    """O and LSE [batch, tokens, heads] of sequences of equal lengths."""
    given = Options(*options)
    problem = given.problem(q, k, v, max_batch=_bound(q.shape[0]), max_q_len=_bound(q.shape[1]),
                            max_kv_len=_bound(k.shape[1]))
    return _run(problem, given, {"q": q, "k": k, "v": v})


@_operator("attention_varlen", "Tensor q, Tensor k, Tensor? v, Tensor cu_seqlens_q, Tensor cu_seqlens_k,"
           " SymInt max_seqlen_q, SymInt max_seqlen_k")
def attention_varlen(q: torch.Tensor, k: torch.Tensor, v: Optional[torch.Tensor], cu_seqlens_q: torch.Tensor,
                     cu_seqlens_k: torch.Tensor, max_seqlen_q: int, max_seqlen_k: int,
                     *options: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    """O and LSE [tokens, heads] of sequences one after the other."""
    given = Options(*options)
    problem = given.problem(q, k, v, mode=Mode.RAGGED, max_batch=_bound(cu_seqlens_q.shape[0] - 1),
                            max_q_len=_bound(max_seqlen_q), max_kv_len=_bound(max_seqlen_k))
    return _run(problem, given, {"q": q, "k": k, "v": v, "q_starts": cu_seqlens_q, "kv_starts": cu_seqlens_k},
                q_len=max_seqlen_q, kv_len=max_seqlen_k)


@_operator("attention_paged", "Tensor q, Tensor k_cache, Tensor? v_cache, Tensor block_table, Tensor cache_seqlens")
def attention_paged(q: torch.Tensor, k_cache: torch.Tensor, v_cache: Optional[torch.Tensor], block_table: torch.Tensor,
                    cache_seqlens: torch.Tensor, *options: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    """O and LSE [batch, tokens, heads] of new rows over a cache in pages [pages, page_size, kv_heads, dim]. The table is
    [batch, pages of a sequence], or [batch, kv_heads, pages of a sequence]."""
    given = Options(*options)
    page_size = k_cache.shape[1]
    keys = block_table.shape[-1] * page_size
    problem = given.problem(q, k_cache, v_cache, mode=Mode.PAGED, page_size=page_size, page_table_kind=PageTableKind.BLOCK,
                            page_index_64=block_table.dtype == torch.int64, max_batch=_bound(q.shape[0]),
                            max_q_len=_bound(q.shape[1]), max_kv_len=_bound(keys))
    return _run(problem, given, {"q": q, "k": k_cache, "v": v_cache, "page_table": block_table,
                                 "kv_lengths": cache_seqlens}, kv_len=keys)


class _PagedRows(NamedTuple):
    """New rows of several sequences, one after the other, over a cache in pages."""

    q: torch.Tensor
    k_cache: torch.Tensor
    v_cache: Optional[torch.Tensor]
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

    def arrays(self) -> _Arrays:
        return {"q": self.q, "k": self.k_cache, "v": self.v_cache, "q_starts": self.starts, "page_table": self.table,
                "kv_lengths": self.lengths}

    def numbers(self) -> Dict[str, Any]:
        return {"batch": self.starts.shape[0] - 1, "q_len": self.max_rows, "kv_len": self.max_keys}


_PAGED_ROWS = ("Tensor q, Tensor k_cache, Tensor? v_cache, Tensor cu_seqlens_q, SymInt max_seqlen_q, Tensor block_table,"
               " Tensor cache_seqlens, SymInt max_seqlen_k")


def _paged_call(arguments: Tuple[Any, ...]) -> Tuple[_PagedRows, Options]:
    """The arguments of an operator on paged rows."""
    count = len(_PagedRows._fields)
    return _PagedRows(*arguments[:count]), Options(*arguments[count:])


@_operator("attention_paged_varlen", _PAGED_ROWS)
def attention_paged_varlen(*arguments: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    """O and LSE [tokens, heads] of new rows of several sequences, one after the other, over a cache in pages."""
    call, given = _paged_call(arguments)
    return _run(call.problem(given, write_lse=True), given, call.arrays(), **call.numbers())


def _paged_varlen_into(out: torch.Tensor, *arguments: Any) -> None:
    call, given = _paged_call(arguments)
    given = given._replace(o_type=out.dtype)
    _run_into(call.problem(given, write_lse=False), {**call.arrays(), **given.arrays(), "o": out},
              {**given.numbers(), **call.numbers()})


attention_paged_varlen_into = torch.library.custom_op(
    "sluice::attention_paged_varlen_into", _paged_varlen_into, mutates_args=("out",), device_types=("cpu", "cuda"),
    schema=f"(Tensor(a!) out, {_PAGED_ROWS}, {_OPTIONS}) -> ()")
attention_paged_varlen_into.register_fake(lambda *_: None)


def _merged(partial: torch.Tensor, partial_lse: torch.Tensor, o_type: torch.dtype, sinks: Optional[torch.Tensor],
            infinity_is_empty: bool) -> Tuple[torch.Tensor, torch.Tensor]:
    return partial.new_empty(partial.shape[1:], dtype=o_type), torch.empty_like(partial_lse[0])


def _merge(partial: torch.Tensor, partial_lse: torch.Tensor, o_type: torch.dtype, sinks: Optional[torch.Tensor],
           infinity_is_empty: bool) -> Tuple[torch.Tensor, torch.Tensor]:
    o, lse = _merged(partial, partial_lse, o_type, sinks, infinity_is_empty)
    arrays: _Arrays = {"partial": partial, "partial_lse": partial_lse, "o": o, "lse": lse, "sink_logits": sinks}
    context = context_of(_one_device(arrays))
    if _is_emulated(partial):
        buffers = _buffers(context, arrays)
        context.merge(**buffers, infinity_is_empty=infinity_is_empty)
        context.synchronize()
        _copy_back(buffers["o"], o)
        _copy_back(buffers["lse"], lse)
    else:
        with torch.cuda.device(partial.device):
            context.merge(**arrays, infinity_is_empty=infinity_is_empty, stream=torch.cuda.current_stream(partial.device))
    return o, lse


merge = torch.library.custom_op("sluice::merge", _merge, mutates_args=(), device_types=("cpu", "cuda"))
merge.register_fake(_merged)


_STORED = ("k_cache", "v_cache", "k_token_scales", "v_token_scales")
"""The tensors that an append writes."""


def _append_on_emulator(context: Context, arrays: _Arrays) -> None:
    buffers = _buffers(context, arrays)
    context.append(**{"v": None, "v_cache": None, **buffers})
    context.synchronize()
    for name in _STORED:
        if name in buffers:
            _copy_back(buffers[name], arrays[name])


def _append(k: torch.Tensor, v: Optional[torch.Tensor], k_cache: torch.Tensor, v_cache: Optional[torch.Tensor],
            slot_mapping: torch.Tensor, k_scale: Optional[torch.Tensor], v_scale: Optional[torch.Tensor],
            k_token_scales: Optional[torch.Tensor], v_token_scales: Optional[torch.Tensor],
            k_page_scales: Optional[torch.Tensor], v_page_scales: Optional[torch.Tensor],
            k_tail: Optional[torch.Tensor]) -> None:
    arrays: _Arrays = {"k": k, "v": v, "k_cache": k_cache, "v_cache": v_cache, "slots": slot_mapping, "k_scale": k_scale,
                       "v_scale": v_scale, "k_token_scales": k_token_scales, "v_token_scales": v_token_scales,
                       "k_page_scales": k_page_scales, "v_page_scales": v_page_scales, "k_tail": k_tail}
    context = context_of(_one_device(arrays))
    if _is_emulated(k):
        _append_on_emulator(context, arrays)
        return
    with torch.cuda.device(k.device):
        context.append(**arrays, stream=torch.cuda.current_stream(k.device))


append = torch.library.custom_op("sluice::append", _append, mutates_args=_STORED, device_types=("cpu", "cuda"))
append.register_fake(lambda *_: None)

OPERATORS: List[str] = ["attention", "attention_varlen", "attention_paged", "attention_paged_varlen",
                        "attention_paged_varlen_into", "append", "merge"]
