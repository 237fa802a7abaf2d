//! Classes of attention calls.

use crate::element::Dtype;
use crate::error::{int, int_64, Result};
use crate::format::{Format, KvFormat};
use sluice_sys as sys;
use std::ptr;

/// Where the diagonal of the mask is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum MaskAlignment {
    /// The last row sees the last key: rows are the newest tokens.
    #[default]
    BottomRight = sys::SLUICE_BOTTOM_RIGHT,
    /// Row 0 sees key 0.
    TopLeft = sys::SLUICE_TOP_LEFT,
    /// Each sequence says at which key: [`MaskArgs::diagonals`](crate::MaskArgs::diagonals).
    GivenDiagonal = sys::SLUICE_GIVEN_DIAGONAL,
}

/// Whether keys after the row's own position are invisible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Causal {
    /// They are visible.
    #[default]
    No,
    /// They are invisible.
    Yes,
    /// Each sequence says which: [`MaskArgs::causal`](crate::MaskArgs::causal).
    BySequence,
}

/// Which keys have a bit for each row that says whether they are visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MaskBits {
    /// All keys.
    All,
    /// Only a sequence's newest keys, as many as it has rows; the keys before them are not masked.
    OfNew,
}

/// Which keys a row sees; the header's `sluice_mask`. The default hides none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mask {
    /// Whether keys after the row's own position are invisible.
    pub causal: Causal,
    /// Where the diagonal is.
    pub alignment: MaskAlignment,
    /// Keys visible before the diagonal; None: all.
    pub window_left: Option<usize>,
    /// Keys visible after the diagonal; None: all.
    pub window_right: Option<usize>,
    /// Number of first keys that the left window does not hide.
    pub sink_tokens: usize,
    /// A bit per row and key says whether it is visible.
    pub bits: Option<MaskBits>,
    /// Spans of keys see each other in both directions.
    pub spans: bool,
    /// Keys of pages with a negative number are invisible: page tables as lists with holes.
    pub missing_pages: bool,
}

impl Mask {
    /// Keys after the row's own position are invisible; rows are the newest tokens.
    pub fn causal() -> Self {
        Mask { causal: Causal::Yes, ..Mask::default() }
    }

    fn to_raw(self) -> Result<sys::sluice_mask> {
        let flags = [
            (self.causal == Causal::Yes, sys::SLUICE_MASK_CAUSAL),
            (self.causal == Causal::BySequence, sys::SLUICE_MASK_CAUSAL_BY_SEQUENCE),
            (self.window_left.is_some(), sys::SLUICE_MASK_WINDOW_LEFT),
            (self.window_right.is_some(), sys::SLUICE_MASK_WINDOW_RIGHT),
            (self.bits.is_some(), sys::SLUICE_MASK_BITS),
            (self.bits == Some(MaskBits::OfNew), sys::SLUICE_MASK_BITS_OF_NEW),
            (self.spans, sys::SLUICE_MASK_SPANS),
            (self.missing_pages, sys::SLUICE_MASK_MISSING_PAGES),
        ];
        Ok(sys::sluice_mask {
            flags: bits(&flags),
            alignment: self.alignment as u32,
            window_left: int("mask.window_left", self.window_left.unwrap_or(0))?,
            window_right: int("mask.window_right", self.window_right.unwrap_or(0))?,
            sink_tokens: int("mask.sink_tokens", self.sink_tokens)?,
            ..Default::default()
        })
    }
}

/// What becomes of scores before the softmax; the header's `sluice_scores`. The default leaves them as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scores {
    /// c > 0 replaces S by c * tanh(S / c); 0: no cap.
    pub soft_cap: f32,
    /// A matrix of this type is added.
    pub bias: Option<Dtype>,
    /// The bias is multiplied by a scale per query head.
    pub bias_scale: bool,
    /// slope * distance is subtracted.
    pub alibi: bool,
    /// A learned logit per query head joins the denominator.
    pub sinks: bool,
}

impl Scores {
    fn to_raw(self) -> sys::sluice_scores {
        let flags = [
            (self.alibi, sys::SLUICE_SCORES_ALIBI),
            (self.sinks, sys::SLUICE_SCORES_SINK),
            (self.bias_scale, sys::SLUICE_SCORES_BIAS_SCALE),
        ];
        let bias_type = self.bias.map_or(0, |dtype| dtype as u32);
        sys::sluice_scores { flags: bits(&flags), soft_cap: self.soft_cap, bias_type, ..Default::default() }
    }
}

/// Upper bounds of calls; 0: unbounded. The header's `sluice_bounds`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Sequences per call.
    pub batch: usize,
    /// Query rows per sequence.
    pub q_len: usize,
    /// Keys per sequence.
    pub kv_len: usize,
    /// With [`Attention::prefixes`], which needs it: groups per call.
    pub groups: usize,
    /// With [`Attention::prefixes`], which needs it: keys per group.
    pub group_keys: usize,
    /// Rows of Q of all sequences of a call.
    pub q_rows: usize,
}

