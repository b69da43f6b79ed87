package trust

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestComplaints: a flood of refusals is a few lines a minute, that count all, and of each host.
func TestComplaints(t *testing.T) {
	var lines []string
	c := complaints{log: func(line string) { lines = append(lines, line) }}
	start := time.Unix(1e9, 0)
	for i := range 500 {
		c.add("a", fmt.Sprintf("a%d", i), start.Add(time.Duration(i)*time.Millisecond))
	}
	c.add("b", "b0", start)
	c.add("a", "late", start.Add(complaintsEvery))
	c.add("a", "later", start.Add(complaintsEvery))
	c.end()
	want := []string{"a0", "a1", "a2", "b0", "497 more connections from a did not join", "late",
		"later"}
	if !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
	lines = nil
	for i := range 5 {
		c.add("a", fmt.Sprint(i), start)
	}
	c.end()
	want = []string{"0", "1", "2", "2 more connections from a did not join"}
	if !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
	for i := range 3 * maxVisitors {
		c.add(fmt.Sprint(i), "x", start)
	}
	if len(c.hosts) > maxVisitors {
		t.Errorf("%d hosts are remembered", len(c.hosts))
	}
}
