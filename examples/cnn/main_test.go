package main

import (
	"testing"

	"github.com/gomem/gomem/examples/internal/check"
)

// TestCNN: the program is short, its budget small, and what it computes exact.
func TestCNN(t *testing.T) {
	check.Lines(t, 60)
	batches, err := stripes()
	if err != nil {
		t.Fatal(err)
	}
	check.Third(t, network(), batches, budget)
}
