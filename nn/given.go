package nn

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// Factored is what an objective gives in place of a parameter's update: the step that plain
// gradient descent takes is the sum of Scale·Leftᵀ·Right over the executions that make an
// update, with the Scale of the last. The rows of Left and Right are the sufficient vectors
// of Orpheus (Xie et al. 2018, section 2), a pair for every sample, or for every sample and
// step of a sequence. The gradient itself is never computed.
type Factored struct {
	Parameter   graph.Value // f32[j k]
	Left, Right graph.Value // f32[r j], f32[r k]
	Scale       graph.Value // f32[]
}

// give takes out of the parameters that are updated those whose step is given by factors: all
// of whose uses are products, in layers or in steps of a sequence.
func (l *learner) give() {
	_, plain := l.by.(SGD)
	once := l.Times == l.Accumulate // one update a step, which nothing in the step reads
	if l.Given == nil || l.Workers > 1 {
		return
	}
	if !plain || !once || l.Clip > 0 {
		for _, w := range l.parameters {
			l.way(w, w.Type().Bytes(), 0, false)
		}
		return
	}
	joining := ops.Joining{Any: true}
	var parameters, grads []graph.Value
	for i, w := range l.parameters {
		decays := l.Decay > 0 && (l.Exempt == nil || !l.Exempt(w))
		dense, bytes, given := w.Type().Bytes(), int64(0), false
		if f, ok := factored(w, joining.Join(l.grads[i])); ok && !decays {
			bytes = int64(l.Accumulate) * (f.Left.Type().Bytes() + f.Right.Type().Bytes())
			if given = l.Given.Factors(dense, bytes); given {
				l.given = append(l.given, f)
			}
		}
		if l.way(w, dense, bytes, given); !given {
			parameters, grads = append(parameters, w), append(grads, l.grads[i])
		}
	}
	l.parameters, l.grads = parameters, grads
}

// factored is a parameter whose gradient is one product over samples.
func factored(w, gradient graph.Value) (Factored, bool) {
	product := ops.Factors(gradient)
	if w.Type().Rank() != 2 || len(product) != 2 || product[0].Type().DType != graph.F32 {
		return Factored{}, false
	}
	rows := func(v graph.Value) graph.Value {
		if v.Type().Rank() == 2 {
			return v
		}
		n := v.Type().Size(-1)
		return ops.ReshapeSizes(v, v.Type().Elems()/max(1, n), n)
	}
	f := Factored{Parameter: w, Left: rows(product[0]), Right: rows(product[1])}
	return f, f.Left.Type().Size(1) == w.Type().Size(0) &&
		f.Right.Type().Size(1) == w.Type().Size(1)
}

// scale is by what factors are multiplied: the learning rate, for the mean of the executions
// of an update.
func (l *learner) scale() {
	if len(l.given) == 0 {
		return
	}
	s := ops.Scale(l.LearningRate, -1/float32(l.Accumulate))
	if l.weight != nil {
		s = ops.Mul(s, l.heavy())
	}
	for i := range l.given {
		l.given[i].Scale = s
	}
}

// heavy is what means of gradients are multiplied by, since batches have their weights.
func (l *learner) heavy() graph.Value {
	scalar := tensor.Of(graph.F32)
	mean := ops.Maximum(l.weight.mean, ops.Full(l.Graph, scalar, l.weight.least))
	return ops.Div(ops.Ones(l.Graph, scalar), mean)
}
