"""Attention for torch, with the signatures of torch and of FlashAttention.

Tensors are on a ROCm device, where nothing is copied, or on the CPU, where the emulator computes. Inference only,
without a backward pass. Unsupported calls raise sluice.Unsupported with the field and the nearest supported value.

alibi_slopes are F32, [heads] or [batch, heads]. q_descale, k_descale and v_descale belong to tensors of
float8_e4m3fnuz, and those of K and V also to float8_e5m2fnuz and int8: F32, one for the tensor or one for each head. The
kernels multiply by them. O is of the type of Q, or bfloat16 for FP8 queries, unless out_dtype says otherwise: float32 for
the unrounded sums, which merge_states takes, or float8_e4m3fnuz. Everything that FlashAttention's arguments cannot say is
in `extra`, an Extra.

A scale of None is 1 / sqrt(dim); 0 is a number like any other. Tensors may have no rows, no keys or no sequences: a call
without rows launches nothing, and a row without keys is 0 with an LSE of -infinity, or the sink. A cache without pages has
no keys. Extents that calls share must be equal. A wrong argument raises sluice.InvalidArgument, a ValueError, with its name.

Equal calls give equal bits. With batch_invariant, the bits of a sequence depend neither on the batch size nor on the other
sequences; keys are then split at fixed places, which takes more workspace. None is what set_batch_invariant has set.
torch.use_deterministic_algorithms does not set it: it asks only that equal calls give equal results.
"""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple, Union, get_type_hints

import torch

from . import _torch_ops as ops
from . import _torch_sdpa as sdpa
from ._errors import InvalidArgument, Unsupported
from ._torch_checks import INDICES, VALUES, Extents, Window, check_kind, kinds_of, named_arguments
from ._torch_options import Options, SharedPrefix
from ._torch_run import context_of, set_context


class Extra(NamedTuple):
    """What a call may have besides FlashAttention's arguments. sluice.h has the rules of each, and says which go
    together."""

    k_scales: Optional[torch.Tensor] = None
    """Scales of K, F32: one per token and head, with the shape of K without its last dimension; of a cache in pages also
    one per page and head, [pages, kv_heads]. In place of k_descale."""
    v_scales: Optional[torch.Tensor] = None
    """The same for V, in place of v_descale."""
    o_scale: Optional[torch.Tensor] = None
    """F32, one for the tensor or [heads]: an O of float8_e4m3fnuz is divided by it."""
    bias: Optional[torch.Tensor] = None
    """Added to the scores: float32 or of 16 bits, [batch, heads, rows, keys]; an extent of 1 is the same for all."""
    bias_scale: Optional[torch.Tensor] = None
    """F32, [heads] or [batch, heads]: the bias is multiplied by it."""
    new_rows_mask: Optional[torch.Tensor] = None
    """bool, [batch, heads or 1, rows, rows]: which of a sequence's newest keys, as many as it has rows, each row sees. The
    keys before them are not masked: drafts as a tree."""
    spans: Optional[torch.Tensor] = None
    """int32, [batch, spans, 2]: the first key of a span, and the one after its last. Its keys see each other in both
    directions: images in text."""
    diagonals: Optional[torch.Tensor] = None
    """int32, [batch]: the key on the diagonal of row 0, for masks, windows and slopes. Without it, the last row's is the
    last key."""
    causal_sequences: Optional[torch.Tensor] = None
    """int32, [batch]: not 0 for causal sequences; in place of `causal`."""
    missing_pages_hidden: bool = False
    """Keys of pages whose number in block_table is negative are invisible: lists of pages with holes."""
    head_dim_v: int = 0
    """Without V, which is then None: V is the first head_dim_v elements of each row of K, as in multi-head latent
    attention."""
    prefix: Optional[SharedPrefix] = None
    """Keys that groups of rows see before their sequence's own."""


_NOTHING = Extra()
_EXTRA_KINDS = kinds_of(get_type_hints(Extra))
_PREFIX_KINDS = kinds_of(get_type_hints(SharedPrefix))
_batch_invariant = False
_Results = Union[torch.Tensor, Tuple[torch.Tensor, torch.Tensor]]


def _no_dropout(dropout_p: float) -> None:
    if dropout_p != 0.0:
        raise Unsupported(f"dropout_p is {dropout_p}; nearest supported: 0.0", "dropout_p")


