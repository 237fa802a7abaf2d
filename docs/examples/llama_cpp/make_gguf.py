#!/usr/bin/env python3
"""Writes the model of ../jargon_lm as a GGUF file for llama.cpp.

usage: make_gguf.py MODEL_FOLDER OUT.gguf

Architecture "llama" has the same computation but for the order of rotary pairs: it turns elements 2i and 2i + 1 of a head, the
model i and i + 64. So the rows of the weights of Q and K change places, as in llama.cpp's own converter; scores stay the same.
"""
import json
import pathlib
import struct
import sys

import gguf
import numpy

NAMES = {"attn_norm": "attn_norm", "q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output", "mlp_norm": "ffn_norm",
         "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"}


def read_safetensors(path):
    """{name: array}; all tensors of the model are F16."""
    data = path.read_bytes()
    header_bytes, = struct.unpack_from("<Q", data)
    tensors = {}
    for name, tensor in json.loads(data[8:8 + header_bytes]).items():
        if name == "__metadata__":
            continue
        if tensor["dtype"] != "F16":
            sys.exit(f"{path}: {name} is of {tensor['dtype']}, not F16")
        begin, end = (8 + header_bytes + offset for offset in tensor["data_offsets"])
        tensors[name] = numpy.frombuffer(data[begin:end], numpy.float16).reshape(tensor["shape"])
    return tensors


def in_pairs(weight, heads):
    """Rows (head, half, i) in the order (head, i, half)."""
    out, width = weight.shape
    return weight.reshape(heads, 2, out // heads // 2, width).swapaxes(1, 2).reshape(out, width)


def name_of(name):
    """token_embd.weight for embed.weight, blk.0.attn_q.weight for layers.0.q.weight, and so on."""
    part = name.removesuffix(".weight").split(".")
    return {"embed": "token_embd", "norm": "output_norm"}[part[0]] if len(part) == 1 else f"blk.{part[1]}.{NAMES[part[2]]}"


def write_settings(writer, config):
    writer.add_context_length(config["max_positions"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_layers"])
    writer.add_feed_forward_length(config["mlp_size"])
    writer.add_head_count(config["num_heads"])
    writer.add_head_count_kv(config["num_kv_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_base"])
    writer.add_layer_norm_rms_eps(config["norm_eps"])


def write_vocabulary(writer, size):
    """A token for each byte. SentencePiece writes a space as U+2581."""
    space = ord(" ")
    writer.add_tokenizer_model("llama")
    writer.add_token_list(["\u2581" if byte == space else f"<0x{byte:02X}>" for byte in range(size)])
    writer.add_token_scores([0.0] * size)
    writer.add_token_types([gguf.TokenType.NORMAL if byte == space else gguf.TokenType.BYTE for byte in range(size)])
    writer.add_add_bos_token(False)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(False)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: make_gguf.py MODEL_FOLDER OUT.gguf")
    folder = pathlib.Path(sys.argv[1])
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    writer = gguf.GGUFWriter(sys.argv[2], "llama")
    writer.add_name("jargon-lm")
    write_settings(writer, config)
    write_vocabulary(writer, config["vocab_size"])
    heads = {"attn_q": config["num_heads"], "attn_k": config["num_kv_heads"]}
    for name, weight in read_safetensors(folder / "model.safetensors").items():
        theirs = name_of(name)
        kind = theirs.split(".")[-1]
        if kind in heads:
            weight = in_pairs(weight, heads[kind])
        # ggml multiplies with vectors of F32; matrices stay as they are.
        writer.add_tensor(f"{theirs}.weight", weight.astype(numpy.float32) if weight.ndim == 1 else weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
