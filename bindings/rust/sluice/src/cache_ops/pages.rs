//! Copies of pages, and gathers of keys.

use super::{form_of_arrays, number, scales_view, zeros_view, AppendScale};
use crate::args::{PageNumbers, PageTable, RawTable};
use crate::contents;
use crate::element::Dtype;
use crate::error::{call, init, int, Error, Result};
use crate::tensor::{fewest, optional, Array, Device, Extent, Host, Memory, Tensor, TensorMut, View};
use sluice_sys as sys;
use std::ptr::NonNull;
use Extent::{AtLeast, Exactly};

/// Where scales per token, page or group go that are copied with their elements.
#[derive(Debug)]
pub struct CopiedScales<'a, M: Memory = Device> {
    /// In a [`PageCopy`] as those of the source. In a [`Gather`] \[1, tokens, kv_heads, group\]: a scale per page goes to
    /// each of the page's keys.
    pub scales: TensorMut<'a, M>,
    /// Where zeros go, laid out as the scales.
    pub zeros: Option<TensorMut<'a, M>>,
}

/// Pages of caches, to be copied by [`Context::kv_copy`](crate::Context::kv_copy) to other pages, or to other caches, or
/// on the host by [`reference_copy`]; the header's `sluice_page_copy`. Types, heads, dims, and the number of pages come
/// from the tensors.
#[derive(Debug)]
pub struct PageCopy<'a, M: Memory = Device> {
    /// \[page, page_size, kv_heads, head_dim_qk\].
    pub k_source: Tensor<'a, M>,
    /// \[page, page_size, kv_heads, head_dim_v\]; None if there is only K.
    pub v_source: Option<Tensor<'a, M>>,
    /// \[page, page_size, kv_heads, head_dim_qk\].
    pub k_target: TensorMut<'a, M>,
    /// \[page, page_size, kv_heads, head_dim_v\].
    pub v_target: Option<TensorMut<'a, M>>,
    /// \[pairs\]\[2\]: source and target; None for each page to itself.
    pub pairs: Option<PageNumbers<'a, M>>,
    /// Scales per token, page or group belong to the source and are only read. Equal types allow no other kinds.
    pub k_scale: Option<AppendScale<'a, M>>,
    /// The same for V.
    pub v_scale: Option<AppendScale<'a, M>>,
    /// Where the arrays of `k_scale` go between equal types, given exactly then.
    pub k_target_scales: Option<CopiedScales<'a, M>>,
    /// The same for V.
    pub v_target_scales: Option<CopiedScales<'a, M>>,
}

/// Keys of a paged cache, to be gathered by [`Context::kv_gather`](crate::Context::kv_gather) in contiguous rows, or on
/// the host by [`reference_gather`]; the header's `sluice_gather`. Types, heads, dims, pages and the number of rows come
/// from the tensors.
#[derive(Debug)]
pub struct Gather<'a, M: Memory = Device> {
    /// \[page, page_size, kv_heads, head_dim_qk\].
    pub k_cache: Tensor<'a, M>,
    /// \[page, page_size, kv_heads, head_dim_v\]; None if there is only K.
    pub v_cache: Option<Tensor<'a, M>>,
    /// \[1, tokens, kv_heads, head_dim_qk\].
    pub k_out: TensorMut<'a, M>,
    /// \[1, tokens, kv_heads, head_dim_v\].
    pub v_out: Option<TensorMut<'a, M>>,
    /// Sequences.
    pub batch: usize,
    /// \[batch + 1\]: rows of the outputs before each sequence's first.
    pub out_starts: Array<'a, i32, M>,
    /// \[batch\]: keys of each sequence in the cache.
    pub kv_lengths: Array<'a, i32, M>,
    /// \[batch\]: the first key to gather; None: 0.
    pub first_keys: Option<Array<'a, i32, M>>,
    /// The pages of each sequence.
    pub page_table: PageTable<'a, M>,
    /// Scales per token, page or group belong to the cache and are only read. Equal types allow no other kinds.
    pub k_scale: Option<AppendScale<'a, M>>,
    /// The same for V.
    pub v_scale: Option<AppendScale<'a, M>>,
    /// Where the arrays of `k_scale` go between equal types, given exactly then.
    pub k_out_scales: Option<CopiedScales<'a, M>>,
    /// The same for V.
    pub v_out_scales: Option<CopiedScales<'a, M>>,
}

