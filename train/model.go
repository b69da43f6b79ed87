package train

import (
	"errors"
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
)

// validateModel demands what a run takes for granted of a model.
func (o Options) validateModel() error {
	if err := validModel(o.Model); err != nil {
		return &ErrOption{Option: "model", Err: err}
	}
	return nil
}

func validModel(m *nn.Model) error {
	switch {
	case m == nil || m.Graph == nil:
		return errors.New("a run needs one")
	}
	if err := m.Err(); err != nil {
		return err
	}
	switch {
	case len(m.Objectives) == 0 && !m.EvalLoss.Valid():
		return errors.New("it has no objective and no evaluation: add them with " +
			"Model.Minimize(loss, optimizer) and Model.Evaluate(loss)")
	case len(m.Objectives) == 0:
		return errors.New("it has no objective, so nothing would be trained: add one with " +
			"Model.Minimize(loss, optimizer)")
	case !m.EvalLoss.Valid():
		return errors.New("it has no evaluation: add one with Model.Evaluate(loss), of the " +
			"network in the pass Model.Evaluation()")
	case m.Schedule == nil:
		return errors.New("it has no schedule of the learning rate: give Model.Minimize a Rate, " +
			"or set Model.Schedule")
	}
	if err := validInputs(m); err != nil {
		return err
	}
	names := map[string]bool{evaluation: true}
	for _, o := range m.Objectives {
		if err := validObjective(m.Graph, o, names); err != nil {
			return fmt.Errorf("objective %q: %w", o.Name, err)
		}
	}
	if err := numbers(m.Graph, m.EvalLoss, m.EvalMetrics); err != nil {
		return fmt.Errorf("evaluation: %w", err)
	}
	for _, v := range m.EvalOutputs {
		if !within(m.Graph, v) {
			return fmt.Errorf("output %s of the evaluation is no value of its graph", v)
		}
	}
	return nil
}

// validInputs demands the inputs that a run feeds.
func validInputs(m *nn.Model) error {
	for _, in := range []struct {
		name  string
		value graph.Value
		want  graph.Type
	}{
		{"seed", m.Seed, tensor.Of(graph.I32, 2)},
		{"learning rate", m.LearningRate, tensor.Of(graph.F32)},
		{"step", m.Step, tensor.Of(graph.F32)},
	} {
		if t := typeIn(m.Graph, in.value); !t.Equal(in.want) {
			return fmt.Errorf("its %s is %s %s, want an input %s", in.name, in.value, t, in.want)
		}
	}
	for i, v := range m.Data {
		if !within(m.Graph, v) {
			return fmt.Errorf("input %d of its data is no value of its graph", i)
		}
	}
	return nil
}

// validObjective demands that an objective trains something, under a name that
// is not taken.
func validObjective(g *graph.Graph, o nn.Objective, names map[string]bool) error {
	switch {
	case o.Name == "" || names[o.Name]:
		return errors.New("the name is empty or taken")
	case o.Times < 1 || o.Times > maxSteps:
		return fmt.Errorf("it is executed %d times a step, want 1 to %d", o.Times, maxSteps)
	case len(o.Updates)+len(o.Factors) == 0:
		return errors.New("it updates nothing")
	}
	names[o.Name] = true
	for i, n := range o.Updates {
		if n == nil || n.Kind != graph.KindUpdate || n.Graph() != g {
			return fmt.Errorf("update %d is no update of the graph", i)
		}
	}
	return numbers(g, o.Loss, o.Metrics)
}

// numbers demands that a loss and metrics are numbers.
func numbers(g *graph.Graph, loss graph.Value, metrics []nn.Metric) error {
	for _, v := range fetches(loss, metrics) {
		if t := typeIn(g, v); !t.Equal(tensor.Of(graph.F32)) {
			return fmt.Errorf("%s of the model is %s, want f32[]", v, t)
		}
	}
	return nil
}

// within reports whether v is a result of a node of g.
func within(g *graph.Graph, v graph.Value) bool {
	return v.Valid() && v.Graph() == g && v.Index >= 0 && v.Index < len(v.Node.Out)
}

// typeIn is the type of a value of g, the zero type for any other.
func typeIn(g *graph.Graph, v graph.Value) graph.Type {
	if !within(g, v) {
		return graph.Type{}
	}
	return v.Type()
}
