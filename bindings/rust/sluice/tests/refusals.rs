//! Errors of the library and of the crate, and that they name the member.

mod common;

use common::{emulator, target};
use sluice::{
    reference, reference_append, reference_copy, reference_gather, Append, Array, Attention, Bounds, Call,
    Code, Dtype, Error, Gather, Host, Keys, Kv, KvFormat, Launch, Layout, Mask, Numbers, PageCopy,
    PageTableKind, Pages, Place, Prefixes, Result, RotaryStyle, Rotation, Rows, Tensor, TensorMut, F16,
};

fn check<T: std::fmt::Debug>(result: Result<T>, code: Code, field: &str, part: &str) {
    let error: Error = result.expect_err(field);
    assert_eq!((error.code, error.field.as_str()), (code, field), "{error}");
    assert!(error.message.contains(part), "'{part}' is missing in: {error}");
}

fn base() -> Attention {
    Attention::new(Dtype::F32, 2, KvFormat::new(Dtype::F32, 1, 8))
}

#[test]
fn plans() {
    let (context, kv) = (target(), base().kv);
    let refused = |attention: Attention, code, field, part| {
        check(context.query_support(&attention), code, field, part);
        check(context.plan(&attention), code, field, part);
    };
    let f16 = Attention::new(Dtype::F16, 4, KvFormat::new(Dtype::F16, 2, 64));
    refused(Attention { q_heads: 3, ..f16 }, Code::InvalidArgument, "q_heads", "3");
    refused(
        Attention { kv: KvFormat { head_dim_qk: 65, ..f16.kv }, ..f16 },
        Code::Unsupported,
        "kv.head_dim_qk",
        "65",
    );
    let sinks = Mask { sink_tokens: 4, ..Mask::default() };
    refused(Attention { mask: Some(sinks), ..f16 }, Code::InvalidArgument, "mask.sink_tokens", "4");
    let large = Attention { bounds: Bounds { kv_len: 1 << 31, ..Bounds::default() }, kv, ..f16 };
    refused(large, Code::InvalidArgument, "bounds.kv_len", "2147483648");
}

#[repr(align(16))]
struct Aligned([f32; 64]);

static NUMBERS: Aligned = Aligned([1.0; 64]);

