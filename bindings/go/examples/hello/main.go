// One attention call: four keys that score the same, so that the result is the mean of their values.
package main

import (
	"fmt"
	"log"
	"os"

	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/hip"
)

const keys, headSize = 4, 128

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	// The emulator runs the machine code that a GPU would; "gpu" asks for device 0 of the HIP runtime instead.
	desc := sluice.ContextDesc{Kind: sluice.DeviceEmulated}
	if len(os.Args) > 1 && os.Args[1] == "gpu" {
		desc.Kind = sluice.DeviceHIP
	}
	context, err := sluice.NewContext(desc)
	if err != nil {
		return err
	}
	defer context.Close()

	// A plan: what all calls have in common. It chooses the kernel and loads it.
	rows, format := sluice.Format{Type: sluice.F16}, sluice.KVTensors(sluice.F16, 1, headSize)
	plan, err := context.NewPlan(&sluice.Attention{QHeads: 1, Q: rows, O: rows, KV: &format})
	if err != nil {
		return err
	}
	defer plan.Close()

	// Device memory, through the HIP runtime that the context is bound to. Row j of V holds the number j.
	runtime, err := hip.Open(context)
	if err != nil {
		return err
	}
	numbers := [keys]uint16{0x0000, 0x3c00, 0x4000, 0x4200} // 0, 1, 2, 3 in binary16
	values := make([]uint16, (1+keys+keys+1)*headSize)      // Q, K, V, O; all is 0 but V
	for i, number := range numbers {
		for e := 0; e < headSize; e++ {
			values[(1+keys+i)*headSize+e] = number
		}
	}
	memory, err := hip.NewMemory(runtime, values)
	if err != nil {
		return err
	}
	defer memory.Free()
	tensor := func(row, rows int64) sluice.Tensor { // [batch, token, head, dim]
		return sluice.BSHD(memory.At(2*row*headSize), rows, 1, headSize)
	}

	// A call: tensors and lengths. It is enqueued on a stream; nil is the default stream.
	args := sluice.Args{
		Batch: 1, Q: tensor(0, 1), O: tensor(1+keys+keys, 1), Rows: sluice.Rows{MaxLen: 1},
		Keys: []sluice.Keys{{
			KV:   &sluice.KV{Format: &format, K: tensor(1, keys), V: tensor(1+keys, keys)},
			Rows: sluice.Rows{MaxLen: keys},
		}},
	}
	if err := plan.Run(&args, nil); err != nil {
		return err
	}
	var result [headSize]uint16
	if err := hip.Download(result[:], memory, 2*(1+keys+keys)*headSize); err != nil { // waits for the run
		return err
	}
	fmt.Printf("the mean of 0, 1, 2, 3 is 0x%04x in binary16\n", result[0])
	return nil
}
