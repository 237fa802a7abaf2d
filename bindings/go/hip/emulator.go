package hip

// #include "hip.h"
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"unsafe"
)

// EmulatorCounters are sums over all launches of the emulated device that have ended, and live objects there.
type EmulatorCounters struct {
	WaveInstructions      uint64
	Waves                 uint64
	Workgroups            uint64
	MFMAInstructions      uint64
	LDSBankConflicts      uint64
	Launches              uint64
	LiveStreams           uint64 // Created and not destroyed.
	LiveEvents            uint64 // Created and not destroyed.
	BusyStreamsDestroyed  uint64 // Destroyed with work left, which HIP may not run.
	BufferLanesOutOfRange uint64 // They read 0 or store nothing.
}

// EmulatorCounters reads them; false if the runtime is not an emulator.
func (r *Runtime) EmulatorCounters() (EmulatorCounters, bool) {
	var counters EmulatorCounters
	if r.counters == nil {
		return counters, false
	}
	read := C.go_hip_emulator_counters(r.counters, (*C.uint64_t)(unsafe.Pointer(&counters)),
		C.size_t(unsafe.Sizeof(counters)))
	return counters, read == 0
}

// ConfigureEmulator sets how launches of the emulated device run, for the whole process; the settings are those of
// sluice_emulator_configure.
func (r *Runtime) ConfigureEmulator(key, value string) error {
	if r.configure == nil {
		return fmt.Errorf("hip: setting %q needs the emulator, and the runtime is not the emulator", key)
	}
	keyCharacters, valueCharacters := C.CString(key), C.CString(value)
	defer C.free(unsafe.Pointer(keyCharacters))
	defer C.free(unsafe.Pointer(valueCharacters))
	switch C.go_hip_emulator_configure(r.configure, keyCharacters, valueCharacters) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("hip: the emulator has no setting %q", key)
	default:
		return fmt.Errorf("hip: the emulator's setting %s cannot be %q", key, value)
	}
}
