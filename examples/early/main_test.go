package main

import (
	"testing"

	"github.com/gomem/gomem/examples/internal/check"
	"github.com/gomem/gomem/internal/longtest"
)

// TestEarly: the program is short, its budget small, and what it computes exact.
func TestEarly(t *testing.T) {
	longtest.Skip(t)
	check.Lines(t, 85)
	batches, err := pictures()
	if err != nil {
		t.Fatal(err)
	}
	check.Third(t, network(), batches, budget)
}
