//! Compares calls on the emulated device with the reference on the host: each kind of problem once. The tolerance is
//! the bound of docs/concepts/numerics.md, with the largest numbers of the whole call in place of a row's. Masks, factors
//! and scales since ABI 1.1 are compared with a plain loop too.

mod common;

use common::{emulator, Number, Random, TensorViews, Views};
use sluice::hip::Hip;
use sluice::{
    reference, Args, Bf16, Determinism, Dtype, E4m3Fnuz, Host, Launch, Layout, LseBase, MaskAlignment,
    PageNumbers, PageTable, PageTableKind, Problem, ProblemBuilder, Result, ScaleKind, F16,
};
use sluice_sys as sys;
use std::marker::PhantomData;

/// Everything that a call may name, on the host: Q of type T, K and V of type C.
struct Case<T, C, O = T> {
    problem: Problem,
    batch: usize,
    q_len: usize,
    kv_len: usize,
    q: (Vec<T>, Layout),
    k: (Vec<C>, Layout),
    v: (Vec<C>, Layout),
    o_layout: Layout,
    lse_layout: Layout,
    q_starts: Option<Vec<i32>>,
    kv_starts: Option<Vec<i32>>,
    q_lengths: Option<Vec<i32>>,
    kv_lengths: Option<Vec<i32>>,
    pages_32: Option<Vec<i32>>,
    pages_64: Option<Vec<i64>>,
    page_starts: Option<Vec<i32>>,
    bias: Option<(Vec<f32>, Layout)>,
    mask: Option<(Vec<u8>, Layout)>,
    alibi_slopes: Option<Vec<f32>>,
    sink_logits: Option<Vec<f32>>,
    k_scale: Option<Vec<f32>>,
    v_scale: Option<Vec<f32>>,
    k_scales: Option<(Vec<f32>, Layout)>,
    v_scales: Option<(Vec<f32>, Layout)>,
    o_scale: Option<Vec<f32>>,
    bias_scale: Option<Vec<f32>>,
    diagonals: Option<Vec<i32>>,
    causal: Option<Vec<i32>>,
    spans: Option<Vec<i32>>,
    alibi_batch_stride: usize,
    bias_scale_batch_stride: usize,
    o: PhantomData<O>,
}

/// The arguments of a case whose memory is `$m`: vectors, or the buffers that `upload` makes from them.
macro_rules! args {
    ($case:expr, $m:expr, $v:expr, $o:expr, $lse:expr) => {{
        let case = $case;
        let mut args = Args::new(
            case.batch,
            $m.q.tensor(case.q.1)?,
            $m.k.tensor(case.k.1)?,
            Some($v.tensor(case.v.1)?),
            $o.tensor_mut(case.o_layout)?,
        );
        (args.q_len, args.kv_len) = (Some(case.q_len), Some(case.kv_len));
        args.lse = Some($lse.tensor_mut(case.lse_layout)?);
        args.q_starts = $m.q_starts.as_ref().map(|a| a.array());
        args.kv_starts = $m.kv_starts.as_ref().map(|a| a.array());
        args.q_lengths = $m.q_lengths.as_ref().map(|a| a.array());
        args.kv_lengths = $m.kv_lengths.as_ref().map(|a| a.array());
        let pages = match (&$m.pages_32, &$m.pages_64) {
            (Some(pages), _) => Some(PageNumbers::I32(pages.array())),
            (_, Some(pages)) => Some(PageNumbers::I64(pages.array())),
            _ => None,
        };
        args.page_table = pages.map(|pages| match &$m.page_starts {
            Some(starts) => PageTable::Csr { pages, starts: starts.array() },
            None => PageTable::Block { pages, stride: PAGES_EACH },
        });
        if let (Some(bias), Some((_, layout))) = (&$m.bias, &case.bias) {
            args.bias = Some(bias.tensor(*layout)?);
        }
        if let (Some(mask), Some((_, layout))) = (&$m.mask, &case.mask) {
            args.mask = Some(mask.tensor(*layout)?);
        }
        args.alibi_slopes = $m.alibi_slopes.as_ref().map(|a| a.array());
        args.sink_logits = $m.sink_logits.as_ref().map(|a| a.array());
        args.k_scale = $m.k_scale.as_ref().map(|a| a.array());
        args.v_scale = $m.v_scale.as_ref().map(|a| a.array());
        if let (Some(scales), Some((_, layout))) = (&$m.k_scales, &case.k_scales) {
            args.k_scales = Some(scales.tensor(*layout)?);
        }
        if let (Some(scales), Some((_, layout))) = (&$m.v_scales, &case.v_scales) {
            args.v_scales = Some(scales.tensor(*layout)?);
        }
        args.o_scale = $m.o_scale.as_ref().map(|a| a.array());
        args.bias_scale = $m.bias_scale.as_ref().map(|a| a.array());
        args.diagonals = $m.diagonals.as_ref().map(|a| a.array());
        args.causal = $m.causal.as_ref().map(|a| a.array());
        args.spans = $m.spans.as_ref().map(|a| a.array());
        args.span_count = case.spans.as_ref().map_or(0, |spans| spans.len() / 2 / case.batch);
        args.alibi_batch_stride = case.alibi_batch_stride;
        args.bias_scale_batch_stride = case.bias_scale_batch_stride;
        args
    }};
}

