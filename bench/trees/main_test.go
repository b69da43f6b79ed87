package main

import (
	"strings"
	"testing"
)

// TestWithoutPython: who has no Python sees gomem's rows, and what is left out.
func TestWithoutPython(t *testing.T) {
	var b strings.Builder
	err := run(t.Context(), []string{"-samples", "200", "-features", "4", "-trees", "3", "-python",
		"no-such-python"}, &b)
	if out := b.String(); err != nil || strings.Count(out, " gomem |") != 2 ||
		strings.Count(out, "scikit-learn is left out") != 2 {
		t.Errorf("%v\n%s", err, out)
	}
}
