//! Calls with nothing to do, and numbers that mean nothing: neither is an error. What a length or a scale of 0 says.

mod common;

use common::{emulator, Number, Random, TensorViews, Views};
use sluice::hip::{Buffer, Hip};
use sluice::{
    reference, reference_append, reference_copy, reference_gather, Append, Args, Code, Context, Device,
    Dtype, Element, Gather, Launch, Layout, LseBase, Merge, PageCopy, PageNumbers, PageTable, PageTableKind,
    Place, Problem, ProblemBuilder, Result, F16,
};

const HEADS: usize = 2;
const DIM: usize = 64;
const UNTOUCHED: f32 = 7.0;

fn builder() -> ProblemBuilder {
    Problem::builder(Dtype::F16, 2 * HEADS, HEADS, DIM).o_type(Dtype::F32).write_lse(LseBase::E)
}

fn downloaded<T: Element + Default>(buffer: &Buffer<T>) -> Result<Vec<T>> {
    let mut elements = vec![T::default(); buffer.len()];
    buffer.download(&mut elements)?;
    Ok(elements)
}

/// Runs a call; the buffers are its own.
fn run(context: &Context, hip: &Hip, problem: &Problem, args: &Args<Device>) -> Result<()> {
    let plan = context.plan(problem)?;
    let mut memory: Buffer<u8> = hip.zeroed(plan.info().workspace_bytes as usize)?;
    let workspace = memory.workspace();
    // SAFETY: all buffers stay until the device has been waited for.
    unsafe { plan.run(args, &Launch { workspace: Some(&workspace), ..Launch::default() }) }?;
    hip.synchronize()
}

/// O and LSE, on the device and on the host, of dense tensors with these extents.
fn attend(batch: usize, rows: usize, keys: usize, scale: Option<f32>) -> Result<Vec<(Vec<f32>, Vec<f32>)>> {
    let (context, mut random) = (emulator(), Random(1));
    let hip = Hip::new(&context)?;
    let problem = builder().build()?;
    let q: Vec<F16> = random.vector(batch * rows * 2 * HEADS * DIM);
    let [k, v]: [Vec<F16>; 2] = [(); 2].map(|()| random.vector(batch * keys * HEADS * DIM));
    let (mut o, mut lse) = (vec![UNTOUCHED; q.len()], vec![UNTOUCHED; batch * rows * 2 * HEADS]);
    let row_layout = |dim| Layout::contiguous([batch, rows, 2 * HEADS, dim]);
    let key_layout = Layout::contiguous([batch, keys, HEADS, DIM]);
    macro_rules! args {
        ($q:ident, $k:ident, $v:ident, $o:ident, $lse:ident) => {{
            let (k, v) = ($k.tensor(key_layout)?, Some($v.tensor(key_layout)?));
            let mut args =
                Args::new(batch, $q.tensor(row_layout(DIM))?, k, v, $o.tensor_mut(row_layout(DIM))?);
            (args.q_len, args.kv_len, args.scale) = (Some(rows), Some(keys), scale);
            args.lse = Some($lse.tensor_mut(row_layout(1))?);
            args
        }};
    }
    let (q_buffer, k_buffer, v_buffer) = (hip.buffer(&q)?, hip.buffer(&k)?, hip.buffer(&v)?);
    let (mut o_buffer, mut lse_buffer) = (hip.buffer(&o)?, hip.buffer(&lse)?);
    run(&context, &hip, &problem, &args!(q_buffer, k_buffer, v_buffer, o_buffer, lse_buffer))?;
    reference(&problem, &mut args!(q, k, v, o, lse))?;
    Ok(vec![(downloaded(&o_buffer)?, downloaded(&lse_buffer)?), (o, lse)])
}

#[test]
fn calls_without_rows_or_sequences_do_nothing() -> Result<()> {
    for (batch, rows, keys) in [(2, 0, 5), (0, 3, 5), (0, 0, 0)] {
        for (o, lse) in attend(batch, rows, keys, None)? {
            assert_eq!((o.len(), lse.len()), (0, 0));
        }
    }
    Ok(())
}

#[test]
fn rows_without_keys_are_0() -> Result<()> {
    for (o, lse) in attend(2, 3, 0, None)? {
        assert!(o.len() == 2 * 3 * 2 * HEADS * DIM && o.iter().all(|o| *o == 0.0));
        assert!(lse.iter().all(|lse| *lse == f32::NEG_INFINITY));
    }
    Ok(())
}

