package split_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/split"
	"github.com/gomem/gomem/graph/tensor"
)

// TestParts: the parts of what is cut have all its rows, or are as many as were asked
// for where they add up; nothing else is a part.
func TestParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := head(t)
		if rapid.Bool().Draw(t, "fused") {
			s = s.fused(t)
		}
		survey, err := split.NewSurvey(s.g, s.fetches, s.updates, s.most()/3)
		if err != nil {
			t.Fatal(err)
		}
		count := rapid.IntRange(0, 6).Draw(t, "parts")
		regions := survey.Regions()
		r, err := survey.Build(slices.Repeat([]int{count}, len(regions)))
		if err != nil {
			t.Fatal(err)
		}
		parts := partsByWhole(r.Graph, split.Parts(r.Graph, s.g))
		for _, region := range regions {
			found := 0
			for _, id := range region.Nodes {
				n := s.g.Node(id)
				checkParts(t, n, parts[n.Name], min(count, region.Most))
				found += len(parts[n.Name])
				delete(parts, n.Name)
			}
			if found == 0 && count > 1 {
				t.Fatalf("no parts of %v", region)
			}
		}
		if len(parts) > 0 {
			t.Fatalf("parts of what is in no region: %v", parts)
		}
	})
}

// partsByWhole are the parts, by the name of what they are parts of.
func partsByWhole(g *graph.Graph, parts []bool) map[string][]*graph.Node {
	by := map[string][]*graph.Node{}
	for _, n := range g.Nodes() {
		if !parts[n.ID] {
			continue
		}
		whole := n.Name
		if at := strings.LastIndexByte(n.Name, '/'); at > 0 && strings.Contains(n.Name[at:], "of") {
			whole = n.Name[:at]
		}
		by[whole] = append(by[whole], n)
	}
	return by
}

func checkParts(t *rapid.T, n *graph.Node, parts []*graph.Node, want int) {
	if want < 2 {
		want = 0
	}
	if len(parts) > want { // fewer: nothing reads some of them
		t.Fatalf("%d parts of %s, want %d", len(parts), n.Name, want)
	}
	cut, ok := n.Op.(graph.Cutter).Cut(n.InTypes(), n.Out)
	if !ok {
		t.Fatalf("%s cannot be cut", n.Name)
	}
	elems := 0
	for _, p := range parts {
		elems += p.Out[0].Elems()
	}
	if len(parts) == want && want > 0 && !cut.Sums() && elems != n.Out[0].Elems() {
		t.Fatalf("the parts of %s have %d elements of %d", n.Name, elems, n.Out[0].Elems())
	}
}

// TestNoParts: names alone make no parts.
func TestNoParts(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 8, 4))
	for range 2 {
		leave := g.Scope("1of2")
		ops.Tanh(x)
		leave()
	}
	if slices.Contains(split.Parts(g, g), true) {
		t.Error("a graph has parts of itself")
	}
}
