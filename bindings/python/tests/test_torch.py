"""Attention in torch, on the CPU through the emulator, against torch's own."""

import itertools
import pathlib
import sys
import unittest
from unittest import mock

import torch
import torch.nn.functional as F

import sluice
import sluice.torch as st
from sluice import _torch_ops as ops

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from pool import Pool  # noqa: E402

Pool().start()  # tensors share blocks of memory, as on a GPU

# Half a unit of the last place of O, and P rounded to the type of Q by at most 0.7 of one (sluice_problem): a row's sum of
# |p v| is at most the largest |v|.
LAST_PLACE = {torch.float16: 2.0 ** -11, torch.bfloat16: 2.0 ** -8}

FP8 = torch.float8_e4m3fnuz


def tolerance(value):
    """The bound for an element of O. Besides roundings, it covers F32 sums over keys and over dims."""
    largest = value.float().abs().max().item()
    keys_and_dim = value.shape[-3] + value.shape[-1]
    return largest * (2 * LAST_PLACE[value.dtype] + keys_and_dim * 2.0 ** -23)


def normal(*shape, dtype=torch.bfloat16, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def sdpa(q, k, v, **options):
    """Torch's attention in double precision, for [batch, tokens, heads, dim]."""
    o = F.scaled_dot_product_attention(q.double().transpose(1, 2), k.double().transpose(1, 2), v.double().transpose(1, 2),
                                       enable_gqa=True, **options)
    return o.transpose(1, 2)


def in_fp8(x, scale):
    """x / scale rounded once to float8_e4m3fnuz: 4 significant bits, but no step below 2^-10."""
    quotient = x.double() / scale.double().reshape(-1, 1)
    step = torch.exp2(torch.frexp(quotient).exponent.clamp(min=-6).double() - 4)
    return (quotient / step).round() * step


def diagonal(rows, keys, top_left=False, left=-1, right=-1, causal=False):
    """The visible keys of each row."""
    row, key = torch.arange(rows)[:, None], torch.arange(keys)[None, :]
    place = row + (0 if top_left else keys - rows)
    visible = torch.ones(rows, keys, dtype=torch.bool)
    if causal or right >= 0:
        visible &= key <= place + (0 if causal else right)
    if left >= 0:
        visible &= key >= place - left
    return visible


class Case(unittest.TestCase):
    def check(self, o, wanted, value):
        self.assertEqual(o.dtype, value.dtype)
        self.assertEqual(o.shape, wanted.shape)
        # A row without keys is NaN in torch and 0 here.
        error = (o.double() - wanted.nan_to_num(0.0)).abs().max().item()
        self.assertLessEqual(error, tolerance(value))


class ScaledDotProductAttention(Case):
    """The 216 configurations are the products below."""

    TYPES = (torch.float16, torch.bfloat16)
    HEADS = ((4, 4), (4, 2), (3, 1))
    LENGTHS = ((1, 40), (17, 17), (33, 20))
    DIMS = (64, 72, 128)
    MASKS = ("none", "causal", "bool", "float")

    def test_forward_equals_torchs(self):
        count = 0
        for dtype, (heads, kv_heads), (rows, keys), dim, kind in itertools.product(
                self.TYPES, self.HEADS, self.LENGTHS, self.DIMS, self.MASKS):
            with self.subTest(dtype=dtype, heads=heads, rows=rows, keys=keys, dim=dim, mask=kind):
                count += 1
                q = normal(2, heads, rows, dim, dtype=dtype, seed=count)
                k = normal(2, kv_heads, keys, dim, dtype=dtype, seed=count + 1000)
                v = normal(2, kv_heads, keys, dim, dtype=dtype, seed=count + 2000)
                mask = None
                if kind == "bool":
                    mask = normal(2, 1, rows, keys, seed=count) > -0.5
                elif kind == "float":
                    mask = normal(1, heads, rows, keys, dtype=torch.float32, seed=count)
                causal = kind == "causal"
                wanted = F.scaled_dot_product_attention(q.double(), k.double(), v.double(),
                                                        mask if mask is None or kind == "bool" else mask.double(),
                                                        is_causal=causal, enable_gqa=True)
                o = st.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, enable_gqa=True)
                self.check(o.transpose(1, 2), wanted.transpose(1, 2), v.transpose(1, 2))
        self.assertEqual(count, 216)

    def test_refusals(self):
        q, k = normal(1, 4, 3, 64), normal(1, 2, 3, 64)
        with self.assertRaisesRegex(sluice.Unsupported, "dropout_p is 0.5; nearest supported: 0.0"):
            st.scaled_dot_product_attention(q, q, q, dropout_p=0.5)
        with self.assertRaisesRegex(sluice.InvalidArgument, "key has 2 heads and query 4"):
            st.scaled_dot_product_attention(q, k, k)
        with self.assertRaisesRegex(sluice.InvalidArgument, "attn_mask is given and is_causal"):
            st.scaled_dot_product_attention(q, q, q, torch.ones(3, 3, dtype=torch.bool), is_causal=True)
        with self.assertRaisesRegex(sluice.Unsupported, "head_dim_qk is 1000; nearest supported: 576"):
            wide = normal(1, 1, 3, 1000)
            st.scaled_dot_product_attention(wide, wide, wide)


