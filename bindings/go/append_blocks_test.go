package sluice_test

import (
	"math"
	"math/rand"
	"testing"

	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/hip"
)

// Appends into caches of blocks and groups: KVAppend and ReferenceAppend against the steps that the header describes, in
// float32. Rows are multiples of a power of two that make all steps exact, so that only one answer is right.

// blockRows are rows whose largest element of each 32 has a magnitude that the type divides exactly.
func blockRows(count int, largest float64, random *rand.Rand) []float64 {
	made := make([]float64, count)
	for i := range made {
		made[i] = float64(random.Intn(2*int(largest)+1)) - largest
		if i%32 == 7 {
			made[i] = -largest // -8 * scale for Q4_0
		}
		made[i] = math.Ldexp(made[i], -2-i/32%3)
	}
	return made
}

// storedQ8 and storedQ4 are the blocks of 32 elements.
func storedQ8(x []float64) sluice.BlockQ8_0 {
	scale := 0.0
	for _, value := range x {
		scale = math.Max(scale, math.Abs(value)/127)
	}
	block := sluice.BlockQ8_0{Scale: uint16(encode(sluice.F16, scale))}
	for i, value := range x {
		block.Numbers[i] = int8(math.Round(value / scale))
	}
	return block
}

func storedQ4(x []float64) sluice.BlockQ4_0 {
	scale := 0.0
	for _, value := range x {
		if math.Abs(value) > 8*math.Abs(scale) {
			scale = value / -8
		}
	}
	block := sluice.BlockQ4_0{Scale: uint16(encode(sluice.F16, scale))}
	for i, value := range x {
		number := uint8(math.Min(15, math.Floor(value/scale+8.5)))
		block.Numbers[i%16] |= number << (i / 16 * 4)
	}
	return block
}

// storedGroup is a group of U4: scale, zero, and its bytes.
func storedGroup(x []float64, zeros bool) (scale, zero float64, bytes []uint8) {
	low, high := x[0], x[0]
	for _, value := range x {
		low, high = math.Min(low, value), math.Max(high, value)
	}
	scale, zero = math.Max(-low, high)/7, 8
	if zeros {
		scale = (high - low) / 15
		zero = -low / scale
	}
	for i, value := range x {
		number := uint8(math.Max(0, math.Min(15, math.RoundToEven(value/scale+zero))))
		if i%2 == 0 {
			bytes = append(bytes, number)
		} else {
			bytes[i/2] |= number << 4
		}
	}
	return scale, zero, bytes
}

// blockCache is a cache of blocks of one type on both sides.
type blockCache[T interface {
	hip.Element
	sluice.HostElement
}] struct {
	host   []T
	memory *hip.Memory
}

func newBlockCache[T interface {
	hip.Element
	sluice.HostElement
}](t *testing.T, device *hip.Runtime, count int) *blockCache[T] {
	made := &blockCache[T]{host: make([]T, count)}
	made.memory = onDevice(t, device, made.host)
	return made
}

func (c *blockCache[T]) tensors(t *testing.T, view sluice.View) (sluice.HostTensor, sluice.Tensor) {
	device, err := c.memory.Tensor(0, view)
	check(t, err)
	return sluice.OnHost(c.host, view), device
}

// compare expects `each` values of every row at its slot, and zeros elsewhere, on both sides.
func (c *blockCache[T]) compare(t *testing.T, what string, each int, slots []int64, wanted func(row int) []T) {
	t.Helper()
	expected, found := make([]T, len(c.host)), make([]T, len(c.host))
	for row, slot := range slots {
		if slot >= 0 {
			copy(expected[int(slot)*each:], wanted(row))
		}
	}
	check(t, hip.Download(found, c.memory, 0))
	for i := range expected {
		if found[i] != expected[i] || c.host[i] != expected[i] {
			t.Fatalf("%s: %d is %v on the device and %v on the host, expected %v", what, i, found[i], c.host[i], expected[i])
		}
	}
}

func blocksOf[T any](x []float64, size int, of func(x []float64) T) []T {
	var made []T
	for first := 0; first < len(x); first += size {
		made = append(made, of(x[first:first+size]))
	}
	return made
}

