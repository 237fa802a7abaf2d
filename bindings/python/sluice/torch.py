"""Attention for torch, with the signatures of torch and of FlashAttention.

Tensors are on a ROCm device, where nothing is copied, or on the CPU, where the emulator computes. Inference only,
without a backward pass. Unsupported calls raise sluice.Unsupported with the field and the nearest supported value.

alibi_slopes are F32, [heads] or [batch, heads]. q_descale, k_descale and v_descale belong to tensors of
float8_e4m3fnuz: F32, one for the tensor or one for each head. The kernels multiply by them. O of FP8 queries is
bfloat16.
"""

from __future__ import annotations

from typing import Optional, Tuple, Union

import torch

from . import _torch_ops as ops
from ._errors import InvalidArgument, Unsupported
from ._torch_ops import context_of, set_context


def _no_dropout(dropout_p: float) -> None:
    if dropout_p != 0.0:
        raise Unsupported(f"dropout_p is {dropout_p}; nearest supported: 0.0", "dropout_p")


def _packed_bits(mask: torch.Tensor) -> torch.Tensor:
    """Bit j % 8 of byte j / 8 for key j."""
    keys = mask.shape[-1]
    padded = torch.nn.functional.pad(mask.to(torch.uint8), (0, -keys % 8))
    weights = torch.tensor([1 << bit for bit in range(8)], dtype=torch.uint8, device=mask.device)
    packed: torch.Tensor = (padded.reshape(*padded.shape[:-1], -1, 8) * weights).sum(-1, dtype=torch.uint8)
    return packed


_Window = Tuple[int, int]
_Results = Union[torch.Tensor, Tuple[torch.Tensor, torch.Tensor]]


def _descale(scale: Optional[torch.Tensor]) -> Optional[torch.Tensor]:
    """A scale without dimensions applies to the whole tensor."""
    return scale.reshape(1) if scale is not None and scale.dim() == 0 else scale


def _options(scale: Optional[float], causal: bool, window: _Window, softcap: float, alibi_slopes: Optional[torch.Tensor],
             sinks: Optional[torch.Tensor], *descales: Optional[torch.Tensor]) -> ops.Options:
    """The operators' last arguments, with FlashAttention's masks, which end at the last key."""
    return ops.Options(scale or 0.0, causal, False, window[0], window[1], softcap, alibi_slopes, sinks,
                       *map(_descale, descales))


def scaled_dot_product_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                                 attn_mask: Optional[torch.Tensor] = None, dropout_p: float = 0.0, is_causal: bool = False,
                                 scale: Optional[float] = None, enable_gqa: bool = False) -> torch.Tensor:
    """As torch.nn.functional.scaled_dot_product_attention, for tensors [batch, heads, tokens, dim]. A row that sees no key
    is 0 here."""
    _no_dropout(dropout_p)
    if query.dim() != 4:
        raise InvalidArgument(f"query has {query.dim()} dimensions; it must have 4", "query")
    if key.shape[1] != query.shape[1] and not enable_gqa:
        raise InvalidArgument(f"key has {key.shape[1]} heads and query {query.shape[1]}; without enable_gqa they must be equal",
                              "key")
    if attn_mask is not None and is_causal:
        raise InvalidArgument("attn_mask is given and is_causal is True; one of them must not be", "attn_mask")
    bias = mask = None
    if attn_mask is not None:
        whole = attn_mask[(None,) * (4 - attn_mask.dim())].expand(-1, -1, query.shape[2], key.shape[2])
        if attn_mask.dtype == torch.bool:
            mask = _packed_bits(whole)
        else:
            bias = whole
    options = _options(scale, is_causal, (-1, -1), 0.0, None, None, None, None, None)._replace(top_left=True)
    o: torch.Tensor = ops.attention(query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), None, bias, mask,
                                    *options)[0]
    return o.transpose(1, 2)


def flash_attn_func(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dropout_p: float = 0.0,
                    softmax_scale: Optional[float] = None, causal: bool = False, window_size: _Window = (-1, -1),
                    softcap: float = 0.0, alibi_slopes: Optional[torch.Tensor] = None, deterministic: bool = False,
                    return_attn_probs: bool = False, out_dtype: Optional[torch.dtype] = None,
                    q_descale: Optional[torch.Tensor] = None,
                    k_descale: Optional[torch.Tensor] = None, v_descale: Optional[torch.Tensor] = None) -> _Results:
    """As flash_attn_func, for tensors [batch, tokens, heads, dim]. return_attn_probs adds the LSE [batch, heads,
    tokens], but no probabilities. Results are always deterministic. out_dtype may be torch.float32: the unrounded sums,
    for merge_states."""
    _no_dropout(dropout_p)
    options = _options(softmax_scale, causal, window_size, softcap, alibi_slopes, None, q_descale, k_descale, v_descale)
    o, lse = ops.attention(q, k, v, out_dtype, None, None, *options)
    return (o, lse.transpose(1, 2)) if return_attn_probs else o


