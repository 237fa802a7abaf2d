//! Several devices. This test has its own program, because the emulator's setting of their number is per process.

mod common;

use common::emulator;
use sluice::hip::Hip;
use sluice::{Attention, Call, Code, Context, Dtype, Keys, Kv, KvFormat, Launch, Layout, Result, F16};
use std::ffi::{CStr, CString};
use std::mem::transmute;
use std::os::raw::{c_char, c_int, c_void};

fn configure(context: &Context, key: &CStr, value: &str) {
    type Configure = unsafe extern "C" fn(*const c_char, *const c_char) -> c_int;
    let function = context.hip_symbol("sluice_emulator_configure").unwrap();
    let value = CString::new(value).unwrap();
    // SAFETY: the type is that of the emulator's function, and both are strings.
    let status =
        unsafe { transmute::<*mut c_void, Configure>(function.as_ptr())(key.as_ptr(), value.as_ptr()) };
    assert_eq!(status, 0);
}

#[test]
fn a_context_uses_the_requested_device() -> Result<()> {
    let first = emulator();
    assert_eq!(first.device().ordinal, Some(0));
    let error = Context::emulated_at(1).build().unwrap_err();
    assert_eq!((error.code, error.field.as_str()), (Code::NoDevice, "device_ordinal"), "{error}");

    let devices = CStr::from_bytes_with_nul(b"devices\0").unwrap();
    configure(&first, devices, "2");
    {
        let second = Context::emulated_at(1).build()?;
        assert_eq!(second.device().ordinal, Some(1));
        let format = KvFormat::new(Dtype::F16, 1, 64);
        let plan = second.plan(&Attention::new(Dtype::F16, 1, format))?;
        let hip = Hip::new(&second)?;
        let row = Layout::contiguous([1, 1, 1, 64]);
        let values: Vec<F16> = (0..64).map(|i| F16::from_f32(i as f32)).collect();
        let (input, mut o) = (hip.buffer(&values)?, hip.zeroed::<F16>(64)?);
        let view = input.tensor(row)?;
        let keys = Keys::new(Kv::new(format, view, Some(view)), 1);
        let args = Call::new(1, view, 1, keys, o.tensor_mut(row)?);
        // SAFETY: all memory stays until the device has been waited for. A kernel loaded on another device would not
        // run.
        unsafe { plan.run(&args, &Launch::default()) }?;
        hip.synchronize()?;
        let mut result = vec![F16::default(); 64];
        o.download(&mut result)?;
        assert_eq!(result, values, "attention to one key is a copy of its value");
    }
    configure(&first, devices, "1"); // refused while something of the second device is left
    Ok(())
}
