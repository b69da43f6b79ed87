//go:build linux && amd64 && !nocuda

package cuda

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cpu"
	"github.com/gomem/gomem/internal/device/cuda/driver"
	"github.com/gomem/gomem/plan/space"
)

// queueLength is how far the goroutine that drives the device may run ahead of the one that
// issues.
const queueLength = 1024

// command is what a stream of the GPU is to do: run tasks, mark a point or wait for one. With
// no stream it only wakes the goroutine that issues.
type command struct {
	stream *stream
	tasks  []device.Task
	record uint64 // the number of the point
	on     point
	seq    uint64 // the number of the point to wait for
}

// point is a stream that can be waited for by the GPU's.
type point interface {
	// pass reports whether a stream of the GPU may go on after a point: it has happened,
	// or the stream was told to wait for it.
	pass(s *stream, seq uint64) (bool, error)
}

// stream is a stream of the GPU.
type stream struct {
	device *Device
	name   string
	id     int
	place  *place
	cu     *driver.Stream
	given  uint64 // points so far
	quiet  bool   // nothing was given since the last settling
	begun  atomic.Uint64

	// of the goroutine that issues
	pending []command
	times   []timed
	last    atomic.Pointer[task]

	segments map[*task]*segment // by their first tasks
	replays  replays

	products  *driver.Products  // of a stream that computes
	convolver *driver.Convolver // the same, if there is a library
	workspace uint64            // in which they are made

	mu     sync.Mutex
	moved  *sync.Cond
	issued uint64 // points
	marks  []numbered
	free   []*driver.Event
}

// numbered is an event that marks a point.
type numbered struct {
	seq   uint64
	event *driver.Event
}

// newStream starts a stream of the GPU.
func (d *Device) newStream(name string, p *place) (device.Stream, error) {
	s := &stream{device: d, name: name, id: len(d.streams), place: p, quiet: true,
		segments: map[*task]*segment{}}
	s.moved = sync.NewCond(&s.mu)
	err := d.bound(func() (err error) {
		if s.cu, err = d.gpu.Stream(); err != nil {
			return err
		}
		if err := d.clock.start(d, s.cu); err != nil || p.engine != space.Compute {
			return err
		}
		if s.workspace, err = d.take(d.options.Workspace); err != nil {
			return err
		}
		s.products, err = d.blas.Products(s.cu, s.workspace, d.options.Workspace)
		if err == nil && d.dnn != nil {
			s.convolver, err = d.dnn.Convolver(s.cu)
		}
		if err == nil {
			err = s.warm()
		}
		return d.taking(err)
	})
	if s.cu != nil {
		d.streams = append(d.streams, s) // Close ends it, also if it is not whole
	}
	if err != nil {
		return nil, fmt.Errorf("cuda device: stream %s: %w", name, err)
	}
	return s, nil
}

// warm has a product of each type computed: what the library loads for the first of them takes
// memory, which is to be missing now rather than in a step.
func (s *stream) warm() error {
	const room = 64
	at, err := s.device.take(3 * room)
	if err != nil {
		return err
	}
	err = s.device.gpu.Clear(at, 3*room)
	for _, half := range []bool{false, true} {
		g := &driver.Gemm{M: 1, N: 1, K: 1, Alpha: 1, A: at, B: at + room, C: at + 2*room, LdA: 1,
			LdB: 1, LdC: 1, HalfIn: half, HalfOut: half}
		if g.Prepare(); err == nil {
			err = s.products.Run(g)
		}
	}
	if err == nil {
		err = s.device.gpu.Sync()
	}
	if freed := s.device.gpu.Release(at); err == nil {
		err = freed
	}
	return err
}

// Run queues tasks.
func (s *stream) Run(tasks ...device.Task) { s.put(command{tasks: tasks}) }

// Record marks a point.
func (s *stream) Record() device.Event {
	s.given++
	s.put(command{record: s.given})
	return device.Event{Stream: s.id, Seq: s.given}
}

// Wait queues the wait for a point of a stream.
func (s *stream) Wait(e device.Event) {
	if e.Stream != s.id {
		s.put(command{on: s.device.streams[e.Stream].(point), seq: e.Seq})
	}
}

func (s *stream) put(c command) {
	s.quiet = false
	c.stream = s
	s.device.queue <- c
}

// Sync waits until the GPU has done what the stream was given.
func (s *stream) Sync() error {
	s.settle()
	return s.device.Err()
}

// settle waits, and tells of the tasks that were done.
func (s *stream) settle() {
	if s.quiet {
		return
	}
	s.await(s.Record().Seq)
	s.quiet = true
	s.tell()
}

// Begun is the number of tasks that were issued.
func (s *stream) Begun() uint64 { return s.begun.Load() }

// await returns when the GPU has passed a point.
func (s *stream) await(seq uint64) {
	s.mu.Lock()
	for s.issued < seq {
		s.moved.Wait()
	}
	e := s.mark(seq)
	s.mu.Unlock()
	if e == nil {
		return
	}
	// The event may be used again meanwhile, for a later point: that was issued, so it
	// happens without anybody's help.
	if err := s.device.bound(e.Await); err != nil {
		s.fail(err)
	}
}

// mark is the event of a point or of the next one that has any; nil if all that were issued
// up to there have happened.
func (s *stream) mark(seq uint64) *driver.Event {
	for _, m := range s.marks {
		if m.seq >= seq {
			return m.event
		}
	}
	return nil
}

// fail makes an error of the GPU that of the task issued last.
func (s *stream) fail(err error) {
	err = s.device.taking(err)
	if t := s.last.Load(); t != nil {
		err = t.error(err)
	}
	s.device.broken.Store(true)
	s.device.fault.Set(err)
}

// pass makes a stream of the GPU wait for a point, once that is issued.
func (s *stream) pass(waits *stream, seq uint64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.issued < seq {
		return false, nil
	}
	if e := s.mark(seq); e != nil {
		return true, waits.cu.Wait(e)
	}
	return true, nil
}

// close ends the stream, which is settled.
func (s *stream) close() error {
	errs := []error{s.closeGraphs()}
	if s.products != nil {
		errs = append(errs, s.products.Close())
	}
	if s.convolver != nil {
		errs = append(errs, s.convolver.Close())
	}
	if s.workspace != 0 {
		errs = append(errs, s.device.gpu.Release(s.workspace))
	}
	for _, m := range s.marks {
		errs = append(errs, m.event.Close())
	}
	for _, e := range s.free {
		errs = append(errs, e.Close())
	}
	return errors.Join(append(errs, s.cu.Close())...)
}

// hostStream is a stream of the host.
type hostStream struct {
	cpu.Queue
	device *Device
	id     int           // the device's
	inner  int           // that of the host's part
	done   atomic.Uint64 // the last point that has happened
}

// Record marks a point, of which the goroutine that issues is told when it happens.
func (s *hostStream) Record() device.Event {
	seq := s.Queue.Record().Seq + 1
	s.Do(func() {
		s.done.Store(seq)
		s.device.queue <- command{}
	})
	return device.Event{Stream: s.id, Seq: seq}
}

// Wait queues the wait for a point of a stream.
func (s *hostStream) Wait(e device.Event) {
	switch on := s.device.streams[e.Stream].(type) {
	case *stream:
		s.Do(func() { on.await(e.Seq) })
	case *hostStream:
		s.Queue.Wait(device.Event{Stream: on.inner, Seq: e.Seq})
	}
}

// pass holds a stream of the GPU back until a point has happened.
func (s *hostStream) pass(_ *stream, seq uint64) (bool, error) { return s.done.Load() >= seq, nil }
