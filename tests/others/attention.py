"""Attention in double precision, and how far a kernel in 16-bit numbers may be from it."""

import numpy as np

UNIT_ROUNDOFF = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24}
LEAST_SUBNORMAL = {"f16": 2.0**-24, "bf16": 2.0**-133}


def to_bits(numbers, dtype):
    """Rounded to nearest even, as stored in a .npy file: NumPy lacks bf16, which is stored as uint16."""
    if dtype == "f16":
        return numbers.astype(np.float16)
    bits = numbers.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def to_numbers(bits, dtype):
    if dtype == "f16":
        return bits.view(np.float16).astype(np.float64)
    return (bits.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def queries_for(random, k, targets):
    """Q rows that attend mostly to one key each: leaving it out, or including one that is masked, is noticed.

    k [key, head, dim]; targets [query, query head]: places of keys.
    """
    group = targets.shape[1] // k.shape[1]
    heads = np.arange(targets.shape[1]) // group
    found = k[np.clip(targets, 0, len(k) - 1), heads]
    return 1.5 * found + random.uniform(-0.25, 0.25, found.shape)


def reference(q, k, v, keep):
    """O, and the same sums over |V| and over |q||k|: [query, head, dim], [query, head, dim], [query, head].

    q [query, head, dim], k and v [key, head, dim] of one sequence; keep [query, key].
    """
    group = q.shape[1] // k.shape[1]
    k = np.repeat(k, group, 1)
    v = np.repeat(v, group, 1)
    scale = q.shape[2] ** -0.5
    scores = np.where(keep[None], np.einsum("mhd,nhd->hmn", q, k) * scale, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    sizes = np.where(keep[None], np.einsum("mhd,nhd->hmn", abs(q), abs(k)) * scale, 0).max(-1)
    return (np.einsum("hmn,nhd->mhd", weights, v), np.einsum("hmn,nhd->mhd", weights, abs(v)), sizes.T)


def tolerance(o, o_of_sizes, score_sizes, largest_v, dtype, length, head_dim, scale_dtype):
    """The largest sum of the rounding errors of a flash attention kernel, element by element.

    With u of the type of the tensors and e of f32:
    scores     are sums of head_dim products in f32 on numbers that the scale, in `scale_dtype`, was rounded into
               at most twice: they are off by (head_dim e + 2 u_scale) sum |q||k| scale, and weights relatively by as
               much, in the numerator and in the denominator;
    weights are rounded to u for the second product, and a few times to e: exponent, exp2, rescaling; sums over `length`
    keys in f32 add e each, in both;
    f16        has no weights below its subnormal numbers: half of the smallest, for each key;
    O          is rounded to u.
    """
    u = UNIT_ROUNDOFF[dtype]
    e = UNIT_ROUNDOFF["f32"]
    off = (head_dim * e + 2 * UNIT_ROUNDOFF[scale_dtype]) * score_sizes[..., None]
    relative = np.expm1(2 * off + 2 * (length + 8) * e + u)
    return relative * o_of_sizes + length * LEAST_SUBNORMAL[dtype] / 2 * largest_v + u * abs(o)
