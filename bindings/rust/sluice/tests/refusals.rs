//! Errors of the library and of the crate, and that they name the field.

mod common;

use common::{emulator, target, TensorViews, Views};
use sluice::hip::{Buffer, Hip};
use sluice::{
    reference, reference_append, Append, Args, Array, Bf16, Code, Determinism, Device, Dtype, Element, Error,
    Host, Launch, Layout, LseBase, MaskAlignment, Merge, Numbers, PageNumbers, PageTable, PageTableKind,
    Place, Problem, ProblemBuilder, Result, Rotary, RotaryStyle, ScaleKind, U4Pair, F16,
};

fn check(result: Result<()>, code: Code, field: &str, part: &str) {
    let error: Error = result.expect_err(field);
    assert_eq!((error.code, error.field.as_str()), (code, field), "{error}");
    assert!(error.message.contains(part), "'{part}' is missing in: {error}");
}

fn base() -> ProblemBuilder {
    Problem::builder(Dtype::F16, 4, 2, 64)
}

#[test]
fn problems() {
    let context = target();
    let refused = |builder: ProblemBuilder, code, field, part| {
        let problem = builder.build().unwrap();
        check(context.query_support(&problem).map(drop), code, field, part);
        check(context.plan(&problem).map(drop), code, field, part);
        check(context.workspace_size(&problem).map(drop), code, field, part);
    };
    use Code::{InvalidArgument, Unsupported};
    refused(Problem::builder(Dtype::F16, 3, 2, 64), InvalidArgument, "q_heads", "3");
    refused(Problem::builder(Dtype::F16, 4, 0, 64), InvalidArgument, "kv_heads", "kv_heads");
    refused(base().head_dims(65, 64), Unsupported, "head_dim_qk", "65");
    refused(base().head_dims(64, 1024), Unsupported, "head_dim_v", "1024");
    refused(base().kv_type(Dtype::E5m2), Unsupported, "k_type", "k_type");
    refused(base().o_type(Dtype::Bf16), Unsupported, "o_type", "o_type");
    refused(base().paged(0, PageTableKind::Block), InvalidArgument, "page_size", "page_size");
    refused(base().sink_tokens(4), InvalidArgument, "sink_tokens", "4");
    refused(base().soft_cap(-1.0), InvalidArgument, "soft_cap", "-1");
    refused(base().q_scale(ScaleKind::PerToken), Unsupported, "q_scale_kind", "is 3");
    refused(base().v_scale(ScaleKind::PerPage), InvalidArgument, "v_scale_kind", "SLUICE_MODE_PAGED");
    refused(base().o_scale(ScaleKind::PerHead), InvalidArgument, "o_scale_kind", "unless o_type is e4m3fnuz");
    refused(base().causal().causal_by_sequence(), InvalidArgument, "flags", "SLUICE_CAUSAL_BY_SEQUENCE");
    refused(base().mask_new_rows(), InvalidArgument, "flags", "lacks SLUICE_BOOL_MASK");
    refused(base().bias_scale(), InvalidArgument, "flags", "bias_type is 0");
    refused(base().determinism(Determinism::BatchInvariant), InvalidArgument, "max_batch", "unbounded");
    let error = base().max_kv_len(1 << 31).build().map(drop);
    check(error, InvalidArgument, "max_kv_len", "2147483648");
}

struct Memory {
    q: Buffer<F16>,
    kv: Buffer<F16>,
    o: Buffer<F16>,
    lse: Buffer<f32>,
    small: Buffer<i32>,
    one: Buffer<i32>,
    twelve: Buffer<f32>,
    factors: Buffer<f32>,
    bytes: Buffer<u8>,
}

fn rows() -> Layout {
    Layout::contiguous([2, 8, 4, 64])
}

fn keys() -> Layout {
    Layout::contiguous([2, 8, 2, 64])
}

impl Memory {
    fn new(hip: &Hip) -> Memory {
        Memory {
            q: hip.zeroed(1 << 13).unwrap(),
            kv: hip.zeroed(1 << 13).unwrap(),
            o: hip.zeroed(1 << 13).unwrap(),
            lse: hip.zeroed(1 << 10).unwrap(),
            small: hip.zeroed(2).unwrap(),
            one: hip.zeroed(1).unwrap(),
            twelve: hip.zeroed(12).unwrap(),
            factors: hip.zeroed(1).unwrap(),
            bytes: hip.zeroed(1 << 12).unwrap(),
        }
    }

    /// Two sequences with 8 rows and keys, of `base`.
    fn args(&mut self) -> (Args<'_, Device>, Others<'_>) {
        let kv = self.kv.tensor(keys()).unwrap();
        let others = Others {
            small: &self.small,
            one: &self.one,
            twelve: &self.twelve,
            factors: &self.factors,
            bytes: &self.bytes,
            lse: &mut self.lse,
        };
        let (q, o) = (self.q.tensor(rows()).unwrap(), self.o.tensor_mut(rows()).unwrap());
        let mut args = Args::new(2, q, kv, Some(kv), o);
        (args.q_len, args.kv_len) = (Some(8), Some(8));
        (args, others)
    }
}

