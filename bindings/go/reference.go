package sluice

// #include <sluice/sluice.h>
// #include <stdlib.h>
import "C"

import "unsafe"

// Element is a type whose values can be copied as they are.
type Element interface {
	~uint8 | ~int8 | ~uint16 | ~int16 | ~uint32 | ~int32 | ~uint64 | ~int64 | ~float32 | ~float64
}

// Host is memory of the host for the Reference functions, whose pointers are all to host memory. It is C's memory and
// stays where it is. Only Free frees it.
type Host[T Element] struct {
	Values  []T // The memory itself; nil after Free.
	address unsafe.Pointer
}

// OnHost is a copy of values.
func OnHost[T Element](values []T) *Host[T] {
	address := C.malloc(C.size_t(len(values))*C.size_t(unsafe.Sizeof(*new(T))) + 1)
	made := &Host[T]{unsafe.Slice((*T)(address), len(values)), address}
	copy(made.Values, values)
	return made
}

// Pointer is the address of the first value; FreedMemory after Free.
func (h *Host[T]) Pointer() DevicePointer {
	if h.address == nil {
		return FreedMemory
	}
	return DevicePointer(h.address)
}

// Free releases the memory; further calls do nothing. It must not be used meanwhile.
func (h *Host[T]) Free() {
	C.free(h.address)
	h.address, h.Values = nil, nil
}

// Reference computes a call on the host in double precision. All pointers are to memory of the host: see Host. As
// sluice_attention_reference.
func Reference(attention *Attention, args *Args) error {
	return call(func(in *memory, failure *C.sluice_error) C.sluice_status {
		return C.sluice_attention_reference(pointer[C.sluice_attention](in, attention),
			pointer[C.sluice_attention_args](in, args), failure)
	})
}

// ReferenceAppend performs an append on the host. Rules as for Reference.
func ReferenceAppend(args *Append) error {
	return call(func(in *memory, failure *C.sluice_error) C.sluice_status {
		return C.sluice_cache_append_reference(pointer[C.sluice_append_args](in, args), failure)
	})
}

// ReferenceCopy copies pages on the host. Rules as for Reference.
func ReferenceCopy(args *Copy) error {
	return call(func(in *memory, failure *C.sluice_error) C.sluice_status {
		return C.sluice_cache_copy_reference(pointer[C.sluice_copy_args](in, args), failure)
	})
}

// ReferenceGather gathers keys on the host. Rules as for Reference.
func ReferenceGather(args *Gather) error {
	return call(func(in *memory, failure *C.sluice_error) C.sluice_status {
		return C.sluice_cache_gather_reference(pointer[C.sluice_gather_args](in, args), failure)
	})
}
