package nn_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/nn"
)

// chosen chooses factors by a bound of their bytes, and notes what it was asked.
type chosen struct {
	most  int64
	asked *[][2]int64
}

func (c chosen) Factors(gradient, factors int64) bool {
	*c.asked = append(*c.asked, [2]int64{gradient, factors})
	return factors <= c.most
}

// twins is a loss with two layers side by side on one input, and one after them.
func twins(m *nn.Model) graph.Value {
	x, y := m.Input("x", graph.F32, 4, 3), m.Input("y", graph.F32, 4, 2)
	c := m.Training()
	h := nn.Relu(nn.Linear(c.In("a"), x, 5))
	left, right := nn.Linear(c.In("b"), h, 6), nn.Linear(c.In("c"), h, 6)
	return nn.MSE(nn.Linear(c.In("d"), ops.Mul(left, right), 2), y)
}

// TestFactoring: gradients of dense layers are exchanged as factors where that is chosen, a
// factor that two of them have once, which is nothing for the second; all else as it is.
func TestFactoring(t *testing.T) {
	build := func(most int64, o nn.MinimizeOptions) (*nn.Model, [][2]int64) {
		var asked [][2]int64
		m := nn.NewModel()
		m.Workers, m.Factoring = 3, chosen{most, &asked}
		m.Minimize(twins(m), nn.Adam{}, o)
		if err := m.Graph.Verify(); err != nil {
			t.Fatal(err)
		}
		return m, asked
	}
	for _, c := range []struct {
		most int64
		o    nn.MinimizeOptions
		want []string
	}{
		{1e6, nn.MinimizeOptions{Clip: 1, Decay: 0.1}, []string{"d/bias", "d/weight/factor0",
			"d/weight/factor1", "c/bias", "c/weight/factor0", "c/weight/factor1", "b/bias",
			"b/weight/factor0", "a/bias", "a/weight/factor0", "a/weight/factor1"}},
		{4 * 4 * 6, nn.MinimizeOptions{}, []string{"d/bias", "d/weight", "c/bias", "c/weight",
			"b/bias", "b/weight", "a/bias", "a/weight"}},
		{4 * 4 * 8, nn.MinimizeOptions{}, []string{"d/bias", "d/weight/factor0",
			"d/weight/factor1", "c/bias", "c/weight", "b/bias", "b/weight", "a/bias",
			"a/weight/factor0", "a/weight/factor1"}},
		{1e6, nn.MinimizeOptions{Accumulate: 2}, []string{"d/bias", "d/weight", "c/bias",
			"c/weight", "b/bias", "b/weight", "a/bias", "a/weight"}},
	} {
		m, _ := build(c.most, c.o)
		if names := sent(m); !slices.Equal(names, c.want) {
			t.Errorf("up to %d bytes, %+v: workers exchange %v, want %v", c.most, c.o, names,
				c.want)
		}
		for _, n := range m.Graph.Nodes() {
			x, ok := n.Sends()
			if ok && strings.Contains(x.Name, "/factor") != (x.Parts == 3) {
				t.Errorf("%s is one of %d parts", x.Name, x.Parts)
			}
		}
	}
	_, asked := build(1e6, nn.MinimizeOptions{})
	if want := [][2]int64{{4 * 12, 4 * 4 * 8}, {4 * 30, 4 * 4 * 11}, {4 * 30, 4 * 4 * 6},
		{4 * 15, 4 * 4 * 8}}; !slices.Equal(asked, want) {
		t.Errorf("bytes of gradients and factors are %v, want %v", asked, want)
	}
}