func TestAppendIntoBlocks(t *testing.T) {
	const tokens, heads, dim, pages, size = 5, 2, 128, 3, 16
	slots := []int64{17, 0, -1, 47, 31}
	for _, c := range []struct {
		name    string
		of      sluice.DType
		largest float64
		group   int
		zeros   bool
	}{
		{"q8_0", sluice.Q8_0, 127, 0, false},
		{"q4_0", sluice.Q4_0, 8, 0, false},
		{"u4", sluice.U4, 7, 64, false},
		{"u4_zeros", sluice.U4, 15, 32, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			context, device := emulated(t)
			random := rand.New(rand.NewSource(7))
			view := sluice.Contiguous(sluice.F16, [4]int64{1, tokens, heads, dim})
			var values [2][]float64
			var rows [2]*tensor
			for side := range rows {
				values[side], rows[side] = blockRows(tokens*heads*dim, c.largest, random), newTensor(t, view)
				for i, value := range values[side] {
					if c.group == 64 { // its halves have one power of two
						value = math.Ldexp(value, i/32%3-i/64%3)
					}
					if c.zeros { // from 0 to 15 steps above the smallest
						value = math.Ldexp(float64(random.Intn(16)-5), -3)
						if i%32 < 2 {
							value = math.Ldexp(float64(i%32*15-5), -3)
						}
					}
					values[side][i] = value
					if value != 0 {
						rows[side].array.set(int64(i), encode(sluice.F16, value))
					} else {
						rows[side].array.set(int64(i), 0)
					}
				}
			}
			tokenValues := func(side, token int) []float64 { return values[side][token*heads*dim : (token+1)*heads*dim] }
			call := sluice.Append{SourceType: sluice.F16, CacheType: c.of, KVHeads: heads, HeadDimQK: dim, HeadDimV: dim,
				PageSize: size, Tokens: tokens, K: rows[0].device(t, device), V: rows[1].device(t, device),
				Slots: pointerTo(t, device, slots), ScaleGroup: int32(c.group)}
			host := sluice.HostAppend{SourceType: sluice.F16, CacheType: c.of, KVHeads: heads, HeadDimQK: dim, HeadDimV: dim,
				PageSize: size, Tokens: tokens, K: rows[0].host(), V: rows[1].host(), Slots: slots, ScaleGroup: call.ScaleGroup}
			cache := sluice.Contiguous(c.of, [4]int64{pages, size, heads, dim})
			count := pages * size * heads * dim
			run := func() {
				check(t, sluice.ReferenceAppend(&host))
				check(t, context.KVAppend(&call, nil))
				check(t, device.Synchronize(0))
			}
			switch c.of {
			case sluice.Q8_0:
				k, v := newBlockCache[sluice.BlockQ8_0](t, device, count/32), newBlockCache[sluice.BlockQ8_0](t, device, count/32)
				host.KCache, call.KCache = k.tensors(t, cache)
				host.VCache, call.VCache = v.tensors(t, cache)
				run()
				k.compare(t, "k", heads*dim/32, slots, func(row int) []sluice.BlockQ8_0 { return blocksOf(tokenValues(0, row), 32, storedQ8) })
				v.compare(t, "v", heads*dim/32, slots, func(row int) []sluice.BlockQ8_0 { return blocksOf(tokenValues(1, row), 32, storedQ8) })
			case sluice.Q4_0:
				k, v := newBlockCache[sluice.BlockQ4_0](t, device, count/32), newBlockCache[sluice.BlockQ4_0](t, device, count/32)
				host.KCache, call.KCache = k.tensors(t, cache)
				host.VCache, call.VCache = v.tensors(t, cache)
				run()
				k.compare(t, "k", heads*dim/32, slots, func(row int) []sluice.BlockQ4_0 { return blocksOf(tokenValues(0, row), 32, storedQ4) })
				v.compare(t, "v", heads*dim/32, slots, func(row int) []sluice.BlockQ4_0 { return blocksOf(tokenValues(1, row), 32, storedQ4) })
			default:
				groups := sluice.Contiguous(sluice.F16, [4]int64{pages, size, heads, int64(dim / c.group)})
				call.KScaleKind, call.VScaleKind = sluice.ScalePerGroup, sluice.ScalePerGroup
				host.KScaleKind, host.VScaleKind = call.KScaleKind, call.VScaleKind
				var bytes [2]*blockCache[uint8]
				var scales, zeros [2]*blockCache[uint16]
				for side := range bytes {
					bytes[side] = newBlockCache[uint8](t, device, count/2)
					scales[side] = newBlockCache[uint16](t, device, count/c.group)
					zeros[side] = newBlockCache[uint16](t, device, count/c.group)
				}
				host.KCache, call.KCache = bytes[0].tensors(t, cache)
				host.VCache, call.VCache = bytes[1].tensors(t, cache)
				host.KScales, call.KScales = scales[0].tensors(t, groups)
				host.VScales, call.VScales = scales[1].tensors(t, groups)
				if c.zeros {
					call.Flags, host.Flags = sluice.ZeroPoints, sluice.ZeroPoints
					host.KZeros, call.KZeros = zeros[0].tensors(t, groups)
					host.VZeros, call.VZeros = zeros[1].tensors(t, groups)
				}
				run()
				for side, name := range []string{"k", "v"} {
					side := side
					bytes[side].compare(t, name, heads*dim/2, slots, func(row int) []uint8 {
						var all []uint8
						for _, group := range blocksOf(tokenValues(side, row), c.group, func(x []float64) []uint8 {
							_, _, bytes := storedGroup(x, c.zeros)
							return bytes
						}) {
							all = append(all, group...)
						}
						return all
					})
					scales[side].compare(t, name+"_scales", heads*dim/c.group, slots, func(row int) []uint16 {
						return blocksOf(tokenValues(side, row), c.group, func(x []float64) uint16 {
							scale, _, _ := storedGroup(x, c.zeros)
							return uint16(encode(sluice.F16, scale))
						})
					})
					zeros[side].compare(t, name+"_zeros", heads*dim/c.group, slots, func(row int) []uint16 {
						return blocksOf(tokenValues(side, row), c.group, func(x []float64) uint16 {
							if _, zero, _ := storedGroup(x, c.zeros); c.zeros && zero != 0 {
								return uint16(encode(sluice.F16, zero))
							}
							return 0
						})
					})
				}
				refuse := func(field, part string, change func(of *sluice.HostAppend)) {
					t.Helper()
					wrong := host
					change(&wrong)
					refused(t, sluice.ReferenceAppend(&wrong), sluice.InvalidArgument, field, part)
				}
				refuse("scale_group", "48; it must be 32 or 64", func(of *sluice.HostAppend) { of.ScaleGroup = 48 })
				refuse("k_scales.shape[3]", "groups of a row", func(of *sluice.HostAppend) { of.KScales.Shape[3] = 1 })
				refuse("v_scales.type", "the call says F16", func(of *sluice.HostAppend) { of.VScales.Type = sluice.BF16 })
				if c.zeros {
					refuse("k_zeros.shape[1]", "page_size", func(of *sluice.HostAppend) { of.KZeros.Shape[1] = 15 })
					refuse("v_zeros.data", "NULL", func(of *sluice.HostAppend) { of.VZeros = sluice.HostTensor{} })
				}
			}
		})
	}
}
