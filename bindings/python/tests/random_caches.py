"""Random appends, copies, gathers and merges on the emulator, and what numpy says they store. Memory as in random_calls."""

import numpy

import sluice
from random_memory import PATTERN, Memory, bits_of, copy_to, floats, integers, quarters


class Caches:
    """K and V in pages, all of whose rows are written."""

    def __init__(self, rng, context, pages, page_size, heads, dims, dtype, written=True):
        self.values = [quarters(rng, pages, page_size, heads, dim) for dim in dims]
        self.memories = [Memory(rng, context, x.shape, dtype) for x in self.values]
        for values, memory in zip(self.values, self.memories):
            if written:
                memory.put_rows(values, numpy.ndindex(pages, page_size))
            else:
                memory.fill()
        self.tensors = [memory.tensor for memory in self.memories]


def differences(what, memory, wanted, written):
    """`wanted` are the stored elements of rows; others hold the pattern."""
    found, gaps = memory.read()
    said = [f"{what} was stored between its elements"] if (gaps != PATTERN).any() else []
    for at in numpy.ndindex(*found.shape[:-2]):
        right = bits_of(wanted[at], memory.dtype) if at in written else None
        good = (found[at].view(numpy.uint8) == PATTERN).all() if right is None else numpy.array_equal(found[at], right)
        if not good:
            said.append(f"{what}{list(at)} is wrong")
    return said


