//go:build linux && amd64 && !nocuda

package cuda

import (
	"errors"
	"time"

	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/internal/device/cuda/driver"
)

// clock relates the times of the GPU's events to the device's. It is still if nobody
// listens. The driver tells time between two events in milliseconds of 24 bits, so times are
// told from an event of the same step.
type clock struct {
	zero *driver.Event
	at   time.Duration // of zero, since the device was opened
}

// move has times told from another event, which is the clock's from then on.
func (c *clock) move(zero *driver.Event) error {
	gone, err := zero.Since(c.zero)
	if err != nil {
		return err
	}
	old := c.zero
	c.zero, c.at = zero, c.at+gone
	return old.Close()
}

// timed is a task between two events.
type timed struct {
	task       *task
	start, end *driver.Event
}

// start marks zero in the first stream that there is.
func (c *clock) start(d *Device, s *driver.Stream) (err error) {
	if d.options.Listener == nil || c.zero != nil {
		return nil
	}
	if c.zero, err = d.gpu.Event(true); err != nil {
		return err
	}
	if err := s.Record(c.zero); err != nil {
		return err
	}
	err = c.zero.Await()
	c.at = time.Since(d.opened)
	return err
}

// timed runs a task, between two events if somebody listens.
func (s *stream) timed(t *task, run func(*stream) error) error {
	if s.device.options.Listener == nil {
		return run(s)
	}
	var e [2]*driver.Event
	var errs [5]error
	e[0], errs[0] = s.device.gpu.Event(true)
	e[1], errs[1] = s.device.gpu.Event(true)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	errs[2] = s.cu.Record(e[0])
	errs[3] = run(s)
	errs[4] = s.cu.Record(e[1])
	s.times = append(s.times, timed{t, e[0], e[1]})
	return errors.Join(errs[:]...)
}

// tell tells the listener of the tasks of a stream that is settled.
func (s *stream) tell() {
	d := s.device
	if len(s.times) == 0 {
		return
	}
	err := d.bound(func() error {
		if err := d.clock.move(s.times[0].start); err != nil {
			return err
		}
		for i, t := range s.times {
			start, err1 := t.start.Since(d.clock.zero)
			end, err2 := t.end.Since(d.clock.zero)
			err3 := t.end.Close()
			if i > 0 { // the first start is the clock's
				err3 = errors.Join(err3, t.start.Close())
			}
			if err := errors.Join(err1, err2, err3); err != nil {
				return err
			}
			d.options.Listener(trace.Event{Stream: s.name, Name: t.task.name, What: t.task.what,
				Step: t.task.step, Bytes: t.task.bytes, Start: d.clock.at + start,
				End: d.clock.at + end})
		}
		return nil
	})
	s.times = s.times[:0]
	if err != nil {
		s.fail(err)
	}
}

// close ends the event.
func (c *clock) close() error {
	if c.zero == nil {
		return nil
	}
	return c.zero.Close()
}
