"""Makes the calls of bindings/recorder/attention_calls.c and cache_calls.c, with the same numbers.

bindings/recorder/compare.py compares what the library is given with what C gives it.
"""

import os

import sluice
from sluice import DType, Lse, PageTableKind, Problem, ScaleKind, Tensor

CONTEXT = sluice.Context("gfx942:304")
BLOCK, CSR = PageTableKind.BLOCK, PageTableKind.CSR


def at(n):
    """Device memory number n."""
    return 0x200000000000 + n * 0x100000


STREAM = at(900)


def tensor(n, shape, dtype, strides=None, place="device"):
    """Elements of a type of the library, or of an integer's with so many bytes; contiguous without strides."""
    plain = Tensor.at(at(n), shape, DType.I8).strides if strides is None else strides
    if isinstance(dtype, int):
        return Tensor(at(n), tuple(shape), tuple(plain), None, dtype, place)
    return Tensor(at(n), tuple(shape), tuple(plain), DType[dtype], DType[dtype].bytes, place)


def heads_first(n, shape, dtype):
    """[batch, token, head, dim] that is [batch, head, token, dim] in memory."""
    batch, tokens, heads, dim = shape
    return tensor(n, (batch, heads, tokens, dim), dtype).permute(0, 2, 1, 3)


def numbers(n, count, bytes_each=4):
    return tensor(n, (count,), bytes_each)


def floats(n, count):
    return tensor(n, (count,), "F32")


def dense():
    problem = Problem("f16", 8, 2, 128, max_batch=3, max_q_len=96, max_kv_len=112, workspace_ceiling_bytes=1 << 20)
    CONTEXT.query_support(problem)
    CONTEXT.preload(problem)
    CONTEXT.plan(problem).run(tensor(1, (3, 64, 8, 128), "F16"), tensor(3, (3, 80, 2, 128), "F16"),
                              heads_first(4, (3, 80, 2, 128), "F16"), tensor(2, (3, 64, 8, 128), "F16"), scale=0.125,
                              stream=STREAM, workspace=tensor(901, (4096,), 1))


def ragged_causal_lse():
    problem = Problem("bf16", 4, 2, 64, ragged=True, lse=Lse.LN, causal=True, max_batch=5, max_q_len=33, max_kv_len=47)
    CONTEXT.plan(problem).run(tensor(1, (101, 4, 64), "BF16"), tensor(3, (157, 2, 64), "BF16"),
                              tensor(4, (157, 2, 64), "BF16"), tensor(2, (101, 4, 64), "BF16"), q_starts=numbers(6, 6),
                              kv_starts=numbers(5, 6), q_len=32, kv_len=46, lse=tensor(7, (101, 4), "F32"), stream=STREAM)


def paged_fp8():
    problem = Problem("e4m3fnuz", 16, 2, 128, v_type="e5m2fnuz", page_size=16, page_table_kind=BLOCK, sink_logits=True,
                      q_scale_kind=ScaleKind.PER_TENSOR, k_scale_kind=ScaleKind.PER_HEAD, v_scale_kind=ScaleKind.PER_HEAD,
                      o_scale_kind=ScaleKind.PER_HEAD, max_batch=7, max_q_len=1, max_kv_len=1024)
    CONTEXT.plan(problem).run(tensor(1, (7, 1, 16, 128), "E4M3FNUZ"), tensor(3, (901, 16, 2, 128), "E4M3FNUZ"),
                              heads_first(4, (901, 16, 2, 128), "E5M2FNUZ"), tensor(2, (7, 1, 16, 128), "E4M3FNUZ"),
                              k_scale=floats(5, 2), v_scale=floats(6, 2), page_table=tensor(7, (7, 64), 4),
                              kv_lengths=numbers(8, 7), kv_len=1000, sink_logits=floats(9, 16), q_scale=floats(10, 1),
                              o_scale=floats(11, 16), stream=STREAM)


def cascade():
    problem = Problem("bf16", 4, 1, 128, ragged=True, shared_prefix=True, page_size=32, page_table_kind=BLOCK, soft_cap=30.5,
                      max_batch=6, max_q_len=9, max_kv_len=512, max_prefixes=2, max_prefix_len=256, max_q_tokens=54)
    CONTEXT.plan(problem).run(tensor(1, (53, 4, 128), "BF16"), tensor(3, (77, 32, 1, 128), "BF16"),
                              tensor(4, (77, 32, 1, 128), "BF16"), tensor(2, (53, 4, 128), "BF16"), q_starts=numbers(10, 7),
                              page_table=tensor(5, (6, 16), 4), kv_lengths=numbers(6, 6), kv_len=500,
                              prefix_page_table=tensor(7, (2, 8), 4), prefix_lengths=numbers(8, 2), prefix_len=250,
                              prefix_q_starts=numbers(9, 3), stream=STREAM)


