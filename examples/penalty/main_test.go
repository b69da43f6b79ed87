package main

import (
	"testing"

	"github.com/gomem/gomem/examples/internal/check"
	"github.com/gomem/gomem/internal/longtest"
)

// TestPenalty: the program is short, its budget small, and what it computes exact.
func TestPenalty(t *testing.T) {
	longtest.Skip(t)
	check.Lines(t, 70)
	batches, err := moons()
	if err != nil {
		t.Fatal(err)
	}
	check.Third(t, network(), batches, budget)
}
