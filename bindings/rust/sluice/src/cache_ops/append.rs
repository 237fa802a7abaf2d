//! Appends of new rows.

use super::{number, scales_view, zeros_view, AppendScale};
use crate::args::{PageTable, RawTable};
use crate::contents;
use crate::element::{Bf16, Dtype, F16};
use crate::error::{call, init, int, Error, Result};
use crate::layout::Layout;
use crate::tensor::{fewest, optional, Array, Device, Extent, Host, Memory, Tensor, TensorMut};
use sluice_sys as sys;
use std::ffi::c_void;
use Extent::{AtLeast, Exactly};

/// Where new rows go.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a, M: Memory = Device> {
    /// \[tokens\]: page * page_size + row of the page; a negative slot is skipped.
    Slots(Array<'a, i64, M>),
    /// At the end of sequences, where attention finds them.
    Sequences {
        /// Sequences.
        batch: usize,
        /// \[batch + 1\]: new rows before each sequence's first.
        starts: Array<'a, i32, M>,
        /// \[batch\]: keys of each sequence, including the new ones.
        kv_lengths: Array<'a, i32, M>,
        /// The pages of each sequence.
        page_table: PageTable<'a, M>,
    },
}

/// Which elements of a row of K a rotation pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RotaryStyle {
    /// e and e + dim / 2, as GPT-NeoX and Llama do.
    Halves = sys::SLUICE_ROTARY_HALVES,
    /// 2e and 2e + 1, as GPT-J does.
    Pairs = sys::SLUICE_ROTARY_PAIRS,
}

/// An array of numbers of one of three types.
#[derive(Clone, Copy, Debug)]
pub enum Numbers<'a, M: Memory = Device> {
    /// Of [`Dtype::F16`].
    F16(Array<'a, F16, M>),
    /// Of [`Dtype::Bf16`].
    Bf16(Array<'a, Bf16, M>),
    /// Of [`Dtype::F32`].
    F32(Array<'a, f32, M>),
}

impl<M: Memory> Numbers<'_, M> {
    fn dtype(&self) -> Dtype {
        match self {
            Numbers::F16(_) => Dtype::F16,
            Numbers::Bf16(_) => Dtype::Bf16,
            Numbers::F32(_) => Dtype::F32,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Numbers::F16(array) => array.len(),
            Numbers::Bf16(array) => array.len(),
            Numbers::F32(array) => array.len(),
        }
    }

    fn checked(&self, name: &str, needed: usize) -> Result<*const c_void> {
        Ok(match self {
            Numbers::F16(array) => array.checked(name, needed)?.cast(),
            Numbers::Bf16(array) => array.checked(name, needed)?.cast(),
            Numbers::F32(array) => array.checked(name, needed)?.cast(),
        })
    }
}

/// How K and Q are rotated.
#[derive(Clone, Copy, Debug)]
pub struct Rotary<'a, M: Memory = Device> {
    /// Elements of a row that are rotated; even.
    pub dim: usize,
    /// Which of them form pairs.
    pub style: RotaryStyle,
    /// \[positions\]\[dim\]: cosines, then sines; with `sines` \[positions\]\[dim / 2\], cosines.
    pub table: Numbers<'a, M>,
    /// Elements from one position to the next.
    pub stride: usize,
    /// \[tokens\]; None for the key's number.
    pub positions: Option<Array<'a, i32, M>>,
    /// The first element that is rotated; a multiple of 8.
    pub first: usize,
    /// \[positions\]\[dim / 2\], of the type and with the stride of `table`.
    pub sines: Option<Numbers<'a, M>>,
}

impl<M: Memory> Rotary<'_, M> {
    /// Elements of `table` that a position reads.
    pub(crate) fn columns(&self) -> usize {
        if self.sines.is_some() {
            self.dim / 2
        } else {
            self.dim
        }
    }
}

/// Weights of RMS norms, before the rotation: of each row of a head, without its tail.
#[derive(Clone, Copy, Debug)]
pub struct Norms<'a, M: Memory = Device> {
    /// \[head_dim_qk - tail\] for Q.
    pub q: Option<Numbers<'a, M>>,
    /// The same for K; the type is that of `q`.
    pub k: Option<Numbers<'a, M>>,
    /// Added to the mean square.
    pub epsilon: f32,
}

