package sluice_test

import (
	"math"
	"math/rand"
	"testing"

	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/hip"
)

// tensor is memory for a view on both sides, NaN where `set` stored nothing.
type tensor struct {
	view   sluice.View
	array  *array
	memory *hip.Memory
}

func newTensor(t *testing.T, view sluice.View) *tensor {
	count, err := view.Elements()
	check(t, err)
	return &tensor{view: view, array: newArray(view.Type, count)}
}

func (s *tensor) at(a, b, c, d int) int64 {
	index, pack, tokens := [4]int64{int64(a), int64(b), int64(c), int64(d)}, s.view.Pack, s.view.TokenPack
	if pack == 0 {
		pack = 1
	}
	if tokens == 0 {
		tokens = 1
	}
	return index[0]*s.view.Stride[0] + index[1]/tokens*s.view.Stride[1] + index[1]%tokens + index[2]*s.view.Stride[2] +
		index[3]/pack*s.view.Stride[3] + index[3]%pack
}

func (s *tensor) set(a, b, c, d int, value float64) {
	s.array.set(s.at(a, b, c, d), encode(s.view.Type, value))
}

func (s *tensor) host() sluice.HostTensor {
	if s == nil {
		return sluice.HostTensor{}
	}
	return s.array.onHost(s.view)
}

// device is a device copy of what has been set so far.
func (s *tensor) device(t *testing.T, device *hip.Runtime) sluice.Tensor {
	if s == nil {
		return sluice.Tensor{}
	}
	switch s.array.dtype.Size() {
	case 1:
		s.memory = onDevice(t, device, s.array.bits8)
	case 2:
		s.memory = onDevice(t, device, s.array.bits16)
	default:
		s.memory = onDevice(t, device, s.array.bits32)
	}
	made, err := s.memory.Tensor(0, s.view)
	check(t, err)
	return made
}

// fromDevice is the array as the device has it.
func (s *tensor) fromDevice(t *testing.T) *tensor {
	copied := &tensor{view: s.view, array: newArray(s.view.Type, s.array.length())}
	check(t, hip.Download(copied.array.bits8, s.memory, 0))
	check(t, hip.Download(copied.array.bits16, s.memory, 0))
	check(t, hip.Download(copied.array.bits32, s.memory, 0))
	return copied
}

// spaced is a view with a gap after each row of heads.
func spaced(dtype sluice.DType, shape [4]int64) sluice.View {
	view := sluice.Contiguous(dtype, shape)
	view.Stride[1] += 8
	view.Stride[0] = view.Stride[1] * shape[1]
	return view
}

// placed is a call in memory, the same on the host and on the device.
type placed struct {
	host   sluice.HostArgs
	device sluice.Args
	o, lse *tensor
	row    func(b, i int) (batch, row int) // Of q, o and lse.
}

func randomSequences(c *runCase, random *rand.Rand) ([]sequence, factors) {
	p := &c.problem
	values := func(count int) []float64 {
		made := make([]float64, count)
		for i := range made {
			made[i] = exact(random)
		}
		return made
	}
	var sequences []sequence
	for _, length := range c.lengths {
		s := sequence{qLen: length[0], kvLen: length[1]}
		s.q = values(s.qLen * int(p.QHeads*p.HeadDimQK))
		s.k = values(s.kvLen * int(p.KVHeads*p.HeadDimQK))
		s.v = values(s.kvLen * int(p.KVHeads*p.HeadDimV))
		bias, mask := values(int(p.QHeads)*s.qLen*s.kvLen), values(s.qLen*s.kvLen)
		s.bias = func(head, i, j int) float64 { return bias[(head*s.qLen+i)*s.kvLen+j] }
		s.masked = func(i, j int) bool { return mask[i*s.kvLen+j] < 0 }
		sequences = append(sequences, s)
	}
	var f factors
	positive := func(count int) []float64 {
		made := values(count)
		for i := range made {
			made[i] = math.Abs(made[i])
		}
		return made
	}
	qHeads, kvHeads := int(p.QHeads), int(p.KVHeads)
	if p.QScaleKind == sluice.ScalePerTensor {
		f.q = positive(1)
	}
	if p.KScaleKind == sluice.ScalePerHead {
		f.k = positive(kvHeads)
	}
	if p.VScaleKind == sluice.ScalePerHead {
		f.v = positive(kvHeads)
	}
	var slopes []float64
	if p.Flags&sluice.Alibi != 0 {
		slopes = positive(qHeads)
	}
	if p.Flags&sluice.SinkLogits != 0 {
		f.sinks = values(qHeads)
	}
	if p.OScaleKind == sluice.ScalePerHead {
		f.o = positive(qHeads)
		for h := range f.o {
			f.o[h] /= 64
		}
	}
	for b := range sequences {
		s := &sequences[b]
		s.slopes = slopes
		if p.Flags&sluice.BiasScale != 0 { // each sequence has its own factors, and its own slopes
			s.biasScale, s.slopes = values(qHeads), positive(qHeads)
		}
		keyScales := func(kind sluice.ScaleKind) []float64 {
			if kind != sluice.ScalePerToken && kind != sluice.ScalePerPage {
				return nil
			}
			made := positive(s.kvLen * kvHeads)
			for j := 0; kind == sluice.ScalePerPage && j < s.kvLen; j++ {
				first := j / int(p.PageSize) * int(p.PageSize)
				copy(made[j*kvHeads:(j+1)*kvHeads], made[first*kvHeads:])
			}
			return made
		}
		s.kScales, s.vScales = keyScales(p.KScaleKind), keyScales(p.VScaleKind)
		s.diagonal, s.causal = 3-7*b, p.Flags&sluice.CausalBySequence != 0 && b%2 == 0
		if p.MaskAlignment == sluice.GivenDiagonal {
			s.diagonal += s.kvLen / 2
		}
		if p.Flags&sluice.Spans != 0 {
			third := s.kvLen / 3
			s.spans = [][2]int{{1, third}, {third, third}, {third + b, s.kvLen - 2}}
		}
	}
	return sequences, f
}

