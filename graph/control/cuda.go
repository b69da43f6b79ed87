package control

import (
	"errors"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// On a GPU a scan is the commands of its body, again and again, each iteration with the addresses
// of its rows; the frame's are the same in all of them.

// errData says why a loop is not for a GPU.
var errData = errors.New("how often it runs depends on data, which nobody can look at in the " +
	"middle of a step on a GPU: plan it for the CPU")

// onGPU is a body with its operands and its frame.
type onGPU struct {
	body     *Body
	memory   uint64
	operands []cuda.Operand
	list     []cuda.Command
}

// at is where a value of the body is.
func (m *onGPU) at(v graph.Value) cuda.Operand {
	f := &m.body.frame
	root, off := v.Resolve()
	base := m.memory + uint64(f.at[root])
	if i, ok := f.outside[root]; ok {
		base = m.operands[i].Addr
	}
	return cuda.Operand{Addr: base + uint64(off), Type: v.Type()}
}

// result is where result i is while operands are written.
func (m *onGPU) result(i int) cuda.Operand {
	o := m.at(m.body.out[i])
	if at, ok := m.body.frame.staged[i]; ok {
		o.Addr = m.memory + uint64(at)
	}
	return o
}

// copy appends a copy: a join of one value.
func (m *onGPU) copy(to, from uint64, t graph.Type) error {
	flat := graph.Of(t.DType, t.Elems())
	list, err := cuda.Commands(ops.Joined(), &cuda.Call{
		In: []cuda.Operand{{Addr: from, Type: flat}}, Out: []cuda.Operand{{Addr: to, Type: flat}}})
	m.list = append(m.list, list...)
	return err
}

// run appends an execution of the body.
func (m *onGPU) run(tf32 bool) error {
	for _, n := range m.body.frame.nodes {
		c := &cuda.Call{Scratch: m.memory + uint64(m.body.frame.scratch[n.ID]), TF32: tf32}
		for _, v := range n.In {
			c.In = append(c.In, m.at(v))
		}
		for i := range n.Out {
			c.Out = append(c.Out, m.at(n.Value(i)))
		}
		list, err := cuda.Commands(n.Op, c)
		if err != nil {
			return err
		}
		m.list = append(m.list, list...)
	}
	for i, v := range m.body.out {
		if _, ok := m.body.frame.staged[i]; ok {
			if err := m.copy(m.result(i).Addr, m.at(v).Addr, v.Type()); err != nil {
				return err
			}
		}
	}
	return nil
}

// rowAt is where row i of so many is.
func rowAt(o cuda.Operand, i, rows int) uint64 {
	return o.Addr + uint64(i)*uint64(o.Type.Bytes()/int64(rows))
}

func scanCUDA(s scan, c *cuda.Call) ([]cuda.Command, error) {
	if s.Counted {
		return nil, errData
	}
	m := &onGPU{body: s.Body, memory: c.Scratch, operands: c.In}
	states := s.Body.in[s.Same : s.Same+s.States]
	for i, v := range states {
		if err := m.copy(m.at(v).Addr, c.In[s.Same+i].Addr, v.Type()); err != nil {
			return nil, err
		}
	}
	for k := range s.Length {
		if s.Reverse {
			k = s.Length - 1 - k
		}
		if err := s.launch(m, c, k); err != nil {
			return nil, err
		}
	}
	for i, v := range states {
		if err := m.copy(c.Out[i].Addr, m.at(v).Addr, v.Type()); err != nil {
			return nil, err
		}
	}
	return m.list, nil
}

// launch appends an iteration.
func (s scan) launch(m *onGPU, c *cuda.Call, k int) (err error) {
	move := func(to, from uint64, t graph.Type) {
		if err == nil {
			err = m.copy(to, from, t)
		}
	}
	fixed := s.Same + s.States
	for i, v := range s.Body.in[fixed : fixed+s.Xs] {
		move(m.at(v).Addr, rowAt(c.In[fixed+i], k, s.Length), v.Type())
	}
	for i, v := range s.Body.in[s.Same:fixed] {
		if s.Record {
			move(rowAt(c.Out[s.States+s.rows()+i], k, s.Length), m.at(v).Addr, v.Type())
		}
	}
	if err == nil {
		err = m.run(c.TF32)
	}
	for i := range s.rows() {
		v := s.Body.out[s.States+i]
		move(rowAt(c.Out[s.States+i], k, s.Length), m.result(s.States+i).Addr, v.Type())
	}
	for i, v := range s.Body.in[s.Same:fixed] {
		move(m.at(v).Addr, m.result(i).Addr, v.Type())
	}
	return err
}

func init() {
	cuda.Register(scanCUDA, func(s scan, _, _ []graph.Type) int64 { return s.Body.frame.bytes })
	cuda.Register(func(while, *cuda.Call) ([]cuda.Command, error) { return nil, errData }, nil)
	cuda.Register(func(cond, *cuda.Call) ([]cuda.Command, error) { return nil, errData }, nil)
	exact := func(b *Body) bool {
		for _, n := range b.frame.nodes {
			if !cuda.IsExact(n.Op) {
				return false
			}
		}
		return true
	}
	cuda.Exact(func(s scan) bool { return exact(s.Body) })
}
