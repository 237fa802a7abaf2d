package sluice

// #include "calls.h"
import "C"

import (
	"fmt"
	"runtime/cgo"
	"runtime/debug"
	"unsafe"
)

// Functions that the library calls. The Go value of a number lives until the library has been given another number.

//export sluiceGoLog
func sluiceGoLog(log C.uintptr_t, level C.uint32_t, message *C.char) {
	defer endWithPanic("log function")
	cgo.Handle(log).Value().(LogFunc)(LogLevel(level), C.GoString(message))
}

//export sluiceGoTrace
func sluiceGoTrace(trace C.uintptr_t, record *C.sluice_trace_record) {
	defer endWithPanic("trace function")
	made := goTraceRecord(record)
	cgo.Handle(trace).Value().(TraceFunc)(&made)
}

//export sluiceGoResolve
func sluiceGoResolve(resolver C.uintptr_t, name *C.char) unsafe.Pointer {
	defer endWithPanic("HIP resolver")
	return cgo.Handle(resolver).Value().(HIPResolver)(C.GoString(name))
}

// endWithPanic ends the program if its function panics. Recovering further up would leave the library's own functions
// unfinished, with what they hold.
func endWithPanic(function string) {
	if value := recover(); value != nil {
		report := fmt.Sprintf("sluice: panic in a %s: %v\n%s", function, value, debug.Stack())
		go panic(report)
		select {} // the library must not continue
	}
}
