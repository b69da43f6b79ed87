package nn_test

import (
	"math"
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/nn"
)

// sequenced is a loss of an LSTM over a sequence, whose state goes through one more layer twice.
func sequenced(m *nn.Model) graph.Value {
	x, y := m.Input("x", graph.F32, 5, 2, 40), m.Input("y", graph.F32, 5, 2, 40)
	c := m.Training()
	h := nn.LSTM(c.In("lstm"), x, 40, nn.RecurrentOptions{PerGate: true})
	again := func(v graph.Value) graph.Value {
		at := c.Share("twice")
		defer at.Enter()()
		return ops.MatMul(v, at.Param("weight", nn.Glorot, 40, 40))
	}
	counts := ops.Cast(ops.GreaterEqual(y, ops.Zeros(m.Graph, y.Type())), graph.F32)
	return nn.MeanOver(ops.Square(ops.Sub(again(nn.Relu(again(h))), y)), counts)
}

// givenModel is a model of sequenced that is given factors of up to so many bytes.
func givenModel(most int64, o nn.MinimizeOptions, by nn.Optimizer) (*nn.Model, [][2]int64) {
	var asked [][2]int64
	m := nn.NewModel()
	if most > 0 {
		m.Given = chosen{most, &asked}
	}
	m.Minimize(sequenced(m), by, o)
	return m, asked
}

// TestGiven: a weight all of whose uses are products is given by factors, of all steps of a
// sequence and of all uses, where that is chosen, and is not updated then; others are.
func TestGiven(t *testing.T) {
	clipped, rare := nn.MinimizeOptions{Clip: 1}, nn.MinimizeOptions{Times: 2}
	exempt := nn.MinimizeOptions{Decay: 1, Exempt: func(v graph.Value) bool {
		return v.Node.Name == "twice/weight"
	}}
	for name, c := range map[string]struct {
		most int64
		o    nn.MinimizeOptions
		by   nn.Optimizer
		want int
	}{
		"all": {1 << 20, nn.MinimizeOptions{}, nn.SGD{}, 9},
		// 2 of 5 samples a step, of V 5 steps, of U 4, and of the layer 5 twice
		"some":                 {4 * 10 * 80, nn.MinimizeOptions{}, nn.SGD{}, 8},
		"fewer":                {4 * 8 * 80, nn.MinimizeOptions{}, nn.SGD{}, 4},
		"none":                 {4, nn.MinimizeOptions{}, nn.SGD{}, 0},
		"nobody asks":          {0, nn.MinimizeOptions{}, nn.SGD{}, 0},
		"clipped":              {1 << 20, clipped, nn.SGD{}, 0},
		"another optimizer":    {1 << 20, nn.MinimizeOptions{}, nn.Momentum{}, 0},
		"two updates a step":   {1 << 20, rare, nn.SGD{}, 0},
		"decay of all but one": {1 << 20, exempt, nn.SGD{}, 1},
		"accumulated":          {4 * 3 * 8 * 80, nn.MinimizeOptions{Accumulate: 3}, nn.SGD{}, 4},
	} {
		m, asked := givenModel(c.most, c.o, c.by)
		if err := m.Err(); err != nil {
			t.Fatal(err)
		}
		o := m.Objectives[0]
		var by []nn.Way
		for _, w := range o.Ways {
			if w.ByFactors {
				by = append(by, w)
			}
		}
		all := c.most == 0 || len(o.Ways) == len(m.Parameters())
		if len(o.Factors) != c.want || len(by) != c.want || !all {
			t.Errorf("%s: factors of %d and %d parameters of %d, want %d; asked %v", name,
				len(o.Factors), len(by), len(o.Ways), c.want, asked)
		}
		for i, f := range o.Factors {
			w := f.Parameter.Type()
			if f.Left.Type().Size(1) != w.Size(0) || f.Right.Type().Size(1) != w.Size(1) ||
				f.Left.Type().Size(0) != f.Right.Type().Size(0) || by[i].Dense != 6400 {
				t.Errorf("%s: %s has %s and %s", name, w, f.Left.Type(), f.Right.Type())
			}
			if slices.ContainsFunc(o.Updates, func(n *graph.Node) bool {
				return n.In[0] == f.Parameter
			}) {
				t.Errorf("%s: %s is given and updated", name, f.Parameter)
			}
		}
	}
}

// TestGivenIsTheStep: the scale times the product of the factors, over the executions of an
// update, is what plain gradient descent adds to the weight.
func TestGivenIsTheStep(t *testing.T) {
	for _, executions := range []int{1, 3} {
		o := nn.MinimizeOptions{Accumulate: executions, Rate: nn.Constant(0.5)}
		m, _ := givenModel(1<<20, o, nn.SGD{})
		plain, _ := givenModel(0, o, nn.SGD{})
		sums, scale := map[string][]float64{}, map[string]float64{}
		var values []graph.Value
		for _, f := range m.Objectives[0].Factors {
			values = append(values, f.Left, f.Right, f.Scale)
			sums[f.Parameter.Node.Name] = make([]float64, f.Parameter.Type().Elems())
		}
		x, y := run(t, m, true, values...), run(t, plain, true, plain.Objectives[0].Loss)
		for i, v := range m.Parameters() {
			noise(uint64(i), x.f32(v))
			noise(uint64(i), y.f32(plain.Parameters()[i]))
		}
		before := map[string][]float32{}
		for _, v := range plain.Parameters() {
			before[v.Node.Name] = slices.Clone(y.f32(v))
		}
		for turn := range executions {
			for _, e := range []*machine{x, y} {
				for i, v := range e.model.Data {
					noise(uint64(10*turn+i), e.f32(v))
				}
				e.step()
			}
			for _, f := range m.Objectives[0].Factors {
				name, w := f.Parameter.Node.Name, f.Parameter.Type()
				left, right := x.f32(f.Left), x.f32(f.Right)
				for r := range f.Left.Type().Size(0) {
					for j := range w.Size(0) {
						for k := range w.Size(1) {
							sums[name][j*w.Size(1)+k] += float64(left[r*w.Size(0)+j]) *
								float64(right[r*w.Size(1)+k])
						}
					}
				}
				scale[name] = float64(x.f32(f.Scale)[0])
			}
		}
		for _, v := range plain.Parameters() {
			name := v.Node.Name
			for i, sum := range sums[name] {
				change := float64(y.f32(v)[i] - before[name][i])
				if d := math.Abs(scale[name]*sum - change); !(d <= 1e-6) {
					t.Fatalf("%d executions: element %d of %s changes by %v, by factors by %v",
						executions, i, name, change, scale[name]*sum)
				}
			}
		}
		if len(sums) != 9 {
			t.Errorf("factors of %d parameters", len(sums))
		}
	}
}

// TestGivenWithin: workers that exchange within a step are given nothing.
func TestGivenWithin(t *testing.T) {
	var asked [][2]int64
	m := nn.NewModel()
	m.Workers, m.Given = 2, chosen{1, &asked}
	m.Minimize(sequenced(m), nn.SGD{})
	if m.Err() == nil {
		t.Error("it is built")
	}
}
