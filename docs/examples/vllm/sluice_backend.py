"""An attention backend for vLLM (https://github.com/vllm-project/vllm) 0.32 on sluice.

vLLM makes one builder for each group of layers with one kind of cache and one implementation for each layer. A step is: one
`build`, then for each layer `do_kv_cache_update` and `forward`.

Rows of padding, which a captured graph has after the tokens of a step, keep what was in them, as with the backends that vLLM
has itself: query_start_loc, read when the graph runs, says where the tokens end. No other row depends on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from vllm import envs
from vllm.platforms import current_platform
from vllm.v1.attention.backend import (AttentionBackend, AttentionCGSupport, AttentionImpl, AttentionMetadataBuilder,
                                       AttentionType, CommonAttentionMetadata, MultipleOf)
from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

import sluice.torch

# vLLM allocates these caches as bytes. The chip computes with the types on the right.
FP8_TYPES = {"fp8": torch.float8_e4m3fnuz, "fp8_e4m3": torch.float8_e4m3fnuz, "fp8_e5m2": torch.float8_e5m2fnuz}
ATTENTION_TYPES = (AttentionType.DECODER.value, AttentionType.ENCODER_ONLY.value)


def register() -> None:
    """Makes the backend known to vLLM, which calls this in each of its processes: pyproject.toml names it as a plug-in.

    vLLM for CPUs asks for no other backend than its own. Sluice takes its place there, on the emulator."""
    place = AttentionBackendEnum.CPU_ATTN if current_platform.is_cpu() else AttentionBackendEnum.CUSTOM
    register_backend(place, f"{__name__}.SluiceBackend")


class SluiceBackend(AttentionBackend):
    """What is supported. vLLM asks before it makes a layer, and names what is not."""

    supported_dtypes: ClassVar[list[torch.dtype]] = [torch.float16, torch.bfloat16]
    supported_kv_cache_dtypes: ClassVar[list[Any]] = ["auto", "float16", "bfloat16", *FP8_TYPES]
    forward_includes_kv_cache_update: bool = False

    @staticmethod
    def get_name() -> str:
        return "CUSTOM"  # a name in AttentionBackendEnum, where each layer looks it up

    @staticmethod
    def get_impl_cls() -> type[SluiceImpl]:
        return SluiceImpl

    @staticmethod
    def get_builder_cls() -> type[SluiceBuilder]:
        return SluiceBuilder

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec: Any = None) -> list[int | MultipleOf]:
        return [MultipleOf(1)]

    @classmethod
    def supports_head_size(cls, head_size: int) -> bool:
        return head_size % 8 == 0 and head_size <= 512

    @classmethod
    def supports_combination(cls, head_size: int, dtype: torch.dtype, kv_cache_dtype: Any, *more: Any,
                             **named: Any) -> str | None:
        if kv_cache_dtype in ("float16", "bfloat16") and getattr(torch, kv_cache_dtype) != dtype:
            return f"a cache of {kv_cache_dtype} needs a model of {kv_cache_dtype}"
        if kv_cache_dtype in FP8_TYPES and head_size % 16 != 0:  # V's rows follow K's, and begin at multiples of 16 bytes
            return f"with a cache of FP8 head sizes are multiples of 16, not {head_size}"
        return None

    @classmethod
    def supports_compute_capability(cls, capability: Any) -> bool:
        return (capability.major, capability.minor) == (9, 4)  # gfx942

    @classmethod
    def supports_attn_type(cls, attn_type: str) -> bool:
        return attn_type in ATTENTION_TYPES

    @classmethod
    def supports_sliding_window(cls) -> bool:
        return True

    @classmethod
    def supports_sink(cls) -> bool:
        return True

    @classmethod
    def supports_non_causal(cls) -> bool:
        return True

    @classmethod
    def supports_batch_invariance(cls) -> bool:
        return True


@dataclass
class SluiceMetadata:
    """Of a step, for all layers of a group."""

    num_actual_tokens: int
    max_query_len: int
    query_start_loc: torch.Tensor
    max_seq_len: int
    seq_lens: torch.Tensor
    block_table: torch.Tensor
    causal: bool


class SluiceBuilder(AttentionMetadataBuilder[SluiceMetadata]):
    # Lengths and tables are read when a launch executes: a captured step replays with those that are there then.
    _cudagraph_support: ClassVar[AttentionCGSupport] = AttentionCGSupport.ALWAYS

    def __init__(self, kv_cache_spec: Any, layer_names: list[str], vllm_config: Any, device: torch.device) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        sluice.torch.context_of(device).preload()  # nothing is loaded while a graph is captured

    def build(self, common_prefix_len: int, common_attn_metadata: CommonAttentionMetadata,
              fast_build: bool = False) -> SluiceMetadata:
        common = common_attn_metadata
        if not isinstance(common.causal, bool):
            raise NotImplementedError("causal is a tensor; a step is causal as a whole or not at all")
        return SluiceMetadata(num_actual_tokens=common.num_actual_tokens, max_query_len=common.max_query_len,
                              query_start_loc=common.query_start_loc, max_seq_len=common.max_seq_len,
                              seq_lens=common.seq_lens, block_table=common.block_table_tensor, causal=common.causal)


class SluiceImpl(AttentionImpl[SluiceMetadata]):
    def __init__(self, num_heads: int, head_size: int, scale: float, num_kv_heads: int | None = None,
                 alibi_slopes: list[float] | None = None, sliding_window: int | None = None,
                 kv_cache_dtype: str = "auto", logits_soft_cap: float | None = None,
                 attn_type: str = AttentionType.DECODER, kv_sharing_target_layer_name: str | None = None,
                 sinks: torch.Tensor | None = None) -> None:
        # vLLM for CPUs makes layers without asking the backend.
        attn_type = AttentionType(attn_type).value
        if attn_type not in ATTENTION_TYPES:
            raise NotImplementedError(f"attn_type is {attn_type}; supported: {', '.join(ATTENTION_TYPES)}")
        if kv_cache_dtype not in SluiceBackend.supported_kv_cache_dtypes:
            raise NotImplementedError(f"kv_cache_dtype is {kv_cache_dtype}; supported: "
                                      f"{', '.join(SluiceBackend.supported_kv_cache_dtypes)}")
        if sinks is not None and attn_type != AttentionType.DECODER:
            raise NotImplementedError(f"sinks are given, and attn_type is {attn_type}; supported: decoder")
        self.num_heads, self.head_size, self.scale = num_heads, head_size, float(scale)
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.kv_cache_dtype, self.attn_type = kv_cache_dtype, attn_type
        self.kv_sharing_target_layer_name = kv_sharing_target_layer_name
        # A window of n keys ends at the row's own; an encoder's has n - 1 keys on each side.
        reach = -1 if sliding_window is None else sliding_window - 1
        self.window = (reach, reach if sliding_window is None or attn_type != AttentionType.DECODER else 0)
        self.softcap = logits_soft_cap or 0.0
        self.batch_invariant = True if envs.VLLM_BATCH_INVARIANT else None  # None: as sluice.torch is set
        self._slopes, self._sinks = alibi_slopes, sinks
        self._on_device: dict[torch.device, tuple[torch.Tensor | None, torch.Tensor | None]] = {}

    def _head_arrays(self, device: torch.device) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """ALiBi's slopes and the sinks, in F32 where the queries are; copied once."""
        if device not in self._on_device:
            slopes = None if self._slopes is None else torch.tensor(self._slopes, dtype=torch.float32, device=device)
            sinks = None if self._sinks is None else self._sinks.to(device, torch.float32)
            self._on_device[device] = slopes, sinks
        return self._on_device[device]

    def _cache(self, layer: Any, kv_cache: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """K and V [blocks, block size, kv_heads, head_size] of a cache [blocks, kv_heads, block size, both head sizes],
        and their scales.

        A scale belongs to the type of FP8 that vLLM's platform prefers. Where that is not the chip's, the same bits are half
        the value on the chip; where it is, vLLM has doubled the scales of checkpoints itself."""
        fp8 = FP8_TYPES.get(self.kv_cache_dtype)
        whole = (kv_cache if fp8 is None else kv_cache.view(fp8)).transpose(1, 2)
        k, v = whole[..., :self.head_size], whole[..., self.head_size:]
        if fp8 is None:
            return k, v, None, None
        if current_platform.is_fp8_fnuz():
            return k, v, layer._k_scale, layer._v_scale
        return k, v, layer._k_scale * 2, layer._v_scale * 2

    def do_kv_cache_update(self, layer: Any, key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor,
                           slot_mapping: torch.Tensor) -> None:
        # The mapping has an entry for each token, and -1 for padding in a graph; keys may be padded beyond it.
        tokens = slot_mapping.shape[0]
        if tokens == 0 or self.attn_type == AttentionType.ENCODER_ONLY:
            return
        k_cache, v_cache, k_scale, v_scale = self._cache(layer, kv_cache)
        sluice.torch.append_kv(key[:tokens], value[:tokens], k_cache, v_cache, slot_mapping, k_scale, v_scale)

    def forward(self, layer: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor,
                attn_metadata: SluiceMetadata | None, output: torch.Tensor, output_scale: torch.Tensor | None = None,
                output_block_scale: torch.Tensor | None = None) -> torch.Tensor:
        """Stores attention of query [tokens, heads, head_size] in output [tokens, heads, size of V]."""
        if output_scale is not None or output_block_scale is not None:
            raise NotImplementedError("output_scale is given; results are not quantised")
        if attn_metadata is None:  # a run to measure memory
            return output.fill_(0)
        tokens = attn_metadata.num_actual_tokens
        if tokens == 0:  # another rank has the step's tokens
            return output
        if self.attn_type == AttentionType.ENCODER_ONLY:
            output[:tokens] = self._whole_sequences(query[:tokens], key[:tokens], value[:tokens], attn_metadata)
            return output
        slopes, sinks = self._head_arrays(query.device)
        k_cache, v_cache, k_scale, v_scale = self._cache(layer, kv_cache)
        sluice.torch.flash_attn_varlen_paged(
            query[:tokens], k_cache, v_cache, attn_metadata.query_start_loc, attn_metadata.max_query_len,
            attn_metadata.block_table, attn_metadata.seq_lens, attn_metadata.max_seq_len, softmax_scale=self.scale,
            causal=attn_metadata.causal, window_size=self.window, softcap=self.softcap, alibi_slopes=slopes, sinks=sinks,
            out=output[:tokens], k_descale=k_scale, v_descale=v_scale, batch_invariant=self.batch_invariant)
        return output

    def _whole_sequences(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                         attn_metadata: SluiceMetadata) -> torch.Tensor:
        """Of an encoder, which keeps no cache: its keys are those of the step."""
        slopes, _ = self._head_arrays(query.device)
        starts, longest = attn_metadata.query_start_loc, attn_metadata.max_query_len
        return sluice.torch.flash_attn_varlen_func(
            query, key, value, starts, starts, longest, longest, softmax_scale=self.scale, window_size=self.window,
            softcap=self.softcap, alibi_slopes=slopes, batch_invariant=self.batch_invariant)
