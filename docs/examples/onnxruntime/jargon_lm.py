"""Generates text with the small language model of docs/examples/jargon_lm in ONNX Runtime, all attention by Sluice.

usage: jargon_lm.py PROVIDER [DEVICE]

PROVIDER is libsluice_onnxruntime.so, DEVICE "emulated" or "hip:N".
"""

import json
import pathlib
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

MODEL = pathlib.Path(__file__).resolve().parent.parent / "jargon_lm" / "model"


def read_safetensors(path):
    """{name: array of float16}"""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    tensors = json.loads(content[8:start])
    tensors.pop("__metadata__", None)
    return {name: np.frombuffer(content[start + first:start + last], np.float16).reshape(tensor["shape"])
            for name, tensor in tensors.items() for first, last in [tensor["data_offsets"]]}


class Graph:
    """Nodes in their order; each add() returns the name of the node's first output."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def add(self, operator, *inputs, outputs=None, domain="", **attributes):
        outputs = outputs or [f"{operator}.{len(self.nodes)}"]
        self.nodes.append(helper.make_node(operator, inputs, outputs, name=outputs[0], domain=domain, **attributes))
        return outputs[0]


def make_model(config, tensors):
    """tokens (1, n), past keys and values -> logits (1, 256) of the last token, present keys and values.

    Attention is in float16, all else in float32.
    """
    heads, kv_heads, head_dim = config["num_heads"], config["num_kv_heads"], config["head_dim"]
    graph = Graph()

    def weight(name):
        return graph.constant(name, tensors[f"{name}.weight"].astype(np.float32).T)

    def normalised(x, name):
        return graph.add("RMSNormalization", x, weight(name), epsilon=config["norm_eps"])

    def half(x):
        return graph.add("Cast", x, to=TensorProto.FLOAT16)

    pairs = head_dim // 2
    angles = np.arange(config["max_positions"])[:, None] * config["rope_base"] ** -(np.arange(pairs) / pairs)
    cosines = graph.constant("cosines", np.cos(angles).astype(np.float16))
    sines = graph.constant("sines", np.sin(angles).astype(np.float16))
    rows = graph.constant("rows", tensors["embed.weight"].astype(np.float32))
    x = graph.add("Gather", rows, "tokens")
    caches = []
    for i in range(config["num_layers"]):
        layer = f"layers.{i}."
        row = normalised(x, layer + "attn_norm")
        q, k, v = (half(graph.add("MatMul", row, weight(layer + name))) for name in "qkv")
        past, present = ([f"{when}_{what}.{i}" for what in ("key", "value")] for when in ("past", "present"))
        caches.append((past, present))
        o = graph.add("GroupQueryAttention", q, k, v, *past, "seqlens_k", "total_sequence_length", cosines, sines,
                      outputs=[f"attention.{i}", *present], domain="com.microsoft", num_heads=heads, kv_num_heads=kv_heads,
                      do_rotary=1)
        o = graph.add("MatMul", graph.add("Cast", o, to=TensorProto.FLOAT), weight(layer + "o"))
        x = graph.add("Add", x, o)
        row = normalised(x, layer + "mlp_norm")
        gate = graph.add("MatMul", row, weight(layer + "gate"))
        gate = graph.add("Mul", gate, graph.add("Sigmoid", gate))
        up = graph.add("MatMul", row, weight(layer + "up"))
        x = graph.add("Add", x, graph.add("MatMul", graph.add("Mul", gate, up), weight(layer + "down")))
    last = graph.add("Gather", x, graph.constant("last", np.array(-1)), axis=1)
    graph.add("MatMul", normalised(last, "norm"), weight("embed"), outputs=["logits"])

    def info(name, element, shape):
        return helper.make_tensor_value_info(name, element, shape)

    def cache_info(names, length):
        return [info(name, TensorProto.FLOAT16, [1, kv_heads, length, head_dim]) for name in names]

    inputs = [info("tokens", TensorProto.INT64, [1, "new"]), info("seqlens_k", TensorProto.INT32, [1]),
              info("total_sequence_length", TensorProto.INT32, [])]
    outputs = [info("logits", TensorProto.FLOAT, [1, config["vocab_size"]])]
    for past, present in caches:
        inputs += cache_info(past, "past")
        outputs += cache_info(present, "total")
    made = helper.make_graph(graph.nodes, "jargon_lm", inputs, outputs, graph.constants)
    return helper.make_model(made, ir_version=11, opset_imports=[helper.make_opsetid("", 23),
                                                                 helper.make_opsetid("com.microsoft", 1)])


def load():
    return make_model(json.loads((MODEL / "config.json").read_text(encoding="utf-8")),
                      read_safetensors(MODEL / "model.safetensors"))


def generate(session, prompt, count):
    """The `count` most likely bytes after the prompt, one by one."""
    past = {node.name: np.zeros([1, node.shape[1], 0, node.shape[3]], np.float16)
            for node in session.get_inputs() if node.name.startswith("past")}
    tokens, length = list(prompt), 0
    while count:
        length += len(tokens)
        logits, *present = session.run(None, {
            "tokens": np.array([tokens]), "seqlens_k": np.array([length - 1], np.int32),
            "total_sequence_length": np.array(length, np.int32), **past})
        past = dict(zip(past, present))
        tokens, count = [int(logits[0].argmax())], count - 1
        yield tokens[0]


def main():
    provider, device = pathlib.Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "emulated"
    onnxruntime.register_execution_provider_library("sluice", str(provider.resolve()))  # relative is to its own folder
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # no warning that another provider runs the other nodes
    options.add_provider_for_devices(
        [found for found in onnxruntime.get_ep_devices() if found.ep_name == "SluiceExecutionProvider"], {"device": device})
    session = onnxruntime.InferenceSession(load().SerializeToString(), options)
    expected = json.loads((MODEL / "expected.json").read_text(encoding="utf-8"))
    prompt, wanted = expected["prompt"].encode(), expected["greedy_text"].encode()
    text = prompt
    for byte in generate(session, prompt, expected["greedy_bytes"]):
        text += bytes([byte])
    print(text.decode("latin-1"))
    right = sum(a == b for a, b in zip(text[len(prompt):], wanted[len(prompt):]))
    print(f"{right} of {expected['greedy_bytes']} bytes are as expected")
    sys.exit(right != expected["greedy_bytes"])


if __name__ == "__main__":
    main()
