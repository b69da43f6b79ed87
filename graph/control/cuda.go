package control

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// On a GPU a scan is the commands of its body, again and again, each iteration with the addresses
// of its rows; the frame's are the same in all of them. Where data says how many iterations there
// are, or which branch is taken, it is looked at in between (cuda.Branch).

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

// copy appends a copy, a join of one value, of what is not there already.
func (m *onGPU) copy(to, from uint64, t graph.Type) error {
	if to == from {
		return nil
	}
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
	m := &onGPU{body: s.Body, memory: c.Scratch, operands: c.In}
	if s.Counted {
		m.clear(c.Out[s.States:])
	}
	states := s.Body.in[s.Same : s.Same+s.States]
	if err := m.begin(states, c.In[s.Same:]); err != nil {
		return nil, err
	}
	iterations := make([][]cuda.Command, s.Length)
	for k := range iterations {
		at := k
		if s.Reverse {
			at = s.Length - 1 - k
		}
		var err error
		if iterations[k], err = m.apart(func() error { return s.launch(m, c, at) }); err != nil {
			return nil, err
		}
	}
	if s.Counted {
		m.list = append(m.list, cuda.Branch{Addr: c.In[len(c.In)-1].Addr, Type: graph.I32,
			Lists: iterations, Choose: s.choose})
	} else {
		m.list = append(m.list, slices.Concat(iterations...)...)
	}
	return m.list, m.end(states, c.Out)
}

// choose says which iterations are run, of so many: the first elements, from either end.
func (s scan) choose(n int32) (lo, hi int, err error) {
	if n < 0 || int(n) > s.Of {
		return 0, 0, fmt.Errorf("%d iterations of %d", n, s.Of)
	}
	if hi = s.reached(n, s.Length); s.Reverse {
		return s.Length - hi, s.Length, nil
	}
	return 0, hi, nil
}

// begin appends copies of states into the frame.
func (m *onGPU) begin(states []graph.Value, in []cuda.Operand) error {
	for i, v := range states {
		if err := m.copy(m.at(v).Addr, in[i].Addr, v.Type()); err != nil {
			return err
		}
	}
	return nil
}

// end appends copies of states out of the frame.
func (m *onGPU) end(states []graph.Value, out []cuda.Operand) error {
	for i, v := range states {
		if err := m.copy(out[i].Addr, m.at(v).Addr, v.Type()); err != nil {
			return err
		}
	}
	return nil
}

// clear zeroes values.
func (m *onGPU) clear(list []cuda.Operand) {
	for _, o := range list {
		m.list = append(m.list, cuda.Clear{Addr: o.Addr, Bytes: o.Type.Bytes()})
	}
}

// apart is what some function appends, which is not appended.
func (m *onGPU) apart(build func() error) ([]cuda.Command, error) {
	before := m.list
	m.list = nil
	err := build()
	made := m.list
	m.list = before
	return made, err
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

// exact says whether all that bodies do has the host's bits.
func exact(bodies ...*Body) bool {
	for _, b := range bodies {
		for _, n := range b.frame.nodes {
			if !cuda.IsExact(n.Op) {
				return false
			}
		}
	}
	return true
}

func init() {
	cuda.Register(scanCUDA, func(s scan, _, _ []graph.Type) int64 { return s.Body.frame.bytes })
	cuda.Register(whileCUDA, func(w while, _, _ []graph.Type) int64 { return w.scratch() })
	cuda.Register(condCUDA, func(c cond, _, _ []graph.Type) int64 { return c.scratch() })
	cuda.Exact(func(s scan) bool { return exact(s.Body) })
	cuda.Exact(func(w while) bool { return exact(w.Body, w.Condition) })
	cuda.Exact(func(c cond) bool { return exact(c.Then, c.Else) })
}
