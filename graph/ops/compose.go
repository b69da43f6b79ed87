package ops

import (
	"github.com/gomem/gomem/graph"
)

// fresher is implemented by an update that knows what its variables become, composed of
// operations that divide.
type fresher interface {
	// fresh are the values that the variables get, in their order. The operands are its own.
	fresh(in []graph.Value) []graph.Value
}

// assigned makes updates of the values that variables get.
func assigned(in, fresh []graph.Value, gate ...Gate) (updates []*graph.Node) {
	in[0].Graph().InPhase(graph.Update, func() {
		for i, x := range fresh {
			updates = append(updates, behind(gate, assign{}, in[i:i+1:i+1], x))
		}
	})
	return updates
}

// Compose is the update as arithmetic, sums over its axes and assignments.
func (o adafactor) Compose(in []graph.Value) (updates []*graph.Node) {
	in[0].Graph().InPhase(graph.Update, func() { updates = assigned(in, o.fresh(in)) })
	return updates
}

// Compose is that of the update that is executed, with every assignment behind the gate;
// none if that is not composed.
func (o every) Compose(in []graph.Value) (updates []*graph.Node) {
	inner, ok := o.Op.(fresher)
	if !ok {
		return nil
	}
	last := len(in) - 1
	in[0].Graph().InPhase(graph.Update, func() {
		updates = assigned(in, inner.fresh(in[:last]), Gate{Every: o.N, Step: in[last]})
	})
	return updates
}

// fresh is what the parameter and its second moments become.
func (o adafactor) fresh(in []graph.Value) []graph.Value {
	w, state, grad := in[0], in[1:len(in)-3], in[len(in)-3]
	lr, step := in[len(in)-2], in[len(in)-1]
	weight := Exp(Scale(Log(step), -o.Decay)) // of this step's squares
	square := AddScalar(Square(grad), o.Eps1)
	average := func(old, now graph.Value) graph.Value {
		return Add(Mul(old, AddScalar(Neg(weight), 1)), Mul(now, weight))
	}
	var change graph.Value
	out := []graph.Value{{}}
	if len(state) == 1 {
		second := average(state[0], square)
		out, change = append(out, second), Mul(grad, Rsqrt(second))
	} else {
		p, q, _ := AdafactorAxes(w.Type(), o.MinDim)
		rows, columns := average(state[0], Mean(square, q)), average(state[1], Mean(square, p))
		out = append(out, rows, columns)
		rows, columns = kept(rows, q), kept(columns, p)
		relative := Div(rows, Scale(SumKeep(rows, p), 1/float32(w.Type().Size(p))))
		change = Mul(Mul(grad, Rsqrt(relative)), Rsqrt(columns))
	}
	rate := Div(lr, Maximum(Scale(rms(change), 1/o.Clip), scalar(w, 1)))
	if !o.Absolute {
		rate = Mul(rate, Maximum(rms(w), scalar(w, float64(o.Eps2))))
	}
	out[0] = Sub(w, Mul(change, rate))
	return out
}

// rms is the root mean square of all elements, f32[].
func rms(x graph.Value) graph.Value { return Sqrt(Mean(Square(x))) }

// kept puts an axis of size 1 back that a sum has dropped.
func kept(x graph.Value, axis int) graph.Value {
	sizes := x.Type().Sizes()
	sizes = append(sizes[:axis:axis], append([]int{1}, sizes[axis:]...)...)
	return ReshapeSizes(x, sizes...)
}
