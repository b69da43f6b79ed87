package join_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/join"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/reference"
)

// head is the end of a language model with its gradients.
type head struct {
	g       *graph.Graph
	losses  graph.Value
	fetches []graph.Value
}

func mean(losses graph.Value) graph.Value { return ops.Mean(losses) }

// newHead is that of rows through a layer; what becomes of the losses is one number.
func newHead(transposed bool, rows int, total func(losses graph.Value) graph.Value) head {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 2, rows, 6))
	labels := g.Input("labels", tensor.Of(graph.I32, 2, rows))
	sizes := []int{6, 19}
	if transposed {
		slices.Reverse(sizes)
	}
	u := g.Variable("u", tensor.Of(graph.F32, 6, 6), graph.Init{})
	w := g.Variable("w", tensor.Of(graph.F32, sizes...), graph.Init{})
	h := head{g: g, losses: ops.LinearCrossEntropy(ops.MatMul(x, u), w, labels, transposed, 0.1)}
	loss := total(h.losses)
	h.fetches = append(autodiff.Grad(loss, u, w), loss)
	return h
}

func roots(fetches ...graph.Value) (ids []graph.NodeID) {
	for _, v := range fetches {
		ids = append(ids, v.Node.ID)
	}
	return ids
}

// trial is what comes of the fetches, of a graph that was made of h's or of h's own.
func (h head) trial(t rapid.TB, r *join.Result) []byte {
	t.Helper()
	g, fetches := h.g, h.fetches
	if r != nil {
		g, fetches = r.Graph, nil
		for _, v := range h.fetches {
			fetches = append(fetches, r.Value(v))
		}
	}
	if err := g.Verify(); err != nil {
		t.Fatal(err)
	}
	out, err := reference.Trial(g, fetches, nil, 19)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// count is how many operations of a name there are.
func count(g *graph.Graph, name string) (n int) {
	for _, node := range g.Nodes() {
		if !node.Leaf() && node.Op.Name() == name {
			n++
		}
	}
	return n
}

const (
	loss     = "linear-cross-entropy"
	gradient = "linear-cross-entropy-grad"
	ofRows   = "fixed-linear-cross-entropy-grad"
)

// TestResultsStay: joined or apart, losses and gradients have the same bits, of one block of rows
// and of several.
func TestResultsStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SampledFrom([]int{1, 7, 300}).Draw(t, "rows")
		h := newHead(rapid.Bool().Draw(t, "transposed"), rows, mean)
		if rapid.Bool().Draw(t, "fetched losses") {
			h.fetches = append(h.fetches, h.losses)
		}
		want := h.trial(t, nil)
		joined, err := join.Join(h.g, [][]graph.NodeID{roots(h.fetches...)})
		if err != nil {
			t.Fatal(err)
		}
		apart, err := join.Apart(h.g)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, h.trial(t, joined)) || !bytes.Equal(want, h.trial(t, apart)) {
			t.Fatal("other bits")
		}
		if count(joined.Graph, loss) != 0 || count(joined.Graph, gradient) != 1 {
			t.Fatal("not joined")
		}
		if n := count(apart.Graph, loss) + count(apart.Graph, gradient); n != 0 ||
			count(apart.Graph, "cross-entropy") != 1 || count(apart.Graph, "matmul") != 6 {
			t.Fatal("not apart, or logits are made twice")
		}
	})
}

// TestMatrixStays: where nobody wants the gradient of the matrix it is not made, and all else has
// the same bits; who asks for all results of the gradient has them.
func TestMatrixStays(t *testing.T) {
	for _, transposed := range []bool{false, true} {
		for _, asked := range []bool{false, true} {
			h := newHead(transposed, 7, mean)
			h.fetches = []graph.Value{h.fetches[0], h.fetches[2]}
			if asked {
				h.fetches = append(h.fetches, h.node(gradient).Value(2))
			}
			want := h.trial(t, nil)
			joined, err := join.Join(h.g, [][]graph.NodeID{roots(h.fetches...)})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(want, h.trial(t, joined)) {
				t.Fatal("other bits")
			}
			if rows := count(joined.Graph, ofRows) == 1; rows == asked ||
				count(joined.Graph, loss) != 0 {
				t.Errorf("the gradient is of rows alone: %t; all of it is asked for: %t", rows,
					asked)
			}
		}
	}
}

// node is the only one of an operation.
func (h head) node(name string) *graph.Node {
	return h.g.Nodes()[slices.IndexFunc(h.g.Nodes(), func(n *graph.Node) bool {
		return !n.Leaf() && n.Op.Name() == name
	})]
}

// TestNotJoined: where the gradient depends on the losses, or somebody wants these alone.
func TestNotJoined(t *testing.T) {
	plain := newHead(true, 3, mean)
	square := newHead(true, 3, func(l graph.Value) graph.Value { return ops.Mean(ops.Square(l)) })
	for name, c := range map[string]struct {
		head
		targets [][]graph.NodeID
	}{
		"its gradient depends on it": {square, [][]graph.NodeID{roots(square.fetches...)}},
		"another target has the loss alone": {plain, [][]graph.NodeID{roots(plain.fetches...),
			roots(plain.fetches[2])}},
		"nobody needs it": {plain, nil},
	} {
		if r, err := join.Join(c.g, c.targets); r != nil || err != nil {
			t.Errorf("%s: joined all the same, or %v", name, err)
		}
	}
}

// TestNothingToDo: a graph without such losses is left alone, and one with an error is refused.
func TestNothingToDo(t *testing.T) {
	g := graph.New()
	x := ops.Tanh(g.Input("x", tensor.Of(graph.F32, 3)))
	if r, err := join.Apart(g); r != nil || err != nil {
		t.Errorf("apart: %v, %v", r, err)
	}
	if r, err := join.Join(g, [][]graph.NodeID{roots(x)}); r != nil || err != nil {
		t.Errorf("joined: %v, %v", r, err)
	}
	ops.Add(x, g.Input("y", tensor.Of(graph.F32, 4)))
	for _, f := range []func() (*join.Result, error){
		func() (*join.Result, error) { return join.Apart(g) },
		func() (*join.Result, error) { return join.Join(g, nil) },
	} {
		if _, err := f(); err == nil || !strings.Contains(err.Error(), "do not broadcast") {
			t.Errorf("a graph with an error: %v", err)
		}
	}
}
