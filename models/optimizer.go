package models

import (
	"path"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// optimizer makes the updates of a parameter, with its state. The gradient is
// done with then, and there are no others to wait for: nothing clips by the norm
// of all gradients.
type optimizer interface {
	update(m *Model, w, grad graph.Value) []*graph.Node
}

// state is optimizer state of a parameter, in whose scope it is made.
func (m *Model) state(w graph.Value, name string, t graph.Type) graph.Value {
	return m.Graph.State(path.Base(w.Node.Name)+"/"+name, t, graph.Init{})
}

// adafactor is [ops.Adafactor] without first moment.
type adafactor struct {
	FactorMin int
	Fine      bool
}

func (o adafactor) update(m *Model, w, grad graph.Value) []*graph.Node {
	var state []graph.Value
	types := ops.AdafactorState(w.Type(), o.FactorMin)
	for i, t := range types {
		name := "second"
		if len(types) == 2 {
			name = [...]string{"second-rows", "second-columns"}[i]
		}
		state = append(state, m.state(w, name, t))
	}
	if o.Fine {
		return fineAdafactor(m, w, grad, state)
	}
	return []*graph.Node{ops.Adafactor(w, state, grad, m.LearningRate, m.Step,
		ops.AdafactorConfig{MinDim: o.FactorMin})}
}

// adam is [ops.Adam].
type adam struct {
	Beta1, Beta2, Eps float32
	Fine              bool
}

func (o adam) update(m *Model, w, grad graph.Value) []*graph.Node {
	first, second := m.state(w, "first", w.Type()), m.state(w, "second", w.Type())
	if o.Fine {
		return fineAdam(m, o, w, grad, first, second)
	}
	return []*graph.Node{ops.Adam(w, first, second, grad, m.LearningRate, m.Step, o.Beta1, o.Beta2,
		o.Eps)}
}

// momentum is [ops.Momentum].
type momentum struct {
	Mu   float32
	Fine bool
}

func (o momentum) update(m *Model, w, grad graph.Value) []*graph.Node {
	velocity := m.state(w, "momentum", w.Type())
	if o.Fine {
		return fineMomentum(m, o, w, grad, velocity)
	}
	return []*graph.Node{ops.Momentum(w, velocity, grad, m.LearningRate, o.Mu)}
}
