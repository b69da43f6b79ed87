package nn

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// MinimizeOptions say how a loss is minimised. The zero value is a plain step for
// every batch.
type MinimizeOptions struct {
	Name    string   // of the objective; "" means "train"
	Times   int      // executions a training step; 0 means 1, or Accumulate
	Metrics []Metric // computed beside the loss

	// Rate is the learning rate over steps; nil means the optimizer's own. All
	// objectives of a model have one.
	Rate Schedule

	// Of are scopes: only parameters in one of them, or of that very name, are
	// trained. None means all that the loss depends on.
	Of []string
	// Frozen are scopes whose parameters are not trained. In a model with [Adapters] only those
	// of these are.
	Frozen []string

	// Clip is the most that the norm of all gradients together may be; they are
	// scaled down to it. 0 means no limit.
	Clip float32

	// Decay of weights is added to gradients, Decay·w, which is the gradient of half
	// the sum of squares times Decay. Optimizers that adapt to the gradient want
	// [AdamW] instead.
	Decay float32
	// Exempt says which parameters do not decay; nil: none is exempt. See [Vectors].
	Exempt func(parameter graph.Value) bool

	// Accumulate is the number of executions whose gradients are averaged for one
	// update, the last of them making it; 0 means 1. See the package's comment.
	Accumulate int
	// Counts are how much positions count in the loss, f32 of any shape: where gradients of
	// several batches are averaged, each weighs the sum of them. No value: the losses of
	// this package, [MeanOver] and sums of those with other terms say it themselves, and
	// batches of a loss that is divided by no such sum weigh the same.
	Counts graph.Value

	// Join makes one product of a gradient that is a sum of products, of layers or steps that
	// have a weight in common, where what is multiplied is fewer bytes than the gradient:
	// see [ops.Joining].
	Join bool

	// Shares is the name of an earlier objective that this one is another form of, such
	// as a step for batches of another size: it goes on with the optimizer state of
	// that one, and a step runs one of the two. It is for loops of one's own: train.Run
	// executes all objectives in every step.
	Shares string
}

// Minimize appends an objective: the gradients of a loss, f32[], and the updates of
// the parameters that it depends on, the last parameter first, and of the running
// averages that it computes. What is wrong is recorded in the graph.
func (m *Model) Minimize(loss graph.Value, by Optimizer, options ...MinimizeOptions) {
	o, ok := one(m.Graph, options)
	if !ok || !loss.Valid() {
		return // the graph's error says why
	}
	if err := o.check(m, by); err != nil {
		m.Graph.Fail(err)
		return
	}
	learner := &learner{Model: m, MinimizeOptions: o, by: by, step: m.Step,
		parameters: m.trained(o), made: states{}}
	if m.states == nil {
		m.states = map[string]states{}
	}
	m.states[o.Name] = learner.made
	if err := learner.halves(); err != nil {
		m.Graph.Fail(err)
		return
	}
	learner.grads = autodiff.Grad(learner.weighed(loss), learner.parameters...)
	if !learner.prune(loss) {
		return
	}
	if o.Join {
		m.Graph.InPhase(graph.Backward, learner.join)
	}
	learner.last = learner.parameters[len(learner.parameters)-1]
	m.Graph.InPhase(graph.Backward, learner.give)
	learner.averages = m.averagesOf(loss)
	m.Graph.InPhase(graph.Update, learner.prepare)
	updates := append(learner.updates(), learner.averages...)
	if m.Workers > 1 {
		learner.agree(updates)
	}
	m.Objectives = append(m.Objectives, Objective{
		Name: o.Name, Times: o.Times, Accumulate: o.Accumulate, Loss: loss, Metrics: o.Metrics,
		Updates: updates, Factors: learner.given, Ways: learner.ways,
		Weighs: learner.weight != nil,
	})
}