/// The memory of a case, copied by `$copy`.
macro_rules! memory {
    ($case:expr, $copy:expr) => {{
        struct Memory<Q, K, I, L, F, B> {
            q: Q,
            k: K,
            q_starts: Option<I>,
            kv_starts: Option<I>,
            q_lengths: Option<I>,
            kv_lengths: Option<I>,
            pages_32: Option<I>,
            pages_64: Option<L>,
            page_starts: Option<I>,
            bias: Option<F>,
            mask: Option<B>,
            alibi_slopes: Option<F>,
            sink_logits: Option<F>,
            k_scale: Option<F>,
            v_scale: Option<F>,
            k_scales: Option<F>,
            v_scales: Option<F>,
            o_scale: Option<F>,
            bias_scale: Option<F>,
            diagonals: Option<I>,
            causal: Option<I>,
            spans: Option<I>,
        }
        let case = $case;
        macro_rules! copied {
            ($value:expr) => {
                match &$value {
                    Some(value) => Some($copy(value)?),
                    None => None,
                }
            };
        }
        Memory {
            q: $copy(&case.q.0)?,
            k: $copy(&case.k.0)?,
            q_starts: copied!(case.q_starts),
            kv_starts: copied!(case.kv_starts),
            q_lengths: copied!(case.q_lengths),
            kv_lengths: copied!(case.kv_lengths),
            pages_32: copied!(case.pages_32),
            pages_64: copied!(case.pages_64),
            page_starts: copied!(case.page_starts),
            bias: copied!(case.bias.as_ref().map(|(bias, _)| bias)),
            mask: copied!(case.mask.as_ref().map(|(mask, _)| mask)),
            alibi_slopes: copied!(case.alibi_slopes),
            sink_logits: copied!(case.sink_logits),
            k_scale: copied!(case.k_scale),
            v_scale: copied!(case.v_scale),
            k_scales: copied!(case.k_scales.as_ref().map(|(scales, _)| scales)),
            v_scales: copied!(case.v_scales.as_ref().map(|(scales, _)| scales)),
            o_scale: copied!(case.o_scale),
            bias_scale: copied!(case.bias_scale),
            diagonals: copied!(case.diagonals),
            causal: copied!(case.causal),
            spans: copied!(case.spans),
        }
    }};
}

const BATCH: usize = 2;
const Q_LEN: usize = 37;
const KV_LEN: usize = 83;
const Q_HEADS: usize = 4;
const KV_HEADS: usize = 2;
const PAGE_SIZE: usize = 16;
const PAGES_EACH: usize = (KV_LEN + PAGE_SIZE - 1) / PAGE_SIZE;

impl<T: Number, C: Number, O: Number> Case<T, C, O> {
    /// Dense, with numbers from -1 to 1 and LSE.
    fn new(dim: usize, describe: impl FnOnce(ProblemBuilder) -> ProblemBuilder) -> Self {
        let [t, c, o] = [T::DTYPE, C::DTYPE, O::DTYPE].map(Option::unwrap);
        let builder = Problem::builder(t, Q_HEADS, KV_HEADS, dim).kv_type(c).o_type(o).write_lse(LseBase::E);
        let random = &mut Random(942);
        let (q_layout, kv_layout) = (
            Layout::contiguous([BATCH, Q_LEN, Q_HEADS, dim]),
            Layout::contiguous([BATCH, KV_LEN, KV_HEADS, dim]),
        );
        Case {
            problem: describe(builder).build().unwrap(),
            batch: BATCH,
            q_len: Q_LEN,
            kv_len: KV_LEN,
            q: (random.vector(BATCH * Q_LEN * Q_HEADS * dim), q_layout),
            k: (random.vector(BATCH * KV_LEN * KV_HEADS * dim), kv_layout),
            v: (random.vector(BATCH * KV_LEN * KV_HEADS * dim), kv_layout),
            o_layout: q_layout,
            lse_layout: Layout::contiguous([BATCH, Q_LEN, Q_HEADS, 1]),
            q_starts: None,
            kv_starts: None,
            q_lengths: None,
            kv_lengths: None,
            pages_32: None,
            pages_64: None,
            page_starts: None,
            bias: None,
            mask: None,
            alibi_slopes: None,
            sink_logits: None,
            k_scale: None,
            v_scale: None,
            k_scales: None,
            v_scales: None,
            o_scale: None,
            bias_scale: None,
            diagonals: None,
            causal: None,
            spans: None,
            alibi_batch_stride: 0,
            bias_scale_batch_stride: 0,
            o: PhantomData,
        }
    }

