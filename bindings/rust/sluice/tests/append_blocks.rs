//! Appends into caches of blocks and groups, on the emulated device and on the host: rows that the types represent exactly
//! come back as they were.

mod common;

use common::{emulator, Random, TensorViews, Views};
use sluice::hip::Hip;
use sluice::{
    reference_append, Append, AppendScale, BlockQ4_0, BlockQ8_0, Code, Element, Launch, Layout, Place,
    Result, U4Pair, F16,
};

const TOKENS: usize = 4;
const HEADS: usize = 2;
const DIM: usize = 128;
const PAGES: usize = 3;
const PAGE_SIZE: usize = 16;
const SLOTS: [i64; TOKENS] = [17, 0, -1, 47];

/// Rows of whole steps from `low` to `high`, both of which are in each group; steps are powers of two that groups differ in.
fn rows(seed: u64, low: i32, high: i32, group: usize) -> Vec<F16> {
    let mut random = Random(seed);
    let steps = |i: usize, random: &mut Random| match i % group {
        3 => low,
        11 => high,
        _ => low + (random.next() % (high - low + 1) as u32) as i32,
    };
    let step = |i: usize| 2f32.powi(-(i as i32 / group as i32 % 4));
    (0..TOKENS * HEADS * DIM).map(|i| F16::from_f32(steps(i, &mut random) as f32 * step(i))).collect()
}

fn new_rows() -> Layout {
    Layout::rows([TOKENS, HEADS, DIM])
}

fn cache(dim: usize) -> Layout {
    Layout::contiguous([PAGES, PAGE_SIZE, HEADS, dim])
}

/// Compares elements of the rows at their slots; others are what zeros represent.
fn check(name: &str, elements: &[f32], rows: &[F16]) {
    for (t, slot) in SLOTS.iter().enumerate().filter(|(_, slot)| **slot >= 0) {
        for i in 0..HEADS * DIM {
            let (found, wanted) = (elements[*slot as usize * HEADS * DIM + i], rows[t * HEADS * DIM + i]);
            assert_eq!(found, wanted.to_f32(), "{name}, row {t}, element {i}");
        }
    }
}

/// Appends to caches of `B`; returns the caches, which device and host agree on.
fn appended<B: Element + Default + PartialEq + std::fmt::Debug>(
    k: &Vec<F16>,
    v: &Vec<F16>,
) -> Result<[Vec<B>; 2]> {
    let context = emulator();
    let hip = Hip::new(&context)?;
    let (slots, count) = (SLOTS.to_vec(), PAGES * PAGE_SIZE * HEADS * DIM / B::DTYPE.unwrap().block());
    let (mut k_host, mut v_host) = (vec![B::default(); count], vec![B::default(); count]);
    reference_append(&mut Append::new(
        k.tensor(new_rows())?,
        Some(v.tensor(new_rows())?),
        k_host.tensor_mut(cache(DIM))?,
        Some(v_host.tensor_mut(cache(DIM))?),
        Place::Slots(slots.array()),
    ))?;
    let (device_k, device_v, device_slots) = (hip.buffer(k)?, hip.buffer(v)?, hip.buffer(&slots)?);
    let (mut k_cache, mut v_cache) = (hip.zeroed::<B>(count)?, hip.zeroed::<B>(count)?);
    let append = Append::new(
        device_k.tensor(new_rows())?,
        Some(device_v.tensor(new_rows())?),
        k_cache.tensor_mut(cache(DIM))?,
        Some(v_cache.tensor_mut(cache(DIM))?),
        Place::Slots(device_slots.array()),
    );
    // SAFETY: all buffers stay until the device has been waited for.
    unsafe { context.kv_append(&append, &Launch::default()) }?;
    hip.synchronize()?;
    drop(append);
    let mut found = [vec![B::default(); count], vec![B::default(); count]];
    k_cache.download(&mut found[0])?;
    v_cache.download(&mut found[1])?;
    assert_eq!(found, [k_host, v_host]);
    Ok(found)
}

#[test]
fn rows_go_into_blocks() -> Result<()> {
    let (k, v) = (rows(1, -127, 120, 32), rows(2, -99, 127, 32));
    for (cache, rows) in appended::<BlockQ8_0>(&k, &v)?.iter().zip([&k, &v]) {
        let elements: Vec<f32> = cache
            .iter()
            .flat_map(|block| block.numbers.map(|number| block.scale.to_f32() * f32::from(number)))
            .collect();
        check("Q8_0", &elements, rows);
    }
    let (k, v) = (rows(3, -8, 7, 32), rows(4, -7, 8, 32));
    for (cache, rows) in appended::<BlockQ4_0>(&k, &v)?.iter().zip([&k, &v]) {
        let elements: Vec<f32> = cache
            .iter()
            .flat_map(|block| {
                let halves = block.numbers.map(|byte| byte & 15).into_iter();
                let all = halves.chain(block.numbers.map(|byte| byte >> 4)).collect::<Vec<_>>();
                all.into_iter().map(|number| block.scale.to_f32() * (f32::from(number) - 8.0))
            })
            .collect();
        check("Q4_0", &elements, rows);
    }
    Ok(())
}

