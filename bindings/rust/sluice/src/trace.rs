//! Records of plans and runs.

use crate::library::contain;
use sluice_sys as sys;
use std::ffi::CStr;
use std::os::raw::c_void;

/// Events that make a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceEvent {
    /// A plan was made.
    Plan,
    /// A run is about to be launched.
    Run,
}

/// Records of plans and runs; see [`ContextBuilder::trace`](crate::ContextBuilder::trace).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceRecord<'a> {
    /// What happened.
    pub event: TraceEvent,
    /// Workgroups of this run, or at the plan's bounds (0 if a bound is missing).
    pub grid: [u32; 3],
    /// Lanes per workgroup.
    pub block: [u32; 3],
    /// LDS per workgroup.
    pub lds_bytes: u32,
    /// Waves per workgroup.
    pub waves: u32,
    /// Device memory that a run needs.
    pub workspace_bytes: u64,
    /// Name of the kernel.
    pub kernel: &'a str,
    /// Why it was chosen.
    pub reason: &'a str,
}

pub(crate) type TraceFn = Box<dyn Fn(&TraceRecord) + Send + Sync>;

/// # Safety
/// Called as by the library: with a record, and the `user` that was given with this function, a `TraceFn`.
pub(crate) unsafe extern "C" fn trampoline(record: *const sys::sluice_trace_record, user: *mut c_void) {
    contain(|| {
        // SAFETY: by this function's contract; strings and record are valid during the call.
        let (trace, record) = unsafe { (&*(user as *const TraceFn), &*record) };
        let event = match record.event {
            sys::SLUICE_TRACE_PLAN => TraceEvent::Plan,
            sys::SLUICE_TRACE_RUN => TraceEvent::Run,
            _ => return, // from a newer library: it has no name here
        };
        // SAFETY: as above.
        let (kernel, reason) = unsafe { (CStr::from_ptr(record.kernel), CStr::from_ptr(record.reason)) };
        trace(&TraceRecord {
            event,
            grid: record.grid,
            block: record.block,
            lds_bytes: record.lds_bytes,
            waves: record.waves,
            workspace_bytes: record.workspace_bytes,
            kernel: &kernel.to_string_lossy(),
            reason: &reason.to_string_lossy(),
        });
    });
}