/// The arrays of a call's scales and zeros.
fn array_views<'s, M: Memory>(
    k: &'s Option<AppendScale<M>>,
    v: &'s Option<AppendScale<M>>,
) -> [Option<&'s View>; 4] {
    [scales_view(k), scales_view(v), zeros_view(k), zeros_view(v)]
}

/// Both tensors of V, or neither.
fn both_or_neither<'b>(
    of: (Option<&'b View>, &str),
    to: (Option<&'b View>, &str),
) -> Result<Option<(&'b View, &'b View)>> {
    match (of.0, to.0) {
        (Some(from), Some(to)) => Ok(Some((from, to))),
        (None, None) => Ok(None),
        (from, _) => {
            let (given, missing) = if from.is_some() { (of.1, to.1) } else { (to.1, of.1) };
            let message =
                format!("{missing} is missing, but {given} is given; the call needs both or neither");
            Err(Error::invalid(missing, message))
        }
    }
}

/// The scales and zeros of a target.
fn copied_views<'s, M: Memory>(copied: &'s Option<CopiedScales<M>>) -> [Option<&'s View>; 2] {
    let zeros = copied.as_ref().and_then(|copied| copied.zeros.as_ref());
    [copied.as_ref().map(|copied| &copied.scales.view), zeros.map(|zeros| &zeros.view)]
}

/// Puts the arrays of a target, "k_target" or "v_out", into a call's struct. `extents`: all but the last.
fn put_copied<M: Memory>(
    copied: &Option<CopiedScales<M>>,
    name: &str,
    (dtype, last): (Dtype, usize),
    extents: [Extent; 3],
    to: &mut sys::sluice_tensor,
    to_zeros: &mut sys::sluice_tensor,
) -> Result<()> {
    let extents = [extents[0], extents[1], extents[2], AtLeast(last)];
    let [scales, zeros] = copied_views(copied);
    if let Some(scales) = scales {
        *to = scales.checked(&format!("{name}_scales"), Some(dtype), 0, extents)?;
        if dtype == Dtype::F32 {
            to.stride[3] = 0;
        }
    }
    if let Some(zeros) = zeros {
        *to_zeros = zeros.checked(&format!("{name}_zeros"), Some(dtype), 0, extents)?;
    }
    Ok(())
}

