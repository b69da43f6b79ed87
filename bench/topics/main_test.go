package main

import (
	"os"
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

// TestStream: what is drawn into a file is learnt from there, and nothing is left of it.
func TestStream(t *testing.T) {
	var b strings.Builder
	dir := t.TempDir()
	err := run(t.Context(), []string{"-stream", "20000", "-topics", "5", "-sweeps", "2", "-disk",
		dir}, &b)
	if out := b.String(); err != nil || !strings.Contains(out, "| 1000000000 |") ||
		!strings.Contains(out, "\n| 2 |") {
		t.Errorf("%v\n%s", err, out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
	err = run(t.Context(), []string{"-stream", "20000", "-memory", "1000000"}, &b)
	if err == nil || !strings.Contains(err.Error(), "MiB are planned") {
		t.Errorf("within a megabyte: %v", err)
	}
}
