package split_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/split"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
)

func (s step) accumulated(t fatal) step {
	t.Helper()
	r, err := split.Accumulate(s.g, s.fetches, s.updates)
	if err != nil {
		t.Fatal(err)
	}
	return s.checked(t, r.Graph, r)
}

// numbers are the same bytes with one NaN for all: which of two a sum has depends on
// which comes first.
func numbers(f32s []byte) []byte {
	for at := 0; at+4 <= len(f32s); at += 4 {
		if x := math.Float32frombits(binary.LittleEndian.Uint32(f32s[at:])); x != x {
			binary.LittleEndian.PutUint32(f32s[at:], math.MaxUint32)
		}
	}
	return f32s
}

// TestAccumulated: a random graph whose sums take over products gives the same bits,
// has no more operations, and stays as it is if that is done again.
func TestAccumulated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := randgraph.Any(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 20)
		s := step{m.Graph, m.Fetches, m.Updates}
		if rapid.Bool().Draw(t, "fused") {
			s = s.fused(t)
		}
		after := s.accumulated(t)
		if !bytes.Equal(numbers(s.run(t, 1<<30)), numbers(after.run(t, 1<<30))) {
			t.Fatalf("the graph gives other bits\n%s\n%s", s.text(t), after.text(t))
		}
		if after.g.Len() > s.g.Len() || after.most() > s.most() {
			t.Fatalf("%d nodes of %d, %d bytes of %d", after.g.Len(), s.g.Len(), after.most(),
				s.most())
		}
		if again := after.accumulated(t); again.text(t) != after.text(t) {
			t.Fatalf("done again it is\n%safter\n%s", again.text(t), after.text(t))
		}
	})
}

// TestEmbeddingsAccumulate: the gradient of a table that is read twice is one table,
// whose rows have the bits of two that are added.
func TestEmbeddingsAccumulate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := graph.New()
		width := rapid.SampledFrom([]int{1, 3, 64, 65, 130}).Draw(t, "width")
		table := g.Variable("table", tensor.Of(graph.F32, 50, width), graph.Init{})
		var loss graph.Value
		for i, name := range []string{"few", "many", "other"} {
			rows := rapid.IntRange(1, 1+i*20).Draw(t, name)
			x := ops.Embedding(table, g.Input(name, tensor.Of(graph.I32, rows)))
			mean := ops.Mean(ops.Square(x))
			if i == 0 {
				loss = mean
			} else {
				loss = ops.Add(loss, mean)
			}
		}
		s := step{g: g, fetches: autodiff.Grad(loss, table)}
		after := s.accumulated(t)
		if !bytes.Equal(s.run(t, 20), after.run(t, 20)) {
			t.Fatal("the graph gives other bits")
		}
		text := after.text(t)
		if n := strings.Count(text, "= embedding-grad-add{"); n != 2 {
			t.Fatalf("%d gradients are added in place\n%s", n, text)
		}
	})
}

// TestUnneededReaders: what no fetch needs does not keep a sum where it is.
func TestUnneededReaders(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 6, 6))
	w := g.Variable("w", tensor.Of(graph.F32, 6, 6), graph.Init{})
	sum := ops.Tanh(x)
	fetched := ops.Add(sum, ops.MatMul(x, w))
	ops.Neg(sum)
	s := step{g: g, fetches: []graph.Value{fetched}}
	if text := s.accumulated(t).text(t); !strings.Contains(text, "matmul-add") {
		t.Errorf("the graph is\n%s", text)
	}
}

// recurrent builds an unrolled recurrent network with the gradient of its weights.
func recurrent(t fatal, rows, width, steps int) step {
	t.Helper()
	g := graph.New()
	w := g.Variable("w", tensor.Of(graph.F32, width, width), graph.Init{})
	h := g.Input("x", tensor.Of(graph.F32, rows, width))
	for range steps {
		h = ops.Tanh(ops.MatMul(h, w))
	}
	loss := ops.Mean(h)
	dw := autodiff.Grad(loss, w)[0]
	lr := g.Constant("lr", tensor.FromF32([]float32{0.5}))
	return step{g, []graph.Value{loss}, []graph.NodeID{ops.SGD(w, dw, lr).ID}}
}

