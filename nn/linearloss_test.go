package nn_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/reference"
	"github.com/gomem/gomem/nn"
)

// TestLinearCrossEntropy: it has the bits of the cross-entropy of the product, whatever the
// options, and so have its gradients.
func TestLinearCrossEntropy(t *testing.T) {
	two := 2
	for name, options := range map[string]func(g *graph.Graph) nn.CrossEntropyOptions{
		"plain": func(*graph.Graph) (o nn.CrossEntropyOptions) { return o },
		"smoothing": func(*graph.Graph) (o nn.CrossEntropyOptions) {
			o.Smoothing = 0.1
			return o
		},
		"padding": func(*graph.Graph) (o nn.CrossEntropyOptions) {
			o.Padding = true
			return o
		},
		"ignored": func(*graph.Graph) (o nn.CrossEntropyOptions) {
			o.Ignore = &two
			return o
		},
		"weights": func(g *graph.Graph) nn.CrossEntropyOptions {
			return nn.CrossEntropyOptions{Weights: g.Input("weights", graph.Of(graph.F32, 3, 5))}
		},
		"classes": func(g *graph.Graph) nn.CrossEntropyOptions {
			return nn.CrossEntropyOptions{Smoothing: 0.1,
				Classes: g.Input("classes", graph.Of(graph.F32, 9))}
		},
	} {
		for _, transposed := range []bool{false, true} {
			g := graph.New()
			sizes := []int{4, 9}
			if transposed {
				sizes = []int{9, 4}
			}
			x := g.Variable("x", graph.Of(graph.F32, 3, 5, 4), graph.Init{})
			w := g.Variable("w", graph.Of(graph.F32, sizes...), graph.Init{})
			labels := g.Input("labels", graph.Of(graph.I32, 3, 5))
			o := options(g)
			var results [2][]byte
			for i, loss := range []graph.Value{nn.LinearCrossEntropy(x, w, labels, transposed, o),
				nn.CrossEntropy(ops.MatMulT(x, w, false, transposed), labels, o)} {
				all, err := reference.Trial(g, append(autodiff.Grad(loss, x, w), loss), nil, 9)
				if err != nil {
					t.Fatal(err)
				}
				results[i] = all
			}
			if !bytes.Equal(results[0], results[1]) {
				t.Errorf("%s, transposed %t: other bits than by logits", name, transposed)
			}
		}
	}
}

// TestLinearCrossEntropyOfNothing: what is no layer's end is refused, by a line.
func TestLinearCrossEntropyOfNothing(t *testing.T) {
	for want, build := range map[string]func(g *graph.Graph, x, w, labels graph.Value){
		"want 2 axes": func(_ *graph.Graph, x, _, labels graph.Value) {
			nn.LinearCrossEntropy(x, labels, labels, true)
		},
		"inner dimensions differ": func(_ *graph.Graph, x, w, labels graph.Value) {
			nn.LinearCrossEntropy(x, w, labels, true)
		},
		"label 0 and padding": func(_ *graph.Graph, x, w, labels graph.Value) {
			nn.LinearCrossEntropy(x, w, labels, false,
				nn.CrossEntropyOptions{Padding: true, Ignore: new(int)})
		},
		"want one shape": func(_ *graph.Graph, x, w, labels graph.Value) {
			nn.LinearCrossEntropy(x, w, labels, false, nn.CrossEntropyOptions{Weights: x})
		},
		"rows f32": func(g *graph.Graph, x, w, _ graph.Value) {
			nn.LinearCrossEntropy(x, ops.ExpandDims(w, 0), g.Input("y", graph.Of(graph.I32, 3)),
				false)
		},
	} {
		g := graph.New()
		build(g, g.Input("x", graph.Of(graph.F32, 3, 4)), g.Input("w", graph.Of(graph.F32, 4, 9)),
			g.Input("labels", graph.Of(graph.I32, 3)))
		if err := g.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, have %v", want, err)
		}
	}
}