func float32s(values []float64) []float32 {
	var made []float32
	for _, value := range values {
		made = append(made, float32(value))
	}
	return made
}

// place puts a case into memory.
func place(t *testing.T, device *hip.Runtime, c *runCase, sequences []sequence, f factors, random *rand.Rand) *placed {
	p := &c.problem
	batch, qLen, kvLen, rows, keys := len(sequences), 0, 0, 0, 0
	qStarts, kvStarts := []int32{0}, []int32{0}
	var qLengths, kvLengths []int32
	for _, s := range sequences {
		qLen, kvLen = largest(qLen, s.qLen), largest(kvLen, s.kvLen)
		rows, keys = rows+s.qLen, keys+s.kvLen
		qStarts, kvStarts = append(qStarts, int32(rows)), append(kvStarts, int32(keys))
		qLengths, kvLengths = append(qLengths, int32(s.qLen)), append(kvLengths, int32(s.kvLen))
	}
	made := &placed{row: func(b, i int) (int, int) { return b, i }}
	made.host = sluice.HostArgs{Batch: int32(batch), QLen: int32(qLen), KVLen: int32(kvLen),
		SinkLogits: float32s(f.sinks), QScale: float32s(f.q), KScale: float32s(f.k), VScale: float32s(f.v),
		OScale: float32s(f.o)}
	placeMasks(p, &made.host, sequences)
	qShape := [2]int{batch, qLen}
	if c.packedQ {
		made.host.QStarts = qStarts
		qShape = [2]int{1, rows}
		made.row = func(b, i int) (int, int) { return 0, int(qStarts[b]) + i }
	} else if p.Mode == sluice.ModeDense && batch > 1 {
		made.host.QLengths, made.host.KVLengths = qLengths, kvLengths
	}

	// The place of key j of sequence b, and how K and V are divided.
	key := func(b, j int) (int, int) { return b, j }
	kvShape := [2]int{batch, kvLen}
	switch p.Mode {
	case sluice.ModeRagged:
		made.host.KVStarts = kvStarts
		kvShape = [2]int{1, keys}
		key = func(b, j int) (int, int) { return 0, int(kvStarts[b]) + j }
	case sluice.ModePaged:
		made.host.KVLengths = kvLengths
		key = placePages(c, made, kvLen, random)
		kvShape = [2]int{pagesOf(c), int(p.PageSize)}
	}
	shape := func(of [2]int, heads, dim int32) [4]int64 {
		return [4]int64{int64(of[0]), int64(of[1]), int64(heads), int64(dim)}
	}
	q := newTensor(t, spaced(p.QType, shape(qShape, p.QHeads, p.HeadDimQK)))
	made.o = newTensor(t, spaced(p.OType, shape(qShape, p.QHeads, p.HeadDimV)))
	kView := spaced(p.KType, shape(kvShape, p.KVHeads, p.HeadDimQK))
	if p.KPack != 0 { // [page][head][pack][row][element]
		pack, size := int64(p.KPack), int64(p.PageSize)
		kView.Pack = pack
		kView.Stride = [4]int64{int64(p.KVHeads*p.HeadDimQK) * size, pack, int64(p.HeadDimQK) * size, size * pack}
	}
	k := newTensor(t, kView)
	var v, bias, mask, kScales, vScales *tensor
	if p.KScaleKind == sluice.ScalePerToken || p.KScaleKind == sluice.ScalePerPage {
		kScales, vScales = newScales(t, p, p.KScaleKind, kvShape), newScales(t, p, p.VScaleKind, kvShape)
	}
	if p.Flags&sluice.VInK == 0 {
		vView := sluice.Contiguous(p.VType, shape(kvShape, p.KVHeads, p.HeadDimV))
		switch pack, dim := int64(p.VPack), int64(p.HeadDimV); p.VPack {
		case 0:
		case sluice.VPackAll: // [page or sequence][head][column][token], in whole groups of 8 tokens
			vView.Shape[1] = (vView.Shape[1] + 7) / 8 * 8
			tokens := vView.Shape[1]
			vView.Stride = [4]int64{int64(p.KVHeads) * dim * tokens, 1, dim * tokens, tokens}
		default: // [page][head][pack][column][token]
			size := int64(p.PageSize)
			vView.TokenPack = pack
			vView.Stride = [4]int64{int64(p.KVHeads) * dim * size, dim * pack, dim * size, pack}
		}
		v = newTensor(t, vView)
	}
	if p.Flags&sluice.WriteLSE != 0 {
		made.lse = newTensor(t, sluice.Contiguous(sluice.F32, shape(qShape, p.QHeads, 1)))
	}
	scores := [4]int64{int64(batch), int64(p.QHeads), int64(qLen), int64(kvLen)}
	if p.BiasType != 0 {
		bias = newTensor(t, sluice.Contiguous(p.BiasType, scores))
	}
	var maskBytes []uint8
	masked := kvLen
	if p.Flags&sluice.MaskNewRows != 0 {
		masked = qLen
	}
	if p.Flags&sluice.BoolMask != 0 { // the same for all heads
		mask = &tensor{view: sluice.Contiguous(sluice.MaskBits, [4]int64{int64(batch), 1, int64(qLen), int64(masked+7) / 8})}
		mask.view.Stride[1] = 0
		maskBytes = make([]uint8, batch*qLen*((masked+7)/8))
		mask.array = &array{dtype: sluice.MaskBits, bits8: maskBytes}
	}
	for b, s := range sequences {
		for i := 0; i < s.qLen; i++ {
			first, second := made.row(b, i)
			each(p.QHeads, p.HeadDimQK, func(h, e, at int) { q.set(first, second, h, e, s.q[i*int(p.QHeads*p.HeadDimQK)+at]) })
			for j := 0; j < s.kvLen; j++ {
				for h := 0; bias != nil && h < int(p.QHeads); h++ {
					bias.set(b, h, i, j, s.bias(h, i, j))
				}
				if mask != nil && j < masked && !s.masked(i, j) {
					maskBytes[mask.at(b, 0, i, j/8)] |= 1 << (j % 8)
				}
			}
		}
		for j := 0; j < s.kvLen; j++ {
			first, second := key(b, j)
			each(p.KVHeads, p.HeadDimQK, func(h, e, at int) { k.set(first, second, h, e, s.k[j*int(p.KVHeads*p.HeadDimQK)+at]) })
			if v != nil {
				each(p.KVHeads, p.HeadDimV, func(h, e, at int) { v.set(first, second, h, e, s.v[j*int(p.KVHeads*p.HeadDimV)+at]) })
			}
			for h := 0; kScales != nil && h < int(p.KVHeads); h++ {
				kScales.setScale(first, second, h, s.scaleOf(s.kScales, j, h))
				vScales.setScale(first, second, h, s.scaleOf(s.vScales, j, h))
			}
		}
	}

	h := &made.host
	made.device = sluice.Args{Batch: h.Batch, QLen: h.QLen, KVLen: h.KVLen,
		Q: q.device(t, device), K: k.device(t, device), V: v.device(t, device), O: made.o.device(t, device),
		LSE: made.lse.device(t, device), Bias: bias.device(t, device), Mask: mask.device(t, device),
		QStarts: pointerTo(t, device, h.QStarts), KVStarts: pointerTo(t, device, h.KVStarts),
		QLengths: pointerTo(t, device, h.QLengths), KVLengths: pointerTo(t, device, h.KVLengths),
		PageTable:       pointerTo(t, device, h.PageTable) + pointerTo(t, device, h.PageTable64),
		PageTableStride: h.PageTableStride, PageStarts: pointerTo(t, device, h.PageStarts),
		AlibiSlopes: pointerTo(t, device, h.AlibiSlopes), SinkLogits: pointerTo(t, device, h.SinkLogits),
		QScale: pointerTo(t, device, h.QScale), KScale: pointerTo(t, device, h.KScale),
		VScale:  pointerTo(t, device, h.VScale),
		KScales: kScales.device(t, device), VScales: vScales.device(t, device), OScale: pointerTo(t, device, h.OScale),
		BiasScale: pointerTo(t, device, h.BiasScale), Diagonals: pointerTo(t, device, h.Diagonals),
		Causal: pointerTo(t, device, h.Causal), Spans: pointerTo(t, device, h.Spans), SpanCount: h.SpanCount,
		AlibiBatchStride: h.AlibiBatchStride, BiasScaleBatchStride: h.BiasScaleBatchStride}
	h.Q, h.K, h.V, h.O, h.LSE = q.host(), k.host(), v.host(), made.o.host(), made.lse.host()
	h.Bias, h.Mask, h.KScales, h.VScales = bias.host(), mask.host(), kScales.host(), vScales.host()
	return made
}

