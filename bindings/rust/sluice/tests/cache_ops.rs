//! Appends and merges on the emulated device.

mod common;

use common::{emulator, Number, Random, TensorViews, Views};
use sluice::hip::{Buffer, Hip};
use sluice::{
    reference, reference_append, reference_copy, reference_gather, Append, AppendScale, Args, Dtype,
    E4m3Fnuz, Element, Gather, Launch, Layout, LseBase, Merge, Norms, Numbers, PageCopy, PageNumbers,
    PageTable, Place, Problem, Queries, Result, Rotary, RotaryStyle, F16,
};

const TOKENS: usize = 6;
const HEADS: usize = 2;
const DIM: usize = 64;
const PAGES: usize = 5;
const PAGE_SIZE: usize = 16;

fn new_rows() -> Layout {
    Layout::rows([TOKENS, HEADS, DIM])
}

fn cache_layout() -> Layout {
    Layout::contiguous([PAGES, PAGE_SIZE, HEADS, DIM])
}

/// Row `slot` of a cache.
fn row<T>(cache: &[T], slot: usize) -> &[T] {
    &cache[slot * HEADS * DIM..(slot + 1) * HEADS * DIM]
}

fn downloaded<T: Element + Default>(buffer: &Buffer<T>) -> Result<Vec<T>> {
    let mut elements = vec![T::default(); buffer.len()];
    buffer.download(&mut elements)?;
    Ok(elements)
}

#[test]
fn rows_go_to_their_slots() -> Result<()> {
    let context = emulator();
    let hip = Hip::new(&context)?;
    let mut random = Random(1);
    let (k, v): (Vec<F16>, Vec<F16>) =
        (random.vector(TOKENS * HEADS * DIM), random.vector(TOKENS * HEADS * DIM));
    let slots = [17i64, 3, -1, 79, 40, 41];
    let (k_rows, v_rows, slot_numbers) = (hip.buffer(&k)?, hip.buffer(&v)?, hip.buffer(&slots)?);
    let mut k_cache = hip.zeroed::<F16>(PAGES * PAGE_SIZE * HEADS * DIM)?;
    let mut v_cache = hip.zeroed::<F16>(PAGES * PAGE_SIZE * HEADS * DIM)?;
    let append = Append::new(
        k_rows.tensor(new_rows())?,
        Some(v_rows.tensor(new_rows())?),
        k_cache.tensor_mut(cache_layout())?,
        Some(v_cache.tensor_mut(cache_layout())?),
        Place::Slots(slot_numbers.array()),
    );
    // SAFETY: all buffers stay until the device has been waited for; slots are below 80.
    unsafe { context.kv_append(&append, &Launch::default()) }?;
    hip.synchronize()?;
    for (cache, rows) in [(downloaded(&k_cache)?, &k), (downloaded(&v_cache)?, &v)] {
        let mut expected = vec![F16::default(); cache.len()];
        for (t, slot) in slots.iter().enumerate().filter(|(_, slot)| **slot >= 0) {
            let at = *slot as usize * HEADS * DIM;
            expected[at..at + HEADS * DIM].copy_from_slice(row(rows, t));
        }
        assert_eq!(cache, expected);
    }

    let slots = slots.to_vec();
    let (mut k_host, mut v_host) = (vec![F16::default(); k_cache.len()], vec![F16::default(); v_cache.len()]);
    reference_append(&mut Append::new(
        k.tensor(new_rows())?,
        Some(v.tensor(new_rows())?),
        k_host.tensor_mut(cache_layout())?,
        Some(v_host.tensor_mut(cache_layout())?),
        Place::Slots(slots.array()),
    ))?;
    assert_eq!((k_host, v_host), (downloaded(&k_cache)?, downloaded(&v_cache)?));
    Ok(())
}

