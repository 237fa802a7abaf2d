"""The backend in the order of calls of vLLM's steps: prompts in chunks, then tokens one by one, in vLLM's own caches and
metadata, compared with double precision. Here are kinds of layers and layouts that no small model has."""

import types
import unittest
import unittest.mock

import torch
from vllm.platforms.interface import DeviceCapability
from vllm.v1.attention.backend import AttentionCGSupport, AttentionType, CommonAttentionMetadata
from vllm.v1.attention.backends.registry import AttentionBackendEnum
from vllm.v1.kv_cache_interface import (FullAttentionSpec, KVCacheLayout, KVCacheTensor, compute_layout_strides,
                                        create_kv_cache_views)

import sluice
import sluice.torch
from sluice_backend import SluiceBackend

BLOCK, BLOCKS, HEADS, KV_HEADS, DIM = 16, 24, 4, 2, 64
TOKENS_OF_STEP = 32
PADDING = 3
# Quotients are exact, so no other rounding is possible. The largest are above 240, the chip's largest number of E4M3, and at most
# 448, that of vLLM's type on a CPU, to which the scales belong.
LAYER_SCALES = {"_k_scale": 2.0 ** -7, "_v_scale": 2.0 ** -8}
LARGEST = 448
CPU = torch.device("cpu")


def caches(layout, kinds):
    """One cache for each layer, of a type of vLLM's, as the model runner makes them: layers of one type share memory."""
    made = {}
    for kind in set(kinds):
        spec = FullAttentionSpec(block_size=BLOCK, num_kv_heads=KV_HEADS, head_size=DIM,
                                 dtype=torch.bfloat16 if kind == "auto" else torch.uint8)
        names = [f"layer.{i}" for i, other in enumerate(kinds) if other == kind]
        strides = compute_layout_strides(spec, BLOCKS, len(names), layout)
        raw = torch.zeros(BLOCKS * len(names) * spec.page_size_bytes, dtype=torch.int8)
        place = KVCacheTensor(size=raw.numel(), layers=names, layer_stride=strides[0], block_stride=strides[1])
        made.update(zip(names, create_kv_cache_views(raw, spec, BLOCKS, layout, place)))
    return [made[f"layer.{i}"] for i in range(len(kinds))]


class Request:
    """Queries, keys and values of each of its tokens and each layer."""

    def __init__(self, prompt, tokens, layers, seed):
        self.prompt, self.length, self.done = prompt, prompt + tokens, 0
        self.blocks = []
        generator = torch.Generator().manual_seed(seed)
        self.q, self.k, self.v = (torch.randn(layers, self.length, heads, DIM, generator=generator).bfloat16()
                                  for heads in (HEADS, KV_HEADS, KV_HEADS))
        for rows, scale in zip((self.k, self.v), LAYER_SCALES.values()):
            rows.mul_(scale / LAYER_SCALES["_k_scale"]).clamp_(-LARGEST * scale, LARGEST * scale)
        self.o = torch.zeros(layers, self.length, HEADS, DIM, dtype=torch.bfloat16)

    def next_tokens(self, left):
        return min(self.prompt - self.done, left) if self.done < self.prompt else min(1, left, self.length - self.done)


class Runner:
    """Steps as vLLM's model runner makes them, with tensors that are padded after the actual tokens."""

    def __init__(self, layers, layout):
        self.impls = [SluiceBackend.get_impl_cls()(HEADS, DIM, DIM ** -0.5, KV_HEADS, **layer) for layer in layers]
        self.caches = caches(layout, [layer.get("kv_cache_dtype", "auto") for layer in layers])
        self.layer = types.SimpleNamespace(**{name: torch.tensor(scale) for name, scale in LAYER_SCALES.items()})
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
        slots = torch.tensor(slots + [-1] * PADDING, dtype=torch.int64)
        query_start_loc = torch.tensor(starts, dtype=torch.int32)
        lengths = [request.done + count for request, count in scheduled]
        metadata = self.builder.build(0, CommonAttentionMetadata(
            query_start_loc=query_start_loc, query_start_loc_cpu=query_start_loc,
            seq_lens=torch.tensor(lengths, dtype=torch.int32), num_reqs=len(scheduled), num_actual_tokens=starts[-1],
            max_query_len=max(count for _, count in scheduled), max_seq_len=max(lengths), block_table_tensor=table,
            slot_mapping=slots))
        for i, impl in enumerate(self.impls):
            def rows(name):
                parts = [getattr(request, name)[i, request.done:request.done + count] for request, count in scheduled]
                whole = torch.cat(parts)
                return torch.cat([whole, torch.full((PADDING, *whole.shape[1:]), torch.nan, dtype=whole.dtype)])

            q, k, v = rows("q"), rows("k"), rows("v")
            output = torch.full_like(q, torch.nan)
            impl.do_kv_cache_update(self.layer, k, v, self.caches[i], slots)
            impl.forward(self.layer, q, k, v, self.caches[i], metadata, output)
            for (request, count), start in zip(scheduled, starts):
                request.o[i, request.done:request.done + count] = output[start:start + count]
            assert output[starts[-1]:].isnan().all()
        for request, count in scheduled:
            request.done += count
        return True


