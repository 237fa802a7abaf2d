package sluice

// #include <sluice/sluice.h>
import "C"

import (
	"fmt"
	"math"
	"unsafe"
)

// DType is an element type. The FP8 encodings are different types: FNUZ is CDNA3's, the other two are OCP's.
type DType uint32

// The types.
const (
	F16      DType = C.SLUICE_F16      // IEEE binary16.
	BF16     DType = C.SLUICE_BF16     // bfloat16.
	F32      DType = C.SLUICE_F32      // IEEE binary32.
	E4M3FNUZ DType = C.SLUICE_E4M3FNUZ // FP8, bias 8, maximum 240, one NaN, no infinity.
	E4M3FN   DType = C.SLUICE_E4M3FN   // OCP FP8, bias 7, maximum 448.
	E5M2FNUZ DType = C.SLUICE_E5M2FNUZ // FP8, bias 16, maximum 57344, one NaN, no infinity.
	E5M2     DType = C.SLUICE_E5M2     // OCP FP8, bias 15, maximum 57344, with infinities.
	I8       DType = C.SLUICE_I8       // Signed 8-bit integer; K and V only, like the next three.
	U4       DType = C.SLUICE_U4       // Unsigned 4-bit integer, two per byte, the even element in the lower half; needs ScalePerGroup.
	Q8_0     DType = C.SLUICE_Q8_0     // ggml's BlockQ8_0.
	Q4_0     DType = C.SLUICE_Q4_0     // ggml's BlockQ4_0.
)

// MaskBits is the Type of a mask: bytes of eight keys each.
const MaskBits DType = 0

var dtypes = map[DType]struct {
	name        string
	block, size int64
}{
	MaskBits: {"bits", 1, 1}, F16: {"F16", 1, 2}, BF16: {"BF16", 1, 2}, F32: {"F32", 1, 4},
	E4M3FNUZ: {"E4M3FNUZ", 1, 1}, E4M3FN: {"E4M3FN", 1, 1}, E5M2FNUZ: {"E5M2FNUZ", 1, 1}, E5M2: {"E5M2", 1, 1},
	I8: {"I8", 1, 1}, U4: {"U4", 2, 1}, Q8_0: {"Q8_0", 32, 34}, Q4_0: {"Q4_0", 32, 18},
}

// Block is how many elements are stored together: 1 for most types; 0 for an unknown type.
func (d DType) Block() int64 { return dtypes[d].block }

// Size is the bytes of an element, or of a block of them; 0 for an unknown type.
func (d DType) Size() int64 { return dtypes[d].size }

// BlockQ8_0 is 32 elements of Q8_0. Element i is Scale * Numbers[i].
type BlockQ8_0 struct {
	Scale   uint16 // The bits of an F16.
	Numbers [32]int8
}

// BlockQ4_0 is 32 elements of Q4_0. Byte i has the number of element i in its lower half and that of element i + 16 in
// its upper half; an element is Scale * (number - 8).
type BlockQ4_0 struct {
	Scale   uint16 // The bits of an F16.
	Numbers [16]uint8
}

// String is the type's name.
func (d DType) String() string {
	if known, ok := dtypes[d]; ok {
		return known.name
	}
	return fmt.Sprintf("DType(%d)", uint32(d))
}

// DevicePointer is an address in the memory of a device. To Go it is a number: it keeps nothing alive.
type DevicePointer uintptr

// FreedMemory is the address of memory of the package hip after its Free. Calls refuse it, because it is unaligned and
// beyond all memory; 0 would mean an array that is not given.
const FreedMemory = ^DevicePointer(0)

// put writes an address into a struct for C. It bypasses the type of the field, because the garbage collector takes
// anything written to a pointer for an address.
func put(field unsafe.Pointer, address DevicePointer) { *(*uintptr)(field) = uintptr(address) }

// View is the layout of a tensor's elements: [a][b][c][d] is at a * Stride[0] + b * Stride[1] + c * Stride[2] + d *
// Stride[3] elements from the first one, and with Pack at ... + d / Pack * Stride[3] + d % Pack; with TokenPack it is at
// ... + b / TokenPack * Stride[1] + b % TokenPack.
type View struct {
	Type   DType
	Shape  [4]int64
	Stride [4]int64 // In elements, each >= 0; stride 0 repeats an input.
	Pack   int64    // Elements per pack of an x-packed K cache; 0: none.

	TokenPack int64 // Tokens per pack of V by columns; 0: none, or with VPackAll.
}

// Contiguous is the view of elements without gaps, the last index running fastest.
func Contiguous(dtype DType, shape [4]int64) View {
	view := View{Type: dtype, Shape: shape}
	stride := int64(1)
	for i := 3; i >= 0; i-- {
		view.Stride[i] = stride
		stride = elements(maximum(shape[i], 0), stride)
	}
	return view
}

// Permuted is the view whose index i is the index order[i] of this one: BHSD data as BSHD with {0, 2, 1, 3}.
func (v View) Permuted(order [4]int) View {
	permuted := View{Type: v.Type, Pack: v.Pack, TokenPack: v.TokenPack}
	for i, from := range order {
		permuted.Shape[i], permuted.Stride[i] = v.Shape[from], v.Stride[from]
	}
	return permuted
}