/// The last page of the memory is outside the views, and nothing is written there.
#[test]
fn rows_without_a_page_are_skipped() -> Result<()> {
    let context = emulator();
    let hip = Hip::new(&context)?;
    let rows = hip.buffer(&vec![F16::from_f32(1.0); TOKENS * HEADS * DIM])?;
    let slots = [0i64, 79, 64, 63, i64::MAX, i64::MIN];
    let slot_numbers = hip.buffer(&slots)?;
    let mut k_cache = hip.zeroed::<F16>(PAGES * PAGE_SIZE * HEADS * DIM)?;
    let mut v_cache = hip.zeroed::<F16>(PAGES * PAGE_SIZE * HEADS * DIM)?;
    let append = Append::new(
        rows.tensor(new_rows())?,
        Some(rows.tensor(new_rows())?),
        k_cache.tensor_mut(cache_layout())?,
        Some(v_cache.tensor_mut(Layout::contiguous([PAGES - 1, PAGE_SIZE, HEADS, DIM]))?),
        Place::Slots(slot_numbers.array()),
    );
    // SAFETY: all buffers stay until the device has been waited for.
    unsafe { context.kv_append(&append, &Launch::default()) }?;
    hip.synchronize()?;
    for cache in [downloaded(&k_cache)?, downloaded(&v_cache)?] {
        for slot in 0..PAGES * PAGE_SIZE {
            let wanted = if slot == 0 || slot == 63 { 1.0 } else { 0.0 };
            assert!(row(&cache, slot).iter().all(|element| element.to_f32() == wanted), "slot {slot}");
        }
    }
    Ok(())
}

