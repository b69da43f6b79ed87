package distrib_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/gomem/gomem/distrib"
)

// TestTiers: what is read is what was written, costs are Parameter Flow's, and what makes no sense
// is refused by its line.
func TestTiers(t *testing.T) {
	tiers, err := distrib.ParseTiers(strings.NewReader(
		"# two halls\n0-1 a/x # near\n2 a/y\n\n3 b/x\n"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := distrib.ParseTiers(strings.NewReader(tiers.String()))
	if err != nil || !maps.Equal(tiers, again) {
		t.Errorf("%v, read again %v: %v", tiers, again, err)
	}
	for _, c := range []struct {
		from, to distrib.NodeID
		want     float64
	}{{0, 1, 0.1}, {1, 2, 0.5}, {2, 3, 1}, {3, 0, 1}, {0, 7, 1}, {7, 8, 1}} {
		if have := tiers.Cost(c.from, c.to); have != c.want {
			t.Errorf("from %d to %d: %v, want %v", c.from, c.to, have, c.want)
		}
	}
	for text, want := range map[string]string{
		"":                       "no node is named",
		"0 a\nx b":               "line 2: \"x\" is no node",
		"3-1 a":                  "no node",
		"0-99999999 a":           "no node",
		"99999999999999999 a":    "no node",
		"0":                      "as in 0-3 hall1/rack1",
		"0 a b":                  "as in 0-3 hall1/rack1",
		"0 a//b":                 "a switch without a name",
		"0-4 a\n2 b":             "line 2: node 2 is below a already",
		strings.Repeat("x", 1e5): "token too long",
	} {
		if _, err := distrib.ParseTiers(strings.NewReader(text)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
}

// TestTiersOfTrees: with tiers, trees cross fewer of the far links than without.
func TestTiersOfTrees(t *testing.T) {
	var workers []distrib.NodeID
	tiers := distrib.Tiers{}
	for i := range distrib.NodeID(24) {
		workers = append(workers, i)
		tiers[i] = []string{"a/x", "b/x", "a/y", "b/y"}[i%4]
	}
	far := func(s distrib.Trees) (n int) {
		trees, err := s.Build(workers, workers)
		if err != nil {
			t.Fatal(err)
		}
		for _, tree := range trees {
			for _, from := range workers {
				for _, to := range tree.Children(nil, from) {
					if tiers.Cost(from, to) == 1 {
						n++
					}
				}
			}
		}
		return n
	}
	with, without := far(distrib.Trees{Cost: tiers.Cost}), far(distrib.Trees{})
	t.Logf("%d edges between halls with tiers, %d without, in 24 trees", with, without)
	if with < 24 || with >= without/2 { // each tree has to cross once
		t.Error("trees do not heed where nodes are")
	}
}
