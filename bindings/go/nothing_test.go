package sluice_test

import (
	"math"
	"testing"

	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/hip"
)

// Calls with nothing to do, and numbers that mean nothing: neither is an error. What a length or a scale of 0 says.

const (
	nothingHeads = 2
	nothingDim   = 64
	untouched    = 7
)

// upload is memory with these values, also without any, for one test.
func upload[T hip.Element](t *testing.T, device *hip.Runtime, values []T) *hip.Memory {
	t.Helper()
	memory, err := hip.NewMemory(device, values)
	check(t, err)
	t.Cleanup(func() { check(t, memory.Free()) })
	return memory
}

func viewed(t *testing.T, memory *hip.Memory, view sluice.View) sluice.Tensor {
	t.Helper()
	made, err := memory.Tensor(0, view)
	check(t, err)
	return made
}

func filled(count int64, value float32) []float32 {
	made := make([]float32, count)
	for i := range made {
		made[i] = value
	}
	return made
}

func product(shape [4]int64) int64 { return shape[0] * shape[1] * shape[2] * shape[3] }

// halves are numbers from 0.5 to 1 as F16, which differ from each other.
func halves(count int64) []uint16 {
	made := make([]uint16, count)
	for i := range made {
		made[i] = 0x3800 + uint16(i*37%1024)
	}
	return made
}

func nothingProblem(change func(p *sluice.Problem)) sluice.Problem {
	return problemOf(sluice.F16, 2*nothingHeads, nothingHeads, nothingDim, func(p *sluice.Problem) {
		p.OType = sluice.F32
		if change != nil {
			change(p)
		}
	})
}

// attendDense is O and LSE of a dense call, on the device and on the host.
func attendDense(t *testing.T, flags sluice.ArgsFlags, batch, rows, keys int64) (o, lse [2][]float32) {
	t.Helper()
	context, device := emulated(t)
	p := nothingProblem(nil)
	rowsShape := func(dim int64) [4]int64 { return [4]int64{batch, rows, 2 * nothingHeads, dim} }
	q, k := sluice.Contiguous(sluice.F16, rowsShape(nothingDim)), sluice.Contiguous(sluice.F16, [4]int64{batch, keys, nothingHeads, nothingDim})
	oView, lseView := sluice.Contiguous(sluice.F32, rowsShape(nothingDim)), sluice.Contiguous(sluice.F32, rowsShape(1))
	values := halves(product(q.Shape) + product(k.Shape))
	for i := range o {
		o[i], lse[i] = filled(product(oView.Shape), untouched), filled(product(lseView.Shape), untouched)
	}
	qMemory, kMemory := upload(t, device, values[:product(q.Shape)]), upload(t, device, values[:product(k.Shape)])
	oMemory, lseMemory := upload(t, device, o[0]), upload(t, device, lse[0])
	plan, err := context.NewPlan(&p)
	check(t, err)
	defer plan.Close()
	args := sluice.Args{Flags: flags, Batch: int32(batch), QLen: int32(rows), KVLen: int32(keys), Q: viewed(t, qMemory, q),
		K: viewed(t, kMemory, k), V: viewed(t, kMemory, k), O: viewed(t, oMemory, oView), LSE: viewed(t, lseMemory, lseView)}
	check(t, plan.Run(&args, nil))
	check(t, device.Synchronize(0))
	check(t, hip.Download(o[0], oMemory, 0))
	check(t, hip.Download(lse[0], lseMemory, 0))
	host := sluice.HostArgs{Flags: flags, Batch: int32(batch), QLen: int32(rows), KVLen: int32(keys),
		Q: sluice.OnHost(values[:product(q.Shape)], q), K: sluice.OnHost(values[:product(k.Shape)], k),
		V: sluice.OnHost(values[:product(k.Shape)], k), O: sluice.OnHost(o[1], oView), LSE: sluice.OnHost(lse[1], lseView)}
	check(t, sluice.Reference(&p, &host))
	return o, lse
}

func expectEmptyRows(t *testing.T, o, lse []float32) {
	t.Helper()
	for i := range o {
		if o[i] != 0 {
			t.Fatalf("element %d of O is %v, not 0", i, o[i])
		}
	}
	for i := range lse {
		if !math.IsInf(float64(lse[i]), -1) {
			t.Fatalf("LSE %d is %v, not -Inf", i, lse[i])
		}
	}
}

func TestCallsWithoutRowsOrKeys(t *testing.T) {
	for _, of := range [][3]int64{{2, 0, 5}, {0, 3, 5}, {0, 0, 0}, {2, 3, 0}} {
		o, lse := attendDense(t, sluice.ExactLengths, of[0], of[1], of[2])
		for i := range o {
			expectEmptyRows(t, o[i], lse[i])
		}
	}
}

