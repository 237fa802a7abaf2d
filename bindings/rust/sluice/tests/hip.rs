//! Ranges of buffers, asynchronous copies, events and graphs, on the emulated device.

mod common;

use common::{emulator, Random};
use sluice::hip::{GraphExec, Hip};
use sluice::{
    Append, Attention, Call, Code, Context, Dtype, Keys, Kv, KvFormat, Launch, Layout, PageTableKind, Pages,
    Place, Result, Rows, F16,
};
use std::ffi::CString;
use std::mem::transmute;
use std::os::raw::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{mpsc, Mutex, MutexGuard, PoisonError};

const DIM: usize = 64;

/// The emulator's settings are per process, so tests take turns.
static TURN: Mutex<()> = Mutex::new(());

/// An emulator whose streams run in `order`: "concurrent", or a number, with which work runs only when the program
/// waits, in an order drawn from those that waits and events allow.
fn emulator_with(order: &str) -> (MutexGuard<'static, ()>, Context) {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let context = emulator();
    type Configure = unsafe extern "C" fn(*const c_char, *const c_char) -> c_int;
    let function = context.hip_symbol("sluice_emulator_configure").unwrap();
    let [key, value] = ["stream_order", order].map(|text| CString::new(text).unwrap());
    // SAFETY: the type is that of the emulator's function, and both are strings.
    let status =
        unsafe { transmute::<*mut c_void, Configure>(function.as_ptr())(key.as_ptr(), value.as_ptr()) };
    assert_eq!(status, 0);
    (turn, context)
}

fn refused<T>(result: Result<T>, field: &str, message: &str) {
    let error = result.map(drop).unwrap_err();
    assert_eq!((error.code, error.field.as_str()), (Code::InvalidArgument, field), "{error}");
    assert_eq!(error.message, message);
}

#[test]
fn parts_of_a_buffer_begin_where_they_say() -> Result<()> {
    let (_turn, context) = emulator_with("concurrent");
    let hip = Hip::new(&context)?;
    let mut buffer = hip.buffer(&[0i32, 1, 2, 3, 4, 5, 6, 7])?;
    let mut found = [0; 3];
    buffer.slice(2..7)?.download(&mut found)?;
    assert_eq!(found, [2, 3, 4]);
    assert_eq!(buffer.slice(2..7)?.as_ptr(), buffer.as_ptr().wrapping_add(2) as *const i32);
    assert_eq!((buffer.slice(2..7)?.array().len(), buffer.slice(8..)?.is_empty()), (5, true));

    let mut middle = buffer.slice_mut(3..=5)?;
    middle.upload(&[30, 40])?;
    assert_eq!((middle.len(), middle.is_empty()), (3, false));
    assert_eq!(middle.as_ptr() as *const i32, middle.as_slice().as_ptr());
    refused(middle.upload(&[1, 2, 3, 4]), "len", "len is 4; the buffer has 3 elements");
    refused(middle.as_slice().download(&mut [0; 4]), "len", "len is 4; the buffer has 3 elements");
    refused(middle.split_at(4), "middle", "middle is 4; the slice has 3 elements");
    let (mut first, mut second) = buffer.slice_mut(1..)?.split_at(2)?;
    first.upload(&[10, 20])?;
    second.upload(&[31])?;
    assert_eq!((first.len(), second.len()), (2, 5));
    let mut all = [0; 8];
    buffer.download(&mut all)?;
    assert_eq!(all, [0, 10, 20, 31, 40, 5, 6, 7]);

    let rule = "it must not end before it begins, nor after the 8 elements of the buffer";
    refused(buffer.slice(..9), "range", &format!("range goes from 0 to 9; {rule}"));
    refused(buffer.slice_mut(9..), "range", &format!("range goes from 9 to 8; {rule}"));

    let mut bytes = hip.zeroed::<f32>(12)?;
    let row = |dim| Layout::contiguous([1, 1, 1, dim]);
    assert!(bytes.slice(4..)?.tensor(row(8)).is_ok() && bytes.slice_mut(4..)?.into_tensor(row(8)).is_ok());
    for refusal in
        [bytes.slice(4..)?.tensor(row(9)).map(drop), bytes.slice_mut(4..)?.into_tensor(row(9)).map(drop)]
    {
        let error = refusal.unwrap_err();
        assert!(error.message.ends_with("needs 9 elements; the memory has 8"), "{error}");
    }
    Ok(())
}

