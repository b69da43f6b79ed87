package nn_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/nn"
)

// classifier is a model of two layers with its inputs.
func classifier(options ...nn.MinimizeOptions) (m *nn.Model, x, y graph.Value) {
	m = nn.NewModel()
	x, y = m.Input("x", graph.F32, 8, 5), m.Input("y", graph.I32, 8)
	net := func(c *nn.Ctx) graph.Value {
		h := nn.Dropout(c, nn.Relu(nn.Linear(c.In("hidden"), x, 16)), 0.1)
		return nn.Linear(c.In("out"), h, 3)
	}
	m.Minimize(nn.CrossEntropy(net(m.Training()), y), nn.Adam{}, options...)
	logits := net(m.Evaluation())
	m.Evaluate(nn.CrossEntropy(logits, y), nn.Accuracy(logits, y))
	m.Output(logits)
	return m, x, y
}

// TestModel: what a model has after a few lines, and that training it learns.
func TestModel(t *testing.T) {
	m, x, y := classifier(nn.MinimizeOptions{Rate: nn.Constant(0.02)})
	var names []string
	for _, v := range m.Parameters() {
		names = append(names, v.Node.Name+" "+v.Type().String())
	}
	want := []string{"hidden/weight f32[5 16]", "hidden/bias f32[16]", "out/weight f32[16 3]",
		"out/bias f32[3]"}
	if !slices.Equal(names, want) {
		t.Errorf("parameters are %q, want %q", names, want)
	}
	if len(m.Objectives) != 1 || m.Objectives[0].Name != "train" || m.Executions() != 1 ||
		len(m.Objectives[0].Updates) != 4 || len(m.EvalMetrics) != 1 || len(m.EvalOutputs) != 1 {
		t.Errorf("the model is %+v", m)
	}
	if v := m.Parameter("out/bias"); v != m.Parameters()[3] || m.Parameter("none").Valid() {
		t.Errorf("parameter out/bias is %s", v)
	}
	e := run(t, m, true, m.EvalLoss, m.EvalMetrics[0].Value)
	noise(1, e.f32(x))
	for i := range e.Value(y).I32() {
		e.Value(y).I32()[i] = int32(i % 3)
	}
	e.step()
	before := e.f32(m.EvalLoss)[0]
	for range 100 {
		e.step()
	}
	after, accuracy := e.f32(m.EvalLoss)[0], e.f32(m.EvalMetrics[0].Value)[0]
	if !(after < before/10) || accuracy != 1 {
		t.Errorf("the loss went from %v to %v, accuracy is %v", before, after, accuracy)
	}
}

// TestNamesAndSharing: which uses of a name are one parameter, which are another, and
// which are mistakes.
func TestNamesAndSharing(t *testing.T) {
	build := func(net func(c *nn.Ctx, x graph.Value)) (m *nn.Model) {
		m = nn.NewModel()
		net(m.Training(), m.Input("x", graph.F32, 2, 4))
		return m
	}
	count := func(want int) func(t *testing.T, m *nn.Model) {
		return func(t *testing.T, m *nn.Model) {
			if err := m.Err(); err != nil {
				t.Error(err)
			} else if have := len(m.Parameters()); have != want {
				t.Errorf("%d parameters, want %d", have, want)
			}
		}
	}
	fails := func(words ...string) func(t *testing.T, m *nn.Model) {
		return func(t *testing.T, m *nn.Model) {
			if m.Err() == nil {
				t.Fatal("no error")
			}
			text := m.Err().Error()
			for _, w := range append(words, "model_test.go:") {
				if !strings.Contains(text, w) || strings.Contains(text, "\n") {
					t.Errorf("%q does not say %q", text, w)
				}
			}
		}
	}
	for name, test := range map[string]struct {
		net  func(c *nn.Ctx, x graph.Value)
		want func(t *testing.T, m *nn.Model)
	}{
		"two places": {func(c *nn.Ctx, x graph.Value) {
			nn.Linear(c.In("b"), nn.Linear(c.In("a"), x, 4), 4)
		}, count(4)},
		"one place": {func(c *nn.Ctx, x graph.Value) {
			nn.Linear(c.In("a"), nn.Linear(c.In("a"), x, 4), 4)
		}, fails("parameter a/weight is used already, at nn/model_test.go:", "Share")},
		"of": {func(c *nn.Ctx, x graph.Value) {
			nn.Linear(c.In("a").Of("b"), nn.Linear(c.Of("a"), x, 4), 4)
		}, count(4)},
		"shared": {func(c *nn.Ctx, x graph.Value) {
			x = nn.Linear(c.In("a"), x, 4)
			nn.Linear(c.Share("a"), nn.Linear(c.In("again").Share("a"), x, 4), 4)
		}, count(2)},
		"shared first": {func(c *nn.Ctx, x graph.Value) {
			nn.Linear(c.In("left").Share("tower"), x, 4)
			nn.Linear(c.In("right").Share("tower"), x, 4)
		}, count(2)},
		"not shared after": {func(c *nn.Ctx, x graph.Value) {
			nn.Linear(c.Share("a"), x, 4)
			nn.Linear(c.In("a"), x, 4)
		}, fails("a/weight is used already")},
		"shared part": {func(c *nn.Ctx, x graph.Value) {
			block := func(c *nn.Ctx) { nn.Linear(c.In("q"), x, 4) }
			block(c.In("1").Share("block"))
			block(c.In("2").Share("block"))
		}, count(2)},
		"other size": {func(c *nn.Ctx, x graph.Value) {
			nn.Linear(c.In("a"), x, 4)
			nn.Linear(c.Model().Evaluation().In("a"), x, 3)
		}, fails("parameter a/weight is f32[4 4] since nn/model_test.go:",
			"and is to be f32[4 3] here (nn/model_test.go:")},
		"average and parameter": {func(c *nn.Ctx, x graph.Value) {
			c.Average("v", nil, 4)
			c.Share("v").Model().Evaluation().Param("v", nil, 4)
		}, fails("parameter v is the average f32[4] since", "to be f32[4]")},
		"other pass": {func(c *nn.Ctx, x graph.Value) {
			nn.Linear(c.In("a"), x, 4)
			nn.Linear(c.Model().Evaluation().In("a"), x, 4)
			nn.Linear(c.Model().Pass(nn.Pass{Name: "more"}).In("a"), x, 4)
		}, count(2)},
		"no name": {func(c *nn.Ctx, x graph.Value) { nn.Linear(c.In(""), x, 4) },
			fails(`the name "" is empty`)},
		"bad name": {func(c *nn.Ctx, x graph.Value) { nn.Linear(c.Share("a\nb"), x, 4) },
			fails("cannot be printed")},
	} {
		t.Run(name, func(t *testing.T) { test.want(t, build(test.net)) })
	}
}

