package sluice_test

import (
	"math"
	"math/rand"
	"strings"
	"testing"

	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/hip"
)

// K and V in blocks: calls by Plan.Run and by Reference against the oracle, which gets their elements. Scales are powers
// of two, so that elements are exact in every type.

const groupOfTest = 64

// cache is K or V in one of the types of blocks.
type cache struct {
	q8            []sluice.BlockQ8_0
	q4            []sluice.BlockQ4_0
	pairs         []uint8
	scales, zeros []uint16 // Of groups.
	elements      []float64
}

func newCache(of sluice.DType, count int, random *rand.Rand) *cache {
	made := &cache{elements: make([]float64, count)}
	// Its bits, and its value.
	scale := func() (uint16, float64) {
		value := math.Ldexp(1, -3-random.Intn(3))
		if of == sluice.Q8_0 {
			value /= 16
		}
		return uint16(encode(sluice.F16, value)), value
	}
	switch of {
	case sluice.Q8_0:
		for first := 0; first < count; first += 32 {
			block := sluice.BlockQ8_0{}
			bits, value := scale()
			block.Scale = bits
			for i := range block.Numbers {
				block.Numbers[i] = int8(random.Intn(255) - 127)
				made.elements[first+i] = value * float64(block.Numbers[i])
			}
			made.q8 = append(made.q8, block)
		}
	case sluice.Q4_0:
		for first := 0; first < count; first += 32 {
			block := sluice.BlockQ4_0{}
			bits, value := scale()
			block.Scale = bits | 0x8000 // ggml's scales are often negative
			for i := range block.Numbers {
				block.Numbers[i] = uint8(random.Intn(256))
				made.elements[first+i] = -value * (float64(block.Numbers[i]&15) - 8)
				made.elements[first+16+i] = -value * (float64(block.Numbers[i]>>4) - 8)
			}
			made.q4 = append(made.q4, block)
		}
	case sluice.U4:
		for first := 0; first < count; first += groupOfTest {
			bits, value := scale()
			zero := 6.5 + float64(random.Intn(4))
			made.scales, made.zeros = append(made.scales, bits), append(made.zeros, uint16(encode(sluice.F16, zero)))
			for i := 0; i < groupOfTest; i += 2 {
				pair := uint8(random.Intn(256))
				made.pairs = append(made.pairs, pair)
				made.elements[first+i] = value * (float64(pair&15) - zero)
				made.elements[first+i+1] = value * (float64(pair>>4) - zero)
			}
		}
	}
	return made
}

// on puts a tensor of elements that are stored together into both memories.
func on[T interface {
	hip.Element
	sluice.HostElement
}](t *testing.T, device *hip.Runtime, values []T, view sluice.View) (sluice.HostTensor, sluice.Tensor) {
	if len(values) == 0 {
		return sluice.HostTensor{}, sluice.Tensor{}
	}
	made, err := onDevice(t, device, values).Tensor(0, view)
	check(t, err)
	return sluice.OnHost(values, view), made
}

func (c *cache) place(t *testing.T, device *hip.Runtime, view sluice.View) (sluice.HostTensor, sluice.Tensor) {
	switch view.Type {
	case sluice.Q8_0:
		return on(t, device, c.q8, view)
	case sluice.Q4_0:
		return on(t, device, c.q4, view)
	}
	return on(t, device, c.pairs, view)
}

