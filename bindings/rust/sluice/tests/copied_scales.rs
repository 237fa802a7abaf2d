//! Copies and gathers between equal types take scales and zeros along: on the emulated device and on the host, against
//! what the header says of each number.

mod common;

use common::{emulator, Random, TensorViews, Views};
use sluice::hip::{Buffer, Hip};
use sluice::{
    reference_copy, reference_gather, AppendScale, Code, CopiedScales, Element, Gather, Launch, Layout,
    PageCopy, PageNumbers, PageTable, Result, U4Pair, F16,
};

const PAGES: usize = 3;
const PAGE_SIZE: usize = 4;
const HEADS: usize = 2;
const DIM: usize = 64;
const TOKENS: usize = 7;
const GROUP: usize = 32;
const PAIRS: [i32; 6] = [0, 2, -1, 1, 1, 0];
const TABLE: [i32; 2] = [2, 0];

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Token,
    Page,
    Group,
}

impl Kind {
    /// Rows of a page that have scales of their own.
    fn rows(self) -> usize {
        if self == Kind::Page {
            1
        } else {
            PAGE_SIZE
        }
    }

    /// Scales of a row and head.
    fn scales(self) -> usize {
        if self == Kind::Group {
            DIM / GROUP
        } else {
            1
        }
    }
}

/// K or V: the elements and what belongs to them, in vectors or in buffers. Only groups have zeros.
struct Side<E, S, Z> {
    elements: E,
    scales: S,
    zeros: Z,
}

type OnHost<E, S> = [Side<Vec<E>, Vec<S>, Vec<F16>>; 2];
type OnDevice<E, S> = [Side<Buffer<E>, Buffer<S>, Buffer<F16>>; 2];

fn paged(rows: usize, last: usize) -> Layout {
    Layout::contiguous([PAGES, rows, HEADS, last])
}

/// Numbers of K and V with these counts of rows of elements and of scales, made by `next`.
fn on_host<E: Element, S>(
    kinds: [Kind; 2],
    rows: fn(Kind) -> [usize; 2],
    mut next: impl FnMut() -> (E, S, F16),
) -> OnHost<E, S> {
    kinds.map(|kind| {
        let [rows, scales] = rows(kind);
        let scales = scales * HEADS * kind.scales();
        Side {
            elements: (0..rows * HEADS * DIM / E::DTYPE.unwrap().block()).map(|_| next().0).collect(),
            scales: (0..scales).map(|_| next().1).collect(),
            zeros: (0..scales).map(|_| next().2).collect(),
        }
    })
}

fn cache_counts(kind: Kind) -> [usize; 2] {
    [PAGES * PAGE_SIZE, PAGES * kind.rows()]
}

fn row_counts(_: Kind) -> [usize; 2] {
    [TOKENS; 2]
}

fn on_device<E: Element, S: Element>(hip: &Hip, [k, v]: &OnHost<E, S>) -> Result<OnDevice<E, S>> {
    let side = |side: &Side<Vec<E>, Vec<S>, Vec<F16>>| -> Result<_> {
        Ok(Side {
            elements: hip.buffer(&side.elements)?,
            scales: hip.buffer(&side.scales)?,
            zeros: hip.buffer(&side.zeros)?,
        })
    };
    Ok([side(k)?, side(v)?])
}

/// Compares the arrays of host and device with those of `from` after `moved`.
fn check<E, S>(
    from: &OnHost<E, S>,
    host: &OnHost<E, S>,
    device: &OnDevice<E, S>,
    kinds: [Kind; 2],
    moved: fn(usize) -> Vec<Option<usize>>,
) -> Result<()>
where
    E: Element + Default + PartialEq + std::fmt::Debug,
    S: Element + Default + PartialEq + std::fmt::Debug,
{
    fn compare<T: Element + Default + PartialEq + std::fmt::Debug>(
        name: &str,
        from: &[T],
        (host, device): (&[T], &Buffer<T>),
        moved: fn(usize) -> Vec<Option<usize>>,
        page_rows: usize,
    ) -> Result<()> {
        let row = from.len() / (PAGES * page_rows);
        let mut wanted = Vec::new();
        for place in moved(page_rows) {
            match place {
                Some(at) => wanted.extend_from_slice(&from[at * row..(at + 1) * row]),
                None => wanted.resize(wanted.len() + row, T::default()),
            }
        }
        let mut found = vec![T::default(); device.len()];
        device.download(&mut found)?;
        assert_eq!(host, wanted, "{name} on the host");
        assert_eq!(found, wanted, "{name} on the device");
        Ok(())
    }
    for (i, name) in ["k", "v"].into_iter().enumerate() {
        let (from, host, device, kind) = (&from[i], &host[i], &device[i], kinds[i]);
        compare(name, &from.elements, (&host.elements, &device.elements), moved, PAGE_SIZE)?;
        let scales = format!("{name}_scales");
        compare(&scales, &from.scales, (&host.scales, &device.scales), moved, kind.rows())?;
        if kind == Kind::Group {
            let zeros = format!("{name}_zeros");
            compare(&zeros, &from.zeros, (&host.zeros, &device.zeros), moved, kind.rows())?;
        }
    }
    Ok(())
}

