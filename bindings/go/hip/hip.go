// Package hip is the small part of HIP that calls of sluice need: device memory, copies, streams, events and graphs,
// through a context's runtime, a GPU's or the emulator's. Nothing is linked; functions are looked up by name.
//
// A program that gets device memory by other means does not need this package: sluice.DevicePointer, sluice.Stream and
// sluice.Event are HIP's own addresses and handles.
//
// Everything may be called in any goroutine and in any number at once; calls that close or free wait for the calls that
// use the object. The context's device is current during a call.
package hip

// #include "hip.h"
import "C"

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	sluice "github.com/sluice-attention/sluice/bindings/go"
)

// Runtime is the HIP runtime of a context, with its device. It need not be closed, and outlives the context.
type Runtime struct {
	functions C.go_hip
	configure unsafe.Pointer // the emulator's function, else nil
	counters  unsafe.Pointer // the emulator's function, else nil
}

// Error describes a HIP function that did not return 0.
type Error struct {
	Call string // E.g. "hipMalloc".
	Code int    // hipError_t.
	Text string // hipGetErrorString of the code.
}

// Error is a sentence of the three.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s (%d)", e.Call, e.Text, e.Code) }

// Open looks up the functions of a context's runtime. A target does not have one.
func Open(context *sluice.Context) (*Runtime, error) {
	device, err := context.Device()
	if err != nil {
		return nil, err
	}
	r := &Runtime{}
	r.functions.ordinal = C.int(device.Ordinal)
	for _, function := range []struct {
		name string
		slot unsafe.Pointer
	}{
		{"hipGetDevice", unsafe.Pointer(&r.functions.get_device)},
		{"hipSetDevice", unsafe.Pointer(&r.functions.set_device)},
		{"hipMalloc", unsafe.Pointer(&r.functions.malloc)},
		{"hipFree", unsafe.Pointer(&r.functions.free)},
		{"hipHostMalloc", unsafe.Pointer(&r.functions.host_malloc)},
		{"hipHostFree", unsafe.Pointer(&r.functions.host_free)},
		{"hipMemcpy", unsafe.Pointer(&r.functions.memcpy)},
		{"hipMemcpyAsync", unsafe.Pointer(&r.functions.memcpy_async)},
		{"hipMemset", unsafe.Pointer(&r.functions.memset)},
		{"hipMemGetInfo", unsafe.Pointer(&r.functions.mem_get_info)},
		{"hipStreamCreateWithFlags", unsafe.Pointer(&r.functions.stream_create)},
		{"hipStreamDestroy", unsafe.Pointer(&r.functions.stream_destroy)},
		{"hipStreamSynchronize", unsafe.Pointer(&r.functions.stream_synchronize)},
		{"hipStreamQuery", unsafe.Pointer(&r.functions.stream_query)},
		{"hipStreamWaitEvent", unsafe.Pointer(&r.functions.stream_wait_event)},
		{"hipEventCreateWithFlags", unsafe.Pointer(&r.functions.event_create)},
		{"hipEventDestroy", unsafe.Pointer(&r.functions.event_destroy)},
		{"hipEventRecord", unsafe.Pointer(&r.functions.event_record)},
		{"hipEventSynchronize", unsafe.Pointer(&r.functions.event_synchronize)},
		{"hipEventQuery", unsafe.Pointer(&r.functions.event_query)},
		{"hipStreamBeginCapture", unsafe.Pointer(&r.functions.stream_begin_capture)},
		{"hipStreamEndCapture", unsafe.Pointer(&r.functions.stream_end_capture)},
		{"hipStreamGetCaptureInfo", unsafe.Pointer(&r.functions.stream_get_capture_info)},
		{"hipGraphInstantiate", unsafe.Pointer(&r.functions.graph_instantiate)},
		{"hipGraphDestroy", unsafe.Pointer(&r.functions.graph_destroy)},
		{"hipGraphLaunch", unsafe.Pointer(&r.functions.graph_launch)},
		{"hipGraphExecDestroy", unsafe.Pointer(&r.functions.graph_exec_destroy)},
		{"hipGetErrorString", unsafe.Pointer(&r.functions.get_error_string)},
	} {
		found, err := context.HIPSymbol(function.name)
		if err != nil {
			return nil, err
		}
		if found == nil {
			return nil, &sluice.Error{Code: sluice.NoDevice, Field: function.name,
				Message: fmt.Sprintf("the HIP runtime of the context (%s) has no %s", device.Runtime, function.name)}
		}
		*(*unsafe.Pointer)(function.slot) = found
	}
	if r.configure, err = context.HIPSymbol("sluice_emulator_configure"); err != nil {
		return nil, err
	}
	r.counters, err = context.HIPSymbol("sluice_emulator_counters")
	return r, err
}

func (r *Runtime) check(call string, code C.int) error {
	if code == 0 {
		return nil
	}
	text := "unknown error"
	if characters := C.go_hip_error_string(&r.functions, code); characters != nil {
		text = C.GoString(characters)
	}
	return &Error{Call: call, Code: int(code), Text: text}
}

// CurrentDevice is the device that is current on the thread of this goroutine (hipGetDevice), not the context's.
func (r *Runtime) CurrentDevice() (int, error) {
	var ordinal C.int
	err := r.check("hipGetDevice", C.go_hip_current_device(&r.functions, &ordinal))
	return int(ordinal), err
}

// MemoryInfo is the free and the total memory of the device (hipMemGetInfo).
func (r *Runtime) MemoryInfo() (free, total uint64, err error) {
	var freeBytes, totalBytes C.size_t
	err = r.check("hipMemGetInfo", C.go_hip_mem_get_info(&r.functions, &freeBytes, &totalBytes))
	return uint64(freeBytes), uint64(totalBytes), err
}

// ready turns a query's code into whether the work is done.
func (r *Runtime) ready(call string, code C.int) (bool, error) {
	const notReady = 600 // hipErrorNotReady
	if code == notReady {
		return false, nil
	}
	return code == 0, r.check(call, code)
}

// Synchronize waits for all work of a stream (hipStreamSynchronize). It reports faults of kernels.
func (r *Runtime) Synchronize(stream sluice.Stream) error {
	if stream == sluice.ClosedStream {
		return errClosed("stream")
	}
	return r.check("hipStreamSynchronize", C.go_hip_stream_synchronize(&r.functions, C.uintptr_t(stream)))
}

// Counts are the numbers of open objects of this package.
type Counts struct{ Memories, HostMemories, Streams, Events, Graphs int64 }

var live Counts

// Live returns them, for tests of leaks.
func Live() Counts {
	return Counts{atomic.LoadInt64(&live.Memories), atomic.LoadInt64(&live.HostMemories), atomic.LoadInt64(&live.Streams),
		atomic.LoadInt64(&live.Events), atomic.LoadInt64(&live.Graphs)}
}
