package sluice_test

import (
	"math"
	"math/rand"

	sluice "github.com/sluice-attention/sluice/bindings/go"
)

// Numbers of tensors, by type: the tests' numbers are exact in every type, so that storing them does not round.

// decode is the value of an element's bits.
func decode(dtype sluice.DType, bits uint32) float64 {
	switch dtype {
	case sluice.F32:
		return float64(math.Float32frombits(bits))
	case sluice.BF16:
		return float64(math.Float32frombits(bits << 16))
	case sluice.F16:
		return small(bits, 5, 10, 15, true)
	case sluice.E4M3FNUZ:
		if bits == 0x80 {
			return math.NaN()
		}
		return small(bits, 4, 3, 8, false)
	}
	panic(dtype)
}

func small(bits uint32, exponentBits, fractionBits uint, bias int, infinities bool) float64 {
	fraction := bits & (1<<fractionBits - 1)
	exponent := bits >> fractionBits & (1<<exponentBits - 1)
	value := math.Ldexp(float64(fraction), 1-bias-int(fractionBits))
	if exponent != 0 {
		value = math.Ldexp(float64(fraction|1<<fractionBits), int(exponent)-bias-int(fractionBits))
	}
	if infinities && exponent == 1<<exponentBits-1 {
		value = math.Inf(1)
		if fraction != 0 {
			value = math.NaN()
		}
	}
	if bits>>(exponentBits+fractionBits)&1 != 0 {
		value = -value
	}
	return value
}

// exact has three significant bits and is between -2 and 2.
func exact(random *rand.Rand) float64 {
	value := float64(8+random.Intn(8)) / 8 / float64(int(1)<<random.Intn(4))
	if random.Intn(2) == 0 {
		return -value
	}
	return value
}

// encode finds the bits of an exact number.
func encode(dtype sluice.DType, value float64) uint32 {
	switch dtype {
	case sluice.F32:
		return math.Float32bits(float32(value))
	case sluice.BF16:
		return math.Float32bits(float32(value)) >> 16
	}
	sign := uint32(0)
	if math.Signbit(value) {
		sign = 1
	}
	fraction, exponent := math.Frexp(math.Abs(value))
	switch dtype {
	case sluice.F16:
		return sign<<15 | uint32(exponent+14)<<10 | uint32(math.Ldexp(fraction*2-1, 10))
	case sluice.E4M3FNUZ:
		return sign<<7 | uint32(exponent+7)<<3 | uint32(math.Ldexp(fraction*2-1, 3))
	}
	panic(dtype)
}

// array is elements of a type, as host and device have them.
type array struct {
	dtype  sluice.DType
	bits8  []uint8
	bits16 []uint16
	bits32 []float32
}

// newArray is full of NaN, which shows when a call reads an element that it must not read.
func newArray(dtype sluice.DType, count int64) *array {
	a := &array{dtype: dtype}
	switch dtype.Size() {
	case 1:
		a.bits8 = make([]uint8, count)
	case 2:
		a.bits16 = make([]uint16, count)
	default:
		a.bits32 = make([]float32, count)
	}
	nan := map[sluice.DType]uint32{sluice.F16: 0x7e00, sluice.BF16: 0x7fc0, sluice.F32: 0x7fc00000, sluice.E4M3FNUZ: 0x80}
	for i := int64(0); i < count; i++ {
		a.set(i, nan[dtype])
	}
	return a
}

// length is the number of elements.
func (a *array) length() int64 { return int64(len(a.bits8) + len(a.bits16) + len(a.bits32)) }

func (a *array) set(i int64, bits uint32) {
	switch a.dtype.Size() {
	case 1:
		a.bits8[i] = uint8(bits)
	case 2:
		a.bits16[i] = uint16(bits)
	default:
		a.bits32[i] = math.Float32frombits(bits)
	}
}

func (a *array) value(i int64) float64 {
	switch a.dtype.Size() {
	case 1:
		return decode(a.dtype, uint32(a.bits8[i]))
	case 2:
		return decode(a.dtype, uint32(a.bits16[i]))
	default:
		return float64(a.bits32[i])
	}
}

func (a *array) onHost(view sluice.View) sluice.HostTensor {
	switch a.dtype.Size() {
	case 1:
		return sluice.OnHost(a.bits8, view)
	case 2:
		return sluice.OnHost(a.bits16, view)
	default:
		return sluice.OnHost(a.bits32, view)
	}
}
