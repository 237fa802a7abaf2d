package main

import (
	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/hip"
)

// Attention of one text with a paged cache: Context.Append puts new rows of K and V into pages, Run attends to them. The text
// gets its pages out of order, as it would if many texts shared a pool.

const pageSize = 16

type device struct {
	context *sluice.Context
	runtime *hip.Runtime
	runs    map[string]int // By kernel name.
}

func openDevice(desc sluice.ContextDesc) (*device, error) {
	context, err := sluice.NewContext(desc)
	if err != nil {
		return nil, err
	}
	d := &device{context: context, runs: map[string]int{}}
	if d.runtime, err = hip.Open(context); err == nil {
		err = context.SetTrace(func(record *sluice.TraceRecord) {
			if record.Event == sluice.TraceRun {
				d.runs[record.Kernel]++
			}
		})
	}
	if err != nil {
		context.Close()
		return nil, err
	}
	return d, nil
}

type pagedAttention struct {
	device                 *device
	shape                  config
	format                 sluice.KVFormat
	plan                   *sluice.Plan
	memories               []*hip.Memory
	q, k, v, o             *hip.Memory
	starts, lengths, table *hip.Memory
	caches                 []sluice.KV // By layer.
	launch                 sluice.Launch
	positions              int
}

// newAttention has everything that a text of the model's longest length needs. Close it.
func newAttention(d *device, shape config) (a *pagedAttention, err error) {
	a = &pagedAttention{device: d, shape: shape}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	a.format = sluice.KVPages(sluice.F16, int32(shape.NumKVHeads), int32(shape.HeadDim), pageSize)
	longest, half := int32(shape.MaxPositions), sluice.Format{Type: sluice.F16}
	a.plan, err = d.context.NewPlan(&sluice.Attention{
		QHeads: int32(shape.NumHeads), Q: half, O: half, KV: &a.format,
		Bounds: sluice.Bounds{Batch: 1, QLen: longest, KVLen: longest},
		// The text does not depend on the bounds of the plan, and is the same as with a contiguous cache.
		Flags: sluice.AttentionBatchInvariant,
		// Bottom-right alignment, the default: the last new row sees the whole cache.
		Mask: &sluice.Mask{Flags: sluice.MaskCausal},
	})
	if err != nil {
		return a, err
	}
	info, err := a.plan.Describe()
	if err != nil {
		return a, err
	}
	allocate := func(bytes int) *hip.Memory {
		if err != nil {
			return nil
		}
		var memory *hip.Memory
		if memory, err = d.runtime.Malloc(int64(bytes)); err == nil {
			a.memories = append(a.memories, memory)
		}
		return memory
	}
	qBytes, kvBytes := 2*shape.MaxPositions*shape.NumHeads*shape.HeadDim, 2*shape.MaxPositions*shape.NumKVHeads*shape.HeadDim
	a.q, a.o, a.k, a.v = allocate(qBytes), allocate(qBytes), allocate(kvBytes), allocate(kvBytes)
	pages := (shape.MaxPositions + pageSize - 1) / pageSize
	a.starts, a.lengths, a.table = allocate(2*4), allocate(4), allocate(4*pages)
	if info.WorkspaceBytes != 0 {
		if workspace := allocate(int(info.WorkspaceBytes)); workspace != nil {
			a.launch = sluice.Launch{Workspace: workspace.Pointer(), WorkspaceBytes: info.WorkspaceBytes}
		}
	}
	for i := 0; i < shape.NumLayers && err == nil; i++ {
		k, v := allocate(pages*pageSize*kvBytes/shape.MaxPositions), allocate(pages*pageSize*kvBytes/shape.MaxPositions)
		if err == nil {
			a.caches = append(a.caches, sluice.KV{Format: &a.format, K: a.rows(k, pageSize, shape.NumKVHeads),
				V: a.rows(v, pageSize, shape.NumKVHeads), PageCount: int64(pages)})
		}
	}
	if err != nil {
		return a, err
	}
	order := make([]int32, pages)
	for i := range order {
		order[i] = int32(pages - 1 - i)
	}
	return a, hip.Upload(a.table, 0, order)
}

func (a *pagedAttention) length() int      { return a.positions }
func (a *pagedAttention) advance(rows int) { a.positions += rows }
func (a *pagedAttention) clear()           { a.positions = 0 }

// rows are rows of one sequence or of pages in memory: [1, row, head, dim].
func (a *pagedAttention) rows(memory *hip.Memory, rows, heads int) sluice.Tensor {
	return sluice.BSHD(memory.Pointer(), int64(rows), int64(heads), int64(a.shape.HeadDim))
}

func (a *pagedAttention) run(layer int, q, k, v []float32) ([]float32, error) {
	rows := len(q) / (a.shape.NumHeads * a.shape.HeadDim)
	total := int32(a.positions + rows)
	var tensors [4]sluice.Tensor
	for i, operand := range []struct {
		values []float32
		memory *hip.Memory
		heads  int
	}{{q, a.q, a.shape.NumHeads}, {k, a.k, a.shape.NumKVHeads}, {v, a.v, a.shape.NumKVHeads}, {nil, a.o, a.shape.NumHeads}} {
		halves := make([]uint16, len(operand.values))
		for j, value := range operand.values {
			halves[j] = toHalf(value)
		}
		if err := hip.Upload(operand.memory, 0, halves); err != nil {
			return nil, err
		}
		tensors[i] = a.rows(operand.memory, rows, operand.heads)
	}
	if err := hip.Upload(a.starts, 0, []int32{0, int32(rows)}); err != nil {
		return nil, err
	}
	if err := hip.Upload(a.lengths, 0, []int32{total}); err != nil {
		return nil, err
	}

	// Both on the default stream: the run sees what the append has written.
	cache, pages := &a.caches[layer], sluice.Pages{Table: a.table.Pointer(), Stride: a.table.Bytes() / 4}
	err := a.device.context.Append(&sluice.Append{
		SourceType: sluice.F16, Tokens: int32(rows), K: tensors[1], V: tensors[2], KV: cache,
		Batch: 1, Starts: a.starts.Pointer(), Lengths: a.lengths.Pointer(), Pages: pages,
	}, nil)
	if err != nil {
		return nil, err
	}
	err = a.plan.Run(&sluice.Args{
		Batch: 1, Q: tensors[0], O: tensors[3], Rows: sluice.Rows{MaxLen: int32(rows)},
		Keys: []sluice.Keys{{KV: cache, Rows: sluice.Rows{MaxLen: total, Lengths: a.lengths.Pointer()}, Pages: pages}},
	}, &a.launch)
	if err != nil {
		return nil, err
	}

	halves := make([]uint16, len(q))
	if err := hip.Download(halves, a.o, 0); err != nil { // waits for the run
		return nil, err
	}
	o := make([]float32, len(q))
	for i, half := range halves {
		o[i] = fromHalf(half)
	}
	return o, nil
}

// close closes everything after the last run.
func (a *pagedAttention) close() error {
	err := a.plan.Close()
	for _, memory := range a.memories {
		if failed := memory.Free(); err == nil {
			err = failed
		}
	}
	return err
}

func (d *device) close() error {
	return d.context.Close()
}
