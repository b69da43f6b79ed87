package main

import (
	"strings"
	"testing"
)

// TestWithoutPython: who has no Python sees gomem's rows, and what is left out.
func TestWithoutPython(t *testing.T) {
	var b strings.Builder
	err := run(t.Context(), []string{"-docs", "20", "-topics", "5", "-sweeps", "2", "-python",
		"no-such-python"}, &b)
	if out := b.String(); err != nil || strings.Count(out, "| gomem |") != 2 ||
		strings.Count(out, "tomotopy is left out") != 2 ||
		strings.Count(out, "gensim is left out") != 1 {
		t.Errorf("%v\n%s", err, out)
	}
}
