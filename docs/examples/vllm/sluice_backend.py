"""An attention backend for vLLM (https://github.com/vllm-project/vllm, vllm/v1/attention/backend.py of 2026) on sluice.

vLLM makes one builder for each group of layers with one kind of cache and one implementation for each layer. A step is: one
`build`, then for each layer `do_kv_cache_update` and `forward`. To use it, register the class under a name that vLLM's
selection knows, as its plug-ins do:

    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend
    register_backend(AttentionBackendEnum.CUSTOM, "sluice_backend.SluiceBackend")

Cascades, context parallelism and queries in FP8 are not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, List, Optional, Tuple, Type

import torch
from vllm.v1.attention.backend import (AttentionBackend, AttentionCGSupport, AttentionImpl, AttentionMetadataBuilder,
                                       AttentionType, CommonAttentionMetadata, MultipleOf)

import sluice.torch


class SluiceBackend(AttentionBackend):
    supported_dtypes: ClassVar[List[torch.dtype]] = [torch.float16, torch.bfloat16]
    supported_kv_cache_dtypes: ClassVar[List[str]] = ["auto", "float16", "bfloat16", "fp8", "fp8_e4m3"]
    forward_includes_kv_cache_update: bool = False

    @staticmethod
    def get_name() -> str:
        return "SLUICE"

    @staticmethod
    def get_impl_cls() -> Type["SluiceImpl"]:
        return SluiceImpl

    @staticmethod
    def get_builder_cls() -> Type["SluiceBuilder"]:
        return SluiceBuilder

    @staticmethod
    def get_supported_kernel_block_sizes() -> List[Any]:
        return [MultipleOf(1)]

    @classmethod
    def supports_head_size(cls, head_size: int) -> bool:
        return head_size % 8 == 0 and head_size <= 512

    @classmethod
    def supports_sink(cls) -> bool:
        return True

    @classmethod
    def supports_non_causal(cls) -> bool:
        return True

    @staticmethod
    def get_kv_cache_shape(num_blocks: int, block_size: int, num_kv_heads: int, head_size: int,
                           cache_dtype_str: str = "auto") -> Tuple[int, ...]:
        # K and V of a block side by side, so that a block is one piece of memory.
        return (num_blocks, 2, block_size, num_kv_heads, head_size)


@dataclass
class SluiceMetadata:
    """Of a step, for all layers of a group."""

    num_actual_tokens: int
    max_query_len: int
    query_start_loc: torch.Tensor
    max_seq_len: int
    seq_lens: torch.Tensor
    block_table: torch.Tensor
    slot_mapping: torch.Tensor
    causal: bool


class SluiceBuilder(AttentionMetadataBuilder):
    # Lengths and tables are read when a launch executes: a captured step replays with those that are there then.
    _cudagraph_support: ClassVar[AttentionCGSupport] = AttentionCGSupport.ALWAYS

    def __init__(self, kv_cache_spec: Any, layer_names: List[str], vllm_config: Any, device: torch.device) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        sluice.torch.context_of(device).preload()  # nothing is loaded while a graph is captured

    def build(self, common_prefix_len: int, common_attn_metadata: CommonAttentionMetadata,
              fast_build: bool = False) -> SluiceMetadata:
        common = common_attn_metadata
        if not isinstance(common.causal, bool):
            raise NotImplementedError("causal is a tensor; a step is causal as a whole or not at all")
        return SluiceMetadata(num_actual_tokens=common.num_actual_tokens, max_query_len=common.max_query_len,
                              query_start_loc=common.query_start_loc, max_seq_len=common.max_seq_len,
                              seq_lens=common.seq_lens, block_table=common.block_table_tensor,
                              slot_mapping=common.slot_mapping, causal=common.causal)


class SluiceImpl(AttentionImpl):
    def __init__(self, num_heads: int, head_size: int, scale: float, num_kv_heads: Optional[int] = None,
                 alibi_slopes: Optional[List[float]] = None, sliding_window: Optional[int] = None,
                 kv_cache_dtype: str = "auto", logits_soft_cap: Optional[float] = None,
                 attn_type: str = AttentionType.DECODER, kv_sharing_target_layer_name: Optional[str] = None,
                 sinks: Optional[torch.Tensor] = None) -> None:
        if attn_type != AttentionType.DECODER:
            raise NotImplementedError(f"attn_type is {attn_type}; supported: {AttentionType.DECODER}")
        if kv_cache_dtype not in SluiceBackend.supported_kv_cache_dtypes:
            raise NotImplementedError(f"kv_cache_dtype is {kv_cache_dtype}; supported: "
                                      f"{', '.join(SluiceBackend.supported_kv_cache_dtypes)}")
        self.num_heads, self.head_size, self.scale = num_heads, head_size, float(scale)
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.kv_cache_dtype = kv_cache_dtype
        # A window of n keys ends at the row's own.
        self.window = (-1, -1) if sliding_window is None else (sliding_window - 1, 0)
        self.softcap = logits_soft_cap or 0.0
        self.kv_sharing_target_layer_name = kv_sharing_target_layer_name
        self._slopes, self._sinks = alibi_slopes, sinks
        self._on_device: dict = {}

    def _of_heads(self, device: torch.device) -> Tuple[Optional[torch.Tensor], Optional[torch.Tensor]]:
        """ALiBi's slopes and the sinks, in F32 where the queries are; copied once."""
        if device not in self._on_device:
            slopes = None if self._slopes is None else torch.tensor(self._slopes, dtype=torch.float32, device=device)
            sinks = None if self._sinks is None else self._sinks.to(device, torch.float32)
            self._on_device[device] = slopes, sinks
        return self._on_device[device]

    def _cache(self, layer: Any, kv_cache: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        """K and V of the cache, and their scales. vLLM allocates FP8 as bytes, and has doubled the scales of checkpoints for
        the type of FP8 that this chip has."""
        if not self.kv_cache_dtype.startswith("fp8"):
            return kv_cache[:, 0], kv_cache[:, 1], None, None
        fp8 = kv_cache.view(torch.float8_e4m3fnuz)
        return fp8[:, 0], fp8[:, 1], layer._k_scale, layer._v_scale

    def do_kv_cache_update(self, layer: Any, key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor,
                           slot_mapping: torch.Tensor) -> None:
        # The mapping has an entry for each actual token; keys may be padded after them.
        tokens = slot_mapping.shape[0]
        k_cache, v_cache, k_scale, v_scale = self._cache(layer, kv_cache)
        sluice.torch.append_kv(key[:tokens], value[:tokens], k_cache, v_cache, slot_mapping, k_scale, v_scale)

    def forward(self, layer: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor,
                attn_metadata: Optional[SluiceMetadata], output: torch.Tensor,
                output_scale: Optional[torch.Tensor] = None,
                output_block_scale: Optional[torch.Tensor] = None) -> torch.Tensor:
        if output_scale is not None or output_block_scale is not None:
            raise NotImplementedError("output_scale is given; results are not quantised")
        if attn_metadata is None:  # a run to measure memory
            return output.fill_(0)
        tokens = attn_metadata.num_actual_tokens
        slopes, sinks = self._of_heads(query.device)
        rows = output.view(-1, self.num_heads, self.head_size)[:tokens]
        k_cache, v_cache, k_scale, v_scale = self._cache(layer, kv_cache)
        sluice.torch.flash_attn_varlen_paged(
            query.view(-1, self.num_heads, self.head_size)[:tokens], k_cache, v_cache,
            attn_metadata.query_start_loc, attn_metadata.max_query_len, attn_metadata.block_table, attn_metadata.seq_lens,
            attn_metadata.max_seq_len, softmax_scale=self.scale, causal=attn_metadata.causal, window_size=self.window,
            softcap=self.softcap, alibi_slopes=slopes, sinks=sinks, out=rows, k_descale=k_scale, v_descale=v_scale)
        return output
