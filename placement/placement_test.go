package placement_test

import (
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/placement"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// TestPlaces: inputs are always on the host; variables and their updates are
// together, on the host if asked for (thesis, section 6.3.3).
func TestPlaces(t *testing.T) {
	m := randgraph.Synthetic(100)
	for _, host := range []bool{false, true} {
		p := program.New(m.Graph, m.Fetches, m.Updates)
		for _, ps := range []program.Pass{program.DeadCode(), placement.Pass(host)} {
			if err := ps.Run(p); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range m.Graph.Nodes() {
			want := space.Device
			switch {
			case n.Kind == graph.KindInput:
				want = space.Host
			case n.Kind != graph.KindCompute && host:
				want = space.Host
			}
			if p.Place[n.ID] != want {
				t.Errorf("host=%v: %s %s is in %s", host, n.Kind, n.Name, p.Place[n.ID])
			}
		}
	}
}

// TestComposedUpdates: what only an update on the host needs is there with it,
// what anything on the device reads is not, and the gradient is not.
func TestComposedUpdates(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 4))
	w := g.Variable("w", tensor.Of(graph.F32, 4), graph.Init{})
	grad := ops.Mul(x, w)
	var step, seen graph.Value
	var update *graph.Node
	g.InPhase(graph.Update, func() {
		seen = ops.Scale(grad, 0.5)
		step = ops.Add(seen, w)
		update = ops.Assign(w, step)
	})
	loss := ops.Sum(seen)
	p := program.New(g, []graph.Value{loss}, []graph.NodeID{update.ID})
	for _, ps := range []program.Pass{program.DeadCode(), placement.Pass(true)} {
		if err := ps.Run(p); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		v    graph.Value
		want space.ID
	}{{grad, space.Device}, {seen, space.Device}, {step, space.Host}, {loss, space.Device}} {
		if got := p.Place[c.v.Node.ID]; got != c.want {
			t.Errorf("%s is on the %s, want %s", c.v, got, c.want)
		}
	}
}