// TestRecurrent: of the partial gradients of recurrent weights only the first is
// made, unless the product over the rows takes several runs.
func TestRecurrent(t *testing.T) {
	longtest.Skip(t)
	for _, c := range []struct{ rows, width, steps, adds int }{
		{12, 30, 5, 4}, {512, 1100, 2, 1}, {513, 1100, 2, 0}} {
		s := recurrent(t, c.rows, c.width, c.steps)
		for _, s := range []step{s, s.fused(t)} {
			after := s.accumulated(t)
			adds := 0
			for _, n := range after.g.Nodes() {
				if n.OpName() == "matmul-add" {
					adds++
				}
			}
			if adds != c.adds {
				t.Errorf("%d rows: %d products are added in place", c.rows, adds)
			}
			if !bytes.Equal(s.run(t, 1), after.run(t, 1)) {
				t.Errorf("%d rows: other bits", c.rows)
			}
		}
	}
}

// TestNotAccumulated: a row for every reason to leave an addition as it is.
func TestNotAccumulated(t *testing.T) {
	for name, build := range map[string]func(x, w graph.Value) []graph.Value{
		"the sum is read later": func(x, w graph.Value) []graph.Value {
			sum := ops.Tanh(x)
			return []graph.Value{ops.Add(sum, ops.MatMul(x, w)), ops.Neg(sum)}
		},
		"the sum is fetched": func(x, w graph.Value) []graph.Value {
			sum := ops.Tanh(x)
			return []graph.Value{ops.Add(sum, ops.MatMul(x, w)), sum}
		},
		"the sum is an input": func(x, w graph.Value) []graph.Value {
			return []graph.Value{ops.Add(x, ops.MatMul(x, w))}
		},
		"the sum is a factor": func(x, w graph.Value) []graph.Value {
			sum := ops.Tanh(x)
			return []graph.Value{ops.Add(sum, ops.MatMul(sum, w))}
		},
		"the product is read elsewhere": func(x, w graph.Value) []graph.Value {
			product := ops.MatMul(x, w)
			return []graph.Value{ops.Add(ops.Tanh(x), product), ops.Neg(product)}
		},
		"the product is fetched": func(x, w graph.Value) []graph.Value {
			product := ops.MatMul(x, w)
			return []graph.Value{ops.Add(ops.Tanh(x), product), product}
		},
		"the product is twice the sum": func(x, w graph.Value) []graph.Value {
			product := ops.MatMul(x, w)
			return []graph.Value{ops.Add(product, product)}
		},
		"the sum is smaller": func(x, w graph.Value) []graph.Value {
			return []graph.Value{ops.Add(ops.Slice(ops.Tanh(x), 0, 0, 1), ops.MatMul(x, w))}
		},
		"the product is smaller than its operands": func(x, w graph.Value) []graph.Value {
			y := ops.Tanh(x)
			return []graph.Value{ops.Add(ops.Slice(ops.Exp(x), 0, 0, 6), ops.MatMul(y, ops.Neg(y)))}
		},
		"a difference": func(x, w graph.Value) []graph.Value {
			return []graph.Value{ops.Sub(ops.Tanh(x), ops.MatMul(x, w))}
		},
	} {
		g := graph.New()
		x := g.Input("x", tensor.Of(graph.F32, 6, 6))
		w := g.Variable("w", tensor.Of(graph.F32, 6, 6), graph.Init{})
		s := step{g: g, fetches: build(x, w)}
		for _, s := range []step{s, s.fused(t)} {
			if text := s.accumulated(t).text(t); strings.Contains(text, "matmul-add") {
				t.Errorf("%s: the graph is\n%s", name, text)
			}
		}
	}
}
