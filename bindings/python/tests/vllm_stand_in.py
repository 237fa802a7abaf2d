"""Names of vLLM's attention interface for when vLLM is not installed: only what a backend needs."""

import dataclasses
import enum
import sys
import types
from typing import Any


class AttentionType(str, enum.Enum):
    DECODER = "decoder"
    ENCODER = "encoder"


class MultipleOf:
    def __init__(self, base):
        self.base = base


class AttentionCGSupport(enum.Enum):
    ALWAYS = 3
    NEVER = 0


class AttentionBackend:
    forward_includes_kv_cache_update = True


class AttentionMetadataBuilder:
    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        self.kv_cache_spec, self.layer_names, self.vllm_config, self.device = kv_cache_spec, layer_names, vllm_config, device


class AttentionImpl:
    pass


@dataclasses.dataclass
class CommonAttentionMetadata:
    query_start_loc: Any
    query_start_loc_cpu: Any
    seq_lens: Any
    num_reqs: int
    num_actual_tokens: int
    max_query_len: int
    max_seq_len: int
    block_table_tensor: Any
    slot_mapping: Any
    causal: Any = True


def install():
    """Registers the module under the name that a backend imports."""
    path = "vllm.v1.attention.backend"
    parts = path.split(".")
    for i in range(1, len(parts) + 1):
        name = ".".join(parts[:i])
        if name not in sys.modules:
            sys.modules[name] = types.ModuleType(name)
    for name in ("AttentionType", "MultipleOf", "AttentionCGSupport", "AttentionBackend", "AttentionMetadataBuilder",
                 "AttentionImpl", "CommonAttentionMetadata"):
        setattr(sys.modules[path], name, globals()[name])
