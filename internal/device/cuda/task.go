//go:build linux && amd64 && !nocuda

package cuda

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cuda/driver"
	kernels "github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/plan/space"
)

// task is a launch or a copy with everything prepared.
type task struct {
	place      *place
	step       int
	name, what string
	bytes      int64 // copied
	touched    []mark
	parts      []part
	looks      bool // at data, so that a graph of its calls is good for one time only
}

// mark is the end of a region in a memory.
type mark struct {
	mem *device.Water
	end int64
}

// part is one call of the driver or of a library. The goroutine that issues calls it.
type part func(s *stream) error

// error is err as this task's.
func (t *task) error(err error) error {
	return &device.Error{Step: t.step, Name: t.name, What: t.what, Err: err}
}

// at is the address of a region that the task touches.
func (t *task) at(r device.Region) (uint64, error) {
	m, ok := r.Mem.(*memory)
	if !ok || m.device != t.place.device {
		return 0, fmt.Errorf("memory %T is not this device's", r.Mem)
	}
	t.note(&m.Water, r)
	return m.addr + uint64(r.Off), nil
}

func (t *task) note(m *device.Water, r device.Region) {
	end := r.Off + r.Bytes
	for i := range t.touched {
		if t.touched[i].mem == m {
			t.touched[i].end = max(t.touched[i].end, end)
			return
		}
	}
	t.touched = append(t.touched, mark{m, end})
}

