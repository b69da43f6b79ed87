package workers

import (
	"context"
	"fmt"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/graph"
)

// between keeps the variables of a run in step with other workers' through a synchronizer,
// between steps: a [train.Between]. What a step has changed in a variable is pushed as an
// update, a share of the change, and what is pulled is the variable's next value.
type between struct {
	part    *part
	elastic bool // what breaks is no worker's own fault
	sync    distrib.Synchronizer
	vars    []graph.Value
	share   float32
	lag     int  // by how many steps workers may differ
	alone   bool // workers do not hold each other back between averages

	params []*distrib.Param
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
func (b *between) Begin(_ context.Context, s *gomem.Session) error {
	b.params = Params(b.vars)
	for i, v := range b.vars {
		x, err := s.Get(v)
		if err != nil {
			return err
		}
		b.params[i].Data = x.F32()
	}
	return b.sync.Attach(b.params...)
}

// Step pushes what has changed, ends the clock, and takes what has come. The last variables
// go first: their gradients are done first.
func (b *between) Step(ctx context.Context, s *gomem.Session) error {
	for i := len(b.params) - 1; i >= 0; i-- {
		x, err := s.Get(b.vars[i])
		if err != nil {
			return err
		}
		change := distrib.Dense(x.F32()) // the synchronizer's from here on
		for k, base := range b.params[i].Data {
			change[k] = b.share * (change[k] - base)
		}
		if err := b.sync.Push(ctx, distrib.Ref{Param: distrib.ParamID(i)}, change); err != nil {
			return b.why(err)
		}
	}
	return b.advance(ctx, s)
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