#[test]
fn a_scale_of_0_is_no_default() -> Result<()> {
    const KEYS: usize = 21;
    let mut random = Random(1);
    let _: Vec<F16> = random.vector(3 * 2 * HEADS * DIM);
    let _: Vec<F16> = random.vector(KEYS * HEADS * DIM);
    let v: Vec<F16> = random.vector(KEYS * HEADS * DIM);
    let mean = |head: usize, e: usize| {
        (0..KEYS).map(|key| f64::from(v[(key * HEADS + head) * DIM + e].decode())).sum::<f64>() / KEYS as f64
    };
    for (o, lse) in attend(1, 3, KEYS, Some(0.0))? {
        for (at, o) in o.iter().enumerate() {
            // P is 1; sums of 21 products below 1, and a quotient, in F32.
            let wanted = mean(at / DIM % (2 * HEADS) / 2, at % DIM);
            assert!((f64::from(*o) - wanted).abs() < 2f64.powi(-20), "element {at} is {o}, not {wanted}");
        }
        let wanted = (KEYS as f32).ln();
        assert!(lse.iter().all(|lse| (lse - wanted).abs() < 1e-5), "{lse:?}, not {wanted}");
    }
    let default = attend(1, 3, KEYS, None)?;
    assert_eq!(default, attend(1, 3, KEYS, Some(1.0 / 8.0))?);
    assert_ne!(default, attend(1, 3, KEYS, Some(0.0))?);
    Ok(())
}

/// Rows of sequences that are packed, in tensors without rows: all starts are limited to 0.
#[test]
fn packed_tensors_may_be_empty() -> Result<()> {
    let context = emulator();
    let hip = Hip::new(&context)?;
    let problem = builder().ragged().build()?;
    let rows: Vec<F16> = Random(2).vector(3 * 2 * HEADS * DIM);
    let (filled, empty) = (hip.buffer(&rows)?, hip.buffer::<F16>(&[])?);
    let q_starts = hip.buffer(&[0i32, 1, 3])?;
    let none = hip.buffer(&[0i32, 0, 0])?;
    for (has_rows, has_keys) in [(false, true), (true, false), (false, false)] {
        let count = |is: bool| if is { 3 } else { 0 };
        let (q, kv) = (if has_rows { &filled } else { &empty }, if has_keys { &filled } else { &empty });
        let row_layout = |dim| Layout::rows([count(has_rows), 2 * HEADS, dim]);
        let key_layout = Layout::rows([count(has_keys), HEADS, DIM]);
        let mut o = hip.buffer(&vec![UNTOUCHED; count(has_rows) * 2 * HEADS * DIM])?;
        let mut lse = hip.buffer(&vec![UNTOUCHED; count(has_rows) * 2 * HEADS])?;
        let (k, v) = (kv.tensor(key_layout)?, Some(kv.tensor(key_layout)?));
        let mut args = Args::new(2, q.tensor(row_layout(DIM))?, k, v, o.tensor_mut(row_layout(DIM))?);
        (args.q_len, args.kv_len) = (Some(2), Some(2));
        args.lse = Some(lse.tensor_mut(row_layout(1))?);
        args.q_starts = Some(if has_rows { q_starts.array() } else { none.array() });
        args.kv_starts = Some(if has_keys { q_starts.array() } else { none.array() });
        run(&context, &hip, &problem, &args)?;
        assert!(downloaded(&o)?.iter().all(|o| *o == 0.0));
        assert!(downloaded(&lse)?.iter().all(|lse| *lse == f32::NEG_INFINITY));
    }
    Ok(())
}

