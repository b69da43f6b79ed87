package main

import (
	"testing"

	"github.com/gomem/gomem/examples/internal/check"
	"github.com/gomem/gomem/internal/longtest"
)

// TestGPT: the program is short, its budget small, and what it computes exact.
func TestGPT(t *testing.T) {
	longtest.Skip(t)
	check.Lines(t, 110)
	batches, err := windows()
	if err != nil {
		t.Fatal(err)
	}
	check.Third(t, network(), batches, budget)
}