/// New rows of two sequences, with K rotated, stored as FP8 in the table's pages.
#[test]
fn rows_go_to_the_end_of_their_sequences_rotated_and_in_fp8() -> Result<()> {
    let context = emulator();
    let hip = Hip::new(&context)?;
    // Exact in FP8 with these scales, so that only one answer is right.
    let factors = [0.5f32, 2.0];
    let number = |i: usize| F16::from_f32((i % 13) as f32 * factors[i / DIM % HEADS]);
    let rows: Vec<F16> = (0..TOKENS * HEADS * DIM).map(number).collect();
    let source = hip.buffer(&rows)?;
    let mut k_cache = hip.zeroed::<E4m3Fnuz>(PAGES * PAGE_SIZE * HEADS * DIM)?;
    let mut v_cache = hip.zeroed::<E4m3Fnuz>(PAGES * PAGE_SIZE * HEADS * DIM)?;
    // Two rows of the first sequence, which then has 18 keys; four of the second, which then has 4.
    let host = (vec![0i32, 2, 6], vec![18i32, 4], vec![4i32, 2, 1, 0], factors.to_vec(), vec![0.5f32]);
    let (starts, lengths, table) = (hip.buffer(&host.0)?, hip.buffer(&host.1)?, hip.buffer(&host.2)?);
    let (k_factors, v_factor) = (hip.buffer(&host.3)?, hip.buffer(&host.4)?);
    // Quarter turns: position p has cosine and sine of p * 90 degrees for all pairs.
    let turns: Vec<f32> = (0..18)
        .flat_map(|p| [[1., 0., -1., 0.][p % 4]; 4].into_iter().chain([[0., 1., 0., -1.][p % 4]; 4]))
        .collect();
    let device_turns = hip.buffer(&turns)?;
    let append = Append {
        k: source.tensor(new_rows())?,
        v: Some(source.tensor(new_rows())?),
        k_cache: k_cache.tensor_mut(cache_layout())?,
        v_cache: Some(v_cache.tensor_mut(cache_layout())?),
        place: Place::Sequences {
            batch: 2,
            starts: starts.array(),
            kv_lengths: lengths.array(),
            page_table: PageTable::Block { pages: PageNumbers::I32(table.array()), stride: 2 },
        },
        k_scale: Some(AppendScale::PerHead(k_factors.array())),
        v_scale: Some(AppendScale::PerTensor(v_factor.array())),
        rotary: Some(Rotary {
            dim: 8,
            style: RotaryStyle::Halves,
            table: Numbers::F32(device_turns.array()),
            stride: 8,
            positions: None,
            first: 0,
            sines: None,
        }),
        q: None,
        k_tail: None,
        norms: None,
    };
    // SAFETY: all buffers stay until the device has been waited for; pages are below 5 and positions below 18.
    unsafe { context.kv_append(&append, &Launch::default()) }?;
    hip.synchronize()?;
    let (k_cache, v_cache) = (downloaded(&k_cache)?, downloaded(&v_cache)?);
    let slots = [(16, 2 * 16), (17, 2 * 16 + 1), (0, 16), (1, 17), (2, 18), (3, 19)];
    for (t, (position, slot)) in slots.into_iter().enumerate() {
        for i in 0..HEADS * DIM {
            let is = |cache: &[E4m3Fnuz]| row(cache, slot)[i].decode();
            let at = |i: usize| row(&rows, t)[i].to_f32();
            assert_eq!(is(&v_cache), at(i) / 0.5, "V of token {t}, element {i}");
            let (cosine, sine) = ([1., 0., -1., 0.][position % 4], [0., 1., 0., -1.][position % 4]);
            let rotated = match i % DIM {
                0..=3 => at(i) * cosine - at(i + 4) * sine,
                4..=7 => at(i) * cosine + at(i - 4) * sine,
                _ => at(i),
            };
            assert_eq!(is(&k_cache), rotated / factors[i / DIM], "K of token {t}, element {i}");
        }
    }

    let mut on_host = [vec![E4m3Fnuz::default(); k_cache.len()], vec![E4m3Fnuz::default(); v_cache.len()]];
    let [k_host, v_host] = &mut on_host;
    reference_append(&mut Append {
        k: rows.tensor(new_rows())?,
        v: Some(rows.tensor(new_rows())?),
        k_cache: k_host.tensor_mut(cache_layout())?,
        v_cache: Some(v_host.tensor_mut(cache_layout())?),
        place: Place::Sequences {
            batch: 2,
            starts: host.0.array(),
            kv_lengths: host.1.array(),
            page_table: PageTable::Block { pages: PageNumbers::I32(host.2.array()), stride: 2 },
        },
        k_scale: Some(AppendScale::PerHead(host.3.array())),
        v_scale: Some(AppendScale::PerTensor(host.4.array())),
        rotary: Some(Rotary {
            dim: 8,
            style: RotaryStyle::Halves,
            table: Numbers::F32(turns.array()),
            stride: 8,
            positions: None,
            first: 0,
            sines: None,
        }),
        q: None,
        k_tail: None,
        norms: None,
    })?;
    assert_eq!(on_host, [k_cache, v_cache]);
    Ok(())
}

