package sluice

// #include <sluice/sluice.h>
import "C"

import (
	"errors"
	"fmt"
)

// String is the name in the header, "SLUICE_OK" and so on.
func (s Status) String() string { return C.GoString(C.sluice_status_name(C.sluice_status(s))) }

// Error is String: a Status is itself an error, for errors.Is:
//
//	if errors.Is(err, sluice.Unsupported) { /* take another path */ }
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

// call makes a call of the library with memory for its structs.
func call(do func(in *memory, failure *C.sluice_error) C.sluice_status) error {
	in := memories.Get().(*memory)
	defer in.release()
	failure := answer[C.sluice_error](in)
	if do(in, failure) == C.SLUICE_OK {
		return nil
	}
	return goError(failure)
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
