// Command recorded makes the calls of bindings/recorder/attention_calls.c and cache_calls.c, with the same numbers:
// bindings/recorder/compare.py compares what the library is given with what C gives it.
package main

import (
	"fmt"
	"log"
	"os"

	sluice "github.com/sluice-attention/sluice/bindings/go"
)

var context *sluice.Context

type call struct {
	name string
	make func()
}

// at is device memory number n.
func at(n uint64) sluice.DevicePointer {
	return sluice.DevicePointer(0x200000000000 + n*0x100000)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// stream is the launch of calls that need nothing else.
func stream() *sluice.Launch { return &sluice.Launch{Stream: sluice.Stream(at(900))} }

// tensor has explicit strides.
func tensor(data sluice.DevicePointer, s0, s1, s2, s3 int64) sluice.Tensor {
	return sluice.Tensor{Data: data, Stride: [4]int64{s0, s1, s2, s3}}
}

// named writes the name of a call into the recording.
func named(recording, name string) {
	file, err := os.OpenFile(recording, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	check(err)
	_, err = fmt.Fprintf(file, "call %s\n", name)
	check(err)
	check(file.Close())
}

func main() {
	recording := os.Getenv("SLUICE_RECORD")
	if recording == "" {
		log.Fatal("SLUICE_RECORD is not set: compare.py sets it")
	}
	var err error
	context, err = sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceTarget, Target: "gfx942:304"})
	check(err)
	for _, one := range append(attentionCalls(), cacheCalls()...) {
		named(recording, one.name)
		one.make()
	}
	check(context.Close())
}
