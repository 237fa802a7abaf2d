//! V by columns: on the host and on the emulated device, attention over it and appends into it have the results of the
//! same V by rows.

mod common;

use common::{emulator, Random, TensorViews, Views};
use sluice::hip::Hip;
use sluice::{
    reference, reference_append, Append, Args, Code, Dtype, Launch, Layout, PageNumbers, PageTable,
    PageTableKind, Place, Problem, ProblemBuilder, Result, F16,
};

const BATCH: usize = 2;
const Q_HEADS: usize = 4;
const KV_HEADS: usize = 2;
const DIM: usize = 64;
const PAGE_SIZE: usize = 16;
const PAGES: usize = 4;
const KEYS: usize = 21;
const TABLE: [i32; PAGES] = [3, 1, 0, 2];

fn rows(dim: usize) -> Layout {
    Layout::contiguous([BATCH, 1, Q_HEADS, dim])
}

/// The arguments of a call; `$keys` are the layouts of K and of V.
macro_rules! args {
    ($q:expr, $k:expr, $v:expr, $o:expr, $keys:expr) => {{
        let (k, v) = ($k.tensor($keys.0)?, $v.tensor($keys.1)?);
        let mut args = Args::new(BATCH, $q.tensor(rows(DIM))?, k, Some(v), $o.tensor_mut(rows(DIM))?);
        (args.q_len, args.kv_len) = (Some(1), Some(KEYS));
        args
    }};
}

macro_rules! add_pages {
    ($args:expr, $lengths:expr, $table:expr) => {
        $args.kv_lengths = Some($lengths.array());
        $args.page_table = Some(PageTable::Block { pages: PageNumbers::I32($table.array()), stride: 2 });
    };
}

/// Element [a][b][c][d] of contiguous rows, at the places of `layout`.
fn placed(values: &[F16], shape: [usize; 4], layout: Layout) -> Vec<F16> {
    let [_, tokens, heads, dim] = shape;
    let stride = layout.stride().map(|stride| stride as usize);
    let pack = layout.token_pack().max(1);
    let mut memory = vec![F16::from_f32(f32::NAN); layout.shape()[0] * stride[0]];
    for (index, value) in values.iter().enumerate() {
        let (a, b) = (index / dim / heads / tokens, index / dim / heads % tokens);
        let token = b / pack * stride[1] + b % pack;
        memory[a * stride[0] + token + index / dim % heads * stride[2] + index % dim * stride[3]] = *value;
    }
    memory
}

/// `shape`: of K and of V by rows.
fn attend(plain: ProblemBuilder, turned: ProblemBuilder, shape: [usize; 4], layout: Layout) -> Result<()> {
    let is_paged = shape[1] == PAGE_SIZE;
    let count = shape.iter().product();
    let q: Vec<F16> = Random(1).vector(BATCH * Q_HEADS * DIM);
    let k: Vec<F16> = Random(2).vector(count);
    let v: Vec<F16> = Random(3).vector(count);
    let v_by_columns = placed(&v, shape, layout);
    let (lengths, table) = (vec![KEYS as i32; BATCH], TABLE.to_vec());
    let keys = Layout::contiguous(shape);
    let mut expected = vec![0.0f32; q.len()];
    let mut args = args!(q, k, v, expected, (keys, keys));
    if is_paged {
        add_pages!(args, lengths, table);
    }
    reference(&plain.build()?, &mut args)?;

    let problem = turned.build()?;
    let mut host_o = vec![0.0f32; q.len()];
    let mut args = args!(q, k, v_by_columns, host_o, (keys, layout));
    if is_paged {
        add_pages!(args, lengths, table);
    }
    reference(&problem, &mut args)?;
    assert_eq!(host_o, expected);

    let context = emulator();
    let hip = Hip::new(&context)?;
    let (q, k, v) = (hip.buffer(&q)?, hip.buffer(&k)?, hip.buffer(&v_by_columns)?);
    let (lengths, table) = (hip.buffer(&lengths)?, hip.buffer(&table)?);
    let mut o = hip.zeroed::<f32>(expected.len())?;
    let mut args = args!(q, k, v, o, (keys, layout));
    if is_paged {
        add_pages!(args, lengths, table);
    }
    let plan = context.plan(&problem)?;
    // SAFETY: everything stays until the device has been waited for, and the reference has checked the contents.
    unsafe { plan.run(&args, &Launch::default()) }?;
    hip.synchronize()?;
    let mut is = vec![0.0f32; expected.len()];
    o.download(&mut is)?;
    let largest = is.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(largest <= 4e-3, "{is:?}, not {expected:?}");
    Ok(())
}

