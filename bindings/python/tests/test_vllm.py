"""The backend of docs/examples/vllm in the order of calls of vLLM's steps: prompts in chunks, then tokens one by one."""

import importlib.util
import pathlib
import sys
import types
import unittest

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
if importlib.util.find_spec("vllm") is None:
    import vllm_stand_in

    vllm_stand_in.install()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "docs" / "examples" / "vllm"))

from sluice_backend import SluiceBackend  # noqa: E402
from vllm.v1.attention.backend import AttentionCGSupport, AttentionType, CommonAttentionMetadata  # noqa: E402

BLOCK, BLOCKS, HEADS, KV_HEADS, DIM = 16, 24, 4, 2, 64
TOKENS_OF_STEP = 32
K_SCALE, V_SCALE = 0.03125, 0.0625  # quotients are exact, so no other rounding is possible
CPU = torch.device("cpu")


class Request:
    """Queries, keys and values of each of its tokens and each layer."""

    def __init__(self, prompt, tokens, layers, seed):
        self.prompt, self.length, self.done = prompt, prompt + tokens, 0
        self.blocks = []
        generator = torch.Generator().manual_seed(seed)
        self.q, self.k, self.v = (torch.randn(layers, self.length, heads, DIM, generator=generator).bfloat16()
                                  for heads in (HEADS, KV_HEADS, KV_HEADS))
        self.o = torch.zeros(layers, self.length, HEADS, DIM, dtype=torch.bfloat16)

    def next_tokens(self, left):
        return min(self.prompt - self.done, left) if self.done < self.prompt else min(1, left, self.length - self.done)


