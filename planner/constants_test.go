package planner

import (
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// masked is a step with a mask as data, f32[2 96 96], and a product of two tables that are the same
// at every step.
func masked(t *testing.T) (*graph.Graph, Target) {
	t.Helper()
	const size = 96
	g := graph.New()
	mask := tensor.New(tensor.Of(graph.F32, 2, size, size))
	table := tensor.New(tensor.Of(graph.F32, size, size))
	for i := range mask.F32() {
		if i%size > i/size%size {
			mask.F32()[i] = -1e9
		}
		table.F32()[i%len(table.F32())] = float32(i%101) / 101
	}
	x, lr := g.Input("x", mask.Type), g.Input("lr", tensor.Of(graph.F32))
	w := g.Variable("w", table.Type, graph.Init{Dist: graph.Normal, Scale: 0.1})
	both := ops.MatMul(g.Constant("a", table), g.Constant("b", table))
	y := ops.Softmax(ops.Add(ops.MatMul(x, ops.Add(w, both)), g.Constant("mask", mask)))
	loss := ops.Mean(ops.Square(ops.MatMul(y, x)))
	sgd := ops.SGD(w, autodiff.Grad(loss, w)[0], lr)
	if g.Err() != nil {
		t.Fatal(g.Err())
	}
	return g, Target{Name: "train", Fetches: []graph.Value{loss}, Updates: []graph.NodeID{sgd.ID}}
}

// constantsOf are a graph's, by name.
func constantsOf(g *graph.Graph) (names []string) {
	for _, n := range g.Nodes() {
		if n.Kind == graph.KindConstant {
			names = append(names, n.Name)
		}
	}
	return names
}

// TestConstantsAreChosen: auto takes a graph whose constants are folded and unfolded, if that is
// faster, and its log says which; the other policies plan what the model states.
func TestConstantsAreChosen(t *testing.T) {
	g, target := masked(t)
	for _, policy := range Policies() {
		var log Log
		p, err := Plan(WithLog(t.Context(), &log), g, Options{Policy: policy, Effort: 20}, target)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, e := range log.Entries() {
			if line := e.String(); strings.Contains(line, " bytes: ") {
				said = append(said, line)
			}
		}
		if policy != Auto {
			if !slices.Equal(constantsOf(p.Graph), constantsOf(g)) || len(said) > 0 {
				t.Errorf("%s: constants are %v: %v", policy, constantsOf(p.Graph), said)
			}
			continue
		}
		if slices.Contains(constantsOf(p.Graph), "a") {
			t.Errorf("the %s graph is taken, with constants %v", p.rewritten, constantsOf(p.Graph))
		}
		for _, want := range []string{"candidate folded matmul, 36864 bytes: folded",
			"candidate unfolded mask, 73728 bytes: broadcast+triu"} {
			if !slices.ContainsFunc(said, func(s string) bool {
				return strings.HasPrefix(s, want)
			}) {
				t.Errorf("the log does not say %q: %q", want, said)
			}
		}
	}
}

// TestFoldedForTheDevice: where the device has other bits for a product, none is folded.
func TestFoldedForTheDevice(t *testing.T) {
	g, target := masked(t)
	for _, o := range []Options{{Policy: Auto}, {Policy: Auto, Device: odd{}}} {
		list, err := variantsOf(g, o, []Target{target})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range list {
			p, err := v.graph()
			if err != nil {
				t.Fatal(err)
			}
			if p == nil || !strings.HasPrefix(v.name, asFolded) {
				continue
			}
			if have, want := slices.Contains(constantsOf(p.Graph), "matmul"),
				o.Device == nil; have != want {
				t.Errorf("device %v: constants are %v", o.Device, constantsOf(p.Graph))
			}
		}
	}
}
