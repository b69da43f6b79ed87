package nn_test

import (
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/nn"
)

// TestNamesThatMatchNothing: a scope that is to be trained or frozen and that there is none
// of, and a part of an evaluation that nothing trains, are errors that say what there is.
func TestNamesThatMatchNothing(t *testing.T) {
	net := func(c *nn.Ctx, x graph.Value, last string) graph.Value {
		return nn.Linear(c.In(last), nn.Relu(nn.Linear(c.In("encoder").In("first"), x, 4)), 3)
	}
	for name, test := range map[string]struct {
		o    nn.MinimizeOptions
		eval string
		want []string
	}{
		"right":       {nn.MinimizeOptions{Frozen: []string{"encoder/"}}, "out", nil},
		"a parameter": {nn.MinimizeOptions{Of: []string{"out/bias", "encoder"}}, "out", nil},
		"frozen": {nn.MinimizeOptions{Frozen: []string{"out", "encodr"}}, "out",
			[]string{"Frozen", `"encodr"`, "encoder", "out"}},
		"of": {nn.MinimizeOptions{Of: []string{"encoder/frist"}}, "out",
			[]string{"Of", `"encoder/frist"`, "encoder/first"}},
		"a part of a name": {nn.MinimizeOptions{Frozen: []string{"encoder/fir"}}, "out",
			[]string{`"encoder/fir"`}},
		"evaluation": {nn.MinimizeOptions{}, "outt",
			[]string{"outt/weight", "no objective", "out/weight", "mistakes_test.go:"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := nn.NewModel()
			x, y := m.Input("x", graph.F32, 8, 5), m.Input("y", graph.I32, 8)
			m.Minimize(nn.CrossEntropy(net(m.Training(), x, "out"), y), nn.SGD{}, test.o)
			m.Evaluate(nn.CrossEntropy(net(m.Evaluation(), x, test.eval), y))
			mustSay(t, m.Err(), test.want)
		})
	}
}

// mustSay demands an error of one line that says so, or none.
func mustSay(t *testing.T, err error, want []string) {
	t.Helper()
	if (err == nil) != (want == nil) {
		t.Fatalf("error is %v, want %q", err, want)
	}
	for _, w := range want {
		if text := err.Error(); !strings.Contains(text, w) || strings.Contains(text, "\n") {
			t.Errorf("%q does not say %q", text, w)
		}
	}
}

// TestEvaluationOfFrozen: what the loss reads and nobody trains may be evaluated, and so may a
// model that nobody trains.
func TestEvaluationOfFrozen(t *testing.T) {
	m := nn.NewModel()
	x := m.Input("x", graph.F32, 8, 5)
	teacher := m.Pass(nn.Pass{Name: "teach"}) // no pass of training
	goal := nn.Linear(teacher.In("teacher"), x, 3)
	m.Minimize(nn.MSE(nn.Linear(m.Training().In("out"), x, 3), goal), nn.SGD{},
		nn.MinimizeOptions{Frozen: []string{"teacher"}})
	c := m.Evaluation()
	m.Evaluate(nn.MSE(nn.Linear(c.In("out"), x, 3), nn.Linear(c.In("teacher"), x, 3)))
	mustSay(t, m.Err(), nil)
	m = nn.NewModel()
	x, y := m.Input("x", graph.F32, 8, 5), m.Input("y", graph.F32, 8, 3)
	m.Evaluate(nn.MSE(nn.Linear(m.Evaluation().In("out"), x, 3), y))
	mustSay(t, m.Err(), nil)
}

// TestLossesDoNotBroadcast: a loss of values of different shapes is an error that says both,
// where it would be of more pairs than anybody means; one number may be for all.
func TestLossesDoNotBroadcast(t *testing.T) {
	losses := map[string]func(x, y graph.Value) graph.Value{"mean square": nn.MSE,
		"mean magnitude": nn.L1, "binary cross-entropy": nn.BinaryCrossEntropy,
		"Huber": func(x, y graph.Value) graph.Value { return nn.Huber(x, y, 1) },
		"mean":  nn.MeanOver,
		"cross-entropy": func(logits, weights graph.Value) graph.Value {
			labels := ops.Cast(logits, graph.I32)
			return nn.CrossEntropy(ops.Concat(-1, ops.ExpandDims(logits, -1),
				ops.ExpandDims(logits, -1)), labels, nn.CrossEntropyOptions{Weights: weights})
		},
		"accuracy": func(logits, weights graph.Value) graph.Value {
			labels := ops.Cast(logits, graph.I32)
			return nn.Accuracy(ops.Concat(-1, ops.ExpandDims(logits, -1),
				ops.ExpandDims(logits, -1)), labels, nn.CrossEntropyOptions{Weights: weights}).Value
		},
	}
	for name, loss := range losses {
		t.Run(name, func(t *testing.T) {
			for _, test := range []struct {
				x, y []int
				fits bool
			}{{[]int{4, 1}, []int{4}, false}, {[]int{4}, []int{4, 1}, false},
				{[]int{4}, []int{1}, false}, {[]int{2, 3}, []int{3}, false},
				{[]int{2, 3}, []int{2, 3}, true}, {[]int{4, 1}, []int{4, 1}, true}} {
				m := nn.NewModel()
				loss(m.Input("x", graph.F32, test.x...), m.Input("y", graph.F32, test.y...))
				if test.fits {
					mustSay(t, m.Err(), nil)
				} else {
					mustSay(t, m.Err(), []string{"f32[", "ops.Reshape", "mistakes_test.go:"})
				}
			}
		})
	}
	for name, loss := range losses {
		m := nn.NewModel()
		if name != "mean" && name != "cross-entropy" && name != "accuracy" {
			loss(m.Input("x", graph.F32, 4), m.Input("y", graph.F32))
		}
		mustSay(t, m.Err(), nil)
	}
}
