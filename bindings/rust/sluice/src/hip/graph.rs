//! Graphs.

use super::{Hip, Stream};
use crate::error::Result;
use std::os::raw::c_void;
use std::ptr;

/// What a stream was given while it captured: [`Stream::capture`]. Destroyed when it is dropped; what was instantiated of
/// it stays.
#[derive(Debug)]
pub struct Graph {
    hip: Hip,
    raw: *mut c_void,
}

// SAFETY: a handle, which HIP takes on any thread.
unsafe impl Send for Graph {}
// SAFETY: likewise; what is shared is only read.
unsafe impl Sync for Graph {}

impl Graph {
    /// Of a graph that nobody else destroys.
    pub(super) fn new(hip: &Hip, raw: *mut c_void) -> Graph {
        Graph { hip: hip.clone(), raw }
    }

    /// Makes something that can be launched, any number of times. One graph may be instantiated several times.
    pub fn instantiate(&self) -> Result<GraphExec> {
        let runtime = &self.hip.runtime;
        let mut exec = ptr::null_mut();
        // SAFETY: a pointer to be written and a graph that is there; of an error, the code is all that is asked for.
        let code = unsafe {
            (runtime.functions.graph_instantiate)(&mut exec, self.raw, ptr::null_mut(), ptr::null_mut(), 0)
        };
        runtime.check("hipGraphInstantiate", code)?;
        Ok(GraphExec { hip: self.hip.clone(), raw: exec })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: made by hipStreamEndCapture and destroyed here only.
        unsafe { (self.hip.runtime.functions.graph_destroy)(self.raw) };
    }
}

/// A graph to be launched, destroyed when it is dropped.
#[derive(Debug)]
pub struct GraphExec {
    hip: Hip,
    raw: *mut c_void,
}

// SAFETY: a handle, which HIP takes on any thread.
unsafe impl Send for GraphExec {}
// HIP does not let two threads launch one at a time, and launch takes it mutably: shared, it can do nothing.
// SAFETY: likewise.
unsafe impl Sync for GraphExec {}

impl GraphExec {
    /// Enqueues all that was captured, behind what is on the stream and behind the last launch of this. The work reads
    /// lengths, page tables and slots when it runs, so that they may change between launches.
    ///
    /// # Safety
    /// The contracts of the captured calls hold once more: until the work is done, their memory, workspaces, plans and
    /// events stay, and nobody else uses the memory. `self` must not be dropped before that either.
    pub unsafe fn launch(&mut self, stream: &Stream) -> Result<()> {
        self.hip.check_same("stream", stream.hip())?;
        let runtime = &self.hip.runtime;
        // SAFETY: both are there, and of this runtime; the rest is what the caller promises.
        let code = unsafe { (runtime.functions.graph_launch)(self.raw, stream.raw().0) };
        runtime.check("hipGraphLaunch", code)
    }
}

impl Drop for GraphExec {
    fn drop(&mut self) {
        // SAFETY: made by hipGraphInstantiate and destroyed here only. That no launch is under way, who launched has
        // promised.
        unsafe { (self.hip.runtime.functions.graph_exec_destroy)(self.raw) };
    }
}