/// Rows of Q, and where they go.
#[derive(Debug)]
pub enum Queries<'a, M: Memory = Device> {
    /// To where they are; \[1, tokens, q_heads, head_dim_qk\].
    InPlace(TensorMut<'a, M>),
    /// To other memory.
    Apart {
        /// \[1, tokens, q_heads, head_dim_qk\], or without the elements of a tail.
        rows: Tensor<'a, M>,
        /// \[1, tokens, q_heads, head_dim_qk\].
        out: TensorMut<'a, M>,
        /// \[1, tokens, q_heads, tail\]; None if rows have their tails.
        tail: Option<Tensor<'a, M>>,
    },
}

/// New rows of K and V to be stored in a paged cache, by [`Context::kv_append`](crate::Context::kv_append) or on the
/// host by [`reference_append`]; the header's `sluice_append`. Types, heads, dims, pages and the number of rows come
/// from the tensors.
#[derive(Debug)]
pub struct Append<'a, M: Memory = Device> {
    /// New rows, \[1, tokens, kv_heads, head_dim_qk\].
    pub k: Tensor<'a, M>,
    /// New rows, \[1, tokens, kv_heads, head_dim_v\]; None if V is in K.
    pub v: Option<Tensor<'a, M>>,
    /// Where they go, \[page, page_size, kv_heads, head_dim_qk\].
    pub k_cache: TensorMut<'a, M>,
    /// Where they go, \[page, page_size, kv_heads, head_dim_v\]: by columns if the tokens of a page are neighbours
    /// (`stride[1]` is 1), or those of a pack are ([`Layout::packed_tokens`]).
    pub v_cache: Option<TensorMut<'a, M>>,
    /// Which slots they go to.
    pub place: Place<'a, M>,
    /// For a cache of FP8, of [`Dtype::I8`] or of [`Dtype::U4`].
    pub k_scale: Option<AppendScale<'a, M>>,
    /// As `k_scale`.
    pub v_scale: Option<AppendScale<'a, M>>,
    /// None leaves K and Q as they are.
    pub rotary: Option<Rotary<'a, M>>,
    /// Rows of Q, normed and rotated like those of K.
    pub q: Option<Queries<'a, M>>,
    /// The last elements of K's rows, \[1, tokens, kv_heads, tail\]: `k` lacks them.
    pub k_tail: Option<Tensor<'a, M>>,
    /// None without a norm.
    pub norms: Option<Norms<'a, M>>,
}

impl<'a, M: Memory> Append<'a, M> {
    /// A minimal append: rows are stored as they are, without scales or rotation. `v` and `v_cache` are both None if V
    /// is in K, else both are given.
    pub fn new(
        k: Tensor<'a, M>,
        v: Option<Tensor<'a, M>>,
        k_cache: TensorMut<'a, M>,
        v_cache: Option<TensorMut<'a, M>>,
        place: Place<'a, M>,
    ) -> Self {
        let (k_scale, v_scale, rotary, q, k_tail, norms) = (None, None, None, None, None, None);
        Append { k, v, k_cache, v_cache, place, k_scale, v_scale, rotary, q, k_tail, norms }
    }