/// One allocation holds Q, K, V, O and the workspace.
#[test]
fn a_call_may_live_in_one_buffer() -> Result<()> {
    let (_turn, context) = emulator_with("concurrent");
    let hip = Hip::new(&context)?;
    let format = KvFormat::new(Dtype::F16, 1, DIM);
    let plan = context.plan(&Attention::new(Dtype::F16, 1, format))?;
    let rows = Random(5).vector::<F16>(2 * DIM);
    let mut memory = hip.buffer(&[&rows[..], &[F16(0xffff); DIM]].concat())?;
    let mut scratch = hip.zeroed::<u8>(4096)?;
    let (input, result) = memory.slice_mut(..)?.split_at(2 * DIM)?;
    let workspace = scratch.slice_mut(256..)?.into_workspace();
    let row = Layout::contiguous([1, 1, 1, DIM]);
    let one = input.as_slice().tensor(row)?;
    let keys = Keys::new(Kv::new(format, one, Some(one)), 1);
    let args = Call::new(1, one, 1, keys, result.into_tensor(row)?);
    // SAFETY: all memory stays until the device has been waited for.
    unsafe { plan.run(&args, &Launch { workspace: Some(&workspace), ..Launch::default() }) }?;
    hip.synchronize()?;
    let mut all = vec![F16::default(); 3 * DIM];
    memory.download(&mut all)?;
    assert_eq!(all[..2 * DIM], rows);
    assert_eq!(all[2 * DIM..], rows[..DIM], "attention to one key is a copy of its value");
    Ok(())
}

#[test]
fn copies_keep_the_order_of_their_stream() -> Result<()> {
    let (_turn, context) = emulator_with("7");
    let hip = Hip::new(&context)?;
    let (stream, event) = (hip.stream()?, hip.event()?);
    let numbers: Vec<u32> = (0..1000).collect();
    let (mut first, mut second) = (hip.zeroed::<u32>(1000)?, hip.zeroed::<u32>(1000)?);
    let mut back = vec![0; 500];
    // SAFETY: all memory stays valid until the event has been waited for, and no other code uses it.
    unsafe {
        first.slice_mut(..)?.upload_async(&numbers, &stream)?;
        second.slice_mut(250..)?.copy_async(first.slice(100..600)?, &stream)?;
        second.slice(300..)?.download_async(&mut back, &stream)?;
    }
    event.record(&stream)?;
    event.synchronize()?;
    assert!(event.query()?);
    let expected: Vec<u32> = (150..600).chain([0; 50]).collect();
    assert_eq!(back, expected);

    let (first_part, second_part) = (first.slice(..501)?, second.slice_mut(500..)?);
    let mut to = second_part;
    // SAFETY: nothing is enqueued.
    unsafe {
        let len = "len is 501; the buffer has 500 elements";
        refused(to.copy_async(first_part, &stream), "len", len);
        refused(to.upload_async(&numbers[..501], &stream), "len", len);
        refused(first.slice(500..)?.download_async(&mut vec![0; 501], &stream), "len", len);
    }
    Ok(())
}

/// Copies with pinned memory, which the runtime recognises as host memory.
#[test]
fn pinned_memory_is_a_slice() -> Result<()> {
    let (_turn, context) = emulator_with("concurrent");
    let hip = Hip::new(&context)?;
    let (stream, mut buffer) = (hip.stream()?, hip.zeroed::<u32>(6)?);
    let (mut there, mut back) = (hip.pinned::<u32>(6)?, hip.pinned::<u32>(4)?);
    assert_eq!(there[..], [0; 6]);
    there.copy_from_slice(&[1, 2, 3, 4, 5, 6]);
    // SAFETY: all memory stays valid until the stream has been waited for, and no other code uses it.
    unsafe {
        buffer.slice_mut(..)?.upload_async(&there, &stream)?;
        buffer.slice(2..)?.download_async(&mut back, &stream)?;
    }
    stream.synchronize()?;
    assert_eq!(back[..], [3, 4, 5, 6]);

    type GetAttributes = unsafe extern "C" fn(*mut [c_uint; 64], *const c_void) -> c_int;
    let function = context.hip_symbol("hipPointerGetAttributes").unwrap();
    // SAFETY: the type is that of HIP's function, whose struct is smaller than these numbers.
    let get_attributes = unsafe { transmute::<*mut c_void, GetAttributes>(function.as_ptr()) };
    // The kind of memory is the first of the attributes.
    let kind = |address: *const u32| {
        let mut attributes = [0; 64];
        // SAFETY: numbers to write to, and an address that is not read.
        assert_eq!(unsafe { get_attributes(&mut attributes, address.cast()) }, 0);
        attributes[0]
    };
    let (usual, address) = (kind([0u32; 1].as_ptr()), there.as_ptr());
    assert_ne!(kind(address), usual);
    drop(there);
    assert_eq!(kind(address), usual, "it is freed");
    let limit = usize::MAX / 4;
    refused(
        hip.pinned::<u32>(limit + 1),
        "len",
        &format!("len is {}; a buffer of this type has at most {limit} elements", limit + 1),
    );
    assert_eq!(*hip.pinned::<u32>(0)?, [0u32; 0]);
    Ok(())
}

