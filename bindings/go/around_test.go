package sluice_test

import (
	"math"
	"math/rand"
	"testing"

	"sluice.dev/sluice"
	"sluice.dev/sluice/hip"
)

const appendHeads, appendDim, appendPage, appendPages = 2, 64, 16, 5

// appendTensors is new rows of K and V with a cache for each that is full of NaN.
func appendTensors(t *testing.T, device *hip.Runtime, tokens int, cache sluice.DType, random *rand.Rand) (k, v, kCache, vCache *tensor) {
	for _, rows := range []**tensor{&k, &v} {
		*rows = newTensor(t, sluice.Contiguous(sluice.F16, [4]int64{1, int64(tokens), appendHeads, appendDim}))
		for i := range (*rows).array.bits16 {
			(*rows).array.set(int64(i), encode(sluice.F16, exact(random)))
		}
	}
	shape := [4]int64{appendPages, appendPage, appendHeads, appendDim}
	return k, v, newTensor(t, sluice.Contiguous(cache, shape)), newTensor(t, sluice.Contiguous(cache, shape))
}

func appendOf(t *testing.T, device *hip.Runtime, tokens int, k, v, kCache, vCache *tensor) sluice.Append {
	return sluice.Append{SourceType: sluice.F16, CacheType: kCache.view.Type, KVHeads: appendHeads, HeadDimQK: appendDim,
		HeadDimV: appendDim, PageSize: appendPage, Tokens: int32(tokens),
		K: k.device(t, device), V: v.device(t, device), KCache: kCache.device(t, device), VCache: vCache.device(t, device)}
}

// compareCache expects row t of `rows` at slots[t], over `scale`, and NaN everywhere else.
func compareCache(t *testing.T, name string, cache, rows *tensor, slots []int64, scale float64) {
	t.Helper()
	has, expected := cache.fromDevice(t), map[int64]float64{}
	for row, slot := range slots {
		each(appendHeads, appendDim, func(h, e, at int) {
			if slot >= 0 {
				expected[has.at(int(slot/appendPage), int(slot%appendPage), h, e)] = rows.array.value(rows.at(0, row, h, e)) / scale
			}
		})
	}
	for at := int64(0); at < appendPages*appendPage*appendHeads*appendDim; at++ {
		wanted, written := expected[at]
		if got := has.array.value(at); written && got != wanted || !written && !math.IsNaN(got) {
			t.Fatalf("%s: element %d is %g, expected %g (written: %v)", name, at, got, wanted, written)
		}
	}
}

func TestAppendBySlots(t *testing.T) {
	context, device := emulated(t)
	random := rand.New(rand.NewSource(1))
	k, v, kCache, vCache := appendTensors(t, device, 4, sluice.F16, random)
	slots := []int64{7, -1, 79, 16}
	call := appendOf(t, device, 4, k, v, kCache, vCache)
	call.Slots = pointerTo(t, device, slots)
	check(t, context.KVAppend(&call, nil))
	check(t, device.Synchronize(0))
	compareCache(t, "k", kCache, k, slots, 1)
	compareCache(t, "v", vCache, v, slots, 1)
}

func TestAppendByTableToFP8(t *testing.T) {
	context, device := emulated(t)
	random := rand.New(rand.NewSource(2))
	k, v, kCache, vCache := appendTensors(t, device, 5, sluice.E4M3FNUZ, random)
	call := appendOf(t, device, 5, k, v, kCache, vCache)
	// Two sequences: 3 new rows of 18 keys in pages 4 and 1, and 2 of 2 in page 3.
	call.Batch, call.PageTableKind, call.PageTableStride = 2, sluice.PageTableBlock, 2
	call.Starts = pointerTo(t, device, []int32{0, 3, 5})
	call.KVLengths = pointerTo(t, device, []int32{18, 2})
	call.PageTable = pointerTo(t, device, []int32{4, 1, 3, 0})
	call.KScaleKind, call.VScaleKind = sluice.ScalePerTensor, sluice.ScalePerTensor
	call.KScale, call.VScale = pointerTo(t, device, []float32{2}), pointerTo(t, device, []float32{0.5})
	check(t, context.Preload(nil))
	check(t, context.KVAppend(&call, nil))
	check(t, device.Synchronize(0))
	slots := []int64{4*16 + 15, 1*16 + 0, 1*16 + 1, 3 * 16, 3*16 + 1}
	compareCache(t, "k", kCache, k, slots, 2)
	compareCache(t, "v", vCache, v, slots, 0.5)
}