@named_arguments
def set_batch_invariant(enabled: bool) -> None:
    """Whether calls of this process are batch-invariant that do not say it themselves. At first they are not."""
    global _batch_invariant
    _batch_invariant = enabled


def _invariant(wanted: Optional[bool]) -> bool:
    return _batch_invariant if wanted is None else wanted


def _check_extra(extra: Extra) -> None:
    for name, kind in _EXTRA_KINDS.items():
        check_kind(getattr(extra, name), name, kind)
    if extra.head_dim_v < 0:
        raise InvalidArgument(f"head_dim_v is {extra.head_dim_v}; it must not be negative", "head_dim_v")
    if extra.prefix is not None:
        for name, kind in _PREFIX_KINDS.items():
            check_kind(getattr(extra.prefix, name), f"prefix.{name}", kind)
    mask = extra.new_rows_mask
    if mask is not None and mask.dtype != torch.bool:
        raise InvalidArgument(f"new_rows_mask is of {mask.dtype}; it must be of torch.bool", "new_rows_mask")
    if mask is not None and (mask.dim() != 4 or mask.shape[2] != mask.shape[3]):
        raise InvalidArgument(f"new_rows_mask has the shape {tuple(mask.shape)}; it must be [batch, heads or 1, rows, rows]",
                              "new_rows_mask")


def _descale(scale: Optional[torch.Tensor]) -> Optional[torch.Tensor]:
    """A scale without dimensions applies to the whole tensor."""
    return scale.reshape(1) if scale is not None and scale.dim() == 0 else scale


def _options(scale: Optional[float], causal: bool, window: Window, softcap: float, alibi_slopes: Optional[torch.Tensor],
             sinks: Optional[torch.Tensor], q_descale: Optional[torch.Tensor], k_descale: Optional[torch.Tensor],
             v_descale: Optional[torch.Tensor], out_dtype: Optional[torch.dtype], extra: Extra,
             batch_invariant: Optional[bool]) -> Options:
    """The operators' last arguments, with FlashAttention's masks, which end at the last key."""
    _check_extra(extra)
    mask = extra.new_rows_mask
    made = Options(
        scale, causal, False, window[0], window[1], softcap, alibi_slopes, sinks, _descale(q_descale),
        _descale(k_descale), _descale(v_descale), out_dtype, _descale(extra.o_scale), extra.k_scales, extra.v_scales,
        extra.bias, extra.bias_scale, None if mask is None else sdpa.packed_bits(mask), mask is not None, extra.spans,
        extra.diagonals, extra.causal_sequences, extra.missing_pages_hidden, extra.head_dim_v,
        batch_invariant=_invariant(batch_invariant))
    if extra.prefix is None:
        return made
    prefix = extra.prefix
    return made._replace(prefix_q_starts=prefix.q_starts, prefix_lengths=prefix.lengths, prefix_table=prefix.block_table,
                         prefix_max_len=prefix.max_len, prefix_k=prefix.k, prefix_v=prefix.v)


@named_arguments
def scaled_dot_product_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                                 attn_mask: Optional[torch.Tensor] = None, dropout_p: float = 0.0, is_causal: bool = False,
                                 scale: Optional[float] = None, enable_gqa: bool = False,
                                 batch_invariant: Optional[bool] = None) -> torch.Tensor:
    """As torch.nn.functional.scaled_dot_product_attention, for tensors [..., heads, tokens, dim], which are broadcast as
    there. A row that sees no key is 0 here."""
    _no_dropout(dropout_p)
    if attn_mask is not None and is_causal:
        raise InvalidArgument("attn_mask is given and is_causal is True; one of them must not be", "attn_mask")
    call = sdpa.operands(query, key, value, enable_gqa)
    bias, mask = sdpa.mask_of(attn_mask, call)
    if call.is_empty():
        return query.new_zeros(call.shape)
    options = Options(scale, is_causal, top_left=True, bias=bias, mask=mask, batch_invariant=_invariant(batch_invariant))
    o: torch.Tensor = ops.attention(call.q.transpose(1, 2), call.k.transpose(1, 2), call.v.transpose(1, 2), *options)[0]
    return o.transpose(1, 2).reshape(call.shape)


