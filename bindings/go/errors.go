package sluice

// #include <sluice/sluice.h>
import "C"

import (
	"errors"
	"fmt"
	"math"
)

// Status is the result of a call, which says what the caller can do about it. It is itself an error, for errors.Is:
//
//	if errors.Is(err, sluice.Unsupported) { /* take another path */ }
type Status int32

// The status codes.
const (
	OK                Status = C.SLUICE_OK                  // Done, or for a run: enqueued. Never an error's code.
	InvalidArgument   Status = C.SLUICE_INVALID_ARGUMENT    // An argument breaks a documented rule: fix the call.
	Unsupported       Status = C.SLUICE_UNSUPPORTED         // Legal, but this library cannot compute it: use another path.
	NewerStruct       Status = C.SLUICE_NEWER_STRUCT        // A field, flag or enumerator that this library does not know is set: upgrade.
	NoDevice          Status = C.SLUICE_NO_DEVICE           // The device, HIP runtime or emulator does not exist here.
	WrongArch         Status = C.SLUICE_WRONG_ARCH          // The pack has no kernels for the device, or HIP found no code for it.
	HIP               Status = C.SLUICE_HIP                 // A HIP call failed; Error.HIPCode has its code.
	PackCorrupt       Status = C.SLUICE_PACK_CORRUPT        // The kernel pack is truncated or altered: reinstall.
	WorkspaceTooSmall Status = C.SLUICE_WORKSPACE_TOO_SMALL // Give at least WorkspaceSize bytes.
	OutOfMemory       Status = C.SLUICE_OUT_OF_MEMORY       // Host memory ran out.
	Internal          Status = C.SLUICE_INTERNAL            // A defect of the library: report it with the message.
)

// String is the name in the header, "SLUICE_OK" and so on.
func (s Status) String() string { return C.GoString(C.sluice_status_name(C.sluice_status(s))) }

// Error is String.
func (s Status) Error() string { return s.String() }

// Error describes a failed call. errors.Is compares its Code, errors.As reaches its Field.
type Error struct {
	Code    Status // What the call returned.
	HIPCode int32  // The hipError_t if a HIP call failed, for any code; otherwise 0.
	Field   string // The argument or field at fault in the header's spelling, e.g. "k.stride[1]", or empty.
	Message string // One sentence: the field, its value, the rule or the nearest supported value.
	closed  bool
}

// ErrClosed matches, with errors.Is, errors from using a context or plan after its Close, or one that was never made.
var ErrClosed = errors.New("sluice: used after Close")

// Error is the code's name and the message.
func (e *Error) Error() string { return e.Code.String() + ": " + e.Message }

// Is reports whether target is the error's Code, or is ErrClosed for an error of a closed object.
func (e *Error) Is(target error) bool { return target == e.Code || (e.closed && target == ErrClosed) }

// invalid is an error of this package, in the library's form.
func invalid(field, format string, values ...any) *Error {
	return &Error{Code: InvalidArgument, Field: field, Message: fmt.Sprintf(format, values...)}
}

// closed is the error for a closed object.
func closed(field string) *Error {
	refused := invalid(field, "%s is closed: it can no longer be used", field)
	refused.closed = true
	return refused
}

func newError() *C.sluice_error {
	return &C.sluice_error{struct_size: C.sizeof_sluice_error}
}

// result is a call's result as an error.
func result(status C.sluice_status, from *C.sluice_error) error {
	if Status(status) == OK {
		return nil
	}
	return goError(from)
}

func goError(from *C.sluice_error) *Error {
	return &Error{Code: Status(from.code), HIPCode: int32(from.hip_code), Field: text(from.field[:]),
		Message: text(from.message[:])}
}

// text is the text in an array of characters, up to its zero.
func text(characters []C.char) string {
	bytes := make([]byte, 0, len(characters))
	for _, c := range characters {
		if c == 0 {
			break
		}
		bytes = append(bytes, byte(c))
	}
	return string(bytes)
}

// elements is the product of extents that are not negative, or -1 if it exceeds an int64.
func elements(extents ...int64) int64 {
	count := int64(1)
	for _, extent := range extents {
		if extent != 0 && count > math.MaxInt64/extent {
			return -1
		}
		count *= extent
	}
	return count
}