/// The second of two streams waits for the first one's event.
#[test]
fn events_order_streams() -> Result<()> {
    for seed in 0..8u32 {
        let (_turn, context) = emulator_with(&seed.to_string());
        let hip = Hip::new(&context)?;
        let (writer, reader, event) = (hip.stream()?, hip.stream()?, hip.event()?);
        let numbers = vec![seed + 1; 64];
        let mut buffer = hip.zeroed::<u32>(64)?;
        let mut back = vec![0; 64];
        // SAFETY: all memory stays valid until both streams have been waited for; the event orders the copies.
        unsafe {
            buffer.slice_mut(..)?.upload_async(&numbers, &writer)?;
            event.record(&writer)?;
            reader.wait(&event)?;
            buffer.slice(..)?.download_async(&mut back, &reader)?;
        }
        reader.synchronize()?;
        assert_eq!(back, numbers);
        writer.synchronize()?;
    }
    Ok(())
}

#[test]
fn an_event_can_be_asked() -> Result<()> {
    unsafe extern "C" fn wait_for_sender(receiver: *mut c_void) {
        // SAFETY: the receiver of the test, which waits for this before it is dropped.
        let receiver = &*(receiver as *const mpsc::Receiver<()>);
        let _ = receiver.recv();
    }
    type Callback = unsafe extern "C" fn(*mut c_void);
    type LaunchHostFunc = unsafe extern "C" fn(*mut c_void, Callback, *mut c_void) -> c_int;

    let (_turn, context) = emulator_with("concurrent");
    let hip = Hip::new(&context)?;
    let (stream, event) = (hip.stream()?, hip.event()?);
    assert!(event.query()?, "an event that was never recorded has happened");
    let (sender, receiver) = mpsc::channel::<()>();
    let function = context.hip_symbol("hipLaunchHostFunc").unwrap();
    // SAFETY: the type is that of HIP's function; the receiver stays valid until the event has been waited for.
    let code = unsafe {
        let launch = transmute::<*mut c_void, LaunchHostFunc>(function.as_ptr());
        launch(stream.raw().0, wait_for_sender, &receiver as *const _ as *mut c_void)
    };
    assert_eq!(code, 0);
    let recorded = event.record(&stream);
    let happened = event.query();
    sender.send(()).unwrap();
    stream.synchronize()?;
    assert_eq!((recorded, happened), (Ok(()), Ok(false)), "the work before the event had not happened");
    assert!(event.query()?);
    Ok(())
}

