package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/orion"
)

// pass is what a loop works on, from its beginning: orion.Trial or orion.Factors.
type pass interface {
	orion.Memory
	Body(it *orion.Iteration) error
	Finish() uint64 // a hash of all bits
}

// checked is what came of running a loop.
type checked struct {
	Of         string  `json:"of"` // what its body did
	Iterations int     `json:"iterations"`
	Serial     float64 `json:"serial_seconds"`
	Parallel   float64 `json:"parallel_seconds"`
	Apart      bool    `json:"apart"` // also by workers that share no memory
}

// check runs the loop by workers in debug mode, by workers, in serial order, and by workers that
// share no memory, and compares the bits.
func (x explained) check(ctx context.Context) (*checked, error) {
	c := &checked{Of: "hashes of what was read"}
	points := x.points
	var err error
	if points == nil {
		if points, err = x.Loop.All(); err != nil {
			return nil, fmt.Errorf("--check: %w: draw some by --nonzeros", err)
		}
	}
	begin := func() (pass, error) { return orion.NewTrial(x.Loop, x.Workers, len(points)) }
	if x.factors {
		c.Of = "matrix factorisation by SGD"
		begin = func() (pass, error) { return orion.NewFactors(x.Loop) }
	}
	c.Iterations = len(points)
	var sums [3]uint64
	var seconds [3]float64
	for i, run := range []func(*orion.Run, context.Context) error{(*orion.Run).Parallel,
		(*orion.Run).Parallel, (*orion.Run).Serial} {
		p, err := begin()
		if err != nil {
			return nil, fmt.Errorf("--check: %w", err)
		}
		r := &orion.Run{Schedule: x.Schedule, Points: points, Body: p.Body, Debug: i == 0}
		start := time.Now()
		if err := run(r, ctx); err != nil {
			return nil, err
		}
		seconds[i], sums[i] = time.Since(start).Seconds(), p.Finish()
	}
	c.Parallel, c.Serial = seconds[1], seconds[2]
	apart := sums[2]
	if c.Apart = x.fitsApart(); c.Apart {
		if apart, err = x.apart(ctx, points, begin); err != nil {
			return nil, err
		}
	}
	if sums[0] != sums[2] || sums[1] != sums[2] || apart != sums[2] {
		return nil, errors.New("workers leave other bits than the serial order: a fault of the " +
			"schedule")
	}
	return c, nil
}

// String says what was found.
func (c *checked) String() string {
	who := "workers"
	if c.Apart {
		who = "workers, also those that share no memory,"
	}
	return fmt.Sprintf("%s, %s: no use is undeclared, and "+who+" leave the bits of the serial "+
		"order; %.3f s in that order, %.3f s by workers here", c.Of,
		counted(c.Iterations, "iteration"), c.Serial, c.Parallel)
}

// How many workers that share no memory there are at most, each of which tells all what it has, and
// how many elements they have together.
const mostWorkers, mostApart = 32, 1 << 26

// fitsApart reports whether each worker can have arrays of its own.
func (x explained) fitsApart() bool {
	elements := int64(0)
	for _, a := range x.Loop.Arrays {
		elements += a.Elements()
	}
	return x.Workers <= mostWorkers && elements <= mostApart/int64(x.Workers)
}

// apart is what comes of a pass by workers that share no memory, on a network in memory.
func (x explained) apart(ctx context.Context, points [][]int64,
	begin func() (pass, error)) (uint64, error) {
	s := x.Schedule
	if !x.factors {
		s = widened(s)
	}
	var nodes []distrib.NodeID
	for i := range x.Workers {
		nodes = append(nodes, distrib.NodeID(i))
	}
	passes, errs := make([]pass, x.Workers), make([]error, x.Workers)
	var all, ended sync.WaitGroup
	ended.Add(x.Workers)
	for i, t := range memnet.New(x.Workers, memnet.Options{}) {
		all.Go(func() {
			mux, err := collective.NewMux(t, collective.Options{})
			var g *collective.Group
			if err == nil {
				g, err = mux.Group(nodes...)
			}
			if err == nil {
				if passes[i], err = begin(); err == nil {
					err = once(ctx, g, &orion.Run{Schedule: s, Points: points,
						Body: passes[i].Body}, passes[i])
				}
				if err != nil {
					g.Abort(err)
				}
			}
			ended.Done()
			ended.Wait()
			errs[i] = errors.Join(err, mux.Close())
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	for i, p := range passes[1:] {
		if first, ok := passes[0].(*orion.Trial); ok {
			first.Join(i+1, p.(*orion.Trial))
		}
	}
	return passes[0].Finish(), nil
}

// once is a worker's part of one pass, after which all have all.
func once(ctx context.Context, g distrib.Group, r *orion.Run, m orion.Memory) error {
	w, err := r.Worker(g, m)
	if err != nil {
		return err
	}
	w.After = func(ctx context.Context, _ int) error { return w.Gather(ctx) }
	return w.Run(ctx, 1)
}

// widened is a schedule of a loop whose elements have as many bytes as those of trials.
func widened(s *orion.Schedule) *orion.Schedule {
	l, c, w := *s.Loop, *s.Choice, *s
	l.Arrays = slices.Clone(l.Arrays)
	for i := range l.Arrays {
		l.Arrays[i].Bytes = orion.TrialBytes
	}
	c.Loop, w.Choice = &l, &c
	return &w
}
