package nn_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/reference"
	"github.com/gomem/gomem/nn"
)

// layer is a recurrent layer in float64, of weights that are given.
type layer struct {
	steps, batch, in, units, gates int
	x, w, r, wb, rb, peep, h0, c0  []float64
	lengths                        []int32
	reverse, before, coupled       bool
	clip                           float64
}

func sigmoid(v float64) float64 { return 1 / (1 + math.Exp(-v)) }

// gate is what goes into gate k of unit i at step t of sequence b: from x, and from the state.
func (l *layer) gate(t, b, k, i int, h []float64) (fromX, fromH float64) {
	row := k*l.units + i
	fromX, fromH = l.wb[row], l.rb[row]
	for j := range l.in {
		fromX += l.w[row*l.in+j] * l.x[(t*l.batch+b)*l.in+j]
	}
	for j := range l.units {
		fromH += l.r[row*l.units+j] * h[j]
	}
	return fromX, fromH
}

func (l *layer) clipped(v float64) float64 {
	if l.clip > 0 {
		return min(l.clip, max(-l.clip, v))
	}
	return v
}

// step is the next state and cells of a sequence.
func (l *layer) step(t, b int, h, c []float64) (next, cells []float64) {
	next, cells = make([]float64, l.units), make([]float64, l.units)
	at := func(k, i int) float64 {
		fromX, fromH := l.gate(t, b, k, i, h)
		return fromX + fromH
	}
	reset := make([]float64, l.units)
	for i := range reset {
		if l.gates == 3 {
			reset[i] = sigmoid(l.clipped(at(1, i))) * h[i]
		}
	}
	for i := range l.units {
		switch l.gates {
		case 1:
			next[i] = math.Tanh(l.clipped(at(0, i)))
		case 3:
			z, fromX, fromH := sigmoid(l.clipped(at(0, i))), 0.0, 0.0
			if fromX, fromH = l.gate(t, b, 2, i, reset); !l.before {
				_, fromH = l.gate(t, b, 2, i, h)
				fromH *= sigmoid(l.clipped(at(1, i)))
			}
			n := math.Tanh(l.clipped(fromX + fromH))
			next[i] = (1-z)*n + z*h[i]
		default:
			p := func(k int) float64 { return l.peep[k*l.units+i] }
			in := sigmoid(l.clipped(at(0, i) + p(0)*c[i]))
			forget := 1 - in
			if !l.coupled {
				forget = sigmoid(l.clipped(at(2, i) + p(2)*c[i]))
			}
			cells[i] = forget*c[i] + in*math.Tanh(l.clipped(at(3, i)))
			next[i] = sigmoid(l.clipped(at(1, i)+p(1)*cells[i])) * math.Tanh(cells[i])
		}
	}
	return next, cells
}

// run is every sequence by itself: y, the last states and the last cells.
func (l *layer) run() (y, last, cells []float64) {
	y = make([]float64, l.steps*l.batch*l.units)
	for b := range l.batch {
		n := l.units
		h, c := l.h0[b*n:(b+1)*n], l.c0[b*n:(b+1)*n]
		for k := range int(l.lengths[b]) {
			t := k
			if l.reverse {
				t = int(l.lengths[b]) - 1 - k
			}
			h, c = l.step(t, b, h, c)
			copy(y[(t*l.batch+b)*n:], h)
		}
		last, cells = append(last, h...), append(cells, c...)
	}
	return y, last, cells
}

