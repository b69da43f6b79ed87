package nn_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/nn"
)

// tagger has a class for each position of a text, some of which do not count.
func tagger(batch int, loss func(logits, y graph.Value) graph.Value,
	o nn.MinimizeOptions) (m *nn.Model, x, y graph.Value) {
	m = nn.NewModel()
	x, y = m.Input("x", graph.F32, batch, 4, 3), m.Input("y", graph.I32, batch, 4)
	m.Minimize(loss(nn.Linear(m.Training().In("out"), x, 5), y), nn.SGD{}, o)
	return m, x, y
}

// countedLosses are means over the positions that count.
var countedLosses = map[string]func(logits, y graph.Value) graph.Value{
	"padding": func(logits, y graph.Value) graph.Value {
		return nn.CrossEntropy(logits, y, nn.CrossEntropyOptions{Padding: true})
	},
	"ignored": func(logits, y graph.Value) graph.Value {
		return nn.CrossEntropy(logits, y, nn.CrossEntropyOptions{Ignore: new(int)})
	},
	"weights of classes": func(logits, y graph.Value) graph.Value {
		w := ops.Full(y.Graph(), graph.Of(graph.F32, 5), 0.3)
		return nn.CrossEntropy(logits, y, nn.CrossEntropyOptions{Padding: true, Classes: w})
	},
	"with another term": func(logits, y graph.Value) graph.Value {
		counted := nn.CrossEntropyOptions{Padding: true}
		again := ops.Scale(ops.Sub(nn.CrossEntropy(logits, y, counted),
			nn.CrossEntropy(ops.Neg(logits), y, counted)), 0.5)
		return ops.Add(nn.CrossEntropy(logits, y, counted), again)
	},
	"composed": func(logits, y graph.Value) graph.Value {
		counts := ops.NotZero(y)
		return ops.Div(ops.Sum(ops.Mul(ops.CrossEntropy(logits, y, 0), counts)),
			ops.AddScalar(ops.Sum(counts), 1e-9))
	},
}

// TestUnequalCounts: an update of executions in which different numbers of positions count
// is that of one batch with all of them, also where in one of them none does.
func TestUnequalCounts(t *testing.T) {
	const batch, n, updates = 2, 4, 3
	for name, loss := range countedLosses {
		t.Run(name, func(t *testing.T) {
			o := nn.MinimizeOptions{Rate: nn.Constant(0.5)}
			large, bigX, bigY := tagger(batch*n, loss, o)
			o.Accumulate = n
			small, x, y := tagger(batch, loss, o)
			a, b := run(t, small, true), run(t, large, true)
			for u := range updates {
				noise(uint64(u), b.f32(bigX))
				labels := b.Value(bigY).I32()
				for i := range labels {
					labels[i] = 0
					if i < 1+u || i > len(labels)/2 { // executions 0 and 1 have few or none
						labels[i] = int32(1 + (i+u)%4)
					}
				}
				b.step()
				for i := range n {
					copy(a.f32(x), b.f32(bigX)[i*batch*12:])
					copy(a.Value(y).I32(), labels[i*batch*4:])
					a.step()
				}
			}
			for k, v := range small.Parameters() {
				want := b.f32(large.Parameters()[k])
				for i, have := range a.f32(v) {
					if math.Abs(float64(have-want[i])) > 1e-5 {
						t.Fatalf("%s, element %d: %v, of one batch %v", v, i, have, want[i])
					}
				}
			}
		})
	}
}

// TestEqualCounts: where all positions count, the bits are those of a loss that counts none.
func TestEqualCounts(t *testing.T) {
	const batch, n = 2, 49 // of which 49·(1/49) is not 1
	m, x, y := tagger(batch, countedLosses["padding"], nn.MinimizeOptions{Accumulate: n})
	e := run(t, m, true)
	for i := range n {
		noise(uint64(i), e.f32(x))
		for k := range e.Value(y).I32() {
			e.Value(y).I32()[k] = int32(1 + k%4)
		}
		e.step()
	}
	h := sha256.New()
	for _, v := range m.Parameters() {
		if err := binary.Write(h, binary.LittleEndian, e.f32(v)); err != nil {
			t.Fatal(err)
		}
	}
	const want = "66db7371fe03a56b" // without any weights
	if have := fmt.Sprintf("%x", h.Sum(nil))[:16]; have != want {
		t.Errorf("the weights are %s, want %s", have, want)
	}
}

// TestTwoCounts: a loss of means over different positions cannot be weighed by itself.
func TestTwoCounts(t *testing.T) {
	loss := func(logits, y graph.Value) graph.Value {
		half := ops.Slice(y, 0, 0, 1)
		return ops.Add(countedLosses["padding"](logits, y),
			countedLosses["padding"](ops.Slice(logits, 0, 0, 1), half))
	}
	m, _, _ := tagger(2, loss, nn.MinimizeOptions{})
	if m.Err() != nil {
		t.Error(m.Err())
	}
	m, _, _ = tagger(2, loss, nn.MinimizeOptions{Accumulate: 2})
	if err := m.Err(); err == nil || !strings.Contains(err.Error(), "MinimizeOptions.Counts") {
		t.Errorf("error is %v", err)
	}
	m = nn.NewModel()
	x, y := m.Input("x", graph.F32, 2, 4, 3), m.Input("y", graph.I32, 2, 4)
	m.Minimize(loss(nn.Linear(m.Training().In("out"), x, 5), y), nn.SGD{},
		nn.MinimizeOptions{Accumulate: 2, Counts: ops.NotZero(y)})
	if m.Err() != nil {
		t.Error(m.Err())
	}
}

// TestAccumulatedAverages: running averages fold in, once an update, the mean of what the
// executions have, as several workers do.
func TestAccumulatedAverages(t *testing.T) {
	const n, updates = 3, 2
	m := nn.NewModel()
	x := m.Input("x", graph.F32, 4, 2)
	h := nn.BatchNorm(m.Training().In("norm"), x, nn.BatchNormOptions{Momentum: 0.75})
	m.Minimize(nn.MSE(h, x), nn.SGD{}, nn.MinimizeOptions{Accumulate: n})
	e := run(t, m, true)
	var average graph.Value
	for _, v := range m.Graph.Variables() {
		if v.Name == "norm/mean" {
			average = v.Value(0)
		}
	}
	want := make([]float64, 2)
	for u := range updates {
		sum := make([]float64, 2)
		for i := range n {
			before := slices.Clone(e.f32(average))
			for k, v := range noise(uint64(10*u+i), e.f32(x)) {
				sum[k%2] += float64(v) / 4
			}
			e.step()
			if i < n-1 && !slices.Equal(before, e.f32(average)) {
				t.Fatalf("the average changes in execution %d of %d", i+1, n)
			}
		}
		for k := range want {
			want[k] = 0.75*want[k] + 0.25*sum[k]/n
			if have := e.f32(average)[k]; math.Abs(float64(have)-want[k]) > 1e-6 {
				t.Errorf("after update %d the average is %v, want %v", u+1, have, want[k])
			}
		}
	}
}
