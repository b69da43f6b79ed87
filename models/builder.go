package models

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/tensor"
	"github.com/gomem/gomem/nn"
)

// newModel is a model with its inputs but for data, and without objectives.
func newModel(name, size string, of Domain, classes int, schedule Schedule) *Model {
	m := &Model{Model: *nn.NewModel(), Name: name, Size: size, Domain: of, Unit: of.unit(),
		Classes: classes}
	m.Schedule, m.Unnamed = schedule, true
	return m
}

// done is the model, or what is wrong with its graph.
func (m *Model) done() (*Model, error) {
	if err := m.Graph.Err(); err != nil {
		return nil, fmt.Errorf("model %s of size %s: %w", m.Name, m.Size, err)
	}
	return m, nil
}

// minimize appends an objective: the gradients of a loss and the updates of its
// parameters, the last first. Others are updates that were made already.
func (m *Model) minimize(o Objective, parameters []graph.Value, opt optimizer,
	others ...*graph.Node) {
	if !o.Loss.Valid() {
		return // the graph's error says why
	}
	grads := autodiff.Grad(o.Loss, parameters...)
	for i := len(parameters) - 1; i >= 0; i-- {
		m.Graph.On(parameters[i].Node, func() {
			m.Graph.InPhase(graph.Update, func() {
				o.Updates = append(o.Updates, opt.update(m, parameters[i], grads[i])...)
			})
		})
	}
	o.Updates = append(o.Updates, others...)
	m.Objectives = append(m.Objectives, o)
}

// parameters creates a model's parameters.
type parameters struct {
	g   *graph.Graph
	all []graph.Value // in the order of first use
}

// add creates a parameter f32[sizes…].
func (p *parameters) add(name string, init graph.Init, sizes ...int) graph.Value {
	v := p.g.Variable(name, tensor.Of(graph.F32, sizes...), init)
	p.all = append(p.all, v)
	return v
}

// part is where in a model its operations are made, and how.
type part struct {
	g        *graph.Graph
	seed     graph.Value
	training bool
	fine     bool   // operations of the thesis' granularity: see fine.go
	path     string // names what is random, the same in every pass
}

// scope is for the nodes and the noise of a part of the model.
func (p *part) scope(name string) (leave func()) {
	nodes, outer := p.g.Scope(name), p.path
	p.path += name + "/"
	return func() {
		nodes()
		p.path = outer
	}
}

// mean is the mean of a number for each token, f32[pairs length], over the
// tokens that are not padding; 0 if all are.
func (p *part) mean(x, ids graph.Value) graph.Value { return p.meanOver(x, ops.NotZero(ids)) }

// meanOver is the mean of those numbers whose weight is 1, not 0; 0 if there are none.
func (p *part) meanOver(x, weight graph.Value) graph.Value {
	count := ops.Maximum(ops.Sum(weight), ops.Ones(p.g, tensor.Of(graph.F32)))
	return ops.Div(ops.Sum(ops.Mul(x, weight)), count)
}

// one is an initial value of ones.
func one() graph.Init { return graph.Init{Dist: graph.Constant, Scale: 1} }

func normal(deviation float64) graph.Init {
	return graph.Init{Dist: graph.Normal, Scale: deviation}
}

// fanIn keeps the variance of what n inputs are multiplied with.
func fanIn(n int) graph.Init { return normal(1 / math.Sqrt(float64(n))) }

// uniform has the given variance.
func uniform(variance float64) graph.Init {
	return graph.Init{Dist: graph.Uniform, Scale: math.Sqrt(3 * variance)}
}

// glorot is Glorot and Bengio's uniform distribution (2010), variance
// 2/(in+out), which TensorFlow also calls variance scaling over the average fan.
func glorot(in, out int) graph.Init { return uniform(2 / float64(in+out)) }

// heTruncated is TensorFlow's variance scaling over the fan in: variance 1/n,
// drawn from a truncated normal distribution, which is narrower than its scale.
func heTruncated(n int) graph.Init {
	const truncation = 0.87962566103423978 // deviation of a standard normal cut at ±2
	return graph.Init{Dist: graph.Truncated, Scale: 1 / math.Sqrt(float64(n)) / truncation}
}

// sum adds values of one type up.
func sum(vs []graph.Value) graph.Value {
	total := vs[0]
	for _, v := range vs[1:] {
		total = ops.Add(total, v)
	}
	return total
}

// replicaBudget is the memory that a size is meant for, in bytes: that of the
// thesis' machine for base (12 GiB device, 64 GiB host), and 1/64 and 1/512 of it.
func replicaBudget(size string) (device, host int64) {
	const device0, host0 = 12 << 30, 64 << 30
	switch size {
	case "base":
		return device0, host0
	case "s64":
		return device0 / 64, host0 / 64
	default:
		return device0 / 512, host0 / 512
	}
}