func TestBlocks(t *testing.T) {
	context, device := emulated(t)
	const batch, qLen, kvLen, dim = 2, 2, 75, 128
	problem := func(q, of sluice.DType) sluice.Problem {
		return problemOf(q, 4, 2, dim, func(p *sluice.Problem) {
			p.KType, p.VType = of, of
			if of == sluice.U4 {
				p.KScaleKind, p.VScaleKind, p.ScaleGroup = sluice.ScalePerGroup, sluice.ScalePerGroup, groupOfTest
				p.Flags |= sluice.ZeroPoints
			}
		})
	}
	for n, p := range []sluice.Problem{problem(sluice.F16, sluice.Q8_0), problem(sluice.BF16, sluice.Q4_0),
		problem(sluice.F16, sluice.U4)} {
		p := p
		t.Run(p.KType.String(), func(t *testing.T) {
			random := rand.New(rand.NewSource(int64(n)))
			c := &runCase{problem: p, lengths: [][2]int{{qLen, kvLen}, {qLen, kvLen}}}
			sequences, f := randomSequences(c, random)
			each := kvLen * int(p.KVHeads) * dim
			k, v := newCache(p.KType, batch*each, random), newCache(p.KType, batch*each, random)
			for b := range sequences {
				sequences[b].k, sequences[b].v = k.elements[b*each:(b+1)*each], v.elements[b*each:(b+1)*each]
			}

			rows := [4]int64{batch, qLen, int64(p.QHeads), dim}
			keys := func(of sluice.DType, dim int64) sluice.View {
				return sluice.Contiguous(of, [4]int64{batch, kvLen, int64(p.KVHeads), dim})
			}
			q, o := newTensor(t, spaced(p.QType, rows)), newTensor(t, spaced(p.OType, rows))
			lse := newTensor(t, sluice.Contiguous(sluice.F32, [4]int64{batch, qLen, int64(p.QHeads), 1}))
			for b := range sequences {
				for i := 0; i < qLen; i++ {
					for h := 0; h < int(p.QHeads); h++ {
						for e := 0; e < dim; e++ {
							q.set(b, i, h, e, sequences[b].q[(i*int(p.QHeads)+h)*dim+e])
						}
					}
				}
			}
			made := &placed{o: o, lse: lse, row: func(b, i int) (int, int) { return b, i }}
			made.host = sluice.HostArgs{Batch: batch, QLen: qLen, KVLen: kvLen, Q: q.host(), O: o.host(), LSE: lse.host()}
			made.device = sluice.Args{Batch: batch, QLen: qLen, KVLen: kvLen, Q: q.device(t, device), O: o.device(t, device),
				LSE: lse.device(t, device)}
			made.host.K, made.device.K = k.place(t, device, keys(p.KType, dim))
			made.host.V, made.device.V = v.place(t, device, keys(p.KType, dim))
			groups := keys(sluice.F16, dim/groupOfTest)
			made.host.KScales, made.device.KScales = on(t, device, k.scales, groups)
			made.host.VScales, made.device.VScales = on(t, device, v.scales, groups)
			made.host.KZeros, made.device.KZeros = on(t, device, k.zeros, groups)
			made.host.VZeros, made.device.VZeros = on(t, device, v.zeros, groups)

			var expected [][]row
			for b := range sequences {
				var rows []row
				for i := 0; i < qLen; i++ {
					for h := 0; h < int(p.QHeads); h++ {
						rows = append(rows, attend(&p, &sequences[b], f, h, i))
					}
				}
				expected = append(expected, rows)
			}
			check(t, sluice.Reference(&p, &made.host))
			compare(t, "reference", c, made, o, lse, expected, func(b bounded) float64 { return b.reference })
			plan, err := context.NewPlan(&p)
			check(t, err)
			defer plan.Close()
			check(t, plan.Run(&made.device, nil))
			check(t, device.Synchronize(0))
			compare(t, "run", c, made, o.fromDevice(t), lse.fromDevice(t), expected,
				func(b bounded) float64 { return b.kernel })

			refused := func(field, part string, change func(host *sluice.HostArgs, args *sluice.Args)) {
				t.Helper()
				host, args := made.host, made.device
				change(&host, &args)
				for where, err := range map[string]error{"host": sluice.Reference(&p, &host), "device": plan.Run(&args, nil)} {
					e, ok := err.(*sluice.Error)
					if !ok || e.Field != field || !strings.Contains(e.Message, part) {
						t.Errorf("%s: %v; it should be of %s and say %q", where, err, field, part)
					}
				}
			}
			refused("k.stride[1]", "it must be a multiple of 32", func(host *sluice.HostArgs, args *sluice.Args) {
				args.K.Stride[1], host.K.Stride[1] = 248, 248
			})
			if p.KType != sluice.U4 {
				return
			}
			short := keys(sluice.F16, 1)
			refused("v_scales.shape[3]", "it must be at least 2, the groups of a row", func(host *sluice.HostArgs, args *sluice.Args) {
				args.VScales.View, host.VScales.View = short, short
			})
			refused("k_zeros.type", "the call says F16", func(host *sluice.HostArgs, args *sluice.Args) {
				args.KZeros.Type, host.KZeros.Type = sluice.BF16, sluice.BF16
			})
			refused("k_zeros.stride[1]", "that of the scales", func(host *sluice.HostArgs, args *sluice.Args) {
				args.KZeros.Stride[1], host.KZeros.Stride[1] = 2, 2
			})
			refused("v_zeros.data", "NULL", func(host *sluice.HostArgs, args *sluice.Args) {
				args.VZeros, host.VZeros = sluice.Tensor{}, sluice.HostTensor{}
			})
		})
	}
}

