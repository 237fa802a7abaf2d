//! What this crate decides itself reaches its member of the C struct: counts of rows and pages, the plan's bound, and
//! which of several forms an option has. That each option reaches its own member, `tests/recorded` compares with C.
//! Views are of memory that is never accessed, at addresses that the tests look for.

use crate::*;
use sluice_sys as sys;

fn array<T: Plain>(address: usize, len: usize) -> Array<'static, T, Device> {
    // SAFETY: the memory is never accessed.
    unsafe { Array::from_raw(address as *const T, len) }
}

fn tensor<T: Element>(address: usize, layout: Layout) -> Tensor<'static, Device> {
    // SAFETY: as above.
    unsafe { Tensor::from_raw(address as *const T, layout) }.unwrap()
}

fn tensor_mut<T: Element>(address: usize, layout: Layout) -> TensorMut<'static, Device> {
    // SAFETY: as above.
    unsafe { TensorMut::from_raw(address as *mut T, layout) }.unwrap()
}

fn shape(shape: [usize; 4]) -> Layout {
    Layout::contiguous(shape)
}

/// A struct that another one points to.
fn at<T: Copy>(pointer: *const T) -> T {
    // SAFETY: tests look at structs while these exist.
    unsafe { *pointer }
}

fn addresses<const N: usize>(tensors: [sys::sluice_tensor; N]) -> [usize; N] {
    tensors.map(|tensor| tensor.data as usize)
}

/// 4-bit pages of 16 tokens with scales per group and zero points.
fn groups() -> KvFormat {
    let group =
        Format { scale_group: 32, zero_points: true, ..Format::scaled(Dtype::U4, ScaleKind::PerGroup) };
    KvFormat { head_dim_v: 32, ..KvFormat::new(group, 2, 64).paged(16, PageTableKind::Block) }
}

/// Scales at `at` and zeros after it, of so many pages.
fn group_scales(at: usize, pages: usize, groups: usize) -> Option<Scales<'static>> {
    let layout = shape([pages, 16, 2, groups]);
    Some(Scales::Many { scales: tensor::<F16>(at, layout), zeros: Some(tensor::<F16>(at + 1, layout)) })
}

fn cache(at: usize, pages: usize) -> Kv<'static> {
    let (k, v) =
        (tensor::<U4Pair>(at, shape([pages, 16, 2, 64])), tensor::<U4Pair>(at + 1, shape([9, 16, 2, 32])));
    let (k_scales, v_scales) = (group_scales(at + 2, 10, 2), group_scales(at + 4, 11, 1));
    Kv { k_scales, v_scales, ..Kv::new(groups(), k, Some(v)) }
}

fn cache_mut(at: usize, pages: usize) -> KvMut<'static> {
    let many = |at, groups| {
        let layout = shape([10, 16, 2, groups]);
        let (scales, zeros) = (tensor_mut::<F16>(at, layout), Some(tensor_mut::<F16>(at + 1, layout)));
        Some(Scales::Many { scales, zeros })
    };
    let k = tensor_mut::<U4Pair>(at, shape([pages, 16, 2, 64]));
    let v = tensor_mut::<U4Pair>(at + 1, shape([9, 16, 2, 32]));
    KvMut { k_scales: many(at + 2, 2), v_scales: many(at + 4, 1), ..Kv::new(groups(), k, Some(v)) }
}

/// The addresses of K, V and their scales and zeros, and the number of pages.
fn check_cache(kv: *const sys::sluice_kv, at_: usize, pages: i64) {
    let sys::sluice_kv { struct_size: _, reserved: _, format, k, v, scales, page_count } = at(kv);
    let scales = at(scales);
    let all = [k, v, scales.k, scales.k_zeros, scales.v, scales.v_zeros];
    assert_eq!(addresses(all), [0, 1, 2, 3, 4, 5].map(|n| at_ + n));
    assert_eq!((page_count, at(format).page_size, at(format).k.scale_group), (pages, 16, 32));
    assert_eq!(
        (k.stride, scales.k.stride, scales.v.stride),
        ([2048, 128, 64, 1], [64, 4, 2, 1], [32, 2, 1, 1])
    );
}

fn check_pages(raw: sys::sluice_pages, expected: (usize, usize, i64, i64)) {
    let sys::sluice_pages { table, starts, stride, head_stride } = raw;
    assert_eq!((table as usize, starts as usize, stride, head_stride), expected);
}

#[test]
fn the_plans_bound_is_told() {
    let kv = KvFormat::new(Dtype::F16, 2, 64);
    let bounds = Bounds { q_len: 5, kv_len: 20, ..Bounds::default() };
    let attention = Attention { bounds, ..Attention::new(Dtype::F16, 4, kv) };
    let keys = tensor::<F16>(1, shape([3, 20, 2, 64]));
    let keys = Keys::new(Kv::new(kv, keys, Some(keys)), Rows::default());
    let (q, o) = (tensor::<F16>(2, shape([3, 5, 4, 64])), tensor_mut::<F16>(3, shape([3, 5, 4, 64])));
    let check = |raw: &sys::sluice_attention_args| {
        assert_eq!([raw.rows.max_len, at(raw.keys).rows.max_len], [sys::SLUICE_PLAN_BOUND; 2]);
        Ok(())
    };
    Call::new(3, q, Rows::default(), keys, o).with_raw(&attention, check).unwrap();
}

