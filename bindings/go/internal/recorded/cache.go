package main

import sluice "github.com/sluice-attention/sluice/bindings/go"

func cacheCalls() []call {
	return []call{
		{"append_slots", appendSlots}, {"append_starts", appendStarts}, {"copy_pairs", copyPairs}, {"gather", gather},
		{"merge_lists", mergeLists}, {"merge_strides", mergeStrides}, {"cache_references", cacheReferences},
	}
}

func appendSlots() {
	format := sluice.KVPages(sluice.BF16, 2, 192, 16)
	format.HeadDimV = 128
	kv := sluice.KV{Format: &format, K: sluice.BSHD(at(1), 16, 2, 192), V: sluice.BSHD(at(2), 16, 2, 128), PageCount: 99}
	launch := stream()
	launch.Dependencies = []sluice.Dependency{{Kind: sluice.DependsOnEvent, Event: sluice.Event(at(901))},
		{Kind: sluice.DependsOnStream, Event: sluice.Event(at(902)), Stream: sluice.Stream(at(903))}}
	launch.SignalEvent = sluice.Event(at(904))
	check(context.Append(&sluice.Append{SourceType: sluice.BF16, Tokens: 40, TailDim: 64,
		K: sluice.Packed(at(3), 2, 128), V: sluice.Packed(at(4), 2, 128), KTail: tensor(at(6), 0, 64, 0, 1),
		KV: &kv, Slots: at(5), Positions: at(7),
		Rotation: &sluice.Rotation{Style: sluice.RotaryPairs, Type: sluice.F32, Dim: 64, First: 128, Cosines: at(8),
			Sines: at(9), Stride: 32},
		KNorm: &sluice.Norm{Type: sluice.F32, Weights: at(10), Epsilon: 1e-6},
		Q: &sluice.AppendQ{Heads: 8, Q: sluice.Packed(at(12), 8, 128), Out: sluice.Packed(at(13), 8, 192),
			Tail: sluice.Packed(at(14), 8, 64), Norm: &sluice.Norm{Type: sluice.BF16, Weights: at(11), Epsilon: 1e-6}},
	}, launch))
}

func appendStarts() {
	format := sluice.KVPages(sluice.E4M3FNUZ, 2, 128, 16)
	format.PageTable = sluice.PageTableCSR
	format.K.ScaleKind, format.V.ScaleKind = sluice.ScalePerToken, sluice.ScalePerToken
	kv := sluice.KV{Format: &format, K: sluice.BSHD(at(1), 16, 2, 128), V: sluice.BSHD(at(2), 16, 2, 128), PageCount: 98,
		Scales: &sluice.KVScales{K: tensor(at(3), 32, 2, 1, 0), V: tensor(at(4), 32, 2, 1, 0)}}
	check(context.Append(&sluice.Append{SourceType: sluice.F16, Tokens: 17, K: sluice.Packed(at(8), 2, 128),
		V: sluice.Packed(at(9), 2, 128), KV: &kv, Batch: 3, Starts: at(10), Lengths: at(6),
		Pages:    sluice.Pages{Table: at(5), Starts: at(7)},
		Rotation: &sluice.Rotation{Style: sluice.RotaryHalves, Type: sluice.F16, Dim: 128, Cosines: at(11), Stride: 128},
	}, stream()))
}

func copyPairs() {
	format := sluice.KVPages(sluice.I8, 2, 64, 32)
	format.K.ScaleKind, format.V.ScaleKind = sluice.ScalePerPage, sluice.ScalePerPage
	scales := func(k, v uint64) *sluice.KVScales {
		return &sluice.KVScales{K: tensor(at(k), 2, 0, 1, 0), V: tensor(at(v), 2, 0, 1, 0)}
	}
	source := sluice.KV{Format: &format, K: sluice.BSHD(at(1), 32, 2, 64), V: sluice.BSHD(at(2), 32, 2, 64), PageCount: 50,
		Scales: scales(5, 6)}
	target := sluice.KV{Format: &format, K: sluice.BHSD(at(3), 32, 2, 64), V: sluice.BHSD(at(4), 32, 2, 64), PageCount: 50,
		Scales: scales(7, 8)}
	check(context.Copy(&sluice.Copy{Pairs64: true, Source: &source, Target: &target, Pairs: at(9), PairCount: 6}, stream()))
}