class Runner:
    """Steps as vLLM's model runner makes them, with tensors that are padded after the actual tokens."""

    def __init__(self, layers):
        self.impls = [SluiceBackend.get_impl_cls()(HEADS, DIM, DIM ** -0.5, KV_HEADS, **layer) for layer in layers]
        shape = SluiceBackend.get_kv_cache_shape(BLOCKS, BLOCK, KV_HEADS, DIM)
        self.caches = [torch.zeros(shape, dtype=torch.uint8 if "kv_cache_dtype" in layer else torch.bfloat16)
                       for layer in layers]
        self.layer = types.SimpleNamespace(_k_scale=torch.tensor(K_SCALE), _v_scale=torch.tensor(V_SCALE))
        self.builder = SluiceBackend.get_builder_cls()(None, [f"layer.{i}" for i in range(len(layers))], None, CPU)
        self.free = list(torch.randperm(BLOCKS, generator=torch.Generator().manual_seed(0)).tolist())

    def step(self, requests):
        left, scheduled = TOKENS_OF_STEP, []
        for request in requests:
            count = request.next_tokens(left)
            if count:
                scheduled.append((request, count))
                left -= count
        if not scheduled:
            return False
        starts, slots = [0], []
        for request, count in scheduled:
            starts.append(starts[-1] + count)
            while len(request.blocks) * BLOCK < request.done + count:
                request.blocks.append(self.free.pop())
            slots += [request.blocks[token // BLOCK] * BLOCK + token % BLOCK
                      for token in range(request.done, request.done + count)]
        table = torch.zeros(len(scheduled), 8, dtype=torch.int32)
        for row, (request, _) in zip(table, scheduled):
            row[:len(request.blocks)] = torch.tensor(request.blocks, dtype=torch.int32)
        query_start_loc = torch.tensor(starts, dtype=torch.int32)
        lengths = [request.done + count for request, count in scheduled]
        metadata = self.builder.build(0, CommonAttentionMetadata(
            query_start_loc=query_start_loc, query_start_loc_cpu=query_start_loc,
            seq_lens=torch.tensor(lengths, dtype=torch.int32), num_reqs=len(scheduled), num_actual_tokens=starts[-1],
            max_query_len=max(count for _, count in scheduled), max_seq_len=max(lengths), block_table_tensor=table,
            slot_mapping=torch.tensor(slots, dtype=torch.int64)))
        for i, impl in enumerate(self.impls):
            def rows(name):
                parts = [getattr(request, name)[i, request.done:request.done + count] for request, count in scheduled]
                whole = torch.cat(parts)
                return torch.cat([whole, torch.full((3, *whole.shape[1:]), torch.nan, dtype=whole.dtype)])

            q, k, v = rows("q"), rows("k"), rows("v")
            output = torch.zeros(q.shape[0], HEADS * DIM, dtype=q.dtype)
            impl.do_kv_cache_update(self.layer, k, v, self.caches[i], metadata.slot_mapping)
            impl.forward(self.layer, q.flatten(1), k, v, self.caches[i], metadata, output)
            for (request, count), start in zip(scheduled, starts):
                request.o[i, request.done:request.done + count] = output[start:start + count].view(-1, HEADS, DIM)
            assert output[starts[-1]:].count_nonzero() == 0
        for request, count in scheduled:
            request.done += count
        return True


def in_fp8(x, scale):
    """x as an FP8 cache stores it."""
    return (x.float() / scale).to(torch.float8_e4m3fnuz).float() * scale


def wanted(request, i, window=None, soft_cap=None, slopes=None, sinks=None, fp8=False):
    """Attention of the whole sequence at once, in double precision."""
    q = request.q[i].double().transpose(0, 1)
    k, v = request.k[i], request.v[i]
    if fp8:
        k, v = in_fp8(k, K_SCALE), in_fp8(v, V_SCALE)
    k, v = (x.double().repeat_interleave(HEADS // KV_HEADS, 1).transpose(0, 1) for x in (k, v))
    scores = q @ k.transpose(1, 2) * DIM ** -0.5
    if soft_cap:
        scores = soft_cap * torch.tanh(scores / soft_cap)
    row, key = torch.arange(request.length)[:, None], torch.arange(request.length)[None, :]
    if slopes is not None:
        scores = scores - torch.tensor(slopes)[:, None, None] * (row - key).abs()
    hidden = key > row
    if window:
        hidden = hidden | (key <= row - window)
    scores = scores.masked_fill(hidden, -torch.inf)
    if sinks is not None:
        scores = torch.cat([scores, sinks.double()[:, None, None].expand(-1, request.length, 1)], -1)
        return (scores.softmax(-1)[..., :-1] @ v).transpose(0, 1)
    return (scores.softmax(-1) @ v).transpose(0, 1)


class Steps(unittest.TestCase):
    def test_chunks_and_tokens(self):
        slopes, sinks = [0.5, 0.25, 0.125, 0.0625], torch.tensor([0.5, -1.0, 2.0, 0.0])
        layers = [({}, {}), ({"sliding_window": 20}, {"window": 20}),
                  ({"logits_soft_cap": 4.0, "alibi_slopes": slopes}, {"soft_cap": 4.0, "slopes": slopes}),
                  ({"sinks": sinks}, {"sinks": sinks}), ({"kv_cache_dtype": "fp8"}, {"fp8": True})]
        runner = Runner([given for given, _ in layers])
        requests = [Request(prompt, 5, len(layers), seed) for seed, prompt in enumerate((50, 7, 20))]
        steps = 0
        while runner.step(requests):
            steps += 1
        self.assertGreater(steps, 6)
        for request in requests:
            self.assertEqual(request.done, request.length)
            for i, (_, options) in enumerate(layers):
                error = (request.o[i].double() - wanted(request, i, **options)).abs().max().item()
                largest = request.v[i].float().abs().max().item()
                self.assertLess(error, largest * 2 * 2.0 ** -8, f"layer {i}")

    def test_the_description_of_itself(self):
        self.assertEqual(SluiceBackend.get_name(), "SLUICE")
        self.assertEqual([SluiceBackend.supports_head_size(size) for size in (64, 100, 512, 520)], [True, False, True, False])
        self.assertIs(SluiceBackend.get_builder_cls()._cudagraph_support, AttentionCGSupport.ALWAYS)
        self.assertFalse(SluiceBackend.forward_includes_kv_cache_update)

    def test_refusals(self):
        make = SluiceBackend.get_impl_cls()
        with self.assertRaisesRegex(NotImplementedError, "kv_cache_dtype is fp8_e5m2; supported: auto, float16, bfloat16, fp8"):
            make(HEADS, DIM, 1.0, kv_cache_dtype="fp8_e5m2")
        with self.assertRaisesRegex(NotImplementedError, "attn_type is"):
            make(HEADS, DIM, 1.0, attn_type=AttentionType.ENCODER)
        with self.assertRaisesRegex(NotImplementedError, "output_scale is given"):
            make(HEADS, DIM, 1.0).forward(None, None, None, None, None, None, None, output_scale=torch.ones(1))
        output = torch.ones(2, HEADS * DIM)
        make(HEADS, DIM, 1.0).forward(None, None, None, None, None, None, output)
        self.assertEqual(output.count_nonzero(), 0)


if __name__ == "__main__":
    unittest.main()