// TestNoiseOfPlaces: noise has another name in another place, numbers where there is
// more of it in one, and the names of the first pass where a pass asks for them.
func TestNoiseOfPlaces(t *testing.T) {
	m := nn.NewModel()
	c := m.Training()
	same := m.Pass(nn.Pass{Name: "eval", SameNoise: true})
	for _, test := range [][2]string{
		{c.Noise("a"), "a"}, {c.Noise("a"), "a_2"}, {c.In("b").Noise("a"), "b/a"},
		{c.In("b").Of("c").Noise("a"), "b/c/a"}, {m.Evaluation().In("b").Noise("a"), "eval/b/a"},
		{same.In("b").Noise("a"), "b/a"}, {c.In("d").Share("b").Noise("a"), "d/a"},
	} {
		if test[0] != test[1] {
			t.Errorf("noise is called %s, want %s", test[0], test[1])
		}
	}
	x := m.Input("x", graph.F32, 4)
	nn.Dropout(c, nn.Dropout(c, x, 0.5), 0.5)
	if y := nn.Dropout(m.Evaluation(), x, 0.5); m.Err() != nil || y != x {
		t.Errorf("dropout of an evaluation gives %s, error %v", y, m.Err())
	}
}

// TestScopes: nodes of a layer have the scope of its place, whatever is current, and
// one's own have it after Enter.
func TestScopes(t *testing.T) {
	m := nn.NewModel()
	x := m.Input("x", graph.F32, 2, 4)
	c := m.Evaluation().In("a")
	leave := c.Enter()
	own := ops.Relu(x)
	leave()
	for v, want := range map[graph.Value]string{
		own: "eval/a/relu", ops.Relu(x): "relu",
		nn.Linear(c.In("b"), x, 3):              "eval/a/b/add",
		nn.RMSNorm(c.Of("c"), x):                "eval/a/rms-norm",
		nn.Linear(c.In("d").Share("e/f"), x, 3): "eval/a/d/add",
	} {
		if v.Node.Name != want {
			t.Errorf("a node is called %s, want %s", v.Node.Name, want)
		}
	}
	for _, want := range []string{"a/b/weight", "a/c/scale", "e/f/weight"} {
		if !m.Parameter(want).Valid() {
			t.Errorf("there is no parameter %s", want)
		}
	}
}

// TestDeclare: declared parameters come before all else, in the order of their first
// use, with the model's lines.
func TestDeclare(t *testing.T) {
	m := nn.NewModel()
	x := m.Input("x", graph.F32, 2, 4)
	net := func(c *nn.Ctx, in ...graph.Value) graph.Value {
		y := nn.Linear(c.In("b"), in[0], 3)
		return nn.BatchNorm(c.In("a"), nn.Linear(c.Share("b"), nn.Linear(c.In("c"), y, 4), 3))
	}
	m.Declare(func(c *nn.Ctx, in ...graph.Value) { net(c, in...) }, x)
	if m.Graph.Nodes()[m.Graph.Len()-1].Kind != graph.KindVariable {
		t.Error("declaring makes nodes")
	}
	n := m.Graph.Len()
	y := net(m.Training(), x)
	if err := m.Err(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range m.Graph.Variables() {
		if int(v.ID) >= n || !strings.Contains(v.Pos, "model_test.go:") {
			t.Errorf("%s is node %d, of %s", v.Name, v.ID, v.Pos)
		}
		names = append(names, v.Name)
	}
	want := []string{"b/weight", "b/bias", "c/weight", "c/bias", "a/scale", "a/bias", "a/mean",
		"a/variance"}
	if !slices.Equal(names, want) || !y.Valid() {
		t.Errorf("variables are %q, want %q", names, want)
	}
}
