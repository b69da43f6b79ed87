package workers

import (
	"context"
	"fmt"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/nn"
)

// between keeps the variables of a run in step with other workers' through a synchronizer,
// between steps: a [train.Between]. What a step has changed in a variable is pushed as an
// update, a share of the change, and what is pulled is the variable's next value.
type between struct {
	part    *part
	member  *Member
	elastic bool // what breaks is no worker's own fault
	sync    distrib.Synchronizer
	vars    []graph.Value
	share   float32
	lag     int  // by how many steps workers may differ
	alone   bool // workers do not hold each other back between averages

	params []*distrib.Param
	given  map[string]*factors // of the step under way, by variable; none of them is updated by it
}

// factors are those of a variable's change.
type factors struct {
	left, right []float32 // of all executions, one after the other
	scale       float32
}

// Receive takes the factors of an execution: a [train.Receiver].
func (b *between) Receive(o nn.Objective, given []gomem.Tensor) error {
	if len(given) != 3*len(o.Factors) {
		return fmt.Errorf("objective %s has factors of %d variables, %d tensors came", o.Name,
			len(o.Factors), len(given))
	}
	if b.given == nil {
		b.given = map[string]*factors{}
	}
	for i, f := range o.Factors {
		x := b.given[f.Parameter.Node.Name]
		if x == nil {
			x = &factors{}
			b.given[f.Parameter.Node.Name] = x
		}
		left, right, scale := given[3*i].F32(), given[3*i+1].F32(), given[3*i+2].F32()
		x.left, x.right = append(x.left, left...), append(x.right, right...)
		x.scale = scale[0]
	}
	return nil
}

// update is the share of the change by factors that this worker pushes. The shorter of the
// factors is scaled. The memory is the synchronizer's from here on.
func (x *factors) update(share float32, p *distrib.Param) distrib.Update {
	u := distrib.Factored{R: len(x.left) / p.Rows, J: p.Rows, K: p.Cols, A: x.left, B: x.right}
	scaled := u.A
	if len(u.B) < len(u.A) {
		scaled = u.B
	}
	for i, v := range scaled {
		scaled[i] = x.scale * share * v
	}
	return u
}

// Shared are the variables of a graph that workers keep in step: what keep reports, such
// as all but the state of optimizers. They must be of 32-bit floats.
func Shared(g *graph.Graph, keep func(v graph.Value) bool) (vars []graph.Value, err error) {
	for _, n := range g.Variables() {
		v := n.Value(0)
		if !keep(v) {
			continue
		}
		if v.Type().DType != graph.F32 {
			return nil, fmt.Errorf("variable %s is %s: workers keep only f32 in step", n.Name,
				v.Type())
		}
		vars = append(vars, v)
	}
	return vars, nil
}

// Params are variables as parameters without data, in the same order: rows of the last
// axis, and what has one axis in one row.
func Params(vars []graph.Value) (ps []*distrib.Param) {
	for _, v := range vars {
		cols := 1
		if r := v.Type().Rank(); r > 0 {
			cols = v.Type().Size(r - 1)
		}
		count := int(v.Type().Bytes()) / 4
		rows := 0
		if cols > 0 {
			rows = count / cols
		}
		ps = append(ps, &distrib.Param{Name: v.Node.Name, Rows: rows, Cols: cols})
	}
	return ps
}

// Lag is by how many steps workers may differ.
func (b *between) Lag() int { return b.lag }

// Begin attaches the variables with the values that they have.
func (b *between) Begin(ctx context.Context, s *gomem.Session) error {
	b.params = Params(b.vars)
	for i, v := range b.vars {
		x, err := s.Get(v)
		if err != nil {
			return err
		}
		b.params[i].Data = x.F32()
	}
	if b.elastic && b.member.scheme.options.Replicas > 0 {
		if err := b.takeOver(ctx, s); err != nil {
			return b.why(err)
		}
	}
	return b.sync.Attach(b.params...)
}