func gather() {
	pages := sluice.KVPages(sluice.E4M3FNUZ, 2, 64, 16)
	pages.K.ScaleKind, pages.V.ScaleKind = sluice.ScalePerTensor, sluice.ScalePerTensor
	rows := sluice.KVTensors(sluice.BF16, 2, 64)
	source := sluice.KV{Format: &pages, K: sluice.BSHD(at(1), 16, 2, 64), V: sluice.BSHD(at(2), 16, 2, 64), PageCount: 51,
		Scales: &sluice.KVScales{K: sluice.Tensor{Data: at(5)}, V: sluice.Tensor{Data: at(6)}}}
	target := sluice.KV{Format: &rows, K: sluice.Packed(at(3), 2, 64), V: sluice.Packed(at(4), 2, 64)}
	check(context.Gather(&sluice.Gather{Batch: 3, Source: &source, Pages: sluice.Pages{Table: at(7), Stride: 9},
		Lengths: at(8), FirstKeys: at(9), Target: &target, Starts: at(10), Tokens: 76}, stream()))
}

func mergeLists() {
	check(context.Merge(&sluice.Merge{Flags: sluice.MergeInfinityIsEmpty, Tokens: 14, Heads: 4, HeadDim: 64,
		LSEBase: sluice.LSELN, OFormat: sluice.Format{Type: sluice.E4M3FNUZ, ScaleKind: sluice.ScalePerHead},
		Parts: sluice.Parts{Type: sluice.F32, Count: 3, O: sluice.Packed(0, 4, 64), LSE: tensor(0, 0, 1, 8, 0),
			OList: []sluice.DevicePointer{at(1), at(2), at(3)}, LSEList: []sluice.DevicePointer{at(4), at(5), at(6)},
			LSESequenceStride: 33},
		O: sluice.Packed(at(7), 4, 64), LSE: tensor(at(8), 0, 1, 9, 0), LSESequenceStride: 37, SequenceTokens: 7,
		Sinks: at(9), OScale: at(10)}, stream()))
}

func mergeStrides() {
	check(context.Merge(&sluice.Merge{Tokens: 12, Heads: 5, HeadDim: 96, LSEBase: sluice.LSELog2,
		OFormat: sluice.Format{Type: sluice.BF16}, O: sluice.Packed(at(3), 5, 96),
		Parts: sluice.Parts{Type: sluice.BF16, Count: 2, O: tensor(at(1), 5760, 480, 96, 1),
			LSE: tensor(at(2), 60, 5, 1, 0)}}, stream()))
}

func cacheReferences() {
	pages, rows := sluice.KVPages(sluice.F16, 1, 8, 4), sluice.KVTensors(sluice.F16, 1, 8)
	source := sluice.KV{Format: &pages, K: sluice.BSHD(at(1), 4, 1, 8), V: sluice.BSHD(at(2), 4, 1, 8), PageCount: 6}
	target := sluice.KV{Format: &pages, K: sluice.BSHD(at(3), 4, 1, 8), V: sluice.BSHD(at(4), 4, 1, 8), PageCount: 6}
	out := sluice.KV{Format: &rows, K: sluice.Packed(at(5), 1, 8), V: sluice.Packed(at(6), 1, 8)}
	check(sluice.ReferenceAppend(&sluice.Append{SourceType: sluice.F16, Tokens: 3, K: sluice.Packed(at(7), 1, 8),
		V: sluice.Packed(at(8), 1, 8), KV: &source, Slots: at(9)}))
	check(sluice.ReferenceCopy(&sluice.Copy{Source: &source, Target: &target, Pairs: at(10), PairCount: 2}))
	check(sluice.ReferenceGather(&sluice.Gather{Batch: 1, Source: &source, Pages: sluice.Pages{Table: at(11), Stride: 5},
		Lengths: at(12), Target: &out, Starts: at(13), Tokens: 13}))
}
