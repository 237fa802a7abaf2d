"""Generates in vLLM with the models of the tests.

usage: generate.py BACKEND FOLDER RESULTS CASE...

BACKEND, "own" or "sluice", must be the one that vLLM has chosen. FOLDER has the models. RESULTS gets a list of models.Result
for each case, one for each prompt.
"""

import collections
import gc
import pathlib
import sys

import torch
import vllm
from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackendImpl

import models

FP8 = {"fp8": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2}
CALLS = collections.Counter()


def count_calls(kind):
    compute = kind.forward

    def forward(*arguments, **named):
        CALLS[kind.__name__] += 1
        return compute(*arguments, **named)

    kind.forward = forward


def round_to_nearest():
    """Makes vLLM's own backend store the nearest value in an FP8 cache. As it is, it drops the bits that do not fit."""
    store = CPUAttentionBackendImpl.do_kv_cache_update

    def store_nearest(self, layer, key, value, *more):
        kind = FP8.get(self.kv_cache_dtype)
        if kind is not None:
            key, value = ((x.float() / scale).to(kind).float().mul(scale).to(x.dtype)
                          for x, scale in ((key, layer._k_scale_float), (value, layer._v_scale_float)))
        store(self, layer, key, value, *more)

    CPUAttentionBackendImpl.do_kv_cache_update = store_nearest


def of(case, folder):
    options = {"dtype": "bfloat16", "enable_prefix_caching": False, "skip_tokenizer_init": not case.pooling, **case.options}
    if case.pooling:
        options["runner"] = "pooling"
    else:
        options.update(max_num_batched_tokens=models.BLOCK, max_logprobs=models.VOCABULARY)
    # A small cache, since each call copies it to the emulator.
    llm = vllm.LLM(str(folder), enforce_eager=True, block_size=models.BLOCK, max_num_seqs=4, max_model_len=128,
                   kv_cache_memory_bytes=1 << 19, **options)
    prompts = [{"prompt_token_ids": tokens} for tokens in models.prompts_of(case)]
    if case.pooling:
        return [models.Result([], torch.tensor([output.outputs.embedding]), 0)
                for output in llm.embed(prompts, use_tqdm=False)]
    sampling = vllm.SamplingParams(temperature=0, max_tokens=case.tokens, ignore_eos=True, detokenize=False,
                                   logprobs=models.VOCABULARY)
    results = []
    for _ in range(case.rounds):
        for output in llm.generate(prompts, sampling, use_tqdm=False):
            found = output.outputs[0]
            rows = [[row[token].logprob for token in range(models.VOCABULARY)] for row in found.logprobs]
            results.append(models.Result(list(found.token_ids), torch.tensor(rows), output.num_cached_tokens))
    return results


def main():
    backend, folder, file, *names = sys.argv[1:]
    if backend == "sluice":
        import sluice_backend

        count_calls(sluice_backend.SluiceImpl)
    count_calls(CPUAttentionBackendImpl)
    round_to_nearest()
    results = {}
    for name in names:
        CALLS.clear()
        results[name] = of(models.CASES[name], pathlib.Path(folder) / name)
        if set(CALLS) != {"SluiceImpl" if backend == "sluice" else "CPUAttentionBackendImpl"}:
            sys.exit(f"{name}: attention was computed by {dict(CALLS)}")
        torch.save(results, file)
        gc.collect()


if __name__ == "__main__":
    main()
