package cpu

import (
	"fmt"
	"slices"
	"time"

	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/invariants"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/plan/space"
)

// task is a launch or a copy with everything resolved.
type task struct {
	place   *place // where it may run
	touched []mark // high-water marks that it raises

	step       int
	name, what string
	load       int64 // what it takes, as bytes that are moved in the same time, roughly

	fn   kernel.Func // launch
	op   any
	call kernel.Call
	junk [][]byte // written without being read: poisoned first, in debug builds

	bytes int64        // copied, or handed over
	copy  func() error // or the call; nil for a launch
}

// mark is the largest end of the regions of a task in one memory.
type mark struct {
	mem *device.Water
	end int64
}

// Launch resolves an operation's kernel and operands.
func (d *Device) Launch(l device.Launch) (device.Task, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	place, err := d.place(l.Engine)
	if err != nil {
		return nil, err
	}
	if l.Library != "" {
		return nil, fmt.Errorf("the plan has %s computed by %.60q: the processor has no such "+
			"library", l.What, l.Library)
	}
	t := &task{place: place, step: l.Step, name: l.Name, what: l.What, op: l.Op,
		load: min(l.Cost.Bytes, worthWake) + min(l.Cost.FLOPs, worthWake)}
	t.call.Pool = d.pool
	if t.fn, err = kernel.Lookup(kernel.CPU, l.Op); err != nil {
		return nil, err
	}
	for _, o := range l.In {
		data, err := t.take(o.Region)
		if err != nil {
			return nil, err
		}
		t.call.In = append(t.call.In, tensor.View{Type: o.Type, Data: data})
	}
	for _, o := range l.Out {
		data, err := t.take(o.Region)
		if err != nil {
			return nil, err
		}
		t.call.Out = append(t.call.Out, tensor.View{Type: o.Type, Data: data})
		inPlace := func(i device.Operand) bool { return i.Region == o.Region }
		if !slices.ContainsFunc(l.In, inPlace) {
			t.junk = append(t.junk, data)
		}
	}
	if l.Scratch.Bytes > 0 {
		if t.call.Scratch, err = t.take(l.Scratch); err != nil {
			return nil, err
		}
		t.junk = append(t.junk, t.call.Scratch)
	}
	return t, nil
}

// Copy resolves the two ends of a copy.
func (d *Device) Copy(c device.Copy) (device.Task, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	place, err := d.place(c.Engine)
	if err != nil {
		return nil, err
	}
	t := &task{place: place, step: c.Step, name: c.Name, what: c.What}
	dst, err := t.take(c.Dst)
	if err != nil {
		return nil, err
	}
	src, err := t.take(c.Src)
	t.bytes, t.copy = c.Dst.Bytes, func() error { copy(dst, src); return nil }
	t.load = min(t.bytes, worthWake)
	if m, ok := c.Src.Mem.(*disk); ok {
		t.load, t.copy = worthWake, func() error { return m.load(c.Src.Off, dst) }
	} else if m, ok := c.Dst.Mem.(*disk); ok {
		t.load, t.copy = worthWake, func() error { return m.store(c.Dst.Off, src) }
	}
	return t, err
}

// Call resolves the regions of a call.
func (d *Device) Call(c device.Call) (device.Task, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	t, err := d.calling(c)
	if err != nil {
		return nil, err
	}
	data, err := t.take(c.Data)
	if err != nil {
		return nil, err
	}
	var in [][]byte
	for _, r := range c.In {
		b, err := t.take(r)
		if err != nil {
			return nil, err
		}
		in = append(in, b)
	}
	t.copy = func() error {
		if c.Engine == space.Peer {
			return c.Do(d.fault.Done(), nil, nil)
		}
		if len(in) > 0 && c.In[0] != c.Data {
			copy(data, in[0])
		}
		return c.Do(d.fault.Done(), in, data)
	}
	return t, nil
}

// Calling is a call, which has been checked, about memory that another device has, and which that
// device does by a function.
func (d *Device) Calling(c device.Call, do func() error) (device.Task, error) {
	t, err := d.calling(c)
	if err != nil {
		return nil, err
	}
	t.copy = do
	return t, nil
}

// calling is the task of a call, without what it does.
func (d *Device) calling(c device.Call) (*task, error) {
	place, err := d.place(c.Engine)
	if err != nil {
		return nil, err
	}
	return &task{place: place, step: c.Step, name: c.Name, what: c.What, bytes: c.Data.Bytes,
		load: worthWake}, nil // it may wait for others
}

// Pull copies bytes of this or another such device.
func (d *Device) Pull(dst, src device.Region) error {
	from, ok := src.Mem.(*memory)
	if !ok || dst.Bytes != src.Bytes {
		return fmt.Errorf("cpu device: no copy of %d bytes of %T to %d", src.Bytes, src.Mem,
			dst.Bytes)
	}
	to, _, err := d.Window(dst)
	if err == nil {
		copy(to, from.data[src.Off:])
	}
	return err
}

// Clear zeroes bytes.
func (d *Device) Clear(dst device.Region) error {
	to, _, err := d.Window(dst)
	clear(to)
	return err
}

// error is err as this task's.
func (t *task) error(err error) error {
	return &device.Error{Step: t.step, Name: t.name, What: t.what, Err: err}
}

// take is the bytes of a region that the task touches.
func (t *task) take(r device.Region) ([]byte, error) {
	data, m, err := t.place.device.Window(r)
	if err != nil {
		return nil, err
	}
	for i := range t.touched {
		if t.touched[i].mem == m {
			t.touched[i].end = max(t.touched[i].end, r.Off+r.Bytes)
			return data, nil
		}
	}
	t.touched = append(t.touched, mark{m, r.Off + r.Bytes})
	return data, nil
}

// run does the task on the calling goroutine.
func (t *task) run(s *stream) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("kernel panicked: %v", p)
		}
	}()
	for _, m := range t.touched {
		m.mem.Touch(m.end)
	}
	listen := s.device.options.Listener
	var start time.Time
	if listen != nil || s.rate > 0 {
		start = time.Now()
	}
	if t.copy != nil {
		err = t.copy()
		s.throttle(start, t.bytes)
	} else {
		if invariants.Enabled {
			t.poison()
		}
		err = t.fn(t.op, &t.call)
	}
	if listen != nil {
		listen(trace.Event{Stream: s.name, Name: t.name, What: t.what, Step: t.step,
			Bytes: t.bytes, Start: start.Sub(s.device.opened),
			End: time.Since(s.device.opened)})
	}
	return err
}

// poison fills what the kernel must write with NaNs, so that what it forgets
// is noticed.
func (t *task) poison() {
	for _, b := range t.junk {
		for i := range b {
			b[i] = 0xff
		}
	}
}
