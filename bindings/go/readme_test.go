package sluice_test

import (
	"os"
	"strings"
	"testing"
)

// The README's program is the example that is built and run.
func TestReadmeShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	check(t, err)
	program, err := os.ReadFile("examples/hello/main.go")
	check(t, err)
	if !strings.Contains(string(readme), "\n```go\n"+string(program)+"```\n") {
		t.Error("README.md does not show examples/hello/main.go as it is")
	}
}