    /// A shuffled pool of pages, with one unused page.
    fn paged(dim: usize, describe: impl FnOnce(ProblemBuilder) -> ProblemBuilder) -> Self {
        let mut case = Case::new(dim, describe);
        let pages = BATCH * PAGES_EACH + 1;
        let layout = Layout::contiguous([pages, PAGE_SIZE, KV_HEADS, dim]);
        let random = &mut Random(7);
        case.k = (random.vector(pages * PAGE_SIZE * KV_HEADS * dim), layout);
        case.v = (random.vector(pages * PAGE_SIZE * KV_HEADS * dim), layout);
        case.kv_lengths = Some(vec![KV_LEN as i32, KV_LEN as i32 - 40]);
        case.pages_32 = Some((0..BATCH * PAGES_EACH).map(|i| ((i * 5 + 3) % pages) as i32).collect());
        case
    }

    fn host(&self, v: &Vec<C>) -> Result<(Vec<O>, Vec<f32>)> {
        fn copy<E: Clone>(elements: &[E]) -> Result<Vec<E>> {
            Ok(elements.to_vec())
        }
        let memory = memory!(self, copy);
        let mut o = vec![O::default(); self.q.0.len()];
        let mut lse = vec![0.0f32; self.q.0.len() / self.q.1.shape()[3]];
        let mut args: Args<Host> = args!(self, memory, v, o, lse);
        reference(&self.problem, &mut args)?;
        Ok((o, lse))
    }

    fn device(&self) -> Result<(Vec<O>, Vec<f32>)> {
        let context = emulator();
        let hip = Hip::new(&context)?;
        let memory = memory!(self, |elements| hip.buffer(elements));
        let v = hip.buffer(&self.v.0)?;
        let mut o = hip.zeroed::<O>(self.q.0.len())?;
        let mut lse = hip.zeroed::<f32>(self.q.0.len() / self.q.1.shape()[3])?;
        let plan = context.plan(&self.problem)?;
        let bytes = plan.info().workspace_bytes as usize;
        let mut scratch = hip.zeroed::<u8>(bytes.max(1))?;
        let workspace = scratch.workspace();
        let stream = hip.stream()?;
        let args = args!(self, memory, v, o, lse);
        let launch = Launch { stream: stream.raw(), workspace: Some(&workspace), ..Launch::default() };
        // SAFETY: everything stays valid until the stream has been waited for, and lengths and tables are valid: the
        // reference has checked them.
        unsafe { plan.run(&args, &launch) }?;
        stream.synchronize()?;
        let (mut o_rows, mut lse_rows) = (vec![O::default(); o.len()], vec![0.0; lse.len()]);
        o.download(&mut o_rows)?;
        lse.download(&mut lse_rows)?;
        Ok((o_rows, lse_rows))
    }