func TestExactScale(t *testing.T) {
	const keys = 21
	values := halves(keys * nothingHeads * nothingDim)
	o, lse := attendDense(t, sluice.ExactScale, 1, 3, keys)
	for n := range o {
		for i, got := range o[n] {
			mean := 0.0
			for j := 0; j < keys; j++ {
				mean += decode(sluice.F16, uint32(values[(j*nothingHeads+i/nothingDim%(2*nothingHeads)/2)*nothingDim+i%nothingDim])) / keys
			}
			// P is 1; sums of 21 products below 1, and a quotient, in F32.
			if math.Abs(float64(got)-mean) > 1.0/(1<<20) {
				t.Fatalf("element %d is %v, not %v", i, got, mean)
			}
		}
		for _, got := range lse[n] {
			if math.Abs(float64(got)-math.Log(keys)) > 1e-5 {
				t.Fatalf("LSE is %v, not %v", got, math.Log(keys))
			}
		}
	}
	if scaled, _ := attendDense(t, 0, 1, 3, keys); scaled[0][0] == o[0][0] {
		t.Error("a scale of 0 without the flag is not the default")
	}
}

// Rows of sequences that are packed, in tensors without rows: all starts are limited to 0.
func TestEmptyPackedTensors(t *testing.T) {
	context, device := emulated(t)
	p := nothingProblem(func(p *sluice.Problem) { p.Mode = sluice.ModeRagged })
	plan, err := context.NewPlan(&p)
	check(t, err)
	defer plan.Close()
	values, starts, none := halves(3*2*nothingHeads*nothingDim), []int32{0, 1, 3}, []int32{0, 0, 0}
	memory, startsMemory, noneMemory := upload(t, device, values), upload(t, device, starts), upload(t, device, none)
	for _, of := range [][2]int64{{0, 3}, {3, 0}, {0, 0}} {
		rowsShape := func(dim int64) [4]int64 { return [4]int64{1, of[0], 2 * nothingHeads, dim} }
		q, k := sluice.Contiguous(sluice.F16, rowsShape(nothingDim)), sluice.Contiguous(sluice.F16, [4]int64{1, of[1], nothingHeads, nothingDim})
		oView, lseView := sluice.Contiguous(sluice.F32, rowsShape(nothingDim)), sluice.Contiguous(sluice.F32, rowsShape(1))
		o, lse := filled(product(oView.Shape), untouched), filled(product(lseView.Shape), untouched)
		oMemory, lseMemory := upload(t, device, o), upload(t, device, lse)
		args := sluice.Args{Batch: 2, QLen: 2, KVLen: 2, Q: viewed(t, memory, q), K: viewed(t, memory, k), V: viewed(t, memory, k),
			O: viewed(t, oMemory, oView), LSE: viewed(t, lseMemory, lseView), QStarts: noneMemory.Pointer(), KVStarts: noneMemory.Pointer()}
		host := sluice.HostArgs{Batch: 2, QLen: 2, KVLen: 2, Q: sluice.OnHost(values[:product(q.Shape)], q),
			K: sluice.OnHost(values[:product(k.Shape)], k), V: sluice.OnHost(values[:product(k.Shape)], k),
			O: sluice.OnHost(o, oView), LSE: sluice.OnHost(lse, lseView), QStarts: none, KVStarts: none}
		if of[0] != 0 {
			args.QStarts, host.QStarts = startsMemory.Pointer(), starts
		}
		if of[1] != 0 {
			args.KVStarts, host.KVStarts = startsMemory.Pointer(), starts
		}
		check(t, sluice.Reference(&p, &host))
		expectEmptyRows(t, o, lse)
		check(t, plan.Run(&args, nil))
		check(t, device.Synchronize(0))
		check(t, hip.Download(o, oMemory, 0))
		check(t, hip.Download(lse, lseMemory, 0))
		expectEmptyRows(t, o, lse)
		// A length that is not given is still refused.
		args.QLen, args.KVLen = 0, 0
		refused(t, plan.Run(&args, nil), sluice.InvalidArgument, "q_len", "0")
	}
}

