package sluice

// #include "calls.h"
import "C"

import "runtime/cgo"

// TraceEvent is an event that makes a trace record.
type TraceEvent uint32

// The events.
const (
	TracePlan TraceEvent = C.SLUICE_TRACE_PLAN // A plan was made.
	TraceRun  TraceEvent = C.SLUICE_TRACE_RUN  // A run is about to be launched.
)

// TraceRecord describes one plan or run.
type TraceRecord struct {
	Event          TraceEvent
	Grid           [3]uint32 // Workgroups of this run, or at the plan's bounds (0 if a bound is missing).
	Block          [3]uint32 // Lanes per workgroup.
	LDSBytes       uint32    // LDS per workgroup.
	Waves          uint32    // Waves per workgroup.
	WorkspaceBytes uint64    // Device memory that a run needs.
	Kernel         string    // Name of the kernel.
	Reason         string    // Why it was chosen.
}

// TraceFunc receives a record, in the goroutine that makes the plan or the run. It must not use the context or its
// plans. A panic in it ends the program.
type TraceFunc func(record *TraceRecord)

// SetTrace sets the function that sees every plan and run of the context, even after the context's Close; nil, the
// initial state, switches tracing off. Without a function, a run has no tracing cost. It must not be called while
// another goroutine uses the context or one of its plans.
func (c *Context) SetTrace(trace TraceFunc) error {
	release, err := c.use()
	if err != nil {
		return err
	}
	defer release()
	var next cgo.Handle
	if trace != nil {
		next = cgo.NewHandle(trace)
	}
	failure := newError()
	status := C.sluice_go_set_trace(c.state.handle, C.uintptr_t(next), failure)
	unused := c.state.trace
	if err = result(status, failure); err != nil {
		unused = next
	} else {
		c.state.trace = next
	}
	if unused != 0 {
		unused.Delete()
	}
	return err
}

// SetRanges encloses runs and cache operations of the context in ranges of roctx, which profilers show, or no longer;
// off is the initial state. Rules as for SetTrace. Error: Unsupported if the process has no roctx and none can be
// opened.
func (c *Context) SetRanges(enabled bool) error {
	release, err := c.use()
	if err != nil {
		return err
	}
	defer release()
	var number C.uint32_t
	if enabled {
		number = 1
	}
	failure := newError()
	return result(C.sluice_set_ranges(c.state.handle, number, failure), failure)
}

func goTraceRecord(from *C.sluice_trace_record) TraceRecord {
	record := TraceRecord{
		Event:          TraceEvent(from.event),
		LDSBytes:       uint32(from.lds_bytes),
		Waves:          uint32(from.waves),
		WorkspaceBytes: uint64(from.workspace_bytes),
		Kernel:         C.GoString(from.kernel),
		Reason:         C.GoString(from.reason),
	}
	for i := range record.Grid {
		record.Grid[i], record.Block[i] = uint32(from.grid[i]), uint32(from.block[i])
	}
	return record
}