/// The memory that is left after making arguments from it.
struct Others<'a> {
    small: &'a Buffer<i32>,
    one: &'a Buffer<i32>,
    twelve: &'a Buffer<f32>,
    factors: &'a Buffer<f32>,
    bytes: &'a Buffer<u8>,
    lse: &'a mut Buffer<f32>,
}

/// The error of the arguments after `change`.
fn refused(
    builder: ProblemBuilder,
    code: Code,
    field: &str,
    part: &str,
    change: impl for<'a> FnOnce(&mut Args<'a, Device>, Others<'a>),
) {
    let context = emulator();
    let mut memory = Memory::new(&Hip::new(&context).unwrap());
    let plan = context.plan(&builder.build().unwrap()).unwrap();
    let (mut args, others) = memory.args();
    change(&mut args, others);
    // SAFETY: it is refused, and enqueues nothing.
    check(unsafe { plan.run(&args, &Launch::default()) }, code, field, part);
}

#[test]
fn arguments_with_wrong_types_or_extents() {
    let is = |field: &str, part: &str, change: &dyn for<'a> Fn(&mut Args<'a, Device>, Others<'a>)| {
        refused(base(), Code::InvalidArgument, field, part, |args, others| change(args, others));
    };
    is("batch", "2147483648", &|args, _| args.batch = 1 << 31);
    is("q.shape[0]", "is 2; for this call it must be at least 3", &|args, _| args.batch = 3);
    is("q.shape[1]", "must be at least 9", &|args, _| args.q_len = Some(9));
    is("k.shape[1]", "must be at least 9", &|args, _| args.kv_len = Some(9));
    is("q.shape[2]", "must be 4", &|args, _| args.q = args.k);
    is("k.shape[2]", "must be 2", &|args, _| args.k = args.q);
    is("v.shape[2]", "must be 2", &|args, _| args.v = Some(args.q));
    is("q_starts", "has 2 elements; this call needs 3", &|args, o| {
        args.q_starts = Some(o.small.array());
        args.q = nowhere::<F16>(Layout::rows([16, 4, 64]));
        // SAFETY: as in `nowhere`.
        args.o = unsafe { sluice::TensorMut::from_raw(256 as *mut F16, Layout::rows([16, 4, 64])) }.unwrap();
    });
    is("q.shape[0]", "must be 1", &|args, o| args.q_starts = Some(o.small.array()));
    is("kv_starts", "needs 3", &|args, o| args.kv_starts = Some(o.small.array()));
    is("alibi_slopes", "needs 4", &|args, o| args.alibi_slopes = Some(o.factors.array()));
    is("sink_logits", "needs 4", &|args, o| args.sink_logits = Some(o.factors.array()));
    is("lse.shape[2]", "must be 4", &|args, o| {
        args.lse = Some(o.lse.tensor_mut(Layout::contiguous([2, 8, 2, 1])).unwrap())
    });
    is("mask.shape[3]", "is 1", &|args, o| {
        args.mask = Some(o.bytes.tensor(Layout::contiguous([2, 4, 8, 1])).unwrap());
        args.kv_len = Some(9);
        args.k = nowhere::<F16>(Layout::contiguous([2, 9, 2, 64]));
        args.v = Some(args.k);
    });
    let biased = base().bias(Dtype::Bf16);
    refused(biased, Code::InvalidArgument, "bias.dtype", "holds bytes; the call needs Bf16", |args, o| {
        args.bias = Some(o.bytes.tensor(Layout::contiguous([2, 4, 8, 8])).unwrap())
    });
    let per_head = base().k_scale(ScaleKind::PerHead);
    refused(per_head, Code::InvalidArgument, "k_scale", "has 1 elements; this call needs 2", |args, o| {
        args.k_scale = Some(o.factors.array())
    });
    let slopes = base().alibi();
    refused(
        slopes,
        Code::InvalidArgument,
        "alibi_slopes",
        "has 12 elements; this call needs 13",
        |args, o| {
            (args.alibi_slopes, args.alibi_batch_stride) = (Some(o.twelve.array()), 9);
        },
    );
    let factors = base().bias(Dtype::F32).bias_scale();
    refused(
        factors,
        Code::InvalidArgument,
        "bias_scale",
        "has 12 elements; this call needs 13",
        |args, o| {
            (args.bias_scale, args.bias_scale_batch_stride) = (Some(o.twelve.array()), 9);
        },
    );
    is("bias_scale_batch_stride", "must be at most", &|args, _| args.bias_scale_batch_stride = usize::MAX);
    is("alibi_batch_stride", "must be at most", &|args, _| args.alibi_batch_stride = usize::MAX);
    is("span_count", "must be at most", &|args, _| args.span_count = usize::MAX);
    is("spans", "has 2 elements; this call needs 4", &|args, o| {
        (args.spans, args.span_count) = (Some(o.small.array()), 1);
    });
    is("diagonals", "has 1 elements; this call needs 2", &|args, o| args.diagonals = Some(o.one.array()));
    is("causal", "has 1 elements; this call needs 2", &|args, o| args.causal = Some(o.one.array()));
    let fp8 = base().o_type(Dtype::E4m3Fnuz).o_scale(ScaleKind::PerHead);
    refused(fp8, Code::InvalidArgument, "o_scale", "has 1 elements; this call needs 4", |args, o| {
        // SAFETY: as in `nowhere`.
        args.o = unsafe { sluice::TensorMut::from_raw(256 as *mut sluice::E4m3Fnuz, rows()) }.unwrap();
        args.o_scale = Some(o.factors.array());
    });
    let in_fp8 = || base().kv_type(Dtype::E4m3Fnuz);
    let per_token = || in_fp8().k_scale(ScaleKind::PerToken).v_scale(ScaleKind::PerToken);
    let scales = |builder: ProblemBuilder, field: &str, part: &str, k: [usize; 4], v: [usize; 4]| {
        refused(builder, Code::InvalidArgument, field, part, |args, _| {
            args.k = nowhere::<sluice::E4m3Fnuz>(args.k.layout());
            args.v = Some(args.k);
            let of = |shape| Some(nowhere::<f32>(Layout::contiguous(shape)));
            (args.k_scales, args.v_scales) = (of(k), of(v));
        })
    };
    let good = [2, 8, 2, 1];
    scales(per_token(), "k_scales.shape[0]", "is 1; for this call it must be at least 2", [1, 8, 2, 1], good);
    scales(per_token(), "k_scales.shape[1]", "must be at least 8", [2, 7, 2, 1], good);
    scales(per_token(), "v_scales.shape[2]", "must be 2", good, [2, 8, 4, 1]);
    scales(per_token(), "v_scales.shape[3]", "must be 1", good, [2, 8, 2, 2]);
    scales(in_fp8(), "k_scales.data", "k_scale_kind is not PER_TOKEN", good, good);
    let per_page = in_fp8().paged(8, PageTableKind::Block).v_scale(ScaleKind::PerPage);
    scales(per_page.k_scale(ScaleKind::PerPage), "v_scales.shape[1]", "must be 1", [2, 1, 2, 1], good);
    refused(
        per_token(),
        Code::InvalidArgument,
        "k_scales.dtype",
        "holds F16; the call needs F32",
        |args, _| {
            args.k = nowhere::<sluice::E4m3Fnuz>(args.k.layout());
            args.v = Some(args.k);
            args.k_scales = Some(nowhere::<F16>(Layout::contiguous([2, 8, 2, 1])));
        },
    );
    // Groups of 32 have four numbers for a row of 128.
    let groups = |field: &str, part: &str, extents: [[usize; 4]; 4]| {
        let builder =
            Problem::builder(Dtype::F16, 4, 2, 128).kv_type(Dtype::U4).scale_group(32).zero_points();
        let problem = builder.k_scale(ScaleKind::PerGroup).v_scale(ScaleKind::PerGroup).build().unwrap();
        let (rows, keys) =
            (Layout::contiguous([2, 8, 4, 128]), nowhere::<U4Pair>(Layout::contiguous([2, 8, 2, 128])));
        // SAFETY: as in `nowhere`.
        let o = unsafe { sluice::TensorMut::from_raw(256 as *mut F16, rows) }.unwrap();
        let mut args = Args::new(2, nowhere::<F16>(rows), keys, Some(keys), o);
        (args.q_len, args.kv_len) = (Some(8), Some(8));
        let [k_scales, v_scales, k_zeros, v_zeros] =
            extents.map(|shape| Some(nowhere::<F16>(Layout::contiguous(shape))));
        (args.k_scales, args.v_scales, args.k_zeros, args.v_zeros) = (k_scales, v_scales, k_zeros, v_zeros);
        let plan = emulator().plan(&problem).unwrap();
        // SAFETY: it is refused, and enqueues nothing.
        check(unsafe { plan.run(&args, &Launch::default()) }, Code::InvalidArgument, field, part);
    };
    let (row, few) = ([2, 8, 2, 4], [2, 8, 2, 3]);
    let at_least = "[3] is 3; for this call it must be at least 4";
    groups("k_scales.shape[3]", at_least, [few, row, row, row]);
    groups("v_scales.shape[3]", at_least, [row, few, row, row]);
    groups("k_zeros.shape[3]", at_least, [row, row, few, row]);
    groups("v_zeros.shape[0]", "must be at least 2", [row, row, row, [1, 8, 2, 4]]);
    groups("v_zeros.stride[0]", "it must be that of the scales", [row, row, row, [2, 8, 2, 8]]);
    let new_rows = base().bool_mask().mask_new_rows();
    refused(
        new_rows,
        Code::InvalidArgument,
        "mask.shape[3]",
        "is 1; for this call it must be at least 2",
        |args, o| {
            args.mask = Some(o.bytes.tensor(Layout::contiguous([2, 4, 9, 1])).unwrap());
            args.q_len = Some(9);
            args.q = nowhere::<F16>(Layout::contiguous([2, 9, 4, 64]));
            // SAFETY: as in `nowhere`.
            args.o =
                unsafe { sluice::TensorMut::from_raw(256 as *mut F16, Layout::contiguous([2, 9, 4, 64])) }
                    .unwrap();
        },
    );
    let bf16 = Problem::builder(Dtype::Bf16, 4, 2, 64);
    refused(bf16, Code::InvalidArgument, "q.dtype", "q holds F16; the call needs Bf16", |_, _| {});
    let paged = base().paged(16, PageTableKind::Block);
    refused(paged, Code::InvalidArgument, "k.shape[1]", "is 8; for this call it must be 16", |_, _| {});
    let paged = base().paged(8, PageTableKind::Block).page_index_64();
    refused(paged, Code::InvalidArgument, "page_table", "holds i32; the problem says i64", |args, o| {
        args.page_table = Some(PageTable::Block { pages: PageNumbers::I32(o.small.array()), stride: 1 });
    });
    let packed = base().paged(8, PageTableKind::Block).k_pack(8);
    refused(packed, Code::InvalidArgument, "k.pack", "k.pack is 0; the call needs 8", |_, _| {});
    let packed = base().paged(8, PageTableKind::Block).v_pack(8);
    refused(packed, Code::InvalidArgument, "v.token_pack", "v.token_pack is 0; the call needs 8", |_, _| {});
    refused(base().v_by_columns(), Code::InvalidArgument, "v.shape[1]", "at least 16", |args, _| {
        args.kv_len = Some(9);
        args.k = nowhere::<F16>(Layout::contiguous([2, 9, 2, 64]));
        args.v = Some(nowhere::<F16>(Layout::strided([2, 9, 2, 64], [2048, 1, 1024, 16])));
    });
}

