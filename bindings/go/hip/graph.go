package hip

// #include "hip.h"
import "C"

import (
	"fmt"
	"runtime"
	"sync/atomic"

	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/internal/captures"
)

// Graph is captured work that can be launched any number of times (hipGraphExec_t). It keeps the plans and contexts whose
// calls it launches: if they are closed, or forgotten, they are destroyed after the graph. The caller must keep the
// memory that it uses, including workspaces. Only Close closes it.
type Graph struct {
	runtime *Runtime
	handle  handle
	kept    *captures.Capture
}

// Capture makes a graph of what `enqueue` puts onto the stream, without running it: runs, appends, merges, asynchronous
// copies, and the same on other streams that wait for events of this one (and this one must wait for them before the
// function returns). It returns the first error: that of `enqueue`, or HIP's, which makes a capture invalid if
// something illegal was called during it. An error or a panic of `enqueue` ends the capture without a graph.
//
// Only calls that enqueue and do not wait, load or allocate are legal; Append, Copy, Gather and Merge only after a
// Preload of nil. The capture's mode is HIP's thread-local one: `enqueue` runs on a locked thread, and the restrictions
// apply only to calls of that thread, so other goroutines may allocate, load and close meanwhile. It must enqueue in
// the goroutine it is called in.
//
// Capture waits while a finalizer of sluice waits for the device (see the documentation of sluice), and such finalizers
// wait for captures. The stream cannot be closed, nor captured again, before Capture returns.
func (s *Stream) Capture(enqueue func() error) (graph *Graph, err error) {
	if enqueue == nil {
		return nil, fmt.Errorf("hip: enqueue is nil; it must be the function whose work becomes the graph")
	}
	if err := s.handle.hold("it is being captured"); err != nil {
		return nil, err
	}
	defer s.handle.unhold()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	hip := &s.runtime.functions
	stream := C.uintptr_t(s.handle.value) // does not change while it is held
	capture, err := captures.Begin(func() (uint64, error) {
		var id C.uint64_t
		err := s.runtime.check("hipStreamBeginCapture", C.go_hip_begin_capture(hip, stream, &id))
		return uint64(id), err
	})
	if err != nil {
		return nil, err
	}
	defer func() { // also after a panic
		if graph == nil {
			capture.Release()
		}
	}()
	captured, err := s.endCapture(capture, enqueue)
	if err != nil {
		return nil, err
	}
	var made C.uintptr_t
	if err := s.runtime.check("hipGraphInstantiate", C.go_hip_graph_instantiate(hip, captured, &made)); err != nil {
		return nil, err
	}
	atomic.AddInt64(&live.Graphs, 1)
	return &Graph{s.runtime, handle{name: "graph", value: uintptr(made)}, capture}, nil
}

// endCapture calls `enqueue` and ends the capture, even after an error or a panic.
func (s *Stream) endCapture(capture *captures.Capture, enqueue func() error) (graph C.uintptr_t, err error) {
	enqueued := false
	defer func() {
		ended := s.runtime.check("hipStreamEndCapture",
			C.go_hip_end_capture(&s.runtime.functions, C.uintptr_t(s.handle.value), &graph))
		capture.End()
		if err == nil {
			err = ended
		}
		if graph != 0 && (err != nil || !enqueued) {
			C.go_hip_graph_destroy(&s.runtime.functions, graph)
		}
	}()
	err = enqueue()
	enqueued = true
	return 0, err
}

// Launch enqueues all work of the graph on a stream, after the work there, and returns without waiting; 0 is the
// default stream. Launches of one graph run one after the other. Within Capture the graph becomes part of the new one,
// which then keeps what this one keeps.
func (g *Graph) Launch(stream sluice.Stream) error {
	if stream == sluice.ClosedStream {
		return errClosed("stream")
	}
	return g.handle.use(func(graph C.uintptr_t) error {
		code := C.go_hip_graph_launch(&g.runtime.functions, graph, C.uintptr_t(stream))
		if captures.Active() {
			var id C.uint64_t
			if C.go_hip_capture_of(&g.runtime.functions, C.uintptr_t(stream), &id) {
				captures.Keep(uint64(id), g.kept, g.kept.Hold)
			}
		}
		return g.runtime.check("hipGraphLaunch", code)
	})
}

// Close destroys the graph, whose launches must have completed, and releases the plans and contexts that it keeps;
// further calls do nothing. A running call of another goroutine completes first.
func (g *Graph) Close() error {
	return g.handle.close(&live.Graphs, func(graph C.uintptr_t) error {
		err := g.runtime.check("hipGraphExecDestroy", C.go_hip_graph_exec_destroy(&g.runtime.functions, graph))
		g.kept.Release()
		return err
	})
}