    /// The numerics page's bound for this call.
    fn limits(&self) -> Limits {
        fn max_of(numbers: impl Iterator<Item = f32>) -> f64 {
            numbers.fold(0f64, |a, b| a.max(f64::from(b.abs())))
        }
        let largest = |numbers: Option<&Vec<f32>>| max_of(numbers.into_iter().flatten().copied());
        let p = self.problem.raw();
        let u = 2f64.powi(-24);
        let (d, n) = (f64::from(p.head_dim_qk), self.kv_len as f64 + 1.0); // a sink logit counts as one more
        let (t, g) = ((n / 16.0).ceil() + 2.0, n);
        let q = max_of(self.q.0.iter().map(|x| x.decode()));
        let k = max_of(self.k.0.iter().map(|x| x.decode()));
        let largest_scale = |scale: &Option<Vec<f32>>, scales: &Option<(Vec<f32>, Layout)>| {
            largest(scale.as_ref()).max(largest(scales.as_ref().map(|(scales, _)| scales))).max(1.0)
        };
        let v = max_of(self.v.0.iter().map(|x| x.decode())) * largest_scale(&self.v_scale, &self.v_scales);
        let a = q * k * d.sqrt() * largest_scale(&self.k_scale, &self.k_scales);
        let cap = f64::from(p.soft_cap);
        let b =
            largest(self.bias.as_ref().map(|(bias, _)| bias)) * largest(self.bias_scale.as_ref()).max(1.0);
        let l = largest(self.alibi_slopes.as_ref()) * n;
        let z = a + b + l;
        // P includes the logarithms of V's scales.
        let exponents = self.v_scales.iter().flat_map(|(scales, _)| scales).map(|scale| scale.ln());
        let exponent = max_of(exponents);
        let x = z + largest(self.sink_logits.as_ref()) + exponent;
        let mut changes = 2.0 * a + 4.0 * b + 3.0 * l + 2.0 * z;
        if self.v_scales.is_some() {
            changes += 4.0 * exponent + x + 4.0;
        }
        if cap != 0.0 {
            changes += 2.0 * a + 12.0 * cap;
        }
        let score = u * (a * (8.0 + 3.0 * d / 8.0) + 10.0 * x + changes);
        let weight = score + u * (2.0 + t * (3.0 + 4.0 * x));
        let sum = weight + u * n;
        let merge = u * (11.0 * (x + n.ln()) + 10.0 + 2.0 * t);
        let (p, a) = match T::DTYPE {
            Some(Dtype::F16) => (2f64.powi(-10), 2f64.powi(-24)),
            _ => (2f64.powi(-8), 2f64.powi(-126)),
        };
        let (r, s) = last_place::<O>();
        let o_scale = self.o_scale.iter().flatten().fold(1.0, |a: f64, b| a.min(f64::from(*b)));
        Limits {
            per_magnitude: (1.0 + r) * (p + weight + u * (8.0 + 3.0 * g) + merge + 5.0 * u),
            constant: a * n * v / o_scale,
            per_o: sum + 6.0 * u,
            r,
            s,
            lse: sum + merge + u * (4.0 * x + 4.0 * (1.0 + n.ln())),
            base: if self.problem.raw().lse_base == sys::SLUICE_LSE_BASE_2 {
                std::f64::consts::LOG2_E
            } else {
                1.0
            },
        }
    }

    /// The largest ratio of error to bound, for O and for LSE.
    fn worst(&self, o: &[O], lse: &[f32], expected: &(Vec<O>, Vec<f32>), magnitudes: &[O]) -> (f64, f64) {
        let (dim, limits) = (self.o_layout.shape()[3], self.limits());
        let (mut worst, mut worst_lse) = (0f64, 0f64);
        let ratio = |is: f32, wanted: f32, bound: f64| match is == wanted {
            true => 0.0,
            false => {
                let ratio = f64::from((is - wanted).abs()) / bound;
                if ratio.is_nan() {
                    f64::INFINITY
                } else {
                    ratio
                }
            }
        };
        for i in 0..o.len() {
            let (wanted, lse_wanted) = (expected.0[i].decode(), expected.1[i / dim]);
            let bound = limits.o_bound(wanted, magnitudes[i].decode());
            worst = worst.max(ratio(o[i].decode(), wanted, bound));
            worst_lse = worst_lse.max(ratio(lse[i / dim], lse_wanted, limits.lse_bound(lse_wanted)));
        }
        (worst, worst_lse)
    }

    /// Where key j of sequence b is in K and V: the first two indices.
    fn place_of_key(&self, b: usize, j: usize) -> [usize; 2] {
        match &self.pages_32 {
            None => [b, j],
            Some(pages) => [pages[b * PAGES_EACH + j / PAGE_SIZE] as usize, j % PAGE_SIZE],
        }
    }

