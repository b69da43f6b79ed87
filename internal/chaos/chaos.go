// Package chaos runs plans in the worst orders that their streams and waits
// allow, to find races that a device might hide for years.
//
// A [Machine] has the memories of a plan and real kernels, but no threads: it
// starts and ends steps one at a time, and a generator of random numbers chooses
// among those that may. A step is not a moment. When one starts it reads a part of
// what it reads, and leaves junk where it will write; when it ends it reads the
// rest and writes; others start and end in between. So a step that did not wait
// for another as it should is seen to have other bits.
package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
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
	used   []int64   // by space: the largest end of what was touched
	rng    *rand.Rand
	sent   map[graph.NodeID][]byte // what the network has, by the node that sent it
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
		next: make([]int, len(p.Streams)), used: make([]int64, len(p.Spaces)),
		sent: map[graph.NodeID][]byte{}}
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
	m.used[s.Space] = max(m.used[s.Space], s.Off+r.Off+bytes)
	return m.memory[s.Space][s.Off+r.Off:][:bytes:bytes]
}

// Used is, by space, the largest end of what has been touched.
func (m *Machine) Used() []int64 { return m.used }

// Run runs the plan once. Of the steps that may start or end, rng chooses; lazy
// streams, which it draws too, are chosen only where nobody else may. The error
// is that of a kernel, or says that steps wait for each other.
func (m *Machine) Run(rng *rand.Rand) error {
	m.rng = rng
	clear(m.done)
	clear(m.next)
	m.share()
	defer m.unshare()
	lazy := make([]bool, len(m.lanes))
	for s := range lazy {
		lazy[s] = rng.IntN(3) == 0
	}
	var keen, all []int // streams that may do something
	for moves := 0; ; moves++ {
		keen, all = keen[:0], all[:0]
		for s := range m.lanes {
			if m.busy[s] == nil && !m.ready(s) {
				continue
			}
			all = append(all, s)
			if !lazy[s] {
				keen = append(keen, s)
			}
		}
		switch {
		case len(all) > 0 && len(keen) == 0:
			keen = all
		case len(all) == 0 && moves < 2*len(m.plan.Steps):
			return fmt.Errorf("stuck after %d of %d moves", moves, 2*len(m.plan.Steps))
		case len(all) == 0:
			return nil
		}
		if err := m.advance(keen[rng.IntN(len(keen))]); err != nil {
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
	case plan.Send:
		end = m.send(m.graph.Node(step.Node), do)
	case plan.Await:
		end = m.await(m.graph.Node(step.Node), do)
	case plan.Peer:
		end = m.peer(m.graph.Node(step.Node), do)
	}
	m.busy[s] = &flight{i, end}
	return nil
}

// cut is where the early part of so many bytes ends: nowhere, in the middle or at
// the end.
func (m *Machine) cut(bytes int) int { return m.rng.IntN(3) * (bytes / 2) }

// copy reads the first part of its source at once and the second in the end.
func (m *Machine) copy(do plan.Copy) func() error {
	src, dst := m.at(do.Src, do.Bytes), m.at(do.Dst, do.Bytes)
	cut := m.cut(len(src))
	early := slices.Clone(src[:cut])
	fill(dst)
	return func() error {
		copy(dst[cut:], src[cut:])
		copy(dst, early)
		return nil
	}
}

// launch reads the first part of every operand at once and the second in the end;
// those that it writes over, wholly at once, as there is junk in their place from
// then on. The kernel runs in the end.
func (m *Machine) launch(n *graph.Node, do plan.Launch) (func() error, error) {
	fn, err := kernel.Lookup(kernel.CPU, n.Op)
	if err != nil {
		return nil, err
	}
	var call kernel.Call
	var memory [][]byte // of the operands
	var cuts []int
	for k, r := range do.In {
		v := tensor.New(n.In[k].Type())
		memory = append(memory, m.at(r, v.Type.Bytes()))
		cut := m.cut(len(v.Data))
		if k < do.Mutates || slices.Contains(do.Out, r) {
			cut = len(v.Data)
		}
		copy(v.Data[:cut], memory[k])
		cuts, call.In = append(cuts, cut), append(call.In, v)
	}
	var results [][]byte
	for i, r := range do.Out {
		v := tensor.New(n.Out[i])
		if k := slices.Index(do.In, r); k >= 0 {
			v.Data = call.In[k].Data
		} else {
			fill(v.Data)
		}
		call.Out = append(call.Out, v)
		results = append(results, m.at(r, n.Out[i].Bytes()))
	}
	if do.Scratch != plan.NoSlot {
		call.Scratch = m.Slot(do.Scratch)
		fill(call.Scratch)
	}
	for _, b := range append(results, memory[:do.Mutates]...) {
		fill(b)
	}
	return func() error {
		for k, v := range call.In {
			copy(v.Data[cuts[k]:], memory[k][cuts[k]:])
		}
		if err := fn(n.Op, &call); err != nil {
			return err
		}
		for i, b := range results {
			copy(b, call.Out[i].Data)
		}
		for k, b := range memory[:do.Mutates] {
			copy(b, call.In[k].Data)
		}
		return nil
	}, nil
}
