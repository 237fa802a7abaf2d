"""Small models with random weights, and the ways in which the tests generate with them."""

import dataclasses

import tokenizers
import torch
import transformers

VOCABULARY = 256
BLOCK = 32  # a multiple of what vLLM's own backend for CPUs takes
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 128, "intermediate_size": 128, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "max_position_embeddings": 256,
         "tie_word_embeddings": False, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}


@dataclasses.dataclass(frozen=True)
class Case:
    """A model, and arguments of vllm.LLM besides those of all cases."""

    config: transformers.PretrainedConfig
    options: dict = dataclasses.field(default_factory=dict)
    prompts: tuple = (70, 7, 33)  # lengths; some take several steps
    tokens: int = 8
    rounds: int = 1  # of the same prompts
    pooling: bool = False


@dataclasses.dataclass(frozen=True)
class Result:
    tokens: list
    scores: torch.Tensor  # for each token the logarithms of all probabilities; for an encoder one row, its vector
    cached: int  # tokens of the prompt that the cache had


def _llama(**changes):
    return transformers.LlamaConfig(**{**SIZES, **changes})


CASES = {
    "grouped_heads": Case(_llama()),
    "float16": Case(_llama(head_dim=64), {"dtype": "float16"}),
    "odd_heads": Case(_llama(head_dim=48)),
    "window": Case(transformers.MistralConfig(**SIZES, sliding_window=20)),
    "soft_cap": Case(transformers.Gemma2Config(**{**SIZES, "head_dim": 64, "tie_word_embeddings": True},
                                               sliding_window=24, attn_logit_softcapping=3.0,
                                               final_logit_softcapping=None, query_pre_attn_scalar=64)),
    "alibi": Case(transformers.BloomConfig(vocab_size=VOCABULARY, hidden_size=128, n_layer=2, n_head=4, bos_token_id=0,
                                           eos_token_id=1, tie_word_embeddings=True)),
    "fp8": Case(_llama(), {"kv_cache_dtype": "fp8"}),
    "fp8_e5m2": Case(_llama(), {"kv_cache_dtype": "fp8_e5m2"}),
    "prefixes": Case(_llama(), {"enable_prefix_caching": True}, rounds=2),
    "sinks": Case(transformers.GptOssConfig(**{**SIZES, "head_dim": 64}, num_local_experts=2, num_experts_per_tok=1,
                                            sliding_window=24, layer_types=["sliding_attention", "full_attention"])),
    "encoder": Case(transformers.BertConfig(vocab_size=VOCABULARY, hidden_size=128, num_hidden_layers=2,
                                            num_attention_heads=4, intermediate_size=128, max_position_embeddings=128),
                    pooling=True),
    # The last one: vLLM 0.32 does not start again in a process that has looked drafts up.
    "drafts": Case(_llama(), {"speculative_config": {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 2,
                                                     "prompt_lookup_min": 1}}, tokens=16),
}


def prompts_of(case):
    """Token numbers. The second half of a prompt repeats the first, so that drafts are found."""
    generator = torch.Generator().manual_seed(1)
    halves = [torch.randint(3, VOCABULARY, (length - length // 2,), generator=generator) for length in case.prompts]
    return [torch.cat([half, half])[:length].tolist() for half, length in zip(halves, case.prompts)]


def save(case, folder):
    """Stores the model with weights that make scores differ much, so that a wrong mask shows."""
    kind = transformers.AutoModel if case.pooling else transformers.AutoModelForCausalLM
    model = kind.from_config(case.config)
    generator = torch.Generator().manual_seed(0)
    tied = getattr(case.config, "tie_word_embeddings", False)
    for name, weight in model.named_parameters():
        if "sinks" in name:
            weight.data = 1.0 + torch.randn(weight.shape, generator=generator)
        elif weight.dim() > 1:
            gain = 1.0 if "embed" in name and not tied else 1.5 * weight.shape[-1] ** -0.5
            weight.data = gain * torch.randn(weight.shape, generator=generator)
    model.to(torch.bfloat16).save_pretrained(folder)
    if case.pooling:  # vLLM needs a tokenizer for it, although prompts are numbers
        words = tokenizers.Tokenizer(tokenizers.models.WordLevel({str(i): i for i in range(VOCABULARY)}, unk_token="0"))
        transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="2").save_pretrained(folder)
