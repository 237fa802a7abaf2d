//! Lifetimes of objects, and threads.

mod common;

use common::{emulator, Random};
use sluice::hip::{Buffer, Event, Graph, GraphExec, Hip, Pinned, Slice, SliceMut, Stream};
use sluice::{
    Array, Attention, Bounds, Call, Code, Context, Dependency, Device, Dtype, Host, Keys, Kv, KvFormat,
    Launch, Layout, Mask, Plan, RawEvent, RawStream, Result, Tensor, TensorMut, Workspace, F16,
};
use std::sync::Arc;

const ROWS: usize = 40;
const DIM: usize = 64;

fn layout() -> Layout {
    Layout::contiguous([1, ROWS, 1, DIM])
}

fn causal() -> Attention {
    Attention {
        mask: Some(Mask::causal()),
        ..Attention::new(Dtype::F16, 1, KvFormat::new(Dtype::F16, 1, DIM))
    }
}

/// Attention of the rows to themselves.
fn call<'a>(rows: Tensor<'a, Device>, o: TensorMut<'a, Device>) -> Call<'a> {
    Call::new(1, rows, ROWS, Keys::new(Kv::new(causal().kv, rows, Some(rows)), ROWS), o)
}

/// One run of a plan with `rows` as Q, K and V, on its own stream and with its own memory.
fn run(plan: &Plan, hip: &Hip, rows: &[F16]) -> Result<Vec<F16>> {
    hip.bind_thread()?;
    let (input, stream) = (hip.buffer(rows)?, hip.stream()?);
    let mut o = hip.zeroed::<F16>(rows.len())?;
    let mut scratch = hip.zeroed::<u8>(plan.info().workspace_bytes.max(1) as usize)?;
    let workspace = scratch.workspace();
    let args = call(input.tensor(layout())?, o.tensor_mut(layout())?);
    let launch = Launch { stream: stream.raw(), workspace: Some(&workspace), ..Launch::default() };
    // SAFETY: all memory stays until the stream has been waited for.
    unsafe { plan.run(&args, &launch) }?;
    stream.synchronize()?;
    let mut result = vec![F16::default(); o.len()];
    o.download(&mut result)?;
    Ok(result)
}

#[test]
fn threads_may_share_what_the_header_allows() {
    fn both<T: Send + Sync>() {}
    fn send<T: Send>() {}
    both::<Context>();
    both::<Plan>();
    both::<Attention>();
    both::<sluice::Error>();
    both::<(Hip, Buffer<F16>, Stream, Event, RawStream, RawEvent)>();
    both::<(Graph, GraphExec, Pinned<F16>, Slice<F16>, SliceMut<F16>)>();
    both::<(Dependency, sluice::hip::Buffer<u16>)>();
    both::<(Tensor<Device>, TensorMut<Device>, Array<i32, Device>, Call<Device>, Call<Host>)>();
    send::<Workspace>(); // a doctest of the crate shows that it is not Sync
}

#[test]
fn children_keep_their_parent_alive() -> Result<()> {
    let rows = Random(1).vector::<F16>(ROWS * DIM);
    let context = emulator();
    let plan = context.plan(&causal())?;
    let hip = Hip::new(&context)?;
    let first = run(&plan, &hip, &rows)?;
    drop(context);
    assert_eq!(run(&plan, &hip, &rows)?, first);
    let buffer = hip.buffer(&rows)?;
    drop((plan, hip));
    let mut back = vec![F16::default(); rows.len()];
    buffer.download(&mut back)?;
    assert_eq!(back, rows);
    Ok(())
}

/// A GPU whose HIP is the emulator's.
#[test]
fn functions_may_come_from_the_caller() -> Result<()> {
    let emulator = emulator();
    let kept = Arc::new(());
    let (functions, held) = (emulator.clone(), kept.clone());
    // SAFETY: they are HIP's functions, and the closure keeps their library loaded.
    let builder_with_functions = unsafe {
        Context::hip(0).hip_resolver(move |name| {
            let _ = &held;
            functions.hip_symbol(name.to_str().unwrap()).map_or(std::ptr::null_mut(), |found| found.as_ptr())
        })
    };
    let context = builder_with_functions.build()?;
    assert_eq!(context.device().runtime, "caller");
    let plan = context.plan(&causal())?;
    let rows = Random(1).vector::<F16>(ROWS * DIM);
    let result = run(&plan, &Hip::new(&context)?, &rows)?;
    assert_eq!(result, run(&emulator.plan(&causal())?, &Hip::new(&emulator)?, &rows)?);
    drop(context);
    assert_eq!(Arc::strong_count(&kept), 2, "the plan keeps the function");
    drop(plan);
    assert_eq!(Arc::strong_count(&kept), 1);

    // SAFETY: it returns nothing.
    let error = unsafe {
        Context::hip(0).hip_resolver(|name| panic!("this panic of a test must not leave: {name:?}"))
    }
    .build()
    .unwrap_err();
    assert_eq!(error.code, Code::NoDevice);
    Ok(())
}