// TestRunRecurrent: layers of given weights compute what loops do, sequence by sequence, in all
// their forms.
func TestRunRecurrent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(what string) int { return rapid.IntRange(1, 4).Draw(t, what) }
		yes := func(what string) bool { return rapid.Bool().Draw(t, what) }
		l := &layer{steps: n("steps"), batch: n("batch"), in: n("in"), units: n("units"),
			gates:   rapid.SampledFrom([]int{1, 3, 4}).Draw(t, "gates"),
			reverse: yes("reverse"), before: yes("before"), coupled: yes("coupled")}
		g, rng := graph.New(), rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		value := func(given bool, to *[]float64, sizes ...int) (v graph.Value) {
			view := tensor.New(tensor.Of(graph.F32, sizes...))
			*to = make([]float64, view.Type.Elems())
			if !given {
				return v
			}
			for i := range view.F32() {
				view.F32()[i] = float32(rng.NormFloat64())
				(*to)[i] = float64(view.F32()[i])
			}
			return g.Constant("v", view)
		}
		rows := l.gates * l.units
		x := value(true, &l.x, l.steps, l.batch, l.in)
		w := nn.Weights{Input: value(true, &l.w, rows, l.in),
			State:     value(true, &l.r, rows, l.units),
			InputBias: value(yes("bias"), &l.wb, rows),
			StateBias: value(yes("state bias"), &l.rb, rows),
			Peephole:  value(yes("peephole"), &l.peep, 3*l.units)}
		o := nn.RunOptions{Reverse: l.reverse, ResetBefore: l.before, Coupled: l.coupled,
			State: value(yes("state"), &l.h0, l.batch, l.units),
			Cells: value(yes("cells"), &l.c0, l.batch, l.units)}
		if yes("clip") {
			o.Clip, l.clip = 0.5, 0.5
		}
		lengths := tensor.New(tensor.Of(graph.I32, l.batch))
		for i := range lengths.I32() {
			lengths.I32()[i] = int32(l.steps)
		}
		if yes("lengths") {
			for i := range lengths.I32() {
				lengths.I32()[i] = int32(rapid.IntRange(0, l.steps).Draw(t, "length"))
			}
			o.Lengths = g.Constant("lengths", lengths)
		}
		l.lengths = lengths.I32()
		var got [3]graph.Value
		switch l.gates {
		case 1:
			got[0], got[1] = nn.RunRNN(x, w, o)
		case 3:
			got[0], got[1] = nn.RunGRU(x, w, o)
		default:
			got[0], got[1], got[2] = nn.RunLSTM(x, w, o)
		}
		if g.Err() != nil {
			t.Fatal(g.Err())
		}
		var targets []graph.NodeID
		for _, v := range got {
			if v.Valid() {
				targets = append(targets, v.Node.ID)
			}
		}
		m, err := reference.New(g, g.Ancestors(targets), nil)
		if err == nil {
			err = m.Step()
		}
		if err != nil {
			t.Fatal(err)
		}
		y, last, cells := l.run()
		for i, want := range [][]float64{y, last, cells} {
			if !got[i].Valid() {
				continue
			}
			for k, v := range m.Value(got[i]).F32() {
				if !(math.Abs(float64(v)-want[k]) < 2e-5) {
					t.Fatalf("result %d: element %d is %g, want %g", i, k, v, want[k])
				}
			}
		}
	})
}

// TestRunFunctions: activations are those that are given.
func TestRunFunctions(t *testing.T) {
	g := graph.New()
	one := func(sizes ...int) graph.Value { return ops.Ones(g, tensor.Of(graph.F32, sizes...)) }
	y, _ := nn.RunRNN(one(3, 1, 1), nn.Weights{Input: one(1, 1), State: one(1, 1)},
		nn.RunOptions{Candidate: ops.Relu})
	m, err := reference.New(g, g.Ancestors([]graph.NodeID{y.Node.ID}), nil)
	if err == nil {
		err = m.Step()
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range m.Value(y).F32() {
		if v != float32(i+1) {
			t.Errorf("step %d is %g, want %d", i, v, i+1)
		}
	}
}

// TestRunRejects: operands that do not fit are an error of the graph.
func TestRunRejects(t *testing.T) {
	type change func(w *nn.Weights, o *nn.RunOptions, bad graph.Value)
	for want, change := range map[string]change{
		"RunGRU of bad, which is f32[batch:7]: want 2": func(w *nn.Weights, _ *nn.RunOptions,
			v graph.Value) {
			w.State = v
		},
		"a bias of the input f32[batch:7]": func(w *nn.Weights, _ *nn.RunOptions, v graph.Value) {
			w.InputBias = v
		},
		"a peephole f32[batch:7]": func(w *nn.Weights, _ *nn.RunOptions, v graph.Value) {
			w.Peephole = v
		},
		"lengths f32[batch:7], want i32[3]": func(_ *nn.Weights, o *nn.RunOptions, v graph.Value) {
			o.Lengths = v
		},
		"RunGRU clips at -1": func(_ *nn.Weights, o *nn.RunOptions, _ graph.Value) {
			o.Clip = -1
		},
		"cells f32[batch:7], want f32[3 5]": func(_ *nn.Weights, o *nn.RunOptions, v graph.Value) {
			o.Cells = v
		},
		"a state f32[batch:7], want": func(_ *nn.Weights, o *nn.RunOptions, v graph.Value) {
			o.State = v
		},
	} {
		m := nn.NewModel()
		w := nn.Weights{Input: m.Input("w", graph.F32, 15, 4),
			State: m.Input("r", graph.F32, 15, 5)}
		o := nn.RunOptions{}
		change(&w, &o, m.Input("bad", graph.F32, 7))
		nn.RunGRU(m.Input("x", graph.F32, 2, 3, 4), w, o)
		refused(t, m, want, "recurrent_run_test.go:")
	}
}
