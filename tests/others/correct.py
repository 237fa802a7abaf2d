#!/usr/bin/python3
"""Runs other attention kernels on the emulator, with all checks, against attention in double precision.

usage: correct.py {triton,iree} SLUICE_EMU WORK

Each launch runs twice: with loads as late as is legal, and with everything in a random order. Both may have only warnings
of deliberate behaviour, the same result to the last bit, and every element within the tolerance of attention.py. The
reference itself is used to check that the tolerance reveals one key too many or too few.
"""

import math
import pathlib
import sys

import environment

ORDERS = {
    "late": [],
    "drawn": ["--completion", "random", "--waves", "random", "--workgroups", "random", "--seed", "7"],
}
HEAD_DIM = 128


class Test:
    """Launches, and comparison of their results."""

    def __init__(self, emulator, work):
        self.emulator = emulator
        self.work = work
        self.wrong = []
        self.cases = 0

    def launch(self, kernel, grid, arguments, output_places, by_design=()):
        """The outputs of a launch; its errors are recorded. `by_design`: kinds of warnings that it may have."""
        for report in self.emulator.check(kernel.code):
            self.note_report(f"{kernel.code.name}, on some path", report)
        results = {}
        for order, options in ORDERS.items():
            outputs = {place: self.work / f"output_{place}.npy" for place in output_places}
            result, results[order] = self.emulator.run(kernel, grid, arguments, outputs, options)
            for report in result["reports"]:
                if report["severity"] == "note" and report["kind"] in by_design:
                    continue
                self.note_report(f"{kernel.code.name}, {order}", report)
        first, second = results.values()
        for place in output_places:
            if first[place].tobytes() != second[place].tobytes():
                self.note(f"{kernel.code.name}: argument {place} depends on the order of events")
        return first

    def compare(self, label, o, dtype, scale_dtype, sequences):
        """o: the kernel's output; sequences: (rows of o, q, k, v, keep, a wrong keep) as numbers."""
        import numpy as np
        from attention import reference, tolerance
        self.cases += 1
        largest = 0.0  # error, as a fraction of the tolerance
        noticed = False
        for rows, q, k, v, keep, wrong_keep in sequences:
            expected, value_sizes, score_sizes = reference(q, k, v, keep)
            allowed = tolerance(expected, value_sizes, score_sizes, abs(v).max(), dtype, len(k), q.shape[2], scale_dtype)
            error = abs(o[rows].reshape(expected.shape) - expected)
            largest = max(largest, float(np.where(np.isnan(error), np.inf, error / allowed).max()))
            noticed |= bool((abs(reference(q, k, v, wrong_keep)[0] - expected) > allowed).any())
        print(f"{label}: error at most {largest:.3f} of the tolerance", flush=True)
        if not largest <= 1:
            self.note(f"{label}: an error is {largest:.3g} times what roundings explain")
        if not noticed:
            self.note(f"{label}: the tolerance would not show a key too many or too few")

    def note_report(self, where, report):
        self.note(f"{where}: {report['kind']}: {report['message']}\n"
                  f"    {report['disassembly']} at 0x{report['pc']:x}, {report['count']} times")

    def note(self, text):
        print(text, flush=True)
        self.wrong.append(text)


def rows_of_sequences(random, dtype, batch, length, q_heads, kv_heads, head_dim):
    """Bits of Q, K and V, each [sequence, token, head, dim]."""
    import numpy as np
    from attention import queries_for, to_bits, to_numbers
    k, v = (to_bits(random.uniform(-1, 1, (batch, length, kv_heads, head_dim)), dtype) for _ in "kv")
    row = np.arange(length)
    # The diagonal, the key after it, the first key and the last.
    places = np.stack([row, row + 1, np.zeros_like(row), np.full_like(row, length - 1)], 1)
    targets = places[:, np.arange(q_heads) % 4]
    q = np.stack([to_bits(queries_for(random, to_numbers(keys, dtype), targets), dtype) for keys in k])
    return q, k, v


def as_sequences(dtype, q, k, v, causal):
    """The arguments of `compare`; the wrong mask is one key off."""
    import numpy as np
    from attention import to_numbers
    length = q.shape[1]
    row, key = np.arange(length)[:, None], np.arange(length)[None]
    keep = key <= row if causal else np.full((length, length), True)
    wrong_keep = key <= row + 1 if causal else np.broadcast_to(key < length - 1, keep.shape)
    for i in range(len(q)):
        yield i, *(to_numbers(tensor[i], dtype) for tensor in (q, k, v)), keep, wrong_keep


