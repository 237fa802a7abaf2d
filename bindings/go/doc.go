// Package sluice is attention for AMD Instinct GPUs (gfx942) from Go: the C ABI of libsluice.so, with its rules.
//
// Make a Context for a device, ask it whether an Attention problem has Support, make a Plan from it, and Run the plan as
// often as you like. The contract, for numbers and for arguments, is that of the C headers in include/sluice, which this
// package uses: names are theirs in Go's spelling (head_dim_qk is HeadDimQK, SLUICE_MASK_CAUSAL is MaskCausal), and
// generated files have their comments.
//
// # Finding the library
//
// By default the package asks pkg-config for "sluice". With the build tag sluice_env it does not: CGO_CFLAGS and
// CGO_LDFLAGS then say where header and library are, for example in a build folder:
//
//	CGO_CFLAGS=-I$SOURCE/include
//	CGO_LDFLAGS="-L$SOURCE/build/dev/lib -lsluice -Wl,-rpath,$SOURCE/build/dev/lib"
//	go build -tags sluice_env ./...
//
// # Memory
//
// A call on a device works on device memory, named by a DevicePointer: a number to Go, which neither moves nor frees
// the memory. The package hip allocates it through a context's runtime. The Reference functions compute on the host, in
// memory of Host. Structs of a call are copied when it is made; the library keeps no pointer into Go's memory.
//
// # Closing
//
// Close closes contexts and plans, in any order and any number of times; using them after that returns an error with
// ErrClosed. A plan's work on the device must have completed before its Close. A finalizer eventually closes objects
// that were never closed; Handles says how often that was necessary.
//
// A finalizer does not know what has completed. If work was enqueued through the forgotten object, a goroutine waits
// for all work of the device (hipDeviceSynchronize) and then destroys the object; this adds no cost to runs. HIP
// forbids that wait while a stream captures, and makes the capture invalid. Captures of the package hip are safe: the
// wait happens between them. A program that captures by other means must close its plans and contexts itself, and keep
// them as long as its graphs. A graph of the package hip keeps those that it launches.
//
// # Threads
//
// Every function and method may be called from any goroutine, and from any number at once; the exception is
// Context.SetTrace. Closing an object that another goroutine uses is allowed: its call completes first. HIP's current
// device belongs to a thread and goroutines move between threads, so calls that enqueue make the context's device
// current for their duration, and then restore the previous one.
package sluice
