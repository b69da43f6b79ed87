package planner

import (
	"context"
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
)

// odd is a device that does without fused operations, and wants workspace where the
// reference wants none.
type odd struct{}

func (odd) Runs(op graph.Op) bool { return op.Name() == "relu" || op.Name() == "matmul" }

func (odd) Exact(op graph.Op) bool { return op.Name() != "matmul" }

func scratch(n *graph.Node) int64 {
	if n.OpName() == "relu" {
		return 1000
	}
	return 0
}

func (odd) Computing([]*graph.Node) (machine.Computing, error) {
	return machine.Computing{Scratch: scratch, Library: func(n *graph.Node) string {
		if n.OpName() == "matmul" {
			return "multiplier"
		}
		return ""
	}}, nil
}

// TestDeviceSaysWhatItRuns: plans for a device have no operation that it has no kernel for,
// and the workspace that its kernels want, and say what is by its library; the model's graph stays
// as it is.
func TestDeviceSaysWhatItRuns(t *testing.T) {
	g := graph.New()
	x := g.Input("x", graph.Of(graph.F32, 8, 8))
	y := ops.Relu(ops.MatMul(x, x))
	target := Target{Name: "eval", Fetches: []graph.Value{ops.Relu(ops.MatMul(y, y))}}
	for _, policy := range []Policy{Thesis, Auto, Vanilla} {
		for d, want := range map[machine.Device]int{nil: 0, odd{}: 2} {
			p, err := Plan(context.Background(), g, Options{Policy: policy, Device: d}, target)
			if err != nil {
				t.Fatal(err)
			}
			fused := slices.ContainsFunc(p.Graph.Nodes(), func(n *graph.Node) bool {
				return n.OpName() == "matmul+relu"
			})
			if n := scratches(p.Results[0].Plan); n != want || fused != (want == 0) {
				t.Errorf("%s for %T: %d launches with scratch, want %d; fused: %v", policy, d, n,
					want, fused)
			}
			if n := multiplied(p.Results[0].Plan); n != want {
				t.Errorf("%s for %T: %d launches by the library, want %d", policy, d, n, want)
			}
		}
	}
	if c := y.Node.Cost(); c.Scratch != 0 || y.Node.Graph() != g {
		t.Errorf("the model's own operation wants %d bytes of scratch", c.Scratch)
	}
}

// TestInexactUpdatesAreOnTheHost: what of the update phase a device computes to other bits than
// the host is on the host in every plan, with the update that reads it; no other operation is
// for that.
func TestInexactUpdatesAreOnTheHost(t *testing.T) {
	g := graph.New()
	x := g.Input("x", graph.Of(graph.F32, 8, 8))
	w := g.Variable("w", graph.Of(graph.F32, 8, 8), graph.Init{})
	loss := ops.MatMul(ops.Relu(x), w)
	var step graph.Value
	var update *graph.Node
	g.InPhase(graph.Update, func() {
		step = ops.MatMul(ops.Relu(loss), w)
		update = ops.Assign(w, ops.Relu(step))
	})
	target := Target{Name: "train", Fetches: []graph.Value{loss},
		Updates: []graph.NodeID{update.ID}}
	for _, o := range []Options{{NoPlacement: true}, {}, {Policy: Auto}, {Policy: Vanilla}} {
		o.Device = odd{}
		p, err := Plan(context.Background(), g, o, target)
		if err != nil {
			t.Fatal(err)
		}
		made, hosted := p.Results[0].Plan, map[string]bool{}
		for _, s := range made.Steps {
			if _, ok := s.Do.(plan.Launch); ok {
				hosted[s.Name] = made.Streams[s.Stream].Engine == space.HostCompute
			}
		}
		if multiplied(made) != 1 { // the one that is not on the host
			t.Errorf("%s: %d launches by the library", o, multiplied(made))
		}
		if !hosted[step.Node.Name] || !hosted[update.Name] || hosted[loss.Node.Name] {
			t.Errorf("%s: on the host are %v", o, hosted)
		}
	}
}

// multiplied counts the launches by odd's library.
func multiplied(p *plan.Plan) (n int) {
	for _, s := range p.Steps {
		if l, ok := s.Do.(plan.Launch); ok && l.Library == "multiplier" {
			n++
		}
	}
	return n
}

func scratches(p *plan.Plan) (n int) {
	for _, s := range p.Steps {
		if l, ok := s.Do.(plan.Launch); ok && l.Scratch != plan.NoSlot &&
			p.Slots[l.Scratch].Bytes == 1000 {
			n++
		}
	}
	return n
}