impl<M: Memory> PageCopy<'_, M> {
    pub(crate) fn to_raw(&self) -> Result<sys::sluice_page_copy> {
        let [_, page_size, heads, dim_qk] = self.k_source.layout().shape();
        let (from, to) = (&self.k_source.view, &self.k_target.view);
        let (source, target) = (number(from, "k_source")?, number(to, "k_target")?);
        let is_needed = usize::from(self.pairs.as_ref().map_or(true, |pairs| pairs.len() > 1));
        let pages = |dim| [AtLeast(is_needed), Exactly(page_size), Exactly(heads), Exactly(dim)];
        let packs = (self.k_source.layout().pack(), to.layout.pack());
        let mut raw: sys::sluice_page_copy = init(sys::sluice_page_copy_init);
        (raw.source_type, raw.target_type) = (source as u32, target as u32);
        raw.kv_heads = int("kv_heads", heads)?;
        raw.head_dim_qk = int("head_dim_qk", dim_qk)?;
        raw.page_size = int("page_size", page_size)?;
        raw.source_k_pack = int("source_k_pack", packs.0)?;
        raw.target_k_pack = int("target_k_pack", packs.1)?;
        raw.k_source = from.checked("k_source", Some(source), packs.0, pages(dim_qk))?;
        raw.k_target = to.checked("k_target", Some(target), packs.1, pages(dim_qk))?;
        let v = both_or_neither(
            (self.v_source.as_ref().map(|v| &v.view), "v_source"),
            (self.v_target.as_ref().map(|v| &v.view), "v_target"),
        )?;
        if let Some((from, to)) = v {
            let dim_v = from.layout.shape()[3];
            raw.head_dim_v = int("head_dim_v", dim_v)?;
            raw.v_source = from.checked("v_source", Some(source), 0, pages(dim_v))?;
            raw.v_target = to.checked("v_target", Some(target), 0, pages(dim_v))?;
        } else {
            raw.flags |= sys::SLUICE_V_IN_K;
        }
        let caches = [Some(from), Some(to), v.map(|v| v.0), v.map(|v| v.1)];
        let arrays = array_views(&self.k_scale, &self.v_scale);
        let copied = [copied_views(&self.k_target_scales), copied_views(&self.v_target_scales)];
        raw.page_count = fewest(0, caches.into_iter().chain(arrays).chain(copied.into_iter().flatten()));
        if let Some(pairs) = &self.pairs {
            // A list without pairs is not the absence of one, which copies all pages.
            raw.pairs =
                if pairs.len() < 2 { NonNull::<i64>::dangling().as_ptr().cast() } else { pairs.raw() };
            raw.pair_count = (pairs.len() / 2) as i64;
            if pairs.are_64() {
                raw.flags |= sys::SLUICE_PAGE_INDEX_64;
            }
        }
        put_scales!(raw, self, dim_qk, (page_size, heads));
        let dim_v = raw.head_dim_v as usize;
        for (copied, scale, name, dim, to, to_zeros) in [
            (
                &self.k_target_scales,
                &self.k_scale,
                "k_target",
                dim_qk,
                &mut raw.k_target_scales,
                &mut raw.k_target_zeros,
            ),
            (
                &self.v_target_scales,
                &self.v_scale,
                "v_target",
                dim_v,
                &mut raw.v_target_scales,
                &mut raw.v_target_zeros,
            ),
        ] {
            let (dtype, rows, last) = form_of_arrays(scale, dim, page_size);
            let extents = [AtLeast(1), AtLeast(rows), Exactly(heads)];
            put_copied(copied, name, (dtype, last), extents, to, to_zeros)?;
        }
        Ok(raw)
    }
}

impl<M: Memory> Gather<'_, M> {
    pub(crate) fn to_raw(&self) -> Result<sys::sluice_gather> {
        let [_, page_size, heads, dim_qk] = self.k_cache.layout().shape();
        let (from, to) = (&self.k_cache.view, &self.k_out.view);
        let tokens = to.layout.shape()[1];
        let (cache, out) = (number(from, "k_cache")?, number(to, "k_out")?);
        let is_needed = usize::from(tokens != 0 && self.batch != 0);
        let pages = |dim| [AtLeast(is_needed), Exactly(page_size), Exactly(heads), Exactly(dim)];
        let rows = |dim| [Exactly(1), Exactly(tokens), Exactly(heads), Exactly(dim)];
        let pack = self.k_cache.layout().pack();
        let mut raw: sys::sluice_gather = init(sys::sluice_gather_init);
        (raw.cache_type, raw.out_type) = (cache as u32, out as u32);
        raw.kv_heads = int("kv_heads", heads)?;
        raw.head_dim_qk = int("head_dim_qk", dim_qk)?;
        raw.page_size = int("page_size", page_size)?;
        raw.k_pack = int("k_pack", pack)?;
        raw.batch = int("batch", self.batch)?;
        raw.tokens = int("tokens", tokens)?;
        raw.k_cache = from.checked("k_cache", Some(cache), pack, pages(dim_qk))?;
        raw.k_out = to.checked("k_out", Some(out), 0, rows(dim_qk))?;
        let v = both_or_neither(
            (self.v_cache.as_ref().map(|v| &v.view), "v_cache"),
            (self.v_out.as_ref().map(|v| &v.view), "v_out"),
        )?;
        if let Some((from, to)) = v {
            let dim_v = from.layout.shape()[3];
            raw.head_dim_v = int("head_dim_v", dim_v)?;
            raw.v_cache = from.checked("v_cache", Some(cache), 0, pages(dim_v))?;
            raw.v_out = to.checked("v_out", Some(out), 0, rows(dim_v))?;
        } else {
            raw.flags |= sys::SLUICE_V_IN_K;
        }
        let arrays = array_views(&self.k_scale, &self.v_scale);
        raw.page_count = fewest(0, [Some(from), v.map(|v| v.0)].into_iter().chain(arrays));
        raw.out_starts = self.out_starts.checked("out_starts", self.batch.saturating_add(1))?;
        raw.kv_lengths = self.kv_lengths.checked("kv_lengths", self.batch)?;
        raw.first_keys = optional(&self.first_keys, "first_keys", self.batch)?;
        let RawTable { pages, stride, starts } =
            self.page_table.checked("page_table", "page_starts", self.batch)?;
        (raw.page_table, raw.page_table_stride, raw.page_starts) = (pages, stride, starts);
        raw.page_table_kind = match &self.page_table {
            PageTable::Block { .. } => sys::SLUICE_PAGE_TABLE_BLOCK,
            PageTable::Csr { .. } => sys::SLUICE_PAGE_TABLE_CSR,
        };
        if self.page_table.pages().are_64() {
            raw.flags |= sys::SLUICE_PAGE_INDEX_64;
        }
        put_scales!(raw, self, dim_qk, (page_size, heads));
        let dim_v = raw.head_dim_v as usize;
        for (copied, scale, name, dim, to, to_zeros) in [
            (&self.k_out_scales, &self.k_scale, "k_out", dim_qk, &mut raw.k_out_scales, &mut raw.k_out_zeros),
            (&self.v_out_scales, &self.v_scale, "v_out", dim_v, &mut raw.v_out_scales, &mut raw.v_out_zeros),
        ] {
            let (dtype, _, last) = form_of_arrays(scale, dim, page_size);
            let extents = [Exactly(1), AtLeast(tokens), Exactly(heads)];
            put_copied(copied, name, (dtype, last), extents, to, to_zeros)?;
        }
        contents::check_gather(self, page_size.max(1))?;
        Ok(raw)
    }
}

