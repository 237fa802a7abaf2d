//! Memory, streams and events of the HIP runtime that a context is bound to, real or emulated: enough to use this
//! crate without linking HIP. An engine that has its own makes views of its pointers instead, by the `from_raw`
//! functions.
//!
//! Copies go through the null stream and wait: behind work of a [`Stream`] made here, which is a blocking one, and of
//! the null stream itself. Memory belongs to the device that is current for the calling thread; [`Hip::new`] makes
//! the context's device current, and [`Hip::bind_thread`] does so for another thread.

use crate::context::{Context, DeviceKind};
use crate::element::{Element, Plain};
use crate::error::{Code, Error, Result};
use crate::launch::{RawEvent, RawStream, Workspace};
use crate::layout::Layout;
use crate::tensor::{Array, Device, Tensor, TensorMut};
use std::ffi::CStr;
use std::fmt;
use std::marker::PhantomData;
use std::mem::{size_of, transmute};
use std::os::raw::{c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::Arc;

/// With the values of hipMemcpyKind.
const HOST_TO_DEVICE: c_int = 1;
const DEVICE_TO_HOST: c_int = 2;

macro_rules! functions {
    ($($field:ident = $name:literal: fn($($argument:ty),*) -> $result:ty;)*) => {
        #[derive(Clone, Copy, Debug)]
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            fn find(context: &Context) -> Result<Functions> {
                $(
                    let address = context.hip_symbol($name).ok_or_else(|| Error {
                        code: Code::NoDevice,
                        field: $name.into(),
                        message: format!(
                            "the runtime '{}' of the context has no {}", context.device().runtime, $name),
                        hip_code: 0,
                    })?;
                    // SAFETY: the type is that of HIP's function with this name.
                    let $field = unsafe {
                        transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> $result>(address.as_ptr())
                    };
                )*
                Ok(Functions { $($field),* })
            }
        }
    };
}

functions! {
    error_string = "hipGetErrorString": fn(c_int) -> *const c_char;
    set_device = "hipSetDevice": fn(c_int) -> c_int;
    malloc = "hipMalloc": fn(*mut *mut c_void, usize) -> c_int;
    free = "hipFree": fn(*mut c_void) -> c_int;
    memset = "hipMemset": fn(*mut c_void, c_int, usize) -> c_int;
    memcpy = "hipMemcpy": fn(*mut c_void, *const c_void, usize, c_int) -> c_int;
    synchronize = "hipDeviceSynchronize": fn() -> c_int;
    stream_create = "hipStreamCreate": fn(*mut *mut c_void) -> c_int;
    stream_destroy = "hipStreamDestroy": fn(*mut c_void) -> c_int;
    stream_synchronize = "hipStreamSynchronize": fn(*mut c_void) -> c_int;
    event_create = "hipEventCreateWithFlags": fn(*mut *mut c_void, c_uint) -> c_int;
    event_destroy = "hipEventDestroy": fn(*mut c_void) -> c_int;
    event_synchronize = "hipEventSynchronize": fn(*mut c_void) -> c_int;
}

#[derive(Debug)]
struct Runtime {
    functions: Functions,
    ordinal: c_int,
    // Keeps the runtime's library.
    _context: Context,
}

impl Runtime {
    fn check(&self, name: &str, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: takes any number; the string is never freed.
        let text = unsafe {
            let text = (self.functions.error_string)(code);
            if text.is_null() {
                "no text".into()
            } else {
                CStr::from_ptr(text).to_string_lossy()
            }
        };
        Err(Error {
            code: Code::Hip,
            field: name.into(),
            message: format!("{name}: {text} ({code})"),
            hip_code: code,
        })
    }
}

/// The HIP runtime of a context. A counted reference.
#[derive(Clone, Debug)]
pub struct Hip {
    runtime: Arc<Runtime>,
}

