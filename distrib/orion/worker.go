package orion

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/gomem/gomem/distrib"
)

// Memory is where a process has its copies of a loop's arrays. Elements are numbered in row-major
// order; those that the process does not use need not be there.
type Memory interface {
	// Load appends the bytes of n elements of an array.
	Load(b []byte, array int, from, n int64) []byte
	// Store replaces n elements by those bytes.
	Store(array int, from, n int64, b []byte)
}

// Worker runs the blocks of one worker of a schedule in a process of its own, pass after pass. Its
// number is its rank in the group. All workers together leave the bits of [Run.Serial].
type Worker struct {
	*Schedule
	Group  distrib.Group
	Memory Memory
	// Block runs one of the worker's blocks, by its number.
	Block func(ctx context.Context, pass, index int) error
	// Points are the iterations of a block. Where all arrays that are changed are divided by space
	// or time, nobody asks, and it may be nil.
	Points func(index int) iter.Seq[[]int64]
	// Sums are accumulators: blocks add to them, and every pass begins with zeros.
	Sums []float64
	// Total is called by the first worker with what all have in Sums after a pass, added up in the
	// order of their ranks. Passes come in order. Nil: nobody asks.
	Total func(pass int, sums []float64)
	// After is called after every pass, and may call the worker's methods. What it returns ends
	// the run, if it is an error. Nil: nobody asks.
	After func(ctx context.Context, pass int) error

	route   *route
	sharing *sharing // nil: no array is
	home    bool     // all that this worker begins a pass with is here
	ended   error
	sending *behind
	adding  *behind
}

// Run runs so many passes. The worker waits for one other at a time, and only where a block needs
// what that one has still to hand on.
func (w *Worker) Run(ctx context.Context, passes int) (err error) {
	if w.Group.Size() != w.Workers {
		return fmt.Errorf("a schedule for %d workers, and there are %d", w.Workers, w.Group.Size())
	}
	w.route, w.sharing = w.Schedule.route(w.Group.Rank()), nil
	if slices.Contains(w.route.shared, true) {
		if w.Points == nil {
			return errors.New("arrays that are changed are divided neither by space nor by time: " +
				"want the iterations of blocks, that say which of their elements are")
		}
		w.sharing = &sharing{Worker: w}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// A worker that waited for another one to take what it sends might have that one wait for it,
	// round and round. There are no more messages at a time than two for each part of time, and
	// one to each worker.
	w.sending = goBehind(ctx, cancel, 2*w.Along.Parts()+w.Workers)
	w.home, w.adding = true, goBehind(ctx, cancel, 1)
	if err = w.passes(ctx, passes); err != nil {
		cancel(err)
	} else if w.ended == nil {
		err = w.Home(ctx)
	}
	w.sending.end()
	w.adding.end()
	return cmp.Or(err, w.ended, context.Cause(ctx))
}

// passes runs passes, until After has it end.
func (w *Worker) passes(ctx context.Context, n int) error {
	for pass := range n {
		if err := w.pass(ctx, pass); err != nil {
			return err
		}
		if w.After != nil {
			if w.ended = w.After(ctx, pass); w.ended != nil {
				return nil // what is on its way to others still goes
			}
		}
	}
	return nil
}

func (w *Worker) pass(ctx context.Context, pass int) error {
	for i, t := range w.route.turns {
		if err := w.turn(ctx, pass, i, t); err != nil {
			return err
		}
	}
	w.home = false
	if w.sharing != nil {
		if err := w.sharing.settle(ctx); err != nil {
			return err
		}
	}
	if sums := slices.Clone(w.Sums); len(sums) > 0 {
		clear(w.Sums)
		w.adding.do(func(ctx context.Context) error { return w.total(ctx, pass, sums) })
	}
	return nil
}

// turn takes what a block needs, runs it, and hands on what others need.
func (w *Worker) turn(ctx context.Context, pass, i int, t turn) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if t.takes && !(t.begins && w.home) {
		if err := w.take(ctx, t.Time); err != nil {
			return err
		}
	}
	if w.sharing != nil && t.takes && !t.begins {
		if err := w.hear(ctx, t.Time); err != nil {
			return err
		}
	}
	if err := w.Block(ctx, pass, i); err != nil {
		return err
	}
	if w.sharing != nil {
		w.sharing.note(i)
	}
	if t.gives {
		w.give(t)
	}
	return nil
}

