package sluice

// #include "calls.h"
import "C"

import (
	"runtime/cgo"
	"sync"
)

// LogLevel is the severity of a log message.
type LogLevel uint32

// The levels, from the fewest messages to the most.
const (
	LogError   LogLevel = C.SLUICE_LOG_ERROR   // Something failed in a way that a status cannot say (a Close, for example).
	LogWarning LogLevel = C.SLUICE_LOG_WARNING // Worth knowing.
	LogInfo    LogLevel = C.SLUICE_LOG_INFO    // Devices found and kernels chosen when contexts and plans are made.
	LogDebug   LogLevel = C.SLUICE_LOG_DEBUG   // Every step of finding and choosing.
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
