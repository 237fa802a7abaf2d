package sluice

// #include "calls.h"
import "C"

import "runtime/cgo"

// TraceFunc receives a record, in the goroutine that makes the plan or the run. It must not use the context or its
// plans. A panic in it ends the program.
type TraceFunc func(record *TraceRecord)

// SetTrace sets the function that sees every plan and run of the context, even after the context's Close; nil, the
// initial state, switches tracing off. Without a function, a run has no tracing cost. It must not be called while
// another goroutine uses the context or one of its plans.
func (c *Context) SetTrace(trace TraceFunc) error {
	var next cgo.Handle
	if trace != nil {
		next = cgo.NewHandle(trace)
	}
	unused := next
	err := c.use(func(in *memory, failure *C.sluice_error) C.sluice_status {
		status := C.sluice_go_set_trace(c.state.handle, C.uintptr_t(next), failure)
		if status == C.SLUICE_OK {
			unused, c.state.trace = c.state.trace, next
		}
		return status
	})
	if unused != 0 {
		unused.Delete()
	}
	return err
}

// SetRanges encloses runs and cache operations of the context in ranges of roctx, which profilers show, or no longer;
// off is the initial state. Rules as for SetTrace. Error: Unsupported if the process has no roctx and none can be
// opened.
func (c *Context) SetRanges(enabled bool) error {
	var number C.uint32_t
	if enabled {
		number = 1
	}
	return c.use(func(in *memory, failure *C.sluice_error) C.sluice_status {
		return C.sluice_set_ranges(c.state.handle, number, failure)
	})
}