/// Caches with scales and zeros of groups, all written.
struct Groups {
    pairs: [Vec<U4Pair>; 2],
    scales: [Vec<F16>; 2],
    zeros: [Vec<F16>; 2],
}

const PAIRS: usize = PAGES * PAGE_SIZE * HEADS * DIM / 2;

impl Groups {
    fn new(group: usize) -> Self {
        let numbers = || [vec![F16::default(); 2 * PAIRS / group], vec![F16::default(); 2 * PAIRS / group]];
        Groups {
            pairs: [vec![U4Pair(0); PAIRS], vec![U4Pair(0); PAIRS]],
            scales: numbers(),
            zeros: numbers(),
        }
    }
}

/// An append whose memory is vectors or buffers.
macro_rules! append {
    ($k:expr, $v:expr, $slots:expr, $pairs:expr, $scales:expr, $zeros:expr, $group:expr, $with_zeros:expr) => {{
        let ([k_cache, v_cache], [k_scales, v_scales], [k_zeros, v_zeros]) = ($pairs, $scales, $zeros);
        let groups = cache(DIM / $group);
        let mut append = Append::new(
            $k.tensor(new_rows())?,
            Some($v.tensor(new_rows())?),
            k_cache.tensor_mut(cache(DIM))?,
            Some(v_cache.tensor_mut(cache(DIM))?),
            Place::Slots($slots.array()),
        );
        append.k_scale = Some(AppendScale::PerGroup {
            size: $group,
            scales: k_scales.tensor_mut(groups)?,
            zeros: if $with_zeros { Some(k_zeros.tensor_mut(groups)?) } else { None },
        });
        append.v_scale = Some(AppendScale::PerGroup {
            size: $group,
            scales: v_scales.tensor_mut(groups)?,
            zeros: if $with_zeros { Some(v_zeros.tensor_mut(groups)?) } else { None },
        });
        append
    }};
}

#[test]
fn rows_go_into_groups() -> Result<()> {
    for (group, with_zeros, low, high) in [(64, false, -7, 7), (32, true, -5, 10)] {
        let (k, v, slots) = (rows(5, low, high, group), rows(6, low, high, group), SLOTS.to_vec());
        let mut host = Groups::new(group);
        reference_append(&mut append!(
            k,
            v,
            slots,
            &mut host.pairs,
            &mut host.scales,
            &mut host.zeros,
            group,
            with_zeros
        ))?;

        let context = emulator();
        let hip = Hip::new(&context)?;
        let (device_k, device_v, device_slots) = (hip.buffer(&k)?, hip.buffer(&v)?, hip.buffer(&slots)?);
        let count = host.scales[0].len();
        let mut pairs = [hip.zeroed::<U4Pair>(PAIRS)?, hip.zeroed::<U4Pair>(PAIRS)?];
        let mut scales = [hip.zeroed::<F16>(count)?, hip.zeroed::<F16>(count)?];
        let mut zeros = [hip.zeroed::<F16>(count)?, hip.zeroed::<F16>(count)?];
        let append =
            append!(device_k, device_v, device_slots, &mut pairs, &mut scales, &mut zeros, group, with_zeros);
        // SAFETY: all buffers stay until the device has been waited for.
        unsafe { context.kv_append(&append, &Launch::default()) }?;
        hip.synchronize()?;
        drop(append);
        let mut found = Groups::new(group);
        for side in 0..2 {
            pairs[side].download(&mut found.pairs[side])?;
            scales[side].download(&mut found.scales[side])?;
            zeros[side].download(&mut found.zeros[side])?;
        }
        assert_eq!(found.pairs, host.pairs);
        assert_eq!((&found.scales, &found.zeros), (&host.scales, &host.zeros));

        for (side, rows) in [&k, &v].into_iter().enumerate() {
            let numbers = found.pairs[side].iter().flat_map(|pair| [pair.0 & 15, pair.0 >> 4]);
            let element = |(i, number): (usize, u8)| {
                let zero = if with_zeros { found.zeros[side][i / group].to_f32() } else { 8.0 };
                found.scales[side][i / group].to_f32() * (f32::from(number) - zero)
            };
            check("U4", &numbers.enumerate().map(element).collect::<Vec<_>>(), rows);
        }
    }
    Ok(())
}

#[test]
fn groups_are_checked() -> Result<()> {
    let (k, slots) = (rows(5, -7, 7, 64), SLOTS.to_vec());
    for (group, length, field, text) in [
        (64, DIM / 128, "k_scales.shape[3]", "it must be at least 2"),
        (16, DIM / 16, "scale_group", "16; it must be 32 or 64"),
    ] {
        let mut memory = Groups::new(16);
        let mut append =
            append!(k, k, slots, &mut memory.pairs, &mut memory.scales, &mut memory.zeros, group, false);
        let mut short = vec![F16::default(); 2 * PAIRS / 16];
        append.k_scale = Some(AppendScale::PerGroup {
            size: group,
            scales: short.tensor_mut(cache(length))?,
            zeros: None,
        });
        let error = reference_append(&mut append).unwrap_err();
        assert_eq!((error.code, error.field.as_str()), (Code::InvalidArgument, field), "{error}");
        assert!(error.message.contains(text), "{error}");
    }
    Ok(())
}