/// A decoding step: an append and a run, captured once and launched with changing contents of the same memory.
#[test]
fn a_graph_runs_again_with_the_current_contents_of_memory() -> Result<()> {
    let (_turn, context) = emulator_with("concurrent");
    let hip = Hip::new(&context)?;
    let stream = hip.stream()?;
    let format = KvFormat::new(Dtype::F16, 1, DIM).paged(16, PageTableKind::Block);
    let plan = context.plan(&Attention::new(Dtype::F16, 1, format))?;
    let (row, pages) = (Layout::rows([1, 1, DIM]), Layout::contiguous([1, 16, 1, DIM]));
    let mut input = hip.zeroed::<F16>(DIM)?;
    let mut slot = hip.buffer(&[0i64])?;
    let (mut k_cache, mut v_cache) = (hip.zeroed::<F16>(16 * DIM)?, hip.zeroed::<F16>(16 * DIM)?);
    let (table, lengths) = (hip.buffer(&[0i32])?, hip.buffer(&[1i32])?);
    let mut o = hip.zeroed::<F16>(DIM)?;

    let mut step = || {
        let launch = Launch { stream: stream.raw(), ..Launch::default() };
        let new = input.tensor(row)?;
        let append = Append::new(
            new,
            Some(new),
            Kv::new(format, k_cache.tensor_mut(pages)?, Some(v_cache.tensor_mut(pages)?)),
            Place::Slots(slot.array()),
        );
        // SAFETY: all memory and the plan stay valid until the stream has been waited for, and no other code uses them;
        // for captured work, that is the contract of the launches below.
        unsafe { context.append(&append, &launch) }?;
        let kv = Kv::new(format, k_cache.tensor(pages)?, Some(v_cache.tensor(pages)?));
        let rows = Rows { max_len: Some(16), ..Rows::of_lengths(lengths.array()) };
        let keys = Keys::paged(kv, rows, Pages::block(table.array(), 1));
        let args = Call::new(1, new, 1, keys, o.tensor_mut(row)?);
        // SAFETY: as above.
        unsafe { plan.run(&args, &launch) }
    };
    step()?; // loads the append kernel, which is not legal in a capture
    stream.synchronize()?;
    let graph = stream.capture(&mut step)?;
    hip.synchronize()?;
    let mut found = vec![F16(7); DIM];
    k_cache.download(&mut found)?;
    assert_eq!(found, [F16(0); DIM], "what is captured does not run");

    let mut exec: GraphExec = graph.instantiate()?;
    drop(graph);
    for value in [3.0, -0.5] {
        let new = vec![F16::from_f32(value); DIM];
        input.upload(&new)?;
        // SAFETY: all memory and the plan stay valid until the stream has been waited for, and no other code uses them.
        unsafe { exec.launch(&stream) }?;
        stream.synchronize()?;
        o.download(&mut found)?;
        assert_eq!(found, new, "attention to one key is a copy of its value");
    }
    // The slot is read when the graph runs.
    slot.upload(&[5])?;
    // SAFETY: as above.
    unsafe { exec.launch(&stream) }?;
    stream.synchronize()?;
    k_cache.slice(5 * DIM..)?.download(&mut found)?;
    assert_eq!(found, vec![F16::from_f32(-0.5); DIM]);
    Ok(())
}

#[test]
fn a_capture_ends_even_if_its_work_fails() -> Result<()> {
    let (_turn, context) = emulator_with("concurrent");
    let hip = Hip::new(&context)?;
    let stream = hip.stream()?;
    let mut buffer = hip.zeroed::<u32>(4)?;

    let failure = hip.zeroed::<u32>(usize::MAX).unwrap_err();
    let returned = stream.capture(|| Err(failure.clone())).map(drop);
    assert_eq!(returned, Err(failure));

    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = stream.capture(|| panic!("this panic of a test ends a capture"));
    }));
    assert!(panicked.is_err());

    // Waiting for a capturing stream ends the capture without a graph.
    let error = stream.capture(|| stream.synchronize().or(Ok(()))).map(drop).unwrap_err();
    assert_eq!((error.code, error.field.as_str()), (Code::Hip, "hipStreamEndCapture"), "{error}");

    // The stream works as before.
    // SAFETY: all memory stays until the stream has been waited for.
    unsafe { buffer.slice_mut(..)?.upload_async(&[1, 2, 3, 4], &stream) }?;
    stream.synchronize()?;
    let mut found = [0; 4];
    buffer.download(&mut found)?;
    assert_eq!(found, [1, 2, 3, 4]);
    Ok(())
}