def triton_rows(test, triton, random, dtype, causal, length):
    from attention import to_numbers
    from emulator import save
    batch, q_heads, kv_heads = 2, 4, 2
    q, k, v = rows_of_sequences(random, dtype, batch, length, q_heads, kv_heads, HEAD_DIM)
    arguments = save(test.work, q=q, k=k, v=v) + [
        f"size:{q.nbytes}:type=u16", f"i32:{length}", f"i32:{q_heads}", f"i32:{kv_heads}",
        f"f32:{HEAD_DIM ** -0.5 * math.log2(math.e)}"]
    grid = q_heads, -(-length // triton.TILE_Q), batch
    bits = test.launch(triton.rows(dtype, causal), grid, arguments, [3])[3]
    test.compare(f"triton {dtype} d{HEAD_DIM} length {length} {'causal' if causal else 'no mask'}",
                 to_numbers(bits, dtype).reshape(q.shape), dtype, "f32", as_sequences(dtype, q, k, v, causal))


def triton_decode(test, triton, random, dtype):
    """Sequences of different lengths over pages in shuffled order; some parts have no keys."""
    import numpy as np
    from attention import queries_for, to_bits, to_numbers
    from emulator import save
    page, kv_heads, group, parts = triton.PAGE, 2, 8, 9
    lengths = np.array([333, 64, 1000], np.int32)
    batch, q_heads = len(lengths), kv_heads * group
    most_pages = -(-int(lengths.max()) // page)
    pages = random.permutation(batch * most_pages + 5).astype(np.int32)[:batch * most_pages].reshape(batch, most_pages)
    part_keys = -(-int(lengths.max()) // (parts * page)) * page
    shape = batch * most_pages + 5, page, kv_heads, HEAD_DIM
    k, v = (to_bits(random.uniform(-1, 1, shape), dtype) for _ in "kv")

    def keys_of(cache, i):  # including the unused ones of its last page
        return to_numbers(cache[pages[i]].reshape(-1, kv_heads, HEAD_DIM), dtype)

    def targets(length):  # the first key, the last, the one after it, and the start of a part
        places = np.array([0, length - 1, length, min(part_keys, length - 1)])
        return places[np.arange(q_heads) % 4][None]

    q = np.stack([to_bits(queries_for(random, keys_of(k, i), targets(length)), dtype)
                  for i, length in enumerate(lengths)])
    rows = batch * q_heads * parts
    arguments = save(test.work, q=q, k=k, v=v, pages=pages, lengths=lengths) + [
        f"size:{rows * HEAD_DIM * 4}:type=f32", f"size:{rows * 4}:type=f32", f"size:{rows * 4}:type=f32",
        f"i32:{most_pages}", f"i32:{part_keys}", f"f32:{HEAD_DIM ** -0.5 * math.log2(math.e)}"]
    partial = test.launch(triton.decode(dtype, group), (kv_heads, parts, batch), arguments, [5, 6, 7])
    arguments = save(test.work, partial=partial[5], maxima=partial[6], totals=partial[7]) + [
        f"size:{q.nbytes}:type=u16", f"i32:{parts}"]
    # All its waves compute the same weights of the parts, and store them in LDS.
    bits = test.launch(triton.merge(dtype), (q_heads, batch), arguments, [3], by_design={"lds_equal_stores"})[3]

    def sequences():
        for i, length in enumerate(lengths):
            key = np.arange(most_pages * page)[None]
            wrong = key <= length if length < most_pages * page else key < length - 1
            yield i, to_numbers(q[i], dtype), keys_of(k, i), keys_of(v, i), key < length, wrong

    test.compare(f"triton {dtype} d{HEAD_DIM} decode of {', '.join(str(length) for length in lengths)} keys, {parts} parts",
                 to_numbers(bits, dtype).reshape(q.shape), dtype, "f32", sequences())


def iree_attention(test, iree, random, dtype, length, head_dim, causal=False):
    import numpy as np
    from attention import to_numbers
    from emulator import save
    batch, q_heads, kv_heads = 2, 8, 2
    label = f"{dtype}_d{head_dim}_{length}{'_mask' if causal else ''}"
    kernel, workgroups = iree.attention(label, dtype, batch, length, q_heads, kv_heads, head_dim, causal)
    q, k, v = rows_of_sequences(random, dtype, batch, length, q_heads, kv_heads, head_dim)
    inputs = {"q": q, "k": k, "v": v}
    if causal:
        inputs["mask"] = np.tri(length, dtype=np.uint8)
    arguments = save(test.work, **inputs) + [f"size:{q.nbytes}:type=u16"]
    output = len(inputs)
    bits = test.launch(kernel, (workgroups,), arguments, [output])[output]
    # IREE scales Q in the type of the tensors.
    test.compare(f"iree {dtype} d{head_dim} length {length} {'causal mask' if causal else 'no mask'}",
                 to_numbers(bits, dtype).reshape(q.shape), dtype, dtype, as_sequences(dtype, q, k, v, causal))


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("triton", "iree"):
        sys.exit(__doc__)
    compiler, program, work = sys.argv[1:]
    environment.enter(work)
    import numpy as np
    from emulator import Emulator
    from kernels import Iree, Triton
    folder = pathlib.Path(work) / compiler / "arrays"
    folder.mkdir(parents=True, exist_ok=True)
    test = Test(Emulator(program), folder)
    random = np.random.default_rng(2)
    if compiler == "triton":
        triton = Triton(work)
        print(f"Triton {triton.version}")
        for dtype in ("f16", "bf16"):
            for causal in (False, True):
                for length in (320, 333):  # tiles of keys that end with the sequence, and one that does not
                    triton_rows(test, triton, random, dtype, causal, length)
            triton_decode(test, triton, random, dtype)
    else:
        iree = Iree(work)
        print(f"IREE {iree.version}")
        for dtype in ("f16", "bf16"):
            iree_attention(test, iree, random, dtype, 256, HEAD_DIM)
        iree_attention(test, iree, random, "f16", 256, HEAD_DIM, causal=True)
        iree_attention(test, iree, random, "f16", 256, 64)
    if test.wrong:
        sys.exit(f"{len(test.wrong)} checks failed")
    print(f"{test.cases} cases, nothing to report")


main()
