package laws_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/mesh"
)

// adafactored is a layer whose weights Adafactor updates, factored if minDim is small, and
// behind a gate if every is not 0.
func adafactored(t *testing.T, minDim, every int) (g *graph.Graph, target gomem.Target) {
	g = graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 6, 5))
	lr, step := g.Input("lr", tensor.Of(graph.F32)), g.Input("step", tensor.Of(graph.F32))
	normal := graph.Init{Dist: graph.Normal, Scale: 0.5}
	w := g.Variable("w", tensor.Of(graph.F32, 5, 8), normal)
	loss := ops.Mean(ops.Square(ops.Tanh(ops.MatMul(x, w))))
	var state []graph.Value
	for i, s := range ops.AdafactorState(w.Type(), minDim) {
		state = append(state, g.State(fmt.Sprintf("state%d", i), s, graph.Init{}))
	}
	var gate []ops.Gate
	if every > 0 {
		gate = append(gate, ops.Gate{Every: every, Step: step})
	}
	n := ops.Adafactor(w, state, autodiff.Grad(loss, w)[0], lr, step,
		ops.AdafactorConfig{MinDim: minDim}, gate...)
	if g.Err() != nil {
		t.Fatal(g.Err())
	}
	return g, gomem.Target{Name: "train", Fetches: []graph.Value{loss},
		Updates: []graph.NodeID{n.ID}}
}

// adafactoredSteps is the loss of three steps, and then the variables.
func adafactoredSteps(t *testing.T, g *graph.Graph, o gomem.Options,
	target gomem.Target) (out []byte) {
	t.Helper()
	s, err := gomem.Compile(context.Background(), g, o, target)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	feeds := map[graph.Value]gomem.Tensor{}
	for i := range 3 {
		for _, n := range g.Inputs() {
			x := tensor.New(n.Out[0])
			for k := range x.F32() {
				x.F32()[k] = float32((k*7+i)%11)/11 - 0.4
			}
			switch n.Name {
			case "lr":
				x.F32()[0] = 0.1
			case "step":
				x.F32()[0] = float32(i + 1)
			}
			feeds[n.Value(0)] = x
		}
		losses, err := s.Step(context.Background(), "train", feeds)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, losses[0].Data...)
	}
	for _, v := range s.Variables() {
		x, err := s.Get(v)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, x.Data...)
	}
	return out
}

// TestMeshComposes: Adafactor is composed where its variables are to be divided, along
// either axis, factored or not, behind a gate or not, and does what it does whole.
func TestMeshComposes(t *testing.T) {
	for _, c := range []struct {
		minDim, every, states int
	}{{4, 0, 2}, {128, 0, 1}, {4, 2, 2}, {128, 2, 1}} {
		g, target := adafactored(t, c.minDim, c.every)
		want := adafactoredSteps(t, g, gomem.Options{Seed: 2}, target)
		for _, layout := range []string{"w:1=m", "w:0=m"} {
			axes := map[string]string{"w:1=m": "m:4", "w:0=m": "m:5"}[layout]
			spec, err := mesh.Parse(axes, layout)
			if err != nil {
				t.Fatal(err)
			}
			r, err := mesh.Lower(g, *spec, 0, target.Fetches, target.Updates)
			if err != nil {
				t.Fatal(err)
			}
			whole := 0
			for _, n := range g.Variables() {
				if r.Pieces[n.Name] == nil {
					whole++
				}
			}
			// The moments over the axis that is divided are whole.
			if whole != c.states-1 {
				t.Errorf("%s, states %d: pieces %v", layout, c.states, r.Pieces)
			}
			o := gomem.Options{Seed: 2, Mesh: spec}
			if d := apart(want, adafactoredSteps(t, g, o, target)); !(d < 2e-6) {
				t.Errorf("%s, MinDim %d, every %d: off by %.1e", layout, c.minDim, c.every, d)
			}
		}
	}
}