/// Other threads are unaffected: one allocates, which the capturing thread must not do.
#[test]
fn a_capture_belongs_to_its_thread() -> Result<()> {
    let (_turn, context) = emulator_with("concurrent");
    let hip = Hip::new(&context)?;
    let stream = hip.stream()?;
    type Malloc = unsafe extern "C" fn(*mut *mut c_void, usize) -> c_int;
    let function = context.hip_symbol("hipMalloc").unwrap();
    // SAFETY: the type is that of HIP's function.
    let malloc = unsafe { transmute::<*mut c_void, Malloc>(function.as_ptr()) };
    // SAFETY: an address to write to; the allocation is freed with the process.
    let allocate = move || unsafe { malloc(&mut std::ptr::null_mut(), 16) };
    let mut codes = [1, 0];
    stream.capture(|| {
        codes[0] = std::thread::spawn(allocate).join().unwrap();
        Ok(())
    })?;
    let ended = stream.capture(|| {
        codes[1] = allocate();
        Ok(())
    });
    assert_eq!((codes[0], codes[1] != 0, ended.unwrap_err().code), (0, true, Code::Hip));
    Ok(())
}

static GRAPHS_DESTROYED: AtomicUsize = AtomicUsize::new(0);
static EXECS_DESTROYED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn destroy_graph(_: *mut c_void) -> c_int {
    GRAPHS_DESTROYED.fetch_add(1, SeqCst);
    0
}

unsafe extern "C" fn destroy_exec(_: *mut c_void) -> c_int {
    EXECS_DESTROYED.fetch_add(1, SeqCst);
    0
}

/// The emulator with the caller's functions, two of which only count their calls.
fn runtime_of_a_caller(emulator: &Context) -> Result<Context> {
    let functions = emulator.clone();
    // SAFETY: they are HIP's functions, and the closure keeps their library loaded.
    unsafe {
        Context::hip(0).hip_resolver(move |name| match name.to_str().unwrap() {
            "hipGraphDestroy" => destroy_graph as *mut c_void,
            "hipGraphExecDestroy" => destroy_exec as *mut c_void,
            name => functions.hip_symbol(name).map_or(std::ptr::null_mut(), |found| found.as_ptr()),
        })
    }
    .build()
}

#[test]
fn graphs_are_destroyed_once() -> Result<()> {
    let (_turn, emulator) = emulator_with("concurrent");
    let stream = Hip::new(&runtime_of_a_caller(&emulator)?)?.stream()?;
    let destroyed = || (GRAPHS_DESTROYED.swap(0, SeqCst), EXECS_DESTROYED.swap(0, SeqCst));
    destroyed();
    let graph = stream.capture(|| Ok(()))?;
    let execs = [graph.instantiate()?, graph.instantiate()?];
    assert_eq!(destroyed(), (0, 0));
    drop(graph);
    assert_eq!(destroyed(), (1, 0));
    drop(execs);
    assert_eq!(destroyed(), (0, 2));
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = stream.capture(|| panic!("this panic of a test ends a capture"));
    }));
    assert_eq!(destroyed(), (1, 0));
    Ok(())
}

/// Handles of one runtime are refused by another.
#[test]
fn handles_of_another_runtime_are_refused() -> Result<()> {
    let (_turn, emulator) = emulator_with("concurrent");
    let other = runtime_of_a_caller(&emulator)?;
    let (here, there) = (Hip::new(&emulator)?, Hip::new(&other)?);
    let (our_stream, our_event) = (here.stream()?, here.event()?);
    let (stream, event) = (there.stream()?, there.event()?);
    let runtime = emulator.device().runtime;
    let stream_is = format!("stream is of the runtime 'caller'; it must be of this runtime, '{runtime}'");
    refused(our_event.record(&stream), "stream", &stream_is);
    let event_is = format!("event is of the runtime 'caller'; it must be of this runtime, '{runtime}'");
    refused(our_stream.wait(&event), "event", &event_is);
    let mut buffer = here.zeroed::<u32>(4)?;
    let mut exec = our_stream.capture(|| Ok(()))?.instantiate()?;
    // SAFETY: nothing is enqueued.
    unsafe {
        refused(buffer.slice_mut(..)?.upload_async(&[1], &stream), "stream", &stream_is);
        refused(buffer.slice(..)?.download_async(&mut [1], &stream), "stream", &stream_is);
        let from_is = format!("from is of the runtime 'caller'; it must be of this runtime, '{runtime}'");
        let theirs = there.zeroed::<u32>(4)?;
        refused(buffer.slice_mut(..)?.copy_async(theirs.slice(..)?, &our_stream), "from", &from_is);
        refused(exec.launch(&stream), "stream", &stream_is);
    }
    // Contexts of one runtime share their objects.
    our_event.record(&Hip::new(&common::emulator())?.stream()?)
}
