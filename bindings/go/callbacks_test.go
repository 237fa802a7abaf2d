package sluice_test

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"unsafe"

	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/hip"
)

func TestLibrary(t *testing.T) {
	build, err := sluice.BuildInfo()
	check(t, err)
	if build.Version != sluice.Version() || build.Version == "" || build.KernelCount == 0 || build.Chips != "gfx942" {
		t.Errorf("%+v, version %s", build, sluice.Version())
	}
	if major, minor := sluice.ABIVersion(); major != sluice.ABIMajor || minor < sluice.ABIMinor {
		t.Errorf("ABI %d.%d, built with %d.%d", major, minor, sluice.ABIMajor, sluice.ABIMinor)
	}
	context := target(t)
	kernels, err := context.Kernels()
	check(t, err)
	if len(kernels) == 0 || len(kernels) > int(build.KernelCount) {
		t.Errorf("%d kernels of %d", len(kernels), build.KernelCount)
	}
	support, err := context.Support(simple())
	check(t, err)
	known := false
	for i, kernel := range kernels {
		known = known || kernel.Name == support.Kernel
		if i > 0 && kernels[i-1].Name >= kernel.Name {
			t.Errorf("kernel %d: %s after %s", i, kernel.Name, kernels[i-1].Name)
		}
	}
	if !known {
		t.Errorf("%s is not one of the kernels", support.Kernel)
	}
}

func TestLog(t *testing.T) {
	var mutex sync.Mutex
	lines := map[string]int{}
	log := func(which string) sluice.LogFunc {
		return func(level sluice.LogLevel, message string) {
			mutex.Lock()
			defer mutex.Unlock()
			if level < sluice.LogError || level > sluice.LogDebug || message == "" {
				t.Errorf("level %d: %q", level, message)
			}
			lines[which]++
		}
	}
	planning := func() {
		context := target(t)
		plan, err := context.NewPlan(simple())
		check(t, err)
		check(t, plan.Close())
	}
	defer sluice.SetLog(nil, 0)
	sluice.SetLog(log("all"), sluice.LogDebug)
	planning()
	sluice.SetLog(log("errors"), sluice.LogError)
	planning()
	all := lines["all"]
	if all == 0 || lines["errors"] != 0 {
		t.Errorf("%v", lines)
	}
	sluice.SetLog(nil, sluice.LogDebug)
	planning()
	if lines["all"] != all {
		t.Error("a function was called that had been replaced")
	}
}

func TestTrace(t *testing.T) {
	context, plan, right := rightRun(t)
	args := right()
	var records []sluice.TraceRecord
	check(t, context.SetTrace(func(record *sluice.TraceRecord) { records = append(records, *record) }))
	second, err := context.NewPlan(simple())
	check(t, err)
	defer second.Close()
	check(t, second.Run(&args, nil))
	check(t, context.SetTrace(nil))
	check(t, plan.Run(&args, nil))
	info, err := second.Describe()
	check(t, err)
	if len(records) != 2 || records[0].Event != sluice.TracePlan || records[1].Event != sluice.TraceRun ||
		records[0].Kernel != info.Kernel || records[0].Reason != info.Reason || records[0].Block != info.Block ||
		!strings.Contains(info.Reason, records[1].Kernel) || records[1].Kernel == "" || records[1].Grid != [3]uint32{1, 1, 1} {
		t.Errorf("%+v of a plan %+v", records, info)
	}
	device, err := hip.Open(context)
	check(t, err)
	check(t, device.Synchronize(0))
}

// A context of the kind HIP that takes every function from Go, which takes it from the emulator.
func TestResolver(t *testing.T) {
	emulator, _ := emulated(t)
	var mutex sync.Mutex
	asked := map[string]bool{}
	resolver := func(name string) unsafe.Pointer {
		mutex.Lock()
		defer mutex.Unlock()
		asked[name] = true
		found, err := emulator.HIPSymbol(name)
		if err != nil {
			t.Error(err)
		}
		return found
	}
	context, err := sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceHIP, HIPResolver: resolver})
	check(t, err)
	defer context.Close()
	info, err := context.Device()
	check(t, err)
	if info.Runtime != "caller" || !asked["hipInit"] {
		t.Errorf("%+v; asked for %v", info, asked)
	}
	_, err = sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceHIP, HIPResolver: func(string) unsafe.Pointer { return nil }})
	refused(t, err, sluice.NoDevice, "hipInit", "hipInit")
}

// Recovering above a call must not keep the program running after the library was left in the middle of a call.
func TestPanicsInCallbacksEndTheProgram(t *testing.T) {
	panics := map[string]func(){
		"log function": func() {
			sluice.SetLog(func(sluice.LogLevel, string) { panic("as asked") }, sluice.LogDebug)
			sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceTarget, Target: "gfx942:304"})
		},
		"HIP resolver": func() {
			sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceHIP, HIPResolver: func(string) unsafe.Pointer { panic("as asked") }})
		},
		"trace function": func() {
			context := target(t)
			context.SetTrace(func(*sluice.TraceRecord) { panic("as asked") })
			context.NewPlan(simple())
		},
	}
	if call, ok := panics[os.Getenv("SLUICE_GO_TEST_PANIC")]; ok {
		defer func() {
			recover()
			os.Exit(0)
		}()
		call()
		os.Exit(0)
	}
	for name := range panics {
		program := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		program.Env = append(os.Environ(), "SLUICE_GO_TEST_PANIC="+name)
		output, err := program.CombinedOutput()
		if err == nil || !strings.Contains(string(output), "panic in a "+name+": as asked") {
			t.Errorf("%s: %v: %s", name, err, output)
		}
	}
}
