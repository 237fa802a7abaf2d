// Package hiptest is only for tests: it keeps work pending until they release it, and counts calls of HIP meanwhile.
// Its state is per process.
package hiptest

// #include "between.h"
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"unsafe"

	sluice "github.com/sluice-attention/sluice/bindings/go"
)

// Calls counts HIP calls of contexts that have a Resolver, since the last Reset.
type Calls struct {
	Synchronized int // Calls of hipDeviceSynchronize that have begun.
	Unloaded     int // Modules.
	UnloadedHeld int // Modules unloaded while work was held.
}

// Made returns them.
func Made() Calls {
	made := C.go_hiptest_read()
	return Calls{int(made.synchronized), int(made.unloaded), int(made.unloaded_held)}
}

// Lives counts live objects made through calls of contexts that have a Resolver.
type Lives struct{ Graphs, Executables, HostMemories int }

// Live returns them.
func Live() Lives {
	live := C.go_hiptest_read_live()
	return Lives{int(live.graphs), int(live.executables), int(live.host_memories)}
}

// Reset clears the counts, and makes the next `refusals` calls of hipDeviceSynchronize return a code at once.
func Reset(refusals, code int) { C.go_hiptest_reset(C.int64_t(refusals), C.int(code)) }

// Resolver gives the functions of a context's runtime, and counts calls. It leaves out functions with the names
// `without`.
func Resolver(of *sluice.Context, without ...string) sluice.HIPResolver {
	return func(name string) unsafe.Pointer {
		for _, missing := range without {
			if name == missing {
				return nil
			}
		}
		found, err := of.HIPSymbol(name)
		if err != nil || found == nil {
			return nil
		}
		characters := C.CString(name)
		defer C.free(unsafe.Pointer(characters))
		return C.go_hiptest_replace(characters, found)
	}
}

// Hold puts work onto a stream that ends when LetGo is called.
func Hold(runtime *sluice.Context, stream sluice.Stream) error {
	launch, err := runtime.HIPSymbol("hipLaunchHostFunc")
	if err != nil {
		return err
	}
	if code := C.go_hiptest_hold(launch, C.uintptr_t(stream)); code != 0 {
		return fmt.Errorf("hipLaunchHostFunc returned %d", int(code))
	}
	return nil
}

// LetGo ends the work of Hold. Without any it does nothing.
func LetGo() { C.go_hiptest_let_go() }
