package cpu

import (
	"fmt"
	"slices"
	"time"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/invariants"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/trace"
)

// task is a launch or a copy with everything resolved.
type task struct {
	step       int
	name, what string
	touched    []mark // high-water marks that it raises

	fn   kernel.Func // launch
	op   any
	call kernel.Call
	junk [][]byte // written without being read: poisoned first, in debug builds

	dst, src []byte // copy
}

// mark is the largest end of the regions of a task in one memory.
type mark struct {
	mem *memory
	end int64
}

// Launch resolves an operation's kernel and operands.
func (d *Device) Launch(l device.Launch) (device.Task, error) {
	t := &task{step: l.Step, name: l.Name, what: l.What, op: l.Op}
	t.call.Pool = d.pool
	var err error
	if t.fn, err = kernel.Lookup(kernel.CPU, l.Op); err != nil {
		return nil, err
	}
	for _, o := range l.In {
		v, m, err := view(o)
		if err != nil {
			return nil, err
		}
		t.touch(m, o.Region)
		t.call.In = append(t.call.In, v)
	}
	for _, o := range l.Out {
		v, m, err := view(o)
		if err != nil {
			return nil, err
		}
		t.touch(m, o.Region)
		t.call.Out = append(t.call.Out, v)
		inPlace := func(i device.Operand) bool { return i.Region == o.Region }
		if !slices.ContainsFunc(l.In, inPlace) {
			t.junk = append(t.junk, v.Data)
		}
	}
	if l.Scratch.Bytes > 0 {
		data, m, err := slice(l.Scratch)
		if err != nil {
			return nil, err
		}
		t.touch(m, l.Scratch)
		t.call.Scratch = data
		t.junk = append(t.junk, data)
	}
	return t, nil
}

// Copy resolves the two ends of a copy.
func (d *Device) Copy(c device.Copy) (device.Task, error) {
	t := &task{step: c.Step, name: c.Name, what: c.What}
	dst, dm, err := slice(c.Dst)
	if err != nil {
		return nil, err
	}
	src, sm, err := slice(c.Src)
	if err != nil {
		return nil, err
	}
	if len(dst) != len(src) {
		return nil, fmt.Errorf("copy of %d bytes to %d", len(src), len(dst))
	}
	t.dst, t.src = dst, src
	t.touch(dm, c.Dst)
	t.touch(sm, c.Src)
	return t, nil
}

func (t *task) touch(m *memory, r device.Region) {
	for i := range t.touched {
		if t.touched[i].mem == m {
			t.touched[i].end = max(t.touched[i].end, r.Off+r.Bytes)
			return
		}
	}
	t.touched = append(t.touched, mark{m, r.Off + r.Bytes})
}

// run does the task on the calling goroutine.
func (t *task) run(s *stream) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("kernel panicked: %v", p)
		}
	}()
	for _, m := range t.touched {
		m.mem.touch(m.end)
	}
	listen := s.device.options.Listener
	var start time.Time
	if listen != nil || s.rate > 0 {
		start = time.Now()
	}
	if t.fn == nil {
		copy(t.dst, t.src)
		s.throttle(start, int64(len(t.dst)))
	} else {
		if invariants.Enabled {
			t.poison()
		}
		err = t.fn(t.op, &t.call)
	}
	if listen != nil {
		listen(trace.Event{Stream: s.name, Name: t.name, What: t.what, Step: t.step,
			Bytes: int64(len(t.dst)), Start: start, End: time.Now()})
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
