//go:build linux

package main

import (
	"strings"
	"testing"
)

// TestFaults: of a worker that is killed the others say so and end, or they go on; the table
// has a row of it.
func TestFaults(t *testing.T) {
	var b strings.Builder
	if err := run(t.Context(), &b, []string{"ring"}, faults()[:1]); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(rows) != 3 || !strings.HasPrefix(rows[2], "| ring | a worker is killed | ") ||
		!strings.Contains(rows[2], "worker 1 failed first") &&
			!strings.Contains(rows[2], "| goes on |") {
		t.Error(b.String())
	}
}

// TestNote: steps that are shown again have been lost.
func TestNote(t *testing.T) {
	j := &job{}
	for _, step := range []string{"7", "8", "6", "7"} {
		j.note(`{"type":"step","step":` + step + `,"steps":9}`)
	}
	if j.note("{}"); j.step != 7 || j.lost != 3 {
		t.Errorf("at %d, %d lost", j.step, j.lost)
	}
}
