//! Attention.

use crate::{array, at, contiguous, heads_first, host, kv, launch, tensor, tensor_mut, Calls};
use sluice::*;

pub fn calls() -> Calls {
    vec![
        ("dense", dense),
        ("ragged_causal_lse", ragged_causal_lse),
        ("paged_fp8", paged_fp8),
        ("cascade", cascade),
        ("mla_decode", mla_decode),
        ("windows", windows),
        ("spans_and_bits", spans_and_bits),
        ("bias_and_alibi", bias_and_alibi),
        ("u4_groups", u4_groups),
        ("packed_pages", packed_pages),
        ("attention_reference", attention_reference),
    ]
}

fn run(context: &Context, attention: &Attention, call: &Call, launch: &Launch) {
    // SAFETY: nothing is computed.
    unsafe { context.plan(attention).unwrap().run(call, launch) }.unwrap();
}

fn bounds(batch: usize, q_len: usize, kv_len: usize) -> Bounds {
    Bounds { batch, q_len, kv_len, ..Bounds::default() }
}

fn of_lengths(n: usize, count: usize, max_len: usize) -> Rows<'static> {
    Rows { max_len: Some(max_len), ..Rows::of_lengths(array(n, count)) }
}

fn starting(n: usize, count: usize, max_len: usize) -> Rows<'static> {
    Rows { max_len: Some(max_len), ..Rows::starting(array(n, count + 1)) }
}

fn dense(context: &Context) {
    let format = KvFormat::new(Dtype::F16, 2, 128);
    let attention = Attention {
        bounds: bounds(3, 96, 112),
        workspace_ceiling_bytes: 1 << 20,
        ..Attention::new(Dtype::F16, 8, format)
    };
    let kv = kv::<F16>(format, (3, contiguous(3, 80, 2, 128)), (4, heads_first(3, 80, 2, 128)));
    let rows = contiguous(3, 64, 8, 128);
    let mut call = Call::new(3, tensor::<F16>(1, rows), 64, Keys::new(kv, 80), tensor_mut::<F16>(2, rows));
    call.scale = Some(0.125);
    context.query_support(&attention).unwrap();
    context.preload(&attention).unwrap();
    // SAFETY: the memory is never accessed.
    let workspace = unsafe { Workspace::from_raw(at(901), 4096) };
    run(context, &attention, &call, &Launch { workspace: Some(&workspace), ..launch() });
}

fn ragged_causal_lse(context: &Context) {
    let format = KvFormat::new(Dtype::Bf16, 2, 64);
    let attention = Attention {
        ragged: true,
        lse: Some(Lse::Ln),
        mask: Some(Mask::causal()),
        bounds: bounds(5, 33, 47),
        ..Attention::new(Dtype::Bf16, 4, format)
    };
    let (rows, keys) = (Layout::rows([101, 4, 64]), Layout::rows([157, 2, 64]));
    let keys = Keys::new(kv::<Bf16>(format, (3, keys), (4, keys)), starting(5, 5, 46));
    let mut call =
        Call::new(5, tensor::<Bf16>(1, rows), starting(6, 5, 32), keys, tensor_mut::<Bf16>(2, rows));
    call.lse = Some(tensor_mut::<f32>(7, Layout::strided([1, 101, 4, 1], [0, 4, 1, 0])));
    run(context, &attention, &call, &launch());
}

fn paged_fp8(context: &Context) {
    let scaled = |dtype| Format::scaled(dtype, ScaleKind::PerHead);
    let format =
        KvFormat { v: Some(scaled(Dtype::E5m2Fnuz)), ..KvFormat::new(scaled(Dtype::E4m3Fnuz), 2, 128) };
    let format = format.paged(16, PageTableKind::Block);
    let attention = Attention {
        q: Format::scaled(Dtype::E4m3Fnuz, ScaleKind::PerTensor),
        o: scaled(Dtype::E4m3Fnuz),
        scores: Some(Scores { sinks: true, ..Scores::default() }),
        bounds: bounds(7, 1, 1024),
        ..Attention::new(Dtype::E4m3Fnuz, 16, format)
    };
    let k = tensor::<E4m3Fnuz>(3, contiguous(901, 16, 2, 128));
    let v = tensor::<E5m2Fnuz>(4, heads_first(901, 16, 2, 128));
    let [k_scales, v_scales] = [5, 6].map(|n| Some(Scales::Few(array(n, 2))));
    let kv = Kv { k_scales, v_scales, ..Kv::new(format, k, Some(v)) };
    let keys = Keys::paged(kv, of_lengths(8, 7, 1000), Pages::block(array::<i32>(7, 7 * 64), 64));
    let rows = contiguous(7, 1, 16, 128);
    let mut call = Call::new(7, tensor::<E4m3Fnuz>(1, rows), 1, keys, tensor_mut::<E4m3Fnuz>(2, rows));
    call.scores = Some(ScoresArgs { sinks: Some(array(9, 16)), ..ScoresArgs::default() });
    call.q_scale = Some(array(10, 1));
    call.o_scale = Some(array(11, 16));
    run(context, &attention, &call, &launch());
}

