//! Memory, streams, events and graphs of a context's HIP runtime, real or emulated: enough to use this crate without
//! linking HIP. An engine that has its own instead makes views of its pointers with the `from_raw` functions.
//!
//! A [`Buffer`] is memory, and a [`Slice`] or [`SliceMut`] is a range of it. Their copies go through the null stream
//! and wait: after work of a [`Stream`] made here, which is a blocking one, and of the null stream itself. Copies whose
//! names end in `async` are enqueued on a stream, and are `unsafe`: the caller must keep the memory of both sides until
//! they are done. HIP may still wait for them, unless the host memory is [`Pinned`]. [`Stream::capture`] makes a
//! [`Graph`] of what is enqueued.
//!
//! Memory belongs to the device that is current for the calling thread; [`Hip::new`] makes the context's device
//! current, and [`Hip::bind_thread`] does so for another thread. Any thread may use any of these objects.

use crate::context::{Context, DeviceKind};
use crate::element::Plain;
use crate::error::{Code, Error, Result};
use std::ffi::CStr;
use std::mem::transmute;
use std::os::raw::{c_char, c_int, c_uint, c_void};
use std::sync::Arc;

mod graph;
mod memory;
mod pinned;
mod stream;

pub use graph::{Graph, GraphExec};
pub use memory::{Buffer, Slice, SliceMut};
pub use pinned::Pinned;
pub use stream::{Event, Stream};

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

            /// Whether both are functions of one runtime, so that each accepts the other's handles.
            fn are(&self, other: &Functions) -> bool {
                $(self.$field as usize == other.$field as usize)&&*
            }
        }
    };
}

functions! {
    error_string = "hipGetErrorString": fn(c_int) -> *const c_char;
    set_device = "hipSetDevice": fn(c_int) -> c_int;
    malloc = "hipMalloc": fn(*mut *mut c_void, usize) -> c_int;
    free = "hipFree": fn(*mut c_void) -> c_int;
    host_malloc = "hipHostMalloc": fn(*mut *mut c_void, usize, c_uint) -> c_int;
    host_free = "hipHostFree": fn(*mut c_void) -> c_int;
    memset = "hipMemset": fn(*mut c_void, c_int, usize) -> c_int;
    memcpy = "hipMemcpy": fn(*mut c_void, *const c_void, usize, c_int) -> c_int;
    memcpy_async = "hipMemcpyAsync": fn(*mut c_void, *const c_void, usize, c_int, *mut c_void) -> c_int;
    synchronize = "hipDeviceSynchronize": fn() -> c_int;
    stream_create = "hipStreamCreate": fn(*mut *mut c_void) -> c_int;
    stream_destroy = "hipStreamDestroy": fn(*mut c_void) -> c_int;
    stream_synchronize = "hipStreamSynchronize": fn(*mut c_void) -> c_int;
    stream_wait_event = "hipStreamWaitEvent": fn(*mut c_void, *mut c_void, c_uint) -> c_int;
    stream_begin_capture = "hipStreamBeginCapture": fn(*mut c_void, c_int) -> c_int;
    stream_end_capture = "hipStreamEndCapture": fn(*mut c_void, *mut *mut c_void) -> c_int;
    event_create = "hipEventCreateWithFlags": fn(*mut *mut c_void, c_uint) -> c_int;
    event_destroy = "hipEventDestroy": fn(*mut c_void) -> c_int;
    event_record = "hipEventRecord": fn(*mut c_void, *mut c_void) -> c_int;
    event_query = "hipEventQuery": fn(*mut c_void) -> c_int;
    event_synchronize = "hipEventSynchronize": fn(*mut c_void) -> c_int;
    graph_destroy = "hipGraphDestroy": fn(*mut c_void) -> c_int;
    graph_instantiate = "hipGraphInstantiate":
        fn(*mut *mut c_void, *mut c_void, *mut *mut c_void, *mut c_char, usize) -> c_int;
    graph_launch = "hipGraphLaunch": fn(*mut c_void, *mut c_void) -> c_int;
    graph_exec_destroy = "hipGraphExecDestroy": fn(*mut c_void) -> c_int;
}

#[derive(Debug)]
struct Runtime {
    functions: Functions,
    ordinal: c_int,
    // Keeps the runtime's library.
    context: Context,
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

/// The HIP runtime of a context. Reference-counted.
#[derive(Clone, Debug)]
pub struct Hip {
    runtime: Arc<Runtime>,
}

impl Hip {
    /// Looks up the functions, and makes the context's device current for the calling thread. A target has no runtime:
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
        let runtime = Runtime { functions: Functions::find(context)?, ordinal, context: context.clone() };
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

    /// Refuses objects of another runtime, whose handles and addresses are invalid here.
    fn check_same(&self, name: &str, other: &Hip) -> Result<()> {
        if self.runtime.functions.are(&other.runtime.functions) {
            return Ok(());
        }
        let [here, there] = [self, other].map(|hip| hip.runtime.context.device().runtime);
        let message = format!("{name} is of the runtime '{there}'; it must be of this runtime, '{here}'");
        Err(Error::invalid(name, message))
    }

    /// Waits for all work of the device.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: takes nothing.
        self.runtime.check("hipDeviceSynchronize", unsafe { (self.runtime.functions.synchronize)() })
    }

    /// Memory for `len` elements, all bits 0.
    pub fn zeroed<T: Plain>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::zeroed(self, len)
    }

    /// Memory with a copy of `elements`.
    pub fn buffer<T: Plain>(&self, elements: &[T]) -> Result<Buffer<T>> {
        let mut buffer = self.zeroed(elements.len())?;
        buffer.upload(elements)?;
        Ok(buffer)
    }

    /// Host memory for `len` elements, all bits 0; copies between it and a device need not wait.
    pub fn pinned<T: Plain>(&self, len: usize) -> Result<Pinned<T>> {
        Pinned::zeroed(self, len)
    }

    /// A stream, which the null stream waits for.
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(self)
    }

    /// An event. Until it is recorded, it counts as complete.
    pub fn event(&self) -> Result<Event> {
        Event::new(self)
    }
}
