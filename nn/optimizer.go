package nn

import (
	"path"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// Optimizer makes the updates of a parameter, with its state. One's own may be
// composed of any operations that end in update nodes.
type Optimizer interface {
	Update(u Update) []*graph.Node
	// Rate is the learning rate of an objective that says none.
	Rate() Schedule
}

// Update is what an optimizer is to make of a parameter and its gradient. Nodes are
// made in the parameter's scope and in phase Update, so that the default placement
// has all of them, and the state, on the host.
type Update struct {
	Parameter, Gradient graph.Value
	Rate                graph.Value // f32[]: the learning rate
	Step                graph.Value // f32[]: how many updates there are with this one, from 1
	Gate                ops.Gate    // to be handed to the update operations
	Fine                bool        // of [Model]: composed of arithmetic, where that can be
	Table               bool        // the parameter is one of [Ctx.Table]

	shared, made states // the state to be found, and where what is made is noted
}

// states are optimizer states by their names.
type states map[string]graph.Value

// State is optimizer state of the parameter, which starts as zeros: a variable
// "PARAMETER/NAME", or that of the objective whose state this one shares.
func (u Update) State(name string, t graph.Type) graph.Value {
	w := u.Parameter
	full := w.Node.Name + "/" + name
	v, ok := u.shared[full]
	switch {
	case !ok:
		v = w.Graph().State(path.Base(w.Node.Name)+"/"+name, t, graph.Init{})
	case !v.Type().Equal(t):
		w.Graph().Fail(errorf("state %s to be shared is %s, want %s: share with the same optimizer",
			full, v.Type(), t))
	}
	if u.made != nil {
		u.made[full] = v
	}
	return v
}

// SGD is [ops.SGD]: w ← w − rate·gradient.
type SGD struct{}

// Update is the update of a parameter.
func (SGD) Update(u Update) []*graph.Node {
	return []*graph.Node{ops.SGD(u.Parameter, u.Gradient, u.Rate, u.Gate)}
}

// Rate is 0.01.
func (SGD) Rate() Schedule { return Constant(0.01) }

// Momentum is [ops.Momentum], or with Nesterov [ops.Nesterov]: PyTorch's SGD with
// momentum.
type Momentum struct {
	Mu       float32 // share of the velocity that is kept; 0 means 0.9
	Nesterov bool
}

// Update is the update of a parameter.
func (o Momentum) Update(u Update) []*graph.Node {
	velocity, mu := u.State("momentum", u.Parameter.Type()), orDefault(o.Mu, 0.9)
	switch {
	case o.Nesterov:
		return []*graph.Node{ops.Nesterov(u.Parameter, velocity, u.Gradient, u.Rate, mu, u.Gate)}
	case u.Fine:
		return fineMomentum(u, mu, velocity)
	}
	return []*graph.Node{ops.Momentum(u.Parameter, velocity, u.Gradient, u.Rate, mu, u.Gate)}
}

// Rate is 0.01.
func (Momentum) Rate() Schedule { return Constant(0.01) }

// Adam is [ops.Adam].
type Adam struct {
	Betas []float32 // decay of the two moments; nil means 0.9 and 0.999
	Eps   float32   // 0 means 1e-8
	// Moments is in what they are kept: F32, which 0 means, BF16, or U8 with a scale for 256 of
	// them, as [ops.SmallAdamW] has it. Those of parameters of less than 4096 elements stay F32.
	Moments graph.DType
}

// smallFrom is the least number of elements of a parameter whose moments are small, bitsandbytes'
// number: of biases and norms they are few bytes, and matter most.
const smallFrom = 4096

// small makes the update of a parameter with moments of few bits; ok is false if it has none.
func (o Adam) small(u Update, decay float32) (list []*graph.Node, ok bool) {
	switch w := u.Parameter; {
	case o.Moments == 0 || o.Moments == graph.F32:
		return nil, false
	case o.Moments != graph.BF16 && o.Moments != graph.U8:
		w.Graph().Fail(errorf("moments of Adam in %s: want f32, bf16 or u8", o.Moments))
		return nil, true
	case u.Fine:
		w.Graph().Fail(errorf("the fine form has no moments of Adam in %s: want f32", o.Moments))
		return nil, true
	case w.Type().Elems() < smallFrom && w.Type().DType == graph.F32:
		return nil, false
	}
	var state []graph.Value
	types := ops.SmallAdamState(u.Parameter.Type(), o.Moments)
	for i, t := range types {
		name := [...]string{"first", "second"}[i*2/len(types)]
		if len(types) == 4 && i%2 == 1 {
			name += "-scales"
		}
		state = append(state, u.State(name, t))
	}
	beta1, beta2 := betas(u, o.Betas)
	return []*graph.Node{ops.SmallAdamW(u.Parameter, state, u.Gradient, u.Rate, u.Step, beta1,
		beta2, orDefault(o.Eps, 1e-8), decay, u.Gate)}, true
}

// rounds reports whether moments are small, so that parameters may be bf16.
func (o Adam) rounds() bool { return o.Moments == graph.BF16 || o.Moments == graph.U8 }

// Update is the update of a parameter.
func (o Adam) Update(u Update) []*graph.Node {
	if list, ok := o.small(u, 0); ok {
		return list
	}
	first, second := u.State("first", u.Parameter.Type()), u.State("second", u.Parameter.Type())
	beta1, beta2 := betas(u, o.Betas)
	eps := orDefault(o.Eps, 1e-8)
	if u.Fine {
		return fineAdam(u, beta1, beta2, eps, first, second)
	}
	return []*graph.Node{ops.Adam(u.Parameter, first, second, u.Gradient, u.Rate, u.Step, beta1,
		beta2, eps, u.Gate)}
}

// Rate is 0.001.
func (Adam) Rate() Schedule { return Constant(0.001) }

// AdamW is [ops.AdamW]: Adam whose weight decay is not part of the gradient
// (Loshchilov and Hutter 2019).
type AdamW struct {
	Betas []float32 // decay of the two moments; nil means 0.9 and 0.999
	Eps   float32   // 0 means 1e-8
	Decay float32   // of weights, times the learning rate; 0 means 0.01
	// Exempt says which parameters do not decay; nil: none is exempt. See [Vectors].
	Exempt  func(parameter graph.Value) bool
	Moments graph.DType // in what they are kept: see [Adam]
}

// Update is the update of a parameter.
func (o AdamW) Update(u Update) []*graph.Node {
	adam := Adam{Betas: o.Betas, Eps: o.Eps, Moments: o.Moments}
	if o.Exempt != nil && o.Exempt(u.Parameter) {
		return adam.Update(u)
	}
	if list, ok := adam.small(u, orDefault(o.Decay, 0.01)); ok {
		return list
	}
	first, second := u.State("first", u.Parameter.Type()), u.State("second", u.Parameter.Type())
	beta1, beta2 := betas(u, o.Betas)
	return []*graph.Node{ops.AdamW(u.Parameter, first, second, u.Gradient, u.Rate, u.Step, beta1,
		beta2, orDefault(o.Eps, 1e-8), orDefault(o.Decay, 0.01), u.Gate)}
}

// rounds reports whether moments are small, so that parameters may be bf16.
func (o AdamW) rounds() bool { return Adam{Moments: o.Moments}.rounds() }

// Rate is 0.001.
func (AdamW) Rate() Schedule { return Constant(0.001) }

// Lion is [ops.Lion] (Chen et al. 2023): steps by signs, with one state, whose learning rate is to
// be 3 to 10 times less than AdamW's, and its decay as much more.
type Lion struct {
	Betas []float32 // of the sign and of the state; nil means 0.9 and 0.99
	Decay float32   // of weights, times the learning rate; 0 means 0.1
	// Exempt says which parameters do not decay; nil: none is exempt. See [Vectors].
	Exempt func(parameter graph.Value) bool
}

// Update is the update of a parameter.
func (o Lion) Update(u Update) []*graph.Node {
	if o.Betas == nil {
		o.Betas = []float32{0.9, 0.99}
	}
	beta1, beta2 := betas(u, o.Betas)
	decay := orDefault(o.Decay, 0.1)
	if o.Exempt != nil && o.Exempt(u.Parameter) {
		decay = 0
	}
	return []*graph.Node{ops.Lion(u.Parameter, u.State("first", u.Parameter.Type()), u.Gradient,
		u.Rate, beta1, beta2, decay, u.Gate)}
}

// Rate is 0.0001.
func (Lion) Rate() Schedule { return Constant(0.0001) }

// Vectors are exempt from weight decay: biases, and scales of norms.
func Vectors(parameter graph.Value) bool { return parameter.Type().Rank() < 2 }

// betas are the decays of Adam's moments.
func betas(u Update, given []float32) (beta1, beta2 float32) {
	switch len(given) {
	case 0:
		return 0.9, 0.999
	case 2:
		return given[0], given[1]
	}
	u.Parameter.Graph().Fail(errorf("%d decays of Adam's moments, want 2", len(given)))
	return 0, 0
}

// Adafactor is [ops.Adafactor], without first moment; the learning rate is relative
// to a parameter's root mean square.
type Adafactor struct {
	MinDim int // least size of both axes that are factored; 0 means 128
}

// Update is the update of a parameter.
func (o Adafactor) Update(u Update) []*graph.Node {
	state := o.state(u)
	if u.Fine {
		return fineAdafactor(u, state)
	}
	return []*graph.Node{ops.Adafactor(u.Parameter, state, u.Gradient, u.Rate, u.Step,
		ops.AdafactorConfig{MinDim: o.MinDim}, u.Gate)}
}

// state is second moments, of rows and of columns where they are factored.
func (o Adafactor) state(u Update) (state []graph.Value) {
	types := ops.AdafactorState(u.Parameter.Type(), o.MinDim)
	for i, t := range types {
		name := "second"
		if len(types) == 2 {
			name = [...]string{"second-rows", "second-columns"}[i]
		}
		state = append(state, u.State(name, t))
	}
	return state
}

// Rate warms up to 0.01 in 10,000 steps, and then goes with the inverse square root
// of the step.
func (Adafactor) Rate() Schedule { return InverseSqrt{Scale: 1, Warmup: 10000} }

// orDefault is x, or def if x is 0.
func orDefault(x, def float32) float32 {
	if x == 0 {
		return def
	}
	return x
}
