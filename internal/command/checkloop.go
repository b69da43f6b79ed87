package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomem/gomem/distrib/orion"
)

// pass is what a loop works on, from its beginning: orion.Trial or orion.Factors.
type pass interface {
	Body(it *orion.Iteration) error
	Finish() uint64 // a hash of all bits
}

// checked is what came of running a loop.
type checked struct {
	Of         string  `json:"of"` // what its body did
	Iterations int     `json:"iterations"`
	Serial     float64 `json:"serial_seconds"`
	Parallel   float64 `json:"parallel_seconds"`
}

// check runs the loop three times, by workers in debug mode, by workers, and in serial order, and
// compares the bits.
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
	if sums[0] != sums[2] || sums[1] != sums[2] {
		return nil, errors.New("workers leave other bits than the serial order: a fault of the " +
			"schedule")
	}
	return c, nil
}

// String says what was found.
func (c *checked) String() string {
	return fmt.Sprintf("%s, %s: no use is undeclared, and workers leave the bits of the serial "+
		"order; %.3f s in that order, %.3f s by workers here", c.Of,
		counted(c.Iterations, "iteration"), c.Serial, c.Parallel)
}
