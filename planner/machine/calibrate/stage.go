package calibrate

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cpu"
	"github.com/gomem/gomem/plan/space"
)

// target is what is measured.
type target struct {
	open func(trace.Listener) (device.Device, error) // a nil listener is told nothing
	// scratch is the bytes of workspace of an operation there.
	scratch func(*graph.Node) int64
	// computedBy is what computes an operation there, as in plans of its graph.
	computedBy func(*graph.Node) string
	// trusts says that kernels take any numbers, so that the processor's have to say which
	// make sense.
	trusts bool
	many   int // short operations that take long enough to be timed together
}

// processor is the target that this machine's processor is.
func processor(threads int) target {
	return target{many: 4096, scratch: func(n *graph.Node) int64 { return n.Cost().Scratch },
		computedBy: func(*graph.Node) string { return "" },
		open: func(l trace.Listener) (device.Device, error) {
			d, err := cpu.Open(cpu.Options{Threads: threads, Listener: l})
			if err != nil {
				return nil, err // not d: a nil pointer in an interface is not nil
			}
			return d, nil
		}}
}

// stage is a device on which operations run one after the other as in a step.
type stage struct {
	target  target
	device  device.Device
	compute device.Stream
	room    *room
	data    source
	events  []trace.Event // of the run under way
}

// newStage opens a device with so many bytes, which are taken as they are touched. If
// each operation is to be timed, it tells of them.
func newStage(on target, bytes int64, timed bool) (*stage, error) {
	s := &stage{target: on, data: newSource()}
	var listener trace.Listener
	if timed {
		listener = func(e trace.Event) { s.events = append(s.events, e) }
	}
	var err error
	s.device, err = on.open(listener)
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
	s.room = newRoom(on, memory, bytes)
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
		Name: w.node.Name, What: w.node.OpName(), Op: w.node.Op,
		Library: s.target.computedBy(w.node)}}
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
	if s.target.trusts && slices.ContainsFunc(t.node.In, func(v graph.Value) bool {
		return exact(v.Type())
	}) {
		if _, err := s.data.computed(t.node); err != nil {
			return err
		}
	}
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
