package main

import (
	"testing"

	"github.com/gomem/gomem/examples/internal/check"
	"github.com/gomem/gomem/internal/longtest"
)

// TestRegression: the program is short, its budget small, and what it computes exact.
func TestRegression(t *testing.T) {
	longtest.Skip(t)
	check.Lines(t, 75)
	batches, err := read()
	if err != nil {
		t.Fatal(err)
	}
	check.Third(t, network(), batches, budget)
}
