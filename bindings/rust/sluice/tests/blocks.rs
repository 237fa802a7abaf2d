//! K and V in blocks of numbers with a common scale: calls on the emulated device against the reference on the host, and
//! the reference against the same call with the elements as F32 numbers, which this test computes.

mod common;

use common::{emulator, Random, TensorViews, Views};
use sluice::hip::Hip;
use sluice::{
    reference, Args, BlockQ4_0, BlockQ8_0, Code, Dtype, Element, Launch, Layout, PageNumbers, PageTable,
    PageTableKind, Problem, ProblemBuilder, Result, ScaleKind, U4Pair, F16,
};

const BATCH: usize = 2;
const Q_HEADS: usize = 4;
const KV_HEADS: usize = 2;
const PAGE_SIZE: usize = 16;
const PAGES: usize = 12;
const LENGTHS: [i32; BATCH] = [83, 20];
const TABLE: [i32; 12] = [7, 2, 9, 4, 11, 0, 3, 10, -1, -1, -1, -1];
const DIM: usize = 128;
const GROUP: usize = 64;

/// Values that hold elements of a cache together.
trait Block: Element + Default {
    fn dtype() -> Dtype {
        Self::DTYPE.expect("a type of numbers")
    }
    fn random(random: &mut Random) -> Self;
    /// The elements, without the scales and zeros of groups.
    fn elements(&self) -> Vec<f32>;
}

fn scale(random: &mut Random, largest: f32) -> F16 {
    F16::from_f32((1.0 + 0.25 * random.unit()) / largest)
}

impl Block for BlockQ8_0 {
    fn random(random: &mut Random) -> Self {
        BlockQ8_0 {
            scale: scale(random, 127.0),
            numbers: [(); 32].map(|()| (random.next() % 255) as u8 as i8),
        }
    }
    fn elements(&self) -> Vec<f32> {
        self.numbers.iter().map(|number| self.scale.to_f32() * f32::from(*number)).collect()
    }
}

impl Block for BlockQ4_0 {
    fn random(random: &mut Random) -> Self {
        BlockQ4_0 { scale: scale(random, 8.0), numbers: [(); 16].map(|()| random.next() as u8) }
    }
    fn elements(&self) -> Vec<f32> {
        let halves =
            self.numbers.iter().map(|byte| byte & 15).chain(self.numbers.iter().map(|byte| byte >> 4));
        halves.map(|number| self.scale.to_f32() * (f32::from(number) - 8.0)).collect()
    }
}

impl Block for U4Pair {
    fn random(random: &mut Random) -> Self {
        U4Pair(random.next() as u8)
    }
    fn elements(&self) -> Vec<f32> {
        vec![f32::from(self.0 & 15), f32::from(self.0 >> 4)]
    }
}

/// K or V of a paged cache.
struct Cache<B> {
    blocks: Vec<B>,
    /// Of groups.
    scales: Vec<F16>,
    zeros: Vec<F16>,
}

const ROWS: usize = PAGES * PAGE_SIZE * KV_HEADS;

impl<B: Block> Cache<B> {
    fn new(seed: u64) -> Self {
        let random = &mut Random(seed);
        let groups = ROWS * DIM / GROUP;
        Cache {
            blocks: (0..ROWS * DIM / B::dtype().block()).map(|_| B::random(random)).collect(),
            scales: (0..groups).map(|_| scale(random, 8.0)).collect(),
            zeros: (0..groups).map(|_| F16::from_f32(7.5 + random.unit())).collect(),
        }
    }

    fn elements(&self) -> Vec<f32> {
        let stored = self.blocks.iter().flat_map(B::elements);
        if B::dtype() != Dtype::U4 {
            return stored.collect();
        }
        let in_group = |(i, number): (usize, f32)| {
            self.scales[i / GROUP].to_f32() * (number - self.zeros[i / GROUP].to_f32())
        };
        stored.enumerate().map(in_group).collect()
    }
}

fn rows(dim: usize) -> Layout {
    Layout::contiguous([BATCH, 1, Q_HEADS, dim])
}

fn pages(dim: usize) -> Layout {
    Layout::contiguous([PAGES, PAGE_SIZE, KV_HEADS, dim])
}

/// The arguments of a call whose memory is vectors or buffers.
macro_rules! args {
    ($q:expr, $k:expr, $v:expr, $o:expr, $lengths:expr, $table:expr) => {{
        let (k, v) = ($k.tensor(pages(DIM))?, $v.tensor(pages(DIM))?);
        let mut args = Args::new(BATCH, $q.tensor(rows(DIM))?, k, Some(v), $o.tensor_mut(rows(DIM))?);
        (args.q_len, args.kv_len) = (Some(1), Some(LENGTHS[0] as usize));
        args.kv_lengths = Some($lengths.array());
        args.page_table =
            Some(PageTable::Block { pages: PageNumbers::I32($table.array()), stride: TABLE.len() / 2 });
        args
    }};
}

macro_rules! add_groups {
    ($args:expr, $($field:ident: $memory:expr),*) => { $($args.$field = Some($memory.tensor(pages(DIM / GROUP))?);)* };
}

