//go:build linux

package main

import (
	"fmt"
	"testing"
)

// TestLocalFilter: between processes, a filter's second bound is in force where updates
// arrive more slowly than it says, and not where they arrive faster.
func TestLocalFilter(t *testing.T) {
	t.Parallel()
	sent := map[string]int64{}
	for name, mbps := range map[string]float64{"slow": 1e9, "fast": 1e-6} {
		s, _ := start(t, t.TempDir(), "--model", "transformer", "--steps", "12", "--json",
			"--local", "2", "--sync", "pf", "--staleness", "0",
			"--filter", fmt.Sprintf("dvf:1e-9:1e9:%g", mbps)).outcome(t)
		sent[name] = s.Exchanged.Sent
	}
	if sent["slow"] > sent["fast"]*3/4 {
		t.Errorf("sent %v bytes", sent)
	}
}
