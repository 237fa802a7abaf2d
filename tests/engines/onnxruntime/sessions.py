"""Sessions of ONNX Runtime with Sluice's provider, and models of one node."""

import os
import pathlib
import tempfile

import ml_dtypes
import numpy as np
import onnxruntime
from onnx import TensorProto, helper

TYPES = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16, "float32": TensorProto.FLOAT}
NUMPY_TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}
KERNELS = {"float16": "run attn_fwd_f16_", "bfloat16": "run attn_fwd_bf16_"}

onnxruntime.register_execution_provider_library("sluice", os.environ["SLUICE_ONNXRUNTIME"])


def devices():
    return [device for device in onnxruntime.get_ep_devices() if device.ep_name == "SluiceExecutionProvider"]


def session(model, **options):
    """A session with Sluice's provider, on the emulator unless the options say otherwise."""
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.add_provider_for_devices(devices(), {"device": "emulated", **options})
    return onnxruntime.InferenceSession(model.SerializeToString(), settings)


def plain_session(model):
    """A session with ONNX Runtime's own kernels."""
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])


class Traced:
    """A session, and the kernels of Sluice that it ran."""

    def __init__(self, model, **options):
        with tempfile.NamedTemporaryFile(prefix="sluice-", suffix=".trace", delete=False) as file:
            self.path = pathlib.Path(file.name)
        try:
            self.session = session(model, trace=str(self.path), **options)
        except Exception:
            self.path.unlink()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.path.unlink()

    def lines(self, start):
        return [line for line in self.path.read_text(encoding="utf-8").splitlines() if line.startswith(start)]



def model_of_node(operator, attributes, inputs, outputs, dtype, opset=23, domain=""):
    """A model whose inputs are arrays (or None where one is missing) and whose outputs are float32.

    Inputs of float32 are cast to `dtype` before the node, and outputs back after it, so that models of all types take
    and give the same arrays. A pair (array, type) is an input of that type.
    """
    nodes, infos, names = [], [], []
    for i, value in enumerate(inputs):
        if value is None:
            names.append("")
            continue
        value, wanted = value if isinstance(value, tuple) else (value, dtype)
        element = helper.np_dtype_to_tensor_dtype(value.dtype)
        infos.append(helper.make_tensor_value_info(f"in{i}", element, value.shape))
        names.append(f"in{i}")
        if value.dtype == np.float32 and wanted != "float32":
            nodes.append(helper.make_node("Cast", [f"in{i}"], [f"cast{i}"], to=TYPES[wanted]))
            names[-1] = f"cast{i}"
    while names and not names[-1]:
        names.pop()
    raw = [f"raw{i}" if asked else "" for i, asked in enumerate(outputs)]
    nodes.append(helper.make_node(operator, names, raw, name="node", domain=domain, **attributes))
    results = []
    for i, name in enumerate(raw):
        if name:
            nodes.append(helper.make_node("Cast", [name], [f"out{i}"], to=TensorProto.FLOAT))
            results.append(helper.make_tensor_value_info(f"out{i}", TensorProto.FLOAT, None))
    graph = helper.make_graph(nodes, "graph", infos, results)
    return helper.make_model(graph, ir_version=11, opset_imports=[
        helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)])


def feeds_of(inputs):
    return {f"in{i}": value[0] if isinstance(value, tuple) else value
            for i, value in enumerate(inputs) if value is not None}


def rounded(array, dtype):
    """The values rounded to the type, as float32."""
    return np.asarray(array).astype(NUMPY_TYPES[dtype]).astype(np.float32)