// Step pushes what has changed, ends the clock, and takes what has come. The last variables
// go first: their gradients are done first.
func (b *between) Step(ctx context.Context, s *gomem.Session) error {
	given := b.given
	b.given = nil
	for i := len(b.params) - 1; i >= 0; i-- {
		change, err := b.change(s, i, given[b.params[i].Name])
		if err != nil {
			return err
		}
		if err := b.sync.Push(ctx, distrib.Ref{Param: distrib.ParamID(i)}, change); err != nil {
			return b.why(err)
		}
	}
	if err := b.advance(ctx, s); err != nil {
		return err
	}
	if d := b.part.daemon; d != nil {
		d.Finish()
	}
	return nil
}

// change is what this worker pushes of a variable: factors, if there are, or what the step has
// made of it, which is the synchronizer's from here on.
func (b *between) change(s *gomem.Session, i int, given *factors) (distrib.Update, error) {
	if given != nil {
		return given.update(b.share, b.params[i]), nil
	}
	x, err := s.Get(b.vars[i])
	if err != nil {
		return nil, err
	}
	change := distrib.Dense(x.F32())
	for k, base := range b.params[i].Data {
		change[k] = b.share * (change[k] - base)
	}
	return change, nil
}

// Settle ends as many clocks as workers may differ by: after that, all have what all have
// pushed before. Workers that are on their own have what they have come to since the last average.
func (b *between) Settle(ctx context.Context, s *gomem.Session) error {
	for range b.lag {
		if b.alone {
			break
		}
		if _, err := b.sync.Tick(ctx); err != nil {
			return b.why(err)
		}
	}
	if err := b.take(ctx, s); err != nil {
		return err
	}
	return b.part.engine.Audit().Check()
}

// Merge gives all workers the mean of their replicas, where each has one of its own: Orpheus'
// average for a machine that is added (Xie et al., SoCC 2018, before section 4.1).
func (b *between) Merge(ctx context.Context, s *gomem.Session) error {
	if !b.member.scheme.apart() {
		return nil
	}
	for _, p := range b.params {
		if err := b.part.mean(ctx, p.Data); err != nil {
			return b.why(err)
		}
	}
	return b.Back(s)
}

// mean gives x the mean of all workers' x.
func (p *part) mean(ctx context.Context, x []float32) error {
	ctx, release := p.desk.Within(ctx)
	defer release()
	return collective.AllReduce(ctx, p.group, x, collective.Mean)
}

// End sends what is pending, and waits until all workers have.
func (b *between) End(ctx context.Context) error {
	if err := b.sync.Close(); err != nil {
		return b.why(err)
	}
	ctx, release := b.part.desk.Within(ctx)
	defer release()
	select {
	case <-b.part.engine.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Back gives the variables the values that were pulled last.
func (b *between) Back(s *gomem.Session) error {
	b.given = nil
	for i, v := range b.vars {
		if err := b.put(s, i, v); err != nil {
			return err
		}
	}
	return nil
}

// put gives a variable the value that was pulled.
func (b *between) put(s *gomem.Session, i int, v graph.Value) error {
	x, err := gomem.F32(b.params[i].Data, v.Type().Sizes()...)
	if err != nil {
		return err
	}
	return s.Set(v, x)
}

// why is the reason of a worker that has left, if there is one, for what came of it.
func (b *between) why(err error) error {
	b.part.nonsense(err)
	if left := b.part.desk.Blame(); left != nil {
		return left
	}
	return asBroken(err, b.elastic)
}

// advance ends a clock and takes what has come.
func (b *between) advance(ctx context.Context, s *gomem.Session) error {
	if _, err := b.sync.Tick(ctx); err != nil {
		return b.why(err)
	}
	return b.take(ctx, s)
}

// take gives the variables the values that are due.
func (b *between) take(ctx context.Context, s *gomem.Session) error {
	for i, v := range b.vars {
		if _, err := b.sync.Pull(ctx, distrib.Ref{Param: distrib.ParamID(i)}); err != nil {
			return b.why(err)
		}
		if err := b.put(s, i, v); err != nil {
			return err
		}
	}
	return nil
}
