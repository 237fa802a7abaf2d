package main

import sluice "github.com/sluice-attention/sluice/bindings/go"

func attentionCalls() []call {
	return []call{
		{"dense", dense}, {"ragged_causal_lse", raggedCausalLSE}, {"paged_fp8", pagedFP8}, {"cascade", cascade},
		{"mla_decode", mlaDecode}, {"windows", windows}, {"spans_and_bits", spansAndBits},
		{"bias_and_alibi", biasAndAlibi}, {"u4_groups", u4Groups}, {"packed_pages", packedPages},
		{"attention_reference", attentionReference},
	}
}

func run(attention *sluice.Attention, args *sluice.Args, launch *sluice.Launch) {
	plan, err := context.NewPlan(attention)
	check(err)
	check(plan.Run(args, launch))
	check(plan.Close())
}

// problem is attention with Q and O of one type.
func problem(dtype sluice.DType, heads int32, format *sluice.KVFormat) sluice.Attention {
	rows := sluice.Format{Type: dtype}
	return sluice.Attention{QHeads: heads, Q: rows, O: rows, KV: format}
}

// pages are keys in pages.
func pages(kv *sluice.KV, table sluice.DevicePointer, stride int64, lengths sluice.DevicePointer, maxLen int32) sluice.Keys {
	return sluice.Keys{KV: kv, Rows: sluice.Rows{MaxLen: maxLen, Lengths: lengths},
		Pages: sluice.Pages{Table: table, Stride: stride}}
}

func dense() {
	scale := float32(0.125)
	format := sluice.KVTensors(sluice.F16, 2, 128)
	attention := problem(sluice.F16, 8, &format)
	attention.Bounds = sluice.Bounds{Batch: 3, QLen: 96, KVLen: 112}
	attention.WorkspaceCeilingBytes = 1 << 20
	kv := sluice.KV{Format: &format, K: sluice.BSHD(at(3), 80, 2, 128), V: sluice.BHSD(at(4), 80, 2, 128)}
	args := sluice.Args{Batch: 3, Q: sluice.BSHD(at(1), 64, 8, 128), O: sluice.BSHD(at(2), 64, 8, 128),
		Rows: sluice.Rows{MaxLen: 64}, Keys: []sluice.Keys{{KV: &kv, Rows: sluice.Rows{MaxLen: 80}}}, Scale: &scale}
	launch := stream()
	launch.Workspace, launch.WorkspaceBytes = at(901), 4096
	_, err := context.Support(&attention)
	check(err)
	check(context.Preload(&attention))
	run(&attention, &args, launch)
}

func raggedCausalLSE() {
	format := sluice.KVTensors(sluice.BF16, 2, 64)
	attention := problem(sluice.BF16, 4, &format)
	attention.Flags, attention.LSE = sluice.AttentionRagged, sluice.LSELN
	attention.Mask = &sluice.Mask{Flags: sluice.MaskCausal}
	attention.Bounds = sluice.Bounds{Batch: 5, QLen: 33, KVLen: 47}
	kv := sluice.KV{Format: &format, K: sluice.Packed(at(3), 2, 64), V: sluice.Packed(at(4), 2, 64)}
	lse := tensor(at(7), 0, 4, 1, 0)
	run(&attention, &sluice.Args{Batch: 5, Q: sluice.Packed(at(1), 4, 64), O: sluice.Packed(at(2), 4, 64),
		Rows: sluice.Rows{MaxLen: 32, Starts: at(6), Total: 101},
		Keys: []sluice.Keys{{KV: &kv, Rows: sluice.Rows{MaxLen: 46, Starts: at(5), Total: 157}}}, LSE: &lse}, stream())
}

func pagedFP8() {
	format := sluice.KVPages(sluice.E4M3FNUZ, 2, 128, 16)
	format.K.ScaleKind, format.V.ScaleKind = sluice.ScalePerHead, sluice.ScalePerHead
	format.V.Type = sluice.E5M2FNUZ
	attention := problem(sluice.E4M3FNUZ, 16, &format)
	attention.Q.ScaleKind, attention.O.ScaleKind = sluice.ScalePerTensor, sluice.ScalePerHead
	attention.Scores = &sluice.Scores{Flags: sluice.ScoresSink}
	attention.Bounds = sluice.Bounds{Batch: 7, QLen: 1, KVLen: 1024}
	kv := sluice.KV{Format: &format, K: sluice.BSHD(at(3), 16, 2, 128), V: sluice.BHSD(at(4), 16, 2, 128), PageCount: 901,
		Scales: &sluice.KVScales{K: sluice.Tensor{Data: at(5)}, V: sluice.Tensor{Data: at(6)}}}
	run(&attention, &sluice.Args{Batch: 7, Q: sluice.BSHD(at(1), 1, 16, 128), O: sluice.BSHD(at(2), 1, 16, 128),
		Rows: sluice.Rows{MaxLen: 1}, Keys: []sluice.Keys{pages(&kv, at(7), 64, at(8), 1000)},
		Scores: &sluice.ScoresArgs{Sinks: at(9)}, QScale: at(10), OScale: at(11)}, stream())
}

