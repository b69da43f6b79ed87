package nn_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/nn"
)

// normed is a loss with a batch norm, and running averages.
func normed(m *nn.Model) graph.Value {
	x, y := m.Input("x", graph.F32, 4, 3), m.Input("y", graph.F32, 4, 2)
	c := m.Training()
	h := nn.BatchNorm(c.In("norm"), nn.Linear(c.In("a"), x, 5))
	return nn.MSE(nn.Linear(c.In("b"), nn.Relu(h), 2), y)
}

// sent are the names of the exchanges that the updates of a model need, in order.
func sent(m *nn.Model) (names []string) {
	var roots []graph.NodeID
	for _, o := range m.Objectives {
		for _, u := range o.Updates {
			roots = append(roots, u.ID)
		}
	}
	for id, live := range m.Graph.Ancestors(roots) {
		if x, ok := m.Graph.Node(graph.NodeID(id)).Sends(); ok && live {
			names = append(names, x.Name)
		}
	}
	return names
}

// TestExchange: several workers exchange what running averages fold in, and then the
// gradients, the last parameter's first, by the model's way; one does not.
func TestExchange(t *testing.T) {
	want := []string{"norm/mean", "norm/variance", "b/bias", "b/weight", "norm/bias", "norm/scale",
		"a/bias", "a/weight"}
	for _, workers := range []int{0, 1, 2, 4} {
		m := nn.NewModel()
		m.Workers, m.Exchange = workers, graph.How{Via: "ring"}
		m.Minimize(normed(m), nn.Adam{}, nn.MinimizeOptions{Clip: 1, Decay: 0.1, Accumulate: 2})
		if err := m.Graph.Verify(); err != nil {
			t.Fatal(err)
		}
		names := sent(m)
		if workers > 1 && !slices.Equal(names, want) || workers < 2 && names != nil {
			t.Errorf("%d workers exchange %v, want %v", workers, names, want)
		}
		for _, n := range m.Graph.Nodes() {
			x, ok := n.Sends()
			if ok && (x.How.Via != "ring" || x.Every != 2 && !strings.HasPrefix(x.Name, "norm/m") &&
				!strings.HasPrefix(x.Name, "norm/v")) {
				t.Errorf("%s is exchanged by %s, every %d", x.Name, x.How, x.Every)
			}
		}
	}
}

// TestOneWorkerIsNone: with one worker the graph is the one without any.
func TestOneWorkerIsNone(t *testing.T) {
	digest := func(workers int) string {
		m := nn.NewModel()
		m.Workers = workers
		m.Minimize(normed(m), nn.Adam{}, nn.MinimizeOptions{Clip: 1})
		return m.Graph.Digest()
	}
	if digest(0) != digest(1) || digest(1) == digest(2) {
		t.Error("one worker is another than none, or than two")
	}
}

// ownRate is an optimizer whose updates read what they should not.
type ownRate struct {
	nn.SGD
	rate graph.Value
}

func (o ownRate) Update(u nn.Update) []*graph.Node {
	u.Rate = o.rate
	return o.SGD.Update(u)
}

// TestWorkersMustAgree: an update that depends on a worker's own batch is refused, and so
// is what cannot be exchanged, or a number of workers that there is not.
func TestWorkersMustAgree(t *testing.T) {
	for want, build := range map[string]func(m *nn.Model){
		"depends on mul, which every worker has its own": func(m *nn.Model) {
			loss := normed(m)
			m.Minimize(loss, ownRate{rate: ops.Mul(loss, m.LearningRate)})
		},
		"depends on reshape_2, which every worker has its own": func(m *nn.Model) {
			block := ops.ReduceScatter(ops.ReshapeSizes(m.LearningRate, 1), "rate", "", 1)
			m.Minimize(normed(m), ownRate{rate: ops.ReshapeSizes(block)})
		},
		"b/bias depends on mul, which every worker has its own": func(m *nn.Model) {
			loss := normed(m)
			own := ops.AllReduce(ops.AllReduce(m.LearningRate, "rate", "", 2), "rates", "a", 2)
			m.Minimize(loss, ownRate{rate: ops.Mul(own, ops.AllReduce(loss, "loss", "a", 2))})
		},
		"-2 workers": func(m *nn.Model) {
			m.Workers = -2
			m.Minimize(normed(m), nn.SGD{})
		},
		"is no way": func(m *nn.Model) {
			m.Exchange.Via = "by hand"
			m.Minimize(normed(m), nn.SGD{})
		},
	} {
		m := nn.NewModel()
		m.Workers = 2
		build(m)
		if err := m.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
	m := nn.NewModel()
	m.Workers = 2
	own := normed(m)
	common := ops.Mul(ops.AllReduce(own, "loss", "", 2), m.Step)
	m.Minimize(own, ownRate{rate: ops.Mul(common, m.LearningRate)})
	if m.Err() != nil {
		t.Error(m.Err())
	}
}
