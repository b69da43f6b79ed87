//go:build linux && amd64 && !nocuda

package cuda

import (
	"errors"
	"fmt"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cuda/driver"
)

// issue gives the GPU what its streams are to do, until the queue is closed.
func (d *Device) issue() {
	if unbind, err := d.gpu.Bind(); err != nil {
		d.fault.Set(err) // no task begins, and nobody waits for one
	} else {
		defer unbind()
	}
	var all []*stream
	for c := range d.queue {
		if s := c.stream; s != nil {
			if s.pending == nil {
				all = append(all, s)
			}
			s.pending = append(s.pending, c)
		}
		for more := true; more; {
			more = false
			for _, s := range all {
				more = s.advance() || more
			}
		}
	}
}

// advance issues commands until one must wait for what is not issued yet, or for the host. It
// reports whether it issued any.
func (s *stream) advance() bool {
	n := 0
	for _, c := range s.pending {
		if !s.do(c) {
			break
		}
		n++
	}
	// what is left moves to the front, so that the slice stays as it is; it is never nil
	left := copy(s.pending, s.pending[n:])
	clear(s.pending[left:])
	s.pending = s.pending[:left]
	return n > 0
}

// do issues a command, or reports that it must wait.
func (s *stream) do(c command) bool {
	switch {
	case c.on != nil:
		ok, err := c.on.pass(s, c.seq)
		if err != nil {
			s.fail(err)
		}
		return ok
	case c.record > 0:
		s.record(c.record)
	default:
		s.run(c.tasks)
	}
	return true
}

// run issues tasks until there is an error, on any stream.
func (s *stream) run(tasks []device.Task) {
	for len(tasks) > 0 && !s.device.fault.Failed() {
		n, graph := s.together(tasks)
		if !graph || !s.replay(tasks[:n]) {
			s.each(tasks[:n])
		}
		tasks = tasks[n:]
	}
}

// each issues tasks one by one.
func (s *stream) each(tasks []device.Task) {
	for _, given := range tasks {
		if s.device.fault.Failed() {
			return
		}
		t, ok := given.(*task)
		if !ok || t.place != s.place {
			s.device.fault.Set(s.refuse(given))
			return
		}
		s.begun.Add(1)
		s.last.Store(t)
		err := s.timed(t, t.run)
		if bad, ok := errors.AsType[*dataError](err); ok {
			s.device.fault.Set(t.error(bad.err))
		} else if err != nil {
			s.fail(err)
		}
	}
}

// run issues a task.
func (t *task) run(s *stream) error {
	t.touch()
	return t.give(s)
}

// touch notes what of memories the task touches.
func (t *task) touch() {
	for _, m := range t.touched {
		m.mem.Touch(m.end)
	}
}

// give gives the GPU what the task is made of.
func (t *task) give(s *stream) error {
	for _, p := range t.parts {
		if err := p(s); err != nil {
			return err
		}
	}
	return nil
}

// refuse is the error of a task that is not for this stream.
func (s *stream) refuse(given device.Task) error {
	t, ok := given.(*task)
	if !ok || t.place.device != s.device {
		return fmt.Errorf("stream %s: task %T is not this device's", s.name, given)
	}
	return t.error(device.Misplaced(t.place.engine, s.name, s.place.engine))
}

// record marks a point by an event, and reuses those of points that have happened. A GPU
// that refuses events has stopped: then nobody need wait.
func (s *stream) record(seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.marks) > 0 {
		happened, err := s.marks[0].event.Happened()
		if err != nil || !happened {
			break
		}
		s.free = append(s.free, s.marks[0].event)
		s.marks = s.marks[1:]
	}
	if err := s.markNow(seq); err != nil {
		s.fail(err)
	}
	s.issued = seq
	s.moved.Broadcast()
}

func (s *stream) markNow(seq uint64) (err error) {
	var e *driver.Event
	if n := len(s.free); n > 0 {
		e, s.free = s.free[n-1], s.free[:n-1]
	} else if e, err = s.device.gpu.Event(false); err != nil {
		return err
	}
	s.marks = append(s.marks, numbered{seq, e})
	return s.cu.Record(e)
}