func cascade() {
	format := sluice.KVPages(sluice.BF16, 1, 128, 32)
	attention := problem(sluice.BF16, 4, &format)
	attention.Flags = sluice.AttentionRagged | sluice.AttentionPrefixes
	attention.Scores = &sluice.Scores{SoftCap: 30.5}
	attention.Bounds = sluice.Bounds{Batch: 6, QLen: 9, KVLen: 512, Groups: 2, GroupKeys: 256, QRows: 54}
	kv := sluice.KV{Format: &format, K: sluice.BSHD(at(3), 32, 1, 128), V: sluice.BSHD(at(4), 32, 1, 128), PageCount: 77}
	keys := []sluice.Keys{pages(&kv, at(5), 16, at(6), 500), pages(&kv, at(7), 8, at(8), 250)}
	keys[1].Groups, keys[1].GroupStarts = 2, at(9)
	run(&attention, &sluice.Args{Batch: 6, Q: sluice.Packed(at(1), 4, 128), O: sluice.Packed(at(2), 4, 128),
		Rows: sluice.Rows{MaxLen: 9, Starts: at(10), Total: 53}, Keys: keys}, stream())
}

func mlaDecode() {
	format := sluice.KVLatent(sluice.BF16, 512, 64, 64)
	format.Flags |= sluice.KVPageIndex64
	format.PageTable = sluice.PageTableCSR
	attention := problem(sluice.BF16, 16, &format)
	attention.LSE = sluice.LSELog2
	attention.Bounds = sluice.Bounds{Batch: 4, QLen: 1, KVLen: 2048}
	kv := sluice.KV{Format: &format, K: sluice.BSHD(at(3), 64, 1, 576), PageCount: 333}
	keys := pages(&kv, at(5), 0, at(6), 2000)
	keys.Pages.Starts = at(7)
	lse := tensor(at(8), 16, 16, 1, 0)
	run(&attention, &sluice.Args{Batch: 4, Q: sluice.BSHD(at(1), 1, 16, 576), O: sluice.BSHD(at(2), 1, 16, 512),
		Rows: sluice.Rows{MaxLen: 1}, Keys: []sluice.Keys{keys}, LSE: &lse}, stream())
}

func windows() {
	format := sluice.KVPages(sluice.F16, 2, 64, 16)
	attention := problem(sluice.F16, 4, &format)
	attention.Flags = sluice.AttentionBatchInvariant
	attention.Mask = &sluice.Mask{Flags: sluice.MaskWindowLeft | sluice.MaskWindowRight | sluice.MaskMissingPages,
		Alignment: sluice.TopLeft, WindowLeft: 100, WindowRight: 7, SinkTokens: 4}
	attention.Bounds = sluice.Bounds{Batch: 5, QLen: 40, KVLen: 320}
	kv := sluice.KV{Format: &format, K: sluice.BSHD(at(3), 16, 2, 64), V: sluice.BSHD(at(4), 16, 2, 64), PageCount: 210}
	keys := pages(&kv, at(5), 40, at(6), 310)
	keys.Pages.HeadStride = 20
	run(&attention, &sluice.Args{Batch: 5, Q: sluice.BSHD(at(1), 33, 4, 64), O: sluice.BSHD(at(2), 33, 4, 64),
		Rows: sluice.Rows{MaxLen: 33, Lengths: at(7)}, Keys: []sluice.Keys{keys}}, stream())
}

func spansAndBits() {
	format := sluice.KVTensors(sluice.F16, 1, 64)
	attention := problem(sluice.F16, 2, &format)
	attention.Mask = &sluice.Mask{Alignment: sluice.GivenDiagonal,
		Flags: sluice.MaskCausalBySequence | sluice.MaskBits | sluice.MaskBitsOfNew | sluice.MaskSpans}
	kv := sluice.KV{Format: &format, K: sluice.BSHD(at(3), 48, 1, 64), V: sluice.BSHD(at(4), 48, 1, 64)}
	run(&attention, &sluice.Args{Batch: 3, Q: sluice.BSHD(at(1), 24, 2, 64), O: sluice.BSHD(at(2), 24, 2, 64),
		Rows: sluice.Rows{MaxLen: 24}, Keys: []sluice.Keys{{KV: &kv, Rows: sluice.Rows{MaxLen: 48}}},
		Mask: &sluice.MaskArgs{Bits: tensor(at(5), 72, 0, 3, 1), Spans: at(6), SpanCount: 5, Diagonals: at(7),
			Causal: at(8)}}, stream())
}

