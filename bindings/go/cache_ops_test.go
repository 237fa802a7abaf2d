package sluice_test

import (
	"math"
	"math/rand"
	"testing"

	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/hip"
)

const appendHeads, appendDim, appendPage, appendPages = 2, 64, 16, 5

// appendTensors are new rows of K and V, with a cache full of NaN for each.
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

// V by columns: all tokens of a page are neighbours, or those of a pack are.
func TestAppendByColumns(t *testing.T) {
	const column, page = appendPage, appendPage * appendDim // elements of a column, and of a page of a head
	context, device := emulated(t)
	for _, c := range []struct {
		name      string
		vPack     int32
		stride    [4]int64
		tokenPack int64
	}{
		{"pages", sluice.VPackAll, [4]int64{appendHeads * page, 1, page, column}, 0},
		{"packs", 8, [4]int64{appendHeads * page, 8 * appendDim, page, 8}, 8},
	} {
		k, v, kCache, vCache := appendTensors(t, device, 4, sluice.F16, rand.New(rand.NewSource(5)))
		vCache.view.Stride, vCache.view.TokenPack = c.stride, c.tokenPack
		call := appendOf(t, device, 4, k, v, kCache, vCache)
		slots := []int64{7, -1, 79, 16}
		call.VPack, call.Slots = c.vPack, pointerTo(t, device, slots)
		check(t, context.KVAppend(&call, nil))
		check(t, device.Synchronize(0))
		compareCache(t, "v in "+c.name, vCache, v, slots, 1)

		host, _, vHost := hostAppend(t, &call, k, v)
		host.VCache.Stride, host.VCache.TokenPack = c.stride, c.tokenPack
		host.VPack, host.Slots = c.vPack, slots
		check(t, sluice.ReferenceAppend(&host))
		compareCaches(t, "v in "+c.name, vCache, vHost)
	}
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
		{"tokens", "-1", sluice.InvalidArgument, func(a *sluice.Append) { a.Tokens = -1 }},
		{"rotary_dim", "3", sluice.InvalidArgument, func(a *sluice.Append) { a.RotaryDim = 3 }},
		{"k.data", "NULL", sluice.InvalidArgument, func(a *sluice.Append) { a.K = sluice.Tensor{} }},
		{"k.shape[1]", "4", sluice.InvalidArgument, func(a *sluice.Append) { a.Tokens = 5 }},
		{"k.shape[0]", "2", sluice.InvalidArgument, func(a *sluice.Append) { a.K.Shape[0] = 2 }},
		{"v.type", "F32", sluice.InvalidArgument, func(a *sluice.Append) { a.V.Type = sluice.F32 }},
		{"k_cache.shape[1]", "16", sluice.InvalidArgument, func(a *sluice.Append) { a.PageSize = 32 }},
		{"v_cache.shape[2]", "3", sluice.InvalidArgument, func(a *sluice.Append) { a.VCache.Shape[2] = 3 }},
		{"k_cache.pack", "0", sluice.InvalidArgument, func(a *sluice.Append) { a.KPack = 8 }},
		{"v_cache.token_pack", "0", sluice.InvalidArgument, func(a *sluice.Append) { a.VPack = 8 }},
		{"v_cache.token_pack", "8", sluice.InvalidArgument, func(a *sluice.Append) { a.VCache.TokenPack = 8 }},
		{"v_cache.token_pack", "8", sluice.InvalidArgument, func(a *sluice.Append) { a.VPack, a.VCache.TokenPack = sluice.VPackAll, 8 }},
		{"v_cache.stride[1]", "must be 1", sluice.InvalidArgument, func(a *sluice.Append) { a.VPack = sluice.VPackAll }},
		{"v_pack", "4", sluice.InvalidArgument, func(a *sluice.Append) { a.VPack, a.VCache.TokenPack = 4, 4 }},
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

// hostAppend is the call in slices, with separate caches full of NaN like those of the device.
func hostAppend(t *testing.T, call *sluice.Append, k, v *tensor) (host sluice.HostAppend, kCache, vCache *tensor) {
	shape := [4]int64{appendPages, appendPage, appendHeads, appendDim}
	kCache, vCache = newTensor(t, sluice.Contiguous(call.CacheType, shape)), newTensor(t, sluice.Contiguous(call.CacheType, shape))
	return sluice.HostAppend{SourceType: call.SourceType, CacheType: call.CacheType, KVHeads: call.KVHeads,
		HeadDimQK: call.HeadDimQK, HeadDimV: call.HeadDimV, PageSize: call.PageSize, PageTableKind: call.PageTableKind,
		KScaleKind: call.KScaleKind, VScaleKind: call.VScaleKind, Tokens: call.Tokens, Batch: call.Batch,
		RotaryDim: call.RotaryDim, RotaryStyle: call.RotaryStyle, PageTableStride: call.PageTableStride,
		RotaryStride: call.RotaryStride, K: k.host(), V: v.host(), KCache: kCache.host(), VCache: vCache.host()}, kCache, vCache
}

// compareCaches expects the same in the cache of the device as in that of the host.
func compareCaches(t *testing.T, name string, device, host *tensor) {
	t.Helper()
	has := device.fromDevice(t)
	for at := int64(0); at < appendPages*appendPage*appendHeads*appendDim; at++ {
		got, wanted := has.array.value(at), host.array.value(at)
		if got != wanted && !(math.IsNaN(got) && math.IsNaN(wanted)) {
			t.Fatalf("%s: element %d is %g on the device and %g on the host", name, at, got, wanted)
		}
	}
}

func TestReferenceAppend(t *testing.T) {
	context, device := emulated(t)
	random := rand.New(rand.NewSource(4))
	k, v, kCache, vCache := appendTensors(t, device, 4, sluice.F16, random)
	call := appendOf(t, device, 4, k, v, kCache, vCache)
	// Quarter turns, which are exact: cosines and sines of four pairs.
	turns := []float32{1, 0, -1, 0, 0, 1, 0, -1, 0, 1, 0, -1, 1, 0, -1, 0, 7}
	call.RotaryDim, call.RotaryStyle, call.RotaryStride = 8, sluice.RotaryPairs, 8
	slots, positions := []int64{7, -1, 79, 16}, []int32{1, 0, 0, 1}
	call.Slots, call.Positions = pointerTo(t, device, slots), pointerTo(t, device, positions)
	call.Rotary = pointerTo(t, device, turns)
	check(t, context.KVAppend(&call, nil))
	check(t, device.Synchronize(0))
	host, kHost, vHost := hostAppend(t, &call, k, v)
	host.Slots, host.Positions, host.Rotary = slots, positions, turns
	check(t, sluice.ReferenceAppend(&host))
	compareCaches(t, "k by slots", kCache, kHost)
	compareCaches(t, "v by slots", vCache, vHost)
	compareCache(t, "v", vCache, v, slots, 1)

	// Two sequences: 3 new rows of 18 keys in pages 4 and 1, and 1 of 2 in page 3.
	k, v, kCache, vCache = appendTensors(t, device, 4, sluice.E4M3FNUZ, random)
	call = appendOf(t, device, 4, k, v, kCache, vCache)
	starts, lengths, table, pageStarts := []int32{0, 3, 4}, []int32{18, 2}, []int64{4, 1, 3}, []int32{0, 2, 3}
	kScale, vScale := []float32{2, 0.5}, []float32{0.5}
	call.Batch, call.PageTableKind, call.Flags = 2, sluice.PageTableCSR, sluice.PageIndex64
	call.Starts, call.KVLengths = pointerTo(t, device, starts), pointerTo(t, device, lengths)
	call.PageTable, call.PageStarts = pointerTo(t, device, table), pointerTo(t, device, pageStarts)
	call.KScaleKind, call.VScaleKind = sluice.ScalePerHead, sluice.ScalePerTensor
	call.KScale, call.VScale = pointerTo(t, device, kScale), pointerTo(t, device, vScale)
	check(t, context.KVAppend(&call, nil))
	check(t, device.Synchronize(0))
	host, kHost, vHost = hostAppend(t, &call, k, v)
	host.Flags, host.Starts, host.KVLengths, host.PageTable64, host.PageStarts = call.Flags, starts, lengths, table, pageStarts
	host.KScale, host.VScale = kScale, vScale
	check(t, sluice.ReferenceAppend(&host))
	compareCaches(t, "k by table", kCache, kHost)
	compareCaches(t, "v by table", vCache, vHost)
	compareCache(t, "v", vCache, v, []int64{4*16 + 15, 1*16 + 0, 1*16 + 1, 3*16 + 1}, 0.5)
}

// A layer's step on the host is that on the device: Q in place, norms, tails, and tables in two slices.
func TestReferenceStep(t *testing.T) {
	const qHeads, tail, body = 3, 16, appendDim - 16
	context, device := emulated(t)
	random := rand.New(rand.NewSource(6))
	_, v, kCache, vCache := appendTensors(t, device, 4, sluice.F16, random)
	rows := func(heads, dim int64) *tensor {
		made := newTensor(t, sluice.Contiguous(sluice.F16, [4]int64{1, 4, heads, dim}))
		for i := range made.array.bits16 {
			made.array.set(int64(i), encode(sluice.F16, exact(random)))
		}
		return made
	}
	k, q, kTail := rows(appendHeads, body), rows(qHeads, appendDim), rows(appendHeads, tail)
	numbers := func(count int) []float32 {
		made := make([]float32, count)
		for i := range made {
			made[i] = 2*random.Float32() - 1
		}
		return made
	}
	cosines, sines, qNorm, kNorm := numbers(4*tail/2), numbers(4*tail/2), numbers(body), numbers(body)
	slots, positions := []int64{7, -1, 79, 16}, []int32{3, 2, 0, 1}

	call := appendOf(t, device, 4, k, v, kCache, vCache)
	call.Slots, call.Positions = pointerTo(t, device, slots), pointerTo(t, device, positions)
	call.RotaryDim, call.RotaryFirst, call.RotaryStride, call.RotaryType = tail, body, tail/2, sluice.F32
	call.Rotary, call.RotarySin = pointerTo(t, device, cosines), pointerTo(t, device, sines)
	call.QHeads, call.TailDim, call.NormEpsilon, call.NormType = qHeads, tail, 1e-5, sluice.F32
	call.Q, call.KTail = q.device(t, device), kTail.device(t, device)
	call.QOut = call.Q
	call.QNorm, call.KNorm = pointerTo(t, device, qNorm), pointerTo(t, device, kNorm)
	check(t, context.KVAppend(&call, nil))
	check(t, device.Synchronize(0))

	host, kHost, vHost := hostAppend(t, &call, k, v)
	host.Slots, host.Positions, host.Rotary, host.RotarySin = slots, positions, cosines, sines
	host.RotaryFirst, host.RotaryType, host.QHeads, host.TailDim = body, sluice.F32, qHeads, tail
	host.NormEpsilon, host.NormType, host.QNorm, host.KNorm = 1e-5, sluice.F32, qNorm, kNorm
	host.Q, host.QOut, host.KTail = q.host(), q.host(), kTail.host()
	refusals := []struct {
		field, value string
		change       func(a *sluice.HostAppend)
	}{
		{"rotary_sin", "7", func(a *sluice.HostAppend) { a.RotarySin = sines[:7] }},
		{"positions[0]", "position 3 of rotary_sin", func(a *sluice.HostAppend) { a.RotarySin = sines[1:] }},
		{"positions[0]", "position 3 of rotary,", func(a *sluice.HostAppend) { a.Rotary = cosines[1:] }},
		// A row of Q without a slot is rotated all the same.
		{"positions[1]", "position 4 of rotary", func(a *sluice.HostAppend) { a.Positions = []int32{3, 4, 0, 1} }},
		{"q_norm", "47", func(a *sluice.HostAppend) { a.QNorm = qNorm[1:] }},
		{"k_norm", "47", func(a *sluice.HostAppend) { a.KNorm = kNorm[1:] }},
		{"norm_type", "HostAppend", func(a *sluice.HostAppend) { a.NormType = 0 }},
		{"rotary_type", "HostAppend", func(a *sluice.HostAppend) { a.RotaryType = sluice.BF16 }},
		{"q.shape[2]", "3", func(a *sluice.HostAppend) { a.QHeads = 4 }},
		{"q.shape[3]", "48", func(a *sluice.HostAppend) { a.QTail = a.KTail }},
		{"k_tail.shape[3]", "16", func(a *sluice.HostAppend) { a.KTail = a.K }},
	}
	for _, c := range refusals {
		wrong := host
		c.change(&wrong)
		refused(t, sluice.ReferenceAppend(&wrong), sluice.InvalidArgument, c.field, c.value)
	}
	check(t, sluice.ReferenceAppend(&host))
	compareNear(t, "k", kCache, kHost)
	compareCaches(t, "v", vCache, vHost)
	compareNear(t, "q", q, q)
}

// Tables and weights of 16 bits, in slices of their bits.
func TestReferenceStepOf16Bits(t *testing.T) {
	context, device := emulated(t)
	random := rand.New(rand.NewSource(7))
	k, v, kCache, vCache := appendTensors(t, device, 4, sluice.F16, random)
	bits := func(count int) []uint16 {
		made := make([]uint16, count)
		for i := range made {
			made[i] = uint16(encode(sluice.F16, exact(random)))
		}
		return made
	}
	cosines, sines, kNorm := bits(3*8), bits(3*8), bits(appendDim)
	slots, positions := []int64{7, -1, 79, 16}, []int32{2, 0, 0, 1}
	call := appendOf(t, device, 4, k, v, kCache, vCache)
	call.Slots, call.Positions = pointerTo(t, device, slots), pointerTo(t, device, positions)
	call.RotaryDim, call.RotaryStride, call.RotaryType = 16, 8, sluice.F16
	call.Rotary, call.RotarySin = pointerTo(t, device, cosines), pointerTo(t, device, sines)
	call.NormEpsilon, call.KNorm = 1e-5, pointerTo(t, device, kNorm)
	check(t, context.KVAppend(&call, nil))
	check(t, device.Synchronize(0))

	host, kHost, vHost := hostAppend(t, &call, k, v)
	host.Slots, host.Positions, host.Rotary16, host.RotarySin16, host.RotaryType = slots, positions, cosines, sines, sluice.F16
	host.NormEpsilon, host.KNorm16 = 1e-5, kNorm
	for _, c := range []struct {
		field, value string
		change       func(a *sluice.HostAppend)
	}{
		{"rotary_type", "F32", func(a *sluice.HostAppend) { a.RotaryType = sluice.F32 }},
		{"rotary_type", "F16", func(a *sluice.HostAppend) { a.Rotary, a.Rotary16 = make([]float32, 24), nil }},
		{"norm_type", "F32", func(a *sluice.HostAppend) { a.NormType = sluice.F32 }},
		{"norm_type", "F16", func(a *sluice.HostAppend) { a.NormType, a.QNorm = sluice.F16, make([]float32, 64) }},
		{"k_norm", "63", func(a *sluice.HostAppend) { a.KNorm16 = kNorm[1:] }},
		{"positions[0]", "position 2 of rotary,", func(a *sluice.HostAppend) { a.Rotary16 = cosines[1:] }},
		{"positions[0]", "position 2 of rotary_sin", func(a *sluice.HostAppend) { a.RotarySin16 = sines[1:] }},
	} {
		wrong := host
		c.change(&wrong)
		refused(t, sluice.ReferenceAppend(&wrong), sluice.InvalidArgument, c.field, c.value)
	}
	check(t, sluice.ReferenceAppend(&host))
	compareNear(t, "k", kCache, kHost)
	compareCaches(t, "v", vCache, vHost)
}

// compareNear expects the same on the device, which norms and rotates in F32, up to a rounding.
func compareNear(t *testing.T, name string, device, host *tensor) {
	t.Helper()
	has := device.fromDevice(t)
	for at := range has.array.bits16 {
		got, wanted := has.array.value(int64(at)), host.array.value(int64(at))
		if !(math.Abs(got-wanted) <= 1e-3*math.Abs(wanted)+1e-6) && !(math.IsNaN(got) && math.IsNaN(wanted)) {
			t.Fatalf("%s: element %d is %g on the device and %g on the host", name, at, got, wanted)
		}
	}
}

// Contents of slices that an append refuses, storing nothing.
func TestContentsOfHostAppends(t *testing.T) {
	const none = 0xffff // a NaN that no append writes
	kCache, vCache := make([]uint16, 4*16*8), make([]uint16, 3*16*8)
	for _, cache := range [][]uint16{kCache, vCache} {
		for i := range cache {
			cache[i] = none
		}
	}
	stored := func() (count int) {
		for _, cache := range [][]uint16{kCache, vCache} {
			for i := range cache {
				if cache[i] != none {
					cache[i] = none
					count++
				}
			}
		}
		return count
	}
	rows := sluice.OnHost(make([]uint16, 6*8), sluice.Contiguous(sluice.F16, [4]int64{1, 6, 1, 8}))
	slots := sluice.HostAppend{SourceType: sluice.F16, CacheType: sluice.F16, KVHeads: 1, HeadDimQK: 8, HeadDimV: 8,
		PageSize: 16, Tokens: 6, K: rows, V: rows, Slots: []int64{0, 1, -5, 47, 2, 3},
		KCache: sluice.OnHost(kCache, sluice.Contiguous(sluice.F16, [4]int64{4, 16, 1, 8})),
		VCache: sluice.OnHost(vCache, sluice.Contiguous(sluice.F16, [4]int64{3, 16, 1, 8}))}
	block := slots // The new row of the first sequence is in page 1, those of the second in page 2.
	block.Slots, block.Batch, block.Starts, block.KVLengths = nil, 2, []int32{1, 2, 5}, []int32{17, 19}
	block.PageTableKind, block.PageTable, block.PageTableStride = sluice.PageTableBlock, []int32{0, 1, 77, 3, 2}, 3
	csr := block
	csr.PageTableKind, csr.PageTable, csr.PageTableStride, csr.PageStarts = sluice.PageTableCSR, []int32{0, 1, 2, 2}, 0, []int32{0, 2, 4}
	rotated := block
	rotated.Rotary, rotated.RotaryDim, rotated.RotaryStride = make([]float32, 19*4), 4, 4
	rotatedSlots := slots
	rotatedSlots.Rotary, rotatedSlots.RotaryDim, rotatedSlots.RotaryStride = rotated.Rotary, 4, 4
	rotatedSlots.Positions = []int32{0, 1, 99, 18, 0, 1} // row 2 has no slot
	still := rotated
	still.Rotary, still.RotaryStride = rotated.Rotary[:4], 0
	positioned := rotated
	positioned.Positions = []int32{99, 18, 0, 1, 18, 99} // rows 0 and 5 are of no sequence
	columns := slots
	columns.VPack, columns.VCache.Stride = sluice.VPackAll, [4]int64{128, 1, 128, 16}
	packs := slots
	packs.VPack, packs.VCache.TokenPack, packs.VCache.Stride = 8, 8, [4]int64{128, 64, 128, 8}
	empty := block
	empty.Starts, empty.KVLengths, empty.PageTable = []int32{1, 2, 2}, []int32{17, math.MaxInt32}, block.PageTable[:2]
	for i, right := range []sluice.HostAppend{slots, block, csr, rotated, rotatedSlots, still, positioned, columns, packs, empty} {
		if err := sluice.ReferenceAppend(&right); err != nil || stored() == 0 {
			t.Fatalf("append %d: %v", i, err)
		}
	}
	for _, c := range []struct {
		right        *sluice.HostAppend
		field, value string
		change       func(a *sluice.HostAppend)
	}{
		{&slots, "tokens", "-1", func(a *sluice.HostAppend) { a.Tokens = -1 }},
		{&slots, "batch", "1", func(a *sluice.HostAppend) { a.Batch = 1 }},
		{&slots, "k.data", "NULL", func(a *sluice.HostAppend) { a.K = sluice.HostTensor{} }},
		{&slots, "v_cache.data", "NULL", func(a *sluice.HostAppend) { a.VCache = sluice.HostTensor{} }},
		{&slots, "v_cache.data", "384", func(a *sluice.HostAppend) { a.VCache.Shape[0] = 4 }},
		{&columns, "v_cache.data", "391", func(a *sluice.HostAppend) { a.VCache.Stride[3] = 17 }},
		{&columns, "v_cache.shape[1]", "8", func(a *sluice.HostAppend) { a.VCache.Shape[1] = 8 }},
		{&columns, "v_cache.token_pack", "0", func(a *sluice.HostAppend) { a.VPack = 8 }},
		{&packs, "v_cache.data", "448", func(a *sluice.HostAppend) { a.VCache.Stride[1] = 128 }},
		{&packs, "v_cache.shape[1]", "8", func(a *sluice.HostAppend) { a.VCache.Shape[1] = 8 }},
		{&packs, "v_cache.token_pack", "8", func(a *sluice.HostAppend) { a.VPack = 16 }},
		{&packs, "v_cache.token_pack", "8", func(a *sluice.HostAppend) { a.VPack = sluice.VPackAll }},
		{&slots, "k.shape[1]", "7", func(a *sluice.HostAppend) { a.Tokens = 7 }},
		{&slots, "k_cache.type", "2 bytes", func(a *sluice.HostAppend) { a.KCache = sluice.OnHost(make([]uint8, 4096), a.KCache.View) }},
		{&slots, "slots", "5", func(a *sluice.HostAppend) { a.Slots = a.Slots[:5] }},
		{&slots, "slots", "NULL", func(a *sluice.HostAppend) { a.Slots = nil }},
		{&slots, "slots[3]", "page_count, which is 3", func(a *sluice.HostAppend) { a.Slots = []int64{0, 1, 2, 48, 3, 4} }},
		{&slots, "slots[5]", "page_count, which is 3", func(a *sluice.HostAppend) { a.Slots = []int64{0, 1, 2, 4, 3, math.MaxInt64} }},
		{&block, "batch", "-1", func(a *sluice.HostAppend) { a.Batch = -1 }},
		{&block, "starts", "2", func(a *sluice.HostAppend) { a.Starts = a.Starts[:2] }},
		{&block, "starts[2]", "7", func(a *sluice.HostAppend) { a.Starts = []int32{1, 2, 7} }},
		{&block, "starts[2]", "decrease", func(a *sluice.HostAppend) { a.Starts = []int32{1, 2, 1} }},
		{&block, "starts[0]", "-1", func(a *sluice.HostAppend) { a.Starts = []int32{-1, 2, 5} }},
		{&block, "kv_lengths", "1", func(a *sluice.HostAppend) { a.KVLengths = a.KVLengths[:1] }},
		{&block, "kv_lengths[1]", "2", func(a *sluice.HostAppend) { a.KVLengths = []int32{17, 2} }},
		{&block, "page_table", "4", func(a *sluice.HostAppend) { a.PageTable = a.PageTable[:4] }},
		{&block, "page_table", "entries", func(a *sluice.HostAppend) { a.PageTableStride = math.MaxInt64 }},
		{&block, "page_table_stride", "-1", func(a *sluice.HostAppend) { a.PageTableStride = -1 }},
		{&block, "page_table", "NULL", func(a *sluice.HostAppend) { a.PageTable = nil }},
		{&block, "page_table", "64", func(a *sluice.HostAppend) { a.PageTable, a.PageTable64 = nil, []int64{0, 1, 0, 3, 2} }},
		{&block, "page_table", "32", func(a *sluice.HostAppend) { a.Flags = sluice.PageIndex64 }},
		{&block, "page_table[1]", "page_count, which is 3", func(a *sluice.HostAppend) { a.PageTable = []int32{0, 3, 0, 0, 2} }},
		{&block, "page_table[1]", "-1", func(a *sluice.HostAppend) { a.PageTable = []int32{0, -1, 0, 0, 2} }},
		{&csr, "page_table", "3", func(a *sluice.HostAppend) { a.PageTable = a.PageTable[:3] }},
		{&csr, "page_table", "-1", func(a *sluice.HostAppend) { a.PageStarts = []int32{-1, 2, 4} }},
		{&csr, "page_starts[1]", "2 pages", func(a *sluice.HostAppend) { a.PageStarts = []int32{0, 1, 3} }},
		{&csr, "page_starts", "2", func(a *sluice.HostAppend) { a.PageStarts = a.PageStarts[:2] }},
		{&csr, "page_starts", "NULL", func(a *sluice.HostAppend) { a.PageStarts = nil }},
		{&rotated, "kv_lengths[1]", "position 18", func(a *sluice.HostAppend) { a.Rotary = a.Rotary[:75] }},
		{&rotated, "rotary", "3", func(a *sluice.HostAppend) { a.Rotary = a.Rotary[:3] }},
		{&rotated, "rotary_stride", "-4", func(a *sluice.HostAppend) { a.RotaryStride = -4 }},
		{&rotated, "kv_lengths[0]", "position 16", func(a *sluice.HostAppend) { a.RotaryStride = math.MaxInt64 }},
		{&positioned, "positions[4]", "position 19", func(a *sluice.HostAppend) { a.Positions = []int32{0, 0, 0, 0, 19, 0} }},
		{&positioned, "positions[1]", "-1", func(a *sluice.HostAppend) { a.Positions = []int32{0, -1, 0, 0, 0, 0} }},
		{&positioned, "positions", "5", func(a *sluice.HostAppend) { a.Positions = a.Positions[:5] }},
		{&rotatedSlots, "positions[3]", "position 19", func(a *sluice.HostAppend) { a.Positions = []int32{0, 1, 99, 19, 0, 1} }},
		{&rotatedSlots, "positions", "NULL", func(a *sluice.HostAppend) { a.Positions = nil }},
		{&csr, "k_scale", "1", func(a *sluice.HostAppend) { // refused before the errors in its other fields
			a.KVHeads, a.KScaleKind, a.KScale = 2, sluice.ScalePerHead, []float32{1}
			for _, tensor := range []*sluice.HostTensor{&a.K, &a.V, &a.KCache, &a.VCache} {
				tensor.Shape[2], tensor.Stride[2] = 2, 0
			}
		}},
	} {
		call := *c.right
		c.change(&call)
		refused(t, sluice.ReferenceAppend(&call), sluice.InvalidArgument, c.field, c.value)
		if count := stored(); count != 0 {
			t.Errorf("%s: %d elements are stored", c.field, count)
		}
	}
	refused(t, sluice.ReferenceAppend(nil), sluice.InvalidArgument, "append", "nil")
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

// Two parts in buffers of their own, the second of them empty, as FlashAttention says it, for all rows but the first.
func TestMergeOfParts(t *testing.T) {
	context, device := emulated(t)
	const tokens, heads, dim = 4, 2, 8
	inf := float32(math.Inf(1))
	rows := func(value float32) sluice.DevicePointer {
		values := make([]float32, tokens*heads*dim)
		for i := range values {
			values[i] = value
		}
		return pointerTo(t, device, values)
	}
	// Two sequences of two tokens: [sequence][head][token].
	first := pointerTo(t, device, []float32{0, 0, 0, 0, 0, 0, 0, 0})
	second := pointerTo(t, device, []float32{0, inf, inf, inf, inf, inf, inf, inf})
	o := newTensor(t, sluice.Contiguous(sluice.F32, [4]int64{1, tokens, heads, dim}))
	part := sluice.Contiguous(sluice.F32, [4]int64{2, tokens, heads, dim})
	part.Stride[0] = 0
	lses := sluice.View{Type: sluice.F32, Shape: [4]int64{2, 2, heads, 1}, Stride: [4]int64{0, 1, 2, 1}}
	call := sluice.Merge{Flags: sluice.MergeInfinityIsEmpty, PartialType: sluice.F32, OType: sluice.F32, Parts: 2,
		Tokens: tokens, Heads: heads, HeadDimV: dim, Partial: sluice.Tensor{View: part}, PartialLSE: sluice.Tensor{View: lses},
		O: o.device(t, device), PartialList: []sluice.DevicePointer{rows(1), rows(3)},
		PartialLSEList: []sluice.DevicePointer{first, second}, SequenceTokens: 2, PartialLSESequenceStride: 4}
	check(t, context.MergeStates(&call, nil))
	check(t, device.Synchronize(0))
	o = o.fromDevice(t)
	for row := 0; row < tokens; row++ {
		for h := 0; h < heads; h++ {
			wanted := 1.0
			if row == 0 && h == 0 {
				wanted = 2
			}
			if got := o.array.value(o.at(0, row, h, 0)); math.Abs(got-wanted) > 8*u {
				t.Errorf("o of row %d, head %d is %g, not %g", row, h, got, wanted)
			}
		}
	}
	// The same in FP8, over 1/4.
	narrow := newTensor(t, sluice.Contiguous(sluice.E4M3FNUZ, [4]int64{1, tokens, heads, dim}))
	call.OType, call.O, call.OScaleKind = sluice.E4M3FNUZ, narrow.device(t, device), sluice.ScalePerTensor
	call.OScale = pointerTo(t, device, []float32{0.25})
	check(t, context.MergeStates(&call, nil))
	check(t, device.Synchronize(0))
	narrow = narrow.fromDevice(t)
	for row, wanted := range []float64{8, 4} {
		if got := narrow.array.value(narrow.at(0, row, 0, 0)); got != wanted {
			t.Errorf("o of row %d is %g, not %g", row, got, wanted)
		}
	}
	call.PartialLSEList = call.PartialLSEList[:1]
	refused(t, context.MergeStates(&call, nil), sluice.InvalidArgument, "partial_lse_list", "1")
}

// A page is forked, and its keys gathered.
func TestPagesAndKeys(t *testing.T) {
	context, device := emulated(t)
	const pages, size, dim = 3, 4, 8
	cache := newTensor(t, sluice.Contiguous(sluice.F32, [4]int64{pages, size, 1, dim}))
	for i := range cache.array.bits32 {
		cache.array.bits32[i] = float32(i / dim)
	}
	there := cache.device(t, device)
	copied := sluice.PageCopy{Flags: sluice.VInK, SourceType: sluice.F32, TargetType: sluice.F32, KVHeads: 1, HeadDimQK: dim,
		PageSize: size, KSource: there, KTarget: there, Pairs: pointerTo(t, device, []int32{0, 2, 1, pages}), PairCount: 2}
	check(t, context.KVCopy(&copied, nil)) // the second pair leads out of the cache, and is skipped
	out := newTensor(t, sluice.Contiguous(sluice.F32, [4]int64{1, 5, 1, dim}))
	gathered := sluice.Gather{Flags: sluice.VInK, CacheType: sluice.F32, OutType: sluice.F32, KVHeads: 1, HeadDimQK: dim,
		PageSize: size, PageTableKind: sluice.PageTableBlock, PageTableStride: 2, Batch: 1, Tokens: 5, KCache: there,
		KOut: out.device(t, device), OutStarts: pointerTo(t, device, []int32{0, 5}), KVLengths: pointerTo(t, device, []int32{7}),
		FirstKeys: pointerTo(t, device, []int32{2}), PageTable: pointerTo(t, device, []int32{2, pages})}
	check(t, context.KVGather(&gathered, nil))
	check(t, device.Synchronize(0))
	out = out.fromDevice(t)
	for row, wanted := range []float64{2, 3, 0, 0, 0} { // of the copy of page 0, and of a page that does not exist
		if got := out.array.value(out.at(0, row, 0, 0)); got != wanted {
			t.Errorf("row %d is %g, not %g", row, got, wanted)
		}
	}
	copied.KTarget.Shape[1] = 5
	refused(t, context.KVCopy(&copied, nil), sluice.InvalidArgument, "k_target.shape[1]", "5")
	gathered.OutType = sluice.F16
	refused(t, context.KVGather(&gathered, nil), sluice.InvalidArgument, "k_out.type", "F32")
	refused(t, context.KVCopy(nil, nil), sluice.InvalidArgument, "copy", "nil")
	refused(t, context.KVGather(nil, nil), sluice.InvalidArgument, "gather", "nil")
}

// The same on the host: pages by their numbers of both widths, FP8 with scales, and slices that are too short.
func TestReferenceOfPagesAndKeys(t *testing.T) {
	const pages, size, heads, dim = 3, 4, 2, 16
	shape := [4]int64{pages, size, heads, dim}
	source := newTensor(t, sluice.Contiguous(sluice.BF16, shape))
	random := rand.New(rand.NewSource(5))
	for i := int64(0); i < source.array.length(); i++ {
		source.array.set(i, encode(sluice.BF16, exact(random)))
	}
	target := newTensor(t, sluice.Contiguous(sluice.E4M3FNUZ, shape))
	right := sluice.HostPageCopy{Flags: sluice.VInK, SourceType: sluice.BF16, TargetType: sluice.E4M3FNUZ, KVHeads: heads,
		HeadDimQK: dim, PageSize: size, KScaleKind: sluice.ScalePerHead, KScale: []float32{0.5, 2}, KSource: source.host(),
		KTarget: target.host(), Pairs: []int32{0, 2, -1, 1}, PairCount: 2}
	check(t, sluice.ReferenceCopy(&right))
	wide := right
	wide.Flags |= sluice.PageIndex64
	wide.Pairs, wide.Pairs64, wide.PairCount = nil, []int64{2, 0}, 1
	check(t, sluice.ReferenceCopy(&wide))
	value := func(page, row, head, e int) float64 {
		return source.array.value(source.at(page, row, head, e)) / float64(right.KScale[head])
	}
	for row := 0; row < size; row++ {
		for h := 0; h < heads; h++ {
			for e := 0; e < dim; e++ {
				is := func(page int) float64 { return target.array.value(target.at(page, row, h, e)) }
				if is(2) != value(0, row, h, e) || is(0) != value(2, row, h, e) || !math.IsNaN(is(1)) {
					t.Fatalf("row %d, head %d, element %d is %g, %g and %g", row, h, e, is(0), is(1), is(2))
				}
			}
		}
	}

	// Keys 2 to 6 of a sequence in pages 2 and 0, as rows 1 to 5.
	out := newTensor(t, sluice.Contiguous(sluice.BF16, [4]int64{1, 6, heads, dim}))
	keys := sluice.HostGather{Flags: sluice.VInK, CacheType: sluice.E4M3FNUZ, OutType: sluice.BF16, KVHeads: heads,
		HeadDimQK: dim, PageSize: size, PageTableKind: sluice.PageTableCSR, KScaleKind: sluice.ScalePerHead,
		KScale: right.KScale, Batch: 1, Tokens: 6, KCache: target.host(), KOut: out.host(), OutStarts: []int32{1, 6},
		KVLengths: []int32{7}, FirstKeys: []int32{2}, PageTable: []int32{-1, 2, 0}, PageStarts: []int32{1, 3}}
	check(t, sluice.ReferenceGather(&keys))
	for key := 2; key < 7; key++ {
		from := 0 // what has become page 2
		if key >= size {
			from = 2
		}
		for h := 0; h < heads; h++ {
			for e := 0; e < dim; e++ {
				if is, wanted := out.array.value(out.at(0, key-1, h, e)), value(from, key%size, h, e)*float64(right.KScale[h]); is != wanted {
					t.Fatalf("key %d, head %d, element %d is %g, not %g", key, h, e, is, wanted)
				}
			}
		}
	}
	if !math.IsNaN(out.array.value(0)) {
		t.Error("a row before the first is written")
	}

	for _, c := range []struct {
		field, part string
		change      func(p *sluice.HostPageCopy)
	}{
		{"pairs", "has 4 elements; it must have 6", func(p *sluice.HostPageCopy) { p.PairCount = 3 }},
		{"pairs", "SLUICE_PAGE_INDEX_64", func(p *sluice.HostPageCopy) { p.Flags |= sluice.PageIndex64 }},
		{"pairs[3]", "3", func(p *sluice.HostPageCopy) { p.Pairs = []int32{0, 2, 1, pages} }},
		{"pair_count", "-1", func(p *sluice.HostPageCopy) { p.PairCount = -1 }},
		{"k_scale", "has 1", func(p *sluice.HostPageCopy) { p.KScale = []float32{1} }},
		{"k_target.type", "BF16", func(p *sluice.HostPageCopy) { p.KTarget = p.KSource }},
		{"k_source.data", "has 32 elements", func(p *sluice.HostPageCopy) {
			p.KSource = sluice.OnHost(make([]uint16, 32), source.view)
		}},
	} {
		call := right
		c.change(&call)
		refused(t, sluice.ReferenceCopy(&call), sluice.InvalidArgument, c.field, c.part)
	}
	refused(t, sluice.ReferenceCopy(nil), sluice.InvalidArgument, "copy", "nil")
	for _, c := range []struct {
		field, part string
		change      func(g *sluice.HostGather)
	}{
		{"out_starts", "batch + 1", func(g *sluice.HostGather) { g.OutStarts = g.OutStarts[:1] }},
		{"kv_lengths", "batch", func(g *sluice.HostGather) { g.Batch, g.OutStarts = 2, []int32{1, 3, 6} }},
		{"page_table", "needs 3 from entry 1 on", func(g *sluice.HostGather) { g.KVLengths = []int32{9} }},
		{"page_table[2]", "3", func(g *sluice.HostGather) { g.PageTable = []int32{-1, 2, pages} }},
		{"page_starts", "batch + 1", func(g *sluice.HostGather) { g.PageStarts = g.PageStarts[:1] }},
		{"k_out.shape[1]", "tokens", func(g *sluice.HostGather) { g.Tokens = 7 }},
	} {
		call := keys
		c.change(&call)
		refused(t, sluice.ReferenceGather(&call), sluice.InvalidArgument, c.field, c.part)
	}
	refused(t, sluice.ReferenceGather(nil), sluice.InvalidArgument, "gather", "nil")
}