impl Hip {
    /// Finds the functions, and makes the context's device current for the calling thread. A target has no runtime:
    /// [`Code::NoDevice`].
    pub fn new(context: &Context) -> Result<Hip> {
        let device = context.device();
        if device.kind == DeviceKind::Target {
            return Err(Error {
                code: Code::NoDevice,
                field: "context".into(),
                message: format!("context is the target {}, which has no device", device.arch),
                hip_code: 0,
            });
        }
        let ordinal = device.ordinal.expect("a device has an ordinal") as c_int;
        let runtime = Runtime { functions: Functions::find(context)?, ordinal, _context: context.clone() };
        let hip = Hip { runtime: Arc::new(runtime) };
        hip.bind_thread()?;
        Ok(hip)
    }

    /// Makes the context's device current for the calling thread.
    pub fn bind_thread(&self) -> Result<()> {
        // SAFETY: takes a number.
        self.runtime
            .check("hipSetDevice", unsafe { (self.runtime.functions.set_device)(self.runtime.ordinal) })
    }

    /// Waits for all work of the device.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: takes nothing.
        self.runtime.check("hipDeviceSynchronize", unsafe { (self.runtime.functions.synchronize)() })
    }

    /// Memory for `len` elements, all bits 0.
    pub fn zeroed<T: Plain>(&self, len: usize) -> Result<Buffer<T>> {
        let bytes = len.checked_mul(size_of::<T>()).filter(|bytes| *bytes > 0).ok_or_else(|| {
            let limit = usize::MAX / size_of::<T>();
            Error::invalid("len", format!("len is {len}; a buffer of this type has 1 to {limit} elements"))
        })?;
        let mut data = ptr::null_mut();
        let functions = &self.runtime.functions;
        // SAFETY: a pointer to be written.
        self.runtime.check("hipMalloc", unsafe { (functions.malloc)(&mut data, bytes) })?;
        let buffer = Buffer { hip: self.clone(), data: data.cast(), len, elements: PhantomData };
        // SAFETY: that many bytes were allocated.
        self.runtime.check("hipMemset", unsafe { (functions.memset)(data, 0, bytes) })?;
        Ok(buffer)
    }

    /// Memory with a copy of `elements`.
    pub fn buffer<T: Plain>(&self, elements: &[T]) -> Result<Buffer<T>> {
        let mut buffer = self.zeroed(elements.len())?;
        buffer.upload(elements)?;
        Ok(buffer)
    }

    /// A stream, which the null stream waits for.
    pub fn stream(&self) -> Result<Stream> {
        let mut stream = ptr::null_mut();
        // SAFETY: a pointer to be written.
        self.runtime
            .check("hipStreamCreate", unsafe { (self.runtime.functions.stream_create)(&mut stream) })?;
        Ok(Stream { hip: self.clone(), raw: RawStream(stream) })
    }

    /// An event.
    pub fn event(&self) -> Result<Event> {
        let mut event = ptr::null_mut();
        // SAFETY: a pointer to be written, and no flags.
        let code = unsafe { (self.runtime.functions.event_create)(&mut event, 0) };
        self.runtime.check("hipEventCreateWithFlags", code)?;
        Ok(Event { hip: self.clone(), raw: RawEvent(event) })
    }
}

/// Device memory for elements of one type, freed when it is dropped.
pub struct Buffer<T: Plain> {
    hip: Hip,
    data: *mut T,
    len: usize,
    elements: PhantomData<T>,
}

impl<T: Plain> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Buffer").field("data", &self.data).field("len", &self.len).finish_non_exhaustive()
    }
}

// SAFETY: an address on the device, and functions of HIP, which any thread may call. Elements are Send and Sync.
unsafe impl<T: Plain> Send for Buffer<T> {}
// SAFETY: likewise; what is shared is only read.
unsafe impl<T: Plain> Sync for Buffer<T> {}

impl<T: Plain> Drop for Buffer<T> {
    fn drop(&mut self) {
        // SAFETY: allocated by hipMalloc and freed here only. That no work uses it, who enqueued it has promised.
        unsafe { (self.hip.runtime.functions.free)(self.data.cast()) };
    }
}

