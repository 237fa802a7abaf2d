package sluice

// #include <sluice/sluice.h>
import "C"

import (
	"fmt"
	"strings"
	"unsafe"
)

// DevicePointer is an address in the memory of a device. To Go it is a number: it keeps nothing alive.
type DevicePointer uintptr

// FreedMemory is the address of memory after its Free, of the package hip and of Host. Calls refuse it, because it is
// unaligned and beyond all memory; 0 would mean an array that is not given.
const FreedMemory = ^DevicePointer(0)

// put writes an address into a struct for C. It bypasses the type of the member, because the garbage collector takes
// anything written to a pointer for an address.
func put(member unsafe.Pointer, address DevicePointer) { *(*uintptr)(member) = uintptr(address) }

// BSHD is a contiguous tensor [batch][token][head][dim].
func BSHD(data DevicePointer, tokens, heads, dim int64) Tensor {
	return Tensor{data, [4]int64{tokens * heads * dim, heads * dim, dim, 1}}
}

// BHSD is a contiguous tensor [batch][head][token][dim].
func BHSD(data DevicePointer, tokens, heads, dim int64) Tensor {
	return Tensor{data, [4]int64{tokens * heads * dim, dim, tokens * dim, 1}}
}

// Packed is a contiguous tensor [token][head][dim]: sequences one after the other, new rows, and their results.
func Packed(data DevicePointer, heads, dim int64) Tensor {
	return Tensor{data, [4]int64{0, heads * dim, dim, 1}}
}

// PagesXPacked is x-packed K: a contiguous tensor [page][head][dim / pack][token][pack]. Pages of whole rows are BSHD
// and BHSD, with pages instead of batches.
func PagesXPacked(data DevicePointer, pageSize, heads, dim, pack int64) Tensor {
	return Tensor{data, [4]int64{heads * dim * pageSize, pack, dim * pageSize, pageSize * pack}}
}

// KVTensors is the format of K and V of one type and head dim, not in pages.
func KVTensors(dtype DType, kvHeads, headDim int32) KVFormat {
	rows := Format{Type: dtype}
	return KVFormat{KVHeads: kvHeads, HeadDimQK: headDim, HeadDimV: headDim, K: rows, V: rows}
}

// KVPages is the format of K and V of one type and head dim in pages, found through a table [batch][pages].
func KVPages(dtype DType, kvHeads, headDim, pageSize int32) KVFormat {
	format := KVTensors(dtype, kvHeads, headDim)
	format.PageSize, format.PageTable = pageSize, PageTableBlock
	return format
}

// KVLatent is the format of the latent cache of MLA in pages: one KV head, whose first elements are V too.
func KVLatent(dtype DType, latentDim, rotaryDim, pageSize int32) KVFormat {
	format := KVPages(dtype, 1, latentDim+rotaryDim, pageSize)
	format.Flags, format.HeadDimV, format.V = KVVInK, latentDim, Format{}
	return format
}

// nameOf is the name of an enumerator.
func nameOf(names map[uint32]string, of string, value uint32) string {
	if name, ok := names[value]; ok {
		return name
	}
	return fmt.Sprintf("%s(%d)", of, value)
}

// nameOfFlags is the names of the bits that are set, from the lowest on.
func nameOfFlags(names map[uint32]string, of string, bits uint32) string {
	var set []string
	for bit := uint32(1); bit != 0; bit <<= 1 {
		if bits&bit != 0 {
			set = append(set, nameOf(names, of, bit))
		}
	}
	if set == nil {
		return "0"
	}
	return strings.Join(set, "|")
}
