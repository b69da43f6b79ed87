package calibrate

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cpu"
	"github.com/gomem/gomem/internal/trace"
	"github.com/gomem/gomem/space"
)

// stage is a CPU device on which operations run one after the other as in a step.
type stage struct {
	threads int
	device  *cpu.Device
	compute device.Stream
	room    *room
	data    source
	events  []trace.Event // of the run under way
}

// newStage opens a device with so many bytes, which are taken as they are touched. If
// each operation is to be timed, it tells of them.
func newStage(threads int, bytes int64, timed bool) (*stage, error) {
	s := &stage{threads: threads, data: newSource()}
	o := cpu.Options{Threads: threads}
	if timed {
		o.Listener = func(e trace.Event) { s.events = append(s.events, e) }
	}
	var err error
	s.device, err = cpu.Open(o)
	if err != nil {
		return nil, err
	}
	memory, err := s.device.Alloc(space.Device, bytes)
	if err == nil {
		s.compute, err = s.device.Stream("compute", space.Compute)
	}
	if err != nil {
		return nil, errors.Join(err, s.device.Close())
	}
	s.room = newRoom(memory, bytes)
	return s, nil
}

func (s *stage) close() error { return s.device.Close() }

// trial is a node that can run.
type trial struct {
	want
	launch device.Launch
	given  []int // operands that no operation before it has made
	task   device.Task
	times  []time.Duration
}

// prepare gives a node operands and runs it, which touches the memory. Results of
// operations that were prepared are read where those left them; other operands get
// data that the kernel accepts.
func (s *stage) prepare(w want, step int, u uses) (*trial, error) {
	t := &trial{want: w, launch: device.Launch{Engine: space.Compute, Step: step,
		Name: w.node.Name, What: w.node.OpName(), Op: w.node.Op}}
	if err := s.room.seat(t, u); err != nil {
		return nil, err
	}
	var err error
	if t.task, err = s.device.Launch(t.launch); err != nil {
		return nil, err
	}
	for _, i := range t.given {
		if v := w.node.In[i]; !exact(v.Type()) {
			if err := s.data.noise(v, t.launch.In[i].Region); err != nil {
				return nil, err
			}
		}
	}
	return t, s.settle(t)
}

// settle finds what numbers the kernel accepts: lengths, ids and labels have limits
// that types do not say. The last leaf is settled first, since operations have the
// lengths of a list after the list.
func (s *stage) settle(t *trial) error {
	if s.try(t) == nil {
		return nil
	}
	leaves := numbered(t.node)
	for _, leaf := range leaves {
		s.data.below[leaf] = 1
	}
	if err := s.try(t); err != nil {
		return fmt.Errorf("%s: %w", t.node.Name, err)
	}
	for _, leaf := range slices.Backward(leaves) {
		most := sort.Search(maxNumber, func(n int) bool {
			s.data.below[leaf] = int32(n + 1)
			return s.try(t) != nil
		})
		s.data.below[leaf] = int32(max(1, most))
	}
	return s.try(t)
}

// try runs the task once with the numbers as they are.
func (s *stage) try(t *trial) error {
	for _, i := range t.given {
		v := t.node.In[i]
		if !exact(v.Type()) {
			continue
		}
		x, err := s.data.value(v)
		if err != nil {
			return err
		}
		r := t.launch.In[i].Region
		if err := r.Mem.Write(r.Off, x.Data); err != nil {
			return err
		}
	}
	return s.run(t.task)
}

// run runs tasks one after the other; events says when.
func (s *stage) run(tasks ...device.Task) error {
	s.events = s.events[:0]
	s.compute.Run(tasks...)
	err := s.compute.Sync()
	s.device.Reset()
	return err
}

// rounds is how often a sequence of operations is timed, at most.
const rounds = 5

// time runs trials in turn, again and again until the time is over, and notes what
// each takes each time. It returns those that ran: an operation that fails now though
// it did not alone, because it reads what another has left, is left out.
func (s *stage) time(trials []*trial, end time.Time) ([]*trial, error) {
	for round := 0; round < rounds && (round == 0 || time.Now().Before(end)); {
		var tasks []device.Task
		for _, t := range trials {
			tasks = append(tasks, t.task)
		}
		err := s.run(tasks...)
		if failed, ok := errors.AsType[*device.Error](err); ok {
			trials = slices.DeleteFunc(trials, func(t *trial) bool {
				return t.launch.Step == failed.Step
			})
			continue
		}
		if err != nil {
			return nil, err
		}
		for i, e := range s.events {
			trials[i].times = append(trials[i].times, e.End-e.Start)
		}
		round++
	}
	return trials, nil
}

// median is the middle one.
func median(times []time.Duration) time.Duration {
	times = slices.Sorted(slices.Values(times))
	return times[len(times)/2]
}
