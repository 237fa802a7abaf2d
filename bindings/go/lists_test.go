package sluice_test

import (
	"math/rand"
	"testing"

	sluice "github.com/sluice-attention/sluice/bindings/go"
)

// Page tables as lists with holes, one for each sequence and KV head: calls by Plan.Run and by Reference against the oracle,
// which gets the keys that are listed, with a mask over the holes.

const listHeads, listPages, listDim = 2, 40, 64

// listCase is a table; tables are [sequence][head][entry] in this test.
type listCase struct {
	name       string
	size       int32 // Rows per page: 1 for lists of keys.
	lengths    []int // Keys of each sequence, hidden ones included.
	headsFirst bool  // In memory, the lists of a head are together.
	csr, wide  bool
}

var listCases = []listCase{
	{name: "keys", size: 1, lengths: []int{40, 33, 40}},
	{name: "keys_heads_first", size: 1, lengths: []int{7, 40, 1}, headsFirst: true, wide: true},
	{name: "keys_csr", size: 1, lengths: []int{40, 5, 33}, csr: true, wide: true},
	{name: "pages", size: 16, lengths: []int{96, 50, 81}},
	{name: "pages_csr", size: 16, lengths: []int{30, 96, 17}, csr: true},
}

// lists are different pages in random order, with a hole in three of ten places; all of the last sequence's first head are
// holes.
func (c *listCase) lists(random *rand.Rand) [][listHeads][]int32 {
	var made [][listHeads][]int32
	for b, length := range c.lengths {
		var heads [listHeads][]int32
		for h := range heads {
			for _, page := range random.Perm(listPages)[:(length+int(c.size)-1)/int(c.size)] {
				if random.Intn(10) < 3 || b == len(c.lengths)-1 && h == 0 {
					page = -1 - random.Intn(2)
				}
				heads[h] = append(heads[h], int32(page))
			}
		}
		made = append(made, heads)
	}
	return made
}

// put puts lists into a table; strides and starts say where they are.
func (c *listCase) put(lists [][listHeads][]int32, host *sluice.HostArgs) {
	width := 0
	for _, heads := range lists {
		width = largest(width, len(heads[0]))
	}
	var table []int32
	starts := []int32{0}
	switch {
	case c.csr:
		for h := 0; h < listHeads; h++ {
			for _, heads := range lists {
				table = append(table, heads[h]...)
				if h == 0 {
					starts = append(starts, int32(len(table)))
				}
			}
		}
		host.PageStarts, host.PageTableHeadStride = starts, int64(starts[len(lists)])
	case c.headsFirst:
		table = make([]int32, listHeads*len(lists)*width)
		host.PageTableStride, host.PageTableHeadStride = int64(width), int64(len(lists)*width)
	default:
		table = make([]int32, listHeads*len(lists)*width)
		host.PageTableStride, host.PageTableHeadStride = int64(listHeads*width), int64(width)
	}
	for b, heads := range lists {
		for h := 0; !c.csr && h < listHeads; h++ {
			copy(table[int64(b)*host.PageTableStride+int64(h)*host.PageTableHeadStride:], heads[h])
		}
	}
	if !c.wide {
		host.PageTable = table
		return
	}
	for _, page := range table {
		host.PageTable64 = append(host.PageTable64, int64(page))
	}
}

