package sluice_test

import (
	"math"
	"math/rand"
	"testing"

	sluice "github.com/sluice-attention/sluice/bindings/go"
)

// The same calls by Plan.Run on the emulated device and by Reference on the host, both against an oracle.

type runCase struct {
	name    string
	problem sluice.Problem
	lengths [][2]int // For each sequence: rows, keys.
	packedQ bool     // With pages: rows of all sequences one after the other.
}

func problemOf(of sluice.DType, qHeads, kvHeads, dim int32, change func(p *sluice.Problem)) sluice.Problem {
	p := sluice.Problem{QType: of, KType: of, VType: of, OType: of, QHeads: qHeads, KVHeads: kvHeads, HeadDimQK: dim,
		HeadDimV: dim, Flags: sluice.WriteLSE}
	if change != nil {
		change(&p)
	}
	return p
}

func paged(p *sluice.Problem, kind sluice.PageTableKind, size int32) {
	p.Mode, p.PageTableKind, p.PageSize = sluice.ModePaged, kind, size
}

var runCases = []runCase{
	{"dense", problemOf(sluice.F16, 2, 2, 128, nil), [][2]int{{33, 70}, {33, 70}}, false},
	{"dense_one_token", problemOf(sluice.F16, 8, 1, 64, nil), [][2]int{{1, 100}}, false},
	{"dense_bf16_causal_grouped", problemOf(sluice.BF16, 4, 2, 64, func(p *sluice.Problem) { p.Flags |= sluice.Causal }),
		[][2]int{{20, 37}, {7, 31}}, false},
	{"dense_window_sinks", problemOf(sluice.F16, 2, 1, 128, func(p *sluice.Problem) {
		p.Flags |= sluice.HasWindowLeft | sluice.HasWindowRight | sluice.SinkLogits
		p.MaskAlignment, p.WindowLeft, p.WindowRight, p.SinkTokens = sluice.TopLeft, 5, 2, 3
	}), [][2]int{{40, 40}}, false},
	{"dense_bias_alibi_cap", problemOf(sluice.F16, 4, 2, 128, func(p *sluice.Problem) {
		p.Flags |= sluice.Alibi
		p.BiasType, p.SoftCap, p.LSEBase = sluice.F32, 3, sluice.LSEBase2
	}), [][2]int{{18, 50}}, false},
	{"dense_mask", problemOf(sluice.F16, 1, 1, 128, func(p *sluice.Problem) { p.Flags |= sluice.BoolMask }),
		[][2]int{{17, 45}}, false},
	{"ragged", problemOf(sluice.F16, 2, 1, 128, func(p *sluice.Problem) {
		p.Flags |= sluice.Causal
		p.Mode = sluice.ModeRagged
	}), [][2]int{{5, 9}, {0, 4}, {21, 64}, {1, 33}}, true},
	{"paged_block", problemOf(sluice.F16, 4, 2, 128, func(p *sluice.Problem) {
		p.Flags |= sluice.Causal
		paged(p, sluice.PageTableBlock, 16)
		p.Determinism, p.MaxBatch, p.MaxKVLen = sluice.DeterminismBatchInvariant, 4, 128
	}), [][2]int{{1, 40}, {6, 17}, {3, 90}}, true},
	{"paged_csr_fp8", problemOf(sluice.F16, 4, 2, 128, func(p *sluice.Problem) {
		p.Flags |= sluice.PageIndex64
		paged(p, sluice.PageTableCSR, 16)
		p.KType, p.VType = sluice.E4M3FNUZ, sluice.E4M3FNUZ
		p.QScaleKind, p.KScaleKind, p.VScaleKind = sluice.ScalePerTensor, sluice.ScalePerHead, sluice.ScalePerHead
	}), [][2]int{{2, 35}, {2, 50}}, false},
	{"paged_x_packed", problemOf(sluice.F16, 2, 1, 128, func(p *sluice.Problem) {
		paged(p, sluice.PageTableBlock, 32)
		p.KPack = 8
	}), [][2]int{{3, 70}}, false},
	{"paged_v_by_packs", problemOf(sluice.F16, 4, 2, 128, func(p *sluice.Problem) {
		p.Flags |= sluice.Causal
		paged(p, sluice.PageTableBlock, 32)
		p.VPack = 8
	}), [][2]int{{3, 70}, {3, 33}}, false},
	{"dense_v_by_columns", problemOf(sluice.BF16, 4, 2, 64, func(p *sluice.Problem) {
		p.VPack = sluice.VPackAll
	}), [][2]int{{9, 50}, {9, 50}}, false},
	{"v_in_k", problemOf(sluice.F16, 4, 1, 576, func(p *sluice.Problem) {
		p.Flags |= sluice.VInK
		p.HeadDimV = 512
		paged(p, sluice.PageTableBlock, 16)
	}), [][2]int{{1, 33}}, false},
	{"dense_scales_per_token", problemOf(sluice.F16, 4, 2, 64, func(p *sluice.Problem) {
		p.KType, p.VType = sluice.E4M3FNUZ, sluice.E4M3FNUZ
		p.KScaleKind, p.VScaleKind = sluice.ScalePerToken, sluice.ScalePerToken
	}), [][2]int{{9, 50}, {9, 50}}, false},
	{"ragged_scales_per_token", problemOf(sluice.BF16, 4, 2, 64, func(p *sluice.Problem) {
		p.Mode, p.KType, p.VType = sluice.ModeRagged, sluice.E4M3FNUZ, sluice.E4M3FNUZ
		p.KScaleKind, p.VScaleKind = sluice.ScalePerToken, sluice.ScalePerToken
	}), [][2]int{{5, 20}, {3, 47}}, true},
	{"paged_scales_per_page_fp8_result", problemOf(sluice.F16, 4, 2, 128, func(p *sluice.Problem) {
		paged(p, sluice.PageTableBlock, 16)
		p.KType, p.VType, p.OType = sluice.E4M3FNUZ, sluice.E4M3FNUZ, sluice.E4M3FNUZ
		p.KScaleKind, p.VScaleKind, p.OScaleKind = sluice.ScalePerPage, sluice.ScalePerPage, sluice.ScalePerHead
	}), [][2]int{{4, 41}, {4, 18}}, false},
	{"ragged_spans_diagonals", problemOf(sluice.F16, 2, 1, 64, func(p *sluice.Problem) {
		p.Mode, p.MaskAlignment = sluice.ModeRagged, sluice.GivenDiagonal
		p.Flags |= sluice.Spans | sluice.CausalBySequence
	}), [][2]int{{20, 45}, {11, 30}, {33, 60}}, true},
	{"dense_new_rows", problemOf(sluice.F16, 2, 1, 64, func(p *sluice.Problem) {
		p.Flags |= sluice.BoolMask | sluice.MaskNewRows
	}), [][2]int{{13, 40}, {9, 55}}, false},
	{"dense_factors_slopes", problemOf(sluice.BF16, 4, 2, 64, func(p *sluice.Problem) {
		p.Flags |= sluice.BiasScale | sluice.Alibi
		p.BiasType = sluice.F16
	}), [][2]int{{12, 33}, {12, 33}}, false},
}

