"""What sluice.torch has besides the arguments of torch and FlashAttention, on the emulator, against loops over rows and heads
in double precision."""

import itertools
import math
import pathlib
import sys
import unittest

import torch

import sluice
import sluice.torch as st

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from test_torch import FP8, LAST_PLACE, diagonal, in_fp8, normal, tolerance  # noqa: E402

HEADS, KV_HEADS, DIM, PAGES, PAGE_SIZE = 4, 2, 64, 9, 16


def row_of(q, keys, values, change=lambda scores: scores):
    """O and LSE of a row of one head; a row without keys is 0."""
    if not len(keys):
        return torch.zeros(values.shape[1], dtype=torch.float64), -torch.inf
    scores = change(keys.double() @ q.double() / q.shape[0] ** 0.5)
    return scores.softmax(0) @ values.double(), scores.logsumexp(0).item()


def ints(*values, dtype=torch.int32):
    return torch.tensor(values, dtype=dtype)


def lists_with_holes(*shape, numbers, seed, holes=0.3):
    """Different numbers in each list, in random order, and -1 at random places."""
    generator = torch.Generator().manual_seed(seed)
    lists = torch.stack([torch.randperm(numbers, generator=generator)[:shape[-1]] for _ in range(math.prod(shape[:-1]))])
    return lists.masked_fill(torch.rand(lists.shape, generator=generator) < holes, -1).reshape(shape)


class Case(unittest.TestCase):
    def setUp(self):
        self.k, self.v = (normal(PAGES, PAGE_SIZE, KV_HEADS, DIM, seed=seed) for seed in (1, 2))

    def compare(self, o, lse, wanted, value, largest=None):
        """`wanted` gives O and LSE of row i and head h; o is [rows, heads, dim] and lse [heads, rows]."""
        for i, h in itertools.product(range(o.shape[0]), range(o.shape[1])):
            wanted_row, wanted_lse = wanted(i, h)
            error = (o[i, h].double() - wanted_row).abs().max().item()
            self.assertLessEqual(error, tolerance(value) if largest is None else largest, (i, h))
            if lse is not None and wanted_lse != lse[h, i].item():
                self.assertLess(abs(lse[h, i].item() - wanted_lse), 1e-4, (i, h))