func TestLists(t *testing.T) {
	context, device := emulated(t)
	for n := range listCases {
		n, c := n, &listCases[n]
		t.Run(c.name, func(t *testing.T) {
			random := rand.New(rand.NewSource(int64(n)))
			p := problemOf(sluice.F16, 2*listHeads, listHeads, listDim, func(p *sluice.Problem) {
				paged(p, sluice.PageTableBlock, c.size)
				if c.csr {
					p.PageTableKind = sluice.PageTableCSR
				}
				if c.wide {
					p.Flags |= sluice.PageIndex64
				}
				p.Flags |= sluice.MissingPagesHidden
			})
			random16 := func(shape [4]int64) *tensor {
				made := newTensor(t, sluice.Contiguous(sluice.F16, shape))
				for i := range made.array.bits16 {
					made.array.set(int64(i), encode(sluice.F16, exact(random)))
				}
				return made
			}
			batch := len(c.lengths)
			rows := [4]int64{int64(batch), 1, 2 * listHeads, listDim}
			pages := [4]int64{listPages, int64(c.size), listHeads, listDim}
			q, k, v, o := random16(rows), random16(pages), random16(pages), newTensor(t, sluice.Contiguous(sluice.F16, rows))
			lse := newTensor(t, sluice.Contiguous(sluice.F32, [4]int64{rows[0], 1, rows[2], 1}))
			made := &placed{o: o, lse: lse, row: func(b, i int) (int, int) { return b, i }}
			longest := 0
			for _, length := range c.lengths {
				longest = largest(longest, length)
				made.host.KVLengths = append(made.host.KVLengths, int32(length))
			}
			lists := c.lists(random)
			c.put(lists, &made.host)
			host := &made.host
			host.Batch, host.QLen, host.KVLen = int32(batch), 1, int32(longest)
			made.device = sluice.Args{Batch: host.Batch, QLen: 1, KVLen: host.KVLen, Q: q.device(t, device),
				K: k.device(t, device), V: v.device(t, device), O: o.device(t, device), LSE: lse.device(t, device),
				KVLengths: pointerTo(t, device, host.KVLengths), PageStarts: pointerTo(t, device, host.PageStarts),
				PageTable:       pointerTo(t, device, host.PageTable) + pointerTo(t, device, host.PageTable64),
				PageTableStride: host.PageTableStride, PageTableHeadStride: host.PageTableHeadStride}
			host.Q, host.K, host.V, host.O, host.LSE = q.host(), k.host(), v.host(), o.host(), lse.host()

			masked := p
			masked.Flags |= sluice.BoolMask
			var expected [][]row
			for b, length := range c.lengths {
				var of []row
				for h := 0; h < 2*listHeads; h++ {
					list := lists[b][h/2]
					listed := func(cache *tensor) []float64 {
						var values []float64
						for j := 0; j < length; j++ {
							page := int(list[j/int(c.size)])
							for at := 0; at < listHeads*listDim; at++ {
								value := 0.0
								if page >= 0 {
									value = cache.array.value(cache.at(page, j%int(c.size), at/listDim, at%listDim))
								}
								values = append(values, value)
							}
						}
						return values
					}
					s := sequence{qLen: 1, kvLen: length, k: listed(k), v: listed(v),
						masked: func(_, j int) bool { return list[j/int(c.size)] < 0 }}
					for at := 0; at < 2*listHeads*listDim; at++ {
						s.q = append(s.q, q.array.value(q.at(b, 0, at/listDim, at%listDim)))
					}
					of = append(of, attend(&masked, &s, factors{}, h, 0))
				}
				expected = append(expected, of)
			}
			run := &runCase{problem: p}
			check(t, sluice.Reference(&p, host))
			compare(t, "reference", run, made, o, lse, expected, func(b bounded) float64 { return b.reference })
			plan, err := context.NewPlan(&p)
			check(t, err)
			defer plan.Close()
			check(t, plan.Run(&made.device, nil))
			check(t, device.Synchronize(0))
			compare(t, "run", run, made, o.fromDevice(t), lse.fromDevice(t), expected, func(b bounded) float64 { return b.kernel })

			// The last head's last entry is needed.
			short := *host
			if c.wide {
				short.PageTable64 = short.PageTable64[:len(short.PageTable64)-1]
			} else {
				short.PageTable = short.PageTable[:len(short.PageTable)-1]
			}
			if c.csr || len(lists[batch-1][1]) == len(lists[0][1]) {
				refused(t, sluice.Reference(&p, &short), sluice.InvalidArgument, "page_table", "entries")
			}
			negative := made.device
			negative.PageTableHeadStride = -1
			refused(t, plan.Run(&negative, nil), sluice.InvalidArgument, "page_table_head_stride", "-1")
		})
	}
}