/// Base of the logarithm in LSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Lse {
    /// Natural logarithm.
    Ln = sys::SLUICE_LSE_LN,
    /// Logarithm to base 2.
    Log2 = sys::SLUICE_LSE_LOG2,
}

/// A class of attention calls: everything that selects kernels, nothing that changes from call to call. The header's
/// `sluice_attention`, with its numerical contract.
///
/// ```
/// use sluice::{Attention, Bounds, Dtype, KvFormat, Lse, Mask};
/// let attention = Attention {
///     mask: Some(Mask::causal()),
///     lse: Some(Lse::Ln),
///     bounds: Bounds { kv_len: 4096, ..Bounds::default() },
///     ..Attention::new(Dtype::F16, 8, KvFormat::new(Dtype::F16, 2, 128))
/// };
/// # let _ = attention;
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attention {
    /// Query heads.
    pub q_heads: usize,
    /// Rows of Q.
    pub q: Format,
    /// Rows of O.
    pub o: Format,
    /// Rows of K and V.
    pub kv: KvFormat,
    /// None: every key is visible.
    pub mask: Option<Mask>,
    /// None: scores stay as they are.
    pub scores: Option<Scores>,
    /// Whether calls also write the logarithm of the softmax denominator.
    pub lse: Option<Lse>,
    /// Sequences are packed one after the other: Q, O, and K and V, have starts. Not with pages, where Q may have them
    /// anyway.
    pub ragged: bool,
    /// Rows of Q, K, V and O continue in memory to the next multiple of 8 elements, so that head dims may be any
    /// number. What is there is ignored in Q and V, must be finite in K, and is undefined in O after a run. Tensors
    /// have the whole rows: 104 elements for a head dim of 100.
    pub padded_rows: bool,
    /// Calls have keys that groups of rows see before their sequence's own: [`Prefixes`](crate::Prefixes).
    pub prefixes: bool,
    /// A sequence's result depends neither on the rest of the batch nor on the bounds. Needs bounds of batch and keys,
    /// and a workspace.
    pub batch_invariant: bool,
    /// Of calls.
    pub bounds: Bounds,
    /// Use only kernels that need at most this much workspace; 0: any.
    pub workspace_ceiling_bytes: u64,
}

impl Attention {
    /// Not causal, without bounds: Q and O of one type.
    /// [`Context::query_support`](crate::Context::query_support) says whether a library can compute it.
    pub fn new(dtype: Dtype, q_heads: usize, kv: KvFormat) -> Self {
        Attention {
            q_heads,
            q: dtype.into(),
            o: dtype.into(),
            kv,
            mask: None,
            scores: None,
            lse: None,
            ragged: false,
            padded_rows: false,
            prefixes: false,
            batch_invariant: false,
            bounds: Bounds::default(),
            workspace_ceiling_bytes: 0,
        }
    }

    /// Elements of a row in memory.
    pub(crate) fn row(&self, head_dim: usize) -> usize {
        if self.padded_rows {
            (head_dim.saturating_add(7)) / 8 * 8
        } else {
            head_dim
        }
    }

    /// Whether masks have bits, and of which keys.
    pub(crate) fn mask_bits(&self) -> Option<MaskBits> {
        self.mask.and_then(|mask| mask.bits)
    }

    /// Calls a function with the struct of the header, which points to others that live as long as the call.
    pub(crate) fn with_raw<R>(
        &self,
        function: impl FnOnce(&sys::sluice_attention) -> Result<R>,
    ) -> Result<R> {
        let flags = [
            (self.ragged, sys::SLUICE_ATTENTION_RAGGED),
            (self.padded_rows, sys::SLUICE_ATTENTION_PADDED_ROWS),
            (self.prefixes, sys::SLUICE_ATTENTION_PREFIXES),
            (self.batch_invariant, sys::SLUICE_ATTENTION_BATCH_INVARIANT),
        ];
        let kv = self.kv.to_raw("kv")?;
        let mask = self.mask.map(Mask::to_raw).transpose()?;
        let scores = self.scores.map(Scores::to_raw);
        let bounds = &self.bounds;
        function(&sys::sluice_attention {
            flags: bits(&flags),
            q_heads: int("q_heads", self.q_heads)?,
            lse: self.lse.map_or(sys::SLUICE_LSE_NONE, |base| base as u32),
            q: self.q.to_raw("q")?,
            o: self.o.to_raw("o")?,
            kv: &kv,
            mask: pointer(&mask),
            scores: pointer(&scores),
            bounds: sys::sluice_bounds {
                batch: int("bounds.batch", bounds.batch)?,
                q_len: int("bounds.q_len", bounds.q_len)?,
                kv_len: int("bounds.kv_len", bounds.kv_len)?,
                groups: int("bounds.groups", bounds.groups)?,
                group_keys: int("bounds.group_keys", bounds.group_keys)?,
                reserved: 0,
                q_rows: int_64("bounds.q_rows", bounds.q_rows)?,
            },
            workspace_ceiling_bytes: self.workspace_ceiling_bytes,
            ..Default::default()
        })
    }
}

