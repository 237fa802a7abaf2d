package sluice_test

import (
	"testing"

	sluice "github.com/sluice-attention/sluice/bindings/go"
)

// Keys of a prefix are keys before those of the sequence: a call with them in the sequence's own table has the same
// results.
func TestPrefixes(t *testing.T) {
	random := func(n int, seed uint32) []float32 {
		made := make([]float32, n)
		for i := range made {
			seed = seed*1664525 + 1013904223
			made[i] = float32(seed>>8)/(1<<23) - 1
		}
		return made
	}
	q, k, v := random(3*2*8, 1), random(5*2*8, 2), random(5*2*8, 3)
	problem := sluice.Problem{Mode: sluice.ModePaged, QType: sluice.F32, KType: sluice.F32, VType: sluice.F32,
		OType: sluice.F32, QHeads: 2, KVHeads: 1, HeadDimQK: 8, HeadDimV: 8, PageSize: 2,
		PageTableKind: sluice.PageTableBlock}
	call := func(o []float32) *sluice.HostArgs {
		rows, pages := [4]int64{3, 1, 2, 8}, [4]int64{5, 2, 1, 8}
		return &sluice.HostArgs{Batch: 3, QLen: 1, KVLen: 5,
			Q: sluice.OnHost(q, sluice.Contiguous(sluice.F32, rows)), O: sluice.OnHost(o, sluice.Contiguous(sluice.F32, rows)),
			K: sluice.OnHost(k, sluice.Contiguous(sluice.F32, pages)), V: sluice.OnHost(v, sluice.Contiguous(sluice.F32, pages))}
	}
	// Pages 0 and 1 are the prefix of the last two sequences.
	together, apart := make([]float32, len(q)), make([]float32, len(q))
	plain := call(together)
	plain.KVLengths, plain.PageTable, plain.PageTableStride = []int32{2, 5, 4}, []int32{2, 0, 0, 0, 1, 3, 0, 1, 0}, 3
	check(t, sluice.Reference(&problem, plain))

	problem.Flags = sluice.SharedPrefix
	problem.MaxPrefixes, problem.MaxPrefixLen, problem.MaxQTokens = 1, 4, 3
	shared := call(apart)
	shared.KVLengths, shared.PageTable, shared.PageTableStride = []int32{2, 1, 0}, []int32{2, 0, 0, 3, 0, 0, 0, 0, 0}, 3
	shared.PrefixCount, shared.PrefixQStarts, shared.PrefixLengths = 1, []int32{1, 3}, []int32{4}
	shared.PrefixPageTable, shared.PrefixPageTableStride = []int32{0, 1}, 2
	check(t, sluice.Reference(&problem, shared))
	for i := range together {
		if together[i] != apart[i] {
			t.Errorf("element %d is %v with a prefix and %v without", i, apart[i], together[i])
		}
	}
}
