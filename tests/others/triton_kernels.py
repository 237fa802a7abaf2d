"""Attention kernels in Triton's language: rows of long sequences, and decode over a paged cache.

Tensors are contiguous: Q and O [sequence, token, head, dim], K and V [sequence, token, head, dim] or, paged,
[page, token of the page, head, dim]. `scale_log2` is the softmax scale times log2(e).
"""

import triton
import triton.language as tl


@triton.jit
def add_tile(accumulator, maximum, total, q, k_transposed, v, scale_log2, keep):
    """One tile of keys into the running softmax; `keep` masks scores, or is None. The maximum is of scaled scores."""
    scores = tl.dot(q, k_transposed)
    if keep is not None:
        scores = tl.where(keep, scores, float("-inf"))
    grown = tl.maximum(maximum, tl.max(scores, 1) * scale_log2)
    weights = tl.math.exp2(scores * scale_log2 - grown[:, None])
    shrink = tl.math.exp2(maximum - grown)
    total = total * shrink + tl.sum(weights, 1)
    accumulator = tl.dot(weights.to(v.dtype), v, accumulator * shrink[:, None])
    return accumulator, grown, total


@triton.jit
def attention_rows(q_pointer, k_pointer, v_pointer, o_pointer, length, q_heads, kv_heads, scale_log2,
                   HEAD_DIM: tl.constexpr, TILE_Q: tl.constexpr, TILE_KV: tl.constexpr, CAUSAL: tl.constexpr):
    """Grid: query heads, tiles of TILE_Q query rows, sequences. As many queries as keys.

    Key heads come first in the grid: an XCD gets every eighth workgroup, so its L2 serves few key heads.
    """
    kv_head = tl.program_id(0) % kv_heads
    head = kv_head * (q_heads // kv_heads) + tl.program_id(0) // kv_heads
    first_row = tl.program_id(1) * TILE_Q
    sequence = tl.program_id(2)

    dims = tl.arange(0, HEAD_DIM)
    rows = first_row + tl.arange(0, TILE_Q)
    keys = tl.arange(0, TILE_KV)
    q_places = (rows[:, None] * q_heads + head) * HEAD_DIM + dims[None, :]
    k_places = (keys[None, :] * kv_heads + kv_head) * HEAD_DIM + dims[:, None]
    v_places = (keys[:, None] * kv_heads + kv_head) * HEAD_DIM + dims[None, :]
    tile_step = TILE_KV * kv_heads * HEAD_DIM
    q_start = sequence.to(tl.int64) * length * q_heads * HEAD_DIM
    kv_start = sequence.to(tl.int64) * length * kv_heads * HEAD_DIM
    k_tile = k_pointer + kv_start
    v_tile = v_pointer + kv_start

    q = tl.load(q_pointer + q_start + q_places, mask=rows[:, None] < length, other=0.0)
    accumulator = tl.zeros((TILE_Q, HEAD_DIM), tl.float32)
    maximum = tl.full((TILE_Q,), float("-inf"), tl.float32)
    total = tl.zeros((TILE_Q,), tl.float32)

    # Tiles that every row sees completely, then those that need a mask: on the diagonal, and the last.
    end = tl.minimum(first_row + TILE_Q, length) if CAUSAL else length
    whole_end = (tl.minimum(first_row + 1, length) if CAUSAL else length) // TILE_KV * TILE_KV
    for start in range(0, whole_end, TILE_KV):
        k_transposed = tl.load(k_tile + k_places)
        v = tl.load(v_tile + v_places)
        accumulator, maximum, total = add_tile(accumulator, maximum, total, q, k_transposed, v, scale_log2, None)
        k_tile += tile_step
        v_tile += tile_step
    for start in range(whole_end, end, TILE_KV):
        keys_here = start + keys
        k_transposed = tl.load(k_tile + k_places, mask=keys_here[None, :] < length, other=0.0)
        v = tl.load(v_tile + v_places, mask=keys_here[:, None] < length, other=0.0)
        keep = keys_here[None, :] < length
        if CAUSAL:
            keep = keep & (keys_here[None, :] <= rows[:, None])
        accumulator, maximum, total = add_tile(accumulator, maximum, total, q, k_transposed, v, scale_log2, keep)
        k_tile += tile_step
        v_tile += tile_step

    o = accumulator / total[:, None]
    tl.store(o_pointer + q_start + q_places, o.to(o_pointer.dtype.element_ty), mask=rows[:, None] < length)


@triton.jit
def decode_part(q_pointer, k_pointer, v_pointer, pages_pointer, lengths_pointer, partial_pointer, maxima_pointer,
                totals_pointer, most_pages, part_keys, scale_log2, HEAD_DIM: tl.constexpr, GROUP: tl.constexpr,
                TILE_Q: tl.constexpr, TILE_KV: tl.constexpr, PAGE: tl.constexpr):
    """One query row per head over one part of a sequence's keys; the query heads of a key head are one tile.

    Grid: key heads, parts, sequences. Writes the undivided O of the part, its maximum and its total.
    """
    kv_head = tl.program_id(0)
    part = tl.program_id(1)
    sequence = tl.program_id(2)
    kv_heads = tl.num_programs(0)
    parts = tl.num_programs(1)
    q_heads = kv_heads * GROUP

    dims = tl.arange(0, HEAD_DIM)
    group = tl.arange(0, TILE_Q)
    keys = tl.arange(0, TILE_KV)
    heads = kv_head * GROUP + group
    is_head = group < GROUP
    length = tl.load(lengths_pointer + sequence)
    first = part * part_keys
    end = tl.minimum(first + part_keys, length)

    q = tl.load(q_pointer + (sequence * q_heads + heads[:, None]) * HEAD_DIM + dims[None, :],
                mask=is_head[:, None], other=0.0)
    accumulator = tl.zeros((TILE_Q, HEAD_DIM), tl.float32)
    maximum = tl.full((TILE_Q,), float("-inf"), tl.float32)
    total = tl.zeros((TILE_Q,), tl.float32)
    for start in range(first, end, TILE_KV):
        keys_here = start + keys
        is_key = keys_here < end
        page = tl.load(pages_pointer + sequence * most_pages + keys_here // PAGE, mask=is_key, other=0)
        token = page.to(tl.int64) * PAGE + keys_here % PAGE
        places = (token * kv_heads + kv_head) * HEAD_DIM
        k_transposed = tl.load(k_pointer + places[None, :] + dims[:, None], mask=is_key[None, :], other=0.0)
        v = tl.load(v_pointer + places[:, None] + dims[None, :], mask=is_key[:, None], other=0.0)
        accumulator, maximum, total = add_tile(accumulator, maximum, total, q, k_transposed, v, scale_log2,
                                               is_key[None, :])

    row = (sequence * q_heads + heads) * parts + part
    tl.store(partial_pointer + row[:, None] * HEAD_DIM + dims[None, :], accumulator, mask=is_head[:, None])
    tl.store(maxima_pointer + row, maximum, mask=is_head)
    tl.store(totals_pointer + row, total, mask=is_head)


@triton.jit
def merge_parts(partial_pointer, maxima_pointer, totals_pointer, o_pointer, parts, HEAD_DIM: tl.constexpr,
                TILE_PARTS: tl.constexpr):
    """Grid: query heads, sequences. At most TILE_PARTS parts."""
    row = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    dims = tl.arange(0, HEAD_DIM)
    part = tl.arange(0, TILE_PARTS)
    is_part = part < parts
    places = row * parts + part
    maxima = tl.load(maxima_pointer + places, mask=is_part, other=float("-inf"))
    totals = tl.load(totals_pointer + places, mask=is_part, other=0.0)
    partial = tl.load(partial_pointer + places[:, None] * HEAD_DIM + dims[None, :], mask=is_part[:, None], other=0.0)
    weights = tl.math.exp2(maxima - tl.max(maxima, 0))
    o = tl.sum(partial * weights[:, None], 0) / tl.sum(totals * weights, 0)
    tl.store(o_pointer + row * HEAD_DIM + dims, o.to(o_pointer.dtype.element_ty))
