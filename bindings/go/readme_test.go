package sluice_test

import (
	"os"
	"strings"
	"testing"
)

// The README's programs are built and run: one is an example, the other a function of another example.
func TestReadmeShowsTheExamples(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(path)
		check(t, err)
		return string(text)
	}
	blocks := strings.Split(read("README.md"), "\n```go\n")[1:]
	programs := []string{read("examples/hello/main.go"), read("hip/example_test.go")}
	if len(blocks) != len(programs) {
		t.Fatalf("README.md has %d programs, not %d", len(blocks), len(programs))
	}
	for i, block := range blocks {
		shown := block[:strings.Index(block, "```\n")]
		if i == 0 && shown != programs[0] || !strings.Contains("\n"+programs[i], "\n"+shown) {
			t.Errorf("program %d of README.md is no longer what is run", i)
		}
	}
}