/// A view without memory.
fn nowhere<T: Element>(layout: Layout) -> sluice::Tensor<'static, Device> {
    // SAFETY: the arguments are refused, and the memory is never accessed.
    unsafe { sluice::Tensor::from_raw(256 as *const T, layout) }.unwrap()
}

#[test]
fn arguments_that_the_library_refuses() {
    use Code::InvalidArgument;
    refused(base(), InvalidArgument, "batch", "at most", |args, _| args.batch = usize::MAX);
    refused(base(), InvalidArgument, "q_len", "q_len", |args, _| args.q_len = None);
    refused(base().max_kv_len(4), InvalidArgument, "kv_len", "8", |_, _| {});
    refused(base(), Code::Unsupported, "scale", "-1", |args, _| args.scale = Some(-1.0));
    refused(base(), InvalidArgument, "k.stride[1]", "multiple", |args, _| {
        args.k = nowhere::<F16>(Layout::strided([2, 8, 2, 64], [1096, 137, 64, 1]))
    });
    refused(base(), InvalidArgument, "v.data", "v.data", |args, _| args.v = None);
    refused(base().write_lse(LseBase::E), InvalidArgument, "lse.data", "lse", |_, _| {});
    refused(base().sink_logits(), InvalidArgument, "sink_logits", "sink_logits", |_, _| {});
    refused(base(), InvalidArgument, "q_scale", "q_scale", |args, o| args.q_scale = Some(o.factors.array()));
    refused(base(), InvalidArgument, "diagonals", "GIVEN", |args, o| args.diagonals = Some(o.small.array()));
    refused(base(), InvalidArgument, "causal", "flags", |args, o| args.causal = Some(o.small.array()));
    refused(base(), InvalidArgument, "span_count", "is 1", |args, _| args.span_count = 1);
    refused(base().spans(), InvalidArgument, "span_count", "from 0 to 1048576", |args, _| {
        // SAFETY: as in `nowhere`.
        args.spans = Some(unsafe { Array::from_raw(256 as *const i32, 1 << 23) });
        args.span_count = (1 << 20) + 1
    });
    refused(base().spans(), InvalidArgument, "spans", "spans", |args, _| args.span_count = 1);
    refused(base(), InvalidArgument, "alibi_batch_stride", "is 4", |args, _| args.alibi_batch_stride = 4);
    refused(base(), InvalidArgument, "bias_scale_batch_stride", "is 4", |args, _| {
        args.bias_scale_batch_stride = 4
    });
    let per_token = base().kv_type(Dtype::E4m3Fnuz).k_scale(ScaleKind::PerToken);
    refused(per_token, InvalidArgument, "k_scales.data", "NULL", |args, _| {
        args.k = nowhere::<sluice::E4m3Fnuz>(args.k.layout());
        args.v = Some(args.k);
    });
    let split = base().determinism(Determinism::BatchInvariant).max_batch(2).max_q_len(8).max_kv_len(8192);
    refused(split, Code::WorkspaceTooSmall, "workspace_bytes", "workspace", |_, _| {});
}