// check completes options, and reports what no objective can have.
func (o *MinimizeOptions) check(m *Model, by Optimizer) error {
	if o.Name == "" {
		o.Name = "train"
	}
	if o.Accumulate == 0 {
		o.Accumulate = 1
	}
	if o.Times == 0 {
		o.Times = o.Accumulate
	}
	switch {
	case by == nil:
		return errorf("objective %q has no optimizer", o.Name)
	case slices.ContainsFunc(m.Objectives, func(p Objective) bool { return p.Name == o.Name }):
		return errorf("there is an objective %q already: give this one another Name", o.Name)
	case o.Shares != "" && m.states[o.Shares] == nil:
		return errorf("objective %q shares the state of %q, which there is not", o.Name, o.Shares)
	case o.Accumulate < 1 || o.Times < 1:
		return errorf("objective %q accumulates %d executions, %d times a step: neither may be "+
			"negative", o.Name, o.Accumulate, o.Times)
	case m.Fine && o.Accumulate > 1:
		return errorf("objective %q accumulates gradients, which the fine form cannot", o.Name)
	case !(o.Clip >= 0):
		return errorf("gradients are clipped to %v: want a positive number", o.Clip)
	case m.Workers > 1 && m.Given != nil:
		return errorf("objective %q: workers that exchange gradients within a step are not given "+
			"factors of them", o.Name)
	case m.Workers < 0:
		return errorf("the model is for %d workers: want 1 or more", m.Workers)
	case !(o.Decay >= 0):
		return errorf("weight decay is %v: want a number from 0", o.Decay)
	}
	if err := m.adapted(); err != nil {
		return err
	}
	if err := m.known("Of", o.Of); err != nil {
		return err
	}
	if err := m.known("Frozen", o.Frozen); err != nil {
		return err
	}
	return m.schedule(o, by)
}

// schedule settles the model's learning rate.
func (m *Model) schedule(o *MinimizeOptions, by Optimizer) error {
	if v, ok := o.Rate.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return err
		}
	}
	switch {
	case m.Schedule == nil && o.Rate == nil:
		m.Schedule = by.Rate()
	case m.Schedule == nil:
		m.Schedule = o.Rate
	case o.Rate != nil && o.Rate != m.Schedule:
		return errorf("objective %q has another learning rate, %v, than the model, %v: all of a "+
			"model's have one", o.Name, o.Rate, m.Schedule)
	}
	return nil
}

// trained are the parameters that options leave to be trained.
func (m *Model) trained(o MinimizeOptions) (list []graph.Value) {
	within := func(name string, scopes []string) bool {
		return slices.ContainsFunc(scopes, func(scope string) bool { return isWithin(name, scope) })
	}
	for _, v := range m.parameters {
		name := v.Node.Name
		if (len(o.Of) == 0 || within(name, o.Of)) && !within(name, o.Frozen) &&
			(m.Adapters == nil || IsAdapter(name)) && !m.packed[v.Node] {
			list = append(list, v)
		}
	}
	return list
}

// averagesOf takes the updates of running averages that a loss computes.
func (m *Model) averagesOf(loss graph.Value) (mine []*graph.Node) {
	live := m.Graph.Ancestors([]graph.NodeID{loss.Node.ID})
	var others []*graph.Node
	computed := func(v graph.Value) bool { return live[v.Node.ID] }
	for _, n := range m.averages {
		if slices.ContainsFunc(n.In[n.Mutates:], computed) {
			mine = append(mine, n)
		} else {
			others = append(others, n)
		}
	}
	m.averages = others
	return mine
}

// learner makes the updates of an objective.
type learner struct {
	*Model
	MinimizeOptions
	by                Optimizer
	parameters, grads []graph.Value
	step              graph.Value // f32[]: the number of the update
	gate              ops.Gate
	others            []*graph.Node // updates of what gradients are accumulated in
	averages          []*graph.Node // updates of running averages
	weight            *weighing     // of a batch; nil: all count the same
	last              graph.Value   // of the parameters, as the loss has them
	given             []Factored    // in place of updates
	ways              []Way
	local             *local // and what these have each their own
	made              states
}

// prune drops the parameters that the loss does not depend on, and reports that
// there is no other.
func (l *learner) prune(loss graph.Value) bool {
	var parameters, grads []graph.Value
	for i, g := range l.grads {
		if g.Valid() {
			parameters, grads = append(parameters, l.parameters[i]), append(grads, g)
		}
	}
	l.parameters, l.grads = parameters, grads
	if len(grads) == 0 {
		l.Graph.Fail(errorf("objective %q depends on no parameter that is to be trained: loss %s",
			l.Name, loss))
	}
	return len(grads) > 0
}