# What an FP8 cache of vLLM's CPU platform can store; the chip's own types have the same mantissas.
FP8 = {"fp8": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2}


def stored(x, kind, scale):
    """x as a cache stores it."""
    return (x.float() / scale).to(FP8[kind]).float() * scale if kind in FP8 else x


def wanted(request, i, window=None, soft_cap=None, slopes=None, sinks=None, kind="auto"):
    """Attention of the whole sequence at once, in double precision."""
    q = request.q[i].double().transpose(0, 1)
    k, v = (stored(x[i], kind, scale) for x, scale in zip((request.k, request.v), LAYER_SCALES.values()))
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
    def check(self, layout, layers):
        runner = Runner([given for given, _ in layers], layout)
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

    def test_kinds_of_layers(self):
        slopes, sinks = [0.5, 0.25, 0.125, 0.0625], torch.tensor([0.5, -1.0, 2.0, 0.0])
        self.check(KVCacheLayout.LBHNC, [
            ({}, {}), ({"sliding_window": 20}, {"window": 20}),
            ({"logits_soft_cap": 4.0, "alibi_slopes": slopes}, {"soft_cap": 4.0, "slopes": slopes}),
            ({"sinks": sinks}, {"sinks": sinks}), ({"kv_cache_dtype": "fp8"}, {"kind": "fp8"}),
            ({"kv_cache_dtype": "fp8_e5m2"}, {"kind": "fp8_e5m2"})])

    def test_layouts(self):
        """Each layout of vLLM's, with two layers in one piece of memory."""
        for layout in KVCacheLayout:
            with self.subTest(layout.name):
                self.check(layout, [({}, {}), ({"sliding_window": 20}, {"window": 20})])


def metadata(tokens):
    """Of a step in which no request has a token."""
    return SluiceBackend.get_builder_cls()(None, [], None, CPU).build(0, CommonAttentionMetadata(
        query_start_loc=torch.zeros(2, dtype=torch.int32), query_start_loc_cpu=torch.zeros(2, dtype=torch.int32),
        seq_lens=torch.zeros(1, dtype=torch.int32), num_reqs=1, num_actual_tokens=tokens, max_query_len=tokens,
        max_seq_len=0, block_table_tensor=torch.zeros(1, 8, dtype=torch.int32),
        slot_mapping=torch.zeros(tokens, dtype=torch.int64)))


class Calls(unittest.TestCase):
    def setUp(self):
        self.make = SluiceBackend.get_impl_cls()

    def test_without_tokens(self):
        """Steps of other ranks, and runs that measure memory."""
        impl, empty = self.make(HEADS, DIM, 1.0, KV_HEADS), torch.empty(0, KV_HEADS, DIM, dtype=torch.bfloat16)
        cache = caches(KVCacheLayout.LBHNC, ["auto"])[0]
        impl.do_kv_cache_update(None, empty, empty, cache, torch.empty(0, dtype=torch.int64))
        for rows in (0, 3):
            output = torch.ones(rows, HEADS, DIM, dtype=torch.bfloat16)
            self.assertIs(impl.forward(None, output, output, output, cache, metadata(0), output), output)
            self.assertTrue((output == 1).all())
        impl.forward(None, output, output, output, torch.tensor([]), None, output)
        self.assertEqual(output.count_nonzero(), 0)

    def test_refusals(self):
        with self.assertRaisesRegex(NotImplementedError, "kv_cache_dtype is nvfp4; supported: auto, float16, bfloat16, fp8"):
            self.make(HEADS, DIM, 1.0, kv_cache_dtype="nvfp4")
        with self.assertRaisesRegex(NotImplementedError, "attn_type is encoder_decoder; supported: decoder, encoder_only"):
            self.make(HEADS, DIM, 1.0, attn_type=AttentionType.ENCODER_DECODER)
        with self.assertRaisesRegex(NotImplementedError, "sinks are given"):
            self.make(HEADS, DIM, 1.0, attn_type=AttentionType.ENCODER_ONLY, sinks=torch.ones(HEADS))
        with self.assertRaisesRegex(NotImplementedError, "output_scale is given"):
            self.make(HEADS, DIM, 1.0).forward(None, None, None, None, None, None, None, output_scale=torch.ones(1))

    def test_batch_invariance(self):
        """A request's bits, alone and among others. Without the setting they differ, as the splits of its keys do."""
        generator = torch.Generator().manual_seed(0)
        cache = caches(KVCacheLayout.LBHNC, ["auto"])[0]
        cache.copy_(torch.randn(cache.shape, generator=generator))
        rows, keys = torch.randn(64, HEADS, DIM, generator=generator).bfloat16(), BLOCKS * BLOCK
        table = torch.stack([torch.randperm(BLOCKS, generator=generator) for _ in rows]).int()

        def first(impl, requests):
            starts = torch.arange(requests + 1, dtype=torch.int32)
            step = SluiceBackend.get_builder_cls()(None, [], None, CPU).build(0, CommonAttentionMetadata(
                query_start_loc=starts, query_start_loc_cpu=starts, seq_lens=torch.full((requests,), keys, dtype=torch.int32),
                num_reqs=requests, num_actual_tokens=requests, max_query_len=1, max_seq_len=keys,
                block_table_tensor=table[:requests], slot_mapping=torch.zeros(requests, dtype=torch.int64)))
            return impl.forward(None, rows[:requests], None, None, cache, step, torch.empty_like(rows[:requests]))[0]

        for setting, same in (("1", True), ("0", False)):
            with unittest.mock.patch.dict("os.environ", VLLM_BATCH_INVARIANT=setting):
                impl = self.make(HEADS, DIM, DIM ** -0.5, KV_HEADS)
            self.assertEqual(torch.equal(first(impl, 1), first(impl, len(rows))), same, setting)


