package sluice_test

import (
	"math"
	"testing"

	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/hip"
)

// One call of each kind on the emulated device and by the library's reference, against plain formulas in float64. Other
// tests of the library are about numbers: these are about arguments that arrive.

// toHalf is exact for multiples of 1/8 from -2 to 2.
func toHalf(value float64) uint16 {
	bits := math.Float64bits(value)
	if value == 0 {
		return 0
	}
	return uint16(bits>>63<<15 | (bits>>52&0x7ff-1023+15)<<10 | bits>>42&0x3ff)
}

func fromHalf(bits uint16) float64 {
	exponent, fraction := int(bits>>10&0x1f), float64(bits&0x3ff)
	value := math.Ldexp(fraction, -24)
	if exponent != 0 {
		value = math.Ldexp(fraction+1024, exponent-25)
	}
	if bits>>15 != 0 {
		return -value
	}
	return value
}

// numbers are multiples of 1/8 from -2 to 2, different for each seed.
func numbers(count int, seed uint32) ([]float64, []uint16) {
	values, halves := make([]float64, count), make([]uint16, count)
	for i := range values {
		seed = seed*1664525 + 1013904223
		values[i] = float64(seed>>16%33)/8 - 2
		halves[i] = toHalf(values[i])
	}
	return values, halves
}

const smokeQHeads, smokeKVHeads, smokeDim = 4, 2, 64

// attend is attention of the newest rows of one sequence: rows [row][head][dim], keys and values [key][head][dim].
func attend(q, k, v []float64, rows, keys int) (o, lse []float64) {
	for i := 0; i < rows; i++ {
		for h := 0; h < smokeQHeads; h++ {
			sum, mean := 0.0, make([]float64, smokeDim)
			for j := 0; j <= i+keys-rows; j++ {
				at, score := (j*smokeKVHeads+h/(smokeQHeads/smokeKVHeads))*smokeDim, 0.0
				for e := 0; e < smokeDim; e++ {
					score += q[(i*smokeQHeads+h)*smokeDim+e] * k[at+e] / math.Sqrt(smokeDim)
				}
				sum += math.Exp(score)
				for e := range mean {
					mean[e] += math.Exp(score) * v[at+e]
				}
			}
			for e := range mean {
				o = append(o, mean[e]/sum)
			}
			lse = append(lse, math.Log(sum))
		}
	}
	return o, lse
}

func near(t *testing.T, what string, got []uint16, wanted []float64) {
	t.Helper()
	for i := range wanted {
		if math.Abs(fromHalf(got[i])-wanted[i]) > 0.004 {
			t.Fatalf("%s: element %d is %v, not %v", what, i, fromHalf(got[i]), wanted[i])
		}
	}
}

func equal[T comparable](t *testing.T, what string, got, wanted []T) {
	t.Helper()
	for i := range wanted {
		if got[i] != wanted[i] {
			t.Fatalf("%s: element %d is %v, not %v", what, i, got[i], wanted[i])
		}
	}
}

// place is memory for the same call twice: on the device, and on the host for the reference.
type place struct {
	t      *testing.T
	device *hip.Runtime // nil: on the host
}

func both(t *testing.T, device *hip.Runtime, do func(p place)) {
	for name, at := range map[string]*hip.Runtime{"run": device, "reference": nil} {
		t.Run(name, func(t *testing.T) { do(place{t, at}) })
	}
}

// put copies values; `read` is what they have become.
func put[T sluice.Element](p place, values []T) (at sluice.DevicePointer, read func() []T) {
	if p.device == nil {
		made := sluice.OnHost(values)
		p.t.Cleanup(made.Free)
		return made.Pointer(), func() []T { return made.Values }
	}
	made := onDevice(p.t, p.device, values)
	return made.Pointer(), func() []T {
		got := make([]T, len(values))
		check(p.t, hip.Download(got, made, 0))
		return got
	}
}

func at[T sluice.Element](p place, values []T) sluice.DevicePointer {
	address, _ := put(p, values)
	return address
}

// attends makes a call and waits for it.
func (p place) attends(context *sluice.Context, attention *sluice.Attention, args *sluice.Args) {
	p.t.Helper()
	if p.device == nil {
		check(p.t, sluice.Reference(attention, args))
		return
	}
	plan, err := context.NewPlan(attention)
	check(p.t, err)
	defer plan.Close()
	check(p.t, plan.Run(args, nil))
	check(p.t, p.device.Synchronize(0))
}