func TestWrongBlocks(t *testing.T) {
	context := target(t)
	for _, wrong := range []struct {
		field, part string
		change      func(p *sluice.Problem)
	}{
		{"head_dim_v", "is 120; it must be a multiple of 32 for q4_0", func(p *sluice.Problem) { p.HeadDimV = 120 }},
		{"k_scale_kind", "unless the type is u4", func(p *sluice.Problem) { p.KScaleKind = sluice.ScalePerGroup }},
		{"scale_group", "is 32; it must be 0 without scales per group", func(p *sluice.Problem) { p.ScaleGroup = 32 }},
		{"flags", "SLUICE_ZERO_POINTS", func(p *sluice.Problem) { p.Flags |= sluice.ZeroPoints }},
		{"v_scale_kind", "must be SLUICE_SCALE_PER_GROUP (5) for u4", func(p *sluice.Problem) { p.VType = sluice.U4 }},
	} {
		p := problemOf(sluice.F16, 4, 2, 128, func(p *sluice.Problem) { p.KType, p.VType = sluice.Q4_0, sluice.Q4_0 })
		wrong.change(&p)
		_, err := context.QuerySupport(&p)
		e, ok := err.(*sluice.Error)
		if !ok || e.Field != wrong.field || !strings.Contains(e.Message, wrong.part) {
			t.Errorf("%v; it should be of %s and say %q", err, wrong.field, wrong.part)
		}
	}
	// Slices are counted in blocks.
	row := sluice.Contiguous(sluice.F16, [4]int64{1, 1, 1, 64})
	in := make([]uint16, 64)
	p := sluice.Problem{QType: sluice.F16, KType: sluice.Q8_0, VType: sluice.Q8_0, OType: sluice.F16, QHeads: 1, KVHeads: 1,
		HeadDimQK: 64, HeadDimV: 64}
	blocks := sluice.Contiguous(sluice.Q8_0, [4]int64{1, 1, 1, 64})
	args := sluice.HostArgs{Batch: 1, QLen: 1, KVLen: 1, Q: sluice.OnHost(in, row), O: sluice.OnHost(in, row),
		K: sluice.OnHost(make([]sluice.BlockQ8_0, 2), blocks), V: sluice.OnHost(make([]sluice.BlockQ8_0, 1), blocks)}
	err := sluice.Reference(&p, &args)
	if err == nil || !strings.Contains(err.Error(), "v.data has 32 elements; shape and strides reach 64") {
		t.Error(err)
	}
	args.V = sluice.OnHost(make([]sluice.BlockQ4_0, 2), blocks)
	err = sluice.Reference(&p, &args)
	if err == nil || !strings.Contains(err.Error(), "v.type is Q8_0, which has 34 bytes, but the slice's elements have 18") {
		t.Error(err)
	}
}
