package gomem_test

import (
	"context"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/randgraph"
)

// TestBadTargets: with fusion and without, for plans and for minima, what cannot be
// a target is an error that names it, and nothing panics.
func TestBadTargets(t *testing.T) {
	m := randgraph.Synthetic(40)
	good := gomem.Target{Name: "good", Fetches: m.Fetches}
	bad := func(ids ...graph.NodeID) []gomem.Target {
		return []gomem.Target{good, {Name: "bad", Fetches: m.Fetches, Updates: ids}}
	}
	var nobody context.Context
	for _, c := range []struct {
		name    string
		ctx     context.Context
		g       *graph.Graph
		targets []gomem.Target
		want    string
	}{
		{"beyond the graph", t.Context(), m.Graph, bad(1 << 20), `target "bad": update 0`},
		{"negative", t.Context(), m.Graph, bad(-7), `target "bad": update 0`},
		{"a leaf", t.Context(), m.Graph, bad(m.Inputs[0].Node.ID), `target "bad": update 0`},
		{"computed", t.Context(), m.Graph, bad(m.Fetches[0].Node.ID), `target "bad": update 0`},
		{"no value", t.Context(), m.Graph, []gomem.Target{{Name: "bad",
			Fetches: []graph.Value{{}}}}, `target "bad": fetch 0`},
		{"one name", t.Context(), m.Graph, []gomem.Target{good, good},
			`two targets are called "good"`},
		{"nothing", t.Context(), m.Graph, []gomem.Target{{}}, "nothing to compute"},
		{"no targets", t.Context(), m.Graph, nil, "no targets"},
		{"no graph", t.Context(), nil, []gomem.Target{good}, "the graph is nil"},
		{"no context", nobody, m.Graph, []gomem.Target{good}, "the context is nil"},
	} {
		for _, noFusion := range []bool{false, true} {
			o := gomem.Options{NoFusion: noFusion}
			_, errPlan := gomem.Plan(c.ctx, c.g, o, c.targets...)
			_, errDevice := gomem.MinDevice(c.ctx, c.g, o, c.targets...)
			_, errHost := gomem.MinHost(c.ctx, c.g, o, c.targets...)
			_, errSmaller := gomem.SmallerPartition(c.ctx, &gomem.Planned{Graph: c.g,
				Targets: c.targets}, o, 1<<40)
			_, errUnplanned := gomem.MinDeviceOf(c.ctx, &gomem.Planned{}, o)
			if errUnplanned == nil {
				t.Error("what has not been planned has a smallest budget")
			}
			for _, err := range []error{errPlan, errDevice, errHost, errSmaller} {
				if err == nil || !strings.Contains(err.Error(), c.want) ||
					!strings.HasPrefix(err.Error(), "gomem: ") {
					t.Errorf("%s: want %q, have %v", c.name, c.want, err)
				}
			}
		}
	}
}