/// Copies pages on the host with plain loops: the reference for what a device stores.
///
/// Page numbers are checked before anything is stored: one that is not of an existing page is refused. Pairs with
/// negative numbers are skipped. As on a device, tensors begin at addresses that are multiples of 16, which larger
/// vectors do anyway.
///
/// ```
/// use sluice::{reference_copy, Array, Layout, PageCopy, PageNumbers, Tensor, TensorMut};
/// let pages = Layout::contiguous([2, 1, 1, 8]);
/// let from: Vec<f32> = (0..16).map(|i| i as f32).collect();
/// let mut to = vec![0.0f32; 16];
/// let mut copy = PageCopy {
///     k_source: Tensor::new(&from, pages)?,
///     v_source: None,
///     k_target: TensorMut::new(&mut to, pages)?,
///     v_target: None,
///     pairs: Some(PageNumbers::I32(Array::new(&[1, 0]))), // page 1 to page 0
///     k_scale: None,
///     v_scale: None,
///     k_target_scales: None,
///     v_target_scales: None,
/// };
/// reference_copy(&mut copy)?;
/// assert_eq!((&to[..8], &to[8..]), (&from[8..], &[0.0; 8][..]));
/// # Ok::<(), sluice::Error>(())
/// ```
pub fn reference_copy(copy: &mut PageCopy<Host>) -> Result<()> {
    let raw = copy.to_raw()?;
    // SAFETY: all memory is borrowed until the call returns, mutably if it is written. to_raw has compared its extents
    // with each other. With the count of pages that it sets, the library checks the pairs before it uses them.
    call(|error| unsafe { sys::sluice_reference_copy(&raw, error) })
}

