"""Attention over several devices with torch.distributed: by heads, and by keys.

Each rank has a device of its own: a GPU (RCCL by the name of its backend, "nccl"), or without one the emulator (gloo).

    torchrun --nproc-per-node 4 parallel.py --prefill 8192 --decode 32768

computes a causal prompt by heads and as a ring, and a step of decoding with the cache divided among the ranks; each result is
compared with one device's, and the bytes that were sent with the formula's. parallel.md has the plan and the formulas.
"""

from __future__ import annotations

import argparse
import datetime
from typing import Callable, List, Optional, Tuple

import torch
import torch.distributed as dist

import sluice.torch as st

Parts = Tuple[torch.Tensor, torch.Tensor]  # O [tokens, heads, dim] in F32 and LSE [tokens, heads], of some of the keys


class Failed(RuntimeError):
    """The answer of one of the ranks."""


class Peers:
    """The ranks, what is sent between them in bytes, and their agreement that all is well."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.sent_bytes = 0

    def agree(self, step: str, facts: object, error: Optional[Exception] = None) -> None:
        """All ranks say what they have. If one has failed, or something else than the first, every rank raises Failed with
        the same sentence: no rank waits for a message that will not come."""
        said: List[object] = [None] * self.size
        try:
            dist.all_gather_object(said, (facts, None if error is None else f"{type(error).__name__}: {error}"))
        except RuntimeError as lost:
            raise Failed(f"{step}: a rank has gone: {str(lost).splitlines()[0]}") from lost
        for rank, (_, failure) in enumerate(said):  # type: ignore[misc]
            if failure is not None:
                raise Failed(f"{step}: rank {rank} failed: {failure}") from error
        for rank, (theirs, _) in enumerate(said):  # type: ignore[misc]
            if theirs != said[0][0]:  # type: ignore[index]
                raise Failed(f"{step}: rank {rank} has {theirs}; rank 0 has {said[0][0]}")  # type: ignore[index]

    def all_gather(self, tensor: torch.Tensor) -> List[torch.Tensor]:
        """Every rank's tensor, of one shape."""
        found = [torch.empty_like(tensor) for _ in range(self.size)]
        dist.all_gather(found, tensor.contiguous())
        self.sent_bytes += tensor.nbytes * (self.size - 1)
        return found

    def pass_on(self, tensors: List[torch.Tensor]) -> Tuple[List[torch.Tensor], List[dist.Work]]:
        """Begins to send tensors to the next rank and to receive those of the one before."""
        received = [torch.empty_like(tensor) for tensor in tensors]
        after, before = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        work = dist.batch_isend_irecv([dist.P2POp(dist.isend, tensor, after) for tensor in tensors]
                                      + [dist.P2POp(dist.irecv, tensor, before) for tensor in received])
        self.sent_bytes += sum(tensor.nbytes for tensor in tensors)
        return received, work


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> Parts:
    """Of one device; q, k and v [tokens, heads, dim]."""
    o, lse = st.flash_attn_func(q[None], k[None], v[None], causal=causal, return_attn_probs=True, out_dtype=torch.float32)
    return o[0], lse[0].transpose(0, 1)


def facts_of(*tensors: torch.Tensor) -> str:
    """Types and shapes, in which all ranks must agree."""
    return ", ".join(f"{str(tensor.dtype).rsplit('.', 1)[-1]} {list(tensor.shape)}" for tensor in tensors)


def merge(parts: List[Parts], dtype: torch.dtype) -> Parts:
    """The parts become one."""
    return st.merge_states(torch.stack([o for o, _ in parts]), torch.stack([lse for _, lse in parts]), dtype)


def guarded(peers: Peers, step: str, compute: Callable[[], object]) -> object:
    """A step of this rank; if one rank fails in it, all do."""
    result, error = None, None
    try:
        result = compute()
    except Exception as caught:  # of any type: the others must know of it
        error = caught
    peers.agree(step, None, error)
    return result


# ----------------------------------------------------------------------------------------------------- by heads


