package sluice

// #include "calls.h"
import "C"

import (
	"runtime/cgo"
	"sync"
)

// LogFunc receives a log line, without a line end. It may be called in any goroutine that calls the library, in
// several at once, and must not call the library. A panic in it ends the program.
type LogFunc func(level LogLevel, message string)

var logging struct {
	mutex   sync.Mutex
	current cgo.Handle
}

// SetLog sets the process's log function and the most verbose level it gets; nil, the initial state, switches the log
// off. Plan.Run never logs. Once SetLog returns, the previous function is not called. It may be called in any goroutine
// at any time, but not by a log function.
func SetLog(log LogFunc, maxLevel LogLevel) {
	logging.mutex.Lock()
	defer logging.mutex.Unlock()
	var next cgo.Handle
	if log != nil {
		next = cgo.NewHandle(log)
	}
	C.sluice_go_set_log(C.uintptr_t(next), C.uint32_t(maxLevel))
	if logging.current != 0 {
		logging.current.Delete()
	}
	logging.current = next
}
