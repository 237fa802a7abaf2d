package hip_test

import (
	"fmt"

	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/hip"
)

// replay captures a copy and a run, and launches them for each number of keys.
func replay(runtime *hip.Runtime, plan *sluice.Plan, args *sluice.Args, lengths *hip.Memory, steps []int32,
	see func() error) error {
	stream, err := runtime.NewStream()
	if err != nil {
		return err
	}
	defer stream.Close()
	host, err := runtime.HostMalloc(4) // bytes
	if err != nil {
		return err
	}
	defer host.Free()
	length, err := hip.Values[int32](host, 0, 1) // the pinned memory itself
	if err != nil {
		return err
	}
	graph, err := stream.Capture(func() error {
		if err := lengths.UploadAsync(0, host, 0, 4, stream.Handle()); err != nil {
			return err
		}
		return plan.Run(args, &sluice.Launch{Stream: stream.Handle()})
	})
	if err != nil {
		return err
	}
	defer graph.Close()
	for _, step := range steps {
		length[0] = step // which the copy finds when it executes
		if err := graph.Launch(stream.Handle()); err != nil {
			return err
		}
		if err := stream.Synchronize(); err != nil {
			return err
		}
		if err := see(); err != nil {
			return err
		}
	}
	return nil
}

// A step of decoding as a graph: keys that score the same, so that the result is the mean of their values 0, 1, 2, 3.
func ExampleStream_Capture() {
	const keys, headSize = 4, 128
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	context, err := sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceEmulated})
	must(err)
	defer context.Close()
	rows, format := sluice.Format{Type: sluice.F16}, sluice.KVTensors(sluice.F16, 1, headSize)
	plan, err := context.NewPlan(&sluice.Attention{QHeads: 1, Q: rows, O: rows, KV: &format,
		Bounds: sluice.Bounds{Batch: 1, QLen: 1, KVLen: keys}}) // the graph serves every length up to this one
	must(err)
	defer plan.Close()
	runtime, err := hip.Open(context)
	must(err)
	values := make([]uint16, (1+keys+keys+1)*headSize) // Q, K, V, O; all is 0 but V
	for i, number := range [keys]uint16{0x0000, 0x3c00, 0x4000, 0x4200} {
		for e := 0; e < headSize; e++ {
			values[(1+keys+i)*headSize+e] = number
		}
	}
	memory, err := hip.NewMemory(runtime, values)
	must(err)
	defer memory.Free()
	lengths, err := hip.NewMemory(runtime, []int32{0})
	must(err)
	defer lengths.Free()
	tensor := func(row, rows int64) sluice.Tensor {
		return sluice.BSHD(memory.At(2*row*headSize), rows, 1, headSize)
	}
	kv := sluice.KV{Format: &format, K: tensor(1, keys), V: tensor(1+keys, keys)}
	args := sluice.Args{Batch: 1, Q: tensor(0, 1), O: tensor(1+keys+keys, 1), Rows: sluice.Rows{MaxLen: 1},
		Keys: []sluice.Keys{{KV: &kv, Rows: sluice.Rows{MaxLen: keys, Lengths: lengths.Pointer()}}}}
	must(replay(runtime, plan, &args, lengths, []int32{1, 2, 4}, func() error {
		result := make([]uint16, 1)
		err := hip.Download(result, memory, 2*(1+keys+keys)*headSize)
		fmt.Printf("0x%04x\n", result[0])
		return err
	}))
	// Output:
	// 0x0000
	// 0x3800
	// 0x3e00
}