/// Attention over two halves of the keys, merged, is attention over all of them.
#[test]
fn two_parts_become_one() -> Result<()> {
    const ROWS: usize = 5;
    const KEYS: usize = 24;
    let problem = Problem::builder(Dtype::F32, HEADS, HEADS, DIM).write_lse(LseBase::E).build()?;
    let mut random = Random(2);
    let q: Vec<f32> = random.vector(ROWS * HEADS * DIM);
    let k: Vec<f32> = random.vector(KEYS * HEADS * DIM);
    let v: Vec<f32> = random.vector(KEYS * HEADS * DIM);
    let attend = |keys: std::ops::Range<usize>| -> Result<(Vec<f32>, Vec<f32>)> {
        let part = keys.start * HEADS * DIM..keys.end * HEADS * DIM;
        let (mut o, mut lse) = (vec![0f32; q.len()], vec![0f32; ROWS * HEADS]);
        let (k, v) = (k[part.clone()].to_vec(), v[part].to_vec());
        let keys_layout = Layout::rows([keys.len(), HEADS, DIM]);
        let rows = Layout::rows([ROWS, HEADS, DIM]);
        let mut args = Args::new(
            1,
            q.tensor(rows)?,
            k.tensor(keys_layout)?,
            Some(v.tensor(keys_layout)?),
            o.tensor_mut(rows)?,
        );
        (args.q_len, args.kv_len) = (Some(ROWS), Some(keys.len()));
        args.lse = Some(lse.tensor_mut(Layout::rows([ROWS, HEADS, 1]))?);
        reference(&problem, &mut args)?;
        Ok((o, lse))
    };
    let (first, second, whole) = (attend(0..7)?, attend(7..KEYS)?, attend(0..KEYS)?);

    let context = emulator();
    let hip = Hip::new(&context)?;
    let partial = hip.buffer(&[first.0, second.0].concat())?;
    let partial_lse = hip.buffer(&[first.1, second.1].concat())?;
    let mut o = hip.zeroed::<f32>(whole.0.len())?;
    let mut lse = hip.zeroed::<f32>(whole.1.len())?;
    let mut merge = Merge::new(
        partial.tensor(Layout::contiguous([2, ROWS, HEADS, DIM]))?,
        partial_lse.tensor(Layout::contiguous([2, ROWS, HEADS, 1]))?,
        o.tensor_mut(Layout::rows([ROWS, HEADS, DIM]))?,
    );
    merge.lse = Some(lse.tensor_mut(Layout::rows([ROWS, HEADS, 1]))?);
    // SAFETY: all buffers stay until the device has been waited for.
    unsafe { context.merge_states(&merge, &Launch::default()) }?;
    hip.synchronize()?;
    // A few dozen roundings in F32, of numbers around 1 and LSEs around 3.
    let close = |is: &[f32], wanted: &[f32]| is.iter().zip(wanted).all(|(a, b)| (a - b).abs() <= 1e-5);
    assert!(close(&downloaded(&o)?, &whole.0) && close(&downloaded(&lse)?, &whole.1));
    Ok(())
}

