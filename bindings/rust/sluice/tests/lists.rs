//! Page tables as lists with holes, one for each sequence and KV head: calls on the emulated device and the reference on
//! the host, against loops over the listed keys in double precision.

mod common;

use common::{emulator, Random, TensorViews, Views};
use sluice::hip::Hip;
use sluice::{
    reference, Args, Code, Dtype, Launch, Layout, LseBase, PageNumbers, PageTable, PageTableKind, Problem,
    Result, F16,
};

const BATCH: usize = 3;
const Q_HEADS: usize = 4;
const KV_HEADS: usize = 2;
const DIM: usize = 64;
/// Pages of one row: lists of keys.
const SLOTS: usize = 90;
const WIDTH: usize = 40;
const LENGTHS: [i32; BATCH] = [40, 33, 40];

/// Where the list of a sequence and head begins: sequences, or heads, are together.
#[derive(Clone, Copy)]
struct Strides {
    sequence: usize,
    head: usize,
}

/// Different slots in random order, with holes; the first head of the last sequence has only holes.
fn table(strides: Strides) -> Vec<i32> {
    let mut random = Random(7);
    let mut table = vec![0; BATCH * KV_HEADS * WIDTH];
    for b in 0..BATCH {
        for h in 0..KV_HEADS {
            let mut slots: Vec<i32> = (0..SLOTS as i32).collect();
            for n in 0..WIDTH {
                slots.swap(n, n + random.next() as usize % (SLOTS - n));
                let is_hole = random.next() % 10 < 3 || (b, h) == (BATCH - 1, 0);
                table[b * strides.sequence + h * strides.head + n] = if is_hole { -1 } else { slots[n] };
            }
        }
    }
    table
}

fn problem() -> Problem {
    Problem::builder(Dtype::F16, Q_HEADS, KV_HEADS, DIM)
        .paged(1, PageTableKind::Block)
        .missing_pages_hidden()
        .write_lse(LseBase::E)
        .max_q_len(1)
        .max_kv_len(WIDTH)
        .build()
        .unwrap()
}

fn rows(dim: usize) -> Layout {
    Layout::contiguous([BATCH, 1, Q_HEADS, dim])
}

fn slots() -> Layout {
    Layout::contiguous([SLOTS, 1, KV_HEADS, DIM])
}

/// The arguments of a call whose memory is vectors or buffers.
macro_rules! args {
    ($q:expr, $k:expr, $v:expr, $o:expr, $lse:expr, $lengths:expr, $table:expr, $strides:expr) => {{
        let (k, v) = ($k.tensor(slots())?, $v.tensor(slots())?);
        let mut args = Args::new(BATCH, $q.tensor(rows(DIM))?, k, Some(v), $o.tensor_mut(rows(DIM))?);
        args.lse = Some($lse.tensor_mut(rows(1))?);
        args.kv_lengths = Some($lengths.array());
        let pages = PageNumbers::I32($table.array());
        args.page_table = Some(PageTable::Block { pages, stride: $strides.sequence });
        args.page_table_head_stride = $strides.head;
        args
    }};
}

