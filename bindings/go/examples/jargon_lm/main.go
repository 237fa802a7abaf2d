// jargon_lm generates text with a small language model, with all attention on the device: the Go version of
// docs/examples/jargon_lm, whose README describes the model. First it checks that the logits after the prompt and the
// greedy bytes are those stored in expected.json. Then it streams sampled text, and lists what ran. It ends with a
// status other than 0 if a check fails.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"

	sluice "github.com/sluice-attention/sluice/bindings/go"
)

const logitTolerance = 2e-2

type options struct {
	device, model, prompt string
	bytes                 int
	temperature           float64
	seed                  uint64
}

func main() {
	var o options
	flag.StringVar(&o.device, "device", "emulated", "emulated or hip:N")
	flag.StringVar(&o.model, "model", "../../docs/examples/jargon_lm/model", "the model's `folder`")
	flag.StringVar(&o.prompt, "prompt", "A hacker is ", "what sampled text begins with")
	flag.IntVar(&o.bytes, "bytes", 600, "of sampled text")
	flag.Float64Var(&o.temperature, "temperature", 0.7, "of sampling")
	flag.Uint64Var(&o.seed, "seed", 942, "of sampling")
	flag.Parse()
	if err := run(o, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "jargon_lm: %v\n", err)
		os.Exit(1)
	}
}

// describe is the context description for a device's name.
func describe(name string) (sluice.ContextDesc, error) {
	if name == "emulated" {
		return sluice.ContextDesc{Kind: sluice.DeviceEmulated}, nil
	}
	ordinal, err := strconv.ParseUint(strings.TrimPrefix(name, "hip:"), 10, 31)
	if err != nil || !strings.HasPrefix(name, "hip:") {
		return sluice.ContextDesc{}, fmt.Errorf("-device is %q; it must be emulated or hip:N", name)
	}
	return sluice.ContextDesc{Kind: sluice.DeviceHIP, DeviceOrdinal: int32(ordinal)}, nil
}

func run(o options, out io.Writer) (err error) {
	if o.prompt == "" || !(o.temperature > 0) {
		return fmt.Errorf("-prompt is %q and -temperature %g; the model continues at least one byte, and temperatures are "+
			"positive", o.prompt, o.temperature)
	}
	desc, err := describe(o.device)
	if err != nil {
		return err
	}
	m, err := loadModel(o.model)
	if err != nil {
		return err
	}
	d, err := openDevice(desc)
	if err != nil {
		return err
	}
	defer func() {
		if closed := d.close(); err == nil {
			err = closed
		}
	}()
	a, err := newAttention(d, m.config)
	if err != nil {
		return err
	}
	defer func() {
		if closed := a.close(); err == nil {
			err = closed
		}
	}()

	fmt.Fprintln(out, "== greedy text, compared with expected.json")
	if err := checkGreedy(m, a, o.model+"/expected.json", out); err != nil {
		return err
	}
	if o.bytes > 0 {
		fmt.Fprintf(out, "\n== text sampled at temperature %g, seed %d\n", o.temperature, o.seed)
		a.clear()
		if err := writeSampled(m, a, &o, out); err != nil {
			return err
		}
	}
	info, err := d.context.Device()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n== what ran on %s, %s, through %s\n", info.Name, info.Arch, info.Runtime)
	var kernels []string
	for kernel := range d.runs {
		kernels = append(kernels, kernel)
	}
	sort.Strings(kernels)
	for _, kernel := range kernels {
		fmt.Fprintf(out, "kernel %-46s %6d runs\n", kernel, d.runs[kernel])
	}
	return nil
}

func show(out io.Writer, b byte) {
	if b != '\n' && (b < ' ' || b >= 0x7f) {
		b = '?'
	}
	out.Write([]byte{b})
}

func checkGreedy(m *model, a attention, path string, out io.Writer) error {
	var expected struct {
		Prompt      string    `json:"prompt"`
		GreedyText  string    `json:"greedy_text"` // the prompt and what follows it
		GreedyBytes int       `json:"greedy_bytes"`
		FirstLogits []float32 `json:"first_logits"`
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &expected); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	wanted := strings.TrimPrefix(expected.GreedyText, expected.Prompt)
	if len(wanted) != expected.GreedyBytes || len(expected.FirstLogits) != m.VocabSize {
		return fmt.Errorf("%s: %d bytes of greedy_text and %d of first_logits; there must be %d and %d", path, len(wanted),
			len(expected.FirstLogits), expected.GreedyBytes, m.VocabSize)
	}
	logits, err := m.forward([]byte(expected.Prompt), a)
	if err != nil {
		return err
	}
	difference := 0.0
	for i, logit := range logits {
		// The comparisons would not notice a NaN.
		if d := math.Abs(float64(logit - expected.FirstLogits[i])); !(d <= difference) {
			difference = d
		}
	}
	fmt.Fprint(out, expected.Prompt)
	equal := 0
	for ; equal < len(wanted); equal++ {
		b := mostLikely(logits)
		show(out, b)
		if b != wanted[equal] {
			break
		}
		if equal+1 < len(wanted) {
			if logits, err = m.forward([]byte{b}, a); err != nil {
				return err
			}
		}
	}
	verdict := "ok"
	if equal != len(wanted) || !(difference <= logitTolerance) {
		verdict = "WRONG"
		err = fmt.Errorf("%d of %d bytes are equal, logits differ by %g", equal, len(wanted), difference)
	}
	fmt.Fprintf(out, "\n\n%d of %d greedy bytes as expected; largest difference of the first logits %.5f, allowed %.2f: %s\n",
		equal, len(wanted), difference, logitTolerance, verdict)
	return err
}

func writeSampled(m *model, a attention, o *options, out io.Writer) error {
	random := newMT19937(o.seed)
	fmt.Fprint(out, o.prompt)
	logits, err := m.forward([]byte(o.prompt), a)
	for i := 0; i < o.bytes && err == nil; i++ {
		b := sample(logits, float32(o.temperature), random)
		show(out, b)
		if i+1 < o.bytes {
			logits, err = m.forward([]byte{b}, a)
		}
	}
	fmt.Fprintln(out)
	return err
}