/// A page is forked, and its keys gathered in rows.
#[test]
fn pages_are_copied_and_keys_gathered() -> Result<()> {
    const PAGES: usize = 3;
    let context = emulator();
    let hip = Hip::new(&context)?;
    let values: Vec<F16> = (0..PAGES * 4 * 8).map(|n| F16::from_f32(n as f32)).collect();
    let pages = Layout::contiguous([PAGES, 4, 1, 8]);
    let source = hip.buffer(&values)?;
    let mut target = hip.zeroed::<F16>(values.len())?;
    let pairs = hip.buffer(&[0i32, 2, 1, -1])?;
    let copy = PageCopy {
        k_source: source.tensor(pages)?,
        v_source: None,
        k_target: target.tensor_mut(pages)?,
        v_target: None,
        pairs: Some(PageNumbers::I32(pairs.array())),
        k_scale: None,
        v_scale: None,
        k_target_scales: None,
        v_target_scales: None,
    };
    // SAFETY: all buffers stay until the device has been waited for.
    unsafe { context.kv_copy(&copy, &Launch::default()) }?;
    hip.synchronize()?;
    let copied = downloaded(&target)?;
    assert_eq!(copied[..64], vec![F16::default(); 64]);
    assert_eq!(copied[64..], values[..32]);
    let mut on_host = vec![F16::default(); values.len()];
    let wide = [0i64, 2, 1, -1];
    let mut copy = PageCopy {
        k_source: values.tensor(pages)?,
        v_source: None,
        k_target: on_host.tensor_mut(pages)?,
        v_target: None,
        pairs: Some(PageNumbers::I64(sluice::Array::new(&wide))),
        k_scale: None,
        v_scale: None,
        k_target_scales: None,
        v_target_scales: None,
    };
    reference_copy(&mut copy)?;
    copy.pairs = Some(PageNumbers::I32(sluice::Array::new(&[0, 1, 1, PAGES as i32])));
    let error = reference_copy(&mut copy).unwrap_err();
    assert_eq!((error.code, error.field.as_str()), (sluice::Code::InvalidArgument, "pairs[3]"), "{error}");
    drop(copy);
    assert_eq!(on_host, copied);

    // Keys 1 to 4 of a sequence in pages 2 and 0.
    let mut rows = hip.zeroed::<F16>(5 * 8)?;
    let (starts, lengths, first, table) =
        (hip.buffer(&[0i32, 4])?, hip.buffer(&[5i32])?, hip.buffer(&[1i32])?, hip.buffer(&[2i32, 0])?);
    let gather = Gather {
        k_cache: source.tensor(pages)?,
        v_cache: None,
        k_out: rows.tensor_mut(Layout::rows([5, 1, 8]))?,
        v_out: None,
        batch: 1,
        out_starts: starts.array(),
        kv_lengths: lengths.array(),
        first_keys: Some(first.array()),
        page_table: PageTable::Block { pages: PageNumbers::I32(table.array()), stride: 2 },
        k_scale: None,
        v_scale: None,
        k_out_scales: None,
        v_out_scales: None,
    };
    // SAFETY: as above.
    unsafe { context.kv_gather(&gather, &Launch::default()) }?;
    hip.synchronize()?;
    let gathered = downloaded(&rows)?;
    assert_eq!(gathered[..24], values[9 * 8..12 * 8]);
    assert_eq!(gathered[24..32], values[..8]);
    assert_eq!(gathered[32..], vec![F16::default(); 8]);

    let mut on_host = vec![F16::default(); gathered.len()];
    let (starts, lengths, first, table) = ([0, 4], [5], [1], [2, 0]);
    let mut gather = Gather {
        k_cache: values.tensor(pages)?,
        v_cache: None,
        k_out: on_host.tensor_mut(Layout::rows([5, 1, 8]))?,
        v_out: None,
        batch: 1,
        out_starts: sluice::Array::new(&starts),
        kv_lengths: sluice::Array::new(&lengths),
        first_keys: Some(sluice::Array::new(&first)),
        page_table: PageTable::Block { pages: PageNumbers::I32(sluice::Array::new(&table)), stride: 2 },
        k_scale: None,
        v_scale: None,
        k_out_scales: None,
        v_out_scales: None,
    };
    reference_gather(&mut gather)?;
    let wrong = [(&[2][..], "page_table"), (&[2, PAGES as i32], "page_table[1]")];
    for (table, field) in wrong {
        gather.page_table =
            PageTable::Block { pages: PageNumbers::I32(sluice::Array::new(table)), stride: 2 };
        let error = reference_gather(&mut gather).unwrap_err();
        assert_eq!((error.code, error.field.as_str()), (sluice::Code::InvalidArgument, field), "{error}");
    }
    assert_eq!(on_host, gathered);
    Ok(())
}