def flash_attn_varlen_func(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cu_seqlens_q: torch.Tensor,
                           cu_seqlens_k: torch.Tensor, max_seqlen_q: int, max_seqlen_k: int, dropout_p: float = 0.0,
                           softmax_scale: Optional[float] = None, causal: bool = False, window_size: _Window = (-1, -1),
                           softcap: float = 0.0, alibi_slopes: Optional[torch.Tensor] = None, deterministic: bool = False,
                           return_attn_probs: bool = False, q_descale: Optional[torch.Tensor] = None,
                           k_descale: Optional[torch.Tensor] = None, v_descale: Optional[torch.Tensor] = None) -> _Results:
    """As flash_attn_varlen_func, for sequences one after the other, [tokens, heads, dim]; cu_seqlens are int32 [batch + 1].
    return_attn_probs adds the LSE [heads, tokens], but no probabilities."""
    _no_dropout(dropout_p)
    options = _options(softmax_scale, causal, window_size, softcap, alibi_slopes, None, q_descale, k_descale, v_descale)
    o, lse = ops.attention_varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, *options)
    return (o, lse.transpose(0, 1)) if return_attn_probs else o


def flash_attn_with_kvcache(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, cache_seqlens: torch.Tensor,
                            block_table: torch.Tensor, softmax_scale: Optional[float] = None, causal: bool = False,
                            window_size: _Window = (-1, -1), softcap: float = 0.0,
                            alibi_slopes: Optional[torch.Tensor] = None, sinks: Optional[torch.Tensor] = None,
                            return_softmax_lse: bool = False, q_descale: Optional[torch.Tensor] = None,
                            k_descale: Optional[torch.Tensor] = None, v_descale: Optional[torch.Tensor] = None) -> _Results:
    """As flash_attn_with_kvcache over a paged cache that already has the new keys: q [batch, tokens, heads, dim],
    caches [pages, page_size, kv_heads, dim], block_table [batch, pages of a sequence], cache_seqlens int32 [batch].
    sinks has a logit per head that joins the denominator."""
    options = _options(softmax_scale, causal, window_size, softcap, alibi_slopes, sinks, q_descale, k_descale, v_descale)
    o, lse = ops.attention_paged(q, k_cache, v_cache, block_table, cache_seqlens, *options)
    return (o, lse.transpose(1, 2)) if return_softmax_lse else o


def merge_states(partial: torch.Tensor, partial_lse: torch.Tensor,
                 out_dtype: torch.dtype) -> Tuple[torch.Tensor, torch.Tensor]:
    """Merges results of attention over parts of the keys: partial [parts, tokens, heads, dim] with LSE [parts, tokens,
    heads] becomes O [tokens, heads, dim] and LSE [tokens, heads]. A part that has seen no key has an LSE of
    -infinity."""
    o, lse = ops.merge(partial, partial_lse, out_dtype)
    return o, lse


def append_kv(key: torch.Tensor, value: torch.Tensor, key_cache: torch.Tensor, value_cache: torch.Tensor,
              slot_mapping: torch.Tensor, k_scale: Optional[torch.Tensor] = None,
              v_scale: Optional[torch.Tensor] = None) -> None:
    """Stores new rows [tokens, kv_heads, dim] in caches [pages, page_size, kv_heads, dim]: row t in row slot_mapping[t] %
    page_size of page slot_mapping[t] / page_size; a negative slot (int64) is skipped. A cache of float8_e4m3fnuz
    gets the rows divided by k_scale and v_scale, F32, [1] or [kv_heads]: the descales of attention over it."""
    ops.append(key, value, key_cache, value_cache, slot_mapping, _descale(k_scale), _descale(v_scale))


def flash_attn_varlen_paged(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, cu_seqlens_q: torch.Tensor,
                            max_seqlen_q: int, block_table: torch.Tensor, cache_seqlens: torch.Tensor, max_seqlen_k: int,
                            softmax_scale: Optional[float] = None, causal: bool = True, window_size: _Window = (-1, -1),
                            softcap: float = 0.0, alibi_slopes: Optional[torch.Tensor] = None,
                            sinks: Optional[torch.Tensor] = None, return_softmax_lse: bool = False,
                            out: Optional[torch.Tensor] = None, q_descale: Optional[torch.Tensor] = None,
                            k_descale: Optional[torch.Tensor] = None, v_descale: Optional[torch.Tensor] = None) -> _Results:
    """Prompts, chunks and tokens of several sequences in one call: q [tokens, heads, dim], one sequence after the
    other, over a paged cache that already has the new keys. With `out` results are stored there, without LSE. Other
    arguments as for flash_attn_with_kvcache."""
    options = _options(softmax_scale, causal, window_size, softcap, alibi_slopes, sinks, q_descale, k_descale, v_descale)
    call = (q, k_cache, v_cache, cu_seqlens_q, max_seqlen_q, block_table, cache_seqlens, max_seqlen_k, *options)
    if out is not None:
        if return_softmax_lse:
            raise InvalidArgument("out is given and return_softmax_lse is True; one of them must not be", "out")
        ops.attention_paged_varlen_into(out, *call)
        return out
    o, lse = ops.attention_paged_varlen(*call)
    return (o, lse.transpose(0, 1)) if return_softmax_lse else o


__all__ = ["append_kv", "context_of", "flash_attn_func", "flash_attn_varlen_func", "flash_attn_varlen_paged", "flash_attn_with_kvcache", "merge_states",
           "scaled_dot_product_attention", "set_context"]