func biasAndAlibi() {
	format := sluice.KVTensors(sluice.F16, 4, 100)
	attention := problem(sluice.F16, 4, &format)
	attention.Flags = sluice.AttentionPaddedRows
	attention.Scores = &sluice.Scores{Flags: sluice.ScoresAlibi | sluice.ScoresBiasScale, BiasType: sluice.F32}
	kv := sluice.KV{Format: &format, K: sluice.BSHD(at(3), 20, 4, 104), V: sluice.BSHD(at(4), 20, 4, 104)}
	run(&attention, &sluice.Args{Batch: 2, Q: sluice.BSHD(at(1), 10, 4, 104), O: sluice.BSHD(at(2), 10, 4, 104),
		Rows: sluice.Rows{MaxLen: 10}, Keys: []sluice.Keys{{KV: &kv, Rows: sluice.Rows{MaxLen: 20}}},
		Scores: &sluice.ScoresArgs{Bias: tensor(at(5), 800, 200, 20, 1), BiasScale: at(6), BiasScaleStride: 5,
			AlibiSlopes: at(7), AlibiStride: 6}}, stream())
}

func u4Groups() {
	format := sluice.KVPages(sluice.U4, 2, 128, 16)
	format.K.ScaleKind, format.K.ScaleGroup, format.K.ZeroPoints = sluice.ScalePerGroup, 32, true
	format.V = format.K
	attention := problem(sluice.F16, 8, &format)
	attention.O.Type = sluice.BF16
	scales := func(n uint64) sluice.Tensor { return sluice.BSHD(at(n), 16, 2, 4) }
	kv := sluice.KV{Format: &format, K: sluice.BSHD(at(3), 16, 2, 128), V: sluice.BSHD(at(4), 16, 2, 128), PageCount: 64,
		Scales: &sluice.KVScales{K: scales(5), V: scales(6), KZeros: scales(7), VZeros: scales(8)}}
	run(&attention, &sluice.Args{Batch: 2, Q: sluice.BSHD(at(1), 1, 8, 128), O: sluice.BSHD(at(2), 1, 8, 128),
		Rows: sluice.Rows{MaxLen: 1}, Keys: []sluice.Keys{pages(&kv, at(9), sluice.Shared, at(10), 200)}}, stream())
}

func packedPages() {
	format := sluice.KVPages(sluice.I8, 2, 128, 32)
	format.K.ScaleKind, format.V.ScaleKind = sluice.ScalePerPage, sluice.ScalePerPage
	format.K.Pack, format.V.Pack = 16, sluice.PackAll
	attention := problem(sluice.BF16, 2, &format)
	kv := sluice.KV{Format: &format, K: sluice.PagesXPacked(at(3), 32, 2, 128, 16), V: tensor(at(4), 8192, 1, 4096, 32),
		PageCount: 65, Scales: &sluice.KVScales{K: tensor(at(5), 2, 0, 1, 0), V: tensor(at(6), 2, 0, 1, 0)}}
	run(&attention, &sluice.Args{Batch: 9, Q: sluice.BSHD(at(1), 1, 2, 128), O: sluice.BSHD(at(2), 1, 2, 128),
		Rows: sluice.Rows{MaxLen: 1}, Keys: []sluice.Keys{pages(&kv, at(7), 11, at(8), 333)}}, stream())
}

func attentionReference() {
	scale := float32(0.0625)
	format := sluice.KVTensors(sluice.F32, 1, 8)
	attention := problem(sluice.F32, 3, &format)
	kv := sluice.KV{Format: &format, K: sluice.BSHD(at(3), 5, 1, 8), V: sluice.BSHD(at(4), 5, 1, 8)}
	check(sluice.Reference(&attention, &sluice.Args{Batch: 2, Q: sluice.BSHD(at(1), 4, 3, 8), O: sluice.BSHD(at(2), 4, 3, 8),
		Rows: sluice.Rows{MaxLen: 4}, Keys: []sluice.Keys{{KV: &kv, Rows: sluice.Rows{MaxLen: 5}}}, Scale: &scale}))
}
