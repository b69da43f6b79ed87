package split_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// head builds the end of a language model, with gradients: a product with classes,
// their cross-entropy, and what goes back.
func head(t *rapid.T) step {
	g := graph.New()
	rows := rapid.SampledFrom([][]int{{1100}, {40, 32}, {96, 16}, {2, 3, 300}}).Draw(t, "rows")
	width := rapid.IntRange(15, 24).Draw(t, "width")
	classes := rapid.OneOf(rapid.IntRange(16, 40), rapid.IntRange(129, 140)).Draw(t, "classes")
	x := g.Input("x", tensor.Of(graph.F32, append(slices.Clone(rows), width)...))
	labels := g.Input("labels", tensor.Of(graph.I32, rows...))
	seed := g.Input("seed", tensor.Of(graph.I32, 2))
	w := g.Variable("w", tensor.Of(graph.F32, classes, width), graph.Init{})
	u := g.Variable("u", tensor.Of(graph.F32, width, width), graph.Init{})
	bias := g.Variable("b", tensor.Of(graph.F32, classes), graph.Init{})
	y := ops.MatMul(x, u)
	if rapid.Bool().Draw(t, "norm") {
		y = ops.Dropout(ops.Relu(y), seed, 0.25, "hidden")
	}
	logits := ops.MatMulT(y, w, false, true)
	if rapid.Bool().Draw(t, "bias") {
		logits = ops.Add(logits, bias)
	}
	if rapid.Bool().Draw(t, "jitter") {
		logits = ops.Jitter(logits, seed, 0.01, "logits")
	}
	losses := ops.CrossEntropy(logits, labels, 0.1)
	if rapid.Bool().Draw(t, "the gradient needs the loss") {
		losses = ops.Square(losses)
	}
	loss := ops.Mean(losses)
	s := step{g: g, fetches: []graph.Value{loss, losses}}
	if rapid.Bool().Draw(t, "fetched logits") {
		s.fetches = append(s.fetches, logits)
	}
	s.fetches = append(s.fetches, ranked(t, logits, labels)...)
	for i, d := range autodiff.Grad(loss, w, u, bias) {
		if d.Valid() {
			s.updates = append(s.updates, ops.SGD([]graph.Value{w, u, bias}[i], d,
				g.Constant("lr", tensor.FromF32([]float32{0.5}))).ID)
		}
	}
	if g.Err() != nil {
		t.Fatal(g.Err())
	}
	return s
}

// ranked are some of what an evaluation reads of logits.
func ranked(t *rapid.T, logits, labels graph.Value) []graph.Value {
	values, ids := ops.TopK(logits, rapid.IntRange(1, 3).Draw(t, "k"))
	all := []graph.Value{ops.Correct(logits, labels), values, ids, ops.Square(values),
		ops.Slice(ids, 0, 1, 2), ops.Slice(values, 0, 0, 1), ops.OneHot(ids, 140)}
	list := rapid.SliceOfNDistinct(rapid.IntRange(0, len(all)-1), 0, len(all),
		rapid.ID[int]).Draw(t, "of evaluations")
	var some []graph.Value
	for _, i := range list {
		some = append(some, all[i])
	}
	return some
}

// TestHeads: so are heads, and their logits are never whole if nothing needs that.
func TestHeads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := head(t)
		if rapid.Bool().Draw(t, "fused") {
			s = s.fused(t)
		}
		before := s.run(t, 15)
		limit := s.most() / rapid.Int64Range(1, 8).Draw(t, "limit")
		after := s.split(t, limit)
		if !bytes.Equal(before, after.run(t, 15)) {
			t.Fatal("the split graph gives other bits")
		}
		if again := after.split(t, max(limit, after.most())); again.text(t) != after.text(t) {
			t.Fatalf("split again it is\n%safter\n%s", again.text(t), after.text(t))
		}
	})
}

// TestLogitsArePassed: the parts of a head follow one another, from the product to
// the gradients.
func TestLogitsArePassed(t *testing.T) {
	g := graph.New()
	x := g.Variable("x", tensor.Of(graph.F32, 64, 32, 8), graph.Init{})
	w := g.Variable("w", tensor.Of(graph.F32, 500, 8), graph.Init{})
	labels := g.Input("labels", tensor.Of(graph.I32, 64, 32))
	losses := ops.CrossEntropy(ops.MatMulT(x, w, false, true), labels, 0)
	loss := ops.Mean(losses)
	s := step{g: g, fetches: append(autodiff.Grad(loss, x, w), loss)}
	after := s.split(t, s.most()/2)
	var order []string
	for _, n := range after.g.Nodes() {
		if n.Executes() && strings.Contains(n.Name, "of") || n.OpName() == "concat" {
			order = append(order, n.Name+"="+n.OpName())
		}
	}
	want := "matmul/1of4=matmul cross-entropy/1of4=cross-entropy " +
		"cross-entropy-grad/1of4=cross-entropy-grad matmul_2/1of4=matmul matmul_3/1of4=matmul-part"
	if got := strings.Join(order, " "); !strings.HasPrefix(got, want) {
		t.Errorf("the order is %s", got)
	}
	if after.most() > s.most()/2 {
		t.Errorf("an operation needs %d of %d bytes", after.most(), s.most())
	}
	if !bytes.Equal(s.run(t, 500), after.run(t, 500)) {
		t.Error("the split graph gives other bits")
	}
}

// TestSeveralResults: an operation with two results is cut with what makes its operand,
// and either result is joined if something needs all of it.
func TestSeveralResults(t *testing.T) {
	g := graph.New()
	x := g.Variable("x", tensor.Named(graph.F32, tensor.Dim{Name: "batch", Size: 64},
		tensor.Dim{Size: 32}, tensor.Dim{Size: 8}), graph.Init{})
	w := g.Variable("w", tensor.Of(graph.F32, 500, 8), graph.Init{})
	labels := g.Input("labels", tensor.Of(graph.I32, 64, 32))
	logits := ops.MatMulT(x, w, false, true)
	values, ids := ops.TopK(logits, 2)
	right := ops.Mean(ops.Correct(logits, labels))
	for _, s := range []step{{g: g, fetches: []graph.Value{right, ids}},
		{g: g, fetches: []graph.Value{values, right, ids}},
		{g: g, fetches: []graph.Value{right, ops.Slice(ids, 0, 3, 5), ops.Square(values)}},
		{g: g, fetches: []graph.Value{ops.Mean(values)}}} {
		after := s.split(t, s.most()/8)
		if after.most() > s.most()/8 {
			t.Errorf("an operation needs %d of %d bytes", after.most(), s.most())
		}
		if !bytes.Equal(s.run(t, 500), after.run(t, 500)) {
			t.Error("the split graph gives other bits")
		}
	}
}
