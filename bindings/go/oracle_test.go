package sluice_test

import (
	"math"

	sluice "github.com/sluice-attention/sluice/bindings/go"
)

// An independent attention in double precision, on sequences without layouts, with the error that a kernel and the
// library's reference may have. The formulas are those of docs/concepts/numerics.md.

// sequence is one of a batch: rows of q, rows of k and v, all [row][head][element], and modifiers of its scores.
type sequence struct {
	qLen, kvLen int
	q, k, v     []float64
	bias        func(head, i, j int) float64
	masked      func(i, j int) bool // The mask hides it.

	slopes, biasScale []float64 // By head, if the problem has them.
	kScales, vScales  []float64 // By key and head, if the problem has them per token or page.
	diagonal          int
	causal            bool
	spans             [][2]int
}

// scaleOf is the scale of a key for a KV head.
func (s *sequence) scaleOf(scales []float64, j, kvHead int) float64 {
	if scales == nil {
		return 1
	}
	return scales[j*len(scales)/s.kvLen+kvHead]
}

// spanOf is the number of the span with a key; -1 if no span has it.
func (s *sequence) spanOf(key int) int {
	for n, span := range s.spans {
		if span[0] <= key && key < span[1] {
			return n
		}
	}
	return -1
}

// shift is the key on the diagonal of row 0.
func (s *sequence) shift(alignment sluice.MaskAlignment) int {
	switch alignment {
	case sluice.TopLeft:
		return 0
	case sluice.GivenDiagonal:
		return s.diagonal
	}
	return s.kvLen - s.qLen
}

// factors are the scales of a call, and other numbers per head.
type factors struct {
	q, k, v, o []float64 // By head; nil is 1.
	sinks      []float64
}

func (f factors) of(list []float64, head int) float64 {
	if len(list) == 0 {
		return 1
	}
	return list[head%len(list)]
}

// bounded is a value with the largest error of the library's reference and of a kernel.
type bounded struct{ value, reference, kernel float64 }

type row struct {
	o   []bounded
	lse bounded
}

const u = 1.0 / (1 << 24)