// newScales is a tensor for scales per token or page.
func newScales(t *testing.T, p *sluice.Problem, kind sluice.ScaleKind, kvShape [2]int) *tensor {
	rows := kvShape[1]
	if kind == sluice.ScalePerPage {
		rows = 1
	}
	return newTensor(t, sluice.Contiguous(sluice.F32, [4]int64{int64(kvShape[0]), int64(rows), int64(p.KVHeads), 1}))
}

// setScale sets the scale of a row, or of all rows if they have one.
func (s *tensor) setScale(a, b, head int, value float64) {
	s.set(a, b%int(s.view.Shape[1]), head, 0, value)
}

// placeMasks puts what each sequence says of its mask, and its slopes and factors, into arrays.
func placeMasks(p *sluice.Problem, host *sluice.HostArgs, sequences []sequence) {
	for b, s := range sequences {
		if p.Flags&sluice.BiasScale != 0 {
			host.AlibiBatchStride, host.BiasScaleBatchStride = int64(p.QHeads), int64(p.QHeads)+1
			host.AlibiSlopes = append(host.AlibiSlopes, float32s(s.slopes)...)
			host.BiasScale = append(append(host.BiasScale, float32s(s.biasScale)...), -77)
		} else if b == 0 {
			host.AlibiSlopes = float32s(s.slopes)
		}
		if p.MaskAlignment == sluice.GivenDiagonal {
			host.Diagonals = append(host.Diagonals, int32(s.diagonal))
		}
		if p.Flags&sluice.CausalBySequence != 0 {
			causal := int32(0)
			if s.causal {
				causal = 2
			}
			host.Causal = append(host.Causal, causal)
		}
		host.SpanCount = int64(len(s.spans))
		for _, span := range s.spans {
			host.Spans = append(host.Spans, int32(span[0]), int32(span[1]))
		}
	}
}

