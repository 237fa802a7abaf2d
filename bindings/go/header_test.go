package sluice

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unsafe"
)

// The header is read as text and compared with this package: each function, struct field and constant must exist here
// under its name, or have a reason not to.

const headerPath = "../../include/sluice/sluice.h"

var unreachableFunctions = map[string]string{
	// The C sources set the size of structs from the header itself, and Go zeroes them.
	`^sluice_\w+_init$`: "structs are made by Go",
}

var absentFields = map[string]string{
	"struct_size":                           "set from the header's sizeof",
	"reserved":                              "must be 0",
	"sluice_context_desc.flags":             "must be 0",
	"sluice_merge.partial_list":             "put by calls.c: TestMergeOfParts",
	"sluice_merge.partial_lse_list":         "put by calls.c: TestMergeOfParts",
	"sluice_page_copy.page_count":           "counted from shapes: TestPagesAndKeys",
	"sluice_gather.page_count":              "counted from shapes: TestPagesAndKeys",
	"sluice_context_desc.target":            "put by NewContext: TestTargets",
	"sluice_context_desc.pack_bytes":        "the length of Pack",
	"sluice_context_desc.hip_resolver":      "put by calls.c: TestResolver",
	"sluice_context_desc.hip_resolver_user": "the number of HIPResolver",
	"sluice_args.page_count":                "counted from shapes: TestCounts",
	"sluice_args.q_tokens":                  "counted from shapes: TestCounts",
	"sluice_args.kv_tokens":                 "counted from shapes: TestCounts",
	"sluice_append.page_count":              "counted from shapes: TestCounts",
	"sluice_launch.dependency_count":        "the length of Dependencies",
	"sluice_launch.dependencies":            "put by calls.c: TestDependencies",
}

// Members of Go structs without a field of that name.
var otherMembers = map[string]string{
	"ContextDesc.Target":      "put by NewContext: TestTargets",
	"ContextDesc.HIPResolver": "put by calls.c: TestResolver",
	"Launch.Dependencies":     "put by calls.c: TestDependencies",
	"Merge.PartialList":       "put by calls.c: TestMergeOfParts",
	"Merge.PartialLSEList":    "put by calls.c: TestMergeOfParts",
	"Tensor.View":             "its strides are Stride; Type and Shape are checked by this package",
	"Error.closed":            "tells ErrClosed",
}

func readHeader(t *testing.T) string {
	text, err := os.ReadFile(headerPath)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(string(text), "")
}

