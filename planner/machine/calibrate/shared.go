package calibrate

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device"
)

// products is how many products run beside copies, with a sum that no cache holds; copies take
// about half of their time.
const products = 4

// The part of a copy's time that operations lose is no less than this, since they share a
// processor, and no more: a measurement beyond was of something else.
const leastShared, mostShared = 0.01, 4

// beside is a device on which operations run with copies beside them.
type beside struct {
	*stage
	in    device.Stream
	copy  device.Task
	tasks []device.Task // operations
}

// shared is what part of a copy's time operations lose that run beside it, if copies have so many
// bytes a second alone: by the best of a few rounds, in which operations run without and with.
func (t target) shared(speed float64) (float64, error) {
	s, err := newStage(t, 5*copyBytes, false)
	if err != nil {
		return 0, err
	}
	b, part := &beside{stage: s}, 0.0
	if err = b.prepare(); err == nil {
		part, err = b.lost(copyBytes / speed)
	}
	if err := errors.Join(err, s.close()); err != nil {
		return 0, err
	}
	return min(max(part, leastShared), mostShared), nil
}

// prepare makes the tasks, and runs each once.
func (b *beside) prepare() error {
	g := graph.New()
	square := g.Input("square", tensor.Of(tensor.F32, side, side))
	long := g.Input("long", tensor.Of(tensor.F32, elements))
	for i, v := range []graph.Value{ops.MatMul(square, square), ops.Add(long, long)} {
		t, err := b.stage.prepare(want{node: v.Node}, i, newUses(nil, nil))
		if err != nil {
			return err
		}
		b.tasks = append(b.tasks, slices.Repeat([]device.Task{t.task}, []int{products, 1}[i])...)
	}
	in, task, err := b.copyTo(b.room.fresh(copyBytes), "in")
	if err != nil {
		return err
	}
	b.in, b.copy = in, task
	b.in.Run(task)
	return b.in.Sync()
}

// lost is the part of their time that copies take from operations, each of which takes so many
// seconds alone.
func (b *beside) lost(each float64) (float64, error) {
	alone, err := b.took(0)
	if err != nil {
		return 0, err
	}
	copies, with := max(1, int(alone.Seconds()/2/each)), time.Duration(math.MaxInt64)
	for range rounds {
		beside, err := b.took(copies)
		if err != nil {
			return 0, err
		}
		again, err := b.took(0)
		if err != nil {
			return 0, err
		}
		with, alone = min(with, beside), min(alone, again)
	}
	return (with - alone).Seconds() / (float64(copies) * each), nil
}

// took is how long the operations take beside so many copies.
func (b *beside) took(copies int) (time.Duration, error) {
	start := time.Now()
	b.in.Run(slices.Repeat([]device.Task{b.copy}, copies)...)
	b.compute.Run(b.tasks...)
	err := b.compute.Sync()
	took := time.Since(start)
	return took, errors.Join(err, b.in.Sync())
}
