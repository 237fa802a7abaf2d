//! Streams and events.

use super::graph::Graph;
use super::Hip;
use crate::error::Result;
use crate::launch::{RawEvent, RawStream};
use std::os::raw::{c_int, c_void};
use std::ptr;

/// hipErrorNotReady.
const NOT_READY: c_int = 600;
/// hipStreamCaptureModeThreadLocal: calls of other threads do not end a capture.
const CAPTURE_THREAD_LOCAL: c_int = 1;

/// A stream, destroyed when it is dropped.
#[derive(Debug)]
pub struct Stream {
    hip: Hip,
    raw: RawStream,
}

impl Stream {
    pub(super) fn new(hip: &Hip) -> Result<Stream> {
        let mut stream = ptr::null_mut();
        // SAFETY: a pointer to write to.
        hip.runtime
            .check("hipStreamCreate", unsafe { (hip.runtime.functions.stream_create)(&mut stream) })?;
        Ok(Stream { hip: hip.clone(), raw: RawStream(stream) })
    }

    pub(super) fn hip(&self) -> &Hip {
        &self.hip
    }

    /// For [`Launch::stream`](crate::Launch).
    pub fn raw(&self) -> RawStream {
        self.raw
    }

    /// Waits for all work of the stream.
    pub fn synchronize(&self) -> Result<()> {
        let runtime = &self.hip.runtime;
        // SAFETY: a live stream.
        runtime.check("hipStreamSynchronize", unsafe { (runtime.functions.stream_synchronize)(self.raw.0) })
    }

    /// Makes work that is enqueued from now on wait for the event's last record. Returns at once.
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.hip.check_same("event", &event.hip)?;
        let runtime = &self.hip.runtime;
        // SAFETY: both are live objects of this runtime; no flags.
        let code = unsafe { (runtime.functions.stream_wait_event)(self.raw.0, event.raw.0, 0) };
        runtime.check("hipStreamWaitEvent", code)
    }

    /// Calls `work`, and makes a graph of what it enqueues on this stream, or on other streams that wait for its events
    /// and that this stream waits for before the end. None of it runs yet.
    ///
    /// During the capture, this thread must not allocate, copy without a stream, wait, or load kernels: HIP refuses
    /// that, and the capture fails. A plan loads its kernels when it is made;
    /// [`Context::preload_all`](crate::Context::preload_all) loads those of appends and merges. An error of `work` ends
    /// the capture and is returned.
    pub fn capture(&self, work: impl FnOnce() -> Result<()>) -> Result<Graph> {
        let runtime = &self.hip.runtime;
        // SAFETY: a live stream.
        let code = unsafe { (runtime.functions.stream_begin_capture)(self.raw.0, CAPTURE_THREAD_LOCAL) };
        runtime.check("hipStreamBeginCapture", code)?;
        let capturing = Capturing(self);
        let worked = work();
        let ended = capturing.end();
        worked?;
        ended
    }
}

/// A capture that always ends, even when `work` panics, so that its stream can be used again.
struct Capturing<'a>(&'a Stream);

impl Capturing<'_> {
    fn end(self) -> Result<Graph> {
        let stream = self.0;
        std::mem::forget(self);
        let (code, graph) = end_capture(stream);
        stream.hip.runtime.check("hipStreamEndCapture", code)?;
        Ok(Graph::new(&stream.hip, graph))
    }
}

impl Drop for Capturing<'_> {
    fn drop(&mut self) {
        let (code, graph) = end_capture(self.0);
        if code == 0 {
            drop(Graph::new(&self.0.hip, graph));
        }
    }
}

fn end_capture(stream: &Stream) -> (c_int, *mut c_void) {
    let mut graph = ptr::null_mut();
    // SAFETY: a live stream, and a pointer to write to.
    let code = unsafe { (stream.hip.runtime.functions.stream_end_capture)(stream.raw.0, &mut graph) };
    (code, graph)
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: made by hipStreamCreate and destroyed only here.
        unsafe { (self.hip.runtime.functions.stream_destroy)(self.raw.0) };
    }
}

/// An event, destroyed when it is dropped. It marks a point in the work of the stream that it was last recorded on, by
/// [`Event::record`] or by a call that got it. An event that was never recorded counts as complete.
#[derive(Debug)]
pub struct Event {
    hip: Hip,
    raw: RawEvent,
}

impl Event {
    pub(super) fn new(hip: &Hip) -> Result<Event> {
        let mut event = ptr::null_mut();
        // SAFETY: a pointer to write to, and no flags.
        let code = unsafe { (hip.runtime.functions.event_create)(&mut event, 0) };
        hip.runtime.check("hipEventCreateWithFlags", code)?;
        Ok(Event { hip: hip.clone(), raw: RawEvent(event) })
    }

    /// For [`Dependency`](crate::Dependency) and [`Launch::signal_event`](crate::Launch).
    pub fn raw(&self) -> RawEvent {
        self.raw
    }

    /// Records the event after all work on the stream so far. Returns at once; waits for an earlier record still wait
    /// for that one.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        self.hip.check_same("stream", &stream.hip)?;
        let runtime = &self.hip.runtime;
        // SAFETY: both are live objects of this runtime.
        let code = unsafe { (runtime.functions.event_record)(self.raw.0, stream.raw.0) };
        runtime.check("hipEventRecord", code)
    }

    /// Whether the event is complete. Does not wait; a fault of the work before it is an error.
    pub fn query(&self) -> Result<bool> {
        let runtime = &self.hip.runtime;
        // SAFETY: a live event.
        match unsafe { (runtime.functions.event_query)(self.raw.0) } {
            NOT_READY => Ok(false),
            code => runtime.check("hipEventQuery", code).map(|()| true),
        }
    }

    /// Waits until the event is complete.
    pub fn synchronize(&self) -> Result<()> {
        let runtime = &self.hip.runtime;
        // SAFETY: a live event.
        runtime.check("hipEventSynchronize", unsafe { (runtime.functions.event_synchronize)(self.raw.0) })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: made by hipEventCreateWithFlags and destroyed only here.
        unsafe { (self.hip.runtime.functions.event_destroy)(self.raw.0) };
    }
}