func TestFieldsOfAppends(t *testing.T) {
	context, device := emulated(t)
	k, v, kCache, vCache := appendTensors(t, device, 4, sluice.F16, rand.New(rand.NewSource(1)))
	right := appendOf(t, device, 4, k, v, kCache, vCache)
	right.Slots = pointerTo(t, device, []int64{0, 1, 2, 3})
	for _, c := range []struct {
		field, value string
		code         sluice.Status
		change       func(a *sluice.Append)
	}{
		{"tokens", "0", sluice.InvalidArgument, func(a *sluice.Append) { a.Tokens = 0 }},
		{"rotary_dim", "3", sluice.InvalidArgument, func(a *sluice.Append) { a.RotaryDim = 3 }},
		{"k.data", "NULL", sluice.InvalidArgument, func(a *sluice.Append) { a.K = sluice.Tensor{} }},
		{"k.shape[1]", "4", sluice.InvalidArgument, func(a *sluice.Append) { a.Tokens = 5 }},
		{"k.shape[0]", "2", sluice.InvalidArgument, func(a *sluice.Append) { a.K.Shape[0] = 2 }},
		{"v.type", "F32", sluice.InvalidArgument, func(a *sluice.Append) { a.V.Type = sluice.F32 }},
		{"k_cache.shape[1]", "16", sluice.InvalidArgument, func(a *sluice.Append) { a.PageSize = 32 }},
		{"v_cache.shape[2]", "3", sluice.InvalidArgument, func(a *sluice.Append) { a.VCache.Shape[2] = 3 }},
		{"k_cache.pack", "0", sluice.InvalidArgument, func(a *sluice.Append) { a.KPack = 8 }},
		{"kv_lengths", "", sluice.InvalidArgument, func(a *sluice.Append) { a.KVLengths = 0x1000 }},
	} {
		call := right
		c.change(&call)
		refused(t, context.KVAppend(&call, nil), c.code, c.field, c.value)
	}
	refused(t, context.KVAppend(nil, nil), sluice.InvalidArgument, "append", "nil")
	check(t, context.KVAppend(&right, nil))
	check(t, device.Synchronize(0))
}

func TestMerge(t *testing.T) {
	context, device := emulated(t)
	const parts, tokens, heads, dim = 3, 4, 2, 64
	random := rand.New(rand.NewSource(3))
	partial := newTensor(t, sluice.Contiguous(sluice.F32, [4]int64{parts, tokens, heads, dim}))
	partialLSE := newTensor(t, sluice.Contiguous(sluice.F32, [4]int64{parts, tokens, heads, 1}))
	for _, made := range []*tensor{partial, partialLSE} {
		for i := range made.array.bits32 {
			made.array.bits32[i] = float32(exact(random))
		}
	}
	o := newTensor(t, sluice.Contiguous(sluice.F32, [4]int64{1, tokens, heads, dim}))
	lse := newTensor(t, sluice.Contiguous(sluice.F32, [4]int64{1, tokens, heads, 1}))
	sinks := []float32{0.5, -1}
	right := sluice.Merge{PartialType: sluice.F32, OType: sluice.F32, Parts: parts, Tokens: tokens, Heads: heads, HeadDimV: dim,
		Partial: partial.device(t, device), PartialLSE: partialLSE.device(t, device), O: o.device(t, device),
		LSE: lse.device(t, device), SinkLogits: pointerTo(t, device, sinks)}
	check(t, context.MergeStates(&right, nil))
	check(t, device.Synchronize(0))
	o, lse = o.fromDevice(t), lse.fromDevice(t)
	// Values are at most 2 and LSEs at most 4: a few roundings of a sum of four parts.
	const allowed = 64 * u
	for row := 0; row < tokens; row++ {
		for h := 0; h < heads; h++ {
			sum := math.Exp(float64(sinks[h]))
			for part := 0; part < parts; part++ {
				sum += math.Exp(partialLSE.array.value(partialLSE.at(part, row, h, 0)))
			}
			if got := lse.array.value(lse.at(0, row, h, 0)); !(math.Abs(got-math.Log(sum)) <= allowed) {
				t.Fatalf("lse of row %d, head %d is %g, not %g", row, h, got, math.Log(sum))
			}
			for e := 0; e < dim; e++ {
				wanted := 0.0
				for part := 0; part < parts; part++ {
					wanted += math.Exp(partialLSE.array.value(partialLSE.at(part, row, h, 0))) / sum * partial.array.value(partial.at(part, row, h, e))
				}
				if got := o.array.value(o.at(0, row, h, e)); !(math.Abs(got-wanted) <= allowed) {
					t.Fatalf("o of row %d, head %d, element %d is %g, not %g", row, h, e, got, wanted)
				}
			}
		}
	}

	for _, c := range []struct {
		field, value string
		change       func(m *sluice.Merge)
	}{
		{"parts", "0", func(m *sluice.Merge) { m.Parts = 0 }},
		{"partial.data", "NULL", func(m *sluice.Merge) { m.Partial = sluice.Tensor{} }},
		{"partial.shape[0]", "3", func(m *sluice.Merge) { m.Parts = 4 }},
		{"partial_lse.shape[3]", "2", func(m *sluice.Merge) { m.PartialLSE.Shape[3] = 2 }},
		{"o.type", "F32", func(m *sluice.Merge) { m.OType = sluice.F16 }},
		{"lse.shape[2]", "1", func(m *sluice.Merge) { m.LSE.Shape[2] = 1 }},
	} {
		call := right
		c.change(&call)
		refused(t, context.MergeStates(&call, nil), sluice.InvalidArgument, c.field, c.value)
	}
	refused(t, context.MergeStates(nil, nil), sluice.InvalidArgument, "merge", "nil")
}
