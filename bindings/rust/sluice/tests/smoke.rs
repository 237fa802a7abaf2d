//! Calls on the emulated device, and on the host, against a plain loop in double precision: dense tensors, and a step of
//! decoding, which appends to a cache in pages and attends to it.

mod common;

use common::{emulator, Number, Random, TensorViews, Views};
use sluice::hip::Hip;
use sluice::{
    reference, reference_append, Append, Attention, Call, Dtype, Gather, Keys, Kv, KvFormat, Launch, Layout,
    Lse, Mask, Merge, PageCopy, PageTableKind, Pages, Place, Result, Rows, F16,
};

const Q_HEADS: usize = 4;
const KV_HEADS: usize = 2;
const DIM: usize = 64;
const PAGE: usize = 16;

/// O and LSE of rows \[row\]\[head\]\[dim\] of one sequence, causal, bottom-right.
fn plain(q: &[F16], k: &[F16], v: &[F16]) -> (Vec<f64>, Vec<f64>) {
    let (rows, keys) = (q.len() / Q_HEADS / DIM, k.len() / KV_HEADS / DIM);
    let (mut o, mut lse) = (vec![], vec![]);
    for (i, head) in (0..rows).flat_map(|i| (0..Q_HEADS).map(move |head| (i, head))) {
        let key = |j: usize| (j * KV_HEADS + head / (Q_HEADS / KV_HEADS)) * DIM;
        let number = |from: &[F16], at: usize| f64::from(from[at].decode());
        let dot = |j| {
            (0..DIM).map(|e| number(q, (i * Q_HEADS + head) * DIM + e) * number(k, key(j) + e)).sum::<f64>()
        };
        let weights: Vec<f64> = (0..keys - (rows - 1 - i)).map(|j| (dot(j) / 8.0).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let weighted =
            |e| weights.iter().enumerate().map(|(j, w)| w * number(v, key(j) + e)).sum::<f64>() / sum;
        o.extend((0..DIM).map(weighted));
        lse.push(sum.ln());
    }
    (o, lse)
}

fn check(o: &[F16], lse: &[f32], (wanted, wanted_lse): &(Vec<f64>, Vec<f64>)) {
    assert_eq!((o.len(), lse.len()), (wanted.len(), wanted_lse.len()));
    for (o, wanted) in o.iter().zip(wanted) {
        // Half of the last place of O, and P rounded by at most 0.7 of one; |V| is at most 1.
        assert!(
            (f64::from(o.decode()) - wanted).abs() <= 2f64.powi(-10),
            "{} instead of {wanted}",
            o.decode()
        );
    }
    for (lse, wanted) in lse.iter().zip(wanted_lse) {
        assert!((f64::from(*lse) - wanted).abs() < 1e-5, "{lse} instead of {wanted}");
    }
}

fn attention(kv: KvFormat) -> Attention {
    Attention { mask: Some(Mask::causal()), lse: Some(Lse::Ln), ..Attention::new(Dtype::F16, Q_HEADS, kv) }
}

#[test]
fn dense_tensors() -> Result<()> {
    const ROWS: usize = 19;
    const KEYS: usize = 37;
    let mut random = Random(1);
    let q: Vec<F16> = random.vector(ROWS * Q_HEADS * DIM);
    let [k, v]: [Vec<F16>; 2] = [(); 2].map(|()| random.vector(KEYS * KV_HEADS * DIM));
    let attention = attention(KvFormat::new(Dtype::F16, KV_HEADS, DIM));
    macro_rules! call {
        ($q:ident, $k:ident, $v:ident, $o:ident, $lse:ident) => {{
            let keys = Layout::contiguous([1, KEYS, KV_HEADS, DIM]);
            let rows = |dim| Layout::contiguous([1, ROWS, Q_HEADS, dim]);
            let kv = Kv::new(attention.kv, $k.tensor(keys)?, Some($v.tensor(keys)?));
            let o = $o.tensor_mut(rows(DIM))?;
            let lse = Some($lse.tensor_mut(rows(1))?);
            Call { lse, ..Call::new(1, $q.tensor(rows(DIM))?, ROWS, Keys::new(kv, KEYS), o) }
        }};
    }
    let (mut o, mut lse) = (vec![F16::default(); q.len()], vec![0f32; ROWS * Q_HEADS]);
    let expected = plain(&q, &k, &v);
    reference(&attention, &mut call!(q, k, v, o, lse))?;
    check(&o, &lse, &expected);

    let hip = Hip::new(&emulator())?;
    let plan = emulator().plan(&attention)?;
    let (q, k, v) = (hip.buffer(&q)?, hip.buffer(&k)?, hip.buffer(&v)?);
    let (mut o_buffer, mut lse_buffer) = (hip.zeroed::<F16>(o.len())?, hip.zeroed::<f32>(lse.len())?);
    // SAFETY: all memory stays until the device has been waited for.
    unsafe { plan.run(&call!(q, k, v, o_buffer, lse_buffer), &Launch::default()) }?;
    hip.synchronize()?;
    o_buffer.download(&mut o)?;
    lse_buffer.download(&mut lse)?;
    check(&o, &lse, &expected);
    assert_eq!(plan.counters().runs, 1);
    Ok(())
}

/// Two sequences with 5 and 20 keys, each with one new row.
#[test]
fn a_step_of_decoding() -> Result<()> {
    const LENGTHS: [usize; 2] = [5, 20];
    const TABLE: [i32; 4] = [2, 3, 0, 1]; // the second entry is never read
    let (row, page) = (KV_HEADS * DIM, PAGE * KV_HEADS * DIM);
    let mut random = Random(2);
    let q: Vec<F16> = random.vector(2 * Q_HEADS * DIM);
    let keys: Vec<[Vec<F16>; 2]> =
        LENGTHS.iter().map(|len| [(); 2].map(|()| random.vector(len * row))).collect();
    // All but the newest row of each sequence are in the cache.
    let cache = |side: usize| {
        let mut pages = vec![F16::default(); 4 * page];
        for (b, len) in LENGTHS.iter().enumerate() {
            for t in 0..len - 1 {
                let at = TABLE[2 * b + t / PAGE] as usize * page + t % PAGE * row;
                pages[at..at + row].copy_from_slice(&keys[b][side][t * row..(t + 1) * row]);
            }
        }
        pages
    };
    let newest = |side: usize| -> Vec<F16> {
        keys.iter().flat_map(|kv| kv[side][kv[side].len() - row..].to_vec()).collect()
    };
    let (mut k, mut v, new_k, new_v) = (cache(0), cache(1), newest(0), newest(1));
    let format = KvFormat::new(Dtype::F16, KV_HEADS, DIM).paged(PAGE, PageTableKind::Block);
    let attention = attention(format);
    let (starts, table) = (vec![0i32, 1, 2], TABLE.to_vec());
    let lengths: Vec<i32> = LENGTHS.map(|len| len as i32).to_vec();
    let pages = Layout::contiguous([4, PAGE, KV_HEADS, DIM]);
    macro_rules! append {
        ($k:ident, $v:ident, $new_k:ident, $new_v:ident, $starts:ident, $lengths:ident, $table:ident) => {{
            let new = Layout::rows([2, KV_HEADS, DIM]);
            let kv = Kv::new(format, $k.tensor_mut(pages)?, Some($v.tensor_mut(pages)?));
            let pages = Pages::block($table.array(), 2);
            let place =
                Place::Sequences { batch: 2, starts: $starts.array(), lengths: $lengths.array(), pages };
            Append::new($new_k.tensor(new)?, Some($new_v.tensor(new)?), kv, place)
        }};
    }
    macro_rules! call {
        ($q:ident, $k:ident, $v:ident, $o:ident, $lse:ident, $lengths:ident, $table:ident) => {{
            let rows = |dim| Layout::contiguous([2, 1, Q_HEADS, dim]);
            let kv = Kv::new(format, $k.tensor(pages)?, Some($v.tensor(pages)?));
            let length = Rows { max_len: Some(20), ..Rows::of_lengths($lengths.array()) };
            let keys = Keys::paged(kv, length, Pages::block($table.array(), 2));
            let (o, lse) = ($o.tensor_mut(rows(DIM))?, Some($lse.tensor_mut(rows(1))?));
            Call { lse, ..Call::new(2, $q.tensor(rows(DIM))?, 1, keys, o) }
        }};
    }
    let (one, two) = q.split_at(Q_HEADS * DIM);
    let [first, second] = [plain(one, &keys[0][0], &keys[0][1]), plain(two, &keys[1][0], &keys[1][1])];
    let expected = ([first.0, second.0].concat(), [first.1, second.1].concat());
    let (mut o, mut lse) = (vec![F16::default(); q.len()], vec![0f32; 2 * Q_HEADS]);

    let context = emulator();
    let hip = Hip::new(&context)?;
    {
        let plan = context.plan(&attention)?;
        let (mut k, mut v, q) = (hip.buffer(&k)?, hip.buffer(&v)?, hip.buffer(&q)?);
        let (new_k, new_v) = (hip.buffer(&new_k)?, hip.buffer(&new_v)?);
        let (starts, lengths, table) = (hip.buffer(&starts)?, hip.buffer(&lengths)?, hip.buffer(&table)?);
        let (mut o_buffer, mut lse_buffer) = (hip.zeroed::<F16>(o.len())?, hip.zeroed::<f32>(lse.len())?);
        let append = append!(k, v, new_k, new_v, starts, lengths, table);
        // SAFETY: all memory stays until the device has been waited for, and the stream orders the two.
        unsafe { context.append(&append, &Launch::default()) }?;
        let call = call!(q, k, v, o_buffer, lse_buffer, lengths, table);
        // SAFETY: as above.
        unsafe { plan.run(&call, &Launch::default()) }?;
        hip.synchronize()?;
        o_buffer.download(&mut o)?;
        lse_buffer.download(&mut lse)?;
        check(&o, &lse, &expected);
    }
    reference_append(&mut append!(k, v, new_k, new_v, starts, lengths, table))?;
    reference(&attention, &mut call!(q, k, v, o, lse, lengths, table))?;
    check(&o, &lse, &expected);
    Ok(())
}

/// Two keys are copied to another page, gathered from there, and merged with nothing.
#[test]
fn copies_gathers_and_merges_reach_the_device() -> Result<()> {
    let context = emulator();
    let hip = Hip::new(&context)?;
    let rows: Vec<F16> = Random(3).vector(2 * DIM);
    let format = KvFormat::new(Dtype::F16, 1, DIM);
    let (pages, packed) = (Layout::contiguous([2, 2, 1, DIM]), Layout::rows([2, 1, DIM]));
    let (mut k, mut v) =
        (hip.buffer(&[&rows[..], &[F16(0); 2 * DIM]].concat())?, hip.zeroed::<F16>(4 * DIM)?);
    let (mut k_rows, mut v_rows) = (hip.zeroed::<F16>(2 * DIM)?, hip.zeroed::<F16>(2 * DIM)?);
    let (lse, mut merged) = (hip.zeroed::<f32>(2)?, hip.zeroed::<F16>(2 * DIM)?);
    let (pairs, table) = (hip.buffer(&[0i32, 1])?, hip.buffer(&[1i32])?);
    let (lengths, starts) = (hip.buffer(&[2i32])?, hip.buffer(&[0i32, 2])?);
    let launch = Launch::default();
    let paged = format.paged(2, PageTableKind::Block);
    let target = Kv::new(paged, k.tensor_mut(pages)?, Some(v.tensor_mut(pages)?));
    let copy = PageCopy { source: None, target, pairs: Some(pairs.array().into()) };
    // SAFETY: all memory stays until the device has been waited for, and the stream orders the work.
    unsafe { context.copy_pages(&copy, &launch) }?;
    let gather = Gather {
        source: Kv::new(paged, k.tensor(pages)?, Some(v.tensor(pages)?)),
        pages: Pages::block(table.array(), 1),
        batch: 1,
        lengths: lengths.array(),
        first_keys: None,
        target: Kv::new(format, k_rows.tensor_mut(packed)?, Some(v_rows.tensor_mut(packed)?)),
        starts: starts.array(),
    };
    // SAFETY: as above.
    unsafe { context.gather(&gather, &launch) }?;
    let numbers = lse.tensor(Layout::rows([2, 1, 1]))?;
    let merge = Merge::new(k_rows.tensor(packed)?, numbers, merged.tensor_mut(packed)?);
    // SAFETY: as above.
    unsafe { context.merge(&merge, &launch) }?;
    hip.synchronize()?;
    let mut found = vec![F16::default(); 2 * DIM];
    merged.download(&mut found)?;
    assert_eq!(found, rows);
    Ok(())
}

/// Nothing to do is no error, and rows without keys are 0.
#[test]
fn tensors_may_be_empty() -> Result<()> {
    let attention = attention(KvFormat::new(Dtype::F16, KV_HEADS, DIM));
    for (batch, rows, keys) in [(2, 0, 5), (0, 3, 5), (2, 3, 0), (0, 0, 0)] {
        let numbers = vec![F16::encode(0.5); 2 * 5 * Q_HEADS * DIM];
        let (mut o, mut lse) =
            (vec![F16::encode(7.0); batch * rows * Q_HEADS * DIM], vec![7f32; batch * rows * Q_HEADS]);
        let layout = |dim| Layout::contiguous([batch, rows, Q_HEADS, dim]);
        let kv = numbers.tensor(Layout::contiguous([batch, keys, KV_HEADS, DIM]))?;
        let keys = Keys::new(Kv::new(attention.kv, kv, Some(kv)), keys);
        let (q, o_view) = (numbers.tensor(layout(DIM))?, o.tensor_mut(layout(DIM))?);
        let mut call =
            Call { lse: Some(lse.tensor_mut(layout(1))?), ..Call::new(batch, q, rows, keys, o_view) };
        reference(&attention, &mut call)?;
        assert!(o.iter().all(|o| o.decode() == 0.0) && lse.iter().all(|lse| *lse == f32::NEG_INFINITY));
    }
    Ok(())
}
