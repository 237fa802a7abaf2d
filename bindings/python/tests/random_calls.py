"""Random calls of attention on the emulator, and their results in double precision by numpy alone.

Memory that a call must not read is never written, which the emulator reports: gaps between rows, slots past lengths,
entries of tables past a sequence's pages. Memory that it must not write holds a pattern. Strides of extents of 1 are
arbitrary. Queries, keys and values are quarters from -2 to 2, so that all products of Q and K are exact in F32.
"""

import math

import numpy

import sluice
from random_memory import PATTERN, Memory, copy_to, floats, integers, quarters, values_of

# Half a unit of the last place of O, and P rounded to the type of Q by at most 0.7 of one (sluice_problem).
LAST_PLACE = {"f16": 2.0 ** -11, "bf16": 2.0 ** -8, "f32": 0.0}


class Call:
    """One call: what is drawn, the arrays, and the result of each row."""

    def __init__(self, seed, context):
        self.rng, self.context = numpy.random.default_rng(seed), context
        rng = self.rng
        pick = lambda *options: options[int(rng.integers(len(options)))]  # noqa: E731
        self.mode = pick("dense", "dense", "ragged", "block", "block", "csr")
        self.dtype = pick("f16", "bf16")
        self.kv_heads, group = pick((1, 1), (1, 2), (1, 8), (2, 2), (2, 1), (3, 1))
        self.q_heads = self.kv_heads * group
        self.dim, self.dim_v = pick((64, 64), (64, 64), (128, 128), (72, 72), (8, 8), (64, 128), (128, 64))
        self.batch = pick(0, 1, 1, 1, 2, 3)
        most_rows, most_keys = pick(0, 1, 1, 1, 2, 9, 33), pick(0, 0, 1, 1, 2, 30, 70, 130)
        self.rows = [int(rng.integers(most_rows + 1)) if rng.random() < 0.5 else most_rows for _ in range(self.batch)]
        self.keys = [int(rng.integers(most_keys + 1)) if rng.random() < 0.5 else most_keys for _ in range(self.batch)]
        self.q_len, self.kv_len = most_rows, most_keys
        self.is_paged = self.mode in ("block", "csr")
        self.has_q_starts = self.mode == "ragged" or (self.is_paged and rng.random() < 0.4)
        if not self.has_q_starts and rng.random() < 0.6:
            self.rows = [most_rows] * self.batch
        if self.mode == "dense" and rng.random() < 0.6:
            self.keys = [most_keys] * self.batch
        self.scale = pick(None, None, 0.0, 0.0, 1e-38, 1e-6, 0.02, 1.0, 20.0, 1e30)
        self.draw_masks(pick)

    def draw_masks(self, pick):
        rng, huge = self.rng, self.scale == 1e30
        self.causal = rng.random() < 0.4
        self.alignment = pick(*sluice.MaskAlignment) if self.causal or rng.random() < 0.3 else sluice.MaskAlignment(0)
        self.left = pick(None, None, None, 0, 1, 20)
        self.right = None if self.causal else pick(None, None, None, 0, 2, 20)
        self.cap = 0.0 if huge else pick(0.0, 0.0, 0.0, 5.0)
        self.has_sinks, self.has_lse = rng.random() < 0.3, rng.random() < 0.8
        self.has_alibi = not huge and rng.random() < 0.2
        self.bias = None if huge else pick(None, None, None, "f32", self.dtype)
        self.has_mask = self.bias is None and rng.random() < 0.2
        self.hides = self.is_paged and rng.random() < 0.2
        self.by_heads = self.is_paged and rng.random() < 0.25
        self.wide = self.is_paged and rng.random() < 0.3
        self.prefix = pick(None, None, None, None, 0, 1, 40)
        if self.prefix is not None:
            self.left = self.right = self.bias = None
            self.has_mask = self.hides = self.has_alibi = False
            self.alignment = sluice.MaskAlignment(0)
        self.invariant = rng.random() < 0.15
        self.o_type = pick(self.dtype, self.dtype, "f32")
        self.kv_type = pick(self.dtype, self.dtype, self.dtype, "int8")
        self.k_kind = self.v_kind = sluice.ScaleKind.NONE
        if self.kv_type == "int8":
            kinds = [1, 2, 3] if not self.is_paged else [1, 2, 3, 4]
            if self.prefix is not None and not self.is_paged:
                kinds = [1, 2]
            self.k_kind, self.v_kind = (sluice.ScaleKind(pick(*kinds)) for _ in range(2))
            if huge:
                self.scale = 1.0
        self.page_size = pick(1, 8, 16, 16, 64)
        self.v_in_k = self.prefix is None and self.dim_v <= self.dim and self.kv_type != "int8" and rng.random() < 0.1

    def problem(self):
        kinds = {"block": sluice.PageTableKind.BLOCK, "csr": sluice.PageTableKind.CSR}
        page_fields = {"page_size": self.page_size, "page_table_kind": kinds[self.mode], "page_index_64": self.wide,
                       "missing_pages_hidden": self.hides} if self.is_paged else {}
        bounds = {"max_batch": max(self.batch, 1), "max_q_len": max(self.q_len, 1), "max_kv_len": max(self.kv_len, 1)}
        if self.prefix is not None:
            page_fields.update(shared_prefix=True, max_prefixes=2, max_prefix_len=max(self.prefix, 1),
                               max_q_tokens=self.batch * (self.q_len + 3) + 8)
        elif not self.invariant and self.rng.random() < 0.5:
            bounds = {}
        return sluice.Problem(
            self.dtype, self.q_heads, self.kv_heads, self.dim, self.dim_v, k_type=self.kv_type, v_type=self.kv_type,
            o_type=self.o_type, ragged=self.mode == "ragged", causal=self.causal,
            lse=sluice.Lse.LN if self.has_lse else sluice.Lse.NONE, alibi=self.has_alibi, sink_logits=self.has_sinks, bool_mask=self.has_mask, mask_alignment=self.alignment, window_left=self.left,
            window_right=self.right, soft_cap=self.cap, bias_type=self.bias, k_scale_kind=self.k_kind, v_in_k=self.v_in_k,
            v_scale_kind=self.v_kind, batch_invariant=self.invariant, **bounds, **page_fields)

    # ------------------------------------------------------------------------------------------- arrays

    def make(self):
        """The arguments of Plan.run."""
        self.args = {"q_len": self.q_len, "kv_len": self.kv_len, "batch": self.batch, "scale": self.scale}
        self.make_rows()
        self.make_keys()
        self.make_scores()
        if self.prefix is not None:
            self.make_prefixes()
        return self.args

    def make_rows(self):
        rng, context = self.rng, self.context
        if self.has_q_starts:
            first, gaps = [int(rng.integers(3))], []
            for count in self.rows:
                gaps.append(int(rng.integers(3)) if rng.random() < 0.3 else 0)
                first.append(first[-1] + count + gaps[-1])
            if any(gaps):
                self.args["q_lengths"] = integers(context, self.rows, 1)
            self.args["q_starts"] = integers(context, first)
            total = first[-1] + int(rng.integers(2))
            self.row_at = [[(first[b] + i,) for i in range(self.rows[b])] for b in range(self.batch)]
            lead = (total,)
        else:
            if any(count != self.q_len for count in self.rows):
                self.args["q_lengths"] = integers(context, self.rows, 1)
            self.row_at = [[(b, i) for i in range(self.rows[b])] for b in range(self.batch)]
            lead = (self.batch, self.q_len)
        self.first_rows = [b * self.q_len for b in range(self.batch)] if not self.has_q_starts else first
        self.lead, self.q = lead, quarters(rng, *lead, self.q_heads, self.dim)
        memory = self.q_memory = Memory(rng, context, (*lead, self.q_heads, self.dim), self.dtype)
        if self.prefix is not None and not self.has_q_starts:
            # Rows are found by their number.
            heads = -(-self.dim // 8) * 8
            token = heads * self.q_heads
            memory.places = [token * self.q_len, token, heads, 1]
            memory.elements = max(token * self.q_len * self.batch, 8)
            memory.buffer = context.empty((memory.elements * memory.size,), "uint8")
            memory.tensor = sluice.Tensor.at(memory.buffer.address, memory.shape, self.dtype, memory.places, memory.buffer)
        # A prefix is for all rows in its range, padding or not.
        memory.put_rows(self.q, [at for of in self.row_at for at in of] if self.prefix is None else numpy.ndindex(*lead))
        self.o_memory = Memory(rng, context, (*lead, self.q_heads, self.dim_v), self.o_type)
        self.o_memory.fill()
        self.args.update(q=memory.tensor, o=self.o_memory.tensor)
        if self.has_lse:
            self.lse_memory = Memory(rng, context, (*lead, self.q_heads), "f32", 1, row=False)
            self.lse_memory.fill()
            self.args["lse"] = self.lse_memory.tensor

    def make_keys(self):
        rng, context = self.rng, self.context
        self.pages = []  # of each sequence and KV head
        if self.is_paged:
            self.make_table()
            lead = (self.page_count, self.page_size)
        elif self.mode == "ragged":
            first = [int(rng.integers(3))]
            gap = rng.random() < 0.3
            for count in self.keys:
                first.append(first[-1] + count + (int(rng.integers(3)) if gap else 0))
            if gap:
                self.args["kv_lengths"] = integers(context, self.keys, 1)
            self.args["kv_starts"] = integers(context, first)
            self.kv_first = first
            lead = (first[-1] + int(rng.integers(2)),)
        else:
            if any(count != self.kv_len for count in self.keys):
                self.args["kv_lengths"] = integers(context, self.keys, 1)
            lead = (self.batch, self.kv_len)
        of = (lambda *s: rng.integers(-20, 21, s).astype(numpy.float32)) if self.kv_type == "int8" else \
            (lambda *s: quarters(rng, *s))
        self.k, self.v = (of(*lead, self.kv_heads, dim) for dim in (self.dim, self.dim_v))
        multiple = 16 if self.kv_type == "int8" else 8
        used = {self.place(b, h, j)[:len(lead)] + (h,) for b in range(self.batch) for h in range(self.kv_heads)
                for j in range(self.keys[b]) if self.place(b, h, j) is not None}
        for name, values, dim in (("k", self.k, self.dim), ("v", self.v, self.dim_v)):
            if name == "v" and self.v_in_k:
                self.args["v"], self.v = None, self.k[..., :self.dim_v]
                continue
            memory = Memory(rng, context, (*lead, self.kv_heads, dim), self.kv_type, multiple)
            for at in used:
                memory.put(at, values[at])
            self.args[name] = memory.tensor
            setattr(self, f"{name}_memory", memory)
        self.key_lead, self.used = lead, used
        self.k_scale_at, self.v_scale_at = (self.make_key_scales(side) for side in "kv")

    def make_key_scales(self, side):
        """F32 scales as functions of a key's place."""
        kind, rng = int(getattr(self, f"{side}_kind")), self.rng
        if kind == 0:
            return lambda at: 1.0
        if kind in (1, 2):
            scales = (rng.integers(1, 5, self.kv_heads if kind == 2 else 1) / 16).astype(numpy.float32)
            self.args[f"{side}_scale"] = floats(self.context, scales)
            return lambda at: float(scales[at[-1] % len(scales)])
        lead = self.key_lead if kind == 3 else self.key_lead[:1]
        scales = (rng.integers(1, 5, (*lead, self.kv_heads)) / 16).astype(numpy.float32)
        memory = Memory(rng, self.context, scales.shape, "f32", 1, row=False)
        for at in self.used | getattr(self, "prefix_used", set()):
            index = at if kind == 3 else (at[0], at[-1])
            memory.put(index, scales[index])
        setattr(self, f"{side}_scales_memory", (memory, scales, kind))
        self.args[f"{side}_scales"] = memory.tensor
        return lambda at: float(scales[at if kind == 3 else (at[0], at[-1])])

    def make_table(self):
        rng, context = self.rng, self.context
        counts = [-(-count // self.page_size) for count in self.keys]
        lists = self.kv_heads if self.by_heads else 1
        prefix_pages = 0 if self.prefix is None else -(-self.prefix // self.page_size)
        needed = sum(counts) * lists + prefix_pages
        self.page_count = needed + int(rng.integers(3))
        numbers = rng.permutation(self.page_count)[:needed].tolist()
        self.prefix_pages = [numbers.pop() for _ in range(prefix_pages)]
        self.pages = [[[numbers.pop() for _ in range(count)] for _ in range(lists)] for count in counts]
        for of in self.pages:
            for entries in of:
                for i in range(len(entries)):
                    if rng.random() < 0.1:
                        entries[i] = -1 - int(rng.integers(3))
        dtype = "int64" if self.wide else "int32"
        self.args["kv_lengths"] = integers(context, self.keys, 1)
        if self.mode == "csr":
            first = [int(rng.integers(2))]
            for count in counts:
                first.append(first[-1] + count + int(rng.integers(2)))
            width = first[-1]
            table = context.empty((lists, width) if self.by_heads else (width,), dtype)
            places = [[head * width + first[b] for head in range(lists)] for b in range(self.batch)]
            self.args["page_starts"] = integers(context, first, int(rng.integers(2)))
        else:
            width = -(-self.kv_len // self.page_size) + int(rng.integers(2))
            table = context.empty((self.batch, lists, width) if self.by_heads else (self.batch, width), dtype)
            places = [[(b * lists + head) * width for head in range(lists)] for b in range(self.batch)]
        for b in range(self.batch):
            for head in range(lists):
                entries = numpy.asarray(self.pages[b][head], numpy.int64 if self.wide else numpy.int32)
                copy_to(context, table.address + places[b][head] * entries.itemsize, entries)
        self.args["page_table"] = table

    def place(self, b, head, j):
        """Indices of key j; None on a missing page."""
        if self.mode == "dense":
            return b, j, head
        if self.mode == "ragged":
            return self.kv_first[b] + j, head
        page = self.pages[b][head if self.by_heads else 0][j // self.page_size]
        return None if page < 0 else (page, j % self.page_size, head)

    def make_scores(self):
        rng, context = self.rng, self.context
        if self.has_sinks:
            self.sinks = rng.integers(-4, 5, self.q_heads).astype(numpy.float32)
            self.args["sink_logits"] = floats(context, self.sinks)
        if self.has_alibi:
            self.slopes = rng.integers(1, 9, (self.batch, self.q_heads) if rng.random() < 0.4 else self.q_heads) / 8
            self.args["alibi_slopes"] = floats(context, self.slopes)
            self.slopes = numpy.broadcast_to(self.slopes, (self.batch, self.q_heads))
        if self.alignment == sluice.MaskAlignment.GIVEN_DIAGONAL:
            self.diagonals = rng.integers(-3, self.kv_len + 3, self.batch).tolist()
            self.args["diagonals"] = integers(context, self.diagonals, 1)
        extents = (self.batch, self.q_heads, self.q_len, self.kv_len)
        if self.bias is not None:
            shape = [1 if rng.random() < 0.3 else extent for extent in extents]
            bias = quarters(rng, *shape)
            self.args["bias"] = context.array(bias, self.bias)
            self.bias_values = numpy.broadcast_to(bias, extents)
        if self.has_mask:
            shape = [1 if rng.random() < 0.3 else extent for extent in extents[:3]]
            mask = rng.random((*shape, self.kv_len)) < 0.6
            self.args["mask"] = context.array(numpy.packbits(mask, -1, bitorder="little"), "uint8")
            self.mask_values = numpy.broadcast_to(mask, extents)

    def make_prefixes(self):
        rng, context = self.rng, self.context
        total = self.lead[0] if self.has_q_starts else self.batch * self.q_len
        ends = sorted(int(x) for x in rng.integers(0, total + 1, 2))
        self.prefix_rows = ends
        self.args.update(prefix_q_starts=integers(context, ends), prefix_len=self.prefix)
        if self.is_paged:
            dtype = numpy.int64 if self.wide else numpy.int32
            entries = numpy.asarray(self.prefix_pages, dtype)
            shape = (len(entries),) if self.mode == "csr" else (1, len(entries))
            self.args["prefix_page_table"] = context.array(entries.reshape(shape), "int64" if self.wide else "int32")
            self.args["prefix_lengths"] = integers(context, [self.prefix], 1)
            if self.mode == "csr":
                self.args["prefix_page_starts"] = integers(context, [0, len(entries)])
            for at in [(self.prefix_pages[j // self.page_size], j % self.page_size, h) for j in range(self.prefix)
                       for h in range(self.kv_heads)]:
                self.k_memory.put(at, self.k[at])
                self.v_memory.put(at, self.v[at])
                for side in "kv":
                    if hasattr(self, f"{side}_scales_memory"):
                        memory, scales, kind = getattr(self, f"{side}_scales_memory")
                        index = at if kind == 3 else (at[0], at[-1])
                        memory.put(index, scales[index])
            return
        shape = (1, self.prefix, self.kv_heads)
        of = (lambda *s: rng.integers(-20, 21, s).astype(numpy.float32)) if self.kv_type == "int8" else \
            (lambda *s: quarters(rng, *s))
        self.prefix_k, self.prefix_v = of(*shape, self.dim), of(*shape, self.dim_v)
        for name, values in (("prefix_k", self.prefix_k), ("prefix_v", self.prefix_v)):
            memory = Memory(rng, context, values.shape, self.kv_type, 16 if self.kv_type == "int8" else 8)
            memory.put_rows(values, [(0, j) for j in range(self.prefix)])
            self.args[name] = memory.tensor
            setattr(self, f"{name}_memory", memory)

    # ------------------------------------------------------------------------------------------- results

    def wanted(self, b, i, h):
        """(O, LSE, the largest magnitude of a score) of row i of a sequence and query head, in double precision."""
        head = h // (self.q_heads // self.kv_heads)
        scores, values = self.prefix_terms(b, i, h, head)
        q = self.q[(*self.row_at[b][i], h)].astype(numpy.float64)
        scale = 1 / math.sqrt(self.dim) if self.scale is None else float(numpy.float32(self.scale))
        shift = {0: self.keys[b] - self.rows[b], 1: 0}.get(int(self.alignment))
        shift = self.diagonals[b] if shift is None else shift
        largest = max([0.0, *map(abs, scores)])
        for j in range(self.keys[b]):
            d = j - i - shift
            at = self.place(b, head, j)
            if (self.causal and d > 0) or (self.right is not None and d > self.right) or (
                    self.left is not None and d < -self.left) or (at is None and self.hides):
                continue
            if self.has_mask and not self.mask_values[b, h, i, j]:
                continue
            score = 0.0 if at is None else scale * self.k_scale_at(at) * float(q @ self.k[at].astype(numpy.float64))
            largest = max(largest, abs(score))
            if self.cap:
                score = self.cap * math.tanh(score / self.cap)
            if self.bias is not None:
                score += float(self.bias_values[b, h, i, j])
            if self.has_alibi:
                score -= float(self.slopes[b, h]) * abs(d)
            largest = max(largest, abs(score))
            scores.append(score)
            values.append(numpy.zeros(self.dim_v) if at is None else self.v_scale_at(at) * self.v[at].astype(numpy.float64))
        sink = float(self.sinks[h]) if self.has_sinks else -math.inf
        if not scores:
            return numpy.zeros(self.dim_v), sink, largest
        most = max(*scores, sink) if self.has_sinks else max(scores)
        weights = numpy.exp(numpy.asarray(scores) - most)
        total = weights.sum() + math.exp(sink - most)
        return (weights[:, None] * numpy.asarray(values)).sum(0) / total, most + math.log(total), largest

    def prefix_terms(self, b, i, h, head):
        if self.prefix is None:
            return [], []
        row = self.first_rows[b] + i
        if not self.prefix_rows[0] <= row < self.prefix_rows[1]:
            return [], []
        q = self.q[(*self.row_at[b][i], h)].astype(numpy.float64)
        scale = 1 / math.sqrt(self.dim) if self.scale is None else float(numpy.float32(self.scale))
        scores, values = [], []
        for j in range(self.prefix):
            at = (self.prefix_pages[j // self.page_size], j % self.page_size, head) if self.is_paged else (0, j, head)
            k, v = (self.k, self.v) if self.is_paged else (self.prefix_k, self.prefix_v)
            score = scale * self.k_scale_at(at) * float(q @ k[at].astype(numpy.float64))
            scores.append(self.cap * math.tanh(score / self.cap) if self.cap else score)
            values.append(self.v_scale_at(at) * v[at].astype(numpy.float64))
        return scores, values

    def mistakes(self):
        """What is wrong with the results, in words."""
        found = []
        o, gaps = self.o_memory.read()
        if (gaps != PATTERN).any():
            found.append("O was stored between its elements")
        mine = {at for of in self.row_at for at in of}
        others = [at for at in numpy.ndindex(*self.lead) if at not in mine]
        if any((o[at].view(numpy.uint8) != PATTERN).any() for at in others):
            found.append("O was stored to rows of no sequence")
        if self.has_lse:
            lse, gaps = self.lse_memory.read()
            if (gaps != PATTERN).any() or any((lse[at].view(numpy.uint8) != PATTERN).any() for at in others):
                found.append("LSE was stored elsewhere")
        largest_v = float(numpy.abs(self.v).max(initial=0)) * max(1.0 if self.v_kind == 0 else 0.25, 0)
        if self.prefix is not None and not self.is_paged:
            largest_v = max(largest_v, float(numpy.abs(self.prefix_v).max(initial=0)) * (1.0 if self.v_kind == 0 else 0.25))
        for b in range(self.batch):
            for i, at in enumerate(self.row_at[b]):
                for h in range(self.q_heads):
                    wanted, wanted_lse, largest = self.wanted(b, i, h)
                    got = values_of(o[(*at, h)], self.o_type).astype(numpy.float64)
                    # Scores of 1e30 differ by much or not at all: their products are exact, and so equal ones stay equal.
                    score_error = largest * 2.0 ** -22 if self.scale != 1e30 else 0
                    keys = self.keys[b] + (self.prefix or 0)
                    bound = largest_v * (LAST_PLACE[self.o_type] + 1.5 * LAST_PLACE[self.dtype] + score_error
                                         + (500 + keys) * 2.0 ** -23) + 2.0 ** -24
                    error = numpy.abs(got - wanted).max(initial=0)
                    if not error <= bound:
                        found.append(f"O of sequence {b}, row {i}, head {h}: {error} off, bound {bound}")
                    if self.has_lse:
                        mine_lse = float(lse[(*at, h)])
                        if mine_lse != wanted_lse and not abs(mine_lse - wanted_lse) <= 2e-5 + abs(largest) * 2.0 ** -21:
                            found.append(f"LSE of sequence {b}, row {i}, head {h}: {mine_lse}, right {wanted_lse}")
        return found

    def describe(self):
        skip = ("rng", "context", "args", "q", "k", "v", "prefix_k", "prefix_v", "bias_values", "mask_values", "used")
        return {name: value for name, value in vars(self).items() if name not in skip and "memory" not in name
                and not callable(value)}


def run(seed, context):
    """Draws a call and computes it: its mistakes, or None if this library does not support it."""
    call = Call(seed, context)
    try:
        plan = context.plan(call.problem())
    except sluice.Unsupported:
        return call, None
    if call.scale == 1e30 and plan.info.workspace_bytes:
        call.scale = 20.0  # parts are merged by LSEs in F32, which do not tell how many scores of 1e30 are equal
    args = call.make()
    workspace = context.empty((plan.info.workspace_bytes,), "uint8") if plan.info.workspace_bytes else None
    try:
        plan.run(**args, workspace=workspace)
        context.synchronize()
    except sluice.Unsupported:
        return call, None
    except sluice.HipError as error:
        said = [report["message"] for report in context.reports()][:2]
        context.configure("clear_fault", "1")
        return call, [f"{error}: {said}"]
    return call, call.mistakes()
