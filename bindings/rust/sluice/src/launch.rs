//! Where and when work happens.

use crate::error::{int, Result};
use sluice_sys as sys;
use std::cell::Cell;
use std::marker::PhantomData;
use std::os::raw::c_void;
use std::ptr;

/// A `hipStream_t`, owned by the code that created it. A handle may be kept anywhere; only `unsafe` calls use it, and
/// their callers ensure that the stream still exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct RawStream(pub *mut c_void);

impl RawStream {
    /// The null stream.
    pub const DEFAULT: RawStream = RawStream(ptr::null_mut());
}

impl Default for RawStream {
    fn default() -> Self {
        RawStream::DEFAULT
    }
}

/// A `hipEvent_t`, owned by the code that created it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct RawEvent(pub *mut c_void);

// SAFETY: handles, which HIP accepts on any thread.
unsafe impl Send for RawStream {}
// SAFETY: as above.
unsafe impl Sync for RawStream {}
// SAFETY: as above.
unsafe impl Send for RawEvent {}
// SAFETY: as above.
unsafe impl Sync for RawEvent {}

/// Something that must complete before a run starts.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Dependency(sys::sluice_dependency);

// SAFETY: handles, which HIP accepts on any thread.
unsafe impl Send for Dependency {}
// SAFETY: as above.
unsafe impl Sync for Dependency {}

impl Dependency {
    /// Wait for an event that has been recorded.
    pub fn on_event(event: RawEvent) -> Dependency {
        Dependency(sys::sluice_dependency {
            kind: sys::SLUICE_DEPENDS_ON_EVENT,
            reserved: 0,
            event: event.0,
            stream: ptr::null_mut(),
        })
    }

    /// Record `event` on `stream` when the call is made and wait for it, so for all work there.
    pub fn on_stream(stream: RawStream, event: RawEvent) -> Dependency {
        Dependency(sys::sluice_dependency {
            kind: sys::SLUICE_DEPENDS_ON_STREAM,
            reserved: 0,
            event: event.0,
            stream: stream.0,
        })
    }
}

/// Scratch device memory of a run. Two runs at once need two workspaces: a workspace can move to another thread, but
/// threads cannot share it.
#[derive(Debug)]
pub struct Workspace<'a> {
    data: *mut c_void,
    bytes: usize,
    memory: PhantomData<(&'a mut (), Cell<()>)>,
}

// SAFETY: an address that one thread has at a time, and which is only used by unsafe calls.
unsafe impl Send for Workspace<'_> {}

impl<'a> Workspace<'a> {
    /// From memory of another allocator. [`hip::Buffer::workspace`](crate::hip::Buffer::workspace) is safe.
    ///
    /// # Safety
    /// `data` points to `bytes` bytes of device memory for the lifetime `'a`.
    pub unsafe fn from_raw(data: *mut c_void, bytes: usize) -> Workspace<'a> {
        Workspace { data, bytes, memory: PhantomData }
    }
}

/// Where and when a run happens. The default is the null stream, without workspace or dependencies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Launch<'a> {
    /// A stream of the context's device.
    pub stream: RawStream,
    /// For plans that need one.
    pub workspace: Option<&'a Workspace<'a>>,
    /// Work that the run waits for.
    pub dependencies: &'a [Dependency],
    /// Recorded after the run.
    pub signal_event: Option<RawEvent>,
}

impl Launch<'_> {
    pub(crate) fn to_raw(self) -> Result<sys::sluice_launch> {
        let mut raw = sys::sluice_launch::default();
        raw.stream = self.stream.0;
        raw.dependency_count = int("dependencies", self.dependencies.len())? as u32;
        if !self.dependencies.is_empty() {
            raw.dependencies = self.dependencies.as_ptr().cast();
        }
        if let Some(workspace) = self.workspace {
            raw.workspace = workspace.data;
            raw.workspace_bytes = workspace.bytes as u64;
        }
        raw.signal_event = self.signal_event.map_or(ptr::null_mut(), |event| event.0);
        Ok(raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(address: usize) -> *mut c_void {
        address as *mut c_void
    }

    #[test]
    fn every_field_arrives() {
        let dependencies = [
            Dependency::on_event(RawEvent(handle(16))),
            Dependency::on_stream(RawStream(handle(32)), RawEvent(handle(48))),
        ];
        // SAFETY: the memory is never accessed.
        let workspace = unsafe { Workspace::from_raw(handle(64), 80) };
        let launch = Launch {
            stream: RawStream(handle(96)),
            workspace: Some(&workspace),
            dependencies: &dependencies,
            signal_event: Some(RawEvent(handle(112))),
        };
        // No `..` here: a new field of the header must get a number here.
        let sys::sluice_launch {
            struct_size,
            dependency_count,
            stream,
            workspace,
            workspace_bytes,
            dependencies: listed,
            signal_event,
        } = launch.to_raw().unwrap();
        assert_eq!(struct_size as usize, std::mem::size_of::<sys::sluice_launch>());
        assert_eq!((stream, workspace, workspace_bytes), (handle(96), handle(64), 80));
        assert_eq!((signal_event, dependency_count), (handle(112), 2));
        assert_eq!(listed.cast(), dependencies.as_ptr());
        let [event, stream] = dependencies.map(|dependency| dependency.0);
        assert_eq!((event.kind, event.event, event.stream), (1, handle(16), handle(0)));
        assert_eq!((stream.kind, stream.event, stream.stream), (2, handle(48), handle(32)));
    }
}