#[test]
fn rows_see_the_keys_of_their_lists() -> Result<()> {
    let context = emulator();
    let hip = Hip::new(&context)?;
    let plan = context.plan(&problem())?;
    let mut random = Random(1);
    let q: Vec<F16> = random.vector(BATCH * Q_HEADS * DIM);
    let k: Vec<F16> = random.vector(SLOTS * KV_HEADS * DIM);
    let v: Vec<F16> = random.vector(SLOTS * KV_HEADS * DIM);
    for strides in [
        Strides { sequence: KV_HEADS * WIDTH, head: WIDTH },
        Strides { sequence: WIDTH, head: BATCH * WIDTH },
    ] {
        let (lengths, table) = (LENGTHS.to_vec(), table(strides));
        let (mut o, mut lse) = (vec![F16::default(); q.len()], vec![0f32; BATCH * Q_HEADS]);
        reference(&problem(), &mut args!(q, k, v, o, lse, lengths, table, strides))?;

        let (device_q, device_k, device_v) = (hip.buffer(&q)?, hip.buffer(&k)?, hip.buffer(&v)?);
        let (device_lengths, device_table) = (hip.buffer(&lengths)?, hip.buffer(&table)?);
        let mut device_o = hip.zeroed::<F16>(o.len())?;
        let mut device_lse = hip.zeroed::<f32>(lse.len())?;
        let args =
            args!(device_q, device_k, device_v, device_o, device_lse, device_lengths, device_table, strides);
        // SAFETY: all buffers stay until the device has been waited for, and the table has all entries.
        unsafe { plan.run(&args, &Launch::default()) }?;
        hip.synchronize()?;
        drop(args);
        let (mut found, mut found_lse) = (vec![F16::default(); o.len()], vec![0f32; lse.len()]);
        device_o.download(&mut found)?;
        device_lse.download(&mut found_lse)?;

        let mut rows_without_keys = 0;
        for row in 0..BATCH * Q_HEADS {
            let (b, kv_head) = (row / Q_HEADS, row % Q_HEADS / (Q_HEADS / KV_HEADS));
            let first = b * strides.sequence + kv_head * strides.head;
            let listed = table[first..first + LENGTHS[b] as usize].iter().filter(|slot| **slot >= 0);
            let at = |cache: &[F16], slot: i32, e: usize| {
                f64::from(cache[(slot as usize * KV_HEADS + kv_head) * DIM + e].to_f32())
            };
            let (mut sum, mut wanted) = (0.0, [0.0; DIM]);
            for slot in listed {
                let dot: f64 =
                    (0..DIM).map(|e| f64::from(q[row * DIM + e].to_f32()) * at(&k, *slot, e)).sum();
                let weight = (dot / (DIM as f64).sqrt()).exp();
                sum += weight;
                for (e, wanted) in wanted.iter_mut().enumerate() {
                    *wanted += weight * at(&v, *slot, e);
                }
            }
            rows_without_keys += usize::from(sum == 0.0);
            for (o, lse) in [(&o, &lse), (&found, &found_lse)] {
                for e in 0..DIM {
                    let wanted = if sum == 0.0 { 0.0 } else { wanted[e] / sum };
                    // Half of the last place of O, and P rounded by at most 0.7 of one; |V| is at most 1.
                    let error = (f64::from(o[row * DIM + e].to_f32()) - wanted).abs();
                    assert!(error <= 2f64.powi(-10), "row {row}, element {e}: {error}");
                }
                let error = (f64::from(lse[row]) - sum.ln()).abs();
                assert!(f64::from(lse[row]) == sum.ln() || error < 1e-5, "row {row}: {error}");
            }
        }
        assert_eq!(rows_without_keys, 2);
    }
    Ok(())
}

#[test]
fn lists_that_are_too_short_are_refused() -> Result<()> {
    let strides = Strides { sequence: KV_HEADS * WIDTH, head: WIDTH };
    let (q, k) = (vec![F16::default(); BATCH * Q_HEADS * DIM], vec![F16::default(); SLOTS * KV_HEADS * DIM]);
    let (mut o, mut lse) = (q.clone(), vec![0f32; BATCH * Q_HEADS]);
    let (lengths, mut table) = (LENGTHS.to_vec(), table(strides));
    table.pop();
    let error = reference(&problem(), &mut args!(q, k, k, o, lse, lengths, table, strides)).unwrap_err();
    assert_eq!((error.code, error.field.as_str()), (Code::InvalidArgument, "page_table"), "{error}");
    assert!(error.message.contains("has 239 entries; this call needs 240"), "{error}");
    let narrow = Strides { sequence: KV_HEADS * WIDTH, head: WIDTH - 1 };
    table.push(0);
    let error = reference(&problem(), &mut args!(q, k, k, o, lse, lengths, table, narrow)).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument, "{error}");
    assert!(error.message.contains("page_table_head_stride"), "{error}");
    Ok(())
}
