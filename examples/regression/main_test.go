package main

import (
	"testing"

	"github.com/gomem/gomem/examples/internal/check"
)

// TestRegression: the program is short, its budget small, and what it computes exact.
func TestRegression(t *testing.T) {
	check.Lines(t, 75)
	batches, err := read()
	if err != nil {
		t.Fatal(err)
	}
	check.Third(t, network(), batches, budget)
}