    /// O and LSE by plain loops, of a dense or paged case without a soft cap, windows and sinks.
    fn plain(&self) -> (Vec<f64>, Vec<f64>) {
        fn place(layout: &Layout, index: [usize; 4]) -> usize {
            index.into_iter().zip(layout.stride()).map(|(index, stride)| index * stride as usize).sum()
        }
        fn at<E: Number>((elements, layout): &(Vec<E>, Layout), index: [usize; 4]) -> f64 {
            elements[place(layout, index)].decode().into()
        }
        let p = self.problem.raw();
        let dim = p.head_dim_qk as usize;
        let lens =
            |lengths: &Option<Vec<i32>>, b: usize, all| lengths.as_ref().map_or(all, |l| l[b] as usize);
        let (mut o, mut lse) = (vec![0.0; BATCH * Q_LEN * Q_HEADS * dim], vec![0.0; BATCH * Q_LEN * Q_HEADS]);
        for row in 0..BATCH * Q_LEN * Q_HEADS {
            let (b, i, h) = (row / Q_HEADS / Q_LEN, row / Q_HEADS % Q_LEN, row % Q_HEADS);
            let (rows, keys) = (lens(&self.q_lengths, b, self.q_len), lens(&self.kv_lengths, b, self.kv_len));
            if i >= rows {
                continue; // neither written nor compared
            }
            let kv_head = h * KV_HEADS / Q_HEADS;
            let diagonal = match &self.diagonals {
                Some(diagonals) => diagonals[b] as isize,
                None if p.mask_alignment == sys::SLUICE_TOP_LEFT => 0,
                None => keys as isize - rows as isize,
            } + i as isize;
            let span_of = |key: isize| {
                let each = self.spans.iter().flat_map(|spans| {
                    let span_numbers = spans.len() / BATCH;
                    spans[b * span_numbers..(b + 1) * span_numbers].chunks(2)
                });
                each.into_iter().position(|span| (span[0] as isize..span[1] as isize).contains(&key))
            };
            let causal = match &self.causal {
                Some(causal) => causal[b] != 0,
                None => self.problem.raw().flags & sys::SLUICE_CAUSAL != 0,
            };
            let new_rows = p.flags & sys::SLUICE_MASK_NEW_ROWS != 0;
            let first_masked = if new_rows { keys as isize - rows as isize } else { 0 };
            let (mut scores, mut visible) = (vec![], vec![]);
            for j in 0..keys {
                let key = j as isize;
                let together = span_of(key).is_some() && span_of(key) == span_of(diagonal);
                if causal && key > diagonal && !together {
                    continue;
                }
                if let (Some((bytes, layout)), true) = (&self.mask, key >= first_masked) {
                    let bit = (key - first_masked) as usize;
                    if bytes[place(layout, [b, h, i, bit / 8])] >> (bit % 8) & 1 == 0 {
                        continue;
                    }
                }
                let [first, second] = self.place_of_key(b, j);
                let product = |e| at(&self.q, [b, i, h, e]) * at(&self.k, [first, second, kv_head, e]);
                let mut score = (0..dim).map(product).sum::<f64>() / (dim as f64).sqrt();
                if let Some(scales) = &self.k_scales {
                    score *= at(scales, [first, second, kv_head, 0]);
                }
                if let Some(bias) = &self.bias {
                    let factor =
                        self.bias_scale.as_ref().map_or(1.0, |f| f[b * self.bias_scale_batch_stride + h]);
                    score += f64::from(factor) * at(bias, [b, h, i, j]);
                }
                if let Some(slopes) = &self.alibi_slopes {
                    let slope = f64::from(slopes[b * self.alibi_batch_stride + h]);
                    score -= slope * (diagonal - key).abs() as f64;
                }
                scores.push(score);
                visible.push([first, second]);
            }
            let sum: f64 = scores.iter().map(|score| score.exp()).sum();
            lse[row] = sum.ln();
            let o_scale = self.o_scale.as_ref().map_or(1.0, |scales| f64::from(scales[h % scales.len()]));
            for (score, [first, second]) in scores.iter().zip(visible) {
                let v_scale =
                    self.v_scales.as_ref().map_or(1.0, |scales| at(scales, [first, second, kv_head, 0]));
                for e in 0..dim {
                    let v = at(&self.v, [first, second, kv_head, e]);
                    o[row * dim + e] += score.exp() / sum * v_scale * v / o_scale;
                }
            }
        }
        (o, lse)
    }

    /// As `check`, and the reference agrees with plain loops.
    fn check_with_loops(&self) -> Result<()> {
        let ((o, lse), (o_wanted, lse_wanted)) = (self.host(&self.v.0)?, self.plain());
        let (r, s) = last_place::<O>();
        for (is, wanted) in o.iter().map(|x| f64::from(x.decode())).zip(o_wanted) {
            let within = (r + 1e-9) * wanted.abs() + s;
            assert!((is - wanted).abs() <= within, "O is {is}, not {wanted}");
        }
        for (is, wanted) in lse.into_iter().map(f64::from).zip(lse_wanted) {
            let near = (is - wanted).abs() <= 2f64.powi(-23) * wanted.abs() + 1e-9;
            assert!(is == wanted || near, "LSE is {is}, not {wanted}");
        }
        self.check()
    }

