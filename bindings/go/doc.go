// Package sluice is attention for AMD Instinct GPUs (gfx942) from Go: the C ABI of libsluice.so, with its rules.
//
// Make a Context for a device, ask it whether a Problem is supported, make a Plan of it, and Run the plan as often
// as you like. The contract, of numbers as of arguments, is that of the C header include/sluice/sluice.h, which
// this package reads and never restates: fields have the header's names in Go's spelling (head_dim_qk is HeadDimQK,
// SLUICE_WRITE_LSE is WriteLSE), and a test compares the two.
//
// # Finding the library
//
// By default the package asks pkg-config for "sluice". With the build tag sluice_env it asks nobody: CGO_CFLAGS and
// CGO_LDFLAGS then say where header and library are, of a build folder for example:
//
//	CGO_CFLAGS=-I$SOURCE/include
//	CGO_LDFLAGS="-L$SOURCE/build/dev/lib -lsluice -Wl,-rpath,$SOURCE/build/dev/lib"
//	go build -tags sluice_env ./...
//
// # Memory
//
// What a call of a device works on is device memory, named by a DevicePointer: a number to Go, which neither moves nor
// frees it. The package hip allocates it through the runtime that a context is bound to. Reference and
// ReferenceAppend compute on the host, from slices. No pointer into Go's memory is kept by the library after a call.
//
// # Closing
//
// Contexts and plans are closed by Close, in any order and any number of times; what is used after that returns an
// error with ErrClosed. Work of a plan that is still on the device must have completed before its Close. What is never
// closed is closed by a finalizer, some time; Handles says how often that was necessary.
//
// A finalizer does not know what has completed. If anything was enqueued through what was forgotten, a goroutine waits for
// all work of the device (hipDeviceSynchronize) and destroys it behind that; runs cost nothing more for it. HIP forbids
// that wait while a stream captures, and makes the capture invalid. Captures of the package hip are safe from it: the wait
// comes between them. A program that captures by other means closes its plans and contexts itself, and keeps them as
// long as its graphs. A graph of the package hip keeps those that it launches.
//
// # Threads
//
// Every function and method may be called from any goroutine, and from any number at once; the exception is
// Context.SetTrace. Closing what another goroutine uses is no error: its call completes first. HIP's current device
// belongs to a thread and goroutines move between threads, so calls that enqueue make the context's device current
// while they last, and then restore what was.
package sluice
