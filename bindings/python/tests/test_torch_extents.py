"""Calls of sluice.torch that have little or nothing to do, and those that are wrong."""

import inspect
import itertools
import pathlib
import sys
import typing
import unittest

import torch
import torch.nn.functional as F

import sluice
import sluice.torch as st

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from pool import Pool  # noqa: E402

Pool().start()  # tensors share blocks of memory, as on a GPU

HEADS, KV_HEADS, DIM, PAGE = 4, 2, 64, 16
INFINITY = float("inf")


def normal(*shape, dtype=torch.bfloat16, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def ints(*values, dtype=torch.int32):
    return torch.tensor(values, dtype=dtype)


def dense(rows=3, keys=5, batch=2):
    return {"q": normal(batch, rows, HEADS, DIM), "k": normal(batch, keys, KV_HEADS, DIM, seed=1),
            "v": normal(batch, keys, KV_HEADS, DIM, seed=2)}


def varlen():
    return {"q": normal(5, HEADS, DIM), "k": normal(9, KV_HEADS, DIM, seed=1), "v": normal(9, KV_HEADS, DIM, seed=2),
            "cu_seqlens_q": ints(0, 2, 5), "cu_seqlens_k": ints(0, 4, 9), "max_seqlen_q": 3, "max_seqlen_k": 5}


def cache():
    return {"k_cache": normal(8, PAGE, KV_HEADS, DIM, seed=1), "v_cache": normal(8, PAGE, KV_HEADS, DIM, seed=2)}


def paged(rows=2):
    return {"q": normal(2, rows, HEADS, DIM), **cache(), "cache_seqlens": ints(20, 7), "block_table": ints([3, 1], [2, 0])}


def paged_varlen():
    return {"q": normal(5, HEADS, DIM), **cache(), "cu_seqlens_q": ints(0, 2, 5), "max_seqlen_q": 3,
            "block_table": ints([3, 1], [2, 0]), "cache_seqlens": ints(20, 7), "max_seqlen_k": 20}


def sparse():
    return {"q": normal(3, HEADS, DIM), **cache(), "indices": ints([0, 5, -1], [1, -1, -1], [2, 3, 4])}


def merge():
    return {"partial": normal(3, 5, HEADS, DIM, dtype=torch.float32), "partial_lse": normal(3, 5, HEADS, dtype=torch.float32),
            "out_dtype": torch.bfloat16}


def append(tokens=3):
    return {"key": normal(tokens, KV_HEADS, DIM), "value": normal(tokens, KV_HEADS, DIM), "key_cache": cache()["k_cache"],
            "value_cache": cache()["v_cache"], "slot_mapping": torch.arange(tokens)}


def sdpa():
    return {"query": normal(2, HEADS, 3, DIM), "key": normal(2, HEADS, 5, DIM, seed=1), "value": normal(2, HEADS, 5, DIM, seed=2)}


CALLS = {st.flash_attn_func: dense, st.flash_attn_varlen_func: varlen, st.flash_attn_with_kvcache: paged,
         st.flash_attn_varlen_paged: paged_varlen, st.sparse_attn_with_kvcache: sparse, st.merge_states: merge,
         st.append_kv: append, st.scaled_dot_product_attention: sdpa}


class Nothing(unittest.TestCase):
    """0 rows, keys, sequences, pages: empty results, or rows that are 0."""

    def empty(self, result, *shape):
        self.assertEqual(tuple(result.shape), shape)
        self.assertEqual(result.numel(), 0)

    def no_keys(self, function, lse="return_softmax_lse", **changed):
        """Rows without keys."""
        o, found = function(**{**CALLS[function](), **changed}, **{lse: True})
        self.assertEqual(o.abs().max().item(), 0)
        self.assertEqual(found.max().item(), -INFINITY)

    def test_no_rows(self):
        self.empty(st.flash_attn_func(**dense(rows=0)), 2, 0, HEADS, DIM)
        self.empty(st.flash_attn_func(**dense(batch=0)), 0, 3, HEADS, DIM)
        self.empty(st.flash_attn_with_kvcache(**paged(rows=0)), 2, 0, HEADS, DIM)
        none = {"q": normal(0, 2, HEADS, DIM), "cache_seqlens": ints(), "block_table": torch.zeros(0, 3, dtype=torch.int32)}
        self.empty(st.flash_attn_with_kvcache(**{**paged(), **none}), 0, 2, HEADS, DIM)
        none = {"q": normal(0, HEADS, DIM), "cu_seqlens_q": ints(0, 0, 0)}
        for function in (st.flash_attn_varlen_func, st.flash_attn_varlen_paged):
            for most in (0, 3):
                self.empty(function(**{**CALLS[function](), **none, "max_seqlen_q": most}), 0, HEADS, DIM)
        none = {"q": normal(0, HEADS, DIM), "cu_seqlens_q": ints(0), "cu_seqlens_k": ints(0)}
        self.empty(st.flash_attn_varlen_func(**{**varlen(), **none}), 0, HEADS, DIM)
        out = normal(0, HEADS, DIM)
        arrays = {**paged_varlen(), "q": out, "cu_seqlens_q": ints(0), "cache_seqlens": ints(),
                  "block_table": torch.zeros(0, 2, dtype=torch.int32), "out": out.clone()}
        self.empty(st.flash_attn_varlen_paged(**arrays), 0, HEADS, DIM)
        self.empty(st.sparse_attn_with_kvcache(**{**sparse(), "q": normal(0, HEADS, DIM),
                                                  "indices": torch.zeros(0, 3, dtype=torch.int32)}), 0, HEADS, DIM)

    def test_no_keys(self):
        none = normal(2, 0, KV_HEADS, DIM)
        self.no_keys(st.flash_attn_func, "return_attn_probs", k=none, v=none)
        none = normal(0, KV_HEADS, DIM)
        for most in (0, 5):
            self.no_keys(st.flash_attn_varlen_func, "return_attn_probs", k=none, v=none, cu_seqlens_k=ints(0, 0, 0),
                         max_seqlen_k=most)
        pages, columns = normal(0, PAGE, KV_HEADS, DIM), torch.zeros(2, 0, dtype=torch.int32)
        for function in (st.flash_attn_with_kvcache, st.flash_attn_varlen_paged):
            self.no_keys(function, k_cache=pages, v_cache=pages, cache_seqlens=ints(0, 0))
            self.no_keys(function, cache_seqlens=ints(0, 0))
        self.no_keys(st.flash_attn_with_kvcache, block_table=columns, cache_seqlens=ints(0, 0))
        self.no_keys(st.flash_attn_varlen_paged, block_table=columns, cache_seqlens=ints(0, 0), max_seqlen_k=0)
        for indices in (torch.zeros(3, 0, dtype=torch.int32), torch.zeros(3, KV_HEADS, 0, dtype=torch.int64)):
            self.no_keys(st.sparse_attn_with_kvcache, indices=indices)
        self.no_keys(st.sparse_attn_with_kvcache, k_cache=pages, v_cache=pages, indices=ints([-1], [-1], [-1]))
        sinks = torch.arange(4.0)
        _, lse = st.flash_attn_with_kvcache(**{**paged(), "cache_seqlens": ints(0, 0)}, sinks=sinks, return_softmax_lse=True)
        self.assertTrue(torch.equal(lse, sinks[None, :, None].expand(2, 4, 2)))

    def test_masks_of_calls_without_keys(self):
        none = normal(2, HEADS, 0, DIM)
        for mask in (torch.zeros(3, 0), torch.zeros(3, 0, dtype=torch.bool)):
            o = st.scaled_dot_product_attention(normal(2, HEADS, 3, DIM), none, none, mask)
            self.assertEqual(o.abs().max().item(), 0)
        q, k = normal(2, 33, HEADS, DIM), normal(2, 0, KV_HEADS, DIM)
        for extra in (st.Extra(bias=torch.zeros(2, 4, 33, 0), bias_scale=torch.ones(4)),
                      st.Extra(new_rows_mask=torch.ones(1, 1, 33, 33, dtype=torch.bool)),
                      st.Extra(spans=torch.zeros(2, 0, 2, dtype=torch.int32))):
            self.assertEqual(st.flash_attn_func(q, k, k, extra=extra).abs().max().item(), 0)

    def test_prefixes_that_do_not_exist(self):
        plain = st.flash_attn_func(**dense())
        none = normal(1, 0, KV_HEADS, DIM)
        for prefix in (st.SharedPrefix(ints(0, 4), k=none, v=none), st.SharedPrefix(ints(0), k=none[:0], v=none[:0])):
            self.assertTrue(torch.equal(st.flash_attn_func(**dense(), extra=st.Extra(prefix=prefix)), plain))
        plain = st.flash_attn_varlen_paged(**paged_varlen())
        columns = torch.zeros(1, 0, dtype=torch.int32)
        extra = st.Extra(prefix=st.SharedPrefix(ints(0, 4), ints(0), columns, 0))
        self.assertTrue(torch.equal(st.flash_attn_varlen_paged(**paged_varlen(), extra=extra), plain))

    def test_only_the_keys_of_a_prefix(self):
        q, shared = normal(1, 2, HEADS, DIM), [normal(1, 30, KV_HEADS, DIM, seed=seed) for seed in (1, 2)]
        none = normal(1, 0, KV_HEADS, DIM)
        o = st.flash_attn_func(q, none, none, extra=st.Extra(prefix=st.SharedPrefix(ints(0, 2), k=shared[0], v=shared[1])))
        self.assertLess((o.double() - st.flash_attn_func(q, *shared).double()).abs().max().item(), 0.02)

    def test_caches_and_merges(self):
        before = append(tokens=0)
        kept = before["key_cache"].clone()
        st.append_kv(**before)
        self.assertTrue(torch.equal(before["key_cache"], kept))
        none = normal(0, PAGE, KV_HEADS, DIM)
        st.append_kv(**{**append(), "key_cache": none, "value_cache": none, "slot_mapping": ints(-1, -1, -1, dtype=torch.int64)})
        o, lse = st.merge_states(normal(3, 0, HEADS, DIM, dtype=torch.float32), torch.zeros(3, 0, HEADS), torch.bfloat16)
        self.empty(o, 0, HEADS, DIM)
        self.empty(lse, 0, HEADS)

    def test_graphs_with_dynamic_shapes(self):
        def layer(q, k, v):
            return st.flash_attn_func(q, k, v, causal=True)

        compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="eager")
        for rows, keys in ((5, 7), (0, 7), (3, 0), (1, 1), (9, 7)):
            arrays = dense(rows, keys)
            self.assertTrue(torch.equal(compiled(**arrays), layer(**arrays)))

        def masked(q, k, v, mask):
            return st.scaled_dot_product_attention(q, k, v, mask)

        compiled = torch.compile(masked, fullgraph=True, dynamic=True, backend="eager")
        for rows, keys in ((5, 7), (0, 7), (3, 0), (1, 1), (9, 17)):
            arrays = normal(2, HEADS, rows, DIM), *(normal(2, HEADS, keys, DIM, seed=seed) for seed in (1, 2)), \
                normal(rows, keys) > 0
            self.assertTrue(torch.equal(compiled(*arrays), masked(*arrays)))