class Draw:
    def __init__(self, seed, context):
        self.rng, self.context = numpy.random.default_rng(seed), context
        self.heads, self.dtype = int(self.pick(1, 1, 2, 5)), self.pick("f16", "bf16")
        self.dims = self.pick((64, 64), (8, 8), (72, 64), (128, 128))
        self.page_size = self.pick(1, 1, 8, 16)

    def pick(self, *options):
        return options[int(self.rng.integers(len(options)))]

    def rows(self, count):
        """New rows of K and V."""
        values = [quarters(self.rng, count, self.heads, dim) for dim in self.dims]
        memories = [Memory(self.rng, self.context, x.shape, self.dtype) for x in values]
        for one, memory in zip(values, memories):
            memory.put_rows(one, numpy.ndindex(count))
        return values, [memory.tensor for memory in memories]

    def lengths(self, batch, most):
        return [int(x) for x in self.rng.integers(0, most + 1, batch)]

    def table(self, lengths, pages, wide):
        """Page numbers [batch, columns], of which a sequence's own are written; and the lists."""
        counts = [-(-length // self.page_size) for length in lengths]
        numbers = self.rng.permutation(pages)[:sum(counts)].tolist()
        lists = [[numbers.pop() for _ in range(count)] for count in counts]
        columns = max(counts, default=0) + int(self.rng.integers(2))
        made = self.context.empty((len(lengths), columns), "int64" if wide else "int32")
        for b, entries in enumerate(lists):
            numbers_of = numpy.asarray(entries, numpy.int64 if wide else numpy.int32)
            copy_to(self.context, made.address + b * columns * numbers_of.itemsize, numbers_of)
        return made, lists


def appended(draw):
    """By slots, or by starts and lengths."""
    rng, context, written = draw.rng, draw.context, {}
    by_slots, pages = draw.pick(True, False), draw.pick(0, 1, 3, 6)
    lengths = draw.lengths(draw.pick(0, 1, 3), pages // 3 * draw.page_size)
    arrays = {}
    if by_slots:
        tokens = draw.pick(0, 0, 1, 2, 7)
        slots = rng.permutation(max(pages * draw.page_size, 1) + 4)[:tokens] - 4
        slots[slots >= pages * draw.page_size] = -1
        tokens = len(slots)
        arrays["slots"] = integers(context, slots, 0, "int64")
        written = {divmod(int(slot), draw.page_size): t for t, slot in enumerate(slots) if slot >= 0}
    else:
        new = [int(rng.integers(0, length + 1)) for length in lengths]
        first = [0, *numpy.cumsum(new).tolist()]
        tokens = first[-1]
        table, lists = draw.table(lengths, pages, draw.pick(True, False))
        arrays.update(starts=integers(context, first), kv_lengths=integers(context, lengths, 1), page_table=table)
        for b, length in enumerate(lengths):
            for i in range(new[b]):
                key = length - new[b] + i
                written[(lists[b][key // draw.page_size], key % draw.page_size)] = first[b] + i
    caches = Caches(rng, context, pages, draw.page_size, draw.heads, draw.dims, draw.dtype, written=False)
    values, tensors = draw.rows(tokens)
    context.append(*tensors, *caches.tensors, **arrays)
    context.synchronize()
    said = []
    for name, memory, rows in zip("kv", caches.memories, values):
        said += differences(f"{name}_cache", memory, {at: rows[t] for at, t in written.items()}, written)
    return said


def copied(draw):
    rng, context = draw.rng, draw.context
    pages, more = draw.pick(0, 1, 5), draw.pick(0, 0, 3)
    count = int(rng.integers(0, pages + 1))
    source = Caches(rng, context, pages, draw.page_size, draw.heads, draw.dims, draw.dtype)
    arrays, moved = {}, {page: page for page in range(pages)}
    if draw.pick(True, True, False):
        moved = dict(zip(rng.permutation(pages)[:count].tolist(), rng.integers(-1, max(pages, 1), count).tolist()))
        pairs = numpy.asarray([(source, target) for target, source in moved.items()], numpy.int64).reshape(-1, 2)
        kind = draw.pick("int32", "int64")
        arrays["pairs"] = context.array(pairs, kind)
    else:
        more = 0
    target = Caches(rng, context, pages + more, draw.page_size, draw.heads, draw.dims, draw.dtype, written=False)
    k_source, v_source = source.tensors
    context.copy(k_source, v_source, *target.tensors, **arrays)
    context.synchronize()
    said = []
    for name, memory, values in zip("kv", target.memories, source.values):
        wanted = {(to, row): values[page, row] for to, page in moved.items() if page >= 0 for row in range(draw.page_size)}
        said += differences(f"{name}_target", memory, wanted, wanted)
    return said


def gathered(draw):
    rng, context = draw.rng, draw.context
    pages = draw.pick(1, 3, 6)
    lengths = draw.lengths(draw.pick(0, 1, 3), pages // 3 * draw.page_size)
    firsts = [int(rng.integers(0, length + 2)) for length in lengths]
    table, lists = draw.table(lengths, pages, draw.pick(True, False))
    cache = Caches(rng, context, pages, draw.page_size, draw.heads, draw.dims, draw.dtype)
    starts, wanted = [int(rng.integers(3))], {}
    for b, length in enumerate(lengths):
        for key in range(firsts[b], length):
            wanted[(starts[-1] + key - firsts[b],)] = lists[b][key // draw.page_size], key % draw.page_size
        starts.append(starts[-1] + max(length - firsts[b], 0) + int(rng.integers(2)))
    rows = starts[-1] + int(rng.integers(2))
    out = [Memory(rng, context, (rows, draw.heads, dim), draw.dtype) for dim in draw.dims]
    for memory in out:
        memory.fill()
    context.gather(*cache.tensors, *(memory.tensor for memory in out), out_starts=integers(context, starts),
                   kv_lengths=integers(context, lengths, 1), first_keys=integers(context, firsts, 1), page_table=table)
    context.synchronize()
    said = []
    for name, memory, values in zip("kv", out, cache.values):
        said += differences(f"{name}_out", memory, {at: values[place] for at, place in wanted.items()}, wanted)
    return said


def merged(draw):
    rng, context = draw.rng, draw.context
    parts, tokens, heads, dim = draw.pick(1, 1, 2, 9), draw.pick(0, 1, 1, 5), draw.heads, draw.dims[1]
    partial = quarters(rng, parts, tokens, heads, dim)
    lse = numpy.where(rng.random((parts, tokens, heads)) < 0.3, -numpy.inf, quarters(rng, parts, tokens, heads) * 8)
    memory, lse_memory = Memory(rng, context, partial.shape, "f32"), Memory(rng, context, lse.shape, "f32", 1, row=False)
    memory.put_rows(partial, numpy.ndindex(parts, tokens))
    lse_memory.put_rows(lse, numpy.ndindex(parts, tokens))
    o, o_lse = Memory(rng, context, partial.shape[1:], "f32"), Memory(rng, context, lse.shape[1:], "f32", 1, row=False)
    o.fill()
    o_lse.fill()
    sinks = quarters(rng, heads) if draw.pick(True, False) else None
    context.merge(memory.tensor, lse_memory.tensor, o.tensor, lse=o_lse.tensor,
                  sink_logits=None if sinks is None else floats(context, sinks))
    context.synchronize()
    weight = numpy.exp(lse.astype(numpy.float64))
    total = weight.sum(0) + (0 if sinks is None else numpy.exp(sinks.astype(numpy.float64)))
    wanted = (weight[..., None] * partial).sum(0) / numpy.where(total == 0, 1, total)[..., None]
    with numpy.errstate(divide="ignore"):
        wanted_lse = numpy.log(total)
    found, gaps = o.read()
    found_lse, gaps_lse = o_lse.read()
    said = ["something was stored between elements"] if (gaps != PATTERN).any() or (gaps_lse != PATTERN).any() else []
    if numpy.abs(found - wanted).max(initial=0) > 2e-5:
        said.append(f"O is {numpy.abs(found - wanted).max()} off")
    same = (found_lse == wanted_lse) | (numpy.abs(found_lse - numpy.where(numpy.isfinite(wanted_lse), wanted_lse, 0)) < 2e-5)
    return said if same.all() else [*said, "LSE is wrong"]


OPERATIONS = (appended, copied, gathered, merged)


def run(seed, context):
    """Draws an operation and performs it: its name, and its mistakes."""
    operation = OPERATIONS[seed % len(OPERATIONS)]
    try:
        return operation.__name__, operation(Draw(seed, context))
    except sluice.HipError as error:
        said = [report["message"] for report in context.reports()][:2]
        context.configure("clear_fault", "1")
        return operation.__name__, [f"{error}: {said}"]