func each(heads, dim int32, do func(head, element, at int)) {
	for h := 0; h < int(heads); h++ {
		for e := 0; e < int(dim); e++ {
			do(h, e, h*int(dim)+e)
		}
	}
}

func largest(a, b int) int {
	if a > b {
		return a
	}
	return b
}

// pagesOf is two pages more than a case needs.
func pagesOf(c *runCase) int {
	pages := 2
	for _, length := range c.lengths {
		pages += (length[1] + int(c.problem.PageSize) - 1) / int(c.problem.PageSize)
	}
	return pages
}

// placePages assigns pages in a random order and returns where keys are.
func placePages(c *runCase, made *placed, kvLen int, random *rand.Rand) func(b, j int) (int, int) {
	size := int(c.problem.PageSize)
	free := random.Perm(pagesOf(c))
	width := (kvLen + size - 1) / size
	pages := make([][]int, len(c.lengths))
	var table []int64
	starts := []int32{0}
	for b, length := range c.lengths {
		for n := 0; n < (length[1]+size-1)/size; n++ {
			pages[b] = append(pages[b], free[0])
			free = free[1:]
		}
		for n := 0; n < width; n++ {
			switch {
			case n < len(pages[b]):
				table = append(table, int64(pages[b][n]))
			case c.problem.PageTableKind == sluice.PageTableBlock:
				table = append(table, math.MaxInt32) // never read
			}
		}
		starts = append(starts, int32(len(table)))
	}
	if c.problem.PageTableKind == sluice.PageTableCSR {
		made.host.PageStarts = starts
	} else {
		made.host.PageTableStride = int64(width)
	}
	if c.problem.Flags&sluice.PageIndex64 != 0 {
		made.host.PageTable64 = table
	} else {
		for _, page := range table {
			made.host.PageTable = append(made.host.PageTable, int32(page))
		}
	}
	return func(b, j int) (int, int) { return pages[b][j/size], j % size }
}