class Zero(unittest.TestCase):
    """A scale of 0 is a number: each row is the mean of the values that it sees."""

    def means(self, function, **options):
        arrays = CALLS[function]()
        for name in ("v", "value", "v_cache"):
            if name in arrays:
                arrays[name] = torch.ones_like(arrays[name])
        name = "scale" if function is st.scaled_dot_product_attention else "softmax_scale"
        plain, zero = (function(**arrays, **options, **{name: scale}) for scale in (None, 0.0))
        return plain, zero

    def test_rows_are_means(self):
        v = torch.arange(5.0).to(torch.bfloat16)[None, :, None, None].expand(2, 5, KV_HEADS, DIM).contiguous()
        o, lse = st.flash_attn_func(**{**dense(), "v": v}, softmax_scale=0.0, return_attn_probs=True)
        self.assertLess((o - 2).abs().max().item(), 0.02)
        self.assertLess((lse - torch.tensor(5.0).log()).abs().max().item(), 1e-5)
        o = st.flash_attn_func(**{**dense(), "v": v}, softmax_scale=0, causal=True)
        self.assertLess((o[0, :, 0, 0] - torch.tensor([1, 1.5, 2])).abs().max().item(), 0.02)

    def test_everywhere(self):
        """LSE is the logarithm of the number of keys."""
        for function, keys, lse in ((st.flash_attn_func, [5, 5], "return_attn_probs"),
                                    (st.flash_attn_varlen_func, [4, 5], "return_attn_probs"),
                                    (st.flash_attn_with_kvcache, [20, 7], "return_softmax_lse"),
                                    (st.flash_attn_varlen_paged, [20, 7], "return_softmax_lse"),
                                    (st.sparse_attn_with_kvcache, [2, 1, 3], "return_softmax_lse")):
            arrays = CALLS[function]()
            causal = {"causal": False} if function is st.flash_attn_varlen_paged else {}
            _, found = function(**arrays, softmax_scale=0.0, **{lse: True}, **causal)
            counts = {round(x, 3) for x in found.double().exp().flatten().tolist()}
            self.assertEqual(counts, {float(key) for key in keys}, function.__name__)
        arrays = sdpa()
        o = st.scaled_dot_product_attention(**arrays, scale=0.0)
        wanted = arrays["value"].double().mean(2, keepdim=True)
        self.assertLess((o - wanted).abs().max().item(), 0.05)


