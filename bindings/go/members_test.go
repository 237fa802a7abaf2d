package sluice

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unsafe"
)

type cMember struct {
	Name string
	Type struct {
		Base, Kind string
		Pointers   []string
		Array      int
	}
	Offset, Size uintptr
}

type cStruct struct {
	Name    string
	Size    uintptr
	Members []cMember
}

type cInterface struct {
	Structs   []cStruct
	Functions []struct{ Name string }
}

func readInterface(t *testing.T) (read cInterface, structs map[string]cStruct) {
	text, err := os.ReadFile("../abi.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &read); err != nil || len(read.Structs) < 20 || len(read.Functions) < 30 {
		t.Fatalf("%d structs, %d functions, %v", len(read.Structs), len(read.Functions), err)
	}
	structs = map[string]cStruct{}
	for _, of := range read.Structs {
		structs[of.Name] = of
	}
	return read, structs
}

// numbers are numbers that no other member has.
type numbers struct{ last uint64 }

func (n *numbers) next() uint64 {
	n.last++
	return n.last
}

// fillC sets everything in a struct of C.
func (n *numbers) fillC(of cStruct, at unsafe.Pointer, in *memory) {
	for _, member := range of.Members {
		to := unsafe.Add(at, member.Offset)
		characters := fmt.Sprintf("text %d\x00", n.next())
		switch {
		case member.Type.Base == "char" && len(member.Type.Pointers) != 0:
			text := take[byte](in, len(characters))
			copy(text, characters)
			*(*unsafe.Pointer)(to) = unsafe.Pointer(&text[0])
		case member.Type.Base == "char":
			copy(unsafe.Slice((*byte)(to), member.Size), characters)
		default:
			width := member.Size
			if member.Type.Array != 0 {
				width /= uintptr(member.Type.Array)
			}
			for offset := uintptr(0); offset < member.Size; offset += width {
				*(*byte)(unsafe.Add(to, offset)) = byte(n.next())
			}
		}
	}
}

// compareNumber compares a number of C with Go's.
func compareNumber(t *testing.T, path string, at unsafe.Pointer, size uintptr, value reflect.Value) {
	got := uint64(*(*uint32)(at))
	if size == 8 {
		got = *(*uint64)(at)
	}
	wanted := uint64(0)
	switch value.Kind() {
	case reflect.Int32, reflect.Int64:
		wanted = uint64(value.Int())
	default:
		wanted = value.Uint()
	}
	if got != wanted {
		t.Errorf("%s is %d in C, %d in Go", path, got, wanted)
	}
}

// compareMember compares a member of a struct of C with a field of Go.
func compareMember(t *testing.T, path string, member cMember, at unsafe.Pointer, value reflect.Value) {
	switch value.Kind() {
	case reflect.String:
		if len(member.Type.Pointers) != 0 {
			at = *(*unsafe.Pointer)(at)
		}
		text := string(unsafe.Slice((*byte)(at), 16))
		if text = text[:strings.IndexByte(text, 0)]; text != value.String() {
			t.Errorf("%s is %q in C, %q in Go", path, text, value.String())
		}
	case reflect.Array:
		width := member.Size / uintptr(member.Type.Array)
		for i := 0; i < value.Len(); i++ {
			compareNumber(t, fmt.Sprintf("%s[%d]", path, i), unsafe.Add(at, uintptr(i)*width), width, value.Index(i))
		}
	default:
		compareNumber(t, path, at, member.Size, value)
	}
}

// compareMembers compares a struct of C with one of Go, which must have the same members.
func compareMembers(t *testing.T, of cStruct, at unsafe.Pointer, value reflect.Value) {
	known := map[string]bool{}
	for _, member := range of.Members {
		path := of.Name + "." + member.Name
		field, found := value.Type().FieldByNameFunc(func(name string) bool {
			return strings.EqualFold(name, strings.ReplaceAll(member.Name, "_", ""))
		})
		known[field.Name] = true
		switch {
		case member.Name == "struct_size" || member.Name == "reserved":
		case !found:
			t.Errorf("%s is not in Go", path)
		default:
			compareMember(t, path, member, unsafe.Add(at, member.Offset), value.FieldByIndex(field.Index))
		}
	}
	for i := 0; i < value.NumField(); i++ {
		if name := value.Type().Field(i).Name; !known[name] {
			t.Errorf("%s.%s is not in C", of.Name, name)
		}
	}
}

// Every member of a struct that a call fills has its own number, which Go must have too. What calls are given is
// compared with C by internal/recorded.
func TestEveryMemberComesOut(t *testing.T) {
	_, structs := readInterface(t)
	for name, read := range map[string]any{
		"sluice_build": goBuild, "sluice_device_info": goDeviceInfo, "sluice_support": goSupport,
		"sluice_kernel_info": goKernelInfo, "sluice_plan_info": goPlanInfo, "sluice_counters": goCounters,
		"sluice_trace_record": goTraceRecord,
	} {
		in := memories.Get().(*memory)
		call := reflect.ValueOf(read)
		from := unsafe.Pointer(&take[byte](in, int(call.Type().In(0).Elem().Size()))[0])
		made := numbers{}
		made.fillC(structs[name], from, in)
		got := call.Call([]reflect.Value{reflect.NewAt(call.Type().In(0).Elem(), from)})[0]
		compareMembers(t, structs[name], from, got)
		in.release()
	}
}

// Every function of the interface is called by this package.
func TestEveryFunctionIsCalled(t *testing.T) {
	read, _ := readInterface(t)
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range append(sources, "calls.c") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	called := map[string]bool{}
	for _, name := range regexp.MustCompile(`\bsluice_\w+\(`).FindAllString(all.String(), -1) {
		called[strings.TrimSuffix(name, "(")] = true
	}
	for _, function := range read.Functions {
		// Go zeroes structs and sets their size itself.
		if initialises := strings.HasSuffix(function.Name, "_init"); initialises == called[function.Name] {
			t.Errorf("%s: called is %v", function.Name, called[function.Name])
		}
	}
}
