//! What a device keeps and who may use it. One test in a program of its own: the emulator has as many devices as its
//! setting says, for all who use it.

mod common;

use candle_core::{DType, Result, Tensor};
use common::Random;
use half::f16;
use sluice::{Context, TraceEvent};
use sluice_candle::{sluice_attention, Options, Sluice};
use std::ffi::{c_char, c_int, c_void, CStr};
use std::mem::transmute;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

fn configure(context: &Context, key: &CStr, value: &CStr) {
    type Configure = unsafe extern "C" fn(*const c_char, *const c_char) -> c_int;
    let function = context.hip_symbol("sluice_emulator_configure").unwrap();
    // SAFETY: the type is that of the emulator's function, and both are strings.
    let status =
        unsafe { transmute::<*mut c_void, Configure>(function.as_ptr())(key.as_ptr(), value.as_ptr()) };
    assert_eq!(status, 0);
}

fn numbers(tensor: &Tensor) -> Result<Vec<f16>> {
    tensor.flatten_all()?.to_vec1()
}

#[test]
fn plans_are_made_once_and_any_thread_may_call() -> Result<()> {
    let first = Context::emulated().build().unwrap();
    configure(&first, c"devices", c"2");
    let plans = Arc::new(AtomicUsize::new(0));
    let counter = plans.clone();
    let count = move |record: &sluice::TraceRecord| {
        if record.event == TraceEvent::Plan {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    };
    let sluice = Sluice::new(Context::emulated_at(1).trace(count).build().unwrap())?;

    let mut random = Random(4);
    let mut call = |tokens, options: Options| -> Result<usize> {
        let mut tensor = |tokens, heads| random.tensor([1, tokens, heads, 64], DType::F16);
        let (q, k, v) = (tensor(1, 4)?, tensor(tokens, 2)?, tensor(tokens, 2)?);
        let run = || numbers(&sluice_attention(&sluice, &q, &k, &v, &options)?);
        let o = run()?;
        std::thread::scope(|scope| {
            // Two at once; a new thread begins with the first device.
            for thread in [scope.spawn(run), scope.spawn(run)] {
                assert_eq!(o, thread.join().unwrap()?, "equal calls give equal bits on any thread");
            }
            Ok(plans.load(Ordering::Relaxed))
        })
    };
    let causal = Options { causal: true, ..Options::default() };
    assert_eq!(call(33, causal)?, 1);
    assert_eq!(call(64, causal)?, 1, "33 and 64 keys have the same bound");
    assert_eq!(call(64, Options { scale: Some(0.5), ..causal })?, 1, "a plan does not depend on the scale");
    assert_eq!(call(65, causal)?, 2);
    assert_eq!(call(65, Options { window_left: Some(4), ..causal })?, 3);
    assert_eq!(call(65, Options { soft_cap: 4.0, ..causal })?, 4);
    assert_eq!(call(65, Options::default())?, 5);
    assert_eq!(call(33, causal)?, 5);
    drop(sluice);
    configure(&first, c"devices", c"1"); // refused while memory of the second device is left
    Ok(())
}
