package main

import (
	"testing"

	"github.com/gomem/gomem/examples/internal/check"
)

// TestGPT: the program is short, its budget small, and what it computes exact.
func TestGPT(t *testing.T) {
	check.Lines(t, 110)
	batches, err := windows()
	if err != nil {
		t.Fatal(err)
	}
	check.Third(t, network(), batches, budget)
}