/// The error of a call on the host with two sequences of 1 row and 2 keys, after `change`.
fn refused(attention: Attention, field: &str, part: &str, change: impl FnOnce(&mut Call<'static, Host>)) {
    let rows = |heads, len| Tensor::new(&NUMBERS.0, Layout::contiguous([2, len, heads, 8])).unwrap();
    let keys = Keys::new(Kv::new(attention.kv, rows(1, 2), Some(rows(1, 2))), 2);
    let o = Box::leak(Box::new([0f32; 32]));
    let o = TensorMut::new(o, Layout::contiguous([2, 1, 2, 8])).unwrap();
    let mut call = Call::new(2, rows(2, 1), 1, keys, o);
    change(&mut call);
    check(reference(&attention, &mut call), Code::InvalidArgument, field, part);
}

#[test]
fn calls_with_wrong_types_or_extents() {
    const LESS: [i32; 1] = [0];
    const BYTES: [u8; 64] = [0; 64];
    let less = || Some(Array::new(&LESS));
    let is = |field: &str, part: &str, change: &dyn Fn(&mut Call<'static, Host>)| {
        refused(base(), field, part, change)
    };
    is("batch", "2147483648", &|call| {
        (call.batch, call.rows, call.keys.rows) = (1 << 31, 0.into(), 0.into());
        let nothing =
            |heads| Tensor::new(&NUMBERS.0, Layout::strided([1 << 31, 0, heads, 8], [0; 4])).unwrap();
        (call.q, call.keys.kv.k, call.keys.kv.v) = (nothing(2), nothing(1), Some(nothing(1)));
        call.o = TensorMut::new(&mut [0f32; 0], Layout::strided([1 << 31, 0, 2, 8], [0; 4])).unwrap();
    });
    is("q.shape[0]", "is 2; for this call it must be at least 3", &|call| call.batch = 3);
    is("q.shape[1]", "must be at least 9", &|call| call.rows = 9.into());
    is("keys[0].kv.k.shape[1]", "must be at least 9", &|call| call.keys.rows = 9.into());
    is("rows.max_len", "no bound", &|call| call.rows = Rows::default());
    is("keys[0].kv.v", "is missing", &|call| call.keys.kv.v = None);
    is("keys[0].kv.format", "not the format", &|call| call.keys.kv.format.heads = 2);
    is("q.dtype", "holds bytes; the call needs F32", &|call| {
        call.q = Tensor::new(&BYTES, Layout::contiguous([2, 1, 2, 8])).unwrap()
    });
    is("rows.lengths", "has 1 elements; this call needs 2", &|call| call.rows.lengths = less());
    is("q.shape[0]", "must be 1", &|call| call.rows.starts = less());
    is("keys[0].rows.lengths", "needs 2", &|call| call.keys.rows.lengths = less());
    let mask = |diagonals, causal| sluice::MaskArgs { diagonals, causal, ..Default::default() };
    is("mask.diagonals", "needs 2", &|call| call.mask = Some(mask(less(), None)));
    is("mask.causal", "needs 2", &|call| call.mask = Some(mask(None, less())));
    let sinks = Some(Array::new(&NUMBERS.0[..1]));
    is("scores.sinks", "needs 2", &|call| {
        call.scores = Some(sluice::ScoresArgs { sinks, ..Default::default() })
    });
    // The library's own.
    is("scale", "scale", &|call| call.scale = Some(f32::NAN));
}

/// A call, an append, a copy and a gather of two pages of 2 tokens, whose contents are not what they should be.
#[test]
fn contents_that_lead_out_of_memory() -> Result<()> {
    let kv = base().kv.paged(2, PageTableKind::Block);
    let attention = Attention { kv, ..base() };
    let (pages, new) = (Layout::contiguous([2, 2, 1, 8]), Layout::rows([1, 1, 8]));
    let view = |layout| Tensor::new(&NUMBERS.0, layout);
    let cache = || Ok::<_, Error>(Kv::new(kv, view(pages)?, Some(view(pages)?)));
    let attend = |table: &[i32], lengths: &[i32]| {
        let mut o = [0f32; 16];
        let rows = Rows { max_len: Some(4), ..Rows::of_lengths(Array::new(lengths)) };
        let keys = Keys::paged(cache()?, rows, Pages::block(Array::new(table), 2));
        let row = Layout::contiguous([1, 1, 2, 8]);
        reference(&attention, &mut Call::new(1, view(row)?, 1, keys, TensorMut::new(&mut o, row)?))
    };
    let invalid = Code::InvalidArgument;
    attend(&[0, 1], &[4])?;
    check(attend(&[0], &[4]), invalid, "keys[0].pages.table", "has 1 entries; this call needs 2");
    check(attend(&[0, 2], &[4]), invalid, "keys[0].pages.table[1]", "2");
    check(attend(&[0, 1], &[5]), invalid, "keys[0].pages.table", "needs 3");

    let append = |place: Place<Host>, rotation: Option<Rotation<Host>>| {
        let (mut k, mut v, rows) = (vec![F16(0); 32], vec![F16(0); 32], vec![F16(0); 8]);
        let kv = KvFormat::new(Dtype::F16, 1, 8).paged(2, PageTableKind::Block);
        let target = Kv::new(kv, TensorMut::new(&mut k, pages)?, Some(TensorMut::new(&mut v, pages)?));
        let rows = Tensor::new(&rows, new)?;
        reference_append(&mut Append { rotation, ..Append::new(rows, Some(rows), target, place) })
    };
    let at_end = |lengths, table| Place::Sequences {
        batch: 1,
        starts: Array::new(&[0, 1]),
        lengths: Array::new(lengths),
        pages: Pages::block(Array::new(table), 2),
    };
    check(append(Place::Slots(Array::new(&[])), None), invalid, "slots", "needs 1");
    check(append(Place::Slots(Array::new(&[4])), None), invalid, "slots[0]", "4");
    check(append(at_end(&[3], &[0]), None), invalid, "pages.table", "needs 2");
    let cosines = Numbers::F32(Array::new(&NUMBERS.0[..16]));
    let rotation = Rotation { style: RotaryStyle::Halves, dim: 8, first: 0, cosines, sines: None, stride: 8 };
    check(append(at_end(&[3], &[0, 1]), Some(rotation)), invalid, "lengths[0]", "position 2");

    let copy = |pairs: &[i32]| {
        let (mut k, mut v) = (vec![0f32; 32], vec![0f32; 32]);
        let target = Kv::new(kv, TensorMut::new(&mut k, pages)?, Some(TensorMut::new(&mut v, pages)?));
        reference_copy(&mut PageCopy {
            source: Some(cache()?),
            target,
            pairs: Some(Array::new(pairs).into()),
        })?;
        Ok((k, v))
    };
    assert_eq!(copy(&[1, 0])?.0[..16], NUMBERS.0[..16]);
    assert_eq!(copy(&[1, 0])?.1[16..], [0f32; 16]);
    check(copy(&[0, 2]), invalid, "pairs[1]", "2");

    let gather = |table: &[i32], lengths: &[i32]| {
        let (mut k, mut v) = (vec![0f32; 24], vec![0f32; 24]);
        let rows = Layout::rows([3, 1, 8]);
        let format = base().kv;
        let target = Kv::new(format, TensorMut::new(&mut k, rows)?, Some(TensorMut::new(&mut v, rows)?));
        reference_gather(&mut Gather {
            source: cache()?,
            pages: Pages::block(Array::new(table), 2),
            batch: 1,
            lengths: Array::new(lengths),
            first_keys: None,
            target,
            starts: Array::new(&[0, 3]),
        })?;
        Ok(k)
    };
    assert_eq!(gather(&[1, 0], &[3])?, [1.0; 24]);
    check(gather(&[1], &[3]), invalid, "pages.table", "needs 2");
    Ok(())
}

/// Two rows with a key each; the second one also sees two keys of a group.
#[test]
fn groups_see_their_keys_and_short_arrays_are_refused() -> Result<()> {
    const Q: [f32; 2] = [1.0, 2.0];
    const K: [f32; 4] = [0.1, 0.2, 0.3, 0.4];
    const V: [f32; 4] = [1.0, 2.0, 3.0, 4.0];
    let kv = KvFormat::new(Dtype::F32, 1, 1).paged(1, PageTableKind::Block);
    let bounds = Bounds { groups: 1, group_keys: 2, q_rows: 2, ..Bounds::default() };
    let attention = Attention { prefixes: true, bounds, ..Attention::new(Dtype::F32, 1, kv) };
    let attend = |pages: &[i32], lengths: &[i32], starts: &[i32]| {
        let (rows, cache) = (Layout::contiguous([2, 1, 1, 1]), Layout::contiguous([4, 1, 1, 1]));
        let mut o = [0.0; 2];
        let kv = Kv::new(kv, Tensor::new(&K, cache)?, Some(Tensor::new(&V, cache)?));
        let own = Rows { max_len: Some(1), ..Rows::of_lengths(Array::new(&[1, 1])) };
        let keys = Keys::paged(kv, own, Pages::block(Array::new(&[0, 1]), 1));
        let mut call = Call::new(2, Tensor::new(&Q, rows)?, 1, keys, TensorMut::new(&mut o, rows)?);
        let group_rows = Rows::of_lengths(Array::new(lengths));
        let keys = Keys::paged(kv, group_rows, Pages::block(Array::new(pages), 2));
        call.prefixes = Some(Prefixes { groups: 1, group_starts: Array::new(starts), keys });
        reference(&attention, &mut call)?;
        Ok(o)
    };
    let o = attend(&[2, 3], &[2], &[1, 2])?;
    let weights = [1, 2, 3].map(|key| (Q[1] * K[key]).exp());
    let weighted: f32 = [1, 2, 3].iter().zip(weights).map(|(key, weight)| weight * V[*key]).sum();
    assert!(o[0] == 1.0 && (o[1] - weighted / weights.iter().sum::<f32>()).abs() < 1e-6, "{o:?}");
    let refused = |result: Result<[f32; 2]>, field| check(result, Code::InvalidArgument, field, "");
    refused(attend(&[2], &[2], &[1, 2]), "keys[1].pages.table");
    refused(attend(&[2, 4], &[2], &[1, 2]), "keys[1].pages.table[1]");
    refused(attend(&[2, 3], &[], &[1, 2]), "keys[1].rows.lengths");
    refused(attend(&[2, 3], &[2], &[1]), "keys[1].group_starts");
    refused(attend(&[2, 3], &[2], &[1, 3]), "keys[1].group_starts[1]");
    Ok(())
}

#[test]
fn runs_are_refused_before_anything_is_enqueued() -> Result<()> {
    let attention = Attention::new(Dtype::F16, 1, KvFormat::new(Dtype::F16, 1, 64));
    let plan = emulator().plan(&attention)?;
    let row = Layout::contiguous([1, 1, 1, 64]);
    // SAFETY: it is refused, so the memory is never accessed.
    let (view, o) =
        unsafe { (Tensor::from_raw(8 as *const F16, row)?, TensorMut::from_raw(8 as *mut F16, row)?) };
    let call = Call::new(1, view, 1, Keys::new(Kv::new(attention.kv, view, Some(view)), 1), o);
    // SAFETY: as above.
    check(unsafe { plan.run(&call, &Launch::default()) }, Code::InvalidArgument, "q.data", "16");
    assert_eq!((plan.counters().runs, plan.counters().refused), (0, 1));
    Ok(())
}