    /// Checks types, extents and counts, as [`Args`](crate::Args) does.
    pub(crate) fn to_raw(&self) -> Result<sys::sluice_append> {
        let [_, tokens, heads, body] = self.k.layout().shape();
        let tail = self.k_tail.as_ref().map_or(0, |tail| tail.layout().shape()[3]);
        let dim_qk = body.saturating_add(tail);
        let [_, page_size, _, _] = self.k_cache.layout().shape();
        let pack = self.k_cache.layout().pack();
        let (source, cache) = (number(&self.k.view, "k")?, number(&self.k_cache.view, "k_cache")?);
        let new = |dim| [Exactly(1), Exactly(tokens), Exactly(heads), Exactly(dim)];
        let is_needed = usize::from(tokens != 0 && !matches!(self.place, Place::Sequences { batch: 0, .. }));
        let kept = |dim| [AtLeast(is_needed), Exactly(page_size), Exactly(heads), Exactly(dim)];

        let mut raw: sys::sluice_append = init(sys::sluice_append_init);
        (raw.source_type, raw.cache_type) = (source as u32, cache as u32);
        raw.kv_heads = int("kv_heads", heads)?;
        raw.head_dim_qk = int("head_dim_qk", dim_qk)?;
        raw.page_size = int("page_size", page_size)?;
        raw.k_pack = int("k_pack", pack)?;
        raw.tokens = int("tokens", tokens)?;
        raw.k = self.k.view.checked("k", Some(source), 0, new(body))?;
        raw.k_cache = self.k_cache.view.checked("k_cache", Some(cache), pack, kept(dim_qk))?;
        match (&self.v, &self.v_cache) {
            (Some(v), Some(v_cache)) => {
                let dim_v = v.layout().shape()[3];
                raw.head_dim_v = int("head_dim_v", dim_v)?;
                raw.v = v.view.checked("v", Some(source), 0, new(dim_v))?;
                let token_pack = v_cache.layout().token_pack();
                raw.v_pack = v_pack(v_cache.layout())?;
                raw.v_cache =
                    v_cache.view.checked_in_packs("v_cache", Some(cache), 0, token_pack, kept(dim_v))?;
            }
            (None, None) => raw.flags |= sys::SLUICE_V_IN_K,
            (v, _) => {
                let (given, missing) = if v.is_some() { ("v", "v_cache") } else { ("v_cache", "v") };
                let message =
                    format!("{missing} is missing, but {given} is given; the call needs both or neither");
                return Err(Error::invalid(missing, message));
            }
        }
        raw.page_count = fewest(
            0,
            [
                Some(&self.k_cache.view),
                self.v_cache.as_ref().map(|v_cache| &v_cache.view),
                scales_view(&self.k_scale),
                scales_view(&self.v_scale),
                zeros_view(&self.k_scale),
                zeros_view(&self.v_scale),
            ],
        );
        match &self.place {
            Place::Slots(slots) => raw.slots = slots.checked("slots", tokens)?,
            Place::Sequences { batch, starts, kv_lengths, page_table } => {
                raw.batch = int("batch", *batch)?;
                raw.starts = starts.checked("starts", batch.saturating_add(1))?;
                raw.kv_lengths = kv_lengths.checked("kv_lengths", *batch)?;
                let RawTable { pages, stride, starts } =
                    page_table.checked("page_table", "page_starts", *batch)?;
                (raw.page_table, raw.page_table_stride, raw.page_starts) = (pages, stride, starts);
                raw.page_table_kind = match page_table {
                    PageTable::Block { .. } => sys::SLUICE_PAGE_TABLE_BLOCK,
                    PageTable::Csr { .. } => sys::SLUICE_PAGE_TABLE_CSR,
                };
                if page_table.pages().are_64() {
                    raw.flags |= sys::SLUICE_PAGE_INDEX_64;
                }
            }
        }
        put_scales!(raw, self, dim_qk, (page_size, heads));
        if let Some(rotary) = &self.rotary {
            raw.rotary_dim = int("rotary_dim", rotary.dim)?;
            raw.rotary_style = rotary.style as u32;
            raw.rotary = rotary.table.checked("rotary", rotary.columns())?.cast();
            raw.rotary_stride = int("rotary_stride", rotary.stride)?.into();
            raw.positions = optional(&rotary.positions, "positions", tokens)?;
            raw.rotary_type = rotary.table.dtype() as u32;
            raw.rotary_first = int("rotary_first", rotary.first)?;
            if let Some(sines) = &rotary.sines {
                same_type("rotary_sin", sines, &rotary.table)?;
                raw.rotary_sin = sines.checked("rotary_sin", rotary.dim / 2)?;
            }
        }
        if let Some(k_tail) = &self.k_tail {
            raw.tail_dim = int("tail_dim", tail)?;
            raw.k_tail = k_tail.view.checked("k_tail", Some(source), 0, new(tail))?;
        }
        if let Some(q) = &self.q {
            let (rows, out, q_tail) = match q {
                Queries::InPlace(rows) => (&rows.view, &rows.view, None),
                Queries::Apart { rows, out, tail } => (&rows.view, &out.view, tail.as_ref()),
            };
            let q_heads = out.layout.shape()[2];
            let q_extents = |dim| [Exactly(1), Exactly(tokens), Exactly(q_heads), Exactly(dim)];
            raw.q_heads = int("q_heads", q_heads)?;
            let dim = if q_tail.is_some() { body } else { dim_qk };
            raw.q = rows.checked("q", Some(source), 0, q_extents(dim))?;
            raw.q_out = out.checked("q_out", Some(source), 0, q_extents(dim_qk))?;
            if let Some(q_tail) = q_tail {
                raw.q_tail = q_tail.view.checked("q_tail", Some(source), 0, q_extents(tail))?;
            }
        }
        if let Some(norms) = &self.norms {
            raw.norm_epsilon = norms.epsilon;
            for (weights, name, to) in
                [(&norms.q, "q_norm", &mut raw.q_norm), (&norms.k, "k_norm", &mut raw.k_norm)]
            {
                if let Some(weights) = weights {
                    same_type(name, weights, norms.q.as_ref().unwrap_or(weights))?;
                    raw.norm_type = weights.dtype() as u32;
                    *to = weights.checked(name, body)?;
                }
            }
        }
        contents::check_append(self, tokens, page_size)?;
        Ok(raw)
    }
}

