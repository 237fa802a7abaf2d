"""Attention in double precision, and how far a result of Sluice or of float arithmetic may be from it.

The bounds are those of docs/concepts/numerics.md, with its names.
"""

import dataclasses

import numpy as np

U = 2.0 ** -24
# p, a, r and s of the table there, by the type of Q and O. For float32 only U counts.
ROUNDINGS = {"float16": (0.653 * 2.0 ** -10, 2.0 ** -24, 2.0 ** -11, 2.0 ** -25),
             "bfloat16": (0.653 * 2.0 ** -7, 2.0 ** -126, 2.0 ** -8, 2.0 ** -134),
             "float32": (U, 2.0 ** -149, U, 2.0 ** -149)}


@dataclasses.dataclass
class Problem:
    """q is [batch, head, row, element], k and v [batch, KV head, key, element]; visible, and bias if there is one, can
    be broadcast to [batch, head, row, key]; sinks is a logit per head."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    visible: np.ndarray
    scale: float | None = None
    soft_cap: float = 0.0
    bias: np.ndarray | None = None
    sinks: np.ndarray | None = None


def scale_of(problem):
    return problem.q.shape[3] ** -0.5 if problem.scale is None else problem.scale


def attention(problem, dtype):
    """O in double precision, and the bound of each element's error if O and Q have that type."""
    q, k, v = (x.astype(np.float64) for x in (problem.q, problem.k, problem.v))
    group, d = q.shape[1] // k.shape[1], q.shape[3]
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scale = scale_of(problem)
    scores = scale * q @ k.swapaxes(2, 3)
    visible = np.broadcast_to(problem.visible, scores.shape)
    bias = np.zeros(1) if problem.bias is None else problem.bias.astype(np.float64)
    visible = visible & np.broadcast_to(~np.isneginf(bias), scores.shape)
    bias = np.broadcast_to(np.where(np.isneginf(bias), 0, bias), scores.shape)

    def most(values):
        return np.max(np.where(visible, np.abs(values), 0), axis=3, keepdims=True, initial=0)

    magnitude = most(scale * np.abs(q) @ np.abs(k).swapaxes(2, 3))  # A
    unchanged = most(scores)  # R
    if problem.soft_cap:
        scores = problem.soft_cap * np.tanh(scores / problem.soft_cap)
    capped = most(scores)
    scores = np.where(visible, scores + bias, -np.inf)
    sinks = np.full((1, q.shape[1], 1, 1), -np.inf)
    if problem.sinks is not None:
        sinks = problem.sinks.astype(np.float64).reshape(1, -1, 1, 1)
    top = np.maximum(scores.max(axis=3, keepdims=True, initial=-np.inf), sinks)
    top = np.where(np.isneginf(top), 0, top)
    weights = np.exp(scores - top)
    total = weights.sum(axis=3, keepdims=True) + np.exp(sinks - top)
    total = np.where(total == 0, 1, total)
    o = weights @ v / total

    n = visible.sum(axis=3, keepdims=True) + (problem.sinks is not None)
    t = np.ceil(k.shape[2] / 16) + (problem.sinks is not None)
    largest = np.maximum(most(scores), unchanged)  # X
    if problem.sinks is not None:
        largest = np.maximum(largest, np.abs(sinks))
    changes = np.zeros(1)
    if problem.soft_cap:
        changes = changes + 2 * unchanged + 12 * problem.soft_cap
    if problem.bias is not None:
        changes = changes + 2 * most(bias) + capped + most(bias)
    score = U * (magnitude * (8 + 3 * d / 8) + 10 * largest + changes)
    weight = score + U * (2 + t * (3 + 4 * largest))
    summed = weight + U * (n + 2)
    merge = U * (11 * (largest + np.log(np.maximum(n, 1))) + 10 + 32 * np.log(2) + 2 * t)
    p, a, r, s = ROUNDINGS[dtype]
    weighed = weights @ np.abs(v) / total  # W
    error = weighed * (p + weight + U * (8 + 3 * n) + merge) + np.abs(o) * (summed + 3 * U)
    error = error + a * np.where(visible.any(3, keepdims=True), np.abs(v).sum(2, keepdims=True), 0) / total
    return o, error + r * (np.abs(o) + error) + s


def score_shift(problem, relative):
    """How much O may change if each element of Q and K changes by that much: a bound to first order, doubled."""
    q, k, v = (np.abs(x.astype(np.float64)) for x in (problem.q, problem.k, problem.v))
    group = q.shape[1] // k.shape[1]
    scores = scale_of(problem) * q @ np.repeat(k, group, axis=1).swapaxes(2, 3)
    largest_v = np.repeat(v, group, axis=1).max(axis=2, keepdims=True)
    return 2 * 2 * 2 * relative * scores.max(axis=3, keepdims=True) * largest_v
