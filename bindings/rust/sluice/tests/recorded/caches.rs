//! Cache operations and merges.

use crate::{array, at, contiguous, heads_first, host, kv, kv_mut, launch, tensor, tensor_mut, Calls};
use sluice::*;

pub fn calls() -> Calls {
    vec![
        ("append_slots", append_slots),
        ("append_starts", append_starts),
        ("copy_pairs", copy_pairs),
        ("gather", gather),
        ("merge_lists", merge_lists),
        ("merge_strides", merge_strides),
        ("cache_references", cache_references),
    ]
}

fn append_slots(context: &Context) {
    let format = KvFormat { head_dim_v: 128, ..KvFormat::new(Dtype::Bf16, 2, 192) };
    let format = format.paged(16, PageTableKind::Block);
    let kv = kv_mut::<Bf16>(format, (1, contiguous(99, 16, 2, 192)), (2, contiguous(99, 16, 2, 128)));
    let new = Layout::rows([40, 2, 128]);
    let mut append =
        Append::new(tensor::<Bf16>(3, new), Some(tensor::<Bf16>(4, new)), kv, Place::Slots(array(5, 40)));
    append.k_tail = Some(tensor::<Bf16>(6, Layout::strided([1, 40, 2, 64], [0, 64, 0, 1])));
    append.positions = Some(array(7, 40));
    append.rotation = Some(Rotation {
        style: RotaryStyle::Pairs,
        dim: 64,
        first: 128,
        cosines: Numbers::F32(array(8, 500 * 32)),
        sines: Some(Numbers::F32(array(9, 500 * 32))),
        stride: 32,
    });
    append.k_norm = Some(Norm { weights: Numbers::F32(array(10, 128)), epsilon: 1e-6 });
    append.q = Some(Queries {
        rows: QueryRows::Apart {
            rows: tensor::<Bf16>(12, Layout::rows([40, 8, 128])),
            out: tensor_mut::<Bf16>(13, Layout::rows([40, 8, 192])),
            tail: Some(tensor::<Bf16>(14, Layout::rows([40, 8, 64]))),
        },
        norm: Some(Norm { weights: Numbers::Bf16(array(11, 128)), epsilon: 1e-6 }),
    });
    let dependencies = [
        Dependency::on_event(RawEvent(at(901))),
        Dependency::on_stream(RawStream(at(903)), RawEvent(at(902))),
    ];
    let launch = Launch { dependencies: &dependencies, signal_event: Some(RawEvent(at(904))), ..launch() };
    // SAFETY: nothing is computed.
    unsafe { context.append(&append, &launch) }.unwrap();
}

fn append_starts(context: &Context) {
    let format = KvFormat::new(Format::scaled(Dtype::E4m3Fnuz, ScaleKind::PerToken), 2, 128);
    let format = format.paged(16, PageTableKind::Csr);
    let [k_scales, v_scales] = [3, 4].map(|n| {
        let scales = tensor_mut::<f32>(n, Layout::strided([98, 16, 2, 1], [32, 2, 1, 0]));
        Some(Scales::Many { scales, zeros: None })
    });
    let pages = contiguous(98, 16, 2, 128);
    let kv = Kv { k_scales, v_scales, ..kv_mut::<E4m3Fnuz>(format, (1, pages), (2, pages)) };
    let place = Place::Sequences {
        batch: 3,
        starts: array(10, 4),
        lengths: array(6, 3),
        pages: Pages::csr(array::<i32>(5, 60), array(7, 4)),
    };
    let new = Layout::rows([17, 2, 128]);
    let mut append = Append::new(tensor::<F16>(8, new), Some(tensor::<F16>(9, new)), kv, place);
    append.rotation = Some(Rotation {
        style: RotaryStyle::Halves,
        dim: 128,
        first: 0,
        cosines: Numbers::F16(array(11, 400 * 128)),
        sines: None,
        stride: 128,
    });
    // SAFETY: nothing is computed.
    unsafe { context.append(&append, &launch()) }.unwrap();
}

