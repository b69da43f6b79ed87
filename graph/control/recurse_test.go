package control_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/control"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/planner"
)

// tree is a binary one: the children of each node, −1 of leaves, and numbers of each; node 0 is
// its root.
type tree struct {
	left, right []int32
	x           []float32
}

const treeNodes, treeWidth = 15, 3

// newTree draws a tree and says how deep it is.
func newTree(seed uint64) (t tree, depth int) {
	rng := rand.New(rand.NewPCG(seed, 8))
	t = tree{left: make([]int32, treeNodes), right: make([]int32, treeNodes)}
	for i := range t.left {
		t.left[i], t.right[i] = -1, -1
	}
	depths, leaves := make([]int, treeNodes), []int{0}
	for next := 1; next+1 < treeNodes; next += 2 {
		k := rng.IntN(len(leaves))
		at := leaves[k]
		t.left[at], t.right[at] = int32(next), int32(next+1)
		depths[next], depths[next+1] = depths[at]+1, depths[at]+1
		leaves = append(append(leaves[:k], leaves[k+1:]...), next, next+1)
		depth = max(depth, depths[next])
	}
	for range treeNodes * treeWidth {
		t.x = append(t.x, 2*rng.Float32()-1)
	}
	return t, depth + 1
}

// network computes over a tree: by Recurse up to a depth, or of known children by Go's recursion.
func (t tree) network(depth int) (values []value, feeds gomem.Feeds) {
	g := graph.New()
	left, right := g.Input("left", tensor.Of(graph.I32, treeNodes)),
		g.Input("right", tensor.Of(graph.I32, treeNodes))
	x := g.Input("x", f32(treeNodes, treeWidth))
	w := g.Input("w", f32(2*treeWidth, treeWidth))
	join := func(own, w, a, b value) value {
		both := ops.ReshapeSizes(ops.Concat(0, a, b), 1, 2*treeWidth)
		bias := ops.Cast(ops.Ones(own.Graph(), f32(treeWidth)), graph.F32)
		sum := ops.ReshapeSizes(ops.MatMul(both, w), treeWidth)
		return ops.Tanh(ops.Add(ops.Add(sum, own), ops.Scale(bias, 0.1)))
	}
	var of func(k int32) value
	of = func(k int32) value {
		own := ops.ReshapeSizes(ops.Slice(x, 0, int(k), int(k)+1), treeWidth)
		if t.left[k] < 0 {
			return own
		}
		return join(own, w, of(t.left[k]), of(t.right[k]))
	}
	var y value
	if depth == 0 {
		y = of(0)
	} else {
		root := g.Constant("root", tensor.FromI32([]int32{0}))
		y = control.Recurse(depth, []value{root, left, right, x, w}, []graph.Type{f32(treeWidth)},
			visited(join))[0]
	}
	d := autodiff.Grad(ops.Sum(ops.Square(y)), x, w)
	weights := make([]float32, 2*treeWidth*treeWidth)
	for i := range weights {
		weights[i] = float32(i%5)/4 - 0.4
	}
	return []value{ops.Scale(y, 2), d[0], d[1]}, gomem.Feeds{
		left: tensor.FromI32(t.left, treeNodes), right: tensor.FromI32(t.right, treeNodes),
		x: tensor.FromF32(t.x, treeNodes, treeWidth),
		w: tensor.FromF32(weights, 2*treeWidth, treeWidth)}
}

// visited is the function of a node that calls itself for its children.
func visited(join func(own, w, a, b value) value,
) func(in []value, self func([]value) []value) []value {
	return func(in []value, self func([]value) []value) []value {
		k, left := in[0], in[1]
		child := ops.Take(left, k, 0)
		zero := ops.Cast(ops.Zeros(k.Graph(), f32()), graph.I32)
		return control.Cond(ops.Less(child, zero), in,
			func(in []value) []value { return []value{ops.Take(in[3], in[0], 0)} },
			func(in []value) []value {
				a := self([]value{ops.Take(in[1], in[0], 0), in[1], in[2], in[3], in[4]})
				b := self([]value{ops.Take(in[2], in[0], 0), in[1], in[2], in[3], in[4]})
				return []value{join(ops.Take(in[3], in[0], 0), in[4], a[0], b[0])}
			})
	}
}

// TestRecurse: a network over a tree that calls itself has the bits of Go's recursion over the same
// tree, and its gradients, under every policy within the least memory; a tree that is deeper than
// the bound is an error, and each depth adds as much memory.
func TestRecurse(t *testing.T) {
	for seed := range uint64(longtest.Count(3, 30)) {
		tr, depth := newTree(seed)
		values, feeds := tr.network(0)
		want, err := fetched(t, gomem.Options{}, values[0].Graph(), values, feeds)
		if err != nil {
			t.Fatal(err)
		}
		values, feeds = tr.network(depth)
		for _, policy := range []planner.Policy{planner.Vanilla, planner.Thesis, planner.Auto} {
			o := gomem.Options{Policy: policy, Effort: 100}
			got, err := fetched(t, o, values[0].Graph(), values, feeds)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got[0], want[0]) {
				t.Errorf("seed %d: %v, want %v", seed, floats(got[0]), floats(want[0]))
			}
			for i := 1; i < 3; i++ {
				near(t, fmt.Sprint("gradient ", i), got[i], want[i], 1e-5)
			}
		}
		values, feeds = tr.network(depth - 1)
		_, err = fetched(t, gomem.Options{}, values[0].Graph(), values, feeds)
		if err == nil || !strings.Contains(err.Error(), "its bound") {
			t.Errorf("seed %d: beyond its bound: %v", seed, err)
		}
	}
}

// TestRecurseFrames: a depth more is a body more, and a frame more, however often it is called.
func TestRecurseFrames(t *testing.T) {
	tr, _ := newTree(1)
	var frames []int64
	for depth := 2; depth < 12; depth++ {
		values, _ := tr.network(depth)
		for _, n := range values[0].Graph().Nodes() {
			if !n.Leaf() && n.Op.Name() == "call" {
				frames = append(frames, n.Cost().Scratch)
				break
			}
		}
	}
	for i := 2; i < len(frames); i++ {
		if frames[i]-frames[i-1] != frames[1]-frames[0] {
			t.Fatalf("frames of %d bytes", frames)
		}
	}
}