/// The rows that a copy by PAIRS puts into the target's, in their order; None: the target's own, which are zeros.
fn copied(page_rows: usize) -> Vec<Option<usize>> {
    let page = |from: usize| (0..page_rows).map(move |row| Some(from * page_rows + row));
    page(1).chain(vec![None; page_rows]).chain(page(0)).collect()
}

/// Those that a gather puts into the outputs': keys 2 to 6 of a sequence with the pages of TABLE, as rows 1 to 5.
fn gathered(page_rows: usize) -> Vec<Option<usize>> {
    // A page's only scale is for all of its keys.
    let row = |key: usize| TABLE[key / PAGE_SIZE] as usize * page_rows + key % PAGE_SIZE % page_rows;
    let keys = (2..7).map(|key| Some(row(key)));
    std::iter::once(None).chain(keys).chain(std::iter::once(None)).collect()
}

/// The scales of a side that is read.
macro_rules! scale {
    ($of:expr, $kind:expr) => {{
        let layout = paged($kind.rows(), $kind.scales());
        Some(match $kind {
            Kind::Token => AppendScale::PerToken($of.scales.tensor_mut(layout)?),
            Kind::Page => AppendScale::PerPage($of.scales.tensor(layout)?),
            Kind::Group => AppendScale::PerGroup {
                size: GROUP,
                scales: $of.scales.tensor_mut(layout)?,
                zeros: Some($of.zeros.tensor_mut(layout)?),
            },
        })
    }};
}

/// Those of a side that is written.
macro_rules! copied_scales {
    ($to:expr, $kind:expr, $layout:expr) => {{
        let zeros = if $kind == Kind::Group { Some($to.zeros.tensor_mut($layout)?) } else { None };
        Some(CopiedScales { scales: $to.scales.tensor_mut($layout)?, zeros })
    }};
}

macro_rules! copy {
    ($from:expr, $to:expr, $kinds:expr, $pairs:expr) => {{
        let ([k, v], [k_to, v_to], [k_kind, v_kind]) = ($from, $to, $kinds);
        PageCopy {
            k_source: k.elements.tensor(paged(PAGE_SIZE, DIM))?,
            v_source: Some(v.elements.tensor(paged(PAGE_SIZE, DIM))?),
            k_target: k_to.elements.tensor_mut(paged(PAGE_SIZE, DIM))?,
            v_target: Some(v_to.elements.tensor_mut(paged(PAGE_SIZE, DIM))?),
            pairs: Some(PageNumbers::I32($pairs.array())),
            k_scale: scale!(k, k_kind),
            v_scale: scale!(v, v_kind),
            k_target_scales: copied_scales!(k_to, k_kind, paged(k_kind.rows(), k_kind.scales())),
            v_target_scales: copied_scales!(v_to, v_kind, paged(v_kind.rows(), v_kind.scales())),
        }
    }};
}

macro_rules! gather {
    ($from:expr, $to:expr, $kinds:expr, $numbers:expr) => {{
        let ([k, v], [k_to, v_to], [k_kind, v_kind]) = ($from, $to, $kinds);
        let [starts, lengths, first, table] = $numbers;
        let rows = |last| Layout::rows([TOKENS, HEADS, last]);
        Gather {
            k_cache: k.elements.tensor(paged(PAGE_SIZE, DIM))?,
            v_cache: Some(v.elements.tensor(paged(PAGE_SIZE, DIM))?),
            k_out: k_to.elements.tensor_mut(rows(DIM))?,
            v_out: Some(v_to.elements.tensor_mut(rows(DIM))?),
            batch: 1,
            out_starts: starts.array(),
            kv_lengths: lengths.array(),
            first_keys: Some(first.array()),
            page_table: PageTable::Block { pages: PageNumbers::I32(table.array()), stride: 2 },
            k_scale: scale!(k, k_kind),
            v_scale: scale!(v, v_kind),
            k_out_scales: copied_scales!(k_to, k_kind, rows(k_kind.scales())),
            v_out_scales: copied_scales!(v_to, v_kind, rows(v_kind.scales())),
        }
    }};
}