// compare checks rows of o and lse, and that no other element of o was written.
func compare(t *testing.T, what string, c *runCase, made *placed, o, lse *tensor, expected [][]row, of func(b bounded) float64) {
	t.Helper()
	p := &c.problem
	worst, written := 0.0, map[int64]bool{}
	near := func(name string, got float64, wanted bounded) {
		allowed := of(wanted)
		part := math.Abs(got-wanted.value) / allowed
		if got == wanted.value {
			part = 0
		}
		if !(part <= 1) {
			t.Fatalf("%s: %s is %g, not %g within %g", what, name, got, wanted.value, allowed)
		}
		worst = math.Max(worst, part)
	}
	for b, rows := range expected {
		for i, r := range rows {
			first, second := made.row(b, i/int(p.QHeads))
			head := i % int(p.QHeads)
			for e := range r.o {
				at := o.at(first, second, head, e)
				written[at] = true
				near("o", o.array.value(at), r.o[e])
			}
			near("lse", lse.array.value(lse.at(first, second, head, 0)), r.lse)
		}
	}
	for at := int64(0); at < o.array.length(); at++ {
		if !written[at] && !math.IsNaN(o.array.value(at)) {
			t.Fatalf("%s: element %d of o is written, but belongs to no row", what, at)
		}
	}
	t.Logf("%s: the largest error is %.3f of what is allowed", what, worst)
}

func TestRunAndReference(t *testing.T) {
	context, device := emulated(t)
	for n := range runCases {
		n, c := n, &runCases[n]
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && n%4 != 1 {
				t.Skip("one of four is enough for pointers and races")
			}
			random := rand.New(rand.NewSource(int64(n)))
			sequences, f := randomSequences(c, random)
			made := place(t, device, c, sequences, f, random)
			var expected [][]row
			for b := range sequences {
				var rows []row
				for i := 0; i < sequences[b].qLen; i++ {
					for h := 0; h < int(c.problem.QHeads); h++ {
						rows = append(rows, attend(&c.problem, &sequences[b], f, h, i))
					}
				}
				expected = append(expected, rows)
			}

			check(t, sluice.Reference(&c.problem, &made.host))
			compare(t, "reference", c, made, made.o, made.lse, expected, func(b bounded) float64 { return b.reference })

			plan, err := context.NewPlan(&c.problem)
			check(t, err)
			defer plan.Close()
			info, err := plan.Describe()
			check(t, err)
			launch := sluice.Launch{WorkspaceBytes: info.WorkspaceBytes}
			if info.WorkspaceBytes != 0 {
				workspace, err := device.Malloc(int64(info.WorkspaceBytes))
				check(t, err)
				defer workspace.Free()
				launch.Workspace = workspace.Pointer()
			}
			check(t, plan.Run(&made.device, &launch))
			check(t, device.Synchronize(0))
			compare(t, "run", c, made, made.o.fromDevice(t), made.lse.fromDevice(t), expected,
				func(b bounded) float64 { return b.kernel })
		})
	}
}
