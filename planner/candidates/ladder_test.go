package candidates

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/mesh"
)

// ladders are those of the policies for a graph.
func ladders(t *testing.T, o Options) ladder {
	t.Helper()
	m := randgraph.Synthetic(600)
	s, err := New(context.Background(), m.Graph, o, []Target{training(m)})
	if err != nil {
		t.Fatal(err)
	}
	return s.each[0].ladder
}

// TestLaddersDoNotLookAtBudgets: the candidates of a policy are the same under every
// budget; so what one budget is enough for, a larger one is.
func TestLaddersDoNotLookAtBudgets(t *testing.T) {
	for _, policy := range Policies() {
		free := ladders(t, Options{Policy: policy})
		tight := ladders(t, Options{Policy: policy, DeviceBytes: 1000, HostBytes: 1000})
		same := func(name string, a, b []Candidate) {
			if !slices.EqualFunc(a, b, func(a, b Candidate) bool {
				a.options.DeviceBytes, b.options.DeviceBytes = 0, 0
				a.options.HostBytes, b.options.HostBytes = 0, 0
				return a == b
			}) {
				t.Errorf("%s: the ladder's %s depend on the budget", policy, name)
			}
		}
		same("common ways", free.together, tight.together)
		same("look-aheads", free.chain, tight.chain)
		same("last ways", free.last, tight.last)
	}
}

// TestChainCopiesLessAndLess: every candidate of the chain copies no more than the next, and so
// do those that come after it, but for those that compute again.
func TestChainCopiesLessAndLess(t *testing.T) {
	m, ctx := randgraph.Synthetic(600), context.Background()
	s, err := New(ctx, m.Graph, Options{Policy: Auto, Partition: 5}, []Target{training(m)})
	if err != nil {
		t.Fatal(err)
	}
	j, last := s.each[0], int64(-1)
	for _, w := range append(j.ladder.chain, j.ladder.last...) {
		if w.Segments > 0 {
			continue
		}
		p, _, err := j.sketches.plan(ctx, w)
		if err != nil {
			t.Fatal(err)
		}
		if now := copies(p); now < last {
			t.Errorf("%+v copies %d bytes, the way before it %d", w.Tuning, now, last)
		} else {
			last = now
		}
	}
}

// TestHalvingIsMonotone: whatever fits, halving among more that fits finds the
// same or something earlier; and it finds nothing only if no straight candidate fits.
func TestHalvingIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "ways")
		few, many := make([]bool, n), make([]bool, n)
		for i := range n {
			few[i] = rapid.Bool().Draw(t, "fits")
			many[i] = few[i] || rapid.Bool().Draw(t, "fits with more")
		}
		var l ladder
		for i := range n {
			l.chain = append(l.chain, Candidate{Tuning: Tuning{Lookahead: i}})
		}
		a, b := halve(n, few), halve(n, many)
		if b > a {
			t.Fatalf("%v finds %d, %v finds %d", few, a, many, b)
		}
		straight := slices.ContainsFunc(l.straight(),
			func(w Candidate) bool { return few[w.Lookahead] })
		if straight != (a < n) {
			t.Fatalf("%v finds %d of %d, straight ways fit: %v", few, a, n, straight)
		}
	})
}

// halve is the search of the chain in terms of what fits: the index found, or n.
func halve(n int, fits []bool) int {
	best, _ := halving(n, func(i int) (bool, error) { return fits[i], nil })
	return best
}

// TestPoliciesAreOneTable: every name has rules, and no other has.
func TestPoliciesAreOneTable(t *testing.T) {
	for _, p := range Policies() {
		r := p.rules()
		if r.policy != p || r.swaps == nil || r.ladder == nil {
			t.Errorf("%s has no rules", p)
		}
		if len(ladders(t, Options{Policy: p}).last) == 0 {
			t.Errorf("%s has no last way", p)
		}
	}
	if none := Policy("fast"); none.Partitioned() || none.Searches() {
		t.Error("a policy that is none has rules")
	}
}

// TestSlicesAreBounded: of a graph in slices, and of no other, the thesis' ladder ends with
// partitions that are bounded by bytes.
func TestSlicesAreBounded(t *testing.T) {
	s := &mesh.Spec{Mesh: mesh.Mesh{Axes: []string{"a"}, Cluster: []int{1}, Device: []int{2}}}
	for _, o := range []Options{{Policy: Thesis}, {Policy: Thesis, Mesh: s},
		{Policy: Vanilla, Mesh: s}} {
		o.EnsureDefaults()
		l := steadyLadder(at(o, Tuning{Lookahead: o.Lookahead}), nil)
		want := o.Mesh != nil && o.Policy == Thesis
		if got := l.last[len(l.last)-1].Bounded; got != want {
			t.Errorf("%s: bounded %v", o, got)
		}
	}
}
