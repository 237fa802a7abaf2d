package main

import "math"

// mt19937 is the generator that C++ calls std::mt19937_64, so that a seed gives the same text as there.
type mt19937 struct {
	state [312]uint64
	next  int
}

func newMT19937(seed uint64) *mt19937 {
	m := &mt19937{next: len(mt19937{}.state)}
	m.state[0] = seed
	for i := 1; i < len(m.state); i++ {
		m.state[i] = 6364136223846793005*(m.state[i-1]^m.state[i-1]>>62) + uint64(i)
	}
	return m
}

func (m *mt19937) draw() uint64 {
	const size, middle, lowBits = 312, 156, 1<<31 - 1
	if m.next == size {
		for i := range m.state {
			x := m.state[i]&^lowBits | m.state[(i+1)%size]&lowBits
			m.state[i] = m.state[(i+middle)%size] ^ x>>1 ^ x&1*0xb5026f5aa96619e9
		}
		m.next = 0
	}
	x := m.state[m.next]
	m.next++
	x ^= x >> 29 & 0x5555555555555555
	x ^= x << 17 & 0x71d67fffeda60000
	x ^= x << 37 & 0xfff7eee000000000
	return x ^ x>>43
}

// sample is one byte with probability softmax(logits / temperature).
func sample(logits []float32, temperature float32, random *mt19937) byte {
	largest := logits[mostLikely(logits)]
	weights, sum := make([]float64, len(logits)), 0.0
	for i, logit := range logits {
		weights[i] = math.Exp(float64(logit-largest) / float64(temperature))
		sum += weights[i]
	}
	place := float64(math.Ldexp(float64(random.draw()>>11), -53) * sum)
	for i, weight := range weights {
		if place -= weight; place < 0 {
			return byte(i)
		}
	}
	return mostLikely(logits)
}