@named_arguments
def flash_attn_func(q: torch.Tensor, k: torch.Tensor, v: Optional[torch.Tensor], dropout_p: float = 0.0,
                    softmax_scale: Optional[float] = None, causal: bool = False, window_size: Window = (-1, -1),
                    softcap: float = 0.0, alibi_slopes: Optional[torch.Tensor] = None, deterministic: bool = False,
                    return_attn_probs: bool = False, out_dtype: Optional[torch.dtype] = None,
                    q_descale: Optional[torch.Tensor] = None, k_descale: Optional[torch.Tensor] = None,
                    v_descale: Optional[torch.Tensor] = None, extra: Extra = _NOTHING,
                    batch_invariant: Optional[bool] = None) -> _Results:
    """As flash_attn_func, for tensors [batch, tokens, heads, dim]. return_attn_probs adds the LSE [batch, heads,
    tokens], but no probabilities. Results are always deterministic."""
    _no_dropout(dropout_p)
    options = _options(softmax_scale, causal, window_size, softcap, alibi_slopes, None, q_descale, k_descale, v_descale,
                       out_dtype, extra, batch_invariant)
    o, lse = ops.attention(q, k, v, *options)
    return (o, lse.transpose(1, 2)) if return_attn_probs else o


@named_arguments
def flash_attn_varlen_func(q: torch.Tensor, k: torch.Tensor, v: Optional[torch.Tensor], cu_seqlens_q: torch.Tensor,
                           cu_seqlens_k: torch.Tensor, max_seqlen_q: int, max_seqlen_k: int, dropout_p: float = 0.0,
                           softmax_scale: Optional[float] = None, causal: bool = False, window_size: Window = (-1, -1),
                           softcap: float = 0.0, alibi_slopes: Optional[torch.Tensor] = None, deterministic: bool = False,
                           return_attn_probs: bool = False, q_descale: Optional[torch.Tensor] = None,
                           k_descale: Optional[torch.Tensor] = None, v_descale: Optional[torch.Tensor] = None,
                           out_dtype: Optional[torch.dtype] = None, extra: Extra = _NOTHING,
                           batch_invariant: Optional[bool] = None) -> _Results:
    """As flash_attn_varlen_func, for sequences one after the other, [tokens, heads, dim]; cu_seqlens are int32 [batch + 1].
    return_attn_probs adds the LSE [heads, tokens], but no probabilities."""
    _no_dropout(dropout_p)
    options = _options(softmax_scale, causal, window_size, softcap, alibi_slopes, None, q_descale, k_descale, v_descale,
                       out_dtype, extra, batch_invariant)
    o, lse = ops.attention_varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, *options)
    return (o, lse.transpose(0, 1)) if return_attn_probs else o


@named_arguments
def flash_attn_with_kvcache(q: torch.Tensor, k_cache: torch.Tensor, v_cache: Optional[torch.Tensor],
                            cache_seqlens: torch.Tensor, block_table: torch.Tensor, softmax_scale: Optional[float] = None,
                            causal: bool = False, window_size: Window = (-1, -1), softcap: float = 0.0,
                            alibi_slopes: Optional[torch.Tensor] = None, sinks: Optional[torch.Tensor] = None,
                            return_softmax_lse: bool = False, q_descale: Optional[torch.Tensor] = None,
                            k_descale: Optional[torch.Tensor] = None, v_descale: Optional[torch.Tensor] = None,
                            out_dtype: Optional[torch.dtype] = None, extra: Extra = _NOTHING,
                            batch_invariant: Optional[bool] = None) -> _Results:
    """As flash_attn_with_kvcache over a paged cache that already has the new keys: q [batch, tokens, heads, dim],
    caches [pages, page_size, kv_heads, dim], block_table [batch, pages of a sequence], cache_seqlens int32 [batch].
    sinks has a logit per head that joins the denominator.

    A block_table [batch, kv_heads, pages] has a list of pages for each KV head: sparse attention. cache_seqlens then
    counts the keys of the listed pages, those of negative numbers with extra.missing_pages_hidden included."""
    options = _options(softmax_scale, causal, window_size, softcap, alibi_slopes, sinks, q_descale, k_descale, v_descale,
                       out_dtype, extra, batch_invariant)
    o, lse = ops.attention_paged(q, k_cache, v_cache, block_table, cache_seqlens, *options)
    return (o, lse.transpose(1, 2)) if return_softmax_lse else o