fn cascade(context: &Context) {
    let format = KvFormat::new(Dtype::Bf16, 1, 128).paged(32, PageTableKind::Block);
    let attention = Attention {
        ragged: true,
        prefixes: true,
        scores: Some(Scores { soft_cap: 30.5, ..Scores::default() }),
        bounds: Bounds { groups: 2, group_keys: 256, q_rows: 54, ..bounds(6, 9, 512) },
        ..Attention::new(Dtype::Bf16, 4, format)
    };
    let pages = contiguous(77, 32, 1, 128);
    let kv = kv::<Bf16>(format, (3, pages), (4, pages));
    let own = Keys::paged(kv, of_lengths(6, 6, 500), Pages::block(array::<i32>(5, 6 * 16), 16));
    let shared = Keys::paged(kv, of_lengths(8, 2, 250), Pages::block(array::<i32>(7, 2 * 8), 8));
    let rows = Layout::rows([53, 4, 128]);
    let mut call =
        Call::new(6, tensor::<Bf16>(1, rows), starting(10, 6, 9), own, tensor_mut::<Bf16>(2, rows));
    call.prefixes = Some(Prefixes { groups: 2, group_starts: array(9, 3), keys: shared });
    run(context, &attention, &call, &launch());
}

fn mla_decode(context: &Context) {
    let pages = PageFormat { size: 64, table: PageTableKind::Csr, index_64: true };
    let format = KvFormat { pages: Some(pages), ..KvFormat::latent(Dtype::Bf16, 512, 64) };
    let attention = Attention {
        lse: Some(Lse::Log2),
        bounds: bounds(4, 1, 2048),
        ..Attention::new(Dtype::Bf16, 16, format)
    };
    let kv = Kv::new(format, tensor::<Bf16>(3, contiguous(333, 64, 1, 576)), None);
    let pages = Pages::csr(array::<i64>(5, 100), array(7, 5));
    let (q, o) = (contiguous(4, 1, 16, 576), contiguous(4, 1, 16, 512));
    let keys = Keys::paged(kv, of_lengths(6, 4, 2000), pages);
    let mut call = Call::new(4, tensor::<Bf16>(1, q), 1, keys, tensor_mut::<Bf16>(2, o));
    call.lse = Some(tensor_mut::<f32>(8, Layout::strided([4, 1, 16, 1], [16, 16, 1, 0])));
    run(context, &attention, &call, &launch());
}

fn windows(context: &Context) {
    let format = KvFormat::new(Dtype::F16, 2, 64).paged(16, PageTableKind::Block);
    let mask = Mask {
        alignment: MaskAlignment::TopLeft,
        window_left: Some(100),
        window_right: Some(7),
        sink_tokens: 4,
        missing_pages: true,
        ..Mask::default()
    };
    let attention = Attention {
        batch_invariant: true,
        mask: Some(mask),
        bounds: bounds(5, 40, 320),
        ..Attention::new(Dtype::F16, 4, format)
    };
    let pages = contiguous(210, 16, 2, 64);
    let kv = kv::<F16>(format, (3, pages), (4, pages));
    let table = Pages { head_stride: 20, ..Pages::block(array::<i32>(5, 5 * 40), 40) };
    let keys = Keys::paged(kv, of_lengths(6, 5, 310), table);
    let rows = contiguous(5, 33, 4, 64);
    let call = Call::new(5, tensor::<F16>(1, rows), of_lengths(7, 5, 33), keys, tensor_mut::<F16>(2, rows));
    run(context, &attention, &call, &launch());
}

fn spans_and_bits(context: &Context) {
    let format = KvFormat::new(Dtype::F16, 1, 64);
    let mask = Mask {
        causal: Causal::BySequence,
        bits: Some(MaskBits::OfNew),
        spans: true,
        alignment: MaskAlignment::GivenDiagonal,
        ..Mask::default()
    };
    let attention = Attention { mask: Some(mask), ..Attention::new(Dtype::F16, 2, format) };
    let keys = contiguous(3, 48, 1, 64);
    let keys = Keys::new(kv::<F16>(format, (3, keys), (4, keys)), 48);
    let rows = contiguous(3, 24, 2, 64);
    let mut call = Call::new(3, tensor::<F16>(1, rows), 24, keys, tensor_mut::<F16>(2, rows));
    call.mask = Some(MaskArgs {
        bits: Some(tensor::<u8>(5, Layout::strided([3, 2, 24, 3], [72, 0, 3, 1]))),
        spans: Some(array(6, 3 * 5 * 2)),
        span_count: 5,
        diagonals: Some(array(7, 3)),
        causal: Some(array(8, 3)),
    });
    run(context, &attention, &call, &launch());
}