fn copy_pairs(context: &Context) {
    let format = KvFormat::new(Format::scaled(Dtype::I8, ScaleKind::PerPage), 2, 64);
    let format = format.paged(32, PageTableKind::Block);
    let layout = Layout::strided([50, 1, 2, 1], [2, 0, 1, 0]);
    let read = |n| Some(Scales::Many { scales: tensor::<f32>(n, layout), zeros: None });
    let written = |n| Some(Scales::Many { scales: tensor_mut::<f32>(n, layout), zeros: None });
    let (from, to) = (contiguous(50, 32, 2, 64), heads_first(50, 32, 2, 64));
    let source = Kv { k_scales: read(5), v_scales: read(6), ..kv::<i8>(format, (1, from), (2, from)) };
    let target = Kv { k_scales: written(7), v_scales: written(8), ..kv_mut::<i8>(format, (3, to), (4, to)) };
    let pairs = Some(PageNumbers::I64(array(9, 6 * 2)));
    // SAFETY: nothing is computed.
    unsafe { context.copy_pages(&PageCopy { source: Some(source), target, pairs }, &launch()) }.unwrap();
}

fn gather(context: &Context) {
    let pages = KvFormat::new(Format::scaled(Dtype::E4m3Fnuz, ScaleKind::PerTensor), 2, 64);
    let pages = pages.paged(16, PageTableKind::Block);
    let from = contiguous(51, 16, 2, 64);
    let [k_scales, v_scales] = [5, 6].map(|n| Some(Scales::Few(array(n, 1))));
    let source = Kv { k_scales, v_scales, ..kv::<E4m3Fnuz>(pages, (1, from), (2, from)) };
    let to = Layout::rows([76, 2, 64]);
    let gather = Gather {
        source,
        pages: Pages::block(array::<i32>(7, 3 * 9), 9),
        batch: 3,
        lengths: array(8, 3),
        first_keys: Some(array(9, 3)),
        target: kv_mut::<Bf16>(KvFormat::new(Dtype::Bf16, 2, 64), (3, to), (4, to)),
        starts: array(10, 4),
    };
    // SAFETY: nothing is computed.
    unsafe { context.gather(&gather, &launch()) }.unwrap();
}

fn merge_lists(context: &Context) {
    let rows = Layout::rows([14, 4, 64]);
    let part = |n| {
        let lse = Layout::strided([2, 7, 4, 1], [33, 1, 8, 0]);
        (tensor::<f32>(n, rows), tensor::<f32>(n + 3, lse))
    };
    let (first, lse) = part(1);
    let mut merge = Merge::new(first, lse, tensor_mut::<E4m3Fnuz>(7, rows));
    merge.others = vec![part(2), part(3)];
    merge.lse = Some(tensor_mut::<f32>(8, Layout::strided([2, 7, 4, 1], [37, 1, 9, 0])));
    merge.sequence_tokens = Some(7);
    merge.infinity_is_empty = true;
    merge.sinks = Some(array(9, 4));
    merge.o_scale = Some(array(10, 4));
    merge.o_scale_kind = ScaleKind::PerHead;
    // SAFETY: nothing is computed.
    unsafe { context.merge(&merge, &launch()) }.unwrap();
}

fn merge_strides(context: &Context) {
    let lse = Layout::strided([2, 12, 5, 1], [60, 5, 1, 0]);
    let o = tensor_mut::<Bf16>(3, Layout::rows([12, 5, 96]));
    let parts = tensor::<Bf16>(1, contiguous(2, 12, 5, 96));
    let merge = Merge { lse_base: Lse::Log2, ..Merge::new(parts, tensor::<f32>(2, lse), o) };
    // SAFETY: nothing is computed.
    unsafe { context.merge(&merge, &launch()) }.unwrap();
}

fn cache_references(_: &Context) {
    let rows = KvFormat::new(Dtype::F16, 1, 8);
    let paged = rows.paged(4, PageTableKind::Block);
    let written = |format, n, layout| {
        let v = host::tensor_mut::<F16>(n + 1, layout);
        KvMut::new(format, host::tensor_mut::<F16>(n, layout), Some(v))
    };
    let pages = contiguous(6, 4, 1, 8);
    let source = || Kv::new(paged, host::tensor::<F16>(1, pages), Some(host::tensor::<F16>(2, pages)));
    let new = |n| host::tensor::<F16>(n, Layout::rows([3, 1, 8]));
    let slots = Place::Slots(host::array(9, 3));
    reference_append(&mut Append::new(new(7), Some(new(8)), written(paged, 1, pages), slots)).unwrap();
    let pairs = Some(host::array::<i32>(10, 2 * 2).into());
    reference_copy(&mut PageCopy { source: Some(source()), target: written(paged, 3, pages), pairs })
        .unwrap();
    reference_gather(&mut Gather {
        source: source(),
        pages: Pages::block(host::array::<i32>(11, 5), 5),
        batch: 1,
        lengths: host::array(12, 1),
        first_keys: None,
        target: written(rows, 5, Layout::rows([13, 1, 8])),
        starts: host::array(13, 2),
    })
    .unwrap();
}
