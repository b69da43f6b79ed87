// Package null is a device that runs nothing. Its memories have sizes but no
// bytes; tasks only move the high-water marks. Plans of any size run on it, so
// that the accounting of a model that fits no machine can be checked.
package null

import (
	"fmt"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/plan/space"
)

// Device counts.
type Device struct {
	streams int
	fault   device.Fault
}

// Open makes a device.
func Open() *Device { return &Device{} }

// Alloc makes a memory without bytes, of any space.
func (d *Device) Alloc(s space.ID, bytes int64) (device.Memory, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("null device: there are no %d bytes of %s memory", bytes, s)
	}
	return &memory{device: d, space: s, bytes: bytes}, nil
}

// Stream makes a stream that is always done, of any engine.
func (d *Device) Stream(name string, e space.Engine) (device.Stream, error) {
	d.streams++
	return &stream{device: d, name: name, engine: e, id: d.streams - 1}, nil
}

// Launch checks the operands, and that the reference has a kernel.
func (d *Device) Launch(l device.Launch) (device.Task, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if _, err := kernel.Lookup(kernel.CPU, l.Op); err != nil {
		return nil, err
	}
	t := &task{device: d, engine: l.Engine, step: l.Step, name: l.Name, what: l.What}
	for _, list := range [][]device.Operand{l.In, l.Out} {
		for _, o := range list {
			t.touched = append(t.touched, o.Region)
		}
	}
	if l.Scratch.Bytes > 0 {
		t.touched = append(t.touched, l.Scratch)
	}
	return t, d.owns(t.touched)
}

// Copy checks both ends.
func (d *Device) Copy(c device.Copy) (device.Task, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	t := &task{device: d, engine: c.Engine, step: c.Step, name: c.Name, what: c.What,
		touched: []device.Region{c.Dst, c.Src}}
	return t, d.owns(t.touched)
}

// Call checks the regions. What it would call is never called.
func (d *Device) Call(c device.Call) (device.Task, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	t := &task{device: d, engine: c.Engine, step: c.Step, name: c.Name, what: c.What,
		touched: append([]device.Region{c.Data}, c.In...)}
	return t, d.owns(t.touched)
}

// owns reports a region of a memory that another device made.
func (d *Device) owns(regions []device.Region) error {
	for _, r := range regions {
		if m, ok := r.Mem.(*memory); !ok || m.device != d {
			return fmt.Errorf("memory %T is not this device's", r.Mem)
		}
	}
	return nil
}

// Err is the error since Open or Reset.
func (d *Device) Err() error { return d.fault.Err() }

// Stop skips what has not begun.
func (d *Device) Stop(cause error) { d.fault.Set(cause) }

// Reset lets tasks run again.
func (d *Device) Reset() { d.fault.Clear() }

// Close does nothing.
func (d *Device) Close() error { return nil }

// task is the regions that a task touches.
type task struct {
	device     *Device
	engine     space.Engine
	step       int
	name, what string
	touched    []device.Region
}

type memory struct {
	device      *Device
	space       space.ID
	bytes, used int64
}

func (m *memory) Space() space.ID { return m.space }
func (m *memory) Bytes() int64    { return m.bytes }
func (m *memory) Used() int64     { return m.used }
func (m *memory) ResetUsed()      { m.used = 0 }

func (m *memory) Write(off int64, data []byte) error {
	r := device.Region{Mem: m, Off: off, Bytes: int64(len(data))}
	if err := r.Check(); err != nil {
		return err
	}
	m.used = max(m.used, off+r.Bytes)
	return nil
}

// Read leaves data as it is.
func (m *memory) Read(off int64, data []byte) error { return m.Write(off, data) }

type stream struct {
	device *Device
	name   string
	engine space.Engine
	id     int
	begun  uint64
}

func (s *stream) Run(tasks ...device.Task) {
	for _, t := range tasks {
		if !s.device.fault.Failed() {
			s.run(t)
		}
	}
}

func (s *stream) run(given device.Task) {
	t, ok := given.(*task)
	if !ok || t.device != s.device {
		s.device.Stop(fmt.Errorf("stream %s: task %T is not this device's", s.name, given))
		return
	}
	if err := device.Misplaced(t.engine, s.name, s.engine); err != nil {
		s.device.Stop(&device.Error{Step: t.step, Name: t.name, What: t.what, Err: err})
		return
	}
	s.begun++
	for _, r := range t.touched {
		m := r.Mem.(*memory)
		m.used = max(m.used, r.Off+r.Bytes)
	}
}

func (s *stream) Record() device.Event { return device.Event{Stream: s.id, Seq: s.begun} }

func (s *stream) Wait(device.Event) {}

func (s *stream) Sync() error { return s.device.Err() }

func (s *stream) Begun() uint64 { return s.begun }
