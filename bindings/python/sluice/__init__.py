"""Attention for AMD Instinct GPUs.

    import numpy, sluice

    context = sluice.Context("emulated")            # or "hip:0"
    plan = context.plan(sluice.Problem("bf16", q_heads=8, kv_heads=2, head_dim_qk=64, causal=True))
    rng = numpy.random.default_rng(0)
    q = context.array(rng.standard_normal((1, 20, 8, 64)), "bf16")
    k = context.array(rng.standard_normal((1, 20, 2, 64)), "bf16")
    v = context.array(rng.standard_normal((1, 20, 2, 64)), "bf16")
    o = context.empty((1, 20, 8, 64), "bf16")
    plan.run(q, k, v, o)
    print(o.numpy()[0, 0, 0, :4])

Names and rules are those of the C headers, whose functions this package calls.
"""

from __future__ import annotations

from typing import Any

from . import _core
from ._cache import reference_append, reference_copy, reference_gather
from ._context import Context, Plan, Wait, reference
from ._enums import PACK_ALL, DType, Lse, MaskAlignment, PageTableKind, RotaryStyle, ScaleKind
from ._errors import (Error, HipError, InternalError, InvalidArgument, NewerStruct, NoDevice, OutOfMemory, PackCorrupt,
                      Unsupported, WorkspaceTooSmall, WrongArch)
from ._hip import Buffer, Event, Stream
from ._problem import Problem
from ._tensor import Tensor

__version__: str = _core.version()


def build_info() -> Any:
    """Where the library and its kernels come from: version, git_commit, compiler, llvm_version, pack_id, chips,
    kernel_count."""
    return _core.build_info()


__all__ = [
    "Buffer", "Context", "DType", "Error", "Event", "HipError", "InternalError", "InvalidArgument", "Lse",
    "MaskAlignment", "NewerStruct", "NoDevice", "OutOfMemory", "PackCorrupt", "PageTableKind", "Plan", "Problem",
    "PACK_ALL", "RotaryStyle", "ScaleKind", "Stream", "Tensor", "Unsupported", "Wait", "WorkspaceTooSmall", "WrongArch",
    "build_info", "reference", "reference_append", "reference_copy", "reference_gather",
]
