package gorgonia

import (
	"fmt"
	"math"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	G "gorgonia.org/gorgonia"
)

// learner makes the updates of a solver of Gorgonia's, by its formulas and in their order of
// rounding. Scalars are treated as tensors are.
type learner struct {
	*translation
	*fields
	update func(l *learner, w, gradient graph.Value)
	// 1/(1−βᵗ) of Adam's two moments in step t, which are inputs, by element types
	corrections map[graph.DType][2]graph.Value
}

// learner is that of a solver that has not stepped yet.
func (t *translation) learner(s G.Solver) (*learner, error) {
	l := &learner{translation: t, fields: read(s), corrections: map[graph.DType][2]graph.Value{}}
	switch s.(type) {
	case *G.VanillaSolver:
		l.update = (*learner).vanilla
		return l, nil
	case *G.Momentum:
		l.update = (*learner).momentum
	case *G.RMSPropSolver:
		l.update = (*learner).rmsProp
	case *G.AdaGradSolver:
		l.update = (*learner).adaGrad
	case *G.AdamSolver:
		l.update = (*learner).adam
	default:
		return nil, fmt.Errorf("gomem has no solver %T: use a VanillaSolver, Momentum, "+
			"RMSPropSolver, AdaGradSolver or AdamSolver", s)
	}
	if !l.of.FieldByName("cache").IsNil() {
		return nil, fmt.Errorf("the %T has stepped already: make a new one", s)
	}
	return l, nil
}

// learn makes the updates of variables by their gradients.
func (l *learner) learn(vars, gradients []graph.Value) error {
	l.graph.InPhase(graph.Update, func() {
		for i, w := range vars {
			l.update(l, w, gradients[i])
		}
	})
	return l.err
}

// times is x times a number.
func (l *learner) times(x graph.Value, by float64) graph.Value {
	return ops.Mul(x, l.scalar(x.Type().DType, by))
}

// state is a variable of the solver's, zero at first.
func (l *learner) state(w graph.Value) graph.Value {
	return l.graph.State(l.name("state"), w.Type(), graph.Init{})
}

// prepared is a gradient with penalties of what they are of, divided by the batch's size, and
// clipped.
func (l *learner) prepared(gradient, of graph.Value) graph.Value {
	if l.flag("useL1Reg") {
		gradient = ops.Add(gradient, l.times(ops.Sign(of), l.number("l1reg")))
	}
	if l.flag("useL2Reg") {
		gradient = ops.Add(gradient, l.times(of, l.number("l2reg")))
	}
	if batch := l.number("batch"); batch > 1 {
		gradient = l.times(gradient, 1/batch)
	}
	if l.number("clip") > 0 {
		gradient = l.clipped(gradient)
	}
	return gradient
}

// clipped is a gradient within the solver's limits, if it has any.
func (l *learner) clipped(gradient graph.Value) graph.Value {
	if !l.flag("useClip") {
		return gradient
	}
	d, clip := gradient.Type().DType, l.number("clip")
	return ops.Maximum(ops.Minimum(gradient, l.scalar(d, clip)), l.scalar(d, -clip))
}

// vanilla is w − η·gradient.
func (l *learner) vanilla(w, gradient graph.Value) {
	ops.Assign(w, ops.Add(w, l.times(l.prepared(gradient, w), -l.number("eta"))))
}

// momentum has a velocity. Penalties are of that, as in Gorgonia.
func (l *learner) momentum(w, gradient graph.Value) {
	velocity := l.state(w)
	gradient = l.times(l.prepared(gradient, velocity), -l.number("eta"))
	next := ops.Add(l.times(velocity, l.number("momentum")), gradient)
	ops.Assign(velocity, next)
	ops.Assign(w, ops.Add(w, next))
}

// rmsProp divides by the root of a mean of squares.
func (l *learner) rmsProp(w, gradient graph.Value) {
	decay, squares := l.number("decay"), l.state(w)
	next := ops.Add(l.times(squares, decay), l.times(ops.Square(gradient), 1-decay))
	ops.Assign(squares, next)
	l.divided(w, gradient, next)
}

// adaGrad divides by the root of the sum of all squares.
func (l *learner) adaGrad(w, gradient graph.Value) {
	squares := l.state(w)
	next := ops.Add(squares, ops.Square(gradient))
	ops.Assign(squares, next)
	l.divided(w, gradient, next)
}

// divided is the update of w by a gradient, divided by the root of squares.
func (l *learner) divided(w, gradient, squares graph.Value) {
	root := ops.Rsqrt(ops.Add(squares, l.scalar(w.Type().DType, l.number("eps"))))
	change := ops.Mul(root, l.times(l.clipped(gradient), -l.number("eta")))
	if l.flag("useL2Reg") {
		change = ops.Sub(change, l.times(w, l.number("l2reg")))
	}
	ops.Assign(w, ops.Add(w, change))
}

// adam has means of gradients and of their squares.
func (l *learner) adam(w, gradient graph.Value) {
	gradient = l.prepared(gradient, w)
	first, second := l.state(w), l.state(w)
	mean := l.mixed(first, gradient, l.number("beta1"))
	squares := l.mixed(second, ops.Square(gradient), l.number("beta2"))
	ops.Assign(first, mean)
	ops.Assign(second, squares)
	c := l.corrected(w.Type().DType)
	root := ops.Add(ops.Sqrt(ops.Mul(squares, c[1])),
		l.scalar(w.Type().DType, l.number("eps")))
	change := ops.Div(l.times(ops.Mul(mean, c[0]), -l.number("eta")), root)
	ops.Assign(w, ops.Add(w, change))
}

// mixed is β·old + (1−β)·x, where 1−β is of the numbers' precision, as in Gorgonia.
func (l *learner) mixed(old, x graph.Value, beta float64) graph.Value {
	rest := 1 - beta
	if x.Type().DType == graph.F32 {
		rest = float64(1 - float32(beta))
	}
	return ops.Add(l.times(old, beta), l.times(x, rest))
}

// corrected are the inputs for Adam's moments, of an element type.
func (l *learner) corrected(d graph.DType) [2]graph.Value {
	c, ok := l.corrections[d]
	if !ok {
		for i := range c {
			c[i] = l.graph.Input(l.name("correction"), graph.Of(d))
		}
		l.corrections[d] = c
	}
	return c
}

// feed gives a step what its updates read beside gradients.
func (l *learner) feed(step int, feeds gomem.Feeds) error {
	for d, values := range l.corrections {
		for i, name := range []string{"beta1", "beta2"} {
			c := 1 - math.Pow(l.number(name), float64(step))
			v, err := gomem.F64([]float64{1 / c})
			if d == graph.F32 {
				v, err = gomem.F32([]float32{1 / float32(c)})
			}
			if err != nil {
				return err
			}
			feeds[values[i]] = v
		}
	}
	return nil
}