// halves reports parameters of bfloat16 that the optimizer or the workers cannot have.
func (l *learner) halves() error {
	for _, v := range l.parameters {
		if v.Type().DType != graph.BF16 {
			continue
		}
		if by, ok := l.by.(interface{ rounds() bool }); !ok || !by.rounds() {
			return errorf("objective %q: %s is bf16, which Adam and AdamW train with moments in "+
				"bf16 or u8", l.Name, v)
		}
		if l.Workers > 1 {
			return errorf("objective %q: %s is bf16, which workers do not exchange: want f32, or "+
				"one worker", l.Name, v)
		}
	}
	return nil
}

// each visits the parameters, the last first, whose gradients are done first.
func (l *learner) each(visit func(i int)) {
	for i := len(l.parameters) - 1; i >= 0; i-- {
		l.Graph.On(l.parameters[i].Node, func() { visit(i) })
	}
}

// prepare accumulates, exchanges and clips gradients.
func (l *learner) prepare() {
	if n := l.Accumulate; n > 1 {
		l.gate = ops.Gate{Every: n, Step: l.Step}
		count := ops.Full(l.Graph, tensor.Of(graph.F32), float32(n))
		l.step = ops.Div(l.Step, count)
		l.each(l.accumulate)
		l.accumulateWeights()
		l.accumulateAverages()
	} else if l.weight != nil {
		l.weight.mean = l.weight.own
	}
	if l.Workers > 1 {
		l.exchange()
	}
	l.unweigh()
	l.scale()
	if l.Clip > 0 {
		l.clip()
	}
}

// accumulate replaces the gradient by the mean of those since the last update.
func (l *learner) accumulate(i int) {
	u := l.update(i)
	t, fresh := u.Parameter.Type(), wider(u.Gradient)
	t.DType = graph.F32
	sum := u.State("gradient", t)
	l.grads[i] = ops.Scale(ops.Add(sum, fresh), 1/float32(l.Accumulate))
	l.keep(ops.AccumulateUntil(sum, fresh, l.gate))
}

// clip scales gradients by one factor: first their squares are summed, which may be too
// large for a number where no gradient is, and then they are scaled where they are
// used.
func (l *learner) clip() {
	defer l.Graph.Within("clip/")()
	var squares graph.Value
	l.each(func(i int) {
		s := ops.WideSquares(wider(l.grads[i]))
		if squares.Valid() {
			s = ops.Add(squares, s)
		}
		squares = s
	})
	factor := ops.NormFactor(squares, l.Clip)
	l.each(func(i int) { l.grads[i] = ops.MulWide(l.grads[i], factor) })
}

// wider is a gradient in f32. That of a parameter of bfloat16 is converted where it is used, each
// time, so that it waits for the others in 2 bytes an element.
func wider(grad graph.Value) graph.Value { return ops.Cast(grad, graph.F32) }

// update is what an optimizer gets for a parameter.
func (l *learner) update(i int) Update {
	return Update{Parameter: l.parameters[i], Gradient: l.grads[i], Rate: l.LearningRate,
		Step: l.step, Gate: l.gate, Fine: l.Fine,
		Table:  l.tables[l.parameters[i].Node.ID],
		shared: l.states[l.Shares], made: l.made}
}

// updates are those of all parameters.
func (l *learner) updates() (list []*graph.Node) {
	l.each(func(i int) {
		l.Graph.InPhase(graph.Update, func() {
			u := l.update(i)
			if w := u.Parameter; l.Decay > 0 && (l.Exempt == nil || !l.Exempt(w)) {
				u.Gradient = ops.Add(wider(u.Gradient), ops.Scale(wider(w), l.Decay))
			}
			list = append(list, l.by.Update(u)...)
		})
	})
	return append(list, l.others...)
}

// one is the only one of options that are given by a variable number of arguments.
func one[T any](g *graph.Graph, options []T) (o T, ok bool) {
	switch len(options) {
	case 0:
		return o, true
	case 1:
		return options[0], true
	}
	g.Fail(errorf("%d sets of options, want one", len(options)))
	return o, false
}

// errorf is an error of the caller's.
func errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }
