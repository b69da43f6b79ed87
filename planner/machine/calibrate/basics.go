package calibrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
)

// The sizes of what the machine's rates are measured by: a product that fits the
// caches, a sum that does not, one element, and a copy.
const (
	side      = 512
	elements  = 16 << 20
	copyBytes = 64 << 20
)

// basics measures the rates that price what was never timed.
func (m *Machine) basics(ctx context.Context) error {
	s, err := newStage(m.target, 5*copyBytes, true)
	if err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	rates, gap, sure, err := s.rates()
	if err == nil {
		err = context.Cause(ctx)
	}
	speed, errCopy := s.copyRate()
	if err := errors.Join(err, errCopy, s.close()); err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	shared, err := m.target.shared(speed)
	if err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	m.known = record{When: time.Now().UTC().Truncate(time.Second), Samples: map[string]sample{},
		Basics: sure, Gap: gap, Shared: shared,
		Profile: machine.Profile{Name: "local", Device: rates, Host: rates,
			In: speed, Out: speed, DiskRead: diskRate, DiskWrite: diskRate, ElementBytes: 4}}
	return nil
}

// diskRate is a guess, of a disk that nobody has measured: see [Machine.Disk].
const diskRate = 1e9

// rates are the machine's, the best of a few rounds; and gap is what an operation among
// others takes longer than its own clock says, in nanoseconds.
func (s *stage) rates() (r machine.Rates, gap float64, sure trust, err error) {
	g := graph.New()
	square := g.Input("square", tensor.Of(tensor.F32, side, side))
	long, other := g.Input("long", tensor.Of(tensor.F32, elements)),
		g.Input("other", tensor.Of(tensor.F32, elements))
	one := g.Input("one", tensor.Of(tensor.F32))
	values := []graph.Value{ops.MatMul(square, square), ops.Add(long, other), ops.Add(one, one)}
	if err := g.Err(); err != nil {
		return r, 0, sure, err
	}
	var trials []*trial
	for i, v := range values {
		t, err := s.prepare(want{node: v.Node}, i, newUses(nil, nil))
		if err != nil {
			return r, 0, sure, err
		}
		trials = append(trials, t)
	}
	if trials, err = s.time(trials, time.Now().Add(time.Second)); err != nil {
		return r, 0, sure, err
	}
	inside, err := s.inside(trials[2].task)
	if err != nil {
		return r, 0, sure, err
	}
	if gap, err = s.gap(values[2].Node, inside); err != nil {
		return r, 0, sure, err
	}
	sure.Rounds = len(trials[0].times)
	for _, t := range trials[:2] {
		sure.Noise = max(sure.Noise, float64(median(t.times))/float64(max(1, slices.Min(t.times))))
	}
	small := slices.Min(trials[2].times)
	per := func(n int64, t *trial) float64 {
		return float64(n) / max(slices.Min(t.times)-small, time.Microsecond).Seconds()
	}
	return machine.Rates{FLOPs: per(values[0].Node.Cost().FLOPs, trials[0]),
		Bytes:  per(values[1].Node.Cost().Bytes, trials[1]),
		Launch: max(1, float64(small)+gap)}, gap, sure, nil
}

// gap is how much longer an operation takes among others than its own clock says: what
// is between two of them, less what looking at the clock takes.
func (s *stage) gap(n *graph.Node, inside []time.Duration) (float64, error) {
	quiet, err := newStage(s.target, 1<<12, false)
	if err != nil {
		return 0, err
	}
	t, err := quiet.prepare(want{node: n}, 0, newUses(nil, nil))
	many := s.target.many
	var times []time.Duration
	for i := 0; i < rounds && err == nil; i++ {
		start := time.Now()
		err = quiet.run(slices.Repeat([]device.Task{t.task}, many)...)
		times = append(times, time.Since(start))
	}
	if err := errors.Join(err, quiet.close()); err != nil {
		return 0, err
	}
	return float64(float64(median(times))/float64(many)) - float64(median(inside)), nil
}

// inside is how long each of many runs of a task takes by its own clock.
func (s *stage) inside(task device.Task) ([]time.Duration, error) {
	const many = 512
	err := s.run(slices.Repeat([]device.Task{task}, many)...)
	var times []time.Duration
	for _, e := range s.events {
		times = append(times, e.End-e.Start)
	}
	return times, err
}

// copyIn is a copy of so many bytes to the device's room, and a stream of a name for it.
func (s *stage) copyIn(name string, bytes int64) (device.Stream, device.Task, error) {
	return s.copyTo(device.Region{Mem: s.room.memory, Bytes: bytes}, name)
}

// copyTo is copyIn to a region.
func (s *stage) copyTo(to device.Region, name string) (device.Stream, device.Task, error) {
	host, err := s.device.Alloc(space.Host, to.Bytes)
	if err != nil {
		return nil, nil, err
	}
	in, err := s.device.Stream(name, space.CopyIn)
	if err != nil {
		return nil, nil, err
	}
	task, err := s.device.Copy(device.Copy{Engine: space.CopyIn, What: "stage",
		Dst: to, Src: device.Region{Mem: host, Bytes: to.Bytes}})
	return in, task, err
}

// copyRate is how many bytes a second a copy engine copies, at its best; both directions
// are the same here.
func (s *stage) copyRate() (float64, error) {
	in, task, err := s.copyIn("in", copyBytes)
	if err != nil {
		return 0, err
	}
	var times []time.Duration
	for i := range rounds + 1 {
		start := time.Now()
		in.Run(task)
		if err := in.Sync(); err != nil {
			return 0, err
		}
		if i > 0 { // the first touches the memory
			times = append(times, time.Since(start))
		}
	}
	return copyBytes / slices.Min(times).Seconds(), nil
}