#[test]
fn paged_calls_without_keys_need_no_pages() -> Result<()> {
    let context = emulator();
    let hip = Hip::new(&context)?;
    let problem = builder().paged(16, PageTableKind::Block).build()?;
    let (rows, cache) = (hip.zeroed::<F16>(2 * 2 * HEADS * DIM)?, hip.zeroed::<F16>(0)?);
    let (lengths, table) = (hip.zeroed::<i32>(2)?, hip.zeroed::<i32>(0)?);
    let row_layout = |dim| Layout::contiguous([2, 1, 2 * HEADS, dim]);
    let pages = Layout::contiguous([0, 16, HEADS, DIM]);
    let (mut o, mut lse) =
        (hip.buffer(&[UNTOUCHED; 2 * 2 * HEADS * DIM])?, hip.buffer(&[UNTOUCHED; 2 * 2 * HEADS])?);
    let (k, v) = (cache.tensor(pages)?, Some(cache.tensor(pages)?));
    let mut args = Args::new(2, rows.tensor(row_layout(DIM))?, k, v, o.tensor_mut(row_layout(DIM))?);
    (args.q_len, args.kv_len) = (Some(1), Some(0));
    args.lse = Some(lse.tensor_mut(row_layout(1))?);
    args.kv_lengths = Some(lengths.array());
    args.page_table = Some(PageTable::Block { pages: PageNumbers::I32(table.array()), stride: 0 });
    run(&context, &hip, &problem, &args)?;
    args.kv_len = Some(1);
    let error = run(&context, &hip, &problem, &args).unwrap_err();
    assert_eq!((error.code, error.field.as_str()), (Code::InvalidArgument, "k.shape[0]"));
    assert!(downloaded(&o)?.iter().all(|o| *o == 0.0));
    Ok(())
}

#[test]
fn lengths_need_a_number_or_a_bound() {
    let problem = |builder: ProblemBuilder| builder.build().unwrap();
    let numbers = vec![F16::default(); 2 * HEADS * DIM];
    let (mut o, mut lse) = (vec![0f32; 2 * HEADS * DIM], vec![0f32; 2 * HEADS]);
    let keys = Layout::contiguous([1, 1, HEADS, DIM]);
    let rows = |dim| Layout::contiguous([1, 1, 2 * HEADS, dim]);
    let (k, v) = (numbers.tensor(keys).unwrap(), Some(numbers.tensor(keys).unwrap()));
    let (q, o) = (numbers.tensor(rows(DIM)).unwrap(), o.tensor_mut(rows(DIM)).unwrap());
    let mut args = Args::new(1, q, k, v, o);
    args.lse = Some(lse.tensor_mut(rows(1)).unwrap());
    args.kv_len = Some(0);
    assert_eq!(reference(&problem(builder()), &mut args).unwrap_err().field, "q_len");
    assert_eq!(reference(&problem(builder().max_q_len(1)), &mut args), Ok(()));
    (args.q_len, args.kv_len) = (Some(0), None);
    assert_eq!(reference(&problem(builder()), &mut args).unwrap_err().field, "kv_len");
    assert_eq!(reference(&problem(builder().max_kv_len(1)), &mut args), Ok(()));
}

/// Appends of no tokens, and of tokens of no sequences, leave the caches as they are, or need none.
#[test]
fn appends_of_nothing() -> Result<()> {
    let context = emulator();
    let hip = Hip::new(&context)?;
    let numbers = vec![F16::from_f32(UNTOUCHED); 16 * HEADS * DIM];
    let (source, slots) = (hip.buffer(&numbers)?, hip.zeroed::<i64>(0)?);
    let (starts, lengths, table) = (hip.zeroed::<i32>(1)?, hip.zeroed::<i32>(0)?, hip.zeroed::<i32>(0)?);
    for (tokens, pages) in [(0, 1), (0, 0), (3, 1), (3, 0)] {
        let cached = numbers[..pages * 16 * HEADS * DIM].to_vec();
        let (rows, cache) = (Layout::rows([tokens, HEADS, DIM]), Layout::contiguous([pages, 16, HEADS, DIM]));
        let (mut k, mut v) = (hip.buffer(&cached)?, hip.buffer(&cached)?);
        let (mut k_host, mut v_host) = (cached.clone(), cached.clone());
        macro_rules! append {
            ($source:ident, $k:ident, $v:ident, $slots:expr, $starts:expr, $lengths:expr, $table:expr) => {{
                let pages = PageNumbers::I32($table);
                let page_table = PageTable::Block { pages, stride: 0 };
                let place = if tokens == 0 {
                    Place::Slots($slots)
                } else {
                    Place::Sequences { batch: 0, starts: $starts, kv_lengths: $lengths, page_table }
                };
                let (new, to) = ($source.tensor(rows)?, $k.tensor_mut(cache)?);
                Append::new(new, Some($source.tensor(rows)?), to, Some($v.tensor_mut(cache)?), place)
            }};
        }
        let append = append!(source, k, v, slots.array(), starts.array(), lengths.array(), table.array());
        // SAFETY: all buffers stay until the device has been waited for.
        unsafe { context.kv_append(&append, &Launch::default()) }?;
        hip.synchronize()?;
        assert_eq!((downloaded(&k)?, downloaded(&v)?), (cached.clone(), cached.clone()));
        let (none, first) = (Vec::<i32>::new(), vec![0i32]);
        let no_slots = Vec::<i64>::new();
        reference_append(&mut append!(
            numbers,
            k_host,
            v_host,
            no_slots.array(),
            first.array(),
            none.array(),
            none.array()
        ))?;
        assert_eq!((k_host, v_host), (cached.clone(), cached));
    }
    Ok(())
}