class Shapes(unittest.TestCase):
    """scaled_dot_product_attention takes what torch's takes."""

    def test_dimensions_and_broadcasts(self):
        for q, k, v, mask in (((3, 64), (5, 64), (5, 64), None), ((2, 3, 64), (2, 5, 64), (2, 5, 64), (3, 5)),
                              ((2, 3, 64), (1, 5, 64), (2, 5, 64), (2, 1, 5)), ((2, 4, 3, 64), (1, 4, 5, 64), (5, 64), (5,)),
                              ((2, 4, 3, 64), (2, 1, 5, 64), (2, 1, 5, 64), (2, 1, 3, 5)),
                              ((4, 3, 64), (2, 4, 5, 64), (2, 4, 5, 64), (2, 4, 3, 1)),
                              ((2, 1, 3, 64), (2, 4, 5, 64), (1, 4, 5, 64), (1, 1, 1, 5)),
                              ((2, 3, 4, 3, 64), (2, 3, 4, 5, 64), (3, 4, 5, 64), (3, 1, 3, 5)),
                              ((2, 3, 4, 3, 64), (2, 1, 4, 5, 64), (2, 3, 4, 5, 64), (2, 1, 4, 3, 5)),
                              ((0, 4, 3, 64), (0, 4, 5, 64), (0, 4, 5, 64), (3, 5)), ((2, 0, 64), (2, 5, 64), (2, 5, 64), None),
                              ((2, 4, 3, 64), (2, 4, 5, 64), (2, 4, 5, 0), None),
                              ((2, 0, 3, 64), (2, 0, 5, 64), (2, 0, 5, 64), None)):
            for kind in ("none",) if mask is None else ("bool", "float"):
                with self.subTest(q=q, k=k, v=v, mask=mask, kind=kind):
                    tensors = [normal(*shape, seed=i) for i, shape in enumerate((q, k, v))]
                    given = None if mask is None else normal(*mask, dtype=torch.float32, seed=4)
                    if kind == "bool":
                        given = given > -0.5
                    wanted = F.scaled_dot_product_attention(*(x.double() for x in tensors),
                                                            given.double() if kind == "float" else given)
                    o = st.scaled_dot_product_attention(*tensors, given)
                    self.assertEqual(o.shape, wanted.shape)
                    if o.numel():
                        self.assertLess((o.double() - wanted.nan_to_num(0.0)).abs().max().item(), 0.03)

    def test_groups_of_k_and_of_v(self):
        q, k, v = normal(2, 8, 3, DIM), normal(2, 4, 5, DIM, seed=1), normal(2, 2, 5, DIM, seed=2)
        wanted = F.scaled_dot_product_attention(q.double(), *(x.double().repeat_interleave(8 // x.shape[1], 1) for x in (k, v)))
        self.assertLess((st.scaled_dot_product_attention(q, k, v, enable_gqa=True) - wanted).abs().max().item(), 0.03)


class Refused(unittest.TestCase):
    def refused(self, function, field, message, **changed):
        with self.assertRaises(sluice.InvalidArgument) as caught:
            function(**{**CALLS[function](), **changed})
        self.assertIsInstance(caught.exception, ValueError)
        self.assertEqual(caught.exception.field, field)
        self.assertIn(message, str(caught.exception))
        self.assertIn(field, str(caught.exception))

    def test_extents_that_must_be_equal(self):
        paged_lse = {"q": normal(3, 2, HEADS, DIM)}
        short = normal(4, PAGE, KV_HEADS, DIM)
        for function, field, message, changed in (
                (st.flash_attn_func, "k", "k.shape[0] is 1; it must be 2 (batch, as q.shape[0])",
                 {"k": normal(1, 5, KV_HEADS, DIM)}),
                (st.flash_attn_func, "v", "v.shape[1] is 14; it must be 5 (keys", {"v": normal(2, 14, KV_HEADS, DIM)}),
                (st.flash_attn_func, "v", "v.shape[2] is 1; it must be 2", {"v": normal(2, 5, 1, DIM)}),
                (st.flash_attn_func, "k", "k.shape[3] is 72; it must be 64 (dim_qk", {"k": normal(2, 5, KV_HEADS, 72)}),
                (st.flash_attn_func, "q", "q has 3 dimensions; it must have 4", {"q": normal(2, HEADS, DIM)}),
                (st.flash_attn_func, "alibi_slopes", "alibi_slopes.shape[0] is 3", {"alibi_slopes": torch.ones(3)}),
                (st.flash_attn_func, "alibi_slopes", "shape[0] is 3; it must be 2 (batch", {"alibi_slopes": torch.ones(3, 4)}),
                (st.flash_attn_varlen_func, "v", "v.shape[0] is 14; it must be 9", {"v": normal(14, KV_HEADS, DIM)}),
                (st.flash_attn_varlen_func, "cu_seqlens_k", "shape[0] is 4; it must be 3", {"cu_seqlens_k": ints(0, 1, 2, 3)}),
                (st.flash_attn_varlen_func, "cu_seqlens_q", "shape[0] is 0; it must be at least 1", {"cu_seqlens_q": ints()}),
                (st.flash_attn_varlen_func, "max_seqlen_q", "max_seqlen_q is -1; it must be from 0", {"max_seqlen_q": -1}),
                (st.flash_attn_with_kvcache, "block_table", "block_table.shape[0] is 2; it must be 3 (batch", paged_lse),
                (st.flash_attn_with_kvcache, "cache_seqlens", "shape[0] is 3; it must be 2", {"cache_seqlens": ints(1, 2, 3)}),
                (st.flash_attn_with_kvcache, "v_cache", "v_cache.shape[0] is 4; it must be 8 (pages", {"v_cache": short}),
                (st.flash_attn_with_kvcache, "k_cache", "k_cache.shape[1] is 0; it must be at least 1 (page_size",
                 {"k_cache": normal(8, 0, KV_HEADS, DIM)}),
                (st.flash_attn_with_kvcache, "sinks", "sinks.shape[0] is 5; it must be 4", {"sinks": torch.ones(5)}),
                (st.flash_attn_varlen_paged, "out", "out.shape[0] is 4; it must be 5 (tokens", {"out": normal(4, HEADS, DIM)}),
                (st.flash_attn_varlen_paged, "out", "out.shape[0] is 6; it must be 5 (tokens", {"out": normal(6, HEADS, DIM)}),
                (st.flash_attn_varlen_paged, "block_table", "block_table.shape[1] is 2; it must be at least 3",
                 {"max_seqlen_k": 33}),
                (st.sparse_attn_with_kvcache, "indices", "indices.shape[0] is 2; it must be 3", {"indices": ints([0], [1])}),
                (st.sparse_attn_with_kvcache, "indices", "indices is of torch.float32", {"indices": torch.zeros(3, 2)}),
                (st.merge_states, "partial_lse", "partial_lse.shape[1] is 4; it must be 5",
                 {"partial_lse": torch.zeros(3, 4, HEADS)}),
                (st.merge_states, "partial", "partial.shape[0] is 0; it must be at least 1 (parts)",
                 {"partial": torch.zeros(0, 5, HEADS, DIM)}),
                (st.append_kv, "value", "value.shape[0] is 2; it must be 3", {"value": normal(2, KV_HEADS, DIM)}),
                (st.append_kv, "slot_mapping", "shape[0] is 2; it must be 3", {"slot_mapping": torch.arange(2)}),
                (st.append_kv, "slot_mapping", "is of torch.int32; it must be of torch.int64", {"slot_mapping": ints(0, 1, 2)}),
                (st.append_kv, "value_cache", "value_cache.shape[0] is 4; it must be 8", {"value_cache": short}),
                (st.append_kv, "value", "value is None, but value_cache is given", {"value": None}),
                (st.scaled_dot_product_attention, "key", "key.shape[-1] is 72; it must be 64", {"key": normal(2, HEADS, 5, 72)}),
                (st.scaled_dot_product_attention, "value", "value.shape[-2] is 4", {"value": normal(2, HEADS, 4, DIM)}),
                (st.scaled_dot_product_attention, "key", "key.shape[-4] is 3; it must be 2 or 1",
                 {"key": normal(3, HEADS, 5, DIM)}),
                (st.scaled_dot_product_attention, "query", "query has 1 dimensions", {"query": normal(DIM)}),
                (st.scaled_dot_product_attention, "attn_mask", "attn_mask.shape[-1] is 6; it must be 5 or 1",
                 {"attn_mask": torch.zeros(3, 6)}),
                (st.scaled_dot_product_attention, "attn_mask", "attn_mask has 5 dimensions",
                 {"attn_mask": torch.zeros(1, 1, 1, 3, 5)}),
                (st.scaled_dot_product_attention, "attn_mask", "attn_mask is of torch.float64",
                 {"attn_mask": torch.zeros(3, 5, dtype=torch.float64)})):
            with self.subTest(function.__name__, message=message):
                self.refused(function, field, message, **changed)

    def test_extras(self):
        tensors = {"bias": torch.zeros(2, 4, 3, 6), "bias_scale": torch.zeros(5), "k_scales": torch.zeros(2, 6, 2),
                   "new_rows_mask": torch.ones(2, 4, 2, 2, dtype=torch.bool), "spans": ints([[0, 1, 2]]), "diagonals": ints(1),
                   "causal_sequences": ints(1, 2, 3), "o_scale": torch.zeros(3)}
        for field, tensor in tensors.items():
            with self.subTest(field):
                self.refused(st.flash_attn_func, field, field, extra=st.Extra(**{field: tensor}))
        shared = {"k": normal(1, 9, KV_HEADS, DIM), "v": normal(1, 9, KV_HEADS, DIM)}
        for field, changed in (("q_starts", {"q_starts": ints()}), ("lengths", {"lengths": ints(1, 2)}), ("k", {"k": None}),
                               ("k", {"k": normal(2, 9, KV_HEADS, DIM)}), ("v", {"v": normal(1, 8, KV_HEADS, DIM)}),
                               ("block_table", {"block_table": ints([0])}), ("q_starts", {"q_starts": None})):
            with self.subTest(field, changed=changed):
                prefix = st.SharedPrefix(**{"q_starts": ints(0, 2), **shared, **changed})
                self.refused(st.flash_attn_func, f"prefix.{field}", "", extra=st.Extra(prefix=prefix))
        self.refused(st.flash_attn_with_kvcache, "prefix.block_table", "it must be at least 2",
                     extra=st.Extra(prefix=st.SharedPrefix(ints(0, 2), ints(17), ints([0]), 17)))

    def test_every_argument_of_a_wrong_type(self):
        """Lists, strings and None are refused by name, whatever the argument."""
        for function, make in CALLS.items():
            hints = typing.get_type_hints(function)
            for name in inspect.signature(function).parameters:
                for wrong in ([1.0, 2.0], "text", object()) if type(None) in typing.get_args(hints[name]) \
                        else ([1.0, 2.0], "text", object(), None):
                    with self.subTest(function.__name__, name=name, wrong=wrong):
                        self.refused(function, name, "it must be", **{name: wrong})
        for name, hint in typing.get_type_hints(st.Extra).items():
            with self.subTest(name):
                self.refused(st.flash_attn_func, name, "it must be", extra=st.Extra(**{name: "text"}))
        for name in st.SharedPrefix._fields:
            with self.subTest(name):
                self.refused(st.flash_attn_func, f"prefix.{name}", "it must be",
                             extra=st.Extra(prefix=st.SharedPrefix(**{"q_starts": ints(0), name: "text"})))
        for call in (lambda: st.context_of("cpu"), lambda: st.set_context("cpu", None), lambda: st.set_batch_invariant(1)):
            with self.assertRaises(sluice.InvalidArgument):
                call()

    def test_every_tensor_of_a_wrong_kind(self):
        """Tensors without dimensions, of other types and of other layouts."""
        for function, make in CALLS.items():
            hints = typing.get_type_hints(function)
            for name, hint in hints.items():
                if name == "return" or (hint is not torch.Tensor and torch.Tensor not in typing.get_args(hint)):
                    continue
                for wrong in (torch.zeros(3, 3, dtype=torch.complex64), torch.zeros((1,) * 7), torch.eye(3).to_sparse()):
                    if function is st.scaled_dot_product_attention and wrong.dim() == 7:
                        continue  # has a batch of five dimensions
                    with self.subTest(function.__name__, name=name, wrong=wrong.dtype):
                        self.refused(function, name, "", **{name: wrong})

    def test_the_next_call_works(self):
        before = st.flash_attn_func(**dense())
        for function in CALLS:
            with self.assertRaises(ValueError):
                function(**{**CALLS[function](), next(iter(CALLS[function]())): normal(3, 3)[0]})
        self.assertTrue(torch.equal(st.flash_attn_func(**dense()), before))


class BatchInvariance(unittest.TestCase):
    ROWS, KEYS = 1, 700

    def results(self, batch, **options):
        """The first sequence's bits in a batch, through each function."""
        q = normal(1, self.ROWS, HEADS, DIM).expand(batch, -1, -1, -1)
        k, v = (normal(1, self.KEYS, KV_HEADS, DIM, seed=seed).expand(batch, -1, -1, -1).contiguous() for seed in (1, 2))
        found = [st.flash_attn_func(q, k, v, **options)[0],
                 st.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)), enable_gqa=True,
                                                 **options)[0].transpose(0, 1)]
        starts = [torch.arange(batch + 1, dtype=torch.int32) * count for count in (self.ROWS, self.KEYS)]
        found.append(st.flash_attn_varlen_func(q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1), *starts, self.ROWS, self.KEYS,
                                               **options)[:self.ROWS])
        pages = [F.pad(x[:1], (0, 0, 0, 0, 0, 4)).reshape(-1, 16, KV_HEADS, DIM) for x in (k, v)]
        table = torch.arange(44, dtype=torch.int32)[None].expand(batch, -1).contiguous()
        lengths = torch.full((batch,), self.KEYS, dtype=torch.int32)
        found.append(st.flash_attn_with_kvcache(q, *pages, lengths, table, **options)[0])
        found.append(st.flash_attn_varlen_paged(q.flatten(0, 1), *pages, starts[0], self.ROWS, table, lengths, self.KEYS,
                                                **options)[:self.ROWS])
        found.append(st.sparse_attn_with_kvcache(q.flatten(0, 1), *pages, torch.arange(self.KEYS, dtype=torch.int32)[None]
                                                 .expand(batch, -1).contiguous(), **options)[:1])
        return found

    def test_bits_at_batch_1_and_40(self):
        for one, many in zip(*(self.results(batch, batch_invariant=True) for batch in (1, 40))):
            self.assertTrue(torch.equal(one, many))

    def test_bits_may_differ_without(self):
        """Else the test above would show nothing."""
        one, many = (self.results(batch) for batch in (1, 40))
        self.assertFalse(all(torch.equal(*pair) for pair in zip(one, many)))

    def test_the_setting_of_the_process(self):
        asked = self.results(40, batch_invariant=True)
        st.set_batch_invariant(True)
        try:
            self.assertTrue(all(map(torch.equal, self.results(40), asked)))
            compiled = torch.compile(lambda q, k, v: st.flash_attn_func(q, k, v), fullgraph=True, backend="eager")
            arrays = dense(1, self.KEYS, 40)
            invariant = compiled(**arrays)
            self.assertTrue(torch.equal(invariant, st.flash_attn_func(**arrays, batch_invariant=True)))
            plain = self.results(40, batch_invariant=False)
        finally:
            st.set_batch_invariant(False)
        self.assertTrue(torch.equal(compiled(**arrays), st.flash_attn_func(**arrays, batch_invariant=False)))
        self.assertTrue(all(map(torch.equal, self.results(40), plain)))


if __name__ == "__main__":
    unittest.main()
