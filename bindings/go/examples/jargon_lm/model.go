package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
)

// The decoder: everything but attention, on the host, in float32. Activations are row-major [row, feature] slices. Each
// product is rounded by an explicit conversion, because Go may otherwise fuse it with the following sum on some
// machines, and the text would depend on the machine.

type config struct {
	VocabSize    int     `json:"vocab_size"`
	HiddenSize   int     `json:"hidden_size"`
	NumLayers    int     `json:"num_layers"`
	NumHeads     int     `json:"num_heads"`
	NumKVHeads   int     `json:"num_kv_heads"`
	HeadDim      int     `json:"head_dim"`
	MLPSize      int     `json:"mlp_size"`
	MaxPositions int     `json:"max_positions"`
	RopeBase     float64 `json:"rope_base"`
	NormEps      float32 `json:"norm_eps"`
}

type layer struct{ attnNorm, q, k, v, o, mlpNorm, gate, up, down []float32 } // matrices are [out, in]

type model struct {
	config
	embed, norm []float32
	layers      []layer
}

// attention runs on the device: Q, K and V of new rows go in, O comes out.
type attention interface {
	run(layer int, q, k, v []float32) ([]float32, error)
	length() int      // Positions in the cache.
	advance(rows int) // After the last layer.
}

func loadModel(folder string) (*model, error) {
	m := &model{}
	text, err := os.ReadFile(folder + "/config.json")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &m.config); err != nil {
		return nil, fmt.Errorf("%s/config.json: %w", folder, err)
	}
	tensors, err := loadSafetensors(folder + "/model.safetensors")
	if err != nil {
		return nil, err
	}
	take := func(name string, shape ...int) []float32 {
		tensor, found := tensors[name+".weight"]
		right := found && len(tensor.shape) == len(shape)
		for i := 0; right && i < len(shape); i++ {
			right = tensor.shape[i] == int64(shape[i])
		}
		if !right && err == nil {
			err = fmt.Errorf("%s.weight has shape %v; it must be %v", name, tensor.shape, shape)
		}
		return tensor.values
	}
	hidden, q, kv := m.HiddenSize, m.NumHeads*m.HeadDim, m.NumKVHeads*m.HeadDim
	m.embed, m.norm = take("embed", m.VocabSize, hidden), take("norm", hidden)
	for i := 0; i < m.NumLayers; i++ {
		prefix := fmt.Sprintf("layers.%d.", i)
		m.layers = append(m.layers, layer{
			attnNorm: take(prefix+"attn_norm", hidden),
			q:        take(prefix+"q", q, hidden),
			k:        take(prefix+"k", kv, hidden),
			v:        take(prefix+"v", kv, hidden),
			o:        take(prefix+"o", hidden, q),
			mlpNorm:  take(prefix+"mlp_norm", hidden),
			gate:     take(prefix+"gate", m.MLPSize, hidden),
			up:       take(prefix+"up", m.MLPSize, hidden),
			down:     take(prefix+"down", hidden, m.MLPSize),
		})
	}
	return m, err
}

// multiply is y[row, out] = sum over in of x[row, in] * weight[out, in].
func multiply(x, weight []float32, in int) []float32 {
	rows, outs := len(x)/in, len(weight)/in
	y := make([]float32, rows*outs)
	for row := 0; row < rows; row++ {
		from := x[row*in : (row+1)*in]
		for out := 0; out < outs; out++ {
			sum := float32(0)
			for i, w := range weight[out*in : (out+1)*in] {
				sum += float32(from[i] * w)
			}
			y[row*outs+out] = sum
		}
	}
	return y
}

func add(x, y []float32) {
	for i := range x {
		x[i] += y[i]
	}
}

func (m *model) normalised(x, weight []float32) []float32 {
	width := len(weight)
	y := make([]float32, len(x))
	for row := 0; row < len(x); row += width {
		squares := float32(0)
		for _, value := range x[row : row+width] {
			squares += float32(value * value)
		}
		factor := 1 / float32(math.Sqrt(float64(float32(squares/float32(width))+m.NormEps)))
		for i, w := range weight {
			y[row+i] = float32(x[row+i]*factor) * w
		}
	}
	return y
}

// rotate applies half-split rotary positions: feature i is rotated with feature i + HeadDim / 2.
func (m *model) rotate(heads []float32, headCount, first int) {
	half := m.HeadDim / 2
	for row := 0; row < len(heads)/(headCount*m.HeadDim); row++ {
		for i := 0; i < half; i++ {
			angle := float32(first+row) * float32(math.Pow(m.RopeBase, -float64(i)/float64(half)))
			cosine, sine := float32(math.Cos(float64(angle))), float32(math.Sin(float64(angle)))
			for head := 0; head < headCount; head++ {
				x := heads[(row*headCount+head)*m.HeadDim:]
				a, b := x[i], x[i+half]
				x[i] = float32(a*cosine) - float32(b*sine)
				x[i+half] = float32(b*cosine) + float32(a*sine)
			}
		}
	}
}

// forward appends bytes to the text of `a` and returns the logits of the last of them.
func (m *model) forward(bytes []byte, a attention) ([]float32, error) {
	if len(bytes) == 0 || a.length()+len(bytes) > m.MaxPositions {
		return nil, fmt.Errorf("%d bytes after %d: the text would leave positions 1 to %d", len(bytes), a.length(),
			m.MaxPositions)
	}
	var x []float32
	for _, b := range bytes {
		x = append(x, m.embed[int(b)*m.HiddenSize:(int(b)+1)*m.HiddenSize]...)
	}
	for i := range m.layers {
		weights := &m.layers[i]
		input := m.normalised(x, weights.attnNorm)
		q, k := multiply(input, weights.q, m.HiddenSize), multiply(input, weights.k, m.HiddenSize)
		m.rotate(q, m.NumHeads, a.length())
		m.rotate(k, m.NumKVHeads, a.length())
		heads, err := a.run(i, q, k, multiply(input, weights.v, m.HiddenSize))
		if err != nil {
			return nil, err
		}
		add(x, multiply(heads, weights.o, m.NumHeads*m.HeadDim))
		input = m.normalised(x, weights.mlpNorm)
		gate, up := multiply(input, weights.gate, m.HiddenSize), multiply(input, weights.up, m.HiddenSize)
		for j, value := range gate {
			gate[j] = value / (1 + float32(math.Exp(-float64(value)))) * up[j]
		}
		add(x, multiply(gate, weights.down, m.MLPSize))
	}
	a.advance(len(bytes))
	return multiply(m.normalised(x[len(x)-m.HiddenSize:], m.norm), m.embed, m.HiddenSize), nil
}

func mostLikely(logits []float32) byte {
	best := 0
	for i, logit := range logits {
		if logit > logits[best] {
			best = i
		}
	}
	return byte(best)
}