#[test]
fn merges_of_nothing() -> Result<()> {
    let context = emulator();
    let hip = Hip::new(&context)?;
    let (partial, partial_lse) = (hip.zeroed::<f32>(0)?, hip.zeroed::<f32>(0)?);
    for sequence_tokens in [None, Some(0), Some(4)] {
        let parts = if sequence_tokens.is_some() { 1 } else { 2 };
        let (mut o, mut lse) = (hip.zeroed::<f32>(0)?, hip.zeroed::<f32>(0)?);
        let lse_layouts = match sequence_tokens {
            None => [Layout::contiguous([parts, 0, HEADS, 1]), Layout::rows([0, HEADS, 1])],
            Some(tokens) => [Layout::contiguous([0, tokens, HEADS, 1]); 2],
        };
        let mut merge = Merge::new(
            partial.tensor(Layout::contiguous([parts, 0, HEADS, DIM]))?,
            partial_lse.tensor(lse_layouts[0])?,
            o.tensor_mut(Layout::rows([0, HEADS, DIM]))?,
        );
        merge.lse = Some(lse.tensor_mut(lse_layouts[1])?);
        merge.sequence_tokens = sequence_tokens;
        // SAFETY: all buffers stay until the device has been waited for.
        unsafe { context.merge_states(&merge, &Launch::default()) }?;
        hip.synchronize()?;
    }
    Ok(())
}

/// A list without pairs copies nothing, and a gather of no keys or sequences writes nothing.
#[test]
fn copies_and_gathers_of_nothing() -> Result<()> {
    let context = emulator();
    let hip = Hip::new(&context)?;
    let (from, to) = (vec![F16::from_f32(1.0); 16 * HEADS * DIM], vec![F16::from_f32(2.0); 16 * HEADS * DIM]);
    let (source, pairs) = (hip.buffer(&from)?, hip.zeroed::<i32>(0)?);
    for pages in [0, 1] {
        let cache = Layout::contiguous([pages, 16, HEADS, DIM]);
        let (mut target, mut on_host) = (hip.buffer(&to)?, to.clone());
        macro_rules! copy {
            ($source:ident, $target:ident, $pairs:expr) => {
                PageCopy {
                    k_source: $source.tensor(cache)?,
                    v_source: None,
                    k_target: $target.tensor_mut(cache)?,
                    v_target: None,
                    pairs: Some(PageNumbers::I32($pairs)),
                    k_scale: None,
                    v_scale: None,
                    k_target_scales: None,
                    v_target_scales: None,
                }
            };
        }
        let copy = copy!(source, target, pairs.array());
        // SAFETY: all buffers stay until the device has been waited for.
        unsafe { context.kv_copy(&copy, &Launch::default()) }?;
        hip.synchronize()?;
        let no_pairs = Vec::<i32>::new();
        reference_copy(&mut copy!(from, on_host, no_pairs.array()))?;
        assert_eq!((downloaded(&target)?, on_host), (to.clone(), to.clone()));
    }

    let (starts, none) = (hip.zeroed::<i32>(3)?, hip.zeroed::<i32>(2)?);
    for (batch, tokens, pages) in [(2, 0, 1), (0, 3, 1), (0, 0, 0)] {
        let (cache, rows) = (Layout::contiguous([pages, 16, HEADS, DIM]), Layout::rows([tokens, HEADS, DIM]));
        let mut out = hip.buffer(&to[..tokens * HEADS * DIM])?;
        let mut on_host = to[..tokens * HEADS * DIM].to_vec();
        macro_rules! gather {
            ($cache:ident, $out:ident, $starts:expr, $lengths:expr, $table:expr) => {
                Gather {
                    k_cache: $cache.tensor(cache)?,
                    v_cache: None,
                    k_out: $out.tensor_mut(rows)?,
                    v_out: None,
                    batch,
                    out_starts: $starts,
                    kv_lengths: $lengths,
                    first_keys: None,
                    page_table: PageTable::Block { pages: PageNumbers::I32($table), stride: 1 },
                    k_scale: None,
                    v_scale: None,
                    k_out_scales: None,
                    v_out_scales: None,
                }
            };
        }
        let gather = gather!(source, out, starts.array(), none.array(), none.array());
        // SAFETY: all buffers stay until the device has been waited for.
        unsafe { context.kv_gather(&gather, &Launch::default()) }?;
        hip.synchronize()?;
        let (host_starts, host_none) = (vec![0i32; 3], vec![0i32; 2]);
        reference_gather(&mut gather!(
            from,
            on_host,
            host_starts.array(),
            host_none.array(),
            host_none.array()
        ))?;
        assert_eq!((downloaded(&out)?, &on_host[..]), (on_host.clone(), &to[..tokens * HEADS * DIM]));
    }
    Ok(())
}