def mla_decode():
    problem = Problem("bf16", 16, 1, 576, 512, v_in_k=True, page_size=64, page_table_kind=CSR, page_index_64=True,
                      lse=Lse.LOG2, max_batch=4, max_q_len=1, max_kv_len=2048)
    CONTEXT.plan(problem).run(tensor(1, (4, 1, 16, 576), "BF16"), tensor(3, (333, 64, 1, 576), "BF16"), None,
                              tensor(2, (4, 1, 16, 512), "BF16"), page_table=numbers(5, 100, 8), kv_lengths=numbers(6, 4),
                              page_starts=numbers(7, 5), kv_len=2000, lse=tensor(8, (4, 1, 16), "F32"), stream=STREAM)


def windows():
    problem = Problem("f16", 4, 2, 64, page_size=16, page_table_kind=BLOCK, batch_invariant=True,
                      mask_alignment=sluice.MaskAlignment.TOP_LEFT, window_left=100, window_right=7, sink_tokens=4,
                      missing_pages_hidden=True, max_batch=5, max_q_len=40, max_kv_len=320)
    CONTEXT.plan(problem).run(tensor(1, (5, 33, 4, 64), "F16"), tensor(3, (210, 16, 2, 64), "F16"),
                              tensor(4, (210, 16, 2, 64), "F16"), tensor(2, (5, 33, 4, 64), "F16"),
                              q_lengths=numbers(7, 5), kv_lengths=numbers(6, 5), kv_len=310,
                              page_table=tensor(5, (5, 2, 20), 4), stream=STREAM)


def spans_and_bits():
    problem = Problem("f16", 2, 1, 64, causal_by_sequence=True, bool_mask=True, mask_new_rows=True, spans=True,
                      mask_alignment=sluice.MaskAlignment.GIVEN_DIAGONAL)
    CONTEXT.plan(problem).run(tensor(1, (3, 24, 2, 64), "F16"), tensor(3, (3, 48, 1, 64), "F16"),
                              tensor(4, (3, 48, 1, 64), "F16"), tensor(2, (3, 24, 2, 64), "F16"),
                              mask=tensor(5, (3, 1, 24, 3), 1), spans=tensor(6, (3, 5, 2), 4), diagonals=numbers(7, 3),
                              causal=numbers(8, 3), stream=STREAM)


def bias_and_alibi():
    problem = Problem("f16", 4, 4, 100, bias_type="f32", bias_scale=True, alibi=True, padded_rows=True)
    CONTEXT.plan(problem).run(tensor(1, (2, 10, 4, 104), "F16"), tensor(3, (2, 20, 4, 104), "F16"),
                              tensor(4, (2, 20, 4, 104), "F16"), tensor(2, (2, 10, 4, 104), "F16"),
                              bias=tensor(5, (2, 4, 10, 20), "F32"), bias_scale=tensor(6, (2, 4), "F32", (5, 1)),
                              alibi_slopes=tensor(7, (2, 4), "F32", (6, 1)), stream=STREAM)


def u4_groups():
    problem = Problem("f16", 8, 2, 128, k_type="u4", o_type="bf16", page_size=16, page_table_kind=BLOCK,
                      k_scale_kind=ScaleKind.PER_GROUP, v_scale_kind=ScaleKind.PER_GROUP, scale_group=32, zero_points=True)

    def scales(n):
        return tensor(n, (64, 16, 2, 4), "F16")

    CONTEXT.plan(problem).run(tensor(1, (2, 1, 8, 128), "F16"), tensor(3, (64, 16, 2, 64), 1), tensor(4, (64, 16, 2, 64), 1),
                              tensor(2, (2, 1, 8, 128), "BF16"), k_scales=scales(5), v_scales=scales(6), k_zeros=scales(7),
                              v_zeros=scales(8), page_table=tensor(9, (2, 13), 4, (0, 1)), kv_lengths=numbers(10, 2),
                              kv_len=200, stream=STREAM)


def packed_pages():
    problem = Problem("bf16", 2, 2, 128, k_type="i8", page_size=32, page_table_kind=BLOCK, k_pack=16, v_pack=sluice.PACK_ALL,
                      k_scale_kind=ScaleKind.PER_PAGE, v_scale_kind=ScaleKind.PER_PAGE)
    CONTEXT.plan(problem).run(tensor(1, (9, 1, 2, 128), "BF16"), tensor(3, (65, 32, 2, 8, 16), "I8", (8192, 16, 4096, 512, 1)),
                              tensor(4, (65, 32, 2, 128), "I8", (8192, 1, 4096, 32)), tensor(2, (9, 1, 2, 128), "BF16"),
                              k_scales=tensor(5, (65, 2), "F32"), v_scales=tensor(6, (65, 2), "F32"),
                              page_table=tensor(7, (9, 11), 4), kv_lengths=numbers(8, 9), kv_len=333, stream=STREAM)


def attention_reference():
    sluice.reference(Problem("f32", 3, 1, 8), tensor(1, (2, 4, 3, 8), "F32", place="host"),
                     tensor(3, (2, 5, 1, 8), "F32", place="host"), tensor(4, (2, 5, 1, 8), "F32", place="host"),
                     tensor(2, (2, 4, 3, 8), "F32", place="host"), scale=0.0625)


