package sluice

// #include <stdlib.h>
import "C"

import (
	"runtime"
	"sync"
	"unsafe"
)

// memory is C's memory for the structs of one call. Structs of C point to one another, and Go memory that C sees must
// not hold pointers to Go memory. Memory of C may, and its addresses of device memory, right or wrong, are never seen by
// Go's garbage collector. A call takes what it needs from one block, which is reused by later calls.
type memory struct {
	block unsafe.Pointer
	used  uintptr
	more  []unsafe.Pointer // What did not fit.
}

const blockBytes = 8 << 10 // Attention with everything takes less than half.

var memories = sync.Pool{New: func() any {
	made := &memory{block: C.malloc(blockBytes)}
	runtime.SetFinalizer(made, func(m *memory) { C.free(m.block) })
	return made
}}

func (m *memory) release() {
	for _, address := range m.more {
		C.free(address)
	}
	m.used, m.more = 0, nil
	memories.Put(m)
}

func (m *memory) reserve(bytes uintptr) unsafe.Pointer {
	bytes = (bytes + 7) &^ 7
	if bytes > blockBytes-m.used {
		address := C.malloc(C.size_t(bytes)) // which does not return if there is no memory
		m.more = append(m.more, address)
		return address
	}
	address := unsafe.Add(m.block, m.used)
	m.used += bytes
	return address
}

// take is `count` zeroed values, nil if there are none.
func take[T any](in *memory, count int) []T {
	if count == 0 {
		return nil
	}
	bytes := unsafe.Sizeof(*new(T)) * uintptr(count)
	address := in.reserve(bytes)
	zeroed := unsafe.Slice((*byte)(address), bytes)
	for i := range zeroed {
		zeroed[i] = 0
	}
	return unsafe.Slice((*T)(address), count)
}

// pointer is C's struct for one of Go, nil for nil.
func pointer[T, G any, P interface {
	*G
	fill(to *T, in *memory)
}](in *memory, from *G) *T {
	if from == nil {
		return nil
	}
	to := &take[T](in, 1)[0]
	P(from).fill(to, in)
	return to
}

// answer is a struct of C that a call fills. The first member of each is its size.
func answer[T any](in *memory) *T {
	to := &take[T](in, 1)[0]
	*(*uint32)(unsafe.Pointer(to)) = uint32(unsafe.Sizeof(*to))
	return to
}