// goName is a name of the header in Go's spelling.
func goName(name string) string {
	upper := map[string]bool{"hip": true, "lse": true, "kv": true, "qk": true, "lds": true, "llvm": true, "id": true,
		"csr": true, "abi": true, "ok": true}
	mixed := map[string]string{"dtype": "DType"}
	made := ""
	if regexp.MustCompile(`^Q\d_0$`).MatchString(name) {
		return name // ggml's spelling
	}
	for _, word := range strings.Split(strings.ToLower(name), "_") {
		switch {
		case mixed[word] != "":
			made += mixed[word]
		case upper[word] || regexp.MustCompile(`[0-9]`).MatchString(word):
			made += strings.ToUpper(word)
		default:
			made += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return made
}

func parsePackage(t *testing.T) []*ast.File {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// cName returns x of C.x, or "".
func cName(node ast.Node) string {
	if selector, ok := node.(*ast.SelectorExpr); ok {
		if from, ok := selector.X.(*ast.Ident); ok && from.Name == "C" {
			return selector.Sel.Name
		}
	}
	return ""
}

func TestEveryConstantIsThere(t *testing.T) {
	found := map[string]string{}
	for _, file := range parsePackage(t) {
		ast.Inspect(file, func(node ast.Node) bool {
			if spec, ok := node.(*ast.ValueSpec); ok && len(spec.Values) == 1 && spec.Names[0].IsExported() {
				if name := cName(spec.Values[0]); name != "" {
					found[name] = spec.Names[0].Name
				}
			}
			return true
		})
	}
	header := readHeader(t)
	wanted := regexp.MustCompile(`\b(SLUICE_\w+) =\s|#define (SLUICE_ABI_\w+) `).FindAllStringSubmatch(header, -1)
	if len(wanted) < 50 {
		t.Fatalf("found only %d constants in the header", len(wanted))
	}
	for _, match := range wanted {
		name := match[1] + match[2]
		if want := goName(strings.TrimPrefix(name, "SLUICE_")); found[name] != want {
			t.Errorf("%s is the exported constant %q; it should be %q", name, found[name], want)
		}
		delete(found, name)
	}
	for name := range found {
		t.Errorf("this test does not find the constant %s in the header", name)
	}
}

// The names that exported functions and methods reach, by the names in their bodies.
func reachable(t *testing.T) map[string]bool {
	mentions := map[string][]string{}
	var queue []string
	for _, file := range parsePackage(t) {
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := function.Name.Name
			if function.Name.IsExported() {
				queue = append(queue, name)
			}
			ast.Inspect(function.Body, func(node ast.Node) bool {
				if cName := cName(node); cName != "" {
					mentions[name] = append(mentions[name], cName)
					return false
				}
				if ident, ok := node.(*ast.Ident); ok {
					mentions[name] = append(mentions[name], ident.Name)
				}
				return true
			})
		}
	}
	source, err := os.ReadFile("calls.c")
	if err != nil {
		t.Fatal(err)
	}
	bodies := regexp.MustCompile(`(?s)\b(\w+)\([^;{}]*\) \{\n(.*?)\n\}`).FindAllStringSubmatch(string(source), -1)
	if len(bodies) < 8 {
		t.Fatalf("found only %d functions in calls.c", len(bodies))
	}
	for _, body := range bodies {
		mentions[body[1]] = append(mentions[body[1]], regexp.MustCompile(`\w+`).FindAllString(body[2], -1)...)
	}
	reached := map[string]bool{}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if !reached[name] {
			reached[name] = true
			queue = append(queue, mentions[name]...)
		}
	}
	return reached
}

func TestEveryFunctionIsReachable(t *testing.T) {
	reached := reachable(t)
	header := readHeader(t)
	functions := regexp.MustCompile(`SLUICE_API [^;(]*?\b(sluice_\w+)\(`).FindAllStringSubmatch(header, -1)
	if len(functions) != strings.Count(header, "SLUICE_API ")-strings.Count(header, "#define SLUICE_API ") {
		t.Fatalf("found only %d functions in the header", len(functions))
	}
	used := map[string]bool{}
	for _, match := range functions {
		name, excused := match[1], false
		for pattern := range unreachableFunctions {
			if regexp.MustCompile(pattern).MatchString(name) {
				excused, used[pattern] = true, true
			}
		}
		if excused == reached[name] {
			t.Errorf("%s: reachable is %v, excused is %v", name, reached[name], excused)
		}
	}
	if len(used) != len(unreachableFunctions) {
		t.Error("an excuse names a function that does not exist")
	}
}

type field struct{ name, goName string }

// structs are the fields of each struct of the header, in its order.
func structs(t *testing.T) map[string][]string {
	found := map[string][]string{}
	for _, match := range regexp.MustCompile(`(?s)typedef struct \w+ \{(.*?)\} (\w+);`).FindAllStringSubmatch(readHeader(t), -1) {
		for _, line := range strings.Split(match[1], ";") {
			if line = strings.TrimSpace(line); line != "" {
				name := regexp.MustCompile(`(\w+)(\[\w+\])*$`).FindStringSubmatch(line)[1]
				found[match[2]] = append(found[match[2]], name)
			}
		}
	}
	return found
}

// bytesOf is the memory that a pointer points to.
func bytesOf(pointer reflect.Value) []byte {
	return unsafe.Slice((*byte)(pointer.UnsafePointer()), pointer.Type().Elem().Size())
}

// inputs make structs of the header from Go structs.
var inputs = map[string]struct {
	of   any
	make func(from any) any
}{
	"sluice_problem":      {Problem{}, func(from any) any { return from.(*Problem).c() }},
	"sluice_args":         {Args{}, func(from any) any { return from.(*Args).c(&Problem{}) }},
	"sluice_launch":       {Launch{}, func(from any) any { return from.(*Launch).c() }},
	"sluice_append":       {Append{}, func(from any) any { return from.(*Append).c() }},
	"sluice_merge":        {Merge{}, func(from any) any { return from.(*Merge).c() }},
	"sluice_page_copy":    {PageCopy{}, func(from any) any { return from.(*PageCopy).c() }},
	"sluice_gather":       {Gather{}, func(from any) any { return from.(*Gather).c() }},
	"sluice_context_desc": {ContextDesc{}, func(from any) any { return from.(*ContextDesc).c(&contextState{}) }},
	"sluice_dependency":   {Dependency{}, func(from any) any { return into((*Dependency).put, from) }},
	"sluice_tensor":       {Tensor{}, func(from any) any { return into((*Tensor).put, from) }},
}

// outputs make Go structs from structs of the header.
var outputs = map[string]any{
	"sluice_error":        goError,
	"sluice_build":        goBuild,
	"sluice_device_info":  goDeviceInfo,
	"sluice_support":      goSupport,
	"sluice_kernel_info":  goKernelInfo,
	"sluice_plan_info":    goPlanInfo,
	"sluice_counters":     goCounters,
	"sluice_trace_record": goTraceRecord,
}

// into calls a method that puts `from` into a new struct of the header.
func into(method, from any) any {
	to := reflect.New(reflect.TypeOf(method).In(1).Elem())
	reflect.ValueOf(method).Call([]reflect.Value{reflect.ValueOf(from), to})
	return to.Interface()
}

// fieldsOf are the fields of a struct that Go has, each with its member's name in Go. It fails if cgo's struct differs
// from the header's text.
func fieldsOf(t *testing.T, name string, header []string, of reflect.Type, members reflect.Type) []field {
	var fields []field
	for i, at := 0, 0; i < of.NumField(); i++ {
		if of.Field(i).Name == "_" {
			continue
		}
		if at >= len(header) || header[at] != of.Field(i).Name {
			t.Fatalf("%s: the header's text does not have a field %s there", name, of.Field(i).Name)
		}
		at++
	}
	known := map[string]bool{}
	for _, c := range header {
		_, everywhere := absentFields[c]
		_, here := absentFields[name+"."+c]
		if everywhere || here {
			continue
		}
		member := goName(c)
		if _, ok := members.FieldByName(member); !ok {
			t.Errorf("%s.%s: %s has no member %s", name, c, members.Name(), member)
			continue
		}
		known[member] = true
		fields = append(fields, field{c, member})
	}
	for i := 0; i < members.NumField(); i++ {
		member := members.Field(i).Name
		if _, excused := otherMembers[members.Name()+"."+member]; !excused && !known[member] {
			t.Errorf("%s.%s is not a field of %s", members.Name(), member, name)
		}
	}
	return fields
}

// set sets a member to something other than zero.
func set(t *testing.T, member reflect.Value) {
	switch value := member.Addr().Interface().(type) {
	case *Tensor:
		value.Data = 0x1000
		return
	case *[]byte:
		*value = []byte{1}
		return
	}
	switch member.Kind() {
	case reflect.Int32, reflect.Int64:
		member.SetInt(1)
	case reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		member.SetUint(1)
	case reflect.Float32:
		member.SetFloat(1)
	case reflect.Array:
		for i := 0; i < member.Len(); i++ {
			member.Index(i).SetInt(int64(i) + 1)
		}
	default:
		t.Fatalf("the test cannot set a %v", member.Type())
	}
}

func TestEveryFieldGoesIn(t *testing.T) {
	header := structs(t)
	for name, input := range inputs {
		members := reflect.TypeOf(input.of)
		none := reflect.ValueOf(input.make(reflect.New(members).Interface()))
		for _, field := range fieldsOf(t, name, header[name], none.Type().Elem(), members) {
			from := reflect.New(members)
			set(t, from.Elem().FieldByName(field.goName))
			made := reflect.ValueOf(input.make(from.Interface()))
			c, _ := made.Type().Elem().FieldByName(field.name)
			inside := 0
			for i, b := range bytesOf(made) {
				if b == bytesOf(none)[i] {
					continue
				}
				// Only the length of a pack is set together with another field.
				if uintptr(i) < c.Offset || uintptr(i) >= c.Offset+c.Type.Size() {
					if field.name != "pack" {
						t.Errorf("%s.%s changes byte %d of %s", members.Name(), field.goName, i, name)
					}
				} else {
					inside++
				}
			}
			if inside == 0 {
				t.Errorf("%s.%s does not get into %s.%s", members.Name(), field.goName, name, field.name)
			}
			if c.Type.Kind() == reflect.Array {
				for i := 0; i < c.Type.Len(); i++ {
					if got := bytesOf(made)[c.Offset+uintptr(i)*c.Type.Elem().Size()]; got != byte(i+1) {
						t.Errorf("%s.%s: element %d gets into %s as %d, not %d", members.Name(), field.goName, i, name, got, i+1)
					}
				}
			}
		}
	}
}

// fill sets a C field to something other than zero: text is "x", a number is 1, those of an array count up.
func fill(pointer unsafe.Pointer, of reflect.Type) {
	switch of.Kind() {
	case reflect.Array:
		if of.Elem().Size() == 1 {
			*(*byte)(pointer) = 'x'
			return
		}
		for i := 0; i < of.Len(); i++ {
			*(*byte)(unsafe.Add(pointer, uintptr(i)*of.Elem().Size())) = byte(i + 1)
		}
	case reflect.Pointer:
		text := []byte("x\x00")
		*(*unsafe.Pointer)(pointer) = unsafe.Pointer(&text[0])
	default:
		*(*byte)(pointer) = 1
	}
}

func TestEveryFieldComesOut(t *testing.T) {
	header := structs(t)
	for name, output := range outputs {
		convert := reflect.ValueOf(output)
		takes := convert.Type().In(0)
		call := func(from reflect.Value) reflect.Value {
			return reflect.Indirect(convert.Call([]reflect.Value{from})[0])
		}
		members := call(reflect.New(takes.Elem())).Type()
		for _, field := range fieldsOf(t, name, header[name], takes.Elem(), members) {
			from := reflect.New(takes.Elem())
			c, _ := takes.Elem().FieldByName(field.name)
			fill(unsafe.Add(from.UnsafePointer(), c.Offset), c.Type)
			made := call(from)
			for i := 0; i < members.NumField(); i++ {
				if has := !made.Field(i).IsZero(); has != (members.Field(i).Name == field.goName) {
					t.Errorf("%s.%s: filled, %s.%s is filled: %v", name, field.name, members.Name(), members.Field(i).Name, has)
				}
			}
			if array := made.FieldByName(field.goName); array.Kind() == reflect.Array {
				for i := 0; i < array.Len(); i++ {
					if got := array.Index(i).Uint(); got != uint64(i)+1 {
						t.Errorf("%s.%s: element %d comes out as %d, not %d", name, field.name, i, got, i+1)
					}
				}
			}
		}
	}
}

func TestEveryStructIsKnown(t *testing.T) {
	header := structs(t)
	if len(header) < 10 {
		t.Fatalf("found only %d structs in the header", len(header))
	}
	for name := range header {
		_, in := inputs[name]
		_, out := outputs[name]
		if !in && !out {
			t.Errorf("%s is not a type of Go", name)
		}
	}
	for excuse := range absentFields {
		name, member, found := strings.Cut(excuse, ".")
		if found && !contains(header[name], member) {
			t.Errorf("there is an excuse for %s, which the header does not have", excuse)
		}
	}
	// HostArgs and the other structs for the host are those for a device with slices.
	for device, host := range map[reflect.Type]reflect.Type{
		reflect.TypeOf(Args{}): reflect.TypeOf(HostArgs{}), reflect.TypeOf(Append{}): reflect.TypeOf(HostAppend{}),
		reflect.TypeOf(PageCopy{}): reflect.TypeOf(HostPageCopy{}), reflect.TypeOf(Gather{}): reflect.TypeOf(HostGather{}),
	} {
		for i := 0; i < device.NumField(); i++ {
			if _, ok := host.FieldByName(device.Field(i).Name); !ok {
				t.Errorf("%s has no %s", host.Name(), device.Field(i).Name)
			}
		}
		tables := 0 // PageTable64, Pairs64, Rotary16
		for i := 0; i < host.NumField(); i++ {
			if name := host.Field(i).Name; strings.HasSuffix(name, "64") || strings.HasSuffix(name, "16") {
				tables++
			}
		}
		if host.NumField() != device.NumField()+tables {
			t.Errorf("%s has %d members, %s %d", host.Name(), host.NumField(), device.Name(), device.NumField())
		}
	}
}

// The numbers of an append, a copy and a gather on the host arrive in the same fields as those on the device.
func TestEveryNumberOnTheHost(t *testing.T) {
	everyNumber(t, (*HostAppend).c, (*Append).c)
	everyNumber(t, (*HostPageCopy).c, (*PageCopy).c)
	everyNumber(t, (*HostGather).c, (*Gather).c)
}

func everyNumber[Host, Device, Made any](t *testing.T, hostStruct func(*Host) *Made, deviceStruct func(*Device) *Made) {
	members := reflect.TypeOf(*new(Host))
	for i := 0; i < members.NumField(); i++ {
		from, device := reflect.New(members), reflect.New(reflect.TypeOf(*new(Device)))
		name, to := members.Field(i).Name, device.Elem().FieldByName(members.Field(i).Name)
		switch member := from.Elem().Field(i); member.Interface().(type) {
		case HostTensor:
			view := View{Stride: [4]int64{5, 6, 7, 8}}
			member.FieldByName("View").Set(reflect.ValueOf(view))
			to.FieldByName("View").Set(reflect.ValueOf(view))
		default:
			if member.Kind() == reflect.Slice {
				continue // a separate argument: TestReferenceAppend, TestReferenceOfPagesAndKeys
			}
			set(t, member)
			set(t, to)
		}
		host := bytesOf(reflect.ValueOf(hostStruct(from.Interface().(*Host))))
		if !bytes.Equal(host, bytesOf(reflect.ValueOf(deviceStruct(device.Interface().(*Device))))) {
			t.Errorf("%s.%s does not get where %v.%s does", members.Name(), name, device.Type(), name)
		}
	}
}

// The given tensor with the fewest rows or pages determines the count.
func TestCounts(t *testing.T) {
	memory := make([]uint16, 1)
	of := func(i int, extent int64) (Tensor, HostTensor) {
		view := View{Shape: [4]int64{100, 100, 100, 100}}
		if view.Shape[i] = extent; extent == 0 {
			return Tensor{View: view}, HostTensor{View: view}
		}
		return Tensor{0x1000, view}, HostTensor{View: view, memory: unsafe.Pointer(&memory[0]), size: 2}
	}
	type counts struct{ q, kv, pages int64 }
	for _, c := range []struct {
		mode      Mode
		q, o, lse int64
		k, v      int64
		kScales   int64
		vScales   int64
		starts    bool
		wants     counts
	}{
		{mode: ModeRagged, q: 7, o: 8, lse: 9, k: 5, v: 6, starts: true, wants: counts{7, 5, 0}},
		{mode: ModeRagged, q: 9, o: 7, lse: 8, k: 6, v: 5, starts: true, wants: counts{7, 5, 0}},
		{mode: ModeRagged, q: 9, o: 8, lse: 7, k: 6, starts: true, wants: counts{7, 6, 0}},
		{mode: ModeRagged, q: 9, o: 8, k: 6, v: 9, starts: true, wants: counts{8, 6, 0}},
		{mode: ModePaged, q: 9, o: 8, k: 5, v: 6, starts: true, wants: counts{8, 0, 5}},
		{mode: ModePaged, q: 9, o: 8, k: 6, v: 5, wants: counts{0, 0, 5}},
		{mode: ModePaged, q: 9, o: 8, k: 6, wants: counts{0, 0, 6}},
		{mode: ModeDense, q: 9, o: 8, k: 6, v: 5, wants: counts{0, 0, 0}},
		{mode: ModeRagged, q: 9, o: 8, k: 6, v: 5, kScales: 4, vScales: 7, starts: true, wants: counts{8, 4, 0}},
		{mode: ModePaged, q: 9, o: 8, k: 6, v: 5, kScales: 7, vScales: 3, wants: counts{0, 0, 3}},
	} {
		keys := 1
		if c.mode == ModePaged {
			keys = 0
		}
		var device Args
		var host HostArgs
		device.Q, host.Q = of(1, c.q)
		device.O, host.O = of(1, c.o)
		device.LSE, host.LSE = of(1, c.lse)
		device.K, host.K = of(keys, c.k)
		device.V, host.V = of(keys, c.v)
		device.KScales, host.KScales = of(keys, c.kScales)
		device.VScales, host.VScales = of(keys, c.vScales)
		if c.starts {
			device.QStarts, host.QStarts = 0x1000, []int32{0}
			if c.mode == ModeRagged {
				device.KVStarts, host.KVStarts = 0x1000, []int32{0}
			}
		}
		problem := &Problem{Mode: c.mode}
		onDevice, onHost := device.c(problem), host.c(problem)
		if got := (counts{int64(onDevice.q_tokens), int64(onDevice.kv_tokens), int64(onDevice.page_count)}); got != c.wants {
			t.Errorf("%+v: Args has %+v", c, got)
		}
		if got := (counts{int64(onHost.q_tokens), int64(onHost.kv_tokens), int64(onHost.page_count)}); got != c.wants {
			t.Errorf("%+v: HostArgs has %+v", c, got)
		}
	}
	for _, c := range []struct{ k, v, wants int64 }{{5, 6, 5}, {6, 5, 5}, {6, 0, 6}} {
		var device Append
		var host HostAppend
		device.KCache, host.KCache = of(0, c.k)
		device.VCache, host.VCache = of(0, c.v)
		onDevice, onHost := int64(device.c().page_count), int64(host.c().page_count)
		if onDevice != c.wants || onHost != c.wants {
			t.Errorf("%+v: Append has %d, HostAppend %d", c, onDevice, onHost)
		}
	}
}

func contains(list []string, wanted string) bool {
	for _, has := range list {
		if has == wanted {
			return true
		}
	}
	return false
}