func TestDense(t *testing.T) {
	context, device := emulated(t)
	both(t, device, func(p place) {
		const rows, keys = 5, 33
		q, qHalves := numbers(rows*smokeQHeads*smokeDim, 1)
		k, kHalves := numbers(keys*smokeKVHeads*smokeDim, 2)
		v, vHalves := numbers(keys*smokeKVHeads*smokeDim, 3)
		format := sluice.KVTensors(sluice.F16, smokeKVHeads, smokeDim)
		attention := sluice.Attention{QHeads: smokeQHeads, LSE: sluice.LSELN, Q: half, O: half, KV: &format,
			Mask: &sluice.Mask{Flags: sluice.MaskCausal}}
		oAt, o := put(p, make([]uint16, len(q)))
		lseAt, lse := put(p, make([]float32, rows*smokeQHeads))
		args := single(&format, rows, keys, sluice.BSHD(at(p, qHalves), rows, smokeQHeads, smokeDim),
			sluice.BSHD(at(p, kHalves), keys, smokeKVHeads, smokeDim), sluice.BSHD(at(p, vHalves), keys, smokeKVHeads, smokeDim),
			sluice.BSHD(oAt, rows, smokeQHeads, smokeDim))
		lseRows := sluice.BSHD(lseAt, rows, smokeQHeads, 1)
		args.LSE = &lseRows
		p.attends(context, &attention, &args)
		wantedO, wantedLSE := attend(q, k, v, rows, keys)
		near(t, "o", o(), wantedO)
		for i, got := range lse() {
			if math.Abs(float64(got)-wantedLSE[i]) > 0.001 {
				t.Fatalf("the LSE of row %d is %v, not %v", i, got, wantedLSE[i])
			}
		}
	})
}

// Two sequences whose keys are appended to pages out of order, and one new row of each that attends to them.
func TestPagedDecode(t *testing.T) {
	context, device := emulated(t)
	both(t, device, func(p place) {
		const pageSize, pages = 16, 5
		starts, table := []int32{0, 20, 57}, []int32{3, 0, -1, 4, 2, 1} // of 20 and 37 keys
		k, kHalves := numbers(57*smokeKVHeads*smokeDim, 4)
		v, vHalves := numbers(57*smokeKVHeads*smokeDim, 5)
		q, qHalves := numbers(2*smokeQHeads*smokeDim, 6)
		format := sluice.KVPages(sluice.F16, smokeKVHeads, smokeDim, pageSize)
		cache := func() sluice.Tensor {
			return sluice.BSHD(at(p, make([]uint16, pages*pageSize*smokeKVHeads*smokeDim)), pageSize, smokeKVHeads, smokeDim)
		}
		kv := sluice.KV{Format: &format, K: cache(), V: cache(), PageCount: pages}
		lengths := at(p, []int32{20, 37})
		appended := sluice.Append{SourceType: sluice.F16, Tokens: 57, K: sluice.Packed(at(p, kHalves), smokeKVHeads, smokeDim),
			V: sluice.Packed(at(p, vHalves), smokeKVHeads, smokeDim), KV: &kv, Batch: 2, Starts: at(p, starts), Lengths: lengths,
			Pages: sluice.Pages{Table: at(p, table), Stride: 3}}
		if p.device == nil {
			check(t, sluice.ReferenceAppend(&appended))
		} else {
			check(t, context.Append(&appended, nil))
		}
		oAt, o := put(p, make([]uint16, len(q)))
		p.attends(context, &sluice.Attention{QHeads: smokeQHeads, Q: half, O: half, KV: &format}, &sluice.Args{Batch: 2,
			Q: sluice.BSHD(at(p, qHalves), 1, smokeQHeads, smokeDim), O: sluice.BSHD(oAt, 1, smokeQHeads, smokeDim),
			Rows: sluice.Rows{MaxLen: 1}, Keys: []sluice.Keys{{KV: &kv, Rows: sluice.Rows{MaxLen: 37, Lengths: lengths},
				Pages: appended.Pages}}})
		row, key := smokeQHeads*smokeDim, smokeKVHeads*smokeDim
		first, _ := attend(q[:row], k[:20*key], v[:20*key], 1, 20)
		second, _ := attend(q[row:], k[20*key:], v[20*key:], 1, 37)
		near(t, "o", o(), append(first, second...))
	})
}

