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
	plan, err := context.NewPlan(&sluice.Problem{
		QType: sluice.F16, KType: sluice.F16, VType: sluice.F16, OType: sluice.F16,
		QHeads: 1, KVHeads: 1, HeadDimQK: headSize, HeadDimV: headSize,
	})
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
	values := make([]uint16, keys*headSize)
	for i := range values {
		values[i] = numbers[i/headSize]
	}
	var tensors [4]sluice.Tensor // Q, K, V, O; shapes are [batch, token, head, dim]
	var memories [4]*hip.Memory
	for i, rows := range []int64{1, keys, keys, 1} {
		if memories[i], err = runtime.Malloc(2 * rows * headSize); err != nil {
			return err
		}
		defer memories[i].Free()
		if err = memories[i].Fill(0); err != nil {
			return err
		}
		view := sluice.Contiguous(sluice.F16, [4]int64{1, rows, 1, headSize})
		if tensors[i], err = memories[i].Tensor(0, view); err != nil {
			return err
		}
	}
	if err := hip.Upload(memories[2], 0, values); err != nil {
		return err
	}

	// A call: tensors and lengths. It is enqueued on a stream; nil is the default stream.
	args := sluice.Args{Batch: 1, QLen: 1, KVLen: keys, Q: tensors[0], K: tensors[1], V: tensors[2], O: tensors[3]}
	if err := plan.Run(&args, nil); err != nil {
		return err
	}
	var result [headSize]uint16
	if err := hip.Download(result[:], memories[3], 0); err != nil { // waits for the run
		return err
	}
	fmt.Printf("the mean of 0, 1, 2, 3 is 0x%04x in binary16\n", result[0])
	return nil
}
