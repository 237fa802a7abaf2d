//! Graphs.

use super::{Hip, Stream};
use crate::error::Result;
use std::os::raw::c_void;
use std::ptr;

/// The work that a stream got while it was capturing: [`Stream::capture`]. Destroyed when it is dropped; its instances
/// stay valid.
#[derive(Debug)]
pub struct Graph {
    hip: Hip,
    raw: *mut c_void,
}

// SAFETY: a handle, which HIP accepts on any thread.
unsafe impl Send for Graph {}
// SAFETY: as for Send; a shared graph is only read.
unsafe impl Sync for Graph {}

impl Graph {
    /// Takes over a graph; no other code destroys it.
    pub(super) fn new(hip: &Hip, raw: *mut c_void) -> Graph {
        Graph { hip: hip.clone(), raw }
    }

    /// Makes an instance that can be launched any number of times. One graph may be instantiated several times.
    pub fn instantiate(&self) -> Result<GraphExec> {
        let runtime = &self.hip.runtime;
        let mut exec = ptr::null_mut();
        // SAFETY: a pointer to write to and a live graph; of an error, only the code is requested.
        let code = unsafe {
            (runtime.functions.graph_instantiate)(&mut exec, self.raw, ptr::null_mut(), ptr::null_mut(), 0)
        };
        runtime.check("hipGraphInstantiate", code)?;
        Ok(GraphExec { hip: self.hip.clone(), raw: exec })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: made by hipStreamEndCapture and destroyed only here.
        unsafe { (self.hip.runtime.functions.graph_destroy)(self.raw) };
    }
}

/// An instance of a graph that can be launched; destroyed when it is dropped.
#[derive(Debug)]
pub struct GraphExec {
    hip: Hip,
    raw: *mut c_void,
}

// SAFETY: a handle, which HIP accepts on any thread.
unsafe impl Send for GraphExec {}
// SAFETY: as for Send. HIP does not allow two threads to launch one instance at once, but `launch` takes it mutably, so
// a shared one cannot be launched.
unsafe impl Sync for GraphExec {}

impl GraphExec {
    /// Enqueues all captured work, after the work on the stream and after the last launch of this instance. The work
    /// reads lengths, page tables and slots when it runs, so they may change between launches.
    ///
    /// # Safety
    /// The contracts of the captured calls apply again: until the work is done, their memory, workspaces, plans and
    /// events must stay valid, and no other code may use the memory. `self` must not be dropped before that either.
    pub unsafe fn launch(&mut self, stream: &Stream) -> Result<()> {
        self.hip.check_same("stream", stream.hip())?;
        let runtime = &self.hip.runtime;
        // SAFETY: both are live objects of this runtime; the caller guarantees the rest.
        let code = unsafe { (runtime.functions.graph_launch)(self.raw, stream.raw().0) };
        runtime.check("hipGraphLaunch", code)
    }
}

impl Drop for GraphExec {
    fn drop(&mut self) {
        // SAFETY: made by hipGraphInstantiate and destroyed only here. The callers of `launch` guarantee that no launch
        // is running.
        unsafe { (self.hip.runtime.functions.graph_exec_destroy)(self.raw) };
    }
}