def _slots_of(cache: Optional[torch.Tensor], field: str) -> Optional[torch.Tensor]:
    """The same memory as pages of one row, or an error if pages do not begin where the one before ends."""
    if cache is None:
        return None
    pages, rows = cache.shape[:2]
    if pages > 1 and rows > 1 and cache.stride(0) != rows * cache.stride(1):
        raise InvalidArgument(f"{field} has strides of {cache.stride(0)} elements between pages and {cache.stride(1)} between"
                              f" rows; a page of {rows} rows must begin where the page before it ends", field)
    return cache.flatten(0, 1).unsqueeze(1)


@named_arguments
def sparse_attn_with_kvcache(q: torch.Tensor, k_cache: torch.Tensor, v_cache: Optional[torch.Tensor], indices: torch.Tensor,
                             softmax_scale: Optional[float] = None, softcap: float = 0.0,
                             sinks: Optional[torch.Tensor] = None, return_softmax_lse: bool = False,
                             q_descale: Optional[torch.Tensor] = None, k_descale: Optional[torch.Tensor] = None,
                             v_descale: Optional[torch.Tensor] = None, out_dtype: Optional[torch.dtype] = None,
                             extra: Extra = _NOTHING,
                             batch_invariant: Optional[bool] = None) -> _Results:
    """Attention of each row over the keys of a list of its own, as an indexer has chosen them: q [tokens, heads, dim],
    caches [pages, page_size, kv_heads, dim], indices int32 or int64 [tokens, keys], or [tokens, kv_heads, keys] with a list
    for each KV head. An index is a slot, page * page_size + row, or negative: no key, at any place in the list. A row
    without a key is 0. O is [tokens, heads, dim], LSE [heads, tokens].

    Each page begins in memory where the page before it ends; scales of keys in `extra` are per token. For multi-head
    latent attention v_cache is None, and extra.head_dim_v the elements of V."""
    _check_extra(extra)
    for field, scales in (("k_scales", extra.k_scales), ("v_scales", extra.v_scales)):
        if scales is not None and scales.dim() != 3:
            raise InvalidArgument(f"{field} has {scales.dim()} dimensions; with lists of keys it must have 3, one scale per"
                                  " token and head", field)
    extents = Extents(page_size=1)
    extents.check(q, "q", "tokens q_heads dim_qk", VALUES)
    extents.check(k_cache, "k_cache", "pages page_size kv_heads dim_qk", VALUES)
    extents.check(v_cache, "v_cache", "pages page_size kv_heads dim_v", VALUES)
    extents.check(indices, "indices", ("tokens keys", "tokens kv_heads keys"), INDICES)
    extra = extra._replace(missing_pages_hidden=True, k_scales=_slots_of(extra.k_scales, "k_scales"),
                           v_scales=_slots_of(extra.v_scales, "v_scales"))
    options = _options(softmax_scale, False, (-1, -1), softcap, None, sinks, q_descale, k_descale, v_descale, out_dtype,
                       extra, batch_invariant)
    lengths = torch.full((q.shape[0],), indices.shape[-1], dtype=torch.int32, device=q.device)
    keys = _slots_of(k_cache, "k_cache")
    o, lse = ops.attention_paged(q.unsqueeze(1), keys, _slots_of(v_cache, "v_cache"), indices, lengths, *options)
    return (o.squeeze(1), lse.squeeze(1).transpose(0, 1)) if return_softmax_lse else o.squeeze(1)


@named_arguments
def merge_states(partial: torch.Tensor, partial_lse: torch.Tensor, out_dtype: torch.dtype,
                 sinks: Optional[torch.Tensor] = None,
                 infinity_is_empty: bool = False) -> Tuple[torch.Tensor, torch.Tensor]:
    """Merges results of attention over splits of the keys: partial [parts, tokens, heads, dim] with LSE [parts, tokens,
    heads] becomes O [tokens, heads, dim] and LSE [tokens, heads]. A part that has seen no key has an LSE of
    -infinity, or with infinity_is_empty of +infinity, as in FlashAttention's results. sinks, F32 [heads], join the
    denominator once; the parts have none."""
    o, lse = ops.merge(partial, partial_lse, out_dtype, sinks, infinity_is_empty)
    return o, lse


