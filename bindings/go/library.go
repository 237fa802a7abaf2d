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

// Build says where the library and its kernels come from.
type Build struct {
	KernelCount uint32 // Kernels in the embedded pack.
	Version     string // As the function Version.
	GitCommit   string // Source revision, with "-dirty" if it had local changes; "unknown" outside git.
	Compiler    string // The C++ compiler that built the library.
	LLVMVersion string // The LLVM that generated the kernels.
	PackID      string // Checksum of the pack's manifest in hexadecimal: equal ids, equal kernels.
	Chips       string // Chips that the pack has kernels for, separated by commas.
}

// BuildInfo describes the library and its kernels. It needs no device. Errors: PackCorrupt if the embedded pack cannot
// be read.
func BuildInfo() (Build, error) {
	build := C.sluice_build{struct_size: C.sizeof_sluice_build}
	failure := newError()
	if err := result(C.sluice_build_info(&build, failure), failure); err != nil {
		return Build{}, err
	}
	return goBuild(&build), nil
}

func goBuild(from *C.sluice_build) Build {
	return Build{
		KernelCount: uint32(from.kernel_count),
		Version:     text(from.version[:]),
		GitCommit:   text(from.git_commit[:]),
		Compiler:    text(from.compiler[:]),
		LLVMVersion: text(from.llvm_version[:]),
		PackID:      text(from.pack_id[:]),
		Chips:       text(from.chips[:]),
	}
}