// give hands on the part of time of a block that has ended.
func (w *Worker) give(t turn) {
	to, b := w.route.next[t.Time], w.load(w.route.parts[t.Time])
	w.sending.do(func(ctx context.Context) error {
		return w.Group.Send(ctx, to, tagOf(t.Time), b)
	})
	if w.sharing == nil || t.ends {
		return
	}
	changes := w.sharing.give(to)
	w.sending.do(func(ctx context.Context) error {
		return w.sharing.send(ctx, to, tagOf(t.Time), changes)
	})
}

// hear takes the changes to shared arrays that come with a part of time.
func (w *Worker) hear(ctx context.Context, time int) error {
	b, err := w.sharing.receive(ctx, w.route.before[time], tagOf(time))
	if err != nil {
		return err
	}
	return w.sharing.take(b)
}

// Home waits until all is here that this worker begins a pass with. Once all workers have done so,
// nothing is on its way.
func (w *Worker) Home(ctx context.Context) error {
	for _, t := range w.route.turns {
		if !w.home && t.takes && t.begins {
			if err := w.take(ctx, t.Time); err != nil {
				return err
			}
		}
	}
	w.home = true
	return nil
}

// Told waits until Total knows of all passes that have ended.
func (w *Worker) Told() { w.adding.wait() }

// Gather has all workers have all of the arrays, wherever it was changed. All call it after the
// same pass.
func (w *Worker) Gather(ctx context.Context) error {
	if err := w.Home(ctx); err != nil {
		return err
	}
	me := w.Group.Rank()
	own := w.load(w.route.owned[me])
	for rank := range w.Workers {
		if rank != me {
			w.sending.do(func(ctx context.Context) error {
				return w.Group.Send(ctx, rank, gatherTag, own)
			})
		}
	}
	for rank, runs := range w.route.owned {
		if rank != me {
			if err := w.receive(ctx, rank, gatherTag, runs); err != nil {
				return err
			}
		}
	}
	return nil
}

// The tags of messages: of a part of time, of all that a worker has, and of sums.
const (
	timeTag   = 0x6f72696f << 32
	gatherTag = timeTag | 1<<31
	sumsTag   = gatherTag | 1
	settleTag = gatherTag | 2
)

func tagOf(time int) uint64 { return timeTag | uint64(time) }

// take waits for a part of time from the worker that has it before.
func (w *Worker) take(ctx context.Context, time int) error {
	return w.receive(ctx, w.route.before[time], tagOf(time), w.route.parts[time])
}

// load is the bytes of some elements.
func (w *Worker) load(runs []Elements) (b []byte) {
	for _, r := range runs {
		b = w.Memory.Load(b, r.Array, r.From, r.N)
	}
	return b
}

// receive waits for the bytes of some elements.
func (w *Worker) receive(ctx context.Context, from int, tag uint64, runs []Elements) error {
	bytes := func(r Elements) int64 { return r.N * w.Loop.Arrays[r.Array].Bytes }
	n := int64(0)
	for _, r := range runs {
		n += bytes(r)
	}
	b := make([]byte, n)
	if err := w.Group.Recv(ctx, from, tag, b); err != nil {
		return err
	}
	for _, r := range runs {
		w.Memory.Store(r.Array, r.From, r.N, b[:bytes(r)])
		b = b[bytes(r):]
	}
	return nil
}

// total has the first worker know of all workers' sums.
func (w *Worker) total(ctx context.Context, pass int, sums []float64) error {
	b := make([]byte, 8*len(sums))
	if w.Group.Rank() > 0 {
		for i, x := range sums {
			binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(x))
		}
		return w.Group.Send(ctx, 0, sumsTag, b)
	}
	for rank := 1; rank < w.Workers; rank++ {
		if err := w.Group.Recv(ctx, rank, sumsTag, b); err != nil {
			return err
		}
		for i := range sums {
			sums[i] += math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		}
	}
	if w.Total != nil {
		w.Total(pass, sums)
	}
	return nil
}