    /// The device agrees with the reference, and would not if the values of keys or the LSEs of rows were swapped.
    fn check(&self) -> Result<()> {
        let expected = self.host(&self.v.0)?;
        let magnitudes: Vec<C> = self.v.0.iter().map(|x| C::encode(x.decode().abs())).collect();
        let magnitudes = self.host(&magnitudes)?.0;
        let (o, lse) = self.device()?;
        let (worst, worst_lse) = self.worst(&o, &lse, &expected, &magnitudes);
        assert!(
            worst <= 1.0 && worst_lse <= 1.0,
            "O at {worst:.3} and LSE at {worst_lse:.3} of their bounds"
        );

        let mut moved = self.v.0.clone();
        moved.rotate_left(self.v.1.shape()[3]);
        let mut wrong = self.host(&moved)?;
        wrong.1.rotate_left(1);
        let (worst, worst_lse) = self.worst(&wrong.0, &wrong.1, &expected, &magnitudes);
        assert!(worst > 1.0 && worst_lse > 1.0, "the bounds see nothing: {worst:.3}, {worst_lse:.3}");
        Ok(())
    }
}

/// Half of the last place of a number of this type, relative to the number, and of the smallest ones.
fn last_place<E: Number>() -> (f64, f64) {
    match E::DTYPE {
        Some(Dtype::F16) => (2f64.powi(-11), 2f64.powi(-25)),
        Some(Dtype::E4m3Fnuz) => (2f64.powi(-4), 2f64.powi(-11)),
        _ => (2f64.powi(-8), 2f64.powi(-134)),
    }
}

/// The bound as a function of a row's numbers.
struct Limits {
    per_magnitude: f64,
    constant: f64,
    per_o: f64,
    r: f64,
    s: f64,
    lse: f64,
    base: f64,
}

impl Limits {
    /// `magnitude` is W: the result for |V|. The reference is rounded to the type of O too.
    fn o_bound(&self, o: f32, magnitude: f32) -> f64 {
        let o = f64::from(o.abs());
        let e = self.per_magnitude * f64::from(magnitude) + self.constant + self.per_o * o;
        e + 2.0 * (self.r * (o + e) + self.s)
    }

    /// The reference is rounded to F32 too; base 2 adds one product.
    fn lse_bound(&self, lse: f32) -> f64 {
        self.base * self.lse + 4.0 * 2f64.powi(-24) * f64::from(lse.abs())
    }
}

#[test]
fn dense_causal() -> Result<()> {
    Case::<F16, F16>::new(128, |p| p.causal()).check()
}

#[test]
fn dense_of_bf16_with_another_head_size_and_lengths() -> Result<()> {
    let mut case = Case::<Bf16, Bf16>::new(64, |p| p);
    case.q_lengths = Some(vec![Q_LEN as i32, 5]);
    case.kv_lengths = Some(vec![50, KV_LEN as i32]);
    case.check()
}

#[test]
fn windows_soft_cap_sinks_and_base_2() -> Result<()> {
    let mut case = Case::<F16, F16>::new(128, |p| {
        let p = p.causal().window_left(20).sink_tokens(3).soft_cap(30.0).sink_logits();
        p.write_lse(LseBase::Two)
    });
    case.sink_logits = Some(vec![0.5, -1.0, 2.0, 0.0]);
    case.check()
}

#[test]
fn bias_and_slopes() -> Result<()> {
    let mut case =
        Case::<F16, F16>::new(128, |p| p.bias(Dtype::F32).alibi().mask_alignment(MaskAlignment::TopLeft));
    // One matrix for all sequences and heads.
    let layout = Layout::strided([BATCH, Q_HEADS, Q_LEN, KV_LEN], [0, 0, KV_LEN as i64, 1]);
    case.bias = Some((Random(3).vector(Q_LEN * KV_LEN), layout));
    case.alibi_slopes = Some(vec![0.5, 0.25, 0.125, 0.0625]);
    case.check()
}

#[test]
fn a_mask_of_bits() -> Result<()> {
    let mut case = Case::<F16, F16>::new(80, |p| p.bool_mask());
    let bytes = (KV_LEN + 7) / 8;
    let layout = Layout::contiguous([BATCH, Q_HEADS, Q_LEN, bytes]);
    let mut random = Random(5);
    case.mask = Some(((0..BATCH * Q_HEADS * Q_LEN * bytes).map(|_| random.next() as u8).collect(), layout));
    case.check()
}

#[test]
fn ragged() -> Result<()> {
    let mut case = Case::<F16, F16>::new(128, |p| p.ragged().causal());
    case.q.1 = Layout::rows([BATCH * Q_LEN, Q_HEADS, 128]);
    case.o_layout = case.q.1;
    case.lse_layout = Layout::rows([BATCH * Q_LEN, Q_HEADS, 1]);
    (case.k.1, case.v.1) =
        (Layout::rows([BATCH * KV_LEN, KV_HEADS, 128]), Layout::rows([BATCH * KV_LEN, KV_HEADS, 128]));
    case.q_starts = Some(vec![0, 30, 30 + Q_LEN as i32]);
    case.kv_starts = Some(vec![0, 60, 60 + KV_LEN as i32]);
    case.check()
}

