"""Attention as operators of torch.library, on ROCm's devices and, through the emulator, on the CPU.

An operator's tensors are laid out as in FlashAttention: [batch, tokens, heads, dim], and rows of several sequences
[tokens, heads, dim]. Each operator has a fake kernel, so that graphs with it are compiled and exported whole.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, get_type_hints

import torch

from . import _torch_run as device
from ._enums import PageTableKind
from ._errors import InvalidArgument
from ._problem import Problem
from ._torch_checks import F32, FLOATS, INDICES, INT32, INT64, VALUES, Extents
from ._torch_options import Arrays, Options, bound

_SCHEMA_TYPES = {float: "float", Optional[float]: "float?", bool: "bool", int: "SymInt", Optional[torch.Tensor]: "Tensor?",
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
            return device.results(q, given.dim_of_v(v), given.o_type)

        made.register_fake(fake)
        return functools.wraps(function)(made)

    return define



def _extents() -> Extents:
    return Extents(q_heads=1, kv_heads=1, dim_qk=1, dim_v=1, page_size=1, batch_and_1=1, prefixes_and_1=1)


def _check_values(extents: Extents, rows: str, keys: str, names: Sequence[str], q: torch.Tensor, k: torch.Tensor,
                  v: Optional[torch.Tensor], given: Options) -> None:
    extents.check(q, names[0], f"{rows} q_heads dim_qk", VALUES)
    extents.check(k, names[1], f"{keys} kv_heads dim_qk", VALUES)
    extents.check(v, names[2], f"{keys} kv_heads dim_v", VALUES)
    given.dim_of_v(v)


@_operator("attention", "Tensor q, Tensor k, Tensor? v")
def attention(q: torch.Tensor, k: torch.Tensor, v: Optional[torch.Tensor],
              *options: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    """O and LSE [batch, tokens, heads] of sequences of equal lengths."""
    given, extents = Options(*options), _extents()
    _check_values(extents, "batch rows", "batch keys", ("q", "k", "v"), q, k, v, given)
    given.check(extents, "batch keys")
    given = given.used()
    problem = given.problem(q, k, v, max_batch=bound(q.shape[0]), max_q_len=bound(q.shape[1]), max_kv_len=bound(k.shape[1]))
    return device.run(problem, given, {"q": q, "k": k, "v": v})


@_operator("attention_varlen", "Tensor q, Tensor k, Tensor? v, Tensor cu_seqlens_q, Tensor cu_seqlens_k,"
           " SymInt max_seqlen_q, SymInt max_seqlen_k")
def attention_varlen(q: torch.Tensor, k: torch.Tensor, v: Optional[torch.Tensor], cu_seqlens_q: torch.Tensor,
                     cu_seqlens_k: torch.Tensor, max_seqlen_q: int, max_seqlen_k: int,
                     *options: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    """O and LSE [tokens, heads] of sequences one after the other."""
    given, extents = Options(*options), _extents()
    extents.check(cu_seqlens_q, "cu_seqlens_q", "batch_and_1", INT32)
    extents.check(cu_seqlens_k, "cu_seqlens_k", "batch_and_1", INT32)
    _set_batch(extents, cu_seqlens_q, max_seqlen_q, max_seqlen_k)
    _check_values(extents, "tokens", "key_tokens", ("q", "k", "v"), q, k, v, given)
    given.check(extents, "key_tokens")
    given = given.used()
    problem = given.problem(q, k, v, ragged=True, max_batch=bound(cu_seqlens_q.shape[0] - 1),
                            max_q_len=bound(max_seqlen_q), max_kv_len=bound(max_seqlen_k))
    return device.run(problem, given, {"q": q, "k": k, "v": v, "q_starts": cu_seqlens_q, "kv_starts": cu_seqlens_k},
                      q_len=max_seqlen_q, kv_len=max_seqlen_k)


def _set_batch(extents: Extents, starts: torch.Tensor, max_rows: int, max_keys: int) -> None:
    """The extents of sequences one after the other."""
    extents.given("batch", starts.shape[0] - 1, "cu_seqlens_q.shape[0] - 1")
    extents.given("rows", max_rows, "max_seqlen_q")
    extents.given("keys", max_keys, "max_seqlen_k")


@_operator("attention_paged", "Tensor q, Tensor k_cache, Tensor? v_cache, Tensor block_table, Tensor cache_seqlens")
def attention_paged(q: torch.Tensor, k_cache: torch.Tensor, v_cache: Optional[torch.Tensor], block_table: torch.Tensor,
                    cache_seqlens: torch.Tensor, *options: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    """O and LSE [batch, tokens, heads] of new rows over a cache in pages [pages, page_size, kv_heads, dim]. The table is
    [batch, pages of a sequence], or [batch, kv_heads, pages of a sequence]."""
    given, extents = Options(*options), _extents()
    _check_values(extents, "batch rows", "pages page_size", ("q", "k_cache", "v_cache"), q, k_cache, v_cache, given)
    extents.check(block_table, "block_table", ("batch columns", "batch kv_heads columns"), INDICES)
    extents.check(cache_seqlens, "cache_seqlens", "batch", INT32)
    page_size = k_cache.shape[1]
    keys = block_table.shape[-1] * page_size
    extents.given("keys", keys, "block_table.shape[-1] * page_size")
    given.check(extents, "pages page_size", block_table)
    given = given.used(k_cache.shape[0])
    problem = given.problem(q, k_cache, v_cache, page_size=page_size, page_table_kind=PageTableKind.BLOCK,
                            page_index_64=block_table.dtype == torch.int64, max_batch=bound(q.shape[0]),
                            max_q_len=bound(q.shape[1]), max_kv_len=bound(keys))
    return device.run(problem, given, {"q": q, "k": k_cache, "v": v_cache, "page_table": block_table,
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

    def check(self, given: Options, out: Optional[torch.Tensor] = None) -> None:
        extents = _extents()
        extents.check(self.starts, "cu_seqlens_q", "batch_and_1", INT32)
        _set_batch(extents, self.starts, self.max_rows, self.max_keys)
        _check_values(extents, "tokens", "pages page_size", ("q", "k_cache", "v_cache"), self.q, self.k_cache, self.v_cache,
                      given)
        extents.given("table_pages", -(-self.max_keys // self.k_cache.shape[1]), "max_seqlen_k / page_size")
        extents.check(self.table, "block_table", ("batch table_pages+", "batch kv_heads table_pages+"), INDICES)
        extents.check(self.lengths, "cache_seqlens", "batch", INT32)
        given.check(extents, "pages page_size", self.table)
        if out is not None:
            extents.given("dim_v", given.dim_of_v(self.v_cache), "v_cache.shape[3]")
            extents.check(out, "out", "tokens q_heads dim_v", VALUES)

    def problem(self, given: Options, write_lse: bool) -> Problem:
        return given.problem(self.q, self.k_cache, self.v_cache, write_lse,
                             page_size=self.k_cache.shape[1], page_table_kind=PageTableKind.BLOCK,
                             page_index_64=self.table.dtype == torch.int64, max_batch=bound(self.starts.shape[0] - 1),
                             max_q_len=bound(self.max_rows), max_kv_len=bound(self.max_keys))

    def arrays(self) -> Arrays:
        return {"q": self.q, "k": self.k_cache, "v": self.v_cache, "q_starts": self.starts, "page_table": self.table,
                "kv_lengths": self.lengths}

    def numbers(self) -> Dict[str, Any]:
        return {"batch": self.starts.shape[0] - 1, "q_len": self.max_rows, "kv_len": self.max_keys}


_PAGED_ROWS = ("Tensor q, Tensor k_cache, Tensor? v_cache, Tensor cu_seqlens_q, SymInt max_seqlen_q, Tensor block_table,"
               " Tensor cache_seqlens, SymInt max_seqlen_k")


def _paged_call(arguments: Tuple[Any, ...], out: Optional[torch.Tensor] = None) -> Tuple[_PagedRows, Options]:
    """The checked arguments of an operator on paged rows."""
    count = len(_PagedRows._fields)
    call, given = _PagedRows(*arguments[:count]), Options(*arguments[count:])
    call.check(given, out)
    return call, given.used(call.k_cache.shape[0])


@_operator("attention_paged_varlen", _PAGED_ROWS)
def attention_paged_varlen(*arguments: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    """O and LSE [tokens, heads] of new rows of several sequences, one after the other, over a cache in pages."""
    call, given = _paged_call(arguments)
    return device.run(call.problem(given, write_lse=True), given, call.arrays(), **call.numbers())


def _paged_varlen_into(out: torch.Tensor, *arguments: Any) -> None:
    call, given = _paged_call(arguments, out)
    given = given._replace(o_type=out.dtype)
    device.run_into(call.problem(given, write_lse=False), {**call.arrays(), **given.arrays(), "o": out},
                    {**given.numbers(), **call.numbers()})


attention_paged_varlen_into = torch.library.custom_op(
    "sluice::attention_paged_varlen_into", _paged_varlen_into, mutates_args=("out",), device_types=("cpu", "cuda"),
    schema=f"(Tensor(a!) out, {_PAGED_ROWS}, {_OPTIONS}) -> ()")
attention_paged_varlen_into.register_fake(lambda *_: None)


def _merged(partial: torch.Tensor, partial_lse: torch.Tensor, o_type: torch.dtype, sinks: Optional[torch.Tensor],
            infinity_is_empty: bool) -> Tuple[torch.Tensor, torch.Tensor]:
    return partial.new_empty(partial.shape[1:], dtype=o_type), partial_lse.new_empty(partial_lse.shape[1:])


def _merge(partial: torch.Tensor, partial_lse: torch.Tensor, o_type: torch.dtype, sinks: Optional[torch.Tensor],
           infinity_is_empty: bool) -> Tuple[torch.Tensor, torch.Tensor]:
    extents = Extents(parts=1, heads=1, dim=1)
    extents.check(partial, "partial", "parts tokens heads dim", FLOATS)
    extents.check(partial_lse, "partial_lse", "parts tokens heads", F32)
    extents.check(sinks, "sinks", "heads", F32)
    o, lse = _merged(partial, partial_lse, o_type, sinks, infinity_is_empty)
    device.operate("merge", {"partial": partial, "partial_lse": partial_lse, "o": o, "lse": lse, "sink_logits": sinks},
                   ("o", "lse"), infinity_is_empty=infinity_is_empty)
    return o, lse


merge = torch.library.custom_op("sluice::merge", _merge, mutates_args=(), device_types=("cpu", "cuda"))
merge.register_fake(_merged)


_STORED = ("k_cache", "v_cache", "k_token_scales", "v_token_scales")
"""The tensors that an append writes."""


def _append(k: torch.Tensor, v: Optional[torch.Tensor], k_cache: torch.Tensor, v_cache: Optional[torch.Tensor],
            slot_mapping: torch.Tensor, k_scale: Optional[torch.Tensor], v_scale: Optional[torch.Tensor],
            k_token_scales: Optional[torch.Tensor], v_token_scales: Optional[torch.Tensor],
            k_page_scales: Optional[torch.Tensor], v_page_scales: Optional[torch.Tensor],
            k_tail: Optional[torch.Tensor]) -> None:
    extents = Extents(kv_heads=1, dim=1, dim_v=1, page_size=1)
    extents.check(k, "key", "tokens kv_heads dim", VALUES)
    extents.check(k_tail, "key_tail", "tokens kv_heads tail", VALUES)
    if (v is None) != (v_cache is None):
        field, other = ("value", "value_cache") if v is None else ("value_cache", "value")
        raise InvalidArgument(f"{field} is None, but {other} is given; both or none must be", field)
    extents.check(v, "value", "tokens kv_heads dim_v", VALUES)
    extents.given("dim_cache", k.shape[2] + (0 if k_tail is None else k_tail.shape[2]), "elements of key and key_tail")
    extents.check(k_cache, "key_cache", "pages page_size kv_heads dim_cache", VALUES)
    extents.check(v_cache, "value_cache", "pages page_size kv_heads dim_v", VALUES)
    extents.check(slot_mapping, "slot_mapping", "tokens", INT64)
    for side, scale, token_scales, page_scales in (("k", k_scale, k_token_scales, k_page_scales),
                                                   ("v", v_scale, v_token_scales, v_page_scales)):
        extents.check(scale, f"{side}_scale", "kv_heads?", F32)
        extents.check(token_scales, f"{side}_token_scales", "pages page_size kv_heads", F32)
        extents.check(page_scales, f"{side}_page_scales", "pages kv_heads", F32)
    device.operate("append", {"k": k, "v": v, "k_cache": k_cache, "v_cache": v_cache, "slots": slot_mapping,
                              "k_scale": k_scale, "v_scale": v_scale, "k_token_scales": k_token_scales,
                              "v_token_scales": v_token_scales, "k_page_scales": k_page_scales,
                              "v_page_scales": v_page_scales, "k_tail": k_tail}, _STORED)


append = torch.library.custom_op("sluice::append", _append, mutates_args=_STORED, device_types=("cpu", "cuda"))
append.register_fake(lambda *_: None)

OPERATORS: List[str] = ["attention", "attention_varlen", "attention_paged", "attention_paged_varlen",
                        "attention_paged_varlen_into", "append", "merge"]