@named_arguments
def append_kv(key: torch.Tensor, value: Optional[torch.Tensor], key_cache: torch.Tensor,
              value_cache: Optional[torch.Tensor], slot_mapping: torch.Tensor, k_scale: Optional[torch.Tensor] = None,
              v_scale: Optional[torch.Tensor] = None, k_token_scales: Optional[torch.Tensor] = None,
              v_token_scales: Optional[torch.Tensor] = None, k_page_scales: Optional[torch.Tensor] = None,
              v_page_scales: Optional[torch.Tensor] = None, key_tail: Optional[torch.Tensor] = None) -> None:
    """Stores new rows [tokens, kv_heads, dim] in caches [pages, page_size, kv_heads, dim]: row t in row slot_mapping[t] %
    page_size of page slot_mapping[t] / page_size; a negative slot (int64) is skipped. A cache of float8_e4m3fnuz,
    float8_e5m2fnuz or int8 gets the rows divided by their scales, F32:

        k_scale, v_scale                one for the tensor or [kv_heads]: the descales of attention over it
        k_token_scales, v_token_scales  [pages, page_size, kv_heads]: computed for each new row of a head, and stored there;
                                        Extra.k_scales and v_scales of attention
        k_page_scales, v_page_scales    [pages, kv_heads]: read; the same arguments of attention

    For multi-head latent attention value and value_cache are None, and key_tail [tokens, kv_heads, tail] has the rotary
    part, the last elements of each row of the cache, which key lacks then."""
    ops.append(key, value, key_cache, value_cache, slot_mapping, _descale(k_scale), _descale(v_scale), k_token_scales,
               v_token_scales, k_page_scales, v_page_scales, key_tail)


@named_arguments
def flash_attn_varlen_paged(q: torch.Tensor, k_cache: torch.Tensor, v_cache: Optional[torch.Tensor],
                            cu_seqlens_q: torch.Tensor, max_seqlen_q: int, block_table: torch.Tensor,
                            cache_seqlens: torch.Tensor, max_seqlen_k: int, softmax_scale: Optional[float] = None,
                            causal: bool = True, window_size: Window = (-1, -1),
                            softcap: float = 0.0, alibi_slopes: Optional[torch.Tensor] = None,
                            sinks: Optional[torch.Tensor] = None, return_softmax_lse: bool = False,
                            out: Optional[torch.Tensor] = None, q_descale: Optional[torch.Tensor] = None,
                            k_descale: Optional[torch.Tensor] = None, v_descale: Optional[torch.Tensor] = None,
                            out_dtype: Optional[torch.dtype] = None, extra: Extra = _NOTHING,
                            batch_invariant: Optional[bool] = None) -> _Results:
    """Prompts, chunks and tokens of several sequences in one call: q [tokens, heads, dim], one sequence after the
    other, over a paged cache that already has the new keys. With `out` results are stored there, in its type and without
    LSE. Other arguments as for flash_attn_with_kvcache."""
    options = _options(softmax_scale, causal, window_size, softcap, alibi_slopes, sinks, q_descale, k_descale, v_descale,
                       out_dtype, extra, batch_invariant)
    call = (q, k_cache, v_cache, cu_seqlens_q, max_seqlen_q, block_table, cache_seqlens, max_seqlen_k, *options)
    if out is not None:
        if return_softmax_lse or out_dtype is not None:
            field = "return_softmax_lse is True" if return_softmax_lse else f"out_dtype is {out_dtype}"
            raise InvalidArgument(f"out is given and {field}; one of them must not be", "out")
        ops.attention_paged_varlen_into(out, *call)
        return out
    o, lse = ops.attention_paged_varlen(*call)
    return (o, lse.transpose(0, 1)) if return_softmax_lse else o


__all__ = ["Extra", "SharedPrefix", "append_kv", "context_of", "flash_attn_func", "flash_attn_varlen_func",
           "flash_attn_varlen_paged", "flash_attn_with_kvcache", "merge_states", "scaled_dot_product_attention",
           "set_batch_invariant", "set_context", "sparse_attn_with_kvcache"]