#[test]
fn paged_with_an_fp8_cache() -> Result<()> {
    let mut case = Case::<F16, E4m3Fnuz>::paged(128, |p| {
        p.paged(PAGE_SIZE, PageTableKind::Block)
            .causal()
            .k_scale(ScaleKind::PerHead)
            .v_scale(ScaleKind::PerTensor)
    });
    case.k_scale = Some(vec![0.5, 1.5]);
    case.v_scale = Some(vec![0.75]);
    case.check()
}

#[test]
fn paged_batch_invariant_with_a_table_in_csr_of_64_bits() -> Result<()> {
    let mut case = Case::<F16, F16>::paged(128, |p| {
        let p = p.paged(PAGE_SIZE, PageTableKind::Csr).page_index_64().causal();
        p.determinism(Determinism::BatchInvariant).max_batch(BATCH).max_q_len(Q_LEN).max_kv_len(4096)
    });
    case.pages_64 = case.pages_32.take().map(|pages| pages.into_iter().map(i64::from).collect());
    case.page_starts = Some(vec![0, PAGES_EACH as i32, 2 * PAGES_EACH as i32]);
    assert!(case.problem.raw().flags & sys::SLUICE_PAGE_INDEX_64 != 0);
    assert!(emulator().workspace_size(&case.problem)? > 0, "this case is about a workspace");
    case.check()
}

#[test]
fn scales_of_tokens() -> Result<()> {
    let mut case = Case::<F16, E4m3Fnuz>::new(64, |p| {
        p.k_scale(ScaleKind::PerToken).v_scale(ScaleKind::PerToken).causal()
    });
    let layout = Layout::contiguous([BATCH, KV_LEN, KV_HEADS, 1]);
    case.k_scales = Some((scales(1, BATCH * KV_LEN * KV_HEADS), layout));
    // The heads of V share theirs.
    let shared = Layout::strided([BATCH, KV_LEN, KV_HEADS, 1], [KV_LEN as i64, 1, 0, 1]);
    case.v_scales = Some((scales(2, BATCH * KV_LEN), shared));
    case.check_with_loops()
}

#[test]
fn scales_of_pages_with_an_fp8_cache_and_an_fp8_result() -> Result<()> {
    let mut case = Case::<Bf16, E4m3Fnuz, E4m3Fnuz>::paged(128, |p| {
        let p = p.paged(PAGE_SIZE, PageTableKind::Block).causal();
        p.k_scale(ScaleKind::PerPage).v_scale(ScaleKind::PerPage).o_scale(ScaleKind::PerHead)
    });
    let pages = BATCH * PAGES_EACH + 1;
    let layout = Layout::strided([pages, 1, KV_HEADS, 1], [KV_HEADS as i64, 0, 1, 1]);
    case.k_scales = Some((scales(3, pages * KV_HEADS), layout));
    case.v_scales = Some((scales(4, pages * KV_HEADS), layout));
    case.o_scale = Some(vec![0.25, 0.0625, 0.03125, 0.125]);
    case.check_with_loops()
}

#[test]
fn spans_at_given_diagonals_of_causal_sequences() -> Result<()> {
    let mut case = Case::<F16, F16>::new(64, |p| {
        p.spans().causal_by_sequence().mask_alignment(MaskAlignment::GivenDiagonal)
    });
    case.diagonals = Some(vec![7, 40]);
    case.causal = Some(vec![1, 0]);
    case.spans = Some(vec![3, 12, 20, 60, 0, 0, 50, 60]);
    case.check_with_loops()?;
    case.causal = Some(vec![0, 5]);
    case.check_with_loops()
}

#[test]
fn a_mask_of_new_rows() -> Result<()> {
    let mut case = Case::<F16, F16>::new(64, |p| p.bool_mask().mask_new_rows());
    let bytes = (Q_LEN + 7) / 8;
    let mut random = Random(6);
    let layout = Layout::contiguous([BATCH, Q_HEADS, Q_LEN, bytes]);
    case.mask = Some(((0..BATCH * Q_HEADS * Q_LEN * bytes).map(|_| random.next() as u8).collect(), layout));
    case.kv_lengths = Some(vec![KV_LEN as i32, 50]);
    case.check_with_loops()
}

