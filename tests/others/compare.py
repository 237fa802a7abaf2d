#!/usr/bin/python3
"""Times other attention kernels and a Sluice plan's launches on the timing model: a table for a page.

usage: compare.py SLUICE SLUICE_EMU WORK

All figures are modelled, none is measured. Sluice's are those of `sluice bench`: the plan's choice of kernels and split of
the keys. Both have the same sample: five compute units with 16 workgroups each for prefill, all of an XCD for decode.
"""

import json
import math
import pathlib
import subprocess
import sys

import environment

Q_HEADS, KV_HEADS, HEAD_DIM = 64, 8, 128
PREFILL = [(16, 1024), (4, 4096)]  # sequences, tokens
DECODE = [(8, 1024), (8, 4096), (32, 4096), (64, 1024)]  # sequences, keys
USUAL_WORKGROUPS = 1024  # of a decode that is split: three or four for each compute unit
PREFILL_SAMPLE = {"compute_units": 5, "workgroups": 16}
DECODE_SAMPLE = {"compute_units": 38}
SCALE_LOG2 = f"f32:{HEAD_DIM ** -0.5 * math.log2(math.e)}"


def random_tensor(*extents):
    """Numbers of f16. bf16 kernels read the same bits, finite as well: their time does not depend on values."""
    return f"size:{2 * math.prod(extents)}:type=f16:fill=random"


def space(count, element_bytes):
    return f"size:{count * element_bytes}"


