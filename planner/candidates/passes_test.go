package candidates

import (
	"slices"
	"testing"
)

// TestPassOrder holds the pass list against its reasons.
func TestPassOrder(t *testing.T) {
	o := Options{}
	o.EnsureDefaults()
	var names []string
	for _, p := range passes(at(o, Tuning{Lookahead: 2})) {
		names = append(names, p.Name)
	}
	for _, c := range precedence {
		before, after := slices.Index(names, c.before), slices.Index(names, c.after)
		if before < 0 || after < 0 || before > after {
			t.Errorf("%v: %s must come before %s: %s", names, c.before, c.after, c.why)
		}
	}
}