func TestPagedCallsWithoutKeysNeedNoPages(t *testing.T) {
	context, device := emulated(t)
	p := nothingProblem(func(p *sluice.Problem) { paged(p, sluice.PageTableBlock, 16) })
	plan, err := context.NewPlan(&p)
	check(t, err)
	defer plan.Close()
	rows := sluice.Contiguous(sluice.F16, [4]int64{2, 1, 2 * nothingHeads, nothingDim})
	o, lse := filled(product(rows.Shape), untouched), filled(2*2*nothingHeads, untouched)
	oMemory, lseMemory := upload(t, device, o), upload(t, device, lse)
	pages := sluice.Tensor{View: sluice.Contiguous(sluice.F16, [4]int64{0, 16, nothingHeads, nothingDim})}
	args := sluice.Args{Flags: sluice.ExactLengths, Batch: 2, QLen: 1, Q: viewed(t, upload(t, device, halves(product(rows.Shape))), rows),
		K: pages, V: pages, O: viewed(t, oMemory, sluice.Contiguous(sluice.F32, rows.Shape)),
		LSE: viewed(t, lseMemory, sluice.Contiguous(sluice.F32, [4]int64{2, 1, 2 * nothingHeads, 1})), KVLengths: pointerTo(t, device, []int32{0, 0})}
	check(t, plan.Run(&args, nil))
	check(t, device.Synchronize(0))
	check(t, hip.Download(o, oMemory, 0))
	check(t, hip.Download(lse, lseMemory, 0))
	expectEmptyRows(t, o, lse)
	args.KVLen = 1
	refused(t, plan.Run(&args, nil), sluice.InvalidArgument, "k.shape[0]", "0")
}

func TestCacheOperationsOnNothing(t *testing.T) {
	context, device := emulated(t)
	values := halves(16 * nothingHeads * nothingDim)
	expect := func(what string, memory *hip.Memory, onHost []uint16) {
		t.Helper()
		got := make([]uint16, len(values))
		check(t, device.Synchronize(0))
		check(t, hip.Download(got, memory, 0))
		for i := range got {
			if got[i] != values[i] || onHost[i] != values[i] {
				t.Fatalf("%s has changed element %d", what, i)
			}
		}
	}
	rowsOf := func(tokens int64) sluice.View {
		return sluice.Contiguous(sluice.F16, [4]int64{1, tokens, nothingHeads, nothingDim})
	}
	pagesOf := func(pages int64) sluice.View {
		return sluice.Contiguous(sluice.F16, [4]int64{pages, 16, nothingHeads, nothingDim})
	}
	source, starts := upload(t, device, values), upload(t, device, []int32{0, 0, 0})
	for _, pages := range []int64{0, 1} {
		for _, tokens := range []int64{0, 3} {
			cache, onHost := upload(t, device, values), append([]uint16(nil), values...)
			call := sluice.Append{Flags: sluice.VInK, SourceType: sluice.F16, CacheType: sluice.F16, KVHeads: nothingHeads,
				HeadDimQK: nothingDim, PageSize: 16, PageTableKind: sluice.PageTableBlock, Tokens: int32(tokens),
				K: viewed(t, source, rowsOf(tokens)), KCache: viewed(t, cache, pagesOf(pages)), Starts: starts.Pointer()}
			check(t, context.KVAppend(&call, nil))
			host := sluice.HostAppend{Flags: call.Flags, SourceType: call.SourceType, CacheType: call.CacheType,
				KVHeads: call.KVHeads, HeadDimQK: call.HeadDimQK, PageSize: 16, PageTableKind: call.PageTableKind,
				Tokens: call.Tokens, K: sluice.OnHost(values, rowsOf(tokens)), KCache: sluice.OnHost(onHost, pagesOf(pages)),
				Starts: []int32{0}}
			check(t, sluice.ReferenceAppend(&host))
			expect("an append", cache, onHost)
		}
		target, onHost := upload(t, device, values), append([]uint16(nil), values...)
		none := upload(t, device, []int32{})
		pageCopy := sluice.PageCopy{Flags: sluice.VInK, SourceType: sluice.F16, TargetType: sluice.F16, KVHeads: nothingHeads,
			HeadDimQK: nothingDim, PageSize: 16, KSource: viewed(t, upload(t, device, make([]uint16, len(values))), pagesOf(pages)),
			KTarget: viewed(t, target, pagesOf(pages)), Pairs: none.Pointer()}
		check(t, context.KVCopy(&pageCopy, nil))
		host := sluice.HostPageCopy{Flags: sluice.VInK, SourceType: sluice.F16, TargetType: sluice.F16, KVHeads: nothingHeads,
			HeadDimQK: nothingDim, PageSize: 16, KSource: sluice.OnHost(make([]uint16, len(values)), pagesOf(pages)),
			KTarget: sluice.OnHost(onHost, pagesOf(pages)), Pairs: []int32{}}
		check(t, sluice.ReferenceCopy(&host))
		expect("a copy of no pairs", target, onHost)
		for _, of := range [][2]int64{{2, 0}, {0, 3}} {
			gather := sluice.Gather{Flags: sluice.VInK, CacheType: sluice.F16, OutType: sluice.F16, KVHeads: nothingHeads,
				HeadDimQK: nothingDim, PageSize: 16, PageTableKind: sluice.PageTableBlock, Batch: int32(of[0]), Tokens: int32(of[1]),
				KCache: viewed(t, source, pagesOf(pages)), KOut: viewed(t, target, rowsOf(of[1])), OutStarts: starts.Pointer(),
				KVLengths: starts.Pointer()}
			check(t, context.KVGather(&gather, nil))
			hostGather := sluice.HostGather{Flags: sluice.VInK, CacheType: sluice.F16, OutType: sluice.F16, KVHeads: nothingHeads,
				HeadDimQK: nothingDim, PageSize: 16, PageTableKind: sluice.PageTableBlock, Batch: int32(of[0]), Tokens: int32(of[1]),
				KCache: sluice.OnHost(values, pagesOf(pages)), KOut: sluice.OnHost(onHost, rowsOf(of[1])),
				OutStarts: []int32{0, 0, 0}, KVLengths: []int32{0, 0}}
			check(t, sluice.ReferenceGather(&hostGather))
			expect("a gather", target, onHost)
		}
	}
	empty := sluice.Tensor{View: sluice.Contiguous(sluice.F32, [4]int64{2, 0, nothingHeads, nothingDim})}
	check(t, context.MergeStates(&sluice.Merge{PartialType: sluice.F32, OType: sluice.F32, Parts: 2, Heads: nothingHeads,
		HeadDimV: nothingDim, Partial: empty, PartialLSE: empty, O: empty, LSE: empty}, nil))
}

