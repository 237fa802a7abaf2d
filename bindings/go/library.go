package sluice

// #include <sluice/sluice.h>
import "C"

// The ABI that this package was built with: its generation, within which nothing is removed, and the additions to it.
const (
	ABIMajor = C.SLUICE_ABI_MAJOR
	ABIMinor = C.SLUICE_ABI_MINOR
)

// ABIVersion is the ABI of the library at run time.
func ABIVersion() (major, minor int) {
	version := uint32(C.sluice_abi_version())
	return int(version >> 16), int(version & 0xffff)
}

// Version is the library's release, e.g. "1.0.0".
func Version() string { return C.GoString(C.sluice_version()) }

// BuildInfo describes the library and its kernels. It needs no device. Errors: PackCorrupt if the embedded pack cannot
// be read.
func BuildInfo() (build Build, err error) {
	err = call(func(in *memory, failure *C.sluice_error) C.sluice_status {
		from := answer[C.sluice_build](in)
		status := C.sluice_build_info(from, failure)
		build = goBuild(from)
		return status
	})
	return build, err
}
