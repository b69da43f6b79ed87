// Package sim is a device with a virtual clock. It runs nothing, like null, whose
// checks and high-water marks it has; but every task takes the time of a price list,
// on its stream, after what the stream waits for. So a plan can be timed, traced and
// held to a memory limit for a machine that one does not have.
//
// A task is over when it is queued: the goroutine that drives the device gives tasks
// in an order in which every event has been recorded before it is waited for, so the
// time at which each begins is known at once. Only Sync makes the driver wait: what
// is queued after it begins later on the virtual clock than what it waited for.
package sim

import (
	"fmt"
	"time"

	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/null"
	"github.com/gomem/gomem/plan/space"
)

// Options are the machine. The zero value has no limits and takes no time.
type Options struct {
	Launch   func(l device.Launch) time.Duration                // nil: nothing
	Copy     func(from, to space.ID, bytes int64) time.Duration // nil: nothing
	Limits   map[space.ID]int64                                 // bytes of each space; 0 is none
	Listener trace.Listener                                     // told of every task
}

// Device is a machine that only its clock tells from null.
type Device struct {
	*null.Device
	options Options
	taken   map[space.ID]int64 // bytes of each space
	now     time.Duration      // until when the driver has waited
	streams int
}

// Open makes a device, at time 0 of its clock.
func Open(o Options) *Device {
	if o.Launch == nil {
		o.Launch = func(device.Launch) time.Duration { return 0 }
	}
	if o.Copy == nil {
		o.Copy = func(space.ID, space.ID, int64) time.Duration { return 0 }
	}
	return &Device{Device: null.Open(), options: o, taken: map[space.ID]int64{}}
}

// Now is the time on the virtual clock until which the driver has waited.
func (d *Device) Now() time.Duration { return d.now }

// Alloc makes a memory without bytes, within the limit.
func (d *Device) Alloc(s space.ID, bytes int64) (device.Memory, error) {
	m, err := d.Device.Alloc(s, bytes)
	if err != nil {
		return nil, err
	}
	if free := d.options.Limits[s] - d.taken[s]; d.options.Limits[s] > 0 && bytes > free {
		return nil, fmt.Errorf("simulated device: %d bytes of %s memory: the limit is %d, of "+
			"which %d are free", bytes, s, d.options.Limits[s], free)
	}
	d.taken[s] += bytes
	return m, nil
}

// Stream makes a stream, idle since the driver waited last.
func (d *Device) Stream(name string, e space.Engine) (device.Stream, error) {
	s, err := d.Device.Stream(name, e)
	if err != nil {
		return nil, err
	}
	d.streams++
	return &stream{Stream: s, device: d, name: name, id: d.streams - 1}, nil
}

// task is null's with what it takes.
type task struct {
	device.Task
	takes time.Duration
	event trace.Event // without stream and times
}

// Launch prices an operation.
func (d *Device) Launch(l device.Launch) (device.Task, error) {
	t, err := d.Device.Launch(l)
	if err != nil {
		return nil, err
	}
	return &task{t, d.options.Launch(l), trace.Event{Step: l.Step, Name: l.Name, What: l.What}}, nil
}

// Copy prices a copy.
func (d *Device) Copy(c device.Copy) (device.Task, error) {
	t, err := d.Device.Copy(c)
	if err != nil {
		return nil, err
	}
	takes := d.options.Copy(c.Engine.Reads(), c.Engine.Writes(), c.Dst.Bytes)
	return &task{t, takes, trace.Event{Step: c.Step, Name: c.Name, What: c.What,
		Bytes: c.Dst.Bytes}}, nil
}

// Call prices what is called as the copy of its bytes from one space of its engine to the
// other.
func (d *Device) Call(c device.Call) (device.Task, error) {
	t, err := d.Device.Call(c)
	if err != nil {
		return nil, err
	}
	takes := d.options.Copy(c.Engine.Reads(), c.Engine.Writes(), c.Data.Bytes)
	return &task{t, takes, trace.Event{Step: c.Step, Name: c.Name, What: c.What,
		Bytes: c.Data.Bytes}}, nil
}

// stream is null's with a time until which it is busy.
type stream struct {
	device.Stream
	device *Device
	name   string
	id     int
	busy   time.Duration
}

// Run has null run the tasks, one by one, and moves the clock for those that began.
func (s *stream) Run(tasks ...device.Task) {
	for _, given := range tasks {
		t, ok := given.(*task)
		if !ok {
			s.Stream.Run(given) // which refuses it
			continue
		}
		before := s.Begun()
		if s.Stream.Run(t.Task); s.Begun() > before {
			s.advance(t)
		}
	}
}

func (s *stream) advance(t *task) {
	start := max(s.busy, s.device.now)
	s.busy = start + t.takes
	if s.device.options.Listener == nil {
		return
	}
	e := t.event
	e.Stream, e.Start, e.End = s.name, start, s.busy
	s.device.options.Listener(e)
}

// Record is the time at which everything queued so far is done; an event's number is
// that, in nanoseconds.
func (s *stream) Record() device.Event { return device.Event{Stream: s.id, Seq: uint64(s.busy)} }

// Wait begins what comes later no sooner than at the event's time.
func (s *stream) Wait(e device.Event) { s.busy = max(s.busy, time.Duration(e.Seq)) }

// Sync moves the driver on to when the stream is done.
func (s *stream) Sync() error {
	s.device.now = max(s.device.now, s.busy)
	return s.Stream.Sync()
}
