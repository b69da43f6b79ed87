package main

import (
	"strings"
	"testing"
)

// TestWithoutPython: who has no Python sees gomem's numbers, and what is left out.
func TestWithoutPython(t *testing.T) {
	var b strings.Builder
	err := run(t.Context(), []string{"-quick", "-rounds", "1", "-python", "no-such-python"}, &b)
	if out := b.String(); err != nil || strings.Count(out, "| left out |") != 6 ||
		strings.Count(out, "scikit-learn is left out: exec: \"no-such-python\"") != 3 {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestRefused: what is no comparison is an error.
func TestRefused(t *testing.T) {
	for _, args := range [][]string{{"-gap", "0"}, {"-gap", "NaN"}, {"-rounds", "0"}, {"x"},
		{"-model", "x"}} {
		if err := run(t.Context(), args, &strings.Builder{}); err == nil {
			t.Errorf("%q was run", args)
		}
	}
}