/// The bits whose conditions hold.
pub(crate) fn bits(flags: &[(bool, u32)]) -> u32 {
    flags.iter().filter(|(is, _)| *is).fold(0, |all, (_, bit)| all | bit)
}

/// NULL for None.
pub(crate) fn pointer<T>(value: &Option<T>) -> *const T {
    value.as_ref().map_or(ptr::null(), |value| value as *const T)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{PageFormat, PageTableKind, ScaleKind};

    fn full() -> Attention {
        let group = |dtype, pack| Format {
            dtype,
            scale_kind: ScaleKind::PerGroup,
            scale_group: 62,
            zero_points: true,
            pack,
        };
        Attention {
            q_heads: 8,
            q: Format::scaled(Dtype::F16, ScaleKind::PerTensor),
            o: Format::scaled(Dtype::Bf16, ScaleKind::PerHead),
            kv: KvFormat {
                heads: 2,
                head_dim_qk: 192,
                head_dim_v: 136,
                k: group(Dtype::E4m3Fnuz, 24),
                v: Some(group(Dtype::E5m2, 63)),
                pages: Some(PageFormat { size: 16, table: PageTableKind::Csr, index_64: true }),
            },
            mask: Some(Mask {
                causal: Causal::Yes,
                alignment: MaskAlignment::GivenDiagonal,
                window_left: Some(41),
                window_right: Some(42),
                sink_tokens: 43,
                bits: Some(MaskBits::OfNew),
                spans: true,
                missing_pages: true,
            }),
            scores: Some(Scores {
                soft_cap: 5.0,
                bias: Some(Dtype::F32),
                bias_scale: true,
                alibi: true,
                sinks: true,
            }),
            lse: Some(Lse::Log2),
            ragged: true,
            padded_rows: true,
            prefixes: true,
            batch_invariant: true,
            bounds: Bounds { batch: 31, q_len: 32, kv_len: 33, groups: 35, group_keys: 36, q_rows: 34 },
            workspace_ceiling_bytes: 61,
        }
    }

    #[test]
    fn every_member_can_be_set() {
        let check = |raw: &sys::sluice_attention| {
            assert_eq!((raw.flags, raw.q_heads, raw.lse), (15, 8, 2));
            assert_eq!((raw.q.r#type, raw.q.scale_kind, raw.o.r#type, raw.o.scale_kind), (1, 1, 2, 2));
            // SAFETY: made by with_raw.
            let (kv, mask, scores) = unsafe { (&*raw.kv, &*raw.mask, &*raw.scores) };
            assert_eq!((kv.kv_heads, kv.head_dim_qk, kv.head_dim_v, kv.flags), (2, 192, 136, 2));
            assert_eq!((kv.page_size, kv.page_table, kv.struct_size), (16, 2, 80));
            let members =
                |f: sys::sluice_format| (f.r#type, f.scale_kind, f.scale_group, f.zero_points, f.pack);
            assert_eq!((members(kv.k), members(kv.v)), ((4, 5, 62, 1, 24), (7, 5, 62, 1, 63)));
            assert_eq!((mask.flags, mask.alignment), (0xfd, 2));
            assert_eq!((mask.window_left, mask.window_right, mask.sink_tokens), (41, 42, 43));
            assert_eq!((scores.flags, scores.soft_cap, scores.bias_type), (7, 5.0, 3));
            let b = &raw.bounds;
            assert_eq!((b.batch, b.q_len, b.kv_len, b.groups, b.group_keys), (31, 32, 33, 35, 36));
            assert_eq!((b.q_rows, raw.workspace_ceiling_bytes), (34, 61));
            Ok(())
        };
        full().with_raw(check).unwrap();
        let by_sequence = Mask { causal: Causal::BySequence, bits: Some(MaskBits::All), ..Mask::default() };
        assert_eq!(by_sequence.to_raw().unwrap().flags, 0x12);
        let latent = KvFormat::latent(Dtype::Bf16, 512, 64).to_raw("kv").unwrap();
        assert_eq!((latent.flags, latent.v.r#type, latent.head_dim_qk, latent.head_dim_v), (1, 0, 576, 512));
    }

    #[test]
    fn a_number_that_does_not_fit_is_named() {
        let attention = Attention::new(Dtype::F16, 1, KvFormat::new(Dtype::F16, 1, 1 << 40));
        assert_eq!(attention.with_raw(|_| Ok(())).unwrap_err().field, "kv.head_dim_qk");
    }
}
