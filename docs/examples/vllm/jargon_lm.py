"""Generates text with the small language model of docs/examples/jargon_lm in vLLM. Sluice computes the attention if it is
installed as a plug-in.

usage: jargon_lm.py
"""

import json
import os
import pathlib
import tempfile

os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

import safetensors.torch  # noqa: E402
import vllm  # noqa: E402
from vllm.platforms import current_platform  # noqa: E402

MODEL = pathlib.Path(__file__).resolve().parent.parent / "jargon_lm" / "model"
# Parts of the names in vLLM's Llama, which this model is.
NAMES = {"embed.": "embed_tokens.", "attn_norm.": "input_layernorm.", "mlp_norm.": "post_attention_layernorm.",
         "q.": "self_attn.q_proj.", "k.": "self_attn.k_proj.", "v.": "self_attn.v_proj.", "o.": "self_attn.o_proj.",
         "gate.": "mlp.gate_proj.", "up.": "mlp.up_proj.", "down.": "mlp.down_proj.", "norm.": "norm."}


def llama_name(name: str) -> str:
    layer, part = "", name
    if name.startswith("layers."):
        _, number, part = name.split(".", 2)
        layer = f"layers.{number}."
    kind, _, rest = part.partition(".")
    return f"model.{layer}{NAMES[kind + '.']}{rest}"


def save_llama(folder: pathlib.Path) -> None:
    """Stores the model as vLLM reads it."""
    own = json.loads((MODEL / "config.json").read_text(encoding="utf-8"))
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "float16", "hidden_act": "silu",
              "tie_word_embeddings": True, "vocab_size": own["vocab_size"], "hidden_size": own["hidden_size"],
              "num_hidden_layers": own["num_layers"], "num_attention_heads": own["num_heads"],
              "num_key_value_heads": own["num_kv_heads"], "head_dim": own["head_dim"],
              "intermediate_size": own["mlp_size"], "max_position_embeddings": own["max_positions"],
              "rope_parameters": {"rope_type": "default", "rope_theta": own["rope_base"]}, "rms_norm_eps": own["norm_eps"]}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    tensors = safetensors.torch.load_file(MODEL / "model.safetensors")
    safetensors.torch.save_file({llama_name(name): tensor for name, tensor in tensors.items()}, folder / "model.safetensors")


def main() -> None:
    # Each call copies the cache to the emulator and back: it should have few blocks.
    options = {"enforce_eager": True, "kv_cache_memory_bytes": 2 << 20} if current_platform.is_cpu() else {}
    expected = json.loads((MODEL / "expected.json").read_text(encoding="utf-8"))
    count, prompt = expected["greedy_bytes"], expected["prompt"].encode()
    with tempfile.TemporaryDirectory() as folder:
        save_llama(pathlib.Path(folder))
        model = vllm.LLM(folder, skip_tokenizer_init=True, dtype="float16", max_model_len=128, block_size=32,
                         max_num_seqs=4, attention_config={"backend": "CUSTOM"}, **options)
    sampling = vllm.SamplingParams(temperature=0, max_tokens=count, ignore_eos=True, detokenize=False)
    found = model.generate([{"prompt_token_ids": list(prompt)}], sampling, use_tqdm=False)[0].outputs[0].token_ids
    print((prompt + bytes(found)).decode("latin-1"))
    wanted = expected["greedy_text"].encode()[len(prompt):]
    print(f"{sum(a == b for a, b in zip(found, wanted))} of {count} bytes are as expected")


if __name__ == "__main__":
    main()
