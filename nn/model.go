package nn

import (
	"cmp"
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// Model is a graph with its entry points: what a training step computes, and
// what an evaluation does, of the same inputs and variables. Mistakes in building
// it are recorded in the graph: see [Model.Err].
type Model struct {
	Graph *graph.Graph

	// The inputs. Data is what a batch of the model's data brings, in this order; an
	// execution may read some of it only.
	Data         []graph.Value
	Seed         graph.Value // i32[2]: the run's seed and the number of the execution
	LearningRate graph.Value // f32[]: see Schedule
	Step         graph.Value // f32[]: how often the objective has been executed, from 1

	Objectives  []Objective   // what a training step executes, in order
	EvalLoss    graph.Value   // f32[]: the mean over units
	EvalMetrics []Metric      // of the evaluation, means over units
	EvalOutputs []graph.Value // of the evaluation: what other metrics are computed of

	Schedule Schedule // of the learning rate

	// Values gives variables other values to begin a run with than those that are drawn, each by
	// set: weights of a file, say. It may be nil.
	Values func(variables []graph.Value, set func(v graph.Value, t tensor.View) error) error

	// Unnamed leaves the axes that layers make without names. Names change neither
	// results nor plans; layouts refer to them.
	Unnamed bool
	// Fine composes norms, dropout and optimizers of arithmetic, as TensorFlow 1 does:
	// the same functions up to rounding, of more and smaller operations. It is for
	// studies of planning.
	Fine bool

	// Adapters are those of linear layers; nil: none. With them nothing else is trained.
	Adapters *Adapters

	// Packing says which matrices are held in few bits, and are not trained; nil: none.
	Packing Packing

	// Halves says which parameters are variables of bfloat16, without a copy of f32: layers
	// compute with them in f32, and they are trained by [Adam] or [AdamW] with small moments,
	// which round them by random numbers; nil: none. What says so may not depend on the pass.
	Halves func(parameter string, t graph.Type) bool

	// Workers is how many processes train the model together, each with batches of its own;
	// 0, like 1, is one. With more, objectives exchange their gradients before these are
	// clipped and used, and what running averages fold in, so that the variables of all
	// workers stay the same to the bit. Only the learning rate and the step, of the
	// inputs, are the same on all.
	Workers int
	// Exchange is how they do: the zero value is the mean, by the network's own way.
	Exchange graph.How
	// Factoring says which gradients they exchange by factors; nil: none.
	Factoring Factoring
	// Given says which parameters are not updated within a step: instead, who keeps workers in
	// step between steps is given factors of their gradients, where an objective is minimised
	// by [SGD], with one update a step and without clipping and decay; nil: none.
	Given Factoring

	parameters []graph.Value // in order of creation
	variables  map[string]graph.Value
	tables     map[graph.NodeID]bool // those of the parameters that are
	layers     map[string]bool       // linear ones, by their scopes
	packed     map[*graph.Node]bool  // variables in few bits
	averages   []*graph.Node         // updates of running averages that belong to no objective yet
	states     map[string]states     // of optimizers, by objective
}

// Objective is a loss with the updates that lower it. Most models have one;
// adversarial ones alternate.
type Objective struct {
	Name  string // "train" if there is one
	Times int    // executions a training step, each with a batch of its own
	// Accumulate is the number of executions that make one update; 0, like 1, means that
	// every one does.
	Accumulate int
	// Weighs says that a batch weighs by its positions that count, beside others of an update;
	// so one of which none count changes nothing.
	Weighs  bool
	Loss    graph.Value   // f32[]: what is minimised, auxiliary losses included
	Metrics []Metric      // computed beside it
	Updates []*graph.Node // of its parameters, the last parameter first, and of running averages
	Factors []Factored    // of the parameters that are not updated: see [Model.Given]
	// Ways are how workers exchange parameters, or their gradients, where some may be by factors.
	Ways []Way
}

// Metric is a named number, f32[], that is computed beside a loss.
type Metric struct {
	Name  string
	Value graph.Value
}

// NewModel is a model with the inputs that every step has, "seed", "rate" and
// "step", and nothing else.
func NewModel() *Model {
	g := graph.New()
	return &Model{
		Graph:        g,
		variables:    map[string]graph.Value{},
		tables:       map[graph.NodeID]bool{},
		Seed:         g.Input("seed", tensor.Of(graph.I32, 2)),
		LearningRate: g.Input("rate", tensor.Of(graph.F32)),
		Step:         g.Input("step", tensor.Of(graph.F32)),
	}
}

// Input adds an input that a batch brings, of so many elements along each axis. The
// first axis is called batch.
func (m *Model) Input(name string, d graph.DType, sizes ...int) graph.Value {
	t := tensor.Of(d, sizes...)
	if len(sizes) > 0 && !m.Unnamed {
		t.Shape[0].Name = "batch"
	}
	return m.InputOf(name, t)
}

// InputOf is [Model.Input] with a type, whose axes may have names.
func (m *Model) InputOf(name string, t graph.Type) graph.Value {
	v := m.Graph.Input(name, t)
	m.Data = append(m.Data, v)
	return v
}

// Evaluate says what an evaluation computes: a loss f32[], the mean over a batch,
// and metrics beside it. Build them in the pass [Model.Evaluation].
func (m *Model) Evaluate(loss graph.Value, metrics ...Metric) {
	if m.EvalLoss.Valid() {
		m.Graph.Fail(fmt.Errorf("the model has an evaluation already, of %s", m.EvalLoss))
	}
	m.EvalLoss, m.EvalMetrics = loss, metrics
}

// Output adds values that an evaluation gives as they are: predictions, samples.
func (m *Model) Output(values ...graph.Value) {
	m.EvalOutputs = append(m.EvalOutputs, values...)
}

// Parameters are the variables that training changes, in order of creation;
// neither state of optimizers nor running averages are.
func (m *Model) Parameters() []graph.Value { return m.parameters }

// Parameter is the parameter of a name, such as "hidden/weight"; the zero Value if
// there is none.
func (m *Model) Parameter(name string) graph.Value {
	if v := m.variables[name]; v.Valid() && !v.Node.State {
		return v
	}
	return graph.Value{}
}

// Err is the first mistake in building the model, one line that ends with the
// model's file and line; nil if there is none. That an evaluation has parameters which no
// objective has is one too.
func (m *Model) Err() error { return cmp.Or(m.Graph.Err(), m.untrained()) }

// Executions is the number of executions, and of batches, of a training step.
func (m *Model) Executions() int {
	n := 0
	for _, o := range m.Objectives {
		n += o.Times
	}
	return n
}

// Work is what one execution of a part of the graph takes.
type Work struct {
	Nodes        int // operations that are executed, views excluded
	FLOPs, Bytes int64
}

// Work sums the costs of an objective's nodes by phase: forward, backward,
// update.
func (m *Model) Work(o Objective) [3]Work {
	roots := []graph.NodeID{o.Loss.Node.ID}
	for _, n := range o.Updates {
		roots = append(roots, n.ID)
	}
	live := m.Graph.Ancestors(roots)
	var w [3]Work
	for _, n := range m.Graph.Nodes() {
		if !n.Executes() || !live[n.ID] {
			continue
		}
		c := n.Cost()
		w[n.Phase].Nodes++
		w[n.Phase].FLOPs += c.FLOPs
		w[n.Phase].Bytes += c.Bytes
	}
	return w
}