fn bias_and_alibi(context: &Context) {
    let format = KvFormat::new(Dtype::F16, 4, 100);
    let scores = Scores { bias: Some(Dtype::F32), bias_scale: true, alibi: true, ..Scores::default() };
    let attention =
        Attention { padded_rows: true, scores: Some(scores), ..Attention::new(Dtype::F16, 4, format) };
    let (rows, keys) = (contiguous(2, 10, 4, 104), contiguous(2, 20, 4, 104));
    let keys = Keys::new(kv::<F16>(format, (3, keys), (4, keys)), 20);
    let mut call = Call::new(2, tensor::<F16>(1, rows), 10, keys, tensor_mut::<F16>(2, rows));
    call.scores = Some(ScoresArgs {
        bias: Some(tensor::<f32>(5, contiguous(2, 4, 10, 20))),
        bias_scale: Some(array(6, 5 + 4)),
        bias_scale_stride: 5,
        alibi_slopes: Some(array(7, 6 + 4)),
        alibi_stride: 6,
        sinks: None,
    });
    run(context, &attention, &call, &launch());
}

fn u4_groups(context: &Context) {
    let group =
        Format { scale_group: 32, zero_points: true, ..Format::scaled(Dtype::U4, ScaleKind::PerGroup) };
    let format = KvFormat::new(group, 2, 128).paged(16, PageTableKind::Block);
    let attention = Attention { o: Dtype::Bf16.into(), ..Attention::new(Dtype::F16, 8, format) };
    let scales = |n, zeros| {
        let layout = contiguous(64, 16, 2, 4);
        Some(Scales::Many { scales: tensor::<F16>(n, layout), zeros: Some(tensor::<F16>(zeros, layout)) })
    };
    let pages = contiguous(64, 16, 2, 128);
    let kv =
        Kv { k_scales: scales(5, 7), v_scales: scales(6, 8), ..kv::<U4Pair>(format, (3, pages), (4, pages)) };
    let table = Pages { table: array::<i32>(9, 13).into(), place: PagePlace::Shared, head_stride: 0 };
    let keys = Keys::paged(kv, of_lengths(10, 2, 200), table);
    let rows = contiguous(2, 1, 8, 128);
    let call = Call::new(2, tensor::<F16>(1, rows), 1, keys, tensor_mut::<Bf16>(2, rows));
    run(context, &attention, &call, &launch());
}

fn packed_pages(context: &Context) {
    let packed = |pack| Format { pack, ..Format::scaled(Dtype::I8, ScaleKind::PerPage) };
    let format = KvFormat { v: Some(packed(PACK_ALL)), ..KvFormat::new(packed(16), 2, 128) };
    let format = format.paged(32, PageTableKind::Block);
    let attention = Attention::new(Dtype::Bf16, 2, format);
    let k = Layout::strided([65, 32, 2, 128], [8192, 16, 4096, 512]).packed(16);
    let v = Layout::strided([65, 32, 2, 128], [8192, 1, 4096, 32]);
    let [k_scales, v_scales] = [5, 6].map(|n| {
        let scales = tensor::<f32>(n, Layout::strided([65, 1, 2, 1], [2, 0, 1, 0]));
        Some(Scales::Many { scales, zeros: None })
    });
    let kv = Kv { k_scales, v_scales, ..kv::<i8>(format, (3, k), (4, v)) };
    let keys = Keys::paged(kv, of_lengths(8, 9, 333), Pages::block(array::<i32>(7, 9 * 11), 11));
    let rows = contiguous(9, 1, 2, 128);
    let call = Call::new(9, tensor::<Bf16>(1, rows), 1, keys, tensor_mut::<Bf16>(2, rows));
    run(context, &attention, &call, &launch());
}

fn attention_reference(_: &Context) {
    let format = KvFormat::new(Dtype::F32, 1, 8);
    let attention = Attention::new(Dtype::F32, 3, format);
    let (rows, keys) = (contiguous(2, 4, 3, 8), contiguous(2, 5, 1, 8));
    let kv = Kv::new(format, host::tensor::<f32>(3, keys), Some(host::tensor::<f32>(4, keys)));
    let (q, o) = (host::tensor::<f32>(1, rows), host::tensor_mut::<f32>(2, rows));
    let mut call = Call::new(2, q, 4, Keys::new(kv, 5), o);
    call.scale = Some(0.0625);
    reference(&attention, &mut call).unwrap();
}