/// Arrays may be longer than a call needs, as those of a server that are made for its largest batch.
#[test]
fn arrays_may_be_longer_but_not_shorter() -> Result<()> {
    let problem = builder().paged(1, PageTableKind::Csr).build()?;
    let numbers: Vec<F16> = Random(3).vector(2 * 2 * HEADS * DIM);
    let attend = |starts: &[i32], lengths: &[i32]| -> Result<Vec<f32>> {
        let (mut o, mut lse) = (vec![UNTOUCHED; 2 * 2 * HEADS * DIM], vec![0f32; 2 * 2 * HEADS]);
        let rows = |dim| Layout::contiguous([2, 1, 2 * HEADS, dim]);
        let pages = Layout::contiguous([3, 1, HEADS, DIM]);
        let (k, v) = (numbers.tensor(pages)?, Some(numbers.tensor(pages)?));
        let (starts, lengths, table) = (starts.to_vec(), lengths.to_vec(), vec![2i32, 0, 1]);
        let mut args = Args::new(2, numbers.tensor(rows(DIM))?, k, v, o.tensor_mut(rows(DIM))?);
        (args.q_len, args.kv_len) = (Some(1), Some(2));
        args.lse = Some(lse.tensor_mut(rows(1))?);
        args.kv_lengths = Some(lengths.array());
        args.page_table =
            Some(PageTable::Csr { pages: PageNumbers::I32(table.array()), starts: starts.array() });
        reference(&problem, &mut args)?;
        Ok(o)
    };
    let wanted = attend(&[0, 1, 3], &[1, 2])?;
    assert_eq!(attend(&[0, 1, 3, -7, 99], &[1, 2, -3, 4])?, wanted);
    assert_eq!(attend(&[0, 1], &[1, 2]).unwrap_err().field, "page_starts");
    assert_eq!(attend(&[0, 1, 3], &[1]).unwrap_err().field, "kv_lengths");
    Ok(())
}

/// Strides of extents of 1 are never used: any number will do.
#[test]
fn strides_without_meaning_may_be_anything() -> Result<()> {
    let context = emulator();
    let hip = Hip::new(&context)?;
    let problem = Problem::builder(Dtype::F16, 1, 1, DIM).o_type(Dtype::F32).build()?;
    let mut random = Random(4);
    let [q, k, v]: [Vec<F16>; 3] = [DIM, 5 * DIM, 5 * DIM].map(|len| random.vector(len));
    let (q, k, v) = (hip.buffer(&q)?, hip.buffer(&k)?, hip.buffer(&v)?);
    let attend = |row: Layout, keys: Layout| -> Result<Vec<f32>> {
        let mut o = hip.zeroed::<f32>(DIM)?;
        let mut args =
            Args::new(1, q.tensor(row)?, k.tensor(keys)?, Some(v.tensor(keys)?), o.tensor_mut(row)?);
        (args.q_len, args.kv_len) = (Some(1), Some(5));
        run(&context, &hip, &problem, &args)?;
        downloaded(&o)
    };
    let wanted = attend(Layout::contiguous([1, 1, 1, DIM]), Layout::contiguous([1, 5, 1, DIM]))?;
    let odd = attend(
        Layout::strided([1, 1, 1, DIM], [-3, i64::MIN, 5, 1]),
        Layout::strided([1, 5, 1, DIM], [i64::MAX, 64, -7, 1]),
    )?;
    assert_eq!(odd, wanted);
    Ok(())
}