// Elements is the number of elements that memory must have, from the first to the last one that the view reaches.
// Strides that nothing is multiplied with are ignored.
// Errors name the invalid shape or stride.
func (v View) Elements() (int64, error) { return v.elements("view") }

func (v View) elements(field string) (int64, error) {
	pack, tokenPack := maximum(v.Pack, 1), maximum(v.TokenPack, 1)
	last := pack - 1 + tokenPack - 1
	for i, extent := range v.Shape {
		if extent < 0 {
			return 0, invalid(index(field+".shape", i), "%s is %d; it must not be negative", index(field+".shape", i), extent)
		}
	}
	if v.empty() {
		return 0, nil
	}
	for i, extent := range v.Shape {
		steps := extent - 1
		if i == 3 {
			steps = (extent - 1) / pack
		}
		if i == 1 {
			steps = (extent - 1) / tokenPack
		}
		if steps == 0 {
			continue
		}
		if v.Stride[i] < 0 {
			return 0, invalid(index(field+".stride", i), "%s is %d; it must not be negative", index(field+".stride", i),
				v.Stride[i])
		}
		way := elements(steps, v.Stride[i])
		if way < 0 || last > math.MaxInt64/8-way {
			return 0, invalid(index(field+".stride", i), "%s is %d; with %d elements, the last one would be outside the address space",
				index(field+".stride", i), v.Stride[i], extent)
		}
		last += way
	}
	return last + 1, nil
}

// empty says whether the view has no elements.
func (v *View) empty() bool {
	return v.Shape[0] == 0 || v.Shape[1] == 0 || v.Shape[2] == 0 || v.Shape[3] == 0
}

func index(name string, i int) string { return fmt.Sprintf("%s[%d]", name, i) }

// Tensor is a tensor in the memory of a device. One that a call does not have is all zero.
type Tensor struct {
	Data DevicePointer // Element [0][0][0][0].
	View
}

func (t *Tensor) put(to *C.sluice_tensor) {
	put(unsafe.Pointer(&to.data), t.Data)
	for i, stride := range t.Stride {
		to.stride[i] = C.int64_t(stride)
	}
}

// putRows is put for a tensor with a single batch: the first stride is only ever multiplied by 0, and the library
// requires it to be 0.
func (t *Tensor) putRows(to *C.sluice_tensor) {
	t.put(to)
	to.stride[0] = 0
}

// present says whether the call has the tensor; one without elements needs no memory.
func (t *Tensor) present() bool { return t.Data != 0 || t.Type != MaskBits && t.empty() }

// sized is a tensor on the host or on the device, present or not.
type sized interface {
	present() bool
	extent(i int) int64
}

// extent is one extent of the shape.
func (v *View) extent(i int) int64 { return v.Shape[i] }

// fewest is the smallest extent i of the given tensors, and whether there are any.
func fewest(i int, tensors ...sized) (count C.int64_t, known bool) {
	for _, tensor := range tensors {
		if tensor.present() && (!known || C.int64_t(tensor.extent(i)) < count) {
			count, known = C.int64_t(tensor.extent(i)), true
		}
	}
	return count, known
}

// extent is a call's requirement on one index of a tensor.
type extent struct {
	count int64  // How many it reads or writes.
	exact bool   // The tensor has exactly as many; else it may have more.
	what  string // What is counted.
}

func exactly(count int32, what string) extent { return extent{int64(count), true, what} }
func atLeast(count int64, what string) extent { return extent{count, false, what} }

// somePages is the requirement on a cache's pages: the library takes a number of 0 for one that is not known.
func somePages(areUsed bool) extent {
	if areUsed {
		return atLeast(1, "pages that a call needs")
	}
	return atLeast(0, "pages")
}

// need is a call's requirement on a tensor.
type need struct {
	field   string
	dtype   DType
	extents [4]extent
	repeats bool  // An index whose stride is 0 counts for all.
	pack    int32 // The problem's.

	tokenPack int32 // The same for V.
}

func (n *need) check(v *View) error {
	if v.Type != n.dtype {
		return invalid(n.field+".type", "%s.type is %v; the call says %v", n.field, v.Type, n.dtype)
	}
	if v.Pack != int64(n.pack) {
		return invalid(n.field+".pack", "%s.pack is %d; the call says %d", n.field, v.Pack, n.pack)
	}
	if v.TokenPack != int64(n.tokenPack) {
		return invalid(n.field+".token_pack", "%s.token_pack is %d; the call says %d", n.field, v.TokenPack, n.tokenPack)
	}
	for i, wanted := range n.extents {
		has := v.Shape[i]
		if n.repeats && v.Stride[i] == 0 && has >= 1 {
			continue
		}
		field := index(n.field+".shape", i)
		if wanted.exact && has != wanted.count {
			return invalid(field, "%s is %d; it must be %d, the %s", field, has, wanted.count, wanted.what)
		}
		if has < wanted.count {
			return invalid(field, "%s is %d; it must be at least %d, the %s", field, has, wanted.count, wanted.what)
		}
	}
	return nil
}

func maximum(a, b int64) int64 {
	if a > b {
		return a
	}
	return b
}
