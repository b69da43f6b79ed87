// Package chaos runs plans in the worst orders that their streams and waits
// allow, to find races that a device might hide for years.
//
// A [Machine] has the memories of a plan and real kernels, but no threads: it
// starts and ends steps one at a time, and a generator of random numbers chooses
// among those that may. A step is not a moment. When one starts, what it reads is
// read, and what it will write is filled with a value that is no number; when it
// ends, what it writes is written; others start and end in between. A copy reads
// half of its bytes when it starts and half when it ends. So a step that another
// should have waited for is seen to be one that did not.
package chaos

import (
	"fmt"
	"math/rand/v2"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/tensor"
	"github.com/gomem/gomem/plan"
)

// junk is in every byte that nobody has written: a NaN, as a float.
const junk = 0xff

// Machine has a plan's memories. The plan need not be a good one, but its
// indexes and ranges must be.
type Machine struct {
	plan   *plan.Plan
	graph  *graph.Graph
	memory [][]byte  // by space
	lanes  [][]int   // by stream: its steps
	done   []bool    // by step
	busy   []*flight // by stream: the step that has started and not ended
	next   []int     // by stream: how many of its steps have started
}

// flight is a step between its start and its end.
type flight struct {
	step int
	end  func() error
}

// New makes the memories, full of junk.
func New(p *plan.Plan, g *graph.Graph) *Machine {
	m := &Machine{plan: p, graph: g, lanes: make([][]int, len(p.Streams)),
		busy: make([]*flight, len(p.Streams)), done: make([]bool, len(p.Steps)),
		next: make([]int, len(p.Streams))}
	for _, s := range p.Spaces {
		data := tensor.New(tensor.Of(tensor.U8, int(max(s.Bytes, 1)))).Data
		fill(data)
		m.memory = append(m.memory, data)
	}
	for i, s := range p.Steps {
		m.lanes[s.Stream] = append(m.lanes[s.Stream], i)
	}
	return m
}

func fill(b []byte) {
	for i := range b {
		b[i] = junk
	}
}

// Slot is the memory of a slot.
func (m *Machine) Slot(id plan.SlotID) []byte {
	s := m.plan.Slots[id]
	return m.at(plan.Ref{Slot: id}, s.Bytes)
}

// Fetch is the memory of a fetched value.
func (m *Machine) Fetch(f plan.Fetch) []byte { return m.at(f.Ref, f.Type.Bytes()) }

func (m *Machine) at(r plan.Ref, bytes int64) []byte {
	s := m.plan.Slots[r.Slot]
	return m.memory[s.Space][s.Off+r.Off:][:bytes:bytes]
}

// Run runs the plan once. Of the steps that may start or end, rng chooses; lazy
// streams, which it draws too, are chosen only where nobody else may. The error
// is that of a kernel.
func (m *Machine) Run(rng *rand.Rand) error {
	clear(m.done)
	clear(m.next)
	lazy := make([]bool, len(m.lanes))
	for s := range lazy {
		lazy[s] = rng.IntN(3) == 0
	}
	for {
		var keen, all []int // streams that may do something
		for s := range m.lanes {
			if m.busy[s] == nil && !m.ready(s) {
				continue
			}
			all = append(all, s)
			if !lazy[s] {
				keen = append(keen, s)
			}
		}
		if len(all) == 0 {
			return nil
		}
		if len(keen) > 0 {
			all = keen
		}
		if err := m.advance(all[rng.IntN(len(all))]); err != nil {
			return err
		}
	}
}

// ready reports whether a stream's next step may start.
func (m *Machine) ready(s int) bool {
	if m.next[s] == len(m.lanes[s]) {
		return false
	}
	for _, w := range m.plan.Steps[m.lanes[s][m.next[s]]].Wait {
		if !m.done[w] {
			return false
		}
	}
	return true
}

// advance ends the step of a stream, or starts the next one.
func (m *Machine) advance(s int) error {
	if f := m.busy[s]; f != nil {
		m.busy[s], m.done[f.step] = nil, true
		return f.end()
	}
	i := m.lanes[s][m.next[s]]
	m.next[s]++
	step := m.plan.Steps[i]
	var end func() error
	switch do := step.Do.(type) {
	case plan.Copy:
		end = m.copy(do)
	case plan.Launch:
		var err error
		if end, err = m.launch(m.graph.Node(step.Node), do); err != nil {
			return fmt.Errorf("%s: %w", m.plan.StepString(i), err)
		}
	}
	m.busy[s] = &flight{i, end}
	return nil
}

// copy reads the first half of its source at once and the second in the end.
func (m *Machine) copy(do plan.Copy) func() error {
	src, dst := m.at(do.Src, do.Bytes), m.at(do.Dst, do.Bytes)
	half := len(src) / 2
	early := append([]byte(nil), src[:half]...)
	fill(dst)
	return func() error {
		copy(dst[half:], src[half:])
		copy(dst, early)
		return nil
	}
}

// launch runs the kernel at once on copies of the operands, and again in the end
// on what is there by then: both must find the same, as a kernel may read an
// operand at any time between. Results are junk until the end, which writes
// those of the second time.
func (m *Machine) launch(n *graph.Node, do plan.Launch) (func() error, error) {
	fn, err := kernel.Lookup(kernel.CPU, n.Op)
	if err != nil {
		return nil, err
	}
	early := m.operands(n, do)
	scratch := plan.NoSlot
	if do.Scratch != plan.NoSlot {
		scratch = do.Scratch
	}
	inPlace := m.inPlace(do)
	for i, r := range do.Out {
		if !inPlace[i] {
			fill(m.at(r, n.Out[i].Bytes()))
		}
	}
	if scratch != plan.NoSlot {
		fill(m.Slot(scratch))
	}
	return func() error {
		late := m.operands(n, do)
		call := kernel.Call{In: mixed(early, late)}
		for _, t := range n.Out {
			call.Out = append(call.Out, tensor.New(t))
		}
		if scratch != plan.NoSlot {
			call.Scratch = m.Slot(scratch)
		}
		if err := fn(n.Op, &call); err != nil {
			return err
		}
		for i, r := range do.Out {
			copy(m.at(r, n.Out[i].Bytes()), call.Out[i].Data)
		}
		for i, r := range do.In[:do.Mutates] {
			copy(m.at(r, n.In[i].Type().Bytes()), call.In[i].Data)
		}
		return nil
	}, nil
}

// operands are copies of what a launch reads.
func (m *Machine) operands(n *graph.Node, do plan.Launch) []tensor.View {
	var in []tensor.View
	for k, r := range do.In {
		v := tensor.New(n.In[k].Type())
		copy(v.Data, m.at(r, v.Type.Bytes()))
		in = append(in, v)
	}
	return in
}

// inPlace says which results have the bytes of an operand.
func (m *Machine) inPlace(do plan.Launch) []bool {
	out := make([]bool, len(do.Out))
	for i, r := range do.Out {
		for _, in := range do.In {
			out[i] = out[i] || in == r
		}
	}
	return out
}

// mixed takes the first half of every operand from early and the second from
// late.
func mixed(early, late []tensor.View) []tensor.View {
	for k, v := range late {
		half := len(v.Data) / 2 &^ 7
		copy(v.Data[:half], early[k].Data)
	}
	return late
}