def append_slots():
    waits = [sluice.Wait(at(901)), sluice.Wait(at(902), at(903))]
    CONTEXT.append(tensor(3, (40, 2, 128), "BF16"), tensor(4, (40, 2, 128), "BF16"), tensor(1, (99, 16, 2, 192), "BF16"),
                   tensor(2, (99, 16, 2, 128), "BF16"), slots=numbers(5, 40, 8),
                   k_tail=tensor(6, (40, 2, 64), "BF16", (64, 0, 1)), positions=numbers(7, 40),
                   rotary=tensor(8, (500, 32), "F32"), rotary_sin=tensor(9, (500, 32), "F32"), rotary_first=128,
                   rotary_style=sluice.RotaryStyle.PAIRS, k_norm=floats(10, 128), q_norm=tensor(11, (128,), "BF16"),
                   norm_epsilon=1e-6, q=tensor(12, (40, 8, 128), "BF16"), q_out=tensor(13, (40, 8, 192), "BF16"),
                   q_tail=tensor(14, (40, 8, 64), "BF16"), stream=STREAM, wait=waits, signal=at(904))


def append_starts():
    CONTEXT.append(tensor(8, (17, 2, 128), "F16"), tensor(9, (17, 2, 128), "F16"), tensor(1, (98, 16, 2, 128), "E4M3FNUZ"),
                   tensor(2, (98, 16, 2, 128), "E4M3FNUZ"), k_token_scales=tensor(3, (98, 16, 2), "F32"),
                   v_token_scales=tensor(4, (98, 16, 2), "F32"), page_table=numbers(5, 60), kv_lengths=numbers(6, 3),
                   page_starts=numbers(7, 4), starts=numbers(10, 4), rotary=tensor(11, (400, 128), "F16"), stream=STREAM)


def copy_pairs():
    CONTEXT.copy(tensor(1, (50, 32, 2, 64), "I8"), tensor(2, (50, 32, 2, 64), "I8"), heads_first(3, (50, 32, 2, 64), "I8"),
                 heads_first(4, (50, 32, 2, 64), "I8"), k_page_scales=tensor(5, (50, 2), "F32"),
                 v_page_scales=tensor(6, (50, 2), "F32"), k_target_scales=tensor(7, (50, 2), "F32"),
                 v_target_scales=tensor(8, (50, 2), "F32"), pairs=tensor(9, (6, 2), 8), stream=STREAM)


def gather():
    CONTEXT.gather(tensor(1, (51, 16, 2, 64), "E4M3FNUZ"), tensor(2, (51, 16, 2, 64), "E4M3FNUZ"),
                   tensor(3, (76, 2, 64), "BF16"), tensor(4, (76, 2, 64), "BF16"), k_scale=floats(5, 1), v_scale=floats(6, 1),
                   page_table=tensor(7, (3, 9), 4), kv_lengths=numbers(8, 3), first_keys=numbers(9, 3),
                   out_starts=numbers(10, 4), stream=STREAM)


def merge_lists():
    CONTEXT.merge([tensor(n, (14, 4, 64), "F32") for n in (1, 2, 3)],
                  [tensor(n, (2, 7, 4), "F32", (33, 1, 8)) for n in (4, 5, 6)], tensor(7, (14, 4, 64), "E4M3FNUZ"),
                  lse=tensor(8, (2, 7, 4), "F32", (37, 1, 9)), sink_logits=floats(9, 4), o_scale=floats(10, 4),
                  infinity_is_empty=True, stream=STREAM)


def merge_strides():
    CONTEXT.merge(tensor(1, (2, 12, 5, 96), "BF16"), tensor(2, (2, 12, 5), "F32"), tensor(3, (12, 5, 96), "BF16"),
                  lse_base=Lse.LOG2, stream=STREAM)


def cache_references():
    def pages(n):
        return tensor(n, (6, 4, 1, 8), "F16", place="host")

    def rows(n, count):
        return tensor(n, (count, 1, 8), "F16", place="host")

    def integers(n, *shape, size=4):
        return tensor(n, shape, size, place="host")

    sluice.reference_append(rows(7, 3), rows(8, 3), pages(1), pages(2), slots=integers(9, 3, size=8))
    sluice.reference_copy(pages(1), pages(2), pages(3), pages(4), pairs=integers(10, 2, 2))
    sluice.reference_gather(pages(1), pages(2), rows(5, 13), rows(6, 13), page_table=integers(11, 1, 5),
                            kv_lengths=integers(12, 1), out_starts=integers(13, 2))


def main():
    for call in (dense, ragged_causal_lse, paged_fp8, cascade, mla_decode, windows, spans_and_bits, bias_and_alibi, u4_groups,
                 packed_pages, attention_reference, append_slots, append_starts, copy_pairs, gather, merge_lists,
                 merge_strides, cache_references):
        with open(os.environ["SLUICE_RECORD"], "a", encoding="utf-8") as file:
            file.write(f"call {call.__name__}\n")
        call()


if __name__ == "__main__":
    main()