// launch prepares the commands of an operation. Of one whose results have no elements,
// there are none.
func (d *Device) launch(p *place, l device.Launch) (device.Task, error) {
	t := &task{place: p, step: l.Step, name: l.Name, what: l.What}
	call := kernels.Call{TF32: d.options.TF32, Library: l.Library}
	var err error
	if call.In, err = t.operands(l.In); err != nil {
		return nil, err
	}
	if call.Out, err = t.operands(l.Out); err != nil {
		return nil, err
	}
	if l.Scratch.Bytes > 0 {
		if call.Scratch, err = t.at(l.Scratch); err != nil {
			return nil, err
		}
		call.Room = l.Scratch.Bytes
	}
	if d.options.Poison {
		t.poison(l)
	}
	commands, err := kernels.Commands(l.Op, &call)
	if err != nil {
		return nil, err
	}
	if empty := func(o device.Operand) bool { return o.Bytes == 0 }; len(l.Out) > 0 &&
		!slices.ContainsFunc(l.Out, func(o device.Operand) bool { return !empty(o) }) {
		return t, nil
	}
	err = d.bound(func() error {
		for _, c := range commands {
			if err := d.prepare(t, c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s of %v: %w", l.What, types(l.In), err)
	}
	if t.looks {
		d.options.forbidden("data says what runs", "operation", l.What, "name", l.Name)
	}
	return t, nil
}

// types are those of operands.
func types(list []device.Operand) (all []tensor.Type) {
	for _, o := range list {
		all = append(all, o.Type)
	}
	return all
}

func (t *task) operands(list []device.Operand) ([]kernels.Operand, error) {
	var out []kernels.Operand
	for _, o := range list {
		addr, err := t.at(o.Region)
		if err != nil {
			return nil, err
		}
		out = append(out, kernels.Operand{Addr: addr, Type: o.Type})
	}
	return out, nil
}

// poison fills what the operation must write with NaNs, so that what it forgets is noticed.
func (t *task) poison(l device.Launch) {
	junk := []device.Region{l.Scratch}
	for _, o := range l.Out {
		if !slices.ContainsFunc(l.In, func(i device.Operand) bool { return i.Region == o.Region }) {
			junk = append(junk, o.Region)
		}
	}
	for _, r := range junk {
		if r.Bytes == 0 {
			continue
		}
		addr := r.Mem.(*memory).addr + uint64(r.Off)
		t.parts = append(t.parts, func(s *stream) error {
			return s.cu.FillBytes(addr, 0xff, r.Bytes)
		})
	}
}

// prepare appends a command to a task.
func (d *Device) prepare(t *task, c kernels.Command) error {
	switch c := c.(type) {
	case kernels.Kernel:
		k, err := d.kernel(c.Name, c.Shared)
		if err != nil {
			return err
		}
		l := k.Prepare(c.Grid, c.Block, c.Shared, slices.Clone(c.Args))
		if c.Written != nil && !d.options.Interpret {
			d.code.waiting = append(d.code.waiting, waiting{c, t.name, t.what, &l})
		}
		t.parts = append(t.parts, func(s *stream) error { return s.cu.Launch(l) })
	case kernels.Gemm:
		if c.M == 0 || c.N == 0 || c.Batch == 0 {
			return nil
		}
		g := columns(c)
		d.ones.add(g)
		t.parts = append(t.parts, func(s *stream) error { return s.products.Run(g) })
	case kernels.Conv:
		return d.convolve(t, c)
	case kernels.Fill:
		if c.Words > 0 {
			t.parts = append(t.parts, func(s *stream) error {
				return s.cu.Fill(c.Addr, c.Word, c.Words)
			})
		}
	case kernels.Copy:
		if c.Bytes > 0 {
			t.parts = append(t.parts, func(s *stream) error {
				return s.cu.Copy(c.To, c.From, c.Bytes)
			})
		}
	case kernels.Clear:
		if c.Bytes > 0 {
			t.parts = append(t.parts, func(s *stream) error {
				return s.cu.FillBytes(c.Addr, 0, c.Bytes)
			})
		}
	case kernels.Branch:
		return t.branch(d, c)
	default:
		return fmt.Errorf("unknown command %T", c)
	}
	return nil
}

// columns is a product by rows as one by columns: that of the transposes, the other way
// round.
func columns(c kernels.Gemm) *driver.Gemm {
	g := &driver.Gemm{TransA: c.TransB, TransB: c.TransA, M: c.N, N: c.M, K: c.K,
		Alpha: c.Alpha, Beta: c.Beta, A: c.B, B: c.A, C: c.C, LdA: c.LdB, LdB: c.LdA, LdC: c.LdC,
		Batch: c.Batch, StrideA: c.StrideB, StrideB: c.StrideA, StrideC: c.StrideC,
		TF32: c.TF32, HalfIn: c.HalfIn, HalfOut: c.HalfOut}
	g.Prepare()
	return g
}

// copy prepares a copy in chunks, so that a short one behind it does not wait for a long
// one, and none spans two pieces of pinned memory.
func (d *Device) copy(p *place, c device.Copy) (device.Task, error) {
	t := &task{place: p, step: c.Step, name: c.Name, what: c.What, bytes: c.Dst.Bytes}
	near, far := c.Dst, c.Src
	if p.engine == space.CopyOut {
		near, far = far, near
	}
	addr, err := t.at(near)
	if err != nil {
		return nil, err
	}
	data, mem, err := d.host.Window(far)
	if err != nil {
		return nil, err
	}
	t.note(mem, far)
	pins, in := d.pins[far.Mem], p.engine == space.CopyIn
	for len(data) > 0 {
		end := far.Off + far.Bytes - int64(len(data)) // of the chunk, in the host's memory
		n := min(d.options.Chunk, int64(len(data)), pins.piece-end%pins.piece)
		end += n
		t.parts = append(t.parts, chunk(pins, end, in, addr, data[:n:n]))
		addr, data = addr+uint64(n), data[n:]
	}
	return t, nil
}

// chunk copies some bytes, once they are pinned, or by staging memory if they cannot be.
func chunk(pins *pins, end int64, in bool, addr uint64, data []byte) part {
	return func(s *stream) error {
		switch err := pins.await(end); {
		case err != nil:
			return s.device.stage.copy(s, in, addr, data, err)
		case in:
			return s.cu.ToDevice(addr, data)
		}
		return s.cu.ToHost(data, addr)
	}
}

// exchange makes the task of an exchange with other GPUs, which the host calls.
func (d *Device) exchange(c device.Call) (device.Task, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	t := &task{place: &place{d, c.Engine}}
	for _, r := range append([]device.Region{c.Data}, c.In...) {
		if _, err := t.at(r); err != nil {
			return nil, err
		}
	}
	return d.host.Calling(c, func() error {
		t.touch()
		return c.Do(d.fault.Done(), nil, nil)
	})
}