class Comparison:
    def __init__(self, sluice, emulator, work):
        from kernels import Iree, Triton
        self.sluice = sluice
        self.emulator = emulator
        self.work = pathlib.Path(work)
        self.triton = Triton(work)
        self.iree = Iree(work)

    def ours(self, workload, dtype, sequences, tokens, causal):
        """A row of `sluice bench`, by its JSON."""
        path = self.work / "ours.json"
        command = [self.sluice, "bench", "--timing", "--workload", workload, "--type", dtype, "--head-dim", str(HEAD_DIM),
                   "--heads", str(Q_HEADS), "--kv-heads", str(KV_HEADS), "--sequences", f"{sequences}x{tokens}",
                   "--causal", "on" if causal else "off", "--json", path]
        if workload == "prefill":
            command += ["--compute-units", str(PREFILL_SAMPLE["compute_units"]),
                        "--workgroups", str(PREFILL_SAMPLE["workgroups"])]
        else:
            command += ["--page-size", str(self.triton.PAGE), "--compute-units", str(DECODE_SAMPLE["compute_units"]),
                        "--workgroups", "0"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        row, = json.loads(path.read_text(encoding="utf-8"))["rows"]
        return row

    def triton_prefill(self, dtype, sequences, tokens, causal):
        queries = random_tensor(sequences, tokens, Q_HEADS, HEAD_DIM)
        keys = random_tensor(sequences, tokens, KV_HEADS, HEAD_DIM)
        arguments = [queries, keys, keys, space(sequences * tokens * Q_HEADS * HEAD_DIM, 2),
                     f"i32:{tokens}", f"i32:{Q_HEADS}", f"i32:{KV_HEADS}", SCALE_LOG2]
        grid = Q_HEADS, -(-tokens // self.triton.TILE_Q), sequences
        return [self.emulator.time(self.triton.rows(dtype, causal), grid, arguments, **PREFILL_SAMPLE)]

    def iree_prefill(self, dtype, sequences, tokens):
        kernel, workgroups = self.iree.attention(f"{dtype}_{sequences}x{tokens}", dtype, sequences, tokens, Q_HEADS,
                                                 KV_HEADS, HEAD_DIM)
        queries = random_tensor(sequences, tokens, Q_HEADS, HEAD_DIM)
        keys = random_tensor(sequences, tokens, KV_HEADS, HEAD_DIM)
        arguments = [queries, keys, keys, space(sequences * tokens * Q_HEADS * HEAD_DIM, 2)]
        return [self.emulator.time(kernel, (workgroups,), arguments, **PREFILL_SAMPLE)]

    def triton_decode(self, dtype, sequences, tokens):
        import numpy as np
        from emulator import save
        parts = max(1, min(self.triton.MOST_PARTS, USUAL_WORKGROUPS // (sequences * KV_HEADS)))
        part_keys = -(-tokens // (parts * self.triton.PAGE)) * self.triton.PAGE
        pages = -(-tokens // self.triton.PAGE)
        random = np.random.default_rng(3)
        files = save(self.work, pages=random.permutation(sequences * pages).astype(np.int32),
                     lengths=np.full(sequences, tokens, np.int32))
        rows = sequences * Q_HEADS * parts
        cache = random_tensor(sequences * pages * self.triton.PAGE, KV_HEADS, HEAD_DIM)
        arguments = [random_tensor(sequences, Q_HEADS, HEAD_DIM), cache, cache, *files,
                     space(rows * HEAD_DIM, 4), space(rows, 4), space(rows, 4),
                     f"i32:{pages}", f"i32:{part_keys}", SCALE_LOG2]
        attention = self.emulator.time(self.triton.decode(dtype, Q_HEADS // KV_HEADS), (KV_HEADS, parts, sequences),
                                       arguments, **DECODE_SAMPLE)
        arguments = [space(rows * HEAD_DIM, 4), space(rows, 4), space(rows, 4),
                     space(sequences * Q_HEADS * HEAD_DIM, 2), f"i32:{parts}"]
        merge = self.emulator.time(self.triton.merge(dtype), (Q_HEADS, sequences), arguments, **DECODE_SAMPLE)
        return [attention, merge]


def clk_text(launches):
    return " + ".join(str(launch["clk"]) for launch in launches)


def error_text(launches):
    """One standard error of the sum, in per cent, as far as it follows from the samples."""
    if any(launch["error_percent"] is None for launch in launches):
        return "unknown"
    square = sum((launch["error_percent"] * launch["clk"]) ** 2 for launch in launches)
    return f"{math.sqrt(square) / sum(launch['clk'] for launch in launches):.1f} %"


def busy_text(launches):
    busy = sum(launch["mfma_percent"] * launch["clk"] for launch in launches)
    return f"{busy / sum(launch['clk'] for launch in launches):.1f} %"


HEAD = """\
| work | theirs | clk | error | MFMA busy | HBM share | ours | clk | error | MFMA busy | HBM share | ours / theirs |
| --- | --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |"""


def figures(launches, hbm_share):
    return [clk_text(launches), error_text(launches), busy_text(launches), f"{hbm_share:.1f} %"]


def print_row(compiler, ours, theirs):
    model = ours["model"]
    launches, hbm_share = model["launches"], model["hbm_share_percent"]
    ratio = sum(launch["clk"] for launch in launches) / sum(launch["clk"] for launch in theirs)
    # The bytes in the share are those that both have to move.
    cells = [ours["work"], compiler, *figures(theirs, hbm_share * ratio), model["kernel"], *figures(launches, hbm_share)]
    print(f"| {' | '.join(cells)} | {ratio:.2f} |", flush=True)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sluice, program, work = sys.argv[1:]
    environment.enter(work)
    from emulator import Emulator
    folder = pathlib.Path(work)
    comparison = Comparison(sluice, Emulator(program), folder)
    triton, iree = f"Triton {comparison.triton.version}", f"IREE {comparison.iree.version}"
    print(HEAD, flush=True)
    for dtype in ("bf16", "f16"):
        for sequences, tokens in PREFILL:
            for causal in (False, True):
                ours = comparison.ours("prefill", dtype, sequences, tokens, causal)
                print_row(triton, ours, comparison.triton_prefill(dtype, sequences, tokens, causal))
                if not causal:
                    print_row(iree, ours, comparison.iree_prefill(dtype, sequences, tokens))
    for sequences, tokens in DECODE:
        ours = comparison.ours("decode", "bf16", sequences, tokens, False)
        print_row(triton, ours, comparison.triton_decode("bf16", sequences, tokens))


main()