def by_heads(peers: Peers, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    """Tensor parallel: q, k and v are this rank's heads, all heads of O come back. A model would go on with its own heads, and
    send nothing before the output projection's sum."""
    peers.agree("tensor parallel", facts_of(q, k, v))
    o = guarded(peers, "tensor parallel", lambda: attend(q, k, v, causal)[0].to(q.dtype))
    assert isinstance(o, torch.Tensor)
    return torch.cat(peers.all_gather(o), dim=1)


def bytes_by_heads(ranks: int, tokens: int, heads: int, dim: int, itemsize: int) -> int:
    """That each rank sends."""
    return (ranks - 1) * tokens * (heads // ranks) * dim * itemsize


# ----------------------------------------------------------------------------------------------- by keys, decoding


def decode_by_keys(peers: Peers, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Context parallel for decoding: every rank has all of q and a share of the keys, which may be empty. Each computes O and
    LSE of its share, the LSEs say what each counts for, and everyone merges."""
    peers.agree("decode", facts_of(q, k[:0], v[:0]))  # shares may differ

    mine = guarded(peers, "decode", lambda: attend(q, k, v, causal=False))
    assert isinstance(mine, tuple)
    o, lse = mine
    both = peers.all_gather(torch.cat([o, lse[..., None]], dim=-1))
    return merge([(one[..., :-1].contiguous(), one[..., -1].contiguous()) for one in both], q.dtype)[0]


def bytes_decode(ranks: int, rows: int, heads: int, dim: int) -> int:
    """That each rank sends: O in F32 and an LSE."""
    return (ranks - 1) * rows * heads * (dim + 1) * 4


# ------------------------------------------------------------------------------------------------ by keys, a prompt


def zigzag(ranks: int, rank: int) -> Tuple[int, int]:
    """The two of 2 * ranks equal pieces of a prompt that a rank has: one from the front and one from the back, so that under a
    causal mask all ranks have equally much to compute."""
    return rank, 2 * ranks - 1 - rank


def ring(peers: Peers, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """A causal prompt in zigzag order: q, k and v are this rank's two pieces, one after the other, and so is the result. Keys
    go round while the ones before are computed with; results of each step are merged into those of the steps before."""
    peers.agree("ring", facts_of(q, k, v))
    half = q.shape[0] // 2
    pieces = zigzag(peers.size, peers.rank)
    sums: List[List[Parts]] = [[], []]
    for step in range(peers.size):
        work: List[dist.Work] = []
        if step + 1 < peers.size:
            received, work = peers.pass_on([k, v])
        theirs = zigzag(peers.size, (peers.rank - step) % peers.size)

        def compute() -> None:
            for i, piece in enumerate(pieces):
                for j, other in enumerate(theirs):
                    if other > piece:
                        continue  # these keys come after the rows
                    rows, keys = slice(i * half, (i + 1) * half), slice(j * half, (j + 1) * half)
                    sums[i].append(attend(q[rows], k[keys], v[keys], causal=other == piece))
                if len(sums[i]) > 1:
                    sums[i] = [merge(sums[i], torch.float32)]

        error = None
        try:
            compute()
        except Exception as caught:
            error = caught
        for one in work:
            try:
                one.wait()
            except RuntimeError as lost:
                raise Failed(f"ring, step {step}: a rank has gone: {str(lost).splitlines()[0]}") from lost
        peers.agree(f"ring, step {step}", None, error)
        if work:
            k, v = received
    return torch.cat([parts[0][0] for parts in sums]).to(q.dtype)


def bytes_ring(ranks: int, tokens: int, kv_heads: int, dim: int, itemsize: int) -> int:
    """That each rank sends: K and V of its share, ranks - 1 times."""
    return (ranks - 1) * (tokens // ranks) * kv_heads * 2 * dim * itemsize


# --------------------------------------------------------------------------------------------------------- the program


def sample(tokens: int, heads: int, dim: int, seed: int, device: torch.device) -> torch.Tensor:
    """The same on every rank."""
    return torch.randn(tokens, heads, dim, generator=torch.Generator().manual_seed(seed)).bfloat16().to(device)


def begin(timeout_seconds: int) -> torch.device:
    """One device a rank; a rank that is lost is noticed within the timeout."""
    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo", timeout=datetime.timedelta(seconds=timeout_seconds))
    if not on_gpu:
        return torch.device("cpu")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    return torch.device("cuda", torch.cuda.current_device())


def report(peers: Peers, name: str, result: torch.Tensor, wanted: torch.Tensor, formula: int) -> None:
    """The largest difference to one device's result must be within the rounding to the type of O."""
    error = (result.float() - wanted.float()).abs().max().item()
    bound = 2 * wanted.float().abs().max().item() * 2.0 ** -8
    sent, peers.sent_bytes = peers.sent_bytes, 0
    good = error <= bound and sent == formula
    print(f"rank {peers.rank} of {peers.size}, {name}: largest difference {error:.5f} (at most {bound:.5f}), sent {sent} bytes"
          f" (formula {formula}): {'equal' if good else 'WRONG'}", flush=True)
    peers.agree(name, None, None if good else ValueError("the result or the bytes are wrong"))


def one_device_result(peers: Peers, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    """The result of rank 0 on its own, for all to compare with."""
    o = guarded(peers, "one device", lambda: attend(q, k, v, causal)[0].to(q.dtype) if peers.rank == 0 else torch.empty_like(q))
    assert isinstance(o, torch.Tensor)
    dist.broadcast(o, 0)
    return o


def prefill(peers: Peers, tokens: int, heads: int, kv_heads: int, dim: int, device: torch.device) -> None:
    q, k, v = (sample(tokens, count, dim, seed, device) for seed, count in enumerate((heads, kv_heads, kv_heads)))
    wanted = one_device_result(peers, q, k, v, causal=True)
    ours = [slice(n * peers.rank // peers.size, n * (peers.rank + 1) // peers.size) for n in (heads, kv_heads)]
    result = by_heads(peers, q[:, ours[0]].contiguous(), k[:, ours[1]].contiguous(), v[:, ours[1]].contiguous(), causal=True)
    report(peers, "prefill by heads", result, wanted, bytes_by_heads(peers.size, tokens, heads, dim, 2))
    piece = tokens // (2 * peers.size)
    rows = torch.cat([torch.arange(n * piece, (n + 1) * piece) for n in zigzag(peers.size, peers.rank)]).to(device)
    result = ring(peers, q[rows], k[rows], v[rows])
    report(peers, "prefill as a ring", result, wanted[rows], bytes_ring(peers.size, tokens, kv_heads, dim, 2))


def decode(peers: Peers, keys: int, heads: int, kv_heads: int, dim: int, device: torch.device) -> None:
    q, k, v = (sample(n, count, dim, seed, device) for seed, (n, count) in
               enumerate(((1, heads), (keys, kv_heads), (keys, kv_heads))))
    wanted = one_device_result(peers, q, k, v, causal=False)
    share = slice(keys * peers.rank // peers.size, keys * (peers.rank + 1) // peers.size)
    report(peers, "decode", decode_by_keys(peers, q, k[share], v[share]), wanted, bytes_decode(peers.size, 1, heads, dim))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefill", type=int, default=0, help="tokens of a prompt; a multiple of twice the ranks")
    parser.add_argument("--decode", type=int, default=0, help="keys of a step of decoding")
    parser.add_argument("--heads", type=int, nargs=2, default=(4, 4), metavar=("Q", "KV"), help="multiples of the ranks")
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--timeout", type=int, default=600, help="seconds until a rank that says nothing is given up")
    parser.add_argument("--fail", choices=("error", "shape", "exit"), help="what the last rank does wrong, to see what happens")
    options = parser.parse_args()
    device = begin(options.timeout)
    peers = Peers()
    try:
        if options.fail is not None:
            fail(peers, options.fail, options.dim, device)
        if options.prefill:
            prefill(peers, options.prefill, *options.heads, options.dim, device)
        if options.decode:
            decode(peers, options.decode, *options.heads, options.dim, device)
    except Failed as failed:
        raise SystemExit(f"rank {peers.rank}: {failed}")
    finally:
        dist.destroy_process_group()


def fail(peers: Peers, how: str, dim: int, device: torch.device) -> None:
    """A ring in which the last rank does something wrong."""
    is_last = peers.rank == peers.size - 1
    if how == "exit" and is_last:
        raise SystemExit("the last rank leaves")
    if how == "shape" and is_last:
        dim += 8
    q, k, v = (sample(64, 4, dim, seed, device) for seed in range(3))
    if how == "error" and is_last:
        def attend_no_more(*_: object, **__: object) -> Parts:
            raise ValueError("this device computes no more")

        globals()["attend"] = attend_no_more
    ring(peers, q, k, v)


if __name__ == "__main__":
    main()
