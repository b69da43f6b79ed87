package main

import (
	"testing"

	"github.com/gomem/gomem/examples/internal/check"
)

// TestMLP: the program is short, its budget small, and what it computes exact.
func TestMLP(t *testing.T) {
	check.Lines(t, 45)
	batches, err := pictures()
	if err != nil {
		t.Fatal(err)
	}
	check.Third(t, network(), batches, budget)
}