fn problem() -> ProblemBuilder {
    Problem::builder(Dtype::F16, Q_HEADS, KV_HEADS, DIM).o_type(Dtype::F32)
}

#[test]
fn sequences() -> Result<()> {
    let shape = [BATCH, KEYS, KV_HEADS, DIM];
    let head = 24 * DIM as i64;
    let turned = Layout::strided([BATCH, 24, KV_HEADS, DIM], [KV_HEADS as i64 * head, 1, head, 24]);
    attend(problem(), problem().v_by_columns(), shape, turned)
}

const CACHE: [usize; 4] = [PAGES, PAGE_SIZE, KV_HEADS, DIM];
const HEAD: i64 = (PAGE_SIZE * DIM) as i64;

/// All tokens of a page are neighbours.
fn whole_pages() -> Layout {
    Layout::strided(CACHE, [KV_HEADS as i64 * HEAD, 1, HEAD, PAGE_SIZE as i64])
}

/// Those of a pack are.
fn packs(tokens: usize) -> Layout {
    let pack = (tokens * DIM) as i64;
    Layout::strided(CACHE, [KV_HEADS as i64 * HEAD, pack, HEAD, tokens as i64]).packed_tokens(tokens)
}

#[test]
fn pages() -> Result<()> {
    let paged = || problem().paged(PAGE_SIZE, PageTableKind::Block);
    attend(paged(), paged().v_by_columns(), CACHE, whole_pages())?;
    attend(paged(), paged().v_pack(8), CACHE, packs(8))
}

const SLOTS: [i64; 4] = [7, 47, -1, 40];

/// An append whose K goes to rows, and V to `$layout`.
macro_rules! append {
    ($rows:expr, $k_cache:expr, $v_cache:expr, $slots:expr, $layout:expr) => {{
        let new = Layout::rows([SLOTS.len(), KV_HEADS, DIM]);
        Append::new(
            $rows.tensor(new)?,
            Some($rows.tensor(new)?),
            $k_cache.tensor_mut(Layout::contiguous(CACHE))?,
            Some($v_cache.tensor_mut($layout)?),
            Place::Slots($slots.array()),
        )
    }};
}

#[test]
fn new_rows() -> Result<()> {
    let rows: Vec<F16> = Random(4).vector(SLOTS.len() * KV_HEADS * DIM);
    let slots = SLOTS.to_vec();
    let empty = vec![F16::default(); CACHE.iter().product()];
    let (mut k_cache, mut by_rows) = (empty.clone(), empty.clone());
    reference_append(&mut append!(rows, k_cache, by_rows, slots, Layout::contiguous(CACHE)))?;
    let context = emulator();
    let hip = Hip::new(&context)?;
    for layout in [whole_pages(), packs(8)] {
        let expected = placed(&by_rows, CACHE, layout);
        let mut host_o = empty.clone();
        reference_append(&mut append!(rows, k_cache, host_o, slots, layout))?;
        assert!(host_o == expected, "{layout:?}");

        let (rows, slots) = (hip.buffer(&rows)?, hip.buffer(&slots)?);
        let (mut k_cache, mut v_cache) = (hip.buffer(&empty)?, hip.buffer(&empty)?);
        let append = append!(rows, k_cache, v_cache, slots, layout);
        // SAFETY: everything stays until the device has been waited for.
        unsafe { context.kv_append(&append, &Launch::default()) }?;
        hip.synchronize()?;
        let mut is = empty.clone();
        v_cache.download(&mut is)?;
        assert!(is == expected, "{layout:?}");
    }
    let mut v_cache = empty;
    let wrong = reference_append(&mut append!(rows, k_cache, v_cache, slots, packs(4))).unwrap_err();
    assert_eq!((wrong.code, wrong.field.as_str()), (Code::InvalidArgument, "v_pack"));
    Ok(())
}