fn refused(field: &str, result: Result<()>) {
    let error = result.unwrap_err();
    assert_eq!((error.code, error.field.as_str()), (Code::InvalidArgument, field), "{error}");
}

/// A copy and a gather of a cache of `E` with scales of `S`; and wrong shapes of what is written.
fn arrays_go_along<E, S>(kinds: [Kind; 2], number: fn(u32) -> E, scale: fn(u32) -> S) -> Result<()>
where
    E: Element + Default + PartialEq + std::fmt::Debug,
    S: Element + Default + PartialEq + std::fmt::Debug,
{
    let context = emulator();
    let hip = Hip::new(&context)?;
    let mut random = Random(7);
    let mut from = on_host(kinds, cache_counts, || {
        let bits = random.next();
        (number(bits), scale(bits >> 8), F16((bits >> 16) as u16))
    });
    let nothing = || (E::default(), S::default(), F16::default());
    let mut device_from = on_device(&hip, &from)?;

    let mut to = on_host(kinds, cache_counts, nothing);
    let mut device_to = on_device(&hip, &to)?;
    let (pairs, device_pairs) = (PAIRS.to_vec(), hip.buffer(&PAIRS)?);
    let copy = copy!(&mut device_from, &mut device_to, kinds, device_pairs);
    // SAFETY: all buffers stay until the device has been waited for.
    unsafe { context.kv_copy(&copy, &Launch::default()) }?;
    hip.synchronize()?;
    drop(copy);
    reference_copy(&mut copy!(&mut from, &mut to, kinds, pairs))?;
    check(&from, &to, &device_to, kinds, copied)?;

    let mut out = on_host(kinds, row_counts, nothing);
    let mut device_out = on_device(&hip, &out)?;
    let numbers = [vec![1i32, 6], vec![7], vec![2], TABLE.to_vec()];
    let [starts, lengths, first, table] = &numbers;
    let device_numbers = [hip.buffer(starts)?, hip.buffer(lengths)?, hip.buffer(first)?, hip.buffer(table)?];
    let gather = gather!(&mut device_from, &mut device_out, kinds, &device_numbers);
    // SAFETY: as above.
    unsafe { context.kv_gather(&gather, &Launch::default()) }?;
    hip.synchronize()?;
    drop(gather);
    reference_gather(&mut gather!(&mut from, &mut out, kinds, &numbers))?;
    check(&from, &out, &device_out, kinds, gathered)?;

    let mut memory = vec![S::default(); PAGES * PAGE_SIZE * HEADS * DIM / GROUP];
    let last = kinds[0].scales();
    let mut copy = copy!(&mut from, &mut to, kinds, pairs);
    copy.k_target_scales = None;
    refused("k_target_scales.data", reference_copy(&mut copy));
    let short = memory.tensor_mut(paged(PAGE_SIZE - 1, last))?;
    copy.k_target_scales = Some(CopiedScales { scales: short, zeros: None });
    refused("k_target_scales.shape[1]", reference_copy(&mut copy));
    drop(copy);
    let mut gather = gather!(&mut from, &mut out, kinds, &numbers);
    gather.v_out_scales = None;
    refused("v_out_scales.data", reference_gather(&mut gather));
    let short = memory.tensor_mut(Layout::rows([TOKENS - 1, HEADS, last]))?;
    gather.v_out_scales = Some(CopiedScales { scales: short, zeros: None });
    refused("v_out_scales.shape[1]", reference_gather(&mut gather));
    Ok(())
}

#[test]
fn scales_per_token_and_page_go_along() -> Result<()> {
    arrays_go_along([Kind::Token, Kind::Page], |bits| bits as i8, |bits| bits as f32)
}

#[test]
fn groups_and_zeros_go_along() -> Result<()> {
    arrays_go_along([Kind::Group; 2], |bits| U4Pair(bits as u8), |bits| F16(bits as u16))
}