/// The tensor with the fewest rows says how many there are.
#[test]
fn starts_come_with_the_number_of_rows() {
    let kv = KvFormat { head_dim_v: 32, ..KvFormat::new(Dtype::F16, 2, 64) };
    let attention = Attention { ragged: true, ..Attention::new(Dtype::F16, 4, kv) };
    let total = |[q, o, lse]: [usize; 3], [k, v]: [usize; 2]| {
        let keys = Keys::new(
            Kv::new(
                kv,
                tensor::<F16>(1, Layout::rows([k, 2, 64])),
                Some(tensor::<F16>(2, Layout::rows([v, 2, 32]))),
            ),
            Rows { max_len: Some(20), ..Rows::starting(array(3, 4)) },
        );
        let rows = Rows { max_len: Some(20), ..Rows::starting(array(4, 4)) };
        let o = tensor_mut::<F16>(5, Layout::rows([o, 4, 32]));
        let mut call = Call::new(3, tensor::<F16>(6, Layout::rows([q, 4, 64])), rows, keys, o);
        call.lse = Some(tensor_mut::<f32>(7, Layout::rows([lse, 4, 1])));
        call.with_raw(&attention, |raw| {
            assert_eq!((raw.rows.starts as usize, at(raw.keys).rows.starts as usize), (4, 3));
            assert!(raw.mask.is_null() && raw.scores.is_null() && raw.scale.is_null() && raw.key_sets == 1);
            Ok((raw.rows.total, at(raw.keys).rows.total))
        })
    };
    assert_eq!(total([7, 8, 9], [5, 6]), Ok((7, 5)));
    assert_eq!(total([8, 7, 9], [6, 5]), Ok((7, 5)));
    assert_eq!(total([9, 8, 7], [6, 6]), Ok((7, 6)));
    assert_eq!(total([0, 1, 1], [6, 6]).unwrap_err().field, "rows.starts");
    assert_eq!(total([1, 1, 1], [6, 0]).unwrap_err().field, "keys[0].rows.starts");
}

#[test]
fn every_kind_of_scales_arrives() {
    let scaled = |kind, scales| {
        let format =
            KvFormat::new(Format::scaled(Dtype::E4m3Fnuz, kind), 2, 64).paged(16, PageTableKind::Block);
        let rows = tensor::<E4m3Fnuz>(1, shape([9, 16, 2, 64]));
        let kv = Kv { k_scales: Some(scales), v_scales: None, ..Kv::new(format, rows, Some(rows)) };
        let place = [tensor::Extent::AtLeast(1), tensor::Extent::Exactly(16)];
        let raw = kv.to_raw("kv", place, false).map(|mut raw| at(at(raw.linked()).scales).k);
        raw.map(|k| (k.data as usize, k.stride)).map_err(|error| error.field)
    };
    let many = |layout| Scales::Many { scales: tensor::<f32>(3, layout), zeros: None };
    assert_eq!(scaled(ScaleKind::PerTensor, Scales::Few(array(2, 1))), Ok((2, [0; 4])));
    assert_eq!(scaled(ScaleKind::PerHead, Scales::Few(array(2, 2))), Ok((2, [0; 4])));
    assert_eq!(scaled(ScaleKind::PerToken, many(shape([9, 16, 2, 1]))), Ok((3, [32, 2, 1, 0])));
    assert_eq!(scaled(ScaleKind::PerPage, many(shape([9, 1, 2, 1]))), Ok((3, [2, 0, 1, 0])));
    let refused = |kind, scales, field: &str| assert_eq!(scaled(kind, scales), Err(field.to_string()));
    refused(ScaleKind::PerHead, Scales::Few(array(2, 1)), "kv.scales.k");
    refused(ScaleKind::PerHead, many(shape([9, 16, 2, 1])), "kv.scales.k");
    refused(ScaleKind::PerToken, Scales::Few(array(2, 2)), "kv.scales.k");
    refused(ScaleKind::PerToken, many(shape([9, 15, 2, 1])), "kv.scales.k.shape[1]");
    refused(ScaleKind::PerPage, many(shape([9, 16, 2, 1])), "kv.scales.k.shape[1]");
}

