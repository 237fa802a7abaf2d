package main

import (
	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/hip"
)

// Attention of one text with a paged cache: KVAppend puts new rows of K and V into pages, Run attends to them. The text
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
	plan                   *sluice.Plan
	memories               []*hip.Memory
	q, k, v, o             *hip.Memory
	starts, lengths, table *hip.Memory
	kCache, vCache         []sluice.Tensor // By layer.
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
	a.plan, err = d.context.NewPlan(&sluice.Problem{
		Mode: sluice.ModePaged, PageTableKind: sluice.PageTableBlock, PageSize: pageSize,
		QType: sluice.F16, KType: sluice.F16, VType: sluice.F16, OType: sluice.F16,
		QHeads: int32(shape.NumHeads), KVHeads: int32(shape.NumKVHeads),
		HeadDimQK: int32(shape.HeadDim), HeadDimV: int32(shape.HeadDim),
		MaxBatch: 1, MaxQLen: int32(shape.MaxPositions), MaxKVLen: int32(shape.MaxPositions),
		// The text does not depend on the bounds of the plan, and is the same as with a contiguous cache.
		Determinism: sluice.DeterminismBatchInvariant,
		// Bottom-right alignment, the default: the last new row sees the whole cache.
		Flags: sluice.Causal,
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
	cache := sluice.Contiguous(sluice.F16, [4]int64{int64(pages), pageSize, int64(shape.NumKVHeads), int64(shape.HeadDim)})
	for i := 0; i < shape.NumLayers && err == nil; i++ {
		for _, caches := range []*[]sluice.Tensor{&a.kCache, &a.vCache} {
			if memory := allocate(pages * 2 * pageSize * shape.NumKVHeads * shape.HeadDim); memory != nil {
				var tensor sluice.Tensor
				tensor, err = memory.Tensor(0, cache)
				*caches = append(*caches, tensor)
			}
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

// rows are new rows of one sequence in memory: [1, row, head, dim].
func (a *pagedAttention) rows(memory *hip.Memory, rows, heads int) (sluice.Tensor, error) {
	return memory.Tensor(0, sluice.Contiguous(sluice.F16, [4]int64{1, int64(rows), int64(heads), int64(a.shape.HeadDim)}))
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
		var err error
		if tensors[i], err = a.rows(operand.memory, rows, operand.heads); err != nil {
			return nil, err
		}
	}
	if err := hip.Upload(a.starts, 0, []int32{0, int32(rows)}); err != nil {
		return nil, err
	}
	if err := hip.Upload(a.lengths, 0, []int32{total}); err != nil {
		return nil, err
	}

	// Both on the default stream: the run sees what the append has written.
	err := a.device.context.KVAppend(&sluice.Append{
		SourceType: sluice.F16, CacheType: sluice.F16,
		KVHeads: int32(a.shape.NumKVHeads), HeadDimQK: int32(a.shape.HeadDim), HeadDimV: int32(a.shape.HeadDim),
		PageSize: pageSize, PageTableKind: sluice.PageTableBlock, Tokens: int32(rows), Batch: 1,
		K: tensors[1], V: tensors[2], KCache: a.kCache[layer], VCache: a.vCache[layer],
		Starts: a.starts.Pointer(), KVLengths: a.lengths.Pointer(),
		PageTable: a.table.Pointer(), PageTableStride: a.table.Bytes() / 4,
	}, nil)
	if err != nil {
		return nil, err
	}
	err = a.plan.Run(&sluice.Args{
		Batch: 1, QLen: int32(rows), KVLen: total,
		Q: tensors[0], K: a.kCache[layer], V: a.vCache[layer], O: tensors[3],
		KVLengths: a.lengths.Pointer(), PageTable: a.table.Pointer(), PageTableStride: a.table.Bytes() / 4,
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