// attend is row i of a query head.
func attend(p *sluice.Problem, s *sequence, f factors, head, i int) row {
	dk, dv := int(p.HeadDimQK), int(p.HeadDimV)
	kvHead := head / int(p.QHeads/p.KVHeads)
	scale := f.of(f.q, head) * f.of(f.k, kvHead) / math.Sqrt(float64(dk))
	shift := s.shift(p.MaskAlignment)
	firstMasked := 0
	if p.Flags&sluice.MaskNewRows != 0 {
		firstMasked = s.kvLen - s.qLen
	}
	var scores []float64
	var keys []int
	var largestProducts, largestRaw, largest, largestBias, largestSlope, largestChanged, largestExponent float64
	tiles16, tiles64 := map[int]bool{}, map[int]bool{}
	for j := 0; j < s.kvLen; j++ {
		d := j - i - shift
		together := s.spanOf(j) >= 0 && s.spanOf(j) == s.spanOf(i+shift)
		switch {
		case !together && (p.Flags&sluice.Causal != 0 || s.causal) && d > 0,
			!together && p.Flags&sluice.HasWindowRight != 0 && d > int(p.WindowRight),
			!together && p.Flags&sluice.HasWindowLeft != 0 && d < -int(p.WindowLeft) && j >= int(p.SinkTokens),
			p.Flags&sluice.BoolMask != 0 && j >= firstMasked && s.masked(i, j-firstMasked):
			continue
		}
		dot, products := 0.0, 0.0
		for e := 0; e < dk; e++ {
			product := s.q[(i*int(p.QHeads)+head)*dk+e] * s.k[(j*int(p.KVHeads)+kvHead)*dk+e]
			dot += product
			products += math.Abs(product)
		}
		keyScale := scale * s.scaleOf(s.kScales, j, kvHead)
		x := keyScale * dot
		largestProducts = math.Max(largestProducts, keyScale*products)
		largestRaw = math.Max(largestRaw, math.Abs(x))
		changed := 0.0
		if p.SoftCap != 0 {
			x = float64(p.SoftCap) * math.Tanh(x/float64(p.SoftCap))
		}
		changed += math.Abs(x)
		if p.BiasType != 0 {
			bias := s.bias(head, i, j)
			if s.biasScale != nil {
				bias *= s.biasScale[head]
			}
			x += bias
			changed += math.Abs(bias)
			largestBias = math.Max(largestBias, math.Abs(bias))
		}
		if p.Flags&sluice.Alibi != 0 {
			slope := s.slopes[head] * math.Abs(float64(i+shift-j))
			x -= slope
			changed += math.Abs(slope)
			largestSlope = math.Max(largestSlope, math.Abs(slope))
		}
		largestChanged = math.Max(largestChanged, changed)
		largest = math.Max(largest, math.Abs(x))
		if s.vScales != nil {
			exponent := math.Log(s.scaleOf(s.vScales, j, kvHead))
			largestExponent = math.Max(largestExponent, math.Abs(exponent))
			largest = math.Max(largest, math.Abs(x+exponent))
		}
		scores, keys = append(scores, x), append(keys, j)
		tiles16[j/16], tiles64[j/64] = true, true
	}

	sinks := p.Flags&sluice.SinkLogits != 0
	all := scores
	if sinks {
		all = append(append([]float64{}, scores...), f.sinks[head])
		largest = math.Max(largest, math.Abs(f.sinks[head]))
	}
	result := row{o: make([]bounded, dv)}
	base := 1.0
	if p.LSEBase == sluice.LSEBase2 {
		base = math.Log2E
	}
	if len(keys) == 0 { // exact
		result.lse.value = math.Inf(-1)
		if sinks {
			result.lse.value = f.sinks[head] * base
			result.lse.reference = u * math.Abs(result.lse.value)
			result.lse.kernel = 2 * u * math.Abs(result.lse.value)
		}
		return result
	}
	m, l := math.Inf(-1), 0.0
	for _, x := range all {
		m = math.Max(m, x)
	}
	for _, x := range all {
		l += math.Exp(x - m)
	}
	lse := m + math.Log(l)

	X := math.Max(largest, largestRaw)
	n, t := float64(len(all)), float64(len(tiles16))
	if sinks {
		t++
	}
	g := math.Min(float64(len(keys)), float64(8*len(tiles64)))
	changes := 0.0
	for _, given := range [][]float64{f.q, f.k, s.kScales} {
		if given != nil {
			changes += 2 * largestRaw
		}
	}
	if p.SoftCap != 0 {
		changes += 2*largestRaw + 12*float64(p.SoftCap)
	}
	if p.BiasType != 0 {
		changes += 4*largestBias + largestChanged
	}
	if p.Flags&sluice.Alibi != 0 {
		changes += 3*largestSlope + largestChanged
	}
	if s.vScales != nil { // P includes them
		changes += 4*largestExponent + X + 4
	}
	weight := u*(largestProducts*(8+3*float64(dk)/8)+10*X+changes) + u*(2+t*(3+4*X))
	sum, merge := weight+u*n, 0.0
	if t > 1 {
		merge = u * (11*(X+math.Log(n)) + 10 + 2*t)
	}
	result.lse = bounded{lse * base, 2 * u * math.Abs(lse*base),
		base*(sum+merge+u*(4*X+4*(1+math.Log(l))+math.Abs(lse))) + 2*u*math.Abs(lse*base)}

	// Of P and O in the type of Q.
	pRound, pSmall, oRound, oSmall := math.Ldexp(1, -10), math.Ldexp(1, -24), math.Ldexp(1, -11), math.Ldexp(1, -25)
	if p.QType == sluice.BF16 {
		pRound, pSmall, oRound, oSmall = math.Ldexp(1, -8), math.Ldexp(1, -126), math.Ldexp(1, -8), math.Ldexp(1, -134)
	}
	if p.OType == sluice.E4M3FNUZ {
		oRound, oSmall = math.Ldexp(1, -4), math.Ldexp(1, -11)
	}
	vFactor, oScale := f.of(f.v, kvHead), f.of(f.o, head)
	// The weight that P is relative to includes the scale of V.
	heaviest := 1.0
	if s.vScales != nil {
		heaviest = 0
		for at, j := range keys {
			heaviest = math.Max(heaviest, math.Exp(scores[at]-m)*s.scaleOf(s.vScales, j, kvHead))
		}
	}
	for e := 0; e < dv; e++ {
		o, W, size := 0.0, 0.0, 0.0
		for at, j := range keys {
			v := vFactor
			if p.Flags&sluice.VInK != 0 {
				v *= s.k[(j*int(p.KVHeads)+kvHead)*dk+e]
			} else {
				v *= s.v[(j*int(p.KVHeads)+kvHead)*dv+e]
			}
			part := math.Exp(scores[at]-m) / l
			size += heaviest * math.Abs(v)
			v *= s.scaleOf(s.vScales, j, kvHead)
			o += part * v
			W += part * math.Abs(v)
		}
		o, W, size = o/oScale, W/oScale, size/oScale
		kernel := W*(pRound+weight+u*(8+3*g)+merge) + pSmall*size/l + math.Abs(o)*(sum+8*u)
		reference := oRound*math.Abs(o)*(1+1e-9) + oSmall + 1e-12*W
		kernel += oRound*(math.Abs(o)+kernel) + oSmall
		if p.OType == sluice.E4M3FNUZ {
			o = math.Max(-240, math.Min(240, o))
		}
		result.o[e] = bounded{o, reference, kernel}
	}
	return result
}