impl<T: Plain> Buffer<T> {
    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: a buffer has an element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address on the device.
    pub fn as_ptr(&self) -> *mut T {
        self.data
    }

    fn check_len(&self, len: usize) -> Result<usize> {
        if len > self.len {
            return Err(Error::invalid("len", format!("len is {len}; the buffer has {} elements", self.len)));
        }
        Ok(len * size_of::<T>())
    }

    /// Copies `elements` to the beginning, and waits.
    pub fn upload(&mut self, elements: &[T]) -> Result<()> {
        let bytes = self.check_len(elements.len())?;
        let runtime = &self.hip.runtime;
        // SAFETY: both sides have that many bytes.
        let code = unsafe {
            (runtime.functions.memcpy)(self.data.cast(), elements.as_ptr().cast(), bytes, HOST_TO_DEVICE)
        };
        runtime.check("hipMemcpy", code)
    }

    /// Copies the first elements to `elements`, and waits.
    pub fn download(&self, elements: &mut [T]) -> Result<()> {
        let bytes = self.check_len(elements.len())?;
        let runtime = &self.hip.runtime;
        // SAFETY: both sides have that many bytes, and any bytes are elements.
        let code = unsafe {
            (runtime.functions.memcpy)(elements.as_mut_ptr().cast(), self.data.cast(), bytes, DEVICE_TO_HOST)
        };
        runtime.check("hipMemcpy", code)
    }

    /// The elements as an array.
    pub fn array(&self) -> Array<'_, T, Device> {
        // SAFETY: there are that many.
        unsafe { Array::from_raw(self.data, self.len) }
    }
}

impl<T: Element> Buffer<T> {
    /// A view to be read.
    pub fn tensor(&self, layout: Layout) -> Result<Tensor<'_, Device>> {
        layout.check_fits(self.len)?;
        // SAFETY: the layout fits.
        unsafe { Tensor::from_raw(self.data, layout) }
    }

    /// A view to be written.
    pub fn tensor_mut(&mut self, layout: Layout) -> Result<TensorMut<'_, Device>> {
        layout.check_fits(self.len)?;
        // SAFETY: the layout fits.
        unsafe { TensorMut::from_raw(self.data, layout) }
    }
}

impl Buffer<u8> {
    /// The whole buffer as a workspace.
    pub fn workspace(&mut self) -> Workspace<'_> {
        // SAFETY: there are that many bytes.
        unsafe { Workspace::from_raw(self.data.cast(), self.len) }
    }
}

/// A stream, destroyed when it is dropped.
#[derive(Debug)]
pub struct Stream {
    hip: Hip,
    raw: RawStream,
}

impl Stream {
    /// For [`Launch::stream`](crate::Launch).
    pub fn raw(&self) -> RawStream {
        self.raw
    }

    /// Waits for all work of the stream.
    pub fn synchronize(&self) -> Result<()> {
        let runtime = &self.hip.runtime;
        // SAFETY: a stream that is there.
        runtime.check("hipStreamSynchronize", unsafe { (runtime.functions.stream_synchronize)(self.raw.0) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: made by hipStreamCreate and destroyed here only.
        unsafe { (self.hip.runtime.functions.stream_destroy)(self.raw.0) };
    }
}

/// An event, destroyed when it is dropped.
#[derive(Debug)]
pub struct Event {
    hip: Hip,
    raw: RawEvent,
}

impl Event {
    /// For [`Dependency`](crate::Dependency) and [`Launch::signal_event`](crate::Launch).
    pub fn raw(&self) -> RawEvent {
        self.raw
    }

    /// Waits until the event has happened; an event that was never recorded has.
    pub fn synchronize(&self) -> Result<()> {
        let runtime = &self.hip.runtime;
        // SAFETY: an event that is there.
        runtime.check("hipEventSynchronize", unsafe { (runtime.functions.event_synchronize)(self.raw.0) })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: made by hipEventCreateWithFlags and destroyed here only.
        unsafe { (self.hip.runtime.functions.event_destroy)(self.raw.0) };
    }
}