#[test]
fn appends_and_merges() -> Result<()> {
    let context = emulator();
    let hip = Hip::new(&context)?;
    let rows = hip.zeroed::<F16>(4 * 2 * 64)?;
    let other_rows = hip.zeroed::<Bf16>(4 * 2 * 64)?;
    let slots = hip.zeroed::<i64>(3)?;
    let mut caches = [hip.zeroed::<F16>(2 * 16 * 2 * 64)?, hip.zeroed::<F16>(2 * 16 * 2 * 64)?];
    let refused = |caches: &mut [Buffer<F16>; 2], code, field, part, change: &dyn Fn(&mut Append)| {
        let (new, kept) = (Layout::rows([4, 2, 64]), Layout::contiguous([2, 16, 2, 64]));
        let [k_cache, v_cache] = caches;
        let mut append = Append {
            k: rows.tensor(new).unwrap(),
            v: Some(rows.tensor(new).unwrap()),
            k_cache: k_cache.tensor_mut(kept).unwrap(),
            v_cache: Some(v_cache.tensor_mut(kept).unwrap()),
            place: Place::Slots(slots.array()),
            k_scale: None,
            v_scale: None,
            rotary: None,
            q: None,
            k_tail: None,
            norms: None,
        };
        change(&mut append);
        // SAFETY: it is refused, and enqueues nothing.
        check(unsafe { context.kv_append(&append, &Launch::default()) }, code, field, part);
    };
    use Code::InvalidArgument;
    refused(&mut caches, InvalidArgument, "slots", "has 3 elements; this call needs 4", &|_| {});
    refused(&mut caches, InvalidArgument, "v_cache", "both or neither", &|append| append.v_cache = None);
    refused(&mut caches, InvalidArgument, "v", "v is missing, but v_cache is given", &|append| {
        append.v = None
    });
    let bf16 = other_rows.tensor(Layout::rows([4, 2, 64]))?;
    refused(&mut caches, InvalidArgument, "v.dtype", "v holds Bf16", &|append| {
        // SAFETY: the memory lives as long as this test.
        append.v = unsafe { sluice::Tensor::from_raw(other_rows.as_ptr(), bf16.layout()) }.ok()
    });
    let fewer = rows.tensor(Layout::rows([3, 2, 64]))?;
    refused(&mut caches, InvalidArgument, "v.shape[1]", "is 3", &|append| {
        // SAFETY: as above.
        append.v = unsafe { sluice::Tensor::from_raw(rows.as_ptr(), fewer.layout()) }.ok()
    });
    refused(&mut caches, InvalidArgument, "k.stride[1]", "is 132", &|append| {
        let apart = Layout::strided([1, 3, 2, 64], [0, 132, 64, 1]);
        // SAFETY: as above.
        append.k = unsafe { sluice::Tensor::from_raw(rows.as_ptr(), apart) }.unwrap();
        append.v = Some(append.k);
    });

    let partial = hip.zeroed::<f32>(2 * 3 * 2 * 64)?;
    let lse = hip.zeroed::<f32>(12)?;
    let mut o = hip.zeroed::<F16>(3 * 2 * 64)?;
    let mut refused = |field, part, parts: usize, o_heads| {
        let merge = Merge::new(
            partial.tensor(Layout::contiguous([2, 3, 2, 64])).unwrap(),
            lse.tensor(Layout::contiguous([parts, 3, 2, 1])).unwrap(),
            o.tensor_mut(Layout::rows([3, o_heads, 64])).unwrap(),
        );
        // SAFETY: it is refused, and enqueues nothing.
        check(unsafe { context.merge_states(&merge, &Launch::default()) }, InvalidArgument, field, part);
    };
    refused("partial_lse.shape[0]", "must be 2", 1, 2);
    refused("o.shape[2]", "must be 2", 2, 1);
    Ok(())
}