class Description(unittest.TestCase):
    """What vLLM asks before it makes a layer."""

    LAYER = {"head_size": DIM, "dtype": torch.bfloat16, "kv_cache_dtype": "auto", "block_size": BLOCK, "use_mla": False,
             "has_sink": False, "use_sparse": False, "use_mm_prefix": False, "use_per_head_quant_scales": False,
             "device_capability": DeviceCapability(9, 4), "attn_type": AttentionType.DECODER}

    def test_supported(self):
        for changes in ({}, {"has_sink": True}, {"has_sliding_window": True}, {"use_non_causal": True}, {"block_size": 24},
                        {"kv_cache_dtype": "fp8"}, {"kv_cache_dtype": "fp8_e5m2"}, {"kv_cache_dtype": "bfloat16"},
                        {"attn_type": AttentionType.ENCODER_ONLY}, {"use_kv_connector": True}, {"use_batch_invariant": True}):
            self.assertEqual(SluiceBackend.validate_configuration(**{**self.LAYER, **changes}), [], changes)

    def test_not_supported(self):
        for changes in ({"head_size": 100}, {"head_size": 520}, {"dtype": torch.float32}, {"use_mla": True},
                        {"use_sparse": True},
                        {"kv_cache_dtype": "nvfp4"}, {"kv_cache_dtype": "float16"},
                        {"kv_cache_dtype": "fp8", "head_size": 72}, {"use_mm_prefix": True},
                        {"use_per_head_quant_scales": True}, {"device_capability": DeviceCapability(9, 5)},
                        {"attn_type": AttentionType.ENCODER_DECODER}, {"use_dcp": True}, {"use_pcp": True}, {"use_rswa": True}):
            self.assertEqual(len(SluiceBackend.validate_configuration(**{**self.LAYER, **changes})), 1, changes)

    def test_head_sizes(self):
        """Those that the library has kernels for."""
        context = sluice.torch.context_of(CPU)
        for size in range(4, 529, 4):
            problem = sluice.Problem("bf16", q_heads=HEADS, kv_heads=KV_HEADS, head_dim_qk=size, head_dim_v=size,
                                     page_size=BLOCK, page_table_kind=sluice.PageTableKind.BLOCK,
                                     causal=True, max_batch=1, max_q_len=1, max_kv_len=BLOCK)
            if SluiceBackend.supports_head_size(size):
                context.query_support(problem)
            else:
                with self.assertRaisesRegex(sluice.Unsupported, "head_dim", msg=size):
                    context.query_support(problem)

    def test_name(self):
        """Each layer looks the name up."""
        self.assertIs(AttentionBackendEnum[SluiceBackend.get_name()], AttentionBackendEnum.CUSTOM)

    def test_graphs(self):
        support = SluiceBackend.get_builder_cls().get_cudagraph_support(None, None)
        self.assertIs(support, AttentionCGSupport.ALWAYS)


if __name__ == "__main__":
    unittest.main()