/// Q stored where it was, norms, tails, and a rotation with tables in two arrays: as on the host.
#[test]
fn a_step_is_that_of_the_host() -> Result<()> {
    const Q_HEADS: usize = 3;
    const TAIL: usize = 16;
    let context = emulator();
    let hip = Hip::new(&context)?;
    let mut random = Random(5);
    let mut numbers = |count: usize| -> Vec<F16> { random.vector(count) };
    let (k, v, k_tail) = (
        numbers(TOKENS * HEADS * (DIM - TAIL)),
        numbers(TOKENS * HEADS * DIM),
        numbers(TOKENS * HEADS * TAIL),
    );
    let (mut q, k_norm) = (numbers(TOKENS * Q_HEADS * DIM), numbers(DIM - TAIL));
    let (cosines, sines) = (numbers(TOKENS * TAIL / 2), numbers(TOKENS * TAIL / 2));
    let slots: Vec<i64> = vec![3, -1, 17, 0, 40, 41];
    let positions: Vec<i32> = (0..TOKENS as i32).rev().collect();
    let (body, tails) = (Layout::rows([TOKENS, HEADS, DIM - TAIL]), Layout::rows([TOKENS, HEADS, TAIL]));
    let q_layout = Layout::rows([TOKENS, Q_HEADS, DIM]);

    let on_device = (hip.buffer(&k)?, hip.buffer(&v)?, hip.buffer(&k_tail)?, hip.buffer(&k_norm)?);
    let tables = (hip.buffer(&cosines)?, hip.buffer(&sines)?, hip.buffer(&slots)?, hip.buffer(&positions)?);
    let mut device_q = hip.buffer(&q)?;
    let mut k_cache = hip.zeroed::<F16>(PAGES * PAGE_SIZE * HEADS * DIM)?;
    let mut v_cache = hip.zeroed::<F16>(PAGES * PAGE_SIZE * HEADS * DIM)?;
    let mut append = Append::new(
        on_device.0.tensor(body)?,
        Some(on_device.1.tensor(new_rows())?),
        k_cache.tensor_mut(cache_layout())?,
        Some(v_cache.tensor_mut(cache_layout())?),
        Place::Slots(tables.2.array()),
    );
    append.k_tail = Some(on_device.2.tensor(tails)?);
    append.q = Some(Queries::InPlace(device_q.tensor_mut(q_layout)?));
    append.norms = Some(Norms { q: None, k: Some(Numbers::F16(on_device.3.array())), epsilon: 1e-5 });
    append.rotary = Some(Rotary {
        dim: TAIL,
        style: RotaryStyle::Pairs,
        table: Numbers::F16(tables.0.array()),
        stride: TAIL / 2,
        positions: Some(tables.3.array()),
        first: DIM - TAIL,
        sines: Some(Numbers::F16(tables.1.array())),
    });
    // SAFETY: all buffers stay until the device has been waited for; pages are below 5 and positions below 6.
    unsafe { context.kv_append(&append, &Launch::default()) }?;
    hip.synchronize()?;
    drop(append);
    let device = [downloaded(&k_cache)?, downloaded(&v_cache)?, downloaded(&device_q)?];

    let before = q.clone();
    let (mut k_host, mut v_host) =
        (vec![F16::default(); device[0].len()], vec![F16::default(); device[1].len()]);
    let mut append = Append::new(
        k.tensor(body)?,
        Some(v.tensor(new_rows())?),
        k_host.tensor_mut(cache_layout())?,
        Some(v_host.tensor_mut(cache_layout())?),
        Place::Slots(slots.array()),
    );
    append.k_tail = Some(k_tail.tensor(tails)?);
    append.q = Some(Queries::InPlace(q.tensor_mut(q_layout)?));
    append.norms = Some(Norms { q: None, k: Some(Numbers::F16(k_norm.array())), epsilon: 1e-5 });
    append.rotary = Some(Rotary {
        dim: TAIL,
        style: RotaryStyle::Pairs,
        table: Numbers::F16(cosines.array()),
        stride: TAIL / 2,
        positions: Some(positions.array()),
        first: DIM - TAIL,
        sines: Some(Numbers::F16(sines.array())),
    });
    reference_append(&mut append)?;
    // Every position is read, also that of the row without a slot; the last one is not in this table.
    append.rotary.as_mut().unwrap().sines = Some(Numbers::F16(sluice::Array::new(&sines[1..])));
    let error = reference_append(&mut append).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("positions[0] leads to position 5 of rotary_sin, which needs 48 elements; it has 47"),
        "{text}"
    );
    drop(append);

    // Norm and rotation are computed in F32 on the device.
    for (name, device, host) in
        [("K", &device[0], &k_host), ("V", &device[1], &v_host), ("Q", &device[2], &q)]
    {
        for (i, (device, host)) in device.iter().zip(host).enumerate() {
            let (device, host) = (device.to_f32(), host.to_f32());
            assert!((device - host).abs() <= host.abs() * 1e-3 + 1e-6, "{name} {i}: {device}, {host}");
        }
    }
    assert!(before.iter().zip(&q).any(|(before, after)| before != after));
    Ok(())
}