#[test]
fn an_append_to_slots_has_no_more_than_it_needs() {
    let new = |at, dim| tensor::<F16>(at, Layout::rows([7, 2, dim]));
    let place = Place::Slots(array(15, 7));
    let mut append = Append::new(new(1, 64), Some(new(2, 32)), cache_mut(16, 9), place);
    append.q = Some(Queries {
        rows: QueryRows::InPlace(tensor_mut::<F16>(8, Layout::rows([7, 4, 64]))),
        norm: None,
    });
    let check = |raw: &sys::sluice_append_args| {
        assert_eq!((raw.slots as usize, raw.batch, raw.starts as usize), (15, 0, 0));
        check_pages(raw.pages, (0, 0, 0, 0));
        assert!(raw.rotation.is_null() && raw.k_norm.is_null() && raw.positions.is_null());
        let q = at(raw.q);
        assert_eq!((addresses([q.q, q.out, q.tail]), q.norm as usize), ([8, 8, 0], 0));
        Ok(())
    };
    append.with_raw(check).unwrap();
}

#[test]
fn copies_and_gathers_know_their_pages_and_rows() {
    let copy = PageCopy {
        source: Some(cache(16, 8)),
        target: cache_mut(32, 12),
        pairs: Some(array::<i64>(1, 7).into()),
    };
    let check = |raw: &sys::sluice_copy_args| {
        let sys::sluice_copy_args { struct_size: _, pairs_64, source, target, pairs, pair_count } = *raw;
        check_cache(source, 16, 8);
        check_cache(target, 32, 8);
        assert_eq!((pairs_64, pairs as usize, pair_count), (1, 1, 3));
        Ok(())
    };
    copy.with_raw(check).unwrap();
    let within = |pairs| PageCopy { source: None, target: cache_mut(32, 12), pairs };
    let same =
        |raw: &sys::sluice_copy_args| Ok((raw.source == raw.target, raw.pairs.is_null(), raw.pair_count));
    assert_eq!(within(Some(array::<i32>(1, 0).into())).with_raw(same), Ok((true, false, 0)));
    assert_eq!(within(None).with_raw(same), Ok((true, true, 0)));

    let mut gather = Gather {
        source: cache(16, 8),
        pages: Pages::block(array::<i32>(1, 6), 2),
        batch: 3,
        lengths: array(2, 3),
        first_keys: Some(array(3, 3)),
        target: cache_mut(32, 1),
        starts: array(4, 4),
    };
    let rows = |dim| Layout::rows([16, 2, dim]);
    gather.target.format.pages = None;
    gather.target.v = Some(tensor_mut::<U4Pair>(33, rows(32)));
    let layouts = [rows(2), rows(1)];
    for (scales, layout, at) in
        [(&mut gather.target.k_scales, layouts[0], 34), (&mut gather.target.v_scales, layouts[1], 36)]
    {
        let (one, zeros) = (tensor_mut::<F16>(at, layout), Some(tensor_mut::<F16>(at + 1, layout)));
        *scales = Some(Scales::Many { scales: one, zeros });
    }
    let check = |raw: &sys::sluice_gather_args| {
        let sys::sluice_gather_args {
            struct_size: _,
            batch,
            source,
            pages,
            lengths,
            first_keys,
            target,
            starts,
            tokens,
            reserved,
        } = *raw;
        check_cache(source, 16, 8);
        check_pages(pages, (1, 0, 2, 0));
        let (target, scales) = (at(target), at(at(target).scales));
        assert_eq!(addresses([target.k, target.v, scales.k, scales.v]), [32, 33, 34, 36]);
        assert_eq!((batch, tokens, reserved, target.page_count), (3, 16, 0, 0));
        assert_eq!([lengths, first_keys, starts].map(|a| a as usize), [2, 3, 4]);
        Ok(())
    };
    gather.with_raw(check).unwrap();
    gather.target.format.k = Format::scaled(Dtype::U4, ScaleKind::PerToken);
    assert_eq!(gather.with_raw(check).unwrap_err().field, "target.format.k.scale_kind");
}

#[test]
fn lists_of_parts_are_refused_with_other_strides_or_parts() {
    let part = |n| tensor::<f32>(n, shape([1, 6, 2, 64]));
    let lses = |n| tensor::<f32>(n, Layout::strided([3, 2, 2, 1], [8, 1, 3, 0]));
    let mut merge = Merge::new(part(1), lses(2), tensor_mut::<F16>(3, Layout::rows([6, 2, 64])));
    merge.lse = Some(tensor_mut::<f32>(4, Layout::strided([3, 2, 2, 1], [9, 1, 4, 0])));
    merge.others = vec![(part(5), lses(6)), (part(7), lses(8))];
    (merge.sequence_tokens, merge.infinity_is_empty) = (Some(2), true);
    let refused = |merge: &Merge| merge.with_raw(|_| Ok(())).unwrap_err().field;
    merge.others[1].1 = tensor::<f32>(8, Layout::strided([3, 2, 2, 1], [8, 2, 4, 0]));
    assert_eq!(refused(&merge), "others[1]");
    merge.others.clear();
    merge.sequence_tokens = Some(4);
    assert_eq!(refused(&merge), "sequence_tokens");
}
