package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/hip"
)

const modelFolder = "../../../../docs/examples/jargon_lm/model"

// The text is that of expected.json byte for byte, everything is closed, and a wrong expectation is noticed.
func TestGreedyText(t *testing.T) {
	var out bytes.Buffer
	right := options{device: "emulated", model: modelFolder, prompt: "A", bytes: 2, temperature: 0.7, seed: 942}
	if err := run(right, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	var expected struct {
		GreedyText string `json:"greedy_text"`
	}
	text, err := os.ReadFile(modelFolder + "/expected.json")
	if err == nil {
		err = json.Unmarshal(text, &expected)
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitN(out.String(), "\n", 2)
	if len(expected.GreedyText) < 100 || !strings.HasPrefix(lines[1], expected.GreedyText+"\n\n100 of 100 greedy bytes") {
		t.Errorf("the text is\n%s\nnot\n%s", out.String(), expected.GreedyText)
	}
	if !strings.Contains(out.String(), "\nkernel kv_append_f16_f16") {
		t.Errorf("no row was appended to a paged cache:\n%s", out.String())
	}

	wrong := t.TempDir()
	for _, name := range []string{"config.json", "model.safetensors"} {
		if from, err := filepath.Abs(filepath.Join(modelFolder, name)); err != nil || os.Symlink(from, filepath.Join(wrong, name)) != nil {
			t.Fatal(name, err)
		}
	}
	text = bytes.Replace(text, []byte("Compare {b"), []byte("Compare {c"), 1)
	if err := os.WriteFile(filepath.Join(wrong, "expected.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	right.model = wrong
	if err := run(right, &out); err == nil || !strings.Contains(err.Error(), "1 of 100 bytes") {
		t.Errorf("another text is expected, but the error is %v", err)
	}

	if handles := sluice.Handles(); handles.Contexts != 0 || handles.Plans != 0 || handles.Finalized != 0 {
		t.Errorf("not released: %+v", handles)
	}
	if live := hip.Live(); live != (hip.Counts{}) {
		t.Errorf("not released: %+v", live)
	}
}

func TestOptions(t *testing.T) {
	for want, o := range map[string]options{
		`-device is "gpu"`:    {device: "gpu", prompt: "A", temperature: 1},
		`-device is "hip:x"`:  {device: "hip:x", prompt: "A", temperature: 1},
		`-prompt is ""`:       {device: "emulated", temperature: 1},
		`-temperature 0;`:     {device: "emulated", prompt: "A"},
		`nowhere/config.json`: {device: "emulated", prompt: "A", temperature: 1, model: "nowhere"},
	} {
		if err := run(o, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestHalves(t *testing.T) {
	for bits := 0; bits < 1<<16; bits++ {
		value := fromHalf(uint16(bits))
		if back := toHalf(value); back != uint16(bits) && !(math.IsNaN(float64(value)) && back&0x7fff == 0x7e00) {
			t.Fatalf("0x%04x is %g, which is 0x%04x", bits, value, back)
		}
		// Halfway to the next one rounds to the even one of the two, and anything beyond to the next one.
		next := fromHalf(uint16(bits + 1))
		if bits&0x7fff >= 0x7bff {
			continue
		}
		half := (value + next) / 2
		if got := toHalf(half); got != uint16(bits+bits&1) {
			t.Fatalf("%g is 0x%04x, between 0x%04x and the next", half, got, bits)
		}
		if got := toHalf(math.Float32frombits(math.Float32bits(half) + 1)); got != uint16(bits+1) {
			t.Fatalf("beyond %g is 0x%04x, not 0x%04x", half, got, bits+1)
		}
	}
	if toHalf(65519) != 0x7bff || toHalf(-65520) != 0xfc00 || fromHalf(0x3c00) != 1 {
		t.Error("the largest halves")
	}
}

// The C++ standard states the 10000th number of its generator with the seed 5489.
func TestRandom(t *testing.T) {
	random := newMT19937(5489)
	var last uint64
	for i := 0; i < 10000; i++ {
		last = random.draw()
	}
	if last != 9981545732273789042 {
		t.Errorf("%d", last)
	}
}

func TestSafetensors(t *testing.T) {
	file := func(header string, data int) []byte {
		made := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
		return append(append(made, header...), make([]byte, data)...)
	}
	entry := func(dtype, shape, offsets string) string {
		return fmt.Sprintf(`{"__metadata__":{},"w":{"dtype":"%s","shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	load := func(bytes []byte) (map[string]storedTensor, error) {
		if err := os.WriteFile(path, bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		return loadSafetensors(path)
	}
	right := file(entry("F16", "[2,1]", "[2,6]"), 6)
	binary.LittleEndian.PutUint16(right[len(right)-2:], 0x3c00)
	tensors, err := load(right)
	if err != nil || len(tensors) != 1 || len(tensors["w"].values) != 2 || tensors["w"].values[1] != 1 {
		t.Errorf("%v, %v", tensors, err)
	}
	for want, bytes := range map[string][]byte{
		"too short":         {1, 2, 3},
		"longer than":       binary.LittleEndian.AppendUint64(nil, 1<<63),
		"invalid character": file("{x", 0),
		"not F16":           file(entry("F32", "[1]", "[0,2]"), 2),
		"impossible":        file(entry("F16", "[4294967296,4294967296]", "[0,2]"), 2),
		"not within":        file(entry("F16", "[2]", "[0,4]"), 3),
	} {
		if _, err := load(bytes); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