/// The header's `v_pack`. Neighbouring tokens without packs are one pack.
fn v_pack(cache: Layout) -> Result<i32> {
    match cache.token_pack() {
        0 if cache.stride()[1] == 1 && cache.shape()[1] > 1 => Ok(sys::SLUICE_V_PACK_ALL as i32),
        tokens => int("v_pack", tokens),
    }
}

fn same_type<M: Memory>(name: &str, numbers: &Numbers<M>, other: &Numbers<M>) -> Result<()> {
    if numbers.dtype() == other.dtype() {
        return Ok(());
    }
    let message = format!(
        "{name} is of {:?}; it must be of {:?}, as the other array is",
        numbers.dtype(),
        other.dtype()
    );
    Err(Error::invalid(format!("{name}.dtype"), message))
}

/// Performs an append on the host with plain loops: the reference for what a device stores.
///
/// Besides types and extents, contents are checked before anything is stored: slots and page numbers must be of
/// existing pages, page tables must have the entries that are read, and the table of a rotation all positions. A device
/// skips rows with a wrong place; this function refuses them, except negative slots and rows without a sequence. As on
/// a device, tensors begin at addresses that are multiples of 16, which larger vectors do anyway.
///
/// ```
/// use sluice::{reference_append, Append, Array, Layout, Place, Tensor, TensorMut, F16};
/// let rows: Vec<F16> = (0..2 * 64).map(|i| F16::from_f32(i as f32)).collect();
/// let (mut k_cache, mut v_cache) = (vec![F16::default(); 3 * 4 * 64], vec![F16::default(); 3 * 4 * 64]);
/// let (new, pages) = (Layout::rows([2, 1, 64]), Layout::contiguous([3, 4, 1, 64]));
/// let mut append = Append::new(
///     Tensor::new(&rows, new)?,
///     Some(Tensor::new(&rows, new)?),
///     TensorMut::new(&mut k_cache, pages)?,
///     Some(TensorMut::new(&mut v_cache, pages)?),
///     Place::Slots(Array::new(&[9, 2])), // row 1 of page 2, and row 2 of page 0
/// );
/// reference_append(&mut append)?;
/// assert_eq!((&k_cache[9 * 64..10 * 64], &v_cache[2 * 64..3 * 64]), (&rows[..64], &rows[64..]));
/// # Ok::<(), sluice::Error>(())
/// ```
pub fn reference_append(append: &mut Append<Host>) -> Result<()> {
    let raw = append.to_raw()?;
    // SAFETY: all memory is borrowed until the call returns, mutably if it is written. to_raw has compared its extents
    // with each other and checked the indices that page table and rotation are read at. With the counts that it sets,
    // the library checks all other contents before it uses them.
    call(|error| unsafe { sys::sluice_reference_append(&raw, error) })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{array, tensor, tensor_mut};
    use super::*;
    use crate::element::{E4m3Fnuz, U4Pair};
    use crate::PageNumbers;

    #[test]
    fn every_field_of_an_append_arrives() {
        let mut append = Append {
            k: tensor::<F16>(1, Layout::rows([7, 2, 48])),
            v: Some(tensor::<F16>(2, Layout::rows([7, 2, 32]))),
            k_cache: tensor_mut::<E4m3Fnuz>(
                3,
                Layout::strided([10, 16, 2, 64], [2048, 16, 1024, 256]).packed(16),
            ),
            v_cache: Some(tensor_mut::<E4m3Fnuz>(
                4,
                Layout::strided([9, 16, 2, 32], [1024, 256, 512, 8]).packed_tokens(8),
            )),
            place: Place::Sequences {
                batch: 3,
                starts: array(5, 4),
                kv_lengths: array(6, 3),
                page_table: PageTable::Csr { pages: PageNumbers::I64(array(7, 5)), starts: array(8, 4) },
            },
            k_scale: Some(AppendScale::PerTensor(array(9, 1))),
            v_scale: Some(AppendScale::PerHead(array(10, 2))),
            rotary: Some(Rotary {
                dim: 24,
                style: RotaryStyle::Pairs,
                table: Numbers::Bf16(array(12, 240)),
                stride: 30,
                positions: Some(array(12, 7)),
                first: 40,
                sines: Some(Numbers::Bf16(array(14, 240))),
            }),
            q: Some(Queries::Apart {
                rows: tensor::<F16>(15, Layout::rows([7, 6, 48])),
                out: tensor_mut::<F16>(16, Layout::rows([7, 6, 64])),
                tail: Some(tensor::<F16>(17, Layout::rows([7, 6, 16]))),
            }),
            k_tail: Some(tensor::<F16>(18, Layout::rows([7, 2, 16]))),
            norms: Some(Norms {
                q: Some(Numbers::F32(array(20, 48))),
                k: Some(Numbers::F32(array(24, 48))),
                epsilon: 0.5,
            }),
        };
        // No `..` here: a new field of the header must get a number here.
        let sys::sluice_append {
            struct_size,
            flags,
            source_type,
            cache_type,
            kv_heads,
            head_dim_qk,
            head_dim_v,
            page_size,
            page_table_kind,
            k_pack,
            k_scale_kind,
            v_scale_kind,
            tokens,
            batch,
            rotary_dim,
            rotary_style,
            k,
            v,
            k_cache,
            v_cache,
            slots,
            starts,
            kv_lengths,
            page_table,
            page_table_stride,
            page_starts,
            k_scale,
            v_scale,
            rotary,
            rotary_stride,
            positions,
            page_count,
            rotary_type,
            rotary_first,
            rotary_sin,
            q_heads,
            tail_dim,
            q,
            q_out,
            k_tail,
            q_tail,
            q_norm,
            k_norm,
            norm_epsilon,
            norm_type,
            k_scales,
            v_scales,
            k_zeros,
            v_zeros,
            scale_group,
            v_pack,
        } = append.to_raw().unwrap();
        assert_eq!(struct_size as usize, std::mem::size_of::<sys::sluice_append>());
        assert_eq!((flags, source_type, cache_type), (sys::SLUICE_PAGE_INDEX_64, 1, 4));
        assert_eq!((kv_heads, head_dim_qk, head_dim_v, page_size, k_pack), (2, 64, 32, 16, 16));
        assert_eq!((page_table_kind, k_scale_kind, v_scale_kind), (2, 1, 2));
        assert_eq!((tokens, batch, rotary_dim, rotary_style, rotary_stride), (7, 3, 24, 1, 30));
        assert_eq!([k, v, k_cache, v_cache].map(|t| t.data as usize), [1, 2, 3, 4]);
        assert_eq!((slots as usize, page_table as usize, page_table_stride), (0, 7, 0));
        assert_eq!([starts, kv_lengths, page_starts, positions].map(|a| a as usize), [5, 6, 8, 12]);
        assert_eq!([k_scale, v_scale, rotary].map(|a| a as usize), [9, 10, 12]);
        assert_eq!((rotary_type, rotary_first, q_heads, tail_dim), (2, 40, 6, 16));
        assert_eq!([q, q_out, k_tail, q_tail].map(|t| t.data as usize), [15, 16, 18, 17]);
        assert_eq!([rotary_sin, q_norm, k_norm].map(|a| a as usize), [14, 20, 24]);
        assert_eq!((norm_epsilon, norm_type), (0.5, 3));
        assert!(k_scales.data.is_null() && v_scales.data.is_null());
        assert!(k_zeros.data.is_null() && v_zeros.data.is_null());
        assert_eq!((scale_group, v_pack), (0, 8));
        append.k_scale =
            Some(AppendScale::PerToken(tensor_mut::<f32>(28, Layout::contiguous([8, 16, 2, 1]))));
        append.v_scale = Some(AppendScale::PerPage(tensor::<f32>(32, Layout::contiguous([9, 1, 2, 1]))));
        let raw = append.to_raw().unwrap();
        assert_eq!((raw.k_scale_kind, raw.v_scale_kind, raw.page_count), (3, 4, 8));
        assert!(raw.k_scale.is_null() && raw.v_scale.is_null());
        assert_eq!((raw.k_scales.data as usize, raw.k_scales.stride), (28, [32, 2, 1, 0]));
        assert_eq!((raw.v_scales.data as usize, raw.v_scales.stride), (32, [2, 2, 1, 0]));
        assert_eq!(page_count, 9); // of V, which has fewer
        let groups = |at| tensor_mut::<F16>(at, Layout::contiguous([7, 16, 2, 2]));
        let mut grouped = Append::new(
            tensor::<F16>(1, Layout::rows([7, 2, 64])),
            Some(tensor::<F16>(2, Layout::rows([7, 2, 64]))),
            tensor_mut::<U4Pair>(3, Layout::contiguous([10, 16, 2, 64])),
            Some(tensor_mut::<U4Pair>(4, Layout::contiguous([9, 16, 2, 64]))),
            Place::Slots(array(13, 7)),
        );
        grouped.k_scale =
            Some(AppendScale::PerGroup { size: 32, scales: groups(28), zeros: Some(groups(30)) });
        grouped.v_scale = Some(AppendScale::PerGroup { size: 32, scales: groups(34), zeros: None });
        let raw = grouped.to_raw().unwrap();
        assert_eq!((raw.cache_type, raw.k_scale_kind, raw.v_scale_kind, raw.scale_group), (9, 5, 5, 32));
        assert_eq!((raw.flags, raw.page_count), (sys::SLUICE_ZERO_POINTS, 7));
        for (tensor, at) in [(raw.k_scales, 28), (raw.k_zeros, 30), (raw.v_scales, 34)] {
            assert_eq!((tensor.data as usize, tensor.stride), (at, [64, 4, 2, 1]));
        }
        assert!(raw.v_zeros.data.is_null());
        grouped.v_scale = Some(AppendScale::PerGroup { size: 64, scales: groups(34), zeros: None });
        assert_eq!(grouped.to_raw().unwrap_err().field, "v_scale.size");
        (append.k_scale, append.v_scale) = (None, None);

        append.q = Some(Queries::InPlace(tensor_mut::<F16>(19, Layout::rows([7, 4, 64]))));
        let raw = append.to_raw().unwrap();
        assert_eq!((raw.q.data as usize, raw.q_out.data as usize, raw.q_heads), (19, 19, 4));
        assert!(raw.q_tail.data.is_null());
        append.norms = Some(Norms { q: None, k: Some(Numbers::F16(array(22, 48))), epsilon: 0.25 });
        let raw = append.to_raw().unwrap();
        assert_eq!((raw.q_norm as usize, raw.k_norm as usize, raw.norm_type), (0, 22, 1));

        append.place = Place::Slots(array(13, 7));
        (append.v, append.v_cache) = (None, None);
        let raw = append.to_raw().unwrap();
        assert_eq!((raw.flags, raw.slots as usize, raw.head_dim_v), (sys::SLUICE_V_IN_K, 13, 0));
        assert_eq!(raw.page_count, 10);

        append.v = Some(tensor::<F16>(2, Layout::rows([7, 2, 32])));
        append.v_cache = Some(tensor_mut::<E4m3Fnuz>(4, Layout::contiguous([11, 16, 2, 32])));
        let raw = append.to_raw().unwrap();
        assert_eq!((raw.page_count, raw.v_pack), (10, 0)); // pages of K
        let columns = |page, stride| Layout::strided([11, page, 2, 32], stride);
        append.v_cache = Some(tensor_mut::<E4m3Fnuz>(4, columns(16, [1024, 1, 512, 16])));
        let raw = append.to_raw().unwrap();
        assert_eq!((raw.v_pack as u32, raw.v_cache.stride), (sys::SLUICE_V_PACK_ALL, [1024, 1, 512, 16]));
        // Pages of other sizes, and packs of K's tokens.
        append.v_cache = Some(tensor_mut::<E4m3Fnuz>(4, columns(8, [512, 256, 256, 8]).packed_tokens(8)));
        assert_eq!(append.to_raw().unwrap_err().field, "v_cache.shape[1]");
        append.v_cache = None;
        append.v = None;
        append.k_cache = tensor_mut::<E4m3Fnuz>(
            3,
            Layout::strided([10, 16, 2, 64], [2048, 512, 1024, 8]).packed_tokens(8),
        );
        assert_eq!(append.to_raw().unwrap_err().field, "k_cache.token_pack");
    }
}
