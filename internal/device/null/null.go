// Package null is a device that runs nothing. Its memories have sizes but no
// bytes; tasks only move the high-water marks. Plans of any size run on it, so
// that the accounting of a model that fits no machine can be checked.
package null

import (
	"context"
	"fmt"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/space"
)

// Device counts.
type Device struct {
	streams int
	tasks   int
}

// Open makes a device.
func Open() *Device { return &Device{} }

// Kind is kernel.CPU: the null device accepts what the reference does.
func (d *Device) Kind() kernel.Kind { return kernel.CPU }

// Alloc makes a memory without bytes.
func (d *Device) Alloc(name string, bytes int64) (device.Memory, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("null device: %d bytes of %s memory", bytes, name)
	}
	return &memory{bytes: bytes}, nil
}

// Stream makes a stream that is always done.
func (d *Device) Stream(string, space.Engine) (device.Stream, error) {
	d.streams++
	return &stream{device: d, id: d.streams - 1}, nil
}

// Launch checks that there is a kernel and that the operands are inside their
// memories.
func (d *Device) Launch(l device.Launch) (device.Task, error) {
	if _, err := kernel.Lookup(d.Kind(), l.Op); err != nil {
		return nil, err
	}
	t := task{}
	for _, list := range [][]device.Operand{l.In, l.Out} {
		for _, o := range list {
			if o.Type.Bytes() != o.Bytes {
				return nil, fmt.Errorf("%s in a region of %d bytes", o.Type, o.Bytes)
			}
			t = append(t, o.Region)
		}
	}
	if l.Scratch.Bytes > 0 {
		t = append(t, l.Scratch)
	}
	return t, t.check()
}

// Copy checks that both ends are inside their memories.
func (d *Device) Copy(c device.Copy) (device.Task, error) {
	t := task{c.Dst, c.Src}
	if c.Dst.Bytes != c.Src.Bytes {
		return nil, fmt.Errorf("copy of %d bytes to %d", c.Src.Bytes, c.Dst.Bytes)
	}
	return t, t.check()
}

// Err is always nil.
func (d *Device) Err() error { return nil }

// Close does nothing.
func (d *Device) Close() error { return nil }

// Tasks is the number of tasks run so far.
func (d *Device) Tasks() int { return d.tasks }

// task is the regions that a task touches.
type task []device.Region

func (t task) check() error {
	for _, r := range t {
		if err := device.CheckRegion(r); err != nil {
			return err
		}
	}
	return nil
}

type memory struct{ bytes, used int64 }

func (m *memory) Bytes() int64 { return m.bytes }
func (m *memory) Used() int64  { return m.used }
func (m *memory) ResetUsed()   { m.used = 0 }

func (m *memory) Write(off int64, data []byte) error {
	r := device.Region{Mem: m, Off: off, Bytes: int64(len(data))}
	if err := device.CheckRegion(r); err != nil {
		return err
	}
	m.used = max(m.used, off+r.Bytes)
	return nil
}

// Read leaves data as it is.
func (m *memory) Read(off int64, data []byte) error { return m.Write(off, data) }

type stream struct {
	device *Device
	id     int
	queued uint64
}

func (s *stream) Run(tasks ...device.Task) {
	for _, t := range tasks {
		s.queued++
		s.device.tasks++
		for _, r := range t.(task) {
			m := r.Mem.(*memory)
			m.used = max(m.used, r.Off+r.Bytes)
		}
	}
}

func (s *stream) Record() device.Event { return device.Event{Stream: s.id, Seq: s.queued} }

func (s *stream) Wait(device.Event) {}

func (s *stream) Sync(ctx context.Context) error { return context.Cause(ctx) }