#[test]
fn a_pack_is_kept_as_long_as_it_is_used() -> Result<()> {
    // For a build folder; an installed library contains its pack.
    let pack: Arc<[u8]> = match std::env::var_os("SLUICE_KERNEL_PACK") {
        Some(path) => std::fs::read(path).expect("SLUICE_KERNEL_PACK is a file").into(),
        None => return Ok(()),
    };
    let context = Context::target("gfx942:304").pack(pack.clone()).build()?;
    let plan = context.plan(&causal())?;
    drop(context);
    assert_eq!(Arc::strong_count(&pack), 2);
    assert!(!plan.info().kernel.is_empty());
    drop(plan);
    assert_eq!(Arc::strong_count(&pack), 1);
    Ok(())
}

#[test]
fn threads_share_a_plan() -> Result<()> {
    let context = emulator();
    // Needs a workspace.
    let bounds = Bounds { batch: 1, q_len: ROWS, kv_len: 4096, ..Bounds::default() };
    let plan = context.plan(&Attention { batch_invariant: true, bounds, ..causal() })?;
    assert!(plan.info().workspace_bytes > 0);
    let hip = Hip::new(&context)?;
    let rows: Vec<Vec<F16>> = (0..3).map(|seed| Random(seed).vector(ROWS * DIM)).collect();
    let one_by_one = rows.iter().map(|rows| run(&plan, &hip, rows)).collect::<Result<Vec<_>>>()?;
    let together: Vec<Result<Vec<F16>>> = std::thread::scope(|scope| {
        let threads: Vec<_> = rows.iter().map(|rows| scope.spawn(|| run(&plan, &hip, rows))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(together.into_iter().collect::<Result<Vec<_>>>()?, one_by_one);
    assert!(one_by_one[0] != one_by_one[1] && one_by_one[1] != one_by_one[2]);
    Ok(())
}

/// The second of two runs reads what the first writes, on another stream.
#[test]
fn a_run_waits_for_what_it_depends_on() -> Result<()> {
    let context = emulator();
    let hip = Hip::new(&context)?;
    let plan = context.plan(&causal())?;
    let rows = Random(4).vector::<F16>(ROWS * DIM);
    let expected = run(&plan, &hip, &run(&plan, &hip, &rows)?)?;

    let (first, second) = (hip.stream()?, hip.stream()?);
    for by_stream in [false, true] {
        let (recorded, done) = (hip.event()?, hip.event()?);
        let input = hip.buffer(&rows)?;
        let (mut middle, mut o) = (hip.zeroed::<F16>(rows.len())?, hip.zeroed::<F16>(rows.len())?);
        let args = call(input.tensor(layout())?, middle.tensor_mut(layout())?);
        let signal_event = if by_stream { None } else { Some(recorded.raw()) };
        let launch = Launch { stream: first.raw(), signal_event, ..Launch::default() };
        // SAFETY: all memory, streams and events stay until `done` has been waited for.
        unsafe { plan.run(&args, &launch) }?;

        let args = call(middle.tensor(layout())?, o.tensor_mut(layout())?);
        let dependencies = [match by_stream {
            true => Dependency::on_stream(first.raw(), recorded.raw()),
            false => Dependency::on_event(recorded.raw()),
        }];
        let launch = Launch {
            stream: second.raw(),
            workspace: None,
            dependencies: &dependencies,
            signal_event: Some(done.raw()),
        };
        // SAFETY: as above.
        unsafe { plan.run(&args, &launch) }?;
        done.synchronize()?;
        let mut result = vec![F16::default(); o.len()];
        o.download(&mut result)?;
        assert_eq!(result, expected);
    }
    Ok(())
}