// Pages are copied to another cache, keys are gathered from there.
func TestCopyAndGather(t *testing.T) {
	context, device := emulated(t)
	both(t, device, func(p place) {
		const pageSize, pages, row = 16, 3, smokeKVHeads * smokeDim
		_, halves := numbers(pages*pageSize*row, 7)
		format := sluice.KVPages(sluice.F16, smokeKVHeads, smokeDim, pageSize)
		rows := sluice.KVTensors(sluice.F16, smokeKVHeads, smokeDim)
		cache := func(data sluice.DevicePointer) sluice.Tensor {
			return sluice.BSHD(data, pageSize, smokeKVHeads, smokeDim)
		}
		source, copied := cache(at(p, halves)), cache(at(p, make([]uint16, len(halves))))
		from := sluice.KV{Format: &format, K: source, V: source, PageCount: pages}
		to := sluice.KV{Format: &format, K: copied, V: cache(at(p, make([]uint16, len(halves)))), PageCount: pages}
		kAt, k := put(p, make([]uint16, 20*row))
		vAt, v := put(p, make([]uint16, 20*row))
		target := sluice.KV{Format: &rows, K: sluice.Packed(kAt, smokeKVHeads, smokeDim),
			V: sluice.Packed(vAt, smokeKVHeads, smokeDim)}
		pairs := sluice.Copy{Source: &from, Target: &to, Pairs: at(p, []int32{0, 2, 1, 0}), PairCount: 2}
		keys := sluice.Gather{Batch: 1, Source: &to, Pages: sluice.Pages{Table: at(p, []int32{2, 0}), Stride: 2},
			Lengths: at(p, []int32{21}), FirstKeys: at(p, []int32{1}), Target: &target, Starts: at(p, []int32{0, 20}), Tokens: 20}
		if p.device == nil {
			check(t, sluice.ReferenceCopy(&pairs))
			check(t, sluice.ReferenceGather(&keys))
		} else {
			check(t, context.Copy(&pairs, nil))
			check(t, context.Gather(&keys, nil))
			check(t, device.Synchronize(0))
		}
		equal(t, "k", k(), halves[row:21*row])
		equal(t, "v", v(), halves[row:21*row])
	})
}

// Two parts with the same weight, given by strides and by a list.
func TestMerge(t *testing.T) {
	context, device := emulated(t)
	p := place{t, device}
	const dim = 64
	_, halves := numbers(2*dim, 8)
	o, lse := at(p, halves), at(p, []float32{0, 0})
	for _, listed := range []bool{false, true} {
		resultAt, result := put(p, make([]uint16, dim))
		merge := sluice.Merge{Tokens: 1, Heads: 1, HeadDim: dim, LSEBase: sluice.LSELN, OFormat: half,
			O: sluice.Packed(resultAt, 1, dim), Parts: sluice.Parts{Type: sluice.F16, Count: 2, O: sluice.BSHD(o, 1, 1, dim), LSE: sluice.BSHD(lse, 1, 1, 1)}}
		if listed {
			merge.Parts.O, merge.Parts.LSE = sluice.Packed(0, 1, dim), sluice.Packed(0, 1, 1)
			merge.Parts.OList = []sluice.DevicePointer{o, o + 2*dim}
			merge.Parts.LSEList = []sluice.DevicePointer{lse, lse + 4}
		}
		check(t, context.Merge(&merge, nil))
		check(t, device.Synchronize(0))
		var wanted []float64
		for e := 0; e < dim; e++ {
			wanted = append(wanted, (fromHalf(halves[e])+fromHalf(halves[dim+e]))/2)
		}
		near(t, "merge", result(), wanted)
		if listed {
			merge.Parts.OList = merge.Parts.OList[:1]
			refused(t, context.Merge(&merge, nil), sluice.InvalidArgument, "parts.o_list", "1 elements")
		}
	}
}

// The structs of a run are in memory that runs reuse. Compilers before Go 1.20 allocate one closure.
func TestRunsReuseMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector drops memory that could be reused")
	}
	context, plan, right := rightRun(t)
	args := right()
	launch := sluice.Launch{}
	if made := testing.AllocsPerRun(50, func() { check(t, plan.Run(&args, &launch)) }); made > 1 {
		t.Errorf("a run makes %v allocations", made)
	}
	device, err := hip.Open(context)
	check(t, err)
	check(t, device.Synchronize(0))
}