#[test]
fn factors_and_slopes_of_each_sequence() -> Result<()> {
    let mut case = Case::<F16, F16>::new(128, |p| p.bias(Dtype::F32).bias_scale().alibi());
    let layout = Layout::strided([BATCH, Q_HEADS, Q_LEN, KV_LEN], [0, 0, KV_LEN as i64, 1]);
    case.bias = Some((Random(3).vector(Q_LEN * KV_LEN), layout));
    case.bias_scale = Some(vec![0.5, -1.5, 2.0, 1.0, 0.0, 3.0, 1.0, 0.25, -1.0]);
    case.alibi_slopes = Some(vec![0.5, 0.25, 0.125, 0.0625, 0.0, 0.375, 0.03125, 0.75]);
    (case.bias_scale_batch_stride, case.alibi_batch_stride) = (5, 4);
    case.check_with_loops()?;
    // All sequences share them.
    (case.bias_scale_batch_stride, case.alibi_batch_stride) = (0, 0);
    case.check_with_loops()
}

/// From 0.25 to 2.25.
fn scales(seed: u64, len: usize) -> Vec<f32> {
    Random(seed).vector::<f32>(len).into_iter().map(|x| 1.25 + x).collect()
}

/// Starts and page numbers that lead out of the views only give wrong numbers: memory after the views is unchanged, and
/// missing pages read as zeros.
#[test]
fn no_contents_reach_outside_the_views() -> Result<()> {
    let context = emulator();
    let hip = Hip::new(&context)?;
    let one = F16::from_f32(1.0);
    let (q, kv) = (hip.buffer(&[one; 8 * 64])?, hip.buffer(&vec![one; 4 * 16 * 64])?);
    let starts = [hip.buffer(&[0i32, 2, 8])?, hip.buffer(&[0i32, 16, 5000])?];
    let (lengths, table) = (hip.buffer(&[16i32, 32])?, hip.buffer(&[1i32, 0, 0, 1 << 30])?);
    // The last four rows of O and of the LSE belong to no sequence.
    let run = |problem: ProblemBuilder, paged: bool| -> Result<Vec<f32>> {
        let (mut o, mut lse) = (hip.buffer(&[F16::from_f32(-5.0); 8 * 64])?, hip.buffer(&[-5.0f32; 8])?);
        let keys = if paged { Layout::contiguous([2, 16, 1, 64]) } else { Layout::rows([2 * 16, 1, 64]) };
        let kv = kv.tensor(keys)?;
        let mut args = Args::new(
            2,
            q.tensor(Layout::rows([8, 1, 64]))?,
            kv,
            Some(kv),
            o.tensor_mut(Layout::rows([8, 1, 64]))?,
        );
        args.lse = Some(lse.tensor_mut(Layout::rows([4, 1, 1]))?);
        (args.q_len, args.kv_len) = (Some(8), Some(32));
        args.q_starts = Some(starts[0].array());
        match paged {
            false => args.kv_starts = Some(starts[1].array()),
            true => {
                args.kv_lengths = Some(lengths.array());
                let pages = PageNumbers::I32(table.array());
                args.page_table = Some(PageTable::Block { pages, stride: 2 });
            }
        }
        let plan = context.plan(&problem.write_lse(LseBase::E).build()?)?;
        // SAFETY: all buffers stay until the device has been waited for.
        unsafe { plan.run(&args, &Launch::default()) }?;
        hip.synchronize()?;
        let (mut rows, mut lse_values) = ([F16::default(); 8 * 64], [0.0; 8]);
        o.download(&mut rows)?;
        lse.download(&mut lse_values)?;
        assert_eq!(lse_values[4..], [-5.0; 4]);
        assert!(rows.chunks(64).all(|row| row.iter().all(|element| *element == row[0])));
        Ok(rows.iter().step_by(64).map(|element| element.to_f32()).collect())
    };
    let base = || Problem::builder(Dtype::F16, 1, 1, 64);
    assert_eq!(run(base().ragged(), false)?, [1.0, 1.0, 1.0, 1.0, -5.0, -5.0, -5.0, -5.0]);
    // Half of the keys that the second sequence sees have V = 1; the other half have scores of 0, and the weight
    // exp(-8).
    let rows = run(base().paged(16, PageTableKind::Block), true)?;
    assert_eq!((&rows[..2], &rows[4..]), (&[1.0; 2][..], &[-5.0; 4][..]));
    let weight = 1.0 / (1.0 + (-8f32).exp());
    assert!(rows[2..4].iter().all(|is| (is - weight).abs() < 1e-3), "{rows:?}");
    Ok(())
}