// Arrays may be longer than a call needs, as those of a server that are made for its largest batch.
func TestLongerAndShorterArrays(t *testing.T) {
	p := nothingProblem(func(p *sluice.Problem) { paged(p, sluice.PageTableCSR, 1) })
	values := halves(2 * 2 * nothingHeads * nothingDim)
	rows := [4]int64{2, 1, 2 * nothingHeads, nothingDim}
	pages := sluice.OnHost(values, sluice.Contiguous(sluice.F16, [4]int64{3, 1, nothingHeads, nothingDim}))
	attend := func(starts, lengths []int32) ([]float32, error) {
		o, lse := filled(product(rows), untouched), filled(2*2*nothingHeads, untouched)
		return o, sluice.Reference(&p, &sluice.HostArgs{Batch: 2, QLen: 1, KVLen: 2,
			Q: sluice.OnHost(values, sluice.Contiguous(sluice.F16, rows)), K: pages, V: pages,
			O:         sluice.OnHost(o, sluice.Contiguous(sluice.F32, rows)),
			LSE:       sluice.OnHost(lse, sluice.Contiguous(sluice.F32, [4]int64{2, 1, 2 * nothingHeads, 1})),
			KVLengths: lengths, PageTable: []int32{2, 0, 1}, PageStarts: starts})
	}
	wanted, err := attend([]int32{0, 1, 3}, []int32{1, 2})
	check(t, err)
	got, err := attend([]int32{0, 1, 3, -7, 99}, []int32{1, 2, -3, 4})
	check(t, err)
	for i := range wanted {
		if got[i] != wanted[i] {
			t.Fatalf("element %d is %v, not %v", i, got[i], wanted[i])
		}
	}
	_, err = attend([]int32{0, 1}, []int32{1, 2})
	refused(t, err, sluice.InvalidArgument, "page_starts", "2")
	_, err = attend([]int32{0, 1, 3}, []int32{1})
	refused(t, err, sluice.InvalidArgument, "kv_lengths", "1")
}

// Strides of extents of 1 are never used: any number will do.
func TestStridesWithoutMeaning(t *testing.T) {
	context, device := emulated(t)
	p := problemOf(sluice.F16, 1, 1, nothingDim, func(p *sluice.Problem) { p.Flags = 0 })
	plan, err := context.NewPlan(&p)
	check(t, err)
	defer plan.Close()
	memory := upload(t, device, halves(6*nothingDim))
	attend := func(row, keys [4]int64) []uint16 {
		t.Helper()
		o := upload(t, device, make([]uint16, nothingDim))
		q := sluice.View{Type: sluice.F16, Shape: [4]int64{1, 1, 1, nothingDim}, Stride: row}
		k := sluice.View{Type: sluice.F16, Shape: [4]int64{1, 5, 1, nothingDim}, Stride: keys}
		check(t, plan.Run(&sluice.Args{Batch: 1, QLen: 1, KVLen: 5, Q: viewed(t, memory, q), K: viewed(t, memory, k),
			V: viewed(t, memory, k), O: viewed(t, o, q)}, nil))
		check(t, device.Synchronize(0))
		got := make([]uint16, nothingDim)
		check(t, hip.Download(got, o, 0))
		return got
	}
	wanted := attend([4]int64{nothingDim, nothingDim, nothingDim, 1}, [4]int64{5 * nothingDim, nothingDim, nothingDim, 1})
	got := attend([4]int64{-3, math.MinInt64, 5, 1}, [4]int64{math.MaxInt64, nothingDim, -7, 1})
	for i := range wanted {
		if got[i] != wanted[i] {
			t.Fatalf("element %d is %v, not %v", i, got[i], wanted[i])
		}
	}
}