/// The reference runs in this process: no argument may make it leave its memory.
#[test]
fn contents_outside_the_memory_are_refused() {
    fn run(problem: &Problem, change: impl for<'a> FnOnce(&mut Args<'a, Host>)) -> Result<()> {
        let elements = vec![0.0f32; 4 * 16 * 8];
        let (mut o, mut lse) = (vec![0.0f32; 4 * 8], vec![0.0f32; 4]);
        let rows = Layout::rows([4, 1, 8]);
        let kv = match problem.raw().mode {
            2 => elements.tensor(Layout::contiguous([4, 16, 1, 8])).unwrap(),
            _ => elements.tensor(Layout::rows([64, 1, 8])).unwrap(),
        };
        let q = elements.tensor(rows).unwrap();
        let mut args = Args::new(2, q, kv, Some(kv), o.tensor_mut(rows).unwrap());
        args.lse = Some(lse.tensor_mut(Layout::rows([4, 1, 1])).unwrap());
        (args.q_len, args.kv_len) = (Some(4), Some(40));
        change(&mut args);
        reference(problem, &mut args)
    }
    const GOOD: [i32; 3] = [0, 1, 4];
    const PAGES: [i32; 6] = [0, 1, 3, 2, 2, 2];
    const KEYS: [i32; 2] = [40, 33];
    let base = || Problem::builder(Dtype::F32, 1, 1, 8).write_lse(LseBase::E);
    let ragged = base().ragged().build().unwrap();
    let with_starts = |q: &'static [i32], kv: &'static [i32]| {
        run(&ragged, |args| {
            args.q_starts = Some(Array::new(q));
            args.kv_starts = Some(Array::new(kv));
        })
    };
    assert_eq!(with_starts(&GOOD, &[0, 40, 64]), Ok(()));
    use Code::InvalidArgument;
    check(
        with_starts(&[0, 1, 5], &[0, 40, 64]),
        InvalidArgument,
        "q_starts[2]",
        "is 5; it must be at most q_tokens, which is 4",
    );
    check(
        with_starts(&GOOD, &[0, 40, 65]),
        InvalidArgument,
        "kv_starts[2]",
        "is 65; it must be at most kv_tokens, which is 64",
    );
    check(with_starts(&GOOD, &[0, 40, 39]), InvalidArgument, "kv_starts[2]", "decrease");
    check(with_starts(&[-1, 1, 4], &[0, 40, 64]), InvalidArgument, "q_starts[0]", "-1");

    let block = base().paged(16, PageTableKind::Block).build().unwrap();
    let with_table = |pages: &'static [i32], stride| {
        run(&block, |args| {
            args.q_starts = Some(Array::new(&GOOD));
            args.kv_lengths = Some(Array::new(&KEYS));
            args.page_table = Some(PageTable::Block { pages: PageNumbers::I32(Array::new(pages)), stride });
        })
    };
    assert_eq!(with_table(&PAGES, 3), Ok(()));
    check(with_table(&PAGES, 4), InvalidArgument, "page_table", "has 6 entries; this call needs 7");
    check(
        with_table(&[0, 1, 3, 2, 4, 2], 3),
        InvalidArgument,
        "page_table[4]",
        "is 4; it must be less than page_count, which is 4",
    );
    check(with_table(&[0, 1, 3, 2, -4, 2], 3), InvalidArgument, "page_table[4]", "-4");

    // The first sequence has 39 keys that its only row does not see, in two pages that need not exist any more.
    let window = base().paged(16, PageTableKind::Block).window_left(0).build().unwrap();
    let behind_window = run(&window, |args| {
        args.q_starts = Some(Array::new(&GOOD));
        args.kv_lengths = Some(Array::new(&KEYS));
        let pages = PageNumbers::I32(Array::new(&[77, -1, 3, 2, 2, 2]));
        args.page_table = Some(PageTable::Block { pages, stride: 3 });
    });
    assert_eq!(behind_window, Ok(()));

    let given = base().ragged().mask_alignment(MaskAlignment::GivenDiagonal).spans().build().unwrap();
    let with_masks = |diagonals: &'static [i32], spans: &'static [i32], span_count| {
        run(&given, |args| {
            (args.q_starts, args.kv_starts) = (Some(Array::new(&GOOD)), Some(Array::new(&[0, 40, 64])));
            (args.diagonals, args.spans) = (Some(Array::new(diagonals)), Some(Array::new(spans)));
            args.span_count = span_count;
        })
    };
    let spans = &[2, 5, 5, 9, 0, 0, 1, 1 << 30];
    assert_eq!(with_masks(&[3, -7], spans, 2), Ok(()));
    check(with_masks(&[3, (1 << 30) + 1], spans, 2), InvalidArgument, "diagonals[1]", "1073741825");
    check(with_masks(&[3], spans, 2), InvalidArgument, "diagonals", "needs 2");
    check(with_masks(&[3, -7], &[2, 5, 4, 9, 0, 0, 1, 4], 2), InvalidArgument, "spans[2]", "is 4");
    check(with_masks(&[3, -7], spans, 3), InvalidArgument, "spans", "has 8 elements; this call needs 12");
    check(with_masks(&[3, -7], spans, 1 << 62), InvalidArgument, "spans", "has 8 elements");

    // Scales of K for three pages, of V for two: no page number leads out of them.
    let scaled = base().paged(16, PageTableKind::Block).k_scale(ScaleKind::PerPage);
    let scaled = scaled.v_scale(ScaleKind::PerToken).build().unwrap();
    let with_scales = |pages: &'static [i32], v_scales: &'static [f32]| {
        run(&scaled, |args| {
            args.q_starts = Some(Array::new(&GOOD));
            args.kv_lengths = Some(Array::new(&KEYS));
            args.page_table =
                Some(PageTable::Block { pages: PageNumbers::I32(Array::new(pages)), stride: 3 });
            let page_layout = Layout::contiguous([3, 1, 1, 1]);
            args.k_scales = Some(sluice::Tensor::new(&[1.0f32; 3], page_layout).unwrap());
            let token_layout = Layout::contiguous([v_scales.len() / 16, 16, 1, 1]);
            args.v_scales = Some(sluice::Tensor::new(v_scales, token_layout).unwrap());
        })
    };
    assert_eq!(with_scales(&[0, 1, 2, 2, 2, 2], &[1.0; 48]), Ok(()));
    check(
        with_scales(&PAGES, &[1.0; 64]),
        InvalidArgument,
        "page_table[2]",
        "is 3; it must be less than page_count, which is 3",
    );
    check(
        with_scales(&[0, 1, 2, 2, 2, 2], &[1.0; 32]),
        InvalidArgument,
        "page_table[2]",
        "is 2; it must be less than page_count, which is 2",
    );

    let csr = base().paged(16, PageTableKind::Csr).page_index_64().build().unwrap();
    let with_csr = |pages: &'static [i64], starts: &'static [i32]| {
        run(&csr, |args| {
            args.q_starts = Some(Array::new(&GOOD));
            args.kv_lengths = Some(Array::new(&KEYS));
            let pages = PageNumbers::I64(Array::new(pages));
            args.page_table = Some(PageTable::Csr { pages, starts: Array::new(starts) });
        })
    };
    assert_eq!(with_csr(&[0, 1, 3, 2, 2, 2], &[0, 3, 6]), Ok(()));
    check(
        with_csr(&[0, 1, 3, 2, 2], &[0, 3, 6]),
        InvalidArgument,
        "page_table",
        "has 5 entries; this call needs 6",
    );
    check(with_csr(&[0, 1, 3, 2, 2, 9], &[0, 3, 6]), InvalidArgument, "page_table[5]", "is 9");
    check(with_csr(&[0, 1, 3, 2, 2, 2], &[0, 3]), InvalidArgument, "page_starts", "needs 3");
    check(with_csr(&[0, 1, 3, 2, 2, 2], &[0, 3, 5]), InvalidArgument, "page_starts[2]", "needs 3 pages");

    let short = run(&block, |args| {
        args.q_starts = Some(Array::new(&GOOD));
        args.kv_lengths = Some(Array::new(&KEYS[..1]));
    });
    check(short, InvalidArgument, "kv_lengths", "has 1 elements; this call needs 2");
}