class FlashAttention(Case):
    def test_dense(self):
        q, k, v = normal(2, 19, 4, 64, seed=1), normal(2, 50, 2, 64, seed=2), normal(2, 50, 2, 64, seed=3)
        for causal, window in ((False, (-1, -1)), (True, (-1, -1)), (True, (7, 0)), (False, (5, 9)), (False, (-1, 3))):
            with self.subTest(causal=causal, window=window):
                o, lse = st.flash_attn_func(q, k, v, causal=causal, window_size=window, return_attn_probs=True)
                visible = diagonal(19, 50, causal=causal, left=window[0], right=window[1])
                self.check(o, sdpa(q, k, v, attn_mask=visible), v)
                scores = torch.einsum("bihd,bjhd->bhij", q.double(), k.double().repeat_interleave(2, 2)) / 8
                wanted = scores.masked_fill(~visible, -torch.inf).logsumexp(-1)
                self.assertLess((lse - wanted).abs().max().item(), 1e-4)

    def test_softcap_and_alibi(self):
        q, k, v = normal(1, 9, 2, 64, seed=4), normal(1, 30, 2, 64, seed=5), normal(1, 30, 2, 64, seed=6)
        scores = torch.einsum("bihd,bjhd->bhij", q.double(), k.double()) / 8
        wanted = torch.einsum("bhij,bjhd->bihd", (5 * torch.tanh(scores / 5)).softmax(-1), v.double())
        self.check(st.flash_attn_func(q, k, v, softcap=5.0), wanted, v)
        slopes = torch.tensor([0.5, 0.125])
        distance = (torch.arange(9)[:, None] + 21 - torch.arange(30)[None, :]).abs()
        wanted = torch.einsum("bhij,bjhd->bihd", (scores - slopes[:, None, None] * distance).softmax(-1), v.double())
        self.check(st.flash_attn_func(q, k, v, alibi_slopes=slopes), wanted, v)
        # Sequences with their own slopes.
        q, k, v, scores = (torch.cat([x, x]) for x in (q, k, v, scores))
        slopes = torch.tensor([[0.5, 0.125], [0.0625, 0.75]])
        wanted = torch.einsum("bhij,bjhd->bihd", (scores - slopes[..., None, None] * distance).softmax(-1), v.double())
        self.check(st.flash_attn_func(q, k, v, alibi_slopes=slopes), wanted, v)

    def test_varlen(self):
        q_lengths, k_lengths = (5, 1, 40), (30, 64, 40)
        q, k, v = normal(46, 4, 128, seed=7), normal(134, 2, 128, seed=8), normal(134, 2, 128, seed=9)
        starts = [torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32) for lengths in (q_lengths, k_lengths)]
        o, lse = st.flash_attn_varlen_func(q, k, v, *starts, 40, 64, causal=True, return_attn_probs=True)
        self.assertEqual(lse.shape, (4, 46))
        for i, (rows, keys) in enumerate(zip(q_lengths, k_lengths)):
            ours, theirs = (slice(s[i], s[i + 1]) for s in starts)
            wanted = sdpa(q[None, ours], k[None, theirs], v[None, theirs], attn_mask=diagonal(rows, keys, causal=True))
            self.check(o[None, ours], wanted, v[None, theirs])

    def test_paged(self):
        lengths, page_size = (70, 5, 33), 16
        keys, values = normal(20, page_size, 2, 64, seed=10), normal(20, page_size, 2, 64, seed=11)
        for dtype in (torch.int32, torch.int64):
            table = torch.randperm(20, generator=torch.Generator().manual_seed(12))[:15].reshape(3, 5).to(dtype)
            q = normal(3, 2, 8, 64, seed=13)
            o, lse = st.flash_attn_with_kvcache(q, keys, values, torch.tensor(lengths, dtype=torch.int32), table, causal=True,
                                                return_softmax_lse=True)
            self.assertEqual(lse.shape, (3, 8, 2))
            for i, length in enumerate(lengths):
                k, v = (cache[table[i].long()].flatten(0, 1)[None, :length] for cache in (keys, values))
                self.check(o[i:i + 1], sdpa(q[i:i + 1], k, v, attn_mask=diagonal(2, length, causal=True)), v)

    def test_append_then_varlen_over_pages(self):
        """A serving engine's step: a prompt, a chunk and a token in one call."""
        page_size, pages = 16, 12
        keys, values = (torch.zeros(pages, page_size, 2, 64, dtype=torch.bfloat16) for _ in range(2))
        table = torch.tensor([[4, 9, 0], [1, 7, 2], [11, 3, 5]], dtype=torch.int32)
        before, new = (0, 20, 33), (40, 9, 1)
        k, v = (normal(sum(before) + sum(new), 2, 64, seed=seed) for seed in (20, 21))
        slots, whole = [], []
        for sequence in range(3):
            length = before[sequence] + new[sequence]
            place = [int(table[sequence, token // page_size]) * page_size + token % page_size for token in range(length)]
            first = sum(before[:sequence]) + sum(new[:sequence])
            whole.append((first, length))
            slots += place
        st.append_kv(k, v, keys, values, torch.tensor(slots))
        q = normal(sum(new), 4, 64, seed=22)
        starts = torch.tensor([0, *itertools.accumulate(new)], dtype=torch.int32)
        lengths = torch.tensor([length for _, length in whole], dtype=torch.int32)
        o = st.flash_attn_varlen_paged(q, keys, values, starts, max(new), table, lengths, int(lengths.max()))
        out = torch.zeros_like(q)
        self.assertIs(st.flash_attn_varlen_paged(q, keys, values, starts, max(new), table, lengths, int(lengths.max()),
                                                 out=out), out)
        self.assertTrue(torch.equal(out, o))
        for sequence, (first, length) in enumerate(whole):
            rows = slice(starts[sequence], starts[sequence + 1])
            ours = slice(first, first + length)
            wanted = sdpa(q[None, rows], k[None, ours], v[None, ours],
                          attn_mask=diagonal(new[sequence], length, causal=True))
            self.check(o[None, rows], wanted, v[None, ours])

    def test_parts_of_keys_are_merged(self):
        q, k, v = normal(1, 19, 4, 64, seed=1), normal(1, 50, 2, 64, seed=2), normal(1, 50, 2, 64, seed=3)
        parts = [st.flash_attn_func(q, k[:, keys], v[:, keys], return_attn_probs=True, out_dtype=torch.float32)
                 for keys in (slice(0, 20), slice(20, 21), slice(21, 50))]
        self.assertEqual(parts[0][0].dtype, torch.float32)
        o, lse = st.merge_states(torch.cat([part for part, _ in parts]),
                                 torch.cat([lse.transpose(1, 2) for _, lse in parts]), torch.bfloat16)
        self.check(o[None], sdpa(q, k, v), v)
        _, whole = st.flash_attn_func(q, k, v, return_attn_probs=True)
        self.assertLess((lse.T - whole[0]).abs().max().item(), 1e-4)

    def test_append_to_views(self):
        caches = torch.zeros(4, 2, 16, 2, 64, dtype=torch.bfloat16)  # K and V of a page next to each other
        k, v = normal(2, 2, 64, seed=1), normal(2, 2, 64, seed=2)
        st.append_kv(k, v, caches[:, 0], caches[:, 1], torch.tensor([17, -1]))
        self.assertTrue(torch.equal(caches[1, 0, 1], k[0]))
        self.assertTrue(torch.equal(caches[1, 1, 1], v[0]))
        self.assertEqual(caches.count_nonzero(), k[0].count_nonzero() + v[0].count_nonzero())

    def test_fp8(self):
        """FP8 queries too, with scales per tensor and per head."""
        scales = (torch.tensor(0.5), torch.tensor([0.02, 0.03]), torch.tensor([0.05, 0.02]))
        plain = [normal(1, rows, heads, 64, dtype=torch.float32, seed=seed)
                 for rows, heads, seed in ((19, 4, 1), (50, 2, 2), (50, 2, 3))]
        fp8, values = [], []
        for x, scale in zip(plain, scales):
            fp8.append(in_fp8(x, scale).to(FP8))
            values.append(fp8[-1].float() * scale.reshape(-1, 1))
        descales = dict(zip(("q_descale", "k_descale", "v_descale"), scales))
        o, lse = st.flash_attn_func(*fp8, **descales, return_attn_probs=True)
        # P, which is at most 1 and largest for the largest score, is rounded to FP8 as Q is, to 4 bits.
        error = (o.double() - sdpa(*values)).abs().max().item()
        self.assertEqual(o.dtype, torch.bfloat16)
        self.assertLess(error, values[2].abs().max().item() * (2.0 ** -4 + 2.0 ** -8))
        scores = torch.einsum("bihd,bjhd->bhij", values[0].double(), values[1].double().repeat_interleave(2, 2)) / 8
        self.assertLess((lse - scores.logsumexp(-1)).abs().max().item(), 1e-4)

    def test_fp8_cache(self):
        k, v = normal(40, 2, 64, seed=2), normal(40, 2, 64, seed=3)
        caches = [torch.zeros(4, 16, 2, 64, dtype=FP8) for _ in range(2)]
        scales = torch.tensor([0.02, 0.03]), torch.tensor(0.05)
        st.append_kv(k, v, *caches, torch.arange(40) + 16, *scales)
        read = [cache.flatten(0, 1)[16:56].float() * scale.reshape(-1, 1) for cache, scale in zip(caches, scales)]
        for stored, given, scale in zip(caches, (k, v), scales):
            self.assertTrue(torch.equal(stored.flatten(0, 1)[16:56].double(), in_fp8(given, scale)))
        q, table = normal(1, 3, 4, 64, seed=4), torch.tensor([[1, 2, 3]], dtype=torch.int32)
        length = torch.tensor([40], dtype=torch.int32)
        wanted = sdpa(q, read[0][None], read[1][None], attn_mask=diagonal(3, 40, causal=True))
        descales = {"k_descale": scales[0], "v_descale": scales[1], "causal": True}
        o = st.flash_attn_with_kvcache(q, *caches, length, table, **descales)
        self.check(o, wanted, read[1][None].bfloat16())
        starts = torch.tensor([0, 3], dtype=torch.int32)
        rows = st.flash_attn_varlen_paged(q[0], *caches, starts, 3, table, length, 40, **descales)
        self.check(rows[None], wanted, read[1][None].bfloat16())
        with self.assertRaisesRegex(sluice.InvalidArgument, r"k_descale.shape\[0\] is 3"):
            st.flash_attn_with_kvcache(q, *caches, length, table, k_descale=torch.ones(3))

    def test_sinks(self):
        q, cache = normal(1, 1, 4, 64, seed=14), normal(2, 16, 2, 64, seed=15)
        table, length, sinks = torch.tensor([[1, 0]], dtype=torch.int32), torch.tensor([20], dtype=torch.int32), torch.randn(4)
        o = st.flash_attn_with_kvcache(q, cache, cache, length, table, sinks=sinks)
        k = cache[[1, 0]].flatten(0, 1)[None, :20].repeat_interleave(2, 2).double()
        scores = torch.einsum("bihd,bjhd->bhij", q.double(), k) / 8
        whole = torch.cat([scores, sinks.double()[None, :, None, None].expand(1, 4, 1, 1)], -1).softmax(-1)[..., :-1]
        self.check(o, torch.einsum("bhij,bjhd->bihd", whole, k), cache)


class Graphs(unittest.TestCase):
    """Compiled and exported graphs give the same bits as eager calls."""

    def setUp(self):
        self.q, self.k, self.v = normal(2, 19, 4, 64, seed=1), normal(2, 50, 2, 64, seed=2), normal(2, 50, 2, 64, seed=3)

    def test_operators_keep_their_schemas(self):
        none = ops.Options(causal=True)
        flat = (self.q[0], self.k[0], self.v[0])
        starts = torch.tensor([0, 19], dtype=torch.int32), torch.tensor([0, 50], dtype=torch.int32)
        cache = normal(5, 16, 2, 64)
        samples = {"attention": (self.q, self.k, self.v, *none),
                   "merge": (normal(3, 5, 2, 64, dtype=torch.float32), normal(3, 5, 2, dtype=torch.float32), torch.bfloat16,
                             None, False),
                   "attention_varlen": (*flat, *starts, 19, 50, *none),
                   "attention_paged_varlen": (flat[0], cache, cache, starts[0], 19, torch.tensor([[4, 1]], dtype=torch.int32),
                                              torch.tensor([30], dtype=torch.int32), 32, *none),
                   "attention_paged_varlen_into": (torch.zeros_like(flat[0]), flat[0], cache, cache, starts[0], 19,
                                                   torch.tensor([[4, 1]], dtype=torch.int32),
                                                   torch.tensor([30], dtype=torch.int32), 32, *none),
                   "append": (normal(3, 2, 64), normal(3, 2, 64), cache.clone(), cache.clone(), torch.tensor([3, -1, 70]),
                              *[None] * 7),
                   "attention_paged": (self.q[:, :1], cache, cache, torch.tensor([[0, 1], [2, 3]], dtype=torch.int32),
                                       torch.tensor([20, 9], dtype=torch.int32), *none)}
        self.assertEqual(set(samples), set(ops.OPERATORS))
        for name, sample in samples.items():
            with self.subTest(name):
                torch.library.opcheck(getattr(torch.ops.sluice, name), sample,
                                      test_utils=("test_schema", "test_faketensor"))

    def test_compile(self):
        def layer(q, k, v):
            return st.flash_attn_func(q * 2, k, v, causal=True) + 1

        compiled = torch.compile(layer, fullgraph=True)
        self.assertTrue(torch.equal(compiled(self.q, self.k, self.v), layer(self.q, self.k, self.v)))

    def test_export(self):
        class Layer(torch.nn.Module):
            def forward(self, q, k, v):
                return st.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

        arrays = tuple(x.transpose(1, 2) for x in (self.q, self.k, self.v))
        program = torch.export.export(Layer(), arrays)
        self.assertTrue(torch.equal(program.module()(*arrays), Layer()(*arrays)))

    def test_no_backward(self):
        q = self.q.float().requires_grad_()
        with self.assertRaises(Exception):
            st.flash_attn_func(q.bfloat16(), self.k, self.v).sum().backward()


class Plans(unittest.TestCase):
    def test_lengths_that_grow_share_plans(self):
        context = sluice.Context("emulated")
        st.set_context(torch.device("cpu"), context)
        try:
            with mock.patch.object(context, "plan", wraps=context.plan) as plan:
                for keys in range(33, 65):
                    st.flash_attn_func(normal(1, 1, 2, 64), normal(1, keys, 2, 64), normal(1, keys, 2, 64))
                self.assertEqual(plan.call_count, 32)
            self.assertEqual(len(context._plans), 1)
        finally:
            st.set_context(torch.device("cpu"), None)


if __name__ == "__main__":
    unittest.main()
