"""Runs of calls on torch's tensors: on ROCm's devices, and on the CPU through the emulator."""

from __future__ import annotations

import atexit
from typing import Any, Dict, Optional, Sequence, Tuple

import torch

from ._context import Context, Plan
from ._errors import InvalidArgument
from ._hip import Buffer
from ._problem import Problem
from ._torch_checks import named_arguments
from ._torch_options import Arrays, Options, type_of_o

_contexts: Dict[Tuple[str, int], Context] = {}
atexit.register(_contexts.clear)  # waiting for their work needs a live interpreter


@named_arguments
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


@named_arguments
def set_context(device: torch.device, context: Optional[Context]) -> None:
    """Uses this context for a device's tensors from now on; None restores the device's own."""
    key = (device.type, device.index or 0)
    if context is None:
        _contexts.pop(key, None)
    else:
        _contexts[key] = context


def _run_on_device(plan: Plan, arrays: Arrays, numbers: Dict[str, Any]) -> None:
    q = arrays["q"]
    workspace = None
    if plan.info.workspace_bytes:
        workspace = torch.empty(plan.info.workspace_bytes, dtype=torch.uint8, device=q.device)
    stream = torch.cuda.current_stream(q.device)
    with torch.cuda.device(q.device):
        plan.run(**arrays, **numbers, workspace=workspace, stream=stream)


def _buffers(context: Context, arrays: Arrays) -> Dict[str, Any]:
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


def _run_on_emulator(context: Context, plan: Plan, arrays: Arrays, numbers: Dict[str, Any]) -> None:
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


def is_emulated(tensor: torch.Tensor) -> bool:
    return tensor.device.type == "cpu"


def context_for(arrays: Arrays) -> Context:
    """The context of the device that all tensors are on."""
    given = {name: tensor for name, tensor in arrays.items() if tensor is not None}
    first, *others = given
    device: torch.device = given[first].device
    for name in others:
        if given[name].device != device:
            raise InvalidArgument(f"{name} is on {given[name].device} and {first} on {device}; all tensors must be on one"
                                  " device", name)
    return context_of(device)


def results(q: torch.Tensor, head_dim_v: int, o_type: Optional[torch.dtype] = None) -> Tuple[torch.Tensor, torch.Tensor]:
    """Memory for O and LSE."""
    return (q.new_empty((*q.shape[:-1], head_dim_v), dtype=type_of_o(q, o_type)),
            q.new_empty(q.shape[:-1], dtype=torch.float32))


def run(problem: Problem, given: Options, arrays: Arrays, **numbers: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    """O and LSE of a call."""
    q = arrays["q"]
    o, lse = results(q, given.dim_of_v(arrays["v"]), given.o_type)
    run_into(problem, {**arrays, **given.arrays(), "o": o, "lse": lse}, {**given.numbers(), **numbers})
    return o, lse


def run_into(problem: Problem, arrays: Arrays, numbers: Dict[str, Any]) -> None:
    """Runs a call with the results among the arrays."""
    context = context_for(arrays)
    plan = context.plan(problem)
    if is_emulated(arrays["q"]):
        _run_on_emulator(context, plan, arrays, numbers)
    else:
        _run_on_device(plan, arrays, numbers)


def operate(operation: str, arrays: Arrays, stored: Sequence[str], **more: Any) -> None:
    """Runs an operation of the context on tensors, of which it writes some."""
    context = context_for(arrays)
    device = next(iter(arrays.values())).device
    if is_emulated(next(iter(arrays.values()))):
        buffers = _buffers(context, arrays)
        getattr(context, operation)(**{**arrays, **buffers}, **more)
        context.synchronize()
        for name in stored:
            if name in buffers:
                _copy_back(buffers[name], arrays[name])
        return
    with torch.cuda.device(device):
        getattr(context, operation)(**arrays, **more, stream=torch.cuda.current_stream(device))