fn problem(builder: ProblemBuilder) -> Result<Problem> {
    builder.paged(PAGE_SIZE, PageTableKind::Block).o_type(Dtype::F32).build()
}

fn attend<B: Block>() -> Result<()> {
    let (k, v) = (Cache::<B>::new(1), Cache::<B>::new(2));
    let has_groups = B::dtype() == Dtype::U4;
    let mut builder = Problem::builder(Dtype::F16, Q_HEADS, KV_HEADS, DIM).kv_type(B::dtype());
    if has_groups {
        builder = builder.k_scale(ScaleKind::PerGroup).v_scale(ScaleKind::PerGroup);
        builder = builder.scale_group(GROUP).zero_points();
    }
    let block_problem = problem(builder)?;
    let q: Vec<F16> = Random(3).vector(BATCH * Q_HEADS * DIM);
    let (lengths, table) = (LENGTHS.to_vec(), TABLE.to_vec());
    let empty = || vec![0.0f32; q.len()];

    let mut expected = empty();
    let mut args = args!(q, k.blocks, v.blocks, expected, lengths, table);
    if has_groups {
        add_groups!(args, k_scales: k.scales, v_scales: v.scales, k_zeros: k.zeros, v_zeros: v.zeros);
    }
    reference(&block_problem, &mut args)?;

    // The reference knows what the numbers mean: they are the elements to the last bit.
    let plain = problem(Problem::builder(Dtype::F16, Q_HEADS, KV_HEADS, DIM).kv_type(Dtype::F32))?;
    let (mut element_o, k_elements, v_elements) = (empty(), k.elements(), v.elements());
    let mut args = args!(q, k_elements, v_elements, element_o, lengths, table);
    reference(&plain, &mut args)?;
    let near = |a: &[f32], b: &[f32], most: f32| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= most);
    assert!(near(&element_o, &expected, 1e-6), "the reference reads other elements");

    let context = emulator();
    let hip = Hip::new(&context)?;
    let [k_blocks, v_blocks] = [&k.blocks, &v.blocks].map(|blocks| hip.buffer(blocks).unwrap());
    let groups = [&k.scales, &v.scales, &k.zeros, &v.zeros].map(|numbers| hip.buffer(numbers).unwrap());
    let (q, lengths, table) = (hip.buffer(&q)?, hip.buffer(&lengths)?, hip.buffer(&table)?);
    let mut o = hip.zeroed::<f32>(expected.len())?;
    let mut args = args!(q, k_blocks, v_blocks, o, lengths, table);
    if has_groups {
        add_groups!(args, k_scales: groups[0], v_scales: groups[1], k_zeros: groups[2], v_zeros: groups[3]);
    }
    let plan = context.plan(&block_problem)?;
    // SAFETY: everything stays until the device has been waited for, and the reference has checked the contents.
    unsafe { plan.run(&args, &Launch::default()) }?;
    hip.synchronize()?;
    let mut is = empty();
    o.download(&mut is)?;
    // Elements, which are below 1.3, have 11 bits on the device.
    assert!(near(&is, &expected, 4e-3), "{is:?}, not {expected:?}");
    assert!(!near(&is, &expected[DIM..], 0.05), "the heads do not differ");
    Ok(())
}

#[test]
fn caches_of_q8_0() -> Result<()> {
    attend::<BlockQ8_0>()
}

#[test]
fn caches_of_q4_0() -> Result<()> {
    attend::<BlockQ4_0>()
}

#[test]
fn caches_of_4_bits_with_scales_and_zeros_of_groups() -> Result<()> {
    attend::<U4Pair>()
}

#[test]
fn wrong_blocks_are_refused() {
    let context = emulator();
    let refused = |builder: ProblemBuilder, field: &str, part: &str| {
        let error = context.plan(&builder.build().unwrap()).unwrap_err();
        assert_eq!((error.code, error.field.as_str()), (Code::InvalidArgument, field), "{error}");
        assert!(error.message.contains(part), "{error}");
    };
    let of = |dtype, dim| Problem::builder(Dtype::F16, Q_HEADS, KV_HEADS, dim).kv_type(dtype);
    refused(of(Dtype::Q8_0, 72), "head_dim_qk", "is 72; it must be a multiple of 32 for q8_0");
    let per_group = |dim| of(Dtype::U4, dim).k_scale(ScaleKind::PerGroup).v_scale(ScaleKind::PerGroup);
    refused(per_group(96).scale_group(64), "head_dim_qk", "is 96; it must be a multiple of 64 for u4");
    refused(per_group(128), "scale_group", "is 0; it must be 32 or 64");
    refused(of(Dtype::U4, 128), "k_scale_kind", "must be SLUICE_SCALE_PER_GROUP (5) for u4");
    refused(of(Dtype::Q4_0, 128).zero_points(), "flags", "flags has SLUICE_ZERO_POINTS");
    // Memory is counted in blocks.
    let error =
        sluice::Tensor::new(&[BlockQ4_0::default(); 3], Layout::contiguous([1, 1, 1, 128])).unwrap_err();
    assert_eq!(
        error.message,
        "shape [1, 1, 1, 128] with stride [128, 128, 128, 1] needs 128 elements; the memory has 96"
    );
}