/// Gathers keys on the host with plain loops: the reference for what a device stores.
///
/// Contents are checked before anything is stored: what a device would read as zeros or leave out is refused.
pub fn reference_gather(gather: &mut Gather<Host>) -> Result<()> {
    let raw = gather.to_raw()?;
    // SAFETY: as in reference_copy. to_raw has checked the entries that the page table is read at.
    call(|error| unsafe { sys::sluice_reference_gather(&raw, error) })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{array, tensor, tensor_mut};
    use super::*;
    use crate::element::{U4Pair, F16};
    use crate::layout::Layout;

    /// Scales and zeros at `at` and `at` + 2, with these pages and rows.
    fn groups(at: usize, pages: usize, rows: usize) -> Option<AppendScale<'static>> {
        let layout = Layout::contiguous([pages, rows, 2, 2]);
        let (scales, zeros) = (tensor_mut::<F16>(at, layout), Some(tensor_mut::<F16>(at + 2, layout)));
        Some(AppendScale::PerGroup { size: 32, scales, zeros })
    }

    /// Zeros with fewer pages than their scales.
    fn with_zeros_of(pages: usize) -> Option<AppendScale<'static>> {
        let layout = |pages| Layout::contiguous([pages, 16, 2, 2]);
        let (scales, zeros) = (tensor_mut::<F16>(26, layout(9)), Some(tensor_mut::<F16>(28, layout(pages))));
        Some(AppendScale::PerGroup { size: 32, scales, zeros })
    }

    fn copied(at: usize, layout: Layout) -> Option<CopiedScales<'static>> {
        let (scales, zeros) = (tensor_mut::<F16>(at, layout), Some(tensor_mut::<F16>(at + 2, layout)));
        Some(CopiedScales { scales, zeros })
    }

    #[test]
    fn every_field_of_a_copy_arrives() {
        let cache = Layout::contiguous([10, 16, 2, 64]);
        let mut copy = PageCopy {
            k_source: tensor::<U4Pair>(1, cache),
            v_source: Some(tensor::<U4Pair>(2, cache)),
            k_target: tensor_mut::<U4Pair>(3, cache),
            v_target: Some(tensor_mut::<U4Pair>(4, cache)),
            pairs: Some(PageNumbers::I64(array(5, 6))),
            k_scale: groups(10, 9, 16),
            v_scale: groups(14, 9, 16),
            k_target_scales: copied(18, Layout::contiguous([9, 16, 2, 2])),
            v_target_scales: copied(22, Layout::contiguous([8, 16, 2, 2])),
        };
        // No `..` here: a new field of the header must get a number here.
        let sys::sluice_page_copy {
            struct_size,
            flags,
            source_type,
            target_type,
            kv_heads,
            head_dim_qk,
            head_dim_v,
            page_size,
            source_k_pack,
            target_k_pack,
            k_scale_kind,
            v_scale_kind,
            k_source,
            v_source,
            k_target,
            v_target,
            pairs,
            pair_count,
            page_count,
            k_scale,
            v_scale,
            k_scales,
            v_scales,
            k_zeros,
            v_zeros,
            k_target_scales,
            v_target_scales,
            k_target_zeros,
            v_target_zeros,
            scale_group,
            reserved,
        } = copy.to_raw().unwrap();
        assert_eq!(struct_size as usize, std::mem::size_of::<sys::sluice_page_copy>());
        assert_eq!(flags, sys::SLUICE_PAGE_INDEX_64 | sys::SLUICE_ZERO_POINTS);
        assert_eq!((source_type, target_type, kv_heads, head_dim_qk, head_dim_v), (9, 9, 2, 64, 64));
        assert_eq!((page_size, source_k_pack, target_k_pack, k_scale_kind, v_scale_kind), (16, 0, 0, 5, 5));
        assert_eq!([k_source, v_source, k_target, v_target].map(|t| t.data as usize), [1, 2, 3, 4]);
        assert_eq!((pairs as usize, pair_count, page_count), (5, 3, 8));
        assert!(k_scale.is_null() && v_scale.is_null());
        assert_eq!([k_scales, k_zeros, v_scales, v_zeros].map(|t| t.data as usize), [10, 12, 14, 16]);
        let targets = [k_target_scales, k_target_zeros, v_target_scales, v_target_zeros];
        assert_eq!(targets.map(|t| t.data as usize), [18, 20, 22, 24]);
        assert!(targets.iter().all(|t| t.stride == [64, 4, 2, 1]));
        assert_eq!((scale_group, reserved), (32, 0));

        // No array has fewer pages than the call.
        copy.k_scale = groups(10, 7, 16);
        assert_eq!(copy.to_raw().unwrap().page_count, 7);
        copy.v_scale = with_zeros_of(6);
        assert_eq!(copy.to_raw().unwrap().page_count, 6);
        copy.v_target_scales = copied(22, Layout::contiguous([9, 15, 2, 2]));
        assert_eq!(copy.to_raw().unwrap_err().field, "v_target_scales.shape[1]");
        copy.v_target_scales = copied(22, Layout::contiguous([9, 16, 2, 1]));
        assert_eq!(copy.to_raw().unwrap_err().field, "v_target_scales.shape[3]");
    }

    #[test]
    fn every_field_of_a_gather_arrives() {
        let cache = Layout::contiguous([10, 16, 2, 64]);
        let (rows, groups_of_rows) = (Layout::rows([7, 2, 64]), Layout::rows([7, 2, 2]));
        let mut gather = Gather {
            k_cache: tensor::<U4Pair>(1, cache),
            v_cache: Some(tensor::<U4Pair>(2, cache)),
            k_out: tensor_mut::<U4Pair>(3, rows),
            v_out: Some(tensor_mut::<U4Pair>(4, rows)),
            batch: 3,
            out_starts: array(5, 4),
            kv_lengths: array(6, 3),
            first_keys: Some(array(7, 3)),
            page_table: PageTable::Csr { pages: PageNumbers::I64(array(8, 5)), starts: array(9, 4) },
            k_scale: groups(10, 9, 16),
            v_scale: groups(14, 9, 16),
            k_out_scales: copied(18, groups_of_rows),
            v_out_scales: copied(22, groups_of_rows),
        };
        // No `..` here: a new field of the header must get a number here.
        let sys::sluice_gather {
            struct_size,
            flags,
            cache_type,
            out_type,
            kv_heads,
            head_dim_qk,
            head_dim_v,
            page_size,
            page_table_kind,
            k_pack,
            k_scale_kind,
            v_scale_kind,
            batch,
            tokens,
            k_cache,
            v_cache,
            k_out,
            v_out,
            out_starts,
            kv_lengths,
            first_keys,
            page_table,
            page_table_stride,
            page_starts,
            page_count,
            k_scale,
            v_scale,
            k_scales,
            v_scales,
            k_zeros,
            v_zeros,
            k_out_scales,
            v_out_scales,
            k_out_zeros,
            v_out_zeros,
            scale_group,
            reserved,
        } = gather.to_raw().unwrap();
        assert_eq!(struct_size as usize, std::mem::size_of::<sys::sluice_gather>());
        assert_eq!(flags, sys::SLUICE_PAGE_INDEX_64 | sys::SLUICE_ZERO_POINTS);
        assert_eq!((cache_type, out_type, kv_heads, head_dim_qk, head_dim_v), (9, 9, 2, 64, 64));
        assert_eq!((page_size, page_table_kind, k_pack, k_scale_kind, v_scale_kind), (16, 2, 0, 5, 5));
        assert_eq!((batch, tokens), (3, 7));
        assert_eq!([k_cache, v_cache, k_out, v_out].map(|t| t.data as usize), [1, 2, 3, 4]);
        assert_eq!([out_starts, kv_lengths, first_keys, page_starts].map(|a| a as usize), [5, 6, 7, 9]);
        assert_eq!((page_table as usize, page_table_stride, page_count), (8, 0, 9));
        assert!(k_scale.is_null() && v_scale.is_null());
        assert_eq!([k_scales, k_zeros, v_scales, v_zeros].map(|t| t.data as usize), [10, 12, 14, 16]);
        let outs = [k_out_scales, k_out_zeros, v_out_scales, v_out_zeros];
        assert_eq!(outs.map(|t| t.data as usize), [18, 20, 22, 24]);
        assert!(outs.iter().all(|t| t.stride == [0, 4, 2, 1]));
        assert_eq!((scale_group, reserved), (32, 0));

        gather.v_scale = groups(14, 8, 16);
        assert_eq!(gather.to_raw().unwrap().page_count, 8);
        gather.k_scale = with_zeros_of(6);
        assert_eq!(gather.to_raw().unwrap().page_count, 6);
        gather.k_out_scales = copied(18, Layout::rows([6, 2, 2]));
        assert_eq!(gather.to_raw().unwrap_err().field, "k_out_scales.shape[1]");
        gather.k_out_scales = copied(18, Layout::contiguous([2, 7, 2, 2]));
        assert_eq!(gather.to_raw().unwrap_err().field, "k_out_scales.shape[0]");
    }
}
