package main

import "math"

// Device memory holds Q, K, V and O as IEEE binary16, a type that Go does not have.

func fromHalf(half uint16) float32 {
	sign := uint32(half&0x8000) << 16
	exponent, fraction := uint32(half>>10&0x1f), uint32(half&0x3ff)
	switch exponent {
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	case 0:
		return float32(math.Copysign(math.Ldexp(float64(fraction), -24), 1-2*float64(half>>15)))
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// toHalf rounds to nearest, ties to even; too large values become infinity.
func toHalf(value float32) uint16 {
	sign := uint16(math.Float32bits(value) >> 16 & 0x8000)
	magnitude := math.Abs(float64(value))
	switch {
	case math.IsNaN(magnitude):
		return sign | 0x7e00
	case magnitude >= 65520:
		return sign | 0x7c00
	case magnitude == 0:
		return sign
	}
	// One unit in the last place of the result; below 2^-14 halves are spaced evenly.
	_, exponent := math.Frexp(magnitude)
	unit := exponent - 11
	if unit < -24 {
		unit = -24
	}
	units := int(math.RoundToEven(math.Ldexp(magnitude, -unit)))
	// units is the fraction with its leading one; adding it to the exponent field carries if it rounds up.
	return sign | uint16((unit+24)<<10+units)
}