/// The same for an append, which then stores nothing.
#[test]
fn contents_of_an_append_outside_the_memory_are_refused() {
    const STARTS: [i32; 3] = [1, 2, 5];
    const KEYS: [i32; 2] = [17, 19];
    const PAGES: [i32; 5] = [0, 1, 77, 3, 2];
    // Six rows; caches of four pages of K and three of V.
    let run = |change: &dyn for<'a> Fn(&mut Append<'a, Host>)| {
        let rows = vec![F16::from_f32(1.0); 6 * 8];
        let (mut k_cache, mut v_cache) = (vec![F16::default(); 4 * 16 * 8], vec![F16::default(); 3 * 16 * 8]);
        let row_layout = Layout::rows([6, 1, 8]);
        let mut append = Append {
            k: rows.tensor(row_layout).unwrap(),
            v: Some(rows.tensor(row_layout).unwrap()),
            k_cache: k_cache.tensor_mut(Layout::contiguous([4, 16, 1, 8])).unwrap(),
            v_cache: Some(v_cache.tensor_mut(Layout::contiguous([3, 16, 1, 8])).unwrap()),
            place: Place::Slots(Array::new(&[0, 1, -5, 47, 2, 3])),
            k_scale: None,
            v_scale: None,
            rotary: None,
            q: None,
            k_tail: None,
            norms: None,
        };
        change(&mut append);
        let result = reference_append(&mut append);
        let stored = k_cache.iter().chain(&v_cache).filter(|element| element.to_f32() != 0.0).count();
        assert_eq!(stored > 0, result.is_ok());
        result
    };
    use Code::InvalidArgument;
    let with_slots = |slots: &'static [i64]| run(&|append| append.place = Place::Slots(Array::new(slots)));
    assert_eq!(with_slots(&[0, 1, -5, 47, 2, 3]), Ok(()));
    check(with_slots(&[0; 5]), InvalidArgument, "slots", "has 5 elements; this call needs 6");
    check(
        with_slots(&[0, 1, -5, 48, 2, 3]),
        InvalidArgument,
        "slots[3]",
        "is page 3; it must be less than page_count, which is 3",
    );
    check(with_slots(&[0, 1, -5, 2, 3, i64::MAX]), InvalidArgument, "slots[5]", "page_count");

    fn placed<'a>(
        starts: &'a [i32],
        keys: &'a [i32],
        pages: &'a [i32],
        page_starts: Option<&'a [i32]>,
    ) -> Place<'a, Host> {
        let pages = PageNumbers::I32(Array::new(pages));
        let page_table = match page_starts {
            None => PageTable::Block { pages, stride: 3 },
            Some(starts) => PageTable::Csr { pages, starts: Array::new(starts) },
        };
        let (starts, kv_lengths) = (Array::new(starts), Array::new(keys));
        Place::Sequences { batch: 2, starts, kv_lengths, page_table }
    }
    let with = |starts: &'static [i32],
                keys: &'static [i32],
                pages: &'static [i32],
                page_starts: Option<&'static [i32]>| {
        run(&|append| append.place = placed(starts, keys, pages, page_starts))
    };
    // The new row of the first sequence is in page 1, those of the second in page 2.
    assert_eq!(with(&STARTS, &KEYS, &PAGES, None), Ok(()));
    check(
        with(&STARTS, &KEYS, &PAGES[..4], None),
        InvalidArgument,
        "page_table",
        "has 4 entries; this call needs 5",
    );
    check(
        with(&STARTS, &KEYS, &[0, 3, 0, 0, 2], None),
        InvalidArgument,
        "page_table[1]",
        "page_count, which is 3",
    );
    check(with(&STARTS, &KEYS, &[0, -1, 0, 0, 2], None), InvalidArgument, "page_table[1]", "-1");
    check(with(&STARTS, &[17, 2], &PAGES, None), InvalidArgument, "kv_lengths[1]", "is 2");
    check(with(&STARTS, &[17, -1], &PAGES, None), InvalidArgument, "kv_lengths[1]", "is -1");
    check(with(&STARTS, &KEYS[..1], &PAGES, None), InvalidArgument, "kv_lengths", "needs 2");
    check(with(&STARTS[..2], &KEYS, &PAGES, None), InvalidArgument, "starts", "needs 3");
    check(with(&[1, 2, 7], &[17, 90], &PAGES, None), InvalidArgument, "starts[2]", "tokens, which is 6");
    check(with(&[1, 2, 1], &KEYS, &PAGES, None), InvalidArgument, "starts[2]", "decrease");
    check(with(&[-1, 2, 5], &KEYS, &PAGES, None), InvalidArgument, "starts[0]", "-1");
    // A sequence without new rows has no entries that are read.
    assert_eq!(with(&[1, 2, 2], &[17, i32::MAX], &PAGES[..2], None), Ok(()));

    assert_eq!(with(&STARTS, &KEYS, &[0, 1, 2, 2], Some(&[0, 2, 4])), Ok(()));
    check(with(&STARTS, &KEYS, &[0, 1, 2], Some(&[0, 2, 4])), InvalidArgument, "page_table", "needs 4");
    check(
        with(&STARTS, &KEYS, &[0, 1, 2, 2], Some(&[0, 1, 4])),
        InvalidArgument,
        "page_starts[1]",
        "needs 2",
    );
    check(with(&STARTS, &KEYS, &[0, 1, 2, 2], Some(&[-1, 2, 4])), InvalidArgument, "page_starts[0]", "-1");
    check(with(&STARTS, &KEYS, &[0, 1, 2, 2], Some(&[0, 2])), InvalidArgument, "page_starts", "needs 3");

    const TURNS: [f32; 19 * 4] = [0.5; 19 * 4];
    let rotated = |len: usize, stride: usize, positions: Option<&'static [i32]>, slots: bool| {
        run(&|append| {
            let positions = positions.map(Array::new);
            let (style, table) = (RotaryStyle::Pairs, Numbers::F32(Array::new(&TURNS[..len])));
            append.rotary = Some(Rotary { dim: 4, style, table, stride, positions, first: 0, sines: None });
            if !slots {
                append.place = placed(&STARTS, &KEYS, &PAGES, None);
            }
        })
    };
    assert_eq!(rotated(76, 4, None, false), Ok(()));
    check(
        rotated(75, 4, None, false),
        InvalidArgument,
        "kv_lengths[1]",
        "position 18 of rotary, which needs 76",
    );
    check(rotated(3, 4, None, false), InvalidArgument, "rotary", "needs 4");
    assert_eq!(rotated(4, 0, None, false), Ok(()));
    // Rows 0 and 5 belong to no sequence, and row 2 has no slot.
    assert_eq!(rotated(76, 4, Some(&[99, 18, 0, 1, 18, 99]), false), Ok(()));
    check(rotated(76, 4, Some(&[0, 0, 0, 0, 19, 0]), false), InvalidArgument, "positions[4]", "position 19");
    check(rotated(76, 4, Some(&[0, -1, 0, 0, 0, 0]), false), InvalidArgument, "positions[1]", "-1");
    check(rotated(76, 4, Some(&[0; 5]), false), InvalidArgument, "positions", "needs 6");
    assert_eq!(rotated(76, 4, Some(&[0, 1, 99, 18, 0, 1]), true), Ok(()));
    check(rotated(76, 4, Some(&[0, 1, 99, 19, 0, 1]), true), InvalidArgument, "positions[3]", "position 19");
    check(rotated(76, 4, None, true), InvalidArgument, "positions", "NULL");
}

