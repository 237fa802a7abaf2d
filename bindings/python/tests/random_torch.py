"""Random calls of sluice.torch, and their results by torch in double precision."""

import math

import torch

import sluice.torch as st

from pool import Pool

Pool().start()  # tensors share blocks of memory, as on a GPU

# As in test_torch: half a unit of the last place of O, and P rounded to the type of Q.
LAST_PLACE = {torch.float16: 2.0 ** -11, torch.bfloat16: 2.0 ** -8}


class Draw:
    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.kv_heads, group = self.pick((1, 1), (1, 4), (2, 2), (3, 1))
        self.heads, self.dtype = self.kv_heads * group, self.pick(torch.float16, torch.bfloat16)
        self.dim, self.dim_v = self.pick((64, 64), (128, 128), (72, 72), (8, 8), (64, 128))
        self.batch, self.rows, self.keys = self.pick(0, 1, 1, 2, 3), self.pick(0, 1, 1, 5, 20), self.pick(0, 1, 1, 9, 50)
        self.scale = self.pick(None, None, 0.0, 0.0, 1e-30, 0.3, 1.0)
        self.causal = self.chance(0.4)
        self.window = self.pick((-1, -1), (-1, -1), (0, 0), (7, -1), (-1, 2), (3, 3))
        self.softcap = self.pick(0.0, 0.0, 4.0)
        self.sinks = self.numbers(self.heads, dtype=torch.float32) if self.chance(0.3) else None
        self.invariant = self.pick(None, None, True)

    def number(self, least, most):
        return int(torch.randint(least, most + 1, (), generator=self.generator))

    def chance(self, share):
        return float(torch.rand((), generator=self.generator)) < share

    def pick(self, *options):
        return options[self.number(0, len(options) - 1)]

    def numbers(self, *shape, dtype=None):
        return torch.randn(*shape, generator=self.generator).to(dtype or self.dtype)

    def lengths(self, count, most):
        return [self.number(0, most) for _ in range(count)]

    def cache(self, lengths, page_size):
        """K and V of each sequence in pages; entries past a sequence's pages are wild, rows past its keys NaN."""
        counts = [-(-length // page_size) for length in lengths]
        pages = sum(counts) + self.number(0, 2)
        order = torch.randperm(pages, generator=self.generator).tolist()
        columns = max(counts, default=0) + self.number(0, 1)
        table = torch.full((len(lengths), columns), 1 << 30, dtype=self.pick(torch.int32, torch.int64))
        caches = [torch.full((pages, page_size, self.kv_heads, dim), torch.nan, dtype=self.dtype)
                  for dim in (self.dim, self.dim_v)]
        each = []
        for b, length in enumerate(lengths):
            mine = [order.pop() for _ in range(counts[b])]
            table[b, :counts[b]] = torch.tensor(mine, dtype=table.dtype)
            values = [self.numbers(length, self.kv_heads, dim) for dim in (self.dim, self.dim_v)]
            for cache, value in zip(caches, values):
                for key in range(length):
                    cache[mine[key // page_size], key % page_size] = value[key]
            each.append(values)
        return caches, table, each

    def wanted(self, q, k, v, causal=None, with_sinks=False, top_left=False, mask=None):
        """O [rows, heads, dim] and LSE [rows, heads] of one sequence."""
        rows, keys, group = q.shape[0], k.shape[0], self.heads // self.kv_heads
        k, v = (x.double().repeat_interleave(group, 1) for x in (k, v))
        scale = self.dim ** -0.5 if self.scale is None else self.scale
        scores = torch.einsum("ihd,jhd->hij", q.double(), k) * scale
        if self.softcap and not top_left:
            scores = self.softcap * torch.tanh(scores / self.softcap)
        place = torch.arange(rows)[:, None] + (0 if top_left else keys - rows)
        key = torch.arange(keys)[None]
        visible = torch.ones(rows, keys, dtype=torch.bool)
        causal = self.causal if causal is None else causal
        left, right = (-1, -1) if top_left else self.window
        if causal or right >= 0:
            visible &= key <= place + (0 if causal else right)
        if left >= 0:
            visible &= key >= place - left
        if mask is not None:
            visible = mask if mask.dtype == torch.bool else visible
            scores = scores + (0 if mask.dtype == torch.bool else mask.double())
        scores = scores.masked_fill(~visible, -torch.inf)
        if with_sinks and self.sinks is not None:
            scores = torch.cat([scores, self.sinks.double()[:, None, None].expand(-1, rows, 1)], -1)
        lse = scores.logsumexp(-1) if scores.shape[-1] else torch.full((self.heads, rows), -torch.inf, dtype=torch.float64)
        weight = (scores - lse[..., None]).exp().nan_to_num(0.0)[..., :keys]
        return torch.einsum("hij,jhd->ihd", weight, v), lse.transpose(0, 1)

    def mistakes(self, found, right, largest):
        """`found` and `right`: O and LSE of rows."""
        said = []
        (o, lse), (wanted, wanted_lse) = found, right
        if o.shape != wanted.shape:
            return [f"O has the shape {tuple(o.shape)}; right: {tuple(wanted.shape)}"]
        bound = largest * (2 * LAST_PLACE[self.dtype] + 600 * 2.0 ** -23)
        error = (o.double() - wanted).abs().max().item() if o.numel() else 0.0
        if not error <= bound:
            said.append(f"O is {error} off, bound {bound}")
        if lse is not None and lse.numel():
            good = (lse == wanted_lse) | ((lse.double() - wanted_lse).abs() < 2e-4)
            if not good.all():
                said.append("LSE is wrong")
        return said


def largest_of(tensors):
    return max([1e-30, *(x.abs().max().item() for x in tensors if x.numel())])


def dense(draw):
    q = draw.numbers(draw.batch, draw.rows, draw.heads, draw.dim)
    k, v = (draw.numbers(draw.batch, draw.keys, draw.kv_heads, dim) for dim in (draw.dim, draw.dim_v))
    o, lse = st.flash_attn_func(q, k, v, softmax_scale=draw.scale, causal=draw.causal, window_size=draw.window,
                                softcap=draw.softcap, return_attn_probs=True, batch_invariant=draw.invariant)
    said = []
    for b in range(draw.batch):
        said += draw.mistakes((o[b], lse[b].transpose(0, 1)), draw.wanted(q[b], k[b], v[b]), largest_of([v]))
    return said


def starts_of(lengths):
    return torch.tensor([0, *torch.tensor(lengths, dtype=torch.int32).cumsum(0).tolist()], dtype=torch.int32)


def varlen(draw):
    rows, keys = draw.lengths(draw.batch, draw.rows), draw.lengths(draw.batch, draw.keys)
    q = draw.numbers(sum(rows), draw.heads, draw.dim)
    k, v = (draw.numbers(sum(keys), draw.kv_heads, dim) for dim in (draw.dim, draw.dim_v))
    starts = starts_of(rows), starts_of(keys)
    o, lse = st.flash_attn_varlen_func(q, k, v, *starts, draw.rows, draw.keys, softmax_scale=draw.scale, causal=draw.causal,
                                       window_size=draw.window, softcap=draw.softcap, return_attn_probs=True,
                                       batch_invariant=draw.invariant)
    said = []
    for b in range(draw.batch):
        ours, theirs = (slice(int(s[b]), int(s[b + 1])) for s in starts)
        said += draw.mistakes((o[ours], lse[:, ours].transpose(0, 1)), draw.wanted(q[ours], k[theirs], v[theirs]),
                              largest_of([v]))
    return said


def in_pages(draw):
    """Rows of equal numbers, or one sequence after the other, perhaps into memory of the caller's."""
    lengths = draw.lengths(draw.batch, draw.keys)
    caches, table, each = draw.cache(lengths, draw.pick(1, 8, 16))
    is_flat, into = draw.chance(0.5), draw.chance(0.3)
    rows = draw.lengths(draw.batch, draw.rows) if is_flat else [draw.rows] * draw.batch
    q, starts = draw.numbers(sum(rows), draw.heads, draw.dim), starts_of(rows)
    counts, most = torch.tensor(lengths, dtype=torch.int32), max(lengths, default=0)
    options = {"softmax_scale": draw.scale, "causal": draw.causal, "window_size": draw.window, "softcap": draw.softcap,
               "sinks": draw.sinks, "batch_invariant": draw.invariant}
    if is_flat and into:
        o = torch.full((sum(rows), draw.heads, draw.dim_v), 7, dtype=draw.dtype)
        st.flash_attn_varlen_paged(q, *caches, starts, draw.rows, table, counts, most, out=o, **options)
        lse = None
    elif is_flat:
        o, lse = st.flash_attn_varlen_paged(q, *caches, starts, draw.rows, table, counts, most, return_softmax_lse=True,
                                            **options)
        lse = lse.transpose(0, 1)
    else:
        batch = q.unflatten(0, (draw.batch, draw.rows)) if q.numel() else q.reshape(draw.batch, draw.rows, *q.shape[1:])
        o, lse = st.flash_attn_with_kvcache(batch, *caches, counts, table, return_softmax_lse=True, **options)
        o, lse = o.flatten(0, 1), lse.transpose(1, 2).flatten(0, 1)
    said = []
    for b in range(draw.batch):
        ours = slice(int(starts[b]), int(starts[b + 1]))
        said += draw.mistakes((o[ours], None if lse is None else lse[ours]),
                              draw.wanted(q[ours], *each[b], with_sinks=True), largest_of([x[1] for x in each]))
    return said


def lists(draw):
    """Each row sees the keys of a list, with holes."""
    draw.causal, draw.window = False, (-1, -1)
    pages, page_size = draw.pick(1, 3), draw.pick(1, 8)
    caches = [draw.numbers(pages, page_size, draw.kv_heads, dim) for dim in (draw.dim, draw.dim_v)]
    tokens, count = draw.rows, draw.pick(0, 1, 2, 20)
    slots = torch.randint(-1, pages * page_size, (tokens, count), generator=draw.generator)
    slots = slots.to(draw.pick(torch.int32, torch.int64))
    q = draw.numbers(tokens, draw.heads, draw.dim)
    o, lse = st.sparse_attn_with_kvcache(q, *caches, slots, draw.scale, draw.softcap, draw.sinks, True,
                                         batch_invariant=draw.invariant)
    said = []
    for t in range(tokens):
        mine = slots[t][slots[t] >= 0].long()
        k, v = (cache.flatten(0, 1)[mine] for cache in caches)
        said += draw.mistakes((o[t:t + 1], lse[:, t:t + 1].transpose(0, 1)), draw.wanted(q[t:t + 1], k, v, with_sinks=True),
                              largest_of(caches[1:]))
    return said


def sdpa(draw):
    shape = draw.pick((), (draw.heads,), (draw.batch, draw.heads), (2, draw.batch, draw.heads))
    if not shape:
        draw.heads = draw.kv_heads = 1
    kv = (*shape[:-1], draw.kv_heads) if shape else ()
    q = draw.numbers(*shape, draw.rows, draw.dim)
    k, v = (draw.numbers(*kv, draw.keys, dim) for dim in (draw.dim, draw.dim_v))
    kind = draw.pick("none", "causal", "bool", "float")
    mask = None
    if kind in ("bool", "float"):
        mask = draw.numbers(*draw.pick((draw.rows, draw.keys), (1, draw.keys), (draw.rows, 1)), dtype=torch.float32)
        mask = mask > -0.5 if kind == "bool" else mask
    o = st.scaled_dot_product_attention(q, k, v, mask, is_causal=kind == "causal", scale=draw.scale, enable_gqa=True,
                                        batch_invariant=draw.invariant)
    if o.shape != (*shape, draw.rows, draw.dim_v):
        return [f"O has the shape {tuple(o.shape)}"]
    said, whole = [], None if mask is None else mask.expand(draw.rows, draw.keys)
    batch = math.prod(shape[:-1])
    flat = [x.reshape(batch, heads, *x.shape[-2:]).transpose(1, 2)
            for x, heads in ((o, draw.heads), (q, draw.heads), (k, draw.kv_heads), (v, draw.kv_heads))] if o.numel() else [[]] * 4
    for ours, *arrays in zip(*flat):
        wanted, lse = draw.wanted(*arrays, causal=kind == "causal", top_left=True, mask=whole)
        said += draw.mistakes((ours, None), (wanted, lse), largest_of([v]))
    return said


FUNCTIONS = (dense, varlen, in_pages, lists, sdpa)


def run(seed):
    """Draws a call and computes it: its name, what was drawn, and its mistakes."""
    function, draw = FUNCTIONS[seed % len(FUNCTIONS)], Draw(seed)
    said = function(draw)
    return function.__name__, {name: value for name, value in vars(draw).items() if name != "generator"}, said
