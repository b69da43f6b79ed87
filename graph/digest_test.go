package graph_test

import (
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// recipe is what a small graph is made of.
type recipe struct {
	input, variable, constant string
	dtype                     graph.DType
	rows                      int
	axis                      string
	init                      graph.Init
	data                      float32
	rate                      float32
	swapped, second, updated  bool
}

func (r recipe) build(t *testing.T) *graph.Graph {
	t.Helper()
	g := graph.New()
	x := g.Input(r.input, tensor.Named(graph.F32, tensor.Dim{Name: r.axis, Size: r.rows},
		tensor.Dim{Size: 2}))
	w := g.Variable(r.variable, tensor.Of(graph.F32, 2), r.init)
	c := g.Constant(r.constant, tensor.FromF32([]float32{r.data, 1}, 2))
	g.Input("other", tensor.Of(r.dtype, 2))
	y := ops.Scale(ops.Sub(x, w), r.rate)
	if r.swapped {
		y = ops.Scale(ops.Sub(x, c), r.rate)
	}
	values, indices := ops.TopK(y, 1)
	if r.second {
		ops.Reshape(indices, tensor.Dim{Size: r.rows})
	} else {
		ops.Reshape(values, tensor.Dim{Size: r.rows})
	}
	if r.updated {
		ops.SGD(w, c, g.Input("lr", tensor.Of(graph.F32)))
	}
	if g.Err() != nil {
		t.Fatal(g.Err())
	}
	return g
}

// TestDigest: it is the same for graphs that are made alike, and another one after
// any change of what is computed.
func TestDigest(t *testing.T) {
	base := func() recipe {
		return recipe{input: "x", variable: "w", constant: "c", dtype: graph.I32, rows: 3,
			data: 2, rate: 0.5, init: graph.Init{Dist: graph.Normal, Scale: 1}}
	}
	seen := map[string]string{base().build(t).Digest(): "as it is"}
	if d := base().build(t).Digest(); len(seen) != 1 || seen[d] == "" {
		t.Fatalf("%s and %v", d, seen)
	}
	part := graph.Init{Each: []graph.Init{{}, {Scale: 1}}}
	for name, change := range map[string]func(r *recipe){
		"input's name":    func(r *recipe) { r.input = "y" },
		"variable's name": func(r *recipe) { r.variable = "v" },
		"constant's name": func(r *recipe) { r.constant = "d" },
		"element type":    func(r *recipe) { r.dtype = graph.F32 },
		"shape":           func(r *recipe) { r.rows = 4 },
		"axis":            func(r *recipe) { r.axis = "batch" },
		"distribution":    func(r *recipe) { r.init.Dist = graph.Uniform },
		"scale":           func(r *recipe) { r.init.Scale = 2 },
		"parts":           func(r *recipe) { r.init = part },
		"data":            func(r *recipe) { r.data = 3 },
		"attribute":       func(r *recipe) { r.rate = 0.25 },
		"operand":         func(r *recipe) { r.swapped = true },
		"result":          func(r *recipe) { r.second = true },
		"update":          func(r *recipe) { r.updated = true },
	} {
		r := base()
		change(&r)
		d := r.build(t).Digest()
		if other := seen[d]; other != "" {
			t.Errorf("%s: the digest is the one of %s", name, other)
		}
		seen[d] = name
	}
}

// TestDigestGrows: nodes that are added later count.
func TestDigestGrows(t *testing.T) {
	g := graph.New()
	empty := g.Digest()
	g.Input("x", tensor.Of(graph.F32))
	one := g.Digest()
	if one == empty || g.Digest() != one {
		t.Errorf("digests %s, %s, %s", empty, one, g.Digest())
	}
}