#[test]
fn buffers() -> Result<()> {
    let hip = Hip::new(&emulator())?;
    check(hip.zeroed::<f32>(usize::MAX / 2).map(drop), Code::InvalidArgument, "len", "a buffer of this type");
    let error = hip.zeroed::<u8>(1 << 50).map(drop).unwrap_err();
    assert_eq!((error.code, error.field.as_str(), error.hip_code), (Code::Hip, "hipMalloc", 2));
    let mut buffer = hip.buffer(&[1.0f32, 2.0, 3.0])?;
    check(buffer.upload(&[0.0; 4]), Code::InvalidArgument, "len", "len is 4; the buffer has 3 elements");
    check(buffer.download(&mut [0.0; 4]), Code::InvalidArgument, "len", "len is 4");
    check(
        buffer.tensor(Layout::rows([1, 1, 4])).map(drop),
        Code::InvalidArgument,
        "shape",
        "the memory has 3",
    );
    check(buffer.tensor_mut(Layout::rows([2, 1, 2])).map(drop), Code::InvalidArgument, "shape", "needs 4");
    buffer.upload(&[5.0])?;
    let mut back = [0.0f32; 3];
    buffer.download(&mut back)?;
    assert_eq!((back, buffer.len(), buffer.array().len()), ([5.0, 2.0, 3.0], 3, 3));
    assert!(!buffer.is_empty() && !buffer.array().is_empty() && vec![1i32].array().len() == 1);
    Ok(())
}