class ListsOfKeys(Case):
    """Each row's own keys, by their slots."""

    def listed(self, q, indices, i, h, k=None, v=None):
        slots = indices[i] if indices.dim() == 2 else indices[i, h // (HEADS // KV_HEADS)]
        slots = slots[slots >= 0].long()
        keys, values = ((x if x is not None else own).flatten(0, 1)[slots, h // (HEADS // KV_HEADS)]
                        for x, own in ((k, self.k), (v, self.v)))
        return row_of(q[i, h], keys, values)

    def test_results(self):
        q = normal(5, HEADS, DIM, seed=3)
        for shape, dtype in (((5, 40), torch.int32), ((5, KV_HEADS, 40), torch.int32), ((5, KV_HEADS, 33), torch.int64)):
            with self.subTest(shape=shape, dtype=dtype):
                indices = lists_with_holes(*shape, numbers=PAGES * PAGE_SIZE, seed=4).to(dtype)
                indices[2] = -1
                o, lse = st.sparse_attn_with_kvcache(q, self.k, self.v, indices, return_softmax_lse=True)
                self.compare(o, lse, lambda i, h, indices=indices: self.listed(q, indices, i, h), self.v)
                self.assertFalse(o[2].any() or lse[:, 2].isfinite().any())
                self.assertTrue(torch.equal(st.sparse_attn_with_kvcache(q, self.k, self.v, indices), o))

    def test_lists_of_heads_before_rows(self):
        q, indices = normal(3, HEADS, DIM, seed=3), lists_with_holes(KV_HEADS, 3, 20, numbers=PAGES * PAGE_SIZE, seed=5)
        indices = indices.int().transpose(0, 1)
        o = st.sparse_attn_with_kvcache(q, self.k, self.v, indices)
        self.compare(o, None, lambda i, h: self.listed(q, indices, i, h), self.v)

    def test_latent_attention(self):
        latent, q = torch.zeros(PAGES, PAGE_SIZE, 1, 576, dtype=torch.bfloat16), normal(2, 16, 576, seed=7)
        rows, tails = normal(PAGES * PAGE_SIZE, 1, 512, seed=6), normal(PAGES * PAGE_SIZE, 1, 64, seed=16)
        st.append_kv(rows, None, latent, None, torch.arange(PAGES * PAGE_SIZE).flip(0), key_tail=tails)
        self.assertTrue(torch.equal(latent.flatten(0, 1), torch.cat([rows, tails], -1).flip(0)))
        indices = lists_with_holes(2, 50, numbers=PAGES * PAGE_SIZE, seed=8).int()
        o, lse = st.sparse_attn_with_kvcache(q, latent, None, indices, return_softmax_lse=True, extra=st.Extra(head_dim_v=512))
        self.assertEqual(o.shape, (2, 16, 512))

        def wanted(i, h):
            keys = latent.flatten(0, 2)[indices[i][indices[i] >= 0].long()]
            return row_of(q[i, h], keys, keys[:, :512])

        self.compare(o, lse, wanted, latent)

    def test_scales_of_tokens(self):
        caches, scales = zip(*(quantised(x, torch.int8) for x in (self.k, self.v)))
        q, indices = normal(3, HEADS, DIM, seed=3), lists_with_holes(3, 40, numbers=PAGES * PAGE_SIZE, seed=9).int()
        o, lse = st.sparse_attn_with_kvcache(q, *caches, indices, return_softmax_lse=True,
                                             extra=st.Extra(k_scales=scales[0], v_scales=scales[1]))
        k, v = (cache.double() * scale[..., None] for cache, scale in zip(caches, scales))
        self.compare(o, lse, lambda i, h: self.listed(q, indices, i, h, k, v), v.bfloat16())

    def test_compiled(self):
        q, indices = normal(5, HEADS, DIM, seed=3), lists_with_holes(5, 40, numbers=PAGES * PAGE_SIZE, seed=4)
        step = torch.compile(lambda *given: st.sparse_attn_with_kvcache(*given, softcap=5.0) + 1, fullgraph=True)
        self.assertTrue(torch.equal(step(q, self.k, self.v, indices),
                                    st.sparse_attn_with_kvcache(q, self.k, self.v, indices, softcap=5.0) + 1))

    def test_refusals(self):
        q, indices = normal(1, HEADS, DIM), torch.zeros(1, 4, dtype=torch.int32)
        apart = normal(PAGES, 2 * PAGE_SIZE, KV_HEADS, DIM)[:, :PAGE_SIZE]
        by_head = normal(PAGES, KV_HEADS, PAGE_SIZE, DIM).transpose(1, 2)
        for k, arguments, message in (
                (apart, {}, "k_cache has strides of .*; a page of 16 rows must begin where the page before it ends"),
                (by_head, {}, "k_cache has strides of"),
                (self.k, {"extra": st.Extra(k_scales=torch.ones(PAGES, KV_HEADS))}, "k_scales has 2 dimensions"),
                (self.k, {"extra": st.Extra(head_dim_v=8)}, "head_dim_v is 8 and V is given")):
            with self.subTest(message), self.assertRaisesRegex(sluice.InvalidArgument, message):
                st.sparse_attn_with_kvcache(q, k, self.v, indices, **arguments)
        with self.assertRaisesRegex(sluice.InvalidArgument, r"indices.shape\[1\] is 3; it must be 2 \(kv_heads, as k_cache"):
            st.sparse_attn_with_kvcache(q, self.k, self.v, torch.zeros(1, 3, 4, dtype=torch.int32))


class ListsOfPages(Case):
    """A list of pages for each sequence and KV head, with holes."""

    def test_results(self):
        lengths = ints(5 * PAGE_SIZE, 3 * PAGE_SIZE)
        q, rows = normal(2, 3, HEADS, DIM, seed=3), 3
        table = lists_with_holes(2, KV_HEADS, 5, numbers=PAGES, seed=10).int()
        shown = st.Extra(missing_pages_hidden=True)

        def wanted(i, h):
            b, kv = i // rows, h // (HEADS // KV_HEADS)
            pages = table[b, kv, :lengths[b] // PAGE_SIZE]
            pages = pages[pages >= 0].long()
            return row_of(q[b, i % rows, h], *(x[pages].flatten(0, 1)[:, kv] for x in (self.k, self.v)))

        o, lse = st.flash_attn_with_kvcache(q, self.k, self.v, lengths, table, return_softmax_lse=True, extra=shown)
        self.compare(o.flatten(0, 1), lse.transpose(0, 1).flatten(1), wanted, self.v)
        packed, packed_lse = st.flash_attn_varlen_paged(
            q.flatten(0, 1), self.k, self.v, ints(0, 3, 6), 3, table.long(), lengths, 5 * PAGE_SIZE, causal=False,
            return_softmax_lse=True, extra=shown)
        self.compare(packed, packed_lse, wanted, self.v)

    def test_without_the_flag_missing_pages_are_zeros(self):
        q = normal(1, 1, HEADS, DIM, seed=3)
        o = st.flash_attn_with_kvcache(q, self.k, self.v, ints(2 * PAGE_SIZE), ints(4, -1)[None])
        k, v = (torch.cat([x[4], torch.zeros_like(x[4])]) for x in (self.k, self.v))
        self.compare(o[0], None, lambda i, h: row_of(q[0, i, h], k[:, h // 2], v[:, h // 2]), self.v)


def quantised(values, dtype):
    """values / scale in 8 bits with a scale for each row of a head, as an append computes them, and the scales."""
    largest = 127.0 if dtype == torch.int8 else torch.finfo(dtype).max
    scales = (values.float().abs().amax(-1) / largest).masked_fill(values.float().abs().amax(-1) == 0, 1.0)
    quotients = (values.float() / scales[..., None]).double()
    if dtype == torch.int8:
        return quotients.round().to(dtype), scales
    return in_fp8(quotients, torch.ones(1)).to(dtype), scales


class Scales(Case):
    def test_an_append_computes_scales_of_tokens(self):
        k, v = normal(20, KV_HEADS, DIM, seed=4), normal(20, KV_HEADS, DIM, seed=5)
        k[3] = 0  # a row of zeros has the scale 1
        slots = torch.arange(20) + PAGE_SIZE
        slots[7] = -1
        for dtype in (torch.int8, FP8):
            with self.subTest(dtype):
                caches = [torch.zeros(4, PAGE_SIZE, KV_HEADS, DIM, dtype=dtype) for _ in range(2)]
                scales = [torch.zeros(4, PAGE_SIZE, KV_HEADS) for _ in range(2)]
                st.append_kv(k, v, *caches, slots, k_token_scales=scales[0], v_token_scales=scales[1])
                there = slots >= 0
                for rows, cache, stored in zip((k, v), caches, scales):
                    wanted, row_scales = quantised(rows, dtype)
                    torch.testing.assert_close(stored.flatten(0, 1)[slots[there]], row_scales[there], rtol=2.0 ** -22, atol=0)
                    found = cache.flatten(0, 1)[slots[there]].double()
                    # A quotient in F32 may be on the other side of the middle between two numbers.
                    step = 1 if dtype == torch.int8 else wanted[there].double().abs() / 8 + 2.0 ** -10
                    self.assertTrue(((found - wanted[there].double()).abs() <= step).all())
                    self.assertLess((found != wanted[there].double()).double().mean().item(), 0.01)
                    self.assertFalse(cache.flatten(0, 1)[slots[7]].double().any() or stored[0].any())
                self.attend(caches, scales)

    def attend(self, caches, scales):
        """Attention over what is stored, by pages and by rows."""
        q, table, length = normal(1, 3, HEADS, DIM, seed=6), ints(1, 2)[None], ints(20)
        extra = st.Extra(k_scales=scales[0], v_scales=scales[1])
        k, v = (cache.double()[[1, 2]].flatten(0, 1)[:20] * of[[1, 2]].flatten(0, 1)[:20, :, None]
                for cache, of in zip(caches, scales))
        o, lse = st.flash_attn_with_kvcache(q, *caches, length, table, return_softmax_lse=True, extra=extra)
        wanted = lambda i, h: row_of(q[0, i, h], k[:, h // 2], v[:, h // 2])  # noqa: E731
        self.compare(o[0], lse[0], wanted, v.bfloat16())
        o = st.flash_attn_varlen_paged(q[0], *caches, ints(0, 3), 3, table, length, 20, causal=False, extra=extra)
        self.compare(o, None, wanted, v.bfloat16())
        dense = [x[[1, 2]].flatten(0, 1)[None, :20] for x in (*caches, *scales)]
        plain = st.Extra(k_scales=dense[2], v_scales=dense[3])
        self.compare(st.flash_attn_func(q, dense[0], dense[1], extra=plain)[0], None, wanted, v.bfloat16())
        flat = st.Extra(k_scales=dense[2][0], v_scales=dense[3][0])
        o = st.flash_attn_varlen_func(q[0], dense[0][0], dense[1][0], ints(0, 3), ints(0, 20), 3, 20, extra=flat)
        self.compare(o, None, wanted, v.bfloat16())

    def test_scales_of_pages(self):
        scales = [torch.rand(PAGES, KV_HEADS, generator=torch.Generator().manual_seed(seed)) / 32 + 0.01 for seed in (7, 8)]
        caches = [torch.zeros(PAGES, PAGE_SIZE, KV_HEADS, DIM, dtype=torch.int8) for _ in range(2)]
        rows = [normal(30, KV_HEADS, DIM, seed=seed) for seed in (9, 10)]
        slots = torch.arange(30) + 3 * PAGE_SIZE
        st.append_kv(*rows, *caches, slots, k_page_scales=scales[0], v_page_scales=scales[1])
        stored = []
        for given, cache, page_scales in zip(rows, caches, scales):
            each = page_scales[slots // PAGE_SIZE][..., None]
            stored.append(cache.flatten(0, 1)[slots].double() * each)
            self.assertLessEqual(((stored[-1] - given.double()).abs() / each)[stored[-1].abs() < 126 * each].max().item(), 0.501)
        q = normal(1, 1, HEADS, DIM, seed=11)
        o = st.flash_attn_with_kvcache(q, *caches, ints(30), ints(3, 4)[None],
                                       extra=st.Extra(k_scales=scales[0], v_scales=scales[1]))
        self.compare(o[0], None, lambda i, h: row_of(q[0, i, h], *(x[:, h // 2] for x in stored)), stored[1].bfloat16())

    def test_an_fp8_result(self):
        q, k, v = normal(1, 5, HEADS, DIM, seed=1), normal(1, 30, KV_HEADS, DIM, seed=2), normal(1, 30, KV_HEADS, DIM, seed=3)
        scale = torch.tensor([0.25, 0.01, 0.0001, 1.0])
        out = torch.zeros(5, HEADS, DIM, dtype=FP8)
        cache, table = [torch.zeros(2, PAGE_SIZE, KV_HEADS, DIM, dtype=torch.bfloat16) for _ in range(2)], ints(1, 0)[None]
        st.append_kv(k[0], v[0], *cache, torch.cat([torch.arange(16) + 16, torch.arange(14)]))
        st.flash_attn_varlen_paged(q[0], *cache, ints(0, 5), 5, table, ints(30), 30, causal=False, out=out,
                                   extra=st.Extra(o_scale=scale))
        for found in (st.flash_attn_func(q, k, v, out_dtype=FP8, extra=st.Extra(o_scale=scale))[0], out):
            self.assertEqual(found.dtype, FP8)
            for i, h in itertools.product(range(5), range(HEADS)):
                wanted = (row_of(q[0, i, h], k[0, :, h // 2], v[0, :, h // 2])[0] / scale[h]).clamp(-240, 240)
                # Half of the last place of FP8, and P rounded to that of Q.
                allowed = wanted.abs() * 2.0 ** -4 + 2.0 ** -11 + 2 * LAST_PLACE[v.dtype] * v.abs().max().double() / scale[h]
                self.assertTrue(((found[i, h].double() - wanted).abs() <= allowed).all())
        with self.assertRaisesRegex(sluice.InvalidArgument, "unless o.type is e4m3fnuz"):
            st.flash_attn_func(q, k, v, extra=st.Extra(o_scale=scale))
        with self.assertRaisesRegex(sluice.InvalidArgument, "out is given and out_dtype is torch.float32"):
            st.flash_attn_varlen_paged(q[0], *cache, ints(0, 5), 5, table, ints(30), 30, out=out, out_dtype=torch.float32)


class Masks(Case):
    """Which keys rows see, and what is added to their scores."""

    ROWS, KEYS = 7, 40

    def setUp(self):
        super().setUp()
        self.q = normal(2, self.ROWS, HEADS, DIM, seed=3)
        self.dense = normal(2, self.KEYS, KV_HEADS, DIM, seed=4), normal(2, self.KEYS, KV_HEADS, DIM, seed=5)

    def check(self, extra, sees, change=lambda b, h, i: lambda scores: scores, **arguments):
        """Dense, one after the other, and in pages; sees[b] is [rows, keys], and `change` is of the whole row."""
        def wanted(i, h):
            b, row = i // self.ROWS, i % self.ROWS
            k, v = (x[b, :, h // 2] for x in self.dense)
            scores = change(b, h, row)(k.double() @ self.q[b, row, h].double() / DIM ** 0.5).masked_fill(~sees[b][row], -torch.inf)
            return scores.softmax(0) @ v.double(), scores.logsumexp(0).item()

        k, v = self.dense
        o, lse = st.flash_attn_func(self.q, k, v, return_attn_probs=True, extra=extra, **arguments)
        self.compare(o.flatten(0, 1), lse.transpose(0, 1).flatten(1), wanted, v)
        rows, starts = ints(0, self.ROWS, 2 * self.ROWS), ints(0, self.KEYS, 2 * self.KEYS)
        o, lse = st.flash_attn_varlen_func(self.q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1), rows, starts, self.ROWS,
                                           self.KEYS, return_attn_probs=True, extra=extra, **arguments)
        self.compare(o, lse, wanted, v)
        table, caches = ints(*range(10)).reshape(2, 5), [x.reshape(10, 8, KV_HEADS, DIM) for x in self.dense]
        lengths = ints(self.KEYS, self.KEYS)
        o, lse = st.flash_attn_with_kvcache(self.q, *caches, lengths, table, return_softmax_lse=True, extra=extra, **arguments)
        self.compare(o.flatten(0, 1), lse.transpose(0, 1).flatten(1), wanted, v)
        o, lse = st.flash_attn_varlen_paged(self.q.flatten(0, 1), *caches, rows, self.ROWS, table, lengths, self.KEYS,
                                            return_softmax_lse=True, extra=extra, **{"causal": False, **arguments})
        self.compare(o, lse, wanted, v)

    def test_new_rows(self):
        for heads in (1, HEADS):
            mask = torch.rand(2, heads, self.ROWS, self.ROWS, generator=torch.Generator().manual_seed(6)) < 0.5
            if heads == 1:
                sees = torch.ones(2, self.ROWS, self.KEYS, dtype=torch.bool)
                sees[:, :, -self.ROWS:] = mask[:, 0]
                self.check(st.Extra(new_rows_mask=mask), sees)
            else:
                def change(b, h, i, mask=mask):
                    return lambda scores: torch.cat([scores[:-self.ROWS],
                                                     scores[-self.ROWS:].masked_fill(~mask[b, h, i], -torch.inf)])
                self.check(st.Extra(new_rows_mask=mask), torch.ones(2, self.ROWS, self.KEYS, dtype=torch.bool), change)
        with self.assertRaisesRegex(sluice.InvalidArgument, "new_rows_mask is of torch.int64; it must be of torch.bool"):
            st.flash_attn_func(self.q, *self.dense, extra=st.Extra(new_rows_mask=mask.long()))

    def test_spans_diagonals_and_causal_sequences(self):
        diagonals, causal, spans = (5, 20), (1, 0), [[[2, 9], [11, 30]], [[0, 0], [15, 26]]]
        key, sees = torch.arange(self.KEYS)[None], []
        for b in range(2):
            place = diagonals[b] + torch.arange(self.ROWS)[:, None]
            visible = (key >= place - 3) & ((key <= place) if causal[b] else torch.ones_like(key, dtype=torch.bool))
            for first, end in spans[b]:
                visible |= (first <= place) & (place < end) & (first <= key) & (key < end)
            sees.append(visible)
        self.check(st.Extra(diagonals=ints(*diagonals), causal_sequences=ints(*causal), spans=torch.tensor(spans).int()), sees,
                   window_size=(3, -1))

    def test_a_bias_with_factors(self):
        bias, sees = normal(1, 1, self.ROWS, self.KEYS, seed=8), [torch.ones(self.ROWS, self.KEYS, dtype=torch.bool)] * 2
        for shape in ((HEADS,), (2, HEADS)):
            factors = normal(*shape, seed=9, dtype=torch.float32)
            all_factors = factors.expand(2, HEADS).double()
            self.check(st.Extra(bias=bias, bias_scale=factors), sees,
                       lambda b, h, i, all_factors=all_factors: lambda scores: scores + all_factors[b, h] * bias[0, 0, i].double())


class SharedPrefixes(Case):
    def test_in_pages(self):
        """Rows of the last two of three sequences see the keys of a prefix; the causal mask is of their own keys."""
        lengths, rows, prefix = (20, 9, 33), (4, 2, 3), 40
        table, own = ints(0, 1, 2, 3, 4, 5, 6, 7, 8).reshape(3, 3), (3, 8, 1)
        k, v = (normal(12, PAGE_SIZE, KV_HEADS, DIM, seed=seed) for seed in (1, 2))
        table[:, 0] = ints(*own)
        shared = ints(9, 10, 11)[None]
        q = normal(sum(rows), HEADS, DIM, seed=3)
        starts = ints(0, *itertools.accumulate(rows))
        extra = st.Extra(prefix=st.SharedPrefix(ints(rows[0], sum(rows)), ints(prefix), shared, prefix))
        o, lse = st.flash_attn_varlen_paged(q, k, v, starts, 4, table, ints(*lengths), 33, return_softmax_lse=True, extra=extra)

        def wanted(i, h):
            b = int((starts <= i).sum()) - 1
            keys, values = (x[table[b].long()].flatten(0, 1)[:lengths[b], h // 2] for x in (k, v))
            sees = diagonal(rows[b], lengths[b], causal=True)[i - starts[b]]
            keys, values = keys[sees], values[sees]
            if b > 0:
                before = [x[[9, 10, 11]].flatten(0, 1)[:prefix, h // 2] for x in (k, v)]
                keys, values = torch.cat([before[0], keys]), torch.cat([before[1], values])
            return row_of(q[i, h], keys, values)

        self.compare(o, lse, wanted, v)

    def test_in_tensors_of_its_own(self):
        q, k, v = normal(3, 2, HEADS, DIM, seed=1), normal(3, 9, KV_HEADS, DIM, seed=2), normal(3, 9, KV_HEADS, DIM, seed=3)
        before = normal(1, 50, KV_HEADS, DIM, seed=4), normal(1, 50, KV_HEADS, DIM, seed=5)
        o = st.flash_attn_func(q, k, v, extra=st.Extra(prefix=st.SharedPrefix(ints(2, 6), k=before[0], v=before[1])))

        def wanted(i, h):
            parts = [x[i // 2, :, h // 2] for x in (k, v)]
            if i >= 2:
                parts = [torch.cat([prefix[0, :, h // 2], own]) for prefix, own in zip(before, parts)]
            return row_of(q[i // 2, i % 2, h], *parts)

        self.compare(o.flatten(0, 1), None, wanted, v)


class Merges(Case):
    def test_sinks_and_empty_parts(self):
        partial, lse = normal(3, 6, HEADS, DIM, dtype=torch.float32, seed=1), normal(3, 6, HEADS, dtype=torch.float32, seed=2)
        sinks = torch.tensor([0.5, -1.0, 2.0, 0.0])
        lse[1, 2:4], lse[:, 5] = torch.inf, torch.inf  # parts without keys, and rows without any
        weight = lse.double().exp().masked_fill(lse.isinf(), 0)
        sums = weight.sum(0) + sinks.double().exp()
        o, found = st.merge_states(partial, lse, torch.float32, sinks, infinity_is_empty=True)
        self.assertLess((o - (partial.double() * weight[..., None]).sum(0) / sums[..., None]).abs().max().item(), 1e-5)
        self.assertLess((found - sums.log()).abs().max().item(), 1e-5)
        plain, _ = st.merge_states(partial, lse, torch.float32, sinks)
        self.assertTrue(plain[5].isnan().all() and plain[2:4].isnan().all() and plain[:2].isfinite().all())


if __name__ == "__main__":
    unittest.main()
